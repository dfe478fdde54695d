//! The broker's side of the consumer protocol (KIP-848), tested with a minimal client: the embedded brokers and Apache
//! Kafka must respond alike.

mod protocol_changes;

use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        consumer_group_describe::ConsumerGroupDescribeRequest,
        consumer_group_heartbeat::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, request},
        find_coordinator::FindCoordinatorRequest,
        offset_commit::{self, OffsetCommitRequest},
    },
    uuid::Uuid,
};
use ottla_scenarios::{Backend, eventually, raw::RawClient, run_on_all, unused_topic_name};

run_on_all!(
    partitions_are_revoked_before_another_member_gets_them,
    returning_static_member_gets_its_partitions_back,
    invalid_heartbeats_are_refused,
);

/// A topic of four partitions, a group of the same name, and a connection to its coordinator.
struct Group {
    client: RawClient,
    name: String,
    topic: Uuid,
}

/// A member's own state.
struct Member {
    id: &'static str,
    instance_id: Option<&'static str>,
    epoch: i32,
    /// The last assignment that it received.
    assigned: Vec<i32>,
    /// What it has.
    owned: Vec<i32>,
}

impl Group {
    fn on(backend: &Backend) -> Self {
        let name = backend.topic(4);
        let client = coordinator_of(backend, &name);
        let topic = RawClient::connect(&backend.bootstrap_servers()).topic_id(&name);
        Self { client, name, topic }
    }

    fn heartbeat(&mut self, member: &Member, epoch: i32) -> ConsumerGroupHeartbeatResponse {
        let owned = request::TopicPartition { topic_id: self.topic, partitions: member.owned.clone() };
        let owned = if member.owned.is_empty() { Vec::new() } else { vec![owned] };
        let joins = epoch == 0;
        let request = ConsumerGroupHeartbeatRequest {
            group_id: self.name.clone(),
            member_id: member.id.to_owned(),
            member_epoch: epoch,
            instance_id: member.instance_id.map(str::to_owned),
            rebalance_timeout_ms: if joins { 60_000 } else { -1 },
            subscribed_topic_names: joins.then(|| vec![self.name.clone()]),
            topic_partitions: (epoch >= 0).then_some(owned),
            ..Default::default()
        };
        self.client.call(1, &request)
    }

    /// Sends a heartbeat that must succeed, and updates the member from the response.
    fn beat(&mut self, member: &mut Member) {
        let response = self.heartbeat(member, member.epoch);
        assert_eq!(response.error_code, ErrorCode::NONE, "{}: {:?}", member.id, response.error_message);
        assert_eq!(response.member_id.as_deref(), Some(member.id));
        member.epoch = response.member_epoch;
        if let Some(assignment) = response.assignment {
            let topics = assignment.topic_partitions.into_iter();
            member.assigned = topics.flat_map(|topic| topic.partitions).collect();
            member.assigned.sort_unstable();
        }
    }

    /// Sends heartbeats until the member is assigned this number of partitions. Its owned partitions don't change.
    fn beat_until(&mut self, member: &mut Member, count: usize) {
        let reported = eventually(|| {
            self.beat(member);
            member.assigned.len() == count
        });
        assert!(reported, "{} must be assigned {count} partitions, and has {:?}", member.id, member.assigned);
    }

    fn describe(&mut self) -> (String, i32, i32) {
        let group_ids = vec![self.name.clone()];
        let request = ConsumerGroupDescribeRequest { group_ids, ..Default::default() };
        let group = self.client.call(1, &request).groups.remove(0);
        assert_eq!(group.error_code, ErrorCode::NONE);
        (group.group_state, group.group_epoch, group.assignment_epoch)
    }

    fn commit(&mut self, member_id: &str, epoch: i32, partition: i32) -> ErrorCode {
        let partition = offset_commit::request::Partition {
            partition_index: partition,
            committed_offset: 5,
            ..Default::default()
        };
        let topic = offset_commit::request::Topic {
            name: self.name.clone(),
            partitions: vec![partition],
            ..Default::default()
        };
        let request = OffsetCommitRequest {
            group_id: self.name.clone(),
            generation_id_or_member_epoch: epoch,
            member_id: member_id.to_owned(),
            topics: vec![topic],
            ..Default::default()
        };
        self.client.call(9, &request).topics[0].partitions[0].error_code
    }
}

impl Member {
    const fn new(id: &'static str) -> Self {
        Self { id, instance_id: None, epoch: 0, assigned: Vec::new(), owned: Vec::new() }
    }

    fn of_instance(id: &'static str, instance_id: &'static str) -> Self {
        Self { instance_id: Some(instance_id), ..Self::new(id) }
    }

    /// Takes and revokes partitions as assigned.
    fn obey(&mut self) {
        self.owned.clone_from(&self.assigned);
    }
}

/// Connects to the coordinator of a group, once it is ready.
fn coordinator_of(backend: &Backend, group: &str) -> RawClient {
    let mut any = RawClient::connect(&backend.bootstrap_servers());
    let mut found = None;
    let request = FindCoordinatorRequest { coordinator_keys: vec![group.to_owned()], ..Default::default() };
    let is_found = eventually(|| {
        let coordinator = any.call(4, &request).coordinators.remove(0);
        if coordinator.error_code != ErrorCode::NONE {
            return false;
        }
        let mut client = RawClient::connect(&format!("{}:{}", coordinator.host, coordinator.port));
        let group_ids = vec![group.to_owned()];
        let describe = ConsumerGroupDescribeRequest { group_ids, ..Default::default() };
        // The coordinator may still be loading the group.
        let is_ready = client.call(0, &describe).groups[0].error_code == ErrorCode::GROUP_ID_NOT_FOUND;
        found = is_ready.then_some(client);
        is_ready
    });
    assert!(is_found, "{group} has a coordinator");
    found.expect("it was found")
}

fn partitions_are_revoked_before_another_member_gets_them(backend: &Backend) {
    let mut group = Group::on(backend);
    let (mut a, mut b) = (Member::new("a"), Member::new("b"));
    group.beat_until(&mut a, 4);
    a.obey();
    let first_epoch = a.epoch;
    group.beat(&mut b);
    assert_eq!(b.assigned, [0; 0], "a has them all");
    let reported = eventually(|| {
        group.beat(&mut b);
        group.beat(&mut a);
        a.assigned.len() == 2
    });
    assert!(reported && a.epoch == first_epoch, "a keeps its epoch until it has given up two partitions");
    group.beat(&mut a);
    group.beat(&mut b);
    assert_eq!((a.epoch, b.assigned.len()), (first_epoch, 0), "a still has all");
    a.obey();
    group.beat(&mut a);
    assert!(a.epoch > first_epoch);
    group.beat_until(&mut b, 2);
    b.obey();
    let mut all = [a.owned.as_slice(), &b.owned].concat();
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2, 3]);
    assert_eq!(group.describe(), ("Stable".to_owned(), a.epoch, a.epoch));
    assert_eq!(a.epoch, b.epoch);

    assert_eq!(group.heartbeat(&a, a.epoch + 1).error_code, ErrorCode::FENCED_MEMBER_EPOCH);
    assert_eq!(group.heartbeat(&a, i32::MAX).error_code, ErrorCode::FENCED_MEMBER_EPOCH);
    assert_eq!(group.heartbeat(&Member::new("c"), a.epoch).error_code, ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(group.heartbeat(&a, first_epoch).error_code, ErrorCode::NONE, "a response may have been lost");
    assert_eq!(group.commit("a", a.epoch, a.owned[0]), ErrorCode::NONE);
    assert_eq!(group.commit("a", a.epoch + 1, a.owned[0]), ErrorCode::STALE_MEMBER_EPOCH);
    assert_eq!(group.commit("c", a.epoch, a.owned[0]), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(group.commit("", -1, a.owned[0]), ErrorCode::UNKNOWN_MEMBER_ID);

    assert_eq!(group.heartbeat(&b, -1).member_epoch, -1);
    assert_eq!(group.heartbeat(&b, -1).error_code, ErrorCode::UNKNOWN_MEMBER_ID);
    group.beat_until(&mut a, 4);
    assert_eq!(group.heartbeat(&a, -1).error_code, ErrorCode::NONE);
    assert_eq!(group.describe().0, "Empty");
    assert_eq!(group.commit("", -1, 0), ErrorCode::NONE);
}

fn returning_static_member_gets_its_partitions_back(backend: &Backend) {
    let mut group = Group::on(backend);
    let mut first = Member::of_instance("first", "i");
    group.beat_until(&mut first, 4);
    first.obey();
    let (_, epoch, _) = group.describe();
    let mut second = Member::of_instance("second", "i");
    assert_eq!(group.heartbeat(&second, 0).error_code, ErrorCode::UNRELEASED_INSTANCE_ID);
    assert_eq!(group.heartbeat(&second, first.epoch).error_code, ErrorCode::FENCED_INSTANCE_ID);
    let again = Member::of_instance("first", "i");
    assert_eq!(group.heartbeat(&again, 0).error_code, ErrorCode::UNRELEASED_INSTANCE_ID);
    assert_eq!(group.heartbeat(&first, -2).member_epoch, -2);
    assert_eq!(group.heartbeat(&first, first.epoch).error_code, ErrorCode::FENCED_MEMBER_EPOCH);
    group.beat(&mut second);
    assert_eq!(second.assigned, [0, 1, 2, 3]);
    assert_eq!(group.heartbeat(&first, first.epoch).error_code, ErrorCode::FENCED_INSTANCE_ID);
    assert_eq!(group.describe(), ("Stable".to_owned(), epoch, epoch));
    assert_eq!(group.heartbeat(&second, -1).error_code, ErrorCode::NONE);
    assert_eq!(group.describe().0, "Empty");
}

fn invalid_heartbeats_are_refused(backend: &Backend) {
    let name = unused_topic_name();
    let mut client = coordinator_of(backend, &name);
    let join = || ConsumerGroupHeartbeatRequest {
        group_id: name.clone(),
        member_id: "a".to_owned(),
        rebalance_timeout_ms: 60_000,
        subscribed_topic_names: Some(vec!["nowhere".to_owned()]),
        topic_partitions: Some(Vec::new()),
        ..Default::default()
    };
    let in_epoch = |member_epoch| ConsumerGroupHeartbeatRequest {
        group_id: name.clone(),
        member_id: "a".to_owned(),
        member_epoch,
        ..Default::default()
    };
    let owned = request::TopicPartition { topic_id: Uuid([7; 16]), partitions: vec![0] };
    let text = |text: &str| Some(text.to_owned());
    let refused = [
        (ConsumerGroupHeartbeatRequest { member_id: String::new(), ..join() }, ErrorCode::INVALID_REQUEST),
        (ConsumerGroupHeartbeatRequest { instance_id: text(""), ..join() }, ErrorCode::INVALID_REQUEST),
        (ConsumerGroupHeartbeatRequest { rack_id: text(""), ..join() }, ErrorCode::INVALID_REQUEST),
        (ConsumerGroupHeartbeatRequest { rebalance_timeout_ms: -1, ..join() }, ErrorCode::INVALID_REQUEST),
        (ConsumerGroupHeartbeatRequest { topic_partitions: None, ..join() }, ErrorCode::INVALID_REQUEST),
        (
            ConsumerGroupHeartbeatRequest { topic_partitions: Some(vec![owned]), ..join() },
            ErrorCode::INVALID_REQUEST,
        ),
        (
            ConsumerGroupHeartbeatRequest { subscribed_topic_names: None, ..join() },
            ErrorCode::INVALID_REQUEST,
        ),
        (in_epoch(-2), ErrorCode::INVALID_REQUEST),
        (in_epoch(-3), ErrorCode::INVALID_REQUEST),
        (in_epoch(-1), ErrorCode::GROUP_ID_NOT_FOUND),
        (in_epoch(1), ErrorCode::GROUP_ID_NOT_FOUND),
        (
            ConsumerGroupHeartbeatRequest { server_assignor: text("sticky"), ..join() },
            ErrorCode::UNSUPPORTED_ASSIGNOR,
        ),
        (
            ConsumerGroupHeartbeatRequest { subscribed_topic_regex: text("a("), ..join() },
            ErrorCode::INVALID_REGULAR_EXPRESSION,
        ),
    ];
    for (request, error) in refused {
        let response = client.call(1, &request);
        assert_eq!(response.error_code, error, "{request:?}: {:?}", response.error_message);
        assert!(response.error_message.is_some_and(|message| !message.is_empty()));
    }
    let response = client.call(1, &ConsumerGroupHeartbeatRequest { group_id: String::new(), ..join() });
    assert_eq!(response.error_code, ErrorCode::INVALID_REQUEST);
    let response = client.call(1, &join());
    assert_eq!(response.error_code, ErrorCode::NONE, "no broker has the topic yet, and it may appear");
    assert_eq!(response.assignment.map(|assignment| assignment.topic_partitions), Some(Vec::new()));
    assert_eq!(client.call(1, &in_epoch(-1)).error_code, ErrorCode::NONE);
}
