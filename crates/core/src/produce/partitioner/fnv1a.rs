//! The hash of Sarama, the Go client: FNV-1a, made positive.

/// Returns the partition of a key.
#[inline]
pub fn partition(key: &[u8], partition_count: i32) -> i32 {
    // As in Sarama the absolute value is taken; that of the smallest number is itself, here seen without a sign.
    ((fnv1a(key) as i32).unsigned_abs() % partition_count.max(1) as u32) as i32
}

/// FNV-1a, 32 bits.
pub fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv_1a() {
        // From the reference's own test suite.
        assert_eq!(fnv1a(b""), 0x811c_9dc5);
        assert_eq!(fnv1a(b"a"), 0xe40c_292c);
        assert_eq!(fnv1a(b"foobar"), 0xbf9c_f968);
        assert_eq!(fnv1a(b"chongo was here!\n"), 0xd499_30d5);
    }

    #[test]
    fn keys_go_where_librdkafka_puts_them() {
        for (key, partition) in LIBRDKAFKA {
            assert_eq!(super::partition(key, 1000), *partition, "{key:?}");
        }
    }

    const LIBRDKAFKA: &[(&[u8], i32)] = &[
        (b"", 35),
        (b"\0", 351),
        (b"a", 76),
        (b"ab", 946),
        (b"abc", 331),
        (b"kafka", 545),
        (b"\xff\xfe\x80\x7f\x81", 732),
        (b"user-4711", 262),
        ("äöü€".as_bytes(), 608),
    ];
}
