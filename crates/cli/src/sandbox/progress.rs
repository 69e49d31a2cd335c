//! Progress of a run: a live timeline, one line per event, or nothing until the end.

use crate::output::complain;
use crate::sandbox::args::{Format, Request};
use crate::sandbox::environment::SandboxEnvironment;
use crate::sandbox::lines;
use crate::sandbox::screen::{Frame, Screen};
use crate::sandbox::serving::KubectlAccess;
use crate::sandbox::trace::{Trace, Transitions};
use anyhow::Context as _;
use five_spot_apiserver::clock::pace;
use std::io::{self, Write as _};
use std::time::Duration;
use terminal_size::{Height, Width, terminal_size_of};
use tokio::signal::unix::{SignalKind, signal};

/// The interval between updates, in real time: short enough to look continuous.
const FRAME: Duration = Duration::from_millis(100);

/// The size to assume if the terminal no longer reports one.
const USUAL_SIZE: (usize, usize) = (80, 24);

/// Reports the progress of a run.
pub struct ProgressReporter<'a> {
    request: &'a Request,
    environment: &'a SandboxEnvironment,
    /// The `KUBECONFIG=` line; empty if the API is not served.
    kubeconfig_line: String,
}

impl<'a> ProgressReporter<'a> {
    pub fn new(
        request: &'a Request,
        environment: &'a SandboxEnvironment,
        access: Option<&KubectlAccess>,
    ) -> Self {
        Self { request, environment, kubeconfig_line: access.map(KubectlAccess::line).unwrap_or_default() }
    }

    /// Reports until the run is over; returns false if standard output was closed.
    pub async fn report(&self) -> anyhow::Result<bool> {
        let result = match self.request.speed {
            None => self.at_once().await,
            Some(speed) => self.as_it_happens(speed).await,
        };
        match result {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            result => result.context("failed to write to standard output").map(|()| true),
        }
    }

    async fn at_once(&self) -> io::Result<()> {
        if !self.kubeconfig_line.is_empty() {
            complain(&self.kubeconfig_line);
        }
        self.until_the_end().await;
        match self.request.format {
            Format::Json => PrintedEntries::default().print(self),
            Format::Text | Format::Svg => Ok(()),
        }
    }

    async fn until_the_end(&self) {
        let left = self.request.range.to.duration_since(self.environment.clock.now());
        tokio::time::sleep(left.try_into().unwrap_or_default()).await;
    }

    async fn as_it_happens(&self, speed: u32) -> io::Result<()> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let show =
            async { if self.request.is_live { self.draw(speed).await } else { self.print(speed).await } };
        tokio::select! {
            biased;
            _ = interrupt.recv() => Ok(()),
            _ = terminate.recv() => Ok(()),
            shown = show => shown,
            () = self.pass_time(speed) => Ok(()),
        }
    }

    /// Advances the clock: at the requested speed during the span, in real time after it.
    async fn pass_time(&self, speed: u32) {
        tokio::select! {
            biased;
            () = self.until_the_end() => {}
            () = pace(f64::from(speed)) => {}
        }
        pace(1.0).await;
    }

    /// Waits for one frame of real time, measured on the simulated clock.
    async fn frame(&self, speed: u32) {
        let is_over = self.environment.clock.now() >= self.request.range.to;
        tokio::time::sleep(FRAME * if is_over { 1 } else { speed }).await;
    }

    async fn draw(&self, speed: u32) -> io::Result<()> {
        let screen = Screen::enter()?;
        loop {
            let size = terminal_size_of(io::stdout())
                .map_or(USUAL_SIZE, |(Width(columns), Height(lines))| (columns.into(), lines.into()));
            let (range, now, kubeconfig_line) =
                (self.request.range, self.environment.clock.now(), self.kubeconfig_line.as_str());
            self.environment.recorder.look(|trace| {
                screen.draw(&Frame { trace, range, now, speed, kubeconfig_line }, self.request.style, size)
            })?;
            self.frame(speed).await;
        }
    }

    async fn print(&self, speed: u32) -> io::Result<()> {
        match self.request.format {
            Format::Text => write_all(&format!("{}\n", self.kubeconfig_line))?,
            // The `KUBECONFIG=` line is not JSON, so it goes to standard error.
            Format::Json | Format::Svg => complain(&self.kubeconfig_line),
        }
        let mut printed = PrintedEntries::default();
        loop {
            printed.print(self)?;
            self.frame(speed).await;
        }
    }
}

/// The number of entries that have been printed.
#[derive(Debug, Default)]
struct PrintedEntries {
    count: usize,
    transitions: Transitions,
}

impl PrintedEntries {
    fn print(&mut self, progress: &ProgressReporter<'_>) -> io::Result<()> {
        let text = progress.environment.recorder.look(|trace| self.text(trace, progress.request));
        if text.is_empty() { Ok(()) } else { write_all(&text) }
    }

    fn text(&mut self, trace: &Trace, request: &Request) -> String {
        let mut text = String::new();
        for entry in &trace.entries[self.count..] {
            let transition = self.transitions.next(&entry.fact);
            let line = match request.format {
                Format::Json => lines::json(entry, transition),
                Format::Text | Format::Svg => lines::words(entry, transition, request.style),
            };
            if let Some(line) = line {
                text.push_str(&line);
                text.push('\n');
            }
        }
        self.count = trace.entries.len();
        text
    }
}

fn write_all(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}
