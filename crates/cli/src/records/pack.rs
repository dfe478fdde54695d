//! kcat's pack formats: fields of fixed size, such as `>i q s`.

use serde_json::Value;

/// A parsed pack format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pack(Vec<Token>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Integer { bytes: usize, is_signed: bool, is_little: bool },
    Character,
    Rest,
    End,
    Space,
}

impl Pack {
    /// Parses the letters.
    ///
    /// # Errors
    ///
    /// The letter that is unknown.
    pub fn parse(text: &str) -> Result<Pack, String> {
        let (mut tokens, mut is_little) = (Vec::new(), false);
        for letter in text.chars() {
            let integer = |bytes| Token::Integer { bytes, is_signed: letter.is_lowercase(), is_little };
            tokens.push(match letter {
                '<' | '>' => {
                    is_little = letter == '<';
                    continue;
                }
                'b' | 'B' => integer(1),
                'h' | 'H' => integer(2),
                'i' | 'I' => integer(4),
                'q' | 'Q' => integer(8),
                'c' => Token::Character,
                's' => Token::Rest,
                '$' => Token::End,
                ' ' | '\t' => Token::Space,
                _ => {
                    return Err(format!(
                        "\"{text}\" is neither a decoder nor a pack format, which has no '{letter}'"
                    ));
                }
            });
        }
        match tokens.iter().any(|token| *token != Token::Space) {
            true => Ok(Pack(tokens)),
            false => Err("a decoder is missing".to_owned()),
        }
    }

    /// Returns the fields as text, as kcat prints them, and as a value: that of the only field, or a list.
    ///
    /// # Errors
    ///
    /// The bytes are too few or too many.
    pub fn unpack(&self, bytes: &[u8]) -> Result<(Vec<u8>, Value), String> {
        let (mut rest, mut text, mut values) = (bytes, Vec::new(), Vec::new());
        for token in &self.0 {
            let length = match token {
                Token::Integer { bytes, .. } => *bytes,
                Token::Character => 1,
                Token::Rest => rest.len(),
                Token::Space => {
                    text.push(b' ');
                    continue;
                }
                Token::End if rest.is_empty() => continue,
                Token::End => {
                    return Err(format!("{} bytes remain at the end of the pack format", rest.len()));
                }
            };
            let Some((field, after)) = rest.split_at_checked(length) else {
                return Err(format!(
                    "a field of the pack format has {length} bytes, but {} remain",
                    rest.len()
                ));
            };
            rest = after;
            if let Token::Integer { is_signed, is_little, .. } = token {
                let value = integer(field, *is_signed, *is_little);
                text.extend_from_slice(value.to_string().as_bytes());
                values.push(value);
            } else {
                text.extend_from_slice(field);
                values.push(String::from_utf8_lossy(field).into_owned().into());
            }
        }
        let value = if values.len() == 1 { values.remove(0) } else { Value::Array(values) };
        Ok((text, value))
    }
}

impl Pack {
    /// Returns the bytes of a value: that of the only field, or a list. See [`Pack::unpack`].
    ///
    /// # Errors
    ///
    /// The values are too few, too many, or do not fit their fields.
    pub fn pack(&self, value: &Value) -> Result<Vec<u8>, String> {
        let fields = self.fields();
        let values = match value {
            Value::Array(values) => values.as_slice(),
            value => std::slice::from_ref(value),
        };
        if values.len() != fields.len() {
            return Err(format!("the pack format has {} fields, and {} values", fields.len(), values.len()));
        }
        let mut bytes = Vec::new();
        for (field, value) in fields.iter().zip(values) {
            field.append(value, &mut bytes)?;
        }
        Ok(bytes)
    }

    /// Returns the bytes of a text: its words are the values, and the last one has the rest.
    ///
    /// # Errors
    ///
    /// Those of [`Pack::pack`].
    pub fn pack_text(&self, text: &str) -> Result<Vec<u8>, String> {
        let fields = self.fields();
        let words = text.splitn(fields.len().max(1), ' ');
        let value = |(word, field): (&str, &&Token)| match field {
            Token::Integer { .. } => serde_json::from_str(word.trim()).unwrap_or_else(|_| word.into()),
            _ => word.into(),
        };
        self.pack(&Value::Array(words.zip(&fields).map(value).collect()))
    }

    fn fields(&self) -> Vec<&Token> {
        self.0.iter().filter(|token| !matches!(token, Token::End | Token::Space)).collect()
    }
}

impl Token {
    fn append(&self, value: &Value, bytes: &mut Vec<u8>) -> Result<(), String> {
        match (self, value) {
            (Token::Integer { bytes: size, is_signed, is_little }, Value::Number(number)) => {
                let wide = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
                let (bits, sign) = (8 * *size as u32, u32::from(*is_signed));
                let (low, high) = (-(i128::from(*is_signed) << (bits - 1)), (1i128 << (bits - sign)) - 1);
                let Some(wide) = wide.filter(|wide| (low..=high).contains(wide)) else {
                    return Err(format!("{number} is not an integer from {low} to {high}"));
                };
                let little = wide.to_le_bytes();
                let little = little[..*size].iter().copied();
                if *is_little {
                    bytes.extend(little)
                } else {
                    bytes.extend(little.rev())
                }
                Ok(())
            }
            (Token::Integer { .. }, other) => Err(format!("{other} is not an integer")),
            (Token::Character, Value::String(text)) if text.len() == 1 => {
                bytes.extend_from_slice(text.as_bytes());
                Ok(())
            }
            (Token::Character, other) => Err(format!("{other} is not a character of one byte")),
            (_, Value::String(text)) => {
                bytes.extend_from_slice(text.as_bytes());
                Ok(())
            }
            (_, other) => Err(format!("{other} is not a text")),
        }
    }
}

/// Reads an integer of at most 8 bytes.
fn integer(field: &[u8], is_signed: bool, is_little: bool) -> Value {
    let mut wide = [0; 8];
    for (index, byte) in field.iter().enumerate() {
        wide[if is_little { index } else { field.len() - 1 - index }] = *byte;
    }
    let unsigned = u64::from_le_bytes(wide);
    let unused = 64 - 8 * field.len() as u32;
    // Shifting left and back extends the sign.
    if is_signed { ((unsigned << unused) as i64 >> unused).into() } else { unsigned.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpack(pack: &str, bytes: &[u8]) -> (String, String) {
        let (text, value) = Pack::parse(pack).unwrap().unpack(bytes).unwrap();
        (String::from_utf8(text).unwrap(), value.to_string())
    }

    #[test]
    fn fields_print_as_with_kcat() {
        let bytes = b"\x01\x02\x00\x00\x00\x05hello";
        // The texts are kcat's output for the same message.
        assert_eq!(unpack("b b >i s", bytes).0, "1 2 5 hello");
        assert_eq!(unpack(">Hi", bytes).0, "2585");
        assert_eq!(unpack("bbis", bytes).0, "125hello");
        assert_eq!(unpack("<h>h<h", bytes).0, "51301280");
    }

    #[test]
    fn values_are_a_list_or_the_only_field() {
        assert_eq!(unpack("i", b"\xff\xff\xff\xfe").1, "-2");
        assert_eq!(unpack("I", b"\xff\xff\xff\xfe").1, "4294967294");
        assert_eq!(unpack("<q$", b"\xfe\xff\xff\xff\xff\xff\xff\xff").1, "-2");
        assert_eq!(unpack("<Q", &[0xff; 8]).1, u64::MAX.to_string());
        assert_eq!(unpack("bcs", b"\x80xyz").1, "[-128,\"x\",\"yz\"]");
        assert_eq!(unpack("s", b"").1, "\"\"");
    }

    #[test]
    fn values_that_were_unpacked_are_packed_again() {
        let bytes = b"\x01\xfe\x00\x00\x00\x05hello";
        for (format, bytes) in [
            ("b b >i s", &bytes[..]),
            ("i", b"\xff\xff\xff\xfe"),
            ("I", b"\xff\xff\xff\xfe"),
            ("<q$", b"\xfe\xff\xff\xff\xff\xff\xff\xff"),
            ("<Q", &[0xff; 8]),
            ("bcs", b"\x80xyz"),
            ("s", b""),
        ] {
            let pack = Pack::parse(format).unwrap();
            let (text, value) = pack.unpack(bytes).unwrap();
            assert_eq!(pack.pack(&value).unwrap(), bytes, "{format}");
            if format != "bcs" {
                assert_eq!(pack.pack_text(&String::from_utf8(text).unwrap()).unwrap(), bytes, "{format}");
            }
        }
        for (format, text, error) in [
            ("b", "128", "128 is not an integer from -128 to 127"),
            ("B", "-1", "-1 is not an integer from 0 to 255"),
            ("B", "256", "is not an integer from 0 to 255"),
            ("i", "x", "\"x\" is not an integer"),
            ("c", "xy", "\"xy\" is not a character of one byte"),
            ("ii", "1", "2 fields, and 1 values"),
        ] {
            let refused = Pack::parse(format).unwrap().pack_text(text).unwrap_err();
            assert!(refused.contains(error), "{format} {text}: {refused}");
        }
    }

    #[test]
    fn wrong_formats_and_short_bytes_are_errors() {
        for wrong in ["", " ", "x", "<>", "ii,"] {
            assert!(Pack::parse(wrong).is_err(), "{wrong}");
        }
        assert!(
            Pack::parse("q").unwrap().unpack(b"1234567").unwrap_err().contains("has 8 bytes, but 7 remain")
        );
        assert!(Pack::parse("b$").unwrap().unpack(b"12").unwrap_err().contains("1 bytes remain"));
    }
}
