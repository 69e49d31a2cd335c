//! A private Prometheus server, requests to it, and alert rules with short times. The program `prometheus` must be installed.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::Context as _;

/// A Prometheus server that is stopped on drop.
#[derive(Debug)]
pub struct Prometheus(Child);

impl Prometheus {
    /// Starts the server with a configuration and a data directory, without a limit for the age of its data.
    pub fn start(config: &Path, data: &Path, port: u16) -> anyhow::Result<Self> {
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", data.display()))
            .arg("--storage.tsdb.retention.time=100y")
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("failed to start prometheus")?;
        Ok(Self(child))
    }

    /// Starts a server that scrapes a port of this machine and evaluates rules, both every second. Its files are in `directory`,
    /// which must exist.
    pub fn scraping(directory: &Path, target: u16, rules: &str, port: u16) -> anyhow::Result<Self> {
        let config = directory.join("prometheus.yaml");
        let global = "global: {scrape_interval: 1s, evaluation_interval: 1s}";
        let scrape = format!("[{{job_name: 5spot, static_configs: [{{targets: ['127.0.0.1:{target}']}}]}}]");
        std::fs::write(directory.join("rules.yaml"), rules)?;
        std::fs::write(&config, format!("{global}\nrule_files: [rules.yaml]\nscrape_configs: {scrape}\n"))?;
        Self::start(&config, &directory.join("tsdb"), port)
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The result of an expression now.
pub fn query(port: u16, expression: &str) -> anyhow::Result<serde_json::Value> {
    get(port, &format!("/api/v1/query?query={}", encoded(expression)))
}

/// Encodes text for a query string.
pub fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |encoded, byte| encoded + &format!("%{byte:02x}"))
}

/// The response of Prometheus to a request.
pub fn get(port: u16, path: &str) -> anyhow::Result<serde_json::Value> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let body = answer.split_once("\r\n\r\n").context("the response has no body")?.1;
    serde_json::from_str(body).with_context(|| format!("{path}: {body}"))
}

/// The alert rules with every time that an alert waits or is kept, every range and every step divided by sixty.
pub fn shortened(rules: &str) -> String {
    let mut short = String::new();
    for line in rules.lines() {
        let durations = ["for: ", "keep_firing_for: "];
        let is_duration = durations.iter().any(|key| line.trim_start().starts_with(key));
        let mut rest = line;
        while let Some(position) = rest.find(|c: char| c.is_ascii_digit()) {
            let (before, number) = rest.split_at(position);
            let digits = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
            let (digits, after) = number.split_at(digits);
            // A range is `[2h]`, or `[2h:1m]` with a step.
            let in_range = before.ends_with('[') || before == ":" || is_duration;
            let (unit, after) = match after.chars().next() {
                Some('m') if in_range => ("s", &after[1..]),
                Some('h') if in_range => ("m", &after[1..]),
                Some(_) | None => ("", after),
            };
            short.push_str(before);
            short.push_str(digits);
            short.push_str(unit);
            rest = after;
        }
        short.push_str(rest);
        short.push('\n');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_divided_by_sixty_and_nothing_else_changes() {
        for (rule, short) in [
            ("  for: 10m\n", "  for: 10s\n"),
            ("  keep_firing_for: 5m\n", "  keep_firing_for: 5s\n"),
            ("  expr: 300 * sum(rate(a_total[15m])) > 10\n", "  expr: 300 * sum(rate(a_total[15s])) > 10\n"),
            (
                "  expr: min_over_time(b{le=\"30\"}[2h]) > 0\n",
                "  expr: min_over_time(b{le=\"30\"}[2m]) > 0\n",
            ),
            ("  expr: max_over_time(sum(b)[2h:1m]) > 0\n", "  expr: max_over_time(sum(b)[2m:1s]) > 0\n"),
        ] {
            assert_eq!(shortened(rule), short);
        }
    }
}
