//! The controllers' quorum (KIP-595, KIP-853): describes it, changes its voters, and removes brokers from the cluster.

use std::time::Duration;

use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        add_raft_voter::{AddRaftVoterRequest, request::Listener},
        describe_quorum::{
            DescribeQuorumRequest,
            request::{Partition, Topic},
            response,
        },
        remove_raft_voter::RemoveRaftVoterRequest,
        unregister_broker::UnregisterBrokerRequest,
        unregister_controller::UnregisterControllerRequest,
    },
    uuid::Uuid,
};

use super::{AdminCall, check, one_result::OneResult};
use crate::{
    completion::Completion,
    contract::route::Route,
    error::{Error, ErrorKind},
};

/// The topic of the cluster's metadata, which the quorum replicates.
const METADATA_TOPIC: &str = "__cluster_metadata";

/// The state of the quorum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuorumDescription {
    /// The node ID of the leader, which is the active controller; `None` during an election.
    pub leader: Option<i32>,
    /// The leader epoch.
    pub leader_epoch: i32,
    /// The high watermark of the metadata log.
    pub high_watermark: i64,
    /// The controllers that vote.
    pub voters: Vec<QuorumReplica>,
    /// The brokers, and controllers that do not vote.
    pub observers: Vec<QuorumReplica>,
    /// The nodes of the quorum with their listeners (Kafka 3.9).
    pub nodes: Vec<QuorumNode>,
}

/// A replica of the metadata log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuorumReplica {
    /// The node ID.
    pub id: i32,
    /// The ID of the replica's directory, if it is known (Kafka 3.9).
    pub directory_id: Option<Uuid>,
    /// The end offset of its log.
    pub log_end_offset: i64,
    /// When it fetched last, in milliseconds since 1970, if it is known (Kafka 3.3).
    pub last_fetch: Option<i64>,
    /// When it last had all records, in milliseconds since 1970, if it is known (Kafka 3.3).
    pub last_caught_up: Option<i64>,
}

/// A node of the quorum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuorumNode {
    /// The node ID.
    pub id: i32,
    /// The listeners.
    pub listeners: Vec<VoterListener>,
}

/// A listener of a controller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VoterListener {
    /// The name of the listener, such as `CONTROLLER`.
    pub name: String,
    /// The host.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl VoterListener {
    /// Creates a listener.
    pub fn new(name: impl Into<String>, host: impl Into<String>, port: u16) -> Self {
        Self { name: name.into(), host: host.into(), port }
    }
}

/// A controller that votes: its node ID and the ID of its directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Voter {
    /// The node ID.
    pub id: i32,
    /// The ID of its directory with the metadata log.
    pub directory_id: Uuid,
}

/// Describes the quorum.
pub fn describe_quorum(timeout: Duration, done: Completion<Result<QuorumDescription, Error>>) -> AdminCall {
    let request = |_, _| DescribeQuorumRequest {
        topics: vec![Topic {
            topic_name: METADATA_TOPIC.to_owned(),
            partitions: vec![Partition { partition_index: 0 }],
        }],
    };
    let call = OneResult::new(Route::Any, request, |response, _| {
        check(response.error_code, response.error_message.as_deref())?;
        let mut topics = response.topics.into_iter().filter(|topic| topic.topic_name == METADATA_TOPIC);
        let found = topics.next().and_then(|topic| topic.partitions.into_iter().next());
        let Some(found) = found else {
            return Err(Error::new(ErrorKind::BadResponse, "the response leaves the metadata log out"));
        };
        check(found.error_code, found.error_message.as_deref())?;
        Ok(description(found, response.nodes))
    });
    call.call(timeout, done)
}

fn description(found: response::Partition, nodes: Vec<response::Node>) -> QuorumDescription {
    let known = |timestamp: i64| (timestamp >= 0).then_some(timestamp);
    let replica = |id, directory: Uuid, log_end_offset, last_fetch, last_caught_up| QuorumReplica {
        id,
        directory_id: (!directory.is_zero()).then_some(directory),
        log_end_offset,
        last_fetch: known(last_fetch),
        last_caught_up: known(last_caught_up),
    };
    let voters = found.current_voters.into_iter().map(|one| {
        let (fetched, caught_up) = (one.last_fetch_timestamp, one.last_caught_up_timestamp);
        replica(one.replica_id, one.replica_directory_id, one.log_end_offset, fetched, caught_up)
    });
    let observers = found.observers.into_iter().map(|one| {
        let (fetched, caught_up) = (one.last_fetch_timestamp, one.last_caught_up_timestamp);
        replica(one.replica_id, one.replica_directory_id, one.log_end_offset, fetched, caught_up)
    });
    let nodes = nodes.into_iter().map(|node| {
        let listeners = node.listeners.into_iter();
        QuorumNode {
            id: node.node_id,
            listeners: listeners.map(|one| VoterListener::new(one.name, one.host, one.port)).collect(),
        }
    });
    QuorumDescription {
        leader: (found.leader_id >= 0).then_some(found.leader_id),
        leader_epoch: found.leader_epoch,
        high_watermark: found.high_watermark,
        voters: voters.collect(),
        observers: observers.collect(),
        nodes: nodes.collect(),
    }
}

/// Makes a controller a voter. With a cluster ID, another cluster refuses the request.
pub fn add_voter(
    cluster_id: Option<String>,
    voter: Voter,
    listeners: Vec<VoterListener>,
    timeout: Duration,
    done: Completion<Result<(), Error>>,
) -> AdminCall {
    let request = move |_, timeout_ms| {
        let listeners = listeners.iter().cloned();
        AddRaftVoterRequest {
            cluster_id: cluster_id.clone(),
            timeout_ms,
            voter_id: voter.id,
            voter_directory_id: voter.directory_id,
            listeners: listeners
                .map(|one| Listener { name: one.name, host: one.host, port: one.port })
                .collect(),
            ..AddRaftVoterRequest::default()
        }
    };
    let call = OneResult::new(Route::Any, request, |response, _| {
        check(response.error_code, response.error_message.as_deref())
    });
    call.done_after_doubt(&[ErrorCode::DUPLICATE_VOTER], ()).call(timeout, done)
}

/// Removes a voter. With a cluster ID, another cluster refuses the request.
pub fn remove_voter(
    cluster_id: Option<String>,
    voter: Voter,
    timeout: Duration,
    done: Completion<Result<(), Error>>,
) -> AdminCall {
    let request = move |_, _| RemoveRaftVoterRequest {
        cluster_id: cluster_id.clone(),
        voter_id: voter.id,
        voter_directory_id: voter.directory_id,
    };
    let call = OneResult::new(Route::Any, request, |response, _| {
        check(response.error_code, response.error_message.as_deref())
    });
    call.done_after_doubt(&[ErrorCode::VOTER_NOT_FOUND], ()).call(timeout, done)
}

/// Removes a broker that is shut down from the cluster.
pub fn unregister_broker(broker: i32, timeout: Duration, done: Completion<Result<(), Error>>) -> AdminCall {
    let request = move |_, _| UnregisterBrokerRequest { broker_id: broker };
    let call = OneResult::new(Route::Controller, request, |response, _| {
        check(response.error_code, response.error_message.as_deref())
    });
    call.done_after_doubt(&[ErrorCode::BROKER_ID_NOT_REGISTERED], ()).call(timeout, done)
}

/// Removes the registration of a controller that is shut down and is not a voter.
pub fn unregister_controller(
    controller: i32,
    timeout: Duration,
    done: Completion<Result<(), Error>>,
) -> AdminCall {
    let request = move |_, _| UnregisterControllerRequest { controller_id: controller };
    let call = OneResult::new(Route::Controller, request, |response, _| {
        check(response.error_code, response.error_message.as_deref())
    });
    call.done_after_doubt(&[ErrorCode::CONTROLLER_ID_NOT_REGISTERED], ()).call(timeout, done)
}
