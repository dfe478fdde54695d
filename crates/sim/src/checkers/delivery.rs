//! One report per record, and it tells the truth: acknowledged means in the log, not persisted means not in the log;
//! idempotent means once and in order. Reports of a partition come in order where answers do. Of a partition that lost records with its topic, or with the replica that had them,
//! only what was reported as not written is held to.

use std::collections::BTreeMap;

use ottla_core::{error::ErrorKind, produce::report::PersistenceStatus};

use super::{
    Broken,
    log::{Log, Logged},
};
use crate::workload::{Producer, Report};

/// What the knobs allow.
#[derive(Clone, Copy, Debug)]
pub struct Promises {
    /// Acknowledged records can't be lost: acks=all, or no broker loses what its followers do not have.
    pub durable: bool,
    /// The producers are idempotent.
    pub idempotent: bool,
}

/// In which order the reports of each partition came. Answers come in the order of the requests, so that whatever was sent
/// once is acknowledged before what was sent behind it; and what was never sent fails in order. A purge breaks the order: what
/// is in a request by then stays there, and may come back unsent when newer records have long been purged.
#[derive(Debug, Default)]
struct ReportOrder {
    acknowledged: BTreeMap<(u32, i32), (u64, u64)>,
    unsent: BTreeMap<(u32, i32), (u64, u64)>,
}

impl ReportOrder {
    /// The next record's report. Answers the number of an older record of the partition whose report had to come first.
    fn check(&mut self, place: (u32, i32), number: u64, report: &Report, sends: u32) -> Option<u64> {
        let is_delivered = report.error.is_none();
        let reports = match sends {
            _ if report.kind == Some(ErrorKind::PurgedFromQueue) => return None,
            _ if is_delivered => &mut self.acknowledged,
            // What is in flight may time out before a byte of it was written.
            0 if report.status == PersistenceStatus::NotPersisted => &mut self.unsent,
            _ => return None,
        };
        let before =
            reports.get(&place).filter(|(order, _)| *order > report.order).map(|(_, number)| *number);
        if sends <= 1 {
            reports.insert(place, (report.order, number));
        }
        before
    }
}

/// Where a record was found: topic, partition, offset.
type Place = (u32, i32, i64);

/// Checks everything that was sent against everything that was written.
pub fn check(
    producers: &[Producer],
    log: &Log,
    topics: &[(String, i32)],
    promises: Promises,
) -> Result<(), Broken> {
    let broken = |what: String| Err(Broken::new("delivery", what));
    let mut written: BTreeMap<(u32, u64), Vec<Place>> = BTreeMap::new();
    let mut last: BTreeMap<(u32, u32, i32), &Logged> = BTreeMap::new();
    for record in log.records() {
        let Logged { topic, partition, offset, producer, number, sender } = *record;
        written.entry((producer, number)).or_default().push((topic, partition, offset));
        if let Some(before) = last.insert((producer, topic, partition), record)
            && promises.idempotent
            && !log.was_cut(topic, partition)
            && before.number >= number
        {
            let topic = &topics[topic as usize].0;
            return broken(format!(
                "{topic} [{partition}]: record {number} of producer {producer} {sender:?} stands behind {} {:?}",
                before.number, before.sender
            ));
        }
    }
    for producer in producers {
        let reports = producer.reports.lock();
        let mut order = ReportOrder::default();
        for number in 0..producer.sent {
            let name = format!("record {number} of producer {}", producer.number);
            let places = written.get(&(producer.number, number)).map_or(&[][..], Vec::as_slice);
            let destination = producer.destinations[number as usize];
            if let Some(place) = places.iter().find(|place| (place.0, place.1) != destination) {
                return broken(format!("{name} was sent to {destination:?} and stands at {place:?}"));
            }
            let cut = log.was_cut(destination.0, destination.1);
            let (durable, idempotent) = (promises.durable && !cut, promises.idempotent && !cut);
            if idempotent && places.len() > 1 {
                return broken(format!("{name} was written {} times: {places:?}", places.len()));
            }
            let report = match reports.get(&number).map(Vec::as_slice) {
                Some([report]) => report,
                Some(many) => return broken(format!("{name} has {} reports: {many:?}", many.len())),
                None => return broken(format!("{name} has no report")),
            };
            if let Some(before) = order.check(destination, number, report, log.sends(producer.number, number))
            {
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
                return broken(format!(
                    "{name} was reported as {report:?}; purged was {:?}",
                    producer.purged
                ));
            }
            match report.status {
                PersistenceStatus::Persisted => {
                    if durable && places.is_empty() {
                        return broken(format!("{name} was acknowledged at {:?} and is lost", report.offset));
                    }
                    if let Some(offset) = report.offset
                        && durable
                        && !places.iter().any(|place| place.2 == offset)
                    {
                        return broken(format!("{name} was told offset {offset} and stands at {places:?}"));
                    }
                }
                PersistenceStatus::NotPersisted => {
                    if !places.is_empty() {
                        return broken(format!(
                            "{name} was reported as not written ({:?}) and stands at {places:?}",
                            report.error
                        ));
                    }
                }
                PersistenceStatus::PossiblyPersisted => {}
            }
        }
        if let Some((number, _)) = reports.range(producer.sent..).next() {
            return broken(format!("a report for record {number}, which was never sent"));
        }
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
    fn a_record_that_was_sent_once_is_acknowledged_before_the_next_one() {
        let mut order = ReportOrder::default();
        assert_eq!(order.check((0, 0), 1, &report(5, None), 1), None);
        assert_eq!(order.check((0, 1), 2, &report(4, None), 1), None, "of another partition");
        assert_eq!(order.check((0, 0), 3, &report(6, None), 2), None);
        assert_eq!(order.check((0, 0), 4, &report(3, None), 1), Some(1));
    }

    #[test]
    fn a_record_that_was_sent_again_may_be_acknowledged_behind_the_next_one() {
        let mut order = ReportOrder::default();
        assert_eq!(order.check((0, 0), 1, &report(5, None), 2), None);
        assert_eq!(order.check((0, 0), 2, &report(4, None), 1), None);
    }

    #[test]
    fn what_was_never_sent_fails_in_order() {
        let mut order = ReportOrder::default();
        assert_eq!(order.check((0, 0), 1, &report(5, Some("late")), 0), None);
        assert_eq!(order.check((0, 0), 2, &report(3, Some("lost")), 1), None, "it was sent");
        assert_eq!(order.check((0, 0), 3, &report(4, Some("late")), 0), Some(1));
    }
}
