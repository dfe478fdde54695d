//! Records arrive at their partitions, in the requested form.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use ottla::{ErrorKind, Partitioner, PersistenceStatus, Producer, Record, SendError, Topic};
use ottla_embedded_broker::{BrokerId, RequestRecord};
use ottla_protocol::{api::ApiKey, compress::Compression};
use ottla_scenarios::{Backend, TIMEOUT, eventually};

ottla_scenarios::run_on_all!(
    records_are_written_once_and_in_order_with_any_acks,
    every_codec_and_level_round_trips,
    all_fields_of_records_arrive_unchanged,
    equal_keys_go_to_the_java_clients_partition,
    custom_partitioner_chooses_missing_partitions,
    records_sent_before_the_topic_is_known_keep_their_order,
    records_without_a_key_stick_to_a_partition,
    large_records_span_chunks,
    message_max_bytes_is_an_exact_limit,
    many_threads_share_a_producer,
    flush_does_not_wait_for_the_linger,
    linger_of_both_kinds_is_kept,
    linger_of_a_topic_overrides_the_clients,
    topics_with_own_settings_share_a_producer,
    settings_of_a_topic_are_those_of_its_first_use,
    records_of_many_partitions_share_requests,
    several_topics_share_a_producer,
);

ottla_scenarios::run_on_embedded!(
    thousand_partitions_need_few_requests,
    linger_per_partition_sends_due_partitions_together,
    late_record_does_not_extend_the_linger,
    request_is_sent_when_enough_partitions_have_records,
    request_is_sent_when_enough_bytes_are_collected,
    one_record_is_sent_in_one_request,
    records_without_a_key_go_to_leaders_in_the_rack,
);

fn records_are_written_once_and_in_order_with_any_acks(backend: &Backend) {
    for (acks, idempotence) in [("0", "false"), ("1", "false"), ("all", "false"), ("all", "true")] {
        let topic = backend.topic(3);
        let properties = [("acks", acks), ("enable.idempotence", idempotence)];
        let (producer, reports) = backend.producer_with_reports(&properties);
        send_numbers(&producer.topic(&topic), 0..1000);
        producer.flush(TIMEOUT).unwrap();
        assert_eq!(producer.in_queue(), 0);
        reports.assert_one_each(1000);
        let all = reports.all();
        if acks == "0" {
            let unknown = PersistenceStatus::PossiblyPersisted;
            assert!(all.iter().all(|report| (report.status, report.offset) == (unknown, None)));
            assert!(all.iter().all(|report| report.error.is_none()));
        } else {
            reports.assert_all_delivered(1000);
            assert!(all.iter().all(|report| report.offset.is_some()));
        }
        let written = || (0..3).map(|p| backend.values(&topic, p).len()).sum::<usize>() == 1000;
        assert!(eventually(written), "acks={acks}");
        backend.assert_complete_and_in_order(&topic, 3, 1000);
        for batch in (0..3).flat_map(|partition| backend.batches(&topic, partition)) {
            assert_eq!(batch.header.producer_id >= 0, idempotence == "true");
        }
    }
}

fn every_codec_and_level_round_trips(backend: &Backend) {
    let levels = |codec| match codec {
        Compression::Gzip => vec!["-1", "0", "1", "9"],
        Compression::Lz4 => vec!["-1", "0", "1", "12"],
        Compression::Zstd => vec!["-1", "1", "12"],
        Compression::None | Compression::Snappy => vec!["-1"],
    };
    let values: Vec<String> = (0..400).map(|n| format!("{n} {}", "compressible ".repeat(n % 40))).collect();
    for codec in Compression::ALL {
        for level in levels(codec) {
            let topic = backend.topic(1);
            let name = format!("{codec:?}").to_lowercase();
            let producer = backend.producer(&[("compression.type", &name), ("compression.level", level)]);
            for value in &values {
                producer.send(&topic, Record::new().key("key").value(value)).unwrap();
            }
            producer.flush(TIMEOUT).unwrap();
            assert_eq!(backend.values(&topic, 0), values, "{name} {level}");
            // A batch that doesn't get smaller is sent uncompressed, and gzip level 0 doesn't compress.
            let expected = if level == "0" && codec == Compression::Gzip { Compression::None } else { codec };
            let batches = backend.batches(&topic, 0);
            assert!(batches.iter().all(|batch| batch.compression == expected), "{name} {level}");
        }
    }
}

fn all_fields_of_records_arrive_unchanged(backend: &Backend) {
    let topic = backend.topic(4);
    let producer = backend.producer(&[]);
    let before =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as i64;
    let send = |record: Record<'_>| producer.send(&topic, record.partition(2)).unwrap();
    send(Record::new());
    send(Record::new().key(b"").value(b""));
    send(Record::new().key(b"k").timestamp(before - 5000));
    send(Record::new().value([0u8, 255, 7].as_slice()).timestamp(before + 5000));
    send(Record::new().header("same", "1").null_header("same").header("same", "").header("", &[0xff, 0]));
    producer.flush(TIMEOUT).unwrap();
    for other in [0, 1, 3] {
        assert_eq!(backend.records(&topic, other), []);
    }
    let records = backend.records(&topic, 2);
    let pairs: Vec<_> = records.iter().map(|r| (r.key.as_deref(), r.value.as_deref())).collect();
    let expected: [KeyAndValue<'_>; 5] =
        [(None, None), (Some(b""), Some(b"")), (Some(b"k"), None), (None, Some(&[0, 255, 7])), (None, None)];
    assert_eq!(pairs, expected);
    assert_eq!(records[2].timestamp, before - 5000);
    assert_eq!(records[3].timestamp, before + 5000);
    for record in [&records[0], &records[1], &records[4]] {
        assert!((before - 1000..before + 60_000).contains(&record.timestamp), "{}", record.timestamp);
    }
    let header = |key: &str, value: Option<&[u8]>| (key.to_owned(), value.map(<[u8]>::to_vec));
    let headers = [
        header("same", Some(b"1")),
        header("same", None),
        header("same", Some(b"")),
        header("", Some(&[0xff, 0])),
    ];
    assert_eq!(records[4].headers, headers);
    assert!(records[..4].iter().all(|record| record.headers.is_empty()));
}

type KeyAndValue<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);

fn equal_keys_go_to_the_java_clients_partition(backend: &Backend) {
    let topic = backend.topic(4);
    let producer = backend.producer(&[("partitioner", "murmur2_random")]);
    for key in ["a", "b", "kafka", "a", "longer than four"] {
        producer.send(&topic, Record::new().key(key).value(key)).unwrap();
    }
    producer.flush(TIMEOUT).unwrap();
    // The results of org.apache.kafka.common.utils.Utils.murmur2, made positive, modulo 4.
    let expected = BTreeMap::from([("a", murmur2(b"a")), ("b", murmur2(b"b")), ("kafka", murmur2(b"kafka"))]);
    for (key, hash) in expected {
        let partition = (hash & 0x7fff_ffff) % 4;
        let values = backend.values(&topic, partition as i32);
        let times = if key == "a" { 2 } else { 1 };
        assert_eq!(values.iter().filter(|value| *value == key).count(), times, "{key} in {partition}");
    }
}

/// Java's murmur2, implemented independently of the tested code.
fn murmur2(data: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut hash = 0x9747_b28c ^ data.len() as u32;
    let mut words = data.chunks_exact(4);
    for word in words.by_ref() {
        let mut k = u32::from_le_bytes(word.try_into().unwrap()).wrapping_mul(M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        for (i, byte) in rest.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * i);
        }
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^ (hash >> 15)
}

fn custom_partitioner_chooses_missing_partitions(backend: &Backend) {
    let topic = backend.topic(5);
    let last = Partitioner::Custom(Box::new(|choice| choice.partition_count - 1));
    let producer = Producer::builder(&backend.config(&[])).partitioner(last).build().unwrap();
    producer.send(&topic, Record::new().value("chosen")).unwrap();
    producer.send(&topic, Record::new().value("said").partition(1)).unwrap();
    producer.flush(TIMEOUT).unwrap();
    assert_eq!(backend.values(&topic, 4), ["chosen"]);
    assert_eq!(backend.values(&topic, 1), ["said"]);
}

fn records_sent_before_the_topic_is_known_keep_their_order(backend: &Backend) {
    let topic = backend.topic(2);
    let (producer, reports) = backend.producer_with_reports(&[]);
    // The first records are accepted long before any broker has responded, the last ones long after.
    let handle = producer.topic(&topic);
    let began = Instant::now();
    let mut sent = 0;
    while sent < 300 || (began.elapsed() < Duration::from_millis(100) && sent < 30_000) {
        let record = Record::new().opaque(sent);
        handle.send(record.value(&sent.to_string()).partition((sent % 2) as i32)).unwrap();
        sent += 1;
    }
    producer.flush(TIMEOUT).unwrap();
    reports.assert_all_delivered(sent);
    backend.assert_complete_and_in_order(&topic, 2, sent as usize);
}

fn records_without_a_key_stick_to_a_partition(backend: &Backend) {
    let topic = backend.topic(4);
    let producer =
        backend.producer(&[("broker.linger.ms", "200"), ("sticky.partitioning.linger.ms", "60000")]);
    producer.partition_count(&topic, TIMEOUT).unwrap();
    send_numbers(&producer.topic(&topic), 0..100);
    producer.flush(TIMEOUT).unwrap();
    let mut counts: Vec<usize> = (0..4).map(|partition| backend.values(&topic, partition).len()).collect();
    counts.sort_unstable();
    assert_eq!(counts, [0, 0, 0, 100]);
}

fn large_records_span_chunks(backend: &Backend) {
    let topic = backend.topic(1);
    let producer = backend.producer(&[]);
    let sizes = [16_300, 16_384, 16_385, 40_000, 300_000, 900_000, 10];
    for (n, size) in sizes.iter().enumerate() {
        let value = vec![n as u8; *size];
        producer.send(&topic, Record::new().key(&[n as u8]).value(&value)).unwrap();
    }
    producer.flush(TIMEOUT).unwrap();
    let records = backend.records(&topic, 0);
    assert_eq!(records.len(), sizes.len());
    for (n, (record, size)) in records.iter().zip(sizes).enumerate() {
        assert!(record.value.as_deref() == Some(&vec![n as u8; size][..]), "record {n} of {size} bytes");
    }
}

fn message_max_bytes_is_an_exact_limit(backend: &Backend) {
    let topic = backend.topic(1);
    let (producer, reports) = backend.producer_with_reports(&[("message.max.bytes", "50000")]);
    let handle = producer.topic(&topic);
    let refused = |size: usize| handle.send(Record::new().value(&vec![b'x'; size]));
    let Err(SendError::MessageTooLarge { size, overhead, limit }) = refused(60_000) else {
        panic!("it is too large")
    };
    assert_eq!((size, limit), (60_000, 50_000));
    assert!((1..200).contains(&overhead), "{overhead} bytes beside the value");
    let most = limit - overhead;
    handle.send(Record::new().value(&vec![b'x'; most]).opaque(0)).unwrap();
    let error = refused(most + 1).unwrap_err();
    assert!(error.to_string().contains("message.max.bytes=50000"), "{error}");
    assert_eq!(ottla::Error::from(error).kind(), ErrorKind::MessageTooLarge);
    producer.flush(TIMEOUT).unwrap();
    reports.assert_all_delivered(1);
    assert_eq!(backend.records(&topic, 0)[0].value.as_ref().unwrap().len(), most);
}

fn many_threads_share_a_producer(backend: &Backend) {
    let topic = backend.topic(8);
    let (producer, reports) = backend.producer_with_reports(&[]);
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let handle = producer.topic(&topic);
            scope.spawn(move || {
                for n in 0..500 {
                    let opaque = thread * 500 + n;
                    let record = Record::new().opaque(opaque).partition(thread as i32);
                    handle.send(record.value(&opaque.to_string())).unwrap();
                }
            });
        }
    });
    producer.flush(TIMEOUT).unwrap();
    reports.assert_all_delivered(4000);
    backend.assert_complete_and_in_order(&topic, 8, 4000);
}

fn flush_does_not_wait_for_the_linger(backend: &Backend) {
    for linger in ["linger.ms", "broker.linger.ms"] {
        let topic = backend.topic(2);
        let producer = backend.producer(&[(linger, "60000")]);
        send_numbers(&producer.topic(&topic), 0..10);
        let began = Instant::now();
        producer.flush(TIMEOUT).unwrap();
        assert!(began.elapsed() < Duration::from_secs(20), "{linger}");
        backend.assert_complete_and_in_order(&topic, 2, 10);
        // Records after the flush linger again.
        producer.send(&topic, Record::new().value("10")).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(producer.in_queue(), 1, "{linger}");
    }
}

fn linger_of_both_kinds_is_kept(backend: &Backend) {
    for linger in ["linger.ms", "broker.linger.ms"] {
        let topic = backend.topic(1);
        let producer = backend.producer(&[(linger, "300")]);
        producer.send(&topic, Record::new().value("0")).unwrap();
        producer.flush(TIMEOUT).unwrap();
        let began = Instant::now();
        let delivery = producer.topic(&topic).send_tracked(Record::new().value("1")).unwrap();
        delivery.wait(TIMEOUT).unwrap();
        let took = began.elapsed();
        assert!((280..10_000).contains(&took.as_millis()), "{linger}: {took:?}");
    }
}

fn linger_of_a_topic_overrides_the_clients(backend: &Backend) {
    let (hasty, patient) = (backend.topic(1), backend.topic(1));
    let producer = backend.producer(&[("broker.linger.ms", "20000")]);
    let topic = producer.topic_with(&hasty, &[("broker.linger.ms", "1")]).unwrap();
    producer.partition_count(&patient, TIMEOUT).unwrap();
    let waits = producer.topic(&patient).send_tracked(Record::new().value("later")).unwrap();
    let delivery = topic.send_tracked(Record::new().value("now")).unwrap();
    delivery.wait(Duration::from_secs(10)).unwrap();
    drop(waits);
    producer.flush(TIMEOUT).unwrap();
}

fn topics_with_own_settings_share_a_producer(backend: &Backend) {
    let names: Vec<String> = (0..4).map(|_| backend.topic(2)).collect();
    let properties = [("enable.idempotence", "false"), ("compression.type", "lz4")];
    let (producer, reports) = backend.producer_with_reports(&properties);
    let own: [&[(&str, &str)]; 4] = [
        &[],
        &[("acks", "0"), ("compression.type", "none")],
        &[("acks", "1"), ("compression.type", "gzip"), ("request.timeout.ms", "5000")],
        &[("compression.codec", "zstd"), ("partitioner", "murmur2"), ("message.timeout.ms", "60000")],
    ];
    let topics = names.iter().zip(own).map(|(name, own)| producer.topic_with(name, own).unwrap());
    let topics: Vec<Topic> = topics.collect();
    let padding = "x".repeat(200);
    for number in 0..400u64 {
        let (value, key) = (format!("{} {padding}", number / 4), format!("{}", number % 7));
        let record = Record::new().key(&key).value(&value).opaque(number);
        topics[number as usize % 4].send(record).unwrap();
    }
    assert_eq!(producer.in_queue() + reports.len(), 400);
    producer.flush(TIMEOUT).unwrap();
    assert_eq!(producer.in_queue(), 0);
    reports.assert_one_each(400);
    for report in reports.all() {
        assert_eq!(report.error, None);
        assert_eq!(report.offset.is_none(), report.topic == names[1], "only acks=0 gets no response");
    }
    let codecs = [Compression::Lz4, Compression::None, Compression::Gzip, Compression::Zstd];
    for (name, codec) in names.iter().zip(codecs) {
        assert!(eventually(|| (0..2).map(|p| backend.values(name, p).len()).sum::<usize>() == 100), "{name}");
        backend.assert_complete_and_in_order(name, 2, 100);
        let batches: Vec<_> = (0..2).flat_map(|partition| backend.batches(name, partition)).collect();
        assert!(batches.iter().all(|batch| batch.compression == codec), "{name}: {codec:?}");
    }
    producer.close(TIMEOUT).unwrap();
}

fn settings_of_a_topic_are_those_of_its_first_use(backend: &Backend) {
    let (early, late) = (backend.topic(1), backend.topic(1));
    let producer = backend.producer(&[]);
    let refused = |name: &str, own: &[(&str, &str)]| producer.topic_with(name, own).unwrap_err().to_string();
    let contradiction = refused(&late, &[("acks", "1")]);
    assert!(contradiction.contains("`acks` must be all, not 1, with the client's"), "{contradiction}");
    let others = refused(&late, &[("linger.ms", "7")]);
    assert!(others.contains("`linger.ms`") && others.contains("create a separate producer"), "{others}");
    assert!(refused(&late, &[("auto.offset.reset", "earliest")]).contains("it is a property of consumers"));
    let _ = producer.topic(&early);
    let in_use = refused(&early, &[("compression.type", "gzip")]);
    assert!(in_use.contains("`compression.codec`") && in_use.contains("with other settings"), "{in_use}");
    producer.topic_with(&early, &[("compression.type", "none"), ("acks", "all")]).unwrap();
    producer.topic_with(&early, &[("broker.linger.ms", "1")]).unwrap();
    let own = [("compression.type", "gzip"), ("partitioner", "murmur2")];
    producer.topic_with(&late, &own).unwrap();
    let again = producer.topic_with(&late, &own).unwrap();
    again.send_tracked(Record::new().value(&"v".repeat(1000))).unwrap().wait(TIMEOUT).unwrap();
    assert_eq!(backend.batches(&late, 0)[0].compression, Compression::Gzip);
}

fn records_of_many_partitions_share_requests(backend: &Backend) {
    let topic = backend.topic(60);
    let (producer, reports) = backend.producer_with_reports(&[]);
    let handle = producer.topic(&topic);
    for n in 0..1200u64 {
        handle.send(Record::new().value(&n.to_string()).opaque(n).partition((n % 60) as i32)).unwrap();
    }
    producer.flush(TIMEOUT).unwrap();
    reports.assert_all_delivered(1200);
    backend.assert_complete_and_in_order(&topic, 60, 1200);
}

fn several_topics_share_a_producer(backend: &Backend) {
    let topics: Vec<String> = (1..5).map(|partitions| backend.topic(partitions)).collect();
    let producer = backend.producer(&[]);
    for n in 0..200 {
        for topic in &topics {
            producer.send(topic, Record::new().value(&n.to_string())).unwrap();
        }
    }
    producer.flush(TIMEOUT).unwrap();
    for (partitions, topic) in (1..5).zip(&topics) {
        backend.assert_complete_and_in_order(topic, partitions, 200);
    }
}

fn thousand_partitions_need_few_requests(backend: &Backend) {
    let topic = backend.topic(1000);
    let producer = backend.producer(&[("broker.linger.ms", "100")]);
    producer.partition_count(&topic, TIMEOUT).unwrap();
    let handle = producer.topic(&topic);
    backend.control(|control| control.record_requests());
    for n in 0..1000 {
        handle.send(Record::new().value(&n.to_string()).partition(n)).unwrap();
    }
    producer.flush(TIMEOUT).unwrap();
    let requests = produce_requests(backend).len();
    assert!((3..=12).contains(&requests), "{requests} requests for 1000 partitions of 3 brokers");
    backend.assert_complete_and_in_order(&topic, 1000, 1000);
}

fn linger_per_partition_sends_due_partitions_together(backend: &Backend) {
    let topic = backend.topic(300);
    let producer = backend.producer(&[("linger.ms", "100")]);
    assert!(producer.warnings().iter().any(|warning| warning.contains("broker.linger.ms")));
    warm_up(&producer, &topic, backend);
    for n in 0..300 {
        producer.send(&topic, Record::new().value(&n.to_string()).partition(n)).unwrap();
    }
    assert!(eventually(|| producer.in_queue() == 0));
    let requests = produce_requests(backend).len();
    assert!((3..=30).contains(&requests), "{requests} requests for 300 partitions of 3 brokers");
}

fn late_record_does_not_extend_the_linger(backend: &Backend) {
    let topic = backend.topic(2);
    // One broker leads both partitions.
    backend.control(|control| {
        let leader = control.partition(&topic, 0).unwrap().leader;
        control.move_leader(&topic, 1, leader)
    });
    let producer = backend.producer(&[("broker.linger.ms", "3000")]);
    warm_up(&producer, &topic, backend);
    let handle = producer.topic(&topic);
    let began = Instant::now();
    let early = handle.send_tracked(Record::new().value("0").partition(0)).unwrap();
    std::thread::sleep(Duration::from_millis(2000));
    let late = handle.send_tracked(Record::new().value("1").partition(1)).unwrap();
    early.wait(TIMEOUT).unwrap();
    let took = began.elapsed();
    assert!((2980..4990).contains(&took.as_millis()), "the window was {took:?}");
    late.wait(TIMEOUT).unwrap();
    assert_eq!(produce_requests(backend).len(), 1, "the late record goes along");
}

fn request_is_sent_when_enough_partitions_have_records(backend: &Backend) {
    let topic = backend.topic(8);
    backend
        .control(|control| (0..8).for_each(|p| assert!(control.move_leader(&topic, p, Some(BrokerId(2))))));
    let properties = [("broker.linger.ms", "60000"), ("broker.batch.max.partitions", "4")];
    let producer = backend.producer(&properties);
    warm_up(&producer, &topic, backend);
    for n in 0..4 {
        assert!(produce_requests(backend).is_empty());
        producer.send(&topic, Record::new().value(&n.to_string()).partition(n)).unwrap();
    }
    assert!(eventually(|| producer.in_queue() == 0));
    assert_eq!(produce_requests(backend).len(), 1);
}

fn request_is_sent_when_enough_bytes_are_collected(backend: &Backend) {
    let topic = backend.topic(1);
    let producer = backend.producer(&[("broker.linger.ms", "60000"), ("broker.batch.max.bytes", "100000")]);
    warm_up(&producer, &topic, backend);
    let value = vec![b'x'; 10_000];
    for _ in 0..5 {
        producer.send(&topic, Record::new().value(&value)).unwrap();
    }
    std::thread::sleep(Duration::from_millis(50));
    assert!(produce_requests(backend).is_empty());
    for _ in 0..6 {
        producer.send(&topic, Record::new().value(&value)).unwrap();
    }
    assert!(eventually(|| !produce_requests(backend).is_empty()));
}

fn one_record_is_sent_in_one_request(backend: &Backend) {
    let topic = backend.topic(1);
    let producer = backend.producer(&[("broker.linger.ms", "0")]);
    warm_up(&producer, &topic, backend);
    for n in 0..5 {
        producer
            .topic(&topic)
            .send_tracked(Record::new().value(&n.to_string()))
            .unwrap()
            .wait(TIMEOUT)
            .unwrap();
        assert_eq!(produce_requests(backend).len(), 1);
    }
}

/// Sends the numbers as values, with themselves as opaques.
fn send_numbers(topic: &Topic, numbers: std::ops::Range<u64>) {
    for n in numbers {
        topic.send(Record::new().value(&n.to_string()).opaque(n)).unwrap();
    }
}

/// Lets a producer connect to all leaders, and starts to record the brokers' requests.
fn warm_up(producer: &Producer, topic: &str, backend: &Backend) {
    for partition in 0..producer.partition_count(topic, TIMEOUT).unwrap() {
        producer.send(topic, Record::new().value("warm-up").partition(partition)).unwrap();
    }
    producer.flush(TIMEOUT).unwrap();
    // Records that are sent while the I/O thread still flushes may be included.
    std::thread::sleep(Duration::from_millis(100));
    backend.control(|control| control.record_requests());
}

/// Returns the ProduceRequests since the last call.
fn produce_requests(backend: &Backend) -> Vec<RequestRecord> {
    let requests = backend.control(|control| control.take_requests());
    requests.into_iter().filter(|request| request.api == ApiKey::Produce).collect()
}

fn records_without_a_key_go_to_leaders_in_the_rack(backend: &Backend) {
    let topic = backend.topic(6);
    backend.control(|control| {
        for broker in control.brokers() {
            control.set_rack(broker, Some(if broker == BrokerId(2) { "here" } else { "there" }));
        }
    });
    let near = |backend: &Backend, partition: i32| {
        backend.control(|control| control.partition(&topic, partition).and_then(|state| state.leader))
            == Some(BrokerId(2))
    };
    let properties = [("client.rack", "here"), ("partitioner.rack.aware", "true"), ("linger.ms", "0")];
    let producer = backend.producer(&properties);
    for _ in 0..30 {
        let written = producer.deliver(&topic, Record::new().value("v"), TIMEOUT).unwrap();
        assert!(near(backend, written.partition), "{written:?}");
    }
    let keyed = (0..30).map(|key| {
        let key = format!("key-{key}");
        producer.deliver(&topic, Record::new().key(&key).value("v"), TIMEOUT).unwrap().partition
    });
    assert!(keyed.collect::<Vec<_>>().into_iter().any(|partition| !near(backend, partition)), "keys decide");
}
