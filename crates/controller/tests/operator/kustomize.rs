//! The kustomizations contain every file of theirs, and the overlays differ from the base only where they say so.

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Files that are applied by hand, by their path below `deploy`.
const BY_HAND: [&str; 2] = ["monitoring/alerts.yaml", "rbac-namespaced/namespace.yaml"];

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

fn read(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every directory with a `kustomization.yaml`, and that file.
fn kustomizations() -> Vec<(PathBuf, Value)> {
    let (mut found, mut folders) = (Vec::new(), vec![deploy()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a directory").flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
            }
        }
        let file = folder.join("kustomization.yaml");
        if file.is_file() {
            found.push((folder, read(&file).remove(0)));
        }
    }
    found
}

/// The references of a kustomization: resources, components and the files of patches.
fn references(kustomization: &Value) -> BTreeSet<String> {
    let list = |name: &str| kustomization[name].as_array().cloned().unwrap_or_default();
    let plain = ["resources", "components"].into_iter().flat_map(list);
    let patches = list("patches").into_iter().map(|patch| patch["path"].clone());
    let generated = list("configMapGenerator")
        .into_iter()
        .flat_map(|one| one["files"].as_array().cloned().unwrap_or_default());
    // A file of a generator may have another key: `key=file`.
    let file = |name: &Value| Some(name.as_str()?.rsplit('=').next()?.to_owned());
    plain.chain(patches).chain(generated).filter_map(|name| file(&name)).collect()
}

#[test]
fn kustomizations_refer_to_what_exists_and_to_every_file() {
    let all = kustomizations();
    assert!(all.len() > 10, "{all:?}");
    for (folder, kustomization) in all {
        let references = references(&kustomization);
        for reference in &references {
            let target = folder.join(reference);
            let is_there = target.is_file() || target.join("kustomization.yaml").is_file();
            assert!(is_there, "{} refers to {reference}", folder.display());
        }
        for entry in std::fs::read_dir(&folder).expect("a directory").flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = entry.path().strip_prefix(deploy()).expect("below").display().to_string();
            let is_yaml = Path::new(&name).extension().is_some_and(|ending| ending == "yaml");
            let is_manifest = is_yaml && name != "kustomization.yaml";
            let is_listed = references.contains(&name) || BY_HAND.contains(&path.as_str());
            assert!(!is_manifest || is_listed, "{path} is in no kustomization");
        }
    }
}

#[test]
fn images_have_the_version_of_the_program() {
    for (folder, kustomization) in kustomizations() {
        for image in kustomization["images"].as_array().into_iter().flatten() {
            assert_eq!(image["newTag"], env!("CARGO_PKG_VERSION"), "{}", folder.display());
        }
    }
    let container_file =
        std::fs::read_to_string(deploy().join("images/Containerfile")).expect("a Containerfile");
    // The tags of the images of the chart are its `appVersion`.
    let chart = &read(&deploy().join("helm/5spot/Chart.yaml"))[0];
    for field in ["version", "appVersion"] {
        assert_eq!(chart[field], env!("CARGO_PKG_VERSION"), "{field} of the chart");
    }
    let label = format!("org.opencontainers.image.version=\"{}\"", env!("CARGO_PKG_VERSION"));
    assert_eq!(container_file.matches(&label).count(), 2);
}

#[test]
fn every_layout_can_have_agents_beside_it() {
    let component = &read(&deploy().join("components/agent/kustomization.yaml"))[0];
    let patches = component["patches"].as_array().expect("patches");
    let patch = patches.iter().find(|patch| patch["path"] == "controller.yaml").expect("a patch of the pods");
    // Without a target kustomize wants an object of exactly the kind of the patch.
    let kinds: Vec<&str> = patch["target"]["kind"].as_str().expect("kinds").split('|').collect();
    for (layout, kind) in [("single", "Deployment"), ("ha", "Deployment"), ("sharded", "StatefulSet")] {
        let overlay = &read(&deploy().join(format!("{layout}-with-agent/kustomization.yaml")))[0];
        assert_eq!(overlay["resources"], serde_json::json!([format!("../{layout}")]));
        assert_eq!(overlay["components"], serde_json::json!(["../components/agent"]));
        assert!(kinds.contains(&kind), "{layout}: the component patches {kinds:?} only");
    }
}

#[test]
fn the_readme_lists_the_kustomizations_that_exist() {
    let page = std::fs::read_to_string(deploy().join("README.md")).expect("a page");
    let cells = page.lines().filter_map(|line| line.strip_prefix('|')?.split('|').next());
    let listed: BTreeSet<String> =
        cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect();
    for name in &listed {
        assert!(deploy().join(name).is_dir(), "deploy/{name} does not exist");
    }
    for (folder, _) in kustomizations() {
        let name = folder.strip_prefix(deploy()).expect("below").display().to_string();
        // A part of the component.
        assert!(listed.contains(&name) || name == "components/agent/objects", "{name} is not listed");
    }
}

#[test]
fn the_controller_prefers_nodes_that_no_owner_can_reclaim() {
    let patch = &read(&deploy().join("components/agent/controller.yaml"))[0];
    let affinity = &patch["spec"]["template"]["spec"]["affinity"]["nodeAffinity"];
    // Not a requirement: it has to run somewhere, even if every node is lent.
    assert!(affinity["requiredDuringSchedulingIgnoredDuringExecution"].is_null());
    let preferred = &affinity["preferredDuringSchedulingIgnoredDuringExecution"][0]["preference"];
    let expression = &preferred["matchExpressions"][0];
    assert_eq!(expression["key"], five_spot_api::names::label::RECLAIM_AGENT);
    assert_eq!(expression["operator"], "DoesNotExist");
}

#[test]
fn the_stateful_set_runs_the_pods_of_the_deployment() {
    let of_kind = |file: &str, kind: &str| {
        let manifests = read(&deploy().join(file));
        manifests.into_iter().find(|manifest| manifest["kind"] == kind).unwrap_or_else(|| panic!("no {kind}"))
    };
    let deployment = of_kind("controller/controller.yaml", "Deployment");
    let mut instances = of_kind("sharded/statefulset.yaml", "StatefulSet");
    let config = of_kind("sharded/config.yaml", "ConfigMap");
    let service = of_kind("controller/controller.yaml", "Service");
    assert_eq!(instances["spec"]["serviceName"], service["metadata"]["name"]);
    let replicas = instances["spec"]["replicas"].as_u64().expect("a number");
    assert_eq!(config["data"]["OPERATOR_INSTANCE_COUNT"], replicas.to_string());
    let pod = &mut instances["spec"]["template"];
    pod["spec"].as_object_mut().expect("a spec").remove("topologySpreadConstraints").expect("a spread");
    let variables = pod["spec"]["containers"][0]["env"].as_array_mut().expect("variables");
    let instance = variables.remove(0);
    assert_eq!(instance["name"], "OPERATOR_INSTANCE_ID");
    assert_eq!(instance["valueFrom"]["fieldRef"]["fieldPath"], "metadata.name");
    assert_eq!(*pod, deployment["spec"]["template"]);
}
