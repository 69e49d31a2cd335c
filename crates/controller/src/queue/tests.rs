//! The guarantees of the queue, case by case.

use super::{Queue, Tenant};
use crate::urgency::{Emergency, Urgency};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The time line of a test: whole seconds after a moment that is the same throughout.
#[derive(Clone, Copy)]
pub(super) struct Line(Instant);

impl Line {
    pub(super) fn new() -> Self {
        Self(Instant::now())
    }

    pub(super) fn at(self, seconds: u64) -> Instant {
        self.0 + Duration::from_secs(seconds)
    }
}

const fn calm(priority: u8) -> Urgency {
    Urgency { emergency: Emergency::None, priority }
}

const fn emergency(priority: u8) -> Urgency {
    Urgency { emergency: Emergency::Reclaim, priority }
}

/// All of one tenant.
impl Tenant for u8 {
    fn tenant(&self) -> Arc<str> {
        "".into()
    }
}

impl Tenant for u32 {
    fn tenant(&self) -> Arc<str> {
        "".into()
    }
}

/// A tenant stands before the dot; without one it is nobody's.
impl Tenant for &'static str {
    fn tenant(&self) -> Arc<str> {
        self.split_once('.').map_or("", |(tenant, _)| tenant).into()
    }
}

/// Takes and finishes everything that is due, in order.
fn drain(queue: &mut Queue<&'static str>, now: Instant) -> Vec<&'static str> {
    let taken: Vec<_> = std::iter::from_fn(|| queue.next(now)).collect();
    for key in &taken {
        queue.done(key);
    }
    taken
}

#[test]
fn the_order_is_emergency_then_priority_then_due_time_then_key() {
    let (line, mut queue) = (Line::new(), Queue::new(16));
    queue.add("b-same", calm(50), line.at(10));
    queue.add("a-same", calm(50), line.at(10));
    queue.add("sooner", calm(50), line.at(9));
    queue.add("important", calm(60), line.at(10));
    queue.add("emergency", emergency(0), line.at(10));
    queue.add("important-emergency", emergency(90), line.at(10));
    let expected = ["important-emergency", "emergency", "important", "sooner", "a-same", "b-same"];
    assert_eq!(drain(&mut queue, line.at(10)), expected);
}

#[test]
fn a_priority_rises_by_one_point_a_second() {
    for (waited, first) in [(49, "high"), (50, "low"), (51, "low")] {
        let (line, mut queue) = (Line::new(), Queue::new(16));
        queue.add("low", calm(0), line.at(0));
        queue.add("high", calm(50), line.at(waited));
        assert_eq!(queue.next(line.at(waited)), Some(first), "after {waited} s");
    }
}

/// The bound that docs/lifecycle.md states.
#[test]
fn the_lowest_priority_waits_at_most_100_s() {
    let (line, mut queue) = (Line::new(), Queue::new(1));
    queue.add(0_u32, calm(0), line.at(0));
    (0..200).for_each(|second| queue.add(second + 1, calm(100), line.at(second.into())));
    let mut before = Vec::new();
    while let Some(key) = queue.next(line.at(200)).filter(|key| *key != 0) {
        queue.done(&key);
        before.push(key - 1);
    }
    assert_eq!(before, (0..100).collect::<Vec<u32>>(), "those that became due in the first 100 s");
}

#[test]
fn an_emergency_goes_first_however_long_the_others_have_waited() {
    let (line, mut queue) = (Line::new(), Queue::new(16));
    queue.add("old", calm(100), line.at(0));
    queue.add("emergency", emergency(0), line.at(100_000));
    assert_eq!(drain(&mut queue, line.at(100_000)), ["emergency", "old"]);
}

#[test]
fn nothing_is_taken_before_it_is_due() {
    let (line, mut queue) = (Line::new(), Queue::new(16));
    queue.add("boundary", emergency(100), line.at(10));
    assert_eq!(queue.next(line.at(9)), None);
    assert_eq!((queue.depth(line.at(9)), queue.oldest_waiting(line.at(9))), (0, None));
    assert_eq!(queue.next_due(), Some(line.at(10)));
    assert_eq!(
        (queue.depth(line.at(12)), queue.oldest_waiting(line.at(12))),
        (1, Some(Duration::from_secs(2)))
    );
    assert_eq!(queue.next(line.at(10)), Some("boundary"));
    assert_eq!(queue.next_due(), None);
}

#[test]
fn a_waiting_key_is_raised_and_never_doubled() {
    let (line, mut queue) = (Line::new(), Queue::new(16));
    queue.add("key", emergency(80), line.at(100));
    queue.add("key", calm(10), line.at(5));
    queue.add("key", calm(10), line.at(50));
    queue.add("other", calm(100), line.at(5));
    assert_eq!(drain(&mut queue, line.at(5)), ["key", "other"]);
    assert_eq!(drain(&mut queue, line.at(1000)), [""; 0], "taking it has answered all three requests");
}

#[test]
fn the_newest_priority_counts_even_if_it_is_lower() {
    let (line, mut queue) = (Line::new(), Queue::new(16));
    queue.add("busy", calm(100), line.at(0));
    queue.add("key", calm(60), line.at(0));
    queue.add("other", calm(50), line.at(0));
    assert_eq!(queue.next(line.at(0)), Some("busy"));
    queue.add("key", calm(40), line.at(0));
    assert_eq!(drain(&mut queue, line.at(0)), ["other", "key"]);
}

#[test]
fn a_key_in_flight_is_not_taken_again_until_it_is_done() {
    let (line, mut queue) = (Line::new(), Queue::new(16));
    queue.add("key", calm(50), line.at(0));
    assert_eq!(queue.next(line.at(0)), Some("key"));
    queue.add("key", emergency(50), line.at(0));
    assert_eq!((queue.next(line.at(1)), queue.next_due(), queue.depth(line.at(1))), (None, None, 0));
    queue.done(&"key");
    assert_eq!((queue.next_due(), queue.depth(line.at(1))), (Some(line.at(0)), 1));
    assert_eq!(queue.next(line.at(1)), Some("key"));
}

#[test]
fn a_wake_up_replaces_the_one_before_and_leaves_requests_alone() {
    let (line, mut queue) = (Line::new(), Queue::new(16));
    queue.wake("key", calm(50), line.at(10));
    queue.wake("key", calm(50), line.at(90));
    assert_eq!((queue.next(line.at(10)), queue.next_due()), (None, Some(line.at(90))));
    queue.add("key", calm(50), line.at(20));
    queue.wake("key", calm(50), line.at(200));
    assert_eq!(queue.next_due(), Some(line.at(20)));
    assert_eq!(queue.next(line.at(20)), Some("key"));
    queue.wake("key", calm(50), line.at(60));
    queue.done(&"key");
    assert_eq!(queue.next_due(), Some(line.at(60)));
}

#[test]
fn a_wake_up_that_was_due_and_is_put_off_is_no_longer_taken() {
    let (line, mut queue) = (Line::new(), Queue::new(16));
    queue.wake("key", calm(0), line.at(10));
    queue.add("other", calm(100), line.at(10));
    assert_eq!(queue.next(line.at(10)), Some("other"));
    queue.wake("key", calm(0), line.at(30));
    assert_eq!((queue.next(line.at(10)), queue.depth(line.at(10))), (None, 0));
    assert_eq!(queue.next(line.at(30)), Some("key"));
}

#[test]
fn a_removed_key_in_flight_still_has_to_be_done() {
    let (line, mut queue) = (Line::new(), Queue::new(16));
    queue.add("gone", calm(50), line.at(0));
    queue.remove(&"gone");
    assert_eq!((queue.next(line.at(0)), queue.next_due()), (None, None));
    queue.add("key", calm(50), line.at(0));
    assert_eq!(queue.next(line.at(0)), Some("key"));
    queue.remove(&"key");
    queue.add("key", calm(50), line.at(0));
    assert_eq!(queue.next(line.at(0)), None, "its namesake is still being worked on");
    queue.done(&"key");
    assert_eq!(queue.next(line.at(0)), Some("key"));
    queue.done(&"key");
    queue.done(&"never seen");
    queue.remove(&"never seen");
    assert!(queue.keys.is_empty(), "nothing is remembered of keys that nobody asks for");
}

#[test]
fn ten_thousand_keys_are_taken_in_order() {
    let (line, mut queue) = (Line::new(), Queue::new(16));
    // A permutation of the keys, so that neither the order of the keys nor that of the requests gives the result.
    let keys = (0..10_000_u32).map(|index| index * 7919 % 10_000);
    for key in keys {
        queue.add(key, calm(u8::try_from(key % 101).unwrap_or(0)), line.at(u64::from(key / 101)));
    }
    let now = line.at(200);
    assert_eq!(queue.depth(now), 10_000);
    let mut before = None;
    for left in (0..10_000).rev() {
        let key = queue.next(now).expect("one that is due");
        let place = (i64::from(key / 101) - i64::from(key % 101), key / 101, key);
        assert!(before < Some(place), "{key} came too late");
        before = Some(place);
        assert_eq!(queue.depth(now), left);
        assert!(queue.next_due().is_some() || left == 0);
    }
}

#[test]
fn many_urgent_objects_leave_other_tenants_their_share() {
    let (line, mut queue) = (Line::new(), Queue::new(4));
    for key in ["greedy.1", "greedy.2", "greedy.3", "greedy.4", "greedy.5"] {
        queue.add(key, calm(100), line.at(0));
    }
    let now = line.at(1);
    assert_eq!([queue.next(now), queue.next(now)], [Some("greedy.1"), Some("greedy.2")]);
    queue.add("modest.1", calm(0), line.at(1));
    assert_eq!(queue.next(now), Some("modest.1"), "two of four are the share of one of two");
    assert_eq!(queue.next(now), Some("greedy.3"), "what nobody else wants may be taken");
    queue.add("modest.2", emergency(0), line.at(1));
    queue.add("greedy.6", emergency(100), line.at(1));
    assert_eq!(queue.next_emergency_of(now, |_| true), Some("modest.2"), "also among emergencies");
    assert_eq!(queue.next_emergency_of(now, |_| true), Some("greedy.6"));
    assert_eq!(queue.next_emergency_of(now, |_| true), None);
    for key in ["greedy.1", "greedy.2", "greedy.3", "greedy.6"] {
        queue.done(&key);
    }
    queue.add("modest.3", calm(0), line.at(1));
    assert_eq!(queue.next(now), Some("greedy.4"), "whoever has nothing in flight competes by urgency");
}

#[test]
fn a_tenant_without_room_waits_and_delays_no_other() {
    let (line, mut queue) = (Line::new(), Queue::new(4));
    let now = line.at(0);
    queue.add("greedy.1", emergency(100), now);
    queue.add("modest.1", calm(0), now);
    let has_room = |tenant: &str| tenant != "greedy";
    assert_eq!(queue.next_emergency_of(now, has_room), None);
    assert_eq!(queue.next_of(now, has_room), Some("modest.1"));
    assert_eq!(queue.next_of(now, has_room), None);
    assert_eq!(queue.next_due_after(now), None, "what is due waits for room, not for time");
    assert_eq!(queue.next_emergency_due_after(now), None);
    queue.add("modest.2", calm(0), line.at(5));
    queue.add("greedy.2", emergency(0), line.at(7));
    assert_eq!(queue.next_due_after(now), Some(line.at(5)));
    assert_eq!(queue.next_emergency_due_after(now), Some(line.at(7)));
    assert_eq!(queue.next_emergency_of(now, |_| true), Some("greedy.1"), "when there is room");
}
