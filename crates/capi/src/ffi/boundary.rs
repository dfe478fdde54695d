//! The border between C and Rust: `export!` runs every exported function inside [`guarded_for`], [`guarded_each`] or
//! [`guarded_local`].
//! The functions read their arguments through the helpers here, and return a defined value for NULL, for handles of
//! another kind and for destroyed handles.

use std::{
    ffi::{CStr, CString, c_char, c_void},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicU32, Ordering},
};

use ottla_net::process::Generation;

use crate::ffi::{cancel::Uncancelled, codes::code, last_error::set_last};

/// An object that C holds a pointer to. Its first field is a tag that identifies its type while it is alive.
///
/// # Safety
///
/// The type is `repr(C)` and its first field, or the one at `TAG_AT`, is the [`Tag`].
pub(crate) unsafe trait Handle {
    /// The value of the tag of a live object.
    const KIND: u32;
    /// The offset of the tag in bytes, for the type whose first field programs read.
    const TAG_AT: usize = 0;

    /// Returns true for the tags of live objects. Objects that belong to another object have a different tag; C may
    /// read them, but not destroy them.
    #[inline]
    fn is_live(kind: u32) -> bool {
        kind == Self::KIND
    }
}

/// The kind of an object; zero once the object is destroyed.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Tag {
    kind: AtomicU32,
    /// The process that created the object, for kinds that need its threads.
    generation: Generation,
}

impl Tag {
    pub(crate) fn of<T: Handle>() -> Self {
        Self { kind: AtomicU32::new(T::KIND), generation: Generation::current() }
    }

    /// Clears the tag: calls that still use the pointer get an error, as long as the memory is not reused.
    pub(crate) fn clear(&self) {
        self.kind.store(0, Ordering::Release);
    }

    /// Clears the tag of an object that C destroys. Returns true for the first call with a live object of this kind.
    ///
    /// # Safety
    ///
    /// As for [`handle`].
    pub(crate) unsafe fn take<T: Handle>(pointer: *const T) -> bool {
        if is_no_address(pointer) {
            return false;
        }
        // SAFETY: as for `handle`.
        let tag = unsafe { &*pointer.byte_add(T::TAG_AT).cast::<AtomicU32>() };
        tag.compare_exchange(T::KIND, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Replaces the tag `from` of an object by the tag of another kind; does nothing if the object has another tag.
    pub(crate) fn change(&self, from: u32, to: u32) -> bool {
        self.kind.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    pub(crate) fn kind(&self) -> u32 {
        self.kind.load(Ordering::Acquire)
    }
}

/// Returns true for NULL, small numbers and odd ones: no object has such an address.
#[inline]
pub(crate) fn is_no_address<T>(pointer: *const T) -> bool {
    (pointer as usize) < 4096 || !pointer.is_aligned()
}

/// Returns the object behind a handle, unless the handle is NULL, of another kind, or destroyed.
///
/// # Safety
///
/// `pointer` is NULL or points to readable memory that lives as long as `'a`: an object of this library.
#[inline]
pub(crate) unsafe fn handle<'a, T: Handle>(pointer: *const T) -> Option<&'a T> {
    if is_no_address(pointer) {
        return None;
    }
    // SAFETY: the memory is readable by the contract of this function. Every handle begins with a tag, and no other
    // type is assumed before the tag is checked.
    let tag = unsafe { &*pointer.byte_add(T::TAG_AT).cast::<AtomicU32>() };
    if tag.load(Ordering::Acquire) != T::KIND {
        return None;
    }
    // SAFETY: the tag identifies a live `T`.
    Some(unsafe { &*pointer })
}

/// Returns the tag of an object, unless the pointer can't be an object.
///
/// # Safety
///
/// As for [`handle`], but the object may be of any kind: all kinds begin with a tag.
pub(crate) unsafe fn tag<'a, T: Handle>(pointer: *const T) -> Option<&'a Tag> {
    // SAFETY: by the contract of this function.
    (!is_no_address(pointer)).then(|| unsafe { &*pointer.byte_add(T::TAG_AT).cast::<Tag>() })
}

/// Runs a call with a handle. A panic is a bug of the library after which the client can't continue: the application
/// gets the panic's text as a fatal error.
#[inline]
pub(crate) fn guarded_for<R>(handle: impl Blamed, otherwise: R, call: impl FnOnce() -> R) -> R {
    let _uncancelled = Uncancelled::begin();
    guarded_each(handle, otherwise, call)
}

/// The same for a call that is made for each message: it delays the cancellation of the thread itself, where there is a
/// cancellation point.
#[inline]
pub(crate) fn guarded_each<R>(handle: impl Blamed, otherwise: R, call: impl FnOnce() -> R) -> R {
    if handle.is_inherited() {
        return otherwise;
    }
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result,
        Err(panic) => {
            let _uncancelled = Uncancelled::begin();
            let text = text_of(&*panic);
            let report = || handle.blame(&format!("a bug of the library, please report it: {text}"));
            // A further panic while the first one is reported is dropped.
            let _ = catch_unwind(AssertUnwindSafe(report));
            set_last(code::_FATAL);
            otherwise
        }
    }
}

/// Returns the text of a panic.
pub(crate) fn text_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

/// The handle of a call, which receives the report of a panic.
pub(crate) trait Blamed: Copy {
    /// Returns true in a forked child for objects of its parent: the threads that they need are not in this process,
    /// and their locks may be locked permanently.
    fn is_inherited(self) -> bool;

    /// Ends the client with a fatal error.
    fn blame(self, text: &str);
}

/// Returns true in a forked child for an object that its parent created.
///
/// # Safety
///
/// As for [`handle`], but the object may be of any kind: all kinds begin with a tag.
#[inline]
pub(crate) unsafe fn is_inherited<T: Handle>(pointer: *const T) -> bool {
    // SAFETY: by the contract of this function.
    let tag = unsafe { tag(pointer) };
    // At another place than the beginning, an object of another kind has no tag.
    tag.is_some_and(|tag| (T::TAG_AT == 0 || T::is_live(tag.kind())) && !tag.generation.is_current())
}

/// Runs a call that works in a forked child on objects of its parent, or that has no handle: it uses only memory of the
/// process, and takes no lock that another thread may have held. A panic ends here: the call returns `otherwise`, and
/// the text goes to standard error.
#[inline]
pub(crate) fn guarded_local<R>(otherwise: R, call: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or(otherwise)
}

/// Returns a C text as UTF-8, with replacement characters for other bytes.
///
/// # Safety
///
/// `text` is NULL or ends with a zero byte.
pub(crate) unsafe fn text<'a>(text: *const c_char) -> Option<std::borrow::Cow<'a, str>> {
    // SAFETY: by the contract of this function.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy())
}

/// Returns bytes of the application; `None` for NULL.
///
/// # Safety
///
/// `pointer` is NULL or has `length` readable bytes for as long as `'a`.
#[inline]
pub(crate) unsafe fn bytes<'a>(pointer: *const c_void, length: usize) -> Option<&'a [u8]> {
    // SAFETY: by the contract of this function.
    (!pointer.is_null()).then(|| unsafe { std::slice::from_raw_parts(pointer.cast(), length) })
}

/// Returns a text for C. The caller keeps it alive as long as C reads it.
pub(crate) fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}

/// Writes a text to the application's buffer, truncated to its size and always with a zero byte.
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

/// Returns a copy of a text from `malloc`, which C frees.
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

/// A pointer of the application that the library only passes back.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Opaque(pub(crate) *mut c_void);

// SAFETY: the library never dereferences it, and the interface passes it back in any thread.
unsafe impl Send for Opaque {}
// SAFETY: as above.
unsafe impl Sync for Opaque {}

#[cfg(test)]
mod tests {
    use std::{
        ffi::{CString, c_int},
        ptr,
        sync::atomic::AtomicUsize,
        thread,
        time::{Duration, Instant},
    };

    use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};
    use ottla_net::injection::{InjectionPoint as IoPoint, is_armed, panic_at};

    use super::*;
    use crate::{
        client::{
            background_events::rd_kafka_queue_get_background,
            conf::{
                rd_kafka_conf_new, rd_kafka_conf_set, rd_kafka_conf_set_background_event_cb,
                rd_kafka_conf_set_dr_msg_cb, rd_kafka_conf_set_error_cb, rd_kafka_conf_set_opaque,
            },
            create::rd_kafka_new,
            destroy::rd_kafka_destroy,
            event::Event,
            event_exports::{
                rd_kafka_event_destroy, rd_kafka_event_error, rd_kafka_event_error_is_fatal,
                rd_kafka_event_error_string,
            },
            fatal::rd_kafka_fatal_error,
            handle::Client,
            queue::exports::{rd_kafka_queue_destroy, rd_kafka_queue_get_main, rd_kafka_queue_poll},
            running::{rd_kafka_flush, rd_kafka_outq_len},
            serve::rd_kafka_poll,
            topic::{Topic, rd_kafka_topic_destroy, rd_kafka_topic_new},
            topic_conf::{rd_kafka_topic_conf_new, rd_kafka_topic_conf_set},
        },
        ffi::{
            codes::{RespErr, code},
            error::rd_kafka_last_error,
            injection::{ARMED, InjectionPoint},
            types::{F_COPY, rd_kafka_message_t, rd_kafka_t},
        },
        produce::rd_kafka_produce,
    };

    #[test]
    fn panic_in_a_call_is_a_fatal_error_of_its_client_alone() {
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

    /// The events that the callbacks of one client received.
    #[derive(Default)]
    struct Seen {
        delivered: AtomicUsize,
        failed: AtomicUsize,
        fatal: AtomicUsize,
    }

    unsafe extern "C" fn on_report(
        _: *const rd_kafka_t,
        message: *const rd_kafka_message_t,
        seen: *mut c_void,
    ) {
        // SAFETY: the opaque pointer is the test's own, and the message is valid during the callback.
        unsafe {
            let seen = &*seen.cast::<Seen>();
            let counter = if (*message).err == code::NO_ERROR { &seen.delivered } else { &seen.failed };
            counter.fetch_add(1, Ordering::SeqCst);
        }
    }

    unsafe extern "C" fn on_error(_: *const rd_kafka_t, error: RespErr, _: *const c_char, seen: *mut c_void) {
        // SAFETY: the opaque pointer is the test's own.
        unsafe {
            (*seen.cast::<Seen>()).fatal.fetch_add(usize::from(error == code::_FATAL), Ordering::SeqCst)
        };
    }

    unsafe extern "C" fn on_event(_: *const rd_kafka_t, event: *mut Event, _: *mut c_void) {
        // SAFETY: the event belongs to this function.
        unsafe { rd_kafka_event_destroy(event) };
    }

    const SOON: Duration = Duration::from_secs(20);

    /// # Safety
    ///
    /// `seen` lives as long as the client.
    unsafe fn client(servers: &str, id: &str, seen: &Seen, background: bool) -> *const Client {
        // SAFETY: handles and texts as the header demands.
        unsafe {
            let conf = rd_kafka_conf_new();
            for (name, value) in [("bootstrap.servers", servers), ("client.id", id), ("linger.ms", "1")] {
                let (name, value) = (CString::new(name).unwrap(), CString::new(value).unwrap());
                assert_eq!(rd_kafka_conf_set(conf, name.as_ptr(), value.as_ptr(), ptr::null_mut(), 0), 0);
            }
            rd_kafka_conf_set_opaque(conf, ptr::from_ref(seen).cast_mut().cast());
            rd_kafka_conf_set_dr_msg_cb(conf, Some(on_report));
            rd_kafka_conf_set_error_cb(conf, Some(on_error));
            if background {
                rd_kafka_conf_set_background_event_cb(conf, Some(on_event));
            }
            let mut why = [0; 200];
            let client = rd_kafka_new(0, conf, why.as_mut_ptr(), why.len());
            assert!(!client.is_null(), "{:?}", CStr::from_ptr(why.as_ptr()));
            client
        }
    }

    unsafe fn produce(topic: *const Topic) -> c_int {
        // SAFETY: the caller passes a topic; the bytes are copied.
        unsafe {
            rd_kafka_produce(
                topic,
                0,
                F_COPY,
                c"x".as_ptr().cast_mut().cast(),
                1,
                ptr::null(),
                0,
                ptr::null_mut(),
            )
        }
    }

    /// Returns the text of the first fatal error; `None` before.
    unsafe fn fatal_text(client: *const Client) -> String {
        let start = Instant::now();
        let mut text = [0; 500];
        // SAFETY: the caller passes a client, and the buffer has the size that is passed.
        unsafe {
            while rd_kafka_fatal_error(client, text.as_mut_ptr(), text.len()) == code::NO_ERROR {
                assert!(start.elapsed() < SOON, "no fatal error");
                thread::sleep(Duration::from_millis(2));
            }
            CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned()
        }
    }

    /// The location of an injected panic: in this library, or on the I/O threads.
    #[derive(Clone, Copy, Debug)]
    enum Where {
        Here(InjectionPoint),
        Io(IoPoint),
    }

    #[test]
    fn panic_in_any_thread_is_a_fatal_error_of_its_client_alone() {
        let cluster = EmbeddedCluster::start(ClusterOptions { partitions: 1, ..ClusterOptions::default() });
        let cluster = cluster.unwrap();
        let servers = cluster.bootstrap_servers();
        let io = [IoPoint::Socket, IoPoint::BrokerWake, IoPoint::Output, IoPoint::Timer].map(Where::Io);
        let here =
            [InjectionPoint::Produce, InjectionPoint::Serve, InjectionPoint::Background].map(Where::Here);
        for place in here.into_iter().chain(io) {
            let (seen, other_seen) = (Seen::default(), Seen::default());
            let id = format!("panics-{place:?}");
            // SAFETY: handles and texts as the header demands.
            unsafe {
                let broken =
                    client(&servers, &id, &seen, matches!(place, Where::Here(InjectionPoint::Background)));
                let other = client(&servers, "other", &other_seen, false);
                // A topic with its own configuration belongs to the same client.
                let conf = rd_kafka_topic_conf_new();
                let (name, value) = (c"request.required.acks".as_ptr(), c"1".as_ptr());
                assert_eq!(rd_kafka_topic_conf_set(conf, name, value, ptr::null_mut(), 0), 0);
                let (topic, other_topic) = (
                    rd_kafka_topic_new(broken, c"panics".as_ptr(), conf),
                    rd_kafka_topic_new(other, c"panics".as_ptr(), ptr::null_mut()),
                );
                assert_eq!(
                    (produce(topic), rd_kafka_flush(broken, 20_000)),
                    (0, code::NO_ERROR),
                    "{place:?}"
                );
                match place {
                    Where::Here(place) => ARMED.lock().push((place, broken as usize)),
                    Where::Io(place) => panic_at(&id, place),
                }
                let mut taken = 1;
                match place {
                    Where::Here(InjectionPoint::Produce) => {
                        assert_eq!((produce(topic), rd_kafka_last_error()), (-1, code::_FATAL));
                    }
                    Where::Here(InjectionPoint::Background) => {
                        // The background thread checks for injected panics when an event arrives.
                        let queue = rd_kafka_queue_get_background(broken);
                        crate::client::queue::exports::rd_kafka_queue_yield(queue);
                        rd_kafka_queue_destroy(queue);
                    }
                    _ => {
                        let start = Instant::now();
                        let is_coming = |place| match place {
                            Where::Here(_) => !ARMED.lock().is_empty(),
                            Where::Io(place) => is_armed(&id, place),
                        };
                        while is_coming(place) {
                            assert!(start.elapsed() < SOON, "{place:?}");
                            taken += usize::from(produce(topic) == 0);
                            rd_kafka_poll(broken, 1);
                        }
                    }
                }
                let text = fatal_text(broken);
                assert!(text.contains("injected at"), "{place:?}: {text}");
                assert_eq!((produce(topic), rd_kafka_last_error()), (-1, code::_FATAL), "{place:?}");
                let start = Instant::now();
                while seen.fatal.load(Ordering::SeqCst) == 0 {
                    assert!(start.elapsed() < SOON, "{place:?}");
                    rd_kafka_poll(broken, 10);
                }
                if let Where::Io(_) = place {
                    rd_kafka_flush(broken, 20_000);
                    let reported = seen.delivered.load(Ordering::SeqCst) + seen.failed.load(Ordering::SeqCst);
                    assert_eq!((reported, rd_kafka_outq_len(broken)), (taken, 0), "{place:?}");
                }
                // The other client continues.
                assert_eq!(
                    (produce(other_topic), rd_kafka_flush(other, 20_000)),
                    (0, code::NO_ERROR),
                    "{place:?}"
                );
                assert_eq!(other_seen.delivered.load(Ordering::SeqCst), 1, "{place:?}");
                assert_eq!(other_seen.fatal.load(Ordering::SeqCst), 0, "{place:?}");
                let start = Instant::now();
                rd_kafka_topic_destroy(topic);
                rd_kafka_destroy(broken);
                assert!(start.elapsed() < SOON / 2, "{place:?}");
                rd_kafka_topic_destroy(other_topic);
                rd_kafka_destroy(other);
            }
        }
    }

    #[test]
    fn panic_in_resolver_thread_is_a_fatal_error_of_its_client() {
        let cluster = EmbeddedCluster::start(ClusterOptions { partitions: 1, ..ClusterOptions::default() });
        let cluster = cluster.unwrap();
        let servers = cluster.bootstrap_servers().replace("127.0.0.1", "localhost");
        let seen = Seen::default();
        panic_at("panics-resolving", IoPoint::Resolve);
        // SAFETY: handles and texts as the header demands.
        unsafe {
            let broken = client(&servers, "panics-resolving", &seen, false);
            let topic = rd_kafka_topic_new(broken, c"panics".as_ptr(), ptr::null_mut());
            let taken = usize::from(produce(topic) == 0);
            let text = fatal_text(broken);
            assert!(text.contains("injected at Resolve"), "{text}");
            let start = Instant::now();
            while seen.fatal.load(Ordering::SeqCst) == 0 {
                assert!(start.elapsed() < SOON);
                rd_kafka_poll(broken, 10);
            }
            assert_eq!(rd_kafka_flush(broken, 20_000), code::NO_ERROR);
            assert_eq!((seen.failed.load(Ordering::SeqCst), rd_kafka_outq_len(broken)), (taken, 0));
            rd_kafka_topic_destroy(topic);
            rd_kafka_destroy(broken);
        }
    }
}
