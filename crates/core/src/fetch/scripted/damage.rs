//! Damaged batches and invalid responses.

use super::*;
use crate::{
    config::DamagedBatchPolicy,
    fetch::{
        deliver::{Next, RecordCursor},
        partition::StoredOffset,
        position::Offset,
    },
};

/// Responds to each Fetch with the same bytes until the damage is reported twice: at once, and with its final handling.
/// Returns the text of the second report.
fn fetch_damaged(script: &mut Script, high_watermark: i64, bytes: &[u8]) -> String {
    let mut reported = Vec::new();
    for _ in 0..3 {
        script.later(Duration::from_secs(1));
        script.fetch().unwrap();
        script.respond(&response(5, vec![data(0, high_watermark, bytes.to_vec())]));
        for event in script.take().events() {
            let ConsumerEvent::Error(error) = event else { panic!("{event:?}") };
            assert_eq!(error.kind(), ErrorKind::BadBatch);
            reported.push(error.to_string());
        }
    }
    assert_eq!(reported.len(), 2, "{reported:?}");
    reported.remove(1)
}

fn skipping() -> ConsumerSettings {
    ConsumerSettings { damaged_batch: DamagedBatchPolicy::Skip, ..ConsumerSettings::default() }
}

fn damaged(mut bytes: Vec<u8>, at: usize) -> Vec<u8> {
    bytes[at] ^= 0x15;
    bytes
}

/// Fetches these bytes a few times, each after the back-off. Returns the offsets of the records.
fn stand_still_at(script: &mut Script, offset: i64, bytes: &[u8]) -> Vec<i64> {
    let mut offsets = Vec::new();
    for _ in 0..8 {
        script.fetch().unwrap();
        script.respond(&response(5, vec![data(0, 9, bytes.to_vec())]));
        let records = script.take();
        offsets.extend(records.iter().map(|message| message.offset()));
        let [ConsumerEvent::Error(error)] = records.events() else { panic!("{records:?}") };
        assert_eq!(error.kind(), ErrorKind::BadBatch);
        let sentence = error.to_string();
        assert!(sentence.contains("t [0]"), "{sentence}");
        assert!(sentence.contains(&format!("standing still at offset {offset}")), "{sentence}");
        assert!(script.fetch().is_none(), "no request before the back-off has passed");
        script.later(ConsumerSettings::default().fetch_error_backoff);
    }
    offsets
}

#[test]
fn damaged_batch_stops_its_partition_until_a_seek() {
    let mut script = Script::new(18, ConsumerSettings::default());
    script.adopt(0, 0);
    let bytes = [batch(0, 2, 10), damaged(batch(2, 2, 10), 75), batch(4, 1, 10)].concat();
    assert_eq!(stand_still_at(&mut script, 2, &bytes), [0, 1], "nothing behind the damage");
    script.fetch().unwrap();
    script.respond(&response(5, vec![data(0, 9, [batch(2, 2, 10), batch(4, 1, 10)].concat())]));
    assert_eq!(script.offsets(), [2, 3, 4], "the batch was damaged on the way only");
}

/// Returns a batch of three records at offset 0, the second of which can't be read.
fn with_unreadable_record(has_checksum: bool) -> Vec<u8> {
    let mut bytes = batch(0, 3, 10);
    let second = 61 + (bytes.len() - 61) / 3;
    bytes[second] = 0x7f;
    if has_checksum { mark(bytes, 0, -1) } else { bytes }
}

/// The ways in which applications read records.
#[derive(Clone, Copy, Debug)]
enum Reading {
    All,
    Pieces,
    Cursor,
    Runs,
}

/// Reads everything that the application would get now.
fn read(script: &Script, reading: Reading) -> Vec<i64> {
    let mut offsets = Vec::new();
    let mut add = |offset| offsets.push(offset);
    match reading {
        Reading::All => script.take().iter().for_each(|message| add(message.offset())),
        Reading::Pieces => script
            .take()
            .pieces()
            .for_each(|(_, messages)| messages.for_each(|message| add(message.offset()))),
        Reading::Cursor => {
            let mut cursor = RecordCursor::default();
            let mut records = Records::default();
            script.shared.queue.take_without_position(usize::MAX, &mut records);
            cursor.push(records);
            while let Some(Next::Message(message)) = cursor.next(&script.shared.queue) {
                add(message.offset());
            }
        }
        Reading::Runs => {
            let mut records = Records::default();
            script.shared.queue.take_without_position(usize::MAX, &mut records);
            for mut walk in records.into_walks().0 {
                // As in C: a run is converted first, and then handed out while it is current.
                let mut run = Vec::new();
                while walk.fetched().is_current() && walk.run(2, |message| run.push(message.offset())) > 0 {
                    let is_current = walk.fetched().is_current();
                    run.drain(..).filter(|_| is_current).for_each(&mut add);
                }
            }
        }
    }
    offsets
}

#[test]
fn damaged_record_stops_behind_the_records_before_it() {
    for (reading, check_crcs) in [Reading::All, Reading::Pieces, Reading::Cursor, Reading::Runs]
        .into_iter()
        .flat_map(|reading| [(reading, false), (reading, true)])
    {
        let mut script = Script::new(18, ConsumerSettings { check_crcs, ..ConsumerSettings::default() });
        let handle = script.adopt(0, 0);
        let bytes = [with_unreadable_record(check_crcs), batch(3, 1, 10)].concat();
        script.fetch().unwrap();
        script.respond(&response(5, vec![data(0, 9, bytes.clone())]));
        script.fetch().unwrap();
        script.respond(&response(5, vec![data(0, 9, batch(4, 2, 10))]));
        assert_eq!(read(&script, reading), [0], "{reading:?}, nothing behind the damage, of no fetch");
        assert_eq!(handle.position(), Some(1), "{reading:?}");
        assert_eq!(stand_still_at(&mut script, 1, &bytes), [], "{reading:?}");
        script.fetch().unwrap();
        script.respond(&response(5, vec![data(0, 9, [batch(0, 3, 10), batch(3, 1, 10)].concat())]));
        assert_eq!(read(&script, reading), [1, 2, 3], "{reading:?}, the record was damaged on the way only");
    }
}

#[test]
fn response_that_was_in_flight_at_a_damaged_record_is_dropped() {
    let mut script = Script::new(18, ConsumerSettings::default());
    script.adopt(0, 0);
    script.fetch().unwrap();
    script.respond(&response(5, vec![data(0, 9, [with_unreadable_record(true), batch(3, 1, 10)].concat())]));
    script.fetch().unwrap();
    assert_eq!(script.offsets(), [0]);
    script.respond(&response(5, vec![data(0, 9, batch(4, 2, 10))]));
    assert_eq!(script.offsets(), []);
    assert_eq!(named(&script.fetch().unwrap()), [(0, 1)]);
}

#[test]
fn messages_before_a_damaged_record_still_belong_to_the_assignment() {
    let shared = Arc::new(ConsumerShared::new(ConsumerSettings::default()));
    let (topic, partition) = (Arc::from("t"), 0);
    let key = TopicPartition { topic, partition };
    drop(shared.assign(&[(key, Offset::At(0))]));
    let handle = shared.partition("t", 0).unwrap();
    let version = handle.version();
    let seek = |version| shared.seek_back(&handle, version, 0).is_some();
    shared.queue.stop_at(&handle, version, 2);
    assert!(handle.version() != version && handle.version().is_same_assignment(version));
    assert_eq!((handle.consumed(), handle.stopped_at(version)), (Some((2, None)), Some(2)));
    shared.store_finished(
        &handle,
        version,
        StoredOffset { offset: 1, leader_epoch: None, metadata: String::new() },
    );
    assert_eq!(handle.stored().map(|stored| stored.offset), Some(1));
    assert!(seek(version), "a message that failed is delivered again");
    assert!(!seek(version), "it is another assignment now");
}

#[test]
fn wrong_checksum_alone_is_not_damage_without_checksums() {
    let settings = ConsumerSettings { check_crcs: false, ..ConsumerSettings::default() };
    let mut script = Script::new(18, settings);
    script.adopt(0, 0);
    let len = batch(0, 3, 10).len();
    let bytes = [damaged(batch(0, 3, 10), len - 2), batch(3, 1, 10)].concat();
    script.fetch().unwrap();
    script.respond(&response(5, vec![data(0, 4, bytes)]));
    assert_eq!(script.offsets(), [0, 1, 2, 3], "a wrong checksum alone is not damage");
}

#[test]
fn a_damaged_batch_names_its_place_and_is_left_out_after_three_attempts() {
    let mut script = Script::new(18, skipping());
    script.adopt(0, 0);
    let whole = batch(0, 2, 10);
    let mut bytes = damaged(batch(2, 2, 10), 75);
    bytes.extend(batch(4, 1, 10));
    script.fetch().unwrap();
    script.respond(&response(5, vec![data(0, 9, [whole, bytes.clone()].concat())]));
    let records = script.take();
    assert_eq!(records.iter().map(|m| m.offset()).collect::<Vec<_>>(), [0, 1], "what is whole is handed out");
    let [ConsumerEvent::Error(error)] = records.events() else { panic!("{records:?}") };
    assert_eq!(error.kind(), ErrorKind::BadBatch);
    assert!(error.to_string().contains("t [0]") && error.to_string().contains("at offset 2"), "{error}");
    for _ in 0..2 {
        assert!(script.fetch().is_none());
        script.later(Duration::from_secs(1));
        script.fetch().unwrap();
        script.respond(&response(5, vec![data(0, 9, bytes.clone())]));
    }
    let events = script.take();
    let [ConsumerEvent::Error(error)] = events.events() else { panic!("{events:?}") };
    assert!(error.to_string().contains("offsets 2 to 3 are left out, going on at offset 4"), "{error}");
    assert_eq!(named(&script.fetch().unwrap()), [(0, 4)]);
}

#[test]
fn where_a_damaged_batch_ends_is_not_believed_but_found_out() {
    for (place, what) in [(75, "a record"), (23, "the last offset"), (57, "the count"), (16, "the format")] {
        let mut script = Script::new(18, skipping());
        script.adopt(0, 0);
        let alone = damaged(batch(0, 4, 10), place);
        let reported = fetch_damaged(&mut script, 9, &alone);
        assert!(reported.contains("standing still at offset 0"), "{what}: {reported}");
        script.later(Duration::from_secs(1));
        let request = script.fetch().unwrap();
        assert_eq!(named(&request), [(0, 0)], "{what}");
        let asked = request.topics[0].partitions[0].partition_max_bytes;
        assert!(asked > skipping().partition_fetch_max_bytes, "room for the next one");
        script.respond(&response(5, vec![data(0, 9, [alone, batch(4, 2, 10)].concat())]));
        let records = script.take();
        let [ConsumerEvent::Error(error)] = records.events() else { panic!("{what}: {records:?}") };
        assert!(error.to_string().contains("going on at offset 4"), "{what}: {error}");
        assert_eq!(named(&script.fetch().unwrap()), [(0, 4)], "{what}");
    }
}

#[test]
fn the_high_watermark_may_confirm_where_a_damaged_batch_ends() {
    let mut script = Script::new(18, skipping());
    script.adopt(0, 0);
    let reported = fetch_damaged(&mut script, 4, &damaged(batch(0, 4, 10), 75));
    assert!(reported.contains("going on at offset 4"), "{reported}");
    let mut script = Script::new(18, skipping());
    script.adopt(0, 0);
    let reported = fetch_damaged(&mut script, 4, &damaged(batch(0, 4, 10), 26));
    assert!(reported.contains("standing still at offset 0"), "{reported}");
}

#[test]
fn without_checksums_a_wrong_last_offset_does_not_skip_records() {
    let settings = ConsumerSettings { check_crcs: false, ..skipping() };
    for place in 23..27 {
        let mut script = Script::new(18, settings.clone());
        script.adopt(0, 0);
        let bytes = [damaged(batch(0, 4, 10), place), batch(4, 2, 10)].concat();
        let reported = fetch_damaged(&mut script, 6, &bytes);
        assert!(reported.contains("going on at offset 4"), "{place}: {reported}");
    }
    // A gap that compaction left is not damage.
    let mut script = Script::new(18, settings);
    script.adopt(0, 0);
    let mut compacted = batch(0, 2, 10);
    compacted[23..27].copy_from_slice(&5i32.to_be_bytes());
    script.fetch().unwrap();
    script.respond(&response(5, vec![data(0, 6, mark(compacted, 0, -1))]));
    assert_eq!(script.offsets(), [0, 1]);
    assert_eq!(named(&script.fetch().unwrap()), [(0, 6)]);
}

#[test]
fn offsets_that_go_backwards_or_jump_too_far_are_reported() {
    let mut script = Script::new(18, skipping());
    script.adopt(0, 0);
    let bytes = [batch(0, 4, 10), batch(2, 4, 10), batch(8, 1, 10)].concat();
    script.fetch().unwrap();
    script.respond(&response(5, vec![data(0, 9, bytes)]));
    let records = script.take();
    assert_eq!(records.iter().map(|m| m.offset()).collect::<Vec<_>>(), [0, 1, 2, 3]);
    let [ConsumerEvent::Error(error)] = records.events() else { panic!("{records:?}") };
    assert!(error.to_string().contains("offsets go backwards, from 4 to 2"), "{error}");

    for bytes in [batch(90, 4, 10), [batch(5, 4, 10), batch(4, 1, 10)].concat()] {
        let mut script = Script::new(18, skipping());
        script.adopt(0, 0);
        script.fetch().unwrap();
        script.respond(&response(5, vec![data(0, 9, bytes)]));
        let records = script.take();
        assert_eq!(records.iter().count(), 0);
        let [ConsumerEvent::Error(error)] = records.events() else { panic!("{records:?}") };
        assert!(error.to_string().contains("it claims offset"), "{error}");
    }
}

#[test]
fn without_checksums_a_damaged_record_ends_its_batch_with_an_event() {
    let settings = ConsumerSettings { check_crcs: false, ..skipping() };
    let mut script = Script::new(18, settings);
    script.adopt(0, 0);
    script.fetch().unwrap();
    script.respond(&response(5, vec![data(0, 9, [with_unreadable_record(false), batch(3, 1, 10)].concat())]));
    assert_eq!(script.offsets(), [0, 3]);
    let records = script.take();
    assert!(matches!(records.events(), [ConsumerEvent::Error(error)] if error.kind() == ErrorKind::BadBatch));
}

#[test]
fn a_bomb_is_refused_by_the_limit() {
    let mut builder = RecordBatchBuilder::new(&ChunkPool::new());
    builder.append(0, None, Some(&vec![0; 5 << 20]), &[]);
    let options = SealOptions { compression: Compression::Zstd, ..SealOptions::default() };
    let mut script = Script::new(18, ConsumerSettings { max_batch_bytes: 1 << 20, ..skipping() });
    script.adopt(0, 0);
    script.fetch().unwrap();
    script.respond(&response(5, vec![data(0, 1, builder.seal(&options).unwrap().to_vec())]));
    let records = script.take();
    assert!(matches!(records.events(), [ConsumerEvent::Error(error)] if error.kind() == ErrorKind::BadBatch));
}

#[test]
fn garbage_response_closes_the_connection_and_loses_nothing() {
    let mut script = Script::new(18, skipping());
    script.adopt(0, 3);
    script.fetch().unwrap();
    script.receive(ApiKey::Fetch, 18, &[0xff; 40]);
    assert!(matches!(script.fetcher.poll_output(), Some(HalfOutput::Misbehaved(_))));
    assert_eq!(named(&script.fetch().unwrap()), [(0, 3)]);
}

#[test]
fn any_damage_to_a_response_gives_records_or_errors_and_no_panic() {
    let mut rng = Rng::from_seed(11);
    let settings = ConsumerSettings { check_crcs: false, max_batch_bytes: 1 << 20, ..skipping() };
    for _ in 0..300 {
        let mut script = Script::new(18, settings.clone());
        script.adopt(0, 0);
        script.fetch().unwrap();
        let mut bytes = batch(0, 5, 20);
        bytes.extend(batch(5, 5, 20));
        for _ in 0..=rng.below(4) {
            let at = rng.below(bytes.len() as u64) as usize;
            bytes[at] = rng.next_u64() as u8;
        }
        script.respond(&response(5, vec![data(0, 9, bytes)]));
        let records = script.take();
        assert!(records.iter().count() <= 200);
        for message in &records {
            assert!(message.headers().count() <= 200 && message.to_message().value() == message.value());
        }
        script.later(Duration::from_secs(1));
        script.fetch();
    }
}

#[test]
fn batch_that_counts_too_few_records_is_damaged() {
    let mut few = batch(0, 5, 10);
    few[57..61].copy_from_slice(&3i32.to_be_bytes());
    let few = mark(few, 0, -1);
    let mut script = Script::new(18, skipping());
    script.adopt(0, 0);
    script.fetch().unwrap();
    script.respond(&response(5, vec![data(0, 9, [few, batch(5, 1, 10)].concat())]));
    let records = script.take();
    assert_eq!(records.iter().count(), 0, "neither some of it nor what follows");
    let [ConsumerEvent::Error(error)] = records.events() else { panic!("{records:?}") };
    assert_eq!(error.kind(), ErrorKind::BadBatch);
    assert!(error.to_string().contains("at offset 0"), "{error}");
}
