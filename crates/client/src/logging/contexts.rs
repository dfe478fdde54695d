//! The contexts of the property `debug`.

use ottla_protocol::api::ApiKey;

/// A part of the client that `debug` selects, with the target of its log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Context {
    /// The start and the end of clients and threads.
    Generic,
    /// Connections.
    Broker,
    /// Topics that a producer uses.
    Topic,
    /// Metadata requests.
    Metadata,
    /// Requests for API versions.
    Feature,
    /// Produce requests and delivered batches.
    Msg,
    /// Requests of all kinds.
    Protocol,
    /// Requests to a group's coordinator.
    Cgrp,
    /// Fetch requests and lookups of offsets.
    Fetch,
    /// Assignments and seeks.
    Consumer,
    /// Administrative requests.
    Admin,
    /// The idempotent producer's requests.
    Eos,
    /// Client metrics.
    Telemetry,
}

impl Context {
    const ALL: [Self; 13] = [
        Self::Generic,
        Self::Broker,
        Self::Topic,
        Self::Metadata,
        Self::Feature,
        Self::Msg,
        Self::Protocol,
        Self::Cgrp,
        Self::Fetch,
        Self::Consumer,
        Self::Admin,
        Self::Eos,
        Self::Telemetry,
    ];

    /// Returns the name in `debug`.
    const fn name(self) -> &'static str {
        let (_, name) = self.target().split_at(PREFIX.len());
        name
    }

    /// Returns the target of log lines.
    pub(crate) const fn target(self) -> &'static str {
        match self {
            Self::Generic => "ottla::generic",
            Self::Broker => "ottla::broker",
            Self::Topic => "ottla::topic",
            Self::Metadata => "ottla::metadata",
            Self::Feature => "ottla::feature",
            Self::Msg => "ottla::msg",
            Self::Protocol => "ottla::protocol",
            Self::Cgrp => "ottla::cgrp",
            Self::Fetch => "ottla::fetch",
            Self::Consumer => "ottla::consumer",
            Self::Admin => "ottla::admin",
            Self::Eos => "ottla::eos",
            Self::Telemetry => "ottla::telemetry",
        }
    }

    /// Returns the facility of the C library's lines of this context.
    pub(crate) const fn facility(self) -> &'static str {
        match self {
            Self::Generic => "GENERIC",
            Self::Broker => "BROKER",
            Self::Topic => "TOPIC",
            Self::Metadata => "METADATA",
            Self::Feature => "FEATURE",
            Self::Msg => "MSG",
            Self::Protocol => "PROTOCOL",
            Self::Cgrp => "CGRP",
            Self::Fetch => "FETCH",
            Self::Consumer => "CONSUMER",
            Self::Admin => "ADMIN",
            Self::Eos => "EOS",
            Self::Telemetry => "TELEMETRY",
        }
    }

    /// Returns the context of the requests of an API.
    pub(crate) const fn of_api(api: ApiKey) -> Self {
        match api {
            ApiKey::Metadata => Self::Metadata,
            ApiKey::ApiVersions => Self::Feature,
            ApiKey::Produce => Self::Msg,
            ApiKey::Fetch | ApiKey::ListOffsets | ApiKey::OffsetForLeaderEpoch => Self::Fetch,
            ApiKey::FindCoordinator | ApiKey::OffsetCommit | ApiKey::OffsetFetch => Self::Cgrp,
            ApiKey::InitProducerId => Self::Eos,
            ApiKey::GetTelemetrySubscriptions | ApiKey::PushTelemetry => Self::Telemetry,
            _ => Self::Admin,
        }
    }
}

const PREFIX: &str = "ottla::";

/// A set of contexts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contexts(u32);

impl Contexts {
    /// Reads the value of `debug`, which was checked when it was set. Contexts without log lines are ignored.
    pub(crate) fn parse(debug: &str) -> Self {
        debug.split(',').map(str::trim).fold(Self::default(), |known, name| {
            let named = |context: &&Context| name == "all" || context.name() == name;
            Context::ALL
                .iter()
                .filter(named)
                .fold(known, |known, context| Self(known.0 | 1 << *context as u32))
        })
    }

    pub(crate) const fn has(self, context: Context) -> bool {
        self.0 & 1 << context as u32 != 0
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_are_those_that_debug_lists() {
        let some = Contexts::parse("broker, msg,security");
        let chosen: Vec<_> = Context::ALL.into_iter().filter(|context| some.has(*context)).collect();
        assert_eq!(chosen, [Context::Broker, Context::Msg]);
        assert!(Context::ALL.into_iter().all(|context| Contexts::parse("all").has(context)));
        assert!(Contexts::parse("").is_empty());
    }
}
