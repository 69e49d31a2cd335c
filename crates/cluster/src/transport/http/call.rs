//! The call of a request, from its method and path.

use http::{Method, Request};

/// One call of the Kubernetes API, with the terms of an audit log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: &'static str,
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural of the kind; for anything that is not an object, the path.
    pub resource: String,
    /// The part of the object, if not the whole.
    pub subresource: Option<String>,
    /// The namespace, if there is one.
    pub namespace: Option<String>,
    /// The name; absent for a collection, and for a create.
    pub name: Option<String>,
}

impl Call {
    /// Reads a request.
    pub fn of<B>(request: &Request<B>) -> Self {
        let path = request.uri().path();
        let mut watches =
            request.uri().query().is_some_and(|query| query.split('&').any(|pair| pair == "watch=true"));
        let mut segments = path.split('/').filter(|segment| !segment.is_empty());
        let group = match segments.next() {
            Some("api") => Some(String::new()),
            Some("apis") => segments.next().map(str::to_owned),
            Some(_) | None => None,
        };
        let mut rest: Vec<&str> = segments.skip(1).collect();
        // A watch of what a path names, which may be a single object.
        if rest.len() > 1 && rest[0] == "watch" {
            rest.remove(0);
            watches = true;
        }
        let Some(group) = group.filter(|_| !rest.is_empty()) else {
            let verb = verb(request.method(), true, false);
            let resource = path.to_owned();
            return Self {
                verb,
                group: String::new(),
                resource,
                subresource: None,
                namespace: None,
                name: None,
            };
        };
        let (namespace, rest) = match rest.as_slice() {
            // A namespace itself is an object without one.
            ["namespaces", namespace, rest @ ..] if is_resource(rest) => {
                (Some((*namespace).to_owned()), rest)
            }
            rest => (None, rest),
        };
        let name = rest.get(1).map(|name| (*name).to_owned());
        Self {
            verb: verb(request.method(), name.is_some(), watches),
            group,
            resource: rest.first().copied().unwrap_or_default().to_owned(),
            subresource: rest.get(2).map(|part| (*part).to_owned()),
            namespace,
            name,
        }
    }

    /// True if it changes the cluster.
    pub fn writes(&self) -> bool {
        !matches!(self.verb, "get" | "list" | "watch")
    }
}

/// True if the part of a path after a namespace is a resource, and not a part of the namespace itself.
fn is_resource(rest: &[&str]) -> bool {
    !matches!(rest, [] | ["status" | "finalize"])
}

fn verb(method: &Method, named: bool, watches: bool) -> &'static str {
    match *method {
        Method::GET if watches => "watch",
        Method::GET if named => "get",
        Method::GET => "list",
        Method::POST => "create",
        Method::PUT => "update",
        Method::DELETE if named => "delete",
        Method::DELETE => "deletecollection",
        _ => "patch",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(method: Method, uri: &str) -> Call {
        Call::of(&Request::builder().method(method).uri(uri).body(()).unwrap())
    }

    #[test]
    fn paths_are_read_as_an_audit_log_words_them() {
        let cases = [
            (Method::GET, "/api/v1/nodes/a", "get  nodes  - a"),
            (Method::GET, "/api/v1/nodes?watch=true&x=y", "watch  nodes  - -"),
            (Method::GET, "/api/v1/namespaces/a", "get  namespaces  - a"),
            (Method::GET, "/api/v1/watch/namespaces/a", "watch  namespaces  - a"),
            (Method::PUT, "/api/v1/namespaces/a/finalize", "update  namespaces finalize - a"),
            (Method::POST, "/api/v1/namespaces/a/pods/b/eviction", "create  pods eviction a b"),
            (
                Method::PATCH,
                "/apis/5spot.finos.org/v1alpha1/namespaces/a/scheduledmachines/b/status?fieldManager=c",
                "patch 5spot.finos.org scheduledmachines status a b",
            ),
            (
                Method::DELETE,
                "/apis/apps/v1/namespaces/a/deployments",
                "deletecollection apps deployments  a -",
            ),
            (Method::GET, "/apis/apps/v1", "get  /apis/apps/v1  - -"),
            (Method::GET, "/version", "get  /version  - -"),
        ];
        for (method, uri, expected) in cases {
            let call = call(method, uri);
            let dash = |text: &Option<String>| text.clone().unwrap_or("-".to_owned());
            let said = format!(
                "{} {} {} {} {} {}",
                call.verb,
                call.group,
                call.resource,
                call.subresource.clone().unwrap_or_default(),
                dash(&call.namespace),
                dash(&call.name)
            );
            assert_eq!(said, expected, "{uri}");
        }
    }

    #[test]
    fn only_reading_writes_nothing() {
        for (method, writes) in [(Method::GET, false), (Method::POST, true), (Method::DELETE, true)] {
            assert_eq!(call(method, "/api/v1/nodes").writes(), writes);
        }
    }
}
