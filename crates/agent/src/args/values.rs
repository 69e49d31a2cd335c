//! The values that flags accept. The messages say what is allowed: clap puts flag and value in front of them.

/// The error for a text that cannot be the name of a Node.
#[derive(Debug, thiserror::Error)]
#[error(
    "it must be the name of a Node: 1 to 253 of a-z, 0-9, '-' and '.', with a letter or digit at both ends of each part"
)]
pub struct NodeNameError;

/// A name that a Node can have. It becomes part of a URL, so that nothing else may pass.
pub fn node_name(text: &str) -> Result<String, NodeNameError> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(allowed) && !label.starts_with('-') && !label.ends_with('-')
    };
    let fits = text.len() <= 253 && text.split('.').all(is_label);
    if fits { Ok(text.to_owned()) } else { Err(NodeNameError) }
}
