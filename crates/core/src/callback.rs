//! Calls of the application's functions on the client's threads, where a panic is the application's fault.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

use crate::error::{Error, ErrorKind, Result};

/// The payload of a panic that ends the client because a function of the application panicked.
#[derive(Debug)]
pub struct CallbackPanic(pub Error);

/// Calls a function of the application. Error: [`ErrorKind::CallbackPanicked`].
pub fn guarded<R>(function: &str, call: impl FnOnce() -> R) -> Result<R> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| panicked(function, &*panic))
}

/// Calls a function of the application without which the client can't go on: a panic continues as a [`CallbackPanic`].
pub(crate) fn attributed<R>(function: &str, call: impl FnOnce() -> R) -> R {
    guarded(function, call).unwrap_or_else(|error| resume_unwind(Box::new(CallbackPanic(error))))
}

/// Returns the message of a panic.
pub fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}

fn panicked(function: &str, panic: &(dyn Any + Send)) -> Error {
    let detail = format!("{function}: {}", panic_text(panic));
    Error::new(ErrorKind::CallbackPanicked, detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Culprit;

    #[test]
    fn panic_of_a_function_is_the_applications_error() {
        let error = guarded("on_delivery", || panic!("number {}", 5)).unwrap_err();
        assert_eq!((error.kind(), error.culprit()), (ErrorKind::CallbackPanicked, Culprit::Application));
        assert!(error.to_string().contains("on_delivery: number 5"), "{error}");
        assert_eq!(guarded("on_delivery", || 5), Ok(5));
    }
}
