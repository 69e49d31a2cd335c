//! Tests of the outputs with a hand-written trace of one day.

use crate::sandbox::lines;
use crate::sandbox::picture;
use crate::sandbox::screen::{Frame, compose};
use crate::sandbox::summary::{self, Run};
use crate::sandbox::text;
use crate::sandbox::trace::{Key, Presence, Trace};
use crate::sandbox::trace_fixture::{TraceFixture, at, day, key};
use crate::sandbox::verdict::{Violation, violations};
use crate::style::{Charset, MAX_WIDTH, MIN_WIDTH, Style};
use five_spot_api::Phase;
use serde_json::json;

const PLAIN: Style = Style { width: 80, charset: Charset::Unicode, colored: false };

/// A trace of one day. At noon, a user turns the kill switch on and off; in the afternoon, the owner needs
/// the machine for an hour; in the evening, pods block the drain.
fn eventful() -> Trace {
    TraceFixture::new()
        .phase("09:00:00", Phase::Pending)
        .machine("09:00:00", Presence::There)
        .phase("09:00:01", Phase::Active)
        .ready("09:40:00", true)
        .action("12:00:00", "a user turns on the kill switch of bench-01")
        .spec("12:00:00", &json!({"killSwitch": true}))
        .warning("12:00:00", "KillSwitchActivated", "Kill switch on:\u{1b}[2J removed <without> draining")
        .ready("12:00:00", false)
        .phase("12:00:00", Phase::ShuttingDown)
        .delete("12:00:01")
        .machine("12:00:01", Presence::Terminating)
        .machine("12:00:06", Presence::Gone)
        .phase("12:00:06", Phase::Terminated)
        .spec("14:00:00", &json!({"killSwitch": false}))
        .phase("14:00:00", Phase::Pending)
        .machine("14:00:00", Presence::There)
        .phase("14:00:01", Phase::Active)
        .ready("14:01:00", true)
        .action("16:00:00", "the owner of bench-01 starts java")
        .reclaimed("16:00:00")
        .phase("16:00:00", Phase::EmergencyRemove)
        .warning(
            "16:00:00",
            "EmergencyReclaim",
            "Node bench-01-infra was reclaimed by its owner: process-match: java",
        )
        .ready("16:00:00", false)
        .delete("16:00:01")
        .machine("16:00:01", Presence::Terminating)
        .machine("16:00:06", Presence::Gone)
        .spec("16:00:06", &json!({"schedule": {"enabled": false, "hoursOfDay": ["9-17"]}}))
        .reclaim_ended("16:00:00", "16:00:07")
        .phase("16:00:07", Phase::Disabled)
        .spec("17:00:00", &json!({"schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"]}}))
        .phase("17:00:00", Phase::Pending)
        .machine("17:00:00", Presence::There)
        .phase("17:00:01", Phase::Active)
        .ready("17:01:00", true)
        .phase("18:00:00", Phase::ShuttingDown)
        .blocked("18:00:00")
        .held("18:00:00", true)
        .held("20:00:00", false)
        .delete("20:00:04")
        .machine("20:00:04", Presence::Terminating)
        .machine("20:00:10", Presence::Gone)
        .ready("20:00:10", false)
        .phase("20:00:11", Phase::Inactive)
        .error("22:00:00", "the API server refused the request")
        .done()
}

fn with_run<T>(trace: &Trace, then: impl FnOnce(&Run<'_>) -> T) -> T {
    let violations = violations(trace, day().to);
    then(&Run { trace, range: day(), end: day().to, violations: &violations })
}

fn report(style: Style) -> String {
    let trace = eventful();
    with_run(&trace, |run| {
        let mut lines = text::chart(&run.rows(), run.shown(), style);
        lines.extend(summary::text(run, style));
        lines.join("\n")
    })
}

#[test]
fn the_timeline_and_the_summary() {
    insta::assert_snapshot!(report(PLAIN));
}

#[test]
fn a_terminal_without_unicode_gets_ascii() {
    let ascii = report(Style { charset: Charset::Ascii, ..PLAIN });
    assert!(ascii.is_ascii(), "{ascii}");
    insta::assert_snapshot!(ascii);
}

#[test]
fn colours_are_reset_and_do_not_change_the_text() {
    let colored = report(Style { colored: true, ..PLAIN });
    assert!(colored.contains("\u{1b}[32m█"), "{colored:?}");
    assert_eq!(without_colors(&colored), report(PLAIN));
}

fn without_colors(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        rest = after.split_once('m').expect("a colour ends").1;
    }
    plain + rest
}

#[test]
fn the_timeline_fits_every_width() {
    for width in MIN_WIDTH..=MAX_WIDTH {
        let text = report(Style { width, ..PLAIN });
        for line in text.lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn the_picture() {
    let trace = eventful();
    let svg = with_run(&trace, picture::render);
    assert!(!svg.contains('\u{1b}') && !svg.contains("<without>"), "{svg}");
    insta::assert_snapshot!(svg);
}

#[test]
fn an_empty_fleet_gives_a_valid_picture() {
    let trace = Trace::default();
    let svg = with_run(&trace, picture::render);
    assert!(svg.contains("0 machines over 24h"), "{svg}");
}

#[test]
fn events_as_text() {
    let trace = eventful();
    let lines: Vec<String> = trace
        .with_transitions()
        .filter_map(|(entry, transition)| lines::words(entry, transition, PLAIN))
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn events_as_json() {
    let trace = eventful();
    let mut lines: Vec<String> =
        trace.with_transitions().filter_map(|(entry, transition)| lines::json(entry, transition)).collect();
    lines.push(with_run(&trace, summary::json));
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn a_deleted_object_is_reported_as_gone() {
    let trace = TraceFixture::new().forgotten("07:00:00").done();
    let lines: Vec<String> = trace
        .with_transitions()
        .filter_map(|(entry, transition)| lines::words(entry, transition, PLAIN))
        .collect();
    assert_eq!(
        lines,
        ["Mon 09 00:00:00 lab/bench-01: Inactive", "Mon 09 07:00:00 lab/bench-01: Inactive to gone"]
    );
    let last =
        trace.with_transitions().filter_map(|(entry, transition)| lines::json(entry, transition)).last();
    assert!(last.is_some_and(|line| line.contains(r#""from":"Inactive""#) && line.contains(r#""to":null"#)));
}

#[test]
fn a_frame_fills_the_screen() {
    let trace = eventful();
    let frame = Frame {
        trace: &trace,
        range: day(),
        now: at("20:30:00"),
        speed: 2016,
        kubeconfig_line: "export KUBECONFIG=/k",
    };
    insta::assert_snapshot!(compose(&frame, PLAIN, 16).join("\n"));
    for height in 2..60 {
        let frame = compose(&frame, PLAIN, height);
        assert_eq!(frame.len(), height);
        assert!(frame.last().is_some_and(|line| line.contains("KUBECONFIG=/k")), "{height}");
        assert!(frame[0].contains("Mon 09 Nov 2026 20:30:00 UTC"), "{height}: {frame:?}");
    }
}

#[test]
fn after_the_span_the_clock_runs_in_real_time() {
    let trace = eventful();
    let later = day().to + jiff::SignedDuration::from_hours(1);
    let frame = Frame { trace: &trace, range: day(), now: later, speed: 2016, kubeconfig_line: "" };
    let frame = compose(&frame, PLAIN, 12);
    assert!(frame[0].contains("Tue 10 Nov 2026 01:00:00 UTC") && frame[0].contains("real time"), "{frame:?}");
}

#[test]
fn long_names_are_cut_at_the_start() {
    let long = Key::new("a-namespace-that-is-rather-long", "and-a-name-that-ends-in-01");
    let rows = [crate::sandbox::rows::Row { key: long, bars: Vec::new() }];
    let chart = text::chart(&rows, day(), Style { width: 40, ..PLAIN });
    assert!(chart[1].starts_with("…") && chart[1].ends_with("ends-in-01"), "{chart:?}");
}

#[test]
fn violations_are_listed() {
    let violation = Violation { time: at("12:00:00"), key: key(), what: "it was not there".to_owned() };
    let trace = TraceFixture::new().done();
    let run =
        Run { trace: &trace, range: day(), end: day().to, violations: std::slice::from_ref(&violation) };
    let text = summary::text(&run, PLAIN).join("\n");
    assert!(
        text.contains("1 violation:\n  - lab/bench-01 at 2026-11-09T12:00:00Z: it was not there"),
        "{text}"
    );
    let json: serde_json::Value = serde_json::from_str(&summary::json(&run)).expect("JSON");
    assert_eq!(json["violations"][0]["message"], "it was not there");
}
