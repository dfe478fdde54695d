//! Delivery reports: the reports of a batch are one queue entry, which is unfolded when it is served. The messages of a
//! batch lie in the arena of the thread that produced them.
//!
//! # Pitfalls
//!
//! - The `rd_kafka_message_t` of a report exists only while its callback or event is served. One per queued message
//!   took a third of a busy producer's memory (`produce.c`).

use std::{
    mem::MaybeUninit,
    sync::atomic::{AtomicBool, Ordering},
};

use ottla::Producer;
use ottla_core::produce::report::{DeliveryBatch, PersistenceStatus};
use ottla_protocol::batch::{RecordPosition, RecordView};

use crate::{
    client::{
        callbacks::{DrCb, DrMsgCb},
        yielding::{ask_to_yield, take_yield},
    },
    consume::message::Held,
    ffi::{
        boundary::Opaque,
        codes::{RespErr, code},
        error::code_of_delivery,
        types::{OFFSET_END, OFFSET_INVALID, rd_kafka_message_t, rd_kafka_t},
    },
    produce::{
        arena::{self, Chunk},
        call_time::CallTime,
        produced::{Kind, Plain, Produced},
        texts::Texts,
    },
};

/// The arguments of a report callback besides the message.
pub(crate) struct Served<'a> {
    pub(crate) client: *const rd_kafka_t,
    pub(crate) opaque: Opaque,
    /// Set once the client ends.
    pub(crate) is_closing: &'a AtomicBool,
}

/// The reports of a batch that were not served yet.
#[derive(Debug)]
pub(crate) struct Delivery {
    batch: DeliveryBatch,
    producer: Option<Producer>,
    has_messages: bool,
    /// The index of the first message that is not freed.
    disposed: usize,
    /// The index of the first message that no event has shown.
    shown: usize,
    code: RespErr,
    /// The time at which the outcome was known, on the clock of the messages' latency.
    known_at: i64,
    /// The plain messages that an event shows. C keeps pointers to them until the event is destroyed.
    shown_plain: ShownPlain,
    /// The position of the next message's record in the batch.
    position: RecordPosition,
    /// The records that an event shows and that are not contiguous in the batch.
    joined: Vec<Vec<u8>>,
    texts: Texts,
}

/// The outcome of a batch, for each of its messages.
struct Fate {
    code: RespErr,
    partition: i32,
    broker_id: i32,
    base_offset: Option<i64>,
    log_append_time: Option<i64>,
    status: u8,
    known_at: i64,
}

#[derive(Debug, Default)]
struct ShownPlain(Vec<Held>);

// SAFETY: only the owner of the reports has pointers to the messages that they show.
unsafe impl Send for ShownPlain {}

/// Allocations of one chunk that are given back together.
struct GivingBack {
    chunk: *mut Chunk,
    allocations: usize,
}

impl Delivery {
    /// Creates the reports of a batch whose outcome is known.
    pub(super) fn new(
        batch: DeliveryBatch,
        producer: Option<Producer>,
        has_messages: bool,
        code: RespErr,
    ) -> Self {
        Self {
            texts: Texts::of(&batch),
            batch,
            producer,
            has_messages,
            disposed: 0,
            shown: 0,
            code,
            known_at: CallTime::now().micros(),
            shown_plain: ShownPlain::default(),
            position: RecordPosition::default(),
            joined: Vec::new(),
        }
    }

    /// Passes each message with its outcome to interceptors.
    pub(super) fn acknowledge(&self, acknowledge: &dyn Fn(*mut rd_kafka_message_t)) {
        let (mut index, fate) = (0, self.fate());
        while let Some(produced) = self.message(index) {
            // With interceptors, all messages are whole.
            if let Some(held) = produced.held() {
                // SAFETY: no other thread has the message until it is served.
                self.report(&fate, unsafe { &mut *held }, index);
                acknowledge(held.cast());
            }
            index += 1;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.batch.len()
    }

    /// Returns the number of messages that an event has not shown yet.
    pub(crate) fn len_not_shown(&self) -> usize {
        self.len() - self.shown
    }

    /// Returns the code of the batch's error, or `NO_ERROR`.
    pub(crate) const fn code(&self) -> RespErr {
        self.code
    }

    /// Returns the message at an index; `None` at the end.
    #[inline]
    fn message(&self, index: usize) -> Option<Produced> {
        let produced = Produced::of_number(*self.batch.opaques().get(index)?);
        (self.has_messages && !produced.is_none()).then_some(produced)
    }

    fn fate(&self) -> Fate {
        Fate {
            code: self.code,
            partition: self.batch.partition(),
            broker_id: self.batch.broker_id().unwrap_or(-1),
            base_offset: self.batch.base_offset(),
            log_append_time: self.batch.log_append_time(),
            status: match self.batch.status() {
                PersistenceStatus::NotPersisted => 0,
                PersistenceStatus::PossiblyPersisted => 1,
                PersistenceStatus::Persisted => 2,
            },
            known_at: self.known_at,
        }
    }

    /// Writes the outcome of the message at an index into it.
    #[inline]
    fn report(&self, fate: &Fate, message: &mut Held, index: usize) {
        fate.write_to(message, index);
        if fate.code != code::NO_ERROR {
            message.leader_epoch = self.texts.number_of(self.batch.error_at(index));
        }
        if self.batch.has_invalid_records() {
            message.message.err = self.batch.error_at(index).map_or(code::NO_ERROR, code_of_delivery);
        }
    }

    /// Calls the application's callback for each message. Returns false if the callback requests that its poll returns
    /// early.
    pub(crate) fn serve_message_callback(&mut self, to: &Served<'_>, callback: DrMsgCb) -> bool {
        self.serve(to.is_closing, |held| {
            // SAFETY: the application's function gets a message that lives until it returns.
            unsafe { callback(to.client, (held as *const rd_kafka_message_t).cast(), to.opaque.0) };
        })
    }

    /// Calls the older callback for each message, as the function above.
    pub(crate) fn serve_callback(&mut self, to: &Served<'_>, callback: DrCb) -> bool {
        self.serve(to.is_closing, |held| {
            // SAFETY: the application's function gets a message that lives until it returns.
            unsafe {
                let message = (*held).message;
                callback(to.client, message.payload, message.len, message.err, to.opaque.0, message.private);
            }
        })
    }

    fn serve(&mut self, is_closing: &AtomicBool, mut each: impl FnMut(*mut Held)) -> bool {
        let mut giving_back = GivingBack { chunk: std::ptr::null_mut(), allocations: 0 };
        let (mut made, fate) = (MaybeUninit::uninit(), self.fate());
        let mut joined = Vec::new();
        while let Some(produced) = self.message(self.disposed) {
            let record = next_record(&self.batch, &mut self.position, &mut joined);
            let held = match produced.kind() {
                // SAFETY: no other thread has the message until it is freed, and its record is not changed meanwhile.
                Kind::Plain(plain) => made.write(unsafe { reported(plain, record) }),
                // SAFETY: as above.
                Kind::Whole(held) => unsafe { &mut *held },
                Kind::None => break,
            };
            self.report(&fate, held, self.disposed);
            let held = std::ptr::from_mut(held);
            each(held);
            self.disposed += 1;
            // SAFETY: the callback has returned, and no other thread has the message. It may have added headers.
            unsafe {
                (*held).release_parts();
                giving_back.add(produced);
            }
            if is_closing.load(Ordering::Acquire) {
                // The callback destroyed the client: the other messages are freed without a report.
                return true;
            }
            if take_yield() {
                if self.message(self.disposed).is_some() {
                    return false;
                }
                // The reports end here, so that their messages are no longer counted; the poll ends nevertheless.
                ask_to_yield();
            }
        }
        true
    }

    /// Returns the next message of an event.
    pub(crate) fn next(&mut self) -> *const rd_kafka_message_t {
        let index = self.shown;
        let mut joined = Vec::new();
        let record = next_record(&self.batch, &mut self.position, &mut joined);
        let held = match self.message(index).map(Produced::kind) {
            Some(Kind::Plain(plain)) => {
                // The vector has its full capacity from the start, so messages never move.
                self.shown_plain.0.reserve_exact(self.len() - self.shown_plain.0.len());
                // SAFETY: the message and its record live as long as the reports.
                let mut held = unsafe { reported(plain, record) };
                if !joined.is_empty() {
                    self.joined.push(joined);
                }
                self.report(&self.fate(), &mut held, index);
                self.shown_plain.0.push(held);
                // SAFETY: the message was just added. No reference to the others is created: C has pointers to them.
                unsafe { self.shown_plain.0.as_mut_ptr().add(self.shown_plain.0.len() - 1) }
            }
            Some(Kind::Whole(held)) => {
                // SAFETY: no other thread has the message.
                self.report(&self.fate(), unsafe { &mut *held }, index);
                held
            }
            Some(Kind::None) | None => return std::ptr::null(),
        };
        self.shown += 1;
        held.cast_const().cast()
    }
}

/// Returns the next record of a batch, if it kept its records.
#[inline]
fn next_record<'a>(
    batch: &'a DeliveryBatch,
    position: &mut RecordPosition,
    joined: &'a mut Vec<u8>,
) -> Option<RecordView<'a>> {
    batch.records().and_then(|records| records.next(position, joined))
}

/// Returns the report of a plain message, without its outcome. Without a record, which an actor dropped in a panic, the
/// report shows neither payload nor key.
///
/// # Safety
///
/// The message and its record live as long as the report.
#[inline]
unsafe fn reported(plain: *mut Plain, record: Option<RecordView<'_>>) -> Held {
    let (value, key) = record.map_or((None, None), |record| (record.value, record.key));
    // SAFETY: by the contract of this function.
    unsafe { Held::of_plain(plain, value, key, record.map_or(-1, |record| record.timestamp)) }
}

impl Fate {
    /// Writes the outcome into a message.
    #[inline]
    fn write_to(&self, message: &mut Held, index: usize) {
        message.message.err = self.code;
        message.message.partition = self.partition;
        message.broker_id = self.broker_id;
        message.message.offset = match self.base_offset {
            Some(base) => base + index as i64,
            // A broker that refuses a batch returns -1 as the offset, and programs see it.
            None if self.code.is_of_broker() => OFFSET_END,
            None => OFFSET_INVALID,
        };
        if let Some(time) = self.log_append_time {
            message.timestamp = time;
            message.timestamp_kind = 2;
        }
        message.status = self.status;
        if !std::mem::replace(&mut message.is_reported, true) && message.latency() >= 0 {
            message.set_latency((self.known_at - message.latency()).max(0));
        }
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        // The application may have added headers to a message.
        self.shown_plain.0.iter_mut().for_each(Held::release_parts);
        if self.has_messages {
            let mut giving_back = GivingBack { chunk: std::ptr::null_mut(), allocations: 0 };
            for number in &self.batch.opaques()[self.disposed.min(self.batch.opaques().len())..] {
                // SAFETY: the number is that of a message that was not freed and that no other thread has.
                unsafe { giving_back.add(Produced::of_number(*number)) };
            }
        }
        if let Some(producer) = &self.producer {
            producer.core().budget.release(self.batch.len(), self.batch.charged_bytes());
        }
    }
}

impl GivingBack {
    /// Frees what a message owns, and its memory together with that of its neighbours.
    ///
    /// # Safety
    ///
    /// The message is no longer used.
    #[inline]
    unsafe fn add(&mut self, produced: Produced) {
        // SAFETY: by the contract of this function.
        if let Some(chunk) = unsafe { produced.release() } {
            if !std::ptr::eq(self.chunk, chunk) {
                self.flush();
                self.chunk = chunk;
            }
            self.allocations += 1;
        }
    }

    fn flush(&mut self) {
        if self.allocations > 0 {
            // SAFETY: one allocation was counted for each message that was freed.
            unsafe { arena::give_back(self.chunk, self.allocations) };
            self.allocations = 0;
        }
    }
}

impl Drop for GivingBack {
    fn drop(&mut self) {
        self.flush();
    }
}
