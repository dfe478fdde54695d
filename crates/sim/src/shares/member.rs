//! A member of the share group, with its application.

use std::{sync::Arc, time::Duration};

use ottla_core::{
    cluster::command::{Command, CommandQueue},
    completion::Waiting,
    machine::Instant,
    rng::Rng,
    share::{
        ShareCommand,
        acknowledgement::AcknowledgeType,
        acquired::AcquiredRecords,
        held::HeldRecords,
        shared::{ShareEvent, ShareShared},
    },
};
use ottla_sorted::SortedMap;

use super::ledger::{Delivery, Ledger, Place, Verdict};
use crate::checkers::Broken;

/// How an application behaves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manners {
    /// The next poll accepts the records of the last one.
    pub(super) is_implicit: bool,
    /// The mean times of processing a record and between polls.
    pub(super) processes: Duration,
    pub(super) rests: Duration,
    /// In this number of cases of a hundred a record is released, rejected, or released later.
    pub(super) releases: u64,
    pub(super) rejects: u64,
    pub(super) delays: u64,
}

impl Manners {
    /// Returns the manners of an application that accepts everything soon.
    pub(super) const fn prompt(self) -> Self {
        Self {
            processes: Duration::from_millis(2),
            rests: Duration::from_millis(20),
            releases: 0,
            rejects: 0,
            delays: 0,
            ..self
        }
    }
}

/// The state of a member.
#[derive(Debug)]
pub(super) enum State {
    Running,
    /// It leaves until this time.
    Leaving(Instant, Waiting<()>),
    Left,
    Dead,
}

/// A delivery of a record that the application has.
#[derive(Debug)]
struct InHand {
    records: Arc<AcquiredRecords>,
    due: Instant,
}

/// A member.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) index: usize,
    pub(super) client: usize,
    pub(super) shared: Arc<ShareShared>,
    held: HeldRecords,
    /// The deliveries that the application has, by number. An earlier one of a record stays until it is decided.
    hands: SortedMap<(Place, u64), InHand>,
    last_delivery: u64,
    pub(super) manners: Manners,
    /// Its polls must keep the limit: brokers older than version 2 of ShareFetch have no strict one.
    keeps_limits: bool,
    pub(super) state: State,
    next_poll: Instant,
    pub(super) frozen_until: Instant,
    /// Locks that have ended while the application had their records.
    pub(super) expired: u64,
}

impl Member {
    pub(super) fn new(
        index: usize,
        client: usize,
        shared: Arc<ShareShared>,
        manners: Manners,
        version: i16,
    ) -> Self {
        Self {
            index,
            client,
            keeps_limits: shared.settings.is_strict && version >= 2,
            shared,
            held: HeldRecords::default(),
            hands: SortedMap::new(),
            last_delivery: 0,
            manners,
            state: State::Running,
            next_poll: Instant::ZERO,
            frozen_until: Instant::ZERO,
            expired: 0,
        }
    }

    pub(super) const fn is_running(&self) -> bool {
        matches!(self.state, State::Running)
    }

    /// Returns true while the application has records.
    pub(super) fn is_busy(&self) -> bool {
        !self.hands.is_empty()
    }

    /// Takes outcomes and events.
    pub(super) fn take_news(&mut self, now: Instant, ledger: &mut Ledger) -> Result<(), Broken> {
        for outcome in self.shared.take_outcomes() {
            ledger.settle(now, self.index, &outcome)?;
        }
        while let Some(event) = self.shared.take_event() {
            if matches!(event, ShareEvent::LockExpired(_)) {
                self.expired += 1;
            }
        }
        match self.shared.fatal() {
            Some(error) => Err(Broken::new("fatal", format!("member {}: {error}", self.index))),
            None => Ok(()),
        }
    }

    /// The application acts: it decides on records that are processed, and polls.
    pub(super) fn act(
        &mut self,
        now: Instant,
        ledger: &mut Ledger,
        commands: &CommandQueue,
        rng: &mut Rng,
        (limit, is_calm): (i16, bool),
    ) -> Result<(), Broken> {
        self.take_news(now, ledger)?;
        if !self.manners.is_implicit {
            self.decide(now, ledger, rng);
        }
        for ((place, _), in_hand) in &self.hands {
            ledger.renew(self.index, *place, in_hand.records.lock_until_of(place.1));
        }
        if now < self.next_poll {
            return Ok(());
        }
        self.next_poll = now + rng.jitter(self.manners.rests, 90);
        if self.manners.is_implicit {
            for ((place, number), hand) in std::mem::take(&mut self.hands) {
                // A renewal that failed has ended the record.
                if hand.records.acknowledge(place.1, AcknowledgeType::Accept).is_ok() {
                    ledger.ask(self.index, place, number, Verdict::Accept);
                }
            }
            self.held.accept_open();
        }
        self.held.commit_with_poll(&self.shared);
        if self.shared.note_poll(now) {
            commands.push(Command::Share(ShareCommand::Polled));
        }
        self.take_records(now, ledger, rng, (limit, is_calm))
    }

    fn decide(&mut self, now: Instant, ledger: &mut Ledger, rng: &mut Rng) {
        let due = self.hands.extract(|_, hand| hand.due <= now);
        for ((place, number), hand) in due {
            let roll = rng.below(100);
            let Manners { releases, rejects, delays, .. } = self.manners;
            let (verdict, decided) = if roll < releases {
                (Verdict::Release, hand.records.acknowledge(place.1, AcknowledgeType::Release))
            } else if roll < releases + rejects {
                (Verdict::Reject, hand.records.acknowledge(place.1, AcknowledgeType::Reject))
            } else if roll < releases + rejects + delays {
                let at = now + Duration::from_millis(rng.below(3_000));
                (Verdict::Release, self.shared.release_at(&hand.records, place.1, at))
            } else {
                (Verdict::Accept, hand.records.acknowledge(place.1, AcknowledgeType::Accept))
            };
            // A renewal that failed has ended the record.
            if decided.is_ok() {
                ledger.ask(self.index, place, number, verdict);
            }
        }
    }

    fn take_records(
        &mut self,
        now: Instant,
        ledger: &mut Ledger,
        rng: &mut Rng,
        (limit, is_calm): (i16, bool),
    ) -> Result<(), Broken> {
        let enough = usize::try_from(self.shared.settings.max_poll_records).unwrap_or(1);
        let mut acquired = Vec::new();
        self.shared.take(now, enough, &mut acquired);
        self.held.add(&acquired);
        let count: usize = acquired.iter().map(|records| records.len()).sum();
        if self.keeps_limits && count > enough {
            let what = format!("member {}: a poll returned {count} of at most {enough} records", self.index);
            return Err(Broken::new("limit", what));
        }
        for records in acquired {
            let partition = records.partition().partition;
            let mut delivered = Vec::new();
            records.for_each(|message, count| delivered.push((message.offset(), count)));
            if delivered.len() != records.len() {
                let what = format!("member {}: {} of {} records", self.index, delivered.len(), records.len());
                return Err(Broken::new("ranges", what));
            }
            for (offset, count) in delivered {
                let place = (partition, offset);
                let lock_until = records.lock_until_of(offset);
                let delivery = Delivery { member: self.index, place, count, lock_until };
                ledger.deliver(now, delivery, limit, is_calm)?;
                let due = now + rng.jitter(self.manners.processes, 90);
                self.last_delivery += 1;
                let hand = InHand { records: Arc::clone(&records), due };
                self.hands.insert((place, self.last_delivery), hand);
            }
        }
        Ok(())
    }

    /// Begins to leave, with the verdicts so far.
    pub(super) fn leave(&mut self, now: Instant, timeout: Duration, commands: &CommandQueue) {
        self.hands.clear();
        self.held.release_delayed();
        self.held.commit(&self.shared);
        let (done, waiting) = ottla_core::completion::completion();
        commands.push(Command::Share(ShareCommand::Leave(timeout, done)));
        self.state = State::Leaving(now + timeout, waiting);
    }
}
