//! The patch formats of Kubernetes, as pure functions on JSON.

mod merge;
mod strategic;

pub(crate) use merge::merge_patch;
pub(crate) use strategic::strategic_merge_patch;

use serde_json::Value;

/// Why a patch could not be applied.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum PatchError {
    /// The patch is not what its content type says.
    #[error("{0}")]
    Malformed(String),
    /// The patch is well formed, but the object does not fit it.
    #[error("the object does not fit the patch")]
    DoesNotFit,
}

/// RFC 6902: all operations or none.
pub(crate) fn json_patch(target: &Value, patch: &Value) -> Result<Value, PatchError> {
    let patch: json_patch::Patch =
        serde_json::from_value(patch.clone()).map_err(|error| PatchError::Malformed(error.to_string()))?;
    let mut patched = target.clone();
    json_patch::patch(&mut patched, &patch).map_err(|_| PatchError::DoesNotFit)?;
    Ok(patched)
}
