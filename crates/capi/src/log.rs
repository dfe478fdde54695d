//! Where log lines go: to the application's callback, to a queue, or to standard error.

use std::{
    ffi::{CStr, c_char, c_int},
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicI32, Ordering},
    },
};

use parking_lot::Mutex;

use crate::{
    boundary::{c_text, guarded_for, guarded_local},
    client::{Client, rd_kafka_name},
    codes::code,
    conf::LogCb,
    op::Op,
    queue::Queue,
    time::coarse_wall_ms,
};

/// Where a client's log lines go.
#[derive(Debug)]
pub(crate) struct Log {
    level: AtomicI32,
    callback: Mutex<Option<LogCb>>,
    /// With `log.queue`: lines wait here until the application says which queue it reads.
    queue: Option<Arc<Queue>>,
}

impl Log {
    pub(crate) fn new(level: c_int, callback: Option<LogCb>, queue: Option<Arc<Queue>>) -> Self {
        Self { level: AtomicI32::new(level), callback: Mutex::new(callback), queue }
    }

    pub(crate) const fn queue(&self) -> Option<&Arc<Queue>> {
        self.queue.as_ref()
    }
}

impl Client {
    /// Writes a log line.
    pub(crate) fn log(&self, level: c_int, facility: &'static CStr, line: &str) {
        let log = self.logging();
        if level > log.level.load(Ordering::Relaxed) {
            return;
        }
        match &log.queue {
            Some(queue) => queue.push(Op::Log { level, facility, text: line.to_owned() }),
            None => self.write_log(level, facility, line),
        }
    }

    /// Calls the application's callback with a line, or prints it.
    pub(crate) fn write_log(&self, level: c_int, facility: &CStr, line: &str) {
        let line = c_text(line);
        let callback = *self.logging().callback.lock();
        match callback {
            // SAFETY: the application's function, which the interface says any thread may call.
            Some(callback) => unsafe { callback(self, level, facility.as_ptr(), line.as_ptr()) },
            None => print(&self.name().to_string_lossy(), level, facility, &line),
        }
    }
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
