//! The machines that make this client a member of a group, one for each group protocol.

pub(super) mod classic;
pub(super) mod consumer_protocol;
mod heartbeat;
pub(super) mod heartbeat_rules;
pub(super) mod requests;
mod target;

#[cfg(test)]
mod scripted;
#[cfg(test)]
mod scripted_consumer;

use std::sync::Arc;

use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        consumer_group_heartbeat::ConsumerGroupHeartbeatResponse, describe_groups::DescribeGroupsResponse,
        heartbeat::HeartbeatResponse, join_group::JoinGroupResponse, metadata::MetadataResponse,
        sync_group::SyncGroupResponse,
    },
    message::Message,
    primitive::Reader,
    uuid::Uuid,
    vocabulary::{Generation, TopicPartition},
};
use ottla_sorted::{SortedMap, SortedSet};

use self::{
    classic::{ClassicMember, Step},
    consumer_protocol::ConsumerMember,
};
use super::{
    assignor::TopicTable,
    settings::{GroupProtocol, GroupSettings},
};
use crate::{
    connection::Response,
    contract::{metadata::Metadata, part::GroupRequest},
    error::{Error, ErrorKind},
    group::departure::GroupMembershipOperation,
    machine::Instant,
    rng::Rng,
    states::See,
};

/// A member of a group, with the protocol of `group.protocol`. `ClassicMember` describes the methods.
#[derive(Debug)]
pub(super) enum Member {
    /// The classic protocol: the group's leader assigns.
    Classic(Box<ClassicMember>),
    /// The consumer protocol (KIP-848): the coordinator assigns.
    Consumer(Box<ConsumerMember>),
}

impl Member {
    /// Shows the state.
    pub(super) fn states(&self, see: &mut See<'_>) {
        match self {
            Self::Classic(member) => member.states(see),
            Self::Consumer(member) => member.states(see),
        }
    }

    /// Creates a member without a subscription.
    pub(super) fn new(settings: Arc<GroupSettings>, rng: Rng) -> Self {
        match settings.group_protocol {
            GroupProtocol::Classic => Self::Classic(Box::new(ClassicMember::new(settings, rng))),
            GroupProtocol::Consumer => Self::Consumer(Box::new(ConsumerMember::new(settings, rng))),
        }
    }

    /// Returns the member ID and the generation or member epoch, if the coordinator counts this member.
    pub(super) fn identity(&self) -> Option<(&str, Generation)> {
        match self {
            Self::Classic(member) => member.identity(),
            Self::Consumer(member) => member.identity(),
        }
    }

    pub(super) fn member_id(&self) -> &str {
        match self {
            Self::Classic(member) => member.member_id(),
            Self::Consumer(member) => member.member_id(),
        }
    }

    pub(super) fn state_name(&self) -> &'static str {
        match self {
            Self::Classic(member) => member.state_name(),
            Self::Consumer(member) => member.state_name(),
        }
    }

    pub(super) fn reason(&self) -> &str {
        match self {
            Self::Classic(member) => member.reason(),
            Self::Consumer(member) => member.reason(),
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        match self {
            Self::Classic(member) => member.has_failed(),
            Self::Consumer(member) => member.has_failed(),
        }
    }

    pub(super) fn handle_poll_exceeded(&mut self, now: Instant) {
        match self {
            Self::Classic(member) => member.handle_poll_exceeded(now),
            Self::Consumer(member) => member.handle_poll_exceeded(now),
        }
    }

    pub(super) fn handle_polled(&mut self, now: Instant) {
        match self {
            Self::Classic(member) => member.handle_polled(now),
            Self::Consumer(member) => member.handle_polled(now),
        }
    }

    /// Returns the partitions that belong to a member of the consumer protocol, each with the member epoch since when;
    /// `None` for a classic member, whose partitions belong to its generation.
    pub(super) fn held(&self) -> Option<Arc<SortedMap<TopicPartition, Generation>>> {
        match self {
            Self::Classic(_) => None,
            Self::Consumer(member) => Some(Arc::clone(member.held())),
        }
    }

    /// Returns true if no rebalance is in progress: the member has the assignment of its generation.
    pub(super) fn is_settled(&self) -> bool {
        match self {
            Self::Classic(member) => member.is_settled(),
            Self::Consumer(_) => true,
        }
    }

    /// Adds the topics whose metadata the member needs.
    pub(super) fn add_topics(&self, topics: &mut SortedSet<Arc<str>>) {
        match self {
            Self::Classic(member) => topics.extend(member.topics().cloned()),
            Self::Consumer(member) => topics.extend(member.topics().cloned()),
        }
    }

    /// Returns the topics that a leader must know before it can assign partitions.
    pub(super) fn topics_to_assign(&self) -> Option<SortedSet<Arc<str>>> {
        match self {
            Self::Classic(member) => member.topics_to_assign(),
            Self::Consumer(_) => None,
        }
    }

    /// Returns true if the member was not subscribed since it left, or never.
    pub(super) const fn is_unsubscribed(&self) -> bool {
        match self {
            Self::Classic(member) => member.is_unsubscribed(),
            Self::Consumer(_) => false,
        }
    }

    /// Returns the topics as of the last assignment, if this member leads the group and no rebalance is in progress.
    pub(super) fn observed_topics(&self) -> Option<&SortedMap<Arc<str>, TopicTable>> {
        match self {
            Self::Classic(member) => member.observed_topics(),
            Self::Consumer(_) => None,
        }
    }

    pub(super) fn assign(&mut self, now: Instant, topics: SortedMap<Arc<str>, TopicTable>) {
        match self {
            Self::Classic(member) => member.assign(now, topics),
            Self::Consumer(_) => debug_assert!(false, "the coordinator assigns"),
        }
    }

    /// Changes the subscription. A classic member has no patterns.
    pub(super) fn subscribe(&mut self, now: Instant, names: SortedSet<Arc<str>>, pattern: Option<String>) {
        match self {
            Self::Classic(member) => member.subscribe(now, names),
            Self::Consumer(member) => member.subscribe(now, names, pattern),
        }
    }

    pub(super) fn leave(&mut self, now: Instant, operation: GroupMembershipOperation, reason: &str) {
        match self {
            Self::Classic(member) => member.leave(now, operation, reason),
            Self::Consumer(member) => member.leave(now, operation),
        }
    }

    /// Partitions were given up before others are taken over. A classic member reports it when it joins again.
    pub(super) fn handle_given_up(&mut self, owned: &SortedSet<TopicPartition>) {
        match self {
            Self::Classic(_) => {}
            Self::Consumer(member) => member.handle_given_up(owned),
        }
    }

    /// A classic member joins again. The other protocol has no joins: the next heartbeat reports the change.
    pub(super) fn rejoin(&mut self, now: Instant, reason: &str) {
        match self {
            Self::Classic(member) => member.rejoin(now, reason),
            Self::Consumer(_) => {}
        }
    }

    pub(super) fn handle_revoked(&mut self, now: Instant) {
        match self {
            Self::Classic(member) => member.handle_revoked(now),
            Self::Consumer(member) => member.handle_revoked(now),
        }
    }

    /// Earlier commits have an outcome. Only a classic member waits for them.
    pub(super) fn handle_settled(&mut self, now: Instant) {
        match self {
            Self::Classic(member) => member.handle_settled(now),
            Self::Consumer(_) => {}
        }
    }

    pub(super) fn check_membership(&mut self, now: Instant) {
        match self {
            Self::Classic(member) => member.check_membership(now),
            Self::Consumer(member) => member.check_membership(now),
        }
    }

    /// Adopts the names of assigned topics, which a member of the consumer protocol knows by ID.
    pub(super) fn handle_metadata(&mut self, metadata: &Metadata) {
        match self {
            Self::Classic(_) => {}
            Self::Consumer(member) => member.handle_metadata(metadata),
        }
    }

    pub(super) fn advance(&mut self, now: Instant, owned: &SortedSet<TopicPartition>, may_join: bool) {
        match self {
            Self::Classic(member) => member.advance(now, owned, may_join),
            Self::Consumer(member) => member.advance(now, owned, may_join),
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Classic(member) => member.handle_timeout(now),
            Self::Consumer(member) => member.handle_timeout(now),
        }
    }

    pub(super) fn poll_timeout(&self, may_join: bool) -> Option<Instant> {
        match self {
            Self::Classic(member) => member.poll_timeout(may_join),
            Self::Consumer(member) => member.poll_timeout(may_join),
        }
    }

    pub(super) fn poll_step(&mut self) -> Option<Step> {
        match self {
            Self::Classic(member) => member.poll_step(),
            Self::Consumer(member) => member.poll_step(),
        }
    }

    /// Handles the response to a request, or the error instead of one. Returns true if the coordinator moved.
    pub(super) fn handle_response(
        &mut self,
        now: Instant,
        request: GroupRequest,
        result: Result<Response, Error>,
    ) -> bool {
        match (self, request) {
            (Self::Classic(member), GroupRequest::Join(term)) => {
                let result = result.and_then(|response| decode::<JoinGroupResponse>("JoinGroup", &response));
                member.handle_join(now, term, result)
            }
            (Self::Classic(member), GroupRequest::Sync(term)) => {
                let result = result.and_then(|response| {
                    decode::<SyncGroupResponse>("SyncGroup", &response)
                        .or_else(|error| refused_sync(&response).ok_or(error))
                });
                member.handle_sync(now, term, result)
            }
            (Self::Classic(member), GroupRequest::Heartbeat(term)) => {
                let result = result.and_then(|response| {
                    let sent = response.request.written_at;
                    Ok((sent, decode::<HeartbeatResponse>("Heartbeat", &response)?))
                });
                member.handle_heartbeat(now, term, result)
            }
            (Self::Classic(member), GroupRequest::Leave(term)) => member.handle_leave(term),
            (Self::Classic(member), GroupRequest::Describe(term)) => {
                let result =
                    result.and_then(|response| decode::<DescribeGroupsResponse>("DescribeGroups", &response));
                member.handle_described(now, term, result)
            }
            (Self::Consumer(member), GroupRequest::ConsumerHeartbeat(term)) => {
                let result = result.and_then(|response| {
                    let sent = response.request.written_at;
                    let api = "ConsumerGroupHeartbeat";
                    Ok((sent, decode::<ConsumerGroupHeartbeatResponse>(api, &response)?))
                });
                member.handle_heartbeat(now, term, result)
            }
            (Self::Consumer(member), GroupRequest::TopicNames(term)) => {
                let result = result.and_then(|response| decode::<MetadataResponse>("Metadata", &response));
                member.handle_names(now, term, result.map(|response| names_of(&response)));
                false
            }
            (_, request) => {
                debug_assert!(false, "{request:?} belongs to the other protocol");
                false
            }
        }
    }
}

/// Returns the IDs and names of the topics in a response that exist.
fn names_of(response: &MetadataResponse) -> Vec<(Uuid, Arc<str>)> {
    let topics = response.topics.iter().filter(|topic| !topic.error_code.is_error());
    topics.filter_map(|topic| Some((topic.topic_id, Arc::from(topic.name.as_deref()?)))).collect()
}

/// Returns a refusal whose body can't be decoded: some coordinators send no assignment with an error code, not even an empty
/// one.
fn refused_sync(response: &Response) -> Option<SyncGroupResponse> {
    let throttle_bytes = if response.request.version >= 1 { 4 } else { 0 };
    let code = response.body().get(throttle_bytes..)?.first_chunk()?;
    let error_code = ErrorCode(i16::from_be_bytes(*code));
    let is_known = error_code.is_error() && ErrorCode::all().any(|known| known == error_code);
    is_known.then(|| SyncGroupResponse { error_code, ..SyncGroupResponse::default() })
}

fn decode<M: Message>(api: &'static str, response: &Response) -> Result<M, Error> {
    M::decode(&mut Reader::new(response.body()), response.request.version)
        .map_err(|error| Error::new(ErrorKind::BadResponse, error.to_string()).with_api(api))
}
