//! Discovery: groups, resources, versions, schemas.

mod aggregated;
mod openapi;
mod resources;

use crate::error::ApiError;
use crate::frontend::{Accept, Reply, Route};
use crate::state::State;
use http::StatusCode;
use serde_json::{Value, json};

/// The Kubernetes version that this server was compared with.
pub(crate) const KUBERNETES_VERSION: &str = "v1.36.4";

/// Answers requests that are not about objects.
pub(crate) fn answer(state: &State, route: &Route, accept: &Accept) -> Result<Reply, ApiError> {
    match route {
        Route::Version => Ok(Reply::ok(version())),
        Route::Health => Ok(Reply::text(StatusCode::OK, "ok")),
        Route::CoreVersions | Route::Groups if accept.aggregated_discovery.is_some() => {
            Ok(aggregated::document(state, route, accept.aggregated_discovery.unwrap_or_default()))
        }
        Route::CoreVersions => Ok(Reply::ok(json!({
            "kind": "APIVersions", "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:443"}],
        }))),
        Route::Groups => Ok(Reply::ok(resources::groups(state))),
        Route::Group(group) => Ok(found(resources::group(state, group))),
        Route::Resources { group, version } => Ok(found(resources::resources(state, group, version))),
        Route::OpenApi2 if accept.openapi_protobuf => Ok(Reply::bytes(
            openapi::version_2(),
            "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
        )),
        Route::OpenApi2 => Err(ApiError::not_implemented("OpenAPI v2 as JSON")),
        Route::OpenApiIndex => Ok(Reply::ok(openapi::index(state))),
        Route::OpenApi(path) => openapi::document(state, path).map(Reply::ok),
        Route::Target(_) | Route::Unknown => Err(ApiError::no_such_resource()),
    }
}

/// Groups and versions that are not served give 404.
fn found(document: Option<Value>) -> Reply {
    document.map_or_else(|| Reply::text(StatusCode::NOT_FOUND, "404 page not found\n"), Reply::ok)
}

fn version() -> Value {
    json!({
        "major": "1", "minor": "36", "gitVersion": KUBERNETES_VERSION, "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "none", "compiler": "rustc", "platform": "5spot/sandbox",
    })
}
