//! `debug`: what happens inside a client, in lines of level 7 with the facilities that the original's users look for. A line
//! belongs to contexts, and is made only if one of them is asked for.

use std::{
    collections::BTreeMap,
    ffi::CStr,
    fmt,
    sync::{Arc, Weak},
    time::Duration,
};

use ottla::{ApiKey, DeliveryBatch, ErrorKind, Exchange, Observer, Peer};
use parking_lot::Mutex;

use crate::{
    client::Client,
    types::{
        OFFSET_BEGINNING, OFFSET_END, OFFSET_INVALID, OFFSET_STORED, OFFSET_TAIL_BASE,
        rd_kafka_topic_partition_t,
    },
};

/// Contexts of `debug`, as a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contexts(u32);

/// The contexts in the order of their bits.
const NAMES: [&str; 20] = [
    "generic",
    "broker",
    "topic",
    "metadata",
    "feature",
    "queue",
    "msg",
    "protocol",
    "cgrp",
    "security",
    "fetch",
    "interceptor",
    "plugin",
    "consumer",
    "admin",
    "eos",
    "mock",
    "assignor",
    "conf",
    "telemetry",
];

impl Contexts {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const ALL: Self = Self((1 << NAMES.len()) - 1);
    pub(crate) const GENERIC: Self = Self(1);
    pub(crate) const BROKER: Self = Self(1 << 1);
    pub(crate) const TOPIC: Self = Self(1 << 2);
    pub(crate) const METADATA: Self = Self(1 << 3);
    pub(crate) const FEATURE: Self = Self(1 << 4);
    pub(crate) const QUEUE: Self = Self(1 << 5);
    pub(crate) const MSG: Self = Self(1 << 6);
    pub(crate) const PROTOCOL: Self = Self(1 << 7);
    pub(crate) const CGRP: Self = Self(1 << 8);
    pub(crate) const FETCH: Self = Self(1 << 10);
    pub(crate) const INTERCEPTOR: Self = Self(1 << 11);
    pub(crate) const PLUGIN: Self = Self(1 << 12);
    pub(crate) const ADMIN: Self = Self(1 << 14);
    pub(crate) const EOS: Self = Self(1 << 15);
    pub(crate) const CONSUMER: Self = Self(1 << 13);
    pub(crate) const MOCK: Self = Self(1 << 16);
    pub(crate) const CONF: Self = Self(1 << 18);

    /// The value of the property, which was checked when it was set.
    pub(crate) fn of(value: &str) -> Self {
        value.split(',').map(str::trim).fold(Self::NONE, |known, name| match name {
            "all" => Self::ALL,
            name => NAMES.iter().position(|one| *one == name).map_or(known, |bit| Self(known.0 | 1 << bit)),
        })
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Their names, separated by commas.
    pub(crate) fn names(self) -> String {
        let has = |bit: usize| self.0 & 1 << bit != 0;
        let names: Vec<&str> =
            NAMES.iter().enumerate().filter(|(bit, _)| has(*bit)).map(|(_, name)| *name).collect();
        names.join(",")
    }
}

/// Writes down what passes on a client's connections.
#[derive(Debug)]
pub(crate) struct Chronicle {
    client: Weak<Client>,
    /// The state that each connection was last in.
    states: Mutex<BTreeMap<String, &'static str>>,
}

impl Chronicle {
    /// The contexts that it has lines for.
    pub(crate) const CONTEXTS: Contexts = Contexts::BROKER
        .or(Contexts::PROTOCOL)
        .or(Contexts::METADATA)
        .or(Contexts::FEATURE)
        .or(Contexts::MSG)
        .or(Contexts::CGRP)
        .or(Contexts::FETCH)
        .or(Contexts::CONSUMER)
        .or(Contexts::ADMIN)
        .or(Contexts::EOS);

    pub(crate) const fn new(client: Weak<Client>) -> Self {
        Self { client, states: Mutex::new(BTreeMap::new()) }
    }

    /// What an API is for has a line of its own, in the contexts of that.
    fn note_purpose(&self, peer: &Peer<'_>, api: ApiKey, line: impl FnOnce() -> String) {
        let (of, facility) = match api {
            ApiKey::Metadata => (Contexts::METADATA, c"METADATA"),
            ApiKey::ApiVersions => (Contexts::FEATURE, c"APIVERSION"),
            ApiKey::Produce => (Contexts::MSG, c"PRODUCE"),
            ApiKey::Fetch => (Contexts::FETCH, c"FETCH"),
            ApiKey::ListOffsets | ApiKey::OffsetForLeaderEpoch => (Contexts::FETCH, c"OFFSET"),
            ApiKey::FindCoordinator | ApiKey::OffsetCommit | ApiKey::OffsetFetch => {
                (Contexts::CGRP.or(Contexts::CONSUMER), c"OFFSET")
            }
            ApiKey::InitProducerId => (Contexts::EOS, c"GETPID"),
            _ => (Contexts::ADMIN, c"ADMIN"),
        };
        self.note(of, facility, peer, line);
    }

    fn note(&self, of: Contexts, facility: &'static CStr, peer: &Peer<'_>, line: impl FnOnce() -> String) {
        if let Some(client) = self.client.upgrade().filter(|client| client.logging().wants(of)) {
            let peer = peer.to_string();
            client.debug_of(of, facility, &peer, || format!("{peer}: {}", line()));
        }
    }
}

impl Observer for Chronicle {
    fn request_sent(&self, peer: &Peer<'_>, request: &Exchange) {
        self.note(Contexts::PROTOCOL, c"SEND", peer, || {
            let Exchange { api, version, correlation_id, size } = request;
            format!("Sent {}Request (v{version}, {size} bytes @ 0, CorrId {correlation_id})", api.name())
        });
        self.note_purpose(peer, request.api, || {
            format!("{} v{} asked for in {} bytes", request.api.name(), request.version, request.size)
        });
    }

    fn response_received(&self, peer: &Peer<'_>, response: &Exchange, round_trip: Duration) {
        self.note(Contexts::PROTOCOL, c"RECV", peer, || {
            let Exchange { api, version, correlation_id, size } = response;
            let rtt = round_trip.as_secs_f64() * 1000.0;
            let api = api.name();
            format!(
                "Received {api}Response (v{version}, {size} bytes, CorrId {correlation_id}, rtt {rtt:.2}ms)"
            )
        });
        self.note_purpose(peer, response.api, || {
            let (api, version, size) = (response.api.name(), response.version, response.size);
            format!("{api} v{version} answered in {size} bytes after {} us", round_trip.as_micros())
        });
    }

    fn response_lost(&self, peer: &Peer<'_>, request: &Exchange, why: ErrorKind) {
        self.note(Contexts::PROTOCOL, c"RECV", peer, || {
            let Exchange { api, version, correlation_id, .. } = request;
            format!("No answer to {}Request (v{version}, CorrId {correlation_id}): {why}", api.name())
        });
        self.note_purpose(peer, request.api, || {
            format!("{} v{} is not answered: {why}", request.api.name(), request.version)
        });
    }

    fn state_changed(&self, peer: &Peer<'_>, state: &'static str) {
        let before = self.states.lock().insert(peer.to_string(), state).unwrap_or("INIT");
        self.note(Contexts::BROKER, c"STATE", peer, || format!("Broker changed state {before} -> {state}"));
    }

    fn thread_starts(&self, name: &str) {
        self.threads(name, "serves this client from now on");
    }

    fn thread_ends(&self, name: &str) {
        self.threads(name, "serves this client no more");
    }
}

impl Chronicle {
    fn threads(&self, name: &str, what: &str) {
        if let Some(client) = self.client.upgrade() {
            client.debug(Contexts::GENERIC, c"THREAD", || format!("Thread {name} {what}"));
        }
    }
}

impl Client {
    /// Writes down how a batch ended.
    pub(crate) fn note_delivery(&self, batch: &DeliveryBatch) {
        let broker = batch.broker_id().map_or_else(|| "no broker".to_owned(), |id| format!("broker {id}"));
        self.debug(Contexts::MSG, c"MSGSET", || {
            let (topic, partition, count) = (batch.topic(), batch.partition(), batch.len());
            let what = format!("{broker}: {topic} [{partition}]: MessageSet with {count} message(s)");
            match (batch.error(), batch.base_offset()) {
                (Some(error), _) => format!("{what} failed: {error}"),
                (None, Some(offset)) => format!("{what} delivered at offset {offset}"),
                (None, None) => format!("{what} delivered"),
            }
        });
    }
}

impl Client {
    /// Writes down what the application does with partitions.
    pub(crate) fn note_partitions(
        &self,
        facility: &'static CStr,
        what: &str,
        partitions: &[rd_kafka_topic_partition_t],
    ) {
        let count = partitions.len();
        self.debug(Contexts::CONSUMER.or(Contexts::CGRP), facility, || {
            format!("{what}: {count} partition(s)")
        });
        for one in partitions {
            self.debug(Contexts::CONSUMER.or(Contexts::CGRP), facility, || {
                format!(" {} [{}] offset {}", one.name(), one.partition, OffsetName(one.offset))
            });
        }
    }
}

/// An offset as a log names it.
struct OffsetName(i64);

impl fmt::Display for OffsetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            OFFSET_BEGINNING => f.write_str("BEGINNING"),
            OFFSET_END => f.write_str("END"),
            OFFSET_STORED => f.write_str("STORED"),
            OFFSET_INVALID => f.write_str("INVALID"),
            tail if tail <= OFFSET_TAIL_BASE => write!(f, "TAIL({})", OFFSET_TAIL_BASE.saturating_sub(tail)),
            offset => write!(f, "{offset}"),
        }
    }
}

/// Several observers as one.
#[derive(Debug)]
pub(crate) struct Observers(pub(crate) Vec<Arc<dyn Observer>>);

impl Observer for Observers {
    fn request_sent(&self, peer: &Peer<'_>, request: &Exchange) {
        self.0.iter().for_each(|one| one.request_sent(peer, request));
    }

    fn response_received(&self, peer: &Peer<'_>, response: &Exchange, round_trip: Duration) {
        self.0.iter().for_each(|one| one.response_received(peer, response, round_trip));
    }

    fn response_lost(&self, peer: &Peer<'_>, request: &Exchange, why: ErrorKind) {
        self.0.iter().for_each(|one| one.response_lost(peer, request, why));
    }

    fn state_changed(&self, peer: &Peer<'_>, state: &'static str) {
        self.0.iter().for_each(|one| one.state_changed(peer, state));
    }

    fn thread_starts(&self, name: &str) {
        self.0.iter().for_each(|one| one.thread_starts(name));
    }

    fn thread_ends(&self, name: &str) {
        self.0.iter().for_each(|one| one.thread_ends(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_are_read_and_named_as_the_property_lists_them() {
        assert_eq!(Contexts::of("broker, msg").names(), "broker,msg");
        assert_eq!(Contexts::of("all").names(), NAMES.join(","));
        assert_eq!(Contexts::of(""), Contexts::NONE);
        assert!(Contexts::of("protocol").meets(Chronicle::CONTEXTS));
        assert!(!Contexts::of("conf").meets(Chronicle::CONTEXTS));
    }
}
