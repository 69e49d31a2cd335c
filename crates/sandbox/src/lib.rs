//! A Kubernetes API in memory: what runs 5-Spot with nothing to install, and gives its tests virtual time
//! and faults.
//!
//! [`Api`] is the handle: [`Api::client`] makes a `kube::Client` that needs no network, [`serve`] puts the same API on a
//! loopback port for `kubectl`. It has no clock and no chance of its own ([`Clock`], a seed), keeps nothing on disk, and
//! answers as a kube-apiserver v1.36 was recorded to answer ([`conformance`]). What it does not do it refuses with 501
//! and says so.
//!
//! What it supports:
//! - Kinds: `Namespace`, `Node`, `Pod`, `ConfigMap`, `Secret`, `ServiceAccount`, `Event` in both groups, `Lease`,
//!   `PodDisruptionBudget`, `Deployment`, `DaemonSet` and `ReplicaSet` (as data), `CustomResourceDefinition`, and every
//!   kind that a CRD describes, with several versions where conversion does nothing.
//! - Reading: get, list (label and field selectors, limit and continue, exact and minimal versions), watch (versions,
//!   initial events, bookmarks, selections, 410), tables, metadata alone.
//! - Writing: create, update, merge, JSON and strategic merge patch, server-side apply with `managedFields` and
//!   conflicts, delete with preconditions, propagation and grace, delete-collection, dry run, field validation,
//!   `status`, `binding`, `eviction`, `finalize`. JSON and YAML bodies; protobuf for what `kubectl`'s typed clients send.
//! - What follows from a write: owner garbage collection in all three modes, namespace and CRD deletion, the status of
//!   disruption budgets, a new namespace's furniture.
//! - CRDs: defaults, pruning, structural schemas, CEL ([`schema`]), printer columns, selectable fields.
//! - Discovery, plain and aggregated; OpenAPI v3 as far as `explain`, `apply` and `diff` read it, and of v2 as much as
//!   makes `kubectl` leave all checks to the server.
//!
//! Not supported: users and permissions, admission webhooks and policies, conversion webhooks, `scale`, `log`, `exec`
//! and the other subresources of Pods, the limit of ten update managers in `managedFields`.

pub mod actors;
mod api;
mod apply;
mod bells;
pub mod clock;
pub mod conformance;
mod discovery;
mod door;
mod error;
pub mod faults;
pub mod ids;
mod kinds;
mod object;
mod patch;
pub mod schema;
mod select;
mod service_state;
mod settle;
mod state;
mod store;
mod strategy;
mod tables;
mod types;
mod verbs;

pub use api::{Api, ApiConfig};
pub use clock::Clock;
pub use door::{ApiService, BoxError, HttpServer, ResponseBody, serve};
pub use error::ApiError;
