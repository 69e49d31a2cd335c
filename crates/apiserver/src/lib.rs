//! An in-memory Kubernetes API server, for tests and demos of clients and controllers.
//!
//! [`ApiServer`] is the handle of a server. [`ApiServer::client`] returns a `kube::Client` that needs no
//! network, [`ApiServer::service`] returns a `tower` service, and [`serve`] listens on a loopback port for
//! `kubectl`. The server has no clock and no source of randomness of its own: both come from its
//! configuration ([`Clock`] and a seed). It stores nothing on disk. Its responses are those of a
//! kube-apiserver v1.36, which a conformance suite of recorded responses verifies. Unsupported requests are
//! refused with status 501 and a message.
//!
//! ```
//! use five_spot_apiserver::{ApiServer, ApiServerConfig, Clock};
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube::api::PostParams;
//! use std::time::Duration;
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // While tokio's clock is paused, time jumps to the next timer whenever no task can run.
//! let clock = Clock::starting_at("2026-03-02T08:00:00Z".parse()?);
//! let server = ApiServer::new(ApiServerConfig::new(clock.clone()));
//!
//! let config_maps: kube::Api<ConfigMap> = kube::Api::default_namespaced(server.client("default"));
//! tokio::time::sleep(Duration::from_hours(24)).await;
//! let config_map = serde_json::from_value(serde_json::json!({"metadata": {"name": "colours"}}))?;
//! let created = config_maps.create(&PostParams::default(), &config_map).await?;
//!
//! let created_at = created.metadata.creation_timestamp.expect("set by the server").0;
//! assert_eq!(created_at, "2026-03-03T08:00:00Z".parse()?);
//! # Ok(())
//! # }
//! ```
//!
//! To inject faults, put the service of the module [`faults`] in front of the server.
//!
//! # Supported
//!
//! - Kinds: `Namespace`, `Node`, `Pod`, `ConfigMap`, `Secret`, `ServiceAccount`, `Event` in both groups, `Lease`,
//!   `PodDisruptionBudget`, `Deployment`, `DaemonSet` and `ReplicaSet` (stored; no controllers act on them),
//!   `CustomResourceDefinition`, and every kind that a CRD defines, with several versions if conversion is `None`.
//! - Reading: get, list (label and field selectors, limit and continue, exact and minimal resource versions), watch
//!   (resource versions, initial events, bookmarks, selectors, 410), tables, metadata only.
//! - Writing: create, update, merge, JSON and strategic merge patch, server-side apply with `managedFields` and
//!   conflicts, delete with preconditions, propagation policy and grace period, delete-collection, dry run, field
//!   validation, and the subresources `status`, `binding`, `eviction` and `finalize`. Bodies can be JSON, YAML,
//!   or, for the kinds that typed Go clients send in this form, protobuf.
//! - Side effects of writes: garbage collection by owner references (foreground, background, orphan), deletion of
//!   namespaces and CRDs, the status of disruption budgets, the `default` account and `kube-root-ca.crt` of a new namespace.
//! - CRDs: defaults, pruning, structural schemas and CEL rules (`five-spot-schema`), printer columns, selectable fields.
//! - Discovery, plain and aggregated; OpenAPI v3 as far as `kubectl explain`, `apply` and `diff` need it, and
//!   OpenAPI v2 as far as `kubectl` needs it to leave validation to the server.
//!
//! # Not supported
//!
//! Users and permissions, admission webhooks and policies, conversion webhooks, `scale`, `log`, `exec` and the other
//! subresources of Pods, and the limit of ten update managers in `managedFields`.

mod api_server;
mod apply;
pub mod clock;
mod discovery;
mod error;
pub mod faults;
mod frontend;
pub mod ids;
mod kinds;
mod object;
mod patch;
mod select;
mod service_state;
mod side_effects;
mod state;
mod store;
mod strategy;
mod tables;
mod types;
mod verbs;
mod watch_signals;

pub use api_server::{ApiServer, ApiServerConfig};
pub use clock::Clock;
pub use error::ApiError;
pub use frontend::{ApiService, BoxError, HttpServer, ResponseBody, serve};
pub use select::LabelSelector;
