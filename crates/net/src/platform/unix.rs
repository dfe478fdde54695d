//! Linux, macOS and other systems with POSIX.

use std::{
    ffi::{CStr, c_void},
    fs::Metadata,
    net::SocketAddr,
    os::fd::AsRawFd,
    ptr,
    time::Duration,
};

use mio::Registry;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
use mio::Token;
use socket2::SockAddr;

use crate::driver::Ready;

/// EINPROGRESS, the error of a connect that continues in the background.
#[cfg(target_os = "linux")]
pub const IN_PROGRESS: i32 = 115;
#[cfg(not(target_os = "linux"))]
pub const IN_PROGRESS: i32 = 36;

/// Returns the name of an address, if it has one. Blocks in the system's resolver.
pub fn name_of(address: SocketAddr) -> Option<String> {
    let address = SockAddr::from(address);
    let mut name = [0u8; 1025];
    // SAFETY: the address has the length that is passed with it, and so does the buffer.
    let failed = unsafe {
        libc::getnameinfo(
            address.as_ptr().cast(),
            address.len(),
            name.as_mut_ptr().cast(),
            name.len() as libc::socklen_t,
            ptr::null_mut(),
            0,
            libc::NI_NAMEREQD,
        )
    };
    let end = name.iter().position(|byte| *byte == 0)?;
    let name = std::str::from_utf8(&name[..end]).ok()?;
    (failed == 0 && !name.is_empty()).then(|| name.to_owned())
}

/// A library that stays loaded.
#[derive(Clone, Copy, Debug)]
pub struct Loaded(*mut c_void);

impl Loaded {
    /// Loads a library, and runs its initialization; `None` if the system does not have it.
    pub fn open(name: &CStr) -> Option<Self> {
        // SAFETY: the name is a C string; loading runs the initialization of a library that the caller chose.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        (!handle.is_null()).then_some(Self(handle))
    }

    /// Returns the address of a function.
    pub fn symbol(self, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: the handle is open and never closed.
        let found = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        (!found.is_null()).then_some(found)
    }
}

/// Has a function called in the child after each fork. It may only do what is permitted between fork and exec.
pub fn after_fork(in_child: extern "C" fn()) {
    // SAFETY: the caller promises that the handler is permitted there.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
}

/// Returns the number of a socket's file descriptor.
pub fn descriptor(stream: &impl AsRawFd) -> Option<i32> {
    Some(stream.as_raw_fd())
}

/// Returns what tells a file from another one of the same name.
pub fn file_id(data: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(data)
}

/// Polls what the I/O thread polls that owns the registry: waits for the time, in whole milliseconds, or until there are events, which it
/// appends. Returns false where threads can't poll together.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub fn poll(registry: &Registry, timeout: Duration, ready: &mut Vec<Ready>) -> bool {
    const MOST: usize = 64;
    let millis = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
    let mut events = [libc::epoll_event { events: 0, u64: 0 }; MOST];
    // SAFETY: the array has as many elements as are passed, and the kernel writes no more.
    let count = unsafe { libc::epoll_wait(registry.as_raw_fd(), events.as_mut_ptr(), MOST as i32, millis) };
    let Ok(count) = usize::try_from(count) else {
        return std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted;
    };
    ready.extend(events[..count].iter().map(|event| {
        let (flags, token) = (event.events, event.u64);
        let has = |flag: i32| flags & flag as u32 != 0;
        Ready {
            token: Token(token as usize),
            readable: has(libc::EPOLLIN | libc::EPOLLPRI),
            writable: has(libc::EPOLLOUT | libc::EPOLLHUP | libc::EPOLLERR),
            ending: has(libc::EPOLLHUP | libc::EPOLLRDHUP | libc::EPOLLERR),
        }
    }));
    true
}

/// Returns false: threads don't poll together here.
#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
pub fn poll(_registry: &Registry, _timeout: Duration, _ready: &mut Vec<Ready>) -> bool {
    false
}
