//! The state of a produced message until the application has seen its report. A full queue holds one for each of its
//! messages, which is most of a busy producer's memory.
//!
//! ```text
//!   plain:  [ Plain | payload | key ]   copied, without headers, and no interceptor sees it: a `Held` is made for its report
//!   whole:  [ Held  | payload | key ]   everything else: the payload may be the application's, and so may the headers
//! ```
//!
//! The opaque number of a record in the core is the address of either, with a bit that distinguishes them.

use std::{ffi::c_void, ptr};

use crate::{
    consume::message::{Held, Owner},
    ffi::types::rd_kafka_topic_t,
    produce::arena::{self, Chunk},
};

/// A produced message as its record's opaque number, or none if it will have no report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Produced(u64);

/// The same as a reference to one of the two kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    None,
    Plain(*mut Plain),
    Whole(*mut Held),
}

/// A message without the fields that its batch has.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Plain {
    pub(crate) topic: *const rd_kafka_topic_t,
    pub(crate) opaque: *mut c_void,
    /// The timestamp in milliseconds.
    pub(crate) timestamp: i64,
    /// The time of the call in microseconds, with [`Self::HAS_PAYLOAD`] and [`Self::HAS_KEY`] in the lowest bits.
    called_at: i64,
    payload_len: u32,
    key_len: u32,
}

/// A message with 100 bytes of payload takes 144 bytes of the arena; with a `Held` it would take 224.
const _: () = assert!(size_of::<Plain>() == 40 && align_of::<Plain>() > Produced::PLAIN as usize);
const _: () = assert!(align_of::<Held>() > Produced::PLAIN as usize);

impl Produced {
    pub(crate) const NONE: Self = Self(0);
    /// The bit that marks the number of a plain message.
    const PLAIN: u64 = 1;

    #[inline]
    pub(crate) fn plain(plain: *mut Plain) -> Self {
        Self(plain.cast::<c_void>() as u64 | Self::PLAIN)
    }

    #[inline]
    pub(crate) fn whole(held: *mut Held) -> Self {
        Self(held.cast::<c_void>() as u64)
    }

    /// Returns the record's opaque number.
    #[inline]
    pub(crate) const fn number(self) -> u64 {
        self.0
    }

    /// Returns the message with this number.
    #[inline]
    pub(crate) const fn of_number(number: u64) -> Self {
        Self(number)
    }

    #[inline]
    pub(crate) const fn is_none(self) -> bool {
        self.0 == 0
    }

    #[inline]
    pub(crate) const fn kind(self) -> Kind {
        if self.0 & Self::PLAIN != 0 {
            Kind::Plain((self.0 & !Self::PLAIN) as *mut Plain)
        } else if self.0 == 0 {
            Kind::None
        } else {
            Kind::Whole(self.0 as *mut Held)
        }
    }

    /// Returns the message as it is shown before it is sent, if it is whole.
    #[inline]
    pub(crate) const fn held(self) -> Option<*mut Held> {
        match self.kind() {
            Kind::Whole(held) => Some(held),
            Kind::None | Kind::Plain(_) => None,
        }
    }

    /// Returns the topic and the application's pointer.
    ///
    /// # Safety
    ///
    /// The message is alive.
    pub(crate) unsafe fn topic_and_opaque(self) -> (*const rd_kafka_topic_t, *mut c_void) {
        // SAFETY: by the contract of this function.
        unsafe {
            match self.kind() {
                Kind::None => (ptr::null(), ptr::null_mut()),
                Kind::Plain(plain) => ((*plain).topic, (*plain).opaque),
                Kind::Whole(held) => ((*held).message.rkt, (*held).message.private),
            }
        }
    }

    /// Frees what the message owns, but not its own memory, and returns the owner of that.
    ///
    /// # Safety
    ///
    /// The message is alive, and is no longer used.
    #[inline]
    pub(crate) unsafe fn release(self) -> Option<*mut Chunk> {
        // SAFETY: by the contract of this function.
        unsafe {
            match self.kind() {
                Kind::None => None,
                Kind::Plain(plain) => Some(arena::chunk_of(plain.cast(), (*plain).size())),
                Kind::Whole(held) => {
                    (*held).release_parts();
                    match (*held).owner() {
                        Owner::Arena(chunk) => Some(chunk),
                        _ => None,
                    }
                }
            }
        }
    }

    /// Gives back the memory of a message.
    ///
    /// # Safety
    ///
    /// As for [`Self::release`].
    pub(crate) unsafe fn dispose(self) {
        // SAFETY: by the contract of this function; the message was one allocation of its chunk.
        unsafe {
            if let Some(chunk) = self.release() {
                arena::give_back(chunk, 1);
            }
        }
    }
}

impl Plain {
    const HAS_PAYLOAD: i64 = 1;
    const HAS_KEY: i64 = 2;
    const FLAG_BITS: u32 = 2;

    /// Creates a message in the arena with copies of its payload and key; `None` if these are too large.
    #[inline(always)]
    pub(crate) fn keep(
        topic: *const rd_kafka_topic_t,
        opaque: *mut c_void,
        timestamp: i64,
        called_at: i64,
        payload: Option<&[u8]>,
        key: Option<&[u8]>,
    ) -> Option<*mut Self> {
        let len = |bytes: Option<&[u8]>| u32::try_from(bytes.map_or(0, <[u8]>::len)).ok();
        let new = Self {
            topic,
            opaque,
            timestamp,
            called_at: called_at << Self::FLAG_BITS
                | if payload.is_some() { Self::HAS_PAYLOAD } else { 0 }
                | if key.is_some() { Self::HAS_KEY } else { 0 },
            payload_len: len(payload)?,
            key_len: len(key)?,
        };
        let (memory, _) = arena::take(new.size());
        // SAFETY: the memory is large enough for the message, followed by the copies of the payload and the key.
        unsafe {
            let mut free = memory.add(size_of::<Self>());
            for bytes in [payload, key].into_iter().flatten() {
                ptr::copy_nonoverlapping(bytes.as_ptr(), free, bytes.len());
                free = free.add(bytes.len());
            }
            memory.cast::<Self>().write(new);
        }
        Some(memory.cast())
    }

    /// Returns the time of the call in microseconds, on the clock of the messages' latency.
    pub(crate) const fn called_at(&self) -> i64 {
        self.called_at >> Self::FLAG_BITS
    }

    /// Returns the payload's copy and its size, and the key's; NULL where the message has none.
    ///
    /// # Safety
    ///
    /// The message is alive.
    #[inline]
    pub(crate) unsafe fn parts(this: *mut Self) -> [(*mut c_void, usize); 2] {
        // SAFETY: by the contract of this function; both stand behind it.
        unsafe {
            let (payload_len, key_len) = ((*this).payload_len as usize, (*this).key_len as usize);
            let payload = this.cast::<u8>().add(size_of::<Self>());
            let part = |flag, memory: *mut u8| {
                if (*this).called_at & flag == 0 { ptr::null_mut() } else { memory.cast::<c_void>() }
            };
            [
                (part(Self::HAS_PAYLOAD, payload), payload_len),
                (part(Self::HAS_KEY, payload.add(payload_len)), key_len),
            ]
        }
    }

    /// With what stands behind it.
    #[inline]
    const fn size(&self) -> usize {
        size_of::<Self>() + self.payload_len as usize + self.key_len as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_identifies_its_message() {
        let (plain, held) = (ptr::without_provenance_mut(4096), ptr::without_provenance_mut(8192));
        let again = |produced: Produced| Produced::of_number(produced.number()).kind();
        assert_eq!(again(Produced::NONE), Kind::None);
        assert_eq!(again(Produced::plain(plain)), Kind::Plain(plain));
        assert_eq!(again(Produced::whole(held)), Kind::Whole(held));
    }
}
