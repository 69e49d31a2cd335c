use super::*;

#[test]
fn lists_are_read_with_and_without_items() {
    let empty = br#"{"kind":"ConfigMapList","metadata":{"resourceVersion":"12"},"items":[]}"#;
    assert_eq!(
        objects::parse_list(empty).expect("a list"),
        ListedConfigMap { config_map: None, version: "12".into() }
    );
    let null = br#"{"metadata":{"resourceVersion":"12"},"items":null}"#;
    assert_eq!(objects::parse_list(null).expect("a list").config_map, None);
    let one = br#"{"metadata":{"resourceVersion":"12"},"items":[{"metadata":{"name":"a","uid":"u","resourceVersion":"7"},"data":{"k":"v"}}]}"#;
    let config_map = objects::parse_list(one).expect("a list").config_map.expect("an item");
    assert_eq!((config_map.metadata.uid.as_str(), config_map.data["k"].as_str()), ("u", "v"));
    objects::parse_list(b"<html>").expect_err("a proxy's page");
}

#[test]
fn watch_events_are_read() {
    let event = |text: &str| parse_watch_event(text.as_bytes());
    assert!(matches!(
        event(r#"{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"1"}}}"#),
        Ok(WatchEvent::Applied(config_map)) if config_map.data.is_empty()
    ));
    assert!(matches!(
        event(r#"{"type":"DELETED","object":{"metadata":{"resourceVersion":"3"}}}"#),
        Ok(WatchEvent::Deleted(version)) if version == "3"
    ));
    assert!(matches!(
        event(r#"{"type":"BOOKMARK","object":{"kind":"ConfigMap","metadata":{"resourceVersion":"9"}}}"#),
        Ok(WatchEvent::Bookmark(version)) if version == "9"
    ));
    assert!(matches!(
        event(r#"{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}}"#),
        Ok(WatchEvent::Expired)
    ));
    let failed = event(
        r#"{"type":"ERROR","object":{"kind":"Status","metadata":{},"code":500,"message":"etcd is away"}}"#,
    );
    let failed = failed.expect_err("a failure").to_string();
    assert_eq!(failed, "the API server answered 500 Internal Server Error: etcd is away");
    assert!(matches!(event(r#"{"type":"ERROR","object":{}}"#), Ok(WatchEvent::Expired)));
    for text in ["", "{}", "null", r#"{"type":"ADDED"}"#, r#"{"type":"ADDED","object":[1]}"#] {
        assert!(event(text).is_err(), "{text}");
    }
}

#[test]
fn refusals_keep_a_bounded_message() {
    let long = "ü".repeat(1000);
    let body = format!(r#"{{"kind":"Status","message":"{long}"}}"#);
    let error = objects::parse_status(StatusCode::FORBIDDEN, body.as_bytes());
    assert_eq!(error.code(), Some(403));
    assert!(error.to_string().len() < 600);
    let page = objects::parse_status(StatusCode::BAD_GATEWAY, b"<html>");
    assert_eq!(page.to_string(), "the API server answered 502 Bad Gateway: no message");
}
