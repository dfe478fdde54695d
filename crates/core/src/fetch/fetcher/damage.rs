//! Handling of damaged and incomplete batches.

use super::{
    super::{decode::Damage, settings::ConsumerSettings},
    slots::Slot,
};
use crate::{
    config::DamagedBatchPolicy,
    error::{Error, ErrorKind},
    machine::Instant,
};

/// The number of times that a damaged batch is fetched before it is skipped: the network may have damaged the bytes.
const ATTEMPTS_AT_DAMAGED_BATCH: u32 = 3;

impl Slot {
    /// Goes back to a damaged record that the application reached, to read its whole batch and to report it.
    pub(super) fn restart_at_damage(&mut self) {
        if self.partition.restart() {
            (self.damaged, self.retry_at) = (0, None);
            self.partition.reported_end = None;
        }
    }

    /// Handles a response whose first batch is incomplete. A broker before 0.10.1 truncates a batch that exceeds the
    /// requested size. If the request had enough room for the batch, its header contains a wrong size. Nothing shows
    /// whether later records can be read, so the fetcher retries the batch after each back-off.
    pub(super) fn handle_cut_off(
        &mut self,
        now: Instant,
        size: usize,
        settings: &ConsumerSettings,
    ) -> Option<Error> {
        let asked = usize::try_from(self.max_bytes).unwrap_or(0);
        self.max_bytes = self.max_bytes.saturating_mul(2);
        if size > asked && size <= settings.max_batch_bytes {
            return None;
        }
        let wait = settings.fetch_error_backoff;
        self.retry_at = Some(now + wait);
        let is_reported = self.damaged == 0 || settings.damaged_batch == DamagedBatchPolicy::Stop;
        self.damaged = self.damaged.max(1);
        let offset = self.partition.offset;
        let detail = format!(
            "at offset {offset}: the batch claims {size} bytes and is not whole; seek behind it to go on, or raise \
             receive.message.max.bytes if it is that large"
        );
        is_reported.then(|| Error::new(ErrorKind::BadBatch, detail).with_next_attempt(wait))
    }

    /// Handles a damaged batch: the partition stays at it and fetches it again after each back-off, or skips it if
    /// `fetch.damaged.batch.policy` says so.
    pub(super) fn handle_damage(
        &mut self,
        now: Instant,
        damage: Damage,
        settings: &ConsumerSettings,
    ) -> Option<Error> {
        if settings.damaged_batch == DamagedBatchPolicy::Skip {
            return self.skip_damage(now, damage, settings);
        }
        let wait = settings.fetch_error_backoff;
        self.retry_at = Some(now + wait);
        let detail = format!(
            "at offset {}: {}; standing still at offset {}, seek behind the batch to go on, or set \
             fetch.damaged.batch.policy=skip",
            damage.offset, damage.reason, self.partition.offset
        );
        Some(Error::new(ErrorKind::BadBatch, detail).with_next_attempt(wait))
    }

    /// Fetches a damaged batch again after the back-off, and skips it if that does not help. If the end of the batch is
    /// unknown, the fetcher keeps requesting it with more room until a later batch shows where to continue.
    fn skip_damage(&mut self, now: Instant, damage: Damage, settings: &ConsumerSettings) -> Option<Error> {
        self.damaged = self.damaged.saturating_add(1);
        let Damage { offset, next_offset, reason } = damage;
        let factor = 1 << self.damaged.saturating_sub(ATTEMPTS_AT_DAMAGED_BATCH).min(4);
        let wait = settings.fetch_error_backoff.saturating_mul(factor);
        self.retry_at = Some(now + wait);
        let error = |detail| Error::new(ErrorKind::BadBatch, detail);
        match (self.damaged, next_offset.filter(|next| *next > self.partition.offset)) {
            (1, _) => Some(error(format!("at offset {offset}: {reason}")).with_next_attempt(wait)),
            (..ATTEMPTS_AT_DAMAGED_BATCH, _) => None,
            (_, Some(next_offset)) => {
                self.damaged = 0;
                self.retry_at = None;
                self.max_bytes = settings.partition_fetch_max_bytes;
                self.partition.offset = next_offset;
                Some(error(format!(
                    "at offset {offset}: {reason}; fetched {ATTEMPTS_AT_DAMAGED_BATCH} times, offsets {offset} to {} \
                     are left out, going on at offset {next_offset}",
                    next_offset - 1
                )))
            }
            (attempts, None) => {
                let most = settings.fetch_max_bytes.max(settings.partition_fetch_max_bytes);
                self.max_bytes = self.max_bytes.saturating_mul(2).min(most);
                (attempts == ATTEMPTS_AT_DAMAGED_BATCH).then(|| {
                    let detail = format!(
                        "at offset {offset}: {reason}; its end is not known yet: standing still at offset {}, \
                         seek behind it to go on",
                        self.partition.offset
                    );
                    error(detail).with_next_attempt(wait)
                })
            }
        }
    }
}
