//! CPU time: of a step, by adding up the programs that it ran, and of the whole machine.

use std::{
    cell::RefCell,
    fs,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// The CPU time of the programs of a step.
#[derive(Clone, Debug, Default)]
pub struct CpuTime(Arc<AtomicU64>);

thread_local! {
    /// Where [`add`] counts for this thread.
    static OF_THREAD: RefCell<Option<CpuTime>> = const { RefCell::new(None) };
}

impl CpuTime {
    /// Counts the programs that this thread runs from now on.
    pub fn count_here(&self) {
        OF_THREAD.with_borrow_mut(|of_thread| *of_thread = Some(self.clone()));
    }

    pub fn total(&self) -> Duration {
        Duration::from_micros(self.0.load(Ordering::Relaxed))
    }
}

/// Adds the CPU time of a program that has ended to the step of this thread, if it has one.
pub fn add(time: Duration) {
    OF_THREAD.with_borrow(|of_thread| {
        if let Some(CpuTime(total)) = of_thread {
            total.fetch_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    });
}

/// The number of processors.
pub fn processors() -> f64 {
    std::thread::available_parallelism().map_or(1.0, |count| count.get() as f64)
}

/// The processors' busy time and whole time since the machine started, in ticks. `None` where Linux's table is not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    busy: u64,
    whole: u64,
}

impl Machine {
    pub fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// Parses `cpu USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL ...`.
    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        // The times of guests are part of the users' times.
        let ticks: Vec<u64> = line.split_whitespace().take(8).filter_map(|word| word.parse().ok()).collect();
        let whole = ticks.iter().sum();
        let idle: u64 = ticks.iter().skip(3).take(2).sum();
        Some(Self { busy: whole - idle, whole })
    }

    /// Returns the share of the time since `earlier` in which the processors were busy.
    pub fn busy_since(self, earlier: Self) -> f64 {
        let whole = self.whole.saturating_sub(earlier.whole).max(1);
        self.busy.saturating_sub(earlier.busy) as f64 / whole as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_added_to_the_step_of_the_thread() {
        let (one, other) = (CpuTime::default(), CpuTime::default());
        one.count_here();
        add(Duration::from_millis(5));
        other.count_here();
        add(Duration::from_millis(7));
        assert_eq!((one.total(), other.total()), (Duration::from_millis(5), Duration::from_millis(7)));
    }

    #[test]
    fn waiting_is_not_busy() {
        let at = |text| Machine::parse(text).unwrap();
        let earlier = at("cpu  10 0 10 70 10 0 0 0 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n");
        let later = at("cpu  60 0 10 110 20 0 0 0 0 0\n");
        assert_eq!(later.busy_since(earlier), 0.5);
    }
}
