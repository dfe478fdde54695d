//! Reads PEM: base64 between `-----BEGIN X-----` and `-----END X-----`. Text around the blocks is skipped.
//!
//! The value of a property may have blocks on one line, or `\\n` instead of line ends, as files of Java's properties do. Some
//! editors write a byte order mark, which may be in the middle of joined files.

use super::secret::Secret;

/// One block.
#[derive(Debug)]
pub struct Block {
    /// The label, such as `CERTIFICATE`.
    pub label: String,
    /// The value of the header `DEK-Info`, which the legacy encryption of keys has.
    pub encryption: Option<String>,
    /// The decoded bytes.
    pub bytes: Secret,
}

/// The largest file or property in bytes. The certificates of all public CAs together have a quarter of a megabyte.
pub const MAX_BYTES: usize = 32 << 20;
/// The highest number of blocks.
const MAX_BLOCKS: usize = 20_000;

/// Returns the blocks of a text. Error: what is wrong with the text.
pub fn blocks(text: &[u8]) -> Result<Vec<Block>, String> {
    if text.len() > MAX_BYTES {
        return Err(format!("{} bytes are too many; the limit is {MAX_BYTES}", text.len()));
    }
    let mut blocks = Vec::new();
    let mut lines = Lines { rest: text }.map(<[u8]>::trim_ascii);
    while let Some(line) = lines.next() {
        let Some(label) = marker(line, BEGIN) else { continue };
        if blocks.len() == MAX_BLOCKS {
            return Err(format!("more than {MAX_BLOCKS} PEM blocks"));
        }
        let mut block = Decoder::default();
        let mut encryption = None;
        loop {
            let Some(line) = lines.next() else {
                return Err(format!("the PEM block {label} has no end; the file may be cut off"));
            };
            if marker(line, END).is_some() {
                break;
            }
            if let Some(info) = line.strip_prefix(b"DEK-Info:") {
                encryption = Some(String::from_utf8_lossy(info.trim_ascii()).into_owned());
            } else if !line.contains(&b':') {
                block.add(line).map_err(|why| format!("the PEM block {label} {why}"))?;
            }
        }
        blocks.push(Block { label, encryption, bytes: Secret::new(block.bytes) });
    }
    Ok(blocks)
}

const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"-----END ";
const DASHES: &[u8] = b"-----";
/// The longest label of a block, in bytes.
const MAX_LABEL: usize = 64;

/// The lines of a text. A marker is a line of its own, also behind another text.
struct Lines<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let text = self.rest;
        if text.is_empty() {
            return None;
        }
        if let Some(length) = marker_length(text) {
            self.rest = &text[length..];
            return Some(&text[..length]);
        }
        for (at, byte) in text.iter().enumerate() {
            let separator = match byte {
                b'\n' | b'\r' => 1,
                b'\\' if matches!(text.get(at + 1), Some(b'n' | b'r')) => 2,
                b'-' if at > 0 && self.has_marker(at) => 0,
                _ => continue,
            };
            self.rest = &text[at + separator..];
            return Some(&text[..at]);
        }
        self.rest = &[];
        Some(text)
    }
}

impl Lines<'_> {
    /// Returns whether a marker begins inside of a line. That of a beginning has nothing but blanks in front of it: a comment may
    /// contain a block.
    fn has_marker(&self, at: usize) -> bool {
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | 0xef | 0xbb | 0xbf);
        marker_length(&self.rest[at..]).is_some()
            && (self.rest[at..].starts_with(END) || self.rest[..at].iter().all(is_blank))
    }
}

/// Returns the length of the marker with which a text begins.
fn marker_length(text: &[u8]) -> Option<usize> {
    let prefix = [BEGIN, END].into_iter().find(|prefix| text.starts_with(prefix))?;
    let label = text[prefix.len()..].iter().take(MAX_LABEL + 1).take_while(|byte| **byte != b'\n');
    let length = label.take_while(|byte| **byte != b'-').count();
    let end = prefix.len() + length + DASHES.len();
    (length <= MAX_LABEL && text.get(end - DASHES.len()..end) == Some(DASHES)).then_some(end)
}

/// Describes a text without usable blocks for an error.
pub fn describe(text: &[u8], blocks: &[Block]) -> String {
    if text.trim_ascii().is_empty() {
        return "it is empty".to_owned();
    }
    if !blocks.is_empty() {
        let mut labels: Vec<_> = blocks.iter().map(|block| block.label.as_str()).collect();
        labels.dedup();
        labels.truncate(5);
        return format!("it has only PEM blocks of other kinds ({})", labels.join(", "));
    }
    match text {
        [0xfe, 0xed, 0xfe, 0xed, ..] => "it is a JKS key store and not PEM".to_owned(),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "it is UTF-16 text; save it as UTF-8 or ASCII".to_owned(),
        [0x30, 0x80..=0x84, ..] => "it is binary (DER or PKCS#12) and not PEM".to_owned(),
        _ => "it has no PEM block (-----BEGIN ...-----)".to_owned(),
    }
}

fn marker(line: &[u8], prefix: &[u8]) -> Option<String> {
    let label = line.strip_prefix(prefix)?.strip_suffix(b"-----")?;
    // Behind further dashes is the text of a block, which errors must not show.
    let is_label = label.len() <= MAX_LABEL && label.windows(DASHES.len()).all(|part| part != DASHES);
    is_label.then(|| String::from_utf8_lossy(label).into_owned())
}

/// Decodes base64 that comes in lines.
#[derive(Default)]
struct Decoder {
    bytes: Vec<u8>,
    bits: u32,
    count: u32,
    is_padded: bool,
}

impl Decoder {
    fn add(&mut self, line: &[u8]) -> Result<(), &'static str> {
        for letter in line {
            let value = match letter {
                b'A'..=b'Z' => letter - b'A',
                b'a'..=b'z' => letter - b'a' + 26,
                b'0'..=b'9' => letter - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                b'=' => {
                    self.is_padded = true;
                    continue;
                }
                b' ' | b'\t' => continue,
                0 => return Err("has a NUL byte in its base64 text"),
                _ => return Err("has a character that is not base64"),
            };
            if self.is_padded {
                return Err("goes on after its base64 text has ended");
            }
            self.bits = self.bits << 6 | u32::from(value);
            self.count += 6;
            if self.count >= 8 {
                self.count -= 8;
                self.bytes.push((self.bits >> self.count) as u8);
                self.bits &= (1 << self.count) - 1;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_between_other_text() {
        let text = b"Bag Attributes\r\n  friendlyName: x\r\n-----BEGIN CERTIFICATE-----\r\naGVs\r\nbG8=\r\n-----END CERTIFICATE-----\r\n\
                     text\n-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00FF\n\nAA==\n\
                     -----END RSA PRIVATE KEY-----";
        let blocks = blocks(text).unwrap();
        assert_eq!(blocks.len(), 2);
        assert_eq!((blocks[0].label.as_str(), blocks[0].bytes.expose()), ("CERTIFICATE", &b"hello"[..]));
        assert_eq!(blocks[1].encryption.as_deref(), Some("AES-128-CBC,00FF"));
        assert_eq!(blocks[1].bytes.expose(), [0]);
    }

    #[test]
    fn blocks_may_be_on_one_line_or_behind_a_byte_order_mark() {
        let expected = [("A B", &b"hello"[..]), ("C", b"\0\0\0")];
        for text in [
            "-----BEGIN A B-----aGVsbG8=-----END A B----------BEGIN C-----AAAA-----END C-----",
            "-----BEGIN A B----- aGVs bG8= -----END A B----- -----BEGIN C----- AAAA -----END C-----",
            r"-----BEGIN A B-----\naGVs\nbG8=\n-----END A B-----\n-----BEGIN C-----\r\nAAAA\r\n-----END C-----\n",
            "\u{feff}-----BEGIN A B-----\naGVs\nbG8=\n-----END A B-----\n\u{feff}-----BEGIN C-----\nAAAA\n-----END C-----",
            "\u{feff}-----BEGIN A B-----aGVsbG8=-----END A B-----\u{feff}-----BEGIN C-----AAAA\n-----END C-----",
            "# -----BEGIN X-----\n# AAAA\n# -----END X-----\n-----BEGIN A B-----\raGVsbG8=\r-----END A B-----\r\
             # -----BEGIN Y-----BBBB-----END Y-----\r-----BEGIN C-----\rAAAA\r-----END C-----",
        ] {
            let blocks = blocks(text.as_bytes()).unwrap();
            let found: Vec<_> = blocks.iter().map(|it| (it.label.as_str(), it.bytes.expose())).collect();
            assert_eq!(found, expected, "{text}");
        }
        assert_eq!(blocks(b"-----BEGIN A-B-----aGVsbG8=-----").unwrap().len(), 0, "no secret in a label");
        let long = format!("-----BEGIN {}-----AAAA", "x".repeat(100));
        assert_eq!(blocks(long.as_bytes()).unwrap().len(), 0);
        assert!(describe(b"\xff\xfe-\0", &[]).contains("UTF-16"));
    }

    #[test]
    fn damaged_blocks_are_errors_with_the_reason() {
        for (text, expected) in [
            ("-----BEGIN X-----\nAAAA", "no end"),
            ("-----BEGIN X-----\nA\0AA\n-----END X-----", "NUL"),
            ("-----BEGIN X-----\nA*AA\n-----END X-----", "not base64"),
            ("-----BEGIN X-----\nAA==\nAAAA\n-----END X-----", "after its base64"),
        ] {
            assert!(blocks(text.as_bytes()).unwrap_err().contains(expected), "{text}");
        }
        assert!(blocks(&vec![b'x'; MAX_BYTES + 1]).unwrap_err().contains("too many"));
        assert_eq!(describe(b" \n", &[]), "it is empty");
        assert!(describe(&[0x30, 0x82, 1], &[]).contains("binary"));
    }
}
