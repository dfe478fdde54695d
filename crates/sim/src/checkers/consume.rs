//! What is read of a partition: every record once and in order, nothing of the old place after a seek, nothing while it
//! is paused or not assigned, and what the log has at that offset. In the end everything that was acknowledged.

use std::collections::BTreeMap;

use super::{Broken, log::Log};
use crate::{reader::Reader, workload::Producer};

/// What was read of one partition, checked record by record.
#[derive(Debug)]
pub struct Progress {
    name: String,
    assigned: bool,
    paused: bool,
    expected: Expected,
    /// Where reading without a gap began.
    since: Option<i64>,
    /// Where the log came to begin when records were deleted.
    starts: Vec<i64>,
    /// Whoever stands at records that were deleted is sent to the end instead of the beginning.
    reset_to_end: bool,
    /// Where its log begins.
    begins: i64,
    /// The client may begin anew by itself, when it hears that the topic was made anew.
    may_restart: bool,
    /// Records were lost, and others took their offsets: where it goes on is not known until it begins anew.
    cut: bool,
    /// Which record stood at each offset, as producer and number.
    read: BTreeMap<i64, (u32, u64)>,
}

/// What may come next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// This offset.
    At(i64),
    /// One of these, or anything from an offset on: the place was named in another way than by its offset.
    Within {
        /// These.
        exact: Vec<i64>,
        /// This one and all behind it.
        from: i64,
    },
}

impl Progress {
    /// Nothing was read yet of a partition that is not assigned.
    pub const fn new(name: String) -> Self {
        Self {
            name,
            assigned: false,
            paused: false,
            expected: Expected::At(0),
            since: None,
            starts: Vec::new(),
            reset_to_end: false,
            cut: false,
            begins: 0,
            may_restart: false,
            read: BTreeMap::new(),
        }
    }

    /// Reading starts anew there.
    pub fn start(&mut self, expected: Expected) {
        self.assigned = true;
        self.since = if let Expected::At(offset) = expected { Some(offset) } else { None };
        self.expected = expected;
    }

    /// Records before `start` were deleted.
    pub fn deleted(&mut self, start: i64, reset_to_end: bool) {
        self.starts.push(start);
        self.reset_to_end = reset_to_end;
    }

    /// The log lost records at its end, or all.
    pub const fn cut(&mut self) {
        self.cut = true;
    }

    /// Everything healed, and it is read anew from the beginning of the log.
    pub fn renew(&mut self, begins: i64, may_restart: bool) {
        self.begins = begins;
        self.may_restart = may_restart;
        if std::mem::take(&mut self.cut) {
            self.read.clear();
        }
        self.starts.clear();
    }

    /// Where the beginning may be found.
    pub const fn beginning(&self) -> Expected {
        if self.is_changed() {
            Expected::Within { exact: Vec::new(), from: 0 }
        } else {
            Expected::At(self.begins)
        }
    }

    /// True if others than producers changed the log.
    pub const fn is_changed(&self) -> bool {
        self.cut || !self.starts.is_empty()
    }

    /// It is not read any more.
    pub const fn stop(&mut self) {
        self.assigned = false;
        self.paused = false;
    }

    /// Nothing may come until it is resumed.
    pub const fn set_paused(&mut self, paused: bool) {
        self.paused = paused;
    }

    /// True while it is read.
    pub const fn is_assigned(&self) -> bool {
        self.assigned
    }

    /// True while it is paused.
    pub const fn is_paused(&self) -> bool {
        self.paused
    }

    /// The offset that comes next, if that is known.
    pub const fn next(&self) -> Option<i64> {
        match self.expected {
            Expected::At(offset) => Some(offset),
            Expected::Within { .. } => None,
        }
    }

    /// The client says which offset the place is that was named in another way.
    pub fn located(&mut self, offset: i64) -> Result<(), Broken> {
        if self.cut {
            return Ok(());
        }
        if let Some(since) = self.since.filter(|since| !self.may_jump(*since, offset)) {
            return if since == offset {
                Ok(())
            } else {
                self.broken(format_args!("was said to start at {offset} and started at {since}"))
            };
        }
        if self.since.is_none() {
            self.allow(offset)?;
        }
        self.start(Expected::At(offset));
        Ok(())
    }

    /// A record came.
    pub fn record(&mut self, offset: i64, who: (u32, u64)) -> Result<(), Broken> {
        if !self.assigned {
            return self.broken(format_args!("offset {offset} came, and it is not assigned"));
        }
        if self.paused {
            return self.broken(format_args!("offset {offset} came while it was paused"));
        }
        if let Expected::At(next) = self.expected
            && (self.may_jump(next, offset) || self.may_restart && offset == self.begins)
        {
            self.start(Expected::At(offset));
        }
        self.allow(offset)?;
        self.since.get_or_insert(offset);
        self.expected = Expected::At(offset + 1);
        match self.read.insert(offset, who) {
            Some(before) if before != who && !self.cut => self.broken(format_args!(
                "offset {offset} was record {} of producer {} once and now is {} of {}",
                before.1, before.0, who.1, who.0
            )),
            _ => Ok(()),
        }
    }

    /// The client says where it will go on.
    pub fn positioned(&self, position: Option<i64>) -> Result<(), Broken> {
        match (&self.expected, position) {
            (Expected::At(next), Some(position)) if *next != position && self.assigned && !self.cut => {
                self.broken(format_args!("is said to stand at {position}, and offset {next} comes next"))
            }
            _ => Ok(()),
        }
    }

    /// The client says that this is the end.
    pub fn ended(&mut self, end: i64) -> Result<(), Broken> {
        if let Expected::At(next) = self.expected
            && self.may_jump(next, end)
        {
            self.expected = Expected::At(end);
            self.since = Some(end);
        }
        if self.cut {
            return Ok(());
        }
        match self.expected {
            Expected::At(next) if next < end && self.assigned => {
                self.broken(format_args!("is said to end at {end}, and offset {next} did not come yet"))
            }
            _ => Ok(()),
        }
    }

    /// How many offsets were read.
    pub fn count(&self) -> usize {
        self.read.len()
    }

    /// True if what came next was deleted, and this is where the client may go on then.
    fn may_jump(&self, next: i64, offset: i64) -> bool {
        offset > next
            && self.starts.iter().any(|start| next < *start)
            && (self.reset_to_end || self.starts.contains(&offset))
    }

    fn allow(&self, offset: i64) -> Result<(), Broken> {
        if self.cut {
            return Ok(());
        }
        match &self.expected {
            Expected::At(next) if *next == offset => Ok(()),
            Expected::At(next) if *next > offset => {
                self.broken(format_args!("offset {offset} came again, {next} was next"))
            }
            Expected::At(next) => self.broken(format_args!("offset {offset} came, {next} was next: a gap")),
            Expected::Within { exact, from } if offset >= *from || exact.contains(&offset) => Ok(()),
            Expected::Within { .. } if self.starts.contains(&offset) => Ok(()),
            Expected::Within { exact, from } => self.broken(format_args!(
                "offset {offset} came; it was to start at {exact:?} or at {from} or later"
            )),
        }
    }

    fn broken<T>(&self, what: std::fmt::Arguments<'_>) -> Result<T, Broken> {
        Err(Broken::new("consume", format!("{} {what}", self.name)))
    }
}

/// Compares what was read with the log, when everything has healed and all readers came to the end. What was acknowledged
/// is there only if it is `durable`.
pub fn check(readers: &[Reader], producers: &[Producer], log: &Log, durable: bool) -> Result<(), Broken> {
    for reader in readers {
        for ((topic, partition), progress) in reader.partitions() {
            for (offset, (producer, number)) in &progress.read {
                let written = log.at(*topic, *partition, *offset);
                if !log.ever_had(*topic, *partition, *offset, *producer, *number) {
                    return progress.broken(format_args!(
                        "offset {offset} was read as record {number} of producer {producer}; the log has {written:?}"
                    ));
                }
            }
            let Some(since) = progress.since.filter(|_| progress.assigned) else { continue };
            // What was deleted before it was read is not missed.
            let since = since.max(log.start(*topic, *partition));
            for record in log.partition(*topic, *partition).filter(|record| record.offset >= since) {
                if progress.read.get(&record.offset) != Some(&(record.producer, record.number)) {
                    return progress.broken(format_args!("offset {} was never read", record.offset));
                }
            }
            let durable = durable && !log.was_cut(*topic, *partition);
            for producer in producers.iter().filter(|_| durable) {
                let reports = producer.reports.lock();
                for (number, reports) in reports.iter() {
                    let here = producer.destinations[*number as usize] == (*topic, *partition);
                    let offset =
                        reports.first().filter(|report| report.error.is_none()).and_then(|r| r.offset);
                    if let Some(offset) = offset.filter(|offset| here && *offset >= since)
                        && progress.read.get(&offset) != Some(&(producer.number, *number))
                        && log.at(*topic, *partition, offset).is_some()
                    {
                        return progress.broken(format_args!(
                            "record {number} of producer {} was acknowledged at {offset} and not read there",
                            producer.number
                        ));
                    }
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_from_the_beginning(begins: i64) -> Progress {
        let mut progress = Progress::new("p".to_owned());
        progress.deleted(begins, false);
        progress.renew(begins, false);
        progress.start(progress.beginning());
        progress
    }

    #[test]
    fn the_beginning_of_a_log_that_lost_records_is_where_the_log_begins() {
        let mut progress = read_from_the_beginning(2);
        progress.located(2).unwrap();
        progress.record(2, (0, 7)).unwrap();
    }

    #[test]
    fn a_place_that_is_told_and_is_not_the_beginning_is_noticed() {
        for wrong in [0, 1, 3] {
            assert!(read_from_the_beginning(2).located(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_place_that_is_told_and_not_taken_is_noticed() {
        let mut progress = Progress::new("p".to_owned());
        progress.start(Expected::Within { exact: Vec::new(), from: 0 });
        progress.located(2).unwrap();
        assert!(progress.record(0, (0, 7)).is_err());

        progress.start(Expected::Within { exact: Vec::new(), from: 0 });
        progress.record(0, (0, 7)).unwrap();
        assert!(progress.located(2).is_err());
    }
}
