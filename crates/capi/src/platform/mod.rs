//! What systems with POSIX do in different ways: the address of `errno`, and a clock that is cheap to read.
//!
//! The library is made for Linux, and type-checked for macOS (`cargo xtask package --check-platforms`). Windows has no half here.

#[cfg(target_vendor = "apple")]
mod apple;
#[cfg(not(target_vendor = "apple"))]
mod linux;

#[cfg(target_vendor = "apple")]
pub(crate) use apple::*;
#[cfg(not(target_vendor = "apple"))]
pub(crate) use linux::*;
