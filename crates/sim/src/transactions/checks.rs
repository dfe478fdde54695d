//! The checks of a run: what the logs, the readers, the reports and the committed offsets must agree on.

use ottla_core::{
    error::{Error, ErrorKind},
    produce::{report::PersistenceStatus, transaction::api::TransactionApi},
};
use ottla_protocol::{api::ApiKey, error_code::ErrorCode};
use ottla_sorted::{SortedMap, SortedSet};

use super::{
    GROUP, Run,
    application::Application,
    ledger::{Label, Place},
    log::{self, Fate, Logged},
};
use crate::checkers::Broken;

/// The logs of all partitions.
type Logs = SortedMap<Place, Vec<Logged>>;

impl Run {
    /// A producer fails for good only if another instance asked for the producer ID, or if its transaction was open for too
    /// long.
    pub(super) fn check_fatal(&self, index: usize, api: TransactionApi, error: &Error) -> Result<(), Broken> {
        let application = &self.applications[index];
        let mut others = self.applications.iter().enumerate();
        // An earlier instance that asks for a higher epoch ends the open transaction of a later one, and fences it: the
        // coordinator compares epochs only without an open transaction.
        let is_superseded = others.any(|(other, it)| {
            let is_later = it.ready.is_none_or(|ready| ready >= application.started);
            let lived = it.ended.is_none_or(|ended| ended >= application.started);
            other != index && it.slot == application.slot && (is_later || lived)
        });
        let begun = application.transaction.map(|it| self.ledger.transactions[it].begun);
        let is_late = begun.is_some_and(|begun| begun + self.setup.timeout <= self.world.now);
        // With the older protocol, a producer that was fenced by its timeout can't distinguish that from a newer
        // instance.
        let may_time_out = self.setup.version < 2 || self.setup.is_switched;
        let is_renewal = error.to_string().contains(ApiKey::InitProducerId.name());
        // The coordinator has ended the last transaction after a downgrade. It takes the EndTxn of the newer protocol for a
        // repetition all the same, so that only the next transaction notices.
        let own = self.ledger.transactions.iter().filter(|it| it.producer == index);
        // Nothing is sent about a transaction without records.
        let mut own = own.rev().enumerate().filter(|(back, it)| *back == 0 || !it.records.is_empty());
        let was_late = match (own.next(), own.next()) {
            (Some((_, last)), Some((_, before))) => before.begun + self.setup.timeout <= last.begun,
            _ => false,
        };
        let is_late = is_late || is_renewal && was_late;
        // A late registration begins a transaction in the epoch of the one that has just ended. When the producer renews its
        // epoch, the coordinator raises it to abort that transaction, and then takes the producer for an earlier one.
        let is_reopened = is_renewal && may_time_out && self.registers_late;
        // A late EndTxn of the newer protocol raises the epoch after the cluster has been downgraded and upgraded again. The
        // producer has used the older form meanwhile.
        let is_end = error.to_string().contains(ApiKey::EndTxn.name());
        let is_ended_late = is_end && self.setup.is_switched && self.ends_late;
        // After the last epoch of a producer ID only the first repetition of InitProducerId is recognized.
        let is_rotated = is_renewal && self.setup.has_faults && self.exhausted.contains(&application.slot);
        let is_expected = match error.kind() {
            // The coordinator has given the last epoch, and the producer does not know it.
            ErrorKind::Broker(ErrorCode::UNKNOWN_SERVER_ERROR) => is_rotated,
            ErrorKind::Fenced => {
                is_superseded || is_late && may_time_out || is_reopened || is_ended_late || is_rotated
            }
            // The newer instance has got another producer ID, because the epochs of this one's were used up.
            ErrorKind::Inconsistent => {
                is_superseded && error.to_string().contains(ErrorCode::INVALID_PRODUCER_ID_MAPPING.name())
            }
            _ => false,
        };
        if is_expected {
            return Ok(());
        }
        let what = format!("producer {index} failed for good in {}: {error}", api.name());
        Err(Broken::new("fatal", what))
    }

    /// Returns the end of each log.
    pub(super) fn log_ends(&mut self) -> SortedMap<Place, i64> {
        let control = self.world.cluster.control();
        let mut ends = SortedMap::new();
        for (index, (topic, count)) in self.setup.topics.iter().enumerate() {
            for partition in 0..*count {
                let end = control.partition(topic, partition).map_or(0, |state| state.log_end_offset);
                ends.insert((index as u32, partition), end);
            }
        }
        ends
    }

    fn logs(&mut self) -> Result<Logs, Broken> {
        let mut logs = Logs::new();
        for (index, (topic, count)) in self.setup.topics.iter().enumerate() {
            for partition in 0..*count {
                let log = log::read(&mut self.world.cluster, topic, partition)
                    .map_err(|what| Broken::new("leak", format!("{topic} [{partition}]: {what}")))?;
                logs.insert((index as u32, partition), log);
            }
        }
        Ok(logs)
    }

    /// Returns a committed record of the input without a visible copy.
    pub(super) fn missing_copy(&mut self) -> Option<String> {
        if self.setup.copiers == 0 {
            return None;
        }
        let logs = match self.logs() {
            Ok(logs) => logs,
            Err(broken) => return Some(broken.to_string()),
        };
        let copied: SortedSet<(i32, i64)> =
            visible(&logs).filter_map(|(_, record)| record.label.source).collect();
        let mut input = visible(&logs).filter(|(place, _)| place.0 == 0);
        let missing =
            input.find(|((_, partition), record)| !copied.contains(&(*partition, record.offset)))?;
        Some(format!("lost-write: {:?} has no visible copy", missing.1))
    }

    /// Checks everything after all work is done.
    pub(super) fn check_everything(&mut self) -> Result<(), Broken> {
        let logs = self.logs()?;
        self.check_fates(&logs)?;
        self.check_transactions(&logs)?;
        self.check_zombies(&logs)?;
        self.check_order(&logs)?;
        self.check_readers(&logs)?;
        self.check_reports(&logs)?;
        self.check_copies(&logs)
    }

    /// Each transaction has ended, and no marker ends two of them.
    fn check_fates(&self, logs: &Logs) -> Result<(), Broken> {
        for (place, log) in logs {
            let mut ended: SortedMap<(i64, i64), Label> = SortedMap::new();
            for record in log {
                let (Fate::Committed(marker) | Fate::Aborted(marker)) = record.fate else {
                    let what = format!("{record:?} of {place:?} belongs to a transaction without end");
                    return Err(Broken::new("recovery", what));
                };
                let first = ended.entry((record.identity.0, marker)).or_insert(record.label);
                if first.transaction != record.label.transaction {
                    let what = format!(
                        "G1c (circular information flow): the marker at {marker} of {place:?} ends {first:?} and {:?}",
                        record.label
                    );
                    return Err(Broken::new("leak", what));
                }
            }
        }
        Ok(())
    }

    /// Each transaction is visible as a whole or not at all, as its application's results say.
    fn check_transactions(&self, logs: &Logs) -> Result<(), Broken> {
        let mut seen: SortedMap<u32, SortedMap<u64, (Place, i64)>> = SortedMap::new();
        for (place, record) in visible(logs) {
            let label = record.label;
            let numbers = seen.entry(label.transaction).or_default();
            if let Some(other) = numbers.insert(label.number, (*place, record.offset)) {
                let what = format!("duplicate: {label:?} is at {other:?} and at {place:?} {}", record.offset);
                return Err(Broken::new("exactly once", what));
            }
        }
        for (number, transaction) in self.ledger.transactions.iter().enumerate() {
            let numbers = seen.get(&(number as u32));
            let count = numbers.map_or(0, SortedMap::len);
            let of = format!("transaction {number} of producer {}", transaction.producer);
            if count > 0 && !transaction.may_be_visible() {
                let what = format!("{of}: {count} records are visible: {}", transaction.anomaly());
                return Err(Broken::new("truth", what));
            }
            let missing = transaction
                .records
                .iter()
                .find(|sent| !numbers.is_some_and(|numbers| numbers.contains_key(&sent.number)));
            let Some(missing) = missing else { continue };
            if count > 0 {
                let all = transaction.records.len();
                let what = format!("torn transaction: {of}: {count} of {all} records are visible");
                return Err(Broken::new("atomicity", what));
            }
            if transaction.must_be_visible() {
                let what = format!(
                    "lost-write: {of} was committed, and record {} in {:?} is not visible",
                    missing.number, missing.place
                );
                return Err(Broken::new("truth", what));
            }
        }
        Ok(())
    }

    /// Nothing of an earlier instance becomes visible after a later one has its producer ID.
    fn check_zombies(&self, logs: &Logs) -> Result<(), Broken> {
        for (owner, ends) in &self.fences {
            let Application { slot, identity, .. } = &self.applications[*owner];
            for (place, record) in visible(logs) {
                let writer = record.label.producer as usize;
                let application = &self.applications[writer];
                let is_earlier = application.slot == *slot && application.identity < *identity;
                let end = ends.get(place).copied().unwrap_or_default();
                let Fate::Committed(marker) = record.fate else { continue };
                if is_earlier && (record.offset >= end || marker >= end) {
                    let what = format!(
                        "{record:?} of {place:?} became visible after producer {owner} had fenced producer {writer} at {end}"
                    );
                    return Err(Broken::new("zombie", what));
                }
            }
        }
        Ok(())
    }

    /// In a partition, a producer's visible records are in the order in which they were sent.
    fn check_order(&self, logs: &Logs) -> Result<(), Broken> {
        for (place, log) in logs {
            let mut last: SortedMap<u32, Label> = SortedMap::new();
            for record in log.iter().filter(|record| record.is_visible()) {
                let label = record.label;
                if label.place != *place {
                    return Err(Broken::new("order", format!("{label:?} is in {place:?}")));
                }
                if let Some(before) = last.insert(label.producer, label)
                    && before.number >= label.number
                {
                    let what = format!("G0 (write cycle): {label:?} follows {before:?} in {place:?}");
                    return Err(Broken::new("order", what));
                }
            }
        }
        Ok(())
    }

    /// Readers have seen exactly the visible records.
    fn check_readers(&mut self, logs: &Logs) -> Result<(), Broken> {
        for reader in &self.readers {
            for (place, log) in logs {
                let expected: SortedMap<i64, Label> = log
                    .iter()
                    .filter(|record| record.is_visible())
                    .map(|record| (record.offset, record.label))
                    .collect();
                let empty = SortedMap::new();
                let seen = reader.seen.get(place).unwrap_or(&empty);
                self.summary.read += seen.len() as u64;
                if let Some((offset, label)) = seen.iter().find(|(offset, _)| !expected.contains_key(offset))
                {
                    let what = format!("G1a (aborted read): offset {offset} of {place:?}: {label:?}");
                    return Err(Broken::new("atomicity", what));
                }
                if let Some((offset, label)) = expected.iter().find(|(at, label)| seen.get(at) != Some(label))
                {
                    let what = format!("poll-skip: offset {offset} of {place:?} was not read: {label:?}");
                    return Err(Broken::new("stable", what));
                }
            }
        }
        Ok(())
    }

    /// Each accepted record has one report, which agrees with the log.
    fn check_reports(&self, logs: &Logs) -> Result<(), Broken> {
        let mut logged: SortedMap<(u32, u64), i64> = SortedMap::new();
        for record in logs.values().flatten() {
            logged.insert((record.label.producer, record.label.number), record.offset);
        }
        for (index, application) in self.applications.iter().enumerate() {
            let reports = application.reports.lock();
            for number in 0..application.sent {
                let record = format!("record {number} of producer {index}");
                let broken = |what: String| Err(Broken::new("reports", format!("{record}: {what}")));
                let own = reports.get(&number).map_or(&[][..], |reports| reports);
                let offset = logged.get(&(index as u32, number)).copied();
                let (report, others) = match own {
                    [] if application.is_over() => continue,
                    [] => return broken("no report".to_owned()),
                    [report, others @ ..] => (report, others),
                };
                if !others.is_empty() {
                    return broken(format!("{} reports: {own:?}", own.len()));
                }
                let is_right = match report.status {
                    PersistenceStatus::Persisted => {
                        offset.is_some() && report.offset.is_none_or(|it| Some(it) == offset)
                    }
                    PersistenceStatus::NotPersisted => offset.is_none(),
                    PersistenceStatus::PossiblyPersisted => true,
                };
                if !is_right {
                    return broken(format!("{report:?}, and it is at {offset:?}"));
                }
            }
        }
        Ok(())
    }

    /// Each committed record of the input has one visible copy, and the committed offsets agree.
    fn check_copies(&mut self, logs: &Logs) -> Result<(), Broken> {
        if self.setup.copiers == 0 {
            return Ok(());
        }
        let mut copies: SortedMap<(i32, i64), (Place, i64)> = SortedMap::new();
        for (place, record) in visible(logs) {
            let Some(source) = record.label.source else { continue };
            self.summary.copies += 1;
            if let Some(other) = copies.insert(source, (*place, record.offset)) {
                let what = format!(
                    "duplicate: {source:?} of the input is copied to {other:?} and to {place:?} {}",
                    record.offset
                );
                return Err(Broken::new("exactly once", what));
            }
        }
        let (topic, count) = self.setup.topics[0].clone();
        for partition in 0..count {
            let committed = self.world.cluster.control().committed_offset(GROUP, &topic, partition);
            let committed = committed.unwrap_or(0);
            let input = logs.get(&(0, partition)).map_or(&[][..], |log| log);
            for record in input.iter().filter(|record| record.is_visible()) {
                let is_copied = copies.contains_key(&(partition, record.offset));
                if is_copied != (record.offset < committed) {
                    let what = format!(
                        "offset {} of {topic} [{partition}] is copied: {is_copied}; {committed} is committed",
                        record.offset
                    );
                    return Err(Broken::new("agreement", what));
                }
            }
        }
        Ok(())
    }
}

fn visible(logs: &Logs) -> impl Iterator<Item = (&Place, &Logged)> {
    logs.iter().flat_map(|(place, log)| {
        log.iter().filter(|record| record.is_visible()).map(move |record| (place, record))
    })
}
