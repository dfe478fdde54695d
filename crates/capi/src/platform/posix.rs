//! Linux, macOS and other systems with POSIX.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    fs::File,
    io,
    net::TcpStream,
    os::{
        fd::{AsRawFd as _, FromRawFd as _, IntoRawFd as _},
        unix::ffi::OsStrExt as _,
    },
    path::Path,
};

pub(crate) use libc::mode_t;

#[cfg(target_vendor = "apple")]
use super::apple::COARSE_WALL_CLOCK;
#[cfg(not(target_vendor = "apple"))]
use super::linux::COARSE_WALL_CLOCK;

/// The end of the names of libraries.
pub(crate) const LIBRARY_SUFFIX: &str = ".so";
/// How files are opened for reading, and for writing.
pub(crate) const READ: c_int = libc::O_RDONLY | libc::O_CLOEXEC;
pub(crate) const CREATE: c_int = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC | libc::O_CLOEXEC;

fn time_of(clock: libc::clockid_t) -> libc::timespec {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `clock_gettime` gets a writable struct.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time
}

/// Returns the milliseconds since 1970, up to a few milliseconds late.
#[inline]
pub(crate) fn coarse_wall_ms() -> i64 {
    let time = time_of(COARSE_WALL_CLOCK);
    time.tv_sec * 1000 + time.tv_nsec / 1_000_000
}

/// Returns the time of the monotonic clock that C programs read.
pub(crate) fn monotonic_nanos() -> i64 {
    let time = time_of(libc::CLOCK_MONOTONIC);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Returns pages to the system; if it does not take them, they stay.
///
/// # Safety
///
/// The bytes belong to the caller, who does not read them before it writes them, and the address is that of a page.
pub(crate) unsafe fn give_up_pages(address: *mut c_void, size: usize) {
    // SAFETY: by the contract of this function.
    unsafe { libc::madvise(address, size, libc::MADV_DONTNEED) };
}

/// Writes a line to the system's log.
///
/// # Safety
///
/// Both are texts.
pub(crate) unsafe fn syslog(level: c_int, facility: *const c_char, line: *const c_char) {
    // SAFETY: the format takes two texts.
    unsafe { libc::syslog(level.clamp(0, 7), c"%s: %s".as_ptr(), facility, line) };
}

/// Loads a library, which stays loaded. Its initialization runs.
pub(crate) fn load(path: &CStr) -> Option<*mut c_void> {
    // SAFETY: the path is a text; the application asked for this library's code to run.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    (!library.is_null()).then_some(library)
}

/// Returns the address of a function of a library.
pub(crate) fn symbol(library: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: libraries are never unloaded, and the name is a text.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// Returns the reason why the last call of [`load`] of this thread failed.
pub(crate) fn load_error() -> String {
    // SAFETY: the result is NULL or a text that lives until this thread's next call of the loader.
    unsafe {
        let error = libc::dlerror();
        if error.is_null() { String::new() } else { CStr::from_ptr(error).to_string_lossy().into_owned() }
    }
}

/// The linker marked this library: it stays in the process when the application unloads it.
pub(crate) fn stay_loaded() {}

/// Returns the name of a file as functions of the application get it.
pub(crate) fn path_text(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// True if the descriptor is one of an open regular file.
pub(crate) fn is_regular_file(fd: c_int) -> bool {
    // SAFETY: all zeroes is a valid `stat`; the kernel checks the descriptor.
    unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        libc::fstat(fd, &raw mut status) == 0 && status.st_mode & libc::S_IFMT == libc::S_IFREG
    }
}

/// Takes an open file.
///
/// # Safety
///
/// The descriptor is open, and its ownership passes to the result.
pub(crate) unsafe fn file_of(fd: c_int) -> io::Result<File> {
    // SAFETY: by the contract of this function.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// True if the descriptor is one of an open stream socket.
pub(crate) fn is_stream_socket(fd: c_int) -> bool {
    let mut kind: c_int = 0;
    let mut size = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: the kernel checks the descriptor; the addresses of result and size are valid.
    let status = unsafe {
        libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_TYPE, (&raw mut kind).cast(), &raw mut size)
    };
    status == 0 && kind == libc::SOCK_STREAM
}

/// Takes an open socket.
///
/// # Safety
///
/// The descriptor is open, and its ownership passes to the result.
pub(crate) unsafe fn stream_of(fd: c_int) -> TcpStream {
    // SAFETY: by the contract of this function.
    unsafe { TcpStream::from_raw_fd(fd) }
}

/// Returns the descriptor of a socket.
pub(crate) fn descriptor(socket: &TcpStream) -> c_int {
    socket.as_raw_fd()
}

/// Returns the descriptor of a socket, which stays open.
pub(crate) fn into_descriptor(socket: TcpStream) -> c_int {
    socket.into_raw_fd()
}

/// Closes a socket.
pub(crate) fn close_socket(fd: c_int) {
    // SAFETY: the kernel checks the descriptor.
    unsafe { libc::close(fd) };
}

/// True for the error of a connect that continues in the background.
pub(crate) const fn is_in_progress(errno: c_int) -> bool {
    errno == libc::EINPROGRESS
}

/// Returns the meaning of a result of `getaddrinfo`.
pub(crate) fn resolver_text(code: c_int, errno: &io::Error) -> String {
    if code == libc::EAI_SYSTEM {
        return errno.to_string();
    }
    // SAFETY: the function returns a text for every number.
    unsafe { CStr::from_ptr(libc::gai_strerror(code)) }.to_string_lossy().into_owned()
}
