//! One report per record, and it tells the truth: acknowledged means in the log, not persisted means not in the log;
//! idempotent means once and in order. Of a partition that lost records with its topic, or with the replica that had them,
//! only what was reported as not written is held to.

use std::collections::BTreeMap;

use ottla_core::produce::report::PersistenceStatus;

use super::{
    Broken,
    log::{Log, Logged},
};
use crate::workload::Producer;

/// What the knobs allow.
#[derive(Clone, Copy, Debug)]
pub struct Promises {
    /// Acknowledged records can't be lost: acks=all, or no broker loses what its followers do not have.
    pub durable: bool,
    /// The producers are idempotent.
    pub idempotent: bool,
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
