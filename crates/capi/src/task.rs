//! Something that goes on by itself as its answers come: there is no thread for it, whoever wakes it does the next step.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Wake, Waker},
};

use parking_lot::Mutex;

struct Task {
    future: Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>,
}

/// Runs a future to its end. Its steps must not block: they are done where its answers come from.
pub(crate) fn spawn(future: impl Future<Output = ()> + Send + 'static) {
    Arc::new(Task { future: Mutex::new(Some(Box::pin(future))) }).wake();
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        let waker = Waker::from(Arc::clone(&self));
        let mut future = self.future.lock();
        if let Some(running) = &mut *future
            && running.as_mut().poll(&mut Context::from_waker(&waker)).is_ready()
        {
            *future = None;
        }
    }
}
