//! The manager against a scripted cluster; its requests are shown as short texts.

use std::sync::Arc;

use ottla_protocol::vocabulary::{LeaderEpoch, NodeId, TopicPartition};

use super::{
    super::{message::FetchMessage, partition::PartitionConsumer, position::Offset},
    FetchManager,
};
use crate::{
    config::OffsetReset,
    contract::{
        metadata::{Metadata, Node, PartitionMetadata, TopicMetadata},
        part::{MetadataChanges, Need, Needs, Part, ToNode, Urgency},
        route::Route,
    },
    error::ErrorKind,
    fetch::{
        deliver::{ConsumerEvent, Records},
        settings::ConsumerSettings,
        shared::ConsumerShared,
    },
    machine::Instant,
};

pub(super) const NOW: Instant = Instant::from_nanos(1_000_000_000);

pub(super) fn epoch(number: i32) -> Option<LeaderEpoch> {
    LeaderEpoch::from_wire(number)
}

pub(super) fn metadata(leader: i32) -> Metadata {
    let node = |host: &str| Node { host: host.into(), port: 9092, rack: None };
    let partition = PartitionMetadata {
        leader: NodeId::from_wire(leader),
        leader_epoch: LeaderEpoch::from_wire(3),
        ..PartitionMetadata::default()
    };
    let topic = TopicMetadata { partitions: vec![partition], ..TopicMetadata::default() };
    Metadata {
        nodes: [(1, node("a")), (2, node("b"))]
            .into_iter()
            .filter_map(|(id, node)| Some((NodeId::from_wire(id)?, node)))
            .collect(),
        topics: [(Arc::from("t"), topic)].into(),
        ..Metadata::default()
    }
}

pub(super) struct Script {
    pub(super) shared: Arc<ConsumerShared>,
    pub(super) manager: FetchManager,
    pub(super) metadata: Metadata,
}

impl Script {
    pub(super) fn new(auto_offset_reset: OffsetReset) -> Self {
        let settings = ConsumerSettings { auto_offset_reset, ..ConsumerSettings::default() };
        let shared = Arc::new(ConsumerShared::new(settings));
        Self { manager: FetchManager::new(Arc::clone(&shared)), shared, metadata: metadata(1) }
    }

    pub(super) fn assign(&mut self, partition: i32, from: Offset) {
        for command in self.shared.assign(&[(TopicPartition::new("t", partition), from)]) {
            self.manager.handle_command(NOW, command);
        }
    }

    /// A script whose partition 0 was adopted by broker 1, from an offset on.
    pub(super) fn reading_from(offset: i64) -> Self {
        let mut script = Self::new(OffsetReset::End);
        script.assign(0, Offset::At(offset));
        script.wants();
        script
    }

    /// Shows the manager the cluster's metadata, as if they had just come.
    pub(super) fn see_metadata(&mut self, now: Instant) -> bool {
        self.manager.handle_metadata(now, &self.metadata, &MetadataChanges::default())
    }

    /// Returns the manager's current requests as short texts.
    pub(super) fn wants(&mut self) -> Vec<String> {
        self.manager.advance(NOW, &self.metadata);
        let mut wants = Vec::new();
        while let Some(need) = self.manager.poll_need() {
            wants.push(match need {
                Need::Metadata(Urgency::Now) => "refresh".to_owned(),
                Need::Metadata(Urgency::Soon) => "refresh soon".to_owned(),
                Need::Request { route: Route::PastFetch(node), request, .. } => {
                    format!("{} Node({node})", request.api.name())
                }
                Need::Request { route, request, .. } => format!("{} {route:?}", request.api.name()),
                Need::Tell(ToNode { node, message: FetchMessage::Release(_) }) => {
                    format!("release {node}")
                }
                Need::Tell(ToNode { node, message: FetchMessage::Adopt(partition) }) => {
                    format!("adopt {node} from {} version {}", partition.offset, partition.version)
                }
                other => panic!("{other:?}"),
            });
        }
        wants
    }

    pub(super) fn back(&self, offset: i64) -> Box<PartitionConsumer> {
        let handle = self.shared.partition("t", 0).unwrap();
        let version = handle.version();
        let mut partition = PartitionConsumer::new(handle, version, offset);
        partition.leader_epoch = epoch(3);
        partition.refusals = 1;
        Box::new(partition)
    }

    pub(super) fn errors(&self) -> Vec<ErrorKind> {
        let mut records = Records::default();
        self.shared.queue.take(usize::MAX, &mut records);
        let kind = |event: &ConsumerEvent| match event {
            ConsumerEvent::Error(error) => error.kind(),
            other => panic!("{other:?}"),
        };
        records.events().iter().map(kind).collect()
    }
}
