//! The state of a transactional producer that the application's threads, the broker actors and the cluster actor share.
//!
//! The cluster actor's part changes the state. A sender asks once per partition and transaction whether the partition's
//! batches may be sent, and notes what went wrong with them. Counts are per batch, never per message.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use ottla_protocol::vocabulary::TopicPartition;
use ottla_sorted::SortedSet;

use super::{
    api::{FunctionNames, TransactionApi},
    current::CurrentCall,
    error::TransactionError,
    state::TransactionState,
};
use crate::{
    error::{Error, ErrorKind},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering},
    },
    wake::WakeHandle,
};

/// The shared state of a transactional producer.
pub struct TransactionShared {
    /// `transactional.id`.
    id: Arc<str>,
    state: AtomicU8,
    /// The number of the transaction, from 1 on.
    number: AtomicU32,
    /// True if a Produce request registers its partitions by itself (KIP-890).
    is_implicit: AtomicBool,
    /// True if a batch of the transaction was sent.
    has_sent: AtomicBool,
    /// True if nothing is sent yet, because the markers of the last transaction may still be missing.
    is_closed: AtomicBool,
    /// Changes whenever partitions may have got permission to be sent.
    version: AtomicU64,
    registrations: Mutex<Registrations>,
    /// True if the next transaction needs another epoch: a sequence number is missing, or a request may still arrive.
    needs_renewal: AtomicBool,
    /// Messages of the transaction that were reported.
    persisted: AtomicU64,
    failed: AtomicU64,
    failure: Mutex<Option<TransactionError>>,
    /// True if there is news for the cluster actor.
    has_news: AtomicBool,
    pub(crate) call: Mutex<CurrentCall>,
    refusals: Mutex<Refusals>,
    /// Wakes the cluster actor, once there was a call.
    wake: OnceLock<WakeHandle>,
}

#[derive(Debug, Default)]
struct Registrations {
    requested: SortedSet<TopicPartition>,
    registered: SortedSet<TopicPartition>,
}

/// The failed attempts of the current call.
#[derive(Debug, Default)]
struct Refusals {
    count: u32,
    last: Option<Error>,
}

impl TransactionShared {
    /// Creates the state of a producer with this `transactional.id`.
    pub fn new(id: Arc<str>) -> Self {
        Self {
            id,
            state: AtomicU8::new(TransactionState::Init as u8),
            number: AtomicU32::new(0),
            is_implicit: AtomicBool::new(false),
            has_sent: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            version: AtomicU64::new(0),
            registrations: Mutex::default(),
            needs_renewal: AtomicBool::new(false),
            persisted: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            failure: Mutex::default(),
            has_news: AtomicBool::new(false),
            call: Mutex::default(),
            refusals: Mutex::default(),
            wake: OnceLock::new(),
        }
    }

    /// Returns `transactional.id`.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// Returns the state.
    pub fn state(&self) -> TransactionState {
        TransactionState::from_number(self.state.load(Ordering::Acquire))
    }

    pub(crate) fn set_state(&self, state: TransactionState) {
        self.state.swap(state as u8, Ordering::SeqCst);
    }

    /// Returns true if Produce requests register their partitions by themselves.
    pub(crate) fn is_implicit(&self) -> bool {
        self.is_implicit.load(Ordering::Acquire)
    }

    /// Starts the next transaction. With `is_closed`, nothing is sent before [`Self::open`].
    pub(crate) fn begin(&self, is_implicit: bool, is_closed: bool) {
        *self.registrations.lock() = Registrations::default();
        *self.failure.lock() = None;
        self.has_sent.store(false, Ordering::Relaxed);
        self.is_closed.store(is_closed, Ordering::Relaxed);
        self.persisted.store(0, Ordering::Relaxed);
        self.failed.store(0, Ordering::Relaxed);
        self.is_implicit.store(is_implicit, Ordering::Relaxed);
        self.number.fetch_add(1, Ordering::AcqRel);
        self.set_state(TransactionState::InTransaction);
        self.note_permission();
    }

    // ---- for senders

    /// Returns whether a partition's batches may be sent; `last` is the transaction in which they last could. Requests the
    /// registration of the partition if that is missing.
    pub(crate) fn admits(&self, last: &mut u32, partition: impl FnOnce() -> TopicPartition) -> bool {
        let number = self.number.load(Ordering::Acquire);
        if !self.state().may_send() || self.is_closed.load(Ordering::Acquire) {
            return false;
        }
        if *last == number {
            return true;
        }
        if self.is_implicit() {
            *last = number;
            return true;
        }
        let partition = partition();
        let mut registrations = self.registrations.lock();
        if registrations.registered.contains(&partition) {
            *last = number;
            return true;
        }
        registrations.requested.insert(partition);
        drop(registrations);
        self.note_news();
        false
    }

    /// Returns true while the transaction is aborted: batches that would be sent again are purged.
    pub(crate) fn is_aborting(&self) -> bool {
        self.state() == TransactionState::BeginAbort
    }

    /// Returns a number that changes whenever partitions may have got permission to be sent.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// The outcome of a request is unknown, or a sequence number is missing: the next transaction needs another epoch.
    pub(crate) fn note_doubt(&self) {
        self.needs_renewal.store(true, Ordering::Release);
    }

    /// The transaction can't be committed, or the producer can't continue. The first error is kept, unless a later one is
    /// fatal.
    pub(crate) fn note_failure(&self, failure: TransactionError) {
        let mut known = self.failure.lock();
        if known.is_none() || failure.is_fatal() {
            *known = Some(failure);
        }
        drop(known);
        self.note_news();
    }

    /// Counts the messages of a delivery report.
    pub(crate) fn note_report(&self, messages: usize, error: Option<&Error>, is_persisted: bool) {
        let counter = if error.is_none() && is_persisted { &self.persisted } else { &self.failed };
        counter.fetch_add(messages as u64, Ordering::AcqRel);
        if let Some(error) = error
            && matches!(error.kind(), ErrorKind::MessageTimedOutInQueue | ErrorKind::MessageTimedOutInFlight)
        {
            self.note_failure(TransactionError::Abort(error.clone()));
        }
    }

    /// A batch leaves. With the newer protocol, that registers its partition.
    pub(crate) fn note_batch(&self) {
        if self.is_implicit()
            && !self.has_sent.load(Ordering::Relaxed)
            && !self.has_sent.swap(true, Ordering::AcqRel)
        {
            self.note_news();
        }
    }

    /// The last message was reported: a commit or an abort that waited for it goes on.
    pub(crate) fn continue_end(&self) {
        // An exchange, as in `set_state`: either this thread sees the new state, or the cluster actor sees that the message is
        // reported.
        let state = TransactionState::from_number(self.state.fetch_add(0, Ordering::SeqCst));
        if matches!(state, TransactionState::BeginCommit | TransactionState::BeginAbort)
            && let Some(wake) = self.wake.get()
        {
            wake.wake();
        }
    }

    /// Sets what wakes the cluster actor.
    pub(crate) fn set_wake(&self, wake: &WakeHandle) {
        self.wake.get_or_init(|| wake.clone());
    }

    /// Sets the names in the texts of errors.
    pub fn set_names(&self, names: FunctionNames) {
        self.call.lock().names = names;
    }

    /// Returns the names in the texts of errors.
    pub(crate) fn names(&self) -> FunctionNames {
        self.call.lock().names
    }

    /// Returns the error of a message that is sent outside of a transaction.
    pub(crate) fn why_refused(&self) -> Error {
        let state = self.state();
        let begin = TransactionApi::Begin.name_in(self.names());
        let next = match state {
            TransactionState::Init | TransactionState::WaitProducerId => {
                format!("call init_transactions and {begin} before")
            }
            TransactionState::AbortableError => {
                "the transaction failed; abort it and begin another one".to_owned()
            }
            _ => format!("call {begin} before"),
        };
        let detail =
            format!("messages are sent within a transaction, but the state is {}; {next}", state.name());
        Error::new(ErrorKind::State, detail)
    }

    /// Returns whether the cluster actor must be notified, once per news.
    pub(crate) fn take_news(&self) -> bool {
        self.has_news.load(Ordering::Relaxed) && self.has_news.swap(false, Ordering::AcqRel)
    }

    pub(crate) fn note_news(&self) {
        self.has_news.store(true, Ordering::Release);
    }

    // ---- for the cluster actor

    pub(crate) fn has_sent(&self) -> bool {
        self.has_sent.load(Ordering::Acquire)
    }

    /// The transaction's requests may be sent.
    pub(crate) fn open(&self) {
        self.is_closed.store(false, Ordering::Release);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// The transaction's batches are aborted.
    pub(crate) fn forget_sent(&self) {
        self.has_sent.store(false, Ordering::Release);
    }

    pub(crate) fn needs_renewal(&self) -> bool {
        self.needs_renewal.load(Ordering::Acquire)
    }

    pub(crate) fn end_doubt(&self) {
        self.needs_renewal.store(false, Ordering::Release);
    }

    pub(crate) fn take_failure(&self) -> Option<TransactionError> {
        self.failure.lock().take()
    }

    /// Returns the numbers of messages that were reported as persisted, and of all others.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.persisted.load(Ordering::Acquire), self.failed.load(Ordering::Acquire))
    }

    /// Takes the partitions whose registration is requested.
    pub(crate) fn take_requested(&self) -> SortedSet<TopicPartition> {
        std::mem::take(&mut self.registrations.lock().requested)
    }

    pub(crate) fn register(&self, partition: TopicPartition) {
        self.registrations.lock().registered.insert(partition);
    }

    /// Senders check again whether their partitions may be sent.
    pub(crate) fn note_permission(&self) {
        self.version.fetch_add(1, Ordering::AcqRel);
    }

    /// Notes a failed attempt, for the error of a call that times out.
    pub(crate) fn note_refusal(&self, error: Error) {
        let mut refusals = self.refusals.lock();
        refusals.count = refusals.count.saturating_add(1);
        refusals.last = Some(error);
    }

    pub(crate) fn forget_refusals(&self) {
        *self.refusals.lock() = Refusals::default();
    }

    /// Returns the number of failed attempts of the current call, and the last error.
    pub(crate) fn refusals(&self) -> (u32, Option<Error>) {
        let refusals = self.refusals.lock();
        (refusals.count, refusals.last.clone())
    }
}

impl fmt::Debug for TransactionShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransactionShared")
            .field("id", &self.id)
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}
