//! Removal of everything that looks like a credential, from text and from objects that leave the cluster in a bundle.
//!
//! Too much is better than too little: a name that is removed by mistake costs a question, a token that is not costs a machine.

mod object;
mod text;

pub use object::redact_object;
pub use text::redact_text;

/// The text in place of a credential.
pub const REDACTED: &str = "[REDACTED]";

/// True for a Secret, which never goes into a bundle, whatever is in it.
pub fn is_secret(object: &serde_json::Value) -> bool {
    object["kind"] == "Secret" || object["kind"] == "SecretList"
}
