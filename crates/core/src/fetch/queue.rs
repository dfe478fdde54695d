//! The way to the application, one of the places where threads meet: fetchers push what they fetched, the application
//! takes it. One lock for a whole fetch, never one per record.

use std::{collections::VecDeque, fmt, sync::Arc, task::Waker};

use super::{
    deliver::{ConsumerEvent, FetchedRecords, Records},
    partition::{PartitionHandle, PrefetchLimits},
};
use crate::{
    error::{Error, ErrorKind},
    mutation::{Mutant, Mutation},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    wake::WakeHandle,
};

/// What waits for the application.
#[derive(Debug)]
pub struct FetchQueue {
    state: Mutex<State>,
    limits: PrefetchLimits,
    /// Bytes of records that wait, over all partitions: the client's budget is the limit's bytes.
    queued_bytes: AtomicUsize,
    /// Some fetcher waits for the budget.
    starved: AtomicBool,
    starving: Mutex<Vec<WakeHandle>>,
    mutation: Mutation,
}

#[derive(Default)]
struct State {
    items: VecDeque<Item>,
    /// Of paused partitions, in order.
    aside: VecDeque<Item>,
    wakers: Vec<Waker>,
    closed: bool,
}

/// Something for the application.
#[derive(Debug)]
pub(crate) enum Item {
    /// Records of one partition.
    Records(FetchedRecords),
    /// Something about a partition, in order with its records.
    Note { handle: Arc<PartitionHandle>, version: u64, event: ConsumerEvent },
    /// Something that belongs to no partition.
    Event(ConsumerEvent),
}

/// Who has to be woken after records left the queue.
#[derive(Default)]
struct Wakes(Vec<Arc<PartitionHandle>>);

impl FetchQueue {
    /// An empty queue with these limits: per partition, and in bytes for all of them together.
    pub fn new(limits: PrefetchLimits) -> Self {
        Self {
            state: Mutex::new(State {
                items: VecDeque::new(),
                aside: VecDeque::new(),
                wakers: Vec::new(),
                closed: false,
            }),
            limits,
            queued_bytes: AtomicUsize::new(0),
            starved: AtomicBool::new(false),
            starving: Mutex::new(Vec::new()),
            mutation: Mutation::NONE,
        }
    }

    /// The queue with a deliberate mistake.
    pub(crate) const fn mutated(mut self, mutation: Mutation) -> Self {
        self.mutation = mutation;
        self
    }

    /// Bytes of records that wait for the application.
    pub fn queued_bytes(&self) -> usize {
        self.queued_bytes.load(Ordering::SeqCst)
    }

    /// The limits.
    pub const fn limits(&self) -> &PrefetchLimits {
        &self.limits
    }

    /// Appends what was fetched, and wakes who waits for it.
    pub(crate) fn push(&self, items: impl IntoIterator<Item = Item>) {
        let wakers = {
            let mut state = self.state.lock();
            for item in items {
                if let Item::Records(records) = &item {
                    records.handle.charge(records.messages, records.bytes);
                    records.handle.count_received(records.messages, records.bytes);
                    self.queued_bytes.fetch_add(records.bytes, Ordering::SeqCst);
                }
                if self.mutation.is(Mutant::LastFirst) {
                    state.items.push_front(item);
                } else {
                    state.items.push_back(item);
                }
            }
            if self.mutation.is(Mutant::LoseWakeup) {
                return;
            }
            std::mem::take(&mut state.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Moves to `into` what may be handed out now, until it holds at least `enough` bytes. What is out of date vanishes,
    /// what is paused is set aside.
    pub fn take(self: &Arc<Self>, enough: usize, into: &mut Records) {
        let ahead = i64::from(self.mutation.is(Mutant::PositionAhead));
        self.take_with(enough, into, |records| records.handle.set_position(records.next_offset + ahead));
    }

    /// Like [`FetchQueue::take`], for somebody who hands out single records and moves the position with each.
    pub fn take_without_position(self: &Arc<Self>, enough: usize, into: &mut Records) {
        self.take_with(enough, into, |_| ());
    }

    fn take_with(self: &Arc<Self>, enough: usize, into: &mut Records, taken: impl Fn(&FetchedRecords)) {
        let mut wakes = Wakes::default();
        {
            let mut state = self.state.lock();
            let state = &mut *state;
            while into.bytes() < enough
                && let Some(item) = state.items.pop_front()
            {
                match item {
                    item if item.is_stale() && !self.mutation.is(Mutant::DeliverAfterSeek) => {
                        self.drop_item(item, &mut wakes)
                    }
                    item if item.is_paused() && !self.mutation.is(Mutant::ForgetPause) => {
                        state.aside.push_back(item)
                    }
                    Item::Records(records) => {
                        self.release(&records, &mut wakes);
                        taken(&records);
                        into.push(self, records);
                    }
                    Item::Note { handle, version, event } => into.push_note(handle, version, event),
                    Item::Event(event) => into.push_event(event),
                }
            }
        }
        self.wake(wakes);
    }

    /// Like [`FetchQueue::take_without_position`], but only what goes this way: a partition's route, and 0 for all that
    /// belongs to no partition. What goes other ways stays.
    pub fn take_route(self: &Arc<Self>, route: u64, enough: usize, into: &mut Records) {
        let mut wakes = Wakes::default();
        {
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
        }
        self.wake(wakes);
    }

    /// Like [`FetchQueue::register`], for who takes this route.
    pub fn register_route(&self, route: u64, waker: &Waker) -> bool {
        let mut state = self.state.lock();
        if state.closed || state.items.iter().any(|item| item.route() == route) {
            return false;
        }
        if !state.wakers.iter().any(|known| known.will_wake(waker)) {
            state.wakers.push(waker.clone());
        }
        true
    }

    /// Only who asks for this route is handed the partition from now on.
    pub(crate) fn set_route(&self, handle: &PartitionHandle, route: u64) {
        let wakers = {
            let mut state = self.state.lock();
            handle.set_route(route);
            std::mem::take(&mut state.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Keeps records that were taken and not consumed before their partition was paused.
    pub fn set_aside(&self, records: FetchedRecords) {
        let mut state = self.state.lock();
        records.handle.charge(records.messages, records.bytes);
        self.queued_bytes.fetch_add(records.bytes, Ordering::SeqCst);
        if records.handle.is_paused() {
            state.aside.push_front(Item::Records(records));
        } else {
            state.items.push_front(Item::Records(records));
        }
    }

    /// A record turned out to be damaged when the application came to it.
    pub(crate) fn report_bad_record(&self, handle: &Arc<PartitionHandle>, version: u64, batch: i64) {
        let detail =
            format!("a record of the batch at offset {batch} can't be read; the rest of it is left out");
        let error =
            Error::new(ErrorKind::BadBatch, detail).with_partition(&**handle.topic(), handle.partition());
        self.push([Item::Note { handle: Arc::clone(handle), version, event: ConsumerEvent::Error(error) }]);
    }

    /// Changes a partition's version: what was fetched up to now vanishes. Answers the new version.
    pub(crate) fn outdate(&self, handle: &PartitionHandle, position: i64) -> u64 {
        self.outdate_if(handle, position, |_| true).map_or(0, |(version, _)| version)
    }

    /// Like [`FetchQueue::outdate`], unless the application meanwhile changed the version itself. Answers the offset up to
    /// which records were handed out, too.
    pub(crate) fn outdate_version(
        &self,
        handle: &PartitionHandle,
        version: u64,
    ) -> Option<(u64, Option<i64>)> {
        self.outdate_if(handle, -1, |current| current == version)
    }

    fn outdate_if(
        &self,
        handle: &PartitionHandle,
        position: i64,
        wanted: impl Fn(u64) -> bool,
    ) -> Option<(u64, Option<i64>)> {
        let mut wakes = Wakes::default();
        let outdated = {
            let mut state = self.state.lock();
            if !wanted(handle.version()) {
                return None;
            }
            let handed_out = handle.position();
            let version = handle.bump_version(position);
            let state = &mut *state;
            for items in [&mut state.items, &mut state.aside] {
                for item in std::mem::take(items) {
                    if item.is_stale() && !self.mutation.is(Mutant::DeliverAfterSeek) {
                        self.drop_item(item, &mut wakes);
                    } else {
                        items.push_back(item);
                    }
                }
            }
            (version, handed_out)
        };
        self.wake(wakes);
        Some(outdated)
    }

    /// Sets where a partition starts, unless the application meanwhile said something else.
    pub(crate) fn set_position(&self, handle: &PartitionHandle, version: u64, position: i64) {
        let _state = self.state.lock();
        if handle.version() == version {
            handle.set_position(position);
        }
    }

    /// Nothing of these partitions is handed out from now on.
    pub(crate) fn pause(&self, handles: &[Arc<PartitionHandle>]) {
        {
            let _state = self.state.lock();
            handles.iter().for_each(|handle| handle.set_paused(true));
        }
        // A fetcher that waited for room in one of them need not wait any more.
        handles.iter().for_each(|handle| handle.wake_fetcher());
    }

    /// What was set aside of these partitions comes first.
    pub(crate) fn resume(&self, handles: &[Arc<PartitionHandle>]) {
        let wakers = {
            let mut state = self.state.lock();
            handles.iter().for_each(|handle| handle.set_paused(false));
            let (back, aside): (VecDeque<_>, VecDeque<_>) =
                std::mem::take(&mut state.aside).into_iter().partition(|item| !item.is_paused());
            state.aside = aside;
            for item in back.into_iter().rev() {
                state.items.push_front(item);
            }
            if state.items.is_empty() { Vec::new() } else { std::mem::take(&mut state.wakers) }
        };
        wakers.into_iter().for_each(Waker::wake);
        handles.iter().for_each(|handle| handle.wake_fetcher());
    }

    /// Asks to be woken when something comes. False if there is something already, or nothing will come any more.
    pub fn register(&self, waker: &Waker) -> bool {
        let mut state = self.state.lock();
        if !state.items.is_empty() || state.closed {
            return false;
        }
        if !state.wakers.iter().any(|known| known.will_wake(waker)) {
            state.wakers.push(waker.clone());
        }
        true
    }

    /// Nothing will come any more: wakes whoever waits.
    pub fn close(&self) {
        let wakers = {
            let mut state = self.state.lock();
            state.closed = true;
            std::mem::take(&mut state.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// True if nothing will come any more.
    pub fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    /// Bytes that may still be fetched in advance. At 0 `fetcher` is woken when half of the budget is consumed.
    pub(crate) fn room(&self, fetcher: &WakeHandle) -> usize {
        let room = |queued: usize| self.limits.bytes.saturating_sub(queued);
        if self.queued_bytes.load(Ordering::SeqCst) < self.limits.bytes {
            return room(self.queued_bytes.load(Ordering::SeqCst));
        }
        self.starving.lock().push(fetcher.clone());
        self.starved.store(true, Ordering::SeqCst);
        // The application may have consumed it all between the lines above. Adding nothing, unlike loading, is seen by
        // whoever takes records next, and with it that somebody waits.
        let queued = self.queued_bytes.fetch_add(0, Ordering::SeqCst);
        if queued <= self.limits.bytes / 2 { room(queued) } else { 0 }
    }

    fn drop_item(&self, item: Item, wakes: &mut Wakes) {
        if let Item::Records(records) = &item
            && !self.mutation.is(Mutant::ForgetFetched)
        {
            records.handle.count_dropped(records.messages);
            self.release(records, wakes);
        }
    }

    fn release(&self, records: &FetchedRecords, wakes: &mut Wakes) {
        self.queued_bytes.fetch_sub(records.bytes, Ordering::SeqCst);
        if records.handle.release(records.messages, records.bytes, &self.limits)
            && !self.mutation.is(Mutant::ForgetStarved)
        {
            wakes.0.push(Arc::clone(&records.handle));
        }
    }

    fn wake(&self, wakes: Wakes) {
        wakes.0.iter().for_each(|handle| handle.wake_fetcher());
        if self.starved.load(Ordering::SeqCst)
            && self.queued_bytes.load(Ordering::SeqCst) <= self.limits.bytes / 2
            && self.starved.swap(false, Ordering::SeqCst)
        {
            let starving = std::mem::take(&mut *self.starving.lock());
            starving.iter().for_each(WakeHandle::wake);
        }
    }
}

impl Item {
    /// True if the application meanwhile wants the partition from elsewhere, or not at all.
    fn is_stale(&self) -> bool {
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

    fn is_paused(&self) -> bool {
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
