//! A commit of several offsets, each with an outcome of its own.
//!
//! The coordinator may accept some of the offsets and refuse others, and partitions may be given up before the commit is
//! sent. Offsets without an outcome are *open*; only they are sent again.
//!
//! # Pitfalls
//!
//! - A partition that was given up in between must not fail the commits of the others
//!   (`commit_of_a_revoked_partition_does_not_fail_the_others`).
//! - An offset belongs to the topic whose records were read, or else to the one that existed when the commit was made. If
//!   the topic was recreated meanwhile, the offset must not be committed for the new one, whatever the versions of the
//!   broker (`commit_is_refused_for_a_topic_that_was_recreated`), nor if newer metadata arrived between the call and the
//!   commit (`offset_of_a_record_is_refused_for_a_topic_that_was_recreated_since`).
//! - While a topic is deleted, its name may already be that of another one: the offset is sent with the topic's ID, and left
//!   out of requests with names (`offset_of_a_deleted_topic_is_not_sent_by_name`).

use std::{sync::Arc, time::Duration};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::offset_commit::{OffsetCommitRequest, OffsetCommitResponse, request},
    uuid::Uuid,
    vocabulary::{LeaderEpoch, TopicPartition},
};
use ottla_sorted::SortedMap;

use super::{
    committed::{CommitResult, GroupOffset},
    committer::{Committer, MemberIdentity},
    topic_ids::{RequestIds, TopicIds},
};
use crate::{
    completion::Completion,
    contract::route::RoutedRequest,
    error::{Error, ErrorKind},
};

/// The first version used. Earlier ones have a timestamp for each offset, or write to ZooKeeper.
const FIRST: i16 = 2;
/// The first version with the instance ID of a static member (KIP-345).
const FIRST_OF_STATIC_MEMBERS: i16 = 7;
/// The first version that the coordinator accepts from members of the consumer protocol (KIP-848).
const FIRST_WITH_EPOCH: i16 = 9;
/// The last version with topic names; the next one has topic IDs.
const LAST_WITH_NAMES: i16 = 9;
/// The first version with topic IDs.
const FIRST_WITH_IDS: i16 = 10;
/// The number of times that offsets of a topic ID that the coordinator does not know are sent again: its metadata may be
/// behind.
const MAX_UNKNOWN_IDS: u32 = 5;

/// Offsets to commit, with the outcomes that are known.
#[derive(Debug)]
pub(crate) struct CommitCall {
    offsets: Vec<OffsetInCall>,
    done: Completion<CommitResult>,
    /// The number of responses that did not know a topic ID.
    unknown_ids: u32,
}

#[derive(Debug)]
struct OffsetInCall {
    offset: GroupOffset,
    /// The ID of the topic that the offset is about, if it is known.
    id: Option<Uuid>,
    /// True if the last metadata report that topic as deleted. The broker may already have a new one of that name.
    is_deleted: bool,
    outcome: Option<Result<(), Error>>,
}

impl OffsetInCall {
    fn key(&self) -> TopicPartition {
        TopicPartition::new(Arc::clone(&self.offset.topic), self.offset.partition)
    }
}

/// The effect of a response on the offsets that are still open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// All outcomes are known.
    Done,
    /// The coordinator moved or is not ready: send the open offsets again.
    Coordinator(ErrorCode),
    /// The coordinator does not know a topic ID: send the open offsets again when newer metadata is known.
    UnknownId,
    /// The generation or member epoch has ended: send the open offsets again in a later one.
    Stale(ErrorCode),
}

impl CommitCall {
    /// Creates a commit. Offsets without a topic ID are about the topics that exist now.
    pub(crate) fn new(offsets: Vec<GroupOffset>, ids: &TopicIds, done: Completion<CommitResult>) -> Self {
        let in_call = |offset: GroupOffset| {
            let id = offset.topic_id.or_else(|| ids.get(&offset.topic));
            OffsetInCall { offset, id, is_deleted: false, outcome: None }
        };
        Self { offsets: offsets.into_iter().map(in_call).collect(), done, unknown_ids: 0 }
    }

    /// Returns true if there is nothing to commit.
    pub(crate) fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// Completes the call: offsets that are still open fail with `error`. The call itself fails if no outcome is known.
    pub(crate) fn fail(self, error: Error) {
        if self.offsets.iter().all(|offset| offset.outcome.is_none()) {
            return self.done.complete(Err(error));
        }
        self.complete_with(&error);
    }

    /// Completes the call with the outcome of each offset.
    pub(crate) fn complete(self) {
        self.complete_with(&Error::new(ErrorKind::Bug, "an offset has no outcome"));
    }

    fn complete_with(self, otherwise: &Error) {
        let outcomes = self.offsets.into_iter().map(|OffsetInCall { offset, outcome, .. }| {
            outcome.unwrap_or_else(|| Err(otherwise.clone().with_partition(&*offset.topic, offset.partition)))
        });
        self.done.complete(Ok(outcomes.collect()));
    }

    /// Refuses the open offsets that must not be sent: of partitions that the committer gave up since it made the commit,
    /// and of topics that were recreated. Notes the topics that were deleted. Returns true if no offset is open any more,
    /// although there are some.
    pub(crate) fn refuse_outdated(&mut self, made: &Committer, current: &Committer, ids: &TopicIds) -> bool {
        let has_offsets = !self.offsets.is_empty();
        for of_partition in &mut self.offsets {
            if of_partition.outcome.is_some() {
                continue;
            }
            let key = of_partition.key();
            of_partition.is_deleted = of_partition.id.is_some_and(|id| ids.is_deleted(&key.topic, id));
            let error = match (of_partition.id, ids.get(&key.topic)) {
                (Some(id), Some(current)) if id != current => recreated(),
                _ if !made.may_commit_as(current, &key) => given_up(),
                _ => continue,
            };
            of_partition.outcome =
                Some(Err(error.with_api("OffsetCommit").with_partition(&*key.topic, key.partition)));
        }
        has_offsets && self.open().next().is_none()
    }

    /// Fails the open offsets whose partitions the committer gave up while the commit waited for the next generation.
    /// Returns true if no offset is open any more.
    pub(crate) fn stop_waiting(&mut self, current: &Committer, refusal: &Error) -> bool {
        for of_partition in self.offsets.iter_mut().filter(|offset| offset.outcome.is_none()) {
            let key = of_partition.key();
            if current.has_given_up(&key) {
                of_partition.outcome = Some(Err(refusal.clone().with_partition(&*key.topic, key.partition)));
            }
        }
        self.open().next().is_none()
    }

    /// Completes a call whose offsets were all refused by [`CommitCall::refuse_outdated`]. The call itself fails if all
    /// partitions were given up.
    pub(crate) fn complete_refused(self) {
        let was_given_up = |offset: &OffsetInCall| {
            let error = offset.outcome.as_ref().and_then(|outcome| outcome.as_ref().err());
            error.is_some_and(|error| error.kind() == ErrorKind::State)
        };
        if self.offsets.iter().all(was_given_up) {
            return self.done.complete(Err(given_up().with_api("OffsetCommit")));
        }
        self.complete();
    }

    /// Returns the topics of the open offsets whose IDs are remembered.
    pub(crate) fn topics_by_id(&self) -> impl Iterator<Item = &Arc<str>> {
        self.offsets
            .iter()
            .filter(|offset| offset.outcome.is_none() && offset.id.is_some())
            .map(|offset| &offset.offset.topic)
    }

    fn open(&self) -> impl Iterator<Item = &OffsetInCall> {
        self.offsets.iter().filter(|offset| offset.outcome.is_none())
    }

    fn ids(&self) -> Option<RequestIds> {
        let ids = self.open().map(|offset| Some((Arc::clone(&offset.offset.topic), offset.id?)));
        ids.collect::<Option<_>>().map(RequestIds::new)
    }

    /// Returns the request for the open offsets.
    pub(crate) fn request(
        &self,
        group: &Arc<str>,
        committer: &Committer,
        timeout: Duration,
    ) -> RoutedRequest {
        let mut topics: SortedMap<Arc<str>, (bool, Vec<request::Partition>)> = SortedMap::new();
        for OffsetInCall { offset, is_deleted, .. } in self.open() {
            let topic = topics.entry(Arc::clone(&offset.topic)).or_default();
            topic.0 |= is_deleted;
            topic.1.push(request::Partition {
                partition_index: offset.partition,
                committed_offset: offset.offset,
                committed_leader_epoch: LeaderEpoch::to_wire(offset.leader_epoch),
                committed_metadata: Some(offset.metadata.clone()),
                ..request::Partition::default()
            });
        }
        let group_id = Arc::clone(group);
        let member = match committer {
            Committer::Member(member) => Some(member.clone()),
            Committer::Nobody | Committer::Outside => None,
        };
        let first = match &member {
            Some(_) if committer.has_epoch() => FIRST_WITH_EPOCH,
            Some(member) if member.instance_id.is_some() => FIRST_OF_STATIC_MEMBERS,
            _ => FIRST,
        };
        let ids = self.ids();
        let last = if ids.is_some() { FIRST_WITH_IDS } else { LAST_WITH_NAMES };
        let ids = ids.unwrap_or_default();
        let encode = Box::new(move |version, out: &mut Vec<u8>| {
            let by_name = version < FIRST_WITH_IDS;
            let meant = topics.iter().filter(|(_, (is_deleted, _))| !(by_name && *is_deleted));
            let topics = meant.map(|(name, (_, partitions))| request::Topic {
                name: if by_name { name.to_string() } else { String::new() },
                topic_id: if by_name { Uuid::ZERO } else { ids.get(name) },
                partitions: partitions.clone(),
            });
            let mut request = OffsetCommitRequest {
                group_id: group_id.to_string(),
                topics: topics.collect(),
                ..OffsetCommitRequest::default()
            };
            if let Some(MemberIdentity { member_id, generation, instance_id, held: _ }) = &member {
                request.generation_id_or_member_epoch = generation.get();
                request.member_id.clone_from(member_id);
                request.group_instance_id.clone_from(instance_id);
            }
            request.encode(version, out)
        });
        RoutedRequest { api: ApiKey::OffsetCommit, versions: first..=last, timeout, encode }
    }

    /// Handles a response for the open offsets, which were sent under the identity `sent`. The accepted ones are added to
    /// `accepted`.
    pub(crate) fn handle_response(
        &mut self,
        response: &OffsetCommitResponse,
        (sent, current): (&Committer, &Committer),
        accepted: &mut impl Extend<GroupOffset>,
    ) -> Progress {
        let ids = self.ids().unwrap_or_default();
        let reported: SortedMap<(&str, i32), ErrorCode> = response
            .topics
            .iter()
            .flat_map(|topic| {
                let name = ids.name(topic.topic_id, &topic.name);
                let partitions = topic.partitions.iter();
                partitions.map(move |reported| ((name, reported.partition_index), reported.error_code))
            })
            .collect();
        let mut progress = Progress::Done;
        let may_wait = self.unknown_ids < MAX_UNKNOWN_IDS;
        for of_partition in self.offsets.iter_mut().filter(|offset| offset.outcome.is_none()) {
            let offset = &of_partition.offset;
            let outcome = match reported.get(&(&*offset.topic, offset.partition)).copied() {
                Some(ErrorCode::NONE) => {
                    accepted.extend([offset.clone()]);
                    Ok(())
                }
                Some(code) if is_coordinators(code) => {
                    progress = Progress::Coordinator(code);
                    continue;
                }
                // The metadata say so, too: librdkafka gets this code for a name.
                Some(ErrorCode::UNKNOWN_TOPIC_ID) if of_partition.is_deleted => Err(deleted()),
                Some(ErrorCode::UNKNOWN_TOPIC_ID) if of_partition.id.is_some() && may_wait => {
                    if progress == Progress::Done {
                        progress = Progress::UnknownId;
                    }
                    continue;
                }
                Some(code) if sent.is_repeatable(current, &of_partition.key(), code) => {
                    if !matches!(progress, Progress::Coordinator(_)) {
                        progress = Progress::Stale(code);
                    }
                    continue;
                }
                Some(code) => Err(Error::broker(code, None)),
                None if of_partition.is_deleted => Err(deleted()),
                None => Err(Error::new(ErrorKind::BadResponse, "the response omits the partition")),
            };
            let located = |error: Error| {
                error.with_api("OffsetCommit").with_partition(&*offset.topic, offset.partition)
            };
            of_partition.outcome = Some(outcome.map_err(located));
        }
        self.unknown_ids += u32::from(progress == Progress::UnknownId);
        progress
    }
}

fn given_up() -> Error {
    let detail = "not sent: the group rebalanced after the commit was made; commit again what the consumer has after the \
                  next assignment";
    Error::new(ErrorKind::State, detail).with_refusal(ErrorCode::ILLEGAL_GENERATION)
}

fn recreated() -> Error {
    let detail = "not sent: the topic was recreated after the commit was made, and the offset belongs to the old one; \
                  commit offsets of records that were consumed since";
    Error::new(ErrorKind::TopicRecreated, detail)
}

fn deleted() -> Error {
    let detail = "the topic was deleted after its records were read";
    Error::broker(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, Some(detail))
}

/// True if the error code asks the client to retry, at another coordinator or at the same one later.
pub(crate) const fn is_coordinators(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::COORDINATOR_LOAD_IN_PROGRESS
            | ErrorCode::COORDINATOR_NOT_AVAILABLE
            | ErrorCode::NOT_COORDINATOR
            | ErrorCode::REQUEST_TIMED_OUT
            | ErrorCode::UNSTABLE_OFFSET_COMMIT
    )
}
