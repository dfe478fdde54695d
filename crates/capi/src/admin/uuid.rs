//! `rd_kafka_Uuid_t`.

use std::{
    ffi::{CString, c_char},
    ptr,
};

use crate::ffi::{
    argument::{Given, Ref},
    boundary::{Handle, Tag},
    export,
};

/// A UUID, and its text: URL-safe base64, without padding.
#[repr(C)]
#[derive(Debug)]
pub struct Uuid {
    tag: Tag,
    most: i64,
    least: i64,
    text: CString,
}

// SAFETY: `repr(C)`, the tag comes first.
unsafe impl Handle for Uuid {
    const KIND: u32 = 0x6f74_7501;

    fn is_live(kind: u32) -> bool {
        matches!(kind, Self::KIND | LENT)
    }
}

/// The tag of a UUID that is a part of another object: C can read it, but not destroy it.
const LENT: u32 = 0x6f74_7502;

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl Uuid {
    pub(crate) fn new(most: i64, least: i64) -> Self {
        let number = u128::from(most.cast_unsigned()) << 64 | u128::from(least.cast_unsigned());
        // 128 bits are 21 letters of 6 bits and one of the last 2.
        let letter = |at: u32| {
            let bits = if at < 21 { number >> (122 - 6 * at) } else { number << 4 };
            LETTERS[(bits & 63) as usize]
        };
        let text = CString::new((0..22).map(letter).collect::<Vec<u8>>()).unwrap_or_default();
        Self { tag: Tag::of::<Self>(), most, least, text }
    }

    /// Returns a UUID to which C gets a pointer and that lives as long as the object that contains it.
    pub(crate) fn lent(self) -> Self {
        self.tag.change(Self::KIND, LENT);
        self
    }

    /// Parses the text of a UUID.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text.len() != 22 {
            return None;
        }
        let mut number = 0u128;
        for (at, letter) in text.bytes().enumerate() {
            let bits = LETTERS.iter().position(|known| *known == letter)? as u128;
            number = if at < 21 { number << 6 | bits } else { number << 2 | bits >> 4 };
        }
        Some(Self::new(((number >> 64) as u64).cast_signed(), (number as u64).cast_signed()))
    }
}

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_Uuid_new(most: i64, least: i64) -> *mut Uuid {
        Box::into_raw(Box::new(Uuid::new(most, least)))
    }
);

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_Uuid_copy(uuid: Ref<Uuid>) -> *mut Uuid {
        uuid.get().map_or(ptr::null_mut(), |uuid| Box::into_raw(Box::new(Uuid::new(uuid.most, uuid.least))))
    }
);

export!(
    #[local(())]
    fn rd_kafka_Uuid_destroy(uuid: Given<Uuid>) {
        uuid.retire();
    }
);

export!(
    #[local(ptr::null())]
    fn rd_kafka_Uuid_base64str(uuid: Ref<Uuid>) -> *const c_char {
        uuid.get().map_or(ptr::null(), |uuid| uuid.text.as_ptr())
    }
);

export!(
    #[local(0)]
    fn rd_kafka_Uuid_most_significant_bits(uuid: Ref<Uuid>) -> i64 {
        uuid.get().map_or(0, |uuid| uuid.most)
    }
);

export!(
    #[local(0)]
    fn rd_kafka_Uuid_least_significant_bits(uuid: Ref<Uuid>) -> i64 {
        uuid.get().map_or(0, |uuid| uuid.least)
    }
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuid_survives_conversion_to_text() {
        for (most, least) in [(0, 0), (-1, -1), (1, 2), (i64::MIN, i64::MAX), (0x0123_4567_89ab_cdef, -77)] {
            let uuid = Uuid::new(most, least);
            let again = Uuid::parse(uuid.text.to_str().unwrap()).unwrap();
            assert_eq!((again.most, again.least), (most, least));
        }
        assert_eq!(Uuid::new(0, 1).text.to_str().unwrap(), "AAAAAAAAAAAAAAAAAAAAAQ");
    }
}
