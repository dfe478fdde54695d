//! Messages that are processed out of order, and the offsets up to which all of them are finished.
//!
//! ```text
//!  delivered      5   6   7   8   9
//!  finished       x       x   x          stored: 6, because 6 is still being processed
//!  finished       x   x   x   x          stored: 9
//! ```
//!
//! Each assignment of a partition has its own row. An offset is stored at the partition's handle as soon as all messages
//! before it are finished, and committed like every stored offset: at the interval, when the partition is given up, and when
//! the consumer closes. The number of messages in all rows is limited, because one message that is never finished would
//! otherwise keep all later ones in memory.
//!
//! # Pitfalls
//!
//! - Messages must enter a row in the order of their delivery: finishing a later message would otherwise commit past
//!   an earlier one that has not entered yet (`stored_offset_never_passes_an_unfinished_message`).
//! - After a seek or a new assignment, messages that were delivered before must not move the stored offset
//!   (`message_of_an_earlier_assignment_stores_nothing`).
//! - A message that fails must not take its partition past earlier ones that are still being processed: the partition goes
//!   back to the first of these (`failed_message_comes_again_and_none_before_it_is_lost`).

use std::{collections::VecDeque, mem, sync::Arc, task::Waker};

use ottla_protocol::vocabulary::{LeaderEpoch, TopicPartition};
use ottla_sorted::SortedMap;

use super::{
    FetchCommand,
    assignment::AssignmentVersion,
    deliver::Message,
    partition::{PartitionHandle, StoredOffset},
    shared::ConsumerShared,
};
use crate::{
    sync::Mutex,
    waiters::{WaitPlace, Waiter, Waiters},
};

/// The messages that are being processed.
#[derive(Debug)]
pub struct Completions {
    shared: Arc<ConsumerShared>,
    limit: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    rows: SortedMap<TopicPartition, Row>,
    /// The number of messages in all rows.
    count: usize,
    last_row: u64,
    wakers: Waiters,
}

/// The messages of one assignment of a partition.
#[derive(Debug)]
struct Row {
    number: u64,
    handle: Arc<PartitionHandle>,
    version: AssignmentVersion,
    messages: InOrder,
}

/// Identifies a message that is being processed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletionId {
    key: TopicPartition,
    row: u64,
    message: u64,
}

impl Completions {
    /// Creates the state without messages; at most `limit` messages, and at least one, are processed at the same time.
    pub fn new(shared: Arc<ConsumerShared>, limit: usize) -> Self {
        Self { shared, limit: limit.max(1), state: Mutex::default() }
    }

    /// Returns true if another message may begin. Otherwise the waker is called when that changes.
    pub fn has_room(self: &Arc<Self>, waiter: &mut Waiter<Self>, waker: &Waker) -> bool {
        let number = waiter.number_at(self);
        let mut state = self.state.lock();
        if state.count >= self.limit {
            // Partitions that were given up never finish.
            let State { rows, count, .. } = &mut *state;
            rows.retain(|_, row| {
                let is_current = row.handle.version().is_same_assignment(row.version);
                *count -= if is_current { 0 } else { row.messages.len() };
                is_current
            });
        }
        let has_room = state.count < self.limit;
        let old = if has_room { None } else { state.wakers.register(number, waker) };
        drop(state);
        drop(old);
        has_room
    }

    /// Adds the next message of its partition, in the order of delivery.
    pub fn begin(&self, message: &Message) -> CompletionId {
        let (handle, version) = message.assignment();
        let key = handle.key().clone();
        let mut state = self.state.lock();
        let State { rows, count, last_row, .. } = &mut *state;
        let is_same = |row: &Row| Arc::ptr_eq(&row.handle, handle) && row.version.is_same_assignment(version);
        if !rows.get(&key).is_some_and(is_same) {
            *last_row += 1;
            let messages = InOrder::default();
            let row = Row { number: *last_row, handle: Arc::clone(handle), version, messages };
            *count -= rows.insert(key.clone(), row).map_or(0, |old| old.messages.len());
        }
        let next = StoredOffset {
            offset: message.offset() + 1,
            leader_epoch: LeaderEpoch::from_wire(message.leader_epoch()),
            metadata: String::new(),
        };
        let (row, message) = match rows.get_mut(&key) {
            Some(row) => (row.number, row.messages.begin(next)),
            None => (0, 0),
        };
        *count += 1;
        CompletionId { key, row, message }
    }

    /// A message is finished. Stores the offset up to which all messages of its partition are.
    pub fn finish(&self, id: &CompletionId) {
        let wakers = {
            let mut state = self.state.lock();
            let State { rows, count, wakers, .. } = &mut *state;
            let Some(row) = rows.get_mut(&id.key).filter(|row| row.number == id.row) else { return };
            let before = row.messages.len();
            let finished = row.messages.finish(id.message);
            *count -= before - row.messages.len();
            // Under the lock, so that offsets are stored in ascending order.
            if let Some(stored) = finished {
                self.shared.store_finished(&row.handle, row.version, stored);
            }
            if *count < self.limit { mem::take(wakers) } else { Waiters::default() }
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Returns true if the message is still the consumer's: its partition was neither given up nor moved since.
    pub fn is_current(&self, id: &CompletionId) -> bool {
        let state = self.state.lock();
        let row = state.rows.get(&id.key).filter(|row| row.number == id.row);
        row.is_some_and(|row| row.handle.version().is_same_assignment(row.version))
    }

    /// Returns the offset that finishing this message would let be committed; `None` if an earlier one is not finished.
    pub fn offset_after(&self, id: &CompletionId) -> Option<StoredOffset> {
        let state = self.state.lock();
        let row = state.rows.get(&id.key).filter(|row| row.number == id.row)?;
        row.messages.offset_after(id.message)
    }

    /// A message failed: its partition goes back to the first message that is not finished. Returns the command for that,
    /// unless the partition was given up or moved since.
    pub fn give_back(&self, id: &CompletionId) -> Option<FetchCommand> {
        let (command, wakers) = {
            let mut state = self.state.lock();
            let State { rows, count, wakers, .. } = &mut *state;
            if rows.get(&id.key).is_none_or(|row| row.number != id.row) {
                return None;
            }
            let row = rows.remove(&id.key)?;
            *count -= row.messages.len();
            // Under the lock: a message that is delivered again enters its row after this one is gone.
            let command = row
                .messages
                .first_offset()
                .and_then(|offset| self.shared.seek_back(&row.handle, row.version, offset));
            (command, mem::take(wakers))
        };
        wakers.into_iter().for_each(Waker::wake);
        command
    }

    /// Returns the number of messages that are not finished, or wait for earlier ones.
    pub fn len(&self) -> usize {
        self.state.lock().count
    }

    /// Returns true if all messages are finished.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl WaitPlace for Completions {
    fn with_waiters<R>(&self, act: impl FnOnce(&mut Waiters) -> R) -> R {
        act(&mut self.state.lock().wakers)
    }
}

/// Messages in the order of delivery, beginning with the first one that is not finished.
#[derive(Debug, Default)]
struct InOrder {
    /// The number of the first message in `messages`.
    first: u64,
    messages: VecDeque<Entry>,
}

#[derive(Debug)]
struct Entry {
    /// The offset to store after the message.
    next: StoredOffset,
    is_finished: bool,
}

impl InOrder {
    fn len(&self) -> usize {
        self.messages.len()
    }

    /// Returns the offset of the first message that is not finished.
    fn first_offset(&self) -> Option<i64> {
        self.messages.front().map(|entry| entry.next.offset - 1)
    }

    /// Adds the next message. Returns its number.
    fn begin(&mut self, next: StoredOffset) -> u64 {
        self.messages.push_back(Entry { next, is_finished: false });
        self.first + self.messages.len() as u64 - 1
    }

    /// Returns the offset to which finishing a message would advance.
    fn offset_after(&self, number: u64) -> Option<StoredOffset> {
        if number != self.first {
            return None;
        }
        let finished = self.messages.iter().skip(1).take_while(|entry| entry.is_finished);
        finished.last().or(self.messages.front()).map(|entry| entry.next.clone())
    }

    /// Finishes a message. Returns the offset after the last message before the first unfinished one, if it advanced.
    fn finish(&mut self, number: u64) -> Option<StoredOffset> {
        let place = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.messages.get_mut(place)?.is_finished = true;
        let mut last = None;
        while let Some(entry) = self.messages.pop_front_if(|entry| entry.is_finished) {
            self.first += 1;
            last = Some(entry.next);
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn next(offset: i64) -> StoredOffset {
        StoredOffset { offset, leader_epoch: None, metadata: String::new() }
    }

    #[test]
    fn offset_is_stored_once_everything_before_it_is_finished() {
        let mut row = InOrder::default();
        let numbers: Vec<u64> = [6, 7, 9].map(|offset| row.begin(next(offset))).to_vec();
        assert_eq!(row.finish(numbers[1]), None);
        assert_eq!((row.offset_after(numbers[0]), row.offset_after(numbers[2])), (Some(next(7)), None));
        assert_eq!(row.finish(numbers[0]), Some(next(7)));
        assert_eq!(row.finish(numbers[0]), None, "it is finished already");
        assert_eq!((row.finish(numbers[2]), row.len()), (Some(next(9)), 0));
        assert_eq!(row.finish(77), None, "there is no such message");
    }

    /// Messages begin in order and finish in any order, with gaps between the offsets.
    #[test]
    fn stored_offset_never_passes_an_unfinished_message() {
        for seed in 0..2000 {
            let mut rng = Rng::from_seed(seed);
            let mut row = InOrder::default();
            let (mut open, mut offset, mut stored): (Vec<(u64, i64)>, i64, i64) = (Vec::new(), 0, 0);
            let mut longest = 0;
            for step in 0..200 {
                if step < 150 && rng.chance(1, 2) {
                    offset += 1 + rng.below(3) as i64;
                    open.push((row.begin(next(offset + 1)), offset));
                } else if !open.is_empty() {
                    let (number, _) = open.swap_remove(rng.below(open.len() as u64) as usize);
                    if let Some(advanced) = row.finish(number) {
                        assert!(advanced.offset > stored, "seed {seed}: it goes back");
                        stored = advanced.offset;
                    }
                }
                let oldest = open.iter().map(|(_, offset)| *offset).min();
                // Exactly up to the oldest unfinished message: not past it, and not less than possible.
                let expected = oldest.unwrap_or(offset + 1);
                assert!(stored <= expected, "seed {seed}: {stored} is past {expected}");
                assert_eq!(row.messages.front().map(|entry| entry.next.offset - 1), oldest, "seed {seed}");
                longest = longest.max(row.len());
            }
            while let Some((number, _)) = open.pop() {
                stored = row.finish(number).map_or(stored, |advanced| advanced.offset);
            }
            assert!(row.len() == 0 && (stored == offset + 1 || offset == 0), "seed {seed}");
            assert!(longest <= 150);
        }
    }
}
