//! The progress of a command: Kafka's lines at an interval, and a progress bar if standard error is a terminal.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::bar::Bar;

/// The progress bar that is currently on the terminal.
static BAR: Mutex<Option<Bar>> = Mutex::new(None);

/// Runs `print` while the bar is not on the terminal, if there is one.
pub fn above_bar(print: impl FnOnce()) {
    let bar = BAR.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match bar {
        Some(bar) => bar.suspend(print),
        None => print(),
    }
}

/// A line at the bottom of the terminal, such as the number of messages so far. Hidden unless standard error is a terminal.
#[derive(Debug)]
pub struct StatusLine(Bar);

impl StatusLine {
    /// Shows an empty line; `None` if standard error is not a terminal.
    pub fn start() -> Option<StatusLine> {
        let bar = io::stderr().is_terminal().then(Bar::line).flatten()?;
        *BAR.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.clone());
        Some(StatusLine(bar))
    }

    /// Replaces the text.
    pub fn set(&self, text: String) {
        self.0.say(text);
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        *BAR.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.0.clear();
    }
}

/// A thread that prints lines and moves the bar, so that the measured loop does not read the clock for them.
#[derive(Debug)]
pub struct Progress {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    /// Prints `line` every `interval` and moves the bar to the position of `state` of `total`, with its text.
    pub fn start(
        total: u64,
        interval: Duration,
        mut line: impl FnMut() -> Option<String> + Send + 'static,
        state: impl Fn() -> (u64, String) + Send + 'static,
    ) -> Progress {
        let bar = Bar::of(total);
        *BAR.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.clone());
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let mut due = Instant::now() + interval;
            loop {
                let until_due = due.saturating_duration_since(Instant::now());
                let wait =
                    if bar.is_hidden() { until_due } else { until_due.min(Duration::from_millis(100)) };
                match stopped.recv_timeout(wait) {
                    Err(RecvTimeoutError::Timeout) => {}
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
                }
                if !bar.is_hidden() {
                    let (position, text) = state();
                    bar.move_to(position, text);
                }
                if Instant::now() >= due {
                    if let Some(line) = line() {
                        // A reader that has closed the output ends the command when the summary is printed.
                        bar.suspend(|| {
                            let _ = writeln!(io::stdout(), "{line}");
                        });
                    }
                    due += interval;
                }
            }
            *BAR.lock().unwrap_or_else(PoisonError::into_inner) = None;
            bar.clear();
        });
        Progress { stop: Some(stop), thread: Some(thread) }
    }

    /// Removes the bar and ends the thread.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end();
    }
}
