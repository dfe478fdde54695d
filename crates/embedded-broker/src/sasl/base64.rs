//! Base64 in both alphabets; padding is optional when decoding.

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes bytes with padding.
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut three = [0; 3];
        three[..chunk.len()].copy_from_slice(chunk);
        let indexes = [three[0] >> 2, three[0] << 4 | three[1] >> 4, three[1] << 2 | three[2] >> 6, three[2]];
        for (position, index) in indexes.into_iter().enumerate() {
            let letter = STANDARD[usize::from(index & 63)] as char;
            text.push(if position <= chunk.len() { letter } else { '=' });
        }
    }
    text
}

/// Decodes text of either alphabet.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0u32, 0);
    for letter in text.trim_end_matches('=').bytes() {
        let letter = match letter {
            b'-' => b'+',
            b'_' => b'/',
            other => other,
        };
        bits = bits << 6 | STANDARD.iter().position(|known| *known == letter)? as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    (count < 6).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_bytes_correspond() {
        for (bytes, text) in
            [(&b""[..], ""), (b"f", "Zg=="), (b"fo", "Zm8="), (b"foo", "Zm9v"), (b"\xfb\xff", "+/8=")]
        {
            assert_eq!(encode(bytes), text);
            assert_eq!(decode(text).as_deref(), Some(bytes));
        }
        assert_eq!(decode("-_8").as_deref(), Some(&b"\xfb\xff"[..]));
        assert_eq!((decode("Z"), decode("Z*==")), (None, None));
    }
}
