//! Reading objects: tables, descriptions, documentation, events.

use std::sync::Arc;

use anyhow::ensure;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::tests;
use serde_json::json;

use super::server::{SCHEDULED_MACHINE, with_both};

pub(crate) fn tests() -> Vec<Test> {
    tests![
        kinds_are_listed_and_explained,
        objects_are_shown_in_every_form,
        events_are_shown_with_their_object,
    ]
}

async fn kinds_are_listed_and_explained(context: Arc<TestContext>) -> TestResult {
    with_both(&context, async |server| {
        for group in ["5spot.finos.org", "policy", "coordination.k8s.io", "apiextensions.k8s.io"] {
            let kinds = server.ok(&format!("api-resources --api-group={group} -o wide")).await?;
            ensure!(kinds.lines().count() >= 2, "{group}: {kinds}");
        }
        let kinds = server.ok("api-resources --api-group=5spot.finos.org").await?;
        ensure!(kinds.contains("scheduledmachines") && kinds.contains(" sm "), "{kinds}");
        for field in ["sm", "sm.spec.schedule", "scheduledmachines.spec.schedule.hoursOfDay", "sm.status"] {
            let text = server.ok(&format!("explain {field}")).await?;
            ensure!(text.contains("DESCRIPTION") && !text.contains("<no description>"), "{field}: {text}");
        }
        server.ok("explain sm.spec.schedule --recursive").await?;
        let unknown = server.run("explain sm.spec.nothing").await?;
        ensure!(unknown.code == Some(1), "{}", unknown.text);
        Ok(())
    })
    .await
}

async fn objects_are_shown_in_every_form(context: Arc<TestContext>) -> TestResult {
    with_both(&context, async |server| {
        server.ok("get sm").await?;
        server.ok_with("apply -f -", SCHEDULED_MACHINE).await?;
        let status = json!({"status": {
            "phase": "Active", "machineName": "one-m", "nodeName": "node-7",
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "Active", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }],
        }});
        server.ok(&format!("patch sm one --subresource=status --type=merge -p {status}")).await?;
        let wide = server.ok("get sm -o wide").await?;
        for expected in ["Active", "prod", "Europe/Berlin", "TIMEZONE"] {
            ensure!(wide.contains(expected), "{expected}: {wide}");
        }
        for form in ["", "-o name", "-o json", "-o yaml", "--show-labels", "-L team", "--no-headers"] {
            server.ok(&format!("get sm {form}")).await?;
        }
        server
            .ok("get sm -o custom-columns=N:.metadata.name,P:.status.phase --sort-by=.metadata.name")
            .await?;
        let described = server.ok("describe sm one").await?;
        for expected in ["Cluster Name:", "prod", "Hours Of Day:", "9-17", "Events:"] {
            ensure!(described.contains(expected), "{expected}: {described}");
        }
        server.run("get sm two").await?;
        server.run("get nosuchkind").await?;
        server.ok("get configmaps,serviceaccounts").await?;
        Ok(())
    })
    .await
}

async fn events_are_shown_with_their_object(context: Arc<TestContext>) -> TestResult {
    with_both(&context, async |server| {
        server.ok_with("apply -f -", SCHEDULED_MACHINE).await?;
        let uid = server.field("sm/one", ".metadata.uid").await?;
        let event = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "one.opened"},
            "involvedObject": {
                "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachine", "name": "one",
                "namespace": server.namespace, "uid": uid,
            },
            "reason": "WindowOpened", "message": "the window has opened", "type": "Normal", "count": 1,
            "source": {"component": "5spot-controller"},
            "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z",
        });
        server.ok_with("create -f -", &event.to_string()).await?;
        for command in [
            "get events -o custom-columns=R:.reason,O:.involvedObject.name,M:.message",
            "events --for sm/one",
        ] {
            let output = server.run(command).await?;
            ensure!(output.text.contains("WindowOpened"), "{command}: {}", output.text);
        }
        let described = server.run("describe sm one").await?;
        ensure!(described.text.contains("the window has opened"), "{}", described.text);
        server.ok("get events --field-selector=involvedObject.name=one,reason=WindowOpened -o name").await?;
        server.ok("get events --field-selector=reason=Other -o name").await?;
        server.ok("get events.events.k8s.io -o custom-columns=R:.reason,O:.regarding.name,M:.note").await?;
        Ok(())
    })
    .await
}
