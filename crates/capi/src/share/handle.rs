//! The object behind `rd_kafka_share_t`.

use std::{
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicU8, Ordering},
    },
};

use ottla::ShareConsumer;

use super::{
    access::{Access, Refusal, Turn},
    outcomes::Callback,
};
use crate::{
    client::handle::Client,
    ffi::{
        argument::Ref,
        boundary::{Blamed, Handle, Tag, handle, is_inherited},
        codes::code,
        lock::Mutex,
        quarantine::{self, Counted, Quarantine},
    },
};

/// `rd_kafka_share_t`.
#[repr(C)]
pub struct Share {
    /// The client's handle, which programs read: it is the first member of librdkafka's struct, too.
    #[allow(dead_code, reason = "programs read it")]
    rk: *const Client,
    tag: Tag,
    pub(super) me: Weak<Self>,
    /// The client below. Its application's reference is this object's, until it is destroyed.
    pub(super) client: Arc<Client>,
    /// `share.acknowledgement.mode=implicit`.
    pub(super) is_implicit: bool,
    pub(super) access: Access,
    pub(super) callback: Mutex<Option<Callback>>,
    /// The application's subscription: topics, and the partition numbers of its list.
    pub(super) subscription: Mutex<Vec<(String, i32)>>,
    phase: AtomicU8,
}

/// How far the consumer is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Open = 0,
    Closing = 1,
    Closed = 2,
}

// SAFETY: `repr(C)`, and the tag is at `TAG_AT`.
unsafe impl Handle for Share {
    const KIND: u32 = 0x6f74_7301;
    const TAG_AT: usize = std::mem::offset_of!(Self, tag);
}

// SAFETY: the client that `rk` points to is kept by `client`, and used by any thread.
unsafe impl Send for Share {}
// SAFETY: as above.
unsafe impl Sync for Share {}

static GRAVES: Quarantine = Quarantine::new();

// SAFETY: see `drop` and `new`.
unsafe impl Counted for Share {
    fn quarantine() -> &'static Quarantine {
        &GRAVES
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.tag.clear();
        quarantine::end(self);
    }
}

/// A call on a share consumer by the thread that may use it.
pub(super) struct Entered<'a> {
    pub(super) share: &'a Share,
    pub(super) consumer: &'a ShareConsumer,
    _turn: Turn<'a>,
}

impl Entered<'_> {
    /// Error: the consumer is closed, or is being closed.
    pub(super) fn check_open(&self) -> Result<(), Refusal> {
        match self.share.phase() {
            Phase::Open => Ok(()),
            Phase::Closing | Phase::Closed => Err(Refusal::Closed),
        }
    }
}

impl Share {
    /// Creates the object of a client with a share consumer.
    pub(super) fn new(client: Arc<Client>) -> Arc<Self> {
        let is_implicit = client.property("share.acknowledgement.mode").as_deref() != Some("explicit");
        let share = Arc::new_cyclic(|me| Self {
            rk: Arc::as_ptr(&client),
            tag: Tag::of::<Self>(),
            me: Weak::clone(me),
            client,
            is_implicit,
            access: Access::default(),
            callback: Mutex::new(None),
            subscription: Mutex::default(),
            phase: AtomicU8::new(Phase::Open as u8),
        });
        quarantine::begin(share)
    }

    /// Begins a call that needs no group.
    pub(super) fn turn(share: Ref<'_, Self>) -> Result<Turn<'_>, Refusal> {
        share.get().ok_or(Refusal::NoHandle)?.access.enter()
    }

    /// Begins a call.
    pub(super) fn enter(share: Ref<'_, Self>) -> Result<Entered<'_>, Refusal> {
        let share = share.get().ok_or(Refusal::NoHandle)?;
        let turn = share.access.enter()?;
        let consumer = share.client.share_consumer().ok_or(Refusal::NoGroup)?;
        Ok(Entered { share, consumer, _turn: turn })
    }

    /// Begins a call on a consumer that is neither closed nor being closed.
    pub(super) fn enter_open(share: Ref<'_, Self>) -> Result<Entered<'_>, Refusal> {
        let entered = Self::enter(share)?;
        entered.check_open()?;
        Ok(entered)
    }

    pub(super) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Open,
            1 => Phase::Closing,
            _ => Phase::Closed,
        }
    }

    /// Begins to close. Returns false if that was done before.
    pub(super) fn begin_close(&self) -> bool {
        let (from, to) = (Phase::Open as u8, Phase::Closing as u8);
        self.phase.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    pub(super) fn set_closed(&self) {
        self.phase.store(Phase::Closed as u8, Ordering::Release);
    }

    /// Gives the handle up. Returns false if that was done before.
    ///
    /// # Safety
    ///
    /// NULL or an object of this library.
    pub(super) unsafe fn take(share: *const Self) -> bool {
        // SAFETY: by the contract of this function.
        unsafe { Tag::take(share) }
    }
}

impl Blamed for *const Share {
    fn is_inherited(self) -> bool {
        // SAFETY: NULL or a handle, as the header demands.
        unsafe { is_inherited(self) }
    }

    fn blame(self, text: &str) {
        // SAFETY: the call that panicked got the handle from the application.
        if let Some(share) = unsafe { handle(self) } {
            share.client.set_fatal(code::_FAIL, text);
        }
    }
}

impl fmt::Debug for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Share").field("client", &self.client).finish_non_exhaustive()
    }
}
