//! The membership against a scripted coordinator: exact heartbeats and hand-made responses.

use std::{sync::Arc, time::Duration};

use ottla_protocol::{
    error_code::ErrorCode,
    generated::streams_group_heartbeat::{
        StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse, response,
    },
    primitive::Reader,
};

use super::{
    member::{Step, StreamsMember},
    news::{RevocationReason, StreamsEvent, StreamsStatusKind, TaskOffsets},
    settings::StreamsSettings,
    topology::{Subtopology, Topology},
};
use crate::{
    admin::groups::streams_groups::StreamsTask,
    contract::route::RoutedRequest,
    error::{Error, ErrorKind},
    group::departure::GroupMembershipOperation,
    machine::Instant,
    rng::Rng,
};

pub(super) const INTERVAL: Duration = Duration::from_secs(5);

pub(super) fn settings() -> StreamsSettings {
    let part =
        Subtopology { id: "a".to_owned(), source_topics: vec!["t".to_owned()], ..Subtopology::default() };
    StreamsSettings::with_defaults("g", Topology { epoch: 0, subtopologies: vec![part] })
}

/// A member, and what it said last.
pub(super) struct Script {
    pub(super) now: Instant,
    pub(super) member: StreamsMember,
    term: u64,
    pub(super) events: Vec<StreamsEvent>,
    /// The pushes of the topology's description that were sent.
    pub(super) pushes: Vec<(RoutedRequest, u64)>,
    failure: Option<Error>,
    has_left: bool,
}

/// What an event says about active tasks: a sign and their partitions.
fn active(event: &StreamsEvent) -> (char, Vec<i32>) {
    let list = |tasks: &[StreamsTask]| tasks.iter().map(|task| task.partition).collect();
    match event {
        StreamsEvent::Assigned(tasks) => ('+', list(&tasks.active)),
        StreamsEvent::Revoked(revocation) => match revocation.reason {
            RevocationReason::Reassigned => ('-', list(&revocation.tasks.active)),
            RevocationReason::Lost(_) => ('!', list(&revocation.tasks.active)),
        },
        other => panic!("{other:?}"),
    }
}

/// Returns a response with these active and standby tasks.
fn tasks(active: &[i32], standby: &[i32]) -> StreamsGroupHeartbeatResponse {
    let active = response::ActiveTask { subtopology_id: "a".to_owned(), partitions: active.to_vec() };
    let standby = response::StandbyTask { subtopology_id: "a".to_owned(), partitions: standby.to_vec() };
    StreamsGroupHeartbeatResponse {
        active_tasks: Some(vec![active]),
        standby_tasks: Some(vec![standby]),
        warmup_tasks: Some(Vec::new()),
        ..StreamsGroupHeartbeatResponse::default()
    }
}

/// Returns the partitions of the active and the standby tasks of a request, if it has any.
fn named(request: &StreamsGroupHeartbeatRequest) -> Option<(Vec<i32>, Vec<i32>)> {
    let active = request.active_tasks.as_ref()?.iter().flat_map(|task| task.partitions.clone()).collect();
    let standby = request.standby_tasks.as_ref()?.iter().flat_map(|task| task.partitions.clone()).collect();
    Some((active, standby))
}

impl Script {
    fn new() -> Self {
        Self::with(settings())
    }

    pub(super) fn with(settings: StreamsSettings) -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        let mut member = StreamsMember::new(settings, Rng::from_seed(1));
        member.join(now);
        Self { now, member, term: 0, events: Vec::new(), pushes: Vec::new(), failure: None, has_left: false }
    }

    /// Returns a member with these active and no standby tasks, in epoch 3, whose ownership the coordinator knows.
    fn with_tasks(active: &[i32]) -> Self {
        let mut script = Self::new();
        let _ = script.heartbeat();
        script.confirm(3, tasks(active, &[]));
        let request = script.heartbeat();
        assert_eq!(named(&request), Some((active.to_vec(), vec![])));
        script.confirm(3, StreamsGroupHeartbeatResponse::default());
        script.events.clear();
        script
    }

    /// Returns the next heartbeat, if one is sent.
    pub(super) fn next(&mut self) -> Option<StreamsGroupHeartbeatRequest> {
        self.member.advance(self.now);
        self.take_steps()
    }

    pub(super) fn take_steps(&mut self) -> Option<StreamsGroupHeartbeatRequest> {
        let mut sent = None;
        while let Some(step) = self.member.poll_step() {
            match step {
                Step::Send(request, term) => {
                    assert!(sent.is_none(), "two heartbeats at the same time");
                    self.term = term;
                    let mut bytes = Vec::new();
                    (request.encode)(1, &mut bytes).expect("it has version 1");
                    sent = Some(
                        StreamsGroupHeartbeatRequest::decode(&mut Reader::new(&bytes), 1)
                            .expect("it is valid"),
                    );
                }
                Step::Push(request, number) => self.pushes.push((request, number)),
                Step::Event(event) => self.events.push(event),
                Step::Fail(error) => self.failure = Some(error),
                Step::Left => self.has_left = true,
            }
        }
        sent
    }

    pub(super) fn heartbeat(&mut self) -> StreamsGroupHeartbeatRequest {
        self.next().expect("a heartbeat")
    }

    fn respond(&mut self, result: Result<StreamsGroupHeartbeatResponse, Error>) -> bool {
        let moved = self.member.handle_decoded(self.now, self.term, result);
        assert!(self.take_steps().is_none(), "only `advance` sends");
        moved
    }

    pub(super) fn confirm(&mut self, member_epoch: i32, response: StreamsGroupHeartbeatResponse) {
        let heartbeat_interval_ms = 5_000;
        self.respond(Ok(StreamsGroupHeartbeatResponse { member_epoch, heartbeat_interval_ms, ..response }));
    }

    pub(super) fn refuse(&mut self, error_code: ErrorCode) -> bool {
        self.respond(Ok(StreamsGroupHeartbeatResponse {
            error_code,
            ..StreamsGroupHeartbeatResponse::default()
        }))
    }

    fn lose_response(&mut self) {
        self.respond(Err(Error::new(ErrorKind::Disconnected, "cut")));
    }

    /// Takes the only event.
    fn event(&mut self) -> StreamsEvent {
        assert_eq!(self.events.len(), 1, "{:?}", self.events);
        self.events.remove(0)
    }

    fn acknowledge(&mut self, event: &StreamsEvent) {
        let StreamsEvent::Revoked(revocation) = event else { panic!("{event:?}") };
        self.member.acknowledge(revocation.id);
        assert!(self.take_steps().is_none(), "only `advance` sends");
    }

    pub(super) fn wait(&mut self) {
        self.now += INTERVAL;
    }
}

#[test]
fn member_joins_with_its_topology_and_then_names_its_tasks() {
    let mut script = Script::new();
    let join = script.heartbeat();
    assert_eq!((join.member_epoch, &*join.group_id, join.rebalance_timeout_ms), (0, "g", 300_000));
    assert_eq!((join.endpoint_information_epoch, named(&join)), (-1, Some((vec![], vec![]))));
    assert_eq!(join.topology.expect("it is sent").subtopologies[0].source_topics, ["t"]);
    assert_eq!(join.process_id.as_deref(), Some(&*join.member_id));
    script.confirm(1, tasks(&[0, 1], &[2]));
    let StreamsEvent::Assigned(assigned) = script.event() else { panic!("it has tasks") };
    assert_eq!((assigned.active.len(), assigned.standby[0].partition), (2, 2));
    let second = script.heartbeat();
    assert_eq!((second.member_epoch, named(&second)), (1, Some((vec![0, 1], vec![2]))));
    assert_eq!((second.topology, second.process_id), (None, None));
    script.confirm(1, StreamsGroupHeartbeatResponse::default());
    assert!(script.next().is_none());
    script.wait();
    let third = script.heartbeat();
    assert_eq!((third.member_epoch, named(&third)), (1, None));
    assert_eq!(third.member_id, join.member_id);
}

#[test]
fn new_tasks_come_after_the_acknowledgement_of_revoked_ones() {
    let mut script = Script::with_tasks(&[0, 1]);
    script.wait();
    let _ = script.heartbeat();
    script.confirm(4, tasks(&[1, 2], &[0]));
    let revoked = script.event();
    assert_eq!(active(&revoked), ('-', vec![0]));
    assert!(script.next().is_none(), "the member owns it still");
    script.wait();
    assert_eq!(named(&script.heartbeat()), None);
    script.confirm(4, StreamsGroupHeartbeatResponse::default());
    script.acknowledge(&revoked);
    let assigned = script.event();
    assert_eq!(active(&assigned), ('+', vec![2]));
    assert_eq!(named(&script.heartbeat()), Some((vec![1, 2], vec![0])));
}

#[test]
fn later_assignment_replaces_one_that_waits_for_a_revocation() {
    let mut script = Script::with_tasks(&[0, 1]);
    script.wait();
    let _ = script.heartbeat();
    script.confirm(4, tasks(&[0], &[]));
    let revoked = script.event();
    script.wait();
    let _ = script.heartbeat();
    script.confirm(4, tasks(&[0, 3], &[]));
    assert!(script.events.is_empty(), "{:?}", script.events);
    script.acknowledge(&revoked);
    let assigned = script.event();
    assert_eq!(active(&assigned), ('+', vec![3]));
}

#[test]
fn fenced_member_joins_after_its_tasks_are_given_up() {
    for code in [ErrorCode::FENCED_MEMBER_EPOCH, ErrorCode::UNKNOWN_MEMBER_ID, ErrorCode::GROUP_ID_NOT_FOUND]
    {
        let mut script = Script::with_tasks(&[0, 1]);
        script.wait();
        let _ = script.heartbeat();
        script.refuse(code);
        let lost = script.event();
        assert_eq!(active(&lost), ('!', vec![0, 1]));
        let StreamsEvent::Revoked(revocation) = &lost else { panic!("{lost:?}") };
        assert!(
            matches!(&revocation.reason, RevocationReason::Lost(error) if error.kind() == ErrorKind::Broker(code))
        );
        assert_eq!(script.member.membership().epoch, None);
        script.wait();
        assert!(script.next().is_none());
        assert_eq!(script.member.poll_timeout(), None, "no timer runs for it");
        script.acknowledge(&lost);
        let join = script.heartbeat();
        assert_eq!((join.member_epoch, named(&join)), (0, Some((vec![], vec![]))));
    }
}

#[test]
fn task_is_revoked_once_when_the_member_is_fenced_meanwhile() {
    let mut script = Script::with_tasks(&[0, 1]);
    script.wait();
    let _ = script.heartbeat();
    script.confirm(4, tasks(&[1], &[]));
    let revoked = script.event();
    script.wait();
    let _ = script.heartbeat();
    script.refuse(ErrorCode::FENCED_MEMBER_EPOCH);
    let lost = script.event();
    assert_eq!((active(&revoked), active(&lost)), (('-', vec![0]), ('!', vec![1])));
    script.acknowledge(&lost);
    assert!(script.next().is_none(), "the application has not given up the other task");
    script.acknowledge(&revoked);
    assert_eq!(script.heartbeat().member_epoch, 0);
    assert!(script.events.is_empty(), "{:?}", script.events);
}

#[test]
fn lost_response_makes_the_member_join_again() {
    let mut script = Script::with_tasks(&[0]);
    script.wait();
    let _ = script.heartbeat();
    script.lose_response();
    script.wait();
    let again = script.heartbeat();
    assert_eq!((again.member_epoch, named(&again)), (3, Some((vec![0], vec![]))));
    // The lost response may have had another task.
    script.confirm(3, StreamsGroupHeartbeatResponse::default());
    let lost = script.event();
    assert_eq!(active(&lost), ('!', vec![0]));
    script.acknowledge(&lost);
    assert_eq!(script.heartbeat().member_epoch, 0);
    script.confirm(3, tasks(&[0, 1], &[]));
    let assigned = script.event();
    assert_eq!(active(&assigned), ('+', vec![0, 1]));
}

#[test]
fn assignment_after_a_lost_response_is_enough() {
    let mut script = Script::with_tasks(&[0]);
    script.wait();
    let _ = script.heartbeat();
    script.lose_response();
    script.wait();
    let _ = script.heartbeat();
    script.confirm(4, tasks(&[0, 2], &[]));
    let assigned = script.event();
    assert_eq!(active(&assigned), ('+', vec![2]));
}

#[test]
fn heartbeat_that_was_not_sent_costs_no_task() {
    let mut script = Script::with_tasks(&[0]);
    script.wait();
    let _ = script.heartbeat();
    script.respond(Err(Error::new(ErrorKind::AllBrokersDown, "")));
    script.wait();
    let _ = script.heartbeat();
    script.confirm(3, StreamsGroupHeartbeatResponse::default());
    assert!(script.events.is_empty(), "{:?}", script.events);
}

#[test]
fn moved_coordinator_is_asked_again_at_once() {
    let mut script = Script::with_tasks(&[0]);
    script.wait();
    let _ = script.heartbeat();
    assert!(script.refuse(ErrorCode::NOT_COORDINATOR));
    let again = script.heartbeat();
    assert_eq!((again.member_epoch, named(&again)), (3, Some((vec![0], vec![]))));
    assert!(!script.refuse(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS));
    assert!(script.next().is_none(), "the next attempt waits");
    script.wait();
    let _ = script.heartbeat();
    script.confirm(3, StreamsGroupHeartbeatResponse::default());
    assert!(script.events.is_empty(), "{:?}", script.events);
}

#[test]
fn responses_that_break_the_protocol_make_the_member_join_again() {
    let half = StreamsGroupHeartbeatResponse { active_tasks: Some(vec![]), ..Default::default() };
    let other = response::ActiveTask { subtopology_id: "x".to_owned(), partitions: vec![0] };
    let unknown = StreamsGroupHeartbeatResponse { active_tasks: Some(vec![other]), ..tasks(&[], &[]) };
    let cases = [
        (4, half, "some roles"),
        (4, tasks(&[-1], &[]), "partition -1"),
        (0, tasks(&[0], &[]), "member epoch 0"),
        (4, unknown, "subtopology \"x\""),
    ];
    for (epoch, response, text) in cases {
        let mut script = Script::with_tasks(&[0]);
        script.wait();
        let _ = script.heartbeat();
        script.confirm(epoch, response);
        let error = script.events.remove(0);
        assert!(
            matches!(&error, StreamsEvent::Error(it) if it.kind() == ErrorKind::BadResponse && it.to_string().contains(text)),
            "{error:?}"
        );
        let lost = script.event();
        assert_eq!(active(&lost), ('!', vec![0]));
        script.acknowledge(&lost);
        assert!(script.next().is_none(), "{text}: the next attempt waits");
        script.wait();
        assert_eq!(script.heartbeat().member_epoch, 0);
    }
}

#[test]
fn errors_that_stay_end_the_membership_with_their_kind() {
    let refused = [
        (ErrorCode::STREAMS_INVALID_TOPOLOGY, ErrorKind::Broker(ErrorCode::STREAMS_INVALID_TOPOLOGY)),
        (
            ErrorCode::STREAMS_INVALID_TOPOLOGY_EPOCH,
            ErrorKind::Broker(ErrorCode::STREAMS_INVALID_TOPOLOGY_EPOCH),
        ),
        (ErrorCode::STREAMS_TOPOLOGY_FENCED, ErrorKind::Broker(ErrorCode::STREAMS_TOPOLOGY_FENCED)),
        (ErrorCode::GROUP_MAX_SIZE_REACHED, ErrorKind::Broker(ErrorCode::GROUP_MAX_SIZE_REACHED)),
        (ErrorCode::INCONSISTENT_GROUP_PROTOCOL, ErrorKind::Broker(ErrorCode::INCONSISTENT_GROUP_PROTOCOL)),
        (ErrorCode::UNSUPPORTED_VERSION, ErrorKind::UnsupportedVersion),
    ];
    for (code, kind) in refused {
        let mut script = Script::with_tasks(&[0]);
        script.wait();
        let _ = script.heartbeat();
        script.refuse(code);
        assert_eq!(script.failure.as_ref().map(Error::kind), Some(kind));
        let lost = script.event();
        assert_eq!(active(&lost), ('!', vec![0]));
        script.acknowledge(&lost);
        script.wait();
        assert!(script.next().is_none() && script.member.poll_timeout().is_none());
    }
}

#[test]
fn member_that_leaves_says_so_and_a_static_one_may_return() {
    let leave = |script: &mut Script, operation| {
        script.member.leave(script.now + INTERVAL, operation);
        script.take_steps().map(|request| request.member_epoch)
    };
    let mut script = Script::with_tasks(&[0]);
    assert_eq!(leave(&mut script, GroupMembershipOperation::Default), Some(-1));
    assert!(!script.has_left);
    script.confirm(-1, StreamsGroupHeartbeatResponse::default());
    assert!(script.has_left && script.events.is_empty());

    let mut script = Script::with_tasks(&[0]);
    assert_eq!(leave(&mut script, GroupMembershipOperation::Default), Some(-1));
    script.wait();
    script.member.handle_timeout(script.now);
    let _ = script.take_steps();
    assert!(script.has_left, "the coordinator does not respond");

    let mut script = Script::with_tasks(&[0]);
    assert_eq!(leave(&mut script, GroupMembershipOperation::RemainInGroup), None);
    assert!(script.has_left);

    for (operation, epoch) in
        [(GroupMembershipOperation::Default, -2), (GroupMembershipOperation::LeaveGroup, -1)]
    {
        let mut script = Script::with(StreamsSettings { instance_id: Some(Arc::from("i")), ..settings() });
        assert_eq!(script.heartbeat().instance_id.as_deref(), Some("i"));
        script.confirm(1, tasks(&[], &[]));
        assert_eq!(leave(&mut script, operation), Some(epoch));
    }
}

#[test]
fn late_acknowledgement_gives_up_no_task_of_a_later_membership() {
    let mut script = Script::with_tasks(&[0]);
    script.wait();
    let _ = script.heartbeat();
    script.confirm(4, tasks(&[], &[]));
    let old = script.event();
    script.member.leave(script.now, GroupMembershipOperation::Default);
    let _ = script.take_steps();
    script.confirm(-1, StreamsGroupHeartbeatResponse::default());
    script.member.join(script.now);
    let _ = script.heartbeat();
    script.confirm(5, tasks(&[0], &[]));
    let _ = (script.event(), script.heartbeat());
    script.confirm(6, tasks(&[], &[]));
    let _ = script.event();
    script.acknowledge(&old);
    assert!(script.next().is_none(), "the member owns the task still");
}

#[test]
fn shutdown_of_the_application_is_requested_once() {
    let mut script = Script::with_tasks(&[0]);
    script.member.request_shutdown();
    assert!(script.heartbeat().shutdown_application);
    script.respond(Err(Error::new(ErrorKind::AllBrokersDown, "")));
    script.wait();
    assert!(script.heartbeat().shutdown_application, "the coordinator may not know it");
    let status = response::Status { status_code: 4, status_detail: "bye".to_owned() };
    script.confirm(3, StreamsGroupHeartbeatResponse { status: Some(vec![status]), ..Default::default() });
    let StreamsEvent::Status(status) = script.event() else { panic!("the status has changed") };
    assert_eq!((status[0].kind, &*status[0].detail), (StreamsStatusKind::ShutdownApplication, "bye"));
    script.wait();
    assert!(!script.heartbeat().shutdown_application);
}

#[test]
fn status_is_reported_when_it_changes() {
    let status =
        |code, detail: &str| response::Status { status_code: code, status_detail: detail.to_owned() };
    let with = |list: Vec<response::Status>| StreamsGroupHeartbeatResponse {
        status: Some(list),
        ..Default::default()
    };
    let mut script = Script::with_tasks(&[0]);
    let mut kinds = Vec::new();
    let lists = [
        vec![status(3, "a"), status(1, "t")],
        vec![status(1, "t"), status(3, "a")],
        vec![status(9, "")],
        vec![],
    ];
    for list in lists {
        script.wait();
        let _ = script.heartbeat();
        script.confirm(3, with(list));
        kinds.extend(script.events.drain(..).map(|event| match event {
            StreamsEvent::Status(list) => list.iter().map(|it| it.kind).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        }));
    }
    let first = vec![StreamsStatusKind::MissingSourceTopics, StreamsStatusKind::MissingInternalTopics];
    assert_eq!(kinds, [first, vec![StreamsStatusKind::Unknown(9)], vec![]]);
}

#[test]
fn offsets_are_reported_in_the_interval_of_the_coordinator() {
    let mut script = Script::with_tasks(&[0]);
    let task = StreamsTask { subtopology_id: "a".to_owned(), partition: 0 };
    let offsets = |offset| TaskOffsets {
        offsets: [(task.clone(), offset)].into(),
        end_offsets: [(task.clone(), 100)].into(),
    };
    script.member.report_offsets(offsets(5));
    script.wait();
    assert_eq!(script.heartbeat().task_offsets, None, "the coordinator has not asked");
    let asks = StreamsGroupHeartbeatResponse {
        task_offset_interval_ms: 12_000,
        acceptable_recovery_lag: 10_000,
        ..Default::default()
    };
    script.confirm(3, asks.clone());
    assert_eq!(script.member.membership().acceptable_recovery_lag, Some(10_000));
    script.wait();
    let report = script.heartbeat();
    let sent = |list: Option<Vec<_>>, of: fn(_) -> i64| {
        list.map(|list| list.into_iter().map(of).collect::<Vec<_>>())
    };
    assert_eq!(
        sent(
            report.task_offsets,
            |it: ottla_protocol::generated::streams_group_heartbeat::request::TaskOffset| it.offset
        ),
        Some(vec![5])
    );
    assert_eq!(report.task_end_offsets.map(|ends| ends[0].offset), Some(100));
    script.confirm(3, asks.clone());
    script.member.report_offsets(offsets(6));
    let mut reports = Vec::new();
    for _ in 0..4 {
        script.wait();
        reports.push(script.heartbeat().task_offsets.map(|list| list[0].offset));
        script.confirm(3, asks.clone());
    }
    assert_eq!(reports, [None, None, Some(6), None]);
}

#[test]
fn endpoints_are_taken_with_their_epoch() {
    let mut script = Script::with(StreamsSettings { endpoint: Some(("h".to_owned(), 70)), ..settings() });
    let join = script.heartbeat();
    assert_eq!(join.user_endpoint.map(|it| (it.host, it.port)), Some(("h".to_owned(), 70)));
    let endpoint = response::PartitionsByUserEndpoint {
        user_endpoint: response::UserEndpoint { host: "h".to_owned(), port: 70 },
        active_partitions: vec![response::ActivePartition { topic: "t".to_owned(), partitions: vec![0] }],
        standby_partitions: vec![],
    };
    let response = StreamsGroupHeartbeatResponse {
        endpoint_information_epoch: 8,
        partitions_by_user_endpoint: Some(vec![endpoint]),
        ..Default::default()
    };
    script.confirm(1, response);
    let StreamsEvent::Endpoints(endpoints) = script.event() else { panic!("they are new") };
    assert_eq!((endpoints[0].port, &*endpoints[0].active["t"]), (70, &[0][..]));
    script.wait();
    assert_eq!(script.heartbeat().endpoint_information_epoch, 8);
}
