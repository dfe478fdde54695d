//! Futures without a thread: each wake-up runs the next step in the thread that delivers the response.

use std::{future::poll_fn, pin::pin};

use crate::ffi::lock::assert_none_held;

/// Runs a future to its end. Its steps may call the application, and must not block: they run in the thread that delivers the
/// response.
pub(crate) fn spawn(future: impl Future<Output = ()> + Send + 'static) {
    ottla::spawn(async move {
        let mut future = pin!(future);
        poll_fn(|context| {
            assert_none_held("a step of a task");
            future.as_mut().poll(context)
        })
        .await;
    });
}
