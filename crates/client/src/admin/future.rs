//! The future of an administrative call.

use std::{
    fmt,
    future::{Future, ready},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use ottla_core::{
    completion::Waiting,
    error::{Error, ErrorKind, Result},
};

use ottla_net::Drivers;

use crate::wait::{check_may_wait, wait_in_lead};

/// The result of an administrative call, to be awaited with any executor.
///
/// The call is in progress from the moment that it was made: dropping the future gives up the result and does not cancel
/// the operation. The future ends within the call's timeout, also without a broker.
#[must_use = "the future has the result, which may be an error"]
pub struct AdminFuture<T> {
    call: &'static str,
    timeout: Duration,
    /// The I/O threads whose work a thread does that waits.
    drivers: Option<Arc<Drivers>>,
    result: Pin<Box<dyn Future<Output = Result<T>> + Send>>,
}

impl<T: Send + 'static> AdminFuture<T> {
    /// The result of the call `call`, which `waiting` receives; an error if the call was never made.
    pub(super) fn new(call: &'static str, timeout: Duration, waiting: Result<Waiting<T>>) -> Self {
        let result = async move { waiting?.await.ok_or_else(|| Error::new(ErrorKind::Closed, "")) };
        Self { call, timeout, drivers: None, result: Box::pin(result) }
    }

    /// A thread that waits does the work of these I/O threads.
    pub(super) fn in_lead(mut self, drivers: Option<Arc<Drivers>>) -> Self {
        self.drivers = drivers;
        self
    }

    /// A call that was refused because of its arguments.
    pub(super) fn failed(call: &'static str, error: Error) -> Self {
        Self::ready(call, Err(error))
    }

    /// Creates a future whose result needs no broker.
    pub(super) fn ready(call: &'static str, result: Result<T>) -> Self {
        Self { call, timeout: Duration::ZERO, drivers: None, result: Box::pin(ready(result)) }
    }

    /// The results of calls that are in flight at the same time, in their order.
    pub(super) fn all(call: &'static str, timeout: Duration, calls: Vec<Self>) -> AdminFuture<Vec<T>> {
        let drivers = calls.first().and_then(|call| call.drivers.clone());
        let results = async move {
            let mut results = Vec::with_capacity(calls.len());
            for call in calls {
                results.push(call.await?);
            }
            Ok(results)
        };
        AdminFuture { call, timeout, drivers, result: Box::pin(results) }
    }

    /// Converts the result of the call.
    pub(super) fn and_then<U>(self, convert: impl FnOnce(T) -> Result<U> + Send + 'static) -> AdminFuture<U> {
        let Self { call, timeout, drivers, result } = self;
        AdminFuture { call, timeout, drivers, result: Box::pin(async move { convert(result.await?) }) }
    }

    /// Blocks until the result is there. The client itself applies the timeout, so this waits a little longer: the client's
    /// error says more.
    pub(super) fn wait(mut self) -> Result<T> {
        const GRACE: Duration = Duration::from_secs(1);
        let (call, timeout) = (self.call, self.timeout.saturating_add(GRACE));
        check_may_wait(call)?;
        let drivers = self.drivers.take();
        wait_in_lead(drivers.as_deref(), self, timeout).unwrap_or_else(|| {
            let detail =
                format!("{call}: no response from the client's I/O threads; a callback may block them");
            Err(Error::new(ErrorKind::TimedOut, detail))
        })
    }
}

impl<T> Future for AdminFuture<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        self.result.as_mut().poll(context)
    }
}

impl<T> fmt::Debug for AdminFuture<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdminFuture")
            .field("call", &self.call)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
