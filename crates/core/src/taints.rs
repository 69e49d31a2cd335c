//! Reconciliation of the taints of a Node: a three-way comparison of the taints that the spec wants, those that 5-Spot has
//! set, and those on the Node.

use crate::world::TaintId;
use five_spot_api::NodeTaint;
use std::collections::BTreeSet;

/// The desired taints of a Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taints {
    /// All taints, including those of others.
    pub taints: Vec<NodeTaint>,
    /// The taints that 5-Spot owns, sorted.
    pub owned: Vec<TaintId>,
    /// The wanted taints that someone else has set, with the same key and effect.
    pub conflicts: Vec<TaintId>,
}

/// Compares `wanted` with the taints of the Node, `live`, of which 5-Spot owns `owned`.
///
/// The taints of others stay unchanged and in their order. Owned taints that are no longer wanted are removed, changed values
/// are restored, and missing taints are added again. A wanted taint that someone else has set is a conflict and stays
/// unchanged.
pub fn reconcile(wanted: &[NodeTaint], owned: &[TaintId], live: &[NodeTaint]) -> Taints {
    let ours: BTreeSet<&TaintId> = owned.iter().collect();
    let mut taints = Vec::with_capacity(live.len() + wanted.len());
    let mut conflicts = Vec::new();
    let mut now_owned = BTreeSet::new();
    for taint in live {
        let id = TaintId::from(taint);
        let desired = wanted.iter().find(|desired| TaintId::from(*desired) == id);
        match (ours.contains(&id), desired) {
            (true, Some(desired)) => {
                taints.push(desired.clone());
                now_owned.insert(id);
            }
            (true, None) => {}
            (false, Some(_)) => {
                taints.push(taint.clone());
                conflicts.push(id);
            }
            (false, None) => taints.push(taint.clone()),
        }
    }
    for desired in wanted {
        let id = TaintId::from(desired);
        if !now_owned.contains(&id) && !conflicts.contains(&id) {
            taints.push(desired.clone());
            now_owned.insert(id);
        }
    }
    Taints { taints, owned: now_owned.into_iter().collect(), conflicts }
}

#[cfg(test)]
mod tests {
    use super::*;
    use five_spot_api::TaintEffect;
    use proptest::prelude::*;

    fn taint(text: &str) -> NodeTaint {
        let (rest, effect) = text.split_once(':').unwrap();
        let (key, value) =
            rest.split_once('=').map_or((rest, None), |(key, value)| (key, Some(value.to_owned())));
        let effect = TaintEffect::ALL.into_iter().find(|candidate| candidate.as_str() == effect).unwrap();
        NodeTaint { key: key.to_owned(), value, effect }
    }

    fn taints(list: &[&str]) -> Vec<NodeTaint> {
        list.iter().map(|text| taint(text)).collect()
    }

    fn ids(list: &[&str]) -> Vec<TaintId> {
        list.iter().map(|text| TaintId::from(&taint(text))).collect()
    }

    struct Case<'a> {
        wanted: &'a [&'a str],
        owned: &'a [&'a str],
        live: &'a [&'a str],
        becomes: &'a [&'a str],
        ours: &'a [&'a str],
        conflicts: &'a [&'a str],
    }

    #[track_caller]
    fn check(case: &Case<'_>) {
        let result = reconcile(&taints(case.wanted), &ids(case.owned), &taints(case.live));
        assert_eq!(result.taints, taints(case.becomes));
        assert_eq!(result.owned, ids(case.ours));
        assert_eq!(result.conflicts, ids(case.conflicts));
    }

    const NONE: Case<'_> =
        Case { wanted: &[], owned: &[], live: &[], becomes: &[], ours: &[], conflicts: &[] };

    #[test]
    fn without_wanted_taints_nothing_changes() {
        check(&NONE);
        check(&Case { live: &["theirs:NoExecute"], becomes: &["theirs:NoExecute"], ..NONE });
    }

    #[test]
    fn wanted_taints_are_added_after_the_others() {
        check(&Case {
            wanted: &["a=1:NoSchedule"],
            live: &["theirs:NoExecute"],
            becomes: &["theirs:NoExecute", "a=1:NoSchedule"],
            ours: &["a:NoSchedule"],
            ..NONE
        });
    }

    #[test]
    fn correct_taints_stay() {
        check(&Case {
            wanted: &["a=1:NoSchedule"],
            owned: &["a:NoSchedule"],
            live: &["a=1:NoSchedule", "theirs:NoExecute"],
            becomes: &["a=1:NoSchedule", "theirs:NoExecute"],
            ours: &["a:NoSchedule"],
            ..NONE
        });
    }

    #[test]
    fn a_changed_value_is_restored() {
        check(&Case {
            wanted: &["a=2:NoSchedule"],
            owned: &["a:NoSchedule"],
            live: &["a=1:NoSchedule"],
            becomes: &["a=2:NoSchedule"],
            ours: &["a:NoSchedule"],
            ..NONE
        });
    }

    #[test]
    fn unwanted_taints_are_removed_and_missing_ones_added() {
        check(&Case { owned: &["a:NoSchedule"], live: &["a=1:NoSchedule"], ..NONE });
        check(&Case {
            wanted: &["a=1:NoSchedule"],
            owned: &["a:NoSchedule"],
            becomes: &["a=1:NoSchedule"],
            ours: &["a:NoSchedule"],
            ..NONE
        });
    }

    #[test]
    fn a_foreign_taint_is_a_conflict_even_with_the_same_value() {
        check(&Case {
            wanted: &["a=1:NoSchedule", "b:NoExecute"],
            live: &["a=1:NoSchedule"],
            becomes: &["a=1:NoSchedule", "b:NoExecute"],
            ours: &["b:NoExecute"],
            conflicts: &["a:NoSchedule"],
            ..NONE
        });
    }

    #[test]
    fn another_effect_is_another_taint() {
        check(&Case {
            wanted: &["a:NoSchedule"],
            live: &["a:NoExecute"],
            becomes: &["a:NoExecute", "a:NoSchedule"],
            ours: &["a:NoSchedule"],
            ..NONE
        });
    }

    fn some_taints() -> impl Strategy<Value = Vec<NodeTaint>> {
        let taint = ("[ab]", proptest::option::of("[12]"), 0..2_usize)
            .prop_map(|(key, value, effect)| NodeTaint { key, value, effect: TaintEffect::ALL[effect] });
        proptest::collection::vec(taint, 0..4).prop_map(|mut taints| {
            taints.sort_by_key(|taint| TaintId::from(taint));
            taints.dedup_by_key(|taint| TaintId::from(&*taint));
            taints
        })
    }

    proptest! {
        #[test]
        fn foreign_taints_stay_and_a_second_run_changes_nothing(
            wanted in some_taints(), owned in some_taints(), live in some_taints()
        ) {
            let owned: Vec<TaintId> = owned.iter().map(TaintId::from).collect();
            let result = reconcile(&wanted, &owned, &live);
            let foreign = |taint: &&NodeTaint| !owned.contains(&TaintId::from(*taint));
            let before: Vec<&NodeTaint> = live.iter().filter(foreign).collect();
            let after: Vec<&NodeTaint> =
                result.taints.iter().filter(|taint| !result.owned.contains(&TaintId::from(*taint))).collect();
            prop_assert_eq!(before, after);
            let again = reconcile(&wanted, &result.owned, &result.taints);
            prop_assert_eq!(again, result);
        }
    }
}
