//! Commands that wait: for a condition, or until they are interrupted.

use std::sync::Arc;

use anyhow::{Context as _, ensure};
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::tests;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::server::{SCHEDULED_MACHINE, with_both};

pub(crate) fn tests() -> Vec<Test> {
    tests![kubectl_wait_ends_with_the_condition, a_watch_shows_every_change, bookmarks_are_sent_if_requested]
}

async fn kubectl_wait_ends_with_the_condition(context: Arc<TestContext>) -> TestResult {
    with_both(&context, async |server| {
        server.ok_with("apply -f -", SCHEDULED_MACHINE).await?;
        let never = server.run("wait --for=condition=Ready sm/one --timeout=1s").await?;
        ensure!(never.code == Some(1), "{}", never.text);
        let by_condition = server.begin("wait --for=condition=Ready sm/one --timeout=60s")?;
        let by_path = server.begin("wait --for=jsonpath={.status.phase}=Active sm/one --timeout=60s")?;
        let by_deletion = server.begin("wait --for=delete sm/one --timeout=60s")?;
        let status = json!({"status": {"phase": "Active", "conditions": [{
            "type": "Ready", "status": "True", "reason": "Active", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]}});
        server.ok(&format!("patch sm one --subresource=status --type=merge -p {status}")).await?;
        for child in [by_condition, by_path] {
            let output = child.wait_with_output().await?;
            let text = String::from_utf8(output.stdout)?;
            ensure!(output.status.success() && text.contains("condition met"), "{text}");
        }
        server.ok("delete sm one").await?;
        ensure!(by_deletion.wait_with_output().await?.status.success());
        Ok(())
    })
    .await
}

async fn a_watch_shows_every_change(context: Arc<TestContext>) -> TestResult {
    with_both(&context, async |server| {
        let mut watch = server.begin("get sm --watch --output-watch-events")?;
        let mut lines = BufReader::new(watch.stdout.take().context("kubectl has no output")?).lines();
        server.ok_with("apply -f -", SCHEDULED_MACHINE).await?;
        // Each change waits until the previous one was received: a change before the start of the watch would
        // be part of its list.
        let mut seen = Vec::new();
        let changes = [
            r#"patch sm one --type=merge -p {"spec":{"priority":70}}"#,
            r#"patch sm one --type=merge -p {"spec":{"priority":80}}"#,
            "delete sm one",
        ];
        for change in changes.map(Some).into_iter().chain([None]) {
            loop {
                let line = lines.next_line().await?.context("the watch ended")?;
                let words: Vec<&str> = line.split_whitespace().collect();
                if let [event, "one", ..] = words.as_slice() {
                    seen.push((*event).to_owned());
                    break;
                }
            }
            if let Some(change) = change {
                server.ok(change).await?;
            }
        }
        ensure!(seen == ["ADDED", "MODIFIED", "MODIFIED", "DELETED"], "{seen:?}");
        Ok(())
    })
    .await
}

async fn bookmarks_are_sent_if_requested(context: Arc<TestContext>) -> TestResult {
    with_both(&context, async |server| {
        let path = format!("/api/v1/namespaces/{}/configmaps", server.namespace);
        let list = server.begin(&format!("get --raw {path}"))?.wait_with_output().await?;
        let list: Value = serde_json::from_slice(&list.stdout)?;
        let version = list["metadata"]["resourceVersion"].as_str().context("a list has a version")?;
        let watch =
            |options: &str| server.begin(&format!("get --raw {path}?watch=1&timeoutSeconds=10{options}"));
        let from = format!("&resourceVersion={version}");
        let (wanted, unwanted, initial) = (
            watch(&format!("{from}&allowWatchBookmarks=true"))?,
            watch(&from)?,
            watch("&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan")?,
        );
        let mut kinds = Vec::new();
        for child in [wanted, unwanted, initial] {
            let output = child.wait_with_output().await?;
            ensure!(output.status.success(), "a watch ends well at its timeout");
            let events: Vec<Value> =
                serde_json::Deserializer::from_slice(&output.stdout).into_iter().collect::<Result<_, _>>()?;
            kinds.push(events.iter().map(|event| event["type"].to_string()).collect::<Vec<String>>());
        }
        // A server may send more than one.
        ensure!(kinds[0].first().is_some_and(|kind| kind == "\"BOOKMARK\""), "{kinds:?}");
        ensure!(kinds[1].is_empty(), "{kinds:?}");
        ensure!(kinds[2].starts_with(&["\"ADDED\"".to_owned(), "\"BOOKMARK\"".to_owned()]), "{kinds:?}");
        Ok(())
    })
    .await
}
