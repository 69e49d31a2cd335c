//! A request that is resolved to a resource and a verb.

use super::{binding, create, delete, eviction, patch, read, update, watch};
use crate::discovery;
use crate::error::ApiError;
use crate::frontend::{Accept, Options, Reply, Route, Target, parse_route};
use crate::kinds::{BuiltinKind, Registry, Resource};
use crate::side_effects;
use crate::state::State;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, header};
use std::sync::Arc;

/// Marks a request that is answered from the state of this many changes ago.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StaleBy(pub u64);

/// A request about objects.
#[derive(Debug)]
pub(crate) struct Call {
    pub resource: Arc<Resource>,
    /// Empty for cluster-scoped kinds and for lists over all namespaces.
    pub namespace: String,
    pub name: Option<String>,
    pub subresource: Option<String>,
    /// The path is a watch.
    pub watch: bool,
    pub options: Options,
    pub accept: Accept,
    pub content_type: String,
    pub user_agent: String,
    pub body: Bytes,
    pub stale_by: u64,
}

impl Call {
    pub(crate) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// The field manager: that of the request, or the name of the client program.
    pub(crate) fn manager(&self) -> String {
        if !self.options.field_manager.is_empty() {
            return self.options.field_manager.clone();
        }
        let program = self.user_agent.split('/').next().unwrap_or_default();
        let printable: String = program.chars().filter(|one| !one.is_control()).take(128).collect();
        if printable.is_empty() { "unknown".to_owned() } else { printable }
    }

    pub(crate) fn is_status(&self) -> bool {
        self.subresource.as_deref() == Some("status")
    }
}

/// Answers a request.
pub(crate) fn handle(state: &mut State, request: &Request<Bytes>) -> Reply {
    answer(state, request).unwrap_or_else(Reply::from)
}

fn answer(state: &mut State, request: &Request<Bytes>) -> Result<Reply, ApiError> {
    let text = |name| header_text(request.headers(), name);
    let accept = Accept::parse(&text(header::ACCEPT));
    let route = parse_route(request.uri().path());
    if let Route::Target(target) = route {
        return objects(state, request, target, accept);
    }
    if route == Route::Unknown {
        return Ok(nowhere());
    }
    if request.method() != Method::GET {
        return Err(ApiError::method_not_allowed());
    }
    discovery::answer(state, &route, &accept)
}

fn objects(
    state: &mut State,
    request: &Request<Bytes>,
    target: Target,
    accept: Accept,
) -> Result<Reply, ApiError> {
    let Some(resource) = resolve(state, &target)? else {
        return Ok(nowhere());
    };
    // A namespaced kind requires a namespace except for lists, and a cluster-scoped kind must not have one.
    if target.namespace.is_some() && !resource.namespaced
        || target.namespace.is_none() && resource.namespaced && target.name.is_some()
    {
        return if resource.custom().is_some() { Ok(nowhere()) } else { Err(ApiError::no_such_resource()) };
    }
    let text = |name| header_text(request.headers(), name);
    let call = Call {
        resource,
        namespace: target.namespace.unwrap_or_default(),
        name: target.name,
        subresource: target.subresource,
        watch: target.watch,
        options: Options::parse(request.uri().query().unwrap_or_default())?,
        accept,
        content_type: text(header::CONTENT_TYPE),
        user_agent: text(header::USER_AGENT),
        body: request.body().clone(),
        stale_by: request.extensions().get::<StaleBy>().copied().unwrap_or_default().0,
    };
    call.accept.check().map_err(|mut error| {
        if call.resource.custom().is_some() {
            error.details = serde_json::Value::Null;
        }
        error
    })?;
    let reply = dispatch(state, request.method(), &call)?;
    side_effects::apply_all(state);
    Ok(reply)
}

/// The response to a path without a handler.
fn nowhere() -> Reply {
    Reply::text(StatusCode::NOT_FOUND, "404 page not found\n")
}

/// The resource of a path; `None` if it is not served. Parts of Kubernetes that this server does not support
/// give an error that says so.
fn resolve(state: &State, target: &Target) -> Result<Option<Arc<Resource>>, ApiError> {
    if let Some(resource) = state.kinds.find(&target.group, &target.version, &target.plural) {
        return Ok(Some(resource));
    }
    if Registry::is_kubernetes_group(&target.group) {
        let name = crate::kinds::StoreId::new(&target.group, &target.plural);
        return Err(ApiError::not_implemented(format!("{} ({})", name.as_str(), target.version)));
    }
    Ok(None)
}

fn dispatch(state: &mut State, method: &Method, call: &Call) -> Result<Reply, ApiError> {
    match call.subresource.as_deref() {
        None => {}
        Some("status") if call.resource.has_status => {
            return match *method {
                Method::GET => read::get(state, call),
                Method::PUT => update::update(state, call),
                Method::PATCH => patch::patch(state, call),
                _ => Err(ApiError::method_not_allowed()),
            };
        }
        Some(subresource @ ("binding" | "eviction")) if call.resource.is(BuiltinKind::Pod) => {
            return match (method, subresource) {
                (&Method::POST, "binding") => binding::bind(state, call),
                (&Method::POST, _) => eviction::evict(state, call),
                _ => Err(ApiError::method_not_allowed()),
            };
        }
        Some("finalize") if call.resource.is(BuiltinKind::Namespace) && *method == Method::PUT => {
            return update::finalize_namespace(state, call);
        }
        Some(subresource) => return Err(unknown_subresource(call, subresource)),
    }
    match (method, call.name.is_some()) {
        (&Method::GET, _) if call.watch => watch::watch(state, call),
        (_, _) if call.watch => Err(ApiError::method_not_allowed()),
        // The server ignores `watch` for a named object.
        (&Method::GET, true) => read::get(state, call),
        (&Method::GET, false) if call.options.watch => watch::watch(state, call),
        (&Method::GET, false) => read::list(state, call),
        (&Method::POST, false) if call.resource.namespaced && call.namespace.is_empty() => {
            Err(ApiError::method_not_allowed())
        }
        (&Method::POST, false) => create::create(state, call),
        // The handler of custom resources is less strict about paths than that of the built-in kinds.
        (&Method::POST, true) if call.resource.custom().is_some() => create::create(state, call),
        (&Method::PUT, false) if call.resource.custom().is_some() => {
            Err(ApiError::bad_request("name must be provided"))
        }
        (&Method::PUT, true) => update::update(state, call),
        (&Method::PATCH, true) => patch::patch(state, call),
        (&Method::DELETE, true) => delete::delete(state, call),
        (&Method::DELETE, false) => delete::delete_collection(state, call),
        _ => Err(ApiError::method_not_allowed()),
    }
}

/// Kubernetes has subresources that this server does not support; custom resources have only those of their
/// CRD.
fn unknown_subresource(call: &Call, subresource: &str) -> ApiError {
    const KNOWN: [&str; 8] =
        ["status", "log", "exec", "attach", "portforward", "scale", "token", "ephemeralcontainers"];
    if subresource != "status" && KNOWN.contains(&subresource) {
        ApiError::not_implemented(format!("{}/{subresource}", call.resource.store.as_str()))
    } else if call.resource.custom().is_some() {
        ApiError::not_found(call.resource.subject(call.name()))
    } else {
        ApiError::no_such_resource()
    }
}

fn header_text(headers: &HeaderMap, name: header::HeaderName) -> String {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}
