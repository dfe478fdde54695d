//! Memory of produced messages until the application has seen their report. Each thread fills chunks from front to
//! back; a chunk is free when its last message is freed. Messages need neither a call of the allocator nor a lock.

use std::{
    alloc::{Layout, alloc, dealloc, handle_alloc_error},
    cell::Cell,
    ptr,
    sync::atomic::{AtomicUsize, Ordering},
};

use crate::{ffi::lock::Mutex, platform::give_up_pages};
use ottla_net::process::PerProcess;

/// The head of a chunk.
#[repr(C, align(16))]
pub(crate) struct Chunk {
    /// The number of allocations in use, plus [`OPEN`] while a thread fills the chunk.
    live: AtomicUsize,
    size: usize,
}

const CHUNK: usize = 64 * 1024;
const HEAD: usize = size_of::<Chunk>();
const OPEN: usize = usize::MAX / 2;
/// The number of chunks that are allocated together as a block. Blocks are never freed, but the pages of their chunks
/// are.
const BLOCK: usize = 16;
/// The number of spare chunks that keep their pages for the next messages: 32 MiB.
const KEPT: usize = 512;

/// The chunk that a thread fills.
struct Filling {
    chunk: Cell<*mut Chunk>,
    used: Cell<usize>,
    allocations: Cell<usize>,
}

thread_local! {
    static FILLING: Filling =
        const { Filling { chunk: Cell::new(ptr::null_mut()), used: Cell::new(0), allocations: Cell::new(0) } };
}

/// The chunks of all threads. Free chunks go to the next thread that needs one: if each thread kept its own, the memory
/// would be the sum of each thread's maximum.
#[derive(Default)]
struct Stock {
    /// Unused chunks.
    spare: Vec<*mut Chunk>,
    /// Unused chunks whose pages were returned to the system.
    without_pages: Vec<*mut Chunk>,
    /// The blocks of which the chunks are parts.
    blocks: Vec<*mut u8>,
}

// SAFETY: a chunk in the list has no other owner.
unsafe impl Send for Stock {}

/// A forked child has its own stock: another thread of the parent may have held the lock.
static STOCK: PerProcess<Mutex<Stock>> = PerProcess::new();

/// Allocates `size` bytes, aligned to 16. Also returns their chunk, to which they are given back.
#[inline]
pub(crate) fn take(size: usize) -> (*mut u8, *mut Chunk) {
    let size = size.next_multiple_of(16);
    if size > CHUNK / 4 {
        return take_large(size);
    }
    FILLING.with(|filling| {
        let mut chunk = filling.chunk.get();
        if chunk.is_null() || filling.used.get() + size > CHUNK {
            filling.retire();
            chunk = new_chunk();
            filling.chunk.set(chunk);
            filling.used.set(HEAD);
            filling.allocations.set(0);
        }
        let at = filling.used.get();
        filling.used.set(at + size);
        filling.allocations.set(filling.allocations.get() + 1);
        // SAFETY: `at + size` is within the chunk.
        (unsafe { chunk.cast::<u8>().add(at) }, chunk)
    })
}

/// Returns the chunk of an allocation of `size` bytes by [`take`].
#[inline]
pub(crate) fn chunk_of(address: *mut u8, size: usize) -> *mut Chunk {
    if size.next_multiple_of(16) > CHUNK / 4 {
        // A large allocation has a chunk of its own.
        address.wrapping_sub(HEAD).cast()
    } else {
        // Chunks are adjacent in a block, each at a multiple of its size.
        address.map_addr(|address| address & !(CHUNK - 1)).cast()
    }
}

/// Gives back a number of allocations of a chunk.
///
/// # Safety
///
/// The allocations were taken from this chunk, and are no longer used.
#[inline]
pub(crate) unsafe fn give_back(chunk: *mut Chunk, allocations: usize) {
    // SAFETY: a chunk lives as long as one of its allocations.
    if unsafe { &*chunk }.live.fetch_sub(allocations, Ordering::AcqRel) == allocations {
        free(chunk);
    }
}

/// Returns the pages of unused chunks to the system.
pub(crate) fn trim() {
    STOCK.get().lock().trim(0);
}

impl Filling {
    /// Closes the chunk: from now on, returning its last allocation frees it.
    fn retire(&self) {
        let chunk = self.chunk.replace(ptr::null_mut());
        if !chunk.is_null() {
            // While the chunk was open, `live` was OPEN less the allocations given back; now it is the allocations
            // taken less those.
            let less = OPEN - self.allocations.get();
            // SAFETY: an open chunk is alive.
            if unsafe { &*chunk }.live.fetch_sub(less, Ordering::AcqRel) == less {
                free(chunk);
            }
        }
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        self.retire();
    }
}

#[cold]
fn take_large(size: usize) -> (*mut u8, *mut Chunk) {
    let chunk = allocate(HEAD + size, align_of::<Chunk>());
    // SAFETY: the memory was just allocated, and is large enough for the head and `size` bytes.
    unsafe {
        chunk.write(Chunk { live: AtomicUsize::new(1), size: HEAD + size });
        (chunk.cast::<u8>().add(HEAD), chunk)
    }
}

#[cold]
fn new_chunk() -> *mut Chunk {
    let chunk = STOCK.get().lock().take();
    // SAFETY: the chunk has no other owner, and is large enough for its head.
    unsafe { chunk.write(Chunk { live: AtomicUsize::new(OPEN), size: CHUNK }) };
    chunk
}

#[cold]
fn free(chunk: *mut Chunk) {
    // SAFETY: the allocations of the chunk are no longer used; its head stays valid.
    let size = unsafe { &*chunk }.size;
    if size == CHUNK {
        STOCK.get().lock().put_back(chunk);
        return;
    }
    if let Ok(layout) = Layout::from_size_align(size, align_of::<Chunk>()) {
        // SAFETY: the chunk was allocated with this layout.
        unsafe { dealloc(chunk.cast(), layout) };
    }
}

impl Stock {
    fn take(&mut self) -> *mut Chunk {
        if let Some(chunk) = self.spare.pop().or_else(|| self.without_pages.pop()) {
            return chunk;
        }
        let block = allocate(BLOCK * CHUNK, CHUNK).cast::<u8>();
        self.blocks.push(block);
        // SAFETY: the addresses are within the block.
        self.without_pages
            .extend((1..BLOCK).rev().map(|number| unsafe { block.add(number * CHUNK) }.cast::<Chunk>()));
        block.cast()
    }

    fn put_back(&mut self, chunk: *mut Chunk) {
        self.spare.push(chunk);
        self.trim(KEPT);
    }

    fn trim(&mut self, kept: usize) {
        for chunk in self.spare.drain(kept.min(self.spare.len())..) {
            // SAFETY: a spare chunk has no owner that reads it, and it begins with a page.
            unsafe { give_up_pages(chunk.cast(), CHUNK) };
            self.without_pages.push(chunk);
        }
    }
}

fn allocate(size: usize, align: usize) -> *mut Chunk {
    let Ok(layout) = Layout::from_size_align(size, align) else { panic!("a message of {size} bytes") };
    // SAFETY: the size is not zero.
    let chunk = unsafe { alloc(layout) };
    if chunk.is_null() {
        handle_alloc_error(layout);
    }
    chunk.cast()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunk_follows_from_address_and_size() {
        for size in [1, 144, 5000, CHUNK / 4 - 1, CHUNK / 4, CHUNK / 4 + 1, CHUNK, 10 * CHUNK] {
            for _ in 0..100 {
                let (address, chunk) = take(size);
                assert_eq!(chunk_of(address, size), chunk, "{size}");
                // SAFETY: the allocation is given back once.
                unsafe { give_back(chunk, 1) };
            }
        }
    }

    #[test]
    fn chunk_is_freed_when_any_thread_returns_its_last_allocation() {
        // Other tests use the same stock: one of them may take what this test gave back.
        assert!((0..50).any(|_| chunks_become_spare()));
        trim();
        let (address, chunk) = take(CHUNK / 4);
        // SAFETY: the allocation has this number of bytes, and is given back once.
        unsafe {
            address.write_bytes(7, CHUNK / 4);
            give_back(chunk, 1);
        }
    }

    /// Gives back the allocations of several chunks in another thread. Returns whether there are spare chunks then.
    fn chunks_become_spare() -> bool {
        let mut allocations = Vec::new();
        for _ in 0..5000 {
            let (address, chunk) = take(100);
            // SAFETY: the allocation has 100 bytes.
            unsafe { address.write_bytes(7, 100) };
            allocations.push((address as usize, chunk as usize));
        }
        let mut addresses: Vec<_> = allocations.iter().map(|(address, _)| *address).collect();
        addresses.sort_unstable();
        addresses.dedup();
        assert_eq!(addresses.len(), 5000);
        assert!(addresses.windows(2).all(|pair| pair[1] - pair[0] >= 112));
        std::thread::spawn(move || {
            for (_, chunk) in allocations.into_iter().rev() {
                // SAFETY: each allocation is given back once.
                unsafe { give_back(chunk as *mut Chunk, 1) };
            }
        })
        .join()
        .unwrap();
        !STOCK.get().lock().spare.is_empty()
    }
}
