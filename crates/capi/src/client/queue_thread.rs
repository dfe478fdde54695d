//! A thread of a client that serves a queue: the one of the background queue, which a client has if the application set
//! `background_event_cb` or asked for the queue, and the one of on_acknowledgement interceptors.

use std::{
    ffi::c_int,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    thread::{self, JoinHandle, ThreadId},
    time::Instant,
};

use ottla_net::process::PerProcess;

use crate::{
    client::{op::Op, queue::Queue},
    ffi::{gate::Gate, lock::Mutex, time::deadline},
};

/// A queue and the thread that serves it.
#[derive(Debug)]
pub(crate) struct QueueThread {
    queue: Arc<Queue>,
    is_over: Arc<AtomicBool>,
    thread: Mutex<Option<(JoinHandle<()>, mpsc::Receiver<()>)>>,
    id: ThreadId,
    gate: Arc<Gate>,
}

/// The data of the thread.
pub(crate) struct Served {
    pub(crate) queue: Arc<Queue>,
    is_over: Arc<AtomicBool>,
    pub(crate) gate: Arc<Gate>,
}

impl Served {
    /// Returns true once the client ends.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Waits for the next entry. Returns `None` once the client ends and the queue is empty.
    pub(crate) fn next(&self) -> Option<Op> {
        loop {
            // A wait that got an entry has also used up the request to return that came with it.
            let is_over = self.is_over();
            let op = if is_over { self.queue.pop_now() } else { self.queue.pop(deadline(NAP_MS)) };
            if op.is_some() || is_over {
                return op;
            }
        }
    }
}

/// The longest sleep between two checks; the end of the client wakes the thread earlier.
const NAP_MS: c_int = 60_000;

/// Threads of this kind in the process.
static THREADS: PerProcess<AtomicUsize> = PerProcess::new();

impl QueueThread {
    /// Starts a thread of this name, which runs `serve` until it returns.
    ///
    /// # Errors
    ///
    /// The operating system starts no further thread.
    pub(crate) fn start(
        name: &str,
        queue: Arc<Queue>,
        serve: impl FnOnce(&Served) + Send + 'static,
    ) -> io::Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let gate = Arc::<Gate>::default();
        let served =
            Served { queue: Arc::clone(&queue), is_over: Arc::clone(&is_over), gate: Arc::clone(&gate) };
        let (ends, ended) = mpsc::channel();
        let thread = thread::Builder::new().name(name.into()).spawn(move || {
            THREADS.get().fetch_add(1, Ordering::Relaxed);
            serve(&served);
            THREADS.get().fetch_sub(1, Ordering::Relaxed);
            drop::<mpsc::Sender<()>>(ends);
        })?;
        let id = thread.thread().id();
        Ok(Self { queue, is_over, thread: Mutex::new(Some((thread, ended))), id, gate })
    }

    pub(crate) const fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    /// Returns true if the caller runs on this thread.
    pub(crate) fn is_current(&self) -> bool {
        thread::current().id() == self.id
    }

    /// Returns true once the thread has to end.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Drops the entries of the queue, ends the thread and waits for it, unless this is the thread. The error names a
    /// function that did not return.
    pub(crate) fn stop(&self, until: Instant) -> Result<(), &'static str> {
        self.is_over.store(true, Ordering::Release);
        self.queue.clear();
        self.end(until)
    }

    /// Like [`Self::stop`], once the thread has served all entries of the queue. No function of the application is called
    /// afterwards, even if this is the thread.
    pub(crate) fn finish(&self, until: Instant) -> Result<(), &'static str> {
        self.is_over.store(true, Ordering::Release);
        self.end(until)?;
        self.gate.shut(until)
    }

    fn end(&self, until: Instant) -> Result<(), &'static str> {
        self.queue.return_poll();
        let thread = self.thread.lock().take();
        let Some((thread, ended)) = thread.filter(|_| !self.is_current()) else {
            return Ok(());
        };
        let left = until.saturating_duration_since(Instant::now());
        if ended.recv_timeout(left) == Err(mpsc::RecvTimeoutError::Timeout) {
            // The thread is detached; the gate lets no further call of it through.
            return self.gate.shut(until);
        }
        // A join error means a panic inside the application's function, which ends the process anyway.
        let _ = thread.join();
        Ok(())
    }
}

impl Drop for QueueThread {
    /// Ends the thread of a client that is dropped without being destroyed, as one that could not be started.
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        self.queue.return_poll();
    }
}

/// Returns the number of such threads in the process.
pub(crate) fn thread_count() -> usize {
    THREADS.get().load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::client::op::Call;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    /// Starts a thread that makes the calls in its queue, and tells when it ends.
    fn calling() -> (QueueThread, mpsc::Receiver<()>) {
        let (ends, ended) = mpsc::channel::<()>();
        let serve = move |served: &Served| {
            let _ends = ends;
            while let Some(Op::Call(call)) = served.next() {
                (call.0)();
            }
        };
        (QueueThread::start("test", Queue::new(), serve).unwrap(), ended)
    }

    #[test]
    fn thread_that_finishes_serves_its_queue_first() {
        let (thread, _ended) = calling();
        let calls = Arc::<AtomicUsize>::default();
        let (goes, go) = mpsc::channel::<()>();
        let wait = move || assert!(go.recv().is_ok());
        thread.queue().push(Op::Call(Call(Box::new(wait))));
        for _ in 0..3 {
            let calls = Arc::clone(&calls);
            let count = move || {
                calls.fetch_add(1, Ordering::SeqCst);
            };
            thread.queue().push(Op::Call(Call(Box::new(count))));
        }
        goes.send(()).unwrap();
        assert_eq!(thread.finish(soon()), Ok(()));
        assert_eq!(calls.load(Ordering::SeqCst), 3);
        assert!(thread.gate.enter("later").is_none());
    }

    #[test]
    fn thread_that_is_stopped_drops_its_queue() {
        let (thread, _ended) = calling();
        let (goes, go) = mpsc::channel::<()>();
        let (begins, begun) = mpsc::channel::<()>();
        let wait = move || {
            drop(begins);
            assert!(go.recv().is_ok());
        };
        thread.queue().push(Op::Call(Call(Box::new(wait))));
        assert!(begun.recv().is_err());
        let (drops, dropped) = mpsc::channel::<()>();
        thread.queue().push(Op::Call(Call(Box::new(move || drops.send(()).unwrap()))));
        thread::scope(|scope| {
            let stopping = scope.spawn(|| thread.stop(soon()));
            assert_eq!(dropped.recv(), Err(mpsc::RecvError));
            goes.send(()).unwrap();
            assert_eq!(stopping.join().unwrap(), Ok(()));
        });
    }

    #[test]
    fn thread_ends_when_its_owner_is_dropped() {
        let (thread, ended) = calling();
        drop(thread);
        assert_eq!(ended.recv_timeout(Duration::from_secs(20)), Err(mpsc::RecvTimeoutError::Disconnected));
    }
}
