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

use ottla_core::{
    admin::AdminCall,
    completion::Completion,
    error::{Error, ErrorKind, Result},
};
use ottla_protocol::vocabulary::TopicPartition;
use ottla_sorted::SortedSet;

use super::{Admin, AdminFuture, AdminOptions};
use crate::topic_name::check_partition;

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

/// Error: there is no name, one is listed twice, or one is empty or too long. `what` is the singular.
pub(super) fn check_names<'a>(what: &str, names: impl IntoIterator<Item = &'a str>) -> Result<()> {
    let mut seen = SortedSet::new();
    for name in names {
        check_name(what, name)?;
        if !seen.insert(name) {
            return Err(invalid(format!("{what} \"{name}\" is named twice; name each one once per call")));
        }
    }
    if seen.is_empty() { Err(invalid(format!("no {what}; name at least one"))) } else { Ok(()) }
}

/// Returns the partitions, of which there is at least one, and none twice.
pub(super) fn distinct<'a>(partitions: impl Iterator<Item = (&'a str, i32)>) -> Result<Vec<TopicPartition>> {
    let mut seen = SortedSet::new();
    let mut all = Vec::new();
    for (topic, partition) in partitions {
        check_partition(topic, partition)?;
        if !seen.insert((topic, partition)) {
            let detail = "the partition is named twice; name each partition once per call";
            return Err(invalid(detail).with_partition(topic, partition));
        }
        all.push(TopicPartition::new(topic, partition));
    }
    if all.is_empty() { Err(invalid("no partitions; name at least one")) } else { Ok(all) }
}
