//! The kinds that a cluster serves and their plurals, from discovery.

use crate::transport::error::{ReadFailure, ReadFailureKind, explain};
use five_spot_core::ProviderKind;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIResource, APIResourceList};
use kube::Client;
use kube::api::ApiResource;
use kube::core::gvk::GroupVersionKind;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The versions of Cluster API's own objects that this program supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CapiVersion {
    /// `cluster.x-k8s.io/v1beta1`.
    V1Beta1,
    /// `cluster.x-k8s.io/v1beta2`.
    V1Beta2,
}

/// The API group of Cluster API itself.
pub(crate) const CAPI_GROUP: &str = "cluster.x-k8s.io";

impl CapiVersion {
    /// The newest first.
    pub(crate) const PREFERRED: [Self; 2] = [Self::V1Beta2, Self::V1Beta1];

    /// The version part of an `apiVersion`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V1Beta1 => "v1beta1",
            Self::V1Beta2 => "v1beta2",
        }
    }

    pub(crate) fn api_version(self) -> String {
        format!("{CAPI_GROUP}/{}", self.as_str())
    }
}

/// The age up to which an answer of discovery is used for other kinds. A tenant can name any number of kinds that do not
/// exist: all of them together must not cost more requests than one. Less than the pause after which a kind is looked up
/// again, so that each look-up of one kind sees a new answer.
const RECENT: Duration = Duration::from_secs(4);

/// An answer of discovery, and when it came.
type Answer<T> = (Instant, Result<T, ReadFailure>);

/// The latest answers of discovery.
#[derive(Default)]
struct RecentAnswers {
    /// The versions of all groups, as `group/version`.
    versions: Option<Answer<Vec<String>>>,
    /// The resources of a version.
    resources: BTreeMap<String, Answer<Vec<APIResource>>>,
}

/// The results of discovery so far. A kind that was found is not looked up again; one that was not found is.
pub(crate) struct Kinds {
    client: Client,
    known: Mutex<BTreeMap<ProviderKind, ApiResource>>,
    recent: Mutex<RecentAnswers>,
    /// Held during a look-up that may use recent answers, so that others wait for its answers instead of asking as well.
    looking: tokio::sync::Mutex<()>,
}

impl Kinds {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            known: Mutex::default(),
            recent: Mutex::default(),
            looking: tokio::sync::Mutex::default(),
        }
    }

    /// The resource of a provider's kind, from discovery.
    pub(crate) async fn resolve(&self, kind: &ProviderKind) -> Result<ApiResource, ReadFailure> {
        if let Some(resource) = self.known(kind) {
            return Ok(resource);
        }
        let looking = self.looking.lock().await;
        let served = if self.is_lately_unserved(&kind.api_version) {
            Ok(Vec::new())
        } else {
            self.resources(&kind.api_version, RECENT).await
        };
        let found = match served {
            Ok(resources) => named(&resources, &kind.kind).cloned(),
            Err(failure) if failure.kind == ReadFailureKind::NoSuchKind => None,
            Err(failure) => return Err(failure),
        };
        let Some(found) = found else { return Err(self.not_served(kind, RECENT).await) };
        drop(looking);
        let (group, version) = kind.api_version.split_once('/').unwrap_or(("", &kind.api_version));
        let gvk = GroupVersionKind::gvk(group, version, &kind.kind);
        let resource = ApiResource::from_gvk_with_plural(&gvk, &found.name);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(kind.clone(), resource.clone());
        Ok(resource)
    }

    /// The failure for a kind that is not served in its version. It may be served in another one, and then objects of it may exist.
    async fn not_served(&self, kind: &ProviderKind, max_age: Duration) -> ReadFailure {
        let (group, _) = kind.api_version.split_once('/').unwrap_or(("", &kind.api_version));
        let versions = match self.versions(max_age).await {
            Ok(versions) => versions,
            Err(failure) => return failure,
        };
        let of_group = |version: &String| version.split_once('/').is_some_and(|(other, _)| other == group);
        for version in versions.into_iter().filter(of_group) {
            match self.resources(&version, max_age).await {
                Ok(resources) if named(&resources, &kind.kind).is_some() => {
                    let message =
                        format!("kind {} is served in {version} but not in {}", kind.kind, kind.api_version);
                    return ReadFailure { kind: ReadFailureKind::OtherVersion, message };
                }
                Ok(_) => {}
                Err(failure) if failure.kind == ReadFailureKind::NoSuchKind => {}
                Err(failure) => return failure,
            }
        }
        missing(format!("there is no kind {} in {}", kind.kind, kind.api_version))
    }

    /// True if discovery says that no version of its group serves a kind, so that no object of it can exist.
    pub(crate) async fn is_gone(&self, kind: &ProviderKind) -> bool {
        let served = self.resources(&kind.api_version, Duration::ZERO).await;
        let in_version = served.map(|resources| named(&resources, &kind.kind).is_some());
        match in_version {
            Ok(true) => false,
            Ok(false) => self.not_served(kind, Duration::ZERO).await.kind == ReadFailureKind::NoSuchKind,
            Err(failure) => {
                failure.kind == ReadFailureKind::NoSuchKind
                    && self.not_served(kind, Duration::ZERO).await.kind == ReadFailureKind::NoSuchKind
            }
        }
    }

    /// Forgets a kind that is gone.
    pub(crate) fn forget(&self, kind: &ProviderKind) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(kind);
        *self.recent.lock().unwrap_or_else(PoisonError::into_inner) = RecentAnswers::default();
    }

    /// The resource of a kind that was found before.
    pub(crate) fn known(&self, kind: &ProviderKind) -> Option<ApiResource> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(kind).cloned()
    }

    /// The newest version of Cluster API that both support.
    pub(crate) async fn cluster_api(&self) -> Result<CapiVersion, ReadFailure> {
        let mut last = missing(format!("Cluster API is not installed: nothing is served in {CAPI_GROUP}"));
        for version in CapiVersion::PREFERRED {
            match self.resources(&version.api_version(), Duration::ZERO).await {
                Ok(resources) => {
                    let serves = |kind: &str| resources.iter().any(|resource| resource.kind == kind);
                    if serves("Machine") && serves("Cluster") {
                        return Ok(version);
                    }
                }
                Err(failure) if failure.kind == ReadFailureKind::NoSuchKind => {}
                Err(failure) => last = failure,
            }
        }
        Err(last)
    }

    /// True if discovery says that a version has no such kind; not if it says nothing.
    pub(crate) async fn lacks(&self, api_version: &str, kind: &str) -> bool {
        let resources = self.resources(api_version, Duration::ZERO).await;
        resources.is_ok_and(|resources| resources.iter().all(|resource| resource.kind != kind))
    }

    /// True if a recent answer says that a version does not exist.
    fn is_lately_unserved(&self, api_version: &str) -> bool {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        match &recent.versions {
            Some((at, Ok(versions))) if at.elapsed() < RECENT => {
                !versions.iter().any(|version| version == api_version)
            }
            Some(_) | None => false,
        }
    }

    /// The versions of all groups, by an answer that is not older than `max_age`.
    async fn versions(&self, max_age: Duration) -> Result<Vec<String>, ReadFailure> {
        let known = self.recent.lock().unwrap_or_else(PoisonError::into_inner).versions.clone();
        if let Some((at, answer)) = known
            && at.elapsed() < max_age
        {
            return answer;
        }
        let answer = self.client.list_api_groups().await;
        let versions = answer.map(|list| {
            let versions = list.groups.into_iter().flat_map(|group| group.versions);
            versions.map(|version| version.group_version).collect()
        });
        // Whatever the code of an error, it does not mean that there is no such group.
        let versions = versions
            .map_err(|error| ReadFailure { kind: ReadFailureKind::Unreachable, message: explain(&error) });
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.versions = Some((Instant::now(), versions.clone()));
        versions
    }

    /// The resources of a version, by an answer that is not older than `max_age`.
    async fn resources(&self, api_version: &str, max_age: Duration) -> Result<Vec<APIResource>, ReadFailure> {
        let known =
            self.recent.lock().unwrap_or_else(PoisonError::into_inner).resources.get(api_version).cloned();
        if let Some((at, answer)) = known
            && at.elapsed() < max_age
        {
            return answer;
        }
        let resources = self.read_resources(api_version).await;
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.resources.retain(|_, (at, _)| at.elapsed() < RECENT);
        recent.resources.insert(api_version.to_owned(), (Instant::now(), resources.clone()));
        resources
    }

    async fn read_resources(&self, api_version: &str) -> Result<Vec<APIResource>, ReadFailure> {
        let answer: Result<APIResourceList, kube::Error> = if api_version.contains('/') {
            self.client.list_api_group_resources(api_version).await
        } else {
            self.client.list_core_api_resources(api_version).await
        };
        answer.map(|list| list.resources).map_err(|error| ReadFailure::of(&error))
    }
}

/// The resource of a kind of Cluster API itself. The plurals belong to Cluster API's contract.
pub(crate) fn capi_resource(version: CapiVersion, kind: &str, plural: &str) -> ApiResource {
    let gvk = GroupVersionKind::gvk(CAPI_GROUP, version.as_str(), kind);
    ApiResource::from_gvk_with_plural(&gvk, plural)
}

/// The resource of `ScheduledMachine`s.
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

const fn missing(message: String) -> ReadFailure {
    ReadFailure { kind: ReadFailureKind::NoSuchKind, message }
}
