//! Prefetches memory before it is written or read.

#![expect(unsafe_code, reason = "there is no safe way to ask for a cache line")]

/// Prefetches the second and third cache line of a chunk's free part for writing. The first is in the cache already.
#[inline]
#[cfg(target_arch = "x86_64")]
pub(super) fn prefetch_for_writing(room: &[u8]) {
    if room.len() > 2 * CACHE_LINE_BYTES {
        // SAFETY: the prefetch instruction only advises the processor: it has no effect that a program can observe and
        // never faults, and both addresses are inside `room`. Processors without it execute it as a no-op.
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

/// Does nothing: other processors have no stable intrinsic, and rely on their own prefetchers.
#[inline]
#[cfg(not(target_arch = "x86_64"))]
pub(super) const fn prefetch_for_writing(_: &[u8]) {}

/// Prefetches two cache lines some records ahead of the start of `rest`, for reading. An iterator over records of about a
/// hundred bytes reads the first bytes of two lines per record, and waits for them otherwise: another processor's core
/// wrote them, when it received the response.
#[inline(always)]
#[cfg(target_arch = "x86_64")]
pub(super) fn prefetch_ahead(rest: &[u8]) {
    const AHEAD: usize = 8 * CACHE_LINE_BYTES;
    if rest.len() > AHEAD + 2 * CACHE_LINE_BYTES {
        // SAFETY: as above, the instruction only advises the processor, and both addresses are inside `rest`.
        unsafe {
            std::arch::asm!(
                "prefetcht0 [{rest} + 512]",
                "prefetcht0 [{rest} + 576]",
                rest = in(reg) rest.as_ptr(),
                options(readonly, nostack, preserves_flags)
            );
        }
    }
}

/// Does nothing: other processors have no stable intrinsic, and rely on their own prefetchers.
#[inline]
#[cfg(not(target_arch = "x86_64"))]
pub(super) const fn prefetch_ahead(_: &[u8]) {}

#[cfg(target_arch = "x86_64")]
const CACHE_LINE_BYTES: usize = 64;
