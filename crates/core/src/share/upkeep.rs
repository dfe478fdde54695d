//! The upkeep of acquisition locks: records that the application has are renewed if it asked for that, held records are
//! released when their delay has passed, and the application learns of locks that end.
//!
//! ```text
//!   acquired          ⅔ of the lock          end of the lock
//!      ├──────────────────┼──────────────────────┤
//!                         │ renewal, or          │ LockExpired
//!                         │ LockExpiring         │
//! ```
//!
//! # Pitfalls
//!
//! - Records that the application has not taken are not renewed: a process that no longer polls must lose them
//!   (`queued_records_are_not_renewed`).
//! - A release with a delay has an outcome even if its session or lock is lost before its time
//!   (`delayed_release_fails_with_its_session`, `delayed_release_fails_with_its_renewal`), also if the application asks for it
//!   while its renewal is in flight (`delayed_release_fails_with_a_renewal_in_flight`).
//! - A renewal is not an acknowledgement: a held record is renewed until its delay ends, and released then
//!   (`held_record_is_renewed_until_its_delay_is_over`).

use std::sync::{Arc, Weak};

use super::{
    acknowledgement::AcknowledgedRange,
    acquired::AcquiredRecords,
    shared::{Reply, ShareEvent, ShareShared, Submission},
};
use crate::{
    error::Error,
    machine::{Instant, earliest},
};

/// The acquired records of one session whose locks matter.
#[derive(Debug, Default)]
pub(super) struct Upkeep {
    watched: Vec<Weak<AcquiredRecords>>,
    /// The number of entries at which those that are gone are removed.
    prune_at: usize,
    /// The next time at which something is to be done.
    next: Option<Instant>,
    /// The number of checks before their time that were made.
    attentions: u64,
}

/// The fewest entries at which those that are gone are removed.
const MIN_PRUNED: usize = 64;

impl Upkeep {
    /// Watches the locks of records that were acquired now.
    pub(super) fn watch(&mut self, records: &Arc<AcquiredRecords>) {
        if self.watched.len() >= self.prune_at.max(MIN_PRUNED) {
            self.watched.retain(|known| known.strong_count() > 0);
            self.prune_at = self.watched.len() * 2;
        }
        self.watched.push(Arc::downgrade(records));
        self.next = earliest(self.next, Some(records.check_at()));
    }

    /// Forgets all records, because their session has ended. The releases that wait for their time fail with this error.
    pub(super) fn end(&mut self, shared: &ShareShared, error: &Error) {
        for records in std::mem::take(self).watched.iter().filter_map(Weak::upgrade) {
            shared.fail_releases(&records, records.collect_all_delayed(), error);
        }
    }

    /// Returns the next time at which [`Upkeep::run`] has something to do.
    pub(super) const fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Returns true if the application has records without a verdict.
    pub(super) fn has_open(&self) -> bool {
        self.watched
            .iter()
            .filter_map(Weak::upgrade)
            .any(|records| records.is_handed_out() && records.has_open())
    }

    /// Does what is due. Returns the acknowledgements to send.
    pub(super) fn run(&mut self, now: Instant, shared: &ShareShared, can_renew: bool) -> Vec<Submission> {
        let mut due = Vec::new();
        let attentions = shared.attentions();
        if self.next.is_none_or(|next| next > now) && self.attentions == attentions {
            return due;
        }
        self.attentions = attentions;
        self.next = None;
        self.watched.retain(|known| {
            let Some(records) = known.upgrade() else { return false };
            let (at, ranges) = tend(&records, now, shared, can_renew);
            due.extend(
                ranges
                    .into_iter()
                    .filter(|(ranges, _)| !ranges.is_empty())
                    .map(|(ranges, reply)| Submission { records: Arc::clone(&records), ranges, reply }),
            );
            self.next = earliest(self.next, at);
            // Verdicts that were collected may not be sent yet.
            true
        });
        due
    }

    /// The session has acquired `newer` records: they end the locks on earlier deliveries of them.
    pub(super) fn supersede(&self, newer: &[Arc<AcquiredRecords>], pending: &[Submission]) {
        let watched = self.watched.iter().filter_map(Weak::upgrade);
        let pending = pending.iter().map(|submission| Arc::clone(&submission.records));
        for records in watched.chain(pending) {
            newer.iter().for_each(|newer| records.supersede(newer));
        }
    }
}

/// Returns when the records need attention again, `None` if they never do, and what is to be sent.
fn tend(
    records: &Arc<AcquiredRecords>,
    now: Instant,
    shared: &ShareShared,
    can_renew: bool,
) -> (Option<Instant>, [(Vec<AcknowledgedRange>, Reply); 2]) {
    let released = records.collect_delayed(now, can_renew);
    if !released.is_empty() {
        shared.note_submitted();
    }
    let renews = shared.settings.renews_locks && records.is_handed_out() && can_renew;
    let renewed = if can_renew { records.collect_renewals(now, renews) } else { Vec::new() };
    if records.is_handed_out() && !renews {
        records.lock_event(now).into_iter().for_each(|event| shared.report_event(event));
    }
    let next = if records.is_settled() { None } else { Some(records.next_check(now, renews)) };
    (next, [(released, Reply::Queue), (renewed, Reply::Unreported)])
}

/// The last event about the lock of records that the application has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Warned {
    No = 0,
    Expiring = 1,
    Expired = 2,
}

impl AcquiredRecords {
    /// Returns the event of the lock that is due, once.
    fn lock_event(&self, now: Instant) -> Option<ShareEvent> {
        let until = self.lock_until();
        let (warning, event): (Warned, fn(_) -> ShareEvent) = if until <= now {
            (Warned::Expired, ShareEvent::LockExpired)
        } else if self.check_at() <= now {
            (Warned::Expiring, ShareEvent::LockExpiring)
        } else {
            return None;
        };
        let open = self.open_until(until);
        (self.warn(warning) && !open.is_empty()).then(|| {
            event(super::shared::LockedRecords {
                partition: self.partition().clone(),
                offsets: open,
                remaining: until.saturating_since(now),
            })
        })
    }
}
