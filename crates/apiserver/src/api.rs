//! The handle that everything else holds: one embedded Kubernetes API.

use crate::clock::Clock;
use crate::door::ApiService;
use crate::service_state::Shared;
use crate::state::State;
use crate::verbs;
use bytes::Bytes;
use http::{Method, Request};
use serde_json::{Value, json};
use std::sync::Arc;

/// How many changes each resource remembers for its watches, as a real server's cache does.
const HISTORY_LIMIT: usize = 10_000;

/// What distinguishes one embedded API from another.
#[derive(Clone, Debug)]
pub struct ApiConfig {
    /// Where the API takes its time from.
    pub clock: Clock,
    /// Where its UIDs and name suffixes come from.
    pub seed: u64,
    /// How many changes of each resource a watch can catch up with.
    pub history_limit: usize,
}

impl ApiConfig {
    /// The wall clock, a fixed seed, and the history of a real server.
    pub fn new(clock: Clock) -> Self {
        Self { clock, seed: 0, history_limit: HISTORY_LIMIT }
    }
}

/// An embedded Kubernetes API. Clones are handles to the same one.
#[derive(Clone, Debug)]
pub struct Api {
    shared: Arc<Shared>,
}

impl Api {
    /// An API with the namespaces that every cluster has, and nothing else in it.
    pub fn new(config: ApiConfig) -> Self {
        let state = State::new(config.clock, config.seed, config.history_limit);
        let api = Self { shared: Arc::new(Shared::new(state)) };
        for namespace in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            api.create("/api/v1/namespaces", &json!({"metadata": {"name": namespace}}));
        }
        api
    }

    /// Creates an object at a collection's path, outside of any client: how a world is furnished before it begins.
    ///
    /// # Panics
    ///
    /// If the object is refused: what furnishes a world is written by us.
    pub fn create(&self, path: &str, object: &Value) -> Value {
        let request = Request::builder()
            .method(Method::POST)
            .uri(path)
            .header(http::header::USER_AGENT, "5spot-sandbox")
            .body(Bytes::from(object.to_string()))
            .expect("a path and a body make a request");
        let reply = self.shared.change(|state| verbs::handle(state, &request));
        let crate::door::Answer::Json(value) = reply.answer else { panic!("a created object is JSON") };
        assert!(reply.code.is_success(), "{path} refused {object}: {value}");
        value
    }

    /// The service that `kube::Client` can use, and that the HTTP server serves.
    pub fn service(&self) -> ApiService {
        ApiService::new(self.shared.clone())
    }

    /// A client that talks to this API without a network.
    pub fn client(&self, default_namespace: &str) -> kube::Client {
        kube::Client::new(self.service(), default_namespace)
    }

    /// Forgets all history, as a compaction does: watches of old versions end with 410.
    pub fn compact(&self) {
        self.shared.change(|state| state.store.compact());
    }

    /// The number of the latest change.
    pub fn revision(&self) -> u64 {
        self.shared.lock().store.revision()
    }
}
