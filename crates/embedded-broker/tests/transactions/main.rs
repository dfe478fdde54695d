//! Transactions: coordinator, markers, and read_committed consumers.

mod access;
#[path = "../common/mod.rs"]
mod common;
mod faults;
mod fencing;
mod offsets;
mod read_committed;

use std::time::Duration;

use common::{Batch, World, produce_request};
use ottla_embedded_broker::{BrokerRelease, ClusterOptions, ConnectionId};
use ottla_protocol::{
    batch::{Batch as ReadBatch, Batches, ControlRecord, Records},
    error_code::ErrorCode,
    generated::{
        add_partitions_to_txn::{self, AddPartitionsToTxnRequest},
        api_versions::ApiVersionsResponse,
        end_txn::{EndTxnRequest, EndTxnResponse},
        init_producer_id::{InitProducerIdRequest, InitProducerIdResponse},
        produce::ProduceRequest,
    },
};

const ID: &str = "transfers";
/// Longer than it takes to write markers.
const MARKED: Duration = Duration::from_millis(20);
const OK: ErrorCode = ErrorCode::NONE;
const CONCURRENT: ErrorCode = ErrorCode::CONCURRENT_TRANSACTIONS;

/// A cluster of one broker with the topic `t`, and a client that sends the requests of a transactional producer.
#[derive(Debug)]
struct Client {
    world: World,
    connection: ConnectionId,
    /// Sends the versions of transaction version 2, else those before it.
    is_new: bool,
}

/// A producer ID with its epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Producer {
    id: i64,
    epoch: i16,
}

impl Client {
    fn new(is_new: bool) -> Self {
        Self::with(is_new, |_| {})
    }

    fn with(is_new: bool, change: impl FnOnce(&mut ClusterOptions)) -> Self {
        let mut options = ClusterOptions { brokers: 1, ..ClusterOptions::default() };
        change(&mut options);
        let mut world = World::new(options);
        world.cluster.control().create_topic("t", 3, 1).unwrap();
        let connection = world.open(1);
        Self { world, connection, is_new }
    }

    fn try_init(&mut self, id: &str, current: Option<Producer>) -> InitProducerIdResponse {
        let current = current.unwrap_or(Producer { id: -1, epoch: -1 });
        let request = InitProducerIdRequest {
            transactional_id: Some(id.to_owned()),
            transaction_timeout_ms: 60_000,
            producer_id: current.id,
            producer_epoch: current.epoch,
            ..Default::default()
        };
        self.world.call(self.connection, 5, &request)
    }

    fn init_in(&mut self, version: i16, id: &str) -> Producer {
        let request = InitProducerIdRequest {
            transactional_id: Some(id.to_owned()),
            transaction_timeout_ms: 1000,
            producer_id: -1,
            producer_epoch: -1,
            ..Default::default()
        };
        let response = self.world.call(self.connection, version, &request);
        Producer { id: response.producer_id, epoch: response.producer_epoch }
    }

    fn init(&mut self, id: &str) -> Producer {
        let response = self.try_init(id, None);
        assert_eq!(response.error_code, OK);
        Producer { id: response.producer_id, epoch: response.producer_epoch }
    }

    /// Adds partitions of `t`, with the first error.
    fn add(&mut self, producer: Producer, partitions: &[i32]) -> ErrorCode {
        self.add_of(ID, producer, &[("t", partitions)])[0]
    }

    /// Adds partitions; returns the error of each.
    fn add_of(&mut self, id: &str, producer: Producer, topics: &[(&str, &[i32])]) -> Vec<ErrorCode> {
        self.add_in(3, id, producer, topics)
    }

    fn add_in(
        &mut self,
        version: i16,
        id: &str,
        producer: Producer,
        topics: &[(&str, &[i32])],
    ) -> Vec<ErrorCode> {
        let topics =
            topics.iter().map(|(name, partitions)| add_partitions_to_txn::request::V3AndBelowTopic {
                name: (*name).to_owned(),
                partitions: partitions.to_vec(),
            });
        let request = AddPartitionsToTxnRequest {
            v3_and_below_transactional_id: id.to_owned(),
            v3_and_below_producer_id: producer.id,
            v3_and_below_producer_epoch: producer.epoch,
            v3_and_below_topics: topics.collect(),
            ..Default::default()
        };
        let response = self.world.call(self.connection, version, &request);
        let results = response.results_by_topic_v3_and_below.into_iter();
        results.flat_map(|topic| topic.results_by_partition).map(|p| p.partition_error_code).collect()
    }

    /// Produces a batch to a partition of `t`.
    fn produce(&mut self, producer: Producer, partition: i32, sequence: i32) -> ErrorCode {
        let version = if self.is_new { 12 } else { 11 };
        self.produce_in(ID, version, producer, partition, sequence)
    }

    fn produce_in(
        &mut self,
        id: &str,
        version: i16,
        producer: Producer,
        partition: i32,
        sequence: i32,
    ) -> ErrorCode {
        let mut batch = Batch::of(2).producer(producer.id, producer.epoch, sequence);
        batch.attributes = 0x10;
        let mut request = produce_request("t", partition, -1, batch.build());
        request.transactional_id = Some(id.to_owned());
        let response = self.world.call(self.connection, version, &request);
        response.responses[0].partition_responses[0].error_code
    }

    fn try_end(&mut self, producer: Producer, committed: bool) -> EndTxnResponse {
        self.end_in(if self.is_new { 5 } else { 4 }, producer, committed)
    }

    fn end_in(&mut self, version: i16, producer: Producer, committed: bool) -> EndTxnResponse {
        let request = EndTxnRequest {
            transactional_id: ID.to_owned(),
            producer_id: producer.id,
            producer_epoch: producer.epoch,
            committed,
        };
        self.world.call(self.connection, version, &request)
    }

    /// Ends the transaction; returns the producer of the next one.
    fn end(&mut self, producer: Producer, committed: bool) -> Producer {
        let response = self.try_end(producer, committed);
        assert_eq!(response.error_code, OK);
        if self.is_new {
            return Producer { id: response.producer_id, epoch: response.producer_epoch };
        }
        assert_eq!((response.producer_id, response.producer_epoch), (-1, -1));
        producer
    }

    /// Writes one batch to each of the partitions of `t` in a new transaction, which stays open.
    fn write(&mut self, producer: Producer, partitions: &[i32], sequence: i32) {
        if !self.is_new {
            assert_eq!(self.add(producer, partitions), OK);
        }
        for partition in partitions {
            assert_eq!(self.produce(producer, *partition, sequence), OK);
        }
    }

    fn state(&mut self) -> &'static str {
        self.world.cluster.control().transaction(ID).unwrap().state
    }

    /// Returns (high watermark, last stable offset) of a partition of `t`.
    fn offsets(&mut self, partition: i32) -> (i64, i64) {
        let state = self.world.cluster.control().partition("t", partition).unwrap();
        (state.high_watermark, state.last_stable_offset)
    }

    /// Returns the batches of a partition: a marker, or the number of records.
    fn log(&mut self, partition: i32) -> Vec<Result<ControlRecord, i32>> {
        let stored = self.world.cluster.control().batches("t", partition);
        let batches = stored.iter().map(|bytes| {
            let Some(Ok(ReadBatch::V2(batch))) = Batches::new(bytes).next() else { panic!("a batch") };
            batch.verify_crc().unwrap();
            let (header, records) = (*batch.header(), batch.records(1 << 20).unwrap());
            let mut records = Records::new(&header, &records).map(Result::unwrap);
            if !header.is_control() {
                return Err(header.record_count);
            }
            assert!(header.is_transactional() && header.record_count == 1 && header.base_sequence == -1);
            let record = records.next().unwrap();
            Ok(ControlRecord::parse(record.key, record.value).unwrap())
        });
        batches.collect()
    }
}

fn marker(committed: bool) -> Result<ControlRecord, i32> {
    Ok(ControlRecord::EndTransaction { committed, coordinator_epoch: 0 })
}

#[test]
fn transactions_commit_and_abort_with_each_version() {
    for is_new in [false, true] {
        let mut client = Client::new(is_new);
        let first = client.init(ID);
        assert_eq!(first.epoch, 0);
        client.write(first, &[0, 1], 0);
        assert_eq!(client.state(), "Ongoing");
        let second = client.end(first, true);
        assert_eq!(client.state(), "PrepareCommit");
        client.world.pass(MARKED);
        assert_eq!(client.state(), "CompleteCommit");
        // With version 2 sequences begin at 0 in the next epoch.
        assert_eq!(second, Producer { epoch: i16::from(is_new), ..first });
        client.write(second, &[1, 2], if is_new { 0 } else { 2 });
        let third = client.end(second, false);
        assert_eq!(third, Producer { epoch: i16::from(is_new) * 2, ..first });
        client.world.pass(MARKED);
        assert_eq!(client.state(), "CompleteAbort");
        assert_eq!(client.log(0), [Err(2), marker(true)]);
        assert_eq!(client.log(1), [Err(2), marker(true), Err(2), marker(false)]);
        assert_eq!(client.log(2), [Err(2), marker(false)]);
    }
}

#[test]
fn next_transaction_waits_for_the_markers_of_the_last_one() {
    for is_new in [false, true] {
        let mut client = Client::with(is_new, |options| {
            options.transaction_marker_delay = Duration::from_secs(2);
            options.transaction_retry_max = Duration::ZERO;
        });
        let first = client.init(ID);
        client.write(first, &[0], 0);
        let next = client.end(first, true);
        client.world.pass(Duration::from_secs(1));
        assert_eq!(client.offsets(0), (2, 0));
        if is_new {
            assert_eq!(client.produce(next, 1, 0), CONCURRENT);
        } else {
            assert_eq!(client.add(next, &[1]), CONCURRENT);
            assert_eq!(client.produce(next, 1, 0), ErrorCode::NOT_ENOUGH_REPLICAS);
        }
        assert_eq!(client.try_end(first, true).error_code, CONCURRENT);
        assert_eq!(client.try_end(first, false).error_code, CONCURRENT);
        assert_eq!(client.try_end(next, false).error_code, CONCURRENT);
        assert_eq!(client.try_init(ID, None).error_code, CONCURRENT);
        client.world.pass(Duration::from_secs(1));
        assert_eq!(client.offsets(0), (3, 3));
        client.write(next, &[1], 0);
    }
}

/// Ends a transaction whose markers take this long, and sends the first batch of the next one. Returns its correlation ID.
fn too_early(marker_delay: Duration) -> (Client, i32) {
    let mut client = Client::with(true, |options| options.transaction_marker_delay = marker_delay);
    let first = client.init(ID);
    client.write(first, &[0], 0);
    let next = client.end(first, true);
    let mut batch = Batch::of(3).producer(next.id, next.epoch, 0);
    batch.attributes = 0x10;
    let mut request = produce_request("t", 1, -1, batch.build());
    request.transactional_id = Some(ID.to_owned());
    let id = client.world.send(client.connection, 12, &request);
    (client, id)
}

/// Returns the error of the batch that came too early, if there is a response.
fn error_of_early(client: &mut Client, id: i32) -> Option<ErrorCode> {
    let response = client.world.respond::<ProduceRequest>(client.connection, 12, id)?;
    Some(response.responses[0].partition_responses[0].error_code)
}

#[test]
fn leader_asks_the_coordinator_again_while_markers_are_written() {
    let (mut client, id) = too_early(Duration::from_millis(5));
    client.world.pass(Duration::from_millis(19));
    assert_eq!(client.state(), "CompleteCommit");
    assert_eq!(error_of_early(&mut client, id), None, "it asks again after 20 ms");
    client.world.pass(Duration::from_millis(1));
    assert_eq!(error_of_early(&mut client, id), Some(OK));
    assert_eq!(client.log(1), [Err(3)]);
    assert_eq!(client.state(), "Ongoing");
    // The markers of this one take too long.
    let (mut client, id) = too_early(Duration::from_secs(1));
    client.world.pass(Duration::from_millis(99));
    assert_eq!(error_of_early(&mut client, id), None);
    client.world.pass(Duration::from_millis(1));
    assert_eq!(error_of_early(&mut client, id), Some(CONCURRENT));
    client.world.pass(Duration::from_secs(2));
    assert!(client.log(1).is_empty());
}

#[test]
fn records_that_wait_for_markers_are_appended_without_their_connection() {
    let (mut client, _) = too_early(Duration::from_millis(5));
    client.world.cluster.handle_closed(client.world.now, client.connection);
    client.world.pass(Duration::from_millis(50));
    assert_eq!(client.log(1), [Err(3)]);
}

#[test]
fn markers_of_a_delayed_partition_come_later() {
    let mut client = Client::new(true);
    client.world.cluster.control().delay_markers("t", 1, Some(Duration::from_secs(5)));
    let first = client.init(ID);
    client.write(first, &[0, 1], 0);
    client.end(first, true);
    client.world.pass(Duration::from_secs(4));
    assert_eq!((client.offsets(0), client.offsets(1)), ((3, 3), (2, 0)));
    let described = client.world.cluster.control().transaction(ID).unwrap();
    assert_eq!((described.state, described.missing_markers), ("PrepareCommit", 1));
    client.world.pass(Duration::from_secs(1));
    assert_eq!((client.offsets(1), client.state()), ((3, 3), "CompleteCommit"));
}

#[test]
fn repeated_end_gets_the_same_response() {
    for committed in [false, true] {
        let mut old = Client::new(false);
        let first = old.init(ID);
        old.write(first, &[0], 0);
        old.end(first, committed);
        old.world.pass(MARKED);
        assert_eq!(old.end(first, committed), first);
        assert_eq!(old.try_end(first, !committed).error_code, ErrorCode::INVALID_TXN_STATE);

        let mut new = Client::new(true);
        let first = new.init(ID);
        new.write(first, &[0], 0);
        let second = new.end(first, committed);
        new.world.pass(MARKED);
        assert_eq!(new.end(first, committed), second);
        assert_eq!(new.try_end(first, !committed).error_code, ErrorCode::INVALID_TXN_STATE);
        assert_eq!(new.try_end(second, true).error_code, ErrorCode::INVALID_TXN_STATE);
    }
}

#[test]
fn transaction_without_records_can_only_abort() {
    let mut old = Client::new(false);
    let first = old.init(ID);
    for committed in [false, true] {
        assert_eq!(old.try_end(first, committed).error_code, ErrorCode::INVALID_TXN_STATE);
    }
    let mut new = Client::new(true);
    let first = new.init(ID);
    assert_eq!(new.try_end(first, true).error_code, ErrorCode::INVALID_TXN_STATE);
    let second = new.end(first, false);
    assert_eq!(second.epoch, 1);
    new.world.pass(MARKED);
    assert_eq!(new.state(), "CompleteAbort");
    let third = new.end(second, false);
    assert_eq!(third.epoch, 2);
}

#[test]
fn unknown_partition_keeps_the_others_out_of_the_transaction() {
    let mut client = Client::new(false);
    let producer = client.init(ID);
    let errors = client.add_of(ID, producer, &[("t", &[0, 7]), ("missing", &[0])]);
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    assert_eq!(errors, [ErrorCode::OPERATION_NOT_ATTEMPTED, unknown, unknown]);
    assert_eq!(client.state(), "Empty");
}

#[test]
fn records_need_a_registered_partition_unless_verification_is_off() {
    let mut client = Client::new(false);
    let producer = client.init(ID);
    let produce = |client: &mut Client, version| client.produce_in(ID, version, producer, 1, 0);
    assert_eq!(produce(&mut client, 10), ErrorCode::INVALID_TXN_STATE);
    assert_eq!(produce(&mut client, 11), ErrorCode::TRANSACTION_ABORTABLE);
    assert_eq!(client.add(producer, &[0]), OK);
    assert_eq!(produce(&mut client, 10), ErrorCode::INVALID_TXN_STATE);
    client.world.cluster.control().options().transaction_verification = false;
    assert_eq!(produce(&mut client, 10), OK);
    // The coordinator doesn't know the partition, so it hangs.
    client.end(producer, true);
    client.world.pass(MARKED);
    assert_eq!(client.offsets(1), (2, 0));
}

#[test]
fn transactional_records_need_a_transactional_id() {
    let mut client = Client::new(true);
    let mut batch = Batch::of(1).producer(5, 0, 0);
    batch.attributes = 0x10;
    let response = client.world.call(client.connection, 12, &produce_request("t", 0, -1, batch.build()));
    let error = response.responses[0].partition_responses[0].error_code;
    assert_eq!(error, ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
}

#[test]
fn finalized_version_of_transactions_changes_at_run_time() {
    let mut client = Client::new(true);
    let connection = client.connection;
    let mut ask = |version: i16| -> ApiVersionsResponse {
        client.world.cluster.control().set_transaction_version(version);
        client.world.call(connection, 4, &common::software())
    };
    let levels = [2, 1, 0].map(|version| {
        let response = ask(version);
        let supported = &response.supported_features[0];
        assert_eq!((supported.name.as_str(), supported.max_version), ("transaction.version", 2));
        (
            response.finalized_features_epoch,
            response.finalized_features.first().map(|feature| feature.max_version_level),
        )
    });
    assert_eq!(levels, [(1, Some(2)), (2, Some(1)), (3, None)]);
}

#[test]
fn new_requests_need_the_feature_but_not_its_second_level() {
    for level in [0, 1] {
        let mut client = Client::with(true, |options| options.transaction_version = level);
        let producer = client.init(ID);
        let error = if level == 0 { ErrorCode::UNSUPPORTED_VERSION } else { OK };
        assert_eq!(client.produce(producer, 0, 0), error);
        if level == 0 {
            assert_eq!(client.state(), "Empty");
            assert_eq!(client.add(producer, &[0]), OK);
            assert_eq!(client.produce_in(ID, 11, producer, 0, 0), OK);
        }
        assert_eq!(client.try_end(producer, true).error_code, error);
        assert_eq!(client.state(), if level == 0 { "Ongoing" } else { "PrepareCommit" });
    }
}

#[test]
fn transactions_end_although_records_are_discarded() {
    for is_new in [false, true] {
        let mut client = Client::with(is_new, |options| options.discard = true);
        let mut producer = client.init(ID);
        for end in [3, 6] {
            client.write(producer, &[0], 0);
            producer = client.end(producer, true);
            client.world.pass(MARKED);
            assert_eq!(client.offsets(0), (end, end));
        }
        assert_eq!((client.state(), client.log(0)), ("CompleteCommit", vec![]));
    }
}

#[test]
fn older_releases_have_older_transactions() {
    for (release, verifies) in [(BrokerRelease::V0_11_0, false), (BrokerRelease::V3_9_1, true)] {
        let mut client = Client::with(false, |options| *options = options.clone().emulate(release));
        let version = if verifies { 4 } else { 1 };
        let response = client.world.call(client.connection, version, &common::software());
        assert_eq!((response.supported_features.len(), response.finalized_features.len()), (0, 0));
        let producer = client.init_in(0, ID);
        let unregistered = client.produce_in(ID, 3, producer, 0, 0);
        assert_eq!(unregistered, if verifies { ErrorCode::INVALID_TXN_STATE } else { OK });
        let end = EndTxnRequest {
            transactional_id: ID.to_owned(),
            producer_id: producer.id,
            producer_epoch: producer.epoch,
            committed: true,
        };
        assert_eq!(client.world.call(client.connection, 0, &end).error_code, ErrorCode::INVALID_TXN_STATE);
        client.world.send(client.connection, 5, &end);
        assert!(client.world.is_closed(client.connection), "EndTxn of transaction version 2");
    }
}
