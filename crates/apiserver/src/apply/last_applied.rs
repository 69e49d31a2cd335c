//! The interaction of client-side and server-side `kubectl apply`: fields applied on the client's side belong
//! to kubectl on the server's side too.

use super::compare::compare;
use super::extract::fields_of;
use super::managers::ManagerId;
use super::ownership::{Applied, ConflictingFields, Owner, apply};
use crate::object;
use crate::types::TypeRef;
use serde_json::{Value, json};

/// The annotation in which kubectl stores the object of the last client-side apply.
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The default field manager of kubectl for server-side apply.
const MANAGER: &str = "kubectl";

/// Forces an apply if kubectl conflicts only with its own last client-side apply, and those fields have not
/// changed since.
pub(crate) fn take_over(
    live: &Value,
    config: &Value,
    of: TypeRef<'_>,
    owner: &Owner,
    conflicts: ConflictingFields,
) -> Result<Applied, ConflictingFields> {
    let allowed = own_fields(live, of, &owner.id).unwrap_or_default();
    if conflicts.paths().all(|path| allowed.contains(path)) {
        return apply(live, config, of, owner, true);
    }
    Err(conflicts)
}

fn own_fields(live: &Value, of: TypeRef<'_>, id: &ManagerId) -> Option<Vec<String>> {
    let text = live["metadata"]["annotations"][ANNOTATION].as_str().filter(|_| id.manager == MANAGER)?;
    let last: Value = serde_json::from_str(text).ok()?;
    if last["apiVersion"] != id.api_version.as_str() {
        return None;
    }
    let changed = compare(&last, live, of);
    let same = fields_of(&last, of)
        .difference(&changed.modified)
        .difference(&changed.added)
        .difference(&changed.removed);
    Some(same.paths())
}

/// Updates the annotation, so that the user can continue with either kind of apply.
pub(crate) fn note_last_applied(value: &mut Value, sent: &Value, owner: &Owner) {
    let known = value["metadata"]["annotations"][ANNOTATION].as_str().unwrap_or_default();
    if owner.id.manager != MANAGER || known.is_empty() {
        return;
    }
    let mut last = sent.clone();
    if let Some(annotations) = last["metadata"].get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove(ANNOTATION);
    }
    object::metadata_mut(value)["annotations"][ANNOTATION] = json!(format!("{last}\n"));
}
