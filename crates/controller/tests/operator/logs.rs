//! The log of the play, read as the documents say.

use crate::fixture::OperatorFixture;
use crate::recorded_run::{machine, record, tenants};
use five_spot_apiserver::faults::{FaultRule, InjectedFault, RequestKind, Trigger};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

fn fields<'a>(lines: &'a [Value], message: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["fields"]["message"] == message).collect()
}

#[test]
fn every_line_has_the_documented_shape() {
    let lines = record().log.lines();
    for line in &lines {
        let members: Vec<&str> = line.as_object().expect("an object").keys().map(String::as_str).collect();
        assert_eq!(members, ["fields", "level", "span", "target", "timestamp"], "{line}");
        let _: jiff::Timestamp = line["timestamp"].as_str().expect("text").parse().expect("RFC 3339");
        assert!(line["span"]["object.ref"].is_string(), "{line}");
        if line["span"]["name"] == "reconcile" {
            let id = line["fields"]["reconcile_id"].as_str().expect("an id");
            let (object, number) = id.split_once('-').expect("two parts");
            let is_hex = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            assert!(object.len() == 12 && is_hex(object) && is_hex(number), "{id}");
            assert_eq!(line["fields"]["namespace"], "shop");
            assert!(line["fields"]["resource"].is_string(), "{line}");
        }
    }
}

#[test]
fn an_id_belongs_to_one_reconcile_which_begins_and_ends() {
    let lines = record().log.lines();
    let ids = |message| -> Vec<&str> {
        let found = fields(&lines, message);
        found.iter().map(|line| line["fields"]["reconcile_id"].as_str().expect("an id")).collect()
    };
    let (mut begun, mut ended) = (ids("Starting reconciliation"), ids("Reconciliation finished"));
    begun.sort_unstable();
    ended.sort_unstable();
    assert_eq!(begun, ended, "each that begins ends");
    assert_eq!(begun.iter().collect::<BTreeSet<_>>().len(), begun.len(), "no id is used twice");
}

#[test]
fn every_stable_message_is_logged_at_its_level() {
    let lines = record().log.lines();
    for (level, message) in [
        ("INFO", "Starting reconciliation"),
        ("INFO", "Reconciliation finished"),
        ("INFO", "Phase transition"),
        ("ERROR", "Reconciliation error — requeuing with exponential back-off"),
        ("ERROR", "Machine creation failed"),
        ("WARN", "Pod eviction blocked by PDB (HTTP 429)"),
        ("WARN", "event could not be published"),
        ("INFO", "Phase changed"),
        ("DEBUG", "Decided"),
        ("DEBUG", "API call"),
        ("TRACE", "Schedule evaluated"),
    ] {
        let found = fields(&lines, message);
        assert!(!found.is_empty(), "{message}");
        assert!(found.iter().all(|line| line["level"] == level), "{message} is {level}");
    }
    let warned =
        lines.iter().filter(|line| line["fields"]["reason"] == "RapidReReclaim" && line["level"] == "WARN");
    assert_eq!(warned.count(), 1);
}

#[test]
fn details_name_the_pod_the_call_and_the_reconcile() {
    let lines = record().log.lines();
    let evicts = |line: &&&Value| {
        line["fields"]["action"].as_str().is_some_and(|text| text.starts_with("evict pod shop/"))
    };
    assert!(fields(&lines, "Decided").iter().filter(evicts).count() > 2);
    let calls = fields(&lines, "API call");
    let refused =
        calls.iter().find(|line| line["fields"]["code"] == 429).expect("an eviction that was refused");
    assert_eq!(
        (&refused["fields"]["verb"], &refused["fields"]["subresource"]),
        (&json!("create"), &json!("eviction"))
    );
    assert_eq!(refused["fields"]["namespace"], "shop", "the object's, whatever the call was about");
    assert!(refused["fields"]["reconcile_id"].is_string(), "{refused}");
    assert!(calls.iter().any(|line| line["fields"]["verb"] == "watch" && line["span"]["name"] == ""));
}

#[test]
fn retries_count_from_zero_and_double_up_to_five_minutes() {
    let lines = record().log.lines();
    let of = |machine: &str| -> Vec<(u64, u64)> {
        let found = fields(&lines, "Reconciliation error — requeuing with exponential back-off");
        let numbers = |line: &&Value| {
            let number = |name: &str| line["fields"][name].as_u64().expect("a number");
            (number("retry_count"), number("backoff_secs"))
        };
        found.iter().filter(|line| line["fields"]["resource"] == machine).map(numbers).collect()
    };
    for machine in ["shift", "stuck"] {
        assert_eq!(of(machine)[..2], [(0, 30), (1, 60)], "{machine}");
    }
    assert_eq!(of("refused")[..6], [(0, 30), (1, 60), (2, 120), (3, 240), (4, 300), (5, 300)]);
    let refused = fields(&lines, "Machine creation failed");
    let error = refused[0]["fields"]["error"].as_str().expect("a cause");
    assert!(error.starts_with("CAPI operation failed: "), "{error}");
}

#[test]
fn transitions_are_logged_once_and_audited_with_a_cause() {
    let lines = record().log.lines();
    let pairs = |message, from: &str, to: &str| -> Vec<(Value, Value, Value)> {
        let triple = |line: &&Value| {
            (line["fields"]["resource"].clone(), line["fields"][from].clone(), line["fields"][to].clone())
        };
        fields(&lines, message).iter().map(triple).collect()
    };
    let said = pairs("Phase transition", "from_phase", "to_phase");
    let audited = pairs("Phase changed", "from", "to");
    assert_eq!(said, audited);
    let mut phases: BTreeMap<String, Value> = BTreeMap::new();
    for (machine, from, to) in said {
        let before = phases.insert(machine.to_string(), to);
        assert_eq!(from, before.unwrap_or_else(|| json!("None")), "{machine}: what ends is what began");
    }
    let causes: BTreeSet<(&str, &str)> = fields(&lines, "Phase changed")
        .iter()
        .map(|line| {
            (
                line["fields"]["to"].as_str().expect("a phase"),
                line["fields"]["cause"].as_str().expect("a cause"),
            )
        })
        .collect();
    for expected in [
        ("Active", "InWindow"),
        ("Inactive", "OutsideWindow"),
        ("Terminated", "KillSwitch"),
        ("Error", "DrainTimedOut"),
        ("Error", "ReconcileFailed"),
        ("Disabled", "EmergencyReclaimDisabledSchedule"),
        ("ShuttingDown", "Deletion"),
    ] {
        assert!(causes.contains(&expected), "{expected:?} in {causes:?}");
    }
    let schema: BTreeSet<&str> = [
        "message",
        "schema",
        "kind",
        "uid",
        "from",
        "to",
        "cause",
        "detail",
        "generation",
        "spec_changed_by",
        "reconcile_id",
        "resource",
        "namespace",
        "phase",
    ]
    .into();
    let released = fields(&lines, "Object released");
    let ends: BTreeSet<&str> =
        released.iter().map(|line| line["fields"]["resource"].as_str().expect("a name")).collect();
    assert_eq!(ends.len(), released.len(), "an object is let go once");
    assert!(ends.len() >= 2, "{ends:?}");
    let how: BTreeSet<(&str, &str)> = released
        .iter()
        .map(|line| {
            (
                line["fields"]["to"].as_str().expect("an end"),
                line["fields"]["cause"].as_str().expect("a cause"),
            )
        })
        .collect();
    assert_eq!(how, [("Gone", "Deletion"), ("Gone", "FinalizerCleanupTimedOut")].into());
    for line in fields(&lines, "Phase changed").into_iter().chain(released) {
        assert_eq!(line["target"], "audit");
        let members: BTreeSet<&str> =
            line["fields"].as_object().expect("an object").keys().map(String::as_str).collect();
        assert_eq!(members, schema);
        assert!(line["fields"]["generation"].as_i64().expect("a number") > 0);
        assert_ne!(line["fields"]["spec_changed_by"], "", "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_released_by_another_client_is_not_audited() {
    let mut world = OperatorFixture::new("info");
    world.lend(&machine("idle", &json!({"schedule": {"daysOfWeek": ["mon-sun"], "enabled": false}})));
    world.begin();
    world.phase("idle", "Disabled").await;
    world.faults.add(FaultRule {
        kind: RequestKind::Write,
        path: "/scheduledmachines/idle".to_owned(),
        trigger: Trigger::Between(jiff::Timestamp::MIN, jiff::Timestamp::MAX),
        fault: InjectedFault::Delay(std::time::Duration::from_secs(5)),
    });
    let from = world.clock.now();
    world.remove("idle").await;
    let path = "/apis/5spot.finos.org/v1alpha1/namespaces/shop/scheduledmachines/idle";
    let releases = |uri: &str| uri.split('?').next() == Some(path);
    let is_releasing =
        async || world.asked_since(from).iter().any(|asked| asked.method == "PATCH" && releases(&asked.uri));
    world.wait("the finalizer to be removed", is_releasing).await;
    world.patch(path, &json!({"metadata": {"finalizers": null}})).await;
    tokio::time::sleep(std::time::Duration::from_mins(1)).await;
    world.end().await;
    assert!(world.machines().await.is_empty());
    assert!(fields(&world.log.lines(), "Object released").is_empty());
}

/// The same that `jq -c 'select(PATH == VALUE)'` finds; `cargo xtask operator` asks the real one.
fn select<'a>(lines: &'a [Value], pointer: &str, value: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line.pointer(pointer).is_some_and(|found| found == value)).collect()
}

#[test]
fn the_documented_selections_find_their_lines() {
    let lines = record().log.lines();
    let id = fields(&lines, "Starting reconciliation")[0]["fields"]["reconcile_id"].as_str().expect("an id");
    for (pointer, value, at_least) in [
        ("/fields/resource", "shift", 100),
        ("/fields/reconcile_id", id, 2),
        ("/fields/to_phase", "Error", 2),
        ("/fields/phase", "EmergencyRemove", 3),
    ] {
        let found = select(&lines, pointer, value).len();
        assert!(found >= at_least, "{pointer} {value}: {found}");
    }
    // `contains` is an error of jq where there is no text.
    let named = |line: &&Value| line["span"]["object.ref"].as_str().expect("text").contains("shift");
    assert!(lines.iter().filter(named).count() >= 100);
    let of_refused = select(&lines, "/fields/resource", "refused");
    let fourth = of_refused.iter().find(|line| line["fields"]["retry_count"] == 3).expect("a fourth failure");
    assert_eq!(fourth["fields"]["backoff_secs"], 240);
    assert!(fourth["fields"]["error"].as_str().expect("a cause").starts_with("CAPI operation failed: "));
}

#[tokio::test(start_paused = true)]
async fn an_invalid_schedule_is_counted_as_an_error() {
    // As under a CRD that is older than the program: the API server lets everything through.
    let mut crd = serde_json::to_value(five_spot_api::crd()).expect("it is JSON");
    let spec = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    *spec = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let mut world = OperatorFixture::with_crd("info", &crd);
    world.lend(&machine(
        "mistaken",
        &json!({"schedule": {"daysOfWeek": ["monday-friday"], "hoursOfDay": ["9-16"]}}),
    ));
    world.begin();
    world.phase("mistaken", "Error").await;
    let lines = world.log.lines();
    let found = fields(&lines, "Failed to evaluate schedule");
    assert!(!found.is_empty() && found.iter().all(|line| line["level"] == "ERROR"), "{found:?}");
    let error = found[0]["fields"]["error"].as_str().expect("a cause");
    assert!(error.contains("spec.schedule.daysOfWeek") && error.contains("monday-friday"), "{error}");
    let page = world.metrics.page();
    for series in
        [r#"schedule_evaluations_total{result="failure"}"#, r#"errors_total{error_type="ScheduleError"}"#]
    {
        let count: f64 = page
            .lines()
            .find_map(|line| line.strip_prefix(&format!("fivespot_{series} ")))
            .expect(series)
            .parse()
            .expect("a number");
        assert!(count >= 1.0, "{series}");
    }
    world.end().await;
}

#[test]
fn the_span_says_why_an_object_is_reconciled() {
    let lines = record().log.lines();
    let reasons: BTreeSet<&str> = fields(&lines, "Starting reconciliation")
        .iter()
        .map(|line| line["span"]["object.reason"].as_str().expect("a reason"))
        .collect();
    for expected in [
        "object updated",
        "related object updated: Machine",
        "related object updated: Node",
        "related object updated: Pod",
        "related object updated: provider object",
        "reconciler requested retry",
    ] {
        assert!(reasons.contains(expected), "{expected} in {reasons:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_forced_reconcile_comes_at_once_and_goes_on_counting() {
    let mut world = OperatorFixture::new("info");
    world.faults.add(FaultRule {
        kind: RequestKind::Write,
        path: "/remotemachines/a-infra".to_owned(),
        trigger: Trigger::Between(jiff::Timestamp::MIN, jiff::Timestamp::MAX),
        fault: InjectedFault::Refuse(http::StatusCode::UNPROCESSABLE_ENTITY, None),
    });
    world.lend(&machine("a", &json!({})));
    world.begin();
    let retries = |world: &OperatorFixture| -> Vec<(i64, i64)> {
        let number = |value: &Value| value.as_i64().expect("a number");
        let lines = world.log.lines();
        fields(&lines, "Reconciliation error — requeuing with exponential back-off")
            .iter()
            .map(|line| (number(&line["fields"]["retry_count"]), number(&line["fields"]["backoff_secs"])))
            .collect()
    };
    world.until(0, "09:10:00").await;
    assert_eq!(retries(&world), [(0, 30), (1, 60), (2, 120), (3, 240), (4, 300)]);
    let path = "/apis/5spot.finos.org/v1alpha1/namespaces/shop/scheduledmachines/a";
    let force =
        |value: &str| json!({"metadata": {"annotations": {"5spot.finos.org/force-reconcile": value}}});
    for value in ["1763200000", "1763200001"] {
        world.patch(path, &force(value)).await;
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    }
    assert_eq!(retries(&world)[5..], [(5, 300), (6, 300)], "each value forces one attempt");
    world.faults.clear();
    world.patch(path, &force("1763200002")).await;
    world.phase("a", "Active").await;
    assert_eq!(retries(&world).len(), 7, "and this one succeeded");
    world.end().await;
}

/// A world with a machine whose pods are held by a budget, and whose drain ends by force after a minute. From ten o'clock on
/// writes to a path are refused.
async fn forced_drain_refusing(path: &str) -> OperatorFixture {
    let mut world = OperatorFixture::new("info");
    let force = json!({"drain": {"onTimeout": "Force"}, "gracefulShutdownTimeout": "1m"});
    world.lend(&machine("forced", &force));
    tenants(&world, "forced", 0);
    world.begin();
    world.until(0, "10:00:00").await;
    assert_eq!(world.status("forced").await["phase"], "Active");
    world.faults.add(FaultRule {
        kind: RequestKind::Write,
        path: path.to_owned(),
        trigger: Trigger::Between(jiff::Timestamp::MIN, jiff::Timestamp::MAX),
        fault: InjectedFault::Refuse(http::StatusCode::FORBIDDEN, None),
    });
    world
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_refused_is_not_said_to_be_published() {
    let mut world = forced_drain_refusing("/namespaces/shop/events").await;
    world.change("forced", &json!({"schedule": {"enabled": false}})).await;
    world.phase("forced", "Disabled").await;
    let lines = world.log.lines();
    let refused = fields(&lines, "event could not be published");
    assert!(refused.iter().any(|line| line["fields"]["reason"] == "DrainForced"), "{refused:?}");
    assert!(fields(&lines, "Published event DrainForced").is_empty());
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_forced_drain_is_audited_although_the_status_is_refused() {
    let mut world = forced_drain_refusing("/scheduledmachines/forced/status").await;
    world.remove("forced").await;
    world.wait("the object to be gone", async || world.machines().await.is_empty()).await;
    let lines = world.log.lines();
    let audited = fields(&lines, "Drain forced");
    assert_eq!(audited.len(), 1, "{audited:?}");
    let detail = audited[0]["fields"]["detail"].as_str().expect("a detail");
    assert!(detail.contains("2 pods on its node"), "{detail}");
    let is_warning = |line: &&Value| line["fields"]["reason"] == "DrainForced" && line["level"] == "WARN";
    assert_eq!(lines.iter().filter(is_warning).count(), 1);
    world.end().await;
}
