//! Creating and changing objects, and refusals.

use std::sync::Arc;

use anyhow::ensure;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::tests;

use super::server::{SCHEDULED_MACHINE, with_both};

pub(crate) fn tests() -> Vec<Test> {
    tests![
        applying_twice_changes_nothing,
        a_difference_is_shown_and_not_made,
        objects_are_edited_patched_annotated_and_labelled,
        a_bad_object_is_refused_with_our_message,
        a_field_of_another_manager_is_a_conflict,
    ]
}

async fn applying_twice_changes_nothing(context: Arc<TestContext>) -> TestResult {
    with_both(&context, async |server| {
        for (name, mode) in [("client", ""), ("server", "--server-side ")] {
            let manifest = SCHEDULED_MACHINE.replace("name: one", &format!("name: {name}"));
            let apply = format!("apply {mode}-f -");
            server.ok_with(&apply, &manifest).await?;
            let object = format!("sm/{name}");
            let version = server.field(&object, ".metadata.resourceVersion").await?;
            let again = server.ok_with(&apply, &manifest).await?;
            ensure!(!mode.is_empty() || again.trim().ends_with("unchanged"), "{again}");
            ensure!(
                server.field(&object, ".metadata.resourceVersion").await? == version,
                "{name} has changed"
            );
        }
        // From one kind of apply to the other: the new manager gets the fields without a conflict.
        let manifest = SCHEDULED_MACHINE.replace("name: one", "name: client");
        server.ok_with("apply --server-side -f -", &manifest).await?;
        server
            .ok("get sm/client --show-managed-fields -o jsonpath={.metadata.managedFields[*].manager}")
            .await?;
        Ok(())
    })
    .await
}

async fn a_difference_is_shown_and_not_made(context: Arc<TestContext>) -> TestResult {
    with_both(&context, async |server| {
        server.ok_with("apply -f -", SCHEDULED_MACHINE).await?;
        let none = server.run_with("diff -f -", SCHEDULED_MACHINE).await?;
        ensure!(none.code == Some(0) && none.text.is_empty(), "{}", none.text);
        let other = SCHEDULED_MACHINE.replace("9-17", "9-18");
        for mode in ["", "--server-side "] {
            let output = server.run_with(&format!("diff {mode}-f -"), &other).await?;
            ensure!(output.code == Some(1), "{}", output.text);
            ensure!(
                output.text.contains("-    - 9-17") && output.text.contains("+    - 9-18"),
                "{}",
                output.text
            );
        }
        ensure!(server.field("sm/one", ".spec.schedule.hoursOfDay[0]").await? == "9-17");
        Ok(())
    })
    .await
}

async fn objects_are_edited_patched_annotated_and_labelled(context: Arc<TestContext>) -> TestResult {
    with_both(&context, async |server| {
        server.ok_with("apply -f -", SCHEDULED_MACHINE).await?;
        // Anchored: a UID may contain the same digits.
        let edited = server.edit("edit sm/one", "sed -i s/9-17$/8-16/").await?;
        ensure!(edited.code == Some(0) && edited.text.contains("edited"), "{}", edited.text);
        server.ok(r#"patch sm one --type=merge -p {"spec":{"priority":70}}"#).await?;
        server.ok(r#"patch sm one --type=merge -p {"spec":{"priority":70}}"#).await?;
        server
            .ok(r#"patch sm one --type=json -p [{"op":"test","path":"/spec/priority","value":70}]"#)
            .await?;
        server
            .run(r#"patch sm one --type=json -p [{"op":"test","path":"/spec/priority","value":1}]"#)
            .await?;
        server.run(r#"patch sm one -p {"spec":{}}"#).await?;
        server.ok("annotate sm one example.org/note=first").await?;
        let refused = server.run("annotate sm one example.org/note=second").await?;
        ensure!(refused.code == Some(1), "{}", refused.text);
        server.ok("annotate sm one example.org/note=second --overwrite").await?;
        server.ok("annotate sm one example.org/note-").await?;
        server.ok("label sm one team=red tier=web").await?;
        server.ok("get sm -l team=red,tier!=db -o name").await?;
        server.ok("label sm one tier-").await?;
        server.ok("get sm one -o yaml").await?;
        Ok(())
    })
    .await
}

async fn a_bad_object_is_refused_with_our_message(context: Arc<TestContext>) -> TestResult {
    with_both(&context, async |server| {
        let refused = server.run_with("apply -f -", &SCHEDULED_MACHINE.replace("mon-fri", "someday")).await?;
        let ours = "spec.schedule.daysOfWeek[0]: Invalid value: \"someday\": must be a weekday (mon, tue, wed, thu, fri, \
                    sat, sun), a range such as mon-fri or fri-mon";
        ensure!(refused.code == Some(1) && refused.text.contains(ours), "{}", refused.text);
        for (from, to) in [
            ("clusterName: prod", "clusterNam: prod"),
            ("name: one", "name: One_"),
            ("timezone: Europe/Berlin", "timezone: Mars/Base"),
            ("clusterName: prod", "clusterName: 5"),
        ] {
            let output = server.run_with("apply -f -", &SCHEDULED_MACHINE.replace(from, to)).await?;
            ensure!(output.code == Some(1), "{to} was accepted: {}", output.text);
        }
        server.ok("get sm").await?;
        Ok(())
    })
    .await
}

async fn a_field_of_another_manager_is_a_conflict(context: Arc<TestContext>) -> TestResult {
    with_both(&context, async |server| {
        server.ok_with("apply --server-side --field-manager=first -f -", SCHEDULED_MACHINE).await?;
        let other = SCHEDULED_MACHINE.replace("9-17", "9-18");
        let refused = server.run_with("apply --server-side --field-manager=second -f -", &other).await?;
        let conflict = "conflict with \"first\": .spec.schedule.hoursOfDay";
        ensure!(refused.code == Some(1) && refused.text.contains(conflict), "{}", refused.text);
        server.ok_with("apply --server-side --field-manager=second --force-conflicts -f -", &other).await?;
        ensure!(server.field("sm/one", ".spec.schedule.hoursOfDay[0]").await? == "9-18");
        Ok(())
    })
    .await
}
