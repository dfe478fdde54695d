//! Interceptors of one kind, in the order in which they were added.

use std::ffi::c_void;

use crate::ffi::{
    boundary::Opaque,
    codes::{RespErr, code},
};

/// Interceptors of one kind, in the order in which they were added.
#[derive(Clone, Debug)]
pub(super) struct Chain<F>(pub(super) Vec<(String, F, Opaque)>);

/// A function pointer that can be compared.
pub(super) trait Function: Copy {
    fn address(self) -> usize;
}

/// Compares functions of these types by their addresses.
macro_rules! functions {
    ($($kind:ty)*) => {$(
        impl $crate::client::chain::Function for $kind {
            fn address(self) -> usize {
                self as usize
            }
        }
    )*};
}

impl<F> Default for Chain<F> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<F: Function> Chain<F> {
    /// Adds an interceptor. The same name and function may be added once, or repeatedly if `many` is true for this
    /// kind.
    pub(super) fn add(
        &mut self,
        name: &str,
        function: Option<F>,
        opaque: *mut c_void,
        many: bool,
    ) -> RespErr {
        let Some(function) = function else { return code::_INVALID_ARG };
        let is_known =
            |(known, other, _): &(String, F, Opaque)| known == name && other.address() == function.address();
        if !many && self.0.iter().any(is_known) {
            return code::_CONFLICT;
        }
        self.0.push((name.to_owned(), function, Opaque(opaque)));
        code::NO_ERROR
    }
}

pub(super) use functions;
