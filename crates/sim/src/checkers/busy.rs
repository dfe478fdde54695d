//! Checks that no client is busy-looping: time advances, and the rates of connections, of requests for metadata,
//! offsets and producer IDs, of empty fetches and of retries of the same batch stay within the back-off.

use std::collections::VecDeque;

use ottla_sorted::SortedMap;
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

/// A partition as a fetch names it: the topic's name or ID, and the number; -1 stands for the whole fetch.
type Asked = (String, Uuid, i32);

/// The recent rates of requests.
#[derive(Debug, Default)]
pub struct Rates {
    connects: SortedMap<usize, VecDeque<Instant>>,
    questions: SortedMap<(usize, i16), VecDeque<Instant>>,
    /// Attempts by client and first record of the batch.
    batches: SortedMap<(usize, u64), VecDeque<Instant>>,
    /// Refused fetches by client, connection and partition.
    refusals: SortedMap<(usize, u64, Asked), VecDeque<Instant>>,
    /// Empty fetches by client and connection.
    empty: SortedMap<(usize, u64), VecDeque<Instant>>,
    /// Fetches with records or errors by client and connection.
    news: SortedMap<(usize, u64), VecDeque<Instant>>,
    /// Brokers respond to Fetch at once.
    is_hasty: bool,
}

/// The maximum number of connections in a second: up to five brokers and as many bootstrap servers, each with its own
/// back-off of 100 ms.
const CONNECTS: usize = 120;
/// The maximum number of offset lookups in a second: one per back-off of 100 ms to each of five brokers, and those of
/// seeks.
const LOOKUPS: usize = 300;
/// The maximum number of cluster requests of one kind in a second.
const QUESTIONS: usize = 100;
/// The maximum number of InitProducerId requests in a second: one per back-off of 100 ms, and one for each rejected
/// producer ID.
const IDENTITIES: usize = 30;
/// The maximum number of attempts at one batch in a second: one per back-off of 100 ms, and one for each new leader.
const ATTEMPTS: usize = 40;

/// The maximum number of refused fetches of one partition in a second: one per back-off of at least 50 ms, and some for
/// new leaders.
const REFUSALS: usize = 40;

/// The maximum number of empty fetches of a client from a broker in a second: one per 10 ms, the broker's minimum wait,
/// and some for partitions that come and go.
const EMPTY_FETCHES: usize = 150;

/// The maximum number of empty fetches from a hasty broker after each fetch with records or errors: a client does not back
/// off before the eleventh early response without news.
const EARLY_FETCHES: usize = 11;

impl Rates {
    /// Counts an empty fetch without errors.
    pub fn fetched_nothing(&mut self, now: Instant, client: usize, link: u64) -> Result<(), Broken> {
        let news = self.news.entry((client, link)).or_default();
        forget_old(news, now);
        let most = if self.is_hasty { EMPTY_FETCHES + EARLY_FETCHES * news.len() } else { EMPTY_FETCHES };
        let count = count(self.empty.entry((client, link)).or_default(), now);
        within(client, count, most, "empty fetches")
    }

    /// Counts a fetch with records or errors.
    pub fn fetched_news(&mut self, now: Instant, client: usize, link: u64) {
        count(self.news.entry((client, link)).or_default(), now);
    }

    /// Accepts early responses without records from now on.
    pub const fn expect_hasty_brokers(&mut self) {
        self.is_hasty = true;
    }

    /// Counts a refused fetch.
    pub fn refused(&mut self, now: Instant, client: usize, link: u64, asked: Asked) -> Result<(), Broken> {
        let count = count(self.refusals.entry((client, link, asked)).or_default(), now);
        within(client, count, REFUSALS, "refused fetches")
    }

    /// A client connects.
    pub fn connected(&mut self, now: Instant, client: usize) -> Result<(), Broken> {
        let count = count(self.connects.entry(client).or_default(), now);
        within(client, count, CONNECTS, "connections")
    }

    /// Counts a request.
    pub fn asked(&mut self, now: Instant, client: usize, api: ApiKey) -> Result<(), Broken> {
        let most = match api {
            ApiKey::InitProducerId => IDENTITIES,
            // Batches, fetches and questions about transactions have their own limits, and there are as many ApiVersions requests as connections.
            ApiKey::Produce
            | ApiKey::Fetch
            | ApiKey::DescribeTransactions
            | ApiKey::ApiVersions
            | ApiKey::ShareFetch
            | ApiKey::ShareAcknowledge => return Ok(()),
            ApiKey::ListOffsets | ApiKey::OffsetForLeaderEpoch => LOOKUPS,
            _ => QUESTIONS,
        };
        let count = count(self.questions.entry((client, api as i16)).or_default(), now);
        within(client, count, most, api.name())
    }

    /// Counts the attempts at batches.
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

/// Adds an event, and returns the number of events of the last second.
fn count(times: &mut VecDeque<Instant>, now: Instant) -> usize {
    forget_old(times, now);
    times.push_back(now);
    times.len()
}

/// Removes events that are older than a second.
fn forget_old(times: &mut VecDeque<Instant>, now: Instant) {
    while times.front().is_some_and(|at| *at + Duration::from_secs(1) <= now) {
        times.pop_front();
    }
}

fn within(client: usize, count: usize, most: usize, what: &str) -> Result<(), Broken> {
    if count <= most {
        return Ok(());
    }
    Err(Broken::new("busy", format!("client {client}: {count} times {what} within a second")))
}
