//! The border between C and Rust: every exported function runs inside [`guarded`], reads its arguments through the helpers
//! here, and answers something sensible to NULL, to handles of another kind and to handles that are gone.

use std::{
    ffi::{CStr, c_char, c_void},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Once,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use crate::{codes::code, error::set_last};

/// An object that C holds a pointer to. Its first field says what it is, as long as it is there.
///
/// # Safety
///
/// The type is `repr(C)` and its first field is the [`Tag`].
pub(crate) unsafe trait Handle {
    /// What the tag holds.
    const KIND: u32;
}

/// Says what kind of object this is; zero once it is gone.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Tag(AtomicU32);

impl Tag {
    pub(crate) const fn of<T: Handle>() -> Self {
        Self(AtomicU32::new(T::KIND))
    }

    /// Whoever still uses the pointer gets an error, as long as nothing else took the memory.
    pub(crate) fn clear(&self) {
        self.0.store(0, Ordering::Release);
    }

    /// Clears the tag of what C gives up; false for NULL, for other things, and for everybody but the first.
    ///
    /// # Safety
    ///
    /// As for [`handle`].
    pub(crate) unsafe fn take<T: Handle>(pointer: *const T) -> bool {
        if is_no_address(pointer) {
            return false;
        }
        // SAFETY: as for `handle`.
        let tag = unsafe { &*pointer.cast::<AtomicU32>() };
        tag.compare_exchange(T::KIND, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Makes it the tag of another kind, if it is of the one that is said.
    pub(crate) fn change(&self, from: u32, to: u32) -> bool {
        self.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    pub(crate) fn kind(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }
}

/// NULL, a small number or an odd one: there is no object there.
#[inline]
fn is_no_address<T>(pointer: *const T) -> bool {
    (pointer as usize) < 4096 || !pointer.is_aligned()
}

/// The object behind a handle, unless the handle is NULL, of another kind, or gone.
///
/// # Safety
///
/// `pointer` is NULL or points to readable memory that lives as long as `'a`: an object of this library.
#[inline]
pub(crate) unsafe fn handle<'a, T: Handle>(pointer: *const T) -> Option<&'a T> {
    if is_no_address(pointer) {
        return None;
    }
    // SAFETY: the caller vouches for the memory; every handle begins with a tag, and no other type is assumed before the
    // tag says so.
    let tag = unsafe { &*pointer.cast::<AtomicU32>() };
    if tag.load(Ordering::Acquire) != T::KIND {
        return None;
    }
    // SAFETY: the tag says that this is a live `T`.
    Some(unsafe { &*pointer })
}

/// What an object's tag says, unless there is no object.
///
/// # Safety
///
/// As for [`handle`], but for the kind: whatever is there begins with a tag.
pub(crate) unsafe fn tag<'a, T: Handle>(pointer: *const T) -> Option<&'a Tag> {
    // SAFETY: as the caller says.
    (!is_no_address(pointer)).then(|| unsafe { &*pointer.cast::<Tag>() })
}

/// Runs a call. A panic ends here: it becomes `otherwise`, and its text goes to standard error as a log line.
#[inline]
pub(crate) fn guarded<R>(otherwise: R, call: impl FnOnce() -> R) -> R {
    if FORKED.load(Ordering::Relaxed) {
        return otherwise;
    }
    catch_unwind(AssertUnwindSafe(call)).unwrap_or(otherwise)
}

/// The same for a call with a handle: a panic is a bug of the library, after which the client can't go on. The
/// application gets its text as a fatal error.
#[inline]
pub(crate) fn guarded_for<R>(handle: impl Blamed, otherwise: R, call: impl FnOnce() -> R) -> R {
    if FORKED.load(Ordering::Relaxed) {
        return otherwise;
    }
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(answer) => answer,
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
            let told = || handle.blame(&format!("a bug of the library, please report it: {text}"));
            // Whoever panics while being told of a panic is told nothing more.
            let _ = catch_unwind(AssertUnwindSafe(told));
            set_last(code::_FATAL);
            otherwise
        }
    }
}

/// What a call was about when it panicked.
pub(crate) trait Blamed: Copy {
    /// Ends the client.
    fn blame(self, text: &str);
}

/// The same for calls that only read memory of the process: they work in a forked child, too.
#[inline]
pub(crate) fn guarded_local<R>(otherwise: R, call: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or(otherwise)
}

/// This process is a fork of the one that the I/O threads run in.
static FORKED: AtomicBool = AtomicBool::new(false);

/// True in a forked child, where no thread of the library is.
pub(crate) fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// From now on a fork is noticed.
pub(crate) fn watch_forks() {
    static ONCE: Once = Once::new();
    extern "C" fn in_child() {
        FORKED.store(true, Ordering::Relaxed);
    }
    ONCE.call_once(|| {
        // SAFETY: the handler only stores to an atomic, which is allowed between fork and exec.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

/// A C text as UTF-8; what is no UTF-8 is replaced.
///
/// # Safety
///
/// `text` is NULL or ends with a zero byte.
pub(crate) unsafe fn text<'a>(text: *const c_char) -> Option<std::borrow::Cow<'a, str>> {
    // SAFETY: as the caller says.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy())
}

/// Bytes of the application; `None` for NULL.
///
/// # Safety
///
/// `pointer` is NULL or has `length` readable bytes for as long as `'a`.
#[inline]
pub(crate) unsafe fn bytes<'a>(pointer: *const c_void, length: usize) -> Option<&'a [u8]> {
    // SAFETY: as the caller says.
    (!pointer.is_null()).then(|| unsafe { std::slice::from_raw_parts(pointer.cast(), length) })
}

/// Writes a sentence to the application's buffer, cut to its size and always with a zero byte.
///
/// # Safety
///
/// `buffer` is NULL or has `size` writable bytes.
pub(crate) unsafe fn put_text(buffer: *mut c_char, size: usize, text: &str) {
    if buffer.is_null() || size == 0 {
        return;
    }
    let mut end = text.len().min(size - 1);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    // SAFETY: `end` is less than `size`.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), buffer, end);
        *buffer.add(end) = 0;
    }
}

/// A copy of a text from `malloc`, for C to free.
pub(crate) fn malloc_text(text: &[u8]) -> *mut c_char {
    // SAFETY: the memory has room for the text and a zero byte.
    unsafe {
        let copy = libc::malloc(text.len() + 1).cast::<c_char>();
        if !copy.is_null() {
            std::ptr::copy_nonoverlapping(text.as_ptr().cast(), copy, text.len());
            *copy.add(text.len()) = 0;
        }
        copy
    }
}

/// A pointer of the application that is only carried around.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Opaque(pub(crate) *mut c_void);

// SAFETY: nobody here looks behind it; the application said that it may come back in any thread.
unsafe impl Send for Opaque {}
// SAFETY: as above.
unsafe impl Sync for Opaque {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        client::{Client, rd_kafka_destroy, rd_kafka_new},
        codes::code,
        event::{
            rd_kafka_event_destroy, rd_kafka_event_error, rd_kafka_event_error_is_fatal,
            rd_kafka_event_error_string,
        },
        queue::{rd_kafka_queue_destroy, rd_kafka_queue_get_main, rd_kafka_queue_poll},
    };

    #[test]
    fn a_panic_inside_a_call_is_a_fatal_error_of_its_client_and_of_no_other() {
        // SAFETY: handles and texts as the header demands.
        unsafe {
            let new = || rd_kafka_new(0, std::ptr::null_mut(), std::ptr::null_mut(), 0);
            let (broken, other) = (new(), new());
            assert_eq!(guarded_for(broken, -1, || -> i32 { panic!("the {} is odd", "number") }), -1);
            assert!(Client::of(other).unwrap().fatal().is_none());
            let (is, text) = Client::of(broken).unwrap().fatal().unwrap();
            assert_eq!(is, code::_FAIL);
            assert!(text.contains("the number is odd"), "{text}");
            let queue = rd_kafka_queue_get_main(broken);
            let event = rd_kafka_queue_poll(queue, 1000);
            assert_eq!(
                (rd_kafka_event_error(event), rd_kafka_event_error_is_fatal(event)),
                (code::_FATAL, 1)
            );
            let text = CStr::from_ptr(rd_kafka_event_error_string(event)).to_str().unwrap();
            assert!(text.contains("the number is odd"), "{text}");
            rd_kafka_event_destroy(event);
            rd_kafka_queue_destroy(queue);
            rd_kafka_destroy(broken);
            rd_kafka_destroy(other);
        }
    }
}
