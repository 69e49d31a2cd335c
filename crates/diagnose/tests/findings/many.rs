//! Fleets of thousands of machines.

use crate::fixtures::{capi_machine, failing, healthy, log};
use five_spot_diagnose::doctor::{FindingId, MachineFacts, examine};
use serde_json::{Value, json};

const MANY: usize = 2000;

fn named(mut object: Value, name: &str) -> Value {
    object["metadata"]["name"] = json!(name);
    object
}

/// All of them fail, each with a Machine, an event and a line in the log; as many Machines are left over.
#[test]
fn thousands_of_machines_are_judged() {
    let mut facts = healthy();
    let names: Vec<String> = (0..MANY).map(|number| format!("desk-{number}")).collect();
    let failed = failing("ReconcileFailed", "cordon Node desk-1: no answer within 30 s");
    facts.machines = names.iter().map(|name| MachineFacts::new(named(failed.clone(), name))).collect();
    facts.known = Some(names.iter().map(|name| format!("shop/{name}")).collect());
    facts.capi_machines = (0..2 * MANY)
        .map(|number| {
            let mut machine = named(capi_machine(), &format!("desk-{number}-machine"));
            machine["metadata"]["labels"]["5spot.finos.org/scheduled-machine"] =
                json!(format!("desk-{number}"));
            machine
        })
        .collect();
    facts.events = names
        .iter()
        .map(|name| {
            json!({"reason": "ReconcileFailed", "note": "no answer", "series": {"count": 7},
                "regarding": {"namespace": "shop", "name": name}})
        })
        .collect();
    if let Some(pods) = &mut facts.controller.pods {
        let lines = names.iter().take(2000);
        pods[0].log = lines
            .flat_map(|name| {
                log("Reconciliation error — requeuing with exponential back-off", &json!({"resource": name}))
            })
            .collect();
    }
    let report = examine(&facts);
    assert_eq!(report.checked, MANY);
    let count = |id: FindingId| report.findings.iter().filter(|finding| finding.id == id).count();
    assert_eq!((count(FindingId::BackingOff), count(FindingId::OrphanedMachine)), (MANY, MANY));
    let first = report.findings.iter().find(|finding| finding.object.name == "desk-7").expect("a finding");
    let words = first.evidence.join("\n");
    assert!(words.contains("(7 times)") && words.contains("log: "), "{words}");
}
