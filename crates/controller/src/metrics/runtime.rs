//! The load of the worker threads, from tokio's own metrics, for whoever looks for a reconcile that blocks
//! a thread or for tasks that are never done. Read for each scrape.

use super::families::{counters, gauge};
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{CounterVec, Gauge};
use tokio::runtime::Handle;

pub(super) struct Runtime {
    handle: Handle,
    workers: Gauge,
    alive_tasks: Gauge,
    queue_depth: Gauge,
    busy: CounterVec,
    parked: CounterVec,
}

impl Runtime {
    pub(super) fn new(handle: Handle) -> Self {
        Self {
            workers: gauge("runtime_workers", "Worker threads"),
            alive_tasks: gauge("runtime_alive_tasks", "Tasks that are alive"),
            queue_depth: gauge("runtime_global_queue_depth", "Runnable tasks that wait for a thread"),
            busy: counters(
                "runtime_worker_busy_seconds_total",
                "Time for which a thread was busy",
                &["worker"],
            ),
            parked: counters(
                "runtime_worker_parks_total",
                "Number of times that a thread ran out of work",
                &["worker"],
            ),
            handle,
        }
    }

    fn catch_up(&self) {
        let metrics = self.handle.metrics();
        set(&self.workers, metrics.num_workers());
        set(&self.alive_tasks, metrics.num_alive_tasks());
        set(&self.queue_depth, metrics.global_queue_depth());
        for worker in 0..metrics.num_workers() {
            let label = worker.to_string();
            advance(&self.busy, &label, metrics.worker_total_busy_duration(worker).as_secs_f64());
            #[allow(clippy::cast_precision_loss)]
            advance(&self.parked, &label, metrics.worker_park_count(worker) as f64);
        }
    }

    fn families(&self) -> [&dyn Collector; 5] {
        [&self.workers, &self.alive_tasks, &self.queue_depth, &self.busy, &self.parked]
    }
}

fn set(gauge: &Gauge, count: usize) {
    #[allow(clippy::cast_precision_loss)]
    gauge.set(count as f64);
}

/// Raises a counter to a value that tokio has counted.
fn advance(counters: &CounterVec, worker: &str, count: f64) {
    let counter = counters.with_label_values(&[worker]);
    counter.inc_by((count - counter.get()).max(0.0));
}

impl Collector for Runtime {
    fn desc(&self) -> Vec<&Desc> {
        self.families().into_iter().flat_map(Collector::desc).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        self.catch_up();
        self.families().into_iter().flat_map(Collector::collect).collect()
    }
}
