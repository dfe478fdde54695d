//! Prints the events of a client on standard error: failed connections, throttling brokers, recreated topics.
//!
//! Every command with a client starts an [`EventWatch`] as soon as the client exists, and waits for the first broker with
//! [`EventWatch::wait_for_broker`] before it starts to work. A broker that can't be reached is therefore visible from the
//! first failed attempt, and ends the command after `--timeout` instead of after the timeout of a request.

use std::collections::HashMap;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ottla::{Admin, ConsumerEvent, Error, ErrorKind, Event};

use crate::client_options::{ClientOptions, print_warnings};
use crate::failure::{Failure, Outcome};
use crate::standard_error::note;

/// The interval at which the thread polls events.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The same line is printed at most once in this time; repetitions are counted.
const REPEAT_INTERVAL: Duration = Duration::from_secs(10);
/// The maximum number of lines whose repetitions are counted.
const MAX_KNOWN_LINES: usize = 1000;

/// Prints events, and rate-limits lines that repeat.
#[derive(Debug, Default)]
pub struct EventPrinter {
    state: Mutex<PrinterState>,
}

#[derive(Debug, Default)]
struct PrinterState {
    lines: HashMap<String, Repetition>,
    /// The text of the last error, and whether it is about TLS or the authentication.
    last_cause: Option<(String, bool)>,
}

#[derive(Debug)]
struct Repetition {
    printed: Instant,
    suppressed: u64,
}

impl EventPrinter {
    /// Prints an event of a client.
    pub fn event(&self, event: &Event) {
        match event {
            Event::Error(error) => self.error(error),
            Event::AllBrokersDown(_) => self.line("no broker is reachable; retrying", Instant::now()),
            Event::Fatal(error) => self.line(&format!("fatal: {error}"), Instant::now()),
            Event::TopicRecreated(topic) => {
                self.line(&ConsumerEvent::TopicRecreated(topic.clone()).to_string(), Instant::now());
            }
            Event::PollOverdue(overdue) => self.line(&overdue.to_string(), Instant::now()),
            Event::TransactionOverdue(overdue) => self.line(&overdue.to_string(), Instant::now()),
            Event::ClusterChanged(change) => self.line(&change.to_string(), Instant::now()),
            Event::Credentials(news) => self.line(&news.to_string(), Instant::now()),
            Event::Throttled(throttle) if throttle.millis > 0 => self.line(
                &format!("{} throttles this client for {} ms", throttle.broker, throttle.millis),
                Instant::now(),
            ),
            _ => {}
        }
    }

    /// Prints an error after which the client continues.
    pub fn error(&self, error: &Error) {
        let cause = describe(error);
        let retries = error.is_retriable() || error.context().next_attempt.is_some();
        let line = if retries { format!("{cause}; retrying") } else { cause.clone() };
        self.line(&line, Instant::now());
        self.state.lock().unwrap_or_else(PoisonError::into_inner).last_cause =
            Some((cause, is_of_security(error)));
    }

    /// Prints a line, unless the same line was printed less than [`REPEAT_INTERVAL`] ago.
    pub fn line(&self, line: &str, now: Instant) {
        if let Some(line) = self.admit(line, now) {
            note!("% {line}");
        }
    }

    /// Returns the line to print, with the number of repetitions since it was last printed; `None` suppresses it.
    fn admit(&self, line: &str, now: Instant) -> Option<String> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = state.lines.get_mut(line) {
            if now.saturating_duration_since(known.printed) < REPEAT_INTERVAL {
                known.suppressed += 1;
                return None;
            }
            known.printed = now;
            return Some(match std::mem::take(&mut known.suppressed) {
                0 => line.to_owned(),
                count => format!("{line} (and {count} more like this)"),
            });
        }
        if state.lines.len() == MAX_KNOWN_LINES {
            state.lines.clear();
        }
        state.lines.insert(line.to_owned(), Repetition { printed: now, suppressed: 0 });
        Some(line.to_owned())
    }

    /// The last error that was printed.
    fn last_cause(&self) -> Option<(String, bool)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).last_cause.clone()
    }
}

/// Returns true if the broker was reached, and TLS or the authentication failed, or if the proxy refuses.
fn is_of_security(error: &Error) -> bool {
    use ErrorKind as K;
    // A connection that is lost before a response, and another protocol, are often those of another listener.
    matches!(error.kind(), K::Proxy | K::Tls | K::Authentication | K::NotKafka | K::Disconnected)
}

/// An error of a connection as a short sentence; other errors as they print themselves.
pub fn describe(error: &Error) -> String {
    let plain = error.clone().without_next_attempt().to_string();
    let Some(peer) = error.context().peer.as_deref() else { return plain };
    // A bootstrap server has no ID before it has responded, so only its address is printed.
    let address = peer.strip_suffix("/bootstrap").unwrap_or(peer);
    match error.kind() {
        ErrorKind::Connect if error.context().detail.to_lowercase().contains("refused") => {
            format!("connection refused by {address}")
        }
        ErrorKind::Resolve if !error.context().detail.is_empty() => error.context().detail.clone(),
        ErrorKind::RequestTimedOut if error.context().api == Some("ApiVersions") => format!(
            "{address} accepts connections but does not respond; check that a Kafka broker listens on this port, and \
             security.protocol"
        ),
        _ => plain.replacen(peer, address, 1),
    }
}

/// A thread that prints the events of a client until it is dropped.
#[derive(Debug)]
pub struct EventWatch {
    admin: Admin,
    printer: Arc<EventPrinter>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl EventWatch {
    /// Starts to print the events of this client.
    pub fn start(admin: Admin) -> EventWatch {
        let printer = Arc::new(EventPrinter::default());
        let (stop, stopped) = mpsc::channel();
        let (client, prints) = (admin.clone(), Arc::clone(&printer));
        let thread = std::thread::spawn(move || {
            loop {
                let wait = stopped.recv_timeout(POLL_INTERVAL);
                while let Some(event) = client.poll_event() {
                    prints.event(&event);
                }
                if wait != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        });
        EventWatch { admin, printer, stop: Some(stop), thread: Some(thread) }
    }

    /// Waits until a broker has responded. Error: none did within the timeout, with the last cause.
    pub fn wait_for_broker(&self, timeout: Duration) -> Outcome {
        let Err(error) = self.admin.describe_cluster(timeout) else { return Ok(()) };
        // The event of the last attempt may still be in the queue.
        while let Some(event) = self.admin.poll_event() {
            self.printer.event(&event);
        }
        let seconds = timeout.as_secs_f64();
        let (cause, is_security) =
            self.printer.last_cause().unwrap_or_else(|| (describe(&error), is_of_security(&error)));
        let advice = if is_security {
            "`ottla doctor` with the same properties says what to change"
        } else {
            "check that the address is right (-b, bootstrap.servers) and that the broker is running"
        };
        Err(Failure::Failed(format!(
            "no broker responded within {seconds} s (--timeout); last error: {cause}; {advice}"
        )))
    }

    /// Creates an admin client, watches its events and waits for the first broker.
    pub fn connect_admin(options: &ClientOptions) -> Outcome<(Admin, EventWatch)> {
        let admin = Admin::new(&options.config()?)?;
        print_warnings(admin.warnings());
        let watch = EventWatch::start(admin.clone());
        watch.wait_for_broker(options.timeout())?;
        Ok((admin, watch))
    }

    /// Stops the thread and returns the printer, for commands that take the events themselves.
    pub fn into_printer(mut self) -> Arc<EventPrinter> {
        self.end();
        Arc::clone(&self.printer)
    }

    fn end(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for EventWatch {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_line_is_counted_and_printed_again_later() {
        let (printer, start) = (EventPrinter::default(), Instant::now());
        assert_eq!(printer.admit("a", start).as_deref(), Some("a"));
        assert_eq!(printer.admit("a", start + Duration::from_secs(1)), None);
        assert_eq!(printer.admit("b", start + Duration::from_secs(1)).as_deref(), Some("b"));
        assert_eq!(printer.admit("a", start + Duration::from_secs(2)), None);
        let later = printer.admit("a", start + Duration::from_secs(11));
        assert_eq!(later.as_deref(), Some("a (and 2 more like this)"));
        assert_eq!(printer.admit("a", start + Duration::from_secs(22)).as_deref(), Some("a"));
    }

    #[test]
    fn refused_connection_names_the_peer() {
        let error = Error::new(ErrorKind::Connect, "Connection refused").with_peer("127.0.0.1:1/bootstrap");
        assert_eq!(describe(&error), "connection refused by 127.0.0.1:1");
        let error = Error::new(ErrorKind::Resolve, "no such name").with_peer("a:1/bootstrap");
        assert_eq!(describe(&error), "no such name");
    }
}
