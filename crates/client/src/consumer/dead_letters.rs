//! Dead letters on their way to their topic: messages whose last attempt has failed, with their origin in headers.
//!
//! Writing one calls the application: a partitioner, and interceptors. So no lock is held meanwhile, although several threads wait for
//! messages: one of them has the turn to go on with the dead letters, and does it again if another came meanwhile.

use std::{
    collections::VecDeque,
    fmt,
    future::Future,
    mem,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use ottla_core::{
    error::{Error, Result},
    fetch::retries::Attempt,
    lock::Mutex,
    offsets::committed::GroupOffset,
    produce::{
        record::Record,
        transaction::error::{TransactionError, TransactionResult},
    },
};

use super::tracked::TrackedMessage;
use crate::producer::{Producer, Topic};

/// The dead letters that are not written.
pub(super) struct DeadLetters {
    producer: Producer,
    topic: Topic,
    is_transactional: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Those that no thread has begun to write.
    waiting: VecDeque<Attempt<TrackedMessage>>,
    /// Those that are being written; empty while a thread has the turn.
    sending: Vec<Sending>,
    /// A thread goes on with them.
    has_turn: bool,
    /// Another thread would have gone on with them meanwhile.
    is_missed: bool,
}

type Sending = Pin<Box<dyn Future<Output = (Attempt<TrackedMessage>, Result<()>)> + Send>>;

/// The outcome of a dead letter.
pub(super) enum Written {
    Yes(Attempt<TrackedMessage>),
    No(Attempt<TrackedMessage>, Error),
}

/// The time for adding an offset to the transaction.
const OFFSETS_TIMEOUT: Duration = Duration::from_secs(30);

impl DeadLetters {
    pub(super) fn new(producer: &Producer, topic: &str) -> Self {
        Self {
            producer: producer.clone(),
            topic: producer.topic(topic),
            is_transactional: producer.is_transactional(),
            state: Mutex::default(),
        }
    }

    /// Adds a message.
    pub(super) fn push(&self, attempt: Attempt<TrackedMessage>) {
        self.state.lock().waiting.push_back(attempt);
    }

    /// Returns the next one that has an outcome; otherwise the waker is called when there is another one.
    pub(super) fn poll(&self, context: &mut Context<'_>) -> Option<Written> {
        loop {
            let written = Turn::begin(self)?.go_on(context);
            if written.is_some() || !mem::take(&mut self.state.lock().is_missed) {
                return written;
            }
        }
    }

    /// Begins to write a message.
    fn send(&self, attempt: Attempt<TrackedMessage>) -> Sending {
        let (producer, topic) = (self.producer.clone(), self.topic.clone());
        if self.is_transactional {
            Box::pin(async move {
                let result = write_in_transaction(&producer, &topic, &attempt).await;
                (attempt, result.map_err(|error| error.error().clone()))
            })
        } else {
            Box::pin(async move {
                let result = write(&topic, &attempt).await;
                (attempt, result)
            })
        }
    }
}

/// The turn of a thread to go on with the dead letters. It ends with this value, also by a panic.
struct Turn<'a> {
    letters: &'a DeadLetters,
    sending: Vec<Sending>,
}

impl<'a> Turn<'a> {
    /// Returns `None` if another thread has the turn. It will go on once more.
    fn begin(letters: &'a DeadLetters) -> Option<Self> {
        let mut state = letters.state.lock();
        if state.has_turn {
            state.is_missed = true;
            return None;
        }
        state.has_turn = true;
        Some(Self { letters, sending: mem::take(&mut state.sending) })
    }

    fn go_on(&mut self, context: &mut Context<'_>) -> Option<Written> {
        loop {
            for index in 0..self.sending.len() {
                if let Poll::Ready((attempt, result)) = self.sending[index].as_mut().poll(context) {
                    drop(self.sending.swap_remove(index));
                    return Some(match result {
                        Ok(()) => Written::Yes(attempt),
                        Err(error) => Written::No(attempt, error),
                    });
                }
            }
            // A producer has one transaction at a time.
            if self.letters.is_transactional && !self.sending.is_empty() {
                return None;
            }
            let attempt = self.letters.state.lock().waiting.pop_front()?;
            self.sending.push(self.letters.send(attempt));
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.letters.state.lock();
        state.sending = mem::take(&mut self.sending);
        state.has_turn = false;
    }
}

/// The origin of a dead letter as the values of its headers.
struct Origin([(&'static str, String); 6]);

impl Origin {
    fn of(attempt: &Attempt<TrackedMessage>) -> Self {
        let message = &attempt.message;
        Self([
            ("dead.letter.topic", message.topic().to_owned()),
            ("dead.letter.partition", message.partition().to_string()),
            ("dead.letter.offset", message.offset().to_string()),
            ("dead.letter.timestamp", message.timestamp().to_string()),
            ("dead.letter.attempts", attempt.number.to_string()),
            ("dead.letter.error", attempt.error.clone().unwrap_or_default()),
        ])
    }

    /// Returns the message as a record with its headers and its origin. An earlier origin is replaced.
    fn record<'a>(&'a self, attempt: &'a Attempt<TrackedMessage>) -> Record<'a> {
        let message = &attempt.message;
        let mut record = Record::of(None, None, message.key(), message.value(), 0);
        for header in message.headers() {
            if self.0.iter().all(|(name, _)| name.as_bytes() != header.key) {
                record = record.raw_header(header);
            }
        }
        self.0.iter().fold(record, |record, (name, value)| record.header(*name, value))
    }
}

async fn write(topic: &Topic, attempt: &Attempt<TrackedMessage>) -> Result<()> {
    let origin = Origin::of(attempt);
    topic.deliver_async(origin.record(attempt)).await.map(drop)
}

/// Writes a dead letter in a transaction, with the offset after its message if that can be committed.
async fn write_in_transaction(
    producer: &Producer,
    topic: &Topic,
    attempt: &Attempt<TrackedMessage>,
) -> TransactionResult {
    // The end of the last transaction may have timed out.
    producer.resume_transaction_async().await?;
    let transaction = producer.begin_async().await?;
    let origin = Origin::of(attempt);
    topic.send(origin.record(attempt)).map_err(|error| TransactionError::Refused(error.into()))?;
    let consumer = attempt.message.consumer();
    if let Some(next) = attempt.message.offset_after()
        && !consumer.group_metadata().group_id.is_empty()
    {
        let offset = GroupOffset {
            leader_epoch: next.leader_epoch,
            ..GroupOffset::new(attempt.message.topic(), attempt.message.partition(), next.offset)
        };
        transaction.send_offsets_async(consumer, &[offset], OFFSETS_TIMEOUT).await?;
    }
    transaction.commit_async().await
}

impl fmt::Debug for DeadLetters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        f.debug_struct("DeadLetters")
            .field("waiting", &state.waiting.len())
            .field("sending", &state.sending.len())
            .finish_non_exhaustive()
    }
}
