//! The quarantine of destroyed handles. Their contents are dropped at once; the memory, with its cleared tag, is freed
//! only after [`CAPACITY`] more handles of the same kind were destroyed. A call with a destroyed handle therefore gets
//! an error.
//!
//! Live handles cost nothing extra: destroying a handle exchanges one pointer.

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

/// The number of destroyed handles of a kind whose memory is kept.
pub(crate) const CAPACITY: usize = 64;

/// The last destroyed handles of a kind.
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

/// The number of groups of boxed handles, by kind. Events are frequent; in a shared quarantine they would displace all
/// other kinds.
const KINDS: usize = 16;

static BOXED: [Quarantine; KINDS] = [const { Quarantine::new() }; KINDS];

impl Quarantine {
    pub(crate) const fn new() -> Self {
        Self { slots: [const { AtomicPtr::new(ptr::null_mut()) }; CAPACITY], next: AtomicUsize::new(0) }
    }

    /// Adds the memory of a destroyed handle. Returns the memory that it displaces, or NULL.
    fn keep(&self, dead: *mut u8) -> *mut u8 {
        let slot = self.next.fetch_add(1, Ordering::Relaxed) % CAPACITY;
        self.slots[slot].swap(dead, Ordering::AcqRel)
    }
}

/// A quarantine for structures of one type that have no tag and are marked as destroyed in another way.
pub(crate) struct PlainQuarantine {
    quarantine: Quarantine,
    free: unsafe fn(*mut u8),
}

impl PlainQuarantine {
    /// Returns an empty quarantine; `free` frees the memory that leaves it.
    pub(crate) const fn new(free: unsafe fn(*mut u8)) -> Self {
        Self { quarantine: Quarantine::new(), free }
    }

    /// Adds the memory of a structure whose contents were dropped.
    ///
    /// # Safety
    ///
    /// `free` can free the memory, and nothing uses it any longer.
    pub(crate) unsafe fn keep(&self, dead: *mut u8) {
        let oldest = self.quarantine.keep(dead);
        if !oldest.is_null() {
            // SAFETY: the oldest memory was added by this function, under the same contract.
            unsafe { (self.free)(oldest) };
        }
    }
}

/// Drops a boxed object that C destroys. NULL, objects of other kinds and objects that were destroyed before are
/// ignored.
///
/// # Safety
///
/// NULL or an object of this library that is no longer used; a `T` comes from `Box::into_raw`.
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
        // The tag is not written: other threads may be reading it.
        (&raw mut (*object.cast::<Retired>()).free).write(free::<T>);
        let oldest = BOXED[(T::KIND >> 8) as usize % KINDS].keep(object.cast());
        if !oldest.is_null() {
            ((*oldest.cast::<Retired>()).free)(oldest);
        }
    }
}

/// Frees memory whose contents were dropped.
///
/// # Safety
///
/// The memory comes from a `Box<T>`.
unsafe fn free<T>(memory: *mut u8) {
    // SAFETY: by the contract of this function.
    unsafe { dealloc(memory, Layout::new::<T>()) };
}

/// A reference-counted handle: topics, queues and clients are used by the library and by the application.
///
/// # Safety
///
/// The tag is cleared and [`end`] is called when the object is dropped, and every object went through [`begin`].
pub(crate) unsafe trait Counted: Handle {
    fn quarantine() -> &'static Quarantine;
}

/// Registers a new object to whose address C may get a pointer: its memory stays until it leaves the quarantine.
pub(crate) fn begin<T: Counted>(object: Arc<T>) -> Arc<T> {
    // The weak reference keeps the memory; `end` releases it when the memory leaves the quarantine.
    let _ = Weak::into_raw(Arc::downgrade(&object));
    object
}

/// Moves the memory of an object that is being dropped to the quarantine.
pub(crate) fn end<T: Counted>(object: &T) {
    let oldest = T::quarantine().keep(ptr::from_ref(object).cast_mut().cast());
    if !oldest.is_null() {
        // SAFETY: it is the address of an object that went through `begin`.
        drop(unsafe { Weak::from_raw(oldest.cast::<T>().cast_const()) });
    }
}

/// Returns a counted reference to the object behind a handle, unless the handle is NULL, of another kind, or destroyed.
///
/// # Safety
///
/// NULL or an object of this library; a `T` went through `begin`.
pub(crate) unsafe fn counted<T: Counted>(pointer: *const T) -> Option<Arc<T>> {
    // SAFETY: by the contract of this function. If the object is dropped meanwhile, its memory is in the quarantine and
    // the count is zero.
    unsafe {
        crate::ffi::boundary::handle(pointer)?;
        std::mem::ManuallyDrop::new(Weak::from_raw(pointer)).upgrade()
    }
}

/// A boxed handle that belongs to the library: when it is dropped, its memory goes to the quarantine.
pub(crate) struct HandleBox<T: Handle>(NonNull<T>);

// SAFETY: a `HandleBox` owns its object, as a `Box` does.
unsafe impl<T: Handle + Send> Send for HandleBox<T> {}
// SAFETY: as above.
unsafe impl<T: Handle + Sync> Sync for HandleBox<T> {}

impl<T: Handle> HandleBox<T> {
    pub(crate) fn new(object: T) -> Self {
        Self(NonNull::from(Box::leak(Box::new(object))))
    }

    /// Takes ownership of an object that C passes, unless it is NULL, of another kind, or destroyed.
    ///
    /// # Safety
    ///
    /// NULL or an object of this library whose ownership the caller passes on; a `T` comes from `Box::into_raw`.
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
        // SAFETY: the object is alive until this value is dropped.
        unsafe { self.0.as_ref() }
    }
}

impl<T: Handle> DerefMut for HandleBox<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the object is alive until this value is dropped, and this is the only reference.
        unsafe { self.0.as_mut() }
    }
}

impl<T: Handle> Drop for HandleBox<T> {
    fn drop(&mut self) {
        // SAFETY: this value owned the object; there is no other reference.
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
    use ottla_sorted::SortedSet;

    use super::*;
    use crate::ffi::boundary::handle;

    #[repr(C)]
    struct Thing {
        tag: Tag,
        _content: Arc<()>,
        _more: u64,
    }

    // SAFETY: `repr(C)`, the tag comes first. No other kind of handle has this letter.
    unsafe impl Handle for Thing {
        const KIND: u32 = 0x6f74_0001;
    }

    fn thing(content: &Arc<()>) -> *mut Thing {
        Box::into_raw(Box::new(Thing { tag: Tag::of::<Thing>(), _content: Arc::clone(content), _more: 7 }))
    }

    #[test]
    fn contents_are_dropped_at_once_and_memory_is_kept() {
        let content = Arc::new(());
        let mut last = SortedSet::new();
        for number in 0..CAPACITY * 3 {
            let one = thing(&content);
            if number > CAPACITY * 2 {
                assert!(last.insert(one as usize), "memory was used again");
            }
            // SAFETY: a `Thing`, and after `retire` memory that is in the quarantine.
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
            // SAFETY: the memory is still in the quarantine.
            assert!(unsafe { handle(one as *const Thing) }.is_none());
        }
    }
}
