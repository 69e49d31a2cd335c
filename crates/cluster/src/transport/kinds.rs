//! Which kinds a cluster knows, and under which plural: asked of discovery, never guessed.

use crate::cache::store::{Failure, FailureKind};
use crate::view::render::{CAPI_GROUP, CapiVersion};
use five_spot_core::ProviderKind;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIResource, APIResourceList};
use kube::Client;
use kube::api::ApiResource;
use kube::core::gvk::GroupVersionKind;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// What discovery has said so far. A kind that was found is not asked for again; one that was not is.
pub(crate) struct Kinds {
    client: Client,
    known: Mutex<BTreeMap<ProviderKind, ApiResource>>,
}

impl Kinds {
    pub(crate) const fn new(client: Client) -> Self {
        Self { client, known: Mutex::new(BTreeMap::new()) }
    }

    /// How objects of a provider's kind are addressed.
    pub(crate) async fn resolve(&self, kind: &ProviderKind) -> Result<ApiResource, Failure> {
        if let Some(resource) = self.known(kind) {
            return Ok(resource);
        }
        let found = match self.resources(&kind.api_version).await {
            Ok(resources) => named(&resources, &kind.kind).cloned(),
            Err(failure) if failure.kind == FailureKind::NoSuchKind => None,
            Err(failure) => return Err(failure),
        };
        let Some(found) = found else { return Err(self.not_served(kind).await) };
        let (group, version) = kind.api_version.split_once('/').unwrap_or(("", &kind.api_version));
        let gvk = GroupVersionKind::gvk(group, version, &kind.kind);
        let resource = ApiResource::from_gvk_with_plural(&gvk, &found.name);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(kind.clone(), resource.clone());
        Ok(resource)
    }

    /// Why a kind is not served in its version: it may be in another one, and then objects of it may exist.
    async fn not_served(&self, kind: &ProviderKind) -> Failure {
        let (group, _) = kind.api_version.split_once('/').unwrap_or(("", &kind.api_version));
        let groups = match self.client.list_api_groups().await {
            Ok(groups) => groups.groups,
            // Whatever the code: nobody has said that there is no such group.
            Err(error) => {
                return Failure {
                    kind: FailureKind::Unreachable,
                    message: crate::transport::error::explain(&error),
                };
            }
        };
        let versions =
            groups.into_iter().filter(|found| found.name == group).flat_map(|found| found.versions);
        for version in versions.map(|version| version.group_version) {
            match self.resources(&version).await {
                Ok(resources) if named(&resources, &kind.kind).is_some() => {
                    let message =
                        format!("kind {} is served in {version} but not in {}", kind.kind, kind.api_version);
                    return Failure { kind: FailureKind::OtherVersion, message };
                }
                Ok(_) => {}
                Err(failure) if failure.kind == FailureKind::NoSuchKind => {}
                Err(failure) => return failure,
            }
        }
        missing(format!("there is no kind {} in {}", kind.kind, kind.api_version))
    }

    /// True if discovery says that no version of its group serves a kind, so that no object of it can exist.
    pub(crate) async fn is_gone(&self, kind: &ProviderKind) -> bool {
        let served = self.resources(&kind.api_version).await;
        let in_version = served.map(|resources| named(&resources, &kind.kind).is_some());
        match in_version {
            Ok(true) => false,
            Ok(false) => self.not_served(kind).await.kind == FailureKind::NoSuchKind,
            Err(failure) => {
                failure.kind == FailureKind::NoSuchKind
                    && self.not_served(kind).await.kind == FailureKind::NoSuchKind
            }
        }
    }

    /// Forgets a kind that is gone.
    pub(crate) fn forget(&self, kind: &ProviderKind) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(kind);
    }

    /// How objects of a kind that was found before are addressed.
    pub(crate) fn known(&self, kind: &ProviderKind) -> Option<ApiResource> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(kind).cloned()
    }

    /// The newest version of Cluster API that we both speak.
    pub(crate) async fn cluster_api(&self) -> Result<CapiVersion, Failure> {
        let mut last = missing(format!("Cluster API is not installed: nothing is served in {CAPI_GROUP}"));
        for version in CapiVersion::PREFERRED {
            match self.resources(&version.api_version()).await {
                Ok(resources) => {
                    let serves = |kind: &str| resources.iter().any(|resource| resource.kind == kind);
                    if serves("Machine") && serves("Cluster") {
                        return Ok(version);
                    }
                }
                Err(failure) if failure.kind == FailureKind::NoSuchKind => {}
                Err(failure) => last = failure,
            }
        }
        Err(last)
    }

    /// True if discovery says that a version has no such kind; not if it says nothing.
    pub(crate) async fn lacks(&self, api_version: &str, kind: &str) -> bool {
        let resources = self.resources(api_version).await;
        resources.is_ok_and(|resources| resources.iter().all(|resource| resource.kind != kind))
    }

    async fn resources(&self, api_version: &str) -> Result<Vec<APIResource>, Failure> {
        let answer: Result<APIResourceList, kube::Error> = if api_version.contains('/') {
            self.client.list_api_group_resources(api_version).await
        } else {
            self.client.list_core_api_resources(api_version).await
        };
        answer.map(|list| list.resources).map_err(|error| Failure::of(&error))
    }
}

/// How Machines and Clusters are addressed. Their plurals belong to Cluster API's contract.
pub(crate) fn capi_resource(version: CapiVersion, kind: &str, plural: &str) -> ApiResource {
    let gvk = GroupVersionKind::gvk(CAPI_GROUP, version.as_str(), kind);
    ApiResource::from_gvk_with_plural(&gvk, plural)
}

/// How `ScheduledMachine`s are addressed.
pub(crate) fn our_resource() -> ApiResource {
    ApiResource::erase::<five_spot_api::ScheduledMachine>(&())
}

/// The resource of a kind, its subresources aside.
fn named<'a>(resources: &'a [APIResource], kind: &str) -> Option<&'a APIResource> {
    resources.iter().find(|resource| is_whole(resource) && resource.kind == kind)
}

fn is_whole(resource: &APIResource) -> bool {
    !resource.name.contains('/')
}

const fn missing(message: String) -> Failure {
    Failure { kind: FailureKind::NoSuchKind, message }
}

impl Failure {
    /// Why a call could not fill a shelf.
    pub(crate) fn of(error: &kube::Error) -> Self {
        let code = if let kube::Error::Api(status) = error { status.code } else { 0 };
        let kind = match code {
            404 => FailureKind::NoSuchKind,
            401 | 403 => FailureKind::Forbidden,
            _ => FailureKind::Unreachable,
        };
        Self { kind, message: crate::transport::error::explain(error) }
    }
}
