//! Checks the records that consumers read: every record once and in order, nothing of the old position after a seek,
//! nothing while the partition is paused or unassigned, and the log's record at each offset. At the end, every
//! acknowledged record must have been read.

use ottla_sorted::SortedMap;

use super::{Broken, log::Log};
use crate::{reader::Reader, workload::Producer};

/// The records that were read of one partition, checked one by one.
#[derive(Debug)]
pub struct Progress {
    name: String,
    assigned: bool,
    paused: bool,
    expected: Expected,
    /// The offset from which reading has been without a gap.
    since: Option<i64>,
    /// The log start offsets after deletions of records.
    starts: Vec<i64>,
    /// A consumer at deleted records resets to the end instead of the beginning.
    reset_to_end: bool,
    /// The first offset of the log.
    begins: i64,
    /// The client may restart on its own when it learns that the topic was recreated.
    may_restart: bool,
    /// Records were lost and others took their offsets: the next offset is unknown until reading starts again.
    cut: bool,
    /// The record at each offset, as producer and number.
    read: SortedMap<i64, (u32, u64)>,
}

/// The records that may come next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// This offset.
    At(i64),
    /// One of these offsets, or any from an offset on: the position was not given as an offset.
    Within {
        /// These.
        exact: Vec<i64>,
        /// This offset and all after it.
        from: i64,
    },
}

impl Progress {
    /// Creates the state of an unassigned partition that was never read.
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
            read: SortedMap::new(),
        }
    }

    /// Starts reading again at this position.
    pub fn start(&mut self, expected: Expected) {
        self.assigned = true;
        self.since = if let Expected::At(offset) = expected { Some(offset) } else { None };
        self.expected = expected;
    }

    /// Handles the deletion of the records before `start`.
    pub fn deleted(&mut self, start: i64, reset_to_end: bool) {
        self.starts.push(start);
        self.reset_to_end = reset_to_end;
    }

    /// Handles the loss of records at the end of the log, or of all records.
    pub const fn cut(&mut self) {
        self.cut = true;
    }

    /// Starts reading again from the beginning of the log after all faults have healed.
    pub fn renew(&mut self, begins: i64, may_restart: bool) {
        self.begins = begins;
        self.may_restart = may_restart;
        if std::mem::take(&mut self.cut) {
            self.read.clear();
        }
        self.starts.clear();
    }

    /// Returns the possible positions of the beginning.
    pub const fn beginning(&self) -> Expected {
        if self.is_changed() {
            Expected::Within { exact: Vec::new(), from: 0 }
        } else {
            Expected::At(self.begins)
        }
    }

    /// Returns true if anything but producers changed the log.
    pub const fn is_changed(&self) -> bool {
        self.cut || !self.starts.is_empty()
    }

    /// Ends reading the partition.
    pub const fn stop(&mut self) {
        self.assigned = false;
        self.paused = false;
    }

    /// Forbids or allows records.
    pub const fn set_paused(&mut self, paused: bool) {
        self.paused = paused;
    }

    /// Returns true if the partition is being read.
    pub const fn is_assigned(&self) -> bool {
        self.assigned
    }

    /// Returns true while it is paused.
    pub const fn is_paused(&self) -> bool {
        self.paused
    }

    /// Returns the next offset, if it is known.
    pub const fn next(&self) -> Option<i64> {
        match self.expected {
            Expected::At(offset) => Some(offset),
            Expected::Within { .. } => None,
        }
    }

    /// Checks the offset that the client reports for a position that was not given as an offset.
    pub fn located(&mut self, offset: i64) -> Result<(), Broken> {
        if self.cut {
            return Ok(());
        }
        if let Some(since) = self.since.filter(|since| !self.may_jump(*since, offset)) {
            return if since == offset {
                Ok(())
            } else {
                self.broken(format_args!("was reported to start at {offset} but started at {since}"))
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
            return self
                .broken(format_args!("offset {offset} was delivered, but the partition is not assigned"));
        }
        if self.paused {
            return self.broken(format_args!("offset {offset} was delivered while the partition was paused"));
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
                "offset {offset} was record {} of producer {} before and is now {} of {}",
                before.1, before.0, who.1, who.0
            )),
            _ => Ok(()),
        }
    }

    /// Checks the position that the client reports.
    pub fn positioned(&self, position: Option<i64>) -> Result<(), Broken> {
        match (&self.expected, position) {
            (Expected::At(next), Some(position)) if *next != position && self.assigned && !self.cut => {
                self.broken(format_args!("reports position {position}, but offset {next} is next"))
            }
            _ => Ok(()),
        }
    }

    /// Checks the end that the client reports.
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
                self.broken(format_args!("reports its end at {end}, but offset {next} was not delivered yet"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the number of offsets that were read.
    pub fn count(&self) -> usize {
        self.read.len()
    }

    /// Returns true if the next record was deleted and the client may continue at `offset`.
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
                self.broken(format_args!("offset {offset} was delivered again, {next} was expected"))
            }
            Expected::At(next) => {
                self.broken(format_args!("offset {offset} was delivered, {next} was expected: a gap"))
            }
            Expected::Within { exact, from } if offset >= *from || exact.contains(&offset) => Ok(()),
            Expected::Within { .. } if self.starts.contains(&offset) => Ok(()),
            Expected::Within { exact, from } => self.broken(format_args!(
                "offset {offset} was delivered; expected {exact:?}, or {from} or later"
            )),
        }
    }

    fn broken<T>(&self, what: std::fmt::Arguments<'_>) -> Result<T, Broken> {
        Err(Broken::new("consume", format!("{} {what}", self.name)))
    }
}

/// Compares the read records with the log after everything has healed and all readers have reached the end.
/// Acknowledged records must be there only if the log is `durable`.
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
            // Records that were deleted before they were read may be missing.
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
    fn beginning_of_a_shortened_log_is_its_start_offset() {
        let mut progress = read_from_the_beginning(2);
        progress.located(2).unwrap();
        progress.record(2, (0, 7)).unwrap();
    }

    #[test]
    fn reported_position_other_than_the_beginning_is_detected() {
        for wrong in [0, 1, 3] {
            assert!(read_from_the_beginning(2).located(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn reported_position_that_is_not_used_is_detected() {
        let mut progress = Progress::new("p".to_owned());
        progress.start(Expected::Within { exact: Vec::new(), from: 0 });
        progress.located(2).unwrap();
        assert!(progress.record(0, (0, 7)).is_err());

        progress.start(Expected::Within { exact: Vec::new(), from: 0 });
        progress.record(0, (0, 7)).unwrap();
        assert!(progress.located(2).is_err());
    }
}
