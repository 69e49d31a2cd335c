//! A table of worlds and their explanations. The worlds are those of the lifecycle scenarios of `core`, in the same small
//! simulated cluster, so that an explanation is tested on the decisions that the controller makes.

#[path = "../../../core/tests/lifecycle/simulation/mod.rs"]
#[allow(dead_code, unreachable_pub, reason = "shared with the lifecycle tests of core, which use all of it")]
mod simulation;
mod worlds;

use five_spot_core::{InvalidSpec, ValidSpec};
use five_spot_diagnose::explain::{Blocker, Explanation, Remedy, Subject, explain};
use simulation::Simulation;
use std::collections::BTreeSet;
use std::fmt::Write as _;

fn explained(simulation: &Simulation) -> Explanation {
    let decision = simulation.decide();
    let parsed = ValidSpec::parse(&simulation.spec);
    let invalid = parsed.as_ref().err().map(|errors| InvalidSpec::new(&simulation.spec, errors.clone()));
    let spec = match (&parsed, &invalid) {
        (Ok(spec), _) => Ok(spec),
        (Err(_), Some(invalid)) => Err(invalid),
        (Err(_), None) => unreachable!("an invalid spec has errors"),
    };
    explain(&Subject { spec, world: &simulation.world, decision: &decision, now: simulation.now })
}

/// The explanation as lines that are easy to compare.
fn lines(name: &str, explanation: &Explanation) -> String {
    let mut text = format!("## {name}\n");
    let wanted = if explanation.wanted { "wanted" } else { "not wanted" };
    let _ = writeln!(text, "{}, {wanted}: {}", explanation.phase, explanation.because);
    for (what, value) in [("machine", &explanation.machine), ("node", &explanation.node)] {
        if let Some(value) = value {
            let _ = writeln!(text, "  {what} {value}");
        }
    }
    for next in &explanation.next {
        let _ = writeln!(text, "  next {} {}", next.at, next.what);
    }
    for Blocker { what, evidence, fix } in &explanation.blockers {
        let _ = writeln!(text, "  blocked: {what}");
        for line in evidence {
            let _ = writeln!(text, "    - {line}");
        }
        for remedy in fix {
            let mark = if matches!(remedy, Remedy::Advice(_)) { '*' } else { '>' };
            let _ = writeln!(text, "    {mark} {}", remedy.text());
        }
    }
    for action in &explanation.would_do {
        let _ = writeln!(text, "  would {action}");
    }
    text
}

#[test]
fn every_world_has_the_expected_explanation() {
    let worlds = worlds::all();
    assert!(worlds.len() >= 60, "{}", worlds.len());
    let names: BTreeSet<&str> = worlds.iter().map(|(name, _)| *name).collect();
    assert_eq!(names.len(), worlds.len(), "every name is given once");
    let all: Vec<String> = worlds.iter().map(|(name, world)| lines(name, &explained(world))).collect();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn the_table_has_every_phase_and_every_kind_of_blocker() {
    let all: Vec<Explanation> = worlds::all().iter().map(|(_, world)| explained(world)).collect();
    for phase in five_spot_api::Phase::ALL {
        assert!(all.iter().any(|explanation| explanation.phase == phase), "{phase}");
    }
    for explanation in &all {
        let sorted = explanation.next.is_sorted_by_key(|next| next.at);
        assert!(sorted, "{explanation:?}");
        for blocker in &explanation.blockers {
            assert!(!blocker.evidence.is_empty(), "{blocker:?}");
        }
    }
}

/// Commands can be pasted as they are, and words are no commands.
#[test]
fn commands_and_advice_are_told_apart() {
    for (name, world) in worlds::all() {
        for remedy in explained(&world).blockers.iter().flat_map(|blocker| &blocker.fix) {
            let text = remedy.text();
            let is_command = text.starts_with("kubectl ") || text.starts_with("5spot ");
            match remedy {
                Remedy::Advice(_) => assert!(!text.contains("kubectl "), "{name}: {text}"),
                Remedy::Command(_) | Remedy::WorkloadCommand(_) => {
                    assert!(is_command && !text.contains(": ") && !text.contains(';'), "{name}: {text}");
                    assert_eq!(text.matches('\'').count() % 2, 0, "{name}: {text}");
                }
            }
        }
    }
}

#[test]
fn flags_of_the_caller_are_kept() {
    let (_, world) = worlds::all()
        .into_iter()
        .find(|(_, world)| {
            explained(world)
                .blockers
                .iter()
                .any(|blocker| blocker.fix.iter().any(|fix| matches!(fix, Remedy::Command(_))))
        })
        .expect("a world");
    let explanation = explained(&world).with_flags("--context lab");
    for remedy in explanation.blockers.iter().flat_map(|blocker| &blocker.fix) {
        let is_for_here = matches!(remedy, Remedy::Command(_));
        assert_eq!(remedy.text().contains("--context lab"), is_for_here, "{remedy:?}");
    }
}

/// Without the kubeconfig of a workload cluster, the Node is in the cluster that the flags lead to.
#[test]
fn a_command_for_another_cluster_needs_another_cluster() {
    for (name, world) in worlds::all() {
        let is_here = world.world.workload.cluster().secret_name.is_none();
        let explanation = explained(&world);
        let fixes: Vec<&Remedy> = explanation.blockers.iter().flat_map(|blocker| &blocker.fix).collect();
        let elsewhere = fixes.iter().any(|fix| matches!(fix, Remedy::WorkloadCommand(_)));
        assert!(!(is_here && elsewhere), "{name}: {fixes:#?}");
    }
}

/// The phase, the demand and the Machine are those of the decision itself.
#[test]
fn an_explanation_agrees_with_the_decision() {
    for (name, world) in worlds::all() {
        let (explanation, decision) = (explained(&world), world.decide());
        assert_eq!(Some(explanation.phase), decision.status.phase, "{name}");
        let scheduled = decision.status.conditions.iter().find(|condition| condition.type_ == "Scheduled");
        assert_eq!(
            explanation.wanted,
            scheduled.is_some_and(|condition| condition.status == "True"),
            "{name}"
        );
        assert_eq!(explanation.machine.is_some(), world.world.machine.ours().is_some(), "{name}");
        assert_eq!(explanation.would_do.len(), decision.actions.len(), "{name}");
    }
}

/// The reader may lack permissions that the controller has, or sit behind another firewall.
#[test]
fn what_only_the_reader_cannot_see_is_no_fault_of_the_machine() {
    for world in worlds::seen_by_a_stranger() {
        let explanation = explained(&world);
        assert_eq!(explanation.phase, five_spot_api::Phase::Active, "as reported: {explanation:#?}");
        assert_eq!(explanation.would_do, [""; 0]);
        let [blocker] = explanation.blockers.as_slice() else { panic!("{explanation:#?}") };
        assert!(blocker.what.starts_with("with your kubeconfig only a part"), "{blocker:#?}");
        assert!(blocker.evidence[1].contains("Ready=True/NodeReady"), "{blocker:#?}");
        assert!(blocker.fix.iter().all(|fix| matches!(fix, Remedy::Advice(_))), "{blocker:#?}");
    }
}

#[test]
fn the_json_has_the_documented_shape() {
    let (_, world) =
        worlds::all().into_iter().find(|(name, _)| *name == "drain: a budget blocks").expect("a world");
    let json = serde_json::to_value(explained(&world)).expect("JSON");
    let keys: Vec<&str> = json.as_object().expect("an object").keys().map(String::as_str).collect();
    let documented =
        ["because", "blockers", "machine", "name", "namespace", "next", "node", "phase", "wanted", "wouldDo"];
    assert_eq!(keys.iter().copied().collect::<BTreeSet<_>>(), documented.into_iter().collect());
    assert!(
        json["wanted"].is_boolean()
            && json["next"][0]["at"].is_string()
            && json["next"][0]["what"].is_string()
    );
    let blocker = &json["blockers"][0];
    assert!(
        blocker["what"].is_string() && blocker["evidence"][0].is_string() && blocker["fix"][0].is_string()
    );
}
