//! The patch formats of Kubernetes, as pure functions on JSON.

mod merge;
mod strategic;

pub(crate) use merge::merge_patch;
pub(crate) use strategic::strategic_merge_patch;

use json_patch::PatchOperation;
use serde_json::Value;

/// The reason why a patch could not be applied.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum PatchError {
    /// The patch does not match its content type.
    #[error("{0}")]
    Malformed(String),
    /// The patch is well-formed, but does not fit the object.
    #[error("the object does not fit the patch")]
    DoesNotFit,
}

/// JSON patch (RFC 6902): all operations or none. As in a real API server, and beyond the RFC, a `test` for
/// null passes if the value is absent.
pub(crate) fn json_patch(target: &Value, patch: &Value) -> Result<Value, PatchError> {
    let patch: json_patch::Patch =
        serde_json::from_value(patch.clone()).map_err(|error| PatchError::Malformed(error.to_string()))?;
    let mut patched = target.clone();
    for operation in patch.0 {
        if let PatchOperation::Test(test) = &operation
            && test.value.is_null()
            && patched.pointer(test.path.as_str()).is_none()
        {
            continue;
        }
        json_patch::patch(&mut patched, &[operation]).map_err(|_| PatchError::DoesNotFit)?;
    }
    Ok(patched)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_test_for_null_passes_where_nothing_is() {
        let absent = json!([
            {"op": "test", "path": "/metadata/annotations", "value": null},
            {"op": "add", "path": "/metadata/annotations", "value": {"a": "b"}},
        ]);
        let patched = json!({"metadata": {"annotations": {"a": "b"}}});
        assert_eq!(json_patch(&json!({"metadata": {}}), &absent), Ok(patched.clone()));
        assert_eq!(json_patch(&patched, &absent), Err(PatchError::DoesNotFit));
        let present = json!([{"op": "test", "path": "/metadata/name", "value": "a"}]);
        assert_eq!(json_patch(&json!({"metadata": {}}), &present), Err(PatchError::DoesNotFit));
    }
}
