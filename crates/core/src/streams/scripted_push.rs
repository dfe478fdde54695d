//! The push of the topology's description against a scripted coordinator.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        streams_group_heartbeat::StreamsGroupHeartbeatResponse,
        streams_group_topology_description_update::{
            StreamsGroupTopologyDescriptionUpdateRequest, StreamsGroupTopologyDescriptionUpdateResponse,
        },
    },
    primitive::Reader,
};

use super::{
    news::StreamsEvent,
    scripted::{Script, settings},
    settings::StreamsSettings,
};
use crate::{
    admin::groups::topology_description::{
        GlobalStore, SubtopologyDescription, TopologyDescription, TopologyNode, TopologyNodeKind,
    },
    error::{Error, ErrorKind},
    group::departure::GroupMembershipOperation,
};

fn node(name: &str, kind: TopologyNodeKind, next: &[&str]) -> TopologyNode {
    let successors = next.iter().map(|name| (*name).to_owned()).collect();
    TopologyNode { name: name.to_owned(), kind, successors }
}

fn description() -> TopologyDescription {
    let source =
        |name, next: &[&str]| node(name, TopologyNodeKind::Source { topics: vec!["t".to_owned()] }, next);
    let processor = |name, next: &[&str]| {
        node(name, TopologyNodeKind::Processor { stores: vec!["counts".to_owned()] }, next)
    };
    let sink = node("sink", TopologyNodeKind::Sink { topic: Some("out".to_owned()) }, &[]);
    let nodes = vec![source("source", &["count"]), processor("count", &["sink"]), sink];
    let part = SubtopologyDescription { id: "a".to_owned(), nodes };
    let store =
        GlobalStore { source: source("pages", &["pages-store"]), processor: processor("pages-store", &[]) };
    TopologyDescription { subtopologies: vec![part], global_stores: vec![store] }
}

fn asks() -> StreamsGroupHeartbeatResponse {
    StreamsGroupHeartbeatResponse { topology_description_required: true, ..Default::default() }
}

/// Returns a member in its group, which was not asked.
fn member() -> Script {
    let described = settings().with_description(Some(description())).expect("it is right");
    let mut script = Script::with(described);
    let _ = script.heartbeat();
    script.confirm(3, StreamsGroupHeartbeatResponse::default());
    assert!(script.next().is_none());
    script
}

/// Returns a member that was asked.
fn asked() -> Script {
    let mut script = member();
    script.wait();
    let _ = script.heartbeat();
    script.confirm(3, asks());
    script
}

impl Script {
    /// Takes the only push, and returns its number.
    fn push(&mut self) -> Option<u64> {
        let _ = self.next();
        assert!(self.pushes.len() < 2, "two pushes at the same time");
        self.pushes.pop().map(|(_, number)| number)
    }

    /// Answers a push. Returns true if the coordinator moved.
    fn answer(&mut self, number: u64, result: Result<ErrorCode, ErrorKind>) -> bool {
        let response = result.map(|error_code| StreamsGroupTopologyDescriptionUpdateResponse {
            error_code,
            ..Default::default()
        });
        let response = response.map_err(|kind| Error::new(kind, ""));
        let moved = self.member.handle_decoded_push(self.now, number, response);
        let _ = self.take_steps();
        moved
    }
}

#[test]
fn description_is_pushed_once_when_it_is_asked_for() {
    let mut script = member();
    assert!(script.pushes.is_empty() && !script.member.membership().wants_topology_description);
    script.wait();
    let _ = script.heartbeat();
    script.confirm(3, asks());
    assert!(script.member.membership().wants_topology_description);
    assert_eq!(script.member.poll_timeout(), Some(script.now), "it is due at once");
    let _ = script.next();
    let (request, number) = script.pushes.pop().expect("it is sent");
    let mut bytes = Vec::new();
    (request.encode)(0, &mut bytes).expect("it has version 0");
    let sent = StreamsGroupTopologyDescriptionUpdateRequest::decode(&mut Reader::new(&bytes), 0);
    let sent = sent.expect("it is valid");
    assert_eq!((&*sent.group_id, sent.topology_epoch), ("g", 0));
    assert_eq!(sent.member_id, script.member.member_id());
    let nodes = &sent.topology_description.subtopologies[0].nodes;
    assert_eq!(nodes.iter().map(|node| node.node_type).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(
        (&*nodes[0].successors, &*nodes[1].stores),
        (&["count".to_owned()][..], &["counts".to_owned()][..])
    );
    assert_eq!(
        (&*nodes[0].source_topics, nodes[2].sink_topic.as_deref()),
        (&["t".to_owned()][..], Some("out"))
    );
    assert_eq!(sent.topology_description.global_stores[0].processor.name, "pages-store");
    assert_eq!(script.push(), None, "one is in flight");
    assert!(!script.answer(number, Ok(ErrorCode::NONE)));
    assert!(!script.member.membership().wants_topology_description);
    for _ in 0..3 {
        script.wait();
        let _ = script.heartbeat();
        script.confirm(3, StreamsGroupHeartbeatResponse::default());
        assert_eq!(script.push(), None);
    }
    script.wait();
    let _ = script.heartbeat();
    script.confirm(3, asks());
    assert!(script.push().is_some(), "the coordinator asks again");
}

#[test]
fn push_is_repeated_until_it_is_answered() {
    let mut script = asked();
    for lost in [
        Err(ErrorKind::Disconnected),
        Err(ErrorKind::RequestTimedOut),
        Ok(ErrorCode::NOT_COORDINATOR),
        Ok(ErrorCode::COORDINATOR_NOT_AVAILABLE),
        Ok(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS),
    ] {
        let number = script.push().expect("it is sent again");
        let is_moved = matches!(lost, Ok(ErrorCode::NOT_COORDINATOR | ErrorCode::COORDINATOR_NOT_AVAILABLE));
        assert_eq!(script.answer(number, lost), is_moved, "{lost:?}");
        assert_eq!(script.push(), None, "the next attempt waits");
        // Heartbeats go on, and the coordinator asks only once.
        script.wait();
        let _ = script.heartbeat();
        script.confirm(3, StreamsGroupHeartbeatResponse::default());
        assert!(script.member.membership().wants_topology_description);
    }
    let number = script.push().expect("it is sent again");
    script.answer(number, Ok(ErrorCode::NONE));
    script.wait();
    assert_eq!(script.push(), None);
    assert!(script.events.is_empty(), "{:?}", script.events);
}

#[test]
fn refused_push_is_reported_once_and_not_repeated() {
    let reported = [
        ErrorCode::STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED,
        ErrorCode::INVALID_REQUEST,
        ErrorCode::GROUP_AUTHORIZATION_FAILED,
        ErrorCode::UNSUPPORTED_VERSION,
    ];
    for code in reported {
        let mut script = asked();
        let number = script.push().expect("it is sent");
        script.answer(number, Ok(code));
        let event = script.events.remove(0);
        assert!(
            matches!(&event, StreamsEvent::Error(error) if error.kind() == ErrorKind::Broker(code)),
            "{event:?}"
        );
        script.wait();
        assert_eq!(script.push(), None);
        assert!(script.events.is_empty() && !script.member.membership().wants_topology_description);
    }
    for code in [ErrorCode::UNKNOWN_MEMBER_ID, ErrorCode::GROUP_ID_NOT_FOUND] {
        let mut script = asked();
        let number = script.push().expect("it is sent");
        script.answer(number, Ok(code));
        assert!(script.events.is_empty(), "the next heartbeat reports it");
        script.wait();
        assert_eq!(script.push(), None);
    }
}

#[test]
fn question_is_forgotten_with_the_membership() {
    let mut script = asked();
    let before = script.push().expect("it is sent");
    script.answer(before, Err(ErrorKind::Disconnected));
    script.wait();
    assert_eq!(script.heartbeat().member_epoch, 3);
    let late = script.pushes.pop().expect("it is sent again").1;
    script.refuse(ErrorCode::FENCED_MEMBER_EPOCH);
    assert!(!script.member.membership().wants_topology_description);
    assert_eq!(script.heartbeat().member_epoch, 0);
    script.confirm(4, asks());
    let number = script.push().expect("the coordinator asked the new member");
    script.answer(late, Ok(ErrorCode::NONE));
    assert!(script.member.membership().wants_topology_description, "the response is an earlier one's");
    script.answer(number, Ok(ErrorCode::NONE));
    assert!(!script.member.membership().wants_topology_description);

    let mut script = asked();
    script.member.leave(script.now, GroupMembershipOperation::Default);
    let _ = script.take_steps();
    assert_eq!(script.push(), None);
}

#[test]
fn member_without_a_description_only_knows_that_one_is_wanted() {
    let mut script = Script::with(StreamsSettings { description: None, ..settings() });
    let _ = script.heartbeat();
    script.confirm(3, asks());
    assert_eq!(script.push(), None);
    assert!(script.member.membership().wants_topology_description);
    assert_eq!(
        script.member.poll_timeout(),
        Some(script.now + super::scripted::INTERVAL),
        "no timer runs for it"
    );
}
