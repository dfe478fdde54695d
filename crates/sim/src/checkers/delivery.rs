//! Checks delivery reports: one per record, and true. "Acknowledged" means in the log, "not persisted" means not in the
//! log, idempotent means once and in order. Reports of a partition come in the order of the responses. For a partition
//! that lost records with its topic or with a replica, only reports of "not persisted" are checked.

use ottla_core::{error::ErrorKind, produce::report::PersistenceStatus};
use ottla_sorted::SortedMap;

use super::{
    Broken,
    log::{Log, Logged},
};
use crate::workload::{Producer, Report};

/// The guarantees that the knobs allow.
#[derive(Clone, Copy, Debug)]
pub struct Guarantees {
    /// Acknowledged records can't be lost: acks=all, or no broker loses records that its followers do not have.
    pub durable: bool,
    /// The producers are idempotent.
    pub idempotent: bool,
}

/// The order of the reports of each partition. Responses come in the order of the requests, so records that were sent
/// once are acknowledged in order, and records that were never sent fail in order. A purge breaks the order: records in
/// a request stay there, and may return unsent after newer records were purged.
#[derive(Debug, Default)]
struct ReportOrder {
    acknowledged: SortedMap<(u32, i32), (u64, u64)>,
    unsent: SortedMap<(u32, i32), (u64, u64)>,
}

impl ReportOrder {
    /// Checks the next report. Returns the number of an older record of the partition whose report had to come first.
    fn check(&mut self, location: (u32, i32), number: u64, report: &Report, sends: u32) -> Option<u64> {
        let is_delivered = report.error.is_none();
        let reports = match sends {
            _ if report.kind == Some(ErrorKind::PurgedFromQueue) => return None,
            _ if is_delivered => &mut self.acknowledged,
            // A record in flight may time out before any byte of it was written.
            0 if report.status == PersistenceStatus::NotPersisted => &mut self.unsent,
            _ => return None,
        };
        let before =
            reports.get(&location).filter(|(order, _)| *order > report.order).map(|(_, number)| *number);
        if sends <= 1 {
            reports.insert(location, (report.order, number));
        }
        before
    }
}

/// The location of a record: topic, partition, offset.
type Location = (u32, i32, i64);

/// Checks all sent records against all written records.
pub fn check(
    producers: &[Producer],
    log: &Log,
    topics: &[(String, i32)],
    guarantees: Guarantees,
) -> Result<(), Broken> {
    let broken = |what: String| Err(Broken::new("delivery", what));
    let mut written: SortedMap<(u32, u64), Vec<Location>> = SortedMap::new();
    let mut last: SortedMap<(u32, u32, i32), &Logged> = SortedMap::new();
    for record in log.records() {
        let Logged { topic, partition, offset, producer, number, sender } = *record;
        written.entry((producer, number)).or_default().push((topic, partition, offset));
        if let Some(before) = last.insert((producer, topic, partition), record)
            && guarantees.idempotent
            && !log.was_cut(topic, partition)
            && before.number >= number
        {
            let topic = &topics[topic as usize].0;
            return broken(format!(
                "{topic} [{partition}]: record {number} of producer {producer} {sender:?} is stored after {} {:?}",
                before.number, before.sender
            ));
        }
    }
    producers.iter().try_for_each(|producer| check_producer(producer, log, &written, guarantees))
}

/// Checks the reports of one producer.
fn check_producer(
    producer: &Producer,
    log: &Log,
    written: &SortedMap<(u32, u64), Vec<Location>>,
    guarantees: Guarantees,
) -> Result<(), Broken> {
    let broken = |what: String| Err(Broken::new("delivery", what));
    let reports = producer.reports.lock();
    let mut order = ReportOrder::default();
    for number in 0..producer.sent {
        let name = format!("record {number} of producer {}", producer.number);
        let locations = written.get(&(producer.number, number)).map_or(&[][..], Vec::as_slice);
        let destination = producer.destinations[number as usize];
        if let Some(location) = locations.iter().find(|location| (location.0, location.1) != destination) {
            return broken(format!("{name} was sent to {destination:?} and is stored at {location:?}"));
        }
        let cut = log.was_cut(destination.0, destination.1);
        let (durable, idempotent) = (guarantees.durable && !cut, guarantees.idempotent && !cut);
        if idempotent && locations.len() > 1 {
            return broken(format!("{name} was written {} times: {locations:?}", locations.len()));
        }
        let report = match reports.get(&number).map(Vec::as_slice) {
            Some([report]) => report,
            Some(many) => return broken(format!("{name} has {} reports: {many:?}", many.len())),
            None => return broken(format!("{name} has no report")),
        };
        if let Some(before) = order.check(destination, number, report, log.sends(producer.number, number)) {
            let earlier = reports.get(&before);
            return broken(format!(
                "{name} was reported before {before} of the same partition: {report:?}, and {earlier:?}"
            ));
        }
        let allowed = match report.kind {
            Some(ErrorKind::PurgedFromQueue) => producer.purged.queue,
            Some(ErrorKind::PurgedInFlight) => {
                producer.purged.in_flight && report.status == PersistenceStatus::PossiblyPersisted
            }
            _ => true,
        };
        if !allowed {
            return broken(format!("{name} was reported as {report:?}; purged was {:?}", producer.purged));
        }
        if let Err(what) = check_status(report, locations, durable) {
            return broken(format!("{name} {what}"));
        }
    }
    if let Some((number, _)) = reports.range(producer.sent..).next() {
        return broken(format!("a report for record {number}, which was never sent"));
    }
    Ok(())
}

/// Checks the status of a report against the locations of its record in the log.
fn check_status(report: &Report, locations: &[Location], durable: bool) -> Result<(), String> {
    match report.status {
        PersistenceStatus::Persisted => {
            if durable && locations.is_empty() {
                return Err(format!("was acknowledged at {:?} and is lost", report.offset));
            }
            if let Some(offset) = report.offset
                && durable
                && !locations.iter().any(|location| location.2 == offset)
            {
                return Err(format!("was reported at offset {offset} and is stored at {locations:?}"));
            }
        }
        PersistenceStatus::NotPersisted => {
            if !locations.is_empty() {
                return Err(format!(
                    "was reported as not written ({:?}) and is stored at {locations:?}",
                    report.error
                ));
            }
        }
        PersistenceStatus::PossiblyPersisted => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(order: u64, error: Option<&str>) -> Report {
        let status =
            if error.is_some() { PersistenceStatus::NotPersisted } else { PersistenceStatus::Persisted };
        Report { order, status, offset: None, error: error.map(str::to_owned), kind: None }
    }

    #[test]
    fn record_sent_once_is_acknowledged_before_the_next() {
        let mut order = ReportOrder::default();
        assert_eq!(order.check((0, 0), 1, &report(5, None), 1), None);
        assert_eq!(order.check((0, 1), 2, &report(4, None), 1), None, "of another partition");
        assert_eq!(order.check((0, 0), 3, &report(6, None), 2), None);
        assert_eq!(order.check((0, 0), 4, &report(3, None), 1), Some(1));
    }

    #[test]
    fn retried_record_may_be_acknowledged_after_the_next() {
        let mut order = ReportOrder::default();
        assert_eq!(order.check((0, 0), 1, &report(5, None), 2), None);
        assert_eq!(order.check((0, 0), 2, &report(4, None), 1), None);
    }

    #[test]
    fn unsent_records_fail_in_order() {
        let mut order = ReportOrder::default();
        assert_eq!(order.check((0, 0), 1, &report(5, Some("late")), 0), None);
        assert_eq!(order.check((0, 0), 2, &report(3, Some("lost")), 1), None, "it was sent");
        assert_eq!(order.check((0, 0), 3, &report(4, Some("late")), 0), Some(1));
    }
}
