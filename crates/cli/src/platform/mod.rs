//! What operating systems do in different ways: private folders, the CPU time of the process, and the benchmark program on the C library.
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
