//! Says when the controller becomes ready and when it ceases to be: in the log, and where it runs as a pod in an event on
//! that. A kubelet reports that a probe has failed, and not why.

use crate::health::Health;
use five_spot_api::event::EventType;
use five_spot_cluster::{Announcement, OwnPod, announce};
use kube::Client;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_blocking;
use tracing::{debug, info, warn};

/// How often it looks. No request is made for it.
const LOOK: Duration = Duration::from_secs(1);

/// How long obstacles have to last before they are spoken of: at a start and when a watch is opened again there are some
/// for a moment.
const PATIENCE: u32 = 5;

/// The pod that this process runs in, as its surroundings tell.
pub(super) fn own_pod() -> Option<OwnPod> {
    let variable = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
    Some(OwnPod {
        namespace: variable("POD_NAMESPACE")?,
        name: variable("POD_NAME")?,
        uid: variable("POD_UID"),
    })
}

/// Watches over the readiness for as long as it is polled.
pub(super) async fn proclaim(health: Arc<Health>, client: Client, pod: Option<OwnPod>) {
    let mut herald = Herald::default();
    loop {
        tokio::time::sleep(LOOK).await;
        let asked = health.clone();
        let Ok(obstacles) = spawn_blocking(move || asked.obstacles()).await else { return };
        let Some(news) = herald.hear(&obstacles) else { continue };
        match news.kind {
            EventType::Normal => info!("{}", news.note),
            EventType::Warning => warn!(reasons = news.note, "Not ready"),
        }
        if let Some(pod) = &pod
            && let Err(error) = announce(&client, pod, &news).await
        {
            debug!(%error, reason = news.reason, "event could not be published");
        }
    }
}

/// What has been proclaimed, and for how long something else has been so.
#[derive(Debug, Default)]
struct Herald {
    /// Nothing at first: neither has been proclaimed.
    proclaimed: Option<BTreeSet<String>>,
    others: u32,
}

impl Herald {
    /// The news, if it is time for some.
    fn hear(&mut self, obstacles: &[String]) -> Option<Announcement> {
        let now: BTreeSet<String> = obstacles.iter().map(|text| without_numbers(text)).collect();
        if self.proclaimed.as_ref() == Some(&now) {
            self.others = 0;
            return None;
        }
        self.others += 1;
        if !now.is_empty() && self.others < PATIENCE {
            return None;
        }
        let was_away = self.proclaimed.as_ref().is_some_and(|before| !before.is_empty());
        self.others = 0;
        self.proclaimed = Some(now);
        Some(if obstacles.is_empty() {
            let note = if was_away { "Ready again" } else { "Ready" };
            Announcement { reason: "Ready", kind: EventType::Normal, note: note.to_owned() }
        } else {
            Announcement { reason: "NotReady", kind: EventType::Warning, note: obstacles.join("; ") }
        })
    }
}

/// What is the same obstacle although it has lasted longer.
fn without_numbers(text: &str) -> String {
    text.chars().filter(|character| !character.is_ascii_digit()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(herald: &mut Herald, obstacles: &[&str]) -> Option<(&'static str, String)> {
        let obstacles: Vec<String> = obstacles.iter().map(ToString::to_string).collect();
        herald.hear(&obstacles).map(|news| (news.reason, news.note))
    }

    #[test]
    fn what_passes_in_a_moment_is_not_spoken_of() {
        let mut herald = Herald::default();
        assert_eq!(heard(&mut herald, &["not begun"]), None);
        assert_eq!(heard(&mut herald, &[]), Some(("Ready", "Ready".to_owned())));
        assert_eq!(heard(&mut herald, &["away"]), None);
        assert_eq!(heard(&mut herald, &[]), None);
    }

    #[test]
    fn what_lasts_is_said_once_and_so_is_its_end() {
        let mut herald = Herald::default();
        let said: Vec<_> =
            (0..20).filter_map(|second| heard(&mut herald, &["b", &format!("a for {second} s")])).collect();
        assert_eq!(said, [("NotReady", "b; a for 4 s".to_owned())]);
        let more: Vec<_> = (0..20).filter_map(|_| heard(&mut herald, &["b"])).collect();
        assert_eq!(more, [("NotReady", "b".to_owned())]);
        assert_eq!(heard(&mut herald, &[]), Some(("Ready", "Ready again".to_owned())));
    }
}
