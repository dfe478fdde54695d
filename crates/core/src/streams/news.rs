//! What a member of a streams group tells the application.

use std::{collections::BTreeMap, time::Duration};

use ottla_protocol::generated::streams_group_heartbeat::response;

use crate::{
    admin::groups::streams_groups::{StreamsTask, StreamsTasks},
    error::Error,
};

/// An event of a member of a streams group, in the order in which they are to be handled.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum StreamsEvent {
    /// The member has further tasks, which no other member has in the same role. They are to be started.
    Assigned(StreamsTasks),
    /// The member loses tasks: the application stops them, and then acknowledges it.
    Revoked(StreamsRevocation),
    /// The problems of the group that the coordinator reports have changed; the list may be empty.
    Status(Vec<StreamsStatus>),
    /// The application's processes have other partitions than before, or there are other processes.
    Endpoints(Vec<StreamsEndpoint>),
    /// An error. The member goes on.
    Error(Error),
}

/// Tasks that a member loses. The coordinator gives them to other members after the application has acknowledged this.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StreamsRevocation {
    /// The number of the revocation.
    pub(crate) id: u64,
    /// The tasks.
    pub tasks: StreamsTasks,
    /// Why.
    pub reason: RevocationReason,
}

/// Why a member loses tasks.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RevocationReason {
    /// The coordinator gives them to other members, or in other roles. The application may commit first.
    Reassigned,
    /// The membership has ended with this error: other members may have the tasks already, and commits are refused. The member
    /// joins again after the acknowledgement, unless [`Error::kind`] says that it can't.
    Lost(Error),
}

/// The kind of a problem of a streams group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum StreamsStatusKind {
    /// The member's topology is older than the group's: it gets no tasks.
    StaleTopology,
    /// Source topics do not exist. There are no tasks until they do.
    MissingSourceTopics,
    /// Topics that must have the same number of partitions have not.
    IncorrectlyPartitionedTopics,
    /// Internal topics do not exist yet; the detail names them if the coordinator could not create them.
    MissingInternalTopics,
    /// A member requested that all members of the application shut down.
    ShutdownApplication,
    /// The coordinator waits for further members before it assigns tasks.
    AssignmentDelayed,
    /// A code that this client does not know.
    Unknown(i8),
}

/// A problem of a streams group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct StreamsStatus {
    /// The kind.
    pub kind: StreamsStatusKind,
    /// The coordinator's text.
    pub detail: String,
}

/// A process of the application and the partitions of its tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamsEndpoint {
    /// Its host.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The partitions of its active tasks, by topic.
    pub active: BTreeMap<String, Vec<i32>>,
    /// The partitions of its standby tasks, by topic.
    pub standby: BTreeMap<String, Vec<i32>>,
}

/// What a member knows of its membership.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct StreamsMembership {
    /// The member ID.
    pub member_id: String,
    /// The member epoch; `None` while the member is not in the group.
    pub epoch: Option<i32>,
    /// The tasks that the member has, with those that are revoked and not acknowledged.
    pub tasks: StreamsTasks,
    /// The problems of the group.
    pub status: Vec<StreamsStatus>,
    /// The processes of the application.
    pub endpoints: Vec<StreamsEndpoint>,
    /// The lag of a task's state at which a warm-up task counts as restored, if the coordinator sets it (Kafka 4.4).
    pub acceptable_recovery_lag: Option<i64>,
    /// The interval in which the coordinator wants the offsets of tasks, if it sets one.
    pub task_offset_interval: Option<Duration>,
    /// The coordinator has a plug-in that stores the topology's description, has asked this member for it, and does not have it
    /// yet (KIP-1331).
    pub wants_topology_description: bool,
}

/// How far the member's tasks have restored their state, as a sum over the changelogs of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskOffsets {
    /// The offsets.
    pub offsets: BTreeMap<StreamsTask, i64>,
    /// The ends of the changelogs.
    pub end_offsets: BTreeMap<StreamsTask, i64>,
}

impl StreamsStatus {
    pub(super) fn of_response(status: response::Status) -> Self {
        let kind = match status.status_code {
            0 => StreamsStatusKind::StaleTopology,
            1 => StreamsStatusKind::MissingSourceTopics,
            2 => StreamsStatusKind::IncorrectlyPartitionedTopics,
            3 => StreamsStatusKind::MissingInternalTopics,
            4 => StreamsStatusKind::ShutdownApplication,
            5 => StreamsStatusKind::AssignmentDelayed,
            code => StreamsStatusKind::Unknown(code),
        };
        Self { kind, detail: status.status_detail }
    }
}

impl StreamsEndpoint {
    pub(super) fn of_response(endpoint: response::PartitionsByUserEndpoint) -> Self {
        let active = endpoint.active_partitions.into_iter().map(|topic| (topic.topic, topic.partitions));
        let standby = endpoint.standby_partitions.into_iter().map(|topic| (topic.topic, topic.partitions));
        Self {
            host: endpoint.user_endpoint.host,
            port: endpoint.user_endpoint.port,
            active: active.collect(),
            standby: standby.collect(),
        }
    }
}
