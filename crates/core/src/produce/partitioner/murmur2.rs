//! The Java client's hash: MurmurHash2 with its seed.

/// Returns the partition of a key.
#[inline]
pub fn partition(key: &[u8], partition_count: i32) -> i32 {
    // The Java client clears the sign bit, which differs from taking the absolute value.
    ((murmur2(key) & 0x7fff_ffff) % partition_count.max(1) as u32) as i32
}

/// MurmurHash2, 32 bits.
pub fn murmur2(bytes: &[u8]) -> u32 {
    const SEED: u32 = 0x9747_b28c;
    const FACTOR: u32 = 0x5bd1_e995;
    let mut hash = SEED ^ bytes.len() as u32;
    let (words, rest) = bytes.as_chunks::<4>();
    for word in words {
        let mut mixed = u32::from_le_bytes(*word).wrapping_mul(FACTOR);
        mixed ^= mixed >> 24;
        hash = hash.wrapping_mul(FACTOR) ^ mixed.wrapping_mul(FACTOR);
    }
    if !rest.is_empty() {
        for (index, byte) in rest.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * index);
        }
        hash = hash.wrapping_mul(FACTOR);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(FACTOR);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_java_clients() {
        // From the tests of Kafka's Utils.murmur2.
        for (key, hash) in [
            (&b"21"[..], -973_932_308),
            (b"foobar", -790_332_482),
            (b"a-little-bit-long-string", -985_981_536),
            (b"a-little-bit-longer-string", -1_486_304_829),
            (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            (b"abc", 479_470_107),
        ] {
            assert_eq!(murmur2(key) as i32, hash, "{key:?}");
        }
    }

    #[test]
    fn keys_go_where_the_java_client_puts_them() {
        for (key, partition) in JAVA {
            assert_eq!(super::partition(key, 1000), *partition, "{key:?}");
        }
    }

    const JAVA: &[(&[u8], i32)] = &[
        (b"", 681),
        (b"\0", 588),
        (b"a", 524),
        (b"ab", 434),
        (b"abc", 107),
        (b"kafka", 580),
        (b"\xff\xfe\x80\x7f\x81", 464),
        (b"user-4711", 19),
        ("äöü€".as_bytes(), 447),
    ];
}
