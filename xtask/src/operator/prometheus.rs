//! A real Prometheus that scrapes the recorded metrics pages one after the other, answers every documented
//! expression and every query of the dashboard, and evaluates the alert rules, with all times divided by
//! sixty.

use anyhow::{Context as _, ensure};
use five_spot_testenv::prometheus::{Prometheus, get, query, shortened};
use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The number of scrapes of each page: a rate needs two samples.
const SCRAPES: usize = 3;

/// The page on which alerts fire.
const BUSY: usize = 2;

/// Alerts that must fire with the recorded pages, and alerts that must not.
const FIRING: [&str; 3] =
    ["FiveSpotDrainDeadlineExceeded", "FiveSpotMachinesWithoutNode", "FiveSpotRapidReReclaim"];
const SILENT: [&str; 6] = [
    "FiveSpotControllerMissing",
    "FiveSpotEmergencyDrainTimeoutRising",
    "FiveSpotEmergencyStuck",
    "FiveSpotNoLeader",
    "FiveSpotQueueStalled",
    "FiveSpotSlowReconciliation",
];

/// The timeout for a Prometheus that never answers.
const GUARD: Duration = Duration::from_mins(1);

/// The documented expressions, and whether each must have a result with the recorded pages.
const EXPRESSIONS: [(&str, bool); 13] = [
    ("sum(fivespot_is_leader)", true),
    ("sum(fivespot_is_leader) == 0", false),
    ("sum by (phase) (fivespot_machines_by_phase)", true),
    ("sum(rate(fivespot_reconciliations_total[5m]))", true),
    (r#"rate(fivespot_reconciliations_total{result="failure"}[5m]) > 0"#, true),
    ("histogram_quantile(0.99, rate(fivespot_reconciliation_duration_seconds_bucket[5m]))", true),
    ("histogram_quantile(0.99, rate(fivespot_reconciliation_duration_seconds_bucket[5m])) > 30", false),
    (
        r#"histogram_quantile(0.95, rate(fivespot_emergency_drain_duration_seconds_bucket{outcome="success"}[10m]))"#,
        true,
    ),
    (r#"sum(rate(fivespot_emergency_drain_duration_seconds_count{outcome="timeout"}[10m]))"#, true),
    ("topk(10, sum by (namespace, name) (increase(fivespot_emergency_reclaims_total[1h])))", true),
    ("sum by (namespace, name) (rate(fivespot_rapid_re_reclaims_total[15m])) > 0", true),
    ("rate(fivespot_finalizer_cleanup_timeouts_total[15m]) > 0", true),
    ("rate(fivespot_finalizer_cleanup_timeouts_total[5m]) > 0", true),
];

pub(super) fn check(directory: &Path) -> anyhow::Result<()> {
    let pages = ["fresh", "crowded", "busy", "empty"]
        .map(|page| std::fs::read_to_string(directory.join(page).with_extension("prom")));
    let pages = pages.into_iter().collect::<Result<Vec<String>, _>>()?;
    let last = pages.len() - 1;
    let target = serve(pages)?;
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let _prometheus = start(directory, target.port, port)?;
    for page in 0..=BUSY {
        target.show(page)?;
    }
    until_alerts_have_fired(port)?;
    target.show(last)?;
    for (expression, shows) in EXPRESSIONS {
        let found = results(port, expression)?;
        ensure!((found > 0) == shows, "{expression}: {found} results");
    }
    for expression in dashboard()? {
        results(port, &expression)?;
    }
    Ok(())
}

/// The number of results of an expression.
fn results(port: u16, expression: &str) -> anyhow::Result<usize> {
    let answer = query(port, expression)?;
    ensure!(answer["status"] == "success", "{expression}: {answer}");
    Ok(answer["data"]["result"].as_array().map_or(0, Vec::len))
}

/// The queries of the dashboard.
fn dashboard() -> anyhow::Result<Vec<String>> {
    let text = std::fs::read_to_string(repository().join("deploy/monitoring/dashboard.json"))?;
    let dashboard: serde_json::Value = serde_json::from_str(&text)?;
    let panels = dashboard["panels"].as_array().context("the dashboard has no panels")?;
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let queries: Vec<String> =
        targets.filter_map(|target| Some(target["expr"].as_str()?.to_owned())).collect();
    ensure!(queries.len() > 20, "the dashboard has too few queries: {queries:?}");
    Ok(queries)
}

/// Waits until every expected alert has fired, and checks that none of the others has and that all rules are
/// healthy.
///
/// Alerts on rates fire for some time after the page has changed, others only after some time, so they do not
/// have to fire at the same moment.
fn until_alerts_have_fired(port: u16) -> anyhow::Result<()> {
    let begun = Instant::now();
    let mut fired = BTreeSet::new();
    while !FIRING.iter().all(|alert| fired.contains(*alert)) {
        ensure!(begun.elapsed() < GUARD, "alerts that should fire: {FIRING:?}; fired so far: {fired:?}");
        let answer = get(port, "/api/v1/rules?type=alert")?;
        let groups = answer["data"]["groups"].as_array().context("the response has no rule groups")?;
        for rule in groups.iter().flat_map(|group| group["rules"].as_array().into_iter().flatten()) {
            ensure!(rule["health"] != "err", "the rule cannot be evaluated: {rule:#}");
            if rule["state"] == "firing"
                && let Some(name) = rule["name"].as_str()
            {
                ensure!(!SILENT.contains(&name), "the alert should not fire: {rule:#}");
                fired.insert(name.to_owned());
            }
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The scrape target, which serves one page at a time.
struct Target {
    port: u16,
    page: Arc<AtomicUsize>,
    scrapes: Arc<AtomicUsize>,
}

impl Target {
    /// Serves a page until it has been scraped a few times.
    fn show(&self, page: usize) -> anyhow::Result<()> {
        self.page.store(page, Ordering::SeqCst);
        let wanted = self.scrapes.load(Ordering::SeqCst) + SCRAPES;
        let begun = Instant::now();
        while self.scrapes.load(Ordering::SeqCst) < wanted {
            ensure!(begun.elapsed() < GUARD, "Prometheus did not scrape");
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}

fn serve(pages: Vec<String>) -> anyhow::Result<Target> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let target =
        Target { port: listener.local_addr()?.port(), page: Arc::default(), scrapes: Arc::default() };
    let (page, scrapes) = (target.page.clone(), target.scrapes.clone());
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            // A scrape that breaks off does not count; Prometheus repeats it.
            if answer(stream, &pages[page.load(Ordering::SeqCst)]).is_ok() {
                scrapes.fetch_add(1, Ordering::SeqCst);
            }
        }
    });
    Ok(target)
}

fn answer(mut stream: TcpStream, page: &str) -> std::io::Result<()> {
    let mut request = Vec::new();
    let mut part = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = stream.read(&mut part)?;
        if read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        request.extend_from_slice(&part[..read]);
    }
    let length = page.len();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain; version=0.0.4\r\nconnection: close\r\n";
    write!(stream, "{head}content-length: {length}\r\n\r\n{page}")
}

fn start(directory: &Path, target: u16, port: u16) -> anyhow::Result<Prometheus> {
    let rules = std::fs::read_to_string(repository().join("deploy/monitoring/alerts.yaml"))?;
    Prometheus::scraping(directory, target, &shortened(&rules), port)
}
