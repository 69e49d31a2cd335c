//! The conformance suite of the in-memory API server: requests as data, sent to it and to a real kube-apiserver.
//!
//! Cases are YAML files by area, and the responses of a real server are recorded next to them. `cargo test`
//! compares the in-memory API server with the recording; the end-to-end tests compare a real server with it.
//! Before the comparison, UIDs, times and versions are normalised (module `normal`). Every difference is a
//! failure, unless it is listed in `differences.yaml` with a reason. [`walk`] adds random operations.

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
pub use run::{Answers, CaseRunError, Runner};
pub use walk::walk;
