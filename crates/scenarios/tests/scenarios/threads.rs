//! The number of threads is small and independent of the number of brokers and clients.

use std::fs;

use ottla::{Producer, Record};
use ottla_scenarios::{Backend, TIMEOUT};

ottla_scenarios::run_on_embedded!(client_of_300_brokers_uses_no_more_threads_than_one_of_3);

ottla_scenarios::run_on_all!(fifty_clients_share_the_threads);

fn client_of_300_brokers_uses_no_more_threads_than_one_of_3(backend: &Backend) {
    let of_three = busy_producer(backend, 3);
    let before = threads();
    assert!(before > 0, "{before} threads are named after the client");
    let large = Backend::embedded_with(|options| options.brokers = 300);
    let of_three_hundred = busy_producer(&large, 300);
    let connections = large.control(|control| control.connections(None).len());
    assert!(connections >= 300, "all {connections} brokers are connected");
    assert_eq!(threads(), before);
    drop((of_three, of_three_hundred));
}

fn fifty_clients_share_the_threads(backend: &Backend) {
    let first = busy_producer(backend, 3);
    let before = threads();
    let others: Vec<Producer> = (0..50).map(|_| busy_producer(backend, 1)).collect();
    assert_eq!(threads(), before);
    assert!(others.iter().all(|producer| producer.io_threads() == first.io_threads()));
}

/// Creates a producer that has sent a record to each of this number of partitions.
fn busy_producer(backend: &Backend, partitions: i32) -> Producer {
    let topic = backend.topic(partitions);
    let producer = backend.producer(&[]);
    for partition in 0..partitions {
        producer.send(&topic, Record::new().value("x").partition(partition)).unwrap();
    }
    producer.flush(TIMEOUT).unwrap();
    producer
}

/// Returns the number of the client's threads in this process: its I/O threads and its name resolvers.
fn threads() -> usize {
    let tasks = fs::read_dir("/proc/self/task").expect("this is Linux");
    let names = tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.starts_with("ottla-io")).count()
}
