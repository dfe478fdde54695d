//! Records of paused partitions that leave no room for others.

use super::*;

/// The limits that can leave no room: the ceiling of the client's memory, and that of the queue.
fn limits() -> [ConsumerSettings; 2] {
    let prefetch = PrefetchLimits { messages: 100_000, bytes: 10_000 };
    [
        ConsumerSettings { max_memory: Some(10_000), ..ConsumerSettings::default() },
        ConsumerSettings { prefetch, ..ConsumerSettings::default() },
    ]
}

/// Adopts partitions 0 and 1, and fills the queue with records of partition 0 from offset 3 on. Returns partition 0.
fn fill(script: &mut Script) -> Arc<PartitionHandle> {
    let filled = script.adopt(0, 3);
    script.adopt(1, 0);
    let mut next = 3;
    while script.fetch().is_some() {
        script.respond(&response(5, vec![data(0, 999, batch(next, 10, 100))]));
        next += 10;
    }
    assert!(next > 13, "several responses fit");
    filled
}

#[test]
fn paused_records_make_room_for_other_partitions() {
    for settings in limits() {
        let mut script = Script::new(18, settings);
        let paused = fill(&mut script);
        script.shared.queue.pause(&[Arc::clone(&paused)]);
        assert!(script.take().is_empty());
        script.fetch().expect("the paused records were dropped");
        script.respond(&response(5, vec![data(1, 99, batch(0, 2, 100))]));
        assert_eq!(script.offsets(), [0, 1]);
        script.shared.queue.resume(&[Arc::clone(&paused)]);
        let request = script.fetch().unwrap();
        assert!(named(&request).contains(&(0, 3)), "{request:?}");
        script.respond(&response(5, vec![data(0, 999, batch(3, 10, 100))]));
        assert_eq!(script.offsets(), (3..13).collect::<Vec<_>>());
        assert_eq!(paused.position(), Some(13));
    }
}

#[test]
fn waiting_fetcher_has_room_once_paused_records_are_set_aside() {
    let [settings, _] = limits();
    let mut script = Script::new(18, settings);
    let paused = fill(&mut script);
    let other = Arc::new(Wakes::default());
    let of_another_broker = WakeHandle::new(Arc::clone(&other) as Arc<dyn Wake>);
    assert_eq!(script.shared.queue.reserve(5_000, 1, &of_another_broker), None);
    script.shared.queue.pause(&[paused]);
    let wakes = || other.0.load(std::sync::atomic::Ordering::SeqCst);
    assert_eq!(wakes(), 0);
    assert!(script.take().is_empty());
    assert_eq!(wakes(), 1, "the application's call made room");
    assert!(script.shared.queue.reserve(5_000, 1, &of_another_broker).is_some());
}

#[test]
fn paused_records_stay_while_others_can_be_taken() {
    let [settings, _] = limits();
    let mut script = Script::new(18, settings);
    let (paused, _other) = (script.adopt(0, 0), script.adopt(1, 0));
    script.fetch().unwrap();
    script.respond(&response(5, vec![data(0, 99, batch(0, 20, 100))]));
    script.fetch().unwrap();
    script.respond(&response(5, vec![data(1, 99, batch(0, 40, 100))]));
    script.shared.queue.pause(&[Arc::clone(&paused)]);
    assert!(script.fetch().is_none(), "records of the other partition can be taken");
    assert_eq!(script.offsets().len(), 40, "of the other partition");
    script.shared.queue.resume(&[Arc::clone(&paused)]);
    assert_eq!(script.offsets().len(), 20, "nothing was fetched again");
}

#[test]
fn events_of_a_paused_partition_outlive_its_records() {
    let [settings, _] = limits();
    let mut script = Script::new(18, settings);
    let paused = fill(&mut script);
    let error = Error::new(ErrorKind::BadBatch, "damaged");
    script.shared.report_for(&paused, paused.version(), error);
    script.shared.queue.pause(&[Arc::clone(&paused)]);
    assert!(script.fetch().is_some(), "the paused records were dropped");
    script.shared.queue.resume(&[Arc::clone(&paused)]);
    let mut records = Records::default();
    script.shared.queue.take(usize::MAX, &mut records);
    assert_eq!(records.iter().count(), 0);
    assert!(
        matches!(records.events().first(), Some(ConsumerEvent::Error(error)) if error.kind() == ErrorKind::BadBatch)
    );
}

#[test]
fn rest_of_a_batch_is_fetched_again_from_its_first_record() {
    let [settings, _] = limits();
    let mut script = Script::new(18, settings);
    let paused = fill(&mut script);
    let mut cursor = crate::fetch::deliver::RecordCursor::default();
    let mut records = Records::default();
    script.shared.queue.take_without_position(1, &mut records);
    cursor.push(records);
    assert!(cursor.next(&script.shared.queue).is_some() && cursor.next(&script.shared.queue).is_some());
    script.shared.queue.pause(&[Arc::clone(&paused)]);
    assert!(cursor.next(&script.shared.queue).is_none());
    script.shared.queue.evict_paused();
    assert_eq!((script.shared.queue.memory(), paused.position()), (0, Some(5)), "two were handed out");
    script.shared.queue.resume(&[Arc::clone(&paused)]);
    assert!(named(&script.fetch().unwrap()).contains(&(0, 5)));
}
