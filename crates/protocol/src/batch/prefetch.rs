//! Prefetches memory before it is written or read.

#![expect(unsafe_code, reason = "there is no safe way to ask for a cache line")]

/// Prefetches the start of a chunk's free part for writing, where a record of about `record` bytes comes next: its second and
/// third cache line, and those behind them if the record is that large. The first is in the cache already.
#[inline]
#[cfg(target_arch = "x86_64")]
pub(super) fn prefetch_for_writing(room: &[u8], record: usize) {
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
    if record > 3 * CACHE_LINE_BYTES {
        let ahead = &room[..record.min(MOST_AHEAD).min(room.len())];
        for line in ahead.chunks_exact(CACHE_LINE_BYTES).skip(3) {
            // SAFETY: as above, and the address is inside `room`.
            unsafe {
                std::arch::asm!(
                    "prefetchw [{line}]",
                    line = in(reg) line.as_ptr(),
                    options(readonly, nostack, preserves_flags)
                );
            }
        }
    }
}

/// Does nothing: other processors have no stable intrinsic, and rely on their own prefetchers.
#[inline]
#[cfg(not(target_arch = "x86_64"))]
pub(super) const fn prefetch_for_writing(_: &[u8], _: usize) {}

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

/// Prefetches the cache line in which a record begins, if it is within `bytes`.
#[inline(always)]
#[cfg(target_arch = "x86_64")]
pub(super) fn prefetch_at(bytes: &[u8], at: usize) {
    if let Some(byte) = bytes.get(at) {
        // SAFETY: as above, the instruction only advises the processor, and the address is inside `bytes`.
        unsafe {
            std::arch::asm!(
                "prefetcht0 [{byte}]",
                byte = in(reg) std::ptr::from_ref(byte),
                options(readonly, nostack, preserves_flags)
            );
        }
    }
}

/// Does nothing: other processors have no stable intrinsic, and rely on their own prefetchers.
#[inline]
#[cfg(not(target_arch = "x86_64"))]
pub(super) const fn prefetch_at(_: &[u8], _: usize) {}

#[cfg(target_arch = "x86_64")]
const CACHE_LINE_BYTES: usize = 64;
/// The number of bytes of the next record that are prefetched at most: a core waits for no more than 16 lines at a time.
#[cfg(target_arch = "x86_64")]
const MOST_AHEAD: usize = 16 * CACHE_LINE_BYTES;
