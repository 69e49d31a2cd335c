//! Readiness. The agent answers on a Unix socket in its state folder; `5spot-reclaim-agent probe` asks there. The answer
//! comes from the event loop, so that one that hangs does not answer.

use serde::{Deserialize, Serialize};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixListener;

/// The name of the socket in the state folder.
const SOCKET: &str = "agent.sock";

/// The time within which the agent must answer; the kubelet waits one second by default.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(900);

/// The activity of the agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Activity {
    /// The configuration has not been read yet, or the detector has not started yet.
    #[default]
    Starting,
    /// There is no configuration.
    Idle,
    /// The configuration has no patterns.
    Inert,
    /// The detector is looking for a match.
    Armed,
    /// A process matched, and the Node is not annotated yet.
    Annotating,
    /// The Node is annotated; the agent is silent until it is armed again.
    Fired,
}

/// The state of the agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeState {
    /// True if the agent does its work: the configuration was read at least once, and the detector runs if it is to.
    pub ready: bool,
    /// The activity.
    pub activity: Activity,
    /// The detector in use.
    pub detector: String,
}

/// The state, as the event loop changes it and the socket shows it.
#[derive(Clone, Debug, Default)]
pub struct SharedState(Arc<Mutex<ProbeState>>);

impl SharedState {
    /// A state before the configuration was read.
    pub fn new(detector: &str) -> Self {
        Self(Arc::new(Mutex::new(ProbeState { detector: detector.to_owned(), ..ProbeState::default() })))
    }

    /// Changes the activity. The agent is ready in every one but the first.
    pub fn set(&self, activity: Activity) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.activity = activity;
        state.ready = activity != Activity::Starting;
    }

    /// Changes the detector.
    pub fn set_detector(&self, detector: &str) {
        detector.clone_into(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).detector);
    }

    /// The state now.
    pub fn get(&self) -> ProbeState {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The socket in the state folder.
pub fn socket_path(state_folder: &Path) -> PathBuf {
    state_folder.join(SOCKET)
}

/// Opens the socket. What an earlier run left behind is replaced.
pub fn listen(state_folder: &Path) -> io::Result<UnixListener> {
    let path = socket_path(state_folder);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let listener = UnixListener::bind(&path)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Answers every request, forever.
pub async fn serve(listener: UnixListener, state: SharedState) {
    loop {
        match listener.accept().await {
            Ok((mut stream, _)) => {
                let mut answer = serde_json::to_vec(&state.get()).unwrap_or_default();
                answer.push(b'\n');
                // Whoever asked may be gone.
                let _ = stream.write_all(&answer).await;
            }
            Err(_) => tokio::time::sleep(Duration::from_secs(1)).await,
        }
    }
}

/// Asks the agent for its state.
pub fn ask(state_folder: &Path) -> io::Result<ProbeState> {
    let stream = UnixStream::connect(socket_path(state_folder))?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    let mut answer = Vec::new();
    stream.take(4096).read_to_end(&mut answer)?;
    serde_json::from_slice(&answer).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_state_is_answered_and_a_stale_socket_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        drop(listen(folder.path()).expect("a socket"));
        let path = folder.path().to_owned();
        let ask = move || {
            let path = path.clone();
            tokio::task::spawn_blocking(move || ask(&path))
        };
        assert!(ask().await.expect("a thread").is_err(), "nobody listens");

        let state = SharedState::new("poll");
        let listener = listen(folder.path()).expect("the socket again");
        let server = tokio::spawn(serve(listener, state.clone()));
        let answer = ask().await.expect("a thread").expect("an answer");
        assert_eq!(
            answer,
            ProbeState { ready: false, activity: Activity::Starting, detector: "poll".into() }
        );
        state.set(Activity::Idle);
        let answer = ask().await.expect("a thread").expect("an answer");
        assert_eq!((answer.ready, answer.activity), (true, Activity::Idle));
        server.abort();
    }
}
