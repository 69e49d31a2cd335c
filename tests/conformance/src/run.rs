//! Sends the cases to a server.

use super::case::{Case, Step, Suite, Until};
use super::normal::{Normaliser, remove};
use futures::{FutureExt as _, StreamExt as _};
use http::{Method, Request, header};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// The reason why a case could not be run.
#[derive(Debug, thiserror::Error)]
pub enum CaseRunError {
    /// The server could not be reached.
    #[error("failed to send {request}")]
    Send {
        /// The request.
        request: String,
        /// The cause.
        source: kube::Error,
    },
    /// A step is not a valid request.
    #[error("{0:?} is no method and path")]
    BadStep(String),
    /// An awaited condition was not reached.
    #[error("{request} never answered as expected; the last answer was {last}")]
    NeverSo {
        /// The request.
        request: String,
        /// The last response.
        last: Value,
    },
    /// The objects that the cases need were refused.
    #[error("the server refused the setup: {0}")]
    Setup(Value),
}

/// The normalised responses to the requests of a case.
#[derive(Clone, Debug, Default)]
pub struct Answers(Vec<Value>);

impl Answers {
    /// The responses as one JSON value.
    pub fn to_value(&self) -> Value {
        Value::Array(self.0.clone())
    }
}

/// Runs cases against one server.
pub struct Runner {
    client: kube::Client,
    /// Part of every name, so that runs do not interfere.
    prefix: String,
    /// The polling interval.
    settling_time: Duration,
}

/// The number of polls.
const LOOKS: usize = 600;

impl Runner {
    /// Creates a runner for the server of `client`.
    pub fn new(client: kube::Client, prefix: &str, settling_time: Duration) -> Self {
        Self { client, prefix: prefix.to_owned(), settling_time }
    }

    /// Creates the kinds that the cases use, and waits until they are served.
    pub async fn set_up(&self, suite: &Suite) -> Result<(), CaseRunError> {
        for crd in &suite.setup {
            let (status, body) = self.raw(&Method::POST, CRDS, Some(crd.to_string()), None, None).await?;
            if status >= 300 && status != 409 {
                return Err(CaseRunError::Setup(body));
            }
            let group = crd["spec"]["group"].as_str().unwrap_or_default();
            let plural = crd["spec"]["names"]["plural"].as_str().unwrap_or_default();
            for version in crd["spec"]["versions"].as_array().into_iter().flatten() {
                let path = format!("/apis/{group}/{}/{plural}", version["name"].as_str().unwrap_or_default());
                self.poll(&path, |status, _| status == 200).await?;
            }
        }
        Ok(())
    }

    /// Runs many cases, several at a time, and returns their responses in the order of the cases.
    pub async fn run_all<'c>(
        &self,
        cases: &'c [Case],
        at_once: usize,
    ) -> Vec<(&'c Case, Result<Answers, CaseRunError>)> {
        let runs: Vec<_> =
            cases.iter().enumerate().map(|(number, case)| self.run(case, number).boxed()).collect();
        let answers: Vec<_> = futures::stream::iter(runs).buffered(at_once).collect().await;
        cases.iter().zip(answers).collect()
    }

    /// Runs one case in its own namespace and returns its normalised responses.
    pub async fn run(&self, case: &Case, number: usize) -> Result<Answers, CaseRunError> {
        let namespace = format!("{}-{number}", self.prefix);
        let mut values = Map::new();
        values.insert("ns".to_owned(), namespace.clone().into());
        self.prepare_namespace(&namespace).await?;
        let mut starts = Vec::new();
        for collection in &case.watch {
            let path = filled(collection, &values);
            let (_, list) = self.raw(&Method::GET, &path, None, None, None).await?;
            starts.push((path, list["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned()));
        }
        let mut session = Session {
            runner: self,
            values,
            normaliser: Normaliser::default(),
            answers: Vec::new(),
            namespace,
        };
        for step in &case.steps {
            session.step(step).await?;
        }
        for (path, version) in starts {
            session.watch(&path, &version).await?;
        }
        Ok(Answers(session.answers))
    }

    /// Deletes the namespaces of the first `count` cases. This is done at the end, because a cluster takes a
    /// while for each.
    pub async fn tear_down(&self, count: usize) -> Result<(), CaseRunError> {
        for number in 0..count {
            let path = format!("/api/v1/namespaces/{}-{number}", self.prefix);
            self.raw(&Method::DELETE, &path, None, None, None).await?;
        }
        Ok(())
    }

    /// A new namespace is complete when it has its service account and its certificates.
    async fn prepare_namespace(&self, namespace: &str) -> Result<(), CaseRunError> {
        let body = json!({"metadata": {"name": namespace}}).to_string();
        self.raw(&Method::POST, "/api/v1/namespaces", Some(body), None, None).await?;
        for default_object in ["serviceaccounts/default", "configmaps/kube-root-ca.crt"] {
            let path = format!("/api/v1/namespaces/{namespace}/{default_object}");
            self.poll(&path, |status, _| status == 200).await?;
        }
        Ok(())
    }

    async fn poll(
        &self,
        path: &str,
        is_done: impl Fn(u16, &Value) -> bool,
    ) -> Result<(u16, Value), CaseRunError> {
        let mut last = Value::Null;
        for _ in 0..LOOKS {
            let (status, body) = self.raw(&Method::GET, path, None, None, None).await?;
            if is_done(status, &body) {
                return Ok((status, body));
            }
            last = body;
            tokio::time::sleep(self.settling_time).await;
        }
        Err(CaseRunError::NeverSo { request: format!("GET {path}"), last })
    }

    async fn raw(
        &self,
        method: &Method,
        path: &str,
        body: Option<String>,
        content_type: Option<&str>,
        accept: Option<&str>,
    ) -> Result<(u16, Value), CaseRunError> {
        let name = || format!("{method} {path}");
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::USER_AGENT, "conformance/1")
            .header(header::CONTENT_TYPE, content_type.unwrap_or("application/json"))
            .header(header::ACCEPT, accept.unwrap_or("application/json"))
            .body(Body::from(body.unwrap_or_default().into_bytes()))
            .map_err(|_| CaseRunError::BadStep(name()))?;
        let response = self
            .client
            .send(request)
            .await
            .map_err(|source| CaseRunError::Send { request: name(), source })?;
        let status = response.status().as_u16();
        // A watch may be cut off; its response is what was received until then.
        let bytes =
            response.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        Ok((status, events_as_such(path, parse(&bytes))))
    }
}

/// A watch always returns a list of events, although a single event looks like any other JSON response.
fn events_as_such(path: &str, answer: Value) -> Value {
    let is_event = path.contains("watch=1") && answer["type"].is_string() && answer["object"].is_object();
    if is_event { json!({"events": [answer]}) } else { answer }
}

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Parses JSON, JSON lines, or text.
fn parse(bytes: &[u8]) -> Value {
    if let Ok(value) = serde_json::from_slice(bytes) {
        return value;
    }
    let text = String::from_utf8_lossy(bytes);
    let lines: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
    match lines {
        Ok(events) if !events.is_empty() => json!({"events": events}),
        _ => json!({"text": text.trim()}),
    }
}

struct Session<'r> {
    runner: &'r Runner,
    values: Map<String, Value>,
    normaliser: Normaliser,
    answers: Vec<Value>,
    namespace: String,
}

impl Session<'_> {
    async fn step(&mut self, step: &Step) -> Result<(), CaseRunError> {
        let line = filled(&step.send, &self.values);
        let (method, path) = line.split_once(' ').ok_or_else(|| CaseRunError::BadStep(line.clone()))?;
        let method: Method = method.parse().map_err(|_| CaseRunError::BadStep(line.clone()))?;
        let body = match (&step.body, &step.raw) {
            (Some(body), _) => Some(filled_value(body, &self.values).to_string()),
            (None, Some(raw)) => Some(filled(raw, &self.values)),
            (None, None) => None,
        };
        let (status, answer) = self.send_until(&method, path, body, step).await?;
        for (name, pointer) in &step.save {
            let value =
                pointer.as_str().and_then(|pointer| answer.pointer(pointer)).cloned().unwrap_or_default();
            self.values.insert(name.clone(), value);
        }
        if !step.quiet {
            self.keep(status, answer, &step.ignore, step.messages);
        }
        Ok(())
    }

    async fn send_until(
        &self,
        method: &Method,
        path: &str,
        body: Option<String>,
        step: &Step,
    ) -> Result<(u16, Value), CaseRunError> {
        let mut last = Value::Null;
        for _ in 0..LOOKS {
            let (content_type, accept) = (step.content_type.as_deref(), step.accept.as_deref());
            let (status, answer) = self.runner.raw(method, path, body.clone(), content_type, accept).await?;
            if step.until.as_ref().is_none_or(|until| until.is_met(status, &answer)) {
                return Ok((status, answer));
            }
            last = answer;
            tokio::time::sleep(self.runner.settling_time).await;
        }
        Err(CaseRunError::NeverSo { request: format!("{method} {path}"), last })
    }

    /// The events of a collection since the start of the case.
    async fn watch(&mut self, path: &str, version: &str) -> Result<(), CaseRunError> {
        let path = format!("{path}?watch=1&timeoutSeconds=1&resourceVersion={version}");
        let (status, answer) = self.runner.raw(&Method::GET, &path, None, None, None).await?;
        self.keep(status, answer, &[], false);
        Ok(())
    }

    fn keep(&mut self, status: u16, mut answer: Value, ignore: &[String], keeps_messages: bool) {
        for pointer in ignore {
            remove(&mut answer, pointer);
        }
        let body = self.normaliser.normalise(answer, keeps_messages);
        let text = json!({"status": status, "body": body}).to_string().replace(&self.namespace, "NAMESPACE");
        self.answers.push(serde_json::from_str(&text).unwrap_or_default());
    }
}

impl Until {
    fn is_met(&self, status: u16, answer: &Value) -> bool {
        self.status.is_none_or(|wanted| wanted == status)
            && self.at.as_ref().is_none_or(|at| answer.pointer(at).unwrap_or(&Value::Null) == &self.is)
    }
}

/// Replaces `{name}` by the saved value.
fn filled(text: &str, values: &Map<String, Value>) -> String {
    let mut result = text.to_owned();
    for (name, value) in values {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        result = result.replace(&format!("{{{name}}}"), &value);
    }
    result
}

fn filled_value(value: &Value, values: &Map<String, Value>) -> Value {
    match value {
        Value::String(text) => filled(text, values).into(),
        Value::Array(list) => list.iter().map(|one| filled_value(one, values)).collect(),
        Value::Object(map) => Value::Object(
            map.iter().map(|(key, one)| (filled(key, values), filled_value(one, values))).collect(),
        ),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}
