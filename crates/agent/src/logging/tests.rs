use super::*;
use serde_json::{Value, json};
use std::io::Write;
use std::sync::{Arc, Mutex};
use tracing::{debug, error, info};

#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic while writing").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn written(format: LogFormat, directives: &str, work: impl FnOnce()) -> String {
    let page = Page::default();
    let writer = page.clone();
    let filter = filter(Some(directives)).expect("valid");
    tracing::subscriber::with_default(subscriber(format, filter, move || writer.clone(), false), work);
    let bytes = page.0.lock().expect("no panic while writing").clone();
    String::from_utf8(bytes).expect("UTF-8")
}

#[test]
fn a_line_has_the_shape_of_the_controllers() {
    let text = written(LogFormat::Json, "info", || {
        info!(matched_pattern = "java", pid = 42, "process matched — requesting reclaim of the node");
    });
    let (timestamp, rest) =
        text.strip_prefix(r#"{"timestamp":""#).and_then(|text| text.split_once('"')).expect("a time");
    let expected = concat!(
        r#","level":"INFO","fields":{"message":"process matched — requesting reclaim of the node","#,
        r#""matched_pattern":"java","pid":42},"target":"five_spot_agent::logging::tests","#,
        r#""span":{"name":"","object.ref":"","object.reason":""}}"#,
        "\n",
    );
    assert_eq!(rest, expected);
    assert_eq!(timestamp.len(), "2026-04-09T00:00:00.123456Z".len(), "{timestamp} has microseconds");
}

#[test]
fn directives_choose_the_lines() {
    let messages = |directives: &str| -> Vec<Value> {
        let text = written(LogFormat::Json, directives, || {
            debug!("ours debug");
            error!(target: "hyper", "hyper error");
        });
        let line = |line: &str| serde_json::from_str::<Value>(line).expect("JSON");
        text.lines().map(|text| line(text)["fields"]["message"].clone()).collect()
    };
    assert_eq!(messages("info"), [json!("hyper error")]);
    assert_eq!(messages("debug"), [json!("ours debug"), json!("hyper error")]);
    assert_eq!(messages("off,five_spot_agent=debug"), [json!("ours debug")]);
    assert!(filter(Some("five_spot=loud")).is_err());
    assert_eq!(filter(None).expect("valid").to_string(), "info");
    assert_eq!(filter(Some("")).expect("valid").to_string(), "info");
}

#[test]
fn long_values_are_cut() {
    let long = "ü".repeat(1 << 20);
    let text = written(LogFormat::Json, "info", || info!(error = %long, keys = ?[&long], "{long}"));
    assert!(text.len() < 100 << 10, "{} bytes", text.len());
    let line: Value = serde_json::from_str(&text).expect("JSON");
    for name in ["message", "error", "keys"] {
        let value = line["fields"][name].as_str().expect("a text");
        assert!(value.ends_with(" bytes)"), "{name} says how long it was");
    }
}

#[test]
fn text_is_one_line_without_colours() {
    let text = written(LogFormat::Text, "info", || info!(pid = 7, "matched"));
    assert!(text.contains("matched") && text.contains("pid=7") && !text.contains('\u{1b}'), "{text}");
}
