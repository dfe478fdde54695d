//! `rd_kafka_headers_t`: the headers of a message.

use std::ffi::{CStr, CString, c_char, c_void};

use crate::ffi::{
    argument::{Given, Place, Ref, RefMut, Text},
    boundary::{Handle, Tag, bytes, tag},
    codes::{RespErr, code},
    export, quarantine,
};

/// A list of headers.
#[repr(C)]
#[derive(Debug)]
pub struct Headers {
    tag: Tag,
    pub(crate) list: Vec<Header>,
}

// SAFETY: `repr(C)`, the tag comes first.
unsafe impl Handle for Headers {
    const KIND: u32 = 0x6f74_6801;

    fn is_live(kind: u32) -> bool {
        matches!(kind, Self::KIND | OF_A_MESSAGE)
    }
}

/// The tag of a list that belongs to a message: it can be read and changed, but not destroyed or sent again.
const OF_A_MESSAGE: u32 = 0x6f74_6802;

/// One header.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub(crate) name: CString,
    /// The value, followed by a zero byte: applications print values as texts.
    value: Option<Vec<u8>>,
}

impl Header {
    pub(crate) fn new(name: &[u8], value: Option<&[u8]>) -> Self {
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        let value = value.map(|value| {
            let mut copy = Vec::with_capacity(value.len() + 1);
            copy.extend_from_slice(value);
            copy.push(0);
            copy
        });
        Self { name: CString::new(&name[..end]).unwrap_or_default(), value }
    }

    pub(crate) fn value(&self) -> Option<&[u8]> {
        self.value.as_ref().map(|value| &value[..value.len() - 1])
    }
}

/// Returns a header from the interface's arguments.
///
/// # Safety
///
/// `name` has `name_size` bytes, or ends with a zero byte if `name_size` is -1; `value` likewise.
pub(crate) unsafe fn header_of(
    name: *const c_char,
    name_size: isize,
    value: *const c_void,
    value_size: isize,
) -> Option<Header> {
    // A name of no bytes needs no address.
    let name = match (name.is_null(), name_size) {
        (true, 0) => c"".as_ptr(),
        (true, _) => return None,
        (false, _) => name,
    };
    // SAFETY: by the contract of this function; the size is not negative here.
    let name = unsafe {
        match usize::try_from(name_size) {
            Ok(size) => bytes(name.cast(), size)?,
            Err(_) => CStr::from_ptr(name).to_bytes(),
        }
    };
    // SAFETY: as above.
    let value = unsafe {
        match usize::try_from(value_size) {
            Ok(size) => bytes(value, size),
            Err(_) if value.is_null() => None,
            Err(_) => Some(CStr::from_ptr(value.cast()).to_bytes()),
        }
    };
    Some(Header::new(name, value))
}

impl Headers {
    pub(crate) fn new(list: Vec<Header>) -> Self {
        Self { tag: Tag::of::<Self>(), list }
    }

    pub(crate) fn into_raw(self) -> *mut Self {
        Box::into_raw(Box::new(self))
    }

    /// Attaches the list to a message. Returns false if this is not a list, or if it belongs to a message already.
    ///
    /// # Safety
    ///
    /// NULL or an object of this library.
    pub(crate) unsafe fn give_to_message(headers: *const Self) -> bool {
        // SAFETY: by the contract of this function.
        unsafe { tag(headers) }.is_some_and(|tag| tag.change(Self::KIND, OF_A_MESSAGE))
    }

    /// Returns the list to the application.
    ///
    /// # Safety
    ///
    /// NULL or an object of this library.
    pub(crate) unsafe fn give_back(headers: *const Self) -> bool {
        // SAFETY: by the contract of this function.
        unsafe { tag(headers) }.is_some_and(|tag| tag.change(OF_A_MESSAGE, Self::KIND))
    }

    /// Drops the list of a message that is destroyed.
    ///
    /// # Safety
    ///
    /// NULL or a list that belongs to a message.
    pub(crate) unsafe fn drop_with_message(headers: *mut Self) {
        // SAFETY: by the contract of this function.
        unsafe {
            if Self::give_back(headers) {
                quarantine::retire(headers);
            }
        }
    }
}

export!(
    #[local(std::ptr::null_mut())]
    fn rd_kafka_headers_new(initial_count: usize) -> *mut Headers {
        // The initial count only sets the capacity; an unreasonable value is ignored.
        Headers::new(Vec::with_capacity(initial_count.min(1000))).into_raw()
    }
);

export!(
    #[local(())]
    fn rd_kafka_headers_destroy(headers: Given<Headers>) {
        // A list that belongs to a message has another tag and is not destroyed.
        headers.retire();
    }
);

export!(
    #[local(std::ptr::null_mut())]
    fn rd_kafka_headers_copy(headers: Ref<Headers>) -> *mut Headers {
        headers.get().map_or(std::ptr::null_mut(), |headers| Headers::new(headers.list.clone()).into_raw())
    }
);

export!(
    #[local(0)]
    fn rd_kafka_header_cnt(headers: Ref<Headers>) -> usize {
        headers.get().map_or(0, |headers| headers.list.len())
    }
);

export!(
    #[local(code::_FAIL)]
    fn rd_kafka_header_add(
        headers: RefMut<Headers>,
        name: *const c_char,
        name_size: isize,
        value: *const c_void,
        value_size: isize,
    ) -> RespErr {
        // SAFETY: the header demands correct sizes.
        match (headers.get(), unsafe { header_of(name, name_size, value, value_size) }) {
            (Some(headers), Some(header)) => {
                headers.list.push(header);
                code::NO_ERROR
            }
            _ => code::_INVALID_ARG,
        }
    }
);

export!(
    #[local(code::_FAIL)]
    fn rd_kafka_header_remove(headers: RefMut<Headers>, name: Text) -> RespErr {
        let (Some(headers), Some(name)) = (headers.get(), name.c_str()) else { return code::_INVALID_ARG };
        let before = headers.list.len();
        headers.list.retain(|header| *header.name != *name);
        if headers.list.len() == before { code::_NOENT } else { code::NO_ERROR }
    }
);

/// Passes a header's value to C.
fn put_value(header: Option<&Header>, valuep: Place<'_, *const c_void>, sizep: Place<'_, usize>) -> RespErr {
    let Some(header) = header else { return code::_NOENT };
    let value = header.value();
    valuep.put(value.map_or(std::ptr::null(), |value| value.as_ptr().cast()));
    sizep.put(value.map_or(0, <[u8]>::len));
    code::NO_ERROR
}

export!(
    #[local(code::_FAIL)]
    fn rd_kafka_header_get_last(
        headers: Ref<Headers>,
        name: Text,
        valuep: Place<*const c_void>,
        sizep: Place<usize>,
    ) -> RespErr {
        let (Some(headers), Some(name)) = (headers.get(), name.c_str()) else { return code::_INVALID_ARG };
        put_value(headers.list.iter().rev().find(|header| *header.name == *name), valuep, sizep)
    }
);

export!(
    #[local(code::_FAIL)]
    fn rd_kafka_header_get(
        headers: Ref<Headers>,
        idx: usize,
        name: Text,
        valuep: Place<*const c_void>,
        sizep: Place<usize>,
    ) -> RespErr {
        let (Some(headers), Some(name)) = (headers.get(), name.c_str()) else { return code::_INVALID_ARG };
        put_value(headers.list.iter().filter(|header| *header.name == *name).nth(idx), valuep, sizep)
    }
);

export!(
    #[local(code::_FAIL)]
    fn rd_kafka_header_get_all(
        headers: Ref<Headers>,
        idx: usize,
        namep: Place<*const c_char>,
        valuep: Place<*const c_void>,
        sizep: Place<usize>,
    ) -> RespErr {
        let Some(headers) = headers.get() else { return code::_INVALID_ARG };
        let header = headers.list.get(idx);
        if let Some(header) = header {
            namep.put(header.name.as_ptr());
        }
        put_value(header, valuep, sizep)
    }
);
