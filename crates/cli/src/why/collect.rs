//! Reads the facts that a walk needs, with the caller's own permissions and a bounded number of requests.

use super::catalog::{Catalog, Served};
use super::target::is_path_segment;
use five_spot_core::text::{MAX_MESSAGE, bounded};
use five_spot_diagnose::why::{Fact, Filter, Listed, Need, ObjectId, Owner, ResourceId, Unreadable};
use futures::StreamExt as _;
use kube::api::{Api, DynamicObject, ListParams};
use kube::{Client, ResourceExt as _};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// The number of requests at a time: an API server does not notice, and a walk rarely needs more.
const CONCURRENCY: usize = 8;

/// The objects of one page.
const PAGE: u32 = 500;

/// The objects of one kind that are searched for dependents of an owner.
const SEARCHED: u32 = 5000;

/// Kinds that never have owners that matter, and of which there are many.
const NO_DEPENDENTS: [&str; 3] = ["events", "events.events.k8s.io", "componentstatuses"];

/// Reads facts.
pub struct Collector<'a> {
    client: Client,
    catalog: &'a Catalog,
}

impl<'a> Collector<'a> {
    pub fn new(client: Client, catalog: &'a Catalog) -> Self {
        Self { client, catalog }
    }

    /// Reads all of them. Whatever cannot be read is a fact, too.
    pub async fn collect(&self, needs: BTreeSet<Need>) -> Vec<(Need, Fact)> {
        let reads = needs.into_iter().map(|need| async move {
            let fact = self.read(&need).await;
            (need, fact)
        });
        futures::stream::iter(reads).buffer_unordered(CONCURRENCY).collect().await
    }

    async fn read(&self, need: &Need) -> Fact {
        match need {
            Need::Object(id) => self.object(id).await,
            Need::List { resource, namespace, filter, limit } => {
                self.list(resource, namespace.as_deref(), filter, *limit).await
            }
            Need::Dependents { owner, namespace } => self.dependents(owner, namespace.as_deref()).await,
        }
    }

    async fn object(&self, id: &ObjectId) -> Fact {
        let Some(served) = self.catalog.by_kind(&id.group, &id.kind) else {
            return not_served(&id.group, &id.kind);
        };
        // Others write the names in owner references and volumes: no object has a name that would change the request.
        let namespace = id.namespace.as_deref().filter(|_| served.namespaced);
        if !is_path_segment(&id.name) || !namespace.is_none_or(is_path_segment) {
            return Fact::Absent;
        }
        let api = self.api(served, id.namespace.as_deref());
        match api.get(&id.name).await {
            Ok(object) => Fact::Object(with_types(&object, served)),
            Err(kube::Error::Api(status)) if status.code == 404 && status.reason == "NotFound" => {
                Fact::Absent
            }
            Err(error) => Fact::Unreadable(unreadable(&error, "get", served, id.namespace.as_deref())),
        }
    }

    async fn list(
        &self,
        resource: &ResourceId,
        namespace: Option<&str>,
        filter: &Filter,
        limit: u32,
    ) -> Fact {
        let served = match resource {
            ResourceId::Kind { group, kind } => self.catalog.by_kind(group, kind),
            ResourceId::Plural { group, plural } => self.catalog.by_plural(group, plural),
        };
        let Some(served) = served else {
            return match resource {
                ResourceId::Kind { group, kind: name } | ResourceId::Plural { group, plural: name } => {
                    not_served(group, name)
                }
            };
        };
        let params = match filter {
            Filter::All => ListParams::default(),
            Filter::Fields(selector) => ListParams::default().fields(selector),
            Filter::Labels(selector) => ListParams::default().labels(selector),
        };
        if !namespace.filter(|_| served.namespaced).is_none_or(is_path_segment) {
            return Fact::List(Listed::default());
        }
        let api = self.api(served, namespace);
        match pages(params, limit, async |params| api.list(&params).await).await {
            Ok((objects, more)) => Fact::List(Listed {
                items: objects.iter().map(|object| with_types(object, served)).collect(),
                more,
                unread: Vec::new(),
            }),
            Err(error) => Fact::Unreadable(unreadable(&error, "list", served, namespace)),
        }
    }

    /// Searches every kind for owner references: there is no index of them. Only the metadata is read.
    async fn dependents(&self, owner: &Owner, namespace: Option<&str>) -> Fact {
        let kinds = self.catalog.kinds.iter().filter(|served| {
            served.can("list")
                && (namespace.is_none() || served.namespaced)
                && !NO_DEPENDENTS.contains(&served.full_name().as_str())
        });
        let searches = kinds.map(|served| self.search(served, owner, namespace));
        let results: Vec<Listed> = futures::stream::iter(searches).buffered(CONCURRENCY).collect().await;
        let mut found = Listed::default();
        for part in results {
            found.items.extend(part.items);
            found.unread.extend(part.unread);
        }
        Fact::List(found)
    }

    async fn search(&self, served: &Served, owner: &Owner, namespace: Option<&str>) -> Listed {
        let api = self.api(served, namespace);
        let (objects, more) =
            match pages(ListParams::default(), SEARCHED, async |params| api.list_metadata(&params).await)
                .await
            {
                Ok(found) => found,
                // Served for something else than lists of objects.
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 405) => {
                    return Listed::default();
                }
                Err(error) => {
                    let reason = unreadable(&error, "list", served, namespace).in_words();
                    let unread = vec![format!("{} were not searched: {reason}", served.full_name())];
                    return Listed { unread, ..Listed::default() };
                }
            };
        let names = |object: &&kube::core::PartialObjectMeta<DynamicObject>| {
            object.owner_references().iter().any(|reference| match &owner.uid {
                Some(uid) => reference.uid == *uid,
                None => reference.kind == owner.kind && reference.name == owner.name,
            })
        };
        let items = objects.iter().filter(names).map(|object| with_types(object, served)).collect();
        let unread = if more > 0 {
            vec![format!("only the first {SEARCHED} {} were searched", served.full_name())]
        } else {
            Vec::new()
        };
        Listed { items, more: 0, unread }
    }

    fn api(&self, served: &Served, namespace: Option<&str>) -> Api<DynamicObject> {
        let resource = served.resource();
        match namespace.filter(|_| served.namespaced) {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }
}

/// Reads pages until there are enough objects. Returns them, and the number of further ones.
async fn pages<K: Clone>(
    params: ListParams,
    limit: u32,
    read: impl AsyncFn(ListParams) -> Result<kube::core::ObjectList<K>, kube::Error>,
) -> Result<(Vec<K>, u64), kube::Error> {
    let mut objects = Vec::new();
    let mut token: Option<String> = None;
    loop {
        let missing = limit.saturating_sub(u32::try_from(objects.len()).unwrap_or(u32::MAX));
        let mut params = params.clone().limit(missing.clamp(1, PAGE));
        params.continue_token = token.take();
        let page = read(params).await?;
        objects.extend(page.items);
        let next = page.metadata.continue_.filter(|token| !token.is_empty());
        let Some(next) = next else { return Ok((objects, 0)) };
        if objects.len() >= limit as usize {
            // Without a selector the API server says how many there are.
            let more = page.metadata.remaining_item_count.and_then(|count| u64::try_from(count).ok());
            return Ok((objects, more.unwrap_or(1)));
        }
        token = Some(next);
    }
}

/// The object as JSON. The items of a list do not name their kind.
fn with_types(object: &impl Serialize, served: &Served) -> Value {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    let resource = served.resource();
    value["apiVersion"] = resource.api_version.into();
    value["kind"] = resource.kind.into();
    value
}

fn not_served(group: &str, kind: &str) -> Fact {
    let name = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
    Fact::Unreadable(Unreadable::NotServed(name))
}

/// A failed request, in words. A missing permission is named as a role would grant it.
fn unreadable(error: &kube::Error, verb: &str, served: &Served, namespace: Option<&str>) -> Unreadable {
    let kube::Error::Api(status) = error else {
        return Unreadable::Failed(bounded(&error.to_string(), MAX_MESSAGE).into_owned());
    };
    match status.code {
        401 | 403 => {
            let place = namespace
                .filter(|_| served.namespaced)
                .map(|it| format!(" in namespace {it}"))
                .unwrap_or_default();
            Unreadable::Forbidden(format!("{verb} {}{place}", served.full_name()))
        }
        404 | 405 => Unreadable::NotServed(served.full_name()),
        code => {
            let message = bounded(&status.message, MAX_MESSAGE);
            Unreadable::Failed(format!("{message} ({code})"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http::{Request, Response};
    use http_body_util::Full;
    use kube::client::Body;
    use std::sync::{Arc, Mutex};

    fn pods() -> Catalog {
        let pod = Served {
            group: String::new(),
            version: "v1".to_owned(),
            kind: "Pod".to_owned(),
            plural: "pods".to_owned(),
            singular: "pod".to_owned(),
            short_names: Vec::new(),
            namespaced: true,
            verbs: vec!["get".to_owned(), "list".to_owned()],
        };
        Catalog { kinds: vec![pod] }
    }

    /// The names in owner references and volumes are whatever someone has written there. None of them may turn a read of an
    /// object into another request with the rights of the reader.
    #[tokio::test]
    async fn a_name_that_no_object_can_have_sends_no_request() {
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let record = asked.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            record.lock().expect("nobody panics with it").push(request.uri().to_string());
            let answer = Response::builder().status(500).body(Full::new(Bytes::new()));
            std::future::ready(answer)
        });
        let (client, catalog) = (Client::new(service, "default"), pods());
        let collector = Collector::new(client, &catalog);
        let names =
            ["web-0/proxy/admin", "../secrets/token", "..", "a?watch=true", "a%2flog", "a#b", "a b", ""];
        let by_name = names.map(|name| ObjectId::namespaced("", "Pod", "shop", name));
        let by_namespace =
            ["..", "a/pods/b", ""].map(|space| ObjectId::namespaced("", "Pod", space, "web-0"));
        for id in by_name.into_iter().chain(by_namespace) {
            let read = collector.collect(BTreeSet::from([Need::Object(id.clone())])).await;
            assert!(matches!(read.as_slice(), [(_, Fact::Absent)]), "{id:?}: {read:?}");
        }
        assert_eq!(*asked.lock().expect("nobody panics with it"), [""; 0]);
    }
}
