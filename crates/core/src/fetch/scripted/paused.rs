//! Records that were taken from the queue, and go back to it because their partition is paused.

use super::*;
use crate::fetch::deliver::{Next, RecordCursor};

/// Takes the items up to the first records, as an application does that takes single records.
fn push_next(script: &Script, cursor: &mut RecordCursor) {
    let mut records = Records::default();
    script.shared.queue.take_without_position(1, &mut records);
    cursor.push(records);
}

/// Takes the next record, and returns its offset.
fn next(script: &Script, cursor: &mut RecordCursor) -> Option<i64> {
    match cursor.next(&script.shared.queue) {
        Some(Next::Message(message)) => Some(message.offset()),
        Some(other) => panic!("{other:?}"),
        None => None,
    }
}

#[test]
fn rest_of_paused_records_comes_before_later_ones() {
    let mut script = Script::new(18, ConsumerSettings::default());
    let handle = script.adopt(0, 0);
    script.fetch().unwrap();
    script.respond(&response(5, vec![data(0, 9, batch(0, 3, 1))]));
    let mut cursor = RecordCursor::default();
    push_next(&script, &mut cursor);
    assert_eq!(next(&script, &mut cursor), Some(0));
    script.fetch().unwrap();
    script.respond(&response(5, vec![data(0, 9, batch(3, 2, 1))]));
    script.shared.queue.pause(&[Arc::clone(&handle)]);
    assert!(script.take().is_empty(), "the later records are set aside first");
    assert_eq!(next(&script, &mut cursor), None);
    script.shared.queue.resume(&[Arc::clone(&handle)]);
    assert_eq!(script.offsets(), [1, 2, 3, 4]);
    assert_eq!(handle.position(), Some(5));
}

/// A cursor with the results of two fetches, of which the first returned only an aborted transaction.
fn after_an_abort(script: &mut Script) -> (Arc<PartitionHandle>, RecordCursor) {
    let handle = script.adopt(0, 0);
    let mut aborted = mark(batch(0, 2, 5), 0x10, 1);
    aborted.extend(abort_marker(2, 1));
    let transaction = AbortedTransaction { producer_id: 1, first_offset: 0 };
    let aborted = Partition { aborted_transactions: Some(vec![transaction]), ..data(0, 9, aborted) };
    script.fetch().unwrap();
    script.respond(&response(5, vec![aborted]));
    script.fetch().unwrap();
    script.respond(&response(5, vec![data(0, 9, batch(3, 2, 1))]));
    let mut cursor = RecordCursor::default();
    push_next(script, &mut cursor);
    (handle, cursor)
}

#[test]
fn position_does_not_go_back_when_an_aborted_transaction_is_set_aside() {
    for takes_singles in [true, false] {
        let mut script = Script::new(18, ConsumerSettings::default());
        let (handle, mut cursor) = after_an_abort(&mut script);
        script.shared.queue.pause(&[Arc::clone(&handle)]);
        if takes_singles {
            assert_eq!(next(&script, &mut cursor), None);
        } else {
            let mut records = Records::default();
            cursor.take(&mut records, &script.shared.queue);
            assert!(records.is_empty());
        }
        script.shared.queue.resume(&[Arc::clone(&handle)]);
        assert_eq!(script.offsets(), [3, 4], "single: {takes_singles}");
        assert_eq!(handle.position(), Some(5), "single: {takes_singles}");
    }
}

#[test]
fn records_of_several_fetches_keep_their_order_when_they_are_set_aside() {
    let mut script = Script::new(18, ConsumerSettings::default());
    let (paused, other) = (script.adopt(0, 0), script.adopt(1, 0));
    for base in [0, 2] {
        script.fetch().unwrap();
        script.respond(&response(5, vec![data(0, 9, batch(base, 2, 1)), data(1, 9, batch(base, 2, 1))]));
    }
    let mut cursor = RecordCursor::default();
    let mut records = Records::default();
    script.shared.queue.take_without_position(usize::MAX, &mut records);
    cursor.push(records);
    assert_eq!(next(&script, &mut cursor), Some(0));
    script.shared.queue.pause(&[Arc::clone(&paused)]);
    let of_other: Vec<i64> = std::iter::from_fn(|| next(&script, &mut cursor)).collect();
    assert_eq!((of_other, other.position()), (vec![0, 1, 2, 3], Some(4)));
    script.shared.queue.resume(&[Arc::clone(&paused)]);
    assert_eq!(script.offsets(), [1, 2, 3]);
}
