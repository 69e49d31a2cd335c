//! `cargo xtask bench-diagnose`: the time and the requests of `5spot doctor -A` with many machines, and of `5spot why` about a
//! namespace with many objects, on a real API server.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use five_spot_api::names::{self, SYSTEM_NAMESPACE};
use five_spot_standins::provider_crds;
use five_spot_testenv::audit::{AuditLog, AuditQuery};
use five_spot_testenv::manifests::{self, Applier};
use five_spot_testenv::test_clusters::TestClusters;
use five_spot_testenv::wait;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::startup::{Bare, machine, shipped_definition};

/// The argument that selects this benchmark.
pub(super) const WORD: &str = "bench-diagnose";

/// Objects that are made at a time.
const AT_A_TIME: usize = 16;

/// Measurements of each command.
const ROUNDS: usize = 5;

/// Long enough for a busy machine.
const WAIT_LIMIT: Duration = Duration::from_mins(10);

/// One machine of so many has a reclaim agent.
const WITH_AGENT: usize = 10;

/// Measures, and prints the figures. The arguments are the program, machines and objects.
pub(super) async fn run(arguments: &[String]) -> anyhow::Result<()> {
    let [program, machines, objects] = arguments else {
        anyhow::bail!("to be started by `cargo xtask bench-diagnose`");
    };
    let program = PathBuf::from(program);
    println!("{:<44} {:>10} {:>10} {:>10}", "command", "median", "most", "requests");
    doctor(&program, machines.parse()?).await?;
    why(&program, objects.parse()?).await
}

/// A fleet of healthy machines in one workload cluster, which is the same API server. No controller runs there, so that
/// the figures are those of the command.
async fn doctor(program: &Path, machines: usize) -> anyhow::Result<()> {
    let bare = Bare::start(WORD).await?;
    bare.define(&shipped_definition()).await?;
    bare.install_cluster_api().await?;
    manifests::apply_crds(&bare.admin(), &provider_crds(), WAIT_LIMIT).await?;
    let cluster = bare.control_plane().management();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "edge-kubeconfig", "namespace": "default"},
        "stringData": {"value": std::fs::read_to_string(cluster.kubeconfig())?},
    });
    bare.apply(&secret).await?;
    let client = bare.admin();
    stream::iter(0..machines)
        .map(|number| make_machine(client.clone(), number))
        .buffer_unordered(AT_A_TIME)
        .try_collect::<()>()
        .await?;
    let measured = measure(
        program,
        &["doctor", "-A", "-o", "json"],
        cluster.kubeconfig(),
        &cluster.audit_log(),
        &format!("5spot doctor -A, {machines} machines"),
    )
    .await;
    bare.stop().await?;
    let answer = measured?;
    ensure!(answer["checked"] == machines, "{answer:#}");
    let findings = answer["findings"].as_array().map(Vec::len);
    println!("  findings: {}", findings.unwrap_or_default());
    Ok(())
}

/// A namespace that is being deleted, and whose objects have a finalizer of a controller that does not run.
async fn why(program: &Path, objects: usize) -> anyhow::Result<()> {
    let clusters = TestClusters::start().await?;
    let cluster = clusters.control_plane().workload();
    let client = cluster.admin();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let name = "many";
    namespaces
        .create(&PostParams::default(), &serde_json::from_value(json!({"metadata": {"name": name}}))?)
        .await?;
    let maps: Api<ConfigMap> = Api::namespaced(client, name);
    stream::iter(0..objects)
        .map(|number| make_map(maps.clone(), number))
        .buffer_unordered(AT_A_TIME)
        .try_collect::<()>()
        .await?;
    namespaces.delete(name, &DeleteParams::default()).await?;
    let reported = |namespace: &Namespace| {
        let conditions = namespace.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions
            .into_iter()
            .flatten()
            .any(|one| one.type_ == "NamespaceFinalizersRemaining" && one.status == "True")
    };
    wait::until_present(&namespaces, name, "to report what remains", WAIT_LIMIT, reported).await?;
    let measured = measure(
        program,
        &["why", &format!("namespace/{name}"), "-o", "json"],
        cluster.kubeconfig(),
        &cluster.audit_log(),
        &format!("5spot why namespace/X, {objects} objects"),
    )
    .await;
    clusters.stop().await?;
    ensure!(measured?["causes"].as_array().is_some_and(|causes| !causes.is_empty()), "no cause was found");
    Ok(())
}

/// Runs a command several times, prints its figures, and returns its last answer.
async fn measure(
    program: &Path,
    words: &[&str],
    kubeconfig: &Path,
    log: &AuditLog,
    name: &str,
) -> anyhow::Result<Value> {
    let (mut times, mut requests, mut answer) = (Vec::new(), 0, Value::Null);
    for _ in 0..ROUNDS {
        let (place, begun) = (log.end()?, Instant::now());
        let output = tokio::process::Command::new(program)
            .args(words)
            .env_clear()
            .env("KUBECONFIG", kubeconfig)
            .output()
            .await?;
        times.push(begun.elapsed());
        answer = serde_json::from_slice(&output.stdout)
            .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
        // The API server writes its audit log a moment later.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let query = AuditQuery::all().user_agent("5spot/");
        let (records, _) = log.read_from(place, &query)?;
        requests = records.iter().filter(|record| record.stage == "ResponseComplete").count();
    }
    times.sort();
    let seconds = |time: Duration| format!("{:.2} s", time.as_secs_f64());
    let most = times.last().copied().unwrap_or_default();
    println!("{name:<44} {:>10} {:>10} {requests:>10}", seconds(times[ROUNDS / 2]), seconds(most));
    Ok(answer)
}

async fn make_map(maps: Api<ConfigMap>, number: usize) -> anyhow::Result<()> {
    let map = json!({
        "metadata": {"name": format!("map-{number:05}"), "finalizers": ["example.org/hold"]}, "data": {"number": number.to_string()},
    });
    maps.create(&PostParams::default(), &serde_json::from_value(map)?).await?;
    Ok(())
}

/// A machine that is lent, as the controller and Cluster API leave it, and its Node.
async fn make_machine(client: Client, number: usize) -> anyhow::Result<()> {
    let (name, node) = (format!("desk-{number:04}"), format!("node-{number:04}"));
    let mut object = machine(&name);
    let has_agent = number.is_multiple_of(WITH_AGENT);
    if has_agent {
        object["spec"]["killIfCommands"] = json!(["java"]);
    }
    let capi = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": {
            "name": names::machine(&name), "namespace": "default",
            "labels": {"cluster.x-k8s.io/cluster-name": "edge", names::label::SCHEDULED_MACHINE: name},
        },
        "spec": {
            "clusterName": "edge", "bootstrap": {"dataSecretName": name},
            "infrastructureRef": {
                "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "RemoteMachine", "name": names::infrastructure(&name),
            },
        },
    });
    let labels = if has_agent {
        json!({names::label::RECLAIM_AGENT: names::label::RECLAIM_AGENT_ENABLED})
    } else {
        json!({})
    };
    let mut objects = vec![object, capi];
    objects.push(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node, "labels": labels}}));
    if has_agent {
        objects.push(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": five_spot_api::reclaim::config_map(&node), "namespace": SYSTEM_NAMESPACE},
            "data": {five_spot_api::reclaim::CONFIG_KEY: "match_commands = [\"java\"]\n"},
        }));
    }
    Applier::new(client.clone()).apply_all(&objects, "default").await?;
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(names::GROUP, names::VERSION, names::KIND));
    let machines: Api<DynamicObject> = Api::namespaced_with(client, "default", &resource);
    let status = json!({"status": status(&names::machine(&name), &node)});
    machines.patch_status(&name, &PatchParams::default(), &Patch::Merge(&status)).await?;
    Ok(())
}

fn status(machine: &str, node: &str) -> Value {
    let condition = |kind: &str, reason: &str| {
        json!({
            "type": kind, "status": "True", "reason": reason, "message": "", "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    json!({
        "phase": "Active", "observedGeneration": 1, "inSchedule": true,
        "machineRef": {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": machine},
        "nodeRef": {"apiVersion": "v1", "kind": "Node", "name": node},
        "conditions": [
            condition("Ready", "NodeReady"), condition("MachineReady", "NodeReady"),
            condition("Scheduled", "InWindow"), condition("ReferencesValid", "Valid"),
        ],
    })
}
