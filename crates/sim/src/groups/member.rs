//! A member of the group, and the application behind it: how it responds to rebalances, polls and commits.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ottla_core::{
    cluster::command::{Command, CommandQueue},
    completion::{Waiting, completion},
    error::Error,
    fetch::{FetchCommand, partition::PartitionHandle, position::Offset, shared::ConsumerShared},
    group::{
        GroupCommand,
        rebalance::RebalanceAnswer,
        shared::{Answers, GroupShared, GroupSink, RebalanceEvent, RebalanceKind},
    },
    machine::Instant,
    offsets::committed::{CommitResult, GroupCall, GroupCallKind, GroupOffset},
    rng::Rng,
};
use ottla_protocol::vocabulary::TopicPartition;
use ottla_sorted::{SortedMap, SortedSet};

use super::Protocol;
use crate::checkers::Broken;

/// A member of the group.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) client: usize,
    pub(super) shared: Arc<ConsumerShared>,
    pub(super) group: Arc<GroupShared>,
    pub(super) inbox: Arc<Inbox>,
    pub(super) state: State,
    /// [`Protocol::Classic`] or [`Protocol::Consumer`].
    pub(super) protocol: Protocol,
    pub(super) instance: Option<String>,
    pub(super) manners: Manners,
    pub(super) held: SortedMap<TopicPartition, Holding>,
    /// Since when its host and its connections work.
    pub(super) well_since: Instant,
    /// Since when its host runs.
    pub(super) awake_since: Instant,
    /// The last poll.
    pub(super) polled: Instant,
    /// It does not poll before this time.
    pub(super) busy_until: Instant,
    pub(super) question: Option<Question>,
    /// The time of its last response.
    pub(super) answered: Instant,
    /// The last time at which the coordinator had stopped waiting for it.
    pub(super) overdue: Option<Instant>,
    pub(super) commits: Vec<Commit>,
    /// The partitions that were reported to it as assigned, and not as revoked or lost since.
    assigned_by_events: SortedSet<TopicPartition>,
    /// The number of rebalances that it was asked about.
    pub(super) rebalances: i64,
    /// The last report of each error.
    pub(super) errors: SortedMap<String, Instant>,
}

/// The life of a member.
#[derive(Debug)]
pub(super) enum State {
    Subscribed,
    /// It commits before it closes.
    Committing(Instant),
    Closing(Instant, Waiting<()>),
    Suspended(Instant),
    /// It closed or its process died.
    Gone,
    /// Another member has its instance ID.
    Failed,
}

/// A partition that a member has.
#[derive(Debug)]
pub(super) struct Holding {
    pub(super) handle: Arc<PartitionHandle>,
    /// The committed offset when the member got the partition.
    pub(super) committed: i64,
    /// The offset after the last record that the member received.
    pub(super) next: Option<i64>,
}

/// A change of the assignment to which the application has to respond.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) event: RebalanceEvent,
    pub(super) since: Instant,
    /// The time at which the application responds.
    due: Instant,
    step: Step,
}

#[derive(Debug)]
enum Step {
    /// It does nothing yet.
    Thinking,
    /// It waits for the outcome of its commit.
    Committing(Waiting<CommitResult>, Instant),
    /// It changed a part of the assignment, and gave up partitions with these offsets.
    Half(Vec<GroupOffset>),
}

/// A commit of the application.
#[derive(Debug)]
pub(super) struct Commit {
    pub(super) offsets: Vec<GroupOffset>,
    pub(super) outcome: Waiting<CommitResult>,
}

/// How an application behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Manners {
    pub(super) answers: Answers,
    /// The longest time that the application takes to respond.
    pub(super) thinks: Duration,
    /// It always takes that time.
    pub(super) is_exact: bool,
    /// It changes the assignment itself, in parts, instead of accepting the change.
    pub(super) in_parts: bool,
    /// The interval of automatic commits; zero if commits are sent only when partitions are revoked.
    pub(super) commit_interval: Duration,
    /// The library commits nothing.
    pub(super) is_manual: bool,
    /// It commits once in this number of steps; 0 is never.
    pub(super) commits: u64,
    /// It stops polling for some time once in this number of steps; 0 is never.
    pub(super) stops_polling: u64,
    /// Polls before it has responded: it handles rebalances beside the records, not in a callback.
    pub(super) polls_while_asked: bool,
}

impl Manners {
    /// Always polls, lets the library respond, and commits every second.
    pub(super) const PLAIN: Self = Self {
        answers: Answers::Library,
        thinks: Duration::ZERO,
        is_exact: false,
        in_parts: false,
        commit_interval: Duration::from_secs(1),
        is_manual: false,
        commits: 0,
        stops_polling: 0,
        polls_while_asked: false,
    };

    /// Draws the manners of the applications of a world.
    pub(super) fn draw(rng: &mut Rng) -> Self {
        let mut pick = |choices: &[u64]| choices[rng.below(choices.len() as u64) as usize];
        let kind = pick(&[0, 0, 1, 1, 2, 2, 3, 4, 5]);
        let thinks = Duration::from_millis(pick(&[0, 100, 1_000, 3_000]));
        let commit_interval = Duration::from_millis(pick(&[0, 0, 1_000]));
        let (commits, in_parts) = (pick(&[0, 5, 50]), pick(&[0, 1]) == 1);
        let asked = Self { answers: Answers::Application, thinks, in_parts, commit_interval, ..Self::PLAIN };
        match kind {
            0 => Self::PLAIN,
            1 => Self { commit_interval, commits, ..Self::PLAIN },
            2 => Self { commits, ..asked },
            3 => Self { is_manual: true, commits: 50, ..asked },
            // Its late responses have no effect, because it only accepts changes.
            4 => {
                let answers = Answers::ApplicationWithDeadline;
                Self { answers, thinks: Duration::from_secs(5), in_parts: false, ..asked }
            }
            _ => Self { thinks: Duration::from_secs(12), stops_polling: 400, ..asked },
        }
    }

    /// Never late.
    pub(super) fn prompt(self) -> Self {
        let thinks = self.thinks.min(Duration::from_millis(200));
        Self { thinks, is_exact: false, stops_polling: 0, ..self }
    }
}

/// Notifications of the group for the application.
#[derive(Debug)]
pub(super) struct Inbox {
    answers: Answers,
    contents: Mutex<(VecDeque<RebalanceEvent>, Vec<Error>)>,
}

impl Inbox {
    pub(super) fn new(answers: Answers) -> Self {
        Self { answers, contents: Mutex::default() }
    }

    fn with<T>(&self, f: impl FnOnce(&mut (VecDeque<RebalanceEvent>, Vec<Error>)) -> T) -> T {
        f(&mut self.contents.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes the errors.
    pub(super) fn errors(&self) -> Vec<Error> {
        self.with(|(_, errors)| std::mem::take(errors))
    }
}

impl GroupSink for Inbox {
    fn answers(&self) -> Answers {
        self.answers
    }

    fn rebalance(&self, event: RebalanceEvent) {
        self.with(|(events, _)| events.push_back(event));
    }

    fn committed(&self, _: &[GroupOffset], _: &CommitResult) {}

    fn error(&self, error: Error) {
        self.with(|(_, errors)| errors.push(error));
    }

    fn poll_overdue(&self, _: Duration, _: Duration) {}
}

/// The parts of a new member.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) client: usize,
    pub(super) shared: Arc<ConsumerShared>,
    pub(super) group: Arc<GroupShared>,
    pub(super) inbox: Arc<Inbox>,
    pub(super) protocol: Protocol,
    pub(super) instance: Option<String>,
    pub(super) manners: Manners,
}

impl Member {
    /// Creates a member that has just subscribed.
    pub(super) fn new(now: Instant, parts: Parts) -> Self {
        let Parts { client, shared, group, inbox, protocol, instance, manners } = parts;
        Self {
            client,
            shared,
            group,
            inbox,
            state: State::Subscribed,
            protocol,
            instance,
            manners,
            held: SortedMap::new(),
            well_since: now,
            awake_since: now,
            polled: now,
            busy_until: now,
            question: None,
            answered: Instant::ZERO,
            overdue: None,
            commits: Vec::new(),
            assigned_by_events: SortedSet::new(),
            rebalances: 0,
            errors: SortedMap::new(),
        }
    }

    /// Returns true if it consumes.
    pub(super) const fn is_subscribed(&self) -> bool {
        matches!(self.state, State::Subscribed)
    }

    /// Returns true if the library may not have handled the last response yet.
    pub(super) fn has_just_answered(&self, now: Instant) -> bool {
        now <= self.answered + Duration::from_millis(200)
    }

    /// Returns true while the application has to respond and has changed nothing yet.
    pub(super) const fn is_asked(&self) -> bool {
        matches!(&self.question, Some(Question { step: Step::Thinking | Step::Committing(..), .. }))
    }

    /// Returns true while no records may be delivered, because a rebalance waits for the application. At the deadline
    /// the library responds.
    pub(super) fn must_get_nothing(&self, now: Instant) -> bool {
        let deadline = self.question.as_ref().and_then(|question| question.event.deadline);
        self.is_asked() && deadline.is_none_or(|deadline| now < deadline)
    }

    /// Returns true if the coordinator had stopped waiting for the member shortly before its application was asked. Other
    /// members may have its partitions by then.
    pub(super) fn is_asked_late(&self) -> bool {
        let is_overdue = |since| self.overdue.is_some_and(|at| since <= at + Duration::from_millis(200));
        self.question.as_ref().is_some_and(|question| is_overdue(question.since))
    }

    /// Returns true if the application has to revoke a partition.
    pub(super) fn is_asked_to_revoke(&self, partition: &TopicPartition) -> bool {
        self.question.as_ref().is_some_and(|Question { event, .. }| {
            event.kind == RebalanceKind::Revoke && event.partitions.contains(partition)
        })
    }

    /// Polls, unless the application is busy. Returns true if it polled.
    pub(super) fn poll(&mut self, now: Instant, commands: &CommandQueue, rng: &mut Rng) -> bool {
        let Manners { stops_polling, .. } = self.manners;
        if self.busy_until <= now && stops_polling > 0 && rng.chance(1, stops_polling) {
            self.busy_until = now + Duration::from_millis(rng.below(2 * super::REBALANCE.as_millis() as u64));
        }
        // Most responses come from a callback, which runs in a poll.
        let is_in_callback = self.question.is_some() && !(self.manners.polls_while_asked && self.is_asked());
        if self.busy_until > now || is_in_callback {
            return false;
        }
        self.polled = now;
        if self.group.note_poll(now) {
            commands.push(Command::Group(GroupCommand::Polled));
        }
        true
    }

    /// Checks that the partitions of an event are assigned and revoked alternately.
    pub(super) fn check_event(&mut self, index: usize, event: &RebalanceEvent) -> Result<(), Broken> {
        for key in &event.partitions {
            let is_right = match event.kind {
                RebalanceKind::Assign => self.assigned_by_events.insert(key.clone()),
                RebalanceKind::Revoke | RebalanceKind::Lost => self.assigned_by_events.remove(key),
            };
            if !is_right {
                let what =
                    format!("member {index} gets {event:?}, which contradicts the event before: {key}");
                return Err(Broken::new("pairs", what));
            }
        }
        Ok(())
    }

    /// Takes the next event, and responds to it when it is due. Returns the event.
    pub(super) fn answer(
        &mut self,
        now: Instant,
        commands: &CommandQueue,
        rng: &mut Rng,
    ) -> Option<RebalanceEvent> {
        let taken = self.take_event(now, rng);
        self.answer_if_due(now, commands, rng);
        taken
    }

    fn take_event(&mut self, now: Instant, rng: &mut Rng) -> Option<RebalanceEvent> {
        if self.question.is_some() {
            return None;
        }
        let event = self.inbox.with(|(events, _)| events.pop_front())?;
        self.rebalances += 1;
        let thinks = Duration::from_millis(rng.below(self.manners.thinks.as_millis() as u64 + 1));
        let thinks = if self.manners.is_exact { self.manners.thinks } else { thinks };
        let due = now + thinks;
        self.question = Some(Question { event: event.clone(), since: now, due, step: Step::Thinking });
        Some(event)
    }

    fn answer_if_due(&mut self, now: Instant, commands: &CommandQueue, rng: &mut Rng) {
        let may_wait = self.is_subscribed();
        let Some(question) = &mut self.question else { return };
        // The response is given in a callback, which runs in a poll.
        if may_wait && question.due.max(self.busy_until) > now {
            return;
        }
        match &question.step {
            Step::Thinking if self.manners.is_manual && question.event.kind == RebalanceKind::Revoke => {
                let outcome = commit(commands, self.shared.all_offsets_to_commit());
                question.step = Step::Committing(outcome, now + COMMIT_TIMEOUT);
            }
            Step::Committing(outcome, until) if outcome.try_take().is_none() && *until > now => {}
            Step::Thinking if self.manners.in_parts => {
                let event = &question.event;
                let (first, _) = event.partitions.split_at(event.partitions.len() / 2);
                let offsets = given_up(&self.shared, &self.group, self.manners, event.kind, first);
                change(&self.shared, commands, event.kind, first);
                question.step = Step::Half(offsets);
                question.due = now + Duration::from_millis(rng.below(100));
            }
            Step::Thinking | Step::Committing(..) => {
                if let Some(Question { event, .. }) = self.question.take() {
                    self.answered = now;
                    let answer = RebalanceAnswer::Accepted(event.number, Vec::new());
                    commands.push(Command::Group(GroupCommand::Answer(answer)));
                }
            }
            Step::Half(_) => {
                if let Some(Question { event, step: Step::Half(offsets), .. }) = self.question.take() {
                    self.answered = now;
                    self.finish(commands, &event, offsets);
                }
            }
        }
    }

    /// Changes the second half of the assignment, and responds.
    fn finish(&self, commands: &CommandQueue, event: &RebalanceEvent, mut offsets: Vec<GroupOffset>) {
        let (_, second) = event.partitions.split_at(event.partitions.len() / 2);
        offsets.extend(given_up(&self.shared, &self.group, self.manners, event.kind, second));
        if self.group.is_assignment_lost() {
            offsets.clear();
        }
        change(&self.shared, commands, event.kind, second);
        self.group.set_lost(false);
        commands.push(Command::Group(GroupCommand::Answer(RebalanceAnswer::Changed(offsets))));
    }

    /// Commits the positions of all partitions without waiting for the outcome.
    pub(super) fn commit(&mut self, commands: &CommandQueue) {
        let offsets = self.shared.all_offsets_to_commit();
        if !offsets.is_empty() {
            let outcome = commit(commands, offsets.clone());
            self.commits.push(Commit { offsets, outcome });
        }
    }
}

/// Assigns partitions, or gives them up.
fn change(shared: &ConsumerShared, commands: &CommandQueue, kind: RebalanceKind, list: &[TopicPartition]) {
    let command = match kind {
        RebalanceKind::Assign => {
            let starts = list.iter().map(|key| (key.clone(), Offset::Committed));
            Some(shared.incremental_assign(&starts.collect::<Vec<_>>()))
        }
        // After a fatal error the library has given them up.
        RebalanceKind::Revoke | RebalanceKind::Lost => shared.incremental_unassign(list).ok(),
    };
    if let Some(command) = command {
        commands.push(Command::Fetch(command));
    }
}

/// Returns the offsets of partitions that the application revokes, if it has to commit them.
fn given_up(
    shared: &ConsumerShared,
    group: &GroupShared,
    manners: Manners,
    kind: RebalanceKind,
    list: &[TopicPartition],
) -> Vec<GroupOffset> {
    if kind != RebalanceKind::Revoke || manners.is_manual || group.is_assignment_lost() {
        return Vec::new();
    }
    shared.offsets_to_commit(&list.iter().cloned().collect())
}

/// The time that an application waits for a commit.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(3);

fn commit(commands: &CommandQueue, offsets: Vec<GroupOffset>) -> Waiting<CommitResult> {
    let (done, outcome) = completion();
    if offsets.is_empty() {
        done.complete(Ok(Vec::new()));
        return outcome;
    }
    let call = GroupCall { timeout: COMMIT_TIMEOUT, kind: GroupCallKind::Commit(offsets, done) };
    commands.push(Command::Fetch(FetchCommand::Group(call)));
    outcome
}
