//! The metrics of the controller during a run, written to a file that `promtool` can import into a Prometheus
//! database.

use crate::sandbox::recorder::Recorder;
use five_spot_apiserver::Clock;
use five_spot_cluster::{Exchange, RequestObserver};
use five_spot_controller::metrics::Metrics;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The usual scrape interval.
const INTERVAL: Duration = Duration::from_mins(1);

/// Passes each request to the recorder and to the metrics.
pub struct Observers {
    pub recorder: Recorder,
    pub metrics: Arc<Metrics>,
}

impl RequestObserver for Observers {
    fn answered(&self, exchange: &Exchange) {
        self.recorder.answered(exchange);
        self.metrics.answered(exchange);
    }
}

/// A file of samples in the `OpenMetrics` format.
pub struct Samples(BufWriter<File>);

impl Samples {
    /// Creates the file.
    pub fn create(path: &Path) -> io::Result<Self> {
        File::create(path).map(|file| Self(BufWriter::new(file)))
    }

    /// Writes the metrics once per simulated minute until `stop` is cancelled.
    pub async fn record(
        mut self,
        metrics: Arc<Metrics>,
        clock: Clock,
        stop: CancellationToken,
    ) -> io::Result<()> {
        while stop.run_until_cancelled(tokio::time::sleep(INTERVAL)).await.is_some() {
            write_page(&mut self.0, &metrics.page(), clock.now().as_second())?;
        }
        self.0.write_all(b"# EOF\n")?;
        self.0.flush()
    }
}

/// Writes the samples of a metrics page with a timestamp. HELP and TYPE lines are left out: their format
/// differs in `OpenMetrics`, and a database does not store them.
fn write_page(file: &mut impl Write, page: &str, seconds: i64) -> io::Result<()> {
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        writeln!(file, "{line} {seconds}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_have_a_time_and_nothing_else_is_written() {
        let page = "# HELP a A.\n# TYPE a gauge\na{b=\"c d\"} 1\n# TYPE e_total counter\ne_total 2\n";
        let mut file = Vec::new();
        write_page(&mut file, page, 1_794_000_000).expect("memory takes everything");
        assert_eq!(String::from_utf8_lossy(&file), "a{b=\"c d\"} 1 1794000000\ne_total 2 1794000000\n");
    }
}
