//! Tests of the protocol alone, case by case, and of the log line about objects of other instances.

use super::member::{Loss, Member, Step};
use super::ownership_log::OwnershipLog;
use super::view::{Ownership, View};
use super::{InstanceTiming, RELEASED_SECONDS};
use crate::leader::LeaseTiming;
use five_spot_cluster::ObjectKey;
use five_spot_cluster::transport::{Announcement, InstanceLease, LeaseRecord, StoredLease};
use five_spot_core::shard::Shard;
use jiff::Timestamp;
use std::io::Write;
use std::slice;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const ME: &str = "me_1";

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn shard(id: u32, count: u32) -> Shard {
    Shard::new(id, count).expect("a shard")
}

fn member(shard: Shard) -> Member {
    let timing = InstanceTiming::shared(LeaseTiming::default());
    Member::new(shard, ME.to_owned(), (Some("pod-1".to_owned()), None), timing, true)
}

/// The Lease of another instance. The version also stands for the time of the renewal.
fn lease(shard: Shard, holder: &str, version: i64, yields_to: &[Shard]) -> InstanceLease {
    let record = LeaseRecord {
        holder: holder.to_owned(),
        duration_seconds: if holder.is_empty() { RELEASED_SECONDS } else { 15 },
        renewed: Timestamp::from_second(version).ok(),
        ..LeaseRecord::default()
    };
    InstanceLease {
        id: shard.id(),
        stored: StoredLease { record, version: version.to_string() },
        announcement: Announcement {
            count: Some(shard.count()),
            yields_to: yields_to.iter().copied().collect(),
            ..Announcement::default()
        },
    }
}

/// Carries out the steps of a member at one moment, with this content of the storage in addition to its own Lease,
/// until it waits. Returns the steps by name.
fn advance(member: &mut Member, now: u64, others: &[InstanceLease]) -> Vec<&'static str> {
    let mut steps = Vec::new();
    for version in 1_000_000.. {
        match member.step(at(now), Timestamp::UNIX_EPOCH) {
            Step::Wait(_) => break,
            Step::List => {
                steps.push("list");
                member.listed(others.iter().cloned().chain(own(member)).collect(), at(now));
            }
            Step::Write(record, announcement, _) => {
                steps.push("write");
                let version = (version + now * 100).to_string();
                let stored = StoredLease { record, version };
                let id = member_id(member);
                member.written(InstanceLease { id, stored, announcement }, at(now));
            }
            Step::Resign(_) => steps.push("resign"),
        }
        assert!(steps.len() < 20, "{steps:?}");
    }
    steps
}

fn member_id(member: &mut Member) -> u32 {
    member.view(&View::initial(Shard::ONLY)).shard().id()
}

fn own(member: &Member) -> Option<InstanceLease> {
    member.own_lease().cloned()
}

fn view(member: &mut Member) -> View {
    member.view(&View::initial(Shard::ONLY))
}

/// An object that belongs to 0 of 1 and to 1 of 2, and one that always belongs to 0.
fn moving_and_staying() -> (ObjectKey, ObjectKey) {
    (ObjectKey::new("desks", "desk-1"), ObjectKey::new("desks", "desk-2"))
}

#[test]
fn an_instance_writes_its_lease_before_it_reads_the_others() {
    let mut alone = member(Shard::ONLY);
    assert_eq!(advance(&mut alone, 100, &[]), ["list", "write", "list"]);
    assert!(view(&mut alone).works());
    assert_eq!(advance(&mut alone, 104, &[]), [""; 0]);
    assert_eq!(advance(&mut alone, 105, &[]), ["write"], "one renewal, and nothing else");
}

#[test]
fn a_newcomer_waits_until_the_old_owner_yields() {
    let (moving, staying) = moving_and_staying();
    let (old, new) = (shard(0, 1), shard(1, 2));
    let mut member = member(new);
    advance(&mut member, 100, &[lease(old, "old_1", 1, &[])]);
    assert_eq!(view(&mut member).ownership(&moving), Ownership::Waiting);
    assert_eq!(view(&mut member).ownership(&staying), Ownership::Foreign);
    member.observe(lease(old, "old_1", 2, &[new]), at(101));
    assert_eq!(view(&mut member).ownership(&moving), Ownership::Owned);
    member.observe(lease(old, "old_1", 1, &[]), at(102));
    assert_eq!(view(&mut member).ownership(&moving), Ownership::Owned, "a watch that lags is ignored");
}

#[test]
fn an_old_owner_yields_only_after_its_work_has_stopped() {
    let (moving, staying) = moving_and_staying();
    let new = shard(1, 2);
    let mut member = member(Shard::ONLY);
    advance(&mut member, 100, &[]);
    let before = view(&mut member);
    assert_eq!(before.ownership(&moving), Ownership::Owned);
    member.observe(lease(new, "new_1", 1, &[]), at(101));
    let after = member.view(&before);
    assert_eq!(after.ownership(&moving), Ownership::Waiting);
    assert_eq!(after.ownership(&staying), Ownership::Owned);
    assert_ne!(after.number(), before.number());
    assert_eq!(advance(&mut member, 101, &[]), [""; 0], "a reconcile is still in flight");
    member.stopped(after.number());
    let Step::Write(_, announcement, _) = member.step(at(101), Timestamp::UNIX_EPOCH) else {
        panic!("it yields")
    };
    assert_eq!(announcement.yields_to, [new].into());
}

#[test]
fn objects_are_taken_back_after_the_yield_is_withdrawn() {
    let (moving, _) = moving_and_staying();
    let new = shard(1, 2);
    let mut member = member(Shard::ONLY);
    advance(&mut member, 100, &[]);
    member.observe(lease(new, "new_1", 1, &[]), at(101));
    let number = view(&mut member).number();
    member.stopped(number);
    advance(&mut member, 101, &[]);
    // It was released.
    member.observe(lease(new, "", 2, &[]), at(102));
    assert_eq!(view(&mut member).ownership(&moving), Ownership::Waiting, "the stored Lease still yields");
    assert_eq!(advance(&mut member, 102, &[lease(new, "", 2, &[])]), ["write", "list"]);
    assert_eq!(view(&mut member).ownership(&moving), Ownership::Owned);
}

#[test]
fn an_instance_is_gone_only_when_a_read_confirms_it() {
    let (moving, _) = moving_and_staying();
    let old = shard(0, 1);
    let mut member = member(shard(1, 2));
    advance(&mut member, 100, &[lease(old, "old_1", 1, &[])]);
    // The watch shows nothing for the duration of the Lease, but it was renewed.
    let renewed = [lease(old, "old_1", 7, &[])];
    for now in [105, 110] {
        assert_eq!(advance(&mut member, now, &renewed), ["write"]);
    }
    assert_eq!(advance(&mut member, 115, &renewed), ["write", "list"]);
    assert_eq!(view(&mut member).ownership(&moving), Ownership::Waiting);
    for now in [120, 125] {
        assert_eq!(advance(&mut member, now, &renewed), ["write"]);
    }
    assert_eq!(advance(&mut member, 130, &renewed), ["write", "list"]);
    assert_eq!(view(&mut member).ownership(&moving), Ownership::Owned);
}

#[test]
fn a_newcomer_with_a_lower_count_takes_nothing() {
    let (moving, _) = moving_and_staying();
    let (old, mut newcomer) = (shard(1, 2), member(shard(0, 1)));
    advance(&mut newcomer, 100, &[lease(old, "old_1", 1, &[])]);
    assert_eq!(view(&mut newcomer).ownership(&moving), Ownership::Waiting);
    // The other one does not wait for a newcomer, which has seen its Lease.
    let mut incumbent = member(old);
    advance(&mut incumbent, 100, &[]);
    incumbent.observe(lease(shard(0, 1), "new_1", 1, &[]), at(101));
    assert_eq!(view(&mut incumbent).ownership(&moving), Ownership::Owned);
}

#[test]
fn a_live_holder_of_the_same_number_makes_a_standby() {
    let mut second = member(Shard::ONLY);
    let first = lease(Shard::ONLY, "other_1", 1, &[]);
    second.listed(vec![first.clone()], at(100));
    assert_eq!(second.step(at(100), Timestamp::UNIX_EPOCH), Step::Wait(at(115)));
    assert!(!view(&mut second).works());
    // Released: it takes over at once.
    second.observe(lease(Shard::ONLY, "", 2, &[]), at(101));
    assert!(matches!(second.step(at(101), Timestamp::UNIX_EPOCH), Step::Write(..)));
    // The same pod: the previous process has ended.
    let mut restarted = member(Shard::ONLY);
    let announcement = Announcement { pod_uid: Some("pod-1".to_owned()), ..first.announcement.clone() };
    restarted.listed(vec![InstanceLease { announcement, ..first.clone() }], at(100));
    assert!(matches!(restarted.step(at(100), Timestamp::UNIX_EPOCH), Step::Write(..)));
    // The same machine: the previous process has ended, and the one after it has not.
    let mut again = member(Shard::ONLY);
    let announcement = Announcement { process: Some("boot/1/2".to_owned()), ..first.announcement.clone() };
    again.listed(vec![InstanceLease { announcement: announcement.clone(), ..first }], at(100));
    assert_eq!(again.former_process(), Some("boot/1/2"));
    assert_eq!(again.step(at(100), Timestamp::UNIX_EPOCH), Step::Wait(at(115)));
    again.holder_ended();
    assert!(matches!(again.step(at(100), Timestamp::UNIX_EPOCH), Step::Write(..)));
    again.observe(InstanceLease { announcement, ..lease(Shard::ONLY, "other_2", 2, &[]) }, at(101));
    assert_eq!(again.step(at(101), Timestamp::UNIX_EPOCH), Step::Wait(at(116)));
}

#[test]
fn an_instance_stops_before_its_lease_expires() {
    let mut member = member(Shard::ONLY);
    advance(&mut member, 100, &[]);
    assert_eq!(member.valid_until(), Some(at(110)));
    member.failed(at(105));
    assert_eq!(member.step(at(110), Timestamp::UNIX_EPOCH), Step::Resign(Loss::Expired));
    assert!(!view(&mut member).works());
}

#[test]
fn a_lease_from_a_backup_is_renewed_by_its_own_version() {
    let mut member = member(Shard::ONLY);
    advance(&mut member, 100, &[]);
    let restored = lease(Shard::ONLY, ME, 5, &[]);
    member.observe(restored.clone(), at(101));
    assert_ne!(own(&member), Some(restored.clone()), "a watch may lag");
    // A write has failed because of its version.
    member.found(restored, at(101));
    member.conflicted(at(101));
    let Step::Write(_, _, version) = member.step(at(105), Timestamp::UNIX_EPOCH) else { panic!("it is due") };
    assert_eq!(version.as_deref(), Some("5"));
}

#[test]
fn an_edited_holder_stops_an_instance_at_once() {
    let mut member = member(Shard::ONLY);
    advance(&mut member, 100, &[]);
    member.observe(lease(Shard::ONLY, "somebody", 9_000_000, &[]), at(101));
    assert_eq!(
        member.step(at(101), Timestamp::UNIX_EPOCH),
        Step::Resign(Loss::Replaced("somebody".to_owned()))
    );
    assert!(!view(&mut member).works());
}

#[test]
fn a_count_that_cannot_be_read_claims_everything() {
    let (moving, staying) = moving_and_staying();
    let mut member = member(Shard::ONLY);
    let mut unreadable = lease(shard(1, 2), "other_1", 1, &[]);
    unreadable.announcement.count = None;
    advance(&mut member, 100, &[unreadable]);
    for key in [moving, staying] {
        assert_eq!(view(&mut member).ownership(&key), Ownership::Waiting);
    }
}

#[test]
fn an_edited_count_does_not_end_the_wait_for_its_holder() {
    let (moving, _) = moving_and_staying();
    let old = shard(0, 1);
    let mut member = member(shard(1, 2));
    let mut edited = lease(old, "old_1", 1, &[]);
    advance(&mut member, 100, slice::from_ref(&edited));
    for (count, version) in [(Some(2), "2"), (Some(5), "3"), (None, "4")] {
        edited.announcement.count = count;
        version.clone_into(&mut edited.stored.version);
        member.observe(edited.clone(), at(101));
        assert_eq!(view(&mut member).ownership(&moving), Ownership::Waiting, "{count:?}");
    }
    member.observe(lease(old, "old_1", 5, &[shard(1, 2)]), at(102));
    assert_eq!(view(&mut member).ownership(&moving), Ownership::Owned);
}

#[test]
fn an_edited_duration_keeps_nobody_waiting() {
    let (moving, _) = moving_and_staying();
    let old = shard(0, 1);
    let mut member = member(shard(1, 2));
    let mut edited = lease(old, "old_1", 1, &[]);
    advance(&mut member, 100, slice::from_ref(&edited));
    edited.stored.record.duration_seconds = 1_000_000;
    "2".clone_into(&mut edited.stored.version);
    member.observe(edited.clone(), at(101));
    // Its holder has died meanwhile.
    for now in [105, 110, 115] {
        assert_eq!(view(&mut member).ownership(&moving), Ownership::Waiting, "{now}");
        advance(&mut member, now, slice::from_ref(&edited));
    }
    assert_eq!(view(&mut member).ownership(&moving), Ownership::Owned);
}

#[test]
fn only_a_single_instance_works_without_leases() {
    let mut alone = member(Shard::ONLY);
    alone.refused(at(100));
    assert!(view(&mut alone).works() && alone.is_unprotected());
    assert_eq!(alone.step(at(100), Timestamp::UNIX_EPOCH), Step::Wait(at(160)), "a person has to grant it");
    let mut one_of_two = member(shard(0, 2));
    one_of_two.refused(at(100));
    assert!(!view(&mut one_of_two).works());
}

#[test]
fn a_new_leader_works_at_once_without_leases() {
    let timing = InstanceTiming::shared(LeaseTiming::default());
    let mut replica = Member::new(Shard::ONLY, ME.to_owned(), (None, None), timing, false);
    for now in [100, 160, 280] {
        assert_eq!(replica.step(at(now), Timestamp::UNIX_EPOCH), Step::List);
        replica.refused(at(now));
        assert!(!view(&mut replica).works(), "another replica leads");
    }
    assert_eq!(replica.step(at(300), Timestamp::UNIX_EPOCH), Step::Wait(at(520)));
    replica.set_taking_part(true);
    assert_eq!(replica.step(at(300), Timestamp::UNIX_EPOCH), Step::List, "nobody else works");
    replica.refused(at(300));
    assert!(view(&mut replica).works() && view(&mut replica).may_have_stale_caches());
    // It loses the election, and has no Lease of its own to lose.
    replica.set_taking_part(false);
    assert!(!view(&mut replica).works() && !replica.is_unprotected());
    replica.set_taking_part(true);
    assert_eq!(replica.step(at(301), Timestamp::UNIX_EPOCH), Step::List);
    replica.refused(at(301));
    assert!(view(&mut replica).works() && view(&mut replica).may_have_stale_caches());
}

/// A buffer that log lines are written to.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_object_of_another_instance_is_logged_once() {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::DEBUG)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let (moving, _) = moving_and_staying();
    tracing::subscriber::with_default(subscriber, || {
        let (mut log, view) = (OwnershipLog::default(), View::initial(shard(0, 2)));
        for _ in 0..3 {
            log.not_owned(&view, &moving, Ownership::Foreign);
        }
        log.forget(&moving);
        log.not_owned(&view, &moving, Ownership::Waiting);
    });
    let text = String::from_utf8(lines.0.lock().expect("no panic").clone()).expect("text");
    let logged: Vec<&str> =
        text.lines().filter(|line| line.contains("Resource not owned by this instance")).collect();
    assert_eq!(logged.len(), 2, "once for each change of ownership: {text}");
    assert!(
        logged.iter().all(|line| line.contains("DEBUG") && line.contains("resource=\"desk-1\"")),
        "{text}"
    );
}

#[test]
fn a_lease_is_released_again_after_it_was_read_again() {
    let mut member = member(Shard::ONLY);
    advance(&mut member, 100, &[]);
    let (record, _, _) = member.release(Timestamp::UNIX_EPOCH).expect("it is held");
    assert_eq!((record.holder.as_str(), record.duration_seconds), ("", RELEASED_SECONDS));
    assert!(member.release(Timestamp::UNIX_EPOCH).is_none(), "once");
    // A renewal that was cut off has been carried out before the release.
    member.observe(lease(Shard::ONLY, ME, 2_000_000, &[]), at(103));
    let (_, _, version) = member.release(Timestamp::UNIX_EPOCH).expect("it is still held");
    assert_eq!(version, "2000000");
    member.observe(lease(Shard::ONLY, "other_1", 2_000_001, &[]), at(103));
    assert!(member.release(Timestamp::UNIX_EPOCH).is_none(), "another one holds it");
}
