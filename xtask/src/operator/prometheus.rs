//! A real Prometheus that scrapes the pages of the play one after the other, and answers every documented expression.

use anyhow::{Context as _, ensure};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The number of scrapes of each page: a rate needs two samples.
const SCRAPES: usize = 3;

/// Only for a Prometheus that never answers.
const GUARD: Duration = Duration::from_mins(1);

/// The documented expressions, and whether the play gives them something to show.
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
    let wanted = pages.len() * SCRAPES;
    let (target, scrapes) = serve(pages)?;
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let _prometheus = start(directory, target, port)?;
    let begun = Instant::now();
    while scrapes.load(Ordering::SeqCst) < wanted {
        ensure!(begun.elapsed() < GUARD, "Prometheus does not scrape");
        std::thread::sleep(Duration::from_millis(50));
    }
    for (expression, shows) in EXPRESSIONS {
        let answer = query(port, expression)?;
        ensure!(answer["status"] == "success", "{expression}: {answer}");
        let found = answer["data"]["result"].as_array().map_or(0, Vec::len);
        ensure!((found > 0) == shows, "{expression}: {answer}");
    }
    Ok(())
}

/// Serves each page for a few scrapes, and the last one for ever.
fn serve(pages: Vec<String>) -> anyhow::Result<(u16, Arc<AtomicUsize>)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let scrapes = Arc::new(AtomicUsize::new(0));
    let counted = scrapes.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let number = counted.load(Ordering::SeqCst);
            let page = &pages[(number / SCRAPES).min(pages.len() - 1)];
            // A scrape that breaks off is not counted, and made again.
            if answer(stream, page).is_ok() {
                counted.fetch_add(1, Ordering::SeqCst);
            }
        }
    });
    Ok((port, scrapes))
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

/// A process that ends with this.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(directory: &Path, target: u16, port: u16) -> anyhow::Result<Running> {
    let config = directory.join("prometheus.yaml");
    let scrape = format!("[{{job_name: 5spot, static_configs: [{{targets: ['127.0.0.1:{target}']}}]}}]");
    std::fs::write(&config, format!("global: {{scrape_interval: 1s}}\nscrape_configs: {scrape}\n"))?;
    let child = Command::new("prometheus")
        .arg(format!("--config.file={}", config.display()))
        .arg(format!("--storage.tsdb.path={}", directory.join("tsdb").display()))
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("failed to start prometheus")?;
    Ok(Running(child))
}

fn query(port: u16, expression: &str) -> anyhow::Result<serde_json::Value> {
    let encoded = expression.bytes().fold(String::new(), |encoded, byte| encoded + &format!("%{byte:02x}"));
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    write!(stream, "GET /api/v1/query?query={encoded} HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let body = answer.split_once("\r\n\r\n").context("an answer without a body")?.1;
    serde_json::from_str(body).with_context(|| format!("{expression}: {body}"))
}
