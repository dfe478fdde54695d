//! Asking for memory before it is written.

#![expect(unsafe_code, reason = "there is no safe way to ask for a cache line")]

/// Asks for the second and third cache line of what is free of a chunk, to write them. The first is here already.
#[inline]
#[cfg(target_arch = "x86_64")]
pub(super) fn prefetch_for_writing(room: &[u8]) {
    if room.len() > 2 * CACHE_LINE_BYTES {
        // SAFETY: the instruction is a hint: it reads and writes nothing that a program can see and never faults, and both
        // addresses are inside `room`. Processors that don't have it take it for one without effect.
        unsafe {
            std::arch::asm!(
                "prefetchw [{room} + 64]",
                "prefetchw [{room} + 128]",
                room = in(reg) room.as_ptr(),
                options(readonly, nostack, preserves_flags)
            );
        }
    }
}

/// Elsewhere the processor is trusted to see it coming.
#[inline]
#[cfg(not(target_arch = "x86_64"))]
pub(super) const fn prefetch_for_writing(_: &[u8]) {}

#[cfg(target_arch = "x86_64")]
const CACHE_LINE_BYTES: usize = 64;
