//! The transport against a malicious API server, over real sockets: what it sends is bounded in bytes, objects and memory,
//! and nothing of it is repeated.

use five_spot_cluster::transport::http::{
    AddressRules, ConnectRules, Limits, NamespaceShares, Transport, TransportError,
};
use five_spot_hostile::{Attack, HostileServer, resident_bytes};
use futures::StreamExt;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{ListParams, WatchParams};
use kube::{Api, Client, Config};
use std::error::Error;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Mutex, MutexGuard, Semaphore};
use tokio::time::Instant;

/// The memory that one attack may cost: the budget of a cluster, what was parsed of it, and what an allocator keeps.
const MEMORY: usize = 2 * Limits::WORKLOAD.buffered_bytes;

/// The memory is that of the process: one attack at a time.
static ALONE: Mutex<()> = Mutex::const_new(());

struct ServerFixture {
    server: HostileServer,
    client: Client,
    memory: usize,
    _alone: MutexGuard<'static, ()>,
}

async fn begin(attack: Attack) -> ServerFixture {
    let alone = ALONE.lock().await;
    let server = HostileServer::start(attack).await.expect("a port");
    let client = client(&server.url());
    ServerFixture { server, client, memory: resident_bytes(), _alone: alone }
}

fn client(url: &str) -> Client {
    client_within(url, &["127.0.0.0/8"], 100)
}

fn client_within(url: &str, allowed: &[&str], connections: usize) -> Client {
    let config = Config::new(url.parse().expect("a URL"));
    let allowed = allowed.iter().map(|text| text.parse().expect("a network")).collect();
    let rules =
        ConnectRules::workload(AddressRules::Workload { allowed }, Arc::new(Semaphore::new(connections)));
    Transport::new("test").workload("shop/demo").client_for(&config, rules).expect("a client")
}

impl ServerFixture {
    fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    async fn list(&self) -> kube::Error {
        self.nodes().list(&ListParams::default().limit(50)).await.expect_err("it is refused")
    }

    #[track_caller]
    fn check_memory(&self) {
        let grown = resident_bytes().saturating_sub(self.memory);
        println!("memory grew by {} kB, {} kB were sent", grown >> 10, self.server.sent() >> 10);
        assert!(grown < MEMORY, "memory grew by {grown} bytes");
    }
}

/// The reason of ours, wherever it is among the causes.
fn why(error: &kube::Error) -> Option<TransportError> {
    if let kube::Error::Service(source) = error {
        return source.downcast_ref::<TransportError>().cloned();
    }
    let mut source: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = source {
        if let Some(found) = error.downcast_ref::<TransportError>() {
            return Some(found.clone());
        }
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        source = inner.map(|inner| inner as &(dyn Error + 'static)).or_else(|| error.source());
    }
    None
}

#[tokio::test]
async fn a_body_without_end_is_cut_at_the_limit() {
    let fixture = begin(Attack::EndlessBody).await;
    assert_eq!(
        why(&fixture.list().await),
        Some(TransportError::AnswerTooLarge { limit: Limits::WORKLOAD.list_page_bytes })
    );
    let error = fixture.nodes().get("a").await.expect_err("it is refused");
    assert_eq!(why(&error), Some(TransportError::AnswerTooLarge { limit: Limits::WORKLOAD.answer_bytes }));
    fixture.check_memory();
}

#[tokio::test]
async fn many_bodies_without_end_share_one_budget() {
    let fixture = begin(Attack::EndlessBody).await;
    let lists = (0..16).map(|_| fixture.list());
    let errors = futures::future::join_all(lists).await;
    let over =
        errors.iter().filter(|error| matches!(why(error), Some(TransportError::OverBudget { .. }))).count();
    assert!(over > 0, "{errors:?}");
    fixture.check_memory();
}

#[tokio::test]
async fn a_watch_line_without_end_is_cut_at_the_limit() {
    let fixture = begin(Attack::EndlessLine).await;
    let events = fixture.nodes().watch(&WatchParams::default(), "1").await.expect("it begins");
    let error = events.boxed().next().await.expect("an error").expect_err("an error");
    assert_eq!(why(&error), Some(TransportError::LineTooLong { limit: Limits::WORKLOAD.watch_line_bytes }));
    fixture.check_memory();
}

#[tokio::test]
async fn pages_without_end_are_cut_at_the_limit() {
    let fixture = begin(Attack::EndlessPages).await;
    let mut params = ListParams::default().limit(50);
    let mut pages = 0;
    let error = loop {
        match fixture.nodes().list(&params).await {
            Ok(page) => params = params.continue_token(&page.metadata.continue_.expect("another page")),
            Err(error) => break error,
        }
        pages += 1;
    };
    assert_eq!(why(&error), Some(TransportError::EndlessList { limit: Limits::WORKLOAD.pages_per_list }));
    assert_eq!(pages, Limits::WORKLOAD.pages_per_list);
    assert!(fixture.nodes().list(&ListParams::default().limit(50)).await.is_ok(), "a new list begins anew");
    fixture.check_memory();
}

#[tokio::test]
async fn millions_of_tiny_objects_are_never_parsed() {
    let fixture = begin(Attack::TinyObjects).await;
    assert_eq!(why(&fixture.list().await), Some(TransportError::TooManyObjects { limit: 50 }));
    fixture.check_memory();
}

#[tokio::test]
async fn millions_of_tiny_parts_are_never_parsed() {
    let fixture = begin(Attack::TinyParts).await;
    let pods: Api<Pod> = Api::all(fixture.client.clone());
    let error = pods.list(&ListParams::default().limit(50)).await.expect_err("it is refused");
    assert_eq!(why(&error), Some(TransportError::TooManyValues { limit: Limits::WORKLOAD.values_per_page }));
    fixture.check_memory();
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let target = HostileServer::start(Attack::EndlessBody).await.expect("a port");
    let fixture = begin(Attack::Redirect(target.url())).await;
    assert_eq!(why(&fixture.list().await), Some(TransportError::Redirected(302)));
    assert_eq!(target.connections(), 0);
}

#[tokio::test]
async fn a_long_refusal_is_short_when_it_arrives() {
    let text = format!("no\n\u{1b}[31m{}", "x".repeat(900_000));
    let text = text.replace('\n', "\\n").replace('\u{1b}', "\\u001b");
    let body = format!(r#"{{"kind":"Status","message":"{text}","reason":"Forbidden","code":403}}"#);
    let fixture = begin(Attack::Refuse(403, body)).await;
    let kube::Error::Api(status) = fixture.list().await else { panic!("a status") };
    assert!(status.message.len() <= 1000, "{} bytes", status.message.len());
    assert_eq!(status.code, 403);
}

#[tokio::test]
async fn a_refusal_that_is_no_status_is_not_repeated() {
    let fixture = begin(Attack::Refuse(500, "s3cret of another server".to_owned())).await;
    let error = fixture.list().await;
    assert!(!format!("{error:?} {error}").contains("s3cret"), "{error:?}");
}

#[tokio::test]
async fn a_connection_that_closes_at_any_byte_is_unreachable() {
    let complete = Attack::RESPONSE_BYTES;
    for bytes in 0..complete {
        let fixture = begin(Attack::CloseAfter(bytes)).await;
        let error = fixture.list().await;
        assert_eq!(why(&error), Some(TransportError::Unreachable), "after {bytes} bytes: {error}");
    }
    let fixture = begin(Attack::CloseAfter(complete)).await;
    fixture.nodes().list(&ListParams::default()).await.expect("the whole response");
}

#[tokio::test]
async fn requests_to_a_failing_server_are_bounded() {
    let fixture = begin(Attack::CloseAfter(0)).await;
    for _ in 0..2_000 {
        assert_eq!(why(&fixture.list().await), Some(TransportError::Unreachable));
    }
    let limit = Limits::WORKLOAD.failures_per_minute as usize;
    // Two a second come back while this runs.
    assert!(fixture.server.connections() < 2 * limit, "{} connections", fixture.server.connections());
}

#[tokio::test]
async fn all_failures_to_connect_read_alike() {
    let closed = {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        listener.local_addr().expect("an address").port()
    };
    let odd = ["2130706433", "0x7f.1", "017700000001", "[::ffff:127.0.0.1]", "localhost"];
    let urls = odd.map(|host| format!("http://{host}:{closed}"));
    let refused = [format!("http://127.0.0.1:{closed}"), "http://no.such.host.invalid".to_owned()];
    let mut texts: Vec<String> = Vec::new();
    for url in refused.iter().chain(&urls) {
        let error =
            Api::<Node>::all(client(url)).list(&ListParams::default()).await.expect_err("nobody is there");
        assert_eq!(why(&error), Some(TransportError::Unreachable), "{url}: {error}");
        texts.push(error.to_string());
    }
    texts.dedup();
    assert_eq!(texts.len(), 1, "{texts:?}");
}

#[tokio::test]
async fn loopback_is_refused_in_every_notation_before_a_connection() {
    let server = HostileServer::start(Attack::EndlessBody).await.expect("a port");
    let port = server.address().port();
    for host in [
        "127.0.0.1",
        "2130706433",
        "0x7f.1",
        "017700000001",
        "[::ffff:127.0.0.1]",
        "localhost",
        "0.0.0.0",
        "0",
    ] {
        let client = client_within(&format!("http://{host}:{port}"), &[], 100);
        let error = Api::<Node>::all(client).get("a").await.expect_err("it is refused");
        assert_eq!(why(&error), Some(TransportError::Unreachable), "{host}: {error}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn what_has_other_types_is_an_error_within_a_moment() {
    let fixture = begin(Attack::WrongTypes("s3cret".to_owned())).await;
    let began = Instant::now();
    assert!(matches!(fixture.list().await, kube::Error::SerdeError(_)));
    assert!(fixture.client.apiserver_version().await.is_err());
    assert!(began.elapsed().as_secs() < 5);
}

#[tokio::test]
async fn connections_to_all_workload_clusters_together_are_bounded() {
    let fixture = begin(Attack::EndlessPages).await;
    let client = client_within(&fixture.server.url(), &["127.0.0.1"], 3);
    let nodes: Api<Node> = Api::all(client.clone());
    let pods: Api<Pod> = Api::all(client);
    let mut open = Vec::new();
    for node in ["a", "b", "c"] {
        let parameters = WatchParams::default().fields(&format!("spec.nodeName={node}"));
        open.push(pods.watch(&parameters, "1").await.expect("there is room").boxed());
    }
    let error = nodes.get("a").await.expect_err("there is none left");
    assert_eq!(why(&error), Some(TransportError::Unreachable));
    assert_eq!(fixture.server.connections(), 3);
    open.pop();
    let freed = async {
        while nodes.list(&ListParams::default().limit(50)).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), freed).await.expect("one was given back");
}

/// A client of a namespace, for one of its clusters.
fn client_in(namespace: &str, shares: &NamespaceShares, all: &Arc<Semaphore>, url: &str) -> Client {
    let config = Config::new(url.parse().expect("a URL"));
    let addresses =
        AddressRules::Workload { allowed: Arc::from(["127.0.0.0/8".parse().expect("a network")]) };
    let share = shares.of(namespace);
    let rules = ConnectRules::workload(addresses, all.clone()).within(&share);
    let transport = Transport::new("test").workload(&format!("{namespace}/demo")).within(share);
    transport.client_for(&config, rules).expect("a client")
}

#[tokio::test]
async fn the_connections_of_one_namespace_leave_room_for_others() {
    let fixture = begin(Attack::EndlessPages).await;
    let (shares, all) = (NamespaceShares::new(8), Arc::new(Semaphore::new(8)));
    let mut open = Vec::new();
    for cluster in 0..5 {
        let pods: Api<Pod> = Api::all(client_in("greedy", &shares, &all, &fixture.server.url()));
        match pods.watch(&WatchParams::default(), "1").await {
            Ok(events) => open.push(events.boxed()),
            Err(error) => assert_eq!((why(&error), cluster), (Some(TransportError::Unreachable), 4)),
        }
    }
    assert_eq!((open.len(), fixture.server.connections()), (4, 4), "half of them");
    let nodes: Api<Node> = Api::all(client_in("other", &shares, &all, &fixture.server.url()));
    nodes.list(&ListParams::default().limit(50)).await.expect("there is room for another namespace");
}

#[tokio::test]
async fn the_clusters_of_one_namespace_share_one_budget() {
    let fixture = begin(Attack::EndlessBody).await;
    let (shares, all) = (NamespaceShares::new(1000), Arc::new(Semaphore::new(1000)));
    let lists = (0..12).map(|_| {
        let nodes: Api<Node> = Api::all(client_in("greedy", &shares, &all, &fixture.server.url()));
        async move { nodes.list(&ListParams::default().limit(50)).await.expect_err("it is refused") }
    });
    let errors = futures::future::join_all(lists).await;
    let is_over =
        |error: &&kube::Error| matches!(why(error), Some(TransportError::NamespaceOverBudget { .. }));
    assert!(errors.iter().filter(is_over).count() > 0, "{errors:?}");
    let grown = resident_bytes().saturating_sub(fixture.memory);
    assert!(grown < 2 * MEMORY, "memory grew by {grown} bytes");
}

#[tokio::test]
async fn a_long_head_of_an_answer_is_not_buffered() {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let _ = stream.read(&mut [0; 4096]).await;
        let head = format!("HTTP/1.1 200 OK\r\nx-long: {}\r\n", "a".repeat(200 << 10));
        let _ = stream
            .write_all(
                format!("{head}content-length: 25\r\n\r\n{{\"metadata\":{{\"name\":\"a\"}}}}").as_bytes(),
            )
            .await;
        let _ = stream.read(&mut [0; 1]).await;
    });
    let error = Api::<Node>::all(client(&url)).get("a").await.expect_err("it is refused");
    assert_eq!(why(&error), Some(TransportError::Unreachable), "{error}");
    serving.abort();
}
