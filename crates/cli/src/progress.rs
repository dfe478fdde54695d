//! What is shown while a command works: Kafka's lines at their interval, and a bar where a terminal shows it.

use std::io::IsTerminal;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A thread that prints, so that the work doesn't have to look at the time.
#[derive(Debug)]
pub struct Progress {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    /// Prints `line` every `interval` and moves the bar to `position` of `total`.
    pub fn start(
        total: u64,
        interval: Duration,
        mut line: impl FnMut() -> Option<String> + Send + 'static,
        position: impl Fn() -> u64 + Send + 'static,
    ) -> Progress {
        let bar = bar(total);
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
                bar.set_position(position());
                if Instant::now() >= due {
                    if let Some(line) = line() {
                        bar.suspend(|| println!("{line}"));
                    }
                    due += interval;
                }
            }
            bar.finish_and_clear();
        });
        Progress { stop: Some(stop), thread: Some(thread) }
    }

    /// Takes the bar away and ends the thread.
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

fn bar(total: u64) -> ProgressBar {
    let target = match std::io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    };
    let bar = ProgressBar::with_draw_target(Some(total), target);
    if let Ok(style) =
        ProgressStyle::with_template("{bar:40} {human_pos} of {human_len}, {per_sec}, {eta} left")
    {
        bar.set_style(style);
    }
    bar
}
