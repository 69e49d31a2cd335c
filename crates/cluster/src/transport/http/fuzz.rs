//! Fuzzing of the data that is handled before it is parsed: lines of watches, pages of lists, error responses,
//! addresses.

use super::answer::Line;
use super::budget::Budget;
use super::shape::Shape;
use super::{AddressRules, Cidr, Limits, status};
use five_spot_fuzz::Target;
use http::StatusCode;
use serde_json::Value;
use std::net::{IpAddr, Ipv6Addr};
use std::path::PathBuf;

const TARGETS: [Target; 4] =
    [("status", refusal), ("shape", shape), ("watch-lines", watch_lines), ("address", address)];

fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz-corpus")
}

#[test]
fn the_corpus_does_no_harm() {
    five_spot_fuzz::replay(&corpus(), &TARGETS);
}

#[test]
fn mutations_of_the_corpus_do_no_harm() {
    five_spot_fuzz::mutate(&corpus(), &TARGETS);
}

/// Any error response is passed on as a short, printable `Status` that `kube` can read.
fn refusal(input: &[u8]) {
    let body = status::sanitised(StatusCode::BAD_GATEWAY, input, &Limits::WORKLOAD);
    assert!(body.len() < 64 << 10, "{} bytes", body.len());
    let value: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!((&value["kind"], &value["code"]), (&"Status".into(), &502.into()));
    assert!(!value["message"].as_str().unwrap_or_default().contains(char::is_control), "{value}");
    serde_json::from_slice::<kube::core::Status>(&body).expect("kube can read it");
}

/// The shape bounds what a parser would allocate, in however many pieces a text arrives.
fn shape(input: &[u8]) {
    let mut whole = Shape::default();
    whole.read(input);
    for size in [1, 7, 1000] {
        let mut pieces = Shape::default();
        input.chunks(size).for_each(|piece| pieces.read(piece));
        assert_eq!((pieces.values(), pieces.items()), (whole.values(), whole.items()));
    }
    if let Ok(value) = serde_json::from_slice::<Value>(input) {
        assert!(count(&value) <= 2 * whole.values() + 1, "more values than counted");
        let objects =
            value["items"].as_array().map_or(0, |items| items.iter().filter(|one| one.is_object()).count());
        assert!(objects <= whole.items(), "more objects than counted");
    }
}

fn count(value: &Value) -> usize {
    match value {
        Value::Array(values) => 1 + values.iter().map(count).sum::<usize>(),
        Value::Object(values) => 1 + values.values().map(count).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

/// The lines of a watch pass or fail in the same way in however many pieces they arrive.
fn watch_lines(input: &[u8]) {
    let limits = Limits { watch_line_bytes: 512, values_per_object: 64, ..Limits::WORKLOAD };
    let passes = |size: usize| {
        let mut line = Line::new(limits, &Budget::new(1 << 20));
        input.chunks(size.max(1)).all(|piece| line.read(piece).is_ok())
    };
    let too_long = input.split(|byte| *byte == b'\n').any(|line| line.len() > 512);
    let verdict = passes(input.len());
    assert!(!(verdict && too_long), "a line of more than 512 bytes has passed");
    for size in [1, 3, 64] {
        assert_eq!(passes(size), verdict, "in pieces of {size}");
    }
}

/// A network that can be parsed is printed with the same meaning. The rules treat an address and its IPv6
/// form alike.
fn address(input: &[u8]) {
    if let Ok(network) = String::from_utf8_lossy(input).parse::<Cidr>() {
        assert_eq!(network.to_string().parse(), Ok(network));
    }
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(input).for_each(|(to, from)| *to = *from);
    let rules = AddressRules::Workload { allowed: [].into() };
    let address = Ipv6Addr::from(bytes);
    let permitted = rules.permits(IpAddr::V6(address));
    if let Some(v4) = address.to_ipv4_mapped() {
        assert_eq!(rules.permits(IpAddr::V4(v4)), permitted);
    }
    assert!(!rules.permits(IpAddr::V6(Ipv6Addr::LOCALHOST)));
}
