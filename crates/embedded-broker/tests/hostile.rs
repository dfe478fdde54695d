//! TCP clients that disconnect, stall, or never read.

mod common;

use std::{
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use common::{Batch, decode, fetch_request, frame, produce_request};
use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};
use ottla_protocol::generated::{
    join_group::JoinGroupRequest, metadata::MetadataRequest, produce::ProduceRequest,
};

const MIB: usize = 1 << 20;

fn start(options: ClusterOptions) -> EmbeddedCluster {
    let cluster = EmbeddedCluster::start(ClusterOptions { brokers: 1, ..options }).unwrap();
    cluster.control(|control| control.create_topic("t", 1, 1)).unwrap();
    cluster
}

fn connect(cluster: &EmbeddedCluster) -> TcpStream {
    let stream = TcpStream::connect(cluster.addresses()[0].1).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Returns the next response, or `None` if the broker closed the connection.
fn receive(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut bytes = vec![0; 4];
    stream.read_exact(&mut bytes).ok()?;
    let length = usize::try_from(i32::from_be_bytes(bytes[..4].try_into().unwrap())).unwrap();
    bytes.resize(4 + length, 0);
    stream.read_exact(&mut bytes[4..]).ok()?;
    Some(bytes)
}

fn is_served(cluster: &EmbeddedCluster) -> bool {
    let mut stream = connect(cluster);
    stream.write_all(&metadata()).unwrap();
    receive(&mut stream).is_some_and(|bytes| decode::<MetadataRequest>(&bytes, 12, 1).brokers.len() == 1)
}

fn metadata() -> Vec<u8> {
    frame(1, 12, &MetadataRequest::default())
}

fn join_group() -> Vec<u8> {
    let request = JoinGroupRequest {
        group_id: "g".into(),
        session_timeout_ms: 60_000,
        rebalance_timeout_ms: i32::MAX,
        protocol_type: "consumer".into(),
        protocols: vec![Default::default()],
        ..Default::default()
    };
    frame(2, 2, &request)
}

fn open_connections(cluster: &EmbeddedCluster) -> usize {
    cluster.control(|control| control.connections(None).len())
}

fn eventually(mut holds: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(60);
    while Instant::now() < end {
        if holds() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

#[test]
fn connection_with_an_incomplete_frame_closes_after_the_client() {
    let cluster = start(ClusterOptions::default());
    let half = &metadata()[..9];
    for _ in 0..3000 {
        connect(&cluster).write_all(half).unwrap();
    }
    assert!(
        eventually(|| open_connections(&cluster) == 0),
        "{} connections of closed clients are still open",
        open_connections(&cluster)
    );
}

#[test]
fn connection_with_a_waiting_request_closes_after_the_client() {
    let cluster = start(ClusterOptions { group_initial_rebalance_delay: HOUR, ..Default::default() });
    let fetch = frame(1, 12, &fetch_request("t", &[(0, 0)], i32::MAX));
    for waiting in [fetch, join_group()] {
        for behind in [&metadata()[..], &metadata()[..9], &[0, 1, 0, 0], &[0; 100_000]] {
            let mut stream = connect(&cluster);
            stream.write_all(&waiting).unwrap();
            stream.write_all(behind).unwrap();
        }
    }
    assert!(is_served(&cluster), "so that all of them are accepted");
    assert!(
        eventually(|| open_connections(&cluster) == 0),
        "{} connections of closed clients are still open",
        open_connections(&cluster)
    );
}

/// Returns 2,000, or 100 where the system allows few descriptors: both ends are in this process.
fn many() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let files = limits.lines().find(|line| line.starts_with("Max open files"));
    let soft = files.and_then(|line| line.split_whitespace().nth(3)?.parse().ok()).unwrap_or(0);
    if soft >= 6000 { 2000 } else { 100 }
}

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn requests_are_handled_if_the_client_closes_after_sending() {
    let cluster = start(ClusterOptions::default());
    for _ in 0..200 {
        let mut stream = connect(&cluster);
        let produce = |_| frame(1, 9, &produce_request("t", 0, 0, Batch::of(1).value_size(20_000).build()));
        stream.write_all(&(0..5).flat_map(produce).collect::<Vec<u8>>()).unwrap();
    }
    let end = || cluster.control(|control| control.partition("t", 0)).unwrap().log_end_offset;
    assert!(eventually(|| end() == 1000), "{} of 1000 records arrived", end());
}

#[test]
fn unfinished_frames_are_bounded_over_all_connections() {
    let limit = 32 * MIB;
    let cluster = start(ClusterOptions { queued_max_request_bytes: limit, ..Default::default() });
    let mut streams: Vec<TcpStream> = (0..20).map(|_| connect(&cluster)).collect();
    let mut closed = [false; 20];
    let announced = i32::try_from(90 * MIB).unwrap().to_be_bytes();
    for (stream, closed) in streams.iter_mut().zip(&mut closed) {
        *closed |= stream.write_all(&announced).is_err();
    }
    let chunk = vec![0; MIB];
    let mut most = 0;
    for _ in 0..10 {
        for (stream, closed) in streams.iter_mut().zip(&mut closed) {
            *closed = *closed || stream.write_all(&chunk).is_err();
            most = most.max(cluster.control(|control| control.queued_request_bytes()));
        }
    }
    assert!(eventually(|| open_connections(&cluster) < 20), "some connections are closed");
    assert!((MIB..=limit).contains(&most), "{most} bytes of unfinished frames were kept");
    assert!(is_served(&cluster), "others are still served");
    let records = Batch::of(1).value_size(MIB - 1000).build();
    let mut good = connect(&cluster);
    good.write_all(&frame(1, 9, &produce_request("t", 0, 1, records))).unwrap();
    let response = receive(&mut good).expect("the newest frame is not the one that goes");
    let response = decode::<ProduceRequest>(&response, 9, 1);
    assert_eq!(response.responses[0].partition_responses[0].base_offset, 0);
}

#[test]
fn announced_length_reserves_little_memory() {
    let cluster = start(ClusterOptions::default());
    let announced = i32::try_from(100 * MIB).unwrap().to_be_bytes();
    let mut streams: Vec<TcpStream> = (0..50).map(|_| connect(&cluster)).collect();
    streams.iter_mut().for_each(|stream| stream.write_all(&announced).unwrap());
    streams.iter_mut().for_each(|stream| stream.write_all(&[1; 100]).unwrap());
    assert!(eventually(|| open_connections(&cluster) == 50 && is_served(&cluster)));
    let kept = cluster.control(|control| control.queued_request_bytes());
    assert!(kept <= 60 * MIB, "{kept} bytes for 5,200 that arrived");
}

#[test]
fn input_behind_a_waiting_request_is_bounded() {
    let cluster = start(ClusterOptions::default());
    let mut stream = connect(&cluster);
    stream.write_all(&frame(1, 12, &fetch_request("t", &[(0, 0)], i32::MAX))).unwrap();
    stream.write_all(&i32::MAX.to_be_bytes()).unwrap();
    stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let chunk = vec![0; MIB];
    let written = (0..200).take_while(|_| stream.write_all(&chunk).is_ok()).count();
    assert!(written < 100, "{written} MiB behind a waiting request were taken");
    let kept = cluster.control(|control| control.queued_request_bytes());
    assert!(kept <= MIB, "{kept} bytes");
}

#[test]
fn slow_frame_is_served_without_delaying_others() {
    let cluster = start(ClusterOptions::default());
    let mut slow = connect(&cluster);
    for byte in metadata() {
        slow.write_all(&[byte]).unwrap();
        std::thread::sleep(Duration::from_millis(2));
        assert!(is_served(&cluster));
    }
    assert!(receive(&mut slow).is_some());
}

#[test]
fn thousands_of_idle_connections_close_without_delaying_others() {
    let cluster =
        start(ClusterOptions { connections_max_idle: Duration::from_secs(3), ..Default::default() });
    let idle: Vec<TcpStream> = (0..many()).map(|_| connect(&cluster)).collect();
    let mut busy = connect(&cluster);
    let end = Instant::now() + Duration::from_secs(6);
    while Instant::now() < end {
        busy.write_all(&metadata()).unwrap();
        assert!(receive(&mut busy).is_some(), "a connection that is used stays open");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(eventually(|| open_connections(&cluster) == 1), "{} are open", open_connections(&cluster));
    drop(idle);
}

#[test]
fn unread_responses_are_bounded_over_all_connections() {
    let limit = 48 * MIB;
    let cluster = start(ClusterOptions { queued_max_response_bytes: limit, ..Default::default() });
    let mut producer = connect(&cluster);
    for _ in 0..8 {
        producer
            .write_all(&frame(1, 9, &produce_request("t", 0, 1, Batch::of(1).value_size(MIB - 1000).build())))
            .unwrap();
        receive(&mut producer).unwrap();
    }
    let mut request = fetch_request("t", &[(0, 0)], 0);
    (request.max_bytes, request.topics[0].partitions[0].partition_max_bytes) = (i32::MAX, i32::MAX);
    let fetch = frame(1, 12, &request);
    let streams: Vec<TcpStream> = (0..20)
        .map(|_| {
            let mut stream = connect(&cluster);
            let _ = stream.write_all(&fetch.repeat(50));
            stream
        })
        .collect();
    assert!(is_served(&cluster), "so that all of them are accepted");
    // Buffers of the system don't count: each connection may have about 16 MiB unsent, and the newest ones stay.
    assert!(eventually(|| open_connections(&cluster) <= 5), "{} are open", open_connections(&cluster));
    assert!(open_connections(&cluster) > 1, "the newest ones stay");
    assert!(is_served(&cluster));
    let mut last = streams.into_iter().next_back().unwrap();
    for _ in 0..50 {
        assert_eq!(receive(&mut last).map(|bytes| bytes.len() / MIB), Some(7), "a reader gets everything");
    }
}

#[test]
fn garbage_at_any_position_closes_only_its_connection() {
    let cluster = start(ClusterOptions::default());
    let good = metadata();
    for at in 0..good.len() {
        for value in [0, 0x7f, 0xff] {
            let mut bytes = good.clone();
            bytes[at] = value;
            let mut stream = connect(&cluster);
            stream.write_all(&bytes).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let mut rest = Vec::new();
            match stream.read_to_end(&mut rest) {
                Ok(_) => {}
                Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "byte {at}"),
            }
        }
    }
    assert!(is_served(&cluster));
    assert!(eventually(|| open_connections(&cluster) == 0));
}
