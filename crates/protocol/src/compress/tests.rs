//! Tests that apply to every codec.

use super::*;

const CODECS: [Compression; 5] = Compression::ALL;

/// A deterministic pseudo-random number generator.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, end: usize) -> usize {
        self.next() as usize % end
    }
}

fn text(length: usize) -> Vec<u8> {
    let mut numbers = Numbers(7);
    let mut text = Vec::new();
    while text.len() < length {
        text.extend_from_slice(
            format!("{{\"user\": {}, \"page\": \"/home\"}}\n", numbers.below(1000)).as_bytes(),
        );
    }
    text.truncate(length);
    text
}

fn noise(length: usize) -> Vec<u8> {
    let mut numbers = Numbers(1);
    (0..length).map(|_| numbers.next() as u8).collect()
}

fn compressed(codec: Compression, input: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    compress(codec, None, [input].into_iter(), &mut out).unwrap();
    out
}

fn decompressed(codec: Compression, input: &[u8], limit: usize) -> Result<Vec<u8>, DecompressError> {
    let mut out = b"before".to_vec();
    let result = decompress(codec, input, limit, &mut out);
    assert!(out.starts_with(b"before"));
    if result.is_err() {
        assert_eq!(out.len(), 6, "an error leaves nothing behind");
    }
    result.map(|()| out.split_off(6))
}

#[test]
fn compressed_data_round_trips() {
    for codec in CODECS {
        for length in [0, 1, 2, 100, 16_383, 32_767, 32_768, 32_769, 65_536, 65_537, 300_000] {
            for input in [text(length), noise(length), vec![0; length]] {
                let small = compressed(codec, &input);
                assert_eq!(decompressed(codec, &small, length).unwrap(), input, "{codec} {length}");
            }
        }
        if codec != Compression::None {
            assert!(compressed(codec, &text(100_000)).len() < 50_000, "{codec}");
        }
    }
}

#[test]
fn input_slices_do_not_change_the_output() {
    let mut numbers = Numbers(3);
    for codec in CODECS {
        for _ in 0..60 {
            let length = numbers.below(200_000);
            let input = text(length);
            let mut pieces = Vec::new();
            let mut rest = &input[..];
            while !rest.is_empty() {
                let longest = [3, 1000, 16_384, 100_000][numbers.below(4)];
                let (piece, after) = rest.split_at(numbers.below(longest + 1).min(rest.len()));
                pieces.push(piece);
                rest = after;
            }
            let mut out = b"before".to_vec();
            compress(codec, None, pieces.into_iter(), &mut out).unwrap();
            assert_eq!(decompressed(codec, &out[6..], length).unwrap(), input, "{codec}");
        }
        let mut nothing = Vec::new();
        compress(codec, None, std::iter::empty(), &mut nothing).unwrap();
        if codec != Compression::None {
            assert_eq!(decompressed(codec, &nothing, 0).unwrap(), b"", "{codec}");
        }
    }
}

#[test]
fn every_level_works_and_others_are_refused() {
    let input = text(20_000);
    for codec in CODECS {
        let Some(levels) = codec.levels() else {
            assert_eq!(codec.check_level(Some(99)), Ok(()));
            continue;
        };
        for level in (*levels.start()).max(-7)..=*levels.end() {
            let mut out = Vec::new();
            compress(codec, Some(level), [&input[..]].into_iter(), &mut out).unwrap();
            assert_eq!(decompressed(codec, &out, input.len()).unwrap(), input, "{codec} {level}");
        }
        for level in [levels.start() - 1, levels.end() + 1] {
            let mut out = Vec::new();
            let error = compress(codec, Some(level), [&input[..]].into_iter(), &mut out).unwrap_err();
            assert_eq!(error, CompressError::Level { codec, level });
            assert!(error.to_string().contains("use "), "{error}");
        }
    }
}

#[test]
fn one_byte_above_the_limit_is_too_large() {
    for codec in CODECS {
        for input in [text(100_000), noise(70_000), vec![0; 1_000_000]] {
            let small = compressed(codec, &input);
            for limit in [0, 1, 1000, 65_536, input.len() - 1] {
                let error = decompressed(codec, &small, limit).unwrap_err();
                assert_eq!(error, DecompressError::TooLarge { limit }, "{codec}");
            }
            assert_eq!(decompressed(codec, &small, input.len()).unwrap(), input);
        }
    }
}

#[test]
fn decompression_bomb_takes_no_more_memory_than_the_limit() {
    for codec in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
        let bomb = compressed(codec, &vec![0; 64 << 20]);
        let mut out = Vec::new();
        let limit = 1 << 20;
        assert_eq!(decompress(codec, &bomb, limit, &mut out), Err(DecompressError::TooLarge { limit }));
        assert!(out.capacity() <= 2 * limit + (64 << 10), "{codec} took {}", out.capacity());
    }
}

#[test]
fn truncated_data_is_an_error() {
    for codec in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
        for input in [text(3000), noise(300), vec![7; 70_000]] {
            let small = compressed(codec, &input);
            for end in 0..small.len() {
                let result = decompressed(codec, &small[..end], 1 << 20);
                match result {
                    Err(DecompressError::Corrupt { codec: of, .. }) => assert_eq!(of, codec),
                    // Xerial's framing has no end mark, so a truncated stream of whole blocks is valid.
                    Ok(part) if codec == Compression::Snappy => assert!(input.starts_with(&part)),
                    other => panic!("{codec} cut at {end} of {}: {other:?}", small.len()),
                }
            }
        }
    }
}

#[test]
fn damaged_data_never_panics() {
    let mut numbers = Numbers(11);
    for codec in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
        let small = compressed(codec, &text(2000));
        for _ in 0..20_000 {
            let mut damaged = small.clone();
            for _ in 0..=numbers.below(3) {
                let at = numbers.below(damaged.len());
                damaged[at] = numbers.next() as u8;
            }
            let mut out = Vec::new();
            let _ = decompress(codec, &damaged, 10_000, &mut out);
            assert!(out.len() <= 10_000);
            assert!(out.capacity() <= 300_000, "{codec}: {}", out.capacity());
        }
        // The contexts still work after an error.
        assert_eq!(decompressed(codec, &small, 2000).unwrap(), text(2000));
    }
}

#[test]
fn higher_levels_compress_better() {
    for (codec, low, high) in [
        (Compression::Gzip, 1, 9),
        (Compression::Lz4, 1, 9),
        (Compression::Lz4, 3, 12),
        (Compression::Zstd, 1, 19),
    ] {
        let input = text(200_000);
        let size = |level| {
            let mut out = Vec::new();
            compress(codec, Some(level), [&input[..]].into_iter(), &mut out).unwrap();
            out.len()
        };
        assert!(size(high) < size(low), "{codec}: {} at {low}, {} at {high}", size(low), size(high));
    }
}

#[test]
fn lz4_of_high_levels_round_trips_for_any_data() {
    let mut numbers = Numbers(5);
    for round in 0..400 {
        // Few distinct bytes, runs and repeated parts, so that matches of every length and distance occur.
        let length = numbers.below([40, 300, 5000, 140_000][round % 4]);
        let letters = 1 + numbers.below(20);
        let mut input = Vec::new();
        while input.len() < length {
            match numbers.below(3) {
                0 => input.extend((0..numbers.below(50)).map(|_| numbers.below(letters) as u8)),
                1 => input.resize(input.len() + numbers.below(400), numbers.below(letters) as u8),
                _ => {
                    let from = numbers.below(input.len() + 1);
                    input.extend(input[from..].iter().copied().take(numbers.below(600)).collect::<Vec<_>>());
                }
            }
        }
        input.truncate(length);
        let level = 3 + numbers.below(10) as i32;
        let mut frame = Vec::new();
        compress(Compression::Lz4, Some(level), [&input[..]].into_iter(), &mut frame).unwrap();
        let mut strict = Vec::new();
        std::io::Read::read_to_end(&mut lz4_flex::frame::FrameDecoder::new(&frame[..]), &mut strict).unwrap();
        assert!(strict == input, "round {round}, level {level}, {length} bytes");
    }
}

#[test]
fn ids_and_names_round_trip() {
    for codec in CODECS {
        assert_eq!(Compression::from_id(codec.id()), Some(codec));
        assert_eq!(Compression::parse(codec.name()), Some(codec));
    }
    assert_eq!((Compression::from_id(5), Compression::parse("brotli")), (None, None));
}

#[test]
fn snappy_decompresses_both_framings() {
    let input = text(50_000);
    let plain = snap::raw::Encoder::new().compress_vec(&input).unwrap();
    assert_eq!(decompressed(Compression::Snappy, &plain, 50_000).unwrap(), input);
    let framed = compressed(Compression::Snappy, &input);
    assert_eq!(framed[..16], *b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01");
    let twice = [&framed[..], &framed].concat();
    assert_eq!(decompressed(Compression::Snappy, &twice, 100_000).unwrap(), [&input[..], &input].concat());
}

#[test]
fn gzip_headers_with_names_and_several_members_are_read() {
    let input = text(1000);
    let plain = compressed(Compression::Gzip, &input);
    let named = [
        &[0x1f, 0x8b, 8, 0x1e, 0, 0, 0, 0, 0, 3, 2, 0, 9, 9],
        &b"name\0comment\0"[..],
        &[1, 2],
        &plain[10..],
    ]
    .concat();
    assert_eq!(decompressed(Compression::Gzip, &named, 1000).unwrap(), input);
    let twice = [&named[..], &plain, b"trailing"].concat();
    assert_eq!(decompressed(Compression::Gzip, &twice, 2000).unwrap(), [&input[..], &input].concat());
    let mut standard = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut standard, &input).unwrap();
    assert_eq!(decompressed(Compression::Gzip, &standard.finish().unwrap(), 1000).unwrap(), input);
}

#[test]
fn lz4_frames_of_all_kinds_are_read() {
    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
    use std::io::Write;

    let input = text(500_000);
    for block_mode in [BlockMode::Independent, BlockMode::Linked] {
        for block_size in [BlockSize::Max64KB, BlockSize::Max256KB, BlockSize::Max1MB, BlockSize::Max4MB] {
            for checks in [false, true] {
                let info = FrameInfo::new()
                    .block_mode(block_mode)
                    .block_size(block_size)
                    .block_checksums(checks)
                    .content_checksum(checks)
                    .content_size(checks.then_some(500_000));
                let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
                encoder.write_all(&input).unwrap();
                let frame = encoder.finish().unwrap();
                let case = format!("{block_mode:?} {block_size:?} {checks}");
                assert!(decompressed(Compression::Lz4, &frame, 500_000).unwrap() == input, "{case}");
                let limit = 499_999;
                let error = decompressed(Compression::Lz4, &frame, limit).unwrap_err();
                assert_eq!(error, DecompressError::TooLarge { limit }, "{case}");
                if checks {
                    let mut damaged = frame.clone();
                    *damaged.last_mut().unwrap() ^= 1;
                    assert!(decompressed(Compression::Lz4, &damaged, 500_000).is_err(), "{case}");
                }
            }
        }
    }
}

#[test]
fn lz4_of_format_0_has_a_checksum_over_the_magic() {
    use std::io::Read;

    let input = text(1000);
    let correct = compressed(Compression::Lz4, &input);
    let mut wrong = Vec::new();
    compress_format_0(Compression::Lz4, None, [&input[..]].into_iter(), &mut wrong).unwrap();
    // Kafka's own clients write these values for these flags.
    assert_eq!(correct[..7], [0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82]);
    assert_eq!(wrong[6], (twox_hash::XxHash32::oneshot(0, &wrong[..6]) >> 8) as u8);
    assert_ne!(wrong[6], correct[6]);
    assert_eq!(wrong[7..], correct[7..]);
    for frame in [&correct, &wrong] {
        assert_eq!(decompressed(Compression::Lz4, frame, 1000).unwrap(), input);
    }
    let mut strict = Vec::new();
    lz4_flex::frame::FrameDecoder::new(&correct[..]).read_to_end(&mut strict).unwrap();
    assert_eq!(strict, input);
}

#[test]
fn a_zstd_frame_that_claims_a_huge_window_or_size_takes_nothing() {
    // A window of 2 GiB, no content size, one stored block with one byte.
    let window = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x09, 0, 0, b'x'];
    let mut out = Vec::new();
    let _ = decompress(Compression::Zstd, &window, 1 << 30, &mut out);
    assert!(out.capacity() < 1 << 10);
    // A content size of 2^62, one stored block with one byte.
    let size = [0x28, 0xb5, 0x2f, 0xfd, 0xc0, 0x48, 0, 0, 0, 0, 0, 0, 0, 0x40, 0x09, 0, 0, b'x'];
    assert!(decompress(Compression::Zstd, &size, 1 << 30, &mut out).is_err());
    assert!(out.capacity() < 1 << 10);
}

#[test]
fn skippable_zstd_frames_are_skipped() {
    let small = compressed(Compression::Zstd, b"hello");
    let skippable = [0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    let input = [&skippable[..], &small, &skippable, &small].concat();
    assert_eq!(decompressed(Compression::Zstd, &input, 10).unwrap(), b"hellohello");
    assert!(decompressed(Compression::Zstd, &skippable, 10).is_err());
}
