//! Where the memory of handles goes when they are given up. Its contents are dropped at once, the memory itself with its
//! cleared tag stays until some more handles of its sort are gone: who uses a handle too long gets an error.
//!
//! It costs the living nothing: who gives a handle up exchanges one pointer.

use std::{
    alloc::{Layout, dealloc},
    fmt,
    ops::{Deref, DerefMut},
    ptr::{self, NonNull},
    sync::{
        Arc, Weak,
        atomic::{AtomicPtr, AtomicUsize, Ordering},
    },
};

use crate::ffi::boundary::{Handle, Tag};

/// How many dead handles of a sort are kept.
pub(crate) const CAPACITY: usize = 64;

/// The last ones of a sort of handles.
pub(crate) struct Quarantine {
    slots: [AtomicPtr<u8>; CAPACITY],
    next: AtomicUsize,
}

/// The memory of an object whose contents were dropped.
#[repr(C)]
struct Retired {
    tag: Tag,
    free: unsafe fn(*mut u8),
}

/// Sorts of boxed handles, by their kinds: events come by the thousands and would push everything else out.
const KINDS: usize = 16;

static BOXED: [Quarantine; KINDS] = [const { Quarantine::new() }; KINDS];

impl Quarantine {
    pub(crate) const fn new() -> Self {
        Self { slots: [const { AtomicPtr::new(ptr::null_mut()) }; CAPACITY], next: AtomicUsize::new(0) }
    }

    /// Keeps one, and returns the one that has to make room for it, or NULL.
    fn keep(&self, dead: *mut u8) -> *mut u8 {
        let slot = self.next.fetch_add(1, Ordering::Relaxed) % CAPACITY;
        self.slots[slot].swap(dead, Ordering::AcqRel)
    }
}

/// Memory of structures without a tag, which say otherwise that they are gone; all of one type.
pub(crate) struct PlainQuarantine {
    quarantine: Quarantine,
    free: unsafe fn(*mut u8),
}

impl PlainQuarantine {
    /// `free` gets what has to make room.
    pub(crate) const fn new(free: unsafe fn(*mut u8)) -> Self {
        Self { quarantine: Quarantine::new(), free }
    }

    /// Keeps the memory of a structure whose contents are gone.
    ///
    /// # Safety
    ///
    /// `free` can free it, and it is no longer used.
    pub(crate) unsafe fn keep(&self, dead: *mut u8) {
        let oldest = self.quarantine.keep(dead);
        if !oldest.is_null() {
            // SAFETY: it came here as this one does.
            unsafe { (self.free)(oldest) };
        }
    }
}

/// Drops a boxed object that C gives up; it ignores NULL, other objects, and objects that were given up before.
///
/// # Safety
///
/// NULL or an object of this library, from `Box::into_raw` if it is a `T`, that is no longer used.
pub(crate) unsafe fn retire<T: Handle>(object: *mut T) {
    const {
        assert!(size_of::<T>() >= size_of::<Retired>() && align_of::<T>() >= align_of::<Retired>());
    }
    // SAFETY: by the contract of this function.
    unsafe {
        if !Tag::take(object.cast_const()) {
            return;
        }
        ptr::drop_in_place(object);
        // The tag stays as it is: others may be looking at it.
        (&raw mut (*object.cast::<Retired>()).free).write(free::<T>);
        let oldest = BOXED[(T::KIND >> 8) as usize % KINDS].keep(object.cast());
        if !oldest.is_null() {
            ((*oldest.cast::<Retired>()).free)(oldest);
        }
    }
}

/// Frees memory whose contents are gone.
///
/// # Safety
///
/// It comes from a box of a `T`.
unsafe fn free<T>(memory: *mut u8) {
    // SAFETY: by the contract of this function.
    unsafe { dealloc(memory, Layout::new::<T>()) };
}

/// A handle that is counted: topics, queues and clients are used by more than the application.
///
/// # Safety
///
/// The tag is cleared and [`end`] is called when the object is dropped, and every object went through [`begin`].
pub(crate) unsafe trait Counted: Handle {
    fn quarantine() -> &'static Quarantine;
}

/// From now on C may have a pointer to the object.
pub(crate) fn begin<T: Counted>(object: Arc<T>) -> Arc<T> {
    // The quarantine let go of this one.
    let _ = Weak::into_raw(Arc::downgrade(&object));
    object
}

/// The object is being dropped; its memory stays for a while.
pub(crate) fn end<T: Counted>(object: &T) {
    let oldest = T::quarantine().keep(ptr::from_ref(object).cast_mut().cast());
    if !oldest.is_null() {
        // SAFETY: it is the address of an object that went through `begin`.
        drop(unsafe { Weak::from_raw(oldest.cast::<T>().cast_const()) });
    }
}

/// A reference of its own to the object behind a handle, unless it is NULL, of another kind, or gone.
///
/// # Safety
///
/// NULL or an object of this library, from `begin` if it is a `T`.
pub(crate) unsafe fn counted<T: Counted>(pointer: *const T) -> Option<Arc<T>> {
    // SAFETY: by the contract of this function. The object may go meanwhile: then its memory is in the quarantine, and the
    // count is zero.
    unsafe {
        crate::ffi::boundary::handle(pointer)?;
        std::mem::ManuallyDrop::new(Weak::from_raw(pointer)).upgrade()
    }
}

/// A boxed handle that belongs to the library: when it is dropped, its memory stays for a while.
pub(crate) struct HandleBox<T: Handle>(NonNull<T>);

// SAFETY: it is a box.
unsafe impl<T: Handle + Send> Send for HandleBox<T> {}
// SAFETY: as above.
unsafe impl<T: Handle + Sync> Sync for HandleBox<T> {}

impl<T: Handle> HandleBox<T> {
    pub(crate) fn new(object: T) -> Self {
        Self(NonNull::from(Box::leak(Box::new(object))))
    }

    /// Takes over what C gives up, unless it is NULL, of another kind, or gone.
    ///
    /// # Safety
    ///
    /// NULL or an object of this library, from `Box::into_raw` if it is a `T`, that the caller gives up.
    pub(crate) unsafe fn from_raw(object: *mut T) -> Option<Self> {
        // SAFETY: by the contract of this function.
        unsafe { crate::ffi::boundary::handle(object.cast_const())? };
        NonNull::new(object).map(Self)
    }

    pub(crate) const fn as_ptr(&self) -> *mut T {
        self.0.as_ptr()
    }
}

impl<T: Handle> Deref for HandleBox<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the object is there until this is dropped.
        unsafe { self.0.as_ref() }
    }
}

impl<T: Handle> DerefMut for HandleBox<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and this is the only reference.
        unsafe { self.0.as_mut() }
    }
}

impl<T: Handle> Drop for HandleBox<T> {
    fn drop(&mut self) {
        // SAFETY: nobody uses it any more.
        unsafe { retire(self.0.as_ptr()) };
    }
}

impl<T: Handle + fmt::Debug> fmt::Debug for HandleBox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::ffi::boundary::handle;

    #[repr(C)]
    struct Thing {
        tag: Tag,
        _content: Arc<()>,
        _more: u64,
    }

    // SAFETY: `repr(C)`, the tag comes first. No other sort of handles has this letter.
    unsafe impl Handle for Thing {
        const KIND: u32 = 0x6f74_0001;
    }

    fn thing(content: &Arc<()>) -> *mut Thing {
        Box::into_raw(Box::new(Thing { tag: Tag::of::<Thing>(), _content: Arc::clone(content), _more: 7 }))
    }

    #[test]
    fn contents_are_dropped_at_once_and_memory_is_kept() {
        let content = Arc::new(());
        let mut last = BTreeSet::new();
        for number in 0..CAPACITY * 3 {
            let one = thing(&content);
            if number > CAPACITY * 2 {
                assert!(last.insert(one as usize), "memory was used again");
            }
            // SAFETY: a thing, and later memory that is kept.
            unsafe {
                assert!(handle(one.cast_const()).is_some());
                retire(one);
                assert_eq!(Arc::strong_count(&content), 1);
                assert!(handle(one.cast_const()).is_none());
                retire(one);
            }
        }
        assert_eq!(Arc::strong_count(&content), 1);
        for one in last {
            // SAFETY: it is one of the last ones.
            assert!(unsafe { handle(one as *const Thing) }.is_none());
        }
    }
}
