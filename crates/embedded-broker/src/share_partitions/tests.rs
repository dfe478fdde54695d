//! Tests of share partitions, most of them against a model that tracks single records.

use std::time::Duration;

use ottla_protocol::batch::reader::BatchHeader;

use super::*;
use crate::random::Random;

/// The expected state of one record.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    state: RecordState,
    delivery_count: i16,
}

/// A model of the partition that tracks single records.
#[derive(Debug)]
struct Model {
    start: usize,
    records: Vec<Known>,
}

impl Model {
    fn drop_done(&mut self) {
        let is_done =
            |known: &Known| matches!(known.state, RecordState::Acknowledged | RecordState::Archived);
        while self.records.get(self.start).is_some_and(is_done) {
            self.start += 1;
        }
    }

    fn give_back(&mut self, limit: i16, is_meant: impl Fn(&str, Instant) -> bool) {
        for known in &mut self.records[self.start..] {
            if let RecordState::Acquired { member, until } = &known.state
                && is_meant(member, *until)
            {
                let often = known.delivery_count >= limit;
                known.state = if often { RecordState::Archived } else { RecordState::Available };
            }
        }
        self.drop_done();
    }

    /// Applies the partition's result, which must contain every available record from its start on.
    fn acquire(&mut self, acquired: &Acquired, locked: &RecordState, limits: &AcquireLimits) {
        let mut records = 0;
        for range in &acquired.ranges {
            for offset in range.first..=range.last {
                let at = usize::try_from(offset).unwrap();
                if at == self.records.len() {
                    self.records.push(Known { state: RecordState::Available, delivery_count: 0 });
                }
                let known = &mut self.records[at];
                assert_eq!(known.state, RecordState::Available, "offset {offset}");
                known.delivery_count += 1;
                assert_eq!(known.delivery_count, range.delivery_count);
                known.state = locked.clone();
                records += 1;
            }
        }
        assert_eq!(records, acquired.records);
        assert!(!limits.is_strict || records <= limits.max_records);
        // A whole batch of up to seven records may exceed the limit.
        let in_flight = i64::try_from(self.records.len() - self.start).unwrap();
        assert!(in_flight < limits.max_record_locks + 7);
        if let Some(last) = acquired.ranges.last() {
            let before = &self.records[self.start..usize::try_from(last.last).unwrap()];
            assert!(before.iter().all(|known| known.state != RecordState::Available), "none is skipped");
        }
    }

    fn acknowledge(&mut self, member: &str, acknowledgement: &Acknowledgement, rules: DeliveryRules) -> bool {
        let first = usize::try_from(acknowledgement.first).unwrap();
        let last = usize::try_from(acknowledgement.last).unwrap();
        if last < self.start {
            return true;
        }
        if last >= self.records.len() {
            return false;
        }
        let has = |known: &Known| matches!(&known.state, RecordState::Acquired { member: owner, .. } if **owner == *member);
        if !self.records[first.max(self.start)..=last].iter().all(has) {
            return false;
        }
        for at in first.max(self.start)..=last {
            let types = &acknowledgement.types;
            let acknowledge_type = if types.len() == 1 { types[0] } else { types[at - first] };
            let known = &mut self.records[at];
            let often = known.delivery_count >= rules.max_delivery_count;
            known.state = match acknowledge_type {
                AcknowledgeType::Accept => RecordState::Acknowledged,
                AcknowledgeType::Release if !often => RecordState::Available,
                AcknowledgeType::Renew => {
                    RecordState::Acquired { member: member.into(), until: rules.renewed_until }
                }
                _ => RecordState::Archived,
            };
        }
        true
    }

    fn compare(&self, partition: &SharePartition) {
        assert_eq!(partition.start_offset, i64::try_from(self.start).unwrap());
        assert_eq!(partition.end_offset, i64::try_from(self.records.len()).unwrap());
        let mut next = partition.start_offset;
        for (first, run) in &partition.runs {
            assert_eq!(*first, next, "runs follow each other");
            assert!(run.last >= *first);
            for offset in *first..=run.last {
                let known = &self.records[usize::try_from(offset).unwrap()];
                assert_eq!(known.state, run.state, "offset {offset}");
                assert!(run.is_done() || known.delivery_count == run.delivery_count);
            }
            next = run.last + 1;
        }
        assert_eq!(next, partition.end_offset);
    }
}

/// Returns a log of batches with 1 to 7 records.
fn log(random: &mut Random, batches: i32) -> PartitionLog {
    let mut log = PartitionLog::default();
    for _ in 0..batches {
        let records = i32::try_from(random.next_u64() % 7 + 1).unwrap();
        let header = BatchHeader {
            base_offset: 0,
            partition_leader_epoch: 0,
            crc: 0,
            attributes: 0,
            last_offset_delta: records - 1,
            base_timestamp: 0,
            max_timestamp: 0,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            record_count: records,
            size: 100,
        };
        log.append(&header, 0, 0, Bytes::from(vec![0; 100]));
    }
    log
}

#[test]
fn runs_of_records_match_a_list_of_records() {
    const TYPES: [AcknowledgeType; 5] = [
        AcknowledgeType::Gap,
        AcknowledgeType::Accept,
        AcknowledgeType::Release,
        AcknowledgeType::Reject,
        AcknowledgeType::Renew,
    ];
    let members: Vec<Arc<str>> = vec!["a".into(), "b".into(), "c".into()];
    let mut done = 0;
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let log = log(&mut random, 30);
        let mut partition = SharePartition::new(0, 0);
        let mut model = Model { start: 0, records: Vec::new() };
        let mut now = Instant::ZERO;
        for _ in 0..150 {
            let mut below = |n: u64| i64::try_from(random.next_u64() % n).unwrap();
            let rules = DeliveryRules { max_delivery_count: 3, renewed_until: now + Duration::from_secs(20) };
            let member = members[usize::try_from(below(3)).unwrap()].clone();
            match below(10) {
                0..=3 => {
                    let limits = AcquireLimits {
                        max_records: below(12),
                        is_strict: below(2) == 0,
                        batch_size: below(5) + 1,
                        max_bytes: usize::try_from(below(5) * 100).unwrap(),
                        at_least_one: below(2) == 0,
                        max_record_locks: 25,
                        until: now + Duration::from_secs(10),
                    };
                    let acquired = partition.acquire(
                        &member,
                        &limits,
                        Source { log: &log, end: log.end_offset(), committed: None },
                    );
                    let locked = RecordState::Acquired { member, until: limits.until };
                    model.acquire(&acquired, &locked, &limits);
                }
                4..=7 => {
                    let first = below(u64::try_from(partition.end_offset).unwrap() + 2);
                    let last = first + below(6);
                    let count = if below(2) == 0 { 1 } else { last - first + 1 };
                    let types = (0..count).map(|_| TYPES[usize::try_from(below(5)).unwrap()]).collect();
                    let acknowledgement = Acknowledgement { first, last, types };
                    let expected = model.acknowledge(&member, &acknowledgement, rules);
                    let acknowledged = partition.acknowledge(&member, &[acknowledgement], rules);
                    assert_eq!(acknowledged.is_ok(), expected);
                    model.drop_done();
                    done += usize::from(expected);
                }
                8 => {
                    now += Duration::from_secs(4);
                    partition.expire(now, 3);
                    model.give_back(3, |_, until| until <= now);
                }
                _ => {
                    partition.release(&member, 3);
                    model.give_back(3, |owner, _| owner == &*member);
                }
            }
            model.compare(&partition);
        }
    }
    assert!(done > 1000, "only {done} acknowledgements were of records that the member had");
}
