//! The requests of the doctor, and its text.

use super::fixture::{DoctorFixture, START, fleet, machine};
use crate::doctor::{AnswerFormat, heading, text};
use crate::style::{Charset, Style};
use serde_json::json;
use std::time::Duration;

pub(super) const PLAIN: Style = Style { width: 100, charset: Charset::Unicode, colored: false };

#[tokio::test(start_paused = true)]
async fn nothing_is_changed_and_few_requests_are_sent() {
    let machines = (0..300)
        .map(|number| machine(&format!("desk-{number}"), &json!({"schedule": {"daysOfWeek": ["sun"]}})));
    let world = DoctorFixture::without_controller(START, &fleet(machines.collect())).await;
    let report = world.report().await;
    assert_eq!(report.checked, 300);
    let requests = world.requests.lock().expect("nobody panics with it").clone();
    assert!(requests.len() < 25, "{}: {requests:#?}", requests.len());
    for request in &requests {
        assert!(request.starts_with("GET ") && !request.contains("watch=true"), "{request}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_report_is_short_if_nothing_is_wrong() {
    let paused = "kubectl annotate scheduledmachine desk -n shop 5spot.finos.org/paused=true";
    let off = json!({"schedule": {"daysOfWeek": ["mon-sun"], "enabled": false}});
    let world =
        DoctorFixture::new(START, fleet(vec![machine("desk", &json!({})), machine("spare", &off)])).await;
    world.phase("desk", "Active").await;
    world.run(paused).await;
    world.run("kubectl patch scheduledmachine desk -n shop --type=merge -p '{\"spec\":{\"killSwitch\":false,\"schedule\":{\"enabled\":false}}}'").await;
    world.pass(Duration::from_mins(2)).await;
    let diagnosis = world.diagnose(Some("shop"), None).await;
    insta::assert_snapshot!(
        "doctor",
        text::render(&diagnosis.report, &["Leases: forbidden (403)".to_owned()], false, PLAIN)
    );
    insta::assert_snapshot!("doctor_short", text::short(&diagnosis.report));
    let named = world.diagnose(Some("shop"), Some("spare")).await;
    insta::assert_snapshot!("doctor_named", text::render(&named.report, &[], true, PLAIN));
    assert!(world.diagnose(Some("shop"), Some("absent")).await.absent);
}

/// Two answers in a row are a stream that programs can read.
#[test]
fn the_answers_of_a_watch_are_separated() {
    let now: jiff::Timestamp = START.parse().expect("a time");
    for format in [AnswerFormat::Text, AnswerFormat::Json, AnswerFormat::Yaml] {
        assert_eq!(heading(format, true, now), "");
    }
    assert_eq!(heading(AnswerFormat::Text, false, now), "\n--- 2026-11-16T08:00:00Z\n");
    assert_eq!(heading(AnswerFormat::Json, false, now), "");
    assert_eq!(heading(AnswerFormat::Yaml, false, now), "---\n");
}
