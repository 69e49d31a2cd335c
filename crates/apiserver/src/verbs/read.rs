//! GET of one object and of a list.

use super::convert::to_served;
use super::{Call, Served};
use crate::error::ApiError;
use crate::frontend::{Answer, Reply, Representation, represent};
use crate::select::{FieldSelector, LabelSelector};
use crate::state::State;
use crate::store::Key;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) fn get(state: &State, call: &Call) -> Result<Reply, ApiError> {
    check_version_is_known(state, call)?;
    let stored =
        find_at(state, call).ok_or_else(|| ApiError::not_found(call.resource.subject(call.name())))?;
    let served = to_served(&call.resource, &stored).into_owned();
    Ok(Reply::ok(represent(served, &call.resource, &call.accept, &call.options, state.clock.now())))
}

/// The current object, or an earlier state if the request is marked as stale.
fn find_at(state: &State, call: &Call) -> Option<Arc<Value>> {
    if call.stale_by == 0 {
        return state.find(&call.resource, &call.namespace, call.name()).cloned();
    }
    let past = stale_revision(state, call);
    let objects = state.store.list_at(&call.resource.store, Some(&call.namespace), past, None).ok()?;
    objects.into_iter().find(|object| crate::object::name(object) == call.name())
}

/// A lagging server still never answers from a state before the requested resource version.
fn stale_revision(state: &State, call: &Call) -> u64 {
    let requested = call.options.resource_version.parse().unwrap_or(0);
    state.store.revision().saturating_sub(call.stale_by).max(requested)
}

/// A list, written item by item from the store.
#[derive(Serialize)]
struct List {
    kind: String,
    #[serde(rename = "apiVersion")]
    api_version: String,
    metadata: Value,
    items: Vec<Served>,
}

pub(super) fn list(state: &State, call: &Call) -> Result<Reply, ApiError> {
    let selection = Selection::of(call)?;
    let page = select_page(state, call, &selection)?;
    let items: Vec<Served> = page.items.iter().map(|item| Served::item(&call.resource, item)).collect();
    let list = List {
        kind: call.resource.list_kind.clone(),
        api_version: call.resource.api_version(),
        metadata: page.metadata,
        items,
    };
    let failed = |error: serde_json::Error| ApiError::internal(error.to_string());
    if call.accept.representation == Representation::Whole {
        let bytes = serde_json::to_vec(&list).map_err(failed)?;
        let mut reply = Reply::ok(Value::Null);
        reply.answer = Answer::Bytes(bytes.into());
        return Ok(reply);
    }
    let value = serde_json::to_value(&list).map_err(failed)?;
    Ok(Reply::ok(represent(value, &call.resource, &call.accept, &call.options, state.clock.now())))
}

/// The objects that a request selects.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    labels: LabelSelector,
    fields: FieldSelector,
    namespace: Option<String>,
    name: Option<String>,
}

impl Selection {
    pub(super) fn of(call: &Call) -> Result<Self, ApiError> {
        let labels = LabelSelector::parse(&call.options.label_selector).map_err(ApiError::bad_request)?;
        let fields = FieldSelector::parse(&call.options.field_selector, &call.resource)
            .map_err(ApiError::bad_request)?;
        let namespace = (!call.namespace.is_empty()).then(|| call.namespace.clone());
        Ok(Self { labels, fields, namespace, name: call.name.clone() })
    }

    pub(super) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Returns true if an object, as it is served, is selected.
    pub(super) fn matches(&self, served: &Value) -> bool {
        self.namespace.as_deref().is_none_or(|namespace| crate::object::namespace(served) == namespace)
            && self.name.as_deref().is_none_or(|name| crate::object::name(served) == name)
            && self.labels.matches(served)
            && self.fields.matches(served)
    }
}

struct Page {
    items: Vec<Arc<Value>>,
    metadata: Value,
}

fn select_page(state: &State, call: &Call, selection: &Selection) -> Result<Page, ApiError> {
    let (revision, start) = snapshot(state, call)?;
    let (store, namespace) = (&call.resource.store, selection.namespace());
    let mut items =
        state.store.list_at(store, namespace, revision, start.as_ref()).map_err(|_| expired_token())?;
    // Only as many objects are read as the page needs, because there may be a hundred thousand.
    if !selection.is_everything() || selection.name.is_some() {
        let enough = call.options.limit.map_or(usize::MAX, |limit| limit.saturating_add(1));
        let selected = items.into_iter().filter(|item| selection.matches(&to_served(&call.resource, item)));
        items = selected.take(enough).collect();
    }
    let mut metadata = json!({"resourceVersion": revision.to_string()});
    if call.resource.custom().is_some() && call.accept.representation == Representation::Whole {
        metadata["continue"] = "".into();
    }
    if let Some(limit) = call.options.limit
        && items.len() > limit
    {
        let remaining = items.len() - limit;
        items.truncate(limit);
        let last = items.last().map(|item| Key::of(item).to_string()).unwrap_or_default();
        metadata["continue"] = encode_token(revision, &last).into();
        if selection.is_everything() {
            metadata["remainingItemCount"] = remaining.into();
        }
    }
    Ok(Page { items, metadata })
}

/// The revision to read at, and the key after which a continued list resumes.
fn snapshot(state: &State, call: &Call) -> Result<(u64, Option<Key>), ApiError> {
    if !call.options.continue_token.is_empty() {
        if !matches!(call.options.resource_version.as_str(), "" | "0") {
            return Err(ApiError::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        let (revision, start) = decode_token(&call.options.continue_token)
            .ok_or_else(|| ApiError::bad_request("continue key is not valid"))?;
        return Ok((revision, Some(start)));
    }
    check_version_is_known(state, call)?;
    check_version_match(call)?;
    if call.options.resource_version_match == "Exact" {
        return Ok((call.options.resource_version.parse().unwrap_or_default(), None));
    }
    Ok((stale_revision(state, call), None))
}

fn check_version_match(call: &Call) -> Result<(), ApiError> {
    let Some(problem) =
        (match (call.options.resource_version_match.as_str(), call.options.resource_version.as_str()) {
            ("", _) => None,
            (_, "") => Some((
                "resourceVersionMatch",
                "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
            )),
            ("Exact", "0") => Some((
                "resourceVersionMatch",
                "Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
            )),
            ("Exact" | "NotOlderThan", _) => None,
            _ => Some(("resourceVersionMatch", "Unsupported value")),
        })
    else {
        return Ok(());
    };
    let fault = crate::error::Fault {
        field: problem.0.to_owned(),
        reason: "FieldValueForbidden",
        message: problem.1.to_owned(),
    };
    let subject = crate::error::Subject { group: "meta.k8s.io", kind: "ListOptions", name: "" };
    Err(ApiError::invalid(subject, &[fault]))
}

/// Refuses a resource version that is newer than the latest one.
pub(super) fn check_version_is_known(state: &State, call: &Call) -> Result<(), ApiError> {
    let text = call.options.resource_version.as_str();
    if text.is_empty() || text == "0" {
        return Ok(());
    }
    let wanted: u64 = text
        .parse()
        .map_err(|_| ApiError::bad_request(format!("Invalid value: {text:?}: is no resource version")))?;
    if wanted <= state.store.revision() {
        return Ok(());
    }
    let message =
        format!("Timeout: Too large resource version: {wanted}, current: {}", state.store.revision());
    let mut error = ApiError::new(http::StatusCode::GATEWAY_TIMEOUT, "Timeout", message);
    error.details = json!({
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    });
    Err(error)
}

fn encode_token(revision: u64, start: &str) -> String {
    URL_SAFE_NO_PAD.encode(json!({"v": "meta.k8s.io/v1", "rv": revision, "start": start}).to_string())
}

fn decode_token(token: &str) -> Option<(u64, Key)> {
    let value: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
    Some((value["rv"].as_u64()?, Key::parse(value["start"].as_str()?)?))
}

fn expired_token() -> ApiError {
    ApiError::expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list \
         without the continue parameter.",
    )
}
