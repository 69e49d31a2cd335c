//! A stuck part shows within its bound, and recovers when it makes progress. Under paused time, in which nothing is late
//! by itself.

use super::{Findings, Health, LOOP_BOUND, OVER_HTTP1, TIMER_BOUND, WATCH_BOUND, WORK_BOUND, progress};
use crate::servers;
use five_spot_cluster::transport::http::Protocol;
use five_spot_cluster::view::ManagementWatch;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::advance;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn one_that_has_not_begun_is_alive_and_not_ready() {
    let health = Health::default();
    advance(Duration::from_hours(1)).await;
    assert_eq!(health.liveness_failures(), [""; 0]);
    assert_eq!(health.obstacles(), ["the controller has not opened its watches"]);
}

#[test]
fn what_was_found_is_an_obstacle_until_something_else_is_found() {
    let health = Health::default();
    let bad = Findings { obstacles: vec!["no permission".to_owned()], remarks: vec!["old".to_owned()] };
    assert!(health.examined("permissions", &bad));
    assert!(!health.examined("permissions", &bad), "that is no news");
    assert_eq!(health.obstacles(), ["no permission", "the controller has not opened its watches"]);
    assert_eq!((health.liveness_failures(), health.remarks()), (vec![], vec!["old".to_owned()]));
    assert!(health.examined("permissions", &Findings::default()));
    assert_eq!((health.obstacles().len(), health.remarks().len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_does_not_turn_is_noticed_and_recovers() {
    let health = Health::default();
    health.turned();
    advance(LOOP_BOUND).await;
    assert_eq!(health.liveness_failures(), [""; 0]);
    advance(SECOND).await;
    assert_eq!(health.liveness_failures(), ["the event loop has made no progress for 91 s"]);
    health.turned();
    assert_eq!(health.liveness_failures(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn timers_that_stop_are_noticed_and_recover() {
    let health = Health::default();
    {
        // While it is polled it beats, however long that is.
        let beating = tokio::time::timeout(Duration::from_hours(1), health.check_timers());
        assert!(beating.await.is_err());
        assert_eq!(health.liveness_failures(), [""; 0]);
    }
    advance(TIMER_BOUND + SECOND).await;
    assert_eq!(health.liveness_failures().len(), 1, "{:?}", health.liveness_failures());
    assert!(
        health.liveness_failures()[0].starts_with("timers have not fired for 3"),
        "{:?}",
        health.liveness_failures()
    );
    assert!(tokio::time::timeout(SECOND, health.check_timers()).await.is_err());
    assert_eq!(health.liveness_failures(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_hangs_is_named_and_one_that_gets_on_is_not() {
    let health = Arc::new(Health::default());
    let slow = health.begin("shop/slow".to_owned());
    let hangs = health.begin("shop/hangs".to_owned());
    let (release, released) = tokio::sync::oneshot::channel::<()>();
    let slow = tokio::spawn(slow.through(async {
        // Many requests, each of which is given up at its deadline: slow, and no reason to be killed.
        for _ in 0..20 {
            tokio::time::sleep(Duration::from_secs(30)).await;
            progress();
        }
    }));
    let hung = tokio::spawn(hangs.through(async { drop(released.await) }));
    tokio::time::sleep(WORK_BOUND + SECOND).await;
    assert_eq!(health.liveness_failures(), ["the reconcile of shop/hangs has made no progress for 121 s"]);
    release.send(()).expect("it waits");
    hung.await.expect("it ends");
    assert_eq!(health.liveness_failures(), [""; 0]);
    slow.await.expect("it ends");
    advance(Duration::from_hours(1)).await;
    assert_eq!(health.liveness_failures(), [""; 0], "what has ended is not looked at");
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_panics_or_is_cut_off_is_not_looked_at_any_more() {
    let health = Arc::new(Health::default());
    let panics = tokio::spawn(health.begin("a".to_owned()).through(async { panic!("no way") }));
    assert!(panics.await.is_err());
    let cut = tokio::spawn(health.begin("b".to_owned()).through(std::future::pending::<()>()));
    tokio::task::yield_now().await;
    cut.abort();
    assert!(cut.await.expect_err("it was cut off").is_cancelled());
    advance(Duration::from_hours(1)).await;
    assert_eq!(health.liveness_failures(), [""; 0]);
}

/// A health that looks at one watch, and what to change that watch with.
fn watching() -> (Health, Arc<Mutex<ManagementWatch>>) {
    let watch = Arc::new(Mutex::new(ManagementWatch {
        what: "machines".to_owned(),
        unsynced: None,
        connected: true,
        idle: Some(Duration::ZERO),
    }));
    let health = Health::default();
    let seen = watch.clone();
    health.lock().watches = Some(Arc::new(move || vec![seen.lock().unwrap().clone()]));
    (health, watch)
}

#[test]
fn a_hanging_watch_is_unhealthy_a_closed_one_not_ready() {
    let (health, watch) = watching();
    assert_eq!((health.liveness_failures(), health.obstacles()), (vec![], vec![]));
    watch.lock().unwrap().idle = Some(WATCH_BOUND + SECOND);
    assert_eq!(health.liveness_failures(), ["the watch of machines has shown no activity for 301 s"]);
    assert_eq!(health.obstacles(), health.liveness_failures());
    // The server is down: requests to it are retried.
    *watch.lock().unwrap() = ManagementWatch {
        what: "machines".to_owned(),
        unsynced: None,
        connected: false,
        idle: Some(Duration::from_secs(29)),
    };
    assert_eq!(health.liveness_failures(), [""; 0]);
    assert_eq!(health.obstacles(), ["the watch of machines is not connected"]);
    watch.lock().unwrap().unsynced = Some("forbidden".to_owned());
    assert_eq!(health.obstacles(), ["machines are not synced: forbidden"]);
}

#[test]
fn only_http1_is_remarked_and_is_no_obstacle() {
    let (health, _) = watching();
    for (protocol, remarks) in
        [(Some(Protocol::Http1), vec![OVER_HTTP1]), (Some(Protocol::Http2), vec![]), (None, vec![])]
    {
        health.lock().protocol = Some(Arc::new(move || protocol));
        assert_eq!(health.remarks(), remarks, "{protocol:?}");
        assert_eq!(health.obstacles(), [""; 0], "{protocol:?}");
    }
}

#[tokio::test]
async fn what_is_locked_for_ever_is_answered_all_the_same() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let health = Arc::new(Health::default());
    let (release, released) = std::sync::mpsc::channel::<()>();
    let locked = Mutex::new(released);
    health.lock().watches = Some(Arc::new(move || {
        // Until nobody can send any more.
        let _ = locked.lock().unwrap().recv();
        Vec::new()
    }));
    let listener = servers::listen(0, "--health-port").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let serving = tokio::spawn(servers::serve_health(listener, health));
    for path in ["/health", "/ready"] {
        let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.expect("it listens");
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("it answers");
        assert!(answer.starts_with("HTTP/1.1 503 "), "{path}: {answer}");
        assert!(
            answer.ends_with("the health checks do not respond: a lock is never released\n"),
            "{path}: {answer}"
        );
    }
    drop(release);
    serving.abort();
}
