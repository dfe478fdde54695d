//! Nothing is done over and over: time moves, and within any second no client connects, asks for metadata, for offsets or
//! for an identity, fetches nothing, or sends the same batch more often than its back-off allows.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use ottla_core::machine::Instant;
use ottla_protocol::{
    api::ApiKey,
    batch::{Batch, Batches, Records},
    generated::produce::ProduceRequest,
    uuid::Uuid,
};

use super::Broken;
use crate::workload::parse_value;

/// A partition as a fetch names it: the topic's name or id, and the number; -1 stands for the fetch as a whole.
type Asked = (String, Uuid, i32);

/// How often things were done lately.
#[derive(Debug, Default)]
pub struct Rates {
    connects: BTreeMap<usize, VecDeque<Instant>>,
    questions: BTreeMap<(usize, i16), VecDeque<Instant>>,
    /// By client and the first record of the batch.
    batches: BTreeMap<(usize, u64), VecDeque<Instant>>,
    /// Fetches that were refused, by client, connection and partition.
    refusals: BTreeMap<(usize, u64, Asked), VecDeque<Instant>>,
    /// Fetches that brought nothing, by client and connection.
    empty: BTreeMap<(usize, u64), VecDeque<Instant>>,
}

/// Connections in a second, with up to five brokers and as many bootstrap servers, each with its own back-off of 100 ms.
const CONNECTS: usize = 120;
/// Questions about offsets in a second: to each of five brokers one per back-off of 100 ms, and those of seeks.
const LOOKUPS: usize = 300;
/// Questions of one kind about the cluster in a second.
const QUESTIONS: usize = 100;
/// Identities that are asked for in a second, one per back-off of 100 ms, and one for each that was found to be wrong.
const IDENTITIES: usize = 30;
/// Attempts at one batch in a second: one per back-off of 100 ms, and one more for each new leader.
const ATTEMPTS: usize = 40;

/// Fetches of one partition that are refused in a second: one per back-off of 50 ms at least, and some for new leaders.
const REFUSALS: usize = 40;

/// Fetches in a second that bring nothing, of a client at a broker: one per 10 ms that the broker waits at least, and some
/// for partitions that come and go.
const EMPTY_FETCHES: usize = 150;

impl Rates {
    /// A client's fetch brought nothing, and nothing was refused.
    pub fn fetched_nothing(&mut self, now: Instant, client: usize, link: u64) -> Result<(), Broken> {
        let count = count(self.empty.entry((client, link)).or_default(), now);
        within(client, count, EMPTY_FETCHES, "fetches of nothing")
    }

    /// A client's fetch was refused.
    pub fn refused(&mut self, now: Instant, client: usize, link: u64, asked: Asked) -> Result<(), Broken> {
        let count = count(self.refusals.entry((client, link, asked)).or_default(), now);
        within(client, count, REFUSALS, "fetches of what is refused")
    }

    /// A client connects.
    pub fn connected(&mut self, now: Instant, client: usize) -> Result<(), Broken> {
        let count = count(self.connects.entry(client).or_default(), now);
        within(client, count, CONNECTS, "connections")
    }

    /// A client asks something.
    pub fn asked(&mut self, now: Instant, client: usize, api: ApiKey) -> Result<(), Broken> {
        let most = match api {
            ApiKey::InitProducerId => IDENTITIES,
            // Batches and fetches have rates of their own, and there are as many questions for versions as connections.
            ApiKey::Produce | ApiKey::Fetch | ApiKey::ApiVersions => return Ok(()),
            ApiKey::ListOffsets | ApiKey::OffsetForLeaderEpoch => LOOKUPS,
            _ => QUESTIONS,
        };
        let count = count(self.questions.entry((client, api as i16)).or_default(), now);
        within(client, count, most, api.name())
    }

    /// A client sends batches.
    pub fn produced(&mut self, now: Instant, client: usize, request: &ProduceRequest) -> Result<(), Broken> {
        for partition in request.topic_data.iter().flat_map(|topic| &topic.partition_data) {
            let records = partition.records.as_deref().unwrap_or_default();
            let Some(Ok(Batch::V2(batch))) = Batches::new(records).next() else { continue };
            let Ok(raw) = batch.records(1 << 30) else { continue };
            let first = Records::new(batch.header(), &raw).next();
            let first = first.and_then(Result::ok).and_then(|record| record.value.and_then(parse_value));
            if let Some((_, number)) = first {
                let count = count(self.batches.entry((client, number)).or_default(), now);
                within(client, count, ATTEMPTS, "attempts at one batch")?;
            }
        }
        Ok(())
    }
}

fn count(times: &mut VecDeque<Instant>, now: Instant) -> usize {
    while times.front().is_some_and(|at| *at + Duration::from_secs(1) <= now) {
        times.pop_front();
    }
    times.push_back(now);
    times.len()
}

fn within(client: usize, count: usize, most: usize, what: &str) -> Result<(), Broken> {
    if count <= most {
        return Ok(());
    }
    Err(Broken::new("busy", format!("client {client}: {count} times {what} within a second")))
}
