//! A record as a line of JSON with kcat's fields.

use std::io::{self, Write};

use super::decoder::Decoded;
use super::{DecodedRecord, hex};

/// Prints a record as a line of JSON. Bytes that are not valid UTF-8 are printed in hexadecimal, marked by a field
/// `..._encoding`; a field that could not be decoded is null, and `..._error` says why.
///
/// # Errors
///
/// That of the output.
pub fn write_json(record: &DecodedRecord<'_>, out: &mut impl Write) -> io::Result<()> {
    let parts = &record.parts;
    out.write_all(b"{")?;
    if !parts.headers.is_empty() {
        headers(parts.headers, out)?;
    }
    field("key", &record.key, out)?;
    write!(out, ",\"offset\":{},\"partition\":{},", parts.offset, parts.partition)?;
    field("payload", &record.value, out)?;
    out.write_all(b",\"topic\":")?;
    serde_json::to_writer(&mut *out, parts.topic)?;
    writeln!(out, ",\"ts\":{}}}", parts.timestamp)
}

/// Prints a list, not an object: names of headers may repeat, and their order matters.
fn headers(headers: &[(&[u8], Option<&[u8]>)], out: &mut impl Write) -> io::Result<()> {
    let strings = || headers.iter().flat_map(|(name, value)| [Some(*name), *value]);
    let is_hex = |bytes: Option<&[u8]>| bytes.is_some_and(|bytes| std::str::from_utf8(bytes).is_err());
    out.write_all(b"\"headers\":[")?;
    for (index, bytes) in strings().enumerate() {
        out.write_all(if index == 0 { b"" } else { b"," })?;
        match bytes {
            Some(bytes) => text_or_hex(bytes, out).map(drop)?,
            None => out.write_all(b"null")?,
        }
    }
    if strings().any(is_hex) {
        let encodings: Vec<_> = strings().map(|bytes| is_hex(bytes).then_some("hex")).collect();
        out.write_all(b"],\"headers_encoding\":")?;
        serde_json::to_writer(&mut *out, &encodings)?;
        return out.write_all(b",");
    }
    out.write_all(b"],")
}

fn field(name: &str, field: &Result<super::Decoded<'_>, String>, out: &mut impl Write) -> io::Result<()> {
    write!(out, "\"{name}\":")?;
    match field {
        Ok(None) => out.write_all(b"null"),
        Ok(Some(Decoded::Bytes(bytes))) => match text_or_hex(bytes, out)? {
            true => write!(out, ",\"{name}_encoding\":\"hex\""),
            false => Ok(()),
        },
        Ok(Some(Decoded::Value(value) | Decoded::Packed(_, value))) => Ok(serde_json::to_writer(out, value)?),
        Ok(Some(Decoded::Json(text))) => out.write_all(text.as_bytes()),
        Err(error) => {
            write!(out, "null,\"{name}_error\":")?;
            Ok(serde_json::to_writer(out, error)?)
        }
    }
}

/// Prints a string; true if it has hexadecimal digits.
fn text_or_hex(bytes: &[u8], out: &mut impl Write) -> io::Result<bool> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        write!(out, "\"{}\"", hex(bytes))?;
        return Ok(true);
    };
    serde_json::to_writer(out, text)?;
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::super::{RECORD, RecordParts, plain};
    use super::*;

    fn json(record: &DecodedRecord<'_>) -> String {
        let mut out = Vec::new();
        write_json(record, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        serde_json::from_str::<serde_json::Value>(&text).expect("it is JSON");
        text
    }

    #[test]
    fn json_has_kcats_fields_and_encodes_bytes() {
        assert_eq!(
            json(&plain(RECORD)),
            "{\"headers\":[\"a\",\"1\",\"a\",null],\"key\":\"k\",\"offset\":42,\"partition\":3,\"payload\":\"hello\",\
             \"topic\":\"demo\",\"ts\":1700000000000}\n"
        );
        let bytes = json(&plain(RecordParts { key: None, value: Some(b"\xff\x00"), headers: &[], ..RECORD }));
        assert!(
            bytes.contains("\"key\":null")
                && bytes.contains("\"payload\":\"ff00\",\"payload_encoding\":\"hex\"")
        );
        let headers = json(&plain(RecordParts { headers: &[(b"n", Some(b"\xff"))], ..RECORD }));
        assert!(
            headers.contains("\"headers\":[\"n\",\"ff\"],\"headers_encoding\":[null,\"hex\"],\"key\""),
            "{headers}"
        );
    }

    #[test]
    fn decoded_fields_are_json_and_errors_are_named() {
        let value = Ok(Some(Decoded::Value(serde_json::json!({"a": 1}))));
        let text = json(&DecodedRecord { parts: RECORD, key: Err("too short".into()), value });
        assert!(text.contains("\"key\":null,\"key_error\":\"too short\""), "{text}");
        assert!(text.contains("\"payload\":{\"a\":1}"), "{text}");
    }
}
