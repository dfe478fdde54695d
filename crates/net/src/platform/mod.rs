//! What operating systems do in different ways: names of addresses, libraries that are loaded at run time, forks, and numbers.
//!
//! Both halves have the same functions. `cargo xtask package --check-platforms` type-checks them for Linux, Windows and macOS.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::*;
#[cfg(windows)]
pub use windows::*;
