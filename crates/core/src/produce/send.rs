//! The application's side of sending: checks a record, chooses its partition and appends it to the open batch, or keeps
//! it until the topic is known. Nothing here blocks or waits for the network.

use std::{mem, sync::Arc, task::Poll};

use super::{
    accumulator::{Appended, Charge, HEADER_OVERHEAD, Held, RECORD_OVERHEAD, Refused},
    budget::Budget,
    partitioner::Pick,
    record::{Record, SendError},
    report::Tracker,
    shared::ProducerShared,
    topic::{ProducerTopic, TopicState, WaitingRecord},
};
use crate::{callback::guarded, error::Error, machine::Instant};

/// The number of records that are appended under one lock: some microseconds.
const LONGEST_RUN: usize = 64;

impl ProducerShared {
    /// Sends a record; never blocks or waits for the network. `now` and `wall_ms` are the time of the call.
    #[inline]
    pub fn send(
        &self,
        topic: &ProducerTopic,
        now: Instant,
        wall_ms: i64,
        record: &Record<'_>,
        track: Option<&mut Option<(Arc<Tracker>, usize)>>,
    ) -> Result<(), SendError> {
        let payload_bytes = record.payload_bytes();
        if !self.is_small_enough(record, payload_bytes) {
            return Err(SendError::MessageTooLarge {
                size: payload_bytes,
                overhead: upper_bound(record, payload_bytes) - payload_bytes,
                limit: self.settings.max_message_bytes,
            });
        }
        self.check_open()?;
        self.route(topic, now, wall_ms, record, payload_bytes, track)
    }

    /// Sends records in order, like [`Self::send`] for each, but keeps the lock of a partition while the next ones go
    /// there too. The error contains the number of records accepted before the rejected one.
    pub fn send_batch(
        &self,
        topic: &ProducerTopic,
        now: Instant,
        wall_ms: i64,
        records: &[Record<'_>],
    ) -> Result<(), (usize, SendError)> {
        let mut taken = 0;
        while taken < records.len() {
            taken += self.append_run(topic, now, wall_ms, &records[taken..]);
            // The record that ended the run is sent on its own, which returns the error.
            if let Some(record) = records.get(taken) {
                self.send(topic, now, wall_ms, record, None).map_err(|error| (taken, error))?;
                taken += 1;
            }
        }
        Ok(())
    }

    /// Sends a record like [`Self::send`], or registers to be woken when there may be room for it: `register` is to call
    /// [`Budget::register`].
    pub fn poll_send(
        &self,
        topic: &ProducerTopic,
        now: Instant,
        wall_ms: i64,
        record: &Record<'_>,
        mut track: Option<&mut Option<(Arc<Tracker>, usize)>>,
        mut register: impl FnMut(&Arc<Budget>),
    ) -> Poll<Result<(), SendError>> {
        for registered in [false, true] {
            match self.send(topic, now, wall_ms, record, track.as_deref_mut()) {
                Err(SendError::QueueFull) if registered => {}
                // Room may be released between this attempt and the registration, so another attempt follows.
                Err(SendError::QueueFull) => register(&self.budget),
                result => return Poll::Ready(result),
            }
        }
        Poll::Pending
    }

    /// Appends records that waited for the topic's metadata; returns those without a valid partition.
    pub(crate) fn append_waiting(
        &self,
        topic: &ProducerTopic,
        count: i32,
        records: Vec<WaitingRecord>,
    ) -> Vec<(WaitingRecord, Error)> {
        let mut failed = Vec::new();
        for waiting in records {
            let record = waiting.record();
            let chosen = guarded("partitioner", || self.choose(topic, count, waiting.since, &record));
            let chosen = match chosen {
                Ok(chosen) => chosen,
                Err(panicked) => {
                    failed.push((waiting, panicked));
                    continue;
                }
            };
            let result = chosen.and_then(|(partition, _)| {
                let accumulator = topic.slot(partition).ok_or(SendError::Closed)?;
                let settings = &self.settings;
                // A waiting tracked record has its own tracker. A batch reports by range, so this record's report goes
                // through a batch of one.
                let mut track = None;
                accumulator
                    .hold()
                    .append(
                        waiting.since,
                        &record,
                        waiting.timestamp,
                        waiting.payload_bytes,
                        settings.keep_opaques,
                        false,
                        Charge::Paid,
                        &topic.settings().batch,
                        &self.pool,
                        waiting.tracker.is_some().then_some(&mut track),
                    )
                    .map_err(|_| SendError::Closed)?;
                if let (Some(outer), Some((inner, index))) = (&waiting.tracker, track) {
                    inner.forward(index, outer);
                }
                Ok(())
            });
            if let Err(error) = result {
                failed.push((waiting, error.into()));
            }
        }
        failed
    }

    /// Appends the first records that go to one partition and need no special treatment. Returns their number.
    fn append_run(&self, topic: &ProducerTopic, now: Instant, wall_ms: i64, records: &[Record<'_>]) -> usize {
        let TopicState::Known(count) = topic.state() else { return 0 };
        if !self.is_open() {
            return 0;
        }
        let mut held: Option<(i32, Held<'_>)> = None;
        for (index, record) in records.iter().take(LONGEST_RUN).enumerate() {
            let payload_bytes = record.payload_bytes();
            let Ok((partition, join_only)) = self.choose(topic, count, now, record) else { return index };
            let held = match &mut held {
                None => {
                    let Some(accumulator) = topic.accumulator(partition) else { return index };
                    let held = &mut held.insert((partition, accumulator.hold())).1;
                    // A transaction may have ended since the first check.
                    if !self.is_open() {
                        return index;
                    }
                    held
                }
                Some((same, held)) if *same == partition => held,
                Some(_) => return index,
            };
            let appended = self.is_small_enough(record, payload_bytes)
                && held.append(
                    now,
                    record,
                    record.timestamp.unwrap_or(wall_ms),
                    payload_bytes,
                    self.settings.keep_opaques,
                    join_only,
                    Charge::Now,
                    &topic.settings().batch,
                    &self.pool,
                    None,
                ) == Ok(Appended::Yes);
            if !appended {
                return index;
            }
        }
        records.len().min(LONGEST_RUN)
    }

    /// Sends a record to its partition. Nearly all records take this way, which has no loop: a compiler would compute before
    /// it what only few of its turns need, with 35 instructions per record.
    #[inline]
    fn route(
        &self,
        topic: &ProducerTopic,
        now: Instant,
        wall_ms: i64,
        record: &Record<'_>,
        payload_bytes: usize,
        mut track: Option<&mut Option<(Arc<Tracker>, usize)>>,
    ) -> Result<(), SendError> {
        let timestamp = record.timestamp.unwrap_or(wall_ms);
        if let TopicState::Known(count) = topic.state() {
            let (partition, join_only) = self.choose(topic, count, now, record)?;
            if let Some(accumulator) = topic.accumulator(partition) {
                let mut held = accumulator.hold();
                // A transaction may have ended since the first check.
                let appended = self.is_open().then(|| {
                    held.append(
                        now,
                        record,
                        timestamp,
                        payload_bytes,
                        self.settings.keep_opaques,
                        join_only,
                        Charge::Now,
                        &topic.settings().batch,
                        &self.pool,
                        track.as_deref_mut(),
                    )
                });
                drop(held);
                if appended == Some(Ok(Appended::Yes)) {
                    return Ok(());
                }
            }
        }
        self.route_again(topic, now, timestamp, record, payload_bytes, track)
    }

    /// Sends a record whose first attempt failed, or that has to wait for its topic.
    #[cold]
    #[inline(never)]
    fn route_again(
        &self,
        topic: &ProducerTopic,
        now: Instant,
        timestamp: i64,
        record: &Record<'_>,
        payload_bytes: usize,
        mut track: Option<&mut Option<(Arc<Tracker>, usize)>>,
    ) -> Result<(), SendError> {
        let mut has_ended_leases = false;
        'topic: loop {
            let TopicState::Known(mut count) = topic.state() else {
                if self.wait_for_topic(topic, now, timestamp, record, payload_bytes, &mut track)? {
                    return Ok(());
                }
                continue;
            };
            let (mut partition, mut join_only) = self.choose(topic, count, now, record)?;
            loop {
                let Some(accumulator) = topic.accumulator(partition) else {
                    match topic.state() {
                        // The topic was recreated with fewer partitions since its state was read.
                        TopicState::Known(fewer) if fewer < count => count = fewer,
                        // The cluster has refused it since then.
                        TopicState::Unknown => continue 'topic,
                        _ => return Err(SendError::UnknownPartition { partition, count }),
                    }
                    (partition, join_only) = self.choose(topic, count, now, record)?;
                    continue;
                };
                let settings = &self.settings;
                let mut held = accumulator.hold();
                // A transaction may have ended since the first check.
                self.check_open()?;
                let appended = held.append(
                    now,
                    record,
                    timestamp,
                    payload_bytes,
                    settings.keep_opaques,
                    join_only,
                    Charge::Now,
                    &topic.settings().batch,
                    &self.pool,
                    track.as_deref_mut(),
                );
                drop(held);
                match appended {
                    Ok(Appended::Yes) => return Ok(()),
                    Ok(Appended::NothingToJoin) => {
                        // The batch that records without a key stuck to is gone: they move on to another partition.
                        partition = topic.next_sticky_partition(count, now, &self.settings);
                        join_only = false;
                    }
                    Err(Refused::Sealed) => return Err(SendError::Closed),
                    Err(Refused::NoRoom)
                        if !mem::replace(&mut has_ended_leases, true) && self.end_leases() => {}
                    Err(Refused::NoRoom) => return Err(SendError::QueueFull),
                }
            }
        }
    }

    /// Keeps a record until the topic's partitions are known; returns false if they became known meanwhile.
    #[cold]
    fn wait_for_topic(
        &self,
        topic: &ProducerTopic,
        now: Instant,
        timestamp: i64,
        record: &Record<'_>,
        payload_bytes: usize,
        track: &mut Option<&mut Option<(Arc<Tracker>, usize)>>,
    ) -> Result<bool, SendError> {
        let has_room = self.budget.try_charge(payload_bytes)
            || self.end_leases() && self.budget.try_charge(payload_bytes);
        if !has_room {
            return Err(SendError::QueueFull);
        }
        let refund = || self.budget.release(1, payload_bytes as u64);
        let tracker = track.is_some().then(|| Arc::new(Tracker::default()));
        let waits = topic
            .wait(
                || self.check_open(),
                || WaitingRecord::new(record, now, timestamp, payload_bytes, tracker.clone()),
            )
            .inspect_err(|_| refund())?;
        if !waits {
            refund();
        } else if let (Some(track), Some(tracker)) = (track, tracker) {
            **track = Some((tracker, 0));
        }
        Ok(waits)
    }

    /// Chooses the record's partition, and whether it only joins a batch there.
    #[inline]
    fn choose(
        &self,
        topic: &ProducerTopic,
        count: i32,
        now: Instant,
        record: &Record<'_>,
    ) -> Result<(i32, bool), SendError> {
        if let Some(partition) = record.partition {
            return if (0..count).contains(&partition) {
                Ok((partition, false))
            } else {
                Err(SendError::UnknownPartition { partition, count })
            };
        }
        match topic.settings().partitioner.pick(
            topic.name(),
            record.key,
            count,
            record.opaque,
            &|partition| topic.is_available(partition),
            || topic.rng.lock().next_u64(),
        ) {
            Pick::Partition(partition) if (0..count).contains(&partition) => Ok((partition, false)),
            Pick::Partition(partition) | Pick::Invalid(partition) => {
                Err(SendError::UnknownPartition { partition, count })
            }
            Pick::Sticky => {
                let (partition, stays) = topic.sticky_partition(count, now, &self.settings);
                Ok((partition, stays && !self.settings.sticky_is_timed))
            }
        }
    }

    #[inline]
    fn is_small_enough(&self, record: &Record<'_>, payload_bytes: usize) -> bool {
        upper_bound(record, payload_bytes) <= self.settings.max_message_bytes
    }
}

/// Returns the largest encoded size of a record.
#[inline]
fn upper_bound(record: &Record<'_>, payload_bytes: usize) -> usize {
    payload_bytes + RECORD_OVERHEAD + record.headers.len() * HEADER_OVERHEAD
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use bytes::Bytes;
    use ottla_protocol::batch::SealOptions;

    use super::*;
    use crate::produce::settings::LoadChoice;
    use crate::{
        produce::{
            partitioner::Partitioner,
            report::{NoReports, Tags},
            settings::ProducerSettings,
            shared::tests::producer,
        },
        rng::Rng,
    };

    #[test]
    fn error_names_the_real_size_of_a_message_that_is_too_large() {
        let shared = producer(100);
        let (topic, _) = shared.topic("t");
        let (key, value) = ([0; 7], vec![0; 3_000_000]);
        let record = Record::new().key(&key).value(&value).header("name", "value");
        let error = shared.send(&topic, Instant::ZERO, 0, &record, None).unwrap_err();
        let limit = ProducerSettings::default().max_message_bytes;
        assert_eq!(error, SendError::MessageTooLarge { size: 3_000_016, overhead: 46, limit });
        let shown = "the message has 3000016 bytes and up to 46 more when encoded; message.max.bytes=";
        assert_eq!(error.to_string(), format!("{shown}{limit}"));
        assert_eq!(Error::from(error).context().detail, format!("{shown}{limit}"));
    }

    #[test]
    fn an_array_of_records_is_taken_in_order_up_to_the_one_that_cannot_be() {
        let shared = producer(500);
        let (topic, _) = shared.topic("t");
        let record =
            |number: i32| Record::new().value("0123456789").partition(number % 3).opaque(number as u64);
        let records: Vec<_> = (0..600).map(record).collect();
        let now = Instant::ZERO;
        assert_eq!(shared.send_batch(&topic, now, 0, &records), Err((500, SendError::QueueFull)));
        assert_eq!(shared.queued_messages(), 500);
        for partition in 0..3 {
            let batch = topic.accumulator(partition).unwrap().take(true).0.unwrap();
            let Tags::Opaque(opaques) = batch.tags else { panic!("tags") };
            let expected: Vec<u64> = (0..500).filter(|number| number % 3 == partition as u64).collect();
            assert_eq!(opaques, expected);
        }
        let mixed = [record(0), Record::new().value("v").partition(77), record(1)];
        let unknown = SendError::UnknownPartition { partition: 77, count: 10 };
        shared.budget.release(100, 1000);
        assert_eq!(shared.send_batch(&topic, now, 0, &mixed), Err((1, unknown)));
    }

    #[test]
    fn a_large_shared_value_is_sent_from_where_it_lies() {
        let shared = producer(500);
        let (topic, _) = shared.topic("t");
        let (large, small) = (Bytes::from(vec![7; 100_000]), Bytes::from_static(b"small"));
        for value in [&large, &small] {
            let record = Record::new().shared_value(value).partition(0);
            shared.send(&topic, Instant::ZERO, 0, &record, None).unwrap();
        }
        let batch = topic.accumulator(0).unwrap().take(true).0.unwrap();
        let sealed = batch.builder.seal(&SealOptions::default()).unwrap();
        assert!(sealed.segments().any(|segment| std::ptr::eq(segment, &large[..])));
        assert!(!sealed.segments().any(|segment| std::ptr::eq(segment, &small[..])));
        let mut values = Vec::new();
        sealed.for_each_record(|record| values.push(record.value.unwrap().to_vec())).unwrap();
        assert!(values == [&large[..], &small[..]]);
    }

    #[test]
    fn records_without_key_stay_until_the_batch_is_sent_or_the_linger_ends() {
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        for sticky_is_timed in [false, true] {
            let settings = ProducerSettings {
                sticky_linger: Duration::from_millis(100),
                sticky_is_timed,
                ..ProducerSettings::default()
            };
            let shared = ProducerShared::new(
                settings.with_partitioner(Partitioner::Sticky),
                Arc::new(NoReports),
                Rng::from_seed(1),
            );
            let (topic, _) = shared.topic("t");
            topic.set_partitions(10, |_| (), |_| ());
            // Sends one, and takes its batch: which partition was it?
            let send = |millis| {
                let record = Record::new().value("0123456789");
                shared.send(&topic, at(millis), 0, &record, None).unwrap();
                let with_batch =
                    |partition: &i32| topic.accumulator(*partition).unwrap().take(true).0.is_some();
                (0..10).filter(with_batch).collect::<Vec<_>>()
            };
            let (first, second, late) = (send(0), send(50), send(100));
            assert_eq!(first.len(), 1);
            assert_eq!(first == second, sticky_is_timed, "its batch was sent in between");
            assert_ne!(second, late, "the time is over");
        }
    }

    #[test]
    fn records_without_key_avoid_partitions_that_are_not_drained() {
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let load_choice = |prefers_shorter_queue, availability_timeout| {
            Some(LoadChoice { prefers_shorter_queue, availability_timeout })
        };
        // Partition 0 has a record that waits since the start, and partition 1 gets shorter ones.
        for (choice, is_avoided) in [
            (None, false),
            (load_choice(false, Some(Duration::from_millis(100))), true),
            (load_choice(false, Some(Duration::from_secs(60))), false),
            (load_choice(true, None), false),
        ] {
            let settings = ProducerSettings { load_choice: choice, ..ProducerSettings::default() };
            let shared = ProducerShared::new(settings, Arc::new(NoReports), Rng::from_seed(1));
            let (topic, _) = shared.topic("t");
            topic.set_partitions(3, |_| (), |_| ());
            let record = Record::new().partition(0).value("0123456789012345678901234567890123456789");
            shared.send(&topic, at(1), 0, &record, None).unwrap();
            let mut hits = [0; 3];
            for n in 0..300 {
                hits[topic.next_sticky_partition(3, at(200 + n), &shared.settings) as usize] += 1;
            }
            assert_eq!(hits[0] == 0, is_avoided, "{choice:?}: {hits:?}");
            if choice.is_some_and(|choice| choice.prefers_shorter_queue) {
                assert!(hits[0] * 2 < hits[1].min(hits[2]), "{hits:?}");
            }
        }
    }
}
