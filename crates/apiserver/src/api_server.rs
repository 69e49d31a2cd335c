//! The handle of an in-memory API server.

use crate::clock::Clock;
use crate::frontend::ApiService;
use crate::service_state::Shared;
use crate::state::State;
use crate::verbs;
use bytes::Bytes;
use http::{Method, Request};
use serde_json::{Value, json};
use std::sync::Arc;

/// The number of changes that each resource keeps for its watches, as in a real server's watch cache.
const HISTORY_LIMIT: usize = 10_000;

/// The configuration of an in-memory API server.
#[derive(Clone, Debug)]
pub struct ApiServerConfig {
    /// The source of time.
    pub clock: Clock,
    /// The source of UIDs and name suffixes.
    pub seed: u64,
    /// The number of changes of each resource that watches can resume from.
    pub history_limit: usize,
}

impl ApiServerConfig {
    /// The wall clock, a fixed seed, and the history size of a real server.
    pub fn new(clock: Clock) -> Self {
        Self { clock, seed: 0, history_limit: HISTORY_LIMIT }
    }
}

/// An in-memory Kubernetes API server. Clones are handles to the same server.
#[derive(Clone, Debug)]
pub struct ApiServer {
    shared: Arc<Shared>,
}

impl ApiServer {
    /// Creates a server with only the namespaces that every cluster has.
    pub fn new(config: ApiServerConfig) -> Self {
        let state = State::new(config.clock, config.seed, config.history_limit);
        let api = Self { shared: Arc::new(Shared::new(state)) };
        for namespace in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            api.create("/api/v1/namespaces", &json!({"metadata": {"name": namespace}}));
        }
        api
    }

    /// Creates an object at a collection's path without a client, to set up the server before a test.
    ///
    /// # Panics
    ///
    /// Panics if the object is refused.
    pub fn create(&self, path: &str, object: &Value) -> Value {
        let request = Request::builder()
            .method(Method::POST)
            .uri(path)
            .header(http::header::USER_AGENT, "5spot-sandbox")
            .body(Bytes::from(object.to_string()))
            .expect("a path and a body make a request");
        let reply = self.shared.change(|state| verbs::handle(state, &request));
        let crate::frontend::Answer::Json(value) = reply.answer else { panic!("a created object is JSON") };
        assert!(reply.code.is_success(), "{path} refused {object}: {value}");
        value
    }

    /// The `tower` service, for `kube::Client` and the HTTP server.
    pub fn service(&self) -> ApiService {
        ApiService::new(self.shared.clone())
    }

    /// A client of this server that needs no network.
    pub fn client(&self, default_namespace: &str) -> kube::Client {
        kube::Client::new(self.service(), default_namespace)
    }

    /// Discards the history, as a compaction of etcd does: watches from old resource versions end with 410.
    pub fn compact(&self) {
        self.shared.change(|state| state.store.compact());
    }

    /// The revision of the latest change.
    pub fn revision(&self) -> u64 {
        self.shared.lock().store.revision()
    }
}
