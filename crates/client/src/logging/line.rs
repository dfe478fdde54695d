//! A log line with its fields.
//!
//! Lines go to the subscriber of `tracing` if the application has one, and to the `log` facade otherwise, as far as the features
//! are switched on. So nothing is written twice.

use std::fmt;

use ottla_core::error::Error;

#[cfg(feature = "log")]
use super::to_log;
#[cfg(feature = "tracing")]
use super::to_tracing;

/// Whether log lines are written at all.
pub(super) const IS_ON: bool = cfg!(any(feature = "log", feature = "tracing"));
/// The target of lines that belong to no context of `debug`.
pub(super) const TARGET: &str = "ottla";

/// How urgent a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Error,
    Warn,
    Info,
    Debug,
}

/// The value of a field.
#[derive(Clone, Copy, Debug)]
pub(super) enum Field<'a> {
    Text(&'a str),
    Number(i64),
}

/// What all lines of a client have in common.
#[derive(Debug)]
pub(super) struct Origin {
    /// The client's name.
    pub(super) client: String,
    /// The span in which the client was created.
    #[cfg(feature = "tracing")]
    pub(super) span: Option<tracing::Id>,
}

impl Origin {
    pub(super) fn new(client: String) -> Self {
        Self {
            client,
            #[cfg(feature = "tracing")]
            span: tracing::Span::current().id(),
        }
    }
}

/// Where a line goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Receiver {
    Nobody,
    #[cfg(feature = "log")]
    Log,
    #[cfg(feature = "tracing")]
    Tracing,
}

impl Receiver {
    #[cfg_attr(
        not(feature = "log"),
        allow(unused_variables, clippy::missing_const_for_fn, reason = "nobody reads the target")
    )]
    fn of(level: Level, target: &'static str) -> Self {
        #[cfg(feature = "tracing")]
        if to_tracing::has_subscriber() {
            return if to_tracing::is_enabled(level) { Self::Tracing } else { Self::Nobody };
        }
        #[cfg(feature = "log")]
        if to_log::is_enabled(level, target) {
            return Self::Log;
        }
        Self::Nobody
    }
}

/// A log line that is being put together. Costs nothing if nobody wants the line.
pub(super) struct Line<'a> {
    pub(super) level: Level,
    pub(super) target: &'static str,
    /// The facility of lines of the C library that say the same.
    pub(super) facility: &'static str,
    pub(super) origin: &'a Origin,
    pub(super) fields: Vec<(&'static str, Field<'a>)>,
    receiver: Receiver,
}

impl<'a> Line<'a> {
    pub(super) fn new(
        level: Level,
        target: &'static str,
        facility: &'static str,
        origin: &'a Origin,
    ) -> Self {
        let receiver = Receiver::of(level, target);
        Self { level, target, facility, origin, fields: Vec::new(), receiver }
    }

    pub(super) fn broker(self, broker: &'a str) -> Self {
        self.text("broker", broker)
    }

    pub(super) fn api(self, api: &'a str) -> Self {
        self.text("api", api)
    }

    pub(super) fn topic(self, topic: &'a str) -> Self {
        self.text("topic", topic)
    }

    pub(super) fn partition(self, partition: i32) -> Self {
        self.number("partition", i64::from(partition))
    }

    /// Adds the broker, the API, the topic and the partition that the error names.
    pub(super) fn error(mut self, error: &'a Error) -> Self {
        let context = error.context();
        if let Some(peer) = &context.peer {
            self = self.broker(peer);
        }
        if let Some(api) = context.api {
            self = self.api(api);
        }
        if let Some(topic) = &context.topic {
            self = self.topic(topic);
        }
        match context.partition {
            Some(partition) => self.partition(partition),
            None => self,
        }
    }

    pub(super) fn text(self, name: &'static str, value: &'a str) -> Self {
        self.field(name, Field::Text(value))
    }

    pub(super) fn number(self, name: &'static str, value: i64) -> Self {
        self.field(name, Field::Number(value))
    }

    fn field(mut self, name: &'static str, value: Field<'a>) -> Self {
        if self.receiver != Receiver::Nobody {
            self.fields.push((name, value));
        }
        self
    }

    /// Passes the line on.
    pub(super) fn write(self, text: fmt::Arguments<'_>) {
        let _ = text;
        match self.receiver {
            Receiver::Nobody => {}
            #[cfg(feature = "log")]
            Receiver::Log => to_log::write(&self, text),
            #[cfg(feature = "tracing")]
            Receiver::Tracing => to_tracing::write(&self, text),
        }
    }
}
