//! What a message belongs to, in the size of a pointer.

use std::ptr;

use crate::{
    consume::message::{Lonely, Slab},
    produce::arena::Chunk,
};

/// The owner of a message's memory: a pointer, whose lowest two bits say what it points to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Home(*mut ());

/// What a message belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Owner {
    /// A chunk of the arena.
    Arena(*mut Chunk),
    /// A slab of consumed messages.
    Slab(*const Slab),
    /// The message itself: an error message, with its text and its topic.
    Alone(*mut Lonely),
    /// None: the message was destroyed, or belongs to a report.
    Gone,
}

const _: () = assert!(align_of::<Chunk>() >= 4 && align_of::<Slab>() >= 4 && align_of::<Lonely>() >= 4);

impl Home {
    pub(super) const GONE: Self = Self(ptr::null_mut());
    const KIND: usize = 3;

    #[inline]
    pub(super) fn of(owner: Owner) -> Self {
        let (pointer, kind): (*mut (), usize) = match owner {
            Owner::Gone => return Self::GONE,
            Owner::Arena(chunk) => (chunk.cast(), 1),
            Owner::Slab(slab) => (slab.cast_mut().cast(), 2),
            Owner::Alone(lonely) => (lonely.cast(), 3),
        };
        Self(pointer.map_addr(|address| address | kind))
    }

    #[inline]
    pub(super) fn owner(self) -> Owner {
        let pointer = self.0.map_addr(|address| address & !Self::KIND);
        match self.0.addr() & Self::KIND {
            1 => Owner::Arena(pointer.cast()),
            2 => Owner::Slab(pointer.cast()),
            3 => Owner::Alone(pointer.cast()),
            _ => Owner::Gone,
        }
    }
}
