//! Tests of the CRD on a real API server, with the same table of cases as the offline validation.

// The table and its reader are in the same directory, and are shared with the offline tests.
#[path = "../../crd/table.rs"]
#[allow(unreachable_pub, dead_code, clippy::wildcard_enum_match_arm)]
mod table;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{bail, ensure};
use five_spot_testenv::cluster::Side;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::wire::{self, WireResponse};
use five_spot_testenv::{manifests, probe, tests};
use http::Method;
use serde_json::{Value, json};
use table::{Case, Expected, Refusal};

pub(crate) fn tests() -> Vec<Test> {
    tests![
        every_case_of_the_table_is_answered_as_it_says,
        unknown_fields_are_pruned_with_a_warning_unless_strict,
        kubectl_explains_the_schedule,
        kubectl_lists_the_columns,
    ]
}

/// Applies the shipped CRD. The API server accepts it only if its rules fit the cost budget.
async fn install(context: &TestContext) -> anyhow::Result<()> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds");
    let crds = manifests::read(&directory)?;
    ensure!(!crds.is_empty(), "there is no CRD in {}", directory.display());
    Ok(manifests::apply_crds(&context.management().admin(), &crds, Duration::from_mins(1)).await?)
}

async fn every_case_of_the_table_is_answered_as_it_says(context: Arc<TestContext>) -> TestResult {
    install(&context).await?;
    let cases = table::cases();
    ensure!(cases.len() > 100, "only {} cases", cases.len());
    let mut wrong = Vec::new();
    for case in &cases {
        if let Err(error) = check(&context, case).await {
            wrong.push(format!("{}: {error:#}", case.name));
        }
    }
    context.note(format!("{} cases sent", cases.len()));
    ensure!(wrong.is_empty(), "{} of {} cases differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    Ok(())
}

async fn check(context: &TestContext, case: &Case) -> anyhow::Result<()> {
    let answer = post(context, &case.object, "?fieldValidation=Strict").await?;
    match &case.expected {
        Expected::Accepted { becomes } => {
            ensure!(answer.code == 201, "answered {} {}", answer.code, answer.message());
            for (pointer, expected) in becomes {
                let found = answer.body.pointer(pointer).unwrap_or(&Value::Null);
                ensure!(found == expected, "{pointer} became {found} and not {expected}");
            }
            delete(context, &answer.body["metadata"]["name"]).await
        }
        Expected::Refused(refusal) => check_refusal(refusal, &answer),
    }
}

fn check_refusal(refusal: &Refusal, answer: &WireResponse) -> anyhow::Result<()> {
    let Refusal { field, code, reason, message } = refusal;
    ensure!(answer.code == *code, "answered {} and not {code}: {}", answer.code, answer.message());
    if *code == 400 {
        let named = format!("unknown field \"{field}\"");
        ensure!(answer.message().contains(&named), "{named} is not in: {}", answer.message());
        return Ok(());
    }
    let causes = answer.causes();
    let expected = |cause: &wire::ResponseCause| {
        cause.field == *field && cause.reason == *reason && cause.message.contains(message.as_str())
    };
    if causes.iter().any(expected) {
        Ok(())
    } else {
        bail!("{field} {reason} {message:?} is not among {causes:?}")
    }
}

async fn unknown_fields_are_pruned_with_a_warning_unless_strict(context: Arc<TestContext>) -> TestResult {
    install(&context).await?;
    let cases = table::cases();
    let unknown = cases.iter().filter_map(|case| match &case.expected {
        Expected::Refused(refusal) if refusal.code == 400 => Some((case, refusal)),
        Expected::Refused(_) | Expected::Accepted { .. } => None,
    });
    let mut seen = 0;
    for (case, refusal) in unknown {
        seen += 1;
        let answer = post(&context, &case.object, "?fieldValidation=Warn").await?;
        let named = format!("unknown field \"{}\"", refusal.field);
        assert!(
            answer.warnings.iter().any(|text| text.contains(&named)),
            "{}: {:?}",
            case.name,
            answer.warnings
        );
        // After pruning, the object may still be invalid, if the field was inside an object without such a field.
        assert!([201, 422].contains(&answer.code), "{}: {} {}", case.name, answer.code, answer.message());
        if answer.code == 201 {
            let pointer = format!("/{}", refusal.field.replace(['.', '['], "/").replace(']', ""));
            assert_eq!(answer.body.pointer(&pointer), None, "{}: pruned", case.name);
            delete(&context, &answer.body["metadata"]["name"]).await?;
        }
    }
    ensure!(seen > 5, "only {seen} cases of unknown fields");
    Ok(())
}

async fn kubectl_explains_the_schedule(context: Arc<TestContext>) -> TestResult {
    install(&context).await?;
    let client = context.management().admin();
    let within = Duration::from_secs(30);
    ensure!(probe::until_documented(&client, "5spot.finos.org/v1alpha1", "ScheduledMachine", within).await);
    let text = kubectl(&context, &["explain", "scheduledmachine.spec.schedule"]).await?;
    for expected in ["daysOfWeek", "hoursOfDay", "timezone", "enabled", "windows", "exceptions", "leadTime"] {
        assert!(text.contains(expected), "{expected} in:\n{text}");
    }
    assert!(!text.contains("<no description>"), "every field is described:\n{text}");
    Ok(())
}

async fn kubectl_lists_the_columns(context: Arc<TestContext>) -> TestResult {
    install(&context).await?;
    let object = table::cases().into_iter().find(|case| matches!(case.expected, Expected::Accepted { .. }));
    let object = object.map(|case| case.object).unwrap_or_default();
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    assert_eq!(post(&context, &object, "").await?.code, 201);
    let short = kubectl(&context, &["get", "sm"]).await?;
    let wide = kubectl(&context, &["get", "sm", "-o", "wide"]).await?;
    for (text, columns) in
        [(&short, &["NAME", "PHASE", "AGE"][..]), (&wide, &["CLUSTER", "TIMEZONE", "ENABLED"][..])]
    {
        let header = text.lines().next().unwrap_or_default();
        for column in columns {
            assert!(header.contains(column), "{column} in {header}");
        }
        assert!(text.contains(&name), "{text}");
    }
    assert!(!short.contains("TIMEZONE"), "{short}");
    let by_category = kubectl(&context, &["get", "cluster-api", "-o", "name"]).await?;
    assert!(by_category.contains(&name), "{by_category}");
    Ok(())
}

async fn kubectl(context: &TestContext, arguments: &[&str]) -> anyhow::Result<String> {
    let output = context.kubectl(Side::Management, arguments).await?;
    ensure!(output.status.success(), "kubectl {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

fn path(context: &TestContext) -> String {
    format!("/apis/5spot.finos.org/v1alpha1/namespaces/{}/scheduledmachines", context.namespace())
}

async fn post(context: &TestContext, object: &Value, query: &str) -> anyhow::Result<WireResponse> {
    let path = format!("{}{query}", path(context));
    Ok(wire::ask(&context.management().admin(), Method::POST, &path, "application/json", Some(object))
        .await?)
}

async fn delete(context: &TestContext, name: &Value) -> anyhow::Result<()> {
    let path = format!("{}/{}", path(context), name.as_str().unwrap_or_default());
    let options = json!({ "apiVersion": "v1", "kind": "DeleteOptions" });
    let answer =
        wire::ask(&context.management().admin(), Method::DELETE, &path, "application/json", Some(&options))
            .await?;
    ensure!(answer.code == 200, "deleting {path}: {} {}", answer.code, answer.message());
    Ok(())
}
