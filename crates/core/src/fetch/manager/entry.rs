//! A consumed partition, as the manager knows it: a state machine without requests and messages.
//!
//! ```text
//!              search                     offset is known              has a leader
//!  Nowhere ──────────────► Finding ───────────────────────► Waiting ──────────────────► At(node)
//!     ▲                       ▲                              ▲ │ ▲                         │ │
//!     │ give_up               │ reset                        │ ▼ │       take_back         │ │ ask_back, detach
//!     └── any state           └───────────── Waiting      Checking └───────────────────────┘ ▼
//!                                                                ▲                        Leaving(next)
//!                                                                └── take_back: as `next` says ──┘
//! ```
//!
//! The partition's struct is at one place only: here while it is `Waiting` or `Checking`, else at the broker actor. An
//! assignment that starts while a broker actor still has the struct is resolved meanwhile, as `next` of `Leaving`, and waits
//! until the broker actor gave the old struct back.

use std::{sync::Arc, time::Duration};

use ottla_protocol::{
    error_code::ErrorCode,
    vocabulary::{LeaderEpoch, NodeId, TopicPartition},
};

use super::super::{
    assignment::AssignmentVersion,
    epochs::CheckId,
    partition::{PartitionConsumer, PartitionHandle},
    position::Resolution,
};
use crate::{
    completion::Completion,
    contract::metadata::{Metadata, TopicError},
    error::{Error, ErrorKind},
    machine::Instant,
    offsets::{
        committed::QuestionId,
        list_offsets::{LookupId, topic_error, unknown_partition},
    },
    states::See,
};

/// The duration for which a topic may be unknown before the application gets an error: it may have been created just now.
const UNKNOWN_TOPIC_TIMEOUT: Duration = Duration::from_secs(1);

/// A consumed partition.
#[derive(Debug)]
pub(super) struct Entry {
    /// The half that the application's threads see.
    pub(super) handle: Arc<PartitionHandle>,
    /// The assignment that the state belongs to.
    pub(super) version: AssignmentVersion,
    state: State,
    /// The closer node that the leader named, until the node fails or the lease ends.
    pub(super) replica: Option<Replica>,
    /// The offset that a closer node did not have.
    pub(super) missing_at_replica: Option<i64>,
    /// The seek that waits for the offset.
    pub(super) done: Option<Completion<Result<i64, Error>>>,
    since: Instant,
    /// The end of the back-off; the partition is not given to a broker actor before.
    pub(super) backoff_until: Option<Instant>,
    /// The node whose refusal the back-off belongs to.
    refused_by: Option<NodeId>,
    /// `auto.offset.reset` chose the offset at least once in this assignment.
    pub(super) was_reset: bool,
    /// The last reported error: each is reported once.
    pub(super) reported: Option<ErrorKind>,
}

/// A node that is closer than the leader (KIP-392).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Replica {
    pub(super) node: NodeId,
    /// The time at which the leader named it.
    pub(super) since: Instant,
}

#[derive(Debug)]
enum State {
    /// The offset to start from is searched for.
    Finding(Search),
    /// The offset is known; no broker actor has the partition.
    Waiting(Box<PartitionConsumer>, WaitFor),
    /// A new leader is asked whether its log has the records up to the offset (KIP-320).
    Checking(Box<PartitionConsumer>, CheckId),
    /// The broker actor of this node fetches the partition.
    At(NodeId),
    /// A broker actor was asked to give the partition back, or the struct that it has is stale.
    Leaving(Next),
    /// There is no offset, and the application got the reason.
    Nowhere,
}

/// The search for the offset to start from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Search {
    /// The group's coordinator is asked for the committed offset.
    Loading(QuestionId),
    /// The leader is asked.
    Resolving(Resolution, LookupId),
}

/// The reason why a partition with a known offset waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitFor {
    /// The known leader: the partition is given to it with the next chance.
    Leader,
    /// Newer metadata: the known leader refused the partition, or the partition has no leader.
    Metadata,
    /// Newer metadata, which shows whether the topic was recreated; then `auto.offset.reset`.
    MetadataThenReset,
}

/// The next step when a broker actor returns the partition.
#[derive(Debug)]
enum Next {
    /// Another node fetches it from the same offset.
    Continue,
    /// The search for the new assignment's offset continues.
    Find(Search),
    /// It starts at the new assignment's offset.
    Start(Box<PartitionConsumer>),
    /// The new assignment has no offset.
    Nowhere,
    /// The entry is removed: the partition is not assigned any more.
    Forget,
}

/// What has to be undone after [`Entry::detach`].
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Detached {
    /// The node whose broker actor has to give the partition back.
    pub(super) release_from: Option<NodeId>,
    /// The search to cancel.
    pub(super) search: Option<Search>,
    /// The check to cancel.
    pub(super) check: Option<CheckId>,
}

/// The reason for which a broker actor returned a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Return {
    /// The assignment goes on with this struct.
    Current,
    /// The struct is stale: the entry was detached meanwhile.
    Stale,
    /// The entry has to be removed.
    Forget,
}

impl Entry {
    /// Shows the state.
    pub(super) fn states(&self, number: u64, see: &mut See<'_>) {
        see("partition of a consumer", number, &self.state);
    }

    /// An entry without an offset.
    pub(super) const fn new(
        handle: Arc<PartitionHandle>,
        version: AssignmentVersion,
        done: Option<Completion<Result<i64, Error>>>,
        since: Instant,
    ) -> Self {
        Self {
            handle,
            version,
            state: State::Nowhere,
            replica: None,
            missing_at_replica: None,
            done,
            since,
            backoff_until: None,
            refused_by: None,
            was_reset: false,
            reported: None,
        }
    }

    /// An entry without an offset that replaces this one, which was detached: a broker actor may still have the old struct.
    pub(super) fn replaced_by(self, mut new: Self) -> Self {
        if matches!(self.state, State::Leaving(_)) {
            new.state = State::Leaving(Next::Nowhere);
        }
        new
    }

    /// The current version of the assignment, which may have restarted at a damaged record.
    pub(super) fn version(&self) -> AssignmentVersion {
        let current = self.handle.version();
        if current.is_same_assignment(self.version) { current } else { self.version }
    }

    /// The partition.
    pub(super) fn key(&self) -> &TopicPartition {
        self.handle.key()
    }

    /// True if the entry is removed as soon as the broker actor gave the partition back.
    pub(super) const fn is_stopped(&self) -> bool {
        matches!(self.state, State::Leaving(Next::Forget))
    }

    /// The node whose broker actor fetches the partition.
    pub(super) const fn fetched_at(&self) -> Option<NodeId> {
        match self.state {
            State::At(node) => Some(node),
            _ => None,
        }
    }

    /// The partition with a known offset that no broker actor has, and what it waits for.
    pub(super) fn waiting(&self) -> Option<(&PartitionConsumer, WaitFor)> {
        match &self.state {
            State::Waiting(partition, wait) => Some((partition, *wait)),
            _ => None,
        }
    }

    /// The partition if it can be given to its leader now.
    pub(super) fn ready(&mut self) -> Option<&mut PartitionConsumer> {
        match &mut self.state {
            State::Waiting(partition, WaitFor::Leader) if self.backoff_until.is_none() => Some(partition),
            _ => None,
        }
    }

    /// The search for the offset.
    pub(super) const fn search(&self) -> Option<Search> {
        match self.state {
            State::Finding(search) | State::Leaving(Next::Find(search)) => Some(search),
            _ => None,
        }
    }

    /// Gives up the offset and whatever was done for it.
    pub(super) fn detach(&mut self) -> Detached {
        let mut detached = Detached::default();
        self.state = match std::mem::replace(&mut self.state, State::Nowhere) {
            State::Finding(search) => {
                detached.search = Some(search);
                State::Nowhere
            }
            State::Checking(_, id) => {
                detached.check = Some(id);
                State::Nowhere
            }
            State::Waiting(..) | State::Nowhere => State::Nowhere,
            State::At(node) => {
                detached.release_from = Some(node);
                State::Leaving(Next::Nowhere)
            }
            State::Leaving(next) => {
                if let Next::Find(search) = next {
                    detached.search = Some(search);
                }
                State::Leaving(Next::Nowhere)
            }
        };
        detached
    }

    /// Marks a detached entry as stopped. Returns true if it can be removed at once.
    pub(super) fn stop(&mut self) -> bool {
        match &mut self.state {
            State::Leaving(next) => {
                *next = Next::Forget;
                false
            }
            _ => true,
        }
    }

    /// A search for the offset began. An entry whose partition a broker actor has must be detached first.
    pub(super) fn start_search(&mut self, search: Search) {
        match &mut self.state {
            State::Leaving(next) => *next = Next::Find(search),
            State::At(_) => {}
            state => *state = State::Finding(search),
        }
    }

    /// The offset is known. An entry whose partition a broker actor has must be detached first.
    pub(super) fn start_at(&mut self, partition: Box<PartitionConsumer>) {
        match &mut self.state {
            State::Leaving(next) => *next = Next::Start(partition),
            State::At(_) => {}
            state => *state = State::Waiting(partition, WaitFor::Leader),
        }
    }

    /// There is no offset. An entry whose partition a broker actor has must be detached first.
    pub(super) fn give_up(&mut self) {
        match &mut self.state {
            State::Leaving(next) => *next = Next::Nowhere,
            State::At(_) => {}
            state => *state = State::Nowhere,
        }
    }

    /// Begins a back-off.
    pub(super) const fn start_back_off(&mut self, until: Instant) {
        (self.backoff_until, self.refused_by) = (Some(until), None);
    }

    /// The node that fetched the partition does not lead it: the partition backs off, unless something else is done with it.
    /// Returns true if it does.
    pub(super) fn start_back_off_from(&mut self, node: NodeId, until: Instant) -> bool {
        let is_waiting = matches!(self.state, State::Waiting(_, WaitFor::Metadata));
        if is_waiting {
            (self.backoff_until, self.refused_by) = (Some(until), Some(node));
        }
        is_waiting
    }

    /// Ends the back-off after a refusal if another node leads the partition, or the same one leads it in a newer epoch. Returns
    /// true if it has ended: nothing else places the partition then.
    #[must_use]
    pub(super) fn handle_known_leader(&mut self, node: NodeId, epoch: Option<LeaderEpoch>) -> bool {
        let is_newer = matches!(&self.state, State::Waiting(partition, _) if epoch > partition.leader_epoch);
        let has_ended = self.refused_by.take_if(|refused_by| *refused_by != node || is_newer).is_some();
        if has_ended {
            self.backoff_until = None;
        }
        has_ended
    }

    /// Ends the back-off, because it has passed or the partition belongs to another topic.
    pub(super) const fn end_back_off(&mut self) {
        (self.backoff_until, self.refused_by) = (None, None);
    }

    /// A partition with a known offset waits for something else from now on.
    pub(super) fn wait_for(&mut self, new: WaitFor) {
        if let State::Waiting(_, wait) = &mut self.state {
            *wait = new;
        }
    }

    /// A leader is known, from newer metadata. Returns what the partition waited for, if that was metadata.
    pub(super) fn handle_metadata(&mut self) -> Option<WaitFor> {
        match &mut self.state {
            State::Waiting(_, wait) if *wait != WaitFor::Leader => {
                Some(std::mem::replace(wait, WaitFor::Leader))
            }
            _ => None,
        }
    }

    /// A check of the log began for a partition that is ready.
    pub(super) fn start_check(&mut self, id: CheckId) {
        self.state = match std::mem::replace(&mut self.state, State::Nowhere) {
            State::Waiting(partition, WaitFor::Leader) => State::Checking(partition, id),
            other => other,
        };
    }

    /// A check ended. Returns the partition, which waits again, unless the check is not the current one.
    pub(super) fn finish_check(&mut self, id: CheckId) -> Option<&mut PartitionConsumer> {
        let (state, is_current) = match std::mem::replace(&mut self.state, State::Nowhere) {
            State::Checking(partition, current) if current == id => {
                (State::Waiting(partition, WaitFor::Leader), true)
            }
            other => (other, false),
        };
        self.state = state;
        match &mut self.state {
            State::Waiting(partition, _) if is_current => Some(partition),
            _ => None,
        }
    }

    /// Takes a partition that is ready, for the broker actor of `node`.
    pub(super) fn hand_over(&mut self, node: NodeId) -> Option<Box<PartitionConsumer>> {
        match std::mem::replace(&mut self.state, State::Nowhere) {
            State::Waiting(partition, WaitFor::Leader) => {
                self.state = State::At(node);
                Some(partition)
            }
            other => {
                self.state = other;
                None
            }
        }
    }

    /// Another node has to fetch the partition. Returns the node whose broker actor has to give it back.
    pub(super) fn ask_back(&mut self) -> Option<NodeId> {
        let node = self.fetched_at()?;
        self.state = State::Leaving(Next::Continue);
        Some(node)
    }

    /// A broker actor gave the partition back; if it did so unasked, the partition waits for `wait`.
    pub(super) fn take_back(&mut self, partition: Box<PartitionConsumer>, wait: WaitFor) -> Return {
        let (state, meaning) = match std::mem::replace(&mut self.state, State::Nowhere) {
            State::At(_) => (State::Waiting(partition, wait), Return::Current),
            State::Leaving(Next::Continue) => (State::Waiting(partition, WaitFor::Leader), Return::Current),
            State::Leaving(Next::Find(search)) => (State::Finding(search), Return::Stale),
            State::Leaving(Next::Start(new)) => (State::Waiting(new, WaitFor::Leader), Return::Stale),
            State::Leaving(Next::Nowhere) => (State::Nowhere, Return::Stale),
            State::Leaving(Next::Forget) => (State::Leaving(Next::Forget), Return::Forget),
            other => (other, Return::Stale),
        };
        self.state = state;
        meaning
    }

    /// The node to fetch from, and the leader's epoch.
    pub(super) fn node(&self, metadata: &Metadata) -> Option<(NodeId, Option<LeaderEpoch>)> {
        let (leader, epoch) = leader(self.key(), metadata)?;
        let closer = self.replica.map(|replica| replica.node);
        let closer = closer.filter(|node| metadata.nodes.contains_key(node));
        Some((closer.unwrap_or(leader), epoch))
    }

    /// The error to report for a partition without a leader, unless it may pass.
    pub(super) fn why_no_leader(
        &self,
        now: Instant,
        metadata: &Metadata,
        errors: &[TopicError],
    ) -> Option<Error> {
        let key = self.key();
        if let Some(error) = errors.iter().find(|error| error.name == key.topic) {
            let is_unknown = error.code == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
            let may_pass =
                if is_unknown { now - self.since < UNKNOWN_TOPIC_TIMEOUT } else { error.code.is_retriable() };
            return (!may_pass).then(|| topic_error(error));
        }
        let count = metadata.topics.get(&key.topic)?.partitions.len();
        let exists = usize::try_from(key.partition).is_ok_and(|partition| partition < count);
        (count > 0 && !exists).then(|| unknown_partition(&key.topic, key.partition, count))
    }
}

/// The leader of a partition, and its epoch.
pub(super) fn leader(key: &TopicPartition, metadata: &Metadata) -> Option<(NodeId, Option<LeaderEpoch>)> {
    metadata.leader(&key.topic, key.partition)
}

#[cfg(test)]
mod tests {
    use super::{super::super::position::Offset, *};
    use crate::config::OffsetReset;

    const OLD: i64 = 1;
    const NEW: i64 = 2;

    fn partition(offset: i64) -> Box<PartitionConsumer> {
        let handle = Arc::new(PartitionHandle::new(TopicPartition::new("t", 0)));
        Box::new(PartitionConsumer::new(handle, AssignmentVersion::default(), offset))
    }

    fn node(id: i32) -> NodeId {
        NodeId::from_wire(id).unwrap()
    }

    /// An entry in the state that the text names.
    fn entry(state: &str) -> Entry {
        let handle = Arc::new(PartitionHandle::new(TopicPartition::new("t", 0)));
        let mut entry = Entry::new(handle, AssignmentVersion::default(), None, Instant::ZERO);
        entry.state = match state {
            "loading" => State::Finding(Search::Loading(7)),
            "waiting" => State::Waiting(partition(OLD), WaitFor::Leader),
            "waiting for metadata" => State::Waiting(partition(OLD), WaitFor::Metadata),
            "waiting for metadata to reset" => State::Waiting(partition(OLD), WaitFor::MetadataThenReset),
            "checking" => State::Checking(partition(OLD), 8),
            "at 1" => State::At(node(1)),
            "leaving" => State::Leaving(Next::Continue),
            "leaving, loading" => State::Leaving(Next::Find(Search::Loading(7))),
            "leaving, new offset" => State::Leaving(Next::Start(partition(NEW))),
            "leaving, nowhere" => State::Leaving(Next::Nowhere),
            "leaving, stopped" => State::Leaving(Next::Forget),
            "nowhere" => State::Nowhere,
            other => panic!("{other}"),
        };
        entry
    }

    fn name(entry: &Entry) -> String {
        let of = |partition: &PartitionConsumer| if partition.offset == NEW { ", new offset" } else { "" };
        match &entry.state {
            State::Finding(Search::Loading(_)) => "loading".to_owned(),
            State::Finding(Search::Resolving(..)) => "resolving".to_owned(),
            State::Waiting(partition, WaitFor::Leader) => format!("waiting{}", of(partition)),
            State::Waiting(partition, WaitFor::Metadata) => format!("waiting for metadata{}", of(partition)),
            State::Waiting(_, WaitFor::MetadataThenReset) => "waiting for metadata to reset".to_owned(),
            State::Checking(..) => "checking".to_owned(),
            State::At(node) => format!("at {node}"),
            State::Leaving(Next::Continue) => "leaving".to_owned(),
            State::Leaving(Next::Find(Search::Loading(_))) => "leaving, loading".to_owned(),
            State::Leaving(Next::Find(Search::Resolving(..))) => "leaving, resolving".to_owned(),
            State::Leaving(Next::Start(partition)) => format!("leaving{}", of(partition)),
            State::Leaving(Next::Nowhere) => "leaving, nowhere".to_owned(),
            State::Leaving(Next::Forget) => "leaving, stopped".to_owned(),
            State::Nowhere => "nowhere".to_owned(),
        }
    }

    const STATES: [&str; 12] = [
        "loading",
        "waiting",
        "waiting for metadata",
        "waiting for metadata to reset",
        "checking",
        "at 1",
        "leaving",
        "leaving, loading",
        "leaving, new offset",
        "leaving, nowhere",
        "leaving, stopped",
        "nowhere",
    ];

    /// Applies `step` to an entry in each state and compares the states after it, in the order of `STATES`.
    fn check(step: impl Fn(&mut Entry), after: [&str; 12]) {
        for (before, after) in STATES.into_iter().zip(after) {
            let mut entry = entry(before);
            step(&mut entry);
            assert_eq!(name(&entry), after, "from `{before}`");
        }
    }

    #[test]
    fn detached_entry_waits_only_for_the_broker_actor() {
        let (here, away) = ("nowhere", "leaving, nowhere");
        let after = [here, here, here, here, here, away, away, away, away, away, away, here];
        check(|entry| _ = entry.detach(), after);
        assert_eq!(entry("loading").detach().search, Some(Search::Loading(7)));
        assert_eq!(entry("leaving, loading").detach().search, Some(Search::Loading(7)));
        assert_eq!(entry("checking").detach().check, Some(8));
        assert_eq!(entry("at 1").detach().release_from, Some(node(1)));
        assert_eq!(entry("leaving").detach(), Detached::default(), "it was asked back already");
    }

    #[test]
    fn search_and_its_result_keep_a_leaving_partition_leaving() {
        let (resolution, _) = Resolution::begin(Offset::End, OffsetReset::End);
        let (here, away) = ("resolving", "leaving, resolving");
        let after = [here, here, here, here, here, "at 1", away, away, away, away, away, here];
        check(|entry| entry.start_search(Search::Resolving(resolution, 9)), after);
        let (here, away) = ("waiting, new offset", "leaving, new offset");
        let after = [here, here, here, here, here, "at 1", away, away, away, away, away, here];
        check(|entry| entry.start_at(partition(NEW)), after);
        let (here, away) = ("nowhere", "leaving, nowhere");
        let after = [here, here, here, here, here, "at 1", away, away, away, away, away, here];
        check(Entry::give_up, after);
    }

    #[test]
    fn returned_partition_continues_unless_detached() {
        let take_back = |entry: &mut Entry| {
            entry.take_back(partition(OLD), WaitFor::Metadata);
        };
        let after = [
            "loading",
            "waiting",
            "waiting for metadata",
            "waiting for metadata to reset",
            "checking",
            "waiting for metadata",
            "waiting",
            "loading",
            "waiting, new offset",
            "nowhere",
            "leaving, stopped",
            "nowhere",
        ];
        check(take_back, after);
        for (state, meaning) in [
            ("at 1", Return::Current),
            ("leaving", Return::Current),
            ("leaving, loading", Return::Stale),
            ("leaving, new offset", Return::Stale),
            ("leaving, nowhere", Return::Stale),
            ("leaving, stopped", Return::Forget),
            ("waiting", Return::Stale),
        ] {
            assert_eq!(entry(state).take_back(partition(OLD), WaitFor::Leader), meaning, "{state}");
        }
    }

    #[test]
    fn only_a_waiting_partition_is_checked_or_handed_over() {
        let mut after = STATES;
        after[1] = "at 2";
        check(|entry| _ = entry.hand_over(node(2)), after);
        after[1] = "checking";
        check(|entry| entry.start_check(9), after);
        let mut after = STATES;
        after[4] = "waiting";
        check(|entry| _ = entry.finish_check(8), after);
        check(|entry| assert!(entry.finish_check(9).is_none(), "another check"), STATES);
        let mut after = STATES;
        after[5] = "leaving";
        check(|entry| _ = entry.ask_back(), after);
    }

    #[test]
    fn metadata_ends_only_the_wait_for_metadata() {
        let mut after = STATES;
        (after[2], after[3]) = ("waiting", "waiting");
        check(|entry| _ = entry.handle_metadata(), after);
        assert_eq!(entry("waiting for metadata").handle_metadata(), Some(WaitFor::Metadata));
        let reset = entry("waiting for metadata to reset").handle_metadata();
        assert_eq!(reset, Some(WaitFor::MetadataThenReset));
        assert_eq!(entry("waiting").handle_metadata(), None);
        let mut after = STATES;
        after[1..4].fill("waiting for metadata");
        check(|entry| entry.wait_for(WaitFor::Metadata), after);
    }

    #[test]
    fn partition_is_not_ready_during_its_backoff() {
        for state in STATES {
            assert_eq!(entry(state).ready().is_some(), state == "waiting", "{state}");
        }
        let mut entry = entry("waiting");
        entry.backoff_until = Some(Instant::ZERO);
        assert!(entry.ready().is_none());
    }

    #[test]
    fn only_a_leaving_entry_outlives_its_stop_and_its_replacement() {
        for state in STATES {
            let mut stopped = entry(state);
            stopped.detach();
            let leaves = state == "at 1" || state.starts_with("leaving");
            assert_eq!(stopped.stop(), !leaves, "{state}");
            assert_eq!(stopped.is_stopped(), leaves, "{state}");
            let mut old = entry(state);
            old.detach();
            let new = old.replaced_by(entry("nowhere"));
            assert_eq!(name(&new), if leaves { "leaving, nowhere" } else { "nowhere" }, "{state}");
        }
    }
}
