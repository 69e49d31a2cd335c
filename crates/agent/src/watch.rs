//! The ConfigMap of this agent, from the API server: a list, then a watch, for as long as the agent runs.

use crate::backoff::Backoff;
use crate::client::{Client, ClientError, ConfigMap, ListedConfigMap, WatchEvent, parse_watch_event};
use five_spot_api::reclaim::{
    AgentConfig, CONFIG_KEY, CONFIG_NAMESPACE, ConfigError, ParsedConfig, config_map,
};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;
use tracing::{debug, info, warn};

/// The shortest time between the starts of two watches: an API server may end each one at once.
const MIN_WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// The longest delay after failures. A change of the configuration is noticed so much later at the most.
const MAX_DELAY: Duration = Duration::from_secs(30);

/// The time after which a watch counts as one that worked, also if nothing has happened meanwhile. An attempt whose requests
/// all time out takes less.
const WORKED_AFTER: Duration = Duration::from_mins(1);

/// A change of the ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigUpdate {
    /// The ConfigMap exists, in this version.
    Applied {
        /// The version of the ConfigMap.
        version: String,
        /// The configuration, or what is wrong with it.
        config: Result<ParsedConfig, ConfigError>,
    },
    /// The ConfigMap does not exist, or no longer.
    Missing,
}

/// The state of the ConfigMap that was reported last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Reported {
    /// Nothing yet.
    #[default]
    Nothing,
    /// There is no ConfigMap.
    Missing,
    /// The UID and the version of the ConfigMap; the UID tells one of the same name that was made later.
    Version(String, String),
}

/// The watch of one ConfigMap.
#[derive(Debug)]
pub struct ConfigWatch {
    client: Client,
    name: String,
    updates: UnboundedSender<ConfigUpdate>,
    reported: Reported,
}

impl ConfigWatch {
    /// The watch for the agent on `node`.
    pub fn new(client: Client, node: &str, updates: UnboundedSender<ConfigUpdate>) -> Self {
        Self { client, name: config_map(node), updates, reported: Reported::default() }
    }

    /// Reports every change, forever.
    pub async fn run(mut self) {
        let mut backoff = Backoff::new(MIN_WATCH_INTERVAL, MAX_DELAY, &self.name);
        let mut failures: u32 = 0;
        loop {
            let started = Instant::now();
            match self.list_and_watch(&mut backoff, &mut failures).await {
                Ok(()) => tokio::time::sleep_until(started + MIN_WATCH_INTERVAL).await,
                Err(error) => {
                    failures += 1;
                    if started.elapsed() >= WORKED_AFTER {
                        backoff.reset();
                    }
                    let delay = backoff.next_delay();
                    report_failure(&error, failures, delay);
                    tokio::time::sleep(delay).await;
                }
            }
        }
    }

    /// Lists, then watches until the version that it continues from is too old.
    async fn list_and_watch(&mut self, backoff: &mut Backoff, failures: &mut u32) -> Result<(), ClientError> {
        let ListedConfigMap { config_map, mut version } =
            self.client.list_config_map(CONFIG_NAMESPACE, &self.name).await?;
        self.report(config_map.as_ref());
        loop {
            let started = Instant::now();
            let mut lines = self.client.watch_config_map(CONFIG_NAMESPACE, &self.name, &version).await?;
            if *failures > 0 {
                info!(failures, "watching the configuration again");
            }
            *failures = 0;
            while let Some(line) = lines.next().await? {
                let event = parse_watch_event(&line)?;
                // Not before: an API server may begin every watch, and end it at once.
                backoff.reset();
                match event {
                    WatchEvent::Applied(config_map) => {
                        version.clone_from(&config_map.metadata.resource_version);
                        self.report(Some(&config_map));
                    }
                    WatchEvent::Deleted(at) => {
                        version = at;
                        self.report(None);
                    }
                    WatchEvent::Bookmark(at) => version = at,
                    WatchEvent::Expired => return Ok(()),
                }
            }
            debug!("the API server ended the watch");
            tokio::time::sleep_until(started + MIN_WATCH_INTERVAL).await;
        }
    }

    /// Reports the ConfigMap, unless this version of it was reported already.
    fn report(&mut self, config_map: Option<&ConfigMap>) {
        let now = config_map.map_or(Reported::Missing, |config_map| {
            let metadata = &config_map.metadata;
            Reported::Version(metadata.uid.clone(), metadata.resource_version.clone())
        });
        if self.reported == now {
            return;
        }
        self.reported = now;
        // The receiver is gone only when the program ends.
        let _ = self.updates.send(config_map.map_or(ConfigUpdate::Missing, parse));
    }
}

/// Reads the ConfigMap of the agent on `node` once.
pub async fn read_once(client: &Client, node: &str) -> Result<ConfigUpdate, ClientError> {
    let listed = client.list_config_map(CONFIG_NAMESPACE, &config_map(node)).await?;
    Ok(listed.config_map.as_ref().map_or(ConfigUpdate::Missing, parse))
}

fn parse(config_map: &ConfigMap) -> ConfigUpdate {
    let missing = || ConfigError { line: None, message: format!("the key {CONFIG_KEY} is missing") };
    let text = config_map.data.get(CONFIG_KEY).ok_or_else(missing);
    ConfigUpdate::Applied {
        version: config_map.metadata.resource_version.clone(),
        config: text.and_then(|text| AgentConfig::parse(text)),
    }
}

/// Reports the first failure of a series, and then one in ten.
fn report_failure(error: &ClientError, failures: u32, delay: Duration) {
    let hint = match error.code() {
        Some(401) => "the token is not valid; the agent reads it again at every attempt",
        Some(403) => "apply the Role and RoleBinding of deploy/node-agent",
        _ => "",
    };
    let retry_in_ms = delay.as_millis();
    if failures % 10 == 1 {
        warn!(%error, failures, retry_in_ms, hint, "watching the configuration failed — retrying");
    } else {
        debug!(%error, failures, retry_in_ms, "watching the configuration failed — retrying");
    }
}
