//! The consumer's part of the cluster actor: turns start positions into offsets, and hands each partition to the broker
//! actor of the node to fetch it from.
//!
//! | file | step |
//! |---|---|
//! | `entry` | the states of a partition |
//! | `starting` | starts and stops partitions, and finds their offsets |
//! | `placing` | gives partitions to broker actors, and takes them back |
//! | `checking` | asks new leaders whether they have the records that were read, and handles truncated logs |
//! | `resetting` | offsets that do not exist: out of range, or of a topic that was recreated |
//! | `responses` | responses to the requests of these steps |
//!
//! # Pitfalls
//!
//! - A leader that does not know the epoch of a Fetch may stay the leader. The partition needs the newer epoch, or it
//!   is refused forever (`unknown_leader_epoch_is_replaced_from_newer_metadata`).
//! - A consumer that follows leader hints without a limit can be sent in circles. After two refusals it waits for
//!   metadata (`known_new_leader_is_followed_at_once_but_not_endlessly`).
//! - Records that were fetched ahead but not delivered can be truncated too. The application gets no event for them
//!   (`truncated_log_is_reported_and_reading_continues_if_reset_allows`).

mod checking;
mod entry;
mod placing;
mod resetting;
mod responses;
mod starting;

#[cfg(test)]
mod scripted;

use std::{collections::VecDeque, sync::Arc};

use ottla_protocol::vocabulary::{NodeId, TopicPartition};
use ottla_sorted::{SortedMap, SortedSet};

use self::entry::Entry;
use super::{
    FetchCommand,
    epochs::{CheckId, EpochChecks},
    message::FetchMessage,
    shared::ConsumerShared,
};
use crate::{
    config::IsolationLevel,
    contract::{
        metadata::Metadata,
        part::{
            FetchRequest, Interest, MetadataChanges, Need, Needs, Part, RequestOwner, SnapshotTime, ToNode,
            Urgency,
        },
        route::{Route, RoutedRequest},
    },
    error::{Error, ErrorKind},
    machine::{Instant, earliest},
    offsets::{
        committed::{CommittedOffsets, QuestionId},
        list_offsets::{LookupId, OffsetLookups},
    },
    states::{See, number_of},
    stats::Statistics,
};

/// The consumed partitions: the actor that has each one, and what it waits for.
#[derive(Debug)]
pub struct FetchManager {
    shared: Arc<ConsumerShared>,
    entries: SortedMap<TopicPartition, Entry>,
    lookups: OffsetLookups,
    /// The partition of each lookup.
    lookup_keys: SortedMap<LookupId, TopicPartition>,
    /// The group's committed offsets, if there is a group.
    committed: Option<CommittedOffsets>,
    /// The partition of each question for a committed offset.
    question_keys: SortedMap<QuestionId, TopicPartition>,
    checks: EpochChecks,
    /// The partition of each check.
    check_keys: SortedMap<CheckId, TopicPartition>,
    /// Partitions that may be ready to be given to their leaders.
    unplaced: SortedSet<TopicPartition>,
    /// Partitions whose broker reported that it does not lead them: a newer leader may be known already.
    refused: SortedSet<TopicPartition>,
    /// The ends of the partitions' back-offs.
    delayed: SortedSet<(Instant, TopicPartition)>,
    /// Topics that the application named, until metadata or an error about them arrives.
    named_topics: SortedSet<Arc<str>>,
    /// The need for metadata that was not reported yet.
    metadata_need: Option<Urgency>,
    /// The nodes that partitions were given to.
    fetched_from: SortedSet<NodeId>,
    needs: VecDeque<Need<ToNode<FetchMessage>>>,
}

impl FetchManager {
    /// A manager without partitions.
    pub fn new(shared: Arc<ConsumerShared>) -> Self {
        let settings = &shared.settings;
        let isolation_level = i8::from(settings.isolation_level == IsolationLevel::ReadCommitted);
        Self {
            lookups: OffsetLookups::new(isolation_level, settings.response_timeout, settings.retry_backoff),
            committed: settings.group_id.as_deref().map(Arc::from).map(|group| {
                let stable = settings.isolation_level == IsolationLevel::ReadCommitted;
                let backoff = (settings.retry_backoff, settings.retry_backoff_max);
                CommittedOffsets::new(group, stable, settings.response_timeout, backoff)
            }),
            question_keys: SortedMap::new(),
            checks: EpochChecks::new(settings.response_timeout),
            check_keys: SortedMap::new(),
            refused: SortedSet::new(),
            delayed: SortedSet::new(),
            named_topics: SortedSet::new(),
            metadata_need: None,
            fetched_from: SortedSet::new(),
            shared,
            entries: SortedMap::new(),
            lookup_keys: SortedMap::new(),
            unplaced: SortedSet::new(),
            needs: VecDeque::new(),
        }
    }

    /// Carries out a command of the application.
    pub fn handle_command(&mut self, now: Instant, command: FetchCommand) {
        match command {
            FetchCommand::Start(starts) => starts.into_iter().for_each(|start| self.start(now, start)),
            FetchCommand::Stop(handles) => {
                handles.iter().for_each(|handle| self.stop(handle));
                // Streams of these partitions end.
                self.shared.queue.wake_consumers();
            }
            FetchCommand::Topic(topic) => {
                self.named_topics.insert(topic);
                self.need_metadata(Urgency::Now);
            }
            FetchCommand::Group(call) => match &mut self.committed {
                Some(committed) => committed.call(now, call),
                None => call.kind.fail(Error::new(ErrorKind::InvalidArgument, "`group.id` is not set")),
            },
            FetchCommand::CommitAs(committer) => {
                if let Some(committed) = &mut self.committed {
                    committed.commit_as(committer);
                }
            }
            FetchCommand::ListOffsets(query, completion) => self.lookups.start_query(now, &query, completion),
        }
    }

    /// Returns true if the consumer has a group.
    pub const fn has_group(&self) -> bool {
        self.committed.is_some()
    }

    /// The nodes that partitions are fetched from.
    pub fn nodes(&self) -> SortedSet<NodeId> {
        self.entries.values().filter_map(Entry::fetched_at).collect()
    }

    fn request(&mut self, route: Route, request: RoutedRequest, owner: FetchRequest) {
        self.needs.push_back(Need::Request { route, request, owner: RequestOwner::Fetch(owner) });
    }

    /// Sends a message to the broker actor of a node.
    fn send(&mut self, node: NodeId, message: FetchMessage) {
        self.needs.push_back(Need::Tell(ToNode { node, message }));
    }

    /// The route to a node that does not wait behind a Fetch.
    fn route_past_fetch(&self, node: NodeId) -> Route {
        if self.fetched_from.contains(&node) { Route::PastFetch(node) } else { Route::Node(node.get()) }
    }

    /// Turns the requests of the three searches into needs.
    fn collect_requests(&mut self, now: Instant) {
        while let Some((number, leader, request)) = self.lookups.poll_request() {
            let owner = FetchRequest::Offsets(number);
            self.request(self.route_past_fetch(leader), request, owner);
        }
        while let Some((number, route, request)) = self.committed.as_mut().and_then(|committed| {
            let (number, request) = committed.poll_request(now)?;
            Some((number, committed.route(), request))
        }) {
            self.request(route, request, FetchRequest::Committed(number));
        }
        if self.committed.as_mut().is_some_and(CommittedOffsets::take_must_check_membership) {
            self.needs.push_back(Need::CheckMembership);
        }
        let outdated =
            self.committed.as_mut().map(CommittedOffsets::take_outdated_topics).unwrap_or_default();
        if !outdated.is_empty() {
            self.named_topics.extend(outdated);
            self.need_metadata(Urgency::Now);
        }
        while let Some((number, leader, request)) = self.checks.poll_request() {
            self.request(self.route_past_fetch(leader), request, FetchRequest::Epochs(number));
        }
    }
}

impl Part for FetchManager {
    fn states(&self, see: &mut See<'_>) {
        for (partition, entry) in self.entries.iter() {
            entry.states(number_of(partition), see);
        }
        self.lookups.states(see);
    }

    fn handle_metadata(&mut self, now: Instant, metadata: &Metadata, changes: &MetadataChanges) -> bool {
        changes.recreated.iter().for_each(|topic| self.handle_recreated(now, topic));
        if let Some(committed) = &mut self.committed {
            committed.handle_metadata(metadata);
            self.shared.set_topic_ids(committed.topic_ids());
        }
        let is_answered = |name: &Arc<str>| {
            metadata.topics.contains_key(name) || changes.errors.iter().any(|error| error.name == *name)
        };
        self.named_topics.retain(|name| !is_answered(name));
        let lookups_miss_leaders = self.lookups.handle_metadata(now, metadata, &changes.errors);
        self.follow_metadata(now, metadata, &changes.errors)
            || lookups_miss_leaders
            || !self.named_topics.is_empty()
    }

    fn handle_new_leader(&mut self, partition: &TopicPartition, metadata: &Metadata) {
        self.follow_new_leader(partition, metadata);
    }

    fn handle_timeout(&mut self, now: Instant, unreachable: Option<&Error>) {
        self.lookups.handle_timeout(now, unreachable);
        if let Some(committed) = &mut self.committed {
            committed.handle_timeout(now);
        }
        self.handle_finished(now);
        self.end_backoffs(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let committed = self.committed.as_ref().and_then(CommittedOffsets::poll_timeout);
        let delayed = self.delayed.first().map(|(at, _)| *at);
        earliest(self.lookups.poll_timeout(), earliest(committed, delayed))
    }

    fn advance(&mut self, now: Instant, metadata: &Metadata) {
        self.lookups.advance(now, metadata);
        self.handle_finished(now);
        self.reconsider_refused(metadata);
        for key in std::mem::take(&mut self.unplaced) {
            if !self.place(&key, metadata) {
                self.need_metadata(Urgency::Now);
            }
        }
        // A response above may have started a lookup: its request is sent at once.
        self.lookups.advance(now, metadata);
        self.collect_requests(now);
        let urgency = self.metadata_need.take().max(self.lookups.take_metadata_need());
        self.needs.extend(urgency.map(Need::Metadata));
    }

    fn add_topics(&self, topics: &mut Interest) {
        topics.used.extend(self.entries.keys().map(|key| Arc::clone(&key.topic)));
        topics.used.extend(self.named_topics.iter().cloned());
        self.lookups.requested_topics(&mut topics.used);
    }

    fn add_statistics(&mut self, at: SnapshotTime, statistics: &mut Statistics) {
        self.shared.add_statistics(at.now, at.purpose, statistics);
        if let (Some(committed), Some(consumer)) = (&mut self.committed, &mut statistics.consumer) {
            consumer.commit_latency = committed.commit_latency.snapshot(at.purpose);
        }
    }

    fn close(&mut self) {
        // First: a call that ends without a result finds that the consumer is closed.
        self.shared.queue.close();
        self.entries.clear();
        self.named_topics.clear();
        self.unplaced.clear();
        self.lookup_keys.clear();
        self.check_keys.clear();
        self.checks.close();
        self.question_keys.clear();
        if let Some(committed) = &mut self.committed {
            committed.close();
        }
        self.delayed.clear();
        self.refused.clear();
        self.lookups.close();
    }
}

impl Needs for FetchManager {
    type Message = ToNode<FetchMessage>;

    fn poll_need(&mut self) -> Option<Need<ToNode<FetchMessage>>> {
        self.needs.pop_front()
    }
}
