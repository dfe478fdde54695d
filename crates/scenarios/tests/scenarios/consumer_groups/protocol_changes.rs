//! Static members that return with the other group protocol (KAFKA-17228).

use ottla_protocol::{
    consumer_protocol::{
        ConsumerProtocolAssignment, ConsumerProtocolSubscription, subscription::OwnedPartition,
    },
    generated::{
        describe_groups::DescribeGroupsRequest,
        heartbeat::HeartbeatRequest,
        join_group::{self, JoinGroupRequest, JoinGroupResponse},
        sync_group::SyncGroupRequest,
    },
};

use super::*;

run_on_all!(
    group_becomes_classic_without_a_rebalance_when_its_last_consumer_changes,
    group_rebalances_when_its_last_consumer_changes_subscription_and_protocol,
);

/// A member of the classic protocol.
#[derive(Clone, Debug)]
struct Classic {
    id: String,
    instance_id: Option<&'static str>,
    generation: i32,
}

impl Group {
    fn join(&mut self, member: &mut Classic, topics: &[&str], owned: &[i32]) -> JoinGroupResponse {
        let owned = OwnedPartition { topic: self.name.clone(), partitions: owned.to_vec() };
        let subscription = ConsumerProtocolSubscription {
            topics: topics.iter().map(|topic| (*topic).to_owned()).collect(),
            owned_partitions: vec![owned],
            ..Default::default()
        };
        let metadata = subscription.to_bytes(3).expect("a subscription");
        let protocol = join_group::request::Protocol { name: "cooperative-sticky".to_owned(), metadata };
        let request = JoinGroupRequest {
            group_id: self.name.clone(),
            session_timeout_ms: 10_000,
            rebalance_timeout_ms: 10_000,
            member_id: member.id.clone(),
            group_instance_id: member.instance_id.map(str::to_owned),
            protocol_type: "consumer".to_owned(),
            protocols: vec![protocol],
            ..Default::default()
        };
        let response = self.client.call(9, &request);
        (member.id, member.generation) = (response.member_id.clone(), response.generation_id);
        response
    }

    fn sync(&mut self, member: &Classic) -> Result<Vec<i32>, ErrorCode> {
        let request = SyncGroupRequest {
            group_id: self.name.clone(),
            generation_id: member.generation,
            member_id: member.id.clone(),
            group_instance_id: member.instance_id.map(str::to_owned),
            protocol_type: Some("consumer".to_owned()),
            protocol_name: Some("cooperative-sticky".to_owned()),
            ..Default::default()
        };
        let response = self.client.call(5, &request);
        response.error_code.ok()?;
        let (_, assigned) =
            ConsumerProtocolAssignment::from_bytes(&response.assignment).expect("an assignment");
        let mut numbers: Vec<_> =
            assigned.assigned_partitions.into_iter().flat_map(|topic| topic.partitions).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    fn classic_beat(&mut self, member: &Classic) -> ErrorCode {
        let request = HeartbeatRequest {
            group_id: self.name.clone(),
            generation_id: member.generation,
            member_id: member.id.clone(),
            group_instance_id: member.instance_id.map(str::to_owned),
        };
        self.client.call(4, &request).error_code
    }

    fn classic_state(&mut self) -> (String, usize) {
        let request = DescribeGroupsRequest { groups: vec![self.name.clone()], ..Default::default() };
        let group = self.client.call(5, &request).groups.remove(0);
        (group.group_state, group.members.len())
    }
}

impl Classic {
    const fn of_instance(instance_id: &'static str) -> Self {
        Self { id: String::new(), instance_id: Some(instance_id), generation: -1 }
    }
}

/// A group with a static member `i` of the consumer protocol and, if there is one, a static classic member.
struct Mixed {
    group: Group,
    consumer: Member,
    classic: Option<Classic>,
}

impl Mixed {
    fn on(backend: &Backend, with_classic: bool) -> Self {
        let mut group = Group::on(backend);
        let mut consumer = Member::of_instance("first", "i");
        group.beat_until(&mut consumer, 4);
        consumer.obey();
        let name = group.name.clone();
        let classic = with_classic.then(|| {
            let mut classic = Classic::of_instance("j");
            assert_eq!(group.join(&mut classic, &[&name], &[]).error_code, ErrorCode::NONE);
            assert_eq!(group.sync(&classic), Ok(Vec::new()));
            group.beat_until(&mut consumer, 2);
            consumer.obey();
            group.beat(&mut consumer);
            let gets_its_half = eventually(|| {
                group.join(&mut classic, &[&name], &[]);
                group.sync(&classic).is_ok_and(|assigned| assigned.len() == 2)
            });
            assert!(gets_its_half);
            group.beat(&mut consumer);
            classic
        });
        assert_eq!(group.describe(), ("Stable".to_owned(), consumer.epoch, consumer.epoch));
        Self { group, consumer, classic }
    }
}

fn group_becomes_classic_without_a_rebalance_when_its_last_consumer_changes(backend: &Backend) {
    for with_classic in [false, true] {
        let Mixed { mut group, consumer, classic } = Mixed::on(backend, with_classic);
        let name = group.name.clone();
        let mut returned = Classic::of_instance("i");
        let joined = group.join(&mut returned, &[&name], &consumer.owned);
        assert_eq!((joined.error_code, joined.generation_id), (ErrorCode::NONE, consumer.epoch));
        assert_eq!(group.classic_state(), ("Stable".to_owned(), 1 + usize::from(with_classic)));
        assert_eq!(group.sync(&returned), Ok(consumer.owned.clone()));
        assert_eq!(group.classic_beat(&returned), ErrorCode::NONE);
        if let Some(classic) = classic {
            assert_eq!(group.classic_beat(&classic), ErrorCode::NONE);
            assert_eq!(group.sync(&classic).map(|assigned| assigned.len()), Ok(2));
        }
        let late = group.heartbeat(&consumer, consumer.epoch);
        assert_eq!(late.error_code, ErrorCode::GROUP_ID_NOT_FOUND);
        assert_eq!(group.commit(&returned.id, returned.generation, consumer.owned[0]), ErrorCode::NONE);
    }
}

fn group_rebalances_when_its_last_consumer_changes_subscription_and_protocol(backend: &Backend) {
    for with_classic in [false, true] {
        let Mixed { mut group, consumer, classic } = Mixed::on(backend, with_classic);
        let (name, second) = (group.name.clone(), backend.topic(2));
        let mut returned = Classic::of_instance("i");
        let joined = group.join(&mut returned, &[&name, &second], &consumer.owned);
        assert_eq!((joined.error_code, joined.generation_id), (ErrorCode::NONE, 0));
        assert_eq!(group.classic_state(), ("PreparingRebalance".to_owned(), 1 + usize::from(with_classic)));
        assert_eq!(group.sync(&returned), Err(ErrorCode::ILLEGAL_GENERATION));
        assert_eq!(group.classic_beat(&returned), ErrorCode::ILLEGAL_GENERATION);
        if let Some(classic) = classic {
            assert_eq!(group.classic_beat(&classic), ErrorCode::REBALANCE_IN_PROGRESS);
        } else {
            let joined = group.join(&mut returned, &[&name, &second], &consumer.owned);
            assert_eq!((joined.error_code, joined.generation_id), (ErrorCode::NONE, consumer.epoch + 1));
            assert_eq!(joined.leader, returned.id);
        }
    }
}
