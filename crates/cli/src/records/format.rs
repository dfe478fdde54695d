//! A pattern as kcat's `-f`, with more parts in braces.

use std::io::{self, Write};

use base64::{Engine, engine::general_purpose::STANDARD};

use super::decoder::Decoded;
use super::{DecodedRecord, hex};
use crate::times::iso_time;

use crate::perf::payload::unescape;

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
    Header(String),
    HeaderCount,
    TimeIso,
    Size,
    KeyAs(Encoding),
    ValueAs(Encoding),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Encoding {
    Hex,
    Base64,
    Json,
}

/// The letters after `%` and their meaning, and the fields of JSON, for `--help`.
pub const FORMAT_HELP: &str = "\
Format of -f:
  %t topic      %p partition    %o offset     %T timestamp in ms
  %k key        %K its length   %s value      %S its length
  %R the value's length as 4 bytes, big-endian
  %h headers (name=value,...)   %% a percent sign
  %{header:NAME} the last header of this name   %{headers.count}   %{time} the timestamp as 2026-11-29T10:00:05.250Z
  %{key:hex} %{key:base64} %{key:json}, and the same with value   %{size} bytes of key, value and headers
  \\n \\r \\t \\0 \\xHH characters; the length of a null is -1

Fields of -J: topic, partition, offset, ts (ms), headers (a list: name, value, name, value, ...), key and payload; null if
there is none. A key or payload that is not UTF-8 is printed in hexadecimal, and key_encoding or payload_encoding is \"hex\";
otherwise that field is absent. headers_encoding is a list that says the same of each string in headers";

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
                Some('{') => {
                    let rest = letters.as_str();
                    let name = &rest[..rest.find('}').unwrap_or(rest.len())];
                    letters = rest.get(name.len() + 1..).unwrap_or_default().chars();
                    let is_closed = rest.len() > name.len();
                    named(name)
                        .filter(|_| is_closed)
                        .ok_or_else(|| format!("-f: %{{{name}}} is unknown\n\n{FORMAT_HELP}"))?
                }
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

    /// Prints a record.
    ///
    /// # Errors
    ///
    /// That of the output.
    pub fn write(&self, record: &DecodedRecord<'_>, out: &mut impl Write) -> io::Result<()> {
        let length = |bytes: Option<&[u8]>| bytes.map_or(-1, |bytes| bytes.len() as i64);
        let parts = &record.parts;
        for part in &self.parts {
            match part {
                Part::Literal(text) => out.write_all(text)?,
                Part::Topic => out.write_all(parts.topic.as_bytes())?,
                Part::Partition => write!(out, "{}", parts.partition)?,
                Part::Offset => write!(out, "{}", parts.offset)?,
                Part::Timestamp => write!(out, "{}", parts.timestamp)?,
                Part::TimeIso => out.write_all(iso_time(parts.timestamp).as_bytes())?,
                Part::Key => self.decoded(&record.key, out)?,
                Part::KeyLength => write!(out, "{}", length(parts.key))?,
                Part::KeyAs(encoding) => self.encoded(parts.key, &record.key, *encoding, out)?,
                Part::Value => self.decoded(&record.value, out)?,
                Part::ValueLength => write!(out, "{}", length(parts.value))?,
                Part::ValueLengthBinary => out.write_all(&(length(parts.value) as i32).to_be_bytes())?,
                Part::ValueAs(encoding) => self.encoded(parts.value, &record.value, *encoding, out)?,
                Part::Headers => {
                    for (index, (name, value)) in parts.headers.iter().enumerate() {
                        out.write_all(if index == 0 { b"" } else { b"," })?;
                        out.write_all(name)?;
                        out.write_all(b"=")?;
                        out.write_all(value.unwrap_or(b"NULL"))?;
                    }
                }
                Part::Header(name) => {
                    let last = parts.headers.iter().rev().find(|(key, _)| *key == name.as_bytes());
                    out.write_all(last.and_then(|(_, value)| *value).unwrap_or(self.null))?;
                }
                Part::HeaderCount => write!(out, "{}", parts.headers.len())?,
                Part::Size => write!(out, "{}", parts.size())?,
            }
        }
        Ok(())
    }

    fn decoded(&self, field: &Result<super::Decoded<'_>, String>, out: &mut impl Write) -> io::Result<()> {
        match field {
            Ok(None) | Err(_) => out.write_all(self.null),
            Ok(Some(Decoded::Bytes(bytes))) => out.write_all(bytes),
            Ok(Some(Decoded::Packed(text, _))) => out.write_all(text),
            Ok(Some(Decoded::Json(text))) => out.write_all(text.as_bytes()),
            Ok(Some(Decoded::Value(value))) => Ok(serde_json::to_writer(out, value)?),
        }
    }

    fn encoded(
        &self,
        bytes: Option<&[u8]>,
        field: &Result<super::Decoded<'_>, String>,
        encoding: Encoding,
        out: &mut impl Write,
    ) -> io::Result<()> {
        match (bytes, encoding) {
            (None, Encoding::Json) => out.write_all(b"null"),
            (None, _) => out.write_all(self.null),
            (Some(bytes), Encoding::Hex) => out.write_all(hex(bytes).as_bytes()),
            (Some(bytes), Encoding::Base64) => out.write_all(STANDARD.encode(bytes).as_bytes()),
            (Some(bytes), Encoding::Json) => match field {
                Ok(Some(Decoded::Value(value) | Decoded::Packed(_, value))) => {
                    Ok(serde_json::to_writer(out, value)?)
                }
                Ok(Some(Decoded::Json(text))) => out.write_all(text.as_bytes()),
                _ => Ok(serde_json::to_writer(out, &String::from_utf8_lossy(bytes))?),
            },
        }
    }
}

/// Returns the part that stands in braces.
fn named(name: &str) -> Option<Part> {
    if let Some(header) = name.strip_prefix("header:").filter(|header| !header.is_empty()) {
        return Some(Part::Header(header.to_owned()));
    }
    let encoding = |text: &str| match text {
        "hex" => Some(Encoding::Hex),
        "base64" => Some(Encoding::Base64),
        "json" => Some(Encoding::Json),
        _ => None,
    };
    match name.split_once(':') {
        Some(("key", text)) => encoding(text).map(Part::KeyAs),
        Some(("value", text)) => encoding(text).map(Part::ValueAs),
        Some(_) => None,
        None => Some(match name {
            "topic" => Part::Topic,
            "partition" => Part::Partition,
            "offset" => Part::Offset,
            "timestamp" => Part::Timestamp,
            "time" => Part::TimeIso,
            "key" => Part::Key,
            "key.size" => Part::KeyLength,
            "value" => Part::Value,
            "value.size" => Part::ValueLength,
            "headers" => Part::Headers,
            "headers.count" => Part::HeaderCount,
            "size" => Part::Size,
            _ => return None,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{RECORD, RecordParts, plain};
    use super::*;

    fn printed(format: &MessageFormat, record: RecordParts<'_>) -> String {
        let mut out = Vec::new();
        format.write(&plain(record), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_letter_prints_its_part() {
        let format = MessageFormat::parse("%t[%p]@%o %T %k(%K)=%s(%S) %h 100%%\\n", true).unwrap();
        assert_eq!(printed(&format, RECORD), "demo[3]@42 1700000000000 k(1)=hello(5) a=1,a=NULL 100%\n");
        let format = MessageFormat::parse("%R\\x7c\\t%s", true).unwrap();
        assert_eq!(printed(&format, RECORD), "\0\0\0\x05|\thello");
    }

    #[test]
    fn parts_in_braces_print_encodings_headers_and_sizes() {
        let print = |pattern: &str| printed(&MessageFormat::parse(pattern, true).unwrap(), RECORD);
        assert_eq!(print("%{key:hex} %{value:base64} %{value:json}"), "6b aGVsbG8= \"hello\"");
        assert_eq!(print("%{header:a} %{header:b} %{headers.count} %{size}"), "NULL NULL 2 9");
        assert_eq!(print("%{time} %{value.size}{%s}"), "2023-11-14T22:13:20.000Z 5{hello}");
        for wrong in ["%{}", "%{valu}", "%{value:utf9}", "%{header:}", "%{topic:hex}", "%{value"] {
            assert!(MessageFormat::parse(wrong, true).is_err(), "{wrong}");
        }
    }

    #[test]
    fn nulls_print_as_requested() {
        let record = RecordParts { key: None, value: None, ..RECORD };
        assert_eq!(printed(&MessageFormat::parse("%k %s %K %S", true).unwrap(), record), "NULL NULL -1 -1");
        assert_eq!(printed(&MessageFormat::parse("%k %s", false).unwrap(), record), " ");
        assert_eq!(printed(&MessageFormat::parse("%{value:json}", false).unwrap(), record), "null");
    }

    #[test]
    fn default_format_is_the_value_on_a_line() {
        assert_eq!(printed(&MessageFormat::usual(None, "\\n", false), RECORD), "hello\n");
        assert_eq!(printed(&MessageFormat::usual(Some(":"), "\\n", false), RECORD), "k:hello\n");
    }

    #[test]
    fn unknown_letter_is_an_error_with_the_list_of_letters() {
        assert!(
            MessageFormat::parse("%x", false).unwrap_err().starts_with("-f: %x is unknown\n\nFormat of -f")
        );
        assert!(MessageFormat::parse("%", false).unwrap_err().contains("missing"));
    }
}
