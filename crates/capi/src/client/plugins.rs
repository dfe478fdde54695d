//! Plug-ins: libraries that a configuration loads, and the interceptors that they add to it. They are called while the
//! configuration is set; the last interceptor, on_new, adds those of the client.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    ptr,
};

use crate::{
    client::{
        chain::{Chain, functions},
        conf::Conf,
        property::CONF_UNKNOWN,
    },
    ffi::{
        argument::Text,
        codes::{RespErr, code},
        export,
        types::rd_kafka_t,
    },
    platform,
};

type ConfSet =
    unsafe extern "C" fn(*mut Conf, *const c_char, *const c_char, *mut c_char, usize, *mut c_void) -> c_int;
type ConfDup =
    unsafe extern "C" fn(*mut Conf, *const Conf, usize, *mut *const c_char, *mut c_void) -> RespErr;
type ConfDestroy = unsafe extern "C" fn(*mut c_void) -> RespErr;
type New = unsafe extern "C" fn(*const rd_kafka_t, *const Conf, *mut c_void, *mut c_char, usize) -> RespErr;

functions!(ConfSet ConfDup ConfDestroy New);

/// The interceptors of a configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConfInterceptors {
    set: Chain<ConfSet>,
    dup: Chain<ConfDup>,
    destroy: Chain<ConfDestroy>,
    pub(super) new: Chain<New>,
}

impl ConfInterceptors {
    /// Returns true if there is no on_conf_set interceptor.
    pub(crate) fn is_empty(&self) -> bool {
        self.set.0.is_empty()
    }

    /// Passes a property to the interceptors; returns `None` if none of them accepts it.
    ///
    /// # Safety
    ///
    /// The arguments are the configuration, texts and a buffer of that size.
    pub(crate) unsafe fn set(
        &self,
        conf: *mut Conf,
        name: *const c_char,
        value: *const c_char,
        errstr: *mut c_char,
        size: usize,
    ) -> Option<c_int> {
        self.set.0.iter().find_map(|(_, function, opaque)| {
            // SAFETY: by the contract of this function.
            let code = unsafe { function(conf, name, value, errstr, size, opaque.0) };
            (code != CONF_UNKNOWN).then_some(code)
        })
    }

    /// Calls the on_conf_dup interceptors for a new copy.
    pub(crate) fn dup(&self, new: *mut Conf, old: *const Conf, filters: &mut [*const c_char]) {
        for (_, function, opaque) in &self.dup.0 {
            // SAFETY: the plug-in's function gets configurations and an array with this number of texts.
            unsafe { function(new, old, filters.len(), filters.as_mut_ptr(), opaque.0) };
        }
    }

    /// Calls the on_conf_destroy interceptors.
    pub(crate) fn destroy(&self) {
        for (_, function, opaque) in &self.destroy.0 {
            // SAFETY: the plug-in's function.
            unsafe { function(opaque.0) };
        }
    }
}

/// Loads libraries, separated by semicolons, and calls the initialization function of each with the configuration.
pub(crate) fn load_plugins(conf: *mut Conf, paths: &str) -> Result<(), String> {
    let mut loaded = Vec::new();
    for path in paths.split(';').map(str::trim).filter(|path| !path.is_empty()) {
        // A library that is named twice adds its interceptors once.
        if loaded.contains(&path) {
            continue;
        }
        loaded.push(path);
        let with_suffix = format!("{path}{}", platform::LIBRARY_SUFFIX);
        let mut candidates = [path, &with_suffix].into_iter().filter_map(|path| CString::new(path).ok());
        // The library is never unloaded: its functions are called until the process ends.
        let library = candidates.find_map(|path| platform::load(&path));
        let Some(library) = library else {
            return Err(format!("can't load plug-in `{path}`: {}", platform::load_error()));
        };
        let Some(init) = platform::symbol(library, c"conf_init") else {
            return Err(format!("plug-in `{path}` has no function conf_init"));
        };
        let mut errstr: [c_char; 512] = [0; 512];
        let mut opaque = ptr::null_mut();
        // SAFETY: the header documents the function's type; the buffer's last byte is set to zero afterwards.
        let (code, why) = unsafe {
            let init: unsafe extern "C" fn(*mut Conf, *mut *mut c_void, *mut c_char, usize) -> RespErr =
                std::mem::transmute(init);
            let code = init(conf, &raw mut opaque, errstr.as_mut_ptr(), errstr.len());
            errstr[511] = 0;
            (code, CStr::from_ptr(errstr.as_ptr()).to_string_lossy().into_owned())
        };
        if code != code::NO_ERROR {
            return Err(format!("plug-in `{path}` failed: {why} ({code})"));
        }
    }
    Ok(())
}

macro_rules! of_conf {
    ($($name:ident, $chain:ident: $kind:ty, $many:literal;)*) => {$(
        export!(
            #[local(code::_FATAL)]
            fn $name(conf: *mut Conf, ic_name: Text, function: Option<$kind>, ic_opaque: *mut c_void) -> RespErr {
                // SAFETY: the header demands NULL or a configuration, and a text.
                match unsafe { (Conf::changeable(conf), ic_name.get()) } {
                    (Some(conf), Some(name)) => conf.interceptors.$chain.add(&name, function, ic_opaque, $many),
                    _ => code::_INVALID_ARG,
                }
            }
        );
    )*};
}

of_conf! {
    rd_kafka_conf_interceptor_add_on_conf_set, set: ConfSet, false;
    rd_kafka_conf_interceptor_add_on_conf_dup, dup: ConfDup, false;
    rd_kafka_conf_interceptor_add_on_conf_destroy, destroy: ConfDestroy, true;
    rd_kafka_conf_interceptor_add_on_new, new: New, false;
}
