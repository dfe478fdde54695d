//! `rd_kafka_destroy`: the end of a client.
//!
//! # Pitfalls
//!
//! - A callback may destroy the client whose poll called it. Polls hold the client until they return (`robust.c`).
//! - Interceptors, log callbacks and others are called until the end of `rd_kafka_destroy`, and ask the handle for its
//!   name and the application's pointer. The handle is given up at the beginning, so that nobody destroys it twice, but
//!   it answers until the last call has returned (`destroying.c`).

use std::{
    ffi::c_int,
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use ottla_core::contract::purge::Purge;
use ottla_net::process::PerProcess;

use crate::{
    client::{contexts::Contexts, core::Core, handle::Client, log::is_own_thread},
    ffi::{cancel::Uncancelled, codes::code, error::set_last, export, time::deadline},
};

/// The number of clients that this process started and has not destroyed.
pub(super) static LIVE: PerProcess<AtomicUsize> = PerProcess::new();

/// `RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE`.
const NO_CONSUMER_CLOSE: c_int = 8;
/// The time limit for the last commit of a client.
const LAST_COMMIT_TIMEOUT: Duration = Duration::from_secs(3);

/// The time limit for all waits for application functions that run in other threads while a client is destroyed.
pub(super) const DESTROY_TIMEOUT: Duration = Duration::from_secs(10);
/// The part of that limit after which a log callback in another thread counts as one that does not return.
const LOG_TIMEOUT: Duration = Duration::from_secs(1);

impl Client {
    /// Calls the on_destroy interceptors; no interceptor is called afterwards.
    pub(super) fn intercept_end(&self, until: Instant) -> Result<(), &'static str> {
        let shut = self.observer_gates().map_or(Ok(()), |gates| gates.traffic.shut(until));
        self.intercept_destroy();
        shut
    }

    /// Closes a consumer that the application has not closed, as `rd_kafka_consumer_close` does.
    fn close_consumer(&self) {
        // An I/O thread that runs an application function can't wait for work that it has to do itself.
        if let Some(Core::Consumer(consumer)) = self.core.get()
            && !is_own_thread()
        {
            self.close_for_destroy(consumer, LAST_COMMIT_TIMEOUT);
        }
    }

    /// Ends all threads and timers of the client. The wait for application functions is bounded.
    fn close(&self) {
        self.debug(Contexts::ALL, c"DESTROY", || "Terminating instance".to_owned());
        let until = Instant::now() + DESTROY_TIMEOUT;
        self.warn_of_messages();
        let left = || until.saturating_duration_since(Instant::now());
        let mut stuck = Vec::new();
        stuck.extend(self.intercept_end(until).err());
        self.is_closing.store(true, Ordering::Release);
        let mut has_ended = true;
        if let Some(Core::Producer(producer, reports)) = self.core.get() {
            // From now on reports free their messages, and the application gets none.
            reports.set_producer(None);
            producer.purge(Purge::ALL);
            if producer.end(left()).is_err() {
                has_ended = false;
                producer.handle().give_up();
            }
            stuck.extend(reports.finish_interceptors(until).err());
        }
        self.stop_offset_files();
        if let Some(Core::Consumer(consumer)) = self.core.get()
            && consumer.close(left()).is_err()
        {
            has_ended = false;
            consumer.handle().give_up();
        }
        if let Some(Core::Share(consumer)) = self.core.get()
            && consumer.end(left()).is_err()
        {
            has_ended = false;
            consumer.handle().give_up();
        }
        stuck.extend(self.transport.as_ref().and_then(|transport| transport.shut(until).err()));
        stuck.extend(self.certificate_check.as_ref().and_then(|check| check.shut(until).err()));
        stuck.extend(self.observer_gates().and_then(|gates| gates.threads.shut(until).err()));
        // A thread that was about to start has started by now.
        drop(self.starting_background.lock());
        stuck.extend(self.background.get().and_then(|background| background.stop(until).err()));
        if !has_ended || !stuck.is_empty() {
            self.say_stuck(stuck);
        }
        if let Some(queue) = self.log.queue() {
            queue.clear();
        }
        self.main.clear();
        for queue in [&self.consumer_queue, &self.sasl_queue].into_iter().flatten() {
            queue.clear();
        }
        let queues = std::mem::take(&mut *self.partition_queues.lock());
        queues.values().for_each(|queue| queue.clear());
        let queues = std::mem::take(&mut *self.other_queues.lock());
        queues.iter().filter_map(Weak::upgrade).for_each(|queue| queue.clear());
        let topics = std::mem::take(&mut *self.topics.lock());
        drop(topics);
        self.conf.interceptors.destroy();
        let mock = self.mock.lock().take();
        drop(mock);
        let _ = self.log.shut(until);
    }

    /// Warns of messages that the producer has not delivered, and that are lost.
    fn warn_of_messages(&self) {
        let messages = self.core.get().map_or(0, |core| match core {
            Core::Producer(producer, _) => producer.in_queue(),
            Core::Consumer(_) | Core::Share(_) => 0,
        });
        if messages == 0 {
            return;
        }
        let line = format!(
            "{messages} messages are still queued or in flight and will be lost: call rd_kafka_flush() before \
             rd_kafka_destroy() to wait for their delivery"
        );
        // A log callback that does not return must not block rd_kafka_destroy().
        if self.log.is_stuck_elsewhere(Instant::now() + LOG_TIMEOUT) {
            self.log.print(4, c"TERMINATE", &line);
        } else {
            self.log(4, c"TERMINATE", &line);
        }
    }

    /// Logs the functions whose end was not awaited.
    fn say_stuck(&self, mut stuck: Vec<&'static str>) {
        let is_logging = self.log.is_stuck_elsewhere(Instant::now());
        if is_logging {
            stuck.push("log_cb");
        }
        let who =
            if stuck.is_empty() { "a function on an I/O thread".to_owned() } else { stuck.join(" and ") };
        let line = format!(
            "{who} did not return within {} s: rd_kafka_destroy() waits no longer. What the thread uses stays in memory \
             until it returns, and other clients on it stand still",
            DESTROY_TIMEOUT.as_secs()
        );
        // A log callback that does not return is not called again.
        if is_logging {
            self.log.print(4, c"DESTROY", &line);
        } else {
            self.log.write(4, c"DESTROY", &line);
        }
    }
}

export!(
    #[on(rk, ())]
    fn rd_kafka_destroy(rk: *const Client) {
        // SAFETY: by the contract of this function.
        unsafe { rd_kafka_destroy_flags(rk, 0) };
    }
);

export!(
    #[on(rk, ())]
    fn rd_kafka_destroy_flags(rk: *const Client, flags: c_int) {
        // SAFETY: the header demands NULL or a client; the caller gives up its reference.
        unsafe {
            // The application's functions get a handle that is still valid.
            if flags & NO_CONSUMER_CLOSE == 0
                && let Some(client) = Client::of(rk).and_then(|client| client.me.upgrade())
            {
                client.close_consumer();
            }
            let Some(client) = Client::of(rk) else { return };
            if client.is_given_up.swap(true, Ordering::AcqRel) {
                return;
            }
            let client = Arc::from_raw(rk);
            client.close();
            client.tag.clear();
            drop(client);
        }
        LIVE.get().fetch_sub(1, Ordering::SeqCst);
    }
);

export!(
    #[local(-1)]
    fn rd_kafka_wait_destroyed(timeout_ms: c_int) -> c_int {
        let _uncancelled = Uncancelled::begin();
        let until = deadline(timeout_ms);
        while LIVE.get().load(Ordering::SeqCst) > 0 {
            if until.is_some_and(|until| Instant::now() >= until) {
                set_last(code::_TIMED_OUT);
                return -1;
            }
            // The thread that destroys a client may still be in a call, which returns soon.
            std::thread::sleep(Duration::from_millis(1));
        }
        0
    }
);
