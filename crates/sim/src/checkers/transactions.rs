//! Checks the requests of transactional producers: each transaction has one epoch, registers its partitions before they are
//! sent if the brokers do not, sends nothing after its end, and shares its epoch with no request of another one that may
//! still arrive.

use std::{collections::VecDeque, time::Duration};

use ottla_core::machine::Instant;
use ottla_protocol::{
    api::ApiKey,
    batch::{Batch, Batches, Records},
    error_code::ErrorCode,
    generated::produce::{ProduceRequest, ProduceResponse},
    uuid::Uuid,
};
use ottla_sorted::{SortedMap, SortedSet};

use super::{
    Broken,
    transaction_messages::{Identity, TransactionRequest, TransactionResponse},
};
use crate::workload::parse_destination;

/// The first version of Produce that registers its partitions implicitly (KIP-890).
const IMPLICIT: i16 = 12;
/// The maximum number of requests of one kind in a second that get CONCURRENT_TRANSACTIONS, without a different
/// response between them: the back-off begins at 2 ms and doubles.
const CONCURRENT: usize = 20;

/// The maximum number of questions whether the markers of one transaction are written.
const QUESTIONS: usize = 10;

/// A request without a response: its link and its correlation ID.
type Key = (u64, i32);
/// A partition by the index of its topic.
type Place = (u32, i32);
/// A partition as a Produce request names it.
type Name = (String, Uuid, i32);

/// The transactional producers of the world.
#[derive(Debug, Default)]
pub struct TransactionTraffic {
    producers: SortedMap<usize, Producer>,
    /// The indexes of the topics.
    topics: SortedMap<String, u32>,
}

#[derive(Debug, Default)]
struct Producer {
    open: SortedMap<Key, Open>,
    /// The producer ID and epoch of each transaction that has sent a batch.
    identities: SortedMap<u32, Identity>,
    /// The newest transaction that has sent a batch.
    newest: Option<u32>,
    /// The partitions that the coordinator has registered for the present transaction of an identity.
    registered: SortedSet<(Identity, Place)>,
    /// The identity whose transaction is being ended: EndTxn was sent.
    ending: Option<Identity>,
    /// Batches that were sent and may still be appended: their identity, partition and first sequence number, with the
    /// transaction and the number of attempts without a response.
    loose: SortedMap<(Identity, Place, i32), (u32, i64)>,
    /// The requests of the present transaction of an identity that may still arrive, and of earlier transactions.
    lost: SortedMap<Identity, &'static str>,
    doubtful: SortedMap<Identity, &'static str>,
    /// Refusals because of markers that are not written.
    concurrent: SortedMap<i16, VecDeque<Instant>>,
    /// Questions whether the markers of the last transaction are written.
    questions: usize,
}

#[derive(Debug)]
enum Open {
    Request(ApiKey, Option<Identity>, Vec<Place>),
    Batches(Vec<(Name, Sent)>),
}

/// A batch of a transaction.
#[derive(Clone, Copy, Debug)]
struct Sent {
    identity: Identity,
    place: Place,
    sequence: i32,
    transaction: u32,
}

impl TransactionTraffic {
    /// Expects that a client is a transactional producer.
    pub fn expect(&mut self, client: usize) {
        self.producers.insert(client, Producer::default());
    }

    /// A transaction begins: refusals are counted again.
    pub fn begin(&mut self, client: usize) {
        if let Some(producer) = self.producers.get_mut(&client) {
            producer.concurrent.clear();
        }
    }

    /// Counts the questions after each EndTxn whether its markers are written.
    pub fn asked(&mut self, client: usize, api: ApiKey) -> Result<(), Broken> {
        let Some(producer) = self.producers.get_mut(&client) else { return Ok(()) };
        match api {
            ApiKey::EndTxn => producer.questions = 0,
            ApiKey::DescribeTransactions => producer.questions += 1,
            _ => {}
        }
        if producer.questions <= QUESTIONS {
            return Ok(());
        }
        let what = format!("client {client} asks {} times about one transaction", producer.questions);
        Err(Broken::new("storm", what))
    }

    /// Notes the index of a topic.
    pub fn set_topic(&mut self, name: &str, index: u32) {
        self.topics.insert(name.to_owned(), index);
    }

    /// Checks a request.
    pub fn sent(
        &mut self,
        client: usize,
        key: Key,
        api: ApiKey,
        request: &TransactionRequest,
    ) -> Result<(), Broken> {
        let Some(producer) = self.producers.get_mut(&client) else { return Ok(()) };
        let identity = request.identity();
        let topics = &self.topics;
        let named = request.partitions();
        let places = named.iter().filter_map(|(topic, it)| Some((*topics.get(topic)?, *it))).collect();
        producer.open.insert(key, Open::Request(api, identity, places));
        let Some(identity) = identity else { return Ok(()) };
        let is_end = matches!(request, TransactionRequest::End(_));
        if is_end {
            producer.ending = Some(identity);
            return Ok(());
        }
        let name = format!("client {client}: {} of {identity:?}", api.name());
        if producer.ending == Some(identity) {
            return Err(Broken::new("epochs", format!("{name} follows EndTxn, which has not succeeded")));
        }
        if let Some(lost) = producer.doubtful.get(&identity) {
            let what =
                format!("write loss (KAFKA-17754): {name} begins a transaction in the epoch of {lost}");
            return Err(Broken::new("epochs", what));
        }
        Ok(())
    }

    /// Checks the batches of a Produce request.
    pub fn produced(
        &mut self,
        client: usize,
        key: Key,
        version: i16,
        request: &ProduceRequest,
    ) -> Result<(), Broken> {
        let Some(producer) = self.producers.get_mut(&client) else { return Ok(()) };
        let mut batches = Vec::new();
        for topic in &request.topic_data {
            for partition in &topic.partition_data {
                let records = partition.records.as_deref().unwrap_or_default();
                let Some(sent) = read_batch(partition.index, records).map_err(|what| broken(client, what))?
                else {
                    continue;
                };
                producer.check_batch(version, &sent).map_err(|what| broken(client, what))?;
                batches.push(((topic.name.clone(), topic.topic_id, partition.index), sent));
            }
        }
        producer.open.insert(key, Open::Batches(batches));
        Ok(())
    }

    /// Notes the response to a Produce request.
    pub fn acknowledged(&mut self, client: usize, key: Key, response: &ProduceResponse) {
        let Some(producer) = self.producers.get_mut(&client) else { return };
        let Some(Open::Batches(batches)) = producer.open.remove(&key) else { return };
        for topic in &response.responses {
            for result in &topic.partition_responses {
                let name = (topic.name.clone(), topic.topic_id, result.index);
                let Some((_, sent)) = batches.iter().find(|(known, _)| *known == name) else { continue };
                let key = (sent.identity, sent.place, sent.sequence);
                let is_known =
                    matches!(result.error_code, ErrorCode::NONE | ErrorCode::DUPLICATE_SEQUENCE_NUMBER);
                if is_known {
                    producer.loose.remove(&key);
                } else if let Some((_, attempts)) = producer.loose.get_mut(&key) {
                    // A leader that waits for its followers until the timeout has appended the batch.
                    let may_be_written = matches!(
                        result.error_code,
                        ErrorCode::REQUEST_TIMED_OUT
                            | ErrorCode::NOT_ENOUGH_REPLICAS_AFTER_APPEND
                            | ErrorCode::NOT_LEADER_OR_FOLLOWER
                    );
                    *attempts -= i64::from(!may_be_written);
                }
            }
        }
    }

    /// Checks a response.
    pub fn received(
        &mut self,
        now: Instant,
        client: usize,
        key: Key,
        response: &TransactionResponse,
    ) -> Result<(), Broken> {
        let Some(producer) = self.producers.get_mut(&client) else { return Ok(()) };
        let Some(Open::Request(api, identity, places)) = producer.open.remove(&key) else { return Ok(()) };
        if response.codes().contains(&ErrorCode::CONCURRENT_TRANSACTIONS) {
            let times = producer.concurrent.entry(api as i16).or_default();
            times.retain(|at| *at + Duration::from_secs(1) > now);
            times.push_back(now);
            if times.len() > CONCURRENT {
                let what = format!("client {client}: {} of {} in a second", times.len(), api.name());
                return Err(Broken::new("storm", what));
            }
        }
        if response.is_success() {
            producer.concurrent.remove(&(api as i16));
        }
        let Some(identity) = identity else { return Ok(()) };
        match response {
            TransactionResponse::AddPartitions(_) if response.is_success() => {
                producer.registered.extend(places.into_iter().map(|place| (identity, place)));
            }
            TransactionResponse::End(_) if response.is_success() => {
                producer.ending = producer.ending.filter(|ending| *ending != identity);
                producer.registered.retain(|(of, _)| *of != identity);
                if let Some(lost) = producer.lost.remove(&identity) {
                    producer.doubtful.insert(identity, lost);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A connection is closed: requests without a response may still arrive.
    pub fn closed(&mut self, client: usize, link: u64) {
        let Some(producer) = self.producers.get_mut(&client) else { return };
        let lost: Vec<Key> = producer.open.keys().filter(|(of, _)| *of == link).copied().collect();
        for key in lost {
            if let Some(Open::Request(api, Some(identity), _)) = producer.open.remove(&key) {
                let _ = producer.lost.insert(identity, api.name());
            }
        }
    }
}

impl Producer {
    fn check_batch(&mut self, version: i16, sent: &Sent) -> Result<(), String> {
        let Sent { identity, place, sequence, transaction } = *sent;
        let known = *self.identities.entry(transaction).or_insert(identity);
        if known != identity {
            return Err(format!("transaction {transaction} changes from {known:?} to {identity:?}"));
        }
        if let Some(lost) = self.doubtful.get(&identity) {
            return Err(format!(
                "write loss (KAFKA-17754): transaction {transaction} has the epoch of {lost}"
            ));
        }
        if self.ending == Some(identity) {
            return Err(format!("a batch of {identity:?} follows EndTxn, which has not succeeded"));
        }
        if version < IMPLICIT && !self.registered.contains(&(identity, place)) {
            return Err(format!("a batch of {identity:?} for {place:?}, which is not registered"));
        }
        if self.newest.is_none_or(|newest| newest < transaction) {
            self.newest = Some(transaction);
            let mut others = self
                .loose
                .iter()
                .filter(|((of, ..), (it, left))| *of == identity && *it != transaction && *left > 0);
            if let Some(((_, place, sequence), (other, _))) = others.next() {
                return Err(format!(
                    "write loss (KAFKA-17754): transaction {transaction} begins in the epoch of batch {sequence} of {place:?}, \
                     which transaction {other} sent, and which may still be appended"
                ));
            }
        }
        self.loose.entry((identity, place, sequence)).or_insert((transaction, 0)).1 += 1;
        Ok(())
    }
}

fn broken(client: usize, what: String) -> Broken {
    Broken::new("epochs", format!("client {client}: {what}"))
}

/// Returns a batch of a transaction. Error: it has records of several transactions.
fn read_batch(partition: i32, records: &[u8]) -> Result<Option<Sent>, String> {
    let Some(Ok(Batch::V2(batch))) = Batches::new(records).next() else { return Ok(None) };
    let header = batch.header();
    let Ok(raw) = batch.records(1 << 30) else { return Ok(None) };
    let identity = (header.producer_id, header.producer_epoch);
    let mut first: Option<Sent> = None;
    for record in Records::new(header, &raw).flatten() {
        let value = record.value.unwrap_or_default();
        let Some((topic, _)) = parse_destination(value) else { continue };
        let Some(number) = value.get(16..).and_then(|rest| rest.first_chunk()) else { continue };
        let transaction = u32::from_be_bytes(*number);
        let place = (topic, partition);
        let sequence = header.base_sequence;
        let sent = *first.get_or_insert(Sent { identity, place, sequence, transaction });
        if sent.transaction != transaction {
            let other = sent.transaction;
            return Err(format!("a batch has records of the transactions {other} and {transaction}"));
        }
    }
    Ok(first)
}
