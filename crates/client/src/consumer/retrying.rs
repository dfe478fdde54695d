//! Messages whose processing may fail: retried with back-off, in the order of their keys, and dead letters at last.
//!
//! `ottla_core::fetch::retries` has the behaviour. Here it meets the consumer, which delivers messages, the producer, which writes
//! dead letters, and the threads that process messages.
//!
//! # Pitfalls
//!
//! - Messages enter the machine in the order of their delivery, although several threads take them: two messages of a key would
//!   be processed side by side otherwise (`workers_process_each_key_in_order`).
//! - The thread that waits for a message must notice an attempt that becomes due earlier than the one that it waits for
//!   (`failed_message_is_retried_while_other_keys_go_on`).

use std::{
    fmt,
    future::poll_fn,
    mem,
    ops::Deref,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    time::{Duration, Instant as StdInstant},
};

use ottla_core::{
    error::{Error, Result},
    fetch::{
        deliver::Message,
        retries::{Attempt, Due, Lane, Retries, RetryPolicy},
    },
    lock::Mutex,
    machine::Instant,
    waiters::{WaitPlace, Waiter, Waiters},
};
use ottla_net::clock;
use ottla_protocol::vocabulary::TopicPartition;

use super::{
    dead_letters::{DeadLetters, Written},
    tracked::{TrackedMessage, TrackedMessages, TrackedWaits},
};
use crate::{producer::Producer, wait::wait_for};

/// The messages of a consumer for workers whose processing may fail. See [`TrackedMessages::with_retries`].
#[derive(Clone)]
pub struct RetryingMessages {
    inner: Arc<Inner>,
}

struct Inner {
    messages: TrackedMessages,
    retries: Mutex<Retries<TrackedMessage>>,
    dead_letters: DeadLetters,
    waiting: Arc<WaitingThreads>,
}

/// A message that is being processed, and the number of the attempt. [`RetryingMessage::finish`] lets it be committed, and
/// [`RetryingMessage::fail`] lets it be processed again.
///
/// # Drop
///
/// A message that is dropped instead, for example because its worker panics, has failed, too.
#[must_use = "a message that is not finished has failed"]
pub struct RetryingMessage {
    /// The attempt, until it has an outcome.
    attempt: Option<Attempt<TrackedMessage>>,
    message: Message,
    inner: Arc<Inner>,
}

impl TrackedMessages {
    /// Returns the messages for processing that may fail. A message that [fails](RetryingMessage::fail) is returned again after a
    /// back-off. After the last attempt of the policy, it is written to the topic `dead_letter_topic` with the same key, value and
    /// headers, and counts as finished.
    ///
    /// Messages of a partition that have the same key are processed one after the other, in order: those behind a message that
    /// waits for its next attempt wait, too. Other keys go on, and so do messages without a key. All of them count for the limit of
    /// [`Consumer::track_messages`](super::Consumer::track_messages), and offsets are committed only up to the first message that is
    /// neither finished nor written as a dead letter.
    ///
    /// The dead letter has these headers after those of the message:
    ///
    /// | header | value |
    /// |---|---|
    /// | `dead.letter.topic` | the topic of the message |
    /// | `dead.letter.partition` | its partition, as decimal digits |
    /// | `dead.letter.offset` | its offset |
    /// | `dead.letter.timestamp` | its timestamp in milliseconds since 1970 |
    /// | `dead.letter.attempts` | how often it was processed |
    /// | `dead.letter.error` | the error of the last attempt, at most 1,000 bytes |
    ///
    /// With a transactional producer each dead letter is a transaction of its own, which commits the offset after the message, too,
    /// if all earlier messages of its partition are finished. If the partition went to another member meanwhile, the
    /// transaction is aborted. Call [`Producer::init_transactions`] before, and begin no other transactions with this producer. A
    /// dead letter that can't be written is an error of [`RetryingMessages::next`], and is written again after a back-off.
    pub fn with_retries(
        self,
        policy: RetryPolicy,
        producer: &Producer,
        dead_letter_topic: &str,
    ) -> RetryingMessages {
        RetryingMessages {
            inner: Arc::new(Inner {
                messages: self,
                retries: Mutex::new(Retries::new(policy)),
                dead_letters: DeadLetters::new(producer, dead_letter_topic),
                waiting: Arc::default(),
            }),
        }
    }
}

impl RetryingMessages {
    /// Returns the next message, or `None` after `timeout`. Any number of threads may call it. Dead letters are written by the
    /// producer in the background; these calls notice when they are written.
    ///
    /// # Errors
    ///
    /// The error of a partition, or of a dead letter that was not written, is returned once; the next call continues.
    /// [`ErrorKind::Closed`](crate::ErrorKind::Closed) after the consumer was closed.
    pub fn next(&self, timeout: Duration) -> Result<Option<RetryingMessage>> {
        let start = StdInstant::now();
        let mut waits = TrackedWaits::default();
        let mut place = Waiter::default();
        loop {
            let left = timeout.saturating_sub(start.elapsed());
            let due = self.inner.retries.lock().next_due();
            let until_due = due.map(|due| due.saturating_since(clock::now()));
            let next = poll_fn(|context| self.inner.poll(context, &mut waits, &mut place, due));
            match wait_for(next, until_due.map_or(left, |until| until.min(left))) {
                Some(Ok(Some(message))) => return Ok(Some(message)),
                // Another attempt is due earlier.
                Some(Ok(None)) => {}
                Some(Err(error)) => return Err(error),
                None if start.elapsed() >= timeout => return Ok(None),
                // An attempt is due.
                None => {}
            }
        }
    }

    /// Returns the number of messages that are not finished, or wait for an earlier one of their partition.
    pub fn in_progress(&self) -> usize {
        self.inner.messages.in_progress()
    }
}

impl Inner {
    /// Waits for a message; or for nothing, if an attempt is due earlier than expected.
    fn poll(
        self: &Arc<Self>,
        context: &mut Context<'_>,
        waits: &mut TrackedWaits,
        place: &mut Waiter<WaitingThreads>,
        expected: Option<Instant>,
    ) -> Poll<Result<Option<RetryingMessage>>> {
        place.register(&self.waiting, context.waker());
        loop {
            let (taken, due) = self.advance();
            match taken {
                Some(Ok(attempt)) => return Poll::Ready(Ok(Some(self.hand_out(attempt)))),
                Some(Err(error)) => return Poll::Ready(Err(error)),
                None => {}
            }
            let offer = |message: TrackedMessage| {
                let lane = lane_of(&message);
                self.retries.lock().offer(lane, message)
            };
            match self.messages.inner.poll_as(context, waits, offer) {
                Poll::Ready(Ok(Some(attempt))) => {
                    return Poll::Ready(Ok(Some(self.hand_out(attempt))));
                }
                // An earlier message of its key is not finished.
                Poll::Ready(Ok(None)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending if due.is_some_and(|due| expected.is_none_or(|expected| due < expected)) => {
                    return Poll::Ready(Ok(None));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Goes on with dead letters. Returns the next attempt that is due, or an error; and when another is due.
    fn advance(&self) -> (Option<Result<Attempt<TrackedMessage>>>, Option<Instant>) {
        let now = clock::now();
        let mut error = self.write_dead_letters(now);
        let taken = loop {
            if let Some(error) = error {
                break Some(Err(error));
            }
            let due = self.retries.lock().take(now);
            match due {
                Some(Due::Attempt(attempt) | Due::DeadLetter(attempt)) if !attempt.message.is_current() => {
                    // Another consumer processes it.
                    drop(self.end(attempt));
                }
                Some(Due::Attempt(attempt)) => break Some(Ok(attempt)),
                Some(Due::DeadLetter(attempt)) => {
                    self.dead_letters.push(attempt);
                    error = self.write_dead_letters(now);
                }
                None => break None,
            }
        };
        let due = self.retries.lock().next_due();
        (taken, due)
    }

    /// Goes on with dead letters until none has an outcome, or one can't be written.
    fn write_dead_letters(&self, now: Instant) -> Option<Error> {
        let waker = Waker::from(Arc::clone(&self.waiting));
        let mut context = Context::from_waker(&waker);
        while let Some(written) = self.dead_letters.poll(&mut context) {
            match written {
                Written::Yes(attempt) => self.end(attempt).finish(),
                Written::No(attempt, error) => {
                    self.retries.lock().fail_dead_letter(now, attempt);
                    // Another one may have an outcome that only this thread was told of.
                    self.waiting.wake_by_ref();
                    return Some(error);
                }
            }
        }
        None
    }

    /// Removes an attempt from the machine. What becomes of the message is done without the lock: it may wake threads.
    fn end(&self, attempt: Attempt<TrackedMessage>) -> TrackedMessage {
        self.retries.lock().finish(attempt)
    }

    fn hand_out(self: &Arc<Self>, attempt: Attempt<TrackedMessage>) -> RetryingMessage {
        let message = attempt.message.message().clone();
        RetryingMessage { attempt: Some(attempt), message, inner: Arc::clone(self) }
    }

    /// Changes the machine, and wakes the threads that wait for messages.
    fn change<R>(&self, act: impl FnOnce(&mut Retries<TrackedMessage>) -> R) -> R {
        let result = act(&mut self.retries.lock());
        self.waiting.wake_by_ref();
        result
    }
}

/// Returns the key of a message, whose messages are processed one after the other.
fn lane_of(message: &TrackedMessage) -> Option<Lane> {
    let key = message.key()?;
    Some(Arc::new((TopicPartition::from((message.topic(), message.partition())), key.into())))
}

/// The threads that wait for a message.
#[derive(Default)]
struct WaitingThreads(Mutex<Waiters>);

impl WaitPlace for WaitingThreads {
    fn with_waiters<R>(&self, act: impl FnOnce(&mut Waiters) -> R) -> R {
        act(&mut self.0.lock())
    }
}

impl Wake for WaitingThreads {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let waiters = mem::take(&mut *self.0.lock());
        waiters.into_iter().for_each(Waker::wake);
    }
}

impl RetryingMessage {
    /// Returns the number of the attempt; the first is 1.
    pub fn attempt(&self) -> u32 {
        self.attempt.as_ref().map_or(0, |attempt| attempt.number)
    }

    /// Returns why the last attempt failed; `None` in the first.
    pub fn last_error(&self) -> Option<&str> {
        self.attempt.as_ref()?.error.as_deref()
    }

    /// Returns the message.
    pub const fn message(&self) -> &Message {
        &self.message
    }

    /// The message was processed: it is committed as soon as all earlier messages of its partition are finished, too.
    pub fn finish(mut self) {
        if let Some(attempt) = self.attempt.take() {
            self.inner.change(|retries| retries.finish(attempt)).finish();
        }
    }

    /// The processing failed. Returns the time until the message is processed again; `None` after the last attempt, when it is
    /// written as a dead letter with the text of the error.
    pub fn fail(mut self, error: &dyn fmt::Display) -> Option<Duration> {
        self.end(&error.to_string())
    }

    fn end(&mut self, error: &str) -> Option<Duration> {
        let attempt = self.attempt.take()?;
        self.inner.change(|retries| retries.fail(clock::now(), attempt, error))
    }
}

impl Drop for RetryingMessage {
    fn drop(&mut self) {
        self.end(if std::thread::panicking() {
            "the thread that processed the message panicked"
        } else {
            "the message was dropped before it was finished"
        });
    }
}

impl Deref for RetryingMessage {
    type Target = Message;

    fn deref(&self) -> &Message {
        &self.message
    }
}

impl fmt::Debug for RetryingMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryingMessage")
            .field("message", &self.message)
            .field("attempt", &self.attempt())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for RetryingMessages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryingMessages").field("messages", &self.inner.messages).finish_non_exhaustive()
    }
}
