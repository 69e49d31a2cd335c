//! Nodes.

use super::live::{Condition, Live};
use super::walk::Walk;
use super::words;

/// The health of a Node according to its condition.
#[derive(Clone, Copy, Debug)]
pub(super) enum Health<'f> {
    Ready,
    /// The kubelet reports that it is not ready, or has stopped reporting.
    NotReady(Condition<'f>),
    /// There is no condition: no kubelet has ever reported.
    NeverReported,
}

/// The health of a Node.
pub(super) fn health(node: Live<'_>) -> Health<'_> {
    match node.condition("Ready") {
        None => Health::NeverReported,
        Some(ready) if ready.status == "True" => Health::Ready,
        Some(ready) => Health::NotReady(ready),
    }
}

/// Adds the readiness of a Node to its step.
pub(super) fn readiness<'f>(walk: &mut Walk<'f>, node: Live<'f>, step: usize) {
    walk.note(step, in_words(walk, node));
}

/// The readiness of a Node as evidence.
pub(super) fn in_words(walk: &Walk<'_>, node: Live<'_>) -> String {
    match health(node) {
        Health::Ready => "Ready".to_owned(),
        Health::NeverReported => "it has no condition Ready: no kubelet has ever reported for it".to_owned(),
        Health::NotReady(ready) => {
            let since =
                ready.since.map(|at| format!(" since {}", words::ago(at, walk.now))).unwrap_or_default();
            format!("{}{since}", words::condition(&ready))
        }
    }
}
