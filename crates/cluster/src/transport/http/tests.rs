//! Tests of the transport, under paused time.

use super::{Call, Exchange, NamespaceShares, RequestObserver, Transport, TransportError, WriteGuard};
use bytes::Bytes;
use futures::StreamExt;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, StreamBody};
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::{ListParams, PostParams, WatchParams};
use kube::client::Body;
use kube::{Api, Client};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;
use tower::BoxError;

type Answer = Response<http_body_util::combinators::UnsyncBoxBody<Bytes, BoxError>>;

fn answer(text: &'static str) -> Answer {
    let body = Full::new(Bytes::from(text)).map_err(|never: Infallible| match never {});
    Response::new(body.boxed_unsync())
}

const EMPTY_LIST: &str = r#"{"apiVersion":"v1","kind":"List","metadata":{"resourceVersion":"1"},"items":[]}"#;

/// A client whose every request is answered by `reply`.
fn client<F>(transport: &Transport, reply: impl Fn(Request<Body>) -> F + Clone + Send + 'static) -> Client
where
    F: Future<Output = Result<Answer, BoxError>> + Send + 'static,
{
    transport.client_over(tower::service_fn(reply))
}

#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<Exchange>>>);

impl RequestObserver for Notes {
    fn answered(&self, exchange: &Exchange) {
        self.0.lock().unwrap().push(exchange.clone());
    }
}

fn why(error: &kube::Error) -> Option<TransportError> {
    let kube::Error::Service(source) = error else { return None };
    source.downcast_ref::<TransportError>().cloned()
}

/// If a cluster hangs, one request waits until its deadline, and later ones fail at once.
#[tokio::test(start_paused = true)]
async fn no_request_waits_for_a_cluster_that_is_known_to_hang() {
    let transport = Transport::new("5spot-controller").workload("shop/demo");
    let client = client(&transport, |request: Request<Body>| async move {
        if request.uri().path() != "/version" {
            std::future::pending::<()>().await;
        }
        Ok(answer(r#"{"major":"1","minor":"36"}"#))
    });
    let nodes: Api<Node> = Api::all(client.clone());
    let first = tokio::spawn({
        let nodes = nodes.clone();
        async move { nodes.get("a").await.err().and_then(|error| why(&error)) }
    });
    tokio::time::sleep(Duration::from_secs(15)).await;
    let asked = Instant::now();
    let error = nodes.get("b").await.expect_err("nothing is sent");
    assert_eq!(why(&error), Some(TransportError::Unreachable), "a tenant is told no more");
    assert_eq!(asked.elapsed(), Duration::ZERO);
    client.apiserver_version().await.err();
    assert!(tokio::time::timeout(Duration::from_secs(1), nodes.get("c")).await.is_err(), "it is asked again");
    assert_eq!(first.await.expect("it ends"), Some(TransportError::Unreachable));
}

#[tokio::test(start_paused = true)]
async fn every_request_says_who_we_are_and_is_noted() {
    let agents: Arc<Mutex<Vec<String>>> = Arc::default();
    let notes = Notes::default();
    let transport = Transport::new("5spot-controller").with_observer(Arc::new(notes.clone()));
    let seen = agents.clone();
    let client = client(&transport, move |request: Request<Body>| {
        seen.lock().unwrap().push(request.headers()["user-agent"].to_str().unwrap().to_owned());
        async { Ok(answer(EMPTY_LIST)) }
    });
    Api::<Node>::all(client).list(&ListParams::default()).await.unwrap();
    assert_eq!(*agents.lock().unwrap(), [format!("5spot-controller/{}", env!("CARGO_PKG_VERSION"))]);
    let exchanges = notes.0.lock().unwrap();
    let call = Call {
        verb: "list",
        group: String::new(),
        resource: "nodes".into(),
        subresource: None,
        namespace: None,
        name: None,
    };
    assert_eq!(exchanges.iter().map(|exchange| &exchange.call).collect::<Vec<_>>(), [&call]);
    assert_eq!(exchanges[0].status.map(|status| status.as_u16()), Some(200));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_come_ends_at_the_deadline() {
    let transport = Transport::new("test");
    let client = client(&transport, |_| std::future::pending());
    let began = Instant::now();
    let error = Api::<Node>::all(client).get("a").await.unwrap_err();
    assert_eq!(why(&error), Some(TransportError::Deadline(super::ANSWER_DEADLINE)));
    assert_eq!(began.elapsed(), super::ANSWER_DEADLINE);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_end_ends_at_the_deadline_too() {
    let transport = Transport::new("test");
    let client = client(&transport, |_| async {
        let body = StreamBody::new(futures::stream::pending::<Result<http_body::Frame<Bytes>, BoxError>>());
        Ok(Response::new(body.boxed_unsync()))
    });
    let error = Api::<Node>::all(client).get("a").await.unwrap_err();
    assert_eq!(why(&error), Some(TransportError::Deadline(super::ANSWER_DEADLINE)));
}

/// A guard that refuses for a reason, or permits everything.
struct Guard(Mutex<Option<&'static str>>);

impl Guard {
    fn refusing(reason: &'static str) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Some(reason))))
    }

    fn permit(&self) {
        *self.0.lock().unwrap() = None;
    }
}

impl WriteGuard for Guard {
    fn check(&self) -> Result<(), &'static str> {
        self.0.lock().unwrap().map_or(Ok(()), Err)
    }
}

#[tokio::test(start_paused = true)]
async fn every_guard_has_to_permit_a_write_and_reads_need_none() {
    let sent: Arc<Mutex<u32>> = Arc::default();
    let (crd, lease) = (Guard::refusing("the CRD does not fit"), Guard::refusing("not the leader"));
    let transport = Transport::new("test").with_write_guard(crd.clone()).with_write_guard(lease.clone());
    let count = sent.clone();
    let client = client(&transport, move |request| {
        *count.lock().unwrap() += 1;
        let is_read = request.method() == http::Method::GET;
        async move { Ok(answer(if is_read { EMPTY_LIST } else { r#"{"metadata":{"name":"a"}}"# })) }
    });
    let configs: Api<ConfigMap> = Api::namespaced(client.clone(), "a");
    let write = async || configs.create(&PostParams::default(), &ConfigMap::default()).await;
    let error = write().await.unwrap_err();
    assert_eq!(why(&error), Some(TransportError::Guarded("the CRD does not fit")));
    crd.permit();
    let error = write().await.unwrap_err();
    assert_eq!(
        why(&error),
        Some(TransportError::Guarded("not the leader")),
        "the other guard is still there"
    );
    assert_eq!(*sent.lock().unwrap(), 0);
    Api::<Node>::all(client.clone()).list(&ListParams::default()).await.unwrap();
    assert_eq!(*sent.lock().unwrap(), 1);
    lease.permit();
    write().await.expect("both guards permit it");
    assert_eq!(*sent.lock().unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_at_once_starts_once_a_second() {
    let starts: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let transport = Transport::new("test");
    let seen = starts.clone();
    let client = client(&transport, move |_| {
        let seen = seen.clone();
        async move {
            seen.lock().unwrap().push(Instant::now());
            Ok(answer(""))
        }
    });
    let nodes: Api<Node> = Api::all(client.clone());
    let pods: Api<ConfigMap> = Api::all(client);
    for _ in 0..3 {
        let events = nodes.watch(&WatchParams::default(), "1").await.unwrap();
        assert_eq!(events.count().await, 0);
    }
    drop(pods.watch(&WatchParams::default(), "1").await.unwrap());
    let starts = starts.lock().unwrap();
    let waits: Vec<u64> = starts.windows(2).map(|pair| (pair[1] - pair[0]).as_secs()).collect();
    assert_eq!(waits, [1, 1, 0], "another watch does not wait for this one");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_falls_silent_is_ended_and_its_age_is_known() {
    let transport = Transport::new("test");
    let client = client(&transport, |_| async {
        let body = StreamBody::new(futures::stream::pending::<Result<http_body::Frame<Bytes>, BoxError>>());
        Ok(Response::new(body.boxed_unsync()))
    });
    let nodes: Api<Node> = Api::all(client);
    let mut events = nodes.watch(&WatchParams::default(), "1").await.unwrap().boxed();
    let began = Instant::now();
    assert!(tokio::time::timeout(Duration::from_mins(1), events.next()).await.is_err());
    assert_eq!(transport.watch_ages(), [("/api/v1/nodes".to_owned(), Duration::from_mins(1))]);
    assert!(events.next().await.expect("the end of it").is_err());
    assert!(began.elapsed() >= super::WATCH_SILENCE);
    drop(events);
    assert_eq!(transport.watch_ages(), []);
}

#[test]
fn the_warnings_of_one_namespace_hide_none_of_another() {
    let (transport, shares) = (Transport::new("test"), NamespaceShares::new(100));
    let of = |namespace: &str, name: &str| {
        transport.workload(&format!("{namespace}/{name}")).within(shares.of(namespace))
    };
    let (greedy, same, other) = (of("greedy", "a"), of("greedy", "b"), of("other", "a"));
    for number in 0..1000 {
        greedy.warnings.note(&format!("failure {number}"));
    }
    assert_eq!(same.warnings.note("a failure of its own"), None, "the log lines of a namespace are bounded");
    assert_eq!(other.warnings.note("a failure of its own"), Some(0));
    // Without a namespace each cluster is on its own.
    let (one, another) = (transport.workload("one"), transport.workload("another"));
    assert_eq!((one.warnings.note("unreachable"), another.warnings.note("unreachable")), (Some(0), Some(0)));
}
