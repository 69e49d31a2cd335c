//! Tests of the protocol alone: the next step of a replica, for every state of the Lease.

use super::state::{Candidate, LeaseTiming, Loss, Step};
use five_spot_cluster::transport::{LeaseRecord, StoredLease};
use jiff::Timestamp;
use std::time::Duration;

const ME: &str = "a_1";

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn candidate() -> Candidate {
    Candidate::new(ME.to_owned(), LeaseTiming::default())
}

fn lease(holder: &str, seconds: u32, renewed: i64, version: &str) -> StoredLease {
    let record = LeaseRecord {
        holder: holder.to_owned(),
        duration_seconds: seconds,
        renewed: Timestamp::from_second(renewed).ok(),
        ..LeaseRecord::default()
    };
    StoredLease { record, version: version.to_owned() }
}

fn step(candidate: &mut Candidate, now: u64) -> Step {
    candidate.step(at(now), Timestamp::UNIX_EPOCH)
}

/// The time at which a standby that saw this Lease at 100 s tries to get it.
#[track_caller]
fn check_free(lease: Option<StoredLease>, expected: u64) {
    let mut candidate = candidate();
    candidate.observe(lease.clone(), at(100));
    if expected > 100 {
        assert_eq!(step(&mut candidate, 100), Step::Wait(at(expected)), "{lease:?}");
        assert_eq!(step(&mut candidate, expected - 1), Step::Wait(at(expected)), "{lease:?}");
    }
    let Step::Write(record, version) = step(&mut candidate, expected) else { panic!("{lease:?}") };
    assert_eq!((record.holder.as_str(), record.duration_seconds), (ME, 15));
    assert_eq!(version, lease.map(|lease| lease.version));
}

#[test]
fn a_standby_tries_when_the_lease_is_free() {
    check_free(None, 100);
    check_free(Some(lease("", 1, 0, "7")), 100);
    check_free(Some(lease("b_2", 15, 0, "7")), 115);
    check_free(Some(lease("b_2", 60, 0, "7")), 160);
    // Values written by hand.
    check_free(Some(lease("b_2", 0, 0, "7")), 115);
    check_free(Some(lease("b_2", 1_000_000, 0, "7")), 3700);
    check_free(Some(lease("", 15, 0, "7")), 115);
    check_free(Some(lease("", 0, 0, "7")), 115);
    // The answer to its own write was lost.
    check_free(Some(lease(ME, 15, 0, "7")), 100);
}

#[test]
fn only_a_changed_record_is_a_renewal_whatever_its_times_say() {
    let mut candidate = candidate();
    candidate.observe(Some(lease("b_2", 15, 1_000_000, "7")), at(100));
    candidate.observe(Some(lease("b_2", 15, 1_000_000, "8")), at(110));
    assert_eq!(step(&mut candidate, 110), Step::Wait(at(115)));
    // The clock of the other goes backwards.
    candidate.observe(Some(lease("b_2", 15, 5, "9")), at(112));
    assert_eq!(step(&mut candidate, 112), Step::Wait(at(127)));
}

#[test]
fn a_deleted_lease_is_not_taken_before_it_would_expire() {
    let mut candidate = candidate();
    candidate.observe(Some(lease("b_2", 15, 0, "7")), at(100));
    candidate.observe(None, at(101));
    assert_eq!(step(&mut candidate, 101), Step::Wait(at(115)));
    assert!(matches!(step(&mut candidate, 115), Step::Write(_, None)));
}

fn leader() -> Candidate {
    let mut candidate = candidate();
    candidate.observe(None, at(100));
    candidate.written(lease(ME, 15, 0, "8"), at(100));
    candidate
}

#[test]
fn a_leader_renews_and_stops_before_the_lease_can_be_taken() {
    let mut leader = leader();
    assert_eq!(leader.valid_until(), Some(at(110)));
    assert_eq!(step(&mut leader, 101), Step::Wait(at(102)));
    assert!(matches!(step(&mut leader, 102), Step::Write(_, Some(version)) if version == "8"));
    leader.failed(at(103));
    assert_eq!(step(&mut leader, 103), Step::Wait(at(105)));
    leader.failed(at(109));
    assert_eq!(step(&mut leader, 109), Step::Wait(at(110)));
    assert_eq!(step(&mut leader, 110), Step::Resign(Loss::Expired));
    assert_eq!(leader.valid_until(), None);
    // No other instance has acquired the Lease: it may lead again.
    assert_eq!(step(&mut leader, 110), Step::Wait(at(112)));
    assert!(matches!(step(&mut leader, 112), Step::Write(..)));
    leader.written(lease(ME, 15, 1, "9"), at(112));
    assert_eq!(leader.valid_until(), Some(at(122)));
}

#[test]
fn a_leader_whose_lease_names_another_stops_at_once() {
    for holder in ["b_2", ""] {
        let mut leader = leader();
        leader.observe(Some(lease(holder, 15, 0, "9")), at(101));
        assert_eq!(step(&mut leader, 101), Step::Resign(Loss::Replaced(holder.to_owned())));
        assert_eq!(step(&mut leader, 103), Step::Wait(at(116)));
    }
}

#[test]
fn a_leader_creates_its_lease_again() {
    let mut leader = leader();
    leader.observe(None, at(101));
    assert!(matches!(step(&mut leader, 101), Step::Write(record, None) if record.holder == ME));
}

#[test]
fn a_leader_stopped_longer_than_its_lease_steps_down() {
    let mut leader = leader();
    assert_eq!(step(&mut leader, 1000), Step::Resign(Loss::Expired));
}

#[test]
fn a_released_lease_has_no_holder_and_a_short_duration() {
    let mut leader = leader();
    let (record, version) = leader.release(Timestamp::UNIX_EPOCH).expect("it is held");
    assert_eq!((record.holder.as_str(), record.duration_seconds, version.as_str()), ("", 1, "8"));
    assert_eq!(leader.release(Timestamp::UNIX_EPOCH), None, "once");
    assert_eq!(candidate().release(Timestamp::UNIX_EPOCH), None, "only what is held");
}

#[test]
fn transitions_count_changes_of_the_holder() {
    let mut standby = candidate();
    let mut other = lease("b_2", 15, 0, "7");
    other.record.transitions = 4;
    standby.observe(Some(other), at(0));
    let Step::Write(record, _) = step(&mut standby, 15) else { panic!("it is free") };
    assert_eq!(record.transitions, 5);
    let mut leader = leader();
    let Step::Write(record, _) = step(&mut leader, 102) else { panic!("it is due") };
    assert_eq!(record.transitions, 0);
}

#[test]
fn an_identity_is_read_from_the_lease_as_it_was_written() {
    for instance in ["5spot-controller-7d9f", &"a".repeat(253), &"a".repeat(1000), "line\nbreak", ""] {
        let identity = super::identity(instance);
        assert_eq!(five_spot_core::text::bounded(&identity, 512), identity.as_str(), "{instance}");
        assert!(identity.rsplit_once('_').is_some_and(|(_, random)| random.len() == 16), "{identity}");
    }
    assert!(super::identity("pod-1").starts_with("pod-1_"));
    assert_ne!(super::identity("pod-1"), super::identity("pod-1"));
}

#[test]
fn a_lease_is_released_again_after_it_was_read_again() {
    let mut leader = leader();
    let _ = leader.release(Timestamp::UNIX_EPOCH).expect("it is held");
    // A renewal that was cut off has been carried out before the release.
    leader.observe(Some(lease(ME, 15, 1, "9")), at(103));
    let (record, version) = leader.release(Timestamp::UNIX_EPOCH).expect("it is still held");
    assert_eq!((record.holder.as_str(), version.as_str()), ("", "9"));
    leader.observe(Some(lease("b_2", 15, 1, "10")), at(103));
    assert_eq!(leader.release(Timestamp::UNIX_EPOCH), None, "another one holds it");
}
