//! A client that sends single requests of a transactional producer to the brokers that serve them.

use std::{collections::BTreeMap, time::Duration};

use ottla_protocol::{
    batch::{ChunkPool, RecordBatchBuilder, SealOptions},
    error_code::ErrorCode,
    generated::{
        add_offsets_to_txn::AddOffsetsToTxnRequest,
        add_partitions_to_txn::{self, AddPartitionsToTxnRequest},
        consumer_group_heartbeat::ConsumerGroupHeartbeatRequest,
        describe_producers::{self, DescribeProducersRequest},
        describe_transactions::{DescribeTransactionsRequest, response::TransactionState},
        end_txn::{EndTxnRequest, EndTxnResponse},
        fetch::{self, FetchRequest},
        find_coordinator::FindCoordinatorRequest,
        init_producer_id::{InitProducerIdRequest, InitProducerIdResponse},
        join_group::{self, JoinGroupRequest},
        list_offsets::{self, ListOffsetsRequest},
        list_transactions::{ListTransactionsRequest, ListTransactionsResponse},
        offset_fetch::{self, OffsetFetchRequest},
        produce::{self, ProduceRequest},
        txn_offset_commit::{self, TxnOffsetCommitRequest},
        write_txn_markers::{self, WriteTxnMarkersRequest},
    },
};
use ottla_scenarios::{
    Backend, eventually,
    raw::{self, RawClient},
    unused_topic_name,
};

/// A transactional ID with its coordinator, and a topic with its leaders.
#[derive(Debug)]
pub struct Requests {
    servers: String,
    pub id: String,
    pub topic: String,
    pub coordinator: RawClient,
    /// The timestamp of the first record of each batch. Kafka begins a new segment if it is much older than the markers'.
    pub timestamp: i64,
    leaders: BTreeMap<i32, RawClient>,
}

/// A producer ID with its epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerKey {
    pub id: i64,
    pub epoch: i16,
}

/// The versions of the requests of a producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Before KIP-890: partitions are added explicitly, and the epoch stays.
    Old,
    /// `transaction.version` 2.
    New,
}

/// What a consumer gets from a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    pub high_watermark: i64,
    pub last_stable_offset: i64,
    /// The base offsets of the batches.
    pub batches: Vec<i64>,
    /// The first offsets of aborted transactions, in the order of the response; `None` without a list.
    pub aborted: Option<Vec<i64>>,
}

pub const OK: ErrorCode = ErrorCode::NONE;

fn is_temporary(error: ErrorCode) -> bool {
    matches!(
        error,
        ErrorCode::COORDINATOR_LOAD_IN_PROGRESS
            | ErrorCode::COORDINATOR_NOT_AVAILABLE
            | ErrorCode::NOT_COORDINATOR
    )
}

/// Connects to the coordinator of a group (0) or a transactional ID (1).
pub fn coordinator(servers: &str, key_type: i8, key: &str) -> RawClient {
    let request =
        FindCoordinatorRequest { key_type, coordinator_keys: vec![key.to_owned()], ..Default::default() };
    let mut address = None;
    let found = eventually(|| {
        let response = RawClient::connect(servers).call(4, &request);
        let one = &response.coordinators[0];
        address = (one.error_code == OK).then(|| format!("{}:{}", one.host, one.port));
        address.is_some()
    });
    assert!(found, "{key} has a coordinator");
    RawClient::connect(&address.unwrap_or_default())
}

fn unix_ms() -> i64 {
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    i64::try_from(since_1970.unwrap_or_default().as_millis()).unwrap_or(0)
}

impl Requests {
    /// Creates a topic of three partitions, and finds the coordinator of a new transactional ID.
    pub fn new(backend: &Backend) -> Self {
        let topic = backend.topic(3);
        let servers = backend.bootstrap_servers();
        let id = unused_topic_name();
        let leaders = raw::leaders(&servers, &topic).into_iter();
        let leaders = leaders.map(|(partition, address)| (partition, RawClient::connect(&address))).collect();
        let timestamp = unix_ms();
        Self { coordinator: coordinator(&servers, 1, &id), servers, id, topic, timestamp, leaders }
    }

    /// Returns a client of the same topic with another transactional ID.
    pub fn another(&self) -> Self {
        let id = unused_topic_name();
        let leaders = raw::leaders(&self.servers, &self.topic).into_iter();
        let leaders = leaders.map(|(partition, address)| (partition, RawClient::connect(&address))).collect();
        Self {
            servers: self.servers.clone(),
            topic: self.topic.clone(),
            coordinator: coordinator(&self.servers, 1, &id),
            timestamp: self.timestamp,
            id,
            leaders,
        }
    }

    pub fn try_init(
        &mut self,
        version: i16,
        timeout_ms: i32,
        current: Option<ProducerKey>,
    ) -> InitProducerIdResponse {
        let current = current.unwrap_or(ProducerKey { id: -1, epoch: -1 });
        let request = InitProducerIdRequest {
            transactional_id: Some(self.id.clone()),
            transaction_timeout_ms: timeout_ms,
            producer_id: current.id,
            producer_epoch: current.epoch,
            ..Default::default()
        };
        let mut response = self.coordinator.call(version, &request);
        while is_temporary(response.error_code) {
            std::thread::sleep(Duration::from_millis(50));
            response = self.coordinator.call(version, &request);
        }
        response
    }

    /// Returns the producer; waits for the end of an earlier transaction.
    pub fn init(&mut self, current: Option<ProducerKey>) -> ProducerKey {
        let mut response = self.try_init(4, 60_000, current);
        eventually(|| {
            if response.error_code == ErrorCode::CONCURRENT_TRANSACTIONS {
                response = self.try_init(4, 60_000, current);
            }
            response.error_code != ErrorCode::CONCURRENT_TRANSACTIONS
        });
        assert_eq!(response.error_code, OK);
        ProducerKey { id: response.producer_id, epoch: response.producer_epoch }
    }

    /// Adds partitions; returns the error of each.
    pub fn add(&mut self, producer: ProducerKey, topics: &[(&str, &[i32])]) -> Vec<ErrorCode> {
        self.add_in(3, producer, topics)
    }

    pub fn add_in(
        &mut self,
        version: i16,
        producer: ProducerKey,
        topics: &[(&str, &[i32])],
    ) -> Vec<ErrorCode> {
        let topics =
            topics.iter().map(|(name, partitions)| add_partitions_to_txn::request::V3AndBelowTopic {
                name: (*name).to_owned(),
                partitions: partitions.to_vec(),
            });
        let request = AddPartitionsToTxnRequest {
            v3_and_below_transactional_id: self.id.clone(),
            v3_and_below_producer_id: producer.id,
            v3_and_below_producer_epoch: producer.epoch,
            v3_and_below_topics: topics.collect(),
            ..Default::default()
        };
        let response = self.coordinator.call(version, &request);
        let mut errors: Vec<(String, i32, ErrorCode)> = Vec::new();
        for topic in response.results_by_topic_v3_and_below {
            for partition in topic.results_by_partition {
                errors.push((topic.name.clone(), partition.partition_index, partition.partition_error_code));
            }
        }
        errors.sort();
        errors.into_iter().map(|(_, _, error)| error).collect()
    }

    /// Adds a partition of the topic as soon as the last transaction is complete.
    pub fn add_one(&mut self, producer: ProducerKey, partition: i32) {
        let topic = self.topic.clone();
        assert!(eventually(|| self.add(producer, &[(&topic, &[partition])]) == [OK]));
    }

    pub fn produce(
        &mut self,
        version: i16,
        producer: ProducerKey,
        partition: i32,
        sequence: i32,
    ) -> (ErrorCode, i64) {
        let id = Some(self.id.clone());
        self.produce_as(version, id, true, producer, partition, sequence)
    }

    /// Produces a batch of two records.
    pub fn produce_as(
        &mut self,
        version: i16,
        transactional_id: Option<String>,
        is_transactional: bool,
        producer: ProducerKey,
        partition: i32,
        sequence: i32,
    ) -> (ErrorCode, i64) {
        let mut builder = RecordBatchBuilder::new(&ChunkPool::new());
        for timestamp in [self.timestamp, self.timestamp + 1] {
            builder.append(timestamp, None, Some(b"value"), &[]);
        }
        let options = SealOptions {
            producer_id: producer.id,
            producer_epoch: producer.epoch,
            base_sequence: sequence,
            is_transactional,
            ..SealOptions::default()
        };
        let records = Some(builder.seal(&options).expect("a batch").to_vec());
        let partition_data = vec![produce::request::PartitionData { index: partition, records }];
        let topic = if version >= 13 {
            let topic_id = RawClient::connect(&self.servers).topic_id(&self.topic);
            produce::request::TopicData { topic_id, partition_data, ..Default::default() }
        } else {
            produce::request::TopicData { name: self.topic.clone(), partition_data, ..Default::default() }
        };
        let request =
            ProduceRequest { transactional_id, acks: -1, timeout_ms: 10_000, topic_data: vec![topic] };
        let response = self.leaders.get_mut(&partition).expect("a leader").call(version, &request);
        let partition = &response.responses[0].partition_responses[0];
        (partition.error_code, partition.base_offset)
    }

    /// Writes two records to a partition in the style's way, as soon as the last transaction is complete.
    pub fn write(&mut self, style: Style, producer: ProducerKey, partition: i32, sequence: i32) -> i64 {
        if style == Style::Old {
            self.add_one(producer, partition);
        }
        let version = if style == Style::New { 12 } else { 11 };
        let mut result = (OK, -1);
        eventually(|| {
            result = self.produce(version, producer, partition, sequence);
            !matches!(
                result.0,
                ErrorCode::CONCURRENT_TRANSACTIONS
                    | ErrorCode::NOT_ENOUGH_REPLICAS
                    | ErrorCode::NOT_LEADER_OR_FOLLOWER
                    | ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
            )
        });
        assert_eq!(result.0, OK);
        result.1
    }

    pub fn try_end(&mut self, version: i16, producer: ProducerKey, committed: bool) -> EndTxnResponse {
        let request = EndTxnRequest {
            transactional_id: self.id.clone(),
            producer_id: producer.id,
            producer_epoch: producer.epoch,
            committed,
        };
        self.coordinator.call(version, &request)
    }

    /// Ends the transaction and waits until that is complete; returns the producer of the next one.
    pub fn end(&mut self, style: Style, producer: ProducerKey, committed: bool) -> ProducerKey {
        let response = self.try_end(if style == Style::New { 5 } else { 4 }, producer, committed);
        assert_eq!(response.error_code, OK);
        self.complete();
        match style {
            Style::New => ProducerKey { id: response.producer_id, epoch: response.producer_epoch },
            Style::Old => producer,
        }
    }

    /// Returns the error of EndTxn once the last end is complete.
    pub fn end_error(&mut self, version: i16, producer: ProducerKey, committed: bool) -> ErrorCode {
        self.try_end(version, producer, committed).error_code
    }

    /// Adds partitions in the form that brokers use, or checks that they are in the transaction.
    pub fn add_as_broker(
        &mut self,
        version: i16,
        producer: ProducerKey,
        partitions: &[i32],
        verify_only: bool,
    ) -> Vec<ErrorCode> {
        let topic = add_partitions_to_txn::request::Topic {
            name: self.topic.clone(),
            partitions: partitions.to_vec(),
        };
        let transaction = add_partitions_to_txn::request::Transaction {
            transactional_id: self.id.clone(),
            producer_id: producer.id,
            producer_epoch: producer.epoch,
            verify_only,
            topics: vec![topic],
        };
        let request = AddPartitionsToTxnRequest { transactions: vec![transaction], ..Default::default() };
        let response = self.coordinator.call(version, &request);
        assert_eq!(response.error_code, OK);
        let mut results = response.results_by_transaction[0].topic_results[0].results_by_partition.clone();
        results.sort_by_key(|partition| partition.partition_index);
        results.into_iter().map(|partition| partition.partition_error_code).collect()
    }

    /// Sends abort markers of a version, transaction version, epoch and coordinator epoch to the leader of the first
    /// partition.
    pub fn write_markers(
        &mut self,
        (version, transaction_version, epoch, coordinator_epoch): (i16, i8, i16, i32),
        producer: ProducerKey,
        partitions: &[i32],
    ) -> Vec<ErrorCode> {
        let topic = write_txn_markers::request::Topic {
            name: self.topic.clone(),
            partition_indexes: partitions.to_vec(),
        };
        let marker = write_txn_markers::request::Marker {
            producer_id: producer.id,
            producer_epoch: producer.epoch + epoch,
            transaction_result: false,
            topics: vec![topic],
            coordinator_epoch,
            transaction_version,
        };
        let request = WriteTxnMarkersRequest { markers: vec![marker] };
        let leader = self.leaders.get_mut(&partitions[0]).expect("a leader");
        let response = leader.call(version, &request);
        let mut results = response.markers[0].topics[0].partitions.clone();
        results.sort_by_key(|partition| partition.partition_index);
        results.into_iter().map(|partition| partition.error_code).collect()
    }

    /// Lists the transactions of a producer that pass these filters.
    pub fn list(
        &mut self,
        producer: ProducerKey,
        states: &[&str],
        age_ms: i64,
        pattern: Option<String>,
    ) -> ListTransactionsResponse {
        let request = ListTransactionsRequest {
            state_filters: states.iter().map(|state| (*state).to_owned()).collect(),
            producer_id_filters: vec![producer.id],
            duration_filter: age_ms,
            transactional_id_pattern: pattern,
        };
        self.coordinator.call(2, &request)
    }

    pub fn init_idempotent(&mut self, current: Option<ProducerKey>) -> ProducerKey {
        let current = current.unwrap_or(ProducerKey { id: -1, epoch: -1 });
        let request = InitProducerIdRequest {
            transactional_id: None,
            transaction_timeout_ms: 1000,
            producer_id: current.id,
            producer_epoch: current.epoch,
            ..Default::default()
        };
        let response = self.coordinator.call(4, &request);
        assert_eq!(response.error_code, OK);
        ProducerKey { id: response.producer_id, epoch: response.producer_epoch }
    }

    pub fn describe(&mut self) -> TransactionState {
        let request = DescribeTransactionsRequest { transactional_ids: vec![self.id.clone()] };
        self.coordinator.call(0, &request).transaction_states.remove(0)
    }

    /// Waits until the markers of the last end are written.
    pub fn complete(&mut self) -> String {
        let mut state = String::new();
        assert!(eventually(|| {
            state = self.describe().transaction_state;
            !state.starts_with("Prepare")
        }));
        state
    }

    /// Reads a partition.
    pub fn read(&mut self, isolation_level: i8, partition: i32, offset: i64, max_bytes: i32) -> Read {
        let partitions = vec![fetch::request::Partition {
            partition,
            fetch_offset: offset,
            current_leader_epoch: -1,
            partition_max_bytes: max_bytes,
            ..Default::default()
        }];
        let topics =
            vec![fetch::request::Topic { topic: self.topic.clone(), partitions, ..Default::default() }];
        let request = FetchRequest {
            replica_id: -1,
            max_bytes,
            isolation_level,
            session_epoch: -1,
            topics,
            ..Default::default()
        };
        let response = self.leaders.get_mut(&partition).expect("a leader").call(11, &request);
        let part = &response.responses[0].partitions[0];
        assert_eq!(part.error_code, OK);
        let records = part.records.as_deref().unwrap_or_default();
        let mut batches = Vec::new();
        let mut rest = records;
        while let (Some(base), Some(length)) = (rest.first_chunk::<8>(), rest.get(8..12)) {
            let length = i32::from_be_bytes(length.try_into().expect("4 bytes"));
            let size = usize::try_from(length).expect("a length") + 12;
            if size > rest.len() {
                break;
            }
            batches.push(i64::from_be_bytes(*base));
            rest = &rest[size..];
        }
        Read {
            high_watermark: part.high_watermark,
            last_stable_offset: part.last_stable_offset,
            batches,
            aborted: part
                .aborted_transactions
                .as_ref()
                .map(|all| all.iter().map(|aborted| aborted.first_offset).collect()),
        }
    }

    /// Returns the offset that ListOffsets finds.
    pub fn list_offset(&mut self, isolation_level: i8, partition: i32, timestamp: i64) -> i64 {
        let requested = list_offsets::request::Partition {
            partition_index: partition,
            current_leader_epoch: -1,
            timestamp,
            ..Default::default()
        };
        let topic = list_offsets::request::Topic { name: self.topic.clone(), partitions: vec![requested] };
        let request =
            ListOffsetsRequest { replica_id: -1, isolation_level, topics: vec![topic], ..Default::default() };
        let response = self.leaders.get_mut(&partition).expect("a leader").call(7, &request);
        assert_eq!(response.topics[0].partitions[0].error_code, OK);
        response.topics[0].partitions[0].offset
    }

    pub fn describe_producers(&mut self, partition: i32) -> describe_producers::response::Partition {
        let topic = describe_producers::request::Topic {
            name: self.topic.clone(),
            partition_indexes: vec![partition],
        };
        let request = DescribeProducersRequest { topics: vec![topic] };
        let leader = self.leaders.get_mut(&partition).expect("a leader");
        leader.call(0, &request).topics.remove(0).partitions.remove(0)
    }

    pub fn add_offsets(&mut self, producer: ProducerKey, group: &str) -> ErrorCode {
        let request = AddOffsetsToTxnRequest {
            transactional_id: self.id.clone(),
            producer_id: producer.id,
            producer_epoch: producer.epoch,
            group_id: group.to_owned(),
        };
        self.coordinator.call(3, &request).error_code
    }

    /// Commits an offset of partition 0 in the transaction. The member is ID, instance ID and generation.
    pub fn commit_offset(
        &mut self,
        group: &mut Group,
        version: i16,
        producer: ProducerKey,
        (member_id, instance_id, generation_id): (&str, Option<&str>, i32),
        offset: i64,
    ) -> ErrorCode {
        let partition = txn_offset_commit::request::Partition {
            committed_offset: offset,
            committed_leader_epoch: -1,
            ..Default::default()
        };
        let topics = vec![txn_offset_commit::request::Topic {
            name: self.topic.clone(),
            partitions: vec![partition],
            ..Default::default()
        }];
        let request = TxnOffsetCommitRequest {
            transactional_id: self.id.clone(),
            group_id: group.name.clone(),
            producer_id: producer.id,
            producer_epoch: producer.epoch,
            generation_id_or_member_epoch: generation_id,
            member_id: member_id.to_owned(),
            group_instance_id: instance_id.map(str::to_owned),
            topics,
        };
        let mut error = OK;
        eventually(|| {
            error = group.coordinator.call(version, &request).topics[0].partitions[0].error_code;
            !is_temporary(error)
        });
        error
    }
}

/// A group with its coordinator.
#[derive(Debug)]
pub struct Group {
    pub name: String,
    pub coordinator: RawClient,
    generation: i32,
}

impl Group {
    pub fn new(backend: &Backend) -> Self {
        let name = unused_topic_name();
        Self { coordinator: coordinator(&backend.bootstrap_servers(), 0, &name), name, generation: -1 }
    }

    /// Writes the end of a transaction to the partition of the group's offsets.
    pub fn write_marker(&mut self, partition: i32, producer: ProducerKey, committed: bool) -> ErrorCode {
        let topic = write_txn_markers::request::Topic {
            name: "__consumer_offsets".to_owned(),
            partition_indexes: vec![partition],
        };
        let marker = write_txn_markers::request::Marker {
            producer_id: producer.id,
            producer_epoch: producer.epoch,
            transaction_result: committed,
            topics: vec![topic],
            ..Default::default()
        };
        let request = WriteTxnMarkersRequest { markers: vec![marker] };
        self.coordinator.call(1, &request).markers[0].topics[0].partitions[0].error_code
    }

    /// Joins as the only member of the classic protocol; returns the member ID and the generation.
    pub fn join(&mut self) -> (String, i32) {
        let protocol = join_group::request::Protocol { name: "p".to_owned(), metadata: vec![0] };
        let mut request = JoinGroupRequest {
            group_id: self.name.clone(),
            session_timeout_ms: 30_000,
            rebalance_timeout_ms: 30_000,
            protocol_type: "consumer".to_owned(),
            protocols: vec![protocol],
            ..Default::default()
        };
        let joined = eventually(|| {
            let response = self.coordinator.call(7, &request);
            request.member_id = response.member_id;
            self.generation = response.generation_id;
            response.error_code == OK
        });
        assert!(joined, "a member joins");
        (request.member_id, self.generation)
    }

    /// Joins as the only member of the consumer protocol; returns the member ID and the epoch.
    pub fn join_with_heartbeats(&mut self, topic: &str) -> (String, i32) {
        let member = "AAAAAAAAAAAAAAAAAAAAAQ".to_owned();
        let request = ConsumerGroupHeartbeatRequest {
            group_id: self.name.clone(),
            member_id: member.clone(),
            rebalance_timeout_ms: 30_000,
            subscribed_topic_names: Some(vec![topic.to_owned()]),
            topic_partitions: Some(Vec::new()),
            ..Default::default()
        };
        let joined = eventually(|| {
            let response = self.coordinator.call(1, &request);
            self.generation = response.member_epoch;
            response.error_code == OK
        });
        assert!(joined, "a member joins");
        (member, self.generation)
    }

    /// Returns the committed offset of partition 0 of a topic.
    pub fn committed(&mut self, topic: &str, require_stable: bool) -> (ErrorCode, i64) {
        let topics = vec![offset_fetch::request::OffsetFetchTopic {
            name: topic.to_owned(),
            partition_indexes: vec![0],
        }];
        let request = OffsetFetchRequest {
            group_id: self.name.clone(),
            topics: Some(topics),
            require_stable,
            ..Default::default()
        };
        let mut response = self.coordinator.call(7, &request);
        eventually(|| {
            if is_temporary(response.error_code) {
                response = self.coordinator.call(7, &request);
            }
            !is_temporary(response.error_code)
        });
        assert_eq!(response.error_code, OK);
        let partition = &response.topics[0].partitions[0];
        (partition.error_code, partition.committed_offset)
    }
}
