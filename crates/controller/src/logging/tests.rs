//! Real lines, read back. What the documents do with `jq` is done here with the same paths.

use super::limit::{LineRate, report_suppressed_lines};
use super::{LogFilter, LogFormat, limited, panics, reconcile_span, subscriber};
use serde_json::{Value, json};
use std::io::Write;
use std::sync::{Arc, Mutex};
use tracing::{debug, error, info, info_span, trace, warn};

/// The destination of a test's log lines.
#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no test panics while it writes").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Page {
    fn text(&self) -> String {
        let bytes = self.0.lock().expect("no test panics while it writes").clone();
        String::from_utf8(bytes).expect("log lines are UTF-8")
    }
}

fn filter(directives: &str) -> LogFilter {
    LogFilter::parse(directives).expect("a filter")
}

/// The log lines of `work`.
fn written(format: LogFormat, filter: LogFilter, colours: bool, work: impl FnOnce()) -> String {
    let page = Page::default();
    let writer = page.clone();
    let subscriber = subscriber(format, filter, move || writer.clone(), colours);
    tracing::subscriber::with_default(subscriber, work);
    page.text()
}

fn lines(filter: LogFilter, work: impl FnOnce()) -> Vec<Value> {
    let text = written(LogFormat::Json, filter, false, work);
    text.lines().map(|line| serde_json::from_str(line).expect("one JSON object a line")).collect()
}

fn reconcile(work: impl FnOnce()) {
    reconcile_span("deadbeef0001-17f3e2a1b", "production", "my-machine", "object changed").in_scope(work);
}

/// `jq -r "PATH"` for every line, where PATH is a JSON pointer.
fn each<'a>(lines: &'a [Value], pointer: &str) -> Vec<&'a Value> {
    lines.iter().map(|line| line.pointer(pointer).unwrap_or(&Value::Null)).collect()
}

#[test]
fn a_line_has_the_documented_shape_and_order() {
    let text =
        written(LogFormat::Json, filter("info"), false, || reconcile(|| info!("Starting reconciliation")));
    let (timestamp, rest) =
        text.strip_prefix(r#"{"timestamp":""#).and_then(|text| text.split_once('"')).expect("a time");
    let expected = concat!(
        r#","level":"INFO","fields":{"message":"Starting reconciliation","reconcile_id":"deadbeef0001-17f3e2a1b","#,
        r#""resource":"my-machine","namespace":"production"},"target":"five_spot_controller::logging::tests","#,
        r#""span":{"name":"reconcile","#,
        r#""object.ref":"ScheduledMachine.v1alpha1.5spot.finos.org/my-machine.production","#,
        r#""object.reason":"object changed"}}"#,
        "\n",
    );
    assert_eq!(rest, expected);
    let _: jiff::Timestamp = timestamp.parse().expect("RFC 3339");
    assert_eq!(timestamp.len(), "2026-04-09T00:00:00.123456Z".len(), "{timestamp} has microseconds");
    assert!(timestamp.ends_with('Z'));
}

#[test]
fn fields_keep_their_types_and_come_before_those_of_the_span() {
    let written = lines(filter("info"), || {
        reconcile(|| {
            let error = std::io::Error::other("CAPI operation failed: refused");
            error!(
                error = &error as &dyn std::error::Error,
                retry_count = 3_u32,
                backoff_secs = 240_u64,
                late = -1.5,
                forced = true,
                r#type = ?Some("x"),
                "Reconciliation error — requeuing with exponential back-off"
            );
        });
    });
    let expected = json!({
        "message": "Reconciliation error — requeuing with exponential back-off",
        "error": "CAPI operation failed: refused",
        "retry_count": 3,
        "backoff_secs": 240,
        "late": -1.5,
        "forced": true,
        "type": "Some(\"x\")",
        "reconcile_id": "deadbeef0001-17f3e2a1b",
        "resource": "my-machine",
        "namespace": "production",
    });
    assert_eq!(each(&written, "/fields"), [&expected]);
    assert_eq!(each(&written, "/level"), ["ERROR"]);
}

#[test]
fn the_documented_selections_find_their_lines_and_fail_on_none() {
    let written = lines(filter("info"), || {
        info!("Started");
        reconcile(|| {
            info!("Starting reconciliation");
            tracing::Span::current().record("phase", "EmergencyRemove");
            info!(from_phase = "Active", to_phase = "Error", "Phase transition");
        });
        reconcile_span("deadbeef0002-17f3e2a1c", "production", "other", "time")
            .in_scope(|| info!("elsewhere"));
    });
    let selected =
        |pointer: &str, value: &str| each(&written, pointer).iter().filter(|found| **found == value).count();
    for (pointer, value, count) in [
        ("/fields/resource", "my-machine", 2),
        ("/fields/reconcile_id", "deadbeef0001-17f3e2a1b", 2),
        ("/fields/to_phase", "Error", 1),
        ("/fields/phase", "EmergencyRemove", 1),
    ] {
        assert_eq!(selected(pointer, value), count, "select(.{pointer} == {value:?})");
    }
    // `.span."object.ref" | contains("my-machine")` is an error of jq for a line where it is absent.
    let references = each(&written, "/span/object.ref");
    let found =
        references.iter().filter(|name| name.as_str().expect("text on every line").contains("my-machine"));
    assert_eq!(found.count(), 2);
    assert_eq!(each(&written, "/span/name"), ["", "reconcile", "reconcile", "reconcile"]);
}

#[test]
fn inner_spans_of_ours_add_fields_and_those_of_libraries_do_not() {
    let written = lines(filter("debug"), || {
        reconcile(|| {
            info_span!("drain", pod = "a/b", namespace = "inner").in_scope(|| {
                info_span!(target: "kube_client", "HTTP", url = "https://example").in_scope(|| warn!("held"));
            });
        });
    });
    let fields = each(&written, "/fields")[0];
    assert_eq!(
        (&fields["pod"], &fields["namespace"], &fields["resource"]),
        (&json!("a/b"), &json!("inner"), &json!("my-machine"))
    );
    assert_eq!(fields.get("url"), None);
    assert_eq!(written[0]["span"]["name"], "reconcile");
}

#[test]
fn every_line_names_its_reconcile_even_at_level_error() {
    for directives in ["error", "off,five_spot_controller=error", "kube=warn,five_spot_controller=error"] {
        let written = lines(filter(directives), || {
            reconcile(|| {
                warn!("left out");
                error!("written");
            });
        });
        assert_eq!(each(&written, "/fields/message"), ["written"], "{directives}");
        assert_eq!(each(&written, "/fields/resource"), ["my-machine"], "{directives}");
    }
}

#[test]
fn directives_and_verbosity_choose_the_lines() {
    let say = || {
        trace!("our trace");
        debug!("our debug");
        info!("our info");
        debug!(target: "kube_client::client", "kube debug");
        info!(target: "kube_runtime::watcher", "kube info");
        warn!(target: "hyper", "hyper warn");
    };
    let (kube, ours) = (["kube debug", "kube info"], ["our debug", "our info"]);
    for (directives, verbose, expected) in [
        ("info", false, vec!["our info", "kube info", "hyper warn"]),
        ("info", true, vec![ours[0], ours[1], "kube info", "hyper warn"]),
        ("warn,five_spot_controller::logging=error", true, vec![ours[0], ours[1], "hyper warn"]),
        ("off", true, ours.to_vec()),
        ("trace", true, vec!["our trace", ours[0], ours[1], kube[0], kube[1], "hyper warn"]),
        ("kube=debug,five_spot=debug", false, vec![ours[0], ours[1], kube[0], kube[1]]),
        ("kube=warn,hyper=warn,five_spot_controller=info", false, vec!["our info", "hyper warn"]),
        ("kube=trace", false, kube.to_vec()),
    ] {
        let written = lines(filter(directives).verbose(verbose), say);
        assert_eq!(each(&written, "/fields/message"), expected, "{directives}, verbose {verbose}");
    }
}

#[test]
fn a_directive_for_tower_http_shows_requests() {
    for (directives, expected) in [
        ("kube=debug,tower_http=debug", 1),
        ("info,five_spot_controller=info,tower_http=trace", 1),
        ("info,tower_http", 1),
        ("info,tower_http::trace=debug", 1),
        ("info,tower_http=info", 0),
        ("info,tower_httpd=debug", 0),
        ("info,tower_http=debug,five_spot_controller::api=info", 0),
        ("debug,tower_http=off", 1),
    ] {
        let written = lines(filter(directives), || {
            debug!(target: super::REQUESTS, "API call");
            debug!("our debug");
        });
        let calls = each(&written, "/fields/message").into_iter().filter(|message| **message == "API call");
        assert_eq!(calls.count(), expected, "{directives}");
    }
}

#[test]
fn a_message_of_several_lines_is_one_line() {
    let written = lines(filter("info"), || info!("first\nsecond \"quoted\" \u{1b}[31m"));
    assert_eq!(each(&written, "/fields/message"), ["first\nsecond \"quoted\" \u{1b}[31m"]);
}

#[test]
fn a_panic_is_one_line_of_its_reconcile() {
    let written = lines(filter("error"), || {
        std::panic::set_hook(Box::new(panics::report));
        let outcome = std::panic::catch_unwind(|| reconcile(|| panic!("no {}", "way")));
        drop(std::panic::take_hook());
        outcome.expect_err("it panics");
    });
    assert_eq!(each(&written, "/fields/message"), ["panicked: no way"]);
    assert_eq!(each(&written, "/fields/resource"), ["my-machine"]);
    let location = written[0]["fields"]["location"].as_str().expect("where");
    assert!(location.contains("logging/tests.rs:"), "{location}");
}

#[test]
fn text_has_colours_only_if_asked_for_and_names_the_reconcile() {
    for colours in [false, true] {
        let text = written(LogFormat::Text, filter("error"), colours, || {
            reconcile(|| error!(retry_count = 3, "refused"));
        });
        assert_eq!(text.contains('\u{1b}'), colours, "{text}");
        assert_eq!(text.lines().count(), 1);
        if !colours {
            for part in ["ERROR", "refused", "retry_count=3", "my-machine", "deadbeef0001-17f3e2a1b"] {
                assert!(text.contains(part), "{part} in {text}");
            }
        }
    }
}

#[test]
fn directives_that_mean_nothing_are_refused() {
    for directives in ["five_spot=loud", "=", "kube=debug,five_spot=verbose"] {
        assert!(LogFilter::parse(directives).is_err(), "{directives}");
    }
}

/// An error text that tries to forge a line and to colour a terminal.
const FORGED: &str = "no\n2026-11-16T08:00:00Z  INFO five_spot: all is well\u{1b}[2J\u{202e}\r";

#[test]
fn text_from_outside_stays_on_its_line() {
    for format in [LogFormat::Text, LogFormat::Json] {
        let page = Page::default();
        let writer = page.clone();
        let filter = LogFilter::parse("info").expect("a filter");
        let lines = subscriber(format, filter, move || writer.clone(), false);
        tracing::subscriber::with_default(lines, || {
            warn!(error = FORGED, shown = %FORGED, debugged = ?FORGED, "Watch failed: {FORGED}");
        });
        let text = page.text();
        assert_eq!(text.lines().count(), 1, "{text}");
        let is_harmless = |character: char| character == '\n' || !character.is_control();
        assert!(text.chars().all(is_harmless), "{text:?}");
        if format == LogFormat::Text {
            assert!(!text.contains('\u{202e}'), "{text:?}");
        }
    }
}

#[test]
fn what_a_library_logs_is_bounded() {
    let page = Page::default();
    let writer = page.clone();
    let lines = subscriber(
        LogFormat::Json,
        LogFilter::parse("info").expect("a filter"),
        move || writer.clone(),
        false,
    );
    tracing::subscriber::with_default(lines, || warn!("{}", "ä".repeat(1_000_000)));
    assert!(page.text().len() < 100_000);
}

#[test]
fn the_client_of_kube_is_silent_unless_it_is_asked_for() {
    for (directives, expected) in [
        ("info", 0),
        ("warn", 0),
        ("info,five_spot=debug", 0),
        ("info,kube=warn", 1),
        ("debug", 1),
        ("kube_client=error", 1),
    ] {
        let page = Page::default();
        let writer = page.clone();
        let filter = LogFilter::parse(directives).expect("a filter");
        let lines = subscriber(LogFormat::Json, filter, move || writer.clone(), false);
        tracing::subscriber::with_default(lines, || {
            error!(target: "kube_client::client::builder", "failed with error client error (Connect)");
        });
        assert_eq!(page.text().lines().count(), expected, "{directives}");
    }
}

#[test]
fn lines_beyond_the_limit_of_a_namespace_are_counted() {
    for format in [LogFormat::Json, LogFormat::Text] {
        let page = Page::default();
        let writer = page.clone();
        let rate = LineRate { burst: 5, per_minute: 1 };
        let filter = filter("info").into_layer_filter();
        tracing::subscriber::with_default(
            limited(format, filter, rate, move || writer.clone(), false),
            || {
                for number in 0..20 {
                    let span = reconcile_span("id", "greedy", &format!("m{number}"), "object changed");
                    span.in_scope(|| info!("Starting reconciliation"));
                    reconcile_span("id", "other", "m", "object changed").in_scope(|| {
                        if number < 5 {
                            info_span!("drain").in_scope(|| info!("elsewhere"));
                        }
                    });
                }
                reconcile_span("id", "greedy", "m0", "object changed").in_scope(|| {
                    warn!("refused");
                    info!(target: crate::audit::TARGET, "Phase changed");
                });
                info!("not of a reconcile");
                report_suppressed_lines();
                report_suppressed_lines();
            },
        );
        let text = page.text();
        let count = |word: &str| text.lines().filter(|line| line.contains(word)).count();
        let counts =
            ["Starting", "elsewhere", "refused", "Phase changed", "not of a reconcile", "were suppressed"]
                .map(count);
        assert_eq!(counts, [5, 5, 1, 1, 1, 1], "{text}");
        let report = text.lines().last().expect("a line");
        assert!(report.contains("greedy") && report.contains("15") && report.contains("WARN"), "{report}");
    }
}
