//! Reads PEM: base64 between `-----BEGIN X-----` and `-----END X-----`. Text around the blocks is skipped.

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
    let mut lines = text.split(|byte| *byte == b'\n' || *byte == b'\r').map(<[u8]>::trim_ascii);
    while let Some(line) = lines.next() {
        let Some(label) = marker(line, b"-----BEGIN ") else { continue };
        if blocks.len() == MAX_BLOCKS {
            return Err(format!("more than {MAX_BLOCKS} PEM blocks"));
        }
        let mut block = Decoder::default();
        let mut encryption = None;
        loop {
            let Some(line) = lines.next() else {
                return Err(format!("the PEM block {label} has no end; the file may be cut off"));
            };
            if marker(line, b"-----END ").is_some() {
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
        [0x30, 0x80..=0x84, ..] => "it is binary (DER or PKCS#12) and not PEM".to_owned(),
        _ => "it has no PEM block (-----BEGIN ...-----)".to_owned(),
    }
}

fn marker(line: &[u8], prefix: &[u8]) -> Option<String> {
    let label = line.strip_prefix(prefix)?.strip_suffix(b"-----")?;
    (label.len() <= 64).then(|| String::from_utf8_lossy(label).into_owned())
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
