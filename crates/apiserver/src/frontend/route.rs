//! The parts of a URL path.

/// A parsed path.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Route {
    /// `/version`.
    Version,
    /// `/healthz`, `/livez`, `/readyz`.
    Health,
    /// `/api`.
    CoreVersions,
    /// `/apis`.
    Groups,
    /// `/apis/<group>`.
    Group(String),
    /// `/api/v1` or `/apis/<group>/<version>`.
    Resources { group: String, version: String },
    /// `/openapi/v2`.
    OpenApi2,
    /// `/openapi/v3`.
    OpenApiIndex,
    /// `/openapi/v3/<path>`.
    OpenApi(String),
    /// Objects.
    Target(Target),
    /// A path that Kubernetes does not have.
    Unknown,
}

/// The objects of a path.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Target {
    pub group: String,
    pub version: String,
    pub plural: String,
    pub namespace: Option<String>,
    pub name: Option<String>,
    pub subresource: Option<String>,
    /// The path is a watch, as in `/api/v1/watch/namespaces/a`.
    pub watch: bool,
}

pub(crate) fn parse(path: &str) -> Route {
    let decoded: Vec<String> = path.split('/').filter(|part| !part.is_empty()).map(percent_decode).collect();
    let parts: Vec<&str> = decoded.iter().map(String::as_str).collect();
    match parts.as_slice() {
        ["version"] => Route::Version,
        ["healthz" | "livez" | "readyz", ..] => Route::Health,
        ["api"] => Route::CoreVersions,
        ["apis"] => Route::Groups,
        ["apis", group] => Route::Group((*group).to_owned()),
        ["api", version] => Route::Resources { group: String::new(), version: (*version).to_owned() },
        ["apis", group, version] => {
            Route::Resources { group: (*group).to_owned(), version: (*version).to_owned() }
        }
        ["openapi", "v2"] => Route::OpenApi2,
        ["openapi", "v3"] => Route::OpenApiIndex,
        ["openapi", "v3", rest @ ..] => Route::OpenApi(rest.join("/")),
        ["api", version, rest @ ..] => target("", version, rest),
        ["apis", group, version, rest @ ..] => target(group, version, rest),
        _ => Route::Unknown,
    }
}

fn target(group: &str, version: &str, rest: &[&str]) -> Route {
    let (watch, rest) = match rest {
        ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
        rest => (false, rest),
    };
    let (namespace, rest) = match rest {
        // A namespace is a cluster-scoped object, and so are its subresources.
        ["namespaces", ..] if rest.len() <= 2 => (None, rest),
        ["namespaces", _, "status" | "finalize"] if group.is_empty() => (None, rest),
        ["namespaces", namespace, inner @ ..] => (Some((*namespace).to_owned()), inner),
        _ => (None, rest),
    };
    let (plural, name, subresource) = match rest {
        [plural] => (plural, None, None),
        [plural, name] => (plural, Some(*name), None),
        [plural, name, subresource] => (plural, Some(*name), Some(*subresource)),
        _ => return Route::Unknown,
    };
    Route::Target(Target {
        group: group.to_owned(),
        version: version.to_owned(),
        plural: (*plural).to_owned(),
        namespace,
        name: name.map(str::to_owned),
        subresource: subresource.map(str::to_owned),
        watch,
    })
}

/// Decodes escapes such as `%20`; an invalid escape is left unchanged.
pub(super) fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while index < bytes.len() {
        let escape = (bytes[index] == b'%').then(|| text.get(index + 1..index + 3)).flatten();
        if let Some(byte) = escape.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            decoded.push(byte);
            index += 3;
        } else {
            decoded.push(bytes[index]);
            index += 1;
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(path: &str) -> String {
        let route = parse(path);
        let Route::Target(target) = &route else {
            return format!("{route:?}");
        };
        format!(
            "{}/{} {} ns={:?} name={:?} sub={:?}{}",
            target.group,
            target.version,
            target.plural,
            target.namespace,
            target.name,
            target.subresource,
            if target.watch { " watch" } else { "" }
        )
    }

    #[test]
    fn paths_name_objects() {
        let cases = [
            ("/api/v1/pods", "/v1 pods ns=None name=None sub=None"),
            ("/api/v1/namespaces", "/v1 namespaces ns=None name=None sub=None"),
            ("/api/v1/namespaces/a", "/v1 namespaces ns=None name=Some(\"a\") sub=None"),
            ("/api/v1/watch/namespaces/a", "/v1 namespaces ns=None name=Some(\"a\") sub=None watch"),
            ("/api/v1/watch/namespaces/a/pods", "/v1 pods ns=Some(\"a\") name=None sub=None watch"),
            ("/api/v1/namespaces/a/status", "/v1 namespaces ns=None name=Some(\"a\") sub=Some(\"status\")"),
            ("/api/v1/namespaces/a/pods", "/v1 pods ns=Some(\"a\") name=None sub=None"),
            (
                "/api/v1/namespaces/a/pods/b/eviction",
                "/v1 pods ns=Some(\"a\") name=Some(\"b\") sub=Some(\"eviction\")",
            ),
            (
                "/apis/x.io/v1/namespaces/a/things/b%2Ec",
                "x.io/v1 things ns=Some(\"a\") name=Some(\"b.c\") sub=None",
            ),
            ("/apis/x.io/v1", "Resources { group: \"x.io\", version: \"v1\" }"),
            ("/nothing", "Unknown"),
        ];
        for (path, expected) in cases {
            assert_eq!(described(path), expected, "{path}");
        }
    }
}
