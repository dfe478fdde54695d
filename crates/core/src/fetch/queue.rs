//! The queue to the application. Fetchers push fetched records, and the application's threads take them. The lock is
//! taken once per fetch, never once per record.

use std::{collections::VecDeque, fmt, sync::Arc, task::Waker};

use super::{
    assignment::AssignmentVersion,
    deliver::{ConsumerEvent, FetchedRecords, RecordBatch, Records},
    memory::Ceiling,
    partition::{PartitionHandle, PrefetchLimits},
};
use crate::{
    config::DamagedBatchPolicy,
    error::{Error, ErrorKind},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    waiters::{WaitPlace, Waiter, Waiters},
    wake::WakeHandle,
};

/// The records and events that wait for the application.
#[derive(Debug)]
pub struct FetchQueue {
    pub(super) state: Mutex<State>,
    limits: PrefetchLimits,
    damaged_batch: DamagedBatchPolicy,
    /// The size of the queued records of all partitions, in bytes, which the client's budget limits.
    /// With a ceiling also what the Fetches in flight may return.
    pub(super) queued_bytes: AtomicUsize,
    /// The ceiling of the client's memory, if there is one.
    pub(super) ceiling: Option<Ceiling>,
    /// True if some fetcher waits for the budget.
    pub(super) starved: AtomicBool,
    starving: Mutex<Vec<WakeHandle>>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) items: VecDeque<Item>,
    /// The items of paused partitions, in order.
    pub(super) aside: VecDeque<Item>,
    wakers: Waiters,
    closed: bool,
}

/// A queued item for the application.
#[derive(Debug)]
pub(crate) enum Item {
    /// Records of one partition.
    Records(FetchedRecords),
    /// An event about a partition, in order with its records.
    Note { handle: Arc<PartitionHandle>, version: AssignmentVersion, event: ConsumerEvent },
    /// An event that belongs to no partition.
    Event(ConsumerEvent),
}

/// The fetchers to wake after records left the queue.
#[derive(Default)]
pub(super) struct Wakes(Vec<Arc<PartitionHandle>>);

impl FetchQueue {
    /// Creates an empty queue with these limits: messages per partition, and bytes for all partitions together.
    pub fn new(
        mut limits: PrefetchLimits,
        damaged_batch: DamagedBatchPolicy,
        max_memory: Option<usize>,
    ) -> Self {
        limits.bytes = limits.bytes.min(max_memory.unwrap_or(usize::MAX));
        Self {
            state: Mutex::new(State {
                items: VecDeque::new(),
                aside: VecDeque::new(),
                wakers: Waiters::default(),
                closed: false,
            }),
            limits,
            damaged_batch,
            ceiling: max_memory.map(|_| Ceiling::new(limits.bytes)),
            queued_bytes: AtomicUsize::new(0),
            starved: AtomicBool::new(false),
            starving: Mutex::new(Vec::new()),
        }
    }

    /// Returns the size of the queued records, in bytes.
    pub fn queued_bytes(&self) -> usize {
        let reserved = self.ceiling.as_ref().map_or(0, Ceiling::reserved);
        self.queued_bytes.load(Ordering::SeqCst).saturating_sub(reserved)
    }

    /// The limits.
    pub const fn limits(&self) -> &PrefetchLimits {
        &self.limits
    }

    /// Appends items, and wakes the threads that wait for them.
    pub(crate) fn push(&self, items: impl IntoIterator<Item = Item>) {
        self.push_reserved(items, 0);
    }

    /// Appends the items of a response whose memory was reserved. Returns true if other fetchers were woken that wait for room.
    pub(super) fn push_reserved(&self, items: impl IntoIterator<Item = Item>, reserved: usize) -> bool {
        let wakers = {
            let mut state = self.state.lock();
            let mut bytes = 0;
            for item in items {
                if let Item::Records(records) = &item {
                    records.handle.charge(records.messages, records.bytes);
                    records.handle.count_received(records.messages, records.bytes);
                    bytes += records.bytes;
                }
                state.items.push_back(item);
            }
            // In one step: nobody may ask for the difference meanwhile.
            self.queued_bytes.fetch_add(bytes.wrapping_sub(reserved), Ordering::SeqCst);
            std::mem::take(&mut state.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
        reserved > 0 && self.wake(Wakes::default())
    }

    /// Moves available items to `into`, until it holds at least `enough` bytes. Stale items are dropped; items of
    /// paused partitions are set aside.
    pub fn take(self: &Arc<Self>, enough: usize, into: &mut Records) {
        self.take_with(enough, into, |records| {
            records.handle.set_position(records.next_offset, records.last_epoch());
        });
    }

    /// Like [`FetchQueue::take`], for callers that hand out single records and advance the position with each.
    pub fn take_without_position(self: &Arc<Self>, enough: usize, into: &mut Records) {
        self.take_with(enough, into, |_| ());
    }

    fn take_with(self: &Arc<Self>, enough: usize, into: &mut Records, taken: impl Fn(&FetchedRecords)) {
        let mut wakes = Wakes::default();
        let has_aside = {
            let mut state = self.state.lock();
            let state = &mut *state;
            while into.bytes() < enough
                && let Some(item) = state.items.pop_front()
            {
                match item {
                    item if item.is_stale() => self.drop_item(item, &mut wakes),
                    item if item.is_paused() => state.aside.push_back(item),
                    Item::Records(records) => {
                        self.release(&records, &mut wakes);
                        taken(&records);
                        into.push(self, records);
                    }
                    Item::Note { handle, version, event } => into.push_note(handle, version, event),
                    Item::Event(event) => into.push_event(event),
                }
            }
            !state.aside.is_empty()
        };
        self.after_taking(wakes, has_aside);
    }

    /// Like [`FetchQueue::take_without_position`], but takes only the items of one route. Items that belong to no
    /// partition have route 0. Items of other routes stay in the queue.
    pub fn take_route(self: &Arc<Self>, route: u64, enough: usize, into: &mut Records) {
        let mut wakes = Wakes::default();
        let has_aside = {
            let mut state = self.state.lock();
            let state = &mut *state;
            let mut place = 0;
            while into.bytes() < enough
                && let Some(item) = state.items.get(place)
            {
                if item.route() != route {
                    place += 1;
                    continue;
                }
                match state.items.remove(place) {
                    None => break,
                    Some(item) if item.is_stale() => self.drop_item(item, &mut wakes),
                    Some(item) if item.is_paused() => state.aside.push_back(item),
                    Some(Item::Records(records)) => {
                        self.release(&records, &mut wakes);
                        into.push(self, records);
                    }
                    Some(Item::Note { event, .. } | Item::Event(event)) => into.push_event(event),
                }
            }
            !state.aside.is_empty()
        };
        self.after_taking(wakes, has_aside);
    }

    fn after_taking(&self, wakes: Wakes, has_aside: bool) {
        self.wake(wakes);
        if has_aside {
            self.evict_if_starved();
        }
    }

    /// Like [`FetchQueue::register`], for a consumer of this route.
    pub fn register_route(self: &Arc<Self>, route: u64, waiter: &mut Waiter<Self>, waker: &Waker) -> bool {
        self.register_unless(waiter, waker, |state| {
            state.closed || state.items.iter().any(|item| item.route() == route)
        })
    }

    /// Registers a waker for the end of an assignment and for [`FetchQueue::close`]; further wake-ups mean nothing. Returns
    /// false if the queue is closed.
    pub fn register_end(self: &Arc<Self>, waiter: &mut Waiter<Self>, waker: &Waker) -> bool {
        self.register_unless(waiter, waker, |state| state.closed)
    }

    /// Registers a waker, unless there is no reason to wait.
    fn register_unless(
        self: &Arc<Self>,
        waiter: &mut Waiter<Self>,
        waker: &Waker,
        is_over: impl FnOnce(&State) -> bool,
    ) -> bool {
        let number = waiter.number_at(self);
        let old = {
            let mut state = self.state.lock();
            if is_over(&state) {
                return false;
            }
            state.wakers.register(number, waker)
        };
        drop(old);
        true
    }

    /// Delivers the partition only on this route from now on.
    pub(crate) fn set_route(&self, handle: &PartitionHandle, route: u64) {
        let wakers = {
            let mut state = self.state.lock();
            handle.set_route(route);
            std::mem::take(&mut state.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Sets aside records that were taken but not consumed before their partition was paused. They come before those of
    /// the partition that were fetched later.
    pub fn set_aside(&self, records: FetchedRecords) {
        self.set_all_aside([records]);
    }

    /// Like [`FetchQueue::set_aside`], for records that were taken in this order.
    pub(crate) fn set_all_aside(
        &self,
        taken: impl IntoIterator<Item = FetchedRecords, IntoIter: DoubleEndedIterator>,
    ) {
        let mut state = self.state.lock();
        for records in taken.into_iter().rev() {
            records.handle.charge(records.messages, records.bytes);
            self.queued_bytes.fetch_add(records.bytes, Ordering::SeqCst);
            if records.handle.is_paused() {
                state.aside.push_front(Item::Records(records));
            } else {
                state.items.push_front(Item::Records(records));
            }
        }
    }

    /// Handles a record that can't be read, which the application reached at this place of a batch. Unless the batch's rest
    /// may be left out, the partition goes back to it: everything behind it is stale, and its fetcher reports the damage.
    #[cold]
    pub(crate) fn handle_bad_record(&self, fetched: &FetchedRecords, batch: &RecordBatch) {
        let (handle, version) = (&fetched.handle, fetched.version);
        let (offset, header) = (batch.readable_end(), batch.header());
        let is_lost = offset <= header.last_offset();
        if is_lost && self.damaged_batch == DamagedBatchPolicy::Stop {
            return self.stop_at(handle, version, offset);
        }
        let place = header.base_offset;
        let detail = if is_lost {
            format!("a record of the batch at offset {place} can't be read; the rest of it is left out")
        } else {
            format!("bytes follow the last record of the batch at offset {place}")
        };
        let error =
            Error::new(ErrorKind::BadBatch, detail).with_partition(&**handle.topic(), handle.partition());
        self.push([Item::Note { handle: Arc::clone(handle), version, event: ConsumerEvent::Error(error) }]);
    }

    /// Stops a partition at a record that can't be read, unless its version has changed meanwhile.
    pub(super) fn stop_at(&self, handle: &PartitionHandle, version: AssignmentVersion, offset: i64) {
        let change = |handle: &PartitionHandle| handle.stop_at(offset);
        if self.change_version(handle, |current| current == version, change).is_some() {
            handle.wake_fetcher();
        }
    }

    /// Replaces a partition's version, so that everything fetched so far is stale. Returns the new version.
    pub(crate) fn outdate(&self, handle: &PartitionHandle, position: Option<i64>) -> AssignmentVersion {
        self.outdate_if(handle, position, |_| true)
            .map_or_else(AssignmentVersion::default, |(version, _)| version)
    }

    /// Like [`FetchQueue::outdate`], unless the application began another assignment meanwhile. Also returns the
    /// offset up to which records were handed out.
    pub(crate) fn outdate_version(
        &self,
        handle: &PartitionHandle,
        version: AssignmentVersion,
    ) -> Option<(AssignmentVersion, Option<i64>)> {
        self.outdate_if(handle, None, |current| current.is_same_assignment(version))
    }

    /// Like [`FetchQueue::outdate`], unless another assignment began meanwhile.
    pub(crate) fn outdate_to(
        &self,
        handle: &PartitionHandle,
        version: AssignmentVersion,
        position: Option<i64>,
    ) -> Option<AssignmentVersion> {
        self.outdate_if(handle, position, |current| current.is_same_assignment(version))
            .map(|(version, _)| version)
    }

    /// Replaces this assignment of a partition, whose records from `position` on were handed out and have to come again.
    /// What was handed out before them still counts as consumed. `None` if the application began another one meanwhile.
    pub(crate) fn rewind(
        &self,
        handle: &PartitionHandle,
        version: AssignmentVersion,
        position: i64,
    ) -> Option<AssignmentVersion> {
        let start = handle.start().filter(|start| *start < position);
        let is_current = |current: AssignmentVersion| current.is_same_assignment(version);
        let (new, _) = self.outdate_if(handle, Some(position), is_current)?;
        let _state = self.state.lock();
        if let Some(start) = start.filter(|_| handle.version() == new) {
            handle.keep_start(start);
        }
        Some(new)
    }

    fn outdate_if(
        &self,
        handle: &PartitionHandle,
        position: Option<i64>,
        requested: impl Fn(AssignmentVersion) -> bool,
    ) -> Option<(AssignmentVersion, Option<i64>)> {
        self.change_version(handle, requested, |handle| {
            let handed_out = handle.position();
            (handle.bump_version(position), handed_out)
        })
    }

    /// Changes a partition's version, and drops what is stale then. `None` if its version is not the requested one.
    fn change_version<T>(
        &self,
        handle: &PartitionHandle,
        requested: impl Fn(AssignmentVersion) -> bool,
        change: impl FnOnce(&PartitionHandle) -> T,
    ) -> Option<T> {
        let mut wakes = Wakes::default();
        let changed = {
            let mut state = self.state.lock();
            if !requested(handle.version()) {
                return None;
            }
            let changed = change(handle);
            let state = &mut *state;
            for items in [&mut state.items, &mut state.aside] {
                for item in std::mem::take(items) {
                    if item.is_stale() {
                        self.drop_item(item, &mut wakes);
                    } else {
                        items.push_back(item);
                    }
                }
            }
            changed
        };
        self.wake(wakes);
        Some(changed)
    }

    /// Sets the start position of a partition, unless the application meanwhile chose another one.
    pub(crate) fn set_position(&self, handle: &PartitionHandle, version: AssignmentVersion, position: i64) {
        let _state = self.state.lock();
        if handle.version() == version {
            handle.start_at(position);
        }
    }

    /// Pauses these partitions: none of their records is handed out from now on.
    pub(crate) fn pause(&self, handles: &[Arc<PartitionHandle>]) {
        self.stop_handing_out(handles, |handle| handle.set_paused(true));
    }

    /// Holds these partitions during a rebalance: none of their records is handed out from now on.
    pub(crate) fn hold(&self, handles: &[Arc<PartitionHandle>]) {
        self.stop_handing_out(handles, |handle| handle.set_held(true));
    }

    fn stop_handing_out(&self, handles: &[Arc<PartitionHandle>], pause: impl Fn(&PartitionHandle)) {
        {
            let _state = self.state.lock();
            handles.iter().for_each(|handle| pause(handle));
        }
        // A fetcher that waits for room in one of them need not wait any longer.
        handles.iter().for_each(|handle| handle.wake_fetcher());
    }

    /// Resumes these partitions. Batches that were set aside are delivered first. The end of a partition is reported again, as
    /// in librdkafka, unless it is among what was set aside.
    pub(crate) fn resume(&self, handles: &[Arc<PartitionHandle>]) {
        self.hand_out_again(handles, |state, handle| {
            if !handle.is_paused_by_application() {
                return;
            }
            handle.set_paused(false);
            if !state.aside.iter().chain(&state.items).any(|item| item.is_end_of(handle)) {
                handle.note_resumed();
            }
        });
    }

    /// Releases partitions that were held during a rebalance. Those that the application paused stay paused.
    pub(crate) fn release_held(&self, handles: &[Arc<PartitionHandle>]) {
        self.hand_out_again(handles, |_, handle| handle.set_held(false));
    }

    fn hand_out_again(&self, handles: &[Arc<PartitionHandle>], resume: impl Fn(&State, &PartitionHandle)) {
        let wakers = {
            let mut state = self.state.lock();
            handles.iter().for_each(|handle| resume(&state, handle));
            let (back, aside): (VecDeque<_>, VecDeque<_>) =
                std::mem::take(&mut state.aside).into_iter().partition(|item| !item.is_paused());
            state.aside = aside;
            for item in back.into_iter().rev() {
                state.items.push_front(item);
            }
            if state.items.is_empty() { Waiters::default() } else { std::mem::take(&mut state.wakers) }
        };
        wakers.into_iter().for_each(Waker::wake);
        handles.iter().for_each(|handle| handle.wake_fetcher());
    }

    /// Registers a waker for the next item. Returns false if an item is available already, or if the queue is closed.
    pub fn register(self: &Arc<Self>, waiter: &mut Waiter<Self>, waker: &Waker) -> bool {
        self.register_unless(waiter, waker, |state| {
            let has_items = !state.items.is_empty();
            has_items || state.closed
        })
    }

    /// Wakes all threads that wait for items: an assignment ended.
    pub(crate) fn wake_consumers(&self) {
        let wakers = std::mem::take(&mut self.state.lock().wakers);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Closes the queue, and wakes all waiting threads.
    pub fn close(&self) {
        let wakers = {
            let mut state = self.state.lock();
            state.closed = true;
            std::mem::take(&mut state.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Returns true if the queue is closed.
    pub fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    /// Returns the number of bytes that may still be prefetched. At 0, `fetcher` is woken when half of the budget is
    /// consumed.
    pub(crate) fn room(&self, fetcher: &WakeHandle) -> usize {
        let room = |queued: usize| self.limits.bytes.saturating_sub(queued);
        if self.queued_bytes.load(Ordering::SeqCst) < self.limits.bytes {
            return room(self.queued_bytes.load(Ordering::SeqCst));
        }
        self.wait_for_room(fetcher);
        // The application may have consumed all records between the lines above. Adding 0, unlike loading, is ordered
        // before the next removal of records, which then sees that a fetcher waits.
        let queued = self.queued_bytes.fetch_add(0, Ordering::SeqCst);
        if queued > self.limits.bytes / 2 && !self.evict_paused() {
            return 0;
        }
        room(self.queued_bytes.load(Ordering::SeqCst))
    }

    /// Wakes a fetcher once there is room again.
    pub(super) fn wait_for_room(&self, fetcher: &WakeHandle) {
        self.starving.lock().push(fetcher.clone());
        self.starved.store(true, Ordering::SeqCst);
    }

    /// Returns true if so little is queued that fetchers without room ask again.
    fn has_room_again(&self) -> bool {
        let used = self.queued_bytes.load(Ordering::SeqCst);
        match &self.ceiling {
            None => used <= self.limits.bytes / 2,
            Some(ceiling) => ceiling.has_room_again(used),
        }
    }

    pub(super) fn drop_item(&self, item: Item, wakes: &mut Wakes) {
        if let Item::Records(records) = &item {
            records.handle.count_dropped(records.messages);
            self.release(records, wakes);
        }
    }

    fn release(&self, records: &FetchedRecords, wakes: &mut Wakes) {
        self.queued_bytes.fetch_sub(records.bytes, Ordering::SeqCst);
        if records.handle.release(records.messages, records.bytes, &self.limits) {
            wakes.0.push(Arc::clone(&records.handle));
        }
    }

    /// Wakes the fetchers of partitions, and those that wait for room if there is room again. Returns true if there were any.
    pub(super) fn wake(&self, wakes: Wakes) -> bool {
        wakes.0.iter().for_each(|handle| handle.wake_fetcher());
        if self.starved.load(Ordering::SeqCst)
            && self.has_room_again()
            && self.starved.swap(false, Ordering::SeqCst)
        {
            let starving = std::mem::take(&mut *self.starving.lock());
            starving.iter().for_each(WakeHandle::wake);
            return true;
        }
        false
    }
}

impl WaitPlace for FetchQueue {
    fn with_waiters<R>(&self, act: impl FnOnce(&mut Waiters) -> R) -> R {
        act(&mut self.state.lock().wakers)
    }
}

impl Item {
    /// Returns true if the partition was meanwhile unassigned or started from another position.
    pub(super) fn is_stale(&self) -> bool {
        match self {
            Self::Records(records) => records.handle.version() != records.version,
            Self::Note { handle, version, .. } => handle.version() != *version,
            Self::Event(_) => false,
        }
    }

    fn route(&self) -> u64 {
        match self {
            Self::Records(records) => records.handle.route(),
            Self::Note { handle, .. } => handle.route(),
            Self::Event(_) => 0,
        }
    }

    /// Returns true if it is the end of this partition in its present assignment.
    fn is_end_of(&self, of: &PartitionHandle) -> bool {
        let Self::Note { handle, version, event: ConsumerEvent::EndOfPartition { .. } } = self else {
            return false;
        };
        std::ptr::eq(&**handle, of) && *version == of.version()
    }

    pub(super) fn is_paused(&self) -> bool {
        match self {
            Self::Records(records) => records.handle.is_paused(),
            Self::Note { handle, .. } => handle.is_paused(),
            Self::Event(_) => false,
        }
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State")
            .field("items", &self.items.len())
            .field("aside", &self.aside.len())
            .finish_non_exhaustive()
    }
}
