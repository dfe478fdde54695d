//! Groups with members of both protocols, and their conversion.

use ottla_protocol::{
    consumer_protocol::{
        ConsumerProtocolAssignment, ConsumerProtocolSubscription, assignment::AssignedPartition,
        subscription::OwnedPartition,
    },
    generated::{
        heartbeat::HeartbeatRequest,
        join_group::JoinGroupResponse,
        sync_group::{self, SyncGroupRequest},
    },
};

use super::*;

impl Group {
    /// Joins as a classic member that owns these partitions.
    fn classic_join(&mut self, member_id: &str, owned: &[i32]) -> JoinGroupResponse {
        self.world.call(self.connection, 9, &Self::classic_join_request(member_id, owned))
    }

    fn classic_join_request(member_id: &str, owned: &[i32]) -> JoinGroupRequest {
        let owned = OwnedPartition { topic: "t".to_owned(), partitions: owned.to_vec() };
        let subscription = ConsumerProtocolSubscription {
            topics: vec!["t".to_owned()],
            owned_partitions: vec![owned],
            ..Default::default()
        };
        let metadata = subscription.to_bytes(3).unwrap();
        let protocol = join_group::request::Protocol { name: "cooperative-sticky".to_owned(), metadata };
        JoinGroupRequest {
            group_id: GROUP.to_owned(),
            session_timeout_ms: 10_000,
            rebalance_timeout_ms: 10_000,
            member_id: member_id.to_owned(),
            protocol_type: "consumer".to_owned(),
            protocols: vec![protocol],
            ..Default::default()
        }
    }

    /// Returns the partitions that a classic member gets; a leader gives all partitions to itself.
    fn classic_sync(
        &mut self,
        member_id: &str,
        generation_id: i32,
        leads: bool,
    ) -> Result<Vec<i32>, ErrorCode> {
        let all = AssignedPartition { topic: "t".to_owned(), partitions: vec![0, 1, 2, 3] };
        let all = ConsumerProtocolAssignment { assigned_partitions: vec![all], user_data: None };
        let assignment = sync_group::request::Assignment {
            member_id: member_id.to_owned(),
            assignment: all.to_bytes(0).unwrap(),
        };
        let request = SyncGroupRequest {
            group_id: GROUP.to_owned(),
            generation_id,
            member_id: member_id.to_owned(),
            protocol_type: Some("consumer".to_owned()),
            protocol_name: Some("cooperative-sticky".to_owned()),
            assignments: if leads { vec![assignment] } else { Vec::new() },
            ..Default::default()
        };
        let response = self.world.call(self.connection, 5, &request);
        response.error_code.ok()?;
        let (_, assigned) = ConsumerProtocolAssignment::from_bytes(&response.assignment).unwrap();
        Ok(assigned.assigned_partitions.into_iter().flat_map(|topic| topic.partitions).collect())
    }

    fn classic_beat(&mut self, member_id: &str, generation_id: i32) -> ErrorCode {
        let request = HeartbeatRequest {
            group_id: GROUP.to_owned(),
            generation_id,
            member_id: member_id.to_owned(),
            ..Default::default()
        };
        self.world.call(self.connection, 4, &request).error_code
    }

    /// A classic group whose only member has all partitions. Returns the member's ID.
    fn classic(options: ClusterOptions) -> (Self, String) {
        let mut group = Self::with(options);
        let required = group.classic_join("", &[]);
        assert_eq!(required.error_code, ErrorCode::MEMBER_ID_REQUIRED);
        let joined = group.classic_join(&required.member_id, &[]);
        assert_eq!((joined.error_code, joined.generation_id), (ErrorCode::NONE, 1));
        assert_eq!(group.classic_sync(&required.member_id, 1, true), Ok(vec![0, 1, 2, 3]));
        (group, required.member_id)
    }
}

#[test]
fn classic_member_gives_partitions_to_a_member_of_the_consumer_protocol() {
    let (mut group, classic) = Group::classic(ClusterOptions::default());
    assert_eq!(group.join("a"), (2, Some(vec![])), "it waits for the classic member");
    assert_eq!(group.state().0, "Reconciling");
    assert_eq!(group.commit(9, (&classic, 1), 3), ErrorCode::NONE, "the generation stays valid");
    assert_eq!(group.classic_beat(&classic, 1), ErrorCode::REBALANCE_IN_PROGRESS);
    let joined = group.classic_join(&classic, &[0, 1, 2, 3]);
    assert_eq!((joined.error_code, joined.generation_id, &*joined.leader), (ErrorCode::NONE, 1, ""));
    let kept = group.classic_sync(&classic, 1, false).unwrap();
    assert_eq!(kept.len(), 2);
    assert_eq!(group.beat("a", 2, &[]), (2, None), "they are not revoked");
    let joined = group.classic_join(&classic, &kept);
    assert_eq!(joined.generation_id, 2);
    assert_eq!(group.classic_sync(&classic, 2, false), Ok(kept));
    let (epoch, got) = group.beat("a", 2, &[]);
    assert_eq!((epoch, got.map(|got| got.len())), (2, Some(2)));
    assert_eq!(group.classic_beat(&classic, 2), ErrorCode::NONE);
    assert_eq!(group.state(), ("Stable".to_owned(), 2, 2));
    assert_eq!(group.commit(9, (&classic, 1), 0), ErrorCode::ILLEGAL_GENERATION);
    assert_eq!(group.classic_beat(&classic, 1), ErrorCode::ILLEGAL_GENERATION);
    assert_eq!(group.classic_beat("z", 2), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(group.classic_beat("a", 2), ErrorCode::UNKNOWN_MEMBER_ID, "it uses the other protocol");
}

#[test]
fn group_becomes_classic_again_when_only_classic_members_are_left() {
    let (mut group, classic) = Group::classic(ClusterOptions::default());
    group.join("a");
    let kept = {
        group.classic_join(&classic, &[0, 1, 2, 3]);
        group.classic_sync(&classic, 1, false).unwrap()
    };
    group.classic_join(&classic, &kept);
    group.send(&short("a", -1));
    assert_eq!(group.describe().error_code, ErrorCode::GROUP_ID_NOT_FOUND, "it is not a consumer group");
    assert_eq!(group.commit(9, (&classic, 2), 0), ErrorCode::NONE, "the generation stays valid");
    assert_eq!(group.classic_beat(&classic, 2), ErrorCode::REBALANCE_IN_PROGRESS);
    let joined = group.classic_join(&classic, &kept);
    assert_eq!((joined.error_code, joined.generation_id), (ErrorCode::NONE, 3));
    assert_eq!(joined.leader, classic);
}

#[test]
fn classic_member_that_does_not_join_in_time_is_removed() {
    let (mut group, classic) = Group::classic(ClusterOptions::default());
    group.join("a");
    assert_eq!(group.classic_beat(&classic, 1), ErrorCode::REBALANCE_IN_PROGRESS);
    let mut got = (2, None);
    for _ in 0..4 {
        group.world.pass(SECOND * 3);
        group.classic_beat(&classic, 1);
        if got.1.is_none() {
            got = group.beat("a", 2, &[]);
        }
    }
    assert_eq!(group.classic_beat(&classic, 1), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(got, (3, Some(vec![0, 1, 2, 3])));
}

#[test]
fn classic_group_is_converted_when_all_left_before_the_first_rebalance() {
    let options = ClusterOptions { group_initial_rebalance_delay: SECOND * 3, ..Default::default() };
    let mut group = Group::with(options);
    let classic = group.classic_join("", &[]).member_id;
    let waiting = group.world.open(1);
    group.world.send(waiting, 9, &Group::classic_join_request(&classic, &[]));
    group.world.pass(SECOND);
    let member = leave_group::request::Member { member_id: classic, ..Default::default() };
    let leave = LeaveGroupRequest { group_id: GROUP.to_owned(), members: vec![member], ..Default::default() };
    assert_eq!(group.world.call(group.connection, 5, &leave).error_code, ErrorCode::NONE);
    assert_eq!(group.join("a"), (1, Some(vec![0, 1, 2, 3])));
}

#[test]
fn classic_group_is_not_converted_if_the_policy_forbids_it() {
    let options = ClusterOptions { group_consumer_migration: false, ..Default::default() };
    let (mut group, classic) = Group::classic(options);
    assert_eq!(group.error(&join("a", &["t"])), ErrorCode::GROUP_ID_NOT_FOUND);
    assert_eq!(group.classic_beat(&classic, 1), ErrorCode::NONE);
}
