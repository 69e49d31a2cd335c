//! From the caches, or from live reads, to the world that a decision looks at.

mod lookup;
pub(crate) mod observe;
pub(crate) mod outcome;
pub mod preflight;
pub(crate) mod refresh;
pub(crate) mod render;
pub(crate) mod standing;
