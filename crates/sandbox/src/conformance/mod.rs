//! The suite that keeps this API honest: requests as data, sent to it and to a real kube-apiserver.
//!
//! Cases are YAML files by area. What a real server answered is recorded beside them; the embedded API is compared
//! with the recording wherever the tests run, and the real server is compared with it wherever there is one. Answers
//! are compared after UIDs, times and versions are made comparable (the module `normal`). A difference is
//! a failure, unless it is a named one with its reason. [`walk`] adds operations that nobody thought of.

mod case;
mod compare;
mod differences;
mod normal;
mod recording;
mod run;
mod walk;

pub use case::{Case, CaseError, Suite};
pub use compare::{Mismatch, compare};
pub use differences::{Difference, Differences};
pub use recording::Recording;
pub use run::{Answers, RunError, Runner};
pub use walk::walk;
