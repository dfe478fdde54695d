//! The rebalance contract: giving up and taking over partitions, by the application's answers or by the library's own.
//!
//! ```text
//!            Revoke, Assign, Lost, leave           the answer            offsets of partitions that were given up
//!   Idle ──────────────────────────────► Asking ───────────────┬────────────────────────────────► Committing
//!     ▲                                     │                  │  lost, or nothing was given up        │
//!     │   an assignment was answered        │                  ▼                                       ▼
//!     └─────────────────────────────────────┴────────────── go on with `Then` ◄────────────────────────┘
//!                                                            (the outcome, or the bound)
//! ```
//!
//! If the application answers rebalances (`rebalance_cb`, `EVENT_REBALANCE`, a listener), `Asking` lasts until it calls one
//! of the assign functions; no record is handed out meanwhile. Otherwise the library answers at once, and `Asking` is
//! skipped. Tasks that arrive meanwhile wait, except a lost membership: the coordinator would refuse a commit. The member
//! does not join while the rebalance is busy, and its heartbeats continue.
//!
//! Partitions are given up before their offsets are committed. Otherwise the application could get a record that
//! another consumer also reads. `Committing` also waits for the commits that the application made before: after the
//! member joins again, the coordinator refuses those of the earlier generation. A cooperative member that keeps all its
//! partitions waits for them, too.
//!
//! # Pitfalls
//!
//! - An application may answer a revocation without giving the partitions up. The library then does so, because another
//!   member consumes them next (`partitions_that_the_application_keeps_are_taken_from_it`).
//! - Commits and JoinGroup use different connections, so a commit that the application made just before it gave its
//!   partitions up could arrive after JoinGroup (`member_joins_after_commits_that_the_application_made`).
//! - The coordinator refuses the commit of a cooperative member that leaves while it joins. The member holds its partitions
//!   until the commit has an outcome, so that it is repeated in the next generation
//!   (`member_that_leaves_holds_its_partitions_until_it_has_committed`).
//! - A membership that is lost while the application is giving partitions up makes them lost, too: the offsets of its
//!   answer are not committed (`revocation_becomes_a_loss_when_the_membership_is_lost`).

use std::{collections::VecDeque, mem, sync::Arc, time::Duration};

use ottla_protocol::vocabulary::{Generation, TopicPartition};
use ottla_sorted::SortedSet;

use super::{
    Group,
    assignor::RebalanceProtocol,
    commit::CommitInFlight,
    owned::Owned,
    shared::{Answers, RebalanceEvent, RebalanceKind},
};
use crate::{
    contract::part::Need,
    fetch::position::Offset,
    group::departure::GroupMembershipOperation,
    machine::Instant,
    offsets::committed::{GroupOffset, HeldSince},
    states::See,
};

/// The member's partitions, and the tasks in progress for them.
#[derive(Debug, Default)]
pub(super) struct Rebalance {
    owned: Owned,
    state: State,
    tasks: VecDeque<Task>,
    /// True if the application got an assignment and no revocation of all partitions since.
    is_assigned: bool,
    /// The number of the last question.
    last_number: u64,
    /// The number of questions that the library answered because their deadline passed.
    late_answers: u64,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Idle,
    /// The application has to answer.
    Asking(Question),
    /// The offsets of partitions that were given up are being committed.
    Committing(CommitInFlight, Then),
}

impl State {
    /// Returns true while a member that leaves gives its partitions up.
    const fn is_leaving(&self) -> bool {
        matches!(
            self,
            Self::Asking(Question { then: Then::Leave(_), .. }) | Self::Committing(_, Then::Leave(_))
        )
    }
}

/// A change of the assignment that the application has to answer.
#[derive(Debug)]
struct Question {
    number: u64,
    kind: RebalanceKind,
    partitions: SortedSet<TopicPartition>,
    deadline: Option<Instant>,
    then: Then,
}

/// The application's answer to a change of its assignment.
#[derive(Debug)]
pub enum RebalanceAnswer {
    /// The application changed the assignment itself. These are the offsets of the partitions that it gave up.
    Changed(Vec<GroupOffset>),
    /// The library shall change the assignment as the event of this number says. Partitions that are not listed start at
    /// their committed offsets.
    Accepted(u64, Vec<(TopicPartition, Offset)>),
}

/// A task from the member.
#[derive(Debug)]
enum Task {
    /// Give up all partitions.
    RevokeAll,
    /// All partitions belong to others already.
    LoseAll,
    /// Wait for the commits that the application made, and join again.
    Settle,
    /// These are the member's partitions.
    Assign(SortedSet<TopicPartition>),
    /// Give up the partitions of all but these topics, and join again.
    Keep(SortedSet<Arc<str>>),
    /// Give up all partitions and leave.
    Leave(Leave),
}

/// The way in which the member leaves.
#[derive(Clone, Copy, Debug)]
struct Leave {
    operation: GroupMembershipOperation,
    reason: &'static str,
}

/// The step after partitions were given up or taken over.
#[derive(Debug)]
enum Then {
    /// The rebalance is over.
    Nothing,
    /// The member joins again.
    Revoked,
    /// The member, which keeps its partitions, joins again.
    Settled,
    /// The member takes these partitions over, and joins again: other members wait for the partitions that it gave up.
    TakeOver(SortedSet<TopicPartition>),
    /// The member joins again without the topics that it gave up.
    Rejoin,
    /// The member leaves.
    Leave(Leave),
}

impl Rebalance {
    /// Shows the state.
    pub(super) fn states(&self, see: &mut See<'_>) {
        see("rebalance", 0, &self.state);
    }

    /// Returns the member's partitions.
    pub(super) const fn owned(&self) -> &SortedSet<TopicPartition> {
        self.owned.partitions()
    }

    /// Returns the number of partitions that are assigned: none of those that a member that leaves only holds.
    pub(super) fn assignment_size(&self) -> usize {
        if self.state.is_leaving() { 0 } else { self.owned().len() }
    }

    /// Returns the partitions, each with the generation since when the member has held it.
    pub(super) fn held_since(&mut self, generation: Generation) -> HeldSince {
        self.owned.held_since(generation)
    }

    /// The membership ended: the member does not hold its partitions any more, although it has not given them up yet.
    pub(super) fn forget_held(&mut self) {
        self.owned.forget_held();
    }

    /// Returns true if an assignment waits to be carried out.
    pub(super) fn has_assignment_to_carry_out(&self) -> bool {
        self.tasks.iter().any(|task| matches!(task, Task::Assign(_)))
    }

    /// Returns true while partitions are being given up, or the application has to answer.
    pub(super) fn is_busy(&self) -> bool {
        !matches!(self.state, State::Idle) || !self.tasks.is_empty()
    }

    /// Returns the state as statistics name it; `None` if it is the member's state that counts.
    pub(super) fn state_name(&self) -> Option<&'static str> {
        match &self.state {
            State::Idle => None,
            State::Asking(Question { kind: RebalanceKind::Assign, .. }) => Some("wait-assign-call"),
            State::Asking(_) => Some("wait-unassign-call"),
            State::Committing(_, Then::Settled) => None,
            State::Committing(_, Then::TakeOver(_) | Then::Rejoin) => Some("wait-incr-unassign-to-complete"),
            State::Committing(..) => Some("wait-unassign-to-complete"),
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        match &self.state {
            State::Idle => None,
            State::Asking(question) => question.deadline,
            State::Committing(commit, _) => Some(commit.until()),
        }
    }

    pub(super) fn revoke_all(&mut self) {
        self.tasks.push_back(Task::RevokeAll);
    }

    /// Waits for the commits that the application made.
    pub(super) fn settle(&mut self) {
        self.tasks.push_back(Task::Settle);
    }

    /// The member got an assignment. One that leaves does not carry it out: it only holds none of the partitions that are
    /// not part of it.
    pub(super) fn assign(&mut self, partitions: SortedSet<TopicPartition>) {
        if self.state.is_leaving() {
            return self.owned.change(|owned| owned.retain(|key| partitions.contains(key)));
        }
        if self.tasks.iter().any(|task| matches!(task, Task::Leave(_))) {
            return self.owned.forget_held();
        }
        self.tasks.push_back(Task::Assign(partitions));
    }

    /// Handles a changed subscription: a cooperative member gives up at once the topics that it no longer subscribes
    /// to.
    pub(super) fn keep(&mut self, topics: &SortedSet<Arc<str>>) {
        if !self.owned.partitions().iter().all(|key| topics.contains(&key.topic)) {
            self.tasks.push_back(Task::Keep(topics.clone()));
        }
    }

    /// Handles a lost membership. The rebalance does not wait for a commit in flight, and drops earlier assignments. A
    /// question that the application has to answer stays; a revocation becomes a loss, because nothing is committed without
    /// a membership. Returns true in that case.
    pub(super) fn lose_all(&mut self) -> bool {
        self.tasks.retain(|task| matches!(task, Task::Leave(_)));
        self.tasks.push_front(Task::LoseAll);
        match mem::take(&mut self.state) {
            State::Asking(question) => {
                let is_revocation = question.kind != RebalanceKind::Assign;
                let then = match question.then {
                    Then::Leave(leave) => Then::Leave(leave),
                    // The loss of the rest, which follows, makes the member join again.
                    _ => Then::Nothing,
                };
                self.state = State::Asking(Question { then, ..question });
                is_revocation
            }
            State::Committing(commit, Then::Leave(leave)) => {
                self.state = State::Committing(commit, Then::Leave(leave));
                false
            }
            _ => false,
        }
    }

    /// Ends everything but leaving, because the member failed for good. Returns the partitions to be stopped.
    pub(super) fn abandon(&mut self) -> SortedSet<TopicPartition> {
        self.is_assigned = false;
        self.tasks.retain(|task| matches!(task, Task::Leave(_)));
        match mem::take(&mut self.state) {
            State::Asking(Question { then: Then::Leave(leave), .. })
            | State::Committing(_, Then::Leave(leave)) => self.tasks.push_front(Task::Leave(leave)),
            _ => {}
        }
        self.owned.take()
    }

    pub(super) fn close(&mut self) {
        *self = Self::default();
    }
}

impl Group {
    /// Gives up all partitions and leaves the group.
    pub(super) fn begin_leave(
        &mut self,
        now: Instant,
        operation: GroupMembershipOperation,
        reason: &'static str,
    ) {
        self.rebalance.tasks.push_back(Task::Leave(Leave { operation, reason }));
        self.advance_rebalance(now);
    }

    /// Carries out the tasks as far as possible.
    pub(super) fn advance_rebalance(&mut self, now: Instant) {
        loop {
            match &self.rebalance.state {
                State::Asking(question) => {
                    if question.deadline.is_none_or(|deadline| deadline > now) {
                        return;
                    }
                    self.rebalance.late_answers += 1;
                    self.accept(now, &[]);
                }
                State::Committing(commit, _) => {
                    let Some(outcome) = commit.outcome(now) else { return };
                    let State::Committing(commit, then) = mem::take(&mut self.rebalance.state) else {
                        return;
                    };
                    if !commit.offsets().is_empty() {
                        self.handle_committed(now, commit.offsets(), &outcome);
                    }
                    self.go_on(now, then);
                }
                State::Idle => {
                    let Some(task) = self.rebalance.tasks.pop_front() else { return };
                    self.begin(now, task);
                }
            }
        }
    }

    fn begin(&mut self, now: Instant, task: Task) {
        match task {
            Task::RevokeAll => {
                let all = self.rebalance.owned.take();
                self.give_up_all(now, all, RebalanceKind::Revoke, Then::Revoked);
            }
            Task::LoseAll => {
                let all = self.rebalance.owned.take();
                self.give_up_all(now, all, RebalanceKind::Lost, Then::Revoked);
            }
            Task::Settle => self.commit(now, Vec::new(), Then::Settled),
            Task::Assign(target) => {
                let owned = self.rebalance.owned();
                let revoked: SortedSet<_> = owned.difference(&target).cloned().collect();
                let added: SortedSet<_> = target.difference(owned).cloned().collect();
                if revoked.is_empty() {
                    return self.take_over(now, added);
                }
                self.rebalance.owned.change(|owned| owned.retain(|key| target.contains(key)));
                self.give_up(now, revoked, RebalanceKind::Revoke, Then::TakeOver(added));
            }
            Task::Keep(topics) => {
                let is_dropped = |key: &TopicPartition| !topics.contains(&key.topic);
                let dropped =
                    self.rebalance.owned.change(|owned| owned.extract(is_dropped).into_iter().collect());
                self.give_up(now, dropped, RebalanceKind::Revoke, Then::Rejoin);
            }
            Task::Leave(leave) => {
                // It holds them until the commit has an outcome.
                let all = self.rebalance.owned().clone();
                self.give_up_all(now, all, RebalanceKind::Revoke, Then::Leave(leave));
            }
        }
    }

    fn go_on(&mut self, now: Instant, then: Then) {
        match then {
            Then::Nothing => {}
            Then::Revoked => self.member.handle_revoked(now),
            Then::Settled => self.member.handle_settled(now),
            Then::TakeOver(added) => {
                self.member.handle_given_up(self.rebalance.owned());
                self.take_over(now, added);
                self.member.rejoin(now, "partitions were given up for other members");
            }
            Then::Rejoin => self.member.rejoin(now, "the subscription changed"),
            Then::Leave(Leave { operation, reason }) => {
                drop(self.rebalance.owned.take());
                self.member.leave(now, operation, reason);
            }
        }
    }

    /// Gives up all partitions. The application is asked only if it got an assignment; a cooperative one only if there
    /// are partitions.
    fn give_up_all(&mut self, now: Instant, all: SortedSet<TopicPartition>, kind: RebalanceKind, then: Then) {
        let is_eager = self.settings.protocol() == RebalanceProtocol::Eager;
        let was_assigned = mem::take(&mut self.rebalance.is_assigned);
        if all.is_empty() && !(is_eager && was_assigned) {
            return self.go_on(now, then);
        }
        self.give_up(now, all, kind, then);
    }

    /// Gives partitions up, after the application's answer if it wants to be asked.
    fn give_up(
        &mut self,
        now: Instant,
        partitions: SortedSet<TopicPartition>,
        kind: RebalanceKind,
        then: Then,
    ) {
        self.figures.note_rebalance(now);
        self.settings.shared.set_lost(kind == RebalanceKind::Lost);
        let Some(deadline) = self.answer_deadline(now) else {
            return self.finish_giving_up(now, partitions, Vec::new(), then);
        };
        self.ask(kind, partitions, deadline, then);
    }

    /// Takes partitions over from their committed offsets, after the application's answer if it wants to be asked.
    fn take_over(&mut self, now: Instant, partitions: SortedSet<TopicPartition>) {
        self.figures.note_rebalance(now);
        self.rebalance.owned.change(|owned| owned.extend(partitions.iter().cloned()));
        match self.answer_deadline(now) {
            None => self.start(&partitions, &[]),
            Some(deadline) => {
                self.rebalance.is_assigned = true;
                self.ask(RebalanceKind::Assign, partitions, deadline, Then::Nothing);
            }
        }
    }

    /// Returns the deadline of an answer, if there is one; `None` if the library answers.
    fn answer_deadline(&self, now: Instant) -> Option<Option<Instant>> {
        match self.settings.shared.sink()?.answers() {
            Answers::Library => None,
            Answers::Application => Some(None),
            Answers::ApplicationWithDeadline => Some(Some(now + self.settings.max_poll_interval / 2)),
        }
    }

    fn ask(
        &mut self,
        kind: RebalanceKind,
        partitions: SortedSet<TopicPartition>,
        deadline: Option<Instant>,
        then: Then,
    ) {
        self.shared.hold_all();
        self.rebalance.last_number += 1;
        let number = self.rebalance.last_number;
        let event = RebalanceEvent {
            number,
            kind,
            partitions: partitions.iter().cloned().collect(),
            protocol: self.settings.protocol(),
            deadline,
        };
        self.rebalance.state = State::Asking(Question { number, kind, partitions, deadline, then });
        // The identity for commits is known before the application can commit.
        self.update_committer();
        if let Some(sink) = self.settings.shared.sink() {
            sink.rebalance(event);
        }
    }

    /// Handles the application's answer. An answer to no question only commits.
    pub(super) fn handle_answer(&mut self, now: Instant, answer: RebalanceAnswer) {
        match (answer, &self.rebalance.state) {
            (RebalanceAnswer::Accepted(number, offsets), State::Asking(question))
                if question.number == number =>
            {
                self.accept(now, &offsets);
            }
            (RebalanceAnswer::Accepted(..), _) => {}
            (RebalanceAnswer::Changed(offsets), State::Asking(_)) => {
                let Some(question) = self.take_question() else { return };
                match question.kind {
                    RebalanceKind::Assign => self.go_on(now, question.then),
                    RebalanceKind::Revoke | RebalanceKind::Lost => {
                        self.finish_giving_up(now, question.partitions, offsets, question.then);
                    }
                }
            }
            (RebalanceAnswer::Changed(offsets), State::Idle) => {
                self.commit_then(now, offsets, Then::Nothing);
            }
            (RebalanceAnswer::Changed(offsets), State::Committing(..)) => self.commit_beside(now, offsets),
        }
    }

    /// Changes the assignment as the outstanding event says.
    fn accept(&mut self, now: Instant, offsets: &[(TopicPartition, Offset)]) {
        let Some(question) = self.take_question() else { return };
        match question.kind {
            RebalanceKind::Assign => {
                self.start(&question.partitions, offsets);
                self.go_on(now, question.then);
            }
            RebalanceKind::Revoke | RebalanceKind::Lost => {
                self.finish_giving_up(now, question.partitions, Vec::new(), question.then);
            }
        }
    }

    fn take_question(&mut self) -> Option<Question> {
        let State::Asking(question) = mem::take(&mut self.rebalance.state) else { return None };
        self.shared.release_all();
        Some(question)
    }

    /// Stops those of the partitions that are still assigned, and commits their offsets and `offsets`. Lost partitions are
    /// not committed: their member has no identity, and gets none before all partitions are given up.
    fn finish_giving_up(
        &mut self,
        now: Instant,
        partitions: SortedSet<TopicPartition>,
        mut offsets: Vec<GroupOffset>,
        then: Then,
    ) {
        if self.settings.auto_commit {
            offsets.extend(self.shared.offsets_to_commit(&partitions));
        }
        self.stop(&partitions);
        self.settings.shared.set_lost(false);
        if self.member.identity().is_none() || partitions.is_empty() {
            return self.go_on(now, then);
        }
        self.commit(now, offsets, then);
    }

    fn commit_then(&mut self, now: Instant, offsets: Vec<GroupOffset>, then: Then) {
        if offsets.is_empty() {
            return self.go_on(now, then);
        }
        self.commit(now, offsets, then);
    }

    /// Commits offsets, and continues when this commit and all earlier ones have an outcome. Without offsets it only
    /// waits.
    fn commit(&mut self, now: Instant, offsets: Vec<GroupOffset>, then: Then) {
        // The commit belongs to the member of this generation, even if it leaves next.
        self.update_committer();
        let timeout = match then {
            Then::Leave(_) => LEAVE_COMMIT_TIMEOUT,
            _ => self.settings.session_timeout,
        };
        let (commit, command) = CommitInFlight::new(now, offsets, timeout.min(self.settings.request_timeout));
        self.needs.push_back(Need::Tell(command));
        self.rebalance.state = State::Committing(commit, then);
    }

    pub(super) fn stop(&mut self, partitions: &SortedSet<TopicPartition>) {
        if let Some(command) = self.shared.unassign(partitions) {
            self.needs.push_back(Need::Tell(command));
        }
    }

    /// Starts partitions from their committed offsets, or from those that are given.
    fn start(&mut self, partitions: &SortedSet<TopicPartition>, offsets: &[(TopicPartition, Offset)]) {
        let starts = partitions.iter().map(|key| {
            let given = offsets.iter().find(|(given, _)| given == key);
            (key.clone(), given.map_or(Offset::Committed, |(_, offset)| *offset))
        });
        let starts: Vec<_> = starts.collect();
        if !starts.is_empty() {
            self.needs.push_back(Need::Tell(self.shared.incremental_assign(&starts)));
        }
    }
}

/// The maximum duration of the commit of a consumer that leaves.
const LEAVE_COMMIT_TIMEOUT: Duration = Duration::from_secs(5);
