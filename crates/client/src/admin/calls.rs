//! The two forms of each call.

/// Defines methods of [`Admin`] that block, each with one that returns a future. The body is that of the latter.
macro_rules! calls {
    ($(
        $(#[$doc:meta])*
        fn $name:ident, $name_async:ident(&$self:ident $(, $argument:ident: $type:ty)*; $options:ident) -> $result:ty $body:block
    )*) => {
        impl $crate::admin::Admin {$(
            $(#[$doc])*
            pub fn $name(
                &self,
                $($argument: $type,)*
                options: impl Into<$crate::admin::AdminOptions>,
            ) -> ottla_core::error::Result<$result> {
                self.$name_async($($argument,)* options).wait()
            }

            #[doc = concat!("Does the same without blocking. See [`Admin::", stringify!($name), "`](Self::", stringify!($name), ").")]
            pub fn $name_async(
                &$self,
                $($argument: $type,)*
                options: impl Into<$crate::admin::AdminOptions>,
            ) -> $crate::admin::AdminFuture<$result> {
                let $options: $crate::admin::AdminOptions = options.into();
                $body
            }
        )*}
    };
}
pub(super) use calls;

use super::{Admin, AdminFuture, AdminOptions};
use ottla_core::{
    admin::AdminCall,
    completion::Completion,
    error::{Error, ErrorKind, Result},
};

impl Admin {
    /// Makes a call whose arguments were checked.
    pub(super) fn ask<A, T: Send + 'static>(
        &self,
        name: &'static str,
        options: AdminOptions,
        arguments: Result<A>,
        call: impl FnOnce(A, Completion<Result<T>>) -> AdminCall,
    ) -> AdminFuture<T> {
        let call = arguments.map(|arguments| move |done| call(arguments, done).done(options.how()));
        self.start(name, options.timeout, call).and_then(|result| result)
    }
}

pub(super) fn invalid(detail: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidArgument, detail)
}

/// The length of a string in the oldest versions of the protocol.
pub(super) const MAX_STRING: usize = 32_767;

/// Error: a name is empty or too long.
pub(super) fn check_name(what: &str, name: &str) -> Result<()> {
    match name.len() {
        0 => Err(invalid(format!("the {what} is empty"))),
        1..=MAX_STRING => Ok(()),
        size => Err(invalid(format!("the {what} has {size} bytes; brokers take at most {MAX_STRING}"))),
    }
}
