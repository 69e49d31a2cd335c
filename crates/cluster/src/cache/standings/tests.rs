//! Nobody is woken in vain, and no wake-up is lost.

use super::{Affected, Standing, Standings, Turn, object_name};
use crate::transport::key::ObjectKey;
use five_spot_core::MachineIdentity;
use five_spot_core::claim::{Waiter, first};
use jiff::Timestamp;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn machine(number: u8) -> MachineIdentity {
    MachineIdentity::of_lease(&format!("5spot-machine-{number:032x}")).expect("the name of a claim")
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("shop", name)
}

/// An object of the first machine that neither waits for it nor has it.
fn idle() -> Standing {
    Standing { machine: machine(0), turn: None, has_machine: false }
}

fn waits(priority: u8) -> Standing {
    Standing { turn: Some(Turn { priority, created_at: Timestamp::UNIX_EPOCH }), ..idle() }
}

fn lent() -> Standing {
    Standing { has_machine: true, ..idle() }
}

/// The names of those that are woken by notes, one after the other.
#[track_caller]
fn check(notes: &[(&str, Option<Standing>, &[&str])]) {
    let mut standings = Standings::default();
    for (number, (name, standing, expected)) in notes.iter().enumerate() {
        let woken = standings.note(&key(name), *standing);
        let woken: Vec<String> = names(&woken).iter().map(|key| (*key.name).to_owned()).collect();
        assert_eq!(woken, *expected, "note {number}: {name}");
    }
}

fn names(affected: &[Affected]) -> BTreeSet<ObjectKey> {
    affected.iter().flat_map(|one| one.waiting.iter().chain(&one.lent)).cloned().collect()
}

#[test]
fn one_that_begins_to_wait_decides_again() {
    check(&[("a", Some(waits(50)), &["a"]), ("b", Some(waits(50)), &["b"]), ("b", Some(waits(50)), &[])]);
}

#[test]
fn the_next_is_woken_when_the_first_waits_no_more() {
    let begin: [(&str, Option<Standing>, &[&str]); 3] =
        [("a", Some(waits(50)), &["a"]), ("b", Some(waits(50)), &["b"]), ("c", Some(waits(50)), &["c"])];
    // It closes, is deleted, or names another machine.
    let elsewhere = Standing { machine: machine(1), ..waits(50) };
    check(&[&begin[..], &[("a", Some(idle()), &["b"]), ("b", None, &["c"])]].concat());
    check(&[&begin[..], &[("a", Some(elsewhere), &["a", "b"]), ("c", None, &[])]].concat());
}

#[test]
fn a_new_priority_wakes_whoever_is_first_by_it() {
    check(&[
        ("a", Some(waits(50)), &["a"]),
        ("b", Some(waits(50)), &["b"]),
        ("c", Some(waits(50)), &["c"]),
        ("b", Some(waits(40)), &[]),
        ("a", Some(waits(45)), &["c"]),
    ]);
}

#[test]
fn all_waiters_are_woken_when_a_machine_is_gone() {
    check(&[
        ("z", Some(lent()), &[]),
        ("a", Some(waits(50)), &["a"]),
        ("b", Some(waits(50)), &["b"]),
        ("idle", Some(idle()), &[]),
        ("z", Some(idle()), &["a", "b"]),
    ]);
}

#[test]
fn those_that_are_lent_one_machine_report_each_other() {
    check(&[
        ("b", Some(lent()), &[]),
        ("c", Some(lent()), &["b"]),
        ("d", Some(lent()), &[]),
        ("c", None, &["b"]),
        ("a", Some(lent()), &["b", "d"]),
    ]);
}

#[test]
fn fifty_that_cannot_be_lent_wake_no_others() {
    let mut standings = Standings::default();
    for round in 0..50 {
        for number in 0..50 {
            let affected = standings.note(&key(&number.to_string()), Some(idle()));
            assert_eq!(affected, [], "object {number}, round {round}");
        }
    }
}

#[test]
fn fifty_that_begin_to_wait_wake_twice_as_many_at_most() {
    let mut standings = Standings::default();
    let mut woken = 0;
    // Each is to have the machine before all that waited until then.
    for number in 0..50 {
        woken += names(&standings.note(&key(&number.to_string()), Some(waits(number)))).len();
    }
    for number in (0..50).rev() {
        woken += names(&standings.note(&key(&number.to_string()), None)).len();
    }
    assert!(woken <= 100, "{woken}");
}

#[test]
fn a_hint_is_kept_until_the_change_of_its_object_is_noted() {
    let mut standings = Standings::default();
    standings.note(&key("a"), Some(waits(50)));
    standings.note(&key("b"), Some(waits(50)));
    standings.note(&key("idle"), Some(idle()));
    standings.retain(|_, _| false);
    assert_eq!(standings.objects(machine(0)).collect::<Vec<_>>(), [&key("a"), &key("b")]);
    assert_eq!(names(&standings.note(&key("a"), None)), [key("b")].into());
}

/// The standings as they are, without an index: what a decision reads.
type Model = BTreeMap<ObjectKey, Standing>;

fn of_machine(model: &Model, machine: MachineIdentity) -> impl Iterator<Item = (&ObjectKey, &Standing)> {
    model.iter().filter(move |(_, standing)| standing.machine == machine)
}

/// The other object that a decision about this one finds lent.
fn also_lent_by<'a>(model: &'a Model, object: &ObjectKey, standing: &Standing) -> Option<&'a ObjectKey> {
    let mut lent = of_machine(model, standing.machine).filter(|(other, _)| *other != object);
    lent.find(|(_, other)| other.has_machine).map(|(other, _)| other)
}

/// True if an object waits and would claim a free machine.
fn would_claim(model: &Model, object: &ObjectKey) -> bool {
    let Some(standing) = model.get(object).filter(|standing| standing.turn.is_some()) else { return false };
    let waiters: Vec<Waiter> = of_machine(model, standing.machine)
        .filter_map(|(object, standing)| Some(standing.turn?.waiter(object)))
        .collect();
    let is_first = first(&waiters).is_some_and(|waiter| waiter.object == object_name(object));
    is_first && also_lent_by(model, object, standing).is_none()
}

fn standing() -> impl Strategy<Value = Option<Standing>> {
    let turn = (0..3_u8, 0..3_i64).prop_map(|(priority, second)| Turn {
        priority,
        created_at: Timestamp::from_second(second).expect("a time"),
    });
    let standing = (0..2_u8, prop::option::of(turn), prop::bool::weighted(0.3));
    prop::option::weighted(
        0.8,
        standing.prop_map(|(number, turn, has_machine)| Standing {
            machine: machine(number),
            turn,
            has_machine,
        }),
    )
}

fn notes() -> impl Strategy<Value = Vec<(ObjectKey, Option<Standing>)>> {
    let object = ("[ab]", "[a-e]").prop_map(|(namespace, name)| ObjectKey::new(namespace, name));
    prop::collection::vec((object, standing()), 1..40)
}

proptest! {
    #[test]
    fn whoever_can_act_after_a_change_is_woken(notes in notes()) {
        let (mut standings, mut model) = (Standings::default(), Model::new());
        for (changed, standing) in notes {
            let before = model.clone();
            match standing {
                Some(standing) => model.insert(changed.clone(), standing),
                None => model.remove(&changed),
            };
            let woken = names(&standings.note(&changed, standing));
            for (object, standing) in &model {
                let former = before.get(object).filter(|former| former.machine == standing.machine);
                let waited = former.is_some_and(|former| former.turn.is_some());
                let could = waited && would_claim(&before, object);
                if would_claim(&model, object) && !could {
                    prop_assert!(woken.contains(object), "{object} can act, and sleeps");
                }
                if standing.turn.is_some() && !waited && *object == changed {
                    prop_assert!(woken.contains(object), "{object} has begun to wait");
                }
                let lent_by = |model| also_lent_by(model, object, standing);
                let concerned = standing.turn.is_some() || standing.has_machine;
                if concerned && *object != changed && lent_by(&before) != lent_by(&model) {
                    prop_assert!(woken.contains(object), "{object} waits for another object now, or reports another");
                }
            }
            for object in &woken {
                prop_assert!(model.contains_key(object), "{object} is gone");
            }
            if model.get(&changed) == before.get(&changed) {
                prop_assert!(woken.is_empty(), "nothing has changed for {woken:?}");
            }
        }
    }
}
