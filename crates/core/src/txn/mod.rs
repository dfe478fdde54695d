//! The transactional producer: a part of the cluster actor beside `ProducerPlacement`.
//!
//! ```text
//!   application: TransactionCalls ── TransactionCommand ──► Transactions ── requests ──► coordinators
//!        │                                                      ▲ │ state, registrations
//!        └── send ──► accumulators ──► Sender ── what failed ───┘ └─► TransactionShared ◄── may this partition be sent?
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | [`call`] | the calls of the application, which may time out and continue: start here |
//! | [`transaction`](crate::produce::transaction) | what application, senders and this part share: states, errors, the call that runs |
//! | [`command`], `commands` | the commands of the calls; the effect of each in each state |
//! | `ending` | the requests about the producer and the transaction: InitProducerId, EndTxn |
//! | `partitions`, `offsets` | the registration of partitions; the offsets of a group |
//! | `markers` | the questions about the markers of the last transaction |
//! | `requests`, `attempt`, `clock` | encoding; repetition; the countdown of `transaction.timeout.ms` |
//!
//! `ottla` and the C library use [`call::TransactionCalls`] and have the deadlines. A commit or an abort is one command to the cluster
//! actor, which ends the transaction when the last message is reported; no thread of the application has to wake up for that.
//!
//! There are two protocols. In the older one a partition is registered with AddPartitionsToTxn, and a group with
//! AddOffsetsToTxn, before anything is sent to them. In the newer one (KIP-890) the brokers do that, and EndTxn raises the
//! epoch. A transaction keeps the protocol that it began with: the newer one if the cluster's feature `transaction.version`
//! is 2 and all connected brokers have the versions.
//!
//! # Pitfalls
//!
//! - With the older protocol a delayed request of one transaction could become part of the next one, because both have the
//!   same epoch (KAFKA-17754). After a request whose outcome is unknown, the producer gets a higher epoch before it sends
//!   anything of the next transaction (`lost_request_raises_the_epoch_before_the_next_transaction`).
//! - Until the marker of a transaction is written, a leader takes batches of its producer and epoch as parts of it. With the
//!   newer protocol nothing is registered before, which would reveal that: the first transaction after an upgrade of the
//!   cluster needs a higher epoch (`first_transaction_after_an_upgrade_gets_a_higher_epoch`).
//! - EndTxn of the newer protocol names the epoch before the present one if it is a repetition. So is that of a producer whose epoch
//!   another instance has raised, and used with the older protocol after a downgrade: the response names the other's epoch. Before
//!   the first transaction after a downgrade, InitProducerId with the epoch of before shows whose it is (`downgrade_takes_effect_with_the_next_transaction`).
//! - A coordinator that aborts a transaction of the last but one epoch gives the last one, and can't end a transaction of that
//!   (`last_epoch_is_renewed_before_the_next_transaction`). A producer that does not know of it, because the response was lost, gets
//!   UNKNOWN_SERVER_ERROR from every InitProducerId (`renewal_fails_when_the_producer_id_is_used_up`).
//! - Offsets may reach the coordinator after it has aborted the transaction. During an abort only the response to EndTxn decides
//!   whether the producer is fenced (`late_offsets_do_not_decide_for_an_abort`).
//! - With the newer protocol, a leader that gets the first batch of a transaction before the markers of the last one are written
//!   asks the coordinator again only after 20 ms. It is quicker to ask the coordinator first, at the time at which earlier markers
//!   were written (`newer_protocol_sends_when_the_last_markers_are_written`,
//!   `client_asks_about_markers_when_they_are_probably_written`).
//! - A commit whose EndTxn was sent is never declared abortable: the coordinator may have committed. It is sent again until
//!   the outcome is known (`lost_commit_is_sent_again_until_its_outcome_is_known`).
//! - With the newer protocol, INVALID_TXN_STATE in response to a commit means that the coordinator has aborted the transaction,
//!   because it timed out while requests were lost. The abort succeeds then, so the error is not fatal
//!   (`commit_after_the_coordinators_timeout_requires_an_abort`).
//! - InitProducerId fences the producer itself if its transaction is open: the coordinator aborts that, which raises the epoch, and
//!   refuses the repetition with the epoch of before. So a refused EndTxn is repeated in its older form after a downgrade
//!   (`refused_newer_protocol_is_not_tried_again`).
//! - EndTxn for a transaction of which the coordinator knows nothing is refused with INVALID_TXN_STATE, so it is not sent; but
//!   a request whose outcome is unknown may have registered something (`unregistered_transaction_ends_without_a_request`).
//! - A batch in flight may come back to be sent again after an abort has purged the queue. Nothing would send it, and the abort
//!   would wait for its report: it is purged, too (`batch_that_comes_back_during_an_abort_is_purged`).
//! - A batch that was reported early, because it timed out or was purged, may still be in flight when the epoch has changed. The
//!   partition waits for it (`records_wait_for_a_new_epoch_and_for_batches_of_the_old_one`). Its response says nothing about the
//!   present transaction (`late_refusal_of_a_reported_batch_concerns_no_transaction`).
//! - A thread may have checked that a transaction is open, and append its record when it is not any more. Each queue is locked
//!   once after the gate was closed, and threads check again under that lock
//!   (`records_of_many_threads_belong_to_one_transaction_each`).

mod attempt;
pub mod call;
mod clock;
pub mod command;
mod commands;
mod ending;
mod markers;
mod offsets;
mod partitions;
pub(crate) mod requests;
#[cfg(all(test, not(ottla_loom)))]
mod scripted;

pub(crate) use self::attempt::may_have_been_sent;

use std::{collections::VecDeque, convert::Infallible, sync::Arc, time::Duration};

use ottla_protocol::error_code::ErrorCode;
use ottla_sorted::SortedMap;

use self::{
    attempt::Attempt, clock::Clock, ending::CoordinatorJob, markers::MarkerCheck, offsets::OffsetsCall,
    partitions::Registering, requests::Terms,
};
use crate::{
    completion::Completion,
    connection::Response,
    contract::{
        broker::{Broadcast, BrokerKey, TransactionFeatures},
        metadata::Metadata,
        part::{
            Interest, MetadataChanges, Need, Needs, Part, RequestOwner, SnapshotTime, TransactionRequest,
        },
        route::{CoordinatorKey, Route, RoutedRequest},
    },
    error::{Error, ErrorKind},
    event::{Event, TransactionOverdue},
    machine::{Instant, earliest},
    produce::{
        producer_id::ProducerIdentity,
        shared::ProducerShared,
        transaction::{
            error::{Reaction, RequestKind, TransactionError, TransactionResult, fenced, react},
            shared::TransactionShared,
            state::TransactionState,
        },
    },
    rng::Rng,
    states::See,
    stats::{EosStatistics, Statistics},
};

/// The use of the producer's epoch: a transaction of the other protocol may need the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EpochUse {
    /// InitProducerId gave it, and no transaction has used it.
    Fresh,
    /// A transaction of the older protocol has used it. A late request of that transaction must not reach one of the newer
    /// protocol.
    Used,
    /// EndTxn of the newer protocol has raised it from that of this identity. If another instance had raised it with InitProducerId before, and has used it
    /// with the older protocol since, then the coordinator took EndTxn as a repetition, and two producers have the epoch.
    Raised(ProducerIdentity),
}

impl EpochUse {
    /// Returns true if a transaction must not begin in the epoch.
    const fn needs_renewal(self, is_implicit: bool) -> bool {
        match self {
            Self::Fresh => false,
            Self::Used => is_implicit,
            Self::Raised(_) => !is_implicit,
        }
    }
}

/// The part of the cluster actor.
#[derive(Debug)]
pub(crate) struct Transactions {
    producer: Arc<ProducerShared>,
    shared: Arc<TransactionShared>,
    terms: Terms,
    backoff: (Duration, Duration),
    state: TransactionState,
    changed_at: Option<Instant>,
    /// The first error of the transaction, or the fatal one.
    error: Option<TransactionError>,
    /// The result of `init`, `commit` or `abort`.
    done: Option<Completion<TransactionResult>>,
    identity: Option<ProducerIdentity>,
    /// The request about the producer or the transaction that is in progress.
    job: Option<CoordinatorJob>,
    /// The transaction ends, by a commit if true, as soon as its other requests are done.
    ending: Option<bool>,
    registering: Registering,
    /// The first call is in progress.
    offsets: VecDeque<OffsetsCall>,
    /// The attempts of a call that timed out, which the next one continues.
    offsets_attempt: Option<Attempt>,
    registered: Registered,
    epoch_use: EpochUse,
    clock: Option<Clock>,
    markers: MarkerCheck,
    /// True if the transaction's timeout has passed and it must be aborted before the coordinator does that.
    aborts_early: bool,
    /// The transactional features of the connected brokers.
    features: SortedMap<BrokerKey, TransactionFeatures>,
    next_number: u64,
    needs: VecDeque<Need>,
    rng: Rng,
}

/// The knowledge of the coordinator about the transaction. The variants are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Registered {
    #[default]
    Nothing,
    /// The outcome of a registration is unknown.
    Perhaps,
    Something,
}

impl Transactions {
    /// Creates the part if the producer is transactional.
    pub(crate) fn new(
        producer: Option<&Arc<ProducerShared>>,
        request_timeout: Duration,
        rng: &mut Rng,
    ) -> Option<Self> {
        let producer = producer?;
        let shared = producer.transactions.clone()?;
        let settings = &producer.settings;
        let backoff = (settings.retry_backoff, settings.retry_backoff_max);
        let terms = Terms { id: Arc::clone(shared.id()), timeout: request_timeout };
        Some(Self {
            producer: Arc::clone(producer),
            shared,
            terms,
            backoff,
            state: TransactionState::Init,
            changed_at: None,
            error: None,
            done: None,
            identity: None,
            job: None,
            ending: None,
            registering: Registering::new(backoff),
            offsets: VecDeque::new(),
            offsets_attempt: None,
            registered: Registered::Nothing,
            epoch_use: EpochUse::Fresh,
            clock: None,
            markers: MarkerCheck::default(),
            aborts_early: false,
            features: SortedMap::new(),
            next_number: 0,
            needs: VecDeque::new(),
            rng: rng.fork(),
        })
    }

    /// Stores the features of a connected broker.
    pub(crate) fn handle_features(&mut self, broker: BrokerKey, features: TransactionFeatures) {
        self.features.insert(broker, features);
    }

    /// Forgets a broker actor that ended.
    pub(crate) fn forget_broker(&mut self, broker: BrokerKey) {
        self.features.remove(&broker);
    }

    /// Returns whether the next transaction uses the newer protocol.
    fn is_implicit_possible(&self) -> bool {
        let newest = self.features.values().max_by_key(|features| features.epoch);
        newest.is_some_and(|features| features.transaction_version >= 2)
            && self.features.values().all(|features| features.has_versions)
    }

    /// Handles a response. Returns true if it reports that the node is not the coordinator.
    pub(crate) fn handle_response(
        &mut self,
        now: Instant,
        request: TransactionRequest,
        result: Result<Response, Error>,
    ) -> bool {
        match request {
            TransactionRequest::Coordinator(number) => self.handle_coordinator(now, number, result),
            TransactionRequest::Partitions(number) => self.handle_partitions(now, number, result),
            TransactionRequest::Offsets(number) => self.handle_offsets(now, number, result),
            TransactionRequest::Markers(number) => {
                self.handle_markers(now, number, result);
                false
            }
        }
    }

    // ---- states

    fn go(&mut self, now: Instant, next: TransactionState) {
        debug_assert!(self.state.may_become(next), "from {:?} to {next:?}", self.state);
        self.state = next;
        self.changed_at = Some(now);
        self.shared.set_state(next);
        if next != TransactionState::InTransaction {
            self.producer.end_transaction();
        }
        // A flush that waits for messages ends if the transaction failed.
        self.producer.budget.wake_waiters();
    }

    /// Ends the call that waits.
    fn finish(&mut self, result: TransactionResult) {
        if let Some(done) = self.done.take() {
            done.complete(result);
        }
    }

    /// The transaction can only be aborted. The first error is kept; during an abort, errors do not matter.
    fn fail(&mut self, now: Instant, error: Error) {
        use TransactionState::{BeginCommit, Committing, InTransaction};
        if !matches!(self.state, InTransaction | BeginCommit | Committing) {
            return;
        }
        self.check_downgrade(&error);
        let error = TransactionError::Abort(error);
        self.error = Some(error.clone());
        // A renewal goes on: without it the producer has no identity.
        self.job.take_if(|job| !job.is_renewal());
        self.ending = None;
        self.go(now, TransactionState::AbortableError);
        self.finish(Err(error.clone()));
        self.fail_offsets(&error);
    }

    /// A broker refuses the newer protocol: the cluster was downgraded since the client connected. The next transaction uses
    /// the older one, until a broker reports otherwise.
    fn check_downgrade(&mut self, error: &Error) {
        let is_unsupported = matches!(
            error.kind(),
            ErrorKind::UnsupportedVersion | ErrorKind::Broker(ErrorCode::UNSUPPORTED_VERSION)
        );
        if is_unsupported && self.shared.is_implicit() {
            self.features.values_mut().for_each(|features| features.transaction_version = 1);
        }
    }

    /// The producer can't be used any more.
    fn fail_fatally(&mut self, now: Instant, error: Error) {
        if self.state == TransactionState::FatalError {
            return;
        }
        let fatal = TransactionError::Fatal(error.clone());
        self.error = Some(fatal.clone());
        (self.job, self.ending, self.clock) = (None, None, None);
        self.registering.clear();
        self.go(now, TransactionState::FatalError);
        self.finish(Err(fatal.clone()));
        self.fail_offsets(&fatal);
        self.needs.push_back(Need::StopProducer(error));
    }

    /// Handles an error that no repetition cures.
    fn give_up(&mut self, now: Instant, reaction: Reaction, error: Error) {
        match reaction {
            Reaction::Fenced => self.fail_fatally(now, fenced(error)),
            Reaction::Fatal => self.fail_fatally(now, error),
            Reaction::AbortAndRenew => {
                self.shared.note_doubt();
                self.fail(now, error);
            }
            _ => self.fail(now, error),
        }
    }

    // ---- requests

    fn send(&mut self, route: Route, request: RoutedRequest, owner: fn(u64) -> TransactionRequest) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        let owner = RequestOwner::Transaction(owner(number));
        self.needs.push_back(Need::Request { route, request, owner });
        number
    }

    fn coordinator(&self) -> Route {
        Route::Coordinator(CoordinatorKey::transaction(Arc::clone(&self.terms.id)))
    }

    /// Judges a request that got no response: whether it may be repeated, and that its outcome is unknown.
    fn judge_lost(&mut self, kind: RequestKind, error: &Error) -> Reaction {
        let reaction = match error.kind() {
            // The lookup of the coordinator was refused.
            ErrorKind::Broker(code) => match react(kind, code) {
                reaction @ (Reaction::Fatal | Reaction::Abort) => reaction,
                _ => Reaction::Retry,
            },
            ErrorKind::UnsupportedVersion => Reaction::Abort,
            _ => Reaction::Retry,
        };
        self.shared.note_refusal(error.clone());
        reaction
    }

    /// Notes that the outcome of a request of the transaction is unknown, if it may have been sent.
    fn note_unknown(&mut self, error: &Error) {
        if may_have_been_sent(error) {
            self.shared.note_doubt();
            self.registered = self.registered.max(Registered::Perhaps);
        }
    }

    /// Adopts a producer ID and epoch: senders use it for the following batches.
    fn adopt(&mut self, identity: ProducerIdentity) {
        self.identity = Some(identity);
        self.epoch_use = EpochUse::Fresh;
        self.producer.identity.set(identity);
        self.shared.end_doubt();
        self.wake_senders();
    }

    /// Returns true if the producer has this epoch already, or had it before: the coordinator must give a higher one, or another
    /// producer ID.
    fn is_outdated(&self, identity: ProducerIdentity) -> bool {
        self.identity.is_some_and(|known| known.id == identity.id && known.epoch >= identity.epoch)
    }

    fn wake_senders(&mut self) {
        self.shared.note_permission();
        self.needs.push_back(Need::Broadcast(Broadcast::Flush));
    }

    /// Handles what senders reported.
    fn take_news(&mut self, now: Instant) {
        let is_open = self.state.may_send();
        if is_open && self.shared.is_implicit() && self.shared.has_sent() {
            self.registered = Registered::Something;
            self.start_clock(now);
        }
        if is_open {
            self.registering.request(self.shared.take_requested());
        }
        match self.shared.take_failure() {
            Some(TransactionError::Fatal(error)) => self.fail_fatally(now, error),
            // EndTxn may have been sent, and only the response to it tells what has become of the transaction.
            Some(_) if self.state == TransactionState::Committing => {}
            Some(failure) => self.fail(now, failure.into()),
            None => {}
        }
    }
}

impl Part for Transactions {
    fn states(&self, see: &mut See<'_>) {
        see("transaction", 0, &self.state);
        see("epoch of a transaction", 0, &self.epoch_use);
        see("registration", 0, &self.registered);
        self.markers.states(see);
        if let Some(job) = &self.job {
            job.states(see);
        }
        if let Some(clock) = &self.clock {
            clock.states(see);
        }
    }

    fn handle_metadata(&mut self, _: Instant, _: &Metadata, _: &MetadataChanges) -> bool {
        false
    }

    fn handle_timeout(&mut self, now: Instant, _unreachable: Option<&Error>) {
        self.check_clock(now);
        self.expire_offsets(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let job = self.job.as_ref().and_then(CoordinatorJob::due_at);
        let has_failed = self.state == TransactionState::AbortableError;
        let clock = self.clock.as_ref().filter(|_| has_failed || self.state.may_send());
        let clock = clock.and_then(|clock| clock.poll_timeout(has_failed));
        let may_send = self.may_register();
        let registering = self.registering.due_at().filter(|_| may_send);
        let offsets = self.offsets_due_at(may_send);
        let markers = self.markers.due_at();
        earliest(earliest(job, clock), earliest(earliest(registering, offsets), markers))
    }

    fn advance(&mut self, now: Instant, _metadata: &Metadata) {
        self.take_news(now);
        self.continue_end(now);
        self.send_partitions(now);
        self.send_offsets(now);
        self.abort_early();
        self.decide_end(now);
        self.send_job(now);
        self.send_marker_check(now);
    }

    fn add_topics(&self, _topics: &mut Interest) {}

    fn add_statistics(&mut self, at: SnapshotTime, statistics: &mut Statistics) {
        let SnapshotTime { now, began, .. } = at;
        let age = now.saturating_since(self.changed_at.unwrap_or(began)).as_millis();
        let age = i64::try_from(age).unwrap_or(i64::MAX);
        let identity = self.producer.identity.get();
        statistics.eos = Some(EosStatistics {
            idemp_state: if identity.is_some() { "Assigned" } else { "WaitPID" },
            idemp_stateage: age,
            txn_state: self.state.name(),
            txn_stateage: age,
            txn_may_enq: self.state == TransactionState::InTransaction,
            producer_id: identity.map_or(-1, |identity| identity.id),
            producer_epoch: identity.map_or(-1, |identity| i64::from(identity.epoch)),
            epoch_cnt: self.producer.identity.renewals() as i64,
        });
    }

    fn close(&mut self) {
        (self.done, self.job, self.ending, self.clock) = (None, None, None, None);
        self.markers = MarkerCheck::default();
        self.offsets.clear();
        self.registering.clear();
    }
}

impl Needs for Transactions {
    type Message = Infallible;

    fn poll_need(&mut self) -> Option<Need> {
        self.needs.pop_front()
    }
}

/// An event of a transaction that takes long.
fn overdue(since: Duration, limit: Duration) -> Need {
    Need::Event(Event::TransactionOverdue(TransactionOverdue::new(since, limit)))
}
