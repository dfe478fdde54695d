//! A ceiling of the client's memory: what a fetcher asks for, and what it waits for.

use super::*;

/// A script with a ceiling of this many bytes.
fn script(max_memory: usize) -> Script {
    Script::new(18, ConsumerSettings { max_memory: Some(max_memory), ..ConsumerSettings::default() })
}

/// Returns a compressed batch of `count` records from offset `base` on, with values of `size` equal bytes.
fn compressed(base: i64, count: usize, size: usize) -> Vec<u8> {
    let mut builder = RecordBatchBuilder::new(&ChunkPool::new());
    for _ in 0..count {
        builder.append(1000, None, Some(&vec![b'x'; size]), &[]);
    }
    let options = SealOptions { compression: Compression::Lz4, ..SealOptions::default() };
    let mut bytes = builder.seal(&options).unwrap().to_vec();
    bytes[..8].copy_from_slice(&base.to_be_bytes());
    bytes
}

#[test]
fn fetch_asks_for_less_than_half_of_the_ceiling() {
    let mut script = script(100_000);
    script.adopt(0, 0);
    let request = script.fetch().unwrap();
    assert_eq!((request.max_bytes, script.shared.queue.memory()), (25_000, 50_000));
    assert_eq!(script.shared.queue.queued_bytes(), 0, "nothing is queued");
    script.respond(&response(5, vec![data(0, 9, batch(0, 9, 1000))]));
    let queued = script.shared.queue.queued_bytes();
    assert!((9_000..10_000).contains(&queued) && script.shared.queue.memory() == queued, "{queued}");
}

#[test]
fn fetcher_at_the_ceiling_waits_until_records_are_taken() {
    let mut script = script(100_000);
    script.adopt(0, 0);
    let mut offset = 0;
    while script.fetch().is_some() {
        script.respond(&response(5, vec![data(0, 999, batch(offset, 20, 1000))]));
        assert!(script.shared.queue.memory() <= 100_000);
        offset += 20;
    }
    assert_eq!(offset, 60, "a fourth response may decompress to more than what is left");
    let wakes = script.wakes();
    assert_eq!(script.offsets().len(), 60);
    assert_eq!((script.wakes() - wakes, script.shared.queue.memory()), (1, 0));
    script.fetch().expect("there is room again");
}

#[test]
fn batch_above_the_ceiling_comes_alone() {
    let mut script = script(10_000);
    script.adopt(0, 0);
    script.fetch().unwrap();
    script.respond(&response(5, vec![data(0, 9, compressed(0, 2, 30_000))]));
    assert!(script.shared.queue.memory() > 60_000);
    assert!(script.fetch().is_none(), "it is above the ceiling");
    assert_eq!(script.offsets(), [0, 1]);
    script.fetch().expect("the queue is empty");
    assert!(script.shared.queue.memory() > 60_000, "another such batch may come");
    script.respond(&response(5, vec![data(0, 9, batch(2, 1, 100))]));
    assert!(script.fetch().is_none(), "something is queued, and another such batch may come");
    assert_eq!(script.offsets(), [2]);
    script.fetch().expect("the queue is empty");
}

#[test]
fn batches_that_do_not_fit_are_decompressed_by_turns() {
    let mut script = script(100_000);
    script.adopt(0, 0);
    script.adopt(1, 0);
    let both = |next| vec![data(0, 9, compressed(next, 1, 45_000)), data(1, 9, compressed(0, 1, 45_000))];
    script.fetch().unwrap();
    script.respond(&response(5, both(0)));
    assert!(script.shared.queue.memory() < 50_000);
    let first = script.take().iter().map(|message| message.partition()).collect::<Vec<_>>();
    assert_eq!(named(&script.fetch().unwrap()), [(0, 1)], "the position of the other has not moved");
    script.respond(&response(5, both(1)));
    let second = script.take().iter().map(|message| message.partition()).collect::<Vec<_>>();
    assert_eq!((first, second), (vec![0], vec![1]));
}

#[test]
fn idle_long_polls_leave_room_for_the_others() {
    let mut script = script(100_000);
    script.shared.fetchers.store(2, std::sync::atomic::Ordering::Relaxed);
    script.adopt(0, 0);
    // `adopt` counts this fetcher, too.
    script.fetch().unwrap();
    let share = script.shared.queue.memory();
    let queue = &script.shared.queue;
    let wake = WakeHandle::new(Arc::clone(&script.wakes) as Arc<dyn Wake>);
    assert_eq!(share, 100_000 / 2 / 3);
    let reserved: Vec<_> = (0..9).map_while(|_| queue.reserve(usize::MAX, 3, &wake)).collect();
    assert_eq!(reserved.len(), 5, "three fetchers reserve half");
    let wakes = script.wakes();
    queue.settle(Vec::new(), reserved[0]);
    assert_eq!(script.wakes() - wakes, 1, "another fetcher's response makes room");
}

#[test]
fn long_poll_lets_a_waiting_fetcher_go_first() {
    let mut script = script(1);
    script.adopt(0, 0);
    script.fetch().unwrap();
    let wake = WakeHandle::new(Arc::clone(&script.wakes) as Arc<dyn Wake>);
    assert_eq!(script.shared.queue.reserve(1, 2, &wake), None);
    script.respond(&response(5, vec![]));
    assert!(script.fetch().is_none(), "another one waits");
    script.later(Duration::from_millis(5));
    script.fetch().expect("the other one did not need the room");
}

#[test]
fn fetch_that_is_lost_gives_its_memory_back() {
    let mut script = script(100_000);
    script.adopt(0, 0);
    script.fetch().unwrap();
    script.fetcher.handle_lost(script.now, &Error::new(ErrorKind::TimedOut, ""));
    assert_eq!(script.shared.queue.memory(), 0);
    script.fetch().unwrap();
    let shared = Arc::clone(&script.shared);
    drop(script);
    assert_eq!(shared.queue.memory(), 0);
}

#[test]
fn invalid_response_gives_its_memory_back() {
    let mut script = script(100_000);
    script.adopt(0, 0);
    script.fetch().unwrap();
    script.receive(ApiKey::Fetch, 18, &[0; 3]);
    assert!(matches!(script.fetcher.poll_output(), Some(HalfOutput::Misbehaved(_))));
    assert_eq!(script.shared.queue.memory(), 0);
}
