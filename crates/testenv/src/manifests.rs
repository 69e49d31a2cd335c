//! Applies YAML to a cluster the way `kubectl apply --server-side` does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::{GroupVersionKind, TypeMeta};
use kube::discovery::{ApiCapabilities, Scope, pinned_kind};
use kube::runtime::conditions::is_crd_established;
use kube::runtime::wait::await_condition;
use kube::{Api, Client};
use serde_json::Value;

/// The field manager of everything that the harness applies.
pub const FIELD_MANAGER: &str = "5spot-testenv";

/// The reason why a manifest could not be applied.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// A file could not be read.
    #[error("failed to read {path}: {source}")]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The text is not YAML.
    #[error("failed to parse {origin}: {source}")]
    Parse {
        /// The source of the text.
        origin: String,
        /// The cause.
        source: Box<serde_saphyr::Error>,
    },
    /// The document is not a Kubernetes object.
    #[error("not a Kubernetes object ({reason}): {text}")]
    Shape {
        /// The missing part.
        reason: &'static str,
        /// The document's beginning.
        text: String,
    },
    /// The server does not know the kind, or refused the object.
    #[error("failed to apply {kind} {name}: {source}")]
    Apply {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
        /// The cause.
        source: Box<kube::Error>,
    },
    /// A CRD was accepted but never served.
    #[error("the CRD {name} was not established within {within:?}")]
    NotEstablished {
        /// Its name.
        name: String,
        /// The time limit.
        within: Duration,
    },
}

/// Every document of every YAML file of a directory, files sorted by name, without `kustomization.yaml`; or those of
/// one file. As with kustomize, namespaces come first, regardless of their file.
pub fn read(path: &Path) -> Result<Vec<Value>, ManifestError> {
    let error = |source| ManifestError::Read { path: path.to_path_buf(), source };
    if path.is_file() {
        return parse(&std::fs::read_to_string(path).map_err(error)?, &path.display().to_string());
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(error)? {
        let file = entry.map_err(error)?.path();
        let is_yaml = file.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
        if is_yaml && file.file_name().is_none_or(|name| name != "kustomization.yaml") {
            files.push(file);
        }
    }
    files.sort();
    let mut documents = Vec::new();
    for file in files {
        documents.extend(read(&file)?);
    }
    documents.sort_by_key(|document: &Value| document["kind"] != "Namespace");
    Ok(documents)
}

/// The documents of a YAML text; empty ones are left out.
pub fn parse(text: &str, origin: &str) -> Result<Vec<Value>, ManifestError> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text)
        .map_err(|source| ManifestError::Parse { origin: origin.into(), source: Box::new(source) })?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

/// Applies documents to one cluster and remembers the kinds it has looked up.
pub struct Applier {
    client: Client,
    kinds: BTreeMap<(String, String), (ApiResource, ApiCapabilities)>,
}

impl Applier {
    /// Applies with the identity of `client`.
    pub fn new(client: Client) -> Self {
        Self { client, kinds: BTreeMap::new() }
    }

    /// Applies every document in order. Namespaced objects without a namespace go to `namespace`.
    pub async fn apply_all(&mut self, documents: &[Value], namespace: &str) -> Result<(), ManifestError> {
        for document in documents {
            self.apply(document, namespace).await?;
        }
        Ok(())
    }

    /// Applies one document and returns the object as the server has it.
    pub async fn apply(&mut self, document: &Value, namespace: &str) -> Result<DynamicObject, ManifestError> {
        let shape =
            |reason| ManifestError::Shape { reason, text: document.to_string().chars().take(120).collect() };
        let types: TypeMeta =
            serde_json::from_value(document.clone()).map_err(|_| shape("apiVersion and kind are needed"))?;
        let name = document["metadata"]["name"].as_str().ok_or_else(|| shape("metadata.name is needed"))?;
        let apply_error = |source| ManifestError::Apply {
            kind: types.kind.clone(),
            name: name.into(),
            source: Box::new(source),
        };
        let key = (types.api_version.clone(), types.kind.clone());
        if !self.kinds.contains_key(&key) {
            let kind = GroupVersionKind::try_from(&types).map_err(|_| shape("apiVersion is malformed"))?;
            let found = pinned_kind(&self.client, &kind).await.map_err(apply_error)?;
            self.kinds.insert(key.clone(), found);
        }
        let (resource, capabilities) = &self.kinds[&key];
        let api: Api<DynamicObject> = match capabilities.scope {
            Scope::Cluster => Api::all_with(self.client.clone(), resource),
            Scope::Namespaced => {
                let namespace = document["metadata"]["namespace"].as_str().unwrap_or(namespace);
                Api::namespaced_with(self.client.clone(), namespace, resource)
            }
        };
        let params = PatchParams::apply(FIELD_MANAGER).force();
        api.patch(name, &params, &Patch::Apply(document)).await.map_err(apply_error)
    }
}

/// Applies CRDs at the same time and waits until the server serves all of them.
pub async fn apply_crds(client: &Client, documents: &[Value], within: Duration) -> Result<(), ManifestError> {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let one = |document: &Value| {
        let crds = crds.clone();
        let document = document.clone();
        async move {
            let name = document["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let params = PatchParams::apply(FIELD_MANAGER).force();
            crds.patch(&name, &params, &Patch::Apply(&document)).await.map_err(|source| {
                ManifestError::Apply {
                    kind: "CustomResourceDefinition".into(),
                    name: name.clone(),
                    source: Box::new(source),
                }
            })?;
            let established = await_condition(crds, &name, is_crd_established());
            match tokio::time::timeout(within, established).await {
                Ok(Ok(_)) => Ok(()),
                Ok(Err(_)) | Err(_) => Err(ManifestError::NotEstablished { name, within }),
            }
        }
    };
    futures::future::try_join_all(documents.iter().map(one)).await.map(drop)
}
