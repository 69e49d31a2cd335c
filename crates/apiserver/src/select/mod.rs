//! Label and field selectors.

mod field;
mod label;

pub(crate) use field::FieldSelector;
pub use label::LabelSelector;
