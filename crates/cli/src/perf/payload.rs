//! Payloads: random letters, lines of a file, or increasing numbers.
//!
//! Random payloads start with the record's number, in up to 16 decimal digits, so that a reader can check that each
//! record arrived once and in order.

use std::path::Path;

use crate::failure::{Failure, Outcome};

/// The largest number of digits of a record's number.
const DIGITS: usize = 16;

/// The number of positions at which the letters of payloads start; few enough for the processor's cache.
const LETTERS: usize = 16 << 10;

/// Generates payloads.
#[derive(Debug)]
pub enum Payloads {
    /// `--record-size`.
    Random(RandomPayloads),
    /// `--payload-file`.
    File(FilePayloads),
    /// `--payload-monotonic`.
    Monotonic(Vec<u8>),
}

/// Payloads of one size.
#[derive(Debug)]
pub struct RandomPayloads {
    payload: Vec<u8>,
    letters: Vec<u8>,
    random: u64,
    digits: usize,
    is_first: bool,
}

/// The pieces of a file, in random order.
#[derive(Debug)]
pub struct FilePayloads {
    pieces: Vec<Vec<u8>>,
    random: u64,
}

impl Payloads {
    /// Random letters.
    pub fn random(size: usize) -> Payloads {
        let mut random = 0x9e37_79b9_7f4a_7c15;
        let letters = (0..LETTERS + size).map(|_| b'A' + (next(&mut random) % 26) as u8).collect();
        let digits = size.min(DIGITS);
        let mut payload = vec![b'A'; size];
        payload[..digits].fill(b'0');
        Payloads::Random(RandomPayloads { payload, letters, random, digits, is_first: true })
    }

    /// Pieces of a file.
    pub fn file(path: &Path, delimiter: &str) -> Outcome<Payloads> {
        let text = std::fs::read(path)
            .map_err(|error| Failure::Usage(format!("--payload-file {}: {error}", path.display())))?;
        let delimiter = unescape(delimiter);
        if delimiter.is_empty() {
            return Err(Failure::Usage("--payload-delimiter must not be empty".into()));
        }
        let mut pieces = split(&text, &delimiter);
        while pieces.last().is_some_and(Vec::is_empty) {
            pieces.pop();
        }
        if pieces.is_empty() {
            return Err(Failure::Usage(format!(
                "--payload-file {}: there are no payloads in it",
                path.display()
            )));
        }
        Ok(Payloads::File(FilePayloads { pieces, random: 0x9e37_79b9_7f4a_7c15 }))
    }

    /// The numbers from 0.
    pub fn monotonic() -> Payloads {
        Payloads::Monotonic(Vec::new())
    }

    /// Returns the number of distinct payloads in a file.
    pub fn len(&self) -> Option<usize> {
        match self {
            Payloads::File(file) => Some(file.pieces.len()),
            _ => None,
        }
    }

    /// Returns the encoding of record numbers in these payloads.
    pub fn numbering(&self) -> Numbering {
        match self {
            Payloads::Random(random) => Numbering::Digits(random.digits),
            Payloads::File(_) => Numbering::None,
            Payloads::Monotonic(_) => Numbering::WholePayload,
        }
    }

    /// Returns the payload of the record with this number. The caller requests the numbers in order, from 0.
    #[inline]
    pub fn get(&mut self, number: u64) -> &[u8] {
        match self {
            Payloads::Random(random) => random.next(),
            Payloads::File(file) => {
                let piece = next(&mut file.random) as usize % file.pieces.len();
                &file.pieces[piece]
            }
            Payloads::Monotonic(payload) => {
                use std::io::Write;
                payload.clear();
                let _ = write!(payload, "{number}");
                payload
            }
        }
    }
}

impl RandomPayloads {
    #[inline]
    fn next(&mut self) -> &[u8] {
        let (digits, rest) = self.payload.split_at_mut(self.digits);
        if !std::mem::take(&mut self.is_first) {
            increment(digits);
        }
        let offset = next(&mut self.random) as usize % LETTERS;
        rest.copy_from_slice(&self.letters[offset..offset + rest.len()]);
        &self.payload
    }
}

/// Increments a number in decimal digits; the largest one is followed by 0.
#[inline]
fn increment(digits: &mut [u8]) {
    for digit in digits.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return;
        }
        *digit = b'0';
    }
}

/// The encoding of a record's number in its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbering {
    /// The payload does not contain the number.
    None,
    /// The payload starts with this many digits, the last ones of the number.
    Digits(usize),
    /// The payload is the number.
    WholePayload,
}

impl Numbering {
    /// True if the numbers of this many records are distinct.
    pub fn distinguishes(self, records: u64) -> bool {
        match self {
            Numbering::None => false,
            Numbering::Digits(digits) => records <= 10u64.pow(digits.min(DIGITS) as u32),
            Numbering::WholePayload => true,
        }
    }

    /// Returns the number in a payload.
    #[inline]
    pub fn read(self, payload: &[u8]) -> Option<u64> {
        let digits = match self {
            Numbering::None => return None,
            Numbering::Digits(digits) => payload.get(..digits)?,
            Numbering::WholePayload => payload,
        };
        if digits.is_empty() || digits.len() > 19 {
            return None;
        }
        digits.iter().try_fold(0u64, |number, digit| {
            digit.is_ascii_digit().then(|| number * 10 + u64::from(digit - b'0'))
        })
    }
}

fn split(text: &[u8], delimiter: &[u8]) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(end) = rest.windows(delimiter.len()).position(|window| window == delimiter) {
        pieces.push(rest[..end].to_vec());
        rest = &rest[end + delimiter.len()..];
    }
    pieces.push(rest.to_vec());
    pieces
}

/// Replaces the escapes `\n`, `\t`, `\r`, `\0`, `\\` and `\xHH` by their bytes.
pub fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let (byte, length) = match (first, after) {
            (b'\\', [b'n', ..]) => (b'\n', 2),
            (b'\\', [b't', ..]) => (b'\t', 2),
            (b'\\', [b'r', ..]) => (b'\r', 2),
            (b'\\', [b'0', ..]) => (0, 2),
            (b'\\', [b'x', high, low, ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                (hex(*high) << 4 | hex(*low), 4)
            }
            (b'\\', [other, ..]) => (*other, 2),
            (byte, _) => (*byte, 1),
        };
        out.push(byte);
        rest = &rest[length..];
    }
    out
}

fn hex(digit: u8) -> u8 {
    (digit as char).to_digit(16).unwrap_or(0) as u8
}

/// SplitMix64.
#[inline]
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_payloads_carry_their_numbers_in_order() {
        let mut payloads = Payloads::random(100);
        let numbering = payloads.numbering();
        for number in 0..25_000 {
            let payload = payloads.get(number);
            assert_eq!(payload.len(), 100);
            assert_eq!(numbering.read(payload), Some(number));
            assert!(payload[16..].iter().all(u8::is_ascii_uppercase));
        }
        let one = payloads.get(25_000).to_vec();
        assert_ne!(one[16..], payloads.get(25_001)[16..]);
    }

    #[test]
    fn small_payloads_carry_the_metrics_that_fit() {
        let mut payloads = Payloads::random(2);
        let numbering = payloads.numbering();
        assert!(numbering.distinguishes(100) && !numbering.distinguishes(101));
        let numbers: Vec<_> = (0..102).map(|number| numbering.read(payloads.get(number)).unwrap()).collect();
        assert_eq!(numbers[98..], [98, 99, 0, 1]);
        assert!(Payloads::random(16).numbering().distinguishes(u64::MAX >> 11));
    }

    #[test]
    fn monotonic_payloads_are_the_number_itself() {
        let mut payloads = Payloads::monotonic();
        assert_eq!(payloads.get(0), b"0");
        assert_eq!(payloads.get(1234), b"1234");
        assert_eq!(payloads.numbering().read(b"1234"), Some(1234));
    }

    #[test]
    fn payload_without_a_number_has_none() {
        for payload in [&b""[..], b"12x", b"123456789012345678901", b"-1"] {
            assert_eq!(Numbering::WholePayload.read(payload), None);
        }
        assert_eq!(Numbering::Digits(16).read(b"123"), None);
        assert_eq!(Numbering::None.read(b"123"), None);
    }

    #[test]
    fn file_is_split_at_the_delimiter_without_an_empty_end() {
        let folder = std::env::temp_dir().join(format!("ottla-payload-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("payloads");
        std::fs::write(&path, "a\n\nbc\n\n").unwrap();
        let mut payloads = Payloads::file(&path, "\\n").unwrap();
        assert_eq!(payloads.len(), Some(3));
        let seen: ottla_sorted::SortedSet<_> = (0..100).map(|number| payloads.get(number).to_vec()).collect();
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [b"".to_vec(), b"a".to_vec(), b"bc".to_vec()]);
        std::fs::write(&path, "\n").unwrap();
        assert!(matches!(Payloads::file(&path, "\\n"), Err(Failure::Usage(_))));
        assert!(matches!(Payloads::file(&path, ""), Err(Failure::Usage(_))));
        assert!(matches!(Payloads::file(&folder.join("missing"), "\\n"), Err(Failure::Usage(_))));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn escapes_become_bytes() {
        assert_eq!(unescape("a\\n\\t\\x41\\\\\\0\\;"), b"a\n\tA\\\0;");
        assert_eq!(unescape("\\xZZ\\"), b"xZZ\\");
    }
}
