//! The destinations of log lines: the application's callback, a queue, or standard error.
//!
//! # Pitfalls
//!
//! - The application may free what its log callback needs as soon as `rd_kafka_destroy` returns. I/O threads may log
//!   only until then (`logs.c`).

use std::{
    ffi::{CStr, CString, c_int},
    sync::{
        Arc,
        atomic::{AtomicI32, Ordering},
    },
    time::Instant,
};

use ottla_core::config::RawConfig;

use crate::{
    client::{callbacks::LogTo, contexts::Contexts, op::Op, queue::Queue},
    ffi::{boundary::c_text, gate::Gate, lock::Mutex, object::WeakObject, types::rd_kafka_t},
    platform,
};

/// A client's log: its destination, and the lines that are enabled.
#[derive(Debug)]
pub(crate) struct Log {
    client: WeakObject<rd_kafka_t>,
    /// The client's name.
    name: CString,
    level: AtomicI32,
    to: Mutex<LogTo>,
    /// With `log.queue`: lines wait here until the application chooses the queue that it reads.
    queue: Option<Arc<Queue>>,
    /// The contexts of `debug`.
    contexts: Contexts,
    /// `log.thread.name`.
    names_threads: bool,
    /// `log.connection.close`.
    logs_closed: bool,
    /// Shut when the client is destroyed: the application's function is not called afterwards.
    gate: Gate,
}

impl Log {
    pub(crate) fn new(
        client: WeakObject<rd_kafka_t>,
        name: &str,
        raw: &RawConfig,
        to: LogTo,
        queue: impl FnOnce() -> Arc<Queue>,
    ) -> Self {
        let is_true = |name| raw.get(name).is_ok_and(|value| value == "true");
        let contexts = Contexts::of(raw.get("debug").unwrap_or_default());
        let level = raw.get("log_level").ok().and_then(|level| level.parse().ok()).unwrap_or(6);
        Self {
            client,
            name: c_text(name),
            level: AtomicI32::new(if contexts.is_empty() { level } else { DEBUG }),
            to: Mutex::new(to),
            queue: is_true("log.queue").then(queue),
            contexts,
            names_threads: is_true("log.thread.name"),
            logs_closed: is_true("log.connection.close"),
            gate: Gate::default(),
        }
    }

    pub(crate) const fn queue(&self) -> Option<&Arc<Queue>> {
        self.queue.as_ref()
    }

    /// Returns true if `debug` enables one of these contexts.
    pub(crate) const fn wants(&self, contexts: Contexts) -> bool {
        self.contexts.meets(contexts)
    }

    pub(crate) const fn contexts(&self) -> Contexts {
        self.contexts
    }

    /// Stops all calls of the application's log callback, and waits for calls in progress. Error: the name of the
    /// function, if it did not return.
    pub(crate) fn shut(&self, until: Instant) -> Result<(), &'static str> {
        self.gate.shut(until)
    }

    /// Returns true if another thread is still in the application's log callback at that time.
    pub(crate) fn is_stuck_elsewhere(&self, until: Instant) -> bool {
        self.gate.is_occupied_by_others(until)
    }

    /// Returns true if a line is written when a broker closes an idle connection.
    pub(crate) const fn logs_closed(&self) -> bool {
        self.logs_closed
    }

    pub(crate) fn set_level(&self, level: c_int) {
        self.level.store(level, Ordering::Relaxed);
    }

    pub(crate) fn set_destination(&self, to: LogTo) {
        *self.to.lock() = to;
    }

    /// Writes a line.
    pub(crate) fn line(&self, level: c_int, facility: &'static CStr, line: &str) {
        self.line_of(level, Contexts::NONE, facility, this_thread(), line);
    }

    /// Writes a line of `debug`, if one of the contexts is enabled.
    pub(crate) fn debug(&self, of: Contexts, facility: &'static CStr, line: impl FnOnce() -> String) {
        self.debug_of(of, facility, this_thread(), line);
    }

    /// Writes a line of `debug` with a broker's name as its thread, because librdkafka has a thread per broker.
    pub(crate) fn debug_of(
        &self,
        of: Contexts,
        facility: &'static CStr,
        thread: &str,
        line: impl FnOnce() -> String,
    ) {
        if self.wants(of) && self.level.load(Ordering::Relaxed) >= DEBUG {
            self.line_of(DEBUG, of, facility, thread, &line());
        }
    }

    /// Writes a line of some contexts with the name of a thread.
    pub(crate) fn line_of(
        &self,
        level: c_int,
        of: Contexts,
        facility: &'static CStr,
        thread: &str,
        line: &str,
    ) {
        if level > self.level.load(Ordering::Relaxed) || self.client.is_gone() {
            return;
        }
        let text = if self.names_threads { format!("[thrd:{thread}]: {line}") } else { line.to_owned() };
        match &self.queue {
            Some(queue) => queue.push(Op::Log { level, of, facility, text }),
            None => self.write(level, facility, &text),
        }
    }

    /// Calls the application's callback with a line, or prints it.
    pub(crate) fn write(&self, level: c_int, facility: &CStr, line: &str) {
        let Some(client) = self.client.upgrade() else { return };
        let Some(_pass) = self.gate.enter("log_cb") else { return };
        let line = c_text(line);
        let to = *self.to.lock();
        match to {
            // SAFETY: the application's function, which the header allows any thread to call; the client is kept until
            // it returns.
            LogTo::Application(callback) => unsafe {
                callback(client.as_c(), level, facility.as_ptr(), line.as_ptr());
            },
            LogTo::StandardError => print(&self.name.to_string_lossy(), level, facility, &line),
            LogTo::Nowhere => {}
        }
    }

    /// Prints a line, even if there is a callback.
    pub(crate) fn print(&self, level: c_int, facility: &CStr, line: &str) {
        print(&self.name.to_string_lossy(), level, facility, &c_text(line));
    }
}

/// LOG_DEBUG.
const DEBUG: c_int = 7;

/// Returns the name of the thread that writes a line, for `log.thread.name`.
fn this_thread() -> &'static str {
    if is_own_thread() { "main" } else { "app" }
}

/// Returns true on a thread of the library.
pub(crate) fn is_own_thread() -> bool {
    std::thread::current().name().is_some_and(|name| name.starts_with("ottla-"))
}

/// Prints a log line in the usual form.
pub(crate) fn print(name: &str, level: c_int, facility: &CStr, line: &CStr) {
    let now = platform::coarse_wall_ms();
    let line = format!(
        "%{level}|{}.{:03}|{}|{name}| {}\n",
        now / 1000,
        now % 1000,
        facility.to_string_lossy(),
        line.to_string_lossy()
    );
    // Avoids the standard library's lock: another thread may have held it when this process was forked. A closed
    // standard error can't be reported anywhere.
    platform::write_error(line.as_bytes());
}
