//! The result of a drain pass, and its text in the condition.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The number of pods of each group in the message.
const NAMED: usize = 3;

/// The pods that block a drain, by namespace and name. If there are none, the Node is drained.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Report {
    /// Pods that have been evicted and still exist.
    pub(super) going: Vec<String>,
    /// Pods that could not be evicted, by reason.
    pub(super) refused: BTreeMap<String, Vec<String>>,
    /// Pods that must finish on their own.
    pub(super) awaited: Vec<String>,
    /// Pods of a higher order.
    pub(super) evicted_later: Vec<String>,
    pub(super) awaited_later: Vec<String>,
}

impl Report {
    pub(in super::super) fn is_drained(&self) -> bool {
        *self == Self::default()
    }

    /// The message in Cluster API's wording. `since` is the start of the drain.
    pub(in super::super) fn message(&self, since: &str) -> String {
        let mut text = format!("Drain not completed yet (started at {since}):");
        let mut bullet = |pods: &[String], what: &str| {
            let kind = if pods.len() == 1 { "Pod" } else { "Pods" };
            if !pods.is_empty() {
                // Writing into a `String` cannot fail.
                let _ = write!(text, "\n* {kind} {}: {what}", names(pods));
            }
        };
        bullet(&self.going, "deletionTimestamp set, but still not removed from the Node");
        for (why, pods) in &self.refused {
            bullet(pods, &reason(why));
        }
        bullet(&self.awaited, "waiting for completion");
        for (pods, what) in [
            (&self.evicted_later, "the following Pods will be evicted"),
            (&self.awaited_later, "waiting for the following Pods to complete without eviction"),
        ] {
            if !pods.is_empty() {
                let after = "After above Pods have been removed from the Node,";
                let _ = write!(text, "\n{after} {what}: {}", names(pods));
            }
        }
        text
    }
}

fn reason(why: &str) -> String {
    match why.strip_prefix("Cannot evict pod") {
        Some(rest) => format!("cannot evict pod{rest}"),
        None => format!("failed to evict Pod, {why}"),
    }
}

fn names(pods: &[String]) -> String {
    let mut named: Vec<String> = pods.iter().take(NAMED).cloned().collect();
    if pods.len() > NAMED {
        named.push(format!("... ({} more)", pods.len() - NAMED));
    }
    named.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_reads_like_cluster_apis_own() {
        assert!(Report::default().is_drained());
        let pods = |names: &[&str]| names.iter().map(|name| format!("default/{name}")).collect::<Vec<_>>();
        let budget = "Cannot evict pod as it would violate the pod's disruption budget. The disruption budget web \
                      needs 1 healthy pods and has 1 currently";
        let report = Report {
            going: pods(&["a", "b", "c", "d"]),
            refused: BTreeMap::from([
                (budget.to_owned(), pods(&["web"])),
                ("connection reset".to_owned(), pods(&["x", "y"])),
            ]),
            awaited: pods(&["job"]),
            evicted_later: pods(&["db"]),
            awaited_later: pods(&["backup"]),
        };
        let expected = "Drain not completed yet (started at 2026-03-02T08:00:00Z):\n\
            * Pods default/a, default/b, default/c, ... (1 more): deletionTimestamp set, but still not removed from \
            the Node\n\
            * Pod default/web: cannot evict pod as it would violate the pod's disruption budget. The disruption budget \
            web needs 1 healthy pods and has 1 currently\n\
            * Pods default/x, default/y: failed to evict Pod, connection reset\n\
            * Pod default/job: waiting for completion\n\
            After above Pods have been removed from the Node, the following Pods will be evicted: default/db\n\
            After above Pods have been removed from the Node, waiting for the following Pods to complete without \
            eviction: default/backup";
        assert_eq!(report.message("2026-03-02T08:00:00Z"), expected);
    }
}
