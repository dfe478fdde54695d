//! A log line with its fields.

use std::fmt;

pub(super) use log::Level;
use log::kv::Value;
use ottla_core::error::Error;

/// Whether log lines are written at all.
pub(super) const IS_ON: bool = true;
/// The target of lines that belong to no context of `debug`.
pub(super) const TARGET: &str = "ottla";

/// A log line that is being put together. Costs nothing if the application's logger does not want the line.
pub(super) struct Line<'a> {
    level: Level,
    target: &'static str,
    client: &'a str,
    is_enabled: bool,
    fields: Vec<(&'static str, Value<'a>)>,
}

impl<'a> Line<'a> {
    pub(super) fn new(level: Level, target: &'static str, client: &'a str) -> Self {
        let is_enabled = log::log_enabled!(target: target, level);
        let fields = if is_enabled { vec![("client", Value::from(client))] } else { Vec::new() };
        Self { level, target, client, is_enabled, fields }
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

    pub(super) fn text(mut self, name: &'static str, value: &'a str) -> Self {
        if self.is_enabled {
            self.fields.push((name, Value::from(value)));
        }
        self
    }

    pub(super) fn number(mut self, name: &'static str, value: i64) -> Self {
        if self.is_enabled {
            self.fields.push((name, Value::from(value)));
        }
        self
    }

    /// Passes the line to the application's logger. The text begins with the client's name.
    pub(super) fn write(self, text: fmt::Arguments<'_>) {
        if self.is_enabled {
            log::logger().log(
                &log::Record::builder()
                    .level(self.level)
                    .target(self.target)
                    .module_path_static(Some("ottla"))
                    .args(format_args!("{}: {text}", self.client))
                    .key_values(&self.fields.as_slice())
                    .build(),
            );
        }
    }
}
