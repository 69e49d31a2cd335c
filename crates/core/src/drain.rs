//! Draining a node: the next pods to remove, the pods that block the drain, and its completion.
//!
//! A graceful drain evicts pods and so respects disruption budgets. An emergency deletes them. Both skip pods that cannot be
//! removed, and pods that would return or have returned to the node.

use crate::action::Action;
use crate::backoff;
use crate::text;
use crate::world::{EvictionAttempt, PodDrain, PodView, Readiness};
use five_spot_api::{BlockedPod, DrainStatus};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// The delay between two attempts to evict a pod. A disruption budget often allows an eviction within seconds, when a
/// replacement has become ready.
pub const EVICTION_RETRY: SignedDuration = SignedDuration::from_secs(5);

/// The maximum number of blocked pods in the status.
pub(crate) const MAX_BLOCKED: usize = 20;

/// The progress of a drain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DrainProgress {
    /// The actions to carry out now.
    pub actions: Vec<Action>,
    /// The number of pods that still have to leave.
    pub remaining: usize,
    /// The pods that block the drain, with the reason, sorted.
    pub blocked: Vec<BlockedPod>,
    /// The next time at which the plan changes even if nothing else does.
    pub next_look: Option<Timestamp>,
}

impl DrainProgress {
    /// Returns true if no pod is left that has to leave.
    pub const fn done(&self) -> bool {
        self.remaining == 0
    }

    fn look_at(&mut self, time: Timestamp) {
        self.next_look = Some(self.next_look.map_or(time, |earlier| earlier.min(time)));
    }

    fn block(&mut self, pod: &PodView, reason: &str) {
        let reason = text::bounded(reason, text::MAX_FIELD).into_owned();
        self.blocked.push(BlockedPod { pod: pod.id.to_string(), reason });
    }
}

/// The timing of eviction attempts.
#[derive(Clone, Copy, Debug)]
pub struct DrainPace {
    /// The start of the drain.
    pub began: Timestamp,
    /// The deadline. After it, attempts follow the error backoff.
    pub deadline: Timestamp,
    /// The end of the backoff of the object after a failure. Failed attempts are not repeated before.
    pub retry_at: Option<Timestamp>,
}

/// Plans a graceful drain.
pub fn evict(pods: &[PodView], readiness: Readiness, pace: DrainPace, now: Timestamp) -> DrainProgress {
    let leaving = leaving(pods, readiness, pace.began, now);
    let turn = leaving.iter().filter_map(|pod| eviction_order(pod)).min();
    let mut progress = DrainProgress { remaining: leaving.len(), ..DrainProgress::default() };
    // While a pause keeps the drain from beginning, its start moves with the clock and passes the creation of a pod that a
    // server with a faster clock has made.
    for made in pods.iter().filter_map(|pod| pod.comes_back).filter(|made| *made > now) {
        progress.look_at(made);
    }
    for pod in leaving {
        if let Some(termination) = pod.terminating {
            if termination.until <= now {
                progress.block(pod, "still terminating after its grace period");
                continue;
            }
            if pace.deadline <= now {
                let until = termination.until;
                progress.block(pod, &format!("terminating; its grace period ends at {until}"));
            }
            progress.look_at(termination.until);
        } else if eviction_order(pod).is_none() {
            progress.block(pod, "waiting for the pod to complete");
        } else if eviction_order(pod) == turn {
            attempt(pod, pace, now, &mut progress);
        }
    }
    progress.blocked.sort();
    progress.blocked.truncate(MAX_BLOCKED);
    progress
}

/// Returns the pods that still have to leave the node.
pub(crate) fn leaving(
    pods: &[PodView],
    readiness: Readiness,
    began: Timestamp,
    now: Timestamp,
) -> Vec<&PodView> {
    pods.iter().filter(|pod| must_leave(pod, began) && !given_up(pod, readiness, now)).collect()
}

/// Plans the eviction of a pod whose turn it is, or the wait until its next attempt is due.
fn attempt(pod: &PodView, pace: DrainPace, now: Timestamp, progress: &mut DrainProgress) {
    let last = pod.eviction.as_ref();
    if let Some(refusal) = last.and_then(|attempt| attempt.refusal.as_deref()) {
        progress.block(pod, refusal);
    }
    let due = last.map_or(now, |last| due(last, pace, now));
    if due <= now {
        progress.actions.push(Action::Evict { pod: pod.id.clone() });
    } else {
        progress.look_at(due);
    }
    // The attempt was made before the clock was set back. When its time comes again, it counts.
    if let Some(last) = last.filter(|last| last.at > now) {
        progress.look_at(last.at);
    }
}

/// Plans an emergency drain: every pod that can be removed is deleted at once. A pod that is terminating with a longer grace
/// period is deleted again with the shorter one.
pub fn delete(pods: &[PodView], began: Timestamp, grace: SignedDuration) -> DrainProgress {
    let leaving: Vec<&PodView> = pods.iter().filter(|pod| can_leave(pod, began)).collect();
    let actions = leaving
        .iter()
        .filter(|pod| pod.terminating.is_none_or(|termination| termination.grace > grace))
        .map(|pod| Action::DeletePod { pod: pod.id.clone(), grace })
        .collect();
    DrainProgress { actions, remaining: leaving.len(), ..DrainProgress::default() }
}

/// Returns the status of a drain, given the previous status and the current progress.
///
/// Pods disappear from the observed state when they have left, so the total is remembered and never shrinks. A pod that is
/// being evicted again keeps its previous reason until the result is known, because a controller that was restarted during
/// the drain does not know about earlier attempts.
pub fn status(prior: Option<&DrainStatus>, started_at: Timestamp, progress: &DrainProgress) -> DrainStatus {
    let remaining = i32::try_from(progress.remaining).unwrap_or(i32::MAX);
    let total = match prior {
        Some(prior) => prior.total.max(prior.evicted.saturating_add(remaining)),
        None => remaining,
    };
    let mut blocked = progress.blocked.clone();
    let known = prior.map(|prior| prior.blocked.as_slice()).unwrap_or_default();
    let is_open = |former: &&BlockedPod| {
        let is_its_eviction =
            |action: &Action| matches!(action, Action::Evict { pod } if former.pod == pod.to_string());
        let is_tried = progress.actions.iter().any(is_its_eviction);
        is_tried && progress.blocked.iter().all(|now| now.pod != former.pod)
    };
    blocked.extend(known.iter().filter(is_open).cloned());
    blocked.sort();
    blocked.truncate(MAX_BLOCKED);
    DrainStatus { started_at: Time(started_at), total, evicted: total.saturating_sub(remaining), blocked }
}

/// Returns true if a graceful drain has to remove the pod. Finished pods and pods without an owner are no exception.
fn must_leave(pod: &PodView, began: Timestamp) -> bool {
    can_leave(pod, began) && pod.drain != PodDrain::Skip
}

/// Returns true if removing the pod makes sense. Mirror pods cannot be removed, and the pods of a DaemonSet return at once.
/// A pod that tolerates the cordon is removed once; the one that replaces it stays until the machine is gone.
fn can_leave(pod: &PodView, began: Timestamp) -> bool {
    let has_come_back = pod.comes_back.is_some_and(|made| made > began);
    !pod.mirror && !pod.daemon_set && !has_come_back
}

/// Returns true if a drain does not wait for the pod any longer. A kubelet that has stopped reporting never confirms that a
/// pod has ended, so a pod whose grace period is over counts as gone.
fn given_up(pod: &PodView, readiness: Readiness, now: Timestamp) -> bool {
    readiness == Readiness::Unreachable && pod.terminating.is_some_and(|termination| termination.until <= now)
}

/// Returns the position of the pod in the order of evictions; `None` for a pod that has to complete first.
fn eviction_order(pod: &PodView) -> Option<i32> {
    match pod.drain {
        PodDrain::Evict { order } => Some(order),
        PodDrain::WaitCompleted if pod.finished => Some(0),
        PodDrain::WaitCompleted | PodDrain::Skip => None,
    }
}

/// Returns the time at which the attempt after `last` is due. If `last` is in the future, the clock was set back since, and
/// the next attempt is due at once.
fn due(last: &EvictionAttempt, pace: DrainPace, now: Timestamp) -> Timestamp {
    if last.at > now {
        return now;
    }
    let soon = last.at.saturating_add(EVICTION_RETRY).unwrap_or(Timestamp::MAX);
    let due = if soon < pace.deadline { soon } else { backoff::next_after(pace.deadline, last.at) };
    pace.retry_at.filter(|_| last.failed).map_or(due, |retry_at| due.max(retry_at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{PodId, PodTermination};

    const GRACE: SignedDuration = SignedDuration::from_secs(30);

    const UNTIL_400: DrainPace = DrainPace {
        began: Timestamp::constant(50, 0),
        deadline: Timestamp::constant(400, 0),
        retry_at: None,
    };

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn pod(name: &str) -> PodView {
        PodView {
            id: PodId { namespace: "shop".into(), name: name.into(), uid: name.into() },
            mirror: false,
            daemon_set: false,
            comes_back: None,
            finished: false,
            terminating: None,
            drain: PodDrain::Evict { order: 0 },
            eviction: None,
        }
    }

    fn terminating(name: &str, until: i64) -> PodView {
        PodView { terminating: Some(PodTermination { until: at(until), grace: GRACE }), ..pod(name) }
    }

    fn tried(name: &str, last: i64, refusal: Option<&str>) -> PodView {
        let attempt = EvictionAttempt { at: at(last), refusal: refusal.map(str::to_owned), failed: false };
        PodView { eviction: Some(attempt), ..pod(name) }
    }

    #[test]
    fn a_failed_attempt_waits_for_the_backoff_of_the_object() {
        let mut pods = [tried("a", 98, Some("no")), tried("b", 98, Some("no"))];
        pods[0].eviction.as_mut().unwrap().failed = true;
        let look = |retry_at: Option<i64>, now| {
            let pace = DrainPace { retry_at: retry_at.map(at), ..UNTIL_400 };
            let progress = evict(&pods, Readiness::Ready, pace, at(now));
            (progress.actions.len(), progress.next_look)
        };
        assert_eq!(look(Some(130), 100), (0, Some(at(103))));
        assert_eq!(look(Some(130), 103), (1, Some(at(130))), "the other goes on");
        assert_eq!(look(Some(130), 130), (2, None));
        assert_eq!(look(None, 103), (2, None), "all is well again");
    }

    fn ordered(name: &str, order: i32) -> PodView {
        PodView { drain: PodDrain::Evict { order }, ..pod(name) }
    }

    /// Checks a drain of these pods at second 100 with its deadline at 400: the evicted pods, the number of remaining pods,
    /// the blocked pods and the next look.
    #[track_caller]
    fn check(
        pods: &[PodView],
        evicted: &[&str],
        remaining: usize,
        blocked: &[(&str, &str)],
        look: Option<i64>,
    ) {
        check_on(Readiness::Ready, pods, evicted, remaining, blocked, look);
    }

    #[track_caller]
    fn check_on(
        readiness: Readiness,
        pods: &[PodView],
        evicted: &[&str],
        remaining: usize,
        blocked: &[(&str, &str)],
        look: Option<i64>,
    ) {
        let progress = evict(pods, readiness, UNTIL_400, at(100));
        let names: Vec<&str> = progress
            .actions
            .iter()
            .map(|action| {
                let Action::Evict { pod } = action else { panic!("a drain only evicts, not {action}") };
                pod.name.as_str()
            })
            .collect();
        assert_eq!(names, evicted);
        assert_eq!(progress.remaining, remaining);
        assert_eq!(progress.done(), remaining == 0);
        let blockers: Vec<(&str, &str)> =
            progress.blocked.iter().map(|blocker| (blocker.pod.as_str(), blocker.reason.as_str())).collect();
        assert_eq!(blockers, blocked);
        assert_eq!(progress.next_look, look.map(at));
    }

    #[test]
    fn an_empty_node_is_drained() {
        check(&[], &[], 0, &[], None);
    }

    #[test]
    fn mirror_daemon_and_skipped_pods_stay() {
        let stay = [
            PodView { mirror: true, ..pod("static") },
            PodView { daemon_set: true, ..pod("agent") },
            PodView { drain: PodDrain::Skip, ..pod("skip") },
        ];
        check(&stay, &[], 0, &[], None);
    }

    #[test]
    fn all_other_pods_are_evicted_at_once() {
        check(
            &[pod("a"), PodView { finished: true, ..pod("done") }, pod("b")],
            &["a", "done", "b"],
            3,
            &[],
            None,
        );
    }

    #[test]
    fn a_pod_that_terminates_too_slowly_blocks_the_drain() {
        check(&[terminating("a", 130)], &[], 1, &[], Some(130));
        check(
            &[terminating("a", 100)],
            &[],
            1,
            &[("shop/a", "still terminating after its grace period")],
            None,
        );
    }

    #[test]
    fn an_unreachable_node_does_not_block_on_overdue_pods() {
        check_on(
            Readiness::Unreachable,
            &[terminating("a", 100), terminating("b", 101)],
            &[],
            1,
            &[],
            Some(101),
        );
        check_on(Readiness::NotReady, &[terminating("a", 130)], &[], 1, &[], Some(130));
    }

    #[test]
    fn a_refused_eviction_is_retried_after_five_seconds() {
        check(&[tried("a", 96, Some("budget web"))], &[], 1, &[("shop/a", "budget web")], Some(101));
        check(&[tried("a", 95, Some("budget web"))], &["a"], 1, &[("shop/a", "budget web")], None);
    }

    #[test]
    fn a_pod_that_tolerates_the_cordon_is_evicted_once() {
        let made = |name, second| PodView { comes_back: Some(at(second)), ..pod(name) };
        let began = UNTIL_400.began.as_second();
        let pods = [made("before", began), made("in its place", began + 1)];
        check(&pods, &["before"], 1, &[], None);
        let emergency = delete(&pods, UNTIL_400.began, GRACE);
        assert_eq!(emergency.actions, [Action::DeletePod { pod: pods[0].id.clone(), grace: GRACE }]);
        assert_eq!(emergency.remaining, 1);
    }

    #[test]
    fn a_pod_from_a_faster_clock_is_looked_at_when_its_time_comes() {
        let pods = [PodView { comes_back: Some(at(130)), ..terminating("early", 400) }];
        let began_at = |second| {
            let progress =
                evict(&pods, Readiness::Ready, DrainPace { began: at(second), ..UNTIL_400 }, at(second));
            (progress.done(), progress.next_look)
        };
        assert_eq!(began_at(100), (true, Some(at(130))));
        assert_eq!(began_at(130), (false, Some(at(400))));
    }

    #[test]
    fn an_accepted_eviction_is_not_repeated_at_once() {
        check(&[tried("a", 100, None)], &[], 1, &[], Some(105));
    }

    #[test]
    fn an_attempt_in_the_future_does_not_delay_the_next() {
        check(&[tried("a", 101, None)], &["a"], 1, &[], Some(101));
    }

    #[test]
    fn after_the_deadline_attempts_follow_the_backoff() {
        let overdue =
            |last, now| evict(&[tried("a", last, Some("no"))], Readiness::Ready, UNTIL_400, at(now));
        assert_eq!(overdue(396, 402).next_look, Some(at(430)));
        assert_eq!(overdue(396, 430).actions.len(), 1);
        assert_eq!(overdue(430, 431).next_look, Some(at(490)));
        assert_eq!(overdue(395, 399).next_look, Some(at(430)));
        assert_eq!(overdue(394, 398).next_look, Some(at(399)));
    }

    #[test]
    fn pods_leave_in_their_order() {
        check(
            &[ordered("late", 10), ordered("first", -1), ordered("too", -1)],
            &["first", "too"],
            3,
            &[],
            None,
        );
        let waiting = PodView { drain: PodDrain::Evict { order: -1 }, ..terminating("first", 130) };
        check(&[ordered("late", 10), waiting], &[], 2, &[], Some(130));
        check(&[ordered("late", 10)], &["late"], 1, &[], None);
    }

    #[test]
    fn a_job_that_must_complete_blocks_the_drain() {
        let job = PodView { drain: PodDrain::WaitCompleted, ..pod("job") };
        check(&[job.clone(), pod("a")], &["a"], 2, &[("shop/job", "waiting for the pod to complete")], None);
        check(&[PodView { finished: true, ..job }], &["job"], 1, &[], None);
    }

    #[test]
    fn blocked_pods_are_sorted_and_at_most_twenty() {
        let pods: Vec<PodView> = (0..30).rev().map(|n| tried(&format!("p{n:02}"), 99, Some("no"))).collect();
        let blocked = evict(&pods, Readiness::Ready, UNTIL_400, at(100)).blocked;
        assert_eq!(blocked.len(), 20);
        assert!(blocked.is_sorted());
        assert_eq!(blocked[0].pod, "shop/p00");
    }

    #[test]
    fn a_blocked_pod_keeps_its_reason_until_the_next_result() {
        let held = |pods: &[PodView], prior: Option<&DrainStatus>| {
            status(prior, at(50), &evict(pods, Readiness::Ready, UNTIL_400, at(100)))
        };
        let before = held(&[tried("a", 99, Some("no")), tried("b", 99, Some("no"))], None);
        // After a restart no attempt is known, and the status stays the same.
        assert_eq!(held(&[pod("a"), pod("b")], Some(&before)).blocked, before.blocked);
        let answered = held(&[tried("a", 100, Some("not yet")), tried("b", 100, None)], Some(&before));
        let blocked = |pod: &str, reason: &str| BlockedPod { pod: pod.to_owned(), reason: reason.to_owned() };
        assert_eq!(answered.blocked, [blocked("shop/a", "not yet")]);
        assert_eq!(held(&[pod("c")], Some(&before)).blocked, [], "others were never held");
    }

    #[test]
    fn an_emergency_deletes_pods_and_shortens_grace_periods() {
        let zero = SignedDuration::ZERO;
        let pods = [
            PodView { mirror: true, ..pod("static") },
            PodView { daemon_set: true, ..pod("agent") },
            PodView { drain: PodDrain::Skip, ..pod("skip") },
            pod("plain"),
            terminating("slow", 500),
            PodView { terminating: Some(PodTermination { until: at(100), grace: zero }), ..pod("going") },
        ];
        let progress = delete(&pods, UNTIL_400.began, zero);
        let expected: Vec<Action> =
            ["skip", "plain", "slow"].map(|name| Action::DeletePod { pod: pod(name).id, grace: zero }).into();
        assert_eq!(progress.actions, expected);
        assert_eq!(progress.remaining, 4);
        assert_eq!(
            delete(&pods[4..5], UNTIL_400.began, GRACE).actions,
            [],
            "a grace of the same length is left alone"
        );
    }

    #[test]
    fn the_total_is_remembered_when_pods_have_left() {
        let left = |remaining| DrainProgress { remaining, ..DrainProgress::default() };
        let counts = |status: &DrainStatus| (status.total, status.evicted);
        let first = status(None, at(100), &left(5));
        assert_eq!(counts(&first), (5, 0));
        let second = status(Some(&first), at(100), &left(3));
        assert_eq!(counts(&second), (5, 2));
        assert_eq!(status(Some(&second), at(100), &left(3)), second, "nothing new, nothing changed");
        let newcomer = status(Some(&second), at(100), &left(4));
        assert_eq!(counts(&newcomer), (6, 2));
        assert_eq!(counts(&status(Some(&newcomer), at(100), &left(0))), (6, 6));
        assert_eq!(second.started_at.0, at(100));
    }
}
