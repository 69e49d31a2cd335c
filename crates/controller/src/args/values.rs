//! The parsers of values. Their messages say what is allowed: clap puts flag and value in front of them.

/// A number that is refused.
#[derive(Debug, thiserror::Error)]
#[error("it must be a whole number from {low} to {high}")]
pub struct NumberError {
    low: u32,
    high: u32,
}

/// A namespace name that is refused.
#[derive(Debug, thiserror::Error)]
#[error(
    "it must be the name of a namespace: 1 to 63 of a-z, 0-9 and '-', with a letter or digit at both ends"
)]
pub struct NamespaceError;

/// A number within bounds.
pub fn whole_number<const LOW: u32, const HIGH: u32>(text: &str) -> Result<u32, NumberError> {
    let number = text.parse().ok().filter(|number| (LOW..=HIGH).contains(number));
    number.ok_or(NumberError { low: LOW, high: HIGH })
}

/// A port that is refused.
#[derive(Debug, thiserror::Error)]
#[error("it must be a whole number from 0 to 65535")]
pub struct NotAPort;

/// A port; 0 is any that is free.
pub fn port(text: &str) -> Result<u16, NotAPort> {
    text.parse().map_err(|_| NotAPort)
}

/// An object name that is refused.
#[derive(Debug, thiserror::Error)]
#[error(
    "it must be the name of an object: 1 to 253 of a-z, 0-9, '-' and '.', with a letter or digit at both ends"
)]
pub struct ObjectNameError;

/// A name that an object can have.
pub fn object_name(text: &str) -> Result<String, ObjectNameError> {
    let fits = text.len() <= 253 && text.split('.').all(|part| namespace(part).is_ok());
    if fits { Ok(text.to_owned()) } else { Err(ObjectNameError) }
}

/// A name that a namespace can have.
pub fn namespace(text: &str) -> Result<String, NamespaceError> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let at_ends = !text.starts_with('-') && !text.ends_with('-');
    let fits = (1..=63).contains(&text.len()) && text.bytes().all(allowed) && at_ends;
    if fits { Ok(text.to_owned()) } else { Err(NamespaceError) }
}
