//! Stopping: a signal asks for it, a second one or too long a wait enforces it.

use crate::RunError;
use futures::{Stream, StreamExt, stream};
use std::process::ExitCode;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

/// The time that the work has to end. It cuts itself off earlier than that; this is for work that hangs. The
/// program is gone two seconds after the signal, and the difference is its time to say so.
const GRACE: Duration = Duration::from_millis(1800);

/// A wish that the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    /// SIGINT, as Ctrl-C sends it.
    Interrupt,
    /// SIGTERM, as the kubelet sends it.
    Terminate,
}

impl Signal {
    const fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
        }
    }

    /// As a shell reports a program that the signal has ended.
    const fn exit_code(self) -> u8 {
        match self {
            Self::Interrupt => 128 + 2,
            Self::Terminate => 128 + 15,
        }
    }
}

/// The end of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// By itself, or because it was asked to.
    Finished,
    /// It was asked to stop, and did not in time.
    CutOff,
    /// It was asked to stop twice.
    Enforced(Signal),
    /// It could not continue.
    Failed,
}

impl From<Ended> for ExitCode {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Finished | Ended::CutOff => Self::SUCCESS,
            Ended::Enforced(signal) => Self::from(signal.exit_code()),
            Ended::Failed => Self::FAILURE,
        }
    }
}

/// The signals that this process gets from now on.
pub(super) fn signals() -> std::io::Result<impl Stream<Item = Signal> + Unpin> {
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut terminations = signal(SignalKind::terminate())?;
    Ok(stream::poll_fn(move |context| {
        let interrupted = interrupts.poll_recv(context).map(|received| received.map(|()| Signal::Interrupt));
        if interrupted.is_ready() {
            return interrupted;
        }
        terminations.poll_recv(context).map(|received| received.map(|()| Signal::Terminate))
    }))
}

/// Waits until the work has ended, by itself or on a signal.
pub(super) async fn supervise(
    mut working: JoinHandle<Result<(), RunError>>,
    stop: CancellationToken,
    mut signals: impl Stream<Item = Signal> + Unpin,
) -> Ended {
    let signal = tokio::select! {
        biased;
        outcome = &mut working => return judge(outcome),
        Some(signal) = signals.next() => signal,
    };
    info!(signal = signal.name(), "Stopping");
    stop.cancel();
    tokio::select! {
        biased;
        outcome = &mut working => judge(outcome),
        Some(signal) = signals.next() => {
            warn!(
                signal = signal.name(),
                "Stopped at once on a second signal; running reconciles were cancelled"
            );
            Ended::Enforced(signal)
        }
        () = tokio::time::sleep(GRACE) => {
            warn!("Stopped before all running reconciles had finished; they were cancelled");
            Ended::CutOff
        }
    }
}

fn judge(outcome: Result<Result<(), RunError>, tokio::task::JoinError>) -> Ended {
    match outcome {
        Ok(Ok(())) => {
            info!("Stopped");
            Ended::Finished
        }
        Ok(Err(error)) => {
            error!(%error, "The controller cannot continue");
            Ended::Failed
        }
        Err(error) => {
            error!(%error, "The controller has crashed");
            Ended::Failed
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;
    use tokio::runtime::Builder;
    use tokio::time::Instant;

    /// The end of `work`, and its time, if signals come at these moments.
    async fn supervised(
        work: impl FnOnce(CancellationToken) -> JoinHandle<Result<(), RunError>>,
        moments: &'static [(u64, Signal)],
    ) -> (Ended, u128) {
        let began = Instant::now();
        let stop = CancellationToken::new();
        let working = work(stop.clone());
        let signals = stream::iter(moments).then(|(milliseconds, signal)| async move {
            tokio::time::sleep_until(began + Duration::from_millis(*milliseconds)).await;
            *signal
        });
        let ended = supervise(working, stop, Box::pin(signals)).await;
        (ended, began.elapsed().as_millis())
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_listens_ends_with_the_signal() {
        let listens = |stop: CancellationToken| {
            tokio::spawn(async move {
                stop.cancelled().await;
                Ok(())
            })
        };
        let outcome = supervised(listens, &[(700, Signal::Terminate)]).await;
        assert_eq!(outcome, (Ended::Finished, 700));
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_hangs_is_cut_off_within_two_seconds() {
        let outcome = supervised(|_| tokio::spawn(pending()), &[(700, Signal::Terminate)]).await;
        assert_eq!(outcome, (Ended::CutOff, 2500));
    }

    #[tokio::test(start_paused = true)]
    async fn a_thread_that_hangs_cannot_hold_it_up() {
        let workers = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a thread");
        let (release, released) = std::sync::mpsc::channel::<()>();
        let hangs = |_| {
            workers.spawn(async move {
                let _ = released.recv();
                Ok(())
            })
        };
        let outcome = supervised(hangs, &[(700, Signal::Terminate)]).await;
        assert_eq!(outcome, (Ended::CutOff, 2500));
        drop(release);
        workers.shutdown_background();
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_signal_ends_it_at_once() {
        let signals = &[(700, Signal::Terminate), (800, Signal::Interrupt)];
        let outcome = supervised(|_| tokio::spawn(pending()), signals).await;
        assert_eq!(outcome, (Ended::Enforced(Signal::Interrupt), 800));
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_fails_or_panics_is_a_failure() {
        let refused = || kube::Error::Service("refused".into());
        let fails = |_| tokio::spawn(async move { Err(RunError::Client(refused())) });
        assert_eq!(supervised(fails, &[]).await, (Ended::Failed, 0));
        let panics = |_| tokio::spawn(async { panic!("no way") });
        assert_eq!(supervised(panics, &[]).await, (Ended::Failed, 0));
    }
}
