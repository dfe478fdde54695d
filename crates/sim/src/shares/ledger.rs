//! The deliveries, verdicts and outcomes of each record.

use std::time::Duration;

use ottla_core::{error::ErrorKind, machine::Instant, share::shared::AcknowledgeOutcome};
use ottla_sorted::SortedMap;

use crate::checkers::Broken;

/// A record: partition and offset.
pub(super) type Place = (i32, i64);

/// The verdict of an application on a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Accept,
    Release,
    Reject,
}

/// The history of a record.
#[derive(Debug, Default)]
pub(super) struct Record {
    /// The highest delivery count so far.
    pub(super) count: i16,
    /// The member that has it, and when its lock ends.
    holder: Option<(usize, Instant)>,
    /// Some member decided so.
    pub(super) accept_asked: bool,
    pub(super) reject_asked: bool,
    /// When an acknowledgement that finishes the record was reported as success.
    finished_at: Option<Instant>,
}

/// A delivery of a record to a member.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery {
    pub(super) member: usize,
    pub(super) place: Place,
    pub(super) count: i16,
    pub(super) lock_until: Instant,
}

/// The acknowledgement of a delivery.
#[derive(Clone, Copy, Debug)]
struct Asked {
    verdict: Verdict,
    /// The number of the delivery among those of the member.
    number: u64,
}

/// All records.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) records: SortedMap<Place, Record>,
    /// Acknowledgements without an outcome, by member. A member may have several deliveries of a record, of which only
    /// the last is acquired.
    pending: SortedMap<(usize, Place), Vec<Asked>>,
    /// Records that are finished according to an outcome.
    pub(super) claims: Vec<Place>,
    pub(super) deliveries: u64,
    pub(super) failed: u64,
}

/// The time by which a member may get a record before another one notices that its lock has ended: locks count from the
/// response.
const LATENCY: Duration = Duration::from_millis(100);

impl Ledger {
    /// Notes a delivery. In a calm world nothing but the end of a lock ends a member's claim.
    pub(super) fn deliver(
        &mut self,
        now: Instant,
        delivery: Delivery,
        limit: i16,
        is_calm: bool,
    ) -> Result<(), Broken> {
        let Delivery { member, place, count, lock_until } = delivery;
        let at = format!("offset {} of [{}], delivery {count} to member {member}", place.1, place.0);
        self.deliveries += 1;
        let record = self.records.entry(place).or_default();
        // With faults, a member may get records that it has no more.
        if is_calm && record.finished_at.is_some_and(|at| at + LATENCY < now) {
            return Err(Broken::new("finished", format!("{at}: it was reported as finished")));
        }
        // A lock that is about to end may have ended at the broker, and another member may have the record's next delivery.
        let may_be_lost = lock_until <= now + LATENCY;
        let is_overtaken = may_be_lost && count < record.count;
        // Deliveries that end in the queue of a member are not seen here.
        if count < 1 || count > limit || is_calm && count <= record.count && !is_overtaken {
            return Err(Broken::new("counts", format!("{at} follows {} of at most {limit}", record.count)));
        }
        if is_overtaken {
            return Ok(());
        }
        if let Some((holder, until)) = record.holder
            && is_calm
            && holder != member
            && until > now + LATENCY
        {
            return Err(Broken::new("held", format!("{at}: member {holder} has it until {until:?}")));
        }
        record.count = record.count.max(count);
        record.holder = Some((member, lock_until));
        Ok(())
    }

    /// Notes the renewal of a lock.
    pub(super) fn renew(&mut self, member: usize, place: Place, lock_until: Instant) {
        if let Some(record) = self.records.get_mut(&place)
            && record.holder.is_some_and(|(holder, _)| holder == member)
        {
            record.holder = Some((member, lock_until));
        }
    }

    /// Notes the verdict on a delivery.
    pub(super) fn ask(&mut self, member: usize, place: Place, number: u64, verdict: Verdict) {
        self.pending.entry((member, place)).or_default().push(Asked { verdict, number });
        let record = self.records.entry(place).or_default();
        record.accept_asked |= verdict == Verdict::Accept;
        record.reject_asked |= verdict == Verdict::Reject;
        if verdict == Verdict::Release {
            // The next member may have it before this one gets the outcome.
            record.holder = None;
        }
    }

    /// Notes outcomes that a member got.
    pub(super) fn settle(
        &mut self,
        now: Instant,
        member: usize,
        outcome: &AcknowledgeOutcome,
    ) -> Result<(), Broken> {
        let partition = outcome.partition.partition;
        for offset in outcome.offsets.iter().flat_map(|(first, last)| *first..=*last) {
            let place = (partition, offset);
            let Some(asked) = self.take_asked(member, place, outcome.result.is_ok()) else {
                let what =
                    format!("member {member}: offset {offset} of [{partition}] has an outcome too many");
                return Err(Broken::new("reports", what));
            };
            let record = self.records.entry(place).or_default();
            match &outcome.result {
                Ok(()) if asked.verdict == Verdict::Release => {}
                Ok(()) => {
                    record.finished_at.get_or_insert(now);
                    self.claims.push(place);
                }
                Err(error) if error.kind() == ErrorKind::Bug => {
                    return Err(Broken::new("reports", format!("member {member}: {error}")));
                }
                Err(_) => self.failed += 1,
            }
            if record.holder.is_some_and(|(holder, _)| holder == member) {
                record.holder = None;
            }
        }
        Ok(())
    }

    /// Takes the acknowledgement of the outcome: only that of the last delivery can succeed.
    fn take_asked(&mut self, member: usize, place: Place, is_success: bool) -> Option<Asked> {
        let pending = self.pending.get_mut(&(member, place))?;
        let by_number = |index: &usize| pending[*index].number;
        let indexes = 0..pending.len();
        let index = if is_success { indexes.max_by_key(by_number) } else { indexes.min_by_key(by_number) };
        let asked = pending.remove(index?);
        if pending.is_empty() {
            self.pending.remove(&(member, place));
        }
        Some(asked)
    }

    /// Forgets a member whose process has died.
    pub(super) fn forget(&mut self, member: usize) {
        self.pending.retain(|(known, _), _| *known != member);
        for record in self.records.values_mut() {
            if record.holder.is_some_and(|(holder, _)| holder == member) {
                record.holder = None;
            }
        }
    }

    /// Returns an acknowledgement without an outcome.
    pub(super) fn unsettled(&self) -> Option<String> {
        let ((member, place), asked) = self.pending.first_key_value()?;
        Some(format!("member {member}: {asked:?} of offset {} of [{}] has no outcome", place.1, place.0))
    }
}
