//! The fields of a response that is encoded without the generated types: plain or, in flexible versions, compact.

pub(super) fn put_i16(out: &mut Vec<u8>, value: i16) {
    out.extend_from_slice(&value.to_be_bytes());
}

pub(super) fn put_i32(out: &mut Vec<u8>, value: i32) {
    out.extend_from_slice(&value.to_be_bytes());
}

pub(super) fn put_i64(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(&value.to_be_bytes());
}

pub(super) fn put_uvarint(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Writes the length of an array or of records.
pub(super) fn put_length(out: &mut Vec<u8>, flexible: bool, length: usize) {
    if flexible {
        put_uvarint(out, length + 1);
    } else {
        put_i32(out, i32::try_from(length).unwrap_or(i32::MAX));
    }
}

pub(super) fn put_string(out: &mut Vec<u8>, flexible: bool, value: Option<&str>) {
    match (value, flexible) {
        (Some(value), true) => put_uvarint(out, value.len() + 1),
        (Some(value), false) => put_i16(out, i16::try_from(value.len()).unwrap_or(i16::MAX)),
        (None, true) => out.push(0),
        (None, false) => put_i16(out, -1),
    }
    out.extend_from_slice(value.unwrap_or_default().as_bytes());
}
