//! Applications that don't wait for all of their records: they purge, flush with a deadline, and close with one. Checks
//! that a purge leaves no record that it should remove, that a flush that succeeds has seen all reports and is woken by
//! the last one, and that a close returns all records within its deadline.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use ottla_core::{
    cluster::command::Command, contract::purge::Purge, machine::Instant, produce::budget::Budget, rng::Rng,
    waiters::Waiter,
};

use crate::{checkers::Broken, workload::Producer, world::World};

/// The rates and timeouts of an application's calls besides sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// In this number of 50 cases a thread takes up to 3 ms to handle a notification, so that commands cross with other
    /// events.
    pub slow_threads: u64,
    /// It purges in one of this number of steps; 0 is never.
    pub purges: u64,
    /// It flushes in one of this number of steps; 0 is never.
    pub flushes: u64,
    /// It purges in one of this number of cases when a partition begins to move to another leader; 0 is never.
    pub purges_moves: u64,
    /// The timeout of a flush.
    pub flush_timeout: Duration,
    /// It closes in one of this number of steps; 0 is never.
    pub closes: u64,
    /// The timeout of the flush before it closes.
    pub close_timeout: Duration,
}

/// The maximum time in which a client's threads carry out a command, unless its host sleeps. A thread takes at most 3
/// ms to handle a notification, and a command passes three or four threads.
const PROMPT: Duration = Duration::from_millis(50);

/// An application with its pending operations.
#[derive(Debug)]
pub struct Application {
    habits: Deadlines,
    rng: Rng,
    purges: Vec<PurgeUnderWay>,
    flush: Option<Flush>,
    closing: Closing,
    /// The number of records that had been sent in the last step.
    sent: u64,
}

#[derive(Clone, Copy, Debug)]
struct PurgeUnderWay {
    at: Instant,
    what: Purge,
    /// The number of records that had been sent.
    sent: u64,
}

#[derive(Debug)]
struct Flush {
    deadline: Instant,
    sent: u64,
    bell: Arc<Bell>,
    waiter: Waiter<Budget>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closing {
    Open,
    /// It flushes before it closes.
    Flushing,
    /// The client was asked to close.
    Ending(Instant),
    Closed,
}

#[derive(Debug, Default)]
struct Bell(AtomicBool);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Deadlines {
    /// It waits for everything.
    pub const NONE: Self = Self {
        slow_threads: 1,
        purges: 0,
        purges_moves: 0,
        flushes: 0,
        flush_timeout: Duration::ZERO,
        closes: 0,
        close_timeout: Duration::ZERO,
    };

    /// Draws the habits; three of four worlds have none.
    pub fn from_seed(seed: u64) -> Self {
        let mut rng = Rng::from_seed(seed ^ HABITS);
        if !rng.chance(1, 4) {
            return Self::NONE;
        }
        let mut pick = |choices: &[u64]| choices[rng.below(choices.len() as u64) as usize];
        Self {
            slow_threads: pick(&[1, 10, 25]),
            purges: pick(&[10, 50, 300, 0]),
            flushes: pick(&[30, 300, 0]),
            flush_timeout: Duration::from_millis(pick(&[0, 100, 1_000, 10_000])),
            closes: pick(&[200, 1_000, 0, 0]),
            close_timeout: Duration::from_millis(pick(&[0, 100, 1_000, 10_000])),
            purges_moves: pick(&[0, 0, 1, 10]),
        }
    }
}

/// A constant that keeps the traces of the seeds named in tests and documents.
const HABITS: u64 = 0x13ea;

impl Application {
    /// Creates the application of a producer in the world of a seed.
    pub fn new(habits: Deadlines, seed: u64, producer: u32) -> Self {
        Self {
            habits,
            rng: Rng::from_seed(seed ^ HABITS ^ (u64::from(producer) + 1) << 32),
            purges: Vec::new(),
            flush: None,
            closing: Closing::Open,
            sent: 0,
        }
    }

    /// Returns true if no operation is pending.
    pub fn is_idle(&self) -> bool {
        self.purges.is_empty()
            && self.flush.is_none()
            && matches!(self.closing, Closing::Open | Closing::Closed)
    }

    /// Checks the pending operations, and begins a new one where it `may`.
    pub fn step(&mut self, producer: &mut Producer, world: &mut World, may: bool) -> Result<(), Broken> {
        self.take_purges(producer, world);
        self.check_purges(producer, world)?;
        self.check_flush(producer, world)?;
        self.check_close(producer, world)?;
        if may && self.closing == Closing::Open {
            self.begin(producer, world);
        }
        self.sent = producer.sent;
        Ok(())
    }

    /// Handles purges at the moves of partitions, after the last step and before later records are sent.
    fn take_purges(&mut self, producer: &mut Producer, world: &mut World) {
        for (_, at) in world.purged.extract_if(.., |(client, _)| *client == producer.client) {
            producer.purged = Purge::ALL;
            self.purges.push(PurgeUnderWay { at, what: Purge::ALL, sent: self.sent });
        }
    }

    fn begin(&mut self, producer: &mut Producer, world: &mut World) {
        let Deadlines { purges, flushes, closes, .. } = self.habits;
        let now = world.now;
        let mut now_and_then = |steps: u64| steps > 0 && self.rng.chance(1, steps);
        let (purges, flushes, closes) = (now_and_then(purges), now_and_then(flushes), now_and_then(closes));
        if purges && producer.shared.queued_messages() > 0 {
            let what = [Purge::QUEUE, Purge::IN_FLIGHT, Purge::ALL, Purge::ALL][self.rng.below(4) as usize];
            world.trace.note(now, format_args!("producer {} is purged: {what:?}", producer.number));
            world.clients[producer.client].commands.push(Command::Purge(what));
            producer.purged.queue |= what.queue;
            producer.purged.in_flight |= what.in_flight;
            self.purges.push(PurgeUnderWay { at: now, what, sent: producer.sent });
        }
        if closes {
            world.trace.note(now, format_args!("producer {} closes", producer.number));
            self.closing = Closing::Flushing;
        }
        if (closes || flushes) && self.flush.is_none() {
            world.trace.note(now, format_args!("producer {} is flushed", producer.number));
            producer.shared.flushing.fetch_add(1, Ordering::SeqCst);
            world.clients[producer.client].commands.push(Command::Flush);
            let timeout = if closes { self.habits.close_timeout } else { self.habits.flush_timeout };
            // The first check happens as if it had been woken.
            let bell = Arc::new(Bell(AtomicBool::new(true)));
            self.flush =
                Some(Flush { deadline: now + timeout, sent: producer.sent, bell, waiter: Waiter::default() });
        }
    }

    fn check_purges(&mut self, producer: &Producer, world: &World) -> Result<(), Broken> {
        while let Some(purge) = self.purges.first().copied()
            && is_over(world, producer.client, purge.at, Duration::ZERO)
        {
            self.purges.remove(0);
            let name = format!("producer {}, {PROMPT:?} after its purge", producer.number);
            if purge.what == Purge::ALL {
                let reports = producer.reports.lock();
                if let Some(number) = (0..purge.sent).find(|number| !reports.contains_key(number)) {
                    let what = format!("{name}: record {number} of {} has no report", purge.sent);
                    return Err(Broken::new("liveness", what));
                }
                let budget = &producer.shared.budget;
                let charged = (budget.messages(), budget.bytes());
                if producer.sent == purge.sent && charged != (0, 0) {
                    let what = format!("{name}: {charged:?} messages and bytes are still charged");
                    return Err(Broken::new("accounting", what));
                }
            } else if purge.what.queue {
                for topic in producer.shared.topics() {
                    for partition in 0..topic.partition_count().unwrap_or(0) {
                        let since = topic.accumulator(partition).and_then(|waits| waits.remaining().since());
                        if let Some(since) = since.filter(|since| *since < purge.at) {
                            let topic = topic.name();
                            let age = purge.at - since;
                            let what = format!(
                                "{name} of the queue: {topic} [{partition}] has a record that was {age:?} old"
                            );
                            return Err(Broken::new("liveness", what));
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn check_flush(&mut self, producer: &Producer, world: &mut World) -> Result<(), Broken> {
        let Some(flush) = &mut self.flush else { return Ok(()) };
        let name = format!("producer {} is flushed", producer.number);
        if flush.bell.0.swap(false, Ordering::SeqCst) {
            let waker = Waker::from(Arc::clone(&flush.bell));
            if producer.shared.poll_flushed(&mut flush.waiter, &Context::from_waker(&waker))
                == Poll::Ready(())
            {
                let reports = producer.reports.lock();
                if let Some(number) = (0..flush.sent).find(|number| !reports.contains_key(number)) {
                    let what = format!("{name}, and record {number} of {} has no report", flush.sent);
                    return Err(Broken::new("liveness", what));
                }
                world.trace.note(world.now, format_args!("producer {} has no records left", producer.number));
                return self.end_flush(producer);
            }
        } else if producer.shared.budget.messages() == 0 {
            return Err(Broken::new(
                "liveness",
                format!("{name}, has no records left, and no thread was woken"),
            ));
        }
        if flush.deadline <= world.now {
            world.trace.note(
                world.now,
                format_args!("producer {} reached the deadline of its flush", producer.number),
            );
            self.end_flush(producer)?;
        }
        Ok(())
    }

    fn end_flush(&mut self, producer: &Producer) -> Result<(), Broken> {
        self.flush = None;
        if producer.shared.flushing.fetch_sub(1, Ordering::SeqCst) == 0 {
            return Err(Broken::new(
                "accounting",
                format!("producer {}: more flushes ended", producer.number),
            ));
        }
        Ok(())
    }

    fn check_close(&mut self, producer: &mut Producer, world: &mut World) -> Result<(), Broken> {
        match self.closing {
            Closing::Open | Closing::Closed => {}
            Closing::Flushing if self.flush.is_some() => {}
            Closing::Flushing => {
                world.trace.note(world.now, format_args!("producer {} lets go", producer.number));
                producer.shared.close(None);
                producer.goal = producer.sent;
                world.clients[producer.client].closing = true;
                let timeout = world.closing_timeout;
                world.clients[producer.client].commands.push(Command::Close { timeout });
                self.closing = Closing::Ending(world.now);
            }
            Closing::Ending(since) => {
                let client = &world.clients[producer.client];
                let name = format!("producer {}", producer.number);
                if !client.closed {
                    if is_over(world, producer.client, since, world.closing_timeout) {
                        let what = format!("{name} is not closed {PROMPT:?} after it was to let go");
                        return Err(Broken::new("liveness", what));
                    }
                    return Ok(());
                }
                let reports = producer.reports.lock();
                if let Some(number) = (0..producer.sent).find(|number| !reports.contains_key(number)) {
                    let what =
                        format!("{name} is closed, and record {number} of {} has no report", producer.sent);
                    return Err(Broken::new("liveness", what));
                }
                self.closing = Closing::Closed;
            }
        }
        Ok(())
    }
}

/// Returns true if `timeout` has passed since `then`, and the client had the time to carry out its commands.
pub fn is_over(world: &World, client: usize, then: Instant, timeout: Duration) -> bool {
    let awake = world.awake_at(client).map_or(then, |at| then.max(at));
    awake + timeout + PROMPT <= world.now
}
