//! Windows.

use std::{
    ffi::{CStr, c_void},
    fs::Metadata,
    net::SocketAddr,
    ptr,
    time::Duration,
};

use mio::Registry;
use socket2::SockAddr;
use windows_sys::Win32::{
    Networking::WinSock::{NI_NAMEREQD, WSAEINPROGRESS, getnameinfo},
    System::LibraryLoader::{GetProcAddress, LoadLibraryA},
};

use crate::driver::Ready;

/// A connect that continues in the background reports WSAEWOULDBLOCK, which the standard library knows, or this.
pub const IN_PROGRESS: i32 = WSAEINPROGRESS;

/// Returns the name of an address, if it has one. Blocks in the system's resolver.
pub fn name_of(address: SocketAddr) -> Option<String> {
    let address = SockAddr::from(address);
    let mut name = [0u8; 1025];
    // SAFETY: the address has the length that is passed with it, and so does the buffer.
    let failed = unsafe {
        getnameinfo(
            address.as_ptr().cast(),
            address.len(),
            name.as_mut_ptr(),
            name.len() as u32,
            ptr::null_mut(),
            0,
            NI_NAMEREQD as i32,
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
        let handle = unsafe { LoadLibraryA(name.as_ptr().cast()) };
        (!handle.is_null()).then_some(Self(handle))
    }

    /// Returns the address of a function.
    pub fn symbol(self, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: the handle is open and never closed.
        let found = unsafe { GetProcAddress(self.0, name.as_ptr().cast()) };
        found.map(|function| function as *mut c_void)
    }
}

/// Does nothing: Windows has no fork.
pub fn after_fork(_in_child: extern "C" fn()) {}

/// Sockets have no file descriptors.
pub fn descriptor<T>(_stream: &T) -> Option<i32> {
    None
}

/// The standard library does not tell what Windows has of this kind.
pub fn file_id(_data: &Metadata) -> u64 {
    0
}

/// Returns false: threads don't poll together here.
pub fn poll(_registry: &Registry, _timeout: Duration, _ready: &mut Vec<Ready>) -> bool {
    false
}
