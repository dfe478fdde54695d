//! librdkafka's hash: the CRC32 of zlib and Ethernet.

/// Returns the partition of a key.
#[inline]
pub fn partition(key: &[u8], partition_count: i32) -> i32 {
    (crc32(key) % partition_count.max(1) as u32) as i32
}

/// Returns the CRC32 of some bytes. Keys are short, so a small table is enough.
pub fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| (crc >> 8) ^ TABLE[usize::from(crc as u8 ^ byte)])
}

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut crc = index as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
            bit += 1;
        }
        table[index] = crc;
        index += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_zlibs() {
        assert_eq!(crc32(b""), 0);
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b"The quick brown fox jumps over the lazy dog"), 0x414f_a339);
        assert_eq!(crc32(&[0xff; 32]), 0xff6c_ab0b);
    }

    #[test]
    fn keys_go_where_librdkafka_puts_them() {
        for (key, partition) in LIBRDKAFKA {
            assert_eq!(super::partition(key, 1000), *partition, "{key:?}");
        }
    }

    const LIBRDKAFKA: &[(&[u8], i32)] = &[
        (b"", 0),
        (b"\0", 757),
        (b"a", 907),
        (b"ab", 885),
        (b"abc", 578),
        (b"kafka", 399),
        (b"\xff\xfe\x80\x7f\x81", 466),
        (b"user-4711", 113),
        ("äöü€".as_bytes(), 886),
    ];
}
