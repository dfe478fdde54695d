//! Waits for futures, so that several calls can be in flight at once.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::thread::{self, Thread};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Blocks until the future is ready.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Arc::new(Unpark(thread::current())).into();
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::task::Waker;

    #[derive(Default)]
    struct Slot(Mutex<(bool, Option<Waker>)>);

    impl Future for &Slot {
        type Output = ();
        fn poll(self: std::pin::Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
            let mut slot = self.0.lock().unwrap();
            match slot.0 {
                true => Poll::Ready(()),
                false => {
                    slot.1 = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        }
    }

    #[test]
    fn future_completed_by_another_thread_ends_the_wait() {
        let slot = Slot::default();
        thread::scope(|threads| {
            threads.spawn(|| {
                // The waiting thread has polled once it has left its waker.
                let waker = loop {
                    if let Some(waker) = slot.0.lock().unwrap().1.take() {
                        break waker;
                    }
                    thread::yield_now();
                };
                slot.0.lock().unwrap().0 = true;
                waker.wake();
            });
            block_on(&slot);
        });
    }
}
