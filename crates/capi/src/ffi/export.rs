//! The macros that declare functions of the C library: `export!`, `getters!` for those that only read a field, and
//! `destroyers!` for those that free an object.

use std::ffi::{CString, c_char};

/// Declares a function that C programs call: its symbol, its documentation from `abi/functions.txt`, and its guard.
///
/// The attribute names the guard and the value that the function returns if the guard refuses the call or the body
/// panics:
///
/// | attribute | guard |
/// |---|---|
/// | `#[on(handle, default)]` | returns the default in a forked child whose parent made the handle; a panic is a fatal error of the handle's client |
/// | `#[each(handle, default)]` | the same for a call per message, which delays the thread's cancellation itself where that is needed |
/// | `#[local(default)]` | a panic returns the default; the call works in a forked child, because it needs no thread and no lock of another thread |
///
/// A function without an entry in `abi/functions.txt` does not compile. Parentheses instead of braces let rustfmt format the
/// function.
macro_rules! export {
    (
        $(#[doc = $doc:literal])*
        #[on($handle:expr, $default:expr)]
        $($function:tt)*
    ) => {
        $crate::ffi::export::export! { $(#[doc = $doc])* #[with(guarded_for, $handle, $default)] $($function)* }
    };
    (
        $(#[doc = $doc:literal])*
        #[each($handle:expr, $default:expr)]
        $($function:tt)*
    ) => {
        $crate::ffi::export::export! { $(#[doc = $doc])* #[with(guarded_each, $handle, $default)] $($function)* }
    };
    (
        $(#[doc = $doc:literal])*
        #[with($guard:ident, $handle:expr, $default:expr)]
        fn $name:ident($($argument:ident: $kind:ty),* $(,)?) $(-> $result:ty)? { $($body:tt)* }
    ) => {
        #[doc = include_str!(concat!(env!("OUT_DIR"), "/docs/", stringify!($name), ".md"))]
        $(#[doc = $doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            $($argument: <$kind as $crate::ffi::argument::Argument>::C),*
        ) $(-> $result)? {
            // SAFETY: C passes what the header demands.
            $(let $argument = unsafe { <$kind as $crate::ffi::argument::Argument>::from_c($argument) };)*
            $crate::ffi::boundary::$guard($handle, $default, || $(-> $result)? { $($body)* })
        }
    };
    (
        $(#[doc = $doc:literal])*
        #[local($default:expr)]
        fn $name:ident($($argument:ident: $kind:ty),* $(,)?) $(-> $result:ty)? { $($body:tt)* }
    ) => {
        #[doc = include_str!(concat!(env!("OUT_DIR"), "/docs/", stringify!($name), ".md"))]
        $(#[doc = $doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            $($argument: <$kind as $crate::ffi::argument::Argument>::C),*
        ) $(-> $result)? {
            // SAFETY: C passes what the header demands.
            $(let $argument = unsafe { <$kind as $crate::ffi::argument::Argument>::from_c($argument) };)*
            $crate::ffi::boundary::guarded_local($default, || $(-> $result)? { $($body)* })
        }
    };
}

/// Declares functions that read one field of an object: the name, the argument and its type, the result's type, the
/// result for NULL, and the field.
macro_rules! getters {
    ($(fn $name:ident($object:ident: $kind:ty) -> $result:ty { $default:expr; $value:expr })*) => {$(
        $crate::ffi::export::export!(
            #[local($default)]
            fn $name($object: $kind) -> $result {
                $object.get().map_or($default, |$object| $value)
            }
        );
    )*};
}

/// Declares the two functions that free an object of the application, and an array of such objects.
macro_rules! destroyers {
    ($($one:ident($object:ident), $array:ident($objects:ident): $kind:ty;)*) => {$(
        $crate::ffi::export::export!(
            #[local(())]
            fn $one($object: $crate::ffi::argument::Given<$kind>) {
                $object.retire();
            }
        );

        $crate::ffi::export::export!(
            #[local(())]
            fn $array($objects: $crate::ffi::argument::GivenHandles<$kind>, count: usize) {
                $objects.retire(count);
            }
        );
    )*};
}

/// Returns the address of a part of a result for C; NULL if the result has none.
pub(crate) fn or_null<T>(part: Option<&T>) -> *const T {
    part.map_or(std::ptr::null(), std::ptr::from_ref)
}

/// Returns a text for C; NULL for `None`.
pub(crate) fn text_or_null(text: Option<&CString>) -> *const c_char {
    text.map_or(std::ptr::null(), |text| text.as_ptr())
}

pub(crate) use destroyers;
pub(crate) use export;
pub(crate) use getters;
