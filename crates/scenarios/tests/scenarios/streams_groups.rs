//! Calls about streams groups (KIP-1071). The member is a connection that joins by hand.

use ottla::{
    Admin, ErrorCode, ErrorKind, GroupFilter, GroupOffset, GroupState, GroupType,
    admin::{StreamsGroupDescription, StreamsTask},
};
use ottla_protocol::{
    api::ApiKey,
    generated::{
        find_coordinator::FindCoordinatorRequest,
        streams_group_heartbeat::{StreamsGroupHeartbeatRequest, request},
    },
};
use ottla_scenarios::{Backend, TIMEOUT, eventually, raw::RawClient};

ottla_scenarios::run_on_all!(streams_group_is_listed_described_and_deleted);
ottla_scenarios::run_on_embedded!(streams_groups_are_an_unsupported_version);

/// A member of a streams group whose application copies a topic.
struct Member {
    coordinator: RawClient,
    heartbeat: StreamsGroupHeartbeatRequest,
}

impl Member {
    fn join(backend: &Backend, group: &str, topic: &str) -> Self {
        let mut any = RawClient::connect(&backend.bootstrap_servers());
        let lookup = FindCoordinatorRequest { coordinator_keys: vec![group.into()], ..Default::default() };
        let mut address = None;
        assert!(eventually(|| {
            let found = any.call(4, &lookup).coordinators.remove(0);
            address = Some(format!("{}:{}", found.host, found.port));
            found.error_code == ErrorCode::NONE
        }));
        let subtopology = request::Subtopology {
            subtopology_id: "0".into(),
            source_topics: vec![topic.into()],
            ..Default::default()
        };
        let heartbeat = StreamsGroupHeartbeatRequest {
            group_id: group.into(),
            member_id: "m".into(),
            rebalance_timeout_ms: 10_000,
            topology: Some(request::Topology { epoch: 0, subtopologies: vec![subtopology] }),
            active_tasks: Some(Vec::new()),
            standby_tasks: Some(Vec::new()),
            warmup_tasks: Some(Vec::new()),
            process_id: Some("p".into()),
            client_tags: Some(Vec::new()),
            ..Default::default()
        };
        let coordinator = RawClient::connect(&address.expect("a coordinator"));
        let mut member = Self { coordinator, heartbeat };
        assert!(eventually(|| member.heartbeat() == ErrorCode::NONE));
        member
    }

    /// Sends a heartbeat with the member's epoch; only the first one has the topology and the tasks.
    fn heartbeat(&mut self) -> ErrorCode {
        let response = self.coordinator.call(0, &self.heartbeat);
        if response.error_code == ErrorCode::NONE {
            self.heartbeat = StreamsGroupHeartbeatRequest {
                group_id: self.heartbeat.group_id.clone(),
                member_id: self.heartbeat.member_id.clone(),
                member_epoch: response.member_epoch,
                ..Default::default()
            };
        }
        response.error_code
    }

    fn leave(mut self) {
        let leave = StreamsGroupHeartbeatRequest {
            group_id: self.heartbeat.group_id,
            member_id: self.heartbeat.member_id,
            member_epoch: -1,
            ..Default::default()
        };
        assert_eq!(self.coordinator.call(0, &leave).error_code, ErrorCode::NONE);
    }
}

fn described(admin: &Admin, group: &str) -> Result<StreamsGroupDescription, ErrorKind> {
    let mut all = admin.describe_streams_groups(&["missing", group], TIMEOUT).expect("the call succeeds");
    all.remove(1).1.map_err(|error| error.kind())
}

fn admin(backend: &Backend) -> Admin {
    Admin::new(&backend.config(&[])).expect("the configuration is right")
}

fn streams_groups_are_an_unsupported_version(backend: &Backend) {
    backend.control(|control| control.set_api_versions(None, ApiKey::StreamsGroupDescribe, 1, 0));
    assert_eq!(described(&admin(backend), "g").err(), Some(ErrorKind::UnsupportedVersion));
    let error =
        admin(backend).describe_streams_groups(&["g"], TIMEOUT).expect("the call succeeds").remove(0).1;
    let text = error.expect_err("it is refused").to_string();
    assert!(text.contains("StreamsGroupDescribe"), "{text}");
}

fn streams_group_is_listed_described_and_deleted(backend: &Backend) {
    let (admin, topic) = (admin(backend), backend.topic(2));
    let not_found = ErrorKind::Broker(ErrorCode::GROUP_ID_NOT_FOUND);
    assert_eq!(described(&admin, &topic).err(), Some(not_found));
    let mut member = Member::join(backend, &topic, &topic);
    // The coordinator assigns the tasks at a heartbeat after the first ones.
    let is_assigned = || {
        assert_eq!(member.heartbeat(), ErrorCode::NONE);
        let group = described(&admin, &topic).expect("the group exists");
        group.members[0].target_assignment.active.len() == 2
    };
    assert!(eventually(is_assigned), "{:?}", described(&admin, &topic));
    let group = described(&admin, &topic).expect("the group exists");
    let described_member = &group.members[0];
    assert_eq!((&*described_member.member_id, &*described_member.process_id), ("m", "p"));
    let task = |partition| StreamsTask { subtopology_id: "0".into(), partition };
    assert_eq!(described_member.target_assignment.active, [task(0), task(1)]);
    assert_eq!(group.topology.expect("it was sent").subtopologies[0].source_topics, [&*topic]);

    let filter = GroupFilter { types: vec![GroupType::Streams], ..GroupFilter::default() };
    let listed = admin.list_groups(&filter, TIMEOUT).expect("the call succeeds").groups;
    assert!(listed.iter().any(|group| group.group_id == topic));
    let offsets = [GroupOffset::new(&*topic, 0, 7)];
    let altered = admin.alter_group_offsets(&topic, &offsets, TIMEOUT).expect("the call succeeds");
    assert!(altered[0].1.is_err(), "the group has a member");
    let deleted = admin.delete_groups(&[&topic], TIMEOUT).expect("the call succeeds");
    let refused = deleted[0].1.as_ref().map_err(|error| error.kind());
    assert_eq!(refused, Err(ErrorKind::Broker(ErrorCode::NON_EMPTY_GROUP)));

    member.leave();
    assert!(eventually(|| described(&admin, &topic).is_ok_and(|group| group.state == GroupState::Empty)));
    let altered = admin.alter_group_offsets(&topic, &offsets, TIMEOUT).expect("the call succeeds");
    assert_eq!(altered[0].1, Ok(()));
    let listed = admin.list_group_offsets(&topic, None, TIMEOUT).expect("the call succeeds");
    assert_eq!(listed[0].1.as_ref().expect("it is committed").as_ref().map(|one| one.offset), Some(7));
    let deleted = admin.delete_group_offsets(&topic, &[(&topic, 0)], TIMEOUT).expect("the call succeeds");
    assert_eq!(deleted[0].1, Ok(()));
    let deleted = admin.delete_groups(&[&topic], TIMEOUT).expect("the call succeeds");
    assert_eq!(deleted[0].1, Ok(()));
    assert_eq!(described(&admin, &topic).err(), Some(not_found));
}
