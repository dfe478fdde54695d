//! The part of the cluster actor: the partitions that the coordinator assigns, and the metadata that they need.

use ottla_protocol::generated::{
    metadata::{
        MetadataResponse,
        response::{Broker, Partition as MetadataPartition, Topic},
    },
    share_group_heartbeat::{
        ShareGroupHeartbeatResponse,
        response::{Assignment, TopicPartition as AssignedTopic},
    },
};
use ottla_sorted::SortedSet;

use super::{
    super::{ShareCommand, ShareGroup},
    *,
};
use crate::contract::{
    metadata::Metadata,
    part::{Need, Needs, Part, RequestOwner, Urgency},
};

/// Metadata of the topic `t` with this ID.
fn metadata_of(id: Uuid) -> Metadata {
    let partitions = vec![MetadataPartition { leader_id: 1, ..MetadataPartition::default() }];
    let topic = Topic { name: Some("t".into()), topic_id: id, partitions, ..Topic::default() };
    let broker = Broker { node_id: 1, host: "b".into(), port: 9092, ..Broker::default() };
    let mut metadata = Metadata::default();
    metadata.apply(&MetadataResponse {
        brokers: vec![broker],
        topics: vec![topic],
        ..MetadataResponse::default()
    });
    metadata
}

struct Member {
    now: Instant,
    group: ShareGroup,
}

impl Member {
    /// Runs the part. Returns whether it asks for metadata, its heartbeats, and its messages to broker actors.
    fn advance(&mut self, metadata: &Metadata) -> (bool, Vec<u64>, usize) {
        self.group.advance(self.now, metadata);
        let (mut asks, mut heartbeats, mut messages) = (false, Vec::new(), 0);
        while let Some(need) = self.group.poll_need() {
            match need {
                Need::Metadata(urgency) => asks = urgency == Urgency::Now,
                Need::Request { owner: RequestOwner::Share(term), .. } => heartbeats.push(term),
                Need::Tell(_) => messages += 1,
                other => panic!("{other:?}"),
            }
        }
        (asks, heartbeats, messages)
    }

    fn assign(&mut self, term: u64, id: Uuid) {
        let topic = AssignedTopic { topic_id: id, partitions: vec![0] };
        let response = ShareGroupHeartbeatResponse {
            member_epoch: 1,
            heartbeat_interval_ms: 5_000,
            assignment: Some(Assignment { topic_partitions: vec![topic] }),
            ..ShareGroupHeartbeatResponse::default()
        };
        self.group.member.handle_decoded(self.now, term, Ok(response));
    }
}

#[test]
fn assigned_topic_that_metadata_lack_is_asked_about_at_once() {
    let group = ShareGroup::new(Arc::new(ShareShared::new(settings())), Rng::from_seed(1));
    let mut member = Member { now: Instant::from_nanos(1_000_000_000), group };
    member.group.handle_command(member.now, ShareCommand::Subscribe(SortedSet::from([Arc::from("t")])));
    let (old, recreated) = (metadata_of(T), metadata_of(Uuid([9; 16])));
    let none = Metadata::default();
    let (_, joins, _) = member.advance(&none);
    assert_eq!(member.advance(&none), (false, vec![], 0));
    member.assign(joins[0], T);
    assert_eq!(member.advance(&none), (true, vec![], 0), "the topic was created meanwhile");
    assert_eq!(member.advance(&none), (false, vec![], 0), "once");
    assert_eq!(member.advance(&old), (false, vec![], 1), "the partition goes to its leader");
    member.now += Duration::from_secs(5);
    let (_, heartbeats, _) = member.advance(&old);
    member.assign(heartbeats[0], Uuid([9; 16]));
    assert!(member.advance(&old).0, "another topic under the same name");
    assert_eq!(member.advance(&recreated), (false, vec![], 1));
}
