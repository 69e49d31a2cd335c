//! The controller: its pods, what they say of themselves, its Leases and its permissions.

use super::name;
use super::reader::{Notes, Reader};
use crate::cluster_access::CallerCluster;
use five_spot_api::names::{GROUP, SYSTEM_NAMESPACE};
use five_spot_cluster::preflight::{Permission, required};
use five_spot_diagnose::controller_config::{ControllerConfig, POD_LABEL};
use five_spot_diagnose::doctor::{
    ControllerFacts, ControllerPod, ControllerTemplate, Lease, LogLine, Needed, Page, PodReadiness, Scrapes,
    missing_rules,
};
use futures::future::join_all;
use http::Request;
use jiff::SignedDuration;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;

/// The time between the two scrapes that rates come from.
const BETWEEN_SCRAPES: Duration = Duration::from_secs(2);

/// The pods whose endpoints and logs are read. A sharded controller has as many instances as shards.
const PODS: usize = 5;

/// The time for one answer of a pod. Two scrapes and the time between them stay below the five seconds
/// that the doctor may take, however slow a pod is.
const POD_ANSWER: Duration = Duration::from_secs(1);

/// The time for the log of a pod.
const LOG_ANSWER: Duration = Duration::from_secs(3);

/// The lines of a log that are read, and their bytes.
const LOG: &str = "tailLines=2000&limitBytes=2000000";

/// The service account of the manifests.
const ACCOUNT: &str = "5spot-controller";

/// The namespaces whose permissions are asked for, if the controller watches chosen ones.
const REVIEWS: usize = 10;

pub(super) async fn collect(reader: &Reader<'_>, access: &CallerCluster) -> ControllerFacts {
    let (pods, leases, deployments, sets) = tokio::join!(
        pods(reader, access),
        leases(reader),
        owners(reader, "Deployment", "deployments"),
        owners(reader, "StatefulSet", "statefulsets"),
    );
    let owners: Option<Vec<Value>> = match (deployments, sets) {
        (None, None) => None,
        (one, other) => Some(one.into_iter().flatten().chain(other.into_iter().flatten()).collect()),
    };
    let template = match (&pods, &owners) {
        (Some(pods), _) if !pods.is_empty() => None,
        (_, owners) => template(reader, owners.as_deref().unwrap_or_default()).await,
    };
    ControllerFacts { namespace: SYSTEM_NAMESPACE.to_owned(), pods, leases, owners, template }
}

/// The pods that an owner would create. One that is scaled to nothing counts if there is no other.
async fn template(reader: &Reader<'_>, owners: &[Value]) -> Option<ControllerTemplate> {
    let is_used = |owner: &&Value| owner["spec"]["replicas"] != 0;
    let pod = &owners.iter().find(is_used).or_else(|| owners.first())?["spec"]["template"];
    let config_maps = config_maps(reader, std::slice::from_ref(pod)).await;
    Some(ControllerTemplate { account: account(pod), config: ControllerConfig::of_pod(pod, &config_maps) })
}

/// The service account of a pod or of a template of pods.
fn account(pod: &Value) -> String {
    pod["spec"]["serviceAccountName"].as_str().unwrap_or("default").to_owned()
}

/// The objects that own the pods, with their kind, which lists leave out of their items.
async fn owners(reader: &Reader<'_>, kind: &str, plural: &str) -> Option<Vec<Value>> {
    let label = POD_LABEL.replace('=', "%3D");
    let path = format!("/apis/apps/v1/namespaces/{SYSTEM_NAMESPACE}/{plural}?labelSelector={label}");
    let what = format!("{kind}s in namespace {SYSTEM_NAMESPACE}");
    let mut items = reader.list_or_none(&path, &what).await?;
    for item in &mut items {
        item["kind"] = kind.into();
    }
    Some(items)
}

async fn leases(reader: &Reader<'_>) -> Option<Vec<Lease>> {
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{SYSTEM_NAMESPACE}/leases");
    let leases = reader.list_or_none(&path, &format!("Leases in namespace {SYSTEM_NAMESPACE}")).await?;
    Some(leases.iter().map(Lease::of).collect())
}

async fn pods(reader: &Reader<'_>, access: &CallerCluster) -> Option<Vec<ControllerPod>> {
    let path =
        format!("/api/v1/namespaces/{SYSTEM_NAMESPACE}/pods?labelSelector={}", POD_LABEL.replace('=', "%3D"));
    let pods = reader.list_or_none(&path, &format!("Pods in namespace {SYSTEM_NAMESPACE}")).await?;
    let config_maps = config_maps(reader, &pods).await;
    let inspected = pods.into_iter().enumerate().map(|(index, pod)| {
        let config = ControllerConfig::of_pod(&pod, &config_maps);
        async move {
            let is_running = pod["status"]["phase"] == "Running";
            if index >= PODS || !is_running {
                return ControllerPod { pod, config, ..ControllerPod::default() };
            }
            let (readiness, scrapes, log) = tokio::join!(
                readiness(reader, &pod, &config),
                scrapes(reader, &pod, &config, access),
                log(reader, &pod)
            );
            ControllerPod { readiness, scrapes, log, pod, config }
        }
    });
    Some(join_all(inspected).await)
}

/// The `ConfigMaps` that the variables of the controller come from.
async fn config_maps(reader: &Reader<'_>, pods: &[Value]) -> BTreeMap<String, Value> {
    let names: BTreeSet<String> = pods.iter().flat_map(ControllerConfig::config_maps_of).collect();
    let mut maps = BTreeMap::new();
    for map in names {
        let path = format!("/api/v1/namespaces/{SYSTEM_NAMESPACE}/configmaps/{map}");
        let what = format!("ConfigMap {SYSTEM_NAMESPACE}/{map}");
        let read = reader.get(&path, &what).await.unwrap_or_default();
        maps.insert(map, read);
    }
    maps
}

fn proxied(pod: &Value, port: u16, path: &str) -> String {
    format!("/api/v1/namespaces/{SYSTEM_NAMESPACE}/pods/{}:{port}/proxy/{path}", name(pod))
}

async fn readiness(reader: &Reader<'_>, pod: &Value, config: &ControllerConfig) -> Option<PodReadiness> {
    let path = proxied(pod, config.health_port, "ready");
    let answer = reader.plain(&path, &format!("/ready of pod {}", name(pod)), POD_ANSWER).await?;
    let lines = answer.body.lines().filter(|line| *line != "ok" && !line.starts_with("remark: "));
    Some(PodReadiness { is_ready: answer.status.is_success(), lines: lines.map(str::to_owned).collect() })
}

async fn scrapes(
    reader: &Reader<'_>,
    pod: &Value,
    config: &ControllerConfig,
    access: &CallerCluster,
) -> Option<Scrapes> {
    let path = proxied(pod, config.metrics_port, "metrics");
    let what = format!("/metrics of pod {}", name(pod));
    let first = reader.plain(&path, &what, POD_ANSWER).await.filter(|answer| answer.status.is_success())?;
    let began = access.connection.now();
    tokio::time::sleep_until(Instant::now() + BETWEEN_SCRAPES).await;
    let second = reader.plain(&path, &what, POD_ANSWER).await.filter(|answer| answer.status.is_success())?;
    let apart = access.connection.now().duration_since(began).max(SignedDuration::from_secs(1));
    Some(Scrapes { first: Page::parse(&first.body), second: Page::parse(&second.body), apart })
}

async fn log(reader: &Reader<'_>, pod: &Value) -> Vec<LogLine> {
    let path = format!("/api/v1/namespaces/{SYSTEM_NAMESPACE}/pods/{}/log?{LOG}", name(pod));
    let log = reader.plain(&path, &format!("the log of pod {}", name(pod)), LOG_ANSWER).await;
    log.filter(|log| log.status.is_success()).map(|log| LogLine::parse(&log.body)).unwrap_or_default()
}

/// The permissions that the service account of the controller lacks, asked in its name. That needs the permission to
/// impersonate it; without it, the controller's own report in `/ready` has to do. `None` if nothing shows which account it
/// has and which namespaces it watches.
pub(super) async fn missing_permissions(
    reader: &Reader<'_>,
    controller: &ControllerFacts,
) -> Option<Vec<String>> {
    let pod = controller.pods.as_ref().and_then(|pods| pods.first());
    let (account, namespaces) = match (pod, &controller.template) {
        (Some(pod), _) => (account(&pod.pod), pod.config.namespaces.clone()),
        (None, Some(template)) => (template.account.clone(), template.config.namespaces.clone()),
        (None, None) => return missing_outside(reader, controller).await,
    };
    if namespaces.is_empty() {
        let review = review(reader, &account, SYSTEM_NAMESPACE).await?;
        return missing_rules(&review, &needed(&required(&[])));
    }
    let reviews = namespaces.iter().take(REVIEWS).map(async |namespace| {
        let review = review(reader, &account, namespace).await?;
        let missing = missing_rules(&review, &needed(&required(std::slice::from_ref(namespace))))?;
        Some(missing.into_iter().map(|missing| format!("{missing} in namespace {namespace}")).collect())
    });
    let known: Vec<Vec<String>> = join_all(reviews).await.into_iter().flatten().collect();
    (!known.is_empty()).then(|| known.concat())
}

/// The same for a controller that runs outside of the cluster with the account that is shipped. An account that may not list
/// `ScheduledMachines` in all namespaces may be meant for some of them, and nothing shows which.
async fn missing_outside(reader: &Reader<'_>, controller: &ControllerFacts) -> Option<Vec<String>> {
    let is_empty = controller.pods.as_ref()?.is_empty() && controller.owners.as_ref()?.is_empty();
    if !is_empty {
        return None;
    }
    let path = format!("/api/v1/namespaces/{SYSTEM_NAMESPACE}/serviceaccounts/{ACCOUNT}");
    let notes = Notes::default();
    let quiet = Reader::management(reader.client().clone(), &notes);
    quiet.get::<Value>(&path, "").await.ok()?;
    let review = review(reader, ACCOUNT, SYSTEM_NAMESPACE).await?;
    let lists = Permission {
        verb: "list",
        group: GROUP,
        resource: "scheduledmachines",
        subresource: "",
        namespace: None,
    };
    let is_for_all = missing_rules(&review, &needed(&[lists]))?.is_empty();
    if is_for_all { missing_rules(&review, &needed(&required(&[]))) } else { None }
}

/// The rules of an account in a namespace. Few people may ask for them, and the controller reports the same by itself.
async fn review(reader: &Reader<'_>, account: &str, namespace: &str) -> Option<Value> {
    let body = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace},
    });
    let request = Request::post("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews")
        .header("content-type", "application/json")
        .header("impersonate-user", format!("system:serviceaccount:{SYSTEM_NAMESPACE}:{account}"))
        .header("impersonate-group", "system:serviceaccounts")
        .header("impersonate-group", format!("system:serviceaccounts:{SYSTEM_NAMESPACE}"))
        .header("impersonate-group", "system:authenticated")
        .body(body.to_string().into_bytes())
        .ok()?;
    reader.quietly(request).await
}

fn needed(permissions: &[Permission]) -> Vec<Needed> {
    let needed = permissions.iter().map(|permission| Needed {
        verb: permission.verb.to_owned(),
        group: permission.group.to_owned(),
        resource: permission.what(),
    });
    needed.collect()
}
