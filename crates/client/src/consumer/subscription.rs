//! Subscriptions of a consumer: membership in the group of `group.id`. `ottla_core::group` has the behaviour.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use ottla_core::{
    cluster::command::Command,
    completion::{Waiting, completion},
    error::{Error, ErrorKind, Result},
    group::{GroupCommand, SubscribedTopics, departure::GroupMembershipOperation, shared::GroupShared},
    lock::Mutex,
};
use ottla_sorted::SortedSet;

use ottla_net::clock;

use super::{Consumer, rebalances::Questions};
use crate::{topic_name::check_topic_name, wait::wait_for};

/// The number of characters of a reason that reach the coordinator, as in the Java client.
const MOST_OF_A_REASON: usize = 255;

/// What a consumer subscribes to.
#[derive(Debug)]
pub(super) struct Subscription {
    /// Why the consumer can't subscribe.
    refusal: Option<Error>,
    /// True for members of the classic protocol.
    is_classic: bool,
    topics: Mutex<SortedSet<Arc<str>>>,
    /// The state that the consumer shares with its group.
    group: Arc<GroupShared>,
    questions: Arc<Questions>,
}

impl Subscription {
    /// Creates an empty subscription; with a reason why it stays empty, if there is one.
    pub(super) fn new(
        refusal: Option<Error>,
        is_classic: bool,
        group: Arc<GroupShared>,
        questions: Questions,
    ) -> Self {
        Self { refusal, is_classic, topics: Mutex::default(), group, questions: Arc::new(questions) }
    }

    /// Returns the rebalances that the application has to answer.
    pub(super) const fn questions(&self) -> &Arc<Questions> {
        &self.questions
    }

    /// Returns true if the consumer subscribes to topics.
    pub(super) fn is_used(&self) -> bool {
        !self.topics.lock().is_empty()
    }

    /// Returns why the consumer can't subscribe, if so.
    #[cfg(feature = "capi")]
    pub(super) const fn refusal(&self) -> Option<&Error> {
        self.refusal.as_ref()
    }

    /// Returns the state that the consumer shares with its group.
    pub(super) const fn group(&self) -> &Arc<GroupShared> {
        &self.group
    }

    /// Error: the consumer subscribes to topics, so that its group decides what it reads.
    pub(super) fn check_unused(&self) -> Result<()> {
        if self.topics.lock().is_empty() {
            return Ok(());
        }
        let detail =
            "the consumer subscribes to topics, and its group assigns the partitions; call unsubscribe first";
        Err(Error::new(ErrorKind::State, detail))
    }
}

/// A poll that waits for records. The application counts as polling until this is dropped.
#[derive(Debug)]
pub struct BlockedPoll {
    consumer: Consumer,
}

impl BlockedPoll {
    pub(super) fn begin(consumer: &Consumer) -> Self {
        consumer.inner.subscription.group().begin_blocking();
        consumer.inner.shared.idle.begin(clock::now());
        Self { consumer: consumer.clone() }
    }
}

impl Drop for BlockedPoll {
    fn drop(&mut self) {
        let now = clock::now();
        self.consumer.inner.shared.idle.end(now);
        if self.consumer.inner.subscription.group().end_blocking(now) {
            let _ = self.consumer.inner.client.command(Command::Group(GroupCommand::Polled));
        }
    }
}

impl Consumer {
    /// Notes for `max.poll.interval.ms` that the application polls.
    pub(super) fn note_poll(&self) {
        if self.inner.subscription.group().note_poll(clock::now()) {
            let _ = self.inner.client.command(Command::Group(GroupCommand::Polled));
        }
    }

    /// Consumes these topics as a member of the group of `group.id`. The group assigns each of its members a part of the
    /// topics' partitions, and again when members or partitions come and go.
    ///
    /// It returns at once; records come from [`Consumer::poll`] and its siblings as soon as the group has assigned
    /// partitions, which [`Consumer::assignment`] lists. A partition starts at its committed offset; without one,
    /// `auto.offset.reset` decides. With `enable.auto.commit` the offset after the last record that was handed out is
    /// committed every `auto.commit.interval.ms`, when a partition goes to another member, and by [`Consumer::close`].
    ///
    /// An entry that begins with `^` is a regular expression. Topics that match it later are consumed, too. With
    /// `group.protocol=classic` the consumer searches it in the names of all topics (`^a` matches `ab`), at each metadata
    /// refresh (`topic.metadata.refresh.interval.ms`); with `consumer` the broker matches whole names (`^a.*` matches
    /// `ab`), in RE2's syntax.
    ///
    /// Another call replaces the subscription. Errors of the group come as events.
    ///
    /// Errors: [`ErrorKind::InvalidArgument`] for an empty list, an invalid name or pattern, or a configuration that a group member
    /// can't have; [`ErrorKind::State`] if partitions are assigned by [`Consumer::assign`].
    pub fn subscribe(&self, topics: &[impl AsRef<str>]) -> Result<()> {
        self.check_open()?;
        if let Some(refusal) = &self.inner.subscription.refusal {
            return Err(refusal.clone());
        }
        if topics.is_empty() {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                "no topic to subscribe to; call unsubscribe to leave the group",
            ));
        }
        let mut names = SortedSet::new();
        for topic in topics {
            let topic = topic.as_ref();
            if !topic.starts_with('^') {
                check_topic_name(topic)?;
            }
            if !names.insert(Arc::from(topic)) {
                return Err(
                    Error::new(ErrorKind::InvalidArgument, "the topic is listed twice").with_topic(topic)
                );
            }
        }
        let entries = SubscribedTopics::parse(names.iter().map(|name: &Arc<str>| &**name))?;
        let mut subscribed = self.inner.subscription.topics.lock();
        if subscribed.is_empty() && !self.inner.shared.assignment().is_empty() {
            let detail = "the consumer reads partitions that the application assigned; unassign them first";
            return Err(Error::new(ErrorKind::State, detail));
        }
        // Under the lock, so that subscriptions reach the group in the order of the calls.
        self.inner.client.command(Command::Group(GroupCommand::Subscribe(entries)))?;
        *subscribed = names;
        Ok(())
    }

    /// Gives all partitions up and leaves the group, static members included. Waits until the group knows.
    pub fn unsubscribe(&self, timeout: Duration) -> Result<()> {
        let Some(mut left) = self.begin_unsubscribing()? else { return Ok(()) };
        unsubscribed(wait_for(self.serving_until_left(&mut left), timeout))
    }

    /// Returns the topics and patterns that the consumer subscribes to.
    pub fn subscription(&self) -> Vec<String> {
        self.inner.subscription.topics.lock().iter().map(ToString::to_string).collect()
    }

    /// Does what [`Consumer::unsubscribe`] does, without blocking. The consumer leaves its group also if the future is dropped.
    pub async fn unsubscribe_async(&self, timeout: Duration) -> Result<()> {
        let Some(mut left) = self.begin_unsubscribing()? else { return Ok(()) };
        let serving = self.serving_until_left(&mut left);
        unsubscribed(self.inner.client.within(timeout, serving).await)
    }

    /// Joins the group again, so that its leader assigns the partitions anew, for example because what the assignor knows about the
    /// members has changed (KIP-568). The coordinator logs the reason, of which it gets up to 255 characters.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::State`] if the consumer subscribes to nothing, or with `group.protocol=consumer`, in which the coordinator
    /// assigns.
    pub fn enforce_rebalance(&self, reason: &str) -> Result<()> {
        if self.inner.subscription.refusal.is_none() && !self.inner.subscription.is_classic {
            let detail = "enforce_rebalance: with group.protocol=consumer the coordinator decides when it assigns anew";
            return Err(Error::new(ErrorKind::State, detail));
        }
        let subscribed = self.inner.subscription.topics.lock();
        if subscribed.is_empty() {
            return Err(Error::new(
                ErrorKind::State,
                "enforce_rebalance: the consumer subscribes to nothing",
            ));
        }
        let reason: String = reason.chars().take(MOST_OF_A_REASON).collect();
        let reason =
            if reason.is_empty() { "the application enforces a rebalance".to_owned() } else { reason };
        self.inner.client.command(Command::Group(GroupCommand::Rejoin(reason)))
    }

    /// Begins to leave the group. Returns `None` if there is none.
    fn begin_unsubscribing(&self) -> Result<Option<Waiting<()>>> {
        let (done, left) = completion();
        let mut subscribed = self.inner.subscription.topics.lock();
        if subscribed.is_empty() {
            return Ok(None);
        }
        subscribed.clear();
        self.inner.client.command(Command::Group(GroupCommand::Unsubscribe(done)))?;
        Ok(Some(left))
    }

    /// Leaves the group before the consumer closes. Returns what is left of the time. Error: the group does not know yet that
    /// the member has left.
    pub(super) fn leave_group(
        &self,
        operation: GroupMembershipOperation,
        timeout: Duration,
    ) -> (Duration, Result<()>) {
        let began = Instant::now();
        let Some((mut waiting, is_attentive)) = self.begin_leaving(operation) else {
            return (timeout, Ok(()));
        };
        // The rest of the time is for the commit and for leaving.
        let mut left = None;
        if is_attentive {
            left = wait_for(self.serving_until_left(&mut waiting), timeout / 2);
        }
        if left.is_none() {
            self.answer_by_library();
            let rest = timeout.saturating_sub(began.elapsed());
            left = wait_for(self.accepting_until_left(&mut waiting), rest);
        }
        self.end_leaving(began, timeout, left.is_some())
    }

    /// Does what [`Consumer::leave_group`] does, without blocking.
    pub(super) async fn leave_group_async(
        &self,
        operation: GroupMembershipOperation,
        timeout: Duration,
    ) -> (Duration, Result<()>) {
        let began = Instant::now();
        let Some((mut waiting, is_attentive)) = self.begin_leaving(operation) else {
            return (timeout, Ok(()));
        };
        let (client, mut left) = (&self.inner.client, None);
        if is_attentive {
            left = client.within(timeout / 2, self.serving_until_left(&mut waiting)).await;
        }
        if left.is_none() {
            self.answer_by_library();
            let rest = timeout.saturating_sub(began.elapsed());
            left = client.within(rest, self.accepting_until_left(&mut waiting)).await;
        }
        self.end_leaving(began, timeout, left.is_some())
    }

    /// Begins to leave the group. Returns the end of that, and whether the application answers the revocation; `None` without a
    /// group.
    fn begin_leaving(&self, operation: GroupMembershipOperation) -> Option<(Waiting<()>, bool)> {
        let is_attentive = self.inner.subscription.questions().has_attentive_application();
        if !is_attentive {
            self.announce_revocation();
            self.answer_by_library();
        }
        let (done, waiting) = completion();
        let is_member = {
            let mut subscribed = self.inner.subscription.topics.lock();
            let is_member = !std::mem::take(&mut *subscribed).is_empty();
            if is_member {
                // Without effect if another thread has closed the consumer.
                let _ = self.inner.client.command(Command::Group(GroupCommand::Close(operation, done)));
            }
            is_member
        };
        if !is_member {
            self.answer_by_library();
        }
        is_member.then_some((waiting, is_attentive))
    }

    fn end_leaving(&self, began: Instant, timeout: Duration, has_left: bool) -> (Duration, Result<()>) {
        self.answer_by_library();
        // The client itself ends within a moment, and must not be given up because the coordinator is silent.
        let rest = timeout.saturating_sub(began.elapsed()).max(CLOSING_MOMENT);
        let detail = "the coordinator has not confirmed that the consumer left its group; its session ends there later";
        let result = if has_left { Ok(()) } else { Err(Error::new(ErrorKind::TimedOut, detail)) };
        (rest, result)
    }
}

const CLOSING_MOMENT: Duration = Duration::from_secs(1);

/// Returns the result of a wait for the end of a membership.
fn unsubscribed(left: Option<Option<()>>) -> Result<()> {
    match left {
        Some(Some(())) => Ok(()),
        Some(None) => Err(Error::new(ErrorKind::Closed, "")),
        None => Err(Error::new(ErrorKind::TimedOut, "the consumer is still leaving its group")),
    }
}
