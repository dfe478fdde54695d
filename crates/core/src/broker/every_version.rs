//! Every request that this client sends, in every version that it may choose, with the fields that its callers set.
//!
//! The encoder omits a field that a version does not have if the protocol marks it as ignorable. Any other field that
//! is set is an error there: the caller has to omit it, or to require newer versions.

mod administration;
mod streams_members;

use std::{collections::BTreeMap, ops::RangeInclusive, sync::Arc, time::Duration};

use ottla_protocol::{
    api::ApiKey,
    batch::{ChunkPool, RecordBatchBuilder, SealOptions},
    compress::Compression,
    generated::{streams_group_topology_description_update as description, *},
    primitive::Reader,
    uuid::Uuid,
    vocabulary::{LeaderEpoch, NodeId, TopicPartition},
};

use crate::{
    admin::{
        AdminCall, AdminCalls,
        configs::{
            ConfigChange, ConfigOperation, ConfigResource, ResourceKind, change_configs, describe_configs,
            replace_configs,
        },
        describe::{WhichTopics, describe, describe_operations},
        groups::{
            GroupState, GroupType,
            delete::{MemberToRemove, delete_group, remove_members},
            describe::describe_group,
            list::{GroupFilter, list_groups},
            offsets::{alter_group_offsets, delete_group_offsets, list_group_offsets},
        },
        records::delete_records,
        topic_ids::describe_topics_by_id,
        topics::{NewPartitions, NewTopic, create_partitions, create_topics, delete_topics},
        transactions::{
            TransactionState,
            abort::{HangingTransaction, abort_transaction},
            describe::describe_transaction,
            list::{TransactionFilter, list_transactions},
            producers::describe_producers,
        },
    },
    cluster::{
        ClusterCore, ClusterOutput, ClusterSettings,
        command::{Command, CommandQueue},
        coordinators::Coordinators,
    },
    completion::{Completion, completion},
    config::IsolationLevel,
    connection::{
        Response,
        frame::Frame,
        inflight::{InFlight, Payload, RequestTag, SegmentedFrame, WriteCursor},
        versions::{SENT, is_telemetry},
    },
    contract::{
        metadata::{Metadata, Node, PartitionMetadata, TopicMetadata},
        part::{MetadataChanges, Need, Needs, Part, RequestOwner},
        route::{CoordinatorKey, EncodeBody, RoutedRequest},
    },
    error::{Error, ErrorKind},
    event::EventQueue,
    fetch::{
        epochs::{EpochChecks, EpochQuestion},
        request::{Asked, FIRST_WITH_SESSIONS, FetchRequestBuilder},
        session::ForgottenPartition,
        settings::ConsumerSettings,
    },
    group,
    machine::Instant,
    message::{ConnectionReport, ToBroker, ToCluster},
    offsets::{
        committed::{CommittedOffsets, GroupCall, GroupCallKind, GroupOffset},
        list_offsets::{OffsetQuery, OffsetSpec},
    },
    produce::{
        accumulator::{Accumulator, OpenBatch},
        batch::ReadyBatch,
        budget::Budget,
        producer_id::{ProducerId, ProducerIdOutcome, ProducerIdentity, SharedIdentity},
        report::{DeliveryBatch, DeliverySink, Tags},
        request::{BatchTarget, ProduceBatch, ProduceFrame, RequestHead},
        settings::ProducerSettings,
        shared::ProducerShared,
    },
    rng::Rng,
    share,
    txn::requests::sample_requests,
    wake::WakeHandle,
};

const NOW: Instant = Instant::from_nanos(1_000_000_000);
const TIMEOUT: Duration = Duration::from_secs(30);
const TOPIC_ID: Uuid = Uuid([1; 16]);

/// A request as a caller builds it: its description, the versions that the caller accepts, and its encoder.
struct Case {
    what: &'static str,
    versions: RangeInclusive<i16>,
    encode: EncodeBody,
}

impl Case {
    fn new(what: &'static str, request: RoutedRequest) -> Self {
        Self { what, versions: request.versions, encode: request.encode }
    }
}

#[test]
fn every_request_is_encoded_in_every_version_that_can_be_chosen() {
    for api in SENT {
        let cases = if is_telemetry(*api) { telemetry_cases(*api) } else { cases(*api) };
        assert!(!cases.is_empty(), "{} is sent, and needs a case here", api.name());
        for Case { what, versions, encode } in cases {
            let known = api.versions();
            assert!(known.contains(versions.start()) && known.contains(versions.end()), "{what}");
            for version in versions {
                let mut bytes = Vec::new();
                if let Err(error) = encode(version, &mut bytes) {
                    panic!("{} v{version}, {what}: {error}", api.name());
                }
                assert_eq!(recoded(*api, version, &bytes), bytes, "{} v{version}, {what}", api.name());
            }
        }
    }
}

#[test]
fn offset_fetch_asks_for_stable_offsets_from_version_7_on() {
    for Case { versions, encode, .. } in cases(ApiKey::OffsetFetch) {
        for version in versions {
            let mut bytes = Vec::new();
            encode(version, &mut bytes).unwrap();
            let request =
                offset_fetch::OffsetFetchRequest::decode(&mut Reader::new(&bytes), version).unwrap();
            assert_eq!(request.require_stable, version >= 7, "v{version}");
        }
    }
}

#[test]
fn topic_validation_is_not_sent_in_version_0_which_creates_topics() {
    let first = |validate_only| {
        let call = create_topics(vec![NewTopic::new("a", 1, 1)], validate_only, TIMEOUT, done());
        *admin("", call).remove(0).versions.start()
    };
    assert_eq!((first(false), first(true)), (0, 1));
}

fn telemetry_cases(api: ApiKey) -> Vec<Case> {
    let requests = crate::telemetry::sample_requests().into_iter();
    requests
        .filter(|request| request.api == api)
        .map(|request| Case::new("client metrics", request))
        .collect()
}

/// Decodes a body as a broker does and encodes it again.
fn recoded(api: ApiKey, version: i16, bytes: &[u8]) -> Vec<u8> {
    let (mut reader, mut out) = (Reader::new(bytes), Vec::new());
    macro_rules! recode {
        ($($api:ident $type:path,)*) => {
            match api {
                $(ApiKey::$api => {
                    let request = <$type>::decode(&mut reader, version).expect("a broker can decode it");
                    reader.finish().expect("it is read to its end");
                    request.encode(version, &mut out).expect("it can be encoded again");
                })*
                other => panic!("{} needs a row here", other.name()),
            }
        };
    }
    recode! {
        Produce produce::ProduceRequest,
        Fetch fetch::FetchRequest,
        ListOffsets list_offsets::ListOffsetsRequest,
        Metadata metadata::MetadataRequest,
        OffsetCommit offset_commit::OffsetCommitRequest,
        OffsetFetch offset_fetch::OffsetFetchRequest,
        FindCoordinator find_coordinator::FindCoordinatorRequest,
        JoinGroup join_group::JoinGroupRequest,
        Heartbeat heartbeat::HeartbeatRequest,
        LeaveGroup leave_group::LeaveGroupRequest,
        SyncGroup sync_group::SyncGroupRequest,
        SaslHandshake sasl_handshake::SaslHandshakeRequest,
        SaslAuthenticate sasl_authenticate::SaslAuthenticateRequest,
        ApiVersions api_versions::ApiVersionsRequest,
        CreateTopics create_topics::CreateTopicsRequest,
        DeleteTopics delete_topics::DeleteTopicsRequest,
        DeleteRecords delete_records::DeleteRecordsRequest,
        InitProducerId init_producer_id::InitProducerIdRequest,
        OffsetForLeaderEpoch offset_for_leader_epoch::OffsetForLeaderEpochRequest,
        DescribeConfigs describe_configs::DescribeConfigsRequest,
        AlterConfigs alter_configs::AlterConfigsRequest,
        CreatePartitions create_partitions::CreatePartitionsRequest,
        IncrementalAlterConfigs incremental_alter_configs::IncrementalAlterConfigsRequest,
        DescribeGroups describe_groups::DescribeGroupsRequest,
        ListGroups list_groups::ListGroupsRequest, DeleteGroups delete_groups::DeleteGroupsRequest,
        OffsetDelete offset_delete::OffsetDeleteRequest,
        ConsumerGroupDescribe consumer_group_describe::ConsumerGroupDescribeRequest,
        ConsumerGroupHeartbeat consumer_group_heartbeat::ConsumerGroupHeartbeatRequest,
        ShareGroupHeartbeat share_group_heartbeat::ShareGroupHeartbeatRequest,
        ShareFetch share_fetch::ShareFetchRequest,
        ShareAcknowledge share_acknowledge::ShareAcknowledgeRequest,
        ShareGroupDescribe share_group_describe::ShareGroupDescribeRequest,
        StreamsGroupHeartbeat streams_group_heartbeat::StreamsGroupHeartbeatRequest,
        StreamsGroupDescribe streams_group_describe::StreamsGroupDescribeRequest,
        StreamsGroupTopologyDescriptionUpdate description::StreamsGroupTopologyDescriptionUpdateRequest,
        DescribeShareGroupOffsets describe_share_group_offsets::DescribeShareGroupOffsetsRequest,
        AlterShareGroupOffsets alter_share_group_offsets::AlterShareGroupOffsetsRequest,
        DeleteShareGroupOffsets delete_share_group_offsets::DeleteShareGroupOffsetsRequest,
        GetTelemetrySubscriptions get_telemetry_subscriptions::GetTelemetrySubscriptionsRequest,
        PushTelemetry push_telemetry::PushTelemetryRequest,
        AddPartitionsToTxn add_partitions_to_txn::AddPartitionsToTxnRequest,
        AddOffsetsToTxn add_offsets_to_txn::AddOffsetsToTxnRequest, EndTxn end_txn::EndTxnRequest,
        TxnOffsetCommit txn_offset_commit::TxnOffsetCommitRequest,
        WriteTxnMarkers write_txn_markers::WriteTxnMarkersRequest,
        DescribeProducers describe_producers::DescribeProducersRequest,
        DescribeTransactions describe_transactions::DescribeTransactionsRequest,
        ListTransactions list_transactions::ListTransactionsRequest,
        DescribeAcls describe_acls::DescribeAclsRequest,
        CreateAcls create_acls::CreateAclsRequest,
        DeleteAcls delete_acls::DeleteAclsRequest,
        AlterReplicaLogDirs alter_replica_log_dirs::AlterReplicaLogDirsRequest,
        DescribeLogDirs describe_log_dirs::DescribeLogDirsRequest,
        CreateDelegationToken create_delegation_token::CreateDelegationTokenRequest,
        RenewDelegationToken renew_delegation_token::RenewDelegationTokenRequest,
        ExpireDelegationToken expire_delegation_token::ExpireDelegationTokenRequest,
        DescribeDelegationToken describe_delegation_token::DescribeDelegationTokenRequest,
        ElectLeaders elect_leaders::ElectLeadersRequest,
        AlterPartitionReassignments alter_partition_reassignments::AlterPartitionReassignmentsRequest,
        ListPartitionReassignments list_partition_reassignments::ListPartitionReassignmentsRequest,
        DescribeClientQuotas describe_client_quotas::DescribeClientQuotasRequest,
        AlterClientQuotas alter_client_quotas::AlterClientQuotasRequest,
        DescribeUserScramCredentials describe_user_scram_credentials::DescribeUserScramCredentialsRequest,
        AlterUserScramCredentials alter_user_scram_credentials::AlterUserScramCredentialsRequest,
        DescribeCluster describe_cluster::DescribeClusterRequest,
        DescribeTopicPartitions describe_topic_partitions::DescribeTopicPartitionsRequest,
        DescribeQuorum describe_quorum::DescribeQuorumRequest,
        UpdateFeatures update_features::UpdateFeaturesRequest,
        UnregisterBroker unregister_broker::UnregisterBrokerRequest,
        UnregisterController unregister_controller::UnregisterControllerRequest,
        ListConfigResources list_config_resources::ListConfigResourcesRequest,
        AddRaftVoter add_raft_voter::AddRaftVoterRequest,
        RemoveRaftVoter remove_raft_voter::RemoveRaftVoterRequest,
    }
    out
}

/// Returns the requests of an API with every field that some caller sets.
fn cases(api: ApiKey) -> Vec<Case> {
    match api {
        ApiKey::Produce => produce_cases(),
        ApiKey::Fetch => fetch_cases(),
        ApiKey::Metadata => metadata_cases(),
        ApiKey::OffsetCommit | ApiKey::OffsetFetch => {
            group_cases(api).into_iter().chain(administration::group_cases(api)).collect()
        }
        ApiKey::FindCoordinator => {
            let mut coordinators = Coordinators::new(TIMEOUT, (TIMEOUT, TIMEOUT), Rng::from_seed(1));
            coordinators.find(&CoordinatorKey::group("g"));
            vec![Case::new("a group", coordinators.poll_request().expect("a request"))]
        }
        ApiKey::JoinGroup
        | ApiKey::SyncGroup
        | ApiKey::Heartbeat
        | ApiKey::LeaveGroup
        | ApiKey::ConsumerGroupHeartbeat => {
            let requests = [("a dynamic member", None), ("a static member", Some("i"))].into_iter();
            let requests = requests.flat_map(|(what, instance)| {
                group::samples(instance).into_iter().map(move |request| (what, request))
            });
            requests
                .filter(|(_, request)| request.api == api)
                .map(|(what, request)| Case::new(what, request))
                .chain(administration::group_cases(api))
                .collect()
        }
        ApiKey::ApiVersions => api_versions_cases(),
        ApiKey::SaslHandshake => vec![Case {
            what: "the mechanism",
            versions: api.versions(),
            encode: Box::new(|version, out| {
                sasl_handshake::SaslHandshakeRequest { mechanism: "PLAIN".into() }.encode(version, out)
            }),
        }],
        ApiKey::SaslAuthenticate => vec![Case {
            what: "a message",
            versions: api.versions(),
            encode: Box::new(|version, out| {
                sasl_authenticate::SaslAuthenticateRequest { auth_bytes: vec![0, 1] }.encode(version, out)
            }),
        }],
        ApiKey::InitProducerId => identity_cases().into_iter().chain(transaction_cases(api)).collect(),
        ApiKey::AddPartitionsToTxn | ApiKey::AddOffsetsToTxn | ApiKey::TxnOffsetCommit | ApiKey::EndTxn => {
            transaction_cases(api)
        }
        ApiKey::OffsetForLeaderEpoch => {
            let mut checks = EpochChecks::new(TIMEOUT);
            let epoch = |number| LeaderEpoch::from_wire(number).expect("an epoch");
            let key = TopicPartition::new("t", 0);
            let question = EpochQuestion { key, leader_epoch: Some(epoch(5)), position_epoch: epoch(4) };
            checks.start(NodeId::from_wire(1).expect("a node"), question);
            let (_, _, request) = checks.poll_request().expect("a request");
            vec![Case::new("epochs", request)]
        }
        ApiKey::ShareGroupHeartbeat => {
            let request = share_group_heartbeat::ShareGroupHeartbeatRequest {
                group_id: "g".into(),
                member_id: "m".into(),
                member_epoch: 0,
                rack_id: Some("r".into()),
                subscribed_topic_names: Some(vec!["t".into()]),
            };
            vec![Case::new("a member that joins", share::heartbeat_sample(request, TIMEOUT))]
        }
        ApiKey::StreamsGroupHeartbeat => vec![streams_members::heartbeat()],
        ApiKey::StreamsGroupTopologyDescriptionUpdate => vec![streams_members::description()],
        ApiKey::ShareFetch => {
            let encode = share::fetcher::samples(api, false);
            vec![Case { what: "records, and acknowledgements", versions: api.versions(), encode }]
        }
        ApiKey::ShareAcknowledge => {
            let case = |what, versions, renews| {
                let encode = share::fetcher::samples(api, renews);
                Case { what, versions, encode }
            };
            vec![case("acknowledgements", api.versions(), false), case("a renewal", 2..=2, true)]
        }
        _ => admin_cases(api),
    }
}

/// Creates a completion whose result is ignored.
fn done<T>() -> Completion<T> {
    completion().0
}

/// Returns the requests of an admin call in a cluster whose broker 1 leads partition 0 of topic `t`.
fn admin(what: &'static str, call: AdminCall) -> Vec<Case> {
    let mut calls = AdminCalls::new(TIMEOUT, (TIMEOUT, TIMEOUT), Rng::from_seed(1));
    calls.start(NOW, call);
    calls.handle_metadata(NOW, &cluster(), &MetadataChanges::default());
    calls.advance(NOW, &cluster());
    let needs = std::iter::from_fn(|| calls.poll_need());
    let requests = needs.filter_map(|need| match need {
        Need::Request { request, .. } => Some(Case::new(what, request)),
        _ => None,
    });
    requests.collect()
}

fn cluster() -> Metadata {
    let node = Node { host: "a".into(), port: 9092, rack: None };
    let partition = PartitionMetadata {
        leader: NodeId::from_wire(1),
        leader_epoch: LeaderEpoch::from_wire(3),
        ..PartitionMetadata::default()
    };
    let topic = TopicMetadata { partitions: vec![partition], ..TopicMetadata::default() };
    Metadata {
        controller_id: NodeId::from_wire(1),
        nodes: NodeId::from_wire(1).map(|id| (id, node)).into_iter().collect(),
        topics: [(Arc::from("t"), topic)].into(),
        ..Metadata::default()
    }
}

fn admin_cases(api: ApiKey) -> Vec<Case> {
    let topics = || {
        let plain = NewTopic::new("a", -1, -1);
        let assigned = NewTopic {
            assignments: BTreeMap::from([(0, vec![1, 2])]),
            configs: [("retention.ms".to_owned(), Some("1".to_owned()))].into(),
            ..NewTopic::new("b", 1, 1)
        };
        vec![plain, assigned]
    };
    let more = || NewPartitions { topic: "t".into(), count: 2, assignments: vec![vec![1]] };
    let resources = || {
        let kinds = [(ResourceKind::TOPIC, "t"), (ResourceKind::BROKER, "1")];
        kinds.map(|(kind, name)| ConfigResource { kind, name: name.into() }).to_vec()
    };
    let changes = || {
        let set = ConfigChange { name: "a".into(), operation: ConfigOperation::Set, value: Some("b".into()) };
        let delete = ConfigChange { name: "c".into(), operation: ConfigOperation::Delete, value: None };
        resources().into_iter().map(|resource| (resource, vec![set.clone(), delete.clone()])).collect()
    };
    match api {
        ApiKey::CreateTopics => [false, true]
            .into_iter()
            .flat_map(|validate| admin("topics", create_topics(topics(), validate, TIMEOUT, done())))
            .collect(),
        ApiKey::DeleteTopics => admin("topics", delete_topics(vec!["a".into()], TIMEOUT, done())),
        ApiKey::CreatePartitions => {
            admin("validation", create_partitions(vec![more()], true, TIMEOUT, done()))
        }
        ApiKey::DeleteRecords => {
            admin("records", delete_records(vec![(("t", 0).into(), 7)], TIMEOUT, done()))
        }
        ApiKey::DescribeConfigs => admin("resources", describe_configs(resources(), TIMEOUT, done())),
        ApiKey::IncrementalAlterConfigs => {
            admin("validation", change_configs(changes(), true, TIMEOUT, done()))
        }
        ApiKey::AlterConfigs => admin("validation", replace_configs(changes(), true, TIMEOUT, done())),
        ApiKey::ListOffsets => list_offsets_cases(),
        ApiKey::WriteTxnMarkers
        | ApiKey::DescribeProducers
        | ApiKey::DescribeTransactions
        | ApiKey::ListTransactions => transaction_admin_cases(api),
        _ => match administration::cases(api) {
            cases if cases.is_empty() => administration::group_cases(api),
            cases => cases,
        },
    }
}

fn api_versions_cases() -> Vec<Case> {
    let api = ApiKey::ApiVersions;
    [Case {
        what: "the first request of a connection",
        versions: api.versions(),
        encode: Box::new(|version, out| {
            let request = api_versions::ApiVersionsRequest {
                client_software_name: "ottla".into(),
                client_software_version: "1".into(),
                ..api_versions::ApiVersionsRequest::default()
            };
            request.encode(version, out)
        }),
    }]
    .into_iter()
    .chain(administration::cases(api))
    .collect()
}

/// Returns the requests of an API that administrative calls about transactions send.
fn transaction_admin_cases(api: ApiKey) -> Vec<Case> {
    match api {
        ApiKey::WriteTxnMarkers => {
            let (topic, coordinator_epoch) = ("t".into(), Some(3));
            let hanging = HangingTransaction {
                topic,
                partition: 0,
                producer_id: 7,
                producer_epoch: 2,
                coordinator_epoch,
            };
            admin("abort", abort_transaction(hanging, TIMEOUT, done()))
        }
        ApiKey::DescribeProducers => {
            admin("producers", describe_producers(vec![("t", 0).into()], TIMEOUT, done()))
        }
        ApiKey::DescribeTransactions => admin("description", describe_transaction("id", TIMEOUT, done())),
        _ => {
            let all = TransactionFilter::default();
            let states = vec![TransactionState::Ongoing];
            let filtered = TransactionFilter { states, producer_ids: vec![7], ..all.clone() };
            let old = TransactionFilter { running_longer_than: Some(TIMEOUT), ..filtered.clone() };
            let matching = TransactionFilter { id_pattern: Some("a.*".into()), ..all.clone() };
            let filters = [("all", all), ("states", filtered), ("durations", old), ("pattern", matching)];
            let cases = filters.into_iter();
            cases.flat_map(|(what, filter)| admin(what, list_transactions(filter, TIMEOUT, done()))).collect()
        }
    }
}

/// Returns the requests of a call whose first request the broker does not support.
fn admin_after_refusal(what: &'static str, call: AdminCall) -> Vec<Case> {
    let mut calls = AdminCalls::new(TIMEOUT, (TIMEOUT, TIMEOUT), Rng::from_seed(1));
    calls.start(NOW, call);
    let mut cases = Vec::new();
    for _ in 0..2 {
        calls.advance(NOW, &cluster());
        while let Some(need) = calls.poll_need() {
            let Need::Request { request, owner: RequestOwner::Admin(owner), .. } = need else { continue };
            cases.push(Case::new(what, request));
            calls.handle_response(NOW, owner, Err(Error::new(ErrorKind::UnsupportedVersion, "")));
        }
    }
    cases
}

fn list_offsets_cases() -> Vec<Case> {
    let specs = [
        OffsetSpec::Earliest,
        OffsetSpec::Latest,
        OffsetSpec::Timestamp(5),
        OffsetSpec::MaxTimestamp,
        OffsetSpec::EarliestLocal,
        OffsetSpec::LatestTiered,
        OffsetSpec::EarliestPendingUpload,
    ];
    let queries = specs.into_iter().flat_map(|spec| [(spec, false), (spec, true)]);
    let cases = queries.flat_map(|(spec, read_committed)| {
        let questions = vec![(("t", 0).into(), spec)];
        let query = OffsetQuery { questions, timeout: TIMEOUT, read_committed, refusals: None };
        admin("offsets", AdminCall::list_offsets(query, done()))
    });
    cases.collect()
}

/// Returns the client's own metadata requests, and those of calls that describe the cluster.
fn metadata_cases() -> Vec<Case> {
    let these = || WhichTopics::These(vec!["t".into()]);
    let mut cases = Vec::new();
    for which in [WhichTopics::All, WhichTopics::None, these()] {
        cases.extend(admin("a description", describe(which.clone(), TIMEOUT, done())));
        let with_operations = describe_operations(which, true, TIMEOUT, done());
        cases.extend(admin("a description with operations", with_operations));
    }
    let by_id = describe_topics_by_id(vec![TOPIC_ID], true, TIMEOUT, done());
    cases.extend(admin("topics by ID", by_id));
    cases.push(own_metadata_request("topics in use", ClusterSettings::default(), true));
    cases.push(own_metadata_request("a topic that is only asked about", ClusterSettings::default(), false));
    let refused = ClusterSettings { auto_create_topics: false, ..ClusterSettings::default() };
    cases.push(own_metadata_request("no automatic creation", refused, true));
    cases
}

struct NoReports;

impl DeliverySink for NoReports {
    fn deliver(&self, _batch: DeliveryBatch) {}
}

/// Returns the first Metadata request of a client that produces to a topic, or that queries a topic's offsets.
fn own_metadata_request(what: &'static str, settings: ClusterSettings, produces: bool) -> Case {
    let settings = ClusterSettings { bootstrap: vec![("seed".into(), 9092)], ..settings };
    let (commands, reader) = CommandQueue::new(WakeHandle::noop());
    let producer = Arc::new(ProducerShared::new(
        ProducerSettings { idempotence: false, ..ProducerSettings::default() },
        Arc::new(NoReports),
        Rng::from_seed(1),
    ));
    let command = if produces {
        Command::Topic(producer.topic("t").0)
    } else {
        let questions = vec![(("t", 0).into(), OffsetSpec::Latest)];
        let query = OffsetQuery { questions, timeout: TIMEOUT, read_committed: false, refusals: None };
        Command::Admin(AdminCall::list_offsets(query, done()))
    };
    let events = Arc::new(EventQueue::default());
    let mut core = ClusterCore::new(settings, Some(producer), None, reader, events, Rng::from_seed(2));
    commands.push(command);
    core.handle_wake(NOW);
    loop {
        match core.poll_output().expect("it asks for metadata") {
            ClusterOutput::StartBroker { key, .. } => {
                core.handle_message(NOW, key, ToCluster::Connection(ConnectionReport::Up))
            }
            ClusterOutput::ToBroker(_, ToBroker::Request(request)) if request.api == ApiKey::Metadata => {
                return Case { what, versions: request.versions, encode: request.encode };
            }
            _ => {}
        }
    }
}

fn response(api: ApiKey, version: i16, bytes: Vec<u8>) -> Response {
    let request = InFlight {
        correlation_id: 1,
        api,
        version,
        tag: RequestTag::Cluster(0),
        payload: Payload::Bytes(Vec::new()),
        expects_response: true,
        queued_at: NOW,
        written_at: NOW,
        timeout: TIMEOUT,
    };
    Response { request, frame: Frame { len: bytes.len(), bytes }, body: 0 }
}

/// Returns the requests of a consumer with `isolation.level=read_committed`.
fn group_cases(api: ApiKey) -> Vec<Case> {
    let machine = || CommittedOffsets::new("g".into(), true, TIMEOUT, (TIMEOUT, TIMEOUT));
    let offset = GroupOffset {
        leader_epoch: LeaderEpoch::from_wire(3),
        metadata: "what the application says".into(),
        ..GroupOffset::new("t", 0, 7)
    };
    let commit = GroupCallKind::Commit(vec![offset], done());
    let committed = GroupCallKind::Committed(vec![TopicPartition::new("t", 0)], done());
    let mut cases = Vec::new();
    for (what, call) in [("a position", None), ("a commit", Some(commit)), ("committed", Some(committed))] {
        let mut machine = machine();
        match call {
            Some(kind) => machine.call(NOW, GroupCall { timeout: TIMEOUT, kind }),
            None => drop(machine.start(TopicPartition::new("t", 0))),
        }
        let (_, request) = machine.poll_request(NOW).expect("a request to the coordinator");
        cases.push((request.api, Case::new(what, request)));
    }
    cases.into_iter().filter(|(of, _)| *of == api).map(|(_, case)| case).collect()
}

/// Returns the first InitProducerId request, and the one for a new producer ID after the last epoch of the first.
fn identity_cases() -> Vec<Case> {
    let mut producer_id = ProducerId::new(TIMEOUT, TIMEOUT);
    let shared = SharedIdentity::default();
    let first = producer_id.poll_request(NOW, TIMEOUT).expect("the first one");
    let mut body = Vec::new();
    let given = init_producer_id::InitProducerIdResponse {
        producer_id: 9,
        producer_epoch: i16::MAX,
        ..Default::default()
    };
    given.encode(4, &mut body).expect("it can be encoded");
    let response = response(ApiKey::InitProducerId, 4, body);
    let verdict = producer_id.handle_response(NOW, Ok(response), &shared, &mut Rng::from_seed(1));
    assert!(matches!(verdict, ProducerIdOutcome::Known), "{verdict:?}");
    producer_id.renew(NOW, ProducerIdentity { id: 9, epoch: i16::MAX }, &shared);
    let second = producer_id.poll_request(NOW, TIMEOUT).expect("the second one");
    vec![Case::new("the first identity", first), Case::new("an identity after the last epoch", second)]
}

/// Returns the requests of a transaction.
fn transaction_cases(api: ApiKey) -> Vec<Case> {
    let requests = sample_requests().into_iter().filter(|request| request.api == api);
    requests.map(|request| Case::new("a transaction", request)).collect()
}

/// Returns a Fetch request with every field set, in a session that removes a partition.
fn fetch_cases() -> Vec<Case> {
    let encode = |version: i16, out: &mut Vec<u8>| {
        let settings = ConsumerSettings {
            isolation_level: IsolationLevel::ReadCommitted,
            rack: "rack".into(),
            ..ConsumerSettings::default()
        };
        // As in the fetcher: versions without fetch sessions have no session ID.
        let has_sessions = version >= FIRST_WITH_SESSIONS;
        let head = if has_sessions { (5, 6) } else { (0, -1) };
        let mut builder = FetchRequestBuilder::new(&settings, head, 1000);
        let asked = Asked { offset: 7, leader_epoch: LeaderEpoch::from_wire(3), max_bytes: 100 };
        builder.add(&TopicPartition::new("t", 0), TOPIC_ID, asked);
        if has_sessions {
            let key = TopicPartition::new("t", 2);
            builder.forget(vec![ForgottenPartition { key, topic_id: TOPIC_ID, end: None }]);
        }
        builder.finish().encode(version, out)
    };
    vec![Case { what: "everything set", versions: ApiKey::Fetch.versions(), encode: Box::new(encode) }]
}

/// Returns Produce requests with one batch, for each value of `acks`.
fn produce_cases() -> Vec<Case> {
    let case = |acks: i16| Case {
        what: "a batch",
        versions: ApiKey::Produce.versions(),
        encode: Box::new(move |version, out| {
            let head = RequestHead { version, acks, timeout_ms: 1000, transactional_id: None };
            let target = BatchTarget { topic: "t", partition: 0, compression: (Compression::None, None) };
            let frame = ProduceFrame::build(vec![0; 4], head, &[target], vec![batch()]);
            let frame = frame.map_err(|failed| failed.1)?;
            let mut slices = [std::io::IoSlice::new(&[]); 8];
            let count = frame.fill(WriteCursor::default(), &mut slices);
            let bytes: Vec<u8> = slices[..count].iter().flat_map(|slice| slice.iter().copied()).collect();
            out.extend_from_slice(&bytes[4..]);
            Ok(())
        }),
    };
    [-1, 0, 1].map(case).into()
}

fn batch() -> ProduceBatch {
    let mut builder = RecordBatchBuilder::new(&ChunkPool::new());
    builder.append(0, None, Some(b"value"), &[]);
    let open = OpenBatch {
        builder,
        tags: Tags::Opaque(vec![1]),
        tracker: None,
        since: NOW,
        charged_bytes: 5,
        ages: Vec::new(),
    };
    let keeper = Arc::new(Accumulator::new("t".into(), 0, Arc::new(Budget::new(0, 1000))));
    let sealed = ReadyBatch::seal(open, 0, &SealOptions::default(), &keeper);
    let batch = sealed.unwrap_or_else(|failed| panic!("{}", failed.1));
    ProduceBatch { slot: 0, topic_id: TOPIC_ID, batch, reported: false }
}
