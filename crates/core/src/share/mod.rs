//! Share groups (KIP-932): consumers that share partitions record by record, and acknowledge each record.
//!
//! [`ShareGroup`] is a part of the cluster actor: it is a member of the group and gives each assigned partition to the
//! broker actor of its leader. [`ShareFetcher`](fetcher::ShareFetcher) is a half of that broker actor: it fetches and
//! acknowledges in one session.
//!
//! ```text
//!  subscribe ──► ShareGroup ── Adopt, Forget, LeaderMoved, End ──► ShareFetcher ◄── submissions ──┐
//!                 │ member: ShareGroupHeartbeat                     │ session, decode              │
//!                 │ placement: partition ──► leader                 ▼                              │
//!  application ◄── AcquiredRecords ◄──────────────────────────── ShareShared ◄── HeldRecords ◄── commit
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `membership` | the protocol with the coordinator |
//! | [`message`] | the messages between the cluster actor and broker actors |
//! | `session` | epochs and partitions of a share session |
//! | [`fetcher`], `responses` | requests and responses of one broker |
//! | `decode` | acquired ranges, gaps, damaged batches |
//! | [`acquired`], [`walk`], `marks` | acquired records and the verdicts on them |
//! | [`acknowledgement`] | kinds of acknowledgements, and ranges of them |
//! | [`shared`] | the state that the application's threads share with the actors |
//! | `upkeep` | renewals, delayed releases, and events of locks |
//! | [`held`], [`ticket`] | the records that the application has, and commits of their verdicts |
//! | [`settings`] | the settings from the configuration |
//!
//! Delivery is at least once: the outcome of an acknowledgement may be lost with a connection, and records whose lock runs
//! out go to another member. The order of a partition holds within one delivery only.
//!
//! # Pitfalls
//!
//! - A topic may be created after the subscription: the coordinator assigns it by an ID that metadata lack until the next
//!   periodic refresh (`assigned_topic_that_metadata_lack_is_asked_about_at_once`).

pub mod acknowledgement;
pub mod acquired;
mod decode;
pub mod fetcher;
pub mod held;
mod marks;
mod membership;
pub mod message;
mod responses;
mod session;
pub mod settings;
pub mod shared;
pub mod ticket;
mod upkeep;
pub mod walk;

#[cfg(all(test, not(ottla_loom)))]
mod scripted;

#[cfg(all(test, not(ottla_loom)))]
pub(crate) use self::membership::routed as heartbeat_sample;

use std::{collections::VecDeque, sync::Arc, time::Duration};

use ottla_protocol::{
    uuid::Uuid,
    vocabulary::{NodeId, TopicPartition},
};
use ottla_sorted::{SortedMap, SortedSet};

use self::{
    membership::{ShareMember, Step},
    message::{ShareMessage, ShareReport},
    settings::ShareSettings,
    shared::ShareShared,
};
use crate::{
    completion::Completion,
    connection::Response,
    contract::{
        metadata::Metadata,
        part::{Interest, MetadataChanges, Need, Needs, Part, RequestOwner, SnapshotTime, ToNode, Urgency},
        route::{CoordinatorKey, Route},
    },
    error::{Error, ErrorKind},
    fetch::partition::PartitionHandle,
    machine::{Instant, earliest},
    rng::Rng,
    states::See,
    stats::Statistics,
};

/// A command of the application for the share group.
#[derive(Debug)]
pub enum ShareCommand {
    /// Consume these topics as a member of the group. There is at least one.
    Subscribe(SortedSet<Arc<str>>),
    /// Send the acknowledgements so far, release all other records, and leave the group; at the latest after this
    /// duration.
    Leave(Duration, Completion<()>),
    /// The application polls again after the member left because of missing polls.
    Polled,
}

/// The consumer's membership in its share group, and the brokers of its partitions.
#[derive(Debug)]
pub struct ShareGroup {
    shared: Arc<ShareShared>,
    member: ShareMember,
    placed: SortedMap<TopicPartition, Placed>,
    /// The nodes that got a partition, and may have a session.
    nodes: SortedSet<NodeId>,
    leaving: Option<Leaving>,
    /// The assigned topics whose names metadata lacked last; newer metadata was requested for them.
    unnamed: SortedSet<Uuid>,
    /// The next check of the application's polls; `None` while the member is none.
    check_polls_at: Option<Instant>,
    needs: VecDeque<Need<ToNode<ShareMessage>>>,
}

/// A partition at the broker actor of its leader.
#[derive(Debug)]
struct Placed {
    node: NodeId,
    topic_id: Uuid,
    handle: Arc<PartitionHandle>,
}

/// The calls that wait until the member has left, and the subscription that follows.
#[derive(Debug)]
struct Leaving {
    phase: LeavePhase,
    deadline: Instant,
    waiting: Vec<Completion<()>>,
    then_subscribe: Option<SortedSet<Arc<str>>>,
}

#[derive(Debug)]
enum LeavePhase {
    /// These nodes end their sessions, which may take until this time.
    Sessions(SortedSet<NodeId>, Instant),
    /// The coordinator is informed.
    Membership,
}

impl ShareGroup {
    /// Creates a consumer without a subscription.
    pub fn new(shared: Arc<ShareShared>, rng: Rng) -> Self {
        Self {
            member: ShareMember::new(ShareSettings::clone(&shared.settings), rng),
            shared,
            placed: SortedMap::new(),
            nodes: SortedSet::new(),
            leaving: None,
            unnamed: SortedSet::new(),
            check_polls_at: None,
            needs: VecDeque::new(),
        }
    }

    /// Carries out a command of the application.
    pub fn handle_command(&mut self, now: Instant, command: ShareCommand) {
        match command {
            ShareCommand::Subscribe(topics) => self.subscribe(now, topics),
            ShareCommand::Leave(timeout, done) => self.leave(now, timeout, done),
            ShareCommand::Polled => {
                self.check_polls_at = Some(now);
                self.member.handle_polled(now);
            }
        }
    }

    fn subscribe(&mut self, now: Instant, topics: SortedSet<Arc<str>>) {
        if let Some(leaving) = &mut self.leaving {
            leaving.then_subscribe = Some(topics);
            return;
        }
        self.shared.set_expired(false);
        self.check_polls_at = Some(now + self.shared.settings.max_poll_interval);
        self.member.subscribe(now, topics);
        self.needs.push_back(Need::Metadata(Urgency::Now));
    }

    fn leave(&mut self, now: Instant, timeout: Duration, done: Completion<()>) {
        if let Some(leaving) = &mut self.leaving {
            leaving.then_subscribe = None;
            return leaving.waiting.push(done);
        }
        let deadline = now + timeout;
        let nodes = std::mem::take(&mut self.nodes);
        for node in &nodes {
            self.needs.push_back(to_node(*node, ShareMessage::End(*node)));
        }
        self.placed.clear();
        self.check_polls_at = None;
        let phase = LeavePhase::Sessions(nodes, now + timeout * 3 / 4);
        self.leaving = Some(Leaving { phase, deadline, waiting: vec![done], then_subscribe: None });
    }

    /// Handles a report of a broker actor.
    pub(crate) fn handle_report(&mut self, report: &ShareReport) {
        let (ShareReport::Ended(node) | ShareReport::Gone(node)) = report;
        if let Some(Leaving { phase: LeavePhase::Sessions(nodes, _), .. }) = &mut self.leaving {
            nodes.remove(node);
        }
        self.placed.retain(|_, placed| placed.node != *node);
        self.nodes.remove(node);
    }

    /// Handles the response to a heartbeat, or the error instead of one. Returns true if the coordinator moved.
    pub(crate) fn handle_response(
        &mut self,
        now: Instant,
        term: u64,
        result: Result<Response, Error>,
    ) -> bool {
        self.member.handle_response(now, term, result)
    }

    /// Returns the nodes that are fetched from.
    pub(crate) const fn nodes(&self) -> &SortedSet<NodeId> {
        &self.nodes
    }

    /// Leaves the group once all sessions have ended.
    fn advance_leaving(&mut self, now: Instant) {
        let Some(leaving) = &mut self.leaving else { return };
        if let LeavePhase::Sessions(nodes, until) = &leaving.phase
            && (nodes.is_empty() || *until <= now)
        {
            leaving.phase = LeavePhase::Membership;
            self.member.leave(leaving.deadline);
        }
    }

    fn handle_left(&mut self, now: Instant) {
        let Some(Leaving { waiting, then_subscribe, .. }) = self.leaving.take() else { return };
        waiting.into_iter().for_each(|done| done.complete(()));
        if let Some(topics) = then_subscribe {
            self.subscribe(now, topics);
        }
    }

    fn carry_out_steps(&mut self, now: Instant) {
        self.member.advance(now);
        while let Some(step) = self.member.poll_step() {
            match step {
                Step::Send(request, term) => {
                    let group = CoordinatorKey::group(Arc::clone(&self.shared.settings.group_id));
                    let route = Route::Coordinator(group);
                    let owner = RequestOwner::Share(term);
                    self.needs.push_back(Need::Request { route, request, owner });
                }
                Step::Left => self.handle_left(now),
                Step::Report(error) => self.shared.report(error),
                Step::Fail(error) => self.shared.fail(error),
            }
        }
    }

    /// Gives each assigned partition to the broker actor of its leader.
    fn place(&mut self, metadata: &Metadata) {
        if self.leaving.is_some() {
            return;
        }
        let names: SortedMap<Uuid, &Arc<str>> = metadata
            .topics
            .iter()
            .filter(|(_, topic)| !topic.gone && self.member.assignment().contains_key(&topic.id))
            .map(|(name, topic)| (topic.id, name))
            .collect();
        let mut target = SortedMap::new();
        for (id, partitions) in self.member.assignment() {
            let Some(name) = names.get(id) else { continue };
            for partition in partitions {
                target.insert(TopicPartition::new(Arc::clone(name), *partition), *id);
            }
        }
        let gone = self.placed.extract(|key, placed| target.get(key) != Some(&placed.topic_id));
        for (key, placed) in gone {
            self.send(metadata, placed.node, ShareMessage::Forget(key));
        }
        for (key, topic_id) in target {
            let Some((leader, _)) = metadata.leader(&key.topic, key.partition) else { continue };
            if !metadata.nodes.contains_key(&leader) {
                continue;
            }
            let former = self.placed.get(&key).map(|placed| (placed.node, Arc::clone(&placed.handle)));
            let handle = match former {
                Some((node, _)) if node == leader => continue,
                Some((node, handle)) => {
                    self.send(metadata, node, ShareMessage::LeaderMoved(key.clone()));
                    handle
                }
                None => Arc::new(PartitionHandle::new(key.clone())),
            };
            let member = Arc::clone(self.member.member_id());
            let message = ShareMessage::Adopt { node: leader, member, handle: Arc::clone(&handle), topic_id };
            self.send(metadata, leader, message);
            self.nodes.insert(leader);
            self.placed.insert(key, Placed { node: leader, topic_id, handle });
        }
    }

    /// Sends a message to a node that metadata have. The broker actor of another one has ended.
    fn send(&mut self, metadata: &Metadata, node: NodeId, message: ShareMessage) {
        if metadata.nodes.contains_key(&node) {
            self.needs.push_back(to_node(node, message));
        }
    }

    /// Returns the assigned topics whose names are unknown.
    fn unnamed(&self, metadata: &Metadata) -> SortedSet<Uuid> {
        let known: SortedSet<Uuid> = metadata.topics.values().map(|topic| topic.id).collect();
        self.member.assignment().keys().filter(|id| !known.contains(id)).copied().collect()
    }

    /// Requests metadata as soon as the coordinator assigns a topic that was created after the last response. The responses
    /// that still lack it are followed by others, with a back-off.
    fn query_names(&mut self, metadata: &Metadata) {
        let unnamed = self.unnamed(metadata);
        if !unnamed.is_subset(&self.unnamed) {
            self.needs.push_back(Need::Metadata(Urgency::Now));
        }
        self.unnamed = unnamed;
    }

    /// Returns true if an assigned topic or a leader is unknown.
    fn misses_metadata(&self, metadata: &Metadata) -> bool {
        !self.unnamed(metadata).is_empty()
            || self.placed.keys().any(|key| metadata.leader(&key.topic, key.partition).is_none())
    }

    /// Leaves the group if the application does not poll.
    fn check_polls(&mut self, now: Instant) {
        if self.check_polls_at.is_none_or(|at| at > now) || !self.member.is_member() {
            return;
        }
        let limit = self.shared.settings.max_poll_interval;
        let at = self.shared.last_poll(now) + limit;
        if at > now {
            self.check_polls_at = Some(at);
            return;
        }
        let detail = format!(
            "the application has not polled for max.poll.interval.ms ({} ms): the consumer leaves its share group, and \
             joins it again when the application polls; poll more often, or increase max.poll.interval.ms",
            limit.as_millis()
        );
        self.shared.report(Error::new(ErrorKind::MaxPollExceeded, detail));
        self.shared.set_expired(true);
        self.check_polls_at = None;
        self.member.handle_poll_exceeded();
    }
}

fn to_node(node: NodeId, message: ShareMessage) -> Need<ToNode<ShareMessage>> {
    Need::Tell(ToNode { node, message })
}

impl Part for ShareGroup {
    fn states(&self, see: &mut See<'_>) {
        self.member.states(see);
        if let Some(leaving) = &self.leaving {
            see("end of a share membership", 0, &leaving.phase);
        }
    }

    fn handle_metadata(&mut self, _now: Instant, metadata: &Metadata, changes: &MetadataChanges) -> bool {
        for error in &changes.errors {
            if self.member.subscription().contains(&error.name) && !error.code.is_retriable() {
                let detail = "the share consumer subscribes to the topic";
                self.shared.report(Error::broker(error.code, Some(detail)).with_topic(&*error.name));
            }
        }
        self.misses_metadata(metadata)
    }

    fn handle_timeout(&mut self, now: Instant, _unreachable: Option<&Error>) {
        self.check_polls(now);
        self.member.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let leaving = self.leaving.as_ref().map(|leaving| match leaving.phase {
            LeavePhase::Sessions(_, until) => until,
            LeavePhase::Membership => leaving.deadline,
        });
        let polls = self.check_polls_at.filter(|_| self.member.is_member());
        earliest(earliest(leaving, polls), self.member.poll_timeout())
    }

    fn advance(&mut self, now: Instant, metadata: &Metadata) {
        self.advance_leaving(now);
        self.carry_out_steps(now);
        self.query_names(metadata);
        self.place(metadata);
    }

    fn add_statistics(&mut self, at: SnapshotTime, statistics: &mut Statistics) {
        self.shared.add_statistics(at.now, at.purpose, statistics);
        self.member.member_id().as_ref().clone_into(&mut statistics.member_id);
    }

    fn add_topics(&self, topics: &mut Interest) {
        topics.used.extend(self.member.subscription().iter().cloned());
    }

    fn close(&mut self) {
        self.needs.clear();
        self.shared.close();
        if let Some(leaving) = self.leaving.take() {
            leaving.waiting.into_iter().for_each(|done| done.complete(()));
        }
    }
}

impl Needs for ShareGroup {
    type Message = ToNode<ShareMessage>;

    fn poll_need(&mut self) -> Option<Need<ToNode<ShareMessage>>> {
        self.needs.pop_front()
    }
}
