//! How `consume` prints a message: a pattern as kcat's `-f`, or JSON as kcat's `-J`.

use std::io::{self, Write};

use crate::perf::payload::unescape;

/// A message as the printers see it.
#[derive(Clone, Copy, Debug)]
pub struct MessageParts<'a> {
    /// The topic.
    pub topic: &'a str,
    /// The partition.
    pub partition: i32,
    /// The offset.
    pub offset: i64,
    /// Milliseconds since 1970, or -1.
    pub timestamp: i64,
    /// The key.
    pub key: Option<&'a [u8]>,
    /// The value.
    pub value: Option<&'a [u8]>,
    /// The headers, in order.
    pub headers: &'a [(&'a [u8], Option<&'a [u8]>)],
}

/// A parsed pattern.
#[derive(Debug, PartialEq)]
pub struct MessageFormat {
    parts: Vec<Part>,
    null: &'static [u8],
}

#[derive(Debug, PartialEq)]
enum Part {
    Literal(Vec<u8>),
    Topic,
    Partition,
    Offset,
    Timestamp,
    Key,
    KeyLength,
    Value,
    ValueLength,
    ValueLengthBinary,
    Headers,
}

/// The letters after `%` and their meaning, and the fields of JSON, for `--help`.
pub const FORMAT_HELP: &str = "\
Format of -f:
  %t topic      %p partition    %o offset     %T timestamp in ms
  %k key        %K its length   %s value      %S its length
  %R the value's length as 4 bytes, big-endian
  %h headers (name=value,...)   %% a percent sign
  \\n \\r \\t \\0 \\xHH characters; the length of a null is -1

Fields of -J: topic, partition, offset, ts (ms), headers (a list: name, value, name, value, ...), key and payload; null if
there is none. A key or payload that is not UTF-8 is printed in hexadecimal, and key_encoding or payload_encoding is \"hex\";
otherwise that field is absent";

impl MessageFormat {
    /// Parses a pattern. `null_text`: print nulls as NULL instead of as nothing.
    pub fn parse(pattern: &str, null_text: bool) -> Result<MessageFormat, String> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut letters = pattern.chars();
        while let Some(letter) = letters.next() {
            if letter == '\\' {
                literal.push(letter);
                literal.extend(letters.next());
                continue;
            }
            if letter != '%' {
                literal.push(letter);
                continue;
            }
            let part = match letters.next() {
                Some('%') => {
                    literal.push('%');
                    continue;
                }
                Some('t') => Part::Topic,
                Some('p') => Part::Partition,
                Some('o') => Part::Offset,
                Some('T') => Part::Timestamp,
                Some('k') => Part::Key,
                Some('K') => Part::KeyLength,
                Some('s') => Part::Value,
                Some('S') => Part::ValueLength,
                Some('R') => Part::ValueLengthBinary,
                Some('h') => Part::Headers,
                Some(other) => return Err(format!("-f: %{other} is unknown\n\n{FORMAT_HELP}")),
                None => return Err(format!("-f: a letter is missing after the last %\n\n{FORMAT_HELP}")),
            };
            if !literal.is_empty() {
                parts.push(Part::Literal(unescape(&std::mem::take(&mut literal))));
            }
            parts.push(part);
        }
        if !literal.is_empty() {
            parts.push(Part::Literal(unescape(&literal)));
        }
        Ok(MessageFormat { parts, null: if null_text { b"NULL" } else { b"" } })
    }

    /// Returns the default format: the value, preceded by the key if there is a key delimiter.
    pub fn usual(key_delimiter: Option<&str>, delimiter: &str, null_text: bool) -> MessageFormat {
        let mut parts = Vec::new();
        if let Some(key_delimiter) = key_delimiter {
            parts.extend([Part::Key, Part::Literal(unescape(key_delimiter))]);
        }
        parts.extend([Part::Value, Part::Literal(unescape(delimiter))]);
        MessageFormat { parts, null: if null_text { b"NULL" } else { b"" } }
    }

    /// Prints a message.
    pub fn write(&self, message: &MessageParts<'_>, out: &mut impl Write) -> io::Result<()> {
        let length = |bytes: Option<&[u8]>| bytes.map_or(-1, |bytes| bytes.len() as i64);
        for part in &self.parts {
            match part {
                Part::Literal(text) => out.write_all(text)?,
                Part::Topic => out.write_all(message.topic.as_bytes())?,
                Part::Partition => write!(out, "{}", message.partition)?,
                Part::Offset => write!(out, "{}", message.offset)?,
                Part::Timestamp => write!(out, "{}", message.timestamp)?,
                Part::Key => out.write_all(message.key.unwrap_or(self.null))?,
                Part::KeyLength => write!(out, "{}", length(message.key))?,
                Part::Value => out.write_all(message.value.unwrap_or(self.null))?,
                Part::ValueLength => write!(out, "{}", length(message.value))?,
                Part::ValueLengthBinary => out.write_all(&(length(message.value) as i32).to_be_bytes())?,
                Part::Headers => {
                    for (index, (name, value)) in message.headers.iter().enumerate() {
                        out.write_all(if index == 0 { b"" } else { b"," })?;
                        out.write_all(name)?;
                        out.write_all(b"=")?;
                        out.write_all(value.unwrap_or(b"NULL"))?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Prints a message as a line of JSON with kcat's fields. Bytes that are not valid UTF-8 are printed in hexadecimal,
/// marked by a field `..._encoding`.
pub fn write_json(message: &MessageParts<'_>, out: &mut impl Write) -> io::Result<()> {
    let mut object = serde_json::Map::new();
    object.insert("topic".into(), message.topic.into());
    object.insert("partition".into(), message.partition.into());
    object.insert("offset".into(), message.offset.into());
    object.insert("ts".into(), message.timestamp.into());
    if !message.headers.is_empty() {
        // A list, not an object: header names may repeat, and their order matters.
        let mut headers = Vec::new();
        for (name, value) in message.headers {
            headers.push(text_or_hex(name).0);
            headers.push(value.map_or(serde_json::Value::Null, |value| text_or_hex(value).0));
        }
        object.insert("headers".into(), headers.into());
    }
    for (name, bytes) in [("key", message.key), ("payload", message.value)] {
        let (text, is_hex) = bytes.map_or((serde_json::Value::Null, false), text_or_hex);
        object.insert(name.into(), text);
        if is_hex {
            object.insert(format!("{name}_encoding"), "hex".into());
        }
    }
    serde_json::to_writer(&mut *out, &object)?;
    out.write_all(b"\n")
}

fn text_or_hex(bytes: &[u8]) -> (serde_json::Value, bool) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (text.into(), false),
        Err(_) => (bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into(), true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: MessageParts<'_> = MessageParts {
        topic: "demo",
        partition: 3,
        offset: 42,
        timestamp: 1_700_000_000_000,
        key: Some(b"k"),
        value: Some(b"hello"),
        headers: &[(b"a", Some(b"1")), (b"a", None)],
    };

    fn printed(format: &MessageFormat, message: &MessageParts<'_>) -> String {
        let mut out = Vec::new();
        format.write(message, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_letter_prints_its_part() {
        let format = MessageFormat::parse("%t[%p]@%o %T %k(%K)=%s(%S) %h 100%%\\n", true).unwrap();
        assert_eq!(printed(&format, &MESSAGE), "demo[3]@42 1700000000000 k(1)=hello(5) a=1,a=NULL 100%\n");
        let format = MessageFormat::parse("%R\\x7c\\t%s", true).unwrap();
        assert_eq!(printed(&format, &MESSAGE), "\0\0\0\x05|\thello");
    }

    #[test]
    fn nulls_print_as_requested() {
        let message = MessageParts { key: None, value: None, ..MESSAGE };
        assert_eq!(printed(&MessageFormat::parse("%k %s %K %S", true).unwrap(), &message), "NULL NULL -1 -1");
        assert_eq!(printed(&MessageFormat::parse("%k %s", false).unwrap(), &message), " ");
    }

    #[test]
    fn default_format_is_the_value_on_a_line() {
        assert_eq!(printed(&MessageFormat::usual(None, "\\n", false), &MESSAGE), "hello\n");
        assert_eq!(printed(&MessageFormat::usual(Some(":"), "\\n", false), &MESSAGE), "k:hello\n");
    }

    #[test]
    fn unknown_letter_is_an_error_with_the_list_of_letters() {
        assert!(
            MessageFormat::parse("%x", false).unwrap_err().starts_with("-f: %x is unknown\n\nFormat of -f")
        );
        assert!(MessageFormat::parse("%", false).unwrap_err().contains("missing"));
    }

    #[test]
    fn json_has_kcats_fields_and_encodes_bytes() {
        let json = |message| {
            let mut out = Vec::new();
            write_json(message, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            json(&MESSAGE),
            "{\"headers\":[\"a\",\"1\",\"a\",null],\"key\":\"k\",\"offset\":42,\"partition\":3,\"payload\":\"hello\",\
             \"topic\":\"demo\",\"ts\":1700000000000}\n"
        );
        let bytes = MessageParts { key: None, value: Some(b"\xff\x00"), headers: &[], ..MESSAGE };
        assert!(
            json(&bytes).contains("\"key\":null")
                && json(&bytes).contains("\"payload\":\"ff00\",\"payload_encoding\":\"hex\"")
        );
    }
}
