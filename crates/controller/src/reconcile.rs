//! One reconcile of one object: look, decide, confirm if the decision asks for it, carry out, remember how it went.

use crate::account::Account;
use five_spot_api::Phase;
use five_spot_api::condition::ConditionType;
use five_spot_cluster::{Fleet, ObjectKey, Observation, Observed, Original, Setback};
use five_spot_core::world::NodeView;
use five_spot_core::{Decision, Evidence, decide, decide_invalid};
use jiff::Timestamp;
use std::time::Duration;
use tokio::time::{sleep, timeout};
use tracing::Span;

/// How often a reconcile begins anew because something changed under its hands.
const ATTEMPTS: u32 = 4;

/// How often a write is repeated that the policy of the Lease has refused, and how long after each refusal. Right after
/// a takeover the API server may still see the leader before; that takes it milliseconds, and is no failure.
const POLICY_REFUSALS: u32 = 50;
const AFTER_POLICY_REFUSAL: Duration = Duration::from_millis(100);

/// How many reconciles in a row may each leave something to do at once before there is a pause between them. The
/// longest way to go without waiting for anybody is the opening of a window, with five.
const ROUNDS: u32 = 10;

/// How often an observation may show that something else has to be looked up.
const LOOKUPS: u32 = 3;

/// When to look at an object again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Never: it is gone.
    Gone,
    /// When something is told of it.
    OnNews,
    /// At once.
    Now,
    /// At this moment, if nothing is told of it before.
    At(Timestamp),
}

/// Reconciles one object, and says when it wants to be looked at again.
pub(crate) async fn reconcile(fleet: &Fleet, key: &ObjectKey, account: &mut Account) -> Next {
    tracing::info!("Starting reconciliation");
    let (mut attempt, mut policy_refusals) = (1, 0);
    let next = loop {
        match once(fleet, key, account).await {
            Ok(next) => break next,
            Err(setback) if setback.error.is_fenced() => break Next::OnNews,
            Err(setback)
                if setback.error.is_refused_by_lease_policy() && policy_refusals < POLICY_REFUSALS =>
            {
                tracing::debug!(error = %setback, "the API server does not know of the new leader yet");
                policy_refusals += 1;
                sleep(AFTER_POLICY_REFUSAL).await;
            }
            Err(setback) if setback.error.is_stale() && attempt < ATTEMPTS => {
                tracing::debug!(error = %setback, "what was decided upon has changed, deciding anew");
                attempt += 1;
                if let Err(setback) = look_closer(fleet, key).await {
                    break fail(fleet, key, &setback, account).await;
                }
            }
            Err(setback) => break fail(fleet, key, &setback, account).await,
        }
    };
    tracing::info!("Reconciliation finished");
    let rounds = fleet.count_round(key, next == Next::Now);
    if rounds > ROUNDS {
        tracing::warn!(rounds, "the object does not come to rest");
        return later(fleet.now(), jiff::SignedDuration::from_secs(i64::from(rounds - ROUNDS).min(60)));
    }
    next
}

/// One look, decision and execution. A reclaim and a deletion have bounds: there it ends when time alone makes another
/// decision, and what a cluster has not answered by then is not waited for.
async fn once(fleet: &Fleet, key: &ObjectKey, account: &mut Account) -> Result<Next, Setback> {
    let Some(observed) = observe(fleet, key).await? else { return Ok(unobserved(fleet, key, account)) };
    let decision = decide_now(fleet, &observed, account);
    let bounded =
        observed.world.object.deletion.is_some() || decision.status.phase == Some(Phase::EmergencyRemove);
    let due = decision.wake_at.filter(|_| bounded);
    // Boxed: a future that is moved into another is on the stack twice.
    let work = Box::pin(confirm_and_carry_out(fleet, key, observed, decision, account));
    let Some(due) = due else { return work.await };
    let left = Duration::try_from(due.duration_since(fleet.now())).unwrap_or(Duration::ZERO);
    timeout(left, work).await.unwrap_or(Ok(Next::Now))
}

async fn confirm_and_carry_out(
    fleet: &Fleet,
    key: &ObjectKey,
    observed: Box<Observed>,
    decision: Decision,
    account: &mut Account,
) -> Result<Next, Setback> {
    // Nothing that cannot be taken back, and no fault, is put down to what a watch may have missed.
    let doubted = observed.unproven || fleet.lacks_news(key, fleet.now());
    let confirms = match decision.evidence {
        Evidence::BestEffort => false,
        Evidence::Confirmed => true,
        Evidence::Cached => doubted,
    };
    if !confirms {
        return carry_out(fleet, key, &observed, None, &decision, account).await;
    }
    let original = fleet.refresh(key, &observed).await?;
    fleet.confirmed(key);
    let Some(observed) = observe(fleet, key).await? else { return Ok(unobserved(fleet, key, account)) };
    let decision = decide_now(fleet, &observed, account);
    carry_out(fleet, key, &observed, original.as_ref(), &decision, account).await
}

async fn carry_out(
    fleet: &Fleet,
    key: &ObjectKey,
    observed: &Observed,
    original: Option<&Original>,
    decision: &Decision,
    account: &mut Account,
) -> Result<Next, Setback> {
    fleet.watch_pods(observed, decision.watch_pods);
    let outcome = fleet.carry_out(key, observed, original, decision).await;
    if outcome.as_ref().map_or_else(|setback| setback.reported, |()| true) {
        account.reported(observed, decision);
    }
    outcome?;
    let recovered = fleet.succeeded(key);
    let goes_on = recovered || !decision.actions.is_empty();
    // A fault counts when nothing is left to do about it: the same one is found again at once until then.
    let is_faulty = decision.fault.is_some();
    let retry = if goes_on && is_faulty { None } else { fleet.found_fault(key, is_faulty) };
    account.settled(observed, decision, retry);
    if goes_on {
        return Ok(Next::Now);
    }
    count_again(fleet, key, observed, decision, account).await;
    let retry = retry.map(|retry| later(fleet.now(), retry.backoff));
    let compare = fleet.on_its_way(key, is_moving(decision), fleet.now());
    Ok(soonest([decision.wake_at.map(Next::At), retry, compare.map(Next::At)]))
}

/// Whether an object is not yet where it should be, and waits for others to bring it there.
fn is_moving(decision: &Decision) -> bool {
    let ready = ConditionType::Ready.as_str();
    decision.status.conditions.iter().any(|condition| condition.type_ == ready && condition.status != "True")
}

/// What is known, with everything looked up that the decision about it needs and a first look has shown to be unknown. An
/// emergency needs nothing of that, and is not held up by it.
async fn observe(fleet: &Fleet, key: &ObjectKey) -> Result<Option<Box<Observed>>, Setback> {
    let Some(mut observed) = known(fleet, key).await else { return Ok(None) };
    // The rules of a drain come first, and may ask for more.
    for _ in 0..LOOKUPS {
        let needs_drain_rules = observed.world.node.found().is_some_and(NodeView::needs_drain_rules);
        if !needs_drain_rules || !decision_about(fleet, &observed).resolve_drain_rules {
            break;
        }
        fleet.look_up(key, &observed).await?;
        let Some(closer) = known(fleet, key).await else { return Ok(None) };
        observed = closer;
    }
    Ok(Some(observed))
}

/// What is known of an object. What has not been read yet is waited for, unless the object is an emergency.
async fn known(fleet: &Fleet, key: &ObjectKey) -> Option<Box<Observed>> {
    let Observation::Known(observed) = fleet.observe(key).await else { return None };
    let is_enough = !observed.incomplete || decision_about(fleet, &observed).evidence == Evidence::BestEffort;
    is_enough.then_some(observed)
}

fn unobserved(fleet: &Fleet, key: &ObjectKey, account: &Account) -> Next {
    if fleet.knows(key) {
        return Next::OnNews;
    }
    fleet.forget(key);
    account.gone();
    Next::Gone
}

fn decision_about(fleet: &Fleet, observed: &Observed) -> Decision {
    let now = fleet.now();
    match &observed.spec {
        Ok(spec) => decide(spec, &observed.world, now),
        Err(spec) => decide_invalid(spec, &observed.world, now),
    }
}

fn decide_now(fleet: &Fleet, observed: &Observed, account: &mut Account) -> Decision {
    let decision = decision_about(fleet, observed);
    if let Some(phase) = decision.status.phase {
        Span::current().record("phase", phase.as_str());
    }
    account.decided(observed, &decision);
    decision
}

/// Reads from the API server what has changed under our hands.
async fn look_closer(fleet: &Fleet, key: &ObjectKey) -> Result<(), Setback> {
    if let Observation::Known(observed) = fleet.observe(key).await {
        fleet.refresh(key, &observed).await?;
    }
    Ok(())
}

/// Notes a failure, and reports it where it can be reported.
async fn fail(fleet: &Fleet, key: &ObjectKey, setback: &Setback, account: &mut Account) -> Next {
    let retry = fleet.failed(key, setback, fleet.now());
    let again = later(fleet.now(), retry.backoff);
    let Some(observed) = known(fleet, key).await else {
        account.failed(setback, retry, false);
        return again;
    };
    account.failed(setback, retry, observed.world.machine.ours().is_some());
    let decision = decide_now(fleet, &observed, account);
    match fleet.report(key, &observed, &decision).await {
        Ok(()) => {
            account.reported(&observed, &decision);
            count_again(fleet, key, &observed, &decision, account).await;
        }
        Err(setback) => tracing::debug!(error = %setback, "the failure could not be reported"),
    }
    soonest([decision.wake_at.map(Next::At), Some(again), None])
}

/// A fault that is still there is counted in the event that announced it.
async fn count_again(
    fleet: &Fleet,
    key: &ObjectKey,
    observed: &Observed,
    decision: &Decision,
    account: &Account,
) {
    if let Some(repeat) = account.repeats(decision) {
        fleet.count_again(key, observed, &repeat.event, repeat.times).await;
    }
}

fn later(now: Timestamp, wait: jiff::SignedDuration) -> Next {
    Next::At(now.saturating_add(wait).unwrap_or(Timestamp::MAX))
}

fn soonest(times: [Option<Next>; 3]) -> Next {
    let at = |next: Option<Next>| match next {
        Some(Next::At(time)) => Some(time),
        Some(Next::Gone | Next::OnNews | Next::Now) | None => None,
    };
    times.into_iter().filter_map(at).min().map_or(Next::OnNews, Next::At)
}
