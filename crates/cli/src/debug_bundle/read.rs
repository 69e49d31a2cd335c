//! Reading from the cluster, with what cannot be read noted in the bundle.

use super::bundle::Bundle;
use crate::why::{Catalog, Served};
use five_spot_core::text::{MAX_MESSAGE, bounded};
use http::Request;
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams};
use serde_json::Value;
use std::time::Duration;

/// The objects of one page of a list.
const PAGE: u32 = 500;

/// The time for one part of the bundle that is not an object, such as a log.
const PART_DEADLINE: Duration = Duration::from_secs(20);

/// A client that notes what it cannot read.
pub struct Reader<'a> {
    pub client: Client,
    pub catalog: &'a Catalog,
}

/// The objects of a list.
#[derive(Clone, Copy, Debug, Default)]
pub struct Selection<'a> {
    /// One namespace; all if absent.
    pub namespace: Option<&'a str>,
    /// A label selector.
    pub labels: Option<&'a str>,
    /// The most that are read.
    pub limit: usize,
}

impl Reader<'_> {
    /// The objects of a kind. A Secret is never asked for.
    pub async fn list(
        &self,
        bundle: &mut Bundle,
        group: &str,
        plural: &str,
        selection: Selection<'_>,
    ) -> Vec<Value> {
        let what = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
        let Some(served) = self.catalog.by_plural(group, plural).filter(|it| it.kind != "Secret") else {
            bundle.miss(&what, "this cluster does not serve the kind");
            return Vec::new();
        };
        match self.pages(served, selection).await {
            Ok((objects, is_complete)) => {
                if !is_complete {
                    bundle.miss(&what, &format!("only the first {} were read", selection.limit));
                }
                objects
            }
            Err(error) => {
                bundle.miss(&place(&what, selection.namespace), &in_words(&error));
                Vec::new()
            }
        }
    }

    async fn pages(
        &self,
        served: &Served,
        selection: Selection<'_>,
    ) -> Result<(Vec<Value>, bool), kube::Error> {
        let resource = served.resource();
        let api: Api<DynamicObject> = match selection.namespace.filter(|_| served.namespaced) {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        let mut params = ListParams::default().limit(PAGE);
        if let Some(labels) = selection.labels {
            params = params.labels(labels);
        }
        let mut objects = Vec::new();
        loop {
            let page = api.list(&params).await?;
            objects.extend(page.items.iter().map(|object| with_types(object, served)));
            params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
            if params.continue_token.is_none() {
                return Ok((objects, true));
            }
            if objects.len() >= selection.limit {
                objects.truncate(selection.limit);
                return Ok((objects, false));
            }
        }
    }

    /// One object; `None` if it does not exist or cannot be read, which is noted.
    pub async fn get(
        &self,
        bundle: &mut Bundle,
        served: &Served,
        namespace: Option<&str>,
        name: &str,
    ) -> Option<Value> {
        let resource = served.resource();
        let api: Api<DynamicObject> = match namespace.filter(|_| served.namespaced) {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        match api.get(name).await {
            Ok(object) => Some(with_types(&object, served)),
            Err(error) => {
                let what = place(&format!("{} {name}", served.full_name()), namespace);
                bundle.miss(&what, &in_words(&error));
                None
            }
        }
    }

    /// Text from a path of the API server, such as a log; `None` if it cannot be read, which is noted.
    pub async fn text(&self, bundle: &mut Bundle, what: &str, path: &str) -> Option<String> {
        match self.try_text(path).await {
            Ok(text) => Some(text),
            Err(reason) => {
                bundle.miss(what, &reason);
                None
            }
        }
    }

    /// The same, without a note.
    pub async fn try_text(&self, path: &str) -> Result<String, String> {
        let request = Request::get(path).body(Vec::new()).map_err(|error| error.to_string())?;
        match tokio::time::timeout(PART_DEADLINE, self.client.request_text(request)).await {
            Ok(Ok(text)) => Ok(text),
            Ok(Err(error)) => Err(in_words(&error)),
            Err(_) => Err(format!("no answer within {} s", PART_DEADLINE.as_secs())),
        }
    }
}

/// The items of a list do not name their kind.
fn with_types(object: &DynamicObject, served: &Served) -> Value {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    let resource = served.resource();
    value["apiVersion"] = resource.api_version.into();
    value["kind"] = resource.kind.into();
    value
}

fn place(what: &str, namespace: Option<&str>) -> String {
    namespace.map_or_else(|| what.to_owned(), |namespace| format!("{what} in namespace {namespace}"))
}

/// A failed request, in words.
pub fn in_words(error: &kube::Error) -> String {
    let kube::Error::Api(status) = error else {
        return bounded(&error.to_string(), MAX_MESSAGE).into_owned();
    };
    format!("{} ({})", bounded(&status.message, MAX_MESSAGE), status.code)
}
