//! Readiness events: a log line when the controller becomes ready and when it stops to be, and an event on its pod if it
//! runs in one. A kubelet reports that a probe has failed, but not why.

use crate::health::Health;
use crate::metrics::Metrics;
use five_spot_api::event::EventType;
use five_spot_cluster::execute::{OwnPod, ProgramEvent, announce};
use kube::Client;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_blocking;
use tracing::{debug, info, warn};

/// The time between two checks. They need no request.
const LOOK: Duration = Duration::from_secs(1);

/// The checks in a row after which an obstacle is reported: at the start, and when a watch is opened again, there are some
/// for a moment.
const CHECKS: u32 = 5;

/// The pod that this process runs in, by its environment variables.
pub(super) fn own_pod() -> Option<OwnPod> {
    let variable = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
    Some(OwnPod {
        namespace: variable("POD_NAMESPACE")?,
        name: variable("POD_NAME")?,
        uid: variable("POD_UID"),
    })
}

/// Reports changes of the readiness for as long as it is polled.
pub(super) async fn report(health: Arc<Health>, metrics: Arc<Metrics>, client: Client, pod: Option<OwnPod>) {
    let mut readiness = Readiness::default();
    loop {
        tokio::time::sleep(LOOK).await;
        let checked = health.clone();
        let Ok(obstacles) = spawn_blocking(move || checked.obstacles()).await else { return };
        let Some(event) = readiness.check(&obstacles) else { continue };
        match event.kind {
            EventType::Normal => {
                metrics.note_ready();
                info!("{}", event.note);
            }
            EventType::Warning => warn!(reasons = event.note, "Not ready"),
        }
        if let Some(pod) = &pod
            && let Err(error) = announce(&client, pod, &event).await
        {
            debug!(%error, reason = event.reason, "event could not be published");
        }
    }
}

/// The obstacles as they were last reported.
#[derive(Debug, Default)]
struct Readiness {
    /// Absent until the first report.
    reported: Option<BTreeSet<String>>,
    /// The checks in a row that have found other obstacles than the reported ones.
    changed_checks: u32,
}

impl Readiness {
    /// The event to publish, if the readiness has changed.
    fn check(&mut self, obstacles: &[String]) -> Option<ProgramEvent> {
        let now: BTreeSet<String> = obstacles.iter().map(|text| without_numbers(text)).collect();
        if self.reported.as_ref() == Some(&now) {
            self.changed_checks = 0;
            return None;
        }
        self.changed_checks += 1;
        if !now.is_empty() && self.changed_checks < CHECKS {
            return None;
        }
        let was_away = self.reported.as_ref().is_some_and(|before| !before.is_empty());
        self.changed_checks = 0;
        self.reported = Some(now);
        Some(if obstacles.is_empty() {
            let note = if was_away { "Ready again" } else { "Ready" };
            ProgramEvent { reason: "Ready", kind: EventType::Normal, note: note.to_owned() }
        } else {
            ProgramEvent { reason: "NotReady", kind: EventType::Warning, note: obstacles.join("; ") }
        })
    }
}

/// The text of an obstacle without its durations, which change at every check.
fn without_numbers(text: &str) -> String {
    text.chars().filter(|character| !character.is_ascii_digit()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(readiness: &mut Readiness, obstacles: &[&str]) -> Option<(&'static str, String)> {
        let obstacles: Vec<String> = obstacles.iter().map(ToString::to_string).collect();
        readiness.check(&obstacles).map(|event| (event.reason, event.note))
    }

    #[test]
    fn a_brief_obstacle_is_not_reported() {
        let mut readiness = Readiness::default();
        assert_eq!(checked(&mut readiness, &["not begun"]), None);
        assert_eq!(checked(&mut readiness, &[]), Some(("Ready", "Ready".to_owned())));
        assert_eq!(checked(&mut readiness, &["away"]), None);
        assert_eq!(checked(&mut readiness, &[]), None);
    }

    #[test]
    fn a_lasting_obstacle_and_its_end_are_reported_once() {
        let mut readiness = Readiness::default();
        let said: Vec<_> = (0..20)
            .filter_map(|second| checked(&mut readiness, &["b", &format!("a for {second} s")]))
            .collect();
        assert_eq!(said, [("NotReady", "b; a for 4 s".to_owned())]);
        let more: Vec<_> = (0..20).filter_map(|_| checked(&mut readiness, &["b"])).collect();
        assert_eq!(more, [("NotReady", "b".to_owned())]);
        assert_eq!(checked(&mut readiness, &[]), Some(("Ready", "Ready again".to_owned())));
    }
}
