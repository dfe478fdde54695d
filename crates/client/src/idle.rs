//! For tests of calls and futures that end without a result: they must leave no waker behind.

use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Wake, Waker},
};

use ottla_core::waiters::WaitPlace;

use crate::Config;

struct Task;

impl Wake for Task {
    fn wake(self: Arc<Self>) {}
}

/// Polls a future once, as a task of its own, and aborts it.
pub(crate) fn abort(future: impl Future) {
    let _ = pin!(future).poll(&mut Context::from_waker(&Waker::from(Arc::new(Task))));
}

pub(crate) fn waiting(place: &impl WaitPlace) -> usize {
    place.with_waiters(|waiters| waiters.len())
}

pub(crate) fn config(properties: &[(&str, &str)]) -> Config {
    // No broker listens there.
    let mut config = Config::from_properties([("bootstrap.servers", "127.0.0.1:1")]).unwrap();
    for (name, value) in properties {
        config.set(name, value).unwrap();
    }
    config
}
