//! Timers that stand still while everything else goes on.
//!
//! As in the program, whoever works and whoever says how they are have a runtime each, and with it timers of their own.
//! Here the clock of those who work is held: to them no time passes, so that nothing they wait for by the clock comes,
//! while requests are answered and watches bring news as ever.

use crate::fixture::OperatorFixture;
use crate::recorded_run::machine;
use crate::served::get;
use five_spot_controller::health::Health;
use five_spot_controller::servers;
use serde_json::json;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::task::{spawn_blocking, yield_now};
use tokio::time::{Instant, advance, sleep};

/// Only for a controller that never gets there: in what takes no time, counting is all that can be done.
const WAIT_LIMIT: usize = 1_000_000;

/// A controller on a thread of its own.
struct Aside {
    health: Arc<Health>,
    /// Its clock, each time that it is held.
    held: tokio::sync::mpsc::UnboundedReceiver<Instant>,
    /// Lets its clock go on until it has done the next thing.
    go_on: Sender<()>,
    thread: JoinHandle<()>,
}

impl Aside {
    fn begin() -> Self {
        let health = Arc::<Health>::default();
        let (tell, held) = tokio::sync::mpsc::unbounded_channel();
        let (go_on, told) = channel();
        let its_health = health.clone();
        let thread = std::thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().start_paused(true).build();
            runtime.expect("a runtime").block_on(work(its_health, &tell, told));
        });
        Self { health, held, go_on, thread }
    }

    /// Waits until its clock is held, and sets the one of this thread to the same time.
    async fn meet(&mut self) {
        let its_clock = self.held.recv().await.expect("it has not failed");
        advance(its_clock.saturating_duration_since(Instant::now())).await;
    }
}

/// Lends a machine, has it taken back while the clock is held, and works on for a while when that is over.
async fn work(
    health: Arc<Health>,
    held: &tokio::sync::mpsc::UnboundedSender<Instant>,
    mut go_on: Receiver<()>,
) {
    let mut world = OperatorFixture::new("off");
    world.health = health.clone();
    world.lend(&machine("a", &json!({})));
    tokio::spawn(async move { health.check_timers().await });
    world.begin();
    world.until(0, "09:30:00").await;
    assert_eq!(world.status("a").await["phase"], "Active");

    // The clock goes on by itself only while nobody is busy on a thread that may block.
    let holding = spawn_blocking(move || {
        go_on.recv().expect("somebody waits for us");
        go_on
    });
    let since = Instant::now();
    world.change("a", &json!({"killSwitch": true})).await;
    for _ in 0..WAIT_LIMIT {
        if world.status("a").await["phase"] == "ShuttingDown" {
            break;
        }
        yield_now().await;
    }
    assert_eq!(world.status("a").await["phase"], "ShuttingDown", "all but the clock goes on");
    assert_eq!(since.elapsed(), Duration::ZERO, "no time has passed");
    held.send(since).expect("somebody waits for us");
    go_on = holding.await.expect("it waits");

    world.phase("a", "Terminated").await;
    sleep(Duration::from_mins(1)).await;
    held.send(Instant::now()).expect("somebody waits for us");
    go_on.recv().expect("somebody waits for us");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn timers_that_stand_still_turn_health_and_back() {
    let mut controller = Aside::begin();
    let listener = servers::listen(0, "--health-port").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(servers::serve_health(listener, controller.health.clone()));

    controller.meet().await;
    assert_eq!(get(port, "/health").await.0, 200);
    // They may have fired up to five seconds before the clock was held.
    advance(Duration::from_secs(24)).await;
    assert_eq!(get(port, "/health").await.0, 200);
    advance(Duration::from_secs(7)).await;
    let (status, body) = get(port, "/health").await;
    assert_eq!(status, 503, "{body}");
    assert_eq!(body.matches("\ntimers have not fired for 3").count(), 1, "{body}");
    assert_eq!(get(port, "/ready").await.0, 503);

    controller.go_on.send(()).expect("it waits");
    controller.meet().await;
    for path in ["/health", "/ready"] {
        let (status, body) = get(port, path).await;
        assert_eq!(status, 200, "{path}: {body}");
    }
    controller.go_on.send(()).expect("it waits");
    controller.thread.join().expect("it ends well");
}
