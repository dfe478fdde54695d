//! `debug`: log lines of level 7 about the inside of a client, with the facilities that users of librdkafka search for.
//! A line belongs to contexts, and is formatted only if one of them is enabled.

use std::{ffi::CStr, fmt, sync::Arc, time::Duration};

use ottla_core::{
    error::ErrorKind,
    observer::{Exchange, Observer, Peer},
    produce::report::DeliveryBatch,
};
use ottla_protocol::api::ApiKey;
use ottla_sorted::SortedMap;

use crate::{
    client::{contexts::Contexts, log::Log},
    ffi::{
        lock::Mutex,
        types::{
            OFFSET_BEGINNING, OFFSET_END, OFFSET_INVALID, OFFSET_STORED, OFFSET_TAIL_BASE,
            rd_kafka_topic_partition_t,
        },
    },
};

/// The observer that writes debug lines about a client's connections.
#[derive(Debug)]
pub(crate) struct DebugObserver {
    log: Arc<Log>,
    /// The last state of each connection.
    states: Mutex<SortedMap<String, &'static str>>,
}

impl DebugObserver {
    /// The contexts for which this observer has lines.
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

    pub(crate) const fn new(log: Arc<Log>) -> Self {
        Self { log, states: Mutex::new(SortedMap::new()) }
    }

    /// Writes a line about a request or response, in the contexts of its API.
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
        if self.log.wants(of) {
            let peer = peer.to_string();
            self.log.debug_of(of, facility, &peer, || format!("{peer}: {}", line()));
        }
    }
}

impl Observer for DebugObserver {
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
            format!("{api} v{version} response of {size} bytes after {} us", round_trip.as_micros())
        });
    }

    fn response_lost(&self, peer: &Peer<'_>, request: &Exchange, why: ErrorKind) {
        self.note(Contexts::PROTOCOL, c"RECV", peer, || {
            let Exchange { api, version, correlation_id, .. } = request;
            format!("No response to {}Request (v{version}, CorrId {correlation_id}): {why}", api.name())
        });
        self.note_purpose(peer, request.api, || {
            format!("{} v{} got no response: {why}", request.api.name(), request.version)
        });
    }

    fn state_changed(&self, peer: &Peer<'_>, state: &'static str) {
        let before = self.states.lock().insert(peer.to_string(), state).unwrap_or("INIT");
        self.note(Contexts::BROKER, c"STATE", peer, || format!("Broker changed state {before} -> {state}"));
    }

    fn connection_ended(&self, peer: &Peer<'_>, cause: &dyn fmt::Display) {
        self.note(Contexts::BROKER, c"FAIL", peer, || cause.to_string());
    }

    fn thread_starts(&self, name: &str) {
        self.threads(name, "starts serving this client");
    }

    fn thread_ends(&self, name: &str) {
        self.threads(name, "stops serving this client");
    }
}

impl DebugObserver {
    fn threads(&self, name: &str, what: &str) {
        self.log.debug(Contexts::GENERIC, c"THREAD", || format!("Thread {name} {what}"));
    }
}

impl Log {
    /// Logs the outcome of a batch.
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

impl Log {
    /// Logs what the application does with partitions.
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

/// Returns an offset as log lines show it.
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

/// An observer that passes everything to several observers.
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

    fn connection_ended(&self, peer: &Peer<'_>, cause: &dyn fmt::Display) {
        self.0.iter().for_each(|one| one.connection_ended(peer, cause));
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
    fn requests_have_lines_in_the_contexts_of_their_purpose() {
        assert!(Contexts::of("protocol").meets(DebugObserver::CONTEXTS));
        assert!(!Contexts::of("conf").meets(DebugObserver::CONTEXTS));
    }
}
