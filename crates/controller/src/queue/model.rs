//! The queue against a model that is too simple to be wrong.

use super::Queue;
use super::tests::Line;
use crate::urgency::{Emergency, Urgency};
use proptest::prelude::*;
use std::time::Duration;

/// The queue as one would write it down without a thought for its cost.
#[derive(Debug, Default)]
struct Model {
    waiting: Vec<Waiting>,
    in_flight: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    key: u8,
    asked: Option<(u64, bool)>,
    wake: Option<(u64, bool)>,
    priority: u8,
}

impl Waiting {
    fn due(&self) -> u64 {
        self.asked.into_iter().chain(self.wake).map(|(at, _)| at).min().expect("a reason to wait")
    }

    fn emergency(&self) -> bool {
        self.asked.into_iter().chain(self.wake).any(|(_, emergency)| emergency)
    }

    /// Emergency, priority at this moment, waiting time: the greatest is taken, of equals the smallest key.
    fn standing(&self, now: u64) -> (bool, u64, u64) {
        let waited = now - self.due();
        (self.emergency(), u64::from(self.priority) + waited, waited)
    }
}

impl Model {
    fn entry(&mut self, key: u8, priority: u8) -> &mut Waiting {
        let index = self.waiting.iter().position(|waiting| waiting.key == key).unwrap_or_else(|| {
            self.waiting.push(Waiting { key, asked: None, wake: None, priority });
            self.waiting.len() - 1
        });
        self.waiting[index].priority = priority;
        &mut self.waiting[index]
    }

    fn add(&mut self, key: u8, urgency: Urgency, due: u64) {
        let entry = self.entry(key, urgency.priority);
        let (at, emergency) = entry.asked.unwrap_or((due, urgency.is_emergency()));
        entry.asked = Some((at.min(due), emergency || urgency.is_emergency()));
    }

    fn eligible(&self) -> impl Iterator<Item = &Waiting> {
        self.waiting.iter().filter(|waiting| !self.in_flight.contains(&waiting.key))
    }

    fn due(&self, now: u64) -> Vec<&Waiting> {
        self.eligible().filter(|waiting| waiting.due() <= now).collect()
    }

    fn next(&mut self, now: u64) -> Option<u8> {
        let mut due = self.due(now);
        due.sort_by_key(|waiting| (std::cmp::Reverse(waiting.standing(now)), waiting.key));
        let key = due.first()?.key;
        self.waiting.retain(|waiting| waiting.key != key);
        self.in_flight.push(key);
        Some(key)
    }
}

#[derive(Clone, Debug)]
enum Step {
    Add { key: u8, urgency: Urgency, after: u64 },
    Wake { key: u8, urgency: Urgency, after: u64 },
    Next,
    Done(u8),
    Remove(u8),
    Pass(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = 0..6_u8;
    let urgency =
        (prop::bool::weighted(0.2), prop_oneof![0..=100_u8, 0..4_u8]).prop_map(|(is_emergency, priority)| {
            Urgency { emergency: if is_emergency { Emergency::Reclaim } else { Emergency::None }, priority }
        });
    let after = prop_oneof![Just(0), 0..8_u64, 0..150_u64];
    let step = prop_oneof![
        3 => (key.clone(), urgency.clone(), after.clone()).prop_map(|(key, urgency, after)| Step::Add { key, urgency, after }),
        2 => (key.clone(), urgency, after).prop_map(|(key, urgency, after)| Step::Wake { key, urgency, after }),
        3 => Just(Step::Next),
        2 => key.clone().prop_map(Step::Done),
        1 => key.prop_map(Step::Remove),
        2 => prop_oneof![0..4_u64, 0..120_u64].prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 1..120)
}

proptest! {
    #[test]
    fn it_does_what_the_model_does(steps in steps()) {
        let (line, mut queue, mut model, mut now) = (Line::new(), Queue::new(16), Model::default(), 0);
        for step in steps {
            match step {
                Step::Add { key, urgency, after } => {
                    queue.add(key, urgency, line.at(now + after));
                    model.add(key, urgency, now + after);
                }
                Step::Wake { key, urgency, after } => {
                    queue.wake(key, urgency, line.at(now + after));
                    model.entry(key, urgency.priority).wake = Some((now + after, urgency.is_emergency()));
                }
                Step::Next => prop_assert_eq!(queue.next(line.at(now)), model.next(now)),
                Step::Done(key) => {
                    queue.done(&key);
                    model.in_flight.retain(|other| *other != key);
                }
                Step::Remove(key) => {
                    queue.remove(&key);
                    model.waiting.retain(|waiting| waiting.key != key);
                }
                Step::Pass(seconds) => now += seconds,
            }
            let earliest = model.eligible().map(Waiting::due).min();
            prop_assert_eq!(queue.next_due(), earliest.map(|at| line.at(at)));
            prop_assert_eq!(queue.depth(line.at(now)), model.due(now).len());
            let oldest = earliest.filter(|due| *due <= now).map(|due| Duration::from_secs(now - due));
            prop_assert_eq!(queue.oldest_waiting(line.at(now)), oldest);
        }
    }
}
