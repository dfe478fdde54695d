//! Counts the memory of a thread.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static NOW: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
    static TOTAL: Cell<usize> = const { Cell::new(0) };
}

/// The memory of some work, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    /// The most at a time.
    pub most: usize,
    /// All that was allocated, freed or not.
    pub total: usize,
}

/// Returns the result of `work`, and the memory that it used. May be nested.
pub fn count<T>(work: impl FnOnce() -> T) -> (T, Used) {
    let (start, total, outer) = (NOW.get(), TOTAL.get(), MOST.replace(NOW.get()));
    let result = work();
    let most = MOST.get();
    MOST.set(outer.max(most));
    (result, Used { most: usize::try_from(most - start).unwrap_or(0), total: TOTAL.get() - total })
}

struct Counting;

/// Counts a change. An exiting thread has no counters any more; its memory is not counted.
fn add(bytes: isize) {
    let _ = NOW.try_with(|now| {
        now.set(now.get() + bytes);
        let _ = MOST.try_with(|most| most.set(most.get().max(now.get())));
    });
    if let Ok(bytes) = usize::try_from(bytes) {
        let _ = TOTAL.try_with(|total| total.set(total.get().wrapping_add(bytes)));
    }
}

// SAFETY: every call is forwarded to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as isize);
        // SAFETY: the caller's contract is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as isize);
        // SAFETY: the caller's contract is the same.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // Both may exist for a moment.
        add(new_size as isize);
        add(-(layout.size() as isize));
        // SAFETY: the caller's contract is the same.
        unsafe { System.realloc(pointer, layout, new_size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        add(-(layout.size() as isize));
        // SAFETY: the caller's contract is the same.
        unsafe { System.dealloc(pointer, layout) }
    }
}
