//! Delivery reports: a batch of them is one entry of a queue, unfolded when it is served. The messages of a batch lie in
//! the arena of the thread that produced them.

use std::{
    mem::MaybeUninit,
    sync::{Arc, Weak},
};

use ottla::{DeliveryBatch, DeliverySink, Moment, PersistenceStatus, Producer};
use parking_lot::Mutex;

use crate::{
    arena::{self, Chunk},
    client::Client,
    conf::{DrCb, DrMsgCb},
    error::code_of,
    interceptors::kind,
    message::Held,
    op::Op,
    produced::{Kind, Produced},
    queue::{self, Queue},
    types::{OFFSET_INVALID, rd_kafka_message_t},
};

/// Takes the reports of a producer, on an I/O thread.
pub(crate) struct Reports {
    /// Where to, if the application wants them.
    queue: Option<Arc<Queue>>,
    only_errors: bool,
    /// Each record's number is its [`Produced`].
    has_messages: bool,
    /// To give back what the messages count for in the queue's limits. Empty once the client is gone.
    producer: Mutex<Option<Producer>>,
    /// The client, if its interceptors look at what was acknowledged.
    witness: Option<Weak<Client>>,
    /// The client, if its log tells how batches end.
    chronicle: Option<Weak<Client>>,
}

/// The reports of a batch, as far as they were not seen yet.
#[derive(Debug)]
pub(crate) struct Delivery {
    batch: DeliveryBatch,
    producer: Option<Producer>,
    has_messages: bool,
    /// Messages before this one are done with.
    disposed: usize,
    /// Messages before this one were shown, in an event.
    shown: usize,
    code: i32,
    /// When the batch's fate was known, on the clock of the messages' latency.
    known_at: i64,
    /// What an event shows of plain messages. C keeps pointers to them until the event is destroyed.
    shown_plain: ShownPlain,
}

/// What has become of a batch, for each of its messages.
struct Fate {
    code: i32,
    partition: i32,
    broker_id: i32,
    base_offset: Option<i64>,
    log_append_time: Option<i64>,
    status: u8,
    known_at: i64,
}

#[derive(Debug, Default)]
struct ShownPlain(Vec<Held>);

// SAFETY: whoever has the reports is the only one with pointers to what they show.
unsafe impl Send for ShownPlain {}

/// Pieces of one chunk that are given back together.
struct GivingBack {
    chunk: *mut Chunk,
    pieces: usize,
}

impl Reports {
    pub(crate) fn new(
        queue: Option<Arc<Queue>>,
        only_errors: bool,
        has_messages: bool,
        witness: Option<Weak<Client>>,
        chronicle: Option<Weak<Client>>,
    ) -> Self {
        Self { queue, only_errors, has_messages, producer: Mutex::new(None), witness, chronicle }
    }

    pub(crate) const fn has_messages(&self) -> bool {
        self.has_messages
    }

    pub(crate) fn set_producer(&self, producer: Option<Producer>) {
        *self.producer.lock() = producer;
    }
}

impl DeliverySink for Reports {
    fn deliver(&self, batch: DeliveryBatch) {
        if let Some(client) = self.chronicle.as_ref().and_then(Weak::upgrade) {
            client.note_delivery(&batch);
        }
        let producer = self.producer.lock().clone();
        let is_wanted = producer.is_some() && !(self.only_errors && batch.error().is_none());
        let code = batch.error().map_or(0, code_of);
        let delivery = Delivery {
            batch,
            producer: if self.keeps_charge() { producer } else { None },
            has_messages: self.has_messages,
            disposed: 0,
            shown: 0,
            code,
            known_at: Moment::now().micros(),
            shown_plain: ShownPlain::default(),
        };
        if let Some(client) = self.witness.as_ref().and_then(Weak::upgrade) {
            let (mut place, fate) = (0, delivery.fate());
            while let Some(produced) = delivery.message(place) {
                // Where there are interceptors, messages are whole.
                if let Some(held) = produced.held() {
                    // SAFETY: nobody else has the message.
                    fate.tell(unsafe { &mut *held }, place);
                    client.intercept_message(kind::ACKNOWLEDGEMENT, held.cast());
                }
                place += 1;
            }
        }
        match &self.queue {
            Some(queue) if is_wanted => queue.push(Op::Delivery(Box::new(delivery))),
            _ => drop(delivery),
        }
    }

    fn keeps_charge(&self) -> bool {
        self.queue.is_some()
    }
}

impl Delivery {
    pub(crate) fn len(&self) -> usize {
        self.batch.len()
    }

    /// The message at a place; `None` at the end.
    #[inline]
    fn message(&self, place: usize) -> Option<Produced> {
        let produced = Produced::of_number(*self.batch.opaques().get(place)?);
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

    /// Calls the application's callback for each message; false if it wants its poll to return before the end.
    pub(crate) fn serve_message_callback(&mut self, client: &Client, callback: DrMsgCb) -> bool {
        self.serve(client, |held| {
            // SAFETY: the application's function, with a message that lives until it returns.
            unsafe { callback(client, (held as *const rd_kafka_message_t).cast(), client.conf().opaque.0) };
        })
    }

    /// The same with the older callback.
    pub(crate) fn serve_callback(&mut self, client: &Client, callback: DrCb) -> bool {
        self.serve(client, |held| {
            // SAFETY: the application's function, with a message that lives until it returns.
            unsafe {
                let message = (*held).message;
                let opaque = client.conf().opaque.0;
                callback(client, message.payload, message.len, message.err, opaque, message.private);
            }
        })
    }

    fn serve(&mut self, client: &Client, mut each: impl FnMut(*mut Held)) -> bool {
        let mut giving_back = GivingBack { chunk: std::ptr::null_mut(), pieces: 0 };
        let (mut made, fate) = (MaybeUninit::uninit(), self.fate());
        while let Some(produced) = self.message(self.disposed) {
            let held = match produced.kind() {
                // SAFETY: nobody else has the message until it is disposed of.
                Kind::Plain(plain) => made.write(unsafe { Held::of_plain(plain) }),
                // SAFETY: as above.
                Kind::Whole(held) => unsafe { &mut *held },
                Kind::None => break,
            };
            fate.tell(held, self.disposed);
            let held = std::ptr::from_mut(held);
            each(held);
            self.disposed += 1;
            // SAFETY: the callback is over, and nobody else has the message. It may have given it headers.
            unsafe {
                (*held).release_parts();
                giving_back.add(produced);
            }
            if client.is_closing() {
                // The callback destroyed the client: the others are freed, and nobody is told.
                return true;
            }
            if queue::take_yield() {
                return false;
            }
        }
        true
    }

    /// The next message of an event.
    pub(crate) fn next(&mut self) -> *const rd_kafka_message_t {
        let place = self.shown;
        let held = match self.message(place).map(Produced::kind) {
            Some(Kind::Plain(plain)) => {
                // There is room for all from the start: what is shown stays where it is.
                self.shown_plain.0.reserve_exact(self.len() - self.shown_plain.0.len());
                // SAFETY: the message lives as long as the reports.
                let mut held = unsafe { Held::of_plain(plain) };
                self.fate().tell(&mut held, place);
                self.shown_plain.0.push(held);
                // SAFETY: it was just pushed. No reference to the others is made: C has pointers to them.
                unsafe { self.shown_plain.0.as_mut_ptr().add(self.shown_plain.0.len() - 1) }
            }
            Some(Kind::Whole(held)) => {
                // SAFETY: nobody else has the message.
                self.fate().tell(unsafe { &mut *held }, place);
                held
            }
            Some(Kind::None) | None => return std::ptr::null(),
        };
        self.shown += 1;
        held.cast_const().cast()
    }
}

impl Fate {
    /// Writes it into a message.
    #[inline]
    fn tell(&self, message: &mut Held, place: usize) {
        message.message.err = self.code;
        message.message.partition = self.partition;
        message.broker_id = self.broker_id;
        message.message.offset = self.base_offset.map_or(OFFSET_INVALID, |base| base + place as i64);
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
        // An application may have given a message headers.
        self.shown_plain.0.iter_mut().for_each(Held::release_parts);
        if self.has_messages {
            let mut giving_back = GivingBack { chunk: std::ptr::null_mut(), pieces: 0 };
            for number in &self.batch.opaques()[self.disposed.min(self.batch.opaques().len())..] {
                // SAFETY: it is the number of a message that was not disposed of; nobody else has it.
                unsafe { giving_back.add(Produced::of_number(*number)) };
            }
        }
        if let Some(producer) = &self.producer {
            producer.release(&self.batch);
        }
    }
}

impl GivingBack {
    /// Frees what a message owns, and its memory together with its neighbours'.
    ///
    /// # Safety
    ///
    /// Nobody uses the message any more.
    #[inline]
    unsafe fn add(&mut self, produced: Produced) {
        // SAFETY: as the caller says.
        if let Some(chunk) = unsafe { produced.release() } {
            if !std::ptr::eq(self.chunk, chunk) {
                self.flush();
                self.chunk = chunk;
            }
            self.pieces += 1;
        }
    }

    fn flush(&mut self) {
        if self.pieces > 0 {
            // SAFETY: these pieces were counted, one for each message that is done with.
            unsafe { arena::give_back(self.chunk, self.pieces) };
            self.pieces = 0;
        }
    }
}

impl Drop for GivingBack {
    fn drop(&mut self) {
        self.flush();
    }
}
