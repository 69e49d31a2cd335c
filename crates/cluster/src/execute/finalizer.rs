//! Our finalizer on the `ScheduledMachine`, beside those of others.

use crate::execute::job::{Job, Warrant};
use crate::execute::outcome::Acted;
use crate::transport::operation::Verb;
use five_spot_api::names::FINALIZER;
use kube::ResourceExt;
use serde_json::json;

impl Job<'_> {
    pub(super) async fn add_finalizer(&self) -> Acted {
        self.change_finalizers(Verb::AddFinalizer, |finalizers| {
            (!finalizers.iter().any(|name| name == FINALIZER)).then(|| {
                let ours = std::iter::once(FINALIZER.to_owned());
                finalizers.iter().cloned().chain(ours).collect()
            })
        })
        .await
    }

    pub(super) async fn remove_finalizer(&self, _: Warrant) -> Acted {
        self.change_finalizers(Verb::RemoveFinalizer, |finalizers| {
            finalizers
                .iter()
                .any(|name| name == FINALIZER)
                .then(|| finalizers.iter().filter(|name| *name != FINALIZER).cloned().collect())
        })
        .await
    }

    /// Changes the list, so that a finalizer that someone else adds meanwhile is never lost.
    async fn change_finalizers(
        &self,
        verb: Verb,
        change: impl Fn(&[String]) -> Option<Vec<String>>,
    ) -> Acted {
        let patched = |finalizers: &[String]| {
            change(finalizers).map(|finalizers| json!({"metadata": {"finalizers": finalizers}}))
        };
        let cached =
            self.caches.objects.get(self.key).filter(|item| item.view.view.uid.as_str() == self.uid());
        let known = cached.and_then(|item| Some((item.version, patched(&item.view.finalizers()?)?)));
        self.change_object(verb, known, |object| patched(object.finalizers())).await
    }
}
