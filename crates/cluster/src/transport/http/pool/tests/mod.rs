mod server;

use super::*;
use crate::transport::http::WriteGuard;
use crate::transport::http::connect::ConnectRules;
use bytes::Bytes;
use futures::future::join_all;
use http_body_util::BodyExt;
use kube::client::Body;
use server::Server;
use std::sync::Mutex;
use tokio::time::{Instant, timeout};
use tower::{Service, ServiceExt};

/// Far longer than anything here takes.
const WAIT_LIMIT: Duration = Duration::from_mins(1);

/// Pings that a test can wait for.
const FAST: Pings = Pings { interval: Duration::from_millis(200), timeout: Duration::from_millis(200) };

struct Client {
    pool: Pool,
    latest: LatestProtocol,
    url: String,
}

fn client(server: &Server, pings: Pings) -> Client {
    let latest = LatestProtocol::default();
    let connector = Connector::new(&server.config, ConnectRules::management()).expect("a connector");
    Client {
        pool: Pool::new(connector, pings, latest.clone()),
        latest,
        url: server.config.cluster_url.to_string(),
    }
}

impl Client {
    async fn send_with(&self, path: &str, context: RequestContext) -> Result<Response<PooledBody>, BoxError> {
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = format!("{}{path}", self.url.trim_end_matches('/')).parse().expect("a URI");
        request.extensions_mut().insert(context);
        self.pool.clone().ready().await?.call(request).await
    }

    async fn send(&self, lane: Lane, path: &str) -> Result<Response<PooledBody>, BoxError> {
        let sending = self.send_with(path, RequestContext { lane, write_guards: None });
        timeout(WAIT_LIMIT, sending).await.expect("an answer or an error in time")
    }

    async fn get(&self, lane: Lane) -> String {
        let answer = self.send(lane, "/get").await.expect("an answer");
        let bytes = answer.into_body().collect().await.expect("a body").to_bytes();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// A watch that has received its first event.
    async fn watch(&self) -> PooledBody {
        let mut body = self.send(Lane::Watches, "/a?watch=true").await.expect("an answer").into_body();
        assert_eq!(next(&mut body).await.expect("an event").expect("no error"), "begun");
        body
    }
}

async fn next(body: &mut PooledBody) -> Option<Result<Bytes, hyper::Error>> {
    let frame = timeout(WAIT_LIMIT, body.frame()).await.expect("a frame or an error in time");
    frame.map(|frame| frame.map(|frame| frame.into_data().expect("data")))
}

/// Waits for a condition that depends on other tasks.
async fn until(what: &str, condition: impl Fn() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(timeout(WAIT_LIMIT, waiting).await.is_ok(), "{what}");
}

#[tokio::test]
async fn http2_is_chosen_and_each_lane_has_one_connection() {
    let server = Server::http2().await;
    let client = client(&server, Pings::default());
    assert_eq!(client.latest.get(), None);
    let all = [Lane::Watches, Lane::Leases, Lane::Requests].repeat(10);
    let answers = join_all(all.into_iter().map(|lane| client.get(lane))).await;
    assert!(answers.iter().all(|answer| answer == "HTTP/2.0"), "{answers:?}");
    assert_eq!((client.latest.get(), server.connections()), (Some(Protocol::Http2), 3));
}

#[tokio::test]
async fn a_full_connection_is_joined_by_another() {
    let server = Server::http2().await;
    let client = client(&server, Pings::default());
    // The pods of 300 nodes that are drained at the same time.
    let watches = join_all((0..300).map(|_| client.watch())).await;
    assert_eq!(server.connections(), 4, "300 watches, 80 on each connection");
    assert_eq!(client.get(Lane::Leases).await, "HTTP/2.0", "a Lease waits for none of them");
    assert_eq!(server.connections(), 5);
    drop(watches);
    let again = join_all((0..STREAMS).map(|_| client.watch())).await;
    assert_eq!(server.connections(), 5, "streams that have ended make room");
    drop(again);
}

#[tokio::test]
async fn a_server_that_permits_fewer_streams_is_believed() {
    let server = Server::http2_with_streams(3).await;
    let client = client(&server, Pings::default());
    assert_eq!(client.get(Lane::Watches).await, "HTTP/2.0");
    let mut watches = Vec::new();
    for _ in 0..7 {
        watches.push(client.watch().await);
    }
    assert_eq!(server.connections(), 3);
}

#[tokio::test]
async fn a_server_that_answers_no_ping_loses_its_connection() {
    let server = Server::http2().await;
    let client = client(&server, FAST);
    let mut watches = join_all((0..3).map(|_| client.watch())).await;
    assert_eq!((server.connections(), server.requests()), (1, 3));
    server.freeze();
    for watch in &mut watches {
        assert!(next(watch).await.is_some_and(|end| end.is_err()), "every watch on it ends");
    }
    let opening = client.send(Lane::Watches, "/a?watch=true");
    tokio::pin!(opening);
    assert!(timeout(Duration::from_millis(300), &mut opening).await.is_err(), "nobody answers");
    server.thaw();
    let answer = opening.await.expect("a connection that was opened meanwhile");
    assert_eq!((answer.status(), server.connections()), (http::StatusCode::OK, 2));
}

#[tokio::test]
async fn pings_are_no_requests_and_keep_a_silent_watch() {
    let server = Server::http2().await;
    let client = client(&server, FAST);
    let mut watch = client.watch().await;
    assert!(timeout(10 * FAST.interval, watch.frame()).await.is_err(), "it stays open");
    assert_eq!((server.connections(), server.requests()), (1, 1));
}

#[tokio::test]
async fn a_server_that_leaves_gets_no_further_request() {
    let server = Server::http2().await;
    let client = client(&server, Pings::default());
    let mut watch = client.watch().await;
    server.leave();
    for _ in 0..20 {
        assert_eq!(client.get(Lane::Watches).await, "HTTP/2.0");
    }
    until("requests go elsewhere", || server.connections() == 2).await;
    assert!(
        timeout(Duration::from_millis(50), watch.frame()).await.is_err(),
        "what it has begun it may finish"
    );
}

#[tokio::test]
async fn a_connection_on_which_a_request_was_given_up_gets_no_other() {
    let server = Server::http2().await;
    let client = client(&server, Pings::default());
    assert_eq!(client.get(Lane::Leases).await, "HTTP/2.0");
    let hanging = client.send(Lane::Leases, "/hang");
    assert!(timeout(Duration::from_millis(3200), hanging).await.is_err());
    assert_eq!((client.get(Lane::Leases).await.as_str(), server.connections()), ("HTTP/2.0", 2));
}

#[tokio::test]
async fn a_request_given_up_early_does_not_hide_a_dead_connection() {
    let server = Server::http2().await;
    let client = client(&server, Pings::default());
    assert_eq!(client.get(Lane::Requests).await, "HTTP/2.0");
    let long = timeout(Duration::from_millis(3200), client.send(Lane::Requests, "/hang"));
    let short = timeout(Duration::from_secs(1), client.send(Lane::Requests, "/hang"));
    let (long, short) = tokio::join!(long, short);
    assert!(long.is_err() && short.is_err());
    assert_eq!((client.get(Lane::Requests).await.as_str(), server.connections()), ("HTTP/2.0", 2));
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let server = Server::http2().await;
    let client = client(&server, Pings::default());
    let watch = client.watch().await;
    client.get(Lane::Requests).await;
    let open = |shared: &SharedConnections| shared.len();
    assert_eq!((open(&client.pool.inner.watches), open(&client.pool.inner.requests)), (1, 1));
    tokio::time::pause();
    tokio::time::advance(2 * KEPT_IDLE).await;
    tokio::time::resume();
    until("it is closed", || open(&client.pool.inner.requests) == 0).await;
    assert_eq!(open(&client.pool.inner.watches), 1, "one with a watch on it is not idle");
    drop(watch);
}

#[tokio::test]
async fn over_http1_only_watches_need_connections_of_their_own() {
    let server = Server::http1().await;
    let client = client(&server, Pings::default());
    for _ in 0..5 {
        assert_eq!(client.get(Lane::Requests).await, "HTTP/1.1");
    }
    assert_eq!((client.latest.get(), server.connections()), (Some(Protocol::Http1), 1));
    let watches = join_all((0..20).map(|_| client.watch())).await;
    assert!((20..=21).contains(&server.connections()), "{} connections", server.connections());
    drop(watches);
    assert_eq!(client.get(Lane::Requests).await, "HTTP/1.1");
}

/// Refuses every write, and counts the calls.
struct Expired(Mutex<u32>);

impl WriteGuard for Expired {
    fn check(&self) -> Result<(), &'static str> {
        *self.0.lock().expect("no panic") += 1;
        Err("the Lease has expired")
    }
}

#[tokio::test]
async fn fences_are_asked_when_the_connection_is_there() {
    let server = Server::http2().await;
    let client = client(&server, Pings::default());
    let guard = Arc::new(Expired(Mutex::default()));
    let write_guards: Arc<[Arc<dyn WriteGuard>]> = Arc::new([guard.clone()]);
    server.freeze();
    let context = RequestContext { lane: Lane::Requests, write_guards: Some(write_guards) };
    let writing = client.send_with("/write", context);
    tokio::pin!(writing);
    assert!(timeout(Duration::from_millis(200), &mut writing).await.is_err(), "TLS is being agreed on");
    assert_eq!(*guard.0.lock().expect("no panic"), 0, "it is not asked before");
    server.thaw();
    let error = timeout(WAIT_LIMIT, writing).await.expect("in time").expect_err("it is refused");
    let error = error.downcast_ref::<crate::transport::http::TransportError>().cloned();
    assert_eq!(error, Some(crate::transport::http::TransportError::Guarded("the Lease has expired")));
    assert_eq!(server.requests(), 0);
}

#[tokio::test]
async fn a_server_that_agrees_on_nothing_is_given_up_in_time() {
    let server = Server::http2().await;
    let client = client(&server, Pings::default());
    server.freeze();
    let began = Instant::now();
    let opening = client.send(Lane::Leases, "/get");
    tokio::pin!(opening);
    assert!(timeout(Duration::from_millis(100), &mut opening).await.is_err());
    tokio::time::pause();
    let error = opening.await.expect_err("nobody answers");
    assert!(error.to_string().contains("no connection to 127.0.0.1 within 10 s"), "{error}");
    assert!(began.elapsed() < WAIT_LIMIT);
}
