//! The state of a produced message until the application has seen its report. A full queue holds one for each of its
//! messages.
//!
//! ```text
//!   plain:  [ Plain ]                   copied, without headers, and no interceptor sees it: a `Held` is made for its report, whose
//!                                       payload and key are those in the batch, which lives as long as its reports
//!   whole:  [ Held  | payload | key ]   everything else: the payload may be the application's, and so may the headers
//! ```
//!
//! The opaque number of a record in the core is the address of either, with a bit that distinguishes them.

use std::{ffi::c_void, ptr};

use crate::{
    consume::{message::Held, owner::Owner},
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

/// A message without what its batch has: its report reads payload, key and timestamp there.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Plain {
    pub(crate) topic: *const rd_kafka_topic_t,
    pub(crate) opaque: *mut c_void,
    /// The time of the call in microseconds, on the clock of the messages' latency.
    pub(crate) called_at: i64,
}

/// A message takes 32 bytes of the arena, whatever its size; with a `Held` and the copies it would take 128 and its size.
const _: () = assert!(size_of::<Plain>() == 24 && align_of::<Plain>() > Produced::PLAIN as usize);
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
                Kind::Plain(plain) => Some(arena::chunk_of(plain.cast(), size_of::<Plain>())),
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
    /// Creates a message in the arena.
    #[inline(always)]
    pub(crate) fn keep(topic: *const rd_kafka_topic_t, opaque: *mut c_void, called_at: i64) -> *mut Self {
        let (memory, _) = arena::take(size_of::<Self>());
        let plain = memory.cast::<Self>();
        // SAFETY: the memory is large enough, and aligned to 16 bytes.
        unsafe { plain.write(Self { topic, opaque, called_at }) };
        plain
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
