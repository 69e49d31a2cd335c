//! The `kubectl` commands that fixes consist of, carried out literally.

use crate::sandbox::environment::AGENTS;
use five_spot_apiserver::Clock;
use http::Request;
use kube::Client;
use serde_json::{Value, json};

/// The collection of a kind, as commands name it.
fn collection(kind: &str, namespace: &str) -> String {
    let group = match kind {
        "scheduledmachine" => "/apis/5spot.finos.org/v1alpha1",
        "machines.cluster.x-k8s.io" | "clusters.cluster.x-k8s.io" => "/apis/cluster.x-k8s.io/v1beta2",
        "poddisruptionbudget" => "/apis/policy/v1",
        "daemonset" => "/apis/apps/v1",
        "configmap" | "namespace" | "node" | "nodes" | "pod" => "/api/v1",
        other => panic!("no such kind here: {other}"),
    };
    let plural = match kind.split('.').next().unwrap_or_default() {
        plural @ ("machines" | "clusters" | "nodes") => plural.to_owned(),
        single => format!("{single}s"),
    };
    if matches!(kind, "namespace" | "node" | "nodes") {
        format!("{group}/{plural}")
    } else {
        format!("{group}/namespaces/{namespace}/{plural}")
    }
}

/// The words of a command. Quotes group, and `$(date ...)` is the time of the cluster.
fn words(command: &str, clock: &Clock) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    let mut rest = command;
    while let Some(character) = rest.chars().next() {
        if rest.starts_with("$(date") && quote != Some('\'') {
            let end = rest.find(')').expect("a closing parenthesis");
            let now = clock.now();
            let second = jiff::Timestamp::from_second(now.as_second()).unwrap_or(now);
            let shown =
                if rest[..end].contains("+%s") { now.as_second().to_string() } else { second.to_string() };
            words.last_mut().expect("a word").push_str(&shown);
            rest = &rest[end + 1..];
            continue;
        }
        match (quote, character) {
            (Some(open), close) if open == close => quote = None,
            (None, '\'' | '"') => quote = Some(character),
            (None, ' ') => words.push(String::new()),
            (_, other) => words.last_mut().expect("a word").push(other),
        }
        rest = &rest[character.len_utf8()..];
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Carries out a command.
pub async fn run(client: &Client, clock: &Clock, command: &str) {
    let words = words(command, clock);
    assert_eq!(words.first().map(String::as_str), Some("kubectl"), "{command}");
    let (mut plain, mut namespace, mut content, mut kind_of_patch) =
        (Vec::new(), String::new(), None, "merge");
    let mut words = words[1..].iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "-n" => namespace.clone_from(words.next().expect("a namespace")),
            "-p" => content = words.next().cloned(),
            "--type=merge" | "--overwrite" => {}
            "--type=json" => kind_of_patch = "json",
            other if other.starts_with("--namespace=") => {
                other["--namespace=".len()..].clone_into(&mut namespace);
            }
            _ => plain.push(word.as_str()),
        }
    }
    if plain == ["apply", "-k", "deploy/node-agent/"] {
        return create(client, "/apis/apps/v1/namespaces/5spot-system/daemonsets", &agents()).await;
    }
    if plain == ["apply", "--server-side", "-k", "deploy/crds/"] {
        return apply_crd(client).await;
    }
    let [verb, kind, name, changes @ ..] = plain.as_slice() else { panic!("{command}") };
    let path = format!("{}/{name}", collection(kind, &namespace));
    match *verb {
        "patch" => change(client, &path, kind_of_patch, &content.expect("a patch")).await,
        "annotate" => change(client, &path, "merge", &metadata("annotations", changes).to_string()).await,
        "label" => change(client, &path, "merge", &metadata("labels", changes).to_string()).await,
        "delete" => ask(client, Request::delete(&path).body(Vec::new()).expect("a request")).await,
        "taint" => remove_taints(client, &path, changes).await,
        other => panic!("no such verb here: {other}"),
    }
}

/// The part of `deploy/node-agent` that the sandbox has.
fn agents() -> Value {
    serde_saphyr::from_str(AGENTS).expect("the shipped manifest")
}

/// The part of `deploy/crds` that doctor knows.
async fn apply_crd(client: &Client) {
    let shipped = serde_json::to_value(five_spot_api::crd()).expect("JSON");
    let name = shipped["metadata"]["name"].as_str().expect("a name");
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let mut there = get(client, &format!("{path}/{name}")).await;
    if there.is_null() {
        return create(client, path, &shipped).await;
    }
    there["spec"] = shipped["spec"].clone();
    let request = Request::put(format!("{path}/{name}")).header("content-type", "application/json");
    ask(client, request.body(there.to_string().into_bytes()).expect("a request")).await;
}

/// `key=value` sets, `key-` removes.
fn metadata(field: &str, changes: &[&str]) -> Value {
    let mut entries = serde_json::Map::new();
    for entry in changes {
        match entry.split_once('=') {
            Some((key, value)) => entries.insert(key.to_owned(), value.into()),
            None => entries.insert(entry.trim_end_matches('-').to_owned(), Value::Null),
        };
    }
    json!({"metadata": {field: entries}})
}

async fn remove_taints(client: &Client, path: &str, changes: &[&str]) {
    let node = get(client, path).await;
    let mut taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    for removed in changes {
        let (key, effect) = removed.trim_end_matches('-').split_once(':').expect("key:effect");
        taints.retain(|taint| taint["key"] != key || taint["effect"] != effect);
    }
    change(client, path, "merge", &json!({"spec": {"taints": taints}}).to_string()).await;
}

async fn change(client: &Client, path: &str, kind: &str, content: &str) {
    let request = Request::patch(path).header("content-type", format!("application/{kind}-patch+json"));
    ask(client, request.body(content.as_bytes().to_vec()).expect("a request")).await;
}

async fn ask(client: &Client, request: Request<Vec<u8>>) {
    let what = format!("{} {}", request.method(), request.uri());
    client.request::<Value>(request).await.unwrap_or_else(|error| panic!("{what}: {error}"));
}

/// An object; null if it does not exist.
pub async fn get(client: &Client, path: &str) -> Value {
    let request = Request::get(path).body(Vec::new()).expect("a request");
    client.request(request).await.unwrap_or_default()
}

/// Creates an object.
pub async fn create(client: &Client, path: &str, object: &Value) {
    let request = Request::post(path).header("content-type", "application/json");
    ask(client, request.body(object.to_string().into_bytes()).expect("a request")).await;
}

#[test]
fn words_are_split_as_a_shell_does() {
    let clock = Clock::starting_at("2026-11-16T08:00:00Z".parse().expect("a time"));
    let command = "kubectl patch a b -p '{\"x y\":1}' t=\"$(date -u +%s)\" u=\"$(date -u +%Y)\"";
    let expected =
        ["kubectl", "patch", "a", "b", "-p", "{\"x y\":1}", "t=1794816000", "u=2026-11-16T08:00:00Z"];
    assert_eq!(words(command, &clock), expected);
}
