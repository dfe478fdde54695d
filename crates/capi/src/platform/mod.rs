//! What operating systems do in different ways: `errno`, clocks, the pages of unused memory, plug-ins, and the descriptors and
//! addresses that functions of the application get and return.
//!
//! | file | content |
//! |---|---|
//! | `posix` | Linux, macOS and their relatives, with what differs among them in `linux` and `apple` |
//! | `sigpipe` | their writes to descriptors of the application |
//! | `windows` | Windows |
//!
//! Both halves have the same functions. `cargo xtask package --check-platforms` type-checks them, and runs that of Windows.

#[cfg(target_vendor = "apple")]
mod apple;
#[cfg(not(any(windows, target_vendor = "apple")))]
mod linux;
#[cfg(unix)]
mod posix;
#[cfg(unix)]
mod sigpipe;
#[cfg(windows)]
mod windows;

#[cfg(target_vendor = "apple")]
pub(crate) use apple::errno;
#[cfg(not(any(windows, target_vendor = "apple")))]
pub(crate) use linux::errno;
#[cfg(unix)]
pub(crate) use posix::*;
#[cfg(unix)]
pub(crate) use sigpipe::*;
#[cfg(windows)]
pub(crate) use windows::*;

/// The kinds of addresses, as C has them.
pub(crate) mod net {
    #[cfg(unix)]
    pub(crate) use libc::{
        AF_INET, AF_INET6, AF_UNSPEC, AI_ADDRCONFIG, IPPROTO_TCP, SOCK_STREAM, addrinfo, sa_family_t,
        sockaddr, sockaddr_in, sockaddr_in6, sockaddr_storage,
    };

    #[cfg(windows)]
    pub(crate) use super::windows::addresses::*;
}
