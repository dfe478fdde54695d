//! Where log lines go: to the application's callback, to a queue, or to standard error.

use std::{
    collections::BTreeMap,
    ffi::{CStr, c_char, c_int},
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicI32, Ordering},
    },
    time::{Duration, Instant},
};

use ottla::{Error, ErrorKind, RawConfig};
use parking_lot::Mutex;

use crate::{
    boundary::{c_text, guarded_for, guarded_local},
    client::{Client, rd_kafka_name},
    codes::code,
    conf::LogCb,
    debug::Contexts,
    error::code_of,
    gate::Gate,
    op::Op,
    queue::Queue,
    time::coarse_wall_ms,
};

/// Where a client's log lines go, and which there are.
#[derive(Debug)]
pub(crate) struct Log {
    level: AtomicI32,
    callback: Mutex<Option<LogCb>>,
    /// With `log.queue`: lines wait here until the application says which queue it reads.
    queue: Option<Arc<Queue>>,
    /// What `debug` asks for.
    contexts: Contexts,
    /// `log.thread.name`.
    names_threads: bool,
    /// `log.connection.close`.
    tells_closed: bool,
    failures: Mutex<BTreeMap<String, Failure>>,
    /// Shut when the client is gone: then the application's function is not called any more.
    gate: Gate,
}

/// How a broker failed last, and how often since that was told.
#[derive(Debug)]
struct Failure {
    text: String,
    told: Instant,
    suppressed: u32,
}

/// For how long a failure that repeats itself is told once only.
const REPEATED: Duration = Duration::from_secs(30);

impl Log {
    pub(crate) fn new(raw: &RawConfig, callback: Option<LogCb>, queue: impl FnOnce() -> Arc<Queue>) -> Self {
        let is_true = |name| raw.get(name).is_ok_and(|value| value == "true");
        let contexts = Contexts::of(raw.get("debug").unwrap_or_default());
        let level = raw.get("log_level").ok().and_then(|level| level.parse().ok()).unwrap_or(6);
        Self {
            level: AtomicI32::new(if contexts.is_empty() { level } else { DEBUG }),
            callback: Mutex::new(callback),
            queue: is_true("log.queue").then(queue),
            contexts,
            names_threads: is_true("log.thread.name"),
            tells_closed: is_true("log.connection.close"),
            failures: Mutex::default(),
            gate: Gate::default(),
        }
    }

    pub(crate) const fn queue(&self) -> Option<&Arc<Queue>> {
        self.queue.as_ref()
    }

    /// Whether `debug` asks for one of these.
    pub(crate) const fn wants(&self, contexts: Contexts) -> bool {
        self.contexts.meets(contexts)
    }

    pub(crate) const fn contexts(&self) -> Contexts {
        self.contexts
    }

    /// No line comes after this: the application's function may go. The error names it if it did not return.
    pub(crate) fn shut(&self, until: Instant) -> Result<(), &'static str> {
        self.gate.shut(until)
    }

    /// Another thread is in the application's function.
    pub(crate) fn is_called_elsewhere(&self) -> bool {
        self.gate.is_occupied_by_others()
    }

    /// The text of a broker's failure, or `None` if it was told just now.
    fn failure(&self, broker: &str, text: String) -> Option<String> {
        let mut failures = self.failures.lock();
        match failures.get_mut(broker).filter(|last| last.text == text) {
            Some(last) if last.told.elapsed() < REPEATED => {
                last.suppressed += 1;
                None
            }
            Some(last) => {
                let suppressed = std::mem::take(&mut last.suppressed);
                last.told = Instant::now();
                Some(format!("{text} ({suppressed} identical error(s) suppressed)"))
            }
            None => {
                let last = Failure { text: text.clone(), told: Instant::now(), suppressed: 0 };
                failures.insert(broker.to_owned(), last);
                Some(text)
            }
        }
    }
}

/// LOG_DEBUG.
const DEBUG: c_int = 7;

/// Who writes a line, as far as its own name goes: the application's threads, or the client's.
fn this_thread() -> &'static str {
    if is_own_thread() { "main" } else { "app" }
}

/// True on a thread of the library.
pub(crate) fn is_own_thread() -> bool {
    std::thread::current().name().is_some_and(|name| name.starts_with("ottla-"))
}

impl Client {
    /// Writes a log line.
    pub(crate) fn log(&self, level: c_int, facility: &'static CStr, line: &str) {
        self.log_of(level, Contexts::NONE, facility, this_thread(), line);
    }

    /// Writes a line of `debug`, if it asks for that.
    pub(crate) fn debug(&self, of: Contexts, facility: &'static CStr, line: impl FnOnce() -> String) {
        self.debug_of(of, facility, this_thread(), line);
    }

    /// The same in the name of a broker, which the original has a thread for.
    pub(crate) fn debug_of(
        &self,
        of: Contexts,
        facility: &'static CStr,
        thread: &str,
        line: impl FnOnce() -> String,
    ) {
        let log = self.logging();
        if log.wants(of) && log.level.load(Ordering::Relaxed) >= DEBUG {
            self.log_of(DEBUG, of, facility, thread, &line());
        }
    }

    fn log_of(&self, level: c_int, of: Contexts, facility: &'static CStr, thread: &str, line: &str) {
        let log = self.logging();
        if level > log.level.load(Ordering::Relaxed) {
            return;
        }
        let text = if log.names_threads { format!("[thrd:{thread}]: {line}") } else { line.to_owned() };
        match &log.queue {
            Some(queue) => queue.push(Op::Log { level, of, facility, text }),
            None => self.write_log(level, facility, &text),
        }
    }

    /// Calls the application's callback with a line, or prints it.
    pub(crate) fn write_log(&self, level: c_int, facility: &CStr, line: &str) {
        let Some(_pass) = self.logging().gate.enter("log_cb") else { return };
        let line = c_text(line);
        let callback = *self.logging().callback.lock();
        match callback {
            // SAFETY: the application's function, which the interface says any thread may call.
            Some(callback) => unsafe { callback(self, level, facility.as_ptr(), line.as_ptr()) },
            None => print(&self.name().to_string_lossy(), level, facility, &line),
        }
    }

    /// Prints a line even where there is a callback.
    pub(crate) fn print_log(&self, level: c_int, facility: &CStr, line: &str) {
        print(&self.name().to_string_lossy(), level, facility, &c_text(line));
    }

    /// Tells of an error of a connection: a line, and an error event or call if the application wants those. What repeats
    /// itself is told once in a while.
    pub(crate) fn failed(&self, error: &Error) {
        let code = code_of(error);
        let Some(broker) = error.context().peer.as_deref().filter(|_| is_of_connection(error.kind())) else {
            return self.error(code, error.to_string());
        };
        let text = error.clone().without_next_attempt().to_string();
        let Some(text) = self.logging().failure(broker, text) else { return };
        if error.kind() != ErrorKind::Disconnected {
            self.log_of(3, Contexts::NONE, c"FAIL", broker, &text);
        } else if self.logging().tells_closed {
            self.log_of(6, Contexts::NONE, c"FAIL", broker, &text);
        } else {
            self.debug_of(Contexts::BROKER, c"FAIL", broker, || text.clone());
        }
        if self.tells_errors() {
            self.error(code, text);
        }
    }
}

/// Whether it is about a connection, and not about what was asked there.
const fn is_of_connection(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Resolve
            | ErrorKind::Connect
            | ErrorKind::Disconnected
            | ErrorKind::RequestTimedOut
            | ErrorKind::NotKafka
    )
}

/// Prints a log line in the usual form.
fn print(name: &str, level: c_int, facility: &CStr, line: &CStr) {
    let now = coarse_wall_ms();
    let line = format!(
        "%{level}|{}.{:03}|{}|{name}| {}\n",
        now / 1000,
        now % 1000,
        facility.to_string_lossy(),
        line.to_string_lossy()
    );
    // Nobody can be told that standard error is closed.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_set_log_level(rk: *const Client, level: c_int) {
    // SAFETY: NULL or a client, says the caller.
    if let Some(client) = unsafe { Client::of(rk) } {
        client.logging().level.store(level, Ordering::Relaxed);
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_set_logger(rk: *const Client, func: Option<LogCb>) {
    guarded_local((), || {
        // SAFETY: NULL or a client, says the caller.
        if let Some(client) = unsafe { Client::of(rk) } {
            *client.logging().callback.lock() = func;
        }
    });
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_set_log_queue(rk: *const Client, rkqu: *const Queue) -> c_int {
    guarded_for(rk, code::_FATAL, || {
        // SAFETY: NULL or a client and a queue, says the caller.
        let (Some(client), to) = (unsafe { (Client::of(rk), Queue::of(rkqu)) }) else {
            return code::_INVALID_ARG;
        };
        match client.logging().queue() {
            Some(_) if to.is_none() && !rkqu.is_null() => code::_INVALID_ARG,
            Some(queue) => {
                queue.forward(Some(to.unwrap_or_else(|| Arc::clone(client.main()))));
                code::NO_ERROR
            }
            None => code::_NOT_CONFIGURED,
        }
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_log_print(
    rk: *const Client,
    level: c_int,
    fac: *const c_char,
    buf: *const c_char,
) {
    guarded_local((), || {
        if fac.is_null() || buf.is_null() {
            return;
        }
        // SAFETY: a client or NULL, and texts, says the caller.
        unsafe {
            let name = rd_kafka_name(rk);
            let name = if name.is_null() {
                String::new()
            } else {
                CStr::from_ptr(name).to_string_lossy().into_owned()
            };
            print(&name, level, CStr::from_ptr(fac), CStr::from_ptr(buf));
        }
    });
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_log_syslog(
    _: *const Client,
    level: c_int,
    fac: *const c_char,
    buf: *const c_char,
) {
    if !fac.is_null() && !buf.is_null() {
        // SAFETY: two texts for a format that takes two.
        unsafe { libc::syslog(level.clamp(0, 7), c"%s: %s".as_ptr(), fac, buf) };
    }
}
