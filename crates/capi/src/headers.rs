//! `rd_kafka_headers_t`: the headers of a message.

use std::ffi::{CStr, CString, c_char, c_int, c_void};

use crate::{
    boundary::{bytes, guarded_local},
    codes::code,
};

/// A list of headers.
#[derive(Clone, Debug, Default)]
pub struct Headers {
    pub(crate) list: Vec<Header>,
}

/// One header.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub(crate) name: CString,
    /// With a zero byte behind it: applications print values as texts.
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

/// A header as the interface's arguments describe it.
///
/// # Safety
///
/// `name` has `name_size` bytes, or ends with a zero byte if that is -1; `value` likewise.
pub(crate) unsafe fn header_of(
    name: *const c_char,
    name_size: isize,
    value: *const c_void,
    value_size: isize,
) -> Option<Header> {
    if name.is_null() {
        return None;
    }
    // SAFETY: as the caller says; a size is not negative here.
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
    pub(crate) fn into_raw(self) -> *mut Self {
        Box::into_raw(Box::new(self))
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rd_kafka_headers_new(initial_count: usize) -> *mut Headers {
    guarded_local(std::ptr::null_mut(), || {
        // A nonsense count is only a hint.
        Headers { list: Vec::with_capacity(initial_count.min(1000)) }.into_raw()
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_headers_destroy(headers: *mut Headers) {
    if !headers.is_null() {
        // SAFETY: lists come from `into_raw`, and the caller gives this one up.
        drop(unsafe { Box::from_raw(headers) });
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_headers_copy(headers: *const Headers) -> *mut Headers {
    guarded_local(std::ptr::null_mut(), || {
        // SAFETY: NULL or a list, says the caller.
        unsafe { headers.as_ref() }.map_or(std::ptr::null_mut(), |headers| headers.clone().into_raw())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_header_cnt(headers: *const Headers) -> usize {
    // SAFETY: NULL or a list, says the caller.
    unsafe { headers.as_ref() }.map_or(0, |headers| headers.list.len())
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_header_add(
    headers: *mut Headers,
    name: *const c_char,
    name_size: isize,
    value: *const c_void,
    value_size: isize,
) -> c_int {
    guarded_local(code::_FAIL, || {
        // SAFETY: NULL or a list that nobody else uses now, and sizes that are true, says the caller.
        match unsafe { (headers.as_mut(), header_of(name, name_size, value, value_size)) } {
            (Some(headers), Some(header)) => {
                headers.list.push(header);
                code::NO_ERROR
            }
            _ => code::_INVALID_ARG,
        }
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_header_remove(headers: *mut Headers, name: *const c_char) -> c_int {
    guarded_local(code::_FAIL, || {
        if name.is_null() {
            return code::_INVALID_ARG;
        }
        // SAFETY: a list that nobody else uses now and a text, says the caller.
        let (headers, name) = unsafe { (headers.as_mut(), CStr::from_ptr(name)) };
        let Some(headers) = headers else { return code::_INVALID_ARG };
        let before = headers.list.len();
        headers.list.retain(|header| *header.name != *name);
        if headers.list.len() == before { code::_NOENT } else { code::NO_ERROR }
    })
}

/// Writes a header's value to where the caller wants it.
///
/// # Safety
///
/// The pointers are writable or NULL.
unsafe fn answer(header: Option<&Header>, valuep: *mut *const c_void, sizep: *mut usize) -> c_int {
    let Some(header) = header else { return code::_NOENT };
    let value = header.value();
    // SAFETY: as the caller says.
    unsafe {
        if !valuep.is_null() {
            *valuep = value.map_or(std::ptr::null(), |value| value.as_ptr().cast());
        }
        if !sizep.is_null() {
            *sizep = value.map_or(0, <[u8]>::len);
        }
    }
    code::NO_ERROR
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_header_get_last(
    headers: *const Headers,
    name: *const c_char,
    valuep: *mut *const c_void,
    sizep: *mut usize,
) -> c_int {
    guarded_local(code::_FAIL, || {
        if headers.is_null() || name.is_null() {
            return code::_INVALID_ARG;
        }
        // SAFETY: a list, a text, and writable places, says the caller.
        unsafe {
            let name = CStr::from_ptr(name);
            answer((*headers).list.iter().rev().find(|header| *header.name == *name), valuep, sizep)
        }
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_header_get(
    headers: *const Headers,
    idx: usize,
    name: *const c_char,
    valuep: *mut *const c_void,
    sizep: *mut usize,
) -> c_int {
    guarded_local(code::_FAIL, || {
        if headers.is_null() || name.is_null() {
            return code::_INVALID_ARG;
        }
        // SAFETY: a list, a text, and writable places, says the caller.
        unsafe {
            let name = CStr::from_ptr(name);
            answer((*headers).list.iter().filter(|header| *header.name == *name).nth(idx), valuep, sizep)
        }
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_header_get_all(
    headers: *const Headers,
    idx: usize,
    namep: *mut *const c_char,
    valuep: *mut *const c_void,
    sizep: *mut usize,
) -> c_int {
    guarded_local(code::_FAIL, || {
        if headers.is_null() {
            return code::_INVALID_ARG;
        }
        // SAFETY: a list and writable places, says the caller.
        unsafe {
            let list = &(*headers).list;
            let header = list.get(idx);
            if let Some(header) = header
                && !namep.is_null()
            {
                *namep = header.name.as_ptr();
            }
            answer(header, valuep, sizep)
        }
    })
}
