//! The log lines of a client, and the functions of the interface for logs.

use std::{
    borrow::Cow,
    ffi::{CStr, c_char, c_int},
    sync::Arc,
};

use ottla_core::error::{Error, ErrorKind};

use crate::{
    client::{callbacks::LogCb, contexts::Contexts, handle::Client, log::print, queue::Queue},
    ffi::{
        argument::{Ref, Text},
        cancel::Uncancelled,
        codes::{RespErr, code},
        error::code_of,
        export,
    },
    platform,
};

impl Client {
    /// Writes a log line.
    pub(crate) fn log(&self, level: c_int, facility: &'static CStr, line: &str) {
        self.logging().line(level, facility, line);
    }

    /// Writes a line of `debug`, if the context is enabled.
    pub(crate) fn debug(&self, of: Contexts, facility: &'static CStr, line: impl FnOnce() -> String) {
        self.logging().debug(of, facility, line);
    }

    /// Sends the log lines of `log.queue` to this queue; to the main queue for NULL.
    pub(crate) fn set_log_queue(&self, rkqu: Ref<'_, Queue>) -> RespErr {
        let to = rkqu.counted();
        match self.logging().queue() {
            Some(_) if to.is_none() && !rkqu.is_null() => code::_INVALID_ARG,
            Some(queue) => {
                queue.forward(Some(to.unwrap_or_else(|| Arc::clone(self.main()))));
                code::NO_ERROR
            }
            None => code::_NOT_CONFIGURED,
        }
    }

    /// Reports an error of a connection: by a log line, and by an error event or callback if the application asked for
    /// those.
    pub(crate) fn failed(&self, error: &Error) {
        let code = code_of(error);
        let Some(broker) = error.context().peer.as_deref().filter(|_| is_of_connection(error.kind())) else {
            return self.error(code, error.to_string());
        };
        let text = error.clone().without_next_attempt().to_string();
        if error.kind() != ErrorKind::Disconnected {
            self.logging().line_of(3, Contexts::NONE, c"FAIL", broker, &text);
        } else if self.logging().logs_closed() {
            self.logging().line_of(6, Contexts::NONE, c"FAIL", broker, &text);
        }
        if self.reports_errors() {
            self.error(code, text);
        }
    }
}

/// Returns true if the error is about a connection, and not about a request.
const fn is_of_connection(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Resolve
            | ErrorKind::Connect
            | ErrorKind::Proxy
            | ErrorKind::Disconnected
            | ErrorKind::Tls
            | ErrorKind::Authentication
            | ErrorKind::RequestTimedOut
            | ErrorKind::NotKafka
    )
}

export!(
    #[local(())]
    fn rd_kafka_set_log_level(rk: Ref<Client>, level: c_int) {
        if let Some(client) = rk.get() {
            client.logging().set_level(level);
        }
    }
);

export!(
    #[on(rk, ())]
    fn rd_kafka_set_logger(rk: Ref<Client>, func: Option<LogCb>) {
        if let Some(client) = rk.get() {
            client.logging().set_destination(func.into());
        }
    }
);

export!(
    #[on(rk, code::_FATAL)]
    fn rd_kafka_set_log_queue(rk: Ref<Client>, rkqu: Ref<Queue>) -> RespErr {
        rk.get().map_or(code::_INVALID_ARG, |client| client.set_log_queue(rkqu))
    }
);

export!(
    #[local(())]
    fn rd_kafka_log_print(rk: Ref<Client>, level: c_int, fac: Text, buf: Text) {
        let _uncancelled = Uncancelled::begin();
        let (Some(fac), Some(buf)) = (fac.c_str(), buf.c_str()) else { return };
        let name = rk.get().map_or(Cow::Borrowed(""), |client| client.name.to_string_lossy());
        print(&name, level, fac, buf);
    }
);

export!(
    #[local(())]
    fn rd_kafka_log_syslog(_rk: Ref<Client>, level: c_int, fac: *const c_char, buf: *const c_char) {
        let _uncancelled = Uncancelled::begin();
        if !fac.is_null() && !buf.is_null() {
            // SAFETY: the header demands texts.
            unsafe { platform::syslog(level, fac, buf) };
        }
    }
);
