//! The event loop of the agent: configuration in, detector armed, Node annotated.

use crate::annotate::{self, OwnNode};
use crate::client::Client;
use crate::detector::{Choice, Detector, DetectorError, DetectorKind, DetectorOutcome, Search};
use crate::matcher::Matcher;
use crate::probe::{Activity, SharedState};
use crate::procfs::{Found, ProcRoot, ProcessKey};
use crate::watch::{ConfigUpdate, ConfigWatch};
use five_spot_api::reclaim::{AgentConfig, ConfigError, config_map};
use jiff::Timestamp;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tracing::{error, info, warn};

/// The time after which a detector that could not start is started again.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The time between two looks at a detector that may read command lines. One that has read the same one all the time is
/// replaced.
const STALL_INTERVAL: Duration = Duration::from_secs(5);

/// The most processes whose command lines are left out: each holds up a thread.
const MAX_LEFT_OUT: usize = 64;

/// The settings of an agent.
#[derive(Clone, Debug)]
pub struct AgentSettings {
    /// The Node to annotate.
    pub node: OwnNode,
    /// The folder of the process file system.
    pub proc_root: PathBuf,
    /// The detector that was asked for.
    pub choice: Choice,
    /// The detector in use.
    pub kind: DetectorKind,
}

/// An agent at work.
#[derive(Debug)]
pub struct Agent {
    settings: AgentSettings,
    client: Client,
    state: SharedState,
    outcomes: UnboundedSender<(u64, DetectorOutcome)>,
    /// The number of the current arming. A report of an earlier one comes too late.
    arming: u64,
    detector: Option<Detector>,
    /// The configuration in use, for a change of detector.
    config: Option<AgentConfig>,
    /// The time of the next attempt to start the detector.
    retry_at: Option<Instant>,
    /// The time of the next look at the detector, while it may read command lines.
    stall_check_at: Option<Instant>,
    /// The processes whose command lines could not be read to their end.
    left_out: Vec<ProcessKey>,
    /// The request that is on its way to the API server.
    request: Option<JoinHandle<()>>,
}

/// Runs an agent until its detector fails beyond repair; only an explicit `--detector=netlink` can do that.
pub async fn run(settings: AgentSettings, client: Client, state: SharedState) -> DetectorError {
    let (update_sender, updates) = unbounded_channel();
    let watch = ConfigWatch::new(client.clone(), &settings.node.name, update_sender);
    let watch = tokio::spawn(watch.run());
    let (outcome_sender, outcomes) = unbounded_channel();
    let agent = Agent {
        settings,
        client,
        state,
        outcomes: outcome_sender,
        arming: 0,
        detector: None,
        config: None,
        retry_at: None,
        stall_check_at: None,
        left_out: Vec::new(),
        request: None,
    };
    let ended = agent.react(updates, outcomes).await;
    watch.abort();
    ended
}

impl Agent {
    async fn react(
        mut self,
        mut updates: UnboundedReceiver<ConfigUpdate>,
        mut outcomes: UnboundedReceiver<(u64, DetectorOutcome)>,
    ) -> DetectorError {
        loop {
            tokio::select! {
                // A match first: its owner is waiting.
                biased;
                Some((arming, outcome)) = outcomes.recv() => {
                    if arming == self.arming
                        && let Err(error) = self.on_outcome(outcome)
                    {
                        return error;
                    }
                }
                Some(()) = finished(&mut self.request) => {
                    self.request = None;
                    // It may have been configured again meanwhile.
                    if self.state.get().activity == Activity::Annotating {
                        self.state.set(Activity::Fired);
                    }
                }
                Some(update) = updates.recv() => self.on_update(update),
                Some(()) = reached(self.retry_at) => self.arm(),
                Some(()) = reached(self.stall_check_at) => self.check_for_stall(),
            }
        }
    }

    fn on_update(&mut self, update: ConfigUpdate) {
        match update {
            ConfigUpdate::Applied { version, config: Ok(parsed) } => {
                let config = parsed.config;
                info!(
                    config_map = config_map(&self.settings.node.name),
                    resource_version = version,
                    match_commands = ?config.match_commands,
                    match_argv_substrings = ?config.match_argv_substrings,
                    match_uids = ?config.match_uids,
                    poll_interval_ms = config.poll_interval_ms,
                    detector = self.settings.kind.as_str(),
                    "configmap applied — rearming scanner"
                );
                if !parsed.unknown_keys.is_empty() {
                    warn!(keys = ?parsed.unknown_keys, "unknown keys in reclaim.toml have no effect");
                }
                self.config = Some(config);
                self.left_out.clear();
                self.arm();
            }
            ConfigUpdate::Applied { version, config: Err(error) } => self.on_malformed(&version, &error),
            ConfigUpdate::Missing => {
                info!(
                    config_map = config_map(&self.settings.node.name),
                    "configmap not found — idle until it appears"
                );
                self.disarm();
                self.config = None;
                if let Some(request) = self.request.take() {
                    request.abort();
                }
                self.state.set(Activity::Idle);
            }
        }
    }

    /// A configuration that cannot be used changes nothing.
    fn on_malformed(&mut self, version: &str, error: &ConfigError) {
        let kept =
            if self.config.is_some() { "keeping the last good one" } else { "idle until it is corrected" };
        error!(
            config_map = config_map(&self.settings.node.name),
            resource_version = version,
            %error,
            "configmap is malformed — {kept}"
        );
        if self.config.is_none() {
            self.state.set(Activity::Idle);
        }
    }

    /// Starts the detector with the current configuration, in place of the one that runs. A machine that is out of
    /// processes or memory may be so for a moment only: it is retried.
    fn arm(&mut self) {
        self.disarm();
        if let Err(error) = self.start_detector() {
            self.retry_later();
            warn!(%error, "the detector cannot start — retrying in a second");
        }
    }

    fn start_detector(&mut self) -> Result<(), DetectorError> {
        let Some(config) = &self.config else { return Ok(()) };
        if config.is_inert() {
            info!("both match lists are empty — armed but inert, no process can match");
            self.state.set(Activity::Inert);
            return Ok(());
        }
        let interval = Duration::from_millis(config.poll_interval_ms.into());
        let matcher = Matcher::new(config);
        let reads_memory = matcher.reads_memory();
        let mut search = Search::new(&self.settings.proc_root, matcher, interval)?;
        search.scanner.leave_out(&self.left_out);
        let (arming, outcomes) = (self.arming, self.outcomes.clone());
        let report = move |outcome| {
            let _ = outcomes.send((arming, outcome));
        };
        self.detector = Some(Detector::start(self.settings.kind, search, report)?);
        self.stall_check_at = reads_memory.then(|| Instant::now() + STALL_INTERVAL);
        self.state.set(Activity::Armed);
        Ok(())
    }

    /// Starts the detector again in a second. Until then the agent is not ready.
    fn retry_later(&mut self) {
        self.retry_at = Some(Instant::now() + RETRY_DELAY);
        self.state.set(Activity::Starting);
    }

    fn disarm(&mut self) {
        self.detector = None;
        self.retry_at = None;
        self.stall_check_at = None;
        self.arming += 1;
    }

    /// Replaces a detector that waits for the memory of a process: meanwhile it sees no other one.
    fn check_for_stall(&mut self) {
        self.stall_check_at = Some(Instant::now() + STALL_INTERVAL);
        let stalled = self.detector.as_mut().and_then(Detector::stalled_process);
        let is_blind = self.state.get().activity == Activity::Starting;
        let Some(pid) = stalled else {
            if is_blind {
                info!(
                    "the command line that held up the detector has been read — looking at all processes again"
                );
                self.state.set(Activity::Armed);
            }
            return;
        };
        // No process can be identified while the list cannot be read. Then the detector could not start again either.
        let Ok(processes) = ProcRoot::open(&self.settings.proc_root) else { return };
        self.left_out.retain(|process| processes.identify(process.pid) == *process);
        if self.left_out.len() >= MAX_LEFT_OUT {
            if !is_blind {
                error!(
                    pid,
                    left_out = self.left_out.len(),
                    "the command lines of too many processes cannot be read — no process can match until one of them ends"
                );
                self.state.set(Activity::Starting);
            }
            return;
        }
        warn!(
            pid,
            "the command line of a process cannot be read — leaving it out and looking at all others again"
        );
        self.left_out.push(processes.identify(pid));
        self.arm();
    }

    fn on_outcome(&mut self, outcome: DetectorOutcome) -> Result<(), DetectorError> {
        self.disarm();
        match outcome {
            DetectorOutcome::Matched(found) => {
                self.request_reclaim(&found);
                Ok(())
            }
            DetectorOutcome::Failed(error)
                if self.settings.kind == DetectorKind::Poll || !error.is_about_events() =>
            {
                self.retry_later();
                warn!(%error, "the detector failed — retrying in a second");
                Ok(())
            }
            DetectorOutcome::Failed(error) if self.settings.choice == Choice::Netlink => Err(error),
            DetectorOutcome::Failed(error) => {
                warn!(%error, "process events failed — falling back to --detector=poll");
                self.settings.kind = DetectorKind::Poll;
                self.state.set_detector(DetectorKind::Poll.as_str());
                self.arm();
                Ok(())
            }
        }
    }

    /// Starts to annotate the Node. A request that is still on its way is replaced: the new one says the same, later.
    fn request_reclaim(&mut self, found: &Found) {
        let request = annotate::request_for(&found.pattern, Timestamp::now());
        info!(
            matched_pattern = found.pattern,
            match_list = found.source.as_str(),
            pid = found.pid,
            comm = found.comm,
            exec_to_match_us =
                found.after_exec.map(|time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX)),
            node = self.settings.node.name,
            "process matched — requesting reclaim of the node"
        );
        if let Some(earlier) = self.request.take() {
            earlier.abort();
        }
        let (client, node) = (self.client.clone(), self.settings.node.clone());
        self.request = Some(tokio::spawn(async move {
            annotate::send_until_accepted(&client, &node, &request).await;
        }));
        self.state.set(Activity::Annotating);
    }
}

/// Waits for a time; `None` at once if there is none.
async fn reached(time: Option<Instant>) -> Option<()> {
    tokio::time::sleep_until(time?).await;
    Some(())
}

/// Waits for a task; `None` at once if there is none, so that `select!` leaves the branch out.
async fn finished(task: &mut Option<JoinHandle<()>>) -> Option<()> {
    let task = task.as_mut()?;
    let _ = task.await;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::ClusterAccess;
    use crate::netlink::NetlinkError;
    use crate::procfs::ProcfsError;
    use rustix::io::Errno;

    fn agent(choice: Choice) -> Agent {
        let (outcomes, _) = unbounded_channel();
        Agent {
            settings: AgentSettings {
                node: OwnNode { name: "desk-1".into(), machine_id: None },
                proc_root: "/proc".into(),
                choice,
                kind: DetectorKind::Netlink,
            },
            client: Client::new(ClusterAccess::new("127.0.0.1".into(), 1, PathBuf::new())),
            state: SharedState::new(DetectorKind::Netlink.as_str()),
            outcomes,
            arming: 0,
            detector: None,
            config: Some(AgentConfig::default()),
            retry_at: None,
            stall_check_at: None,
            left_out: Vec::new(),
            request: None,
        }
    }

    /// A machine that is out of memory or descriptors for a moment has process events all the same.
    #[tokio::test]
    async fn a_process_list_that_cannot_be_read_is_tried_again() {
        for choice in [Choice::Netlink, Choice::Auto] {
            let mut agent = agent(choice);
            let error = ProcfsError::Read(std::io::ErrorKind::OutOfMemory.into());
            agent.on_outcome(DetectorOutcome::Failed(error.into())).expect("no reason to end");
            assert!(agent.retry_at.is_some() && agent.settings.kind == DetectorKind::Netlink, "{choice:?}");
            assert!(!agent.state.get().ready, "{choice:?}");
        }
    }

    /// The socket of process events needs memory and a descriptor as well.
    #[tokio::test]
    async fn a_shortage_is_no_reason_to_give_up_process_events() {
        for shortage in [Errno::NOMEM, Errno::NOBUFS, Errno::MFILE, Errno::NFILE] {
            let error = || std::io::Error::from(shortage);
            for choice in [Choice::Netlink, Choice::Auto] {
                let subscribing = DetectorError::from(NetlinkError::from(error()));
                for failure in [subscribing, DetectorError::Receive(error())] {
                    let mut agent = agent(choice);
                    agent.on_outcome(DetectorOutcome::Failed(failure)).expect("no reason to end");
                    assert_eq!(agent.settings.kind, DetectorKind::Netlink, "{shortage:?} {choice:?}");
                    assert!(agent.retry_at.is_some() && !agent.state.get().ready, "{shortage:?} {choice:?}");
                }
            }
        }
    }

    /// A pipe that nobody writes to stands for a command line that cannot be read.
    #[tokio::test]
    async fn an_agent_held_up_by_too_many_processes_is_not_ready() {
        let root = tempfile::tempdir().expect("a folder");
        let process = root.path().join("7");
        std::fs::create_dir(&process).expect("a process");
        std::fs::write(process.join("comm"), "hangs\n").expect("a file");
        let command_line = process.join("cmdline");
        let pipe = std::process::Command::new("mkfifo").arg(&command_line).status();
        assert!(pipe.expect("mkfifo").success());
        let mut agent = agent(Choice::Auto);
        agent.settings.proc_root = root.path().to_owned();
        agent.settings.kind = DetectorKind::Poll;
        agent.config =
            Some(AgentConfig { match_argv_substrings: vec!["needle".into()], ..AgentConfig::default() });
        agent.arm();
        assert!(agent.state.get().ready);
        let left_out = ProcRoot::open(root.path()).expect("the folder").identify(7);
        agent.left_out = vec![left_out; MAX_LEFT_OUT];
        let until_ready = async |agent: &mut Agent, ready: bool| {
            for _ in 0..2000 {
                agent.check_for_stall();
                if agent.state.get().ready == ready {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            panic!("it never was: ready {ready}");
        };
        until_ready(&mut agent, false).await;
        assert!(agent.left_out.len() == MAX_LEFT_OUT && agent.detector.is_some());

        let pipe = std::fs::File::options().write(true).open(&command_line).expect("a reader");
        std::fs::remove_file(&command_line).expect("the pipe");
        std::fs::write(&command_line, "hangs\0").expect("a file");
        drop(pipe);
        until_ready(&mut agent, true).await;
    }

    #[tokio::test]
    async fn failed_events_stop_only_an_agent_that_requires_them() {
        let failed = || DetectorOutcome::Failed(NetlinkError::NotPermitted.into());
        agent(Choice::Netlink).on_outcome(failed()).expect_err("events were asked for");
        let mut automatic = agent(Choice::Auto);
        automatic.on_outcome(failed()).expect("a fallback");
        assert_eq!(automatic.settings.kind, DetectorKind::Poll);
    }
}
