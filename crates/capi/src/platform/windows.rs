//! Windows. A socket is a number that fits into an `int`, as the interface has it; a descriptor of a file is one of the C run-time
//! library.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    fs::File,
    io,
    net::TcpStream,
    os::windows::io::{
        AsRawSocket as _, BorrowedHandle, FromRawSocket as _, IntoRawSocket as _, RawHandle, RawSocket,
    },
    path::Path,
    ptr,
    time::{SystemTime, UNIX_EPOCH},
};

use windows_sys::Win32::{
    Networking::WinSock::{
        SO_TYPE, SOCKET, SOL_SOCKET, WSAEINPROGRESS, WSAEWOULDBLOCK, closesocket, getsockopt, send,
    },
    System::{
        LibraryLoader::{
            GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS, GET_MODULE_HANDLE_EX_FLAG_PIN, GetModuleHandleExA,
            GetProcAddress, LoadLibraryA,
        },
        Memory::{MEM_RESET, PAGE_READWRITE, VirtualAlloc},
        Performance::{QueryPerformanceCounter, QueryPerformanceFrequency},
    },
};

/// The rights of a new file.
#[allow(non_camel_case_types, reason = "the name in C")]
pub(crate) type mode_t = u16;

/// The end of the names of libraries.
pub(crate) const LIBRARY_SUFFIX: &str = ".dll";
/// How files are opened for reading, and for writing.
pub(crate) const READ: c_int = libc::O_RDONLY | libc::O_BINARY | libc::O_NOINHERIT;
pub(crate) const CREATE: c_int =
    libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC | libc::O_BINARY | libc::O_NOINHERIT;

/// The structures and numbers of `winsock2.h`, with the names that other systems have, too.
#[allow(non_camel_case_types, reason = "the names in C")]
pub(crate) mod addresses {
    use std::ffi::{c_char, c_int};

    pub(crate) use libc::sockaddr;
    use windows_sys::Win32::Networking::WinSock;

    pub(crate) const AF_UNSPEC: c_int = WinSock::AF_UNSPEC as c_int;
    pub(crate) const AF_INET: c_int = WinSock::AF_INET as c_int;
    pub(crate) const AF_INET6: c_int = WinSock::AF_INET6 as c_int;
    pub(crate) const SOCK_STREAM: c_int = WinSock::SOCK_STREAM;
    pub(crate) const IPPROTO_TCP: c_int = WinSock::IPPROTO_TCP;
    pub(crate) const AI_ADDRCONFIG: c_int = WinSock::AI_ADDRCONFIG as c_int;

    pub(crate) type sa_family_t = u16;

    #[repr(C)]
    pub(crate) struct in_addr {
        pub(crate) s_addr: u32,
    }

    #[repr(C)]
    pub(crate) struct in6_addr {
        pub(crate) s6_addr: [u8; 16],
    }

    #[repr(C)]
    pub(crate) struct sockaddr_in {
        pub(crate) sin_family: sa_family_t,
        pub(crate) sin_port: u16,
        pub(crate) sin_addr: in_addr,
        pub(crate) sin_zero: [u8; 8],
    }

    #[repr(C)]
    pub(crate) struct sockaddr_in6 {
        pub(crate) sin6_family: sa_family_t,
        pub(crate) sin6_port: u16,
        pub(crate) sin6_flowinfo: u32,
        pub(crate) sin6_addr: in6_addr,
        pub(crate) sin6_scope_id: u32,
    }

    #[repr(C, align(8))]
    pub(crate) struct sockaddr_storage {
        pub(crate) ss_family: sa_family_t,
        pub(crate) rest: [u8; 126],
    }

    #[repr(C)]
    pub(crate) struct addrinfo {
        pub(crate) ai_flags: c_int,
        pub(crate) ai_family: c_int,
        pub(crate) ai_socktype: c_int,
        pub(crate) ai_protocol: c_int,
        pub(crate) ai_addrlen: usize,
        pub(crate) ai_canonname: *mut c_char,
        pub(crate) ai_addr: *mut sockaddr,
        pub(crate) ai_next: *mut addrinfo,
    }
}

unsafe extern "C" {
    fn _errno() -> *mut c_int;
}

/// Returns the address of this thread's `errno`.
pub(crate) fn errno() -> *mut c_int {
    // SAFETY: the function has no conditions.
    unsafe { _errno() }
}

/// Returns the milliseconds since 1970.
#[inline]
pub(crate) fn coarse_wall_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_millis() as i64)
}

/// Returns the time of the monotonic clock that C programs read.
pub(crate) fn monotonic_nanos() -> i64 {
    let (mut count, mut frequency) = (0, 0);
    // SAFETY: both functions get writable numbers.
    unsafe {
        QueryPerformanceCounter(&raw mut count);
        QueryPerformanceFrequency(&raw mut frequency);
    }
    (i128::from(count) * 1_000_000_000 / i128::from(frequency.max(1))) as i64
}

/// Returns pages to the system; if it does not take them, they stay.
///
/// # Safety
///
/// The bytes belong to the caller, who does not read them before it writes them, and the address is that of a page.
pub(crate) unsafe fn give_up_pages(address: *mut c_void, size: usize) {
    // SAFETY: by the contract of this function.
    unsafe { VirtualAlloc(address, size, MEM_RESET, PAGE_READWRITE) };
}

/// Writes a line to standard error, in place of a system log.
///
/// # Safety
///
/// Both are texts.
pub(crate) unsafe fn syslog(_level: c_int, facility: *const c_char, line: *const c_char) {
    // SAFETY: by the contract of this function.
    let (facility, line) = unsafe { (CStr::from_ptr(facility), CStr::from_ptr(line)) };
    write_error(format!("{}: {}\n", facility.to_string_lossy(), line.to_string_lossy()).as_bytes());
}

/// Writes to standard error, as many bytes as it accepts.
pub(crate) fn write_error(bytes: &[u8]) {
    // SAFETY: the pointer and the length are those of a slice.
    unsafe { libc::write(libc::STDERR_FILENO, bytes.as_ptr().cast(), bytes.len() as u32) };
}

/// Writes to a socket of the application, as many bytes as it accepts; errors are ignored.
pub(crate) fn write_once(socket: c_int, bytes: &[u8]) {
    // SAFETY: the pointer and the length are those of a slice; the system checks the socket.
    unsafe { send(socket as SOCKET, bytes.as_ptr(), bytes.len() as c_int, 0) };
}

/// Loads a library, which stays loaded. Its initialization runs.
pub(crate) fn load(path: &CStr) -> Option<*mut c_void> {
    // SAFETY: the path is a text; the application asked for this library's code to run.
    let library = unsafe { LoadLibraryA(path.as_ptr().cast()) };
    (!library.is_null()).then_some(library)
}

/// Returns the address of a function of a library.
pub(crate) fn symbol(library: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: libraries are never unloaded, and the name is a text.
    let found = unsafe { GetProcAddress(library, name.as_ptr().cast()) };
    found.map(|function| function as *mut c_void)
}

/// Returns the reason why the last call of [`load`] of this thread failed.
pub(crate) fn load_error() -> String {
    io::Error::last_os_error().to_string()
}

/// Keeps this library in the process when the application unloads it: threads may return to its code later.
pub(crate) fn stay_loaded() {
    let mut module = ptr::null_mut();
    // SAFETY: the address is in this library, and the result is writable.
    unsafe {
        GetModuleHandleExA(
            GET_MODULE_HANDLE_EX_FLAG_PIN | GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS,
            stay_loaded as *const u8,
            &raw mut module,
        )
    };
}

/// Returns the name of a file as functions of the application get it.
pub(crate) fn path_text(path: &Path) -> io::Result<CString> {
    let text = path.to_str().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidFilename))?;
    Ok(CString::new(text)?)
}

/// True if the descriptor is one of an open regular file.
pub(crate) fn is_regular_file(fd: c_int) -> bool {
    // SAFETY: all zeroes is a valid `stat`; the run-time library checks the descriptor.
    unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        libc::fstat(fd, &raw mut status) == 0 && c_int::from(status.st_mode) & libc::S_IFMT == libc::S_IFREG
    }
}

/// Takes an open file.
///
/// # Safety
///
/// The descriptor is open, and its ownership passes to the result.
pub(crate) unsafe fn file_of(fd: c_int) -> io::Result<File> {
    // SAFETY: the descriptor is open until `close`; the file has a handle of its own.
    unsafe {
        let handle = BorrowedHandle::borrow_raw(libc::get_osfhandle(fd) as RawHandle);
        let file = handle.try_clone_to_owned();
        libc::close(fd);
        Ok(File::from(file?))
    }
}

/// True if the descriptor is one of an open stream socket.
pub(crate) fn is_stream_socket(fd: c_int) -> bool {
    let mut kind: c_int = 0;
    let mut size = size_of::<c_int>() as c_int;
    // SAFETY: the system checks the socket; the addresses of result and size are valid.
    let status =
        unsafe { getsockopt(fd as SOCKET, SOL_SOCKET, SO_TYPE, (&raw mut kind).cast(), &raw mut size) };
    status == 0 && kind == addresses::SOCK_STREAM
}

/// Takes an open socket.
///
/// # Safety
///
/// The socket is open, and its ownership passes to the result.
pub(crate) unsafe fn stream_of(fd: c_int) -> TcpStream {
    // SAFETY: by the contract of this function.
    unsafe { TcpStream::from_raw_socket(fd as RawSocket) }
}

/// Returns the number of a socket.
pub(crate) fn descriptor(socket: &TcpStream) -> c_int {
    socket.as_raw_socket() as c_int
}

/// Returns the number of a socket, which stays open.
pub(crate) fn into_descriptor(socket: TcpStream) -> c_int {
    socket.into_raw_socket() as c_int
}

/// Closes a socket.
pub(crate) fn close_socket(fd: c_int) {
    // SAFETY: the system checks the socket.
    unsafe { closesocket(fd as SOCKET) };
}

/// True for the error of a connect that continues in the background.
pub(crate) const fn is_in_progress(errno: c_int) -> bool {
    matches!(errno, libc::EINPROGRESS | WSAEWOULDBLOCK | WSAEINPROGRESS)
}

/// Returns the meaning of a result of `getaddrinfo`.
pub(crate) fn resolver_text(code: c_int, _errno: &io::Error) -> String {
    io::Error::from_raw_os_error(code).to_string()
}
