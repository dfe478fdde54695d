//! Shows why records wait while brokers fail: writes a few records per second to each partition, and prints, in
//! milliseconds since the start, the changes of leaders and in-sync replicas, the client's events, and the periods in which
//! a partition acknowledged nothing.
//!
//!     cargo run --example where_records_wait -- BOOTSTRAP TOPIC SECONDS [NAME=VALUE]...

use std::{
    env,
    error::Error,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use ottla::{Admin, Config, Producer, Record};

const RECORDS_PER_SECOND: u32 = 50;
/// A partition that acknowledges nothing for longer is printed.
const LONG: u64 = 1000;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [servers, topic, seconds, settings @ ..] = &args[..] else {
        return Err("where_records_wait BOOTSTRAP TOPIC SECONDS [NAME=VALUE]...".into());
    };
    let mut config = Config::new();
    config.set("bootstrap.servers", servers)?;
    let admin = Admin::new(&config)?;
    for setting in settings {
        let (name, value) = setting.split_once('=').ok_or("a setting is NAME=VALUE")?;
        config.set(name, value)?;
    }
    let start = Instant::now();
    let clock = move || start.elapsed().as_millis() as u64;
    println!("0 is {} ms of the system's time", SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis());

    let described = admin.metadata(Some(&[topic]), Duration::from_secs(10))?;
    let partitions = described.topics.first().map_or(0, |topic| topic.partitions.len());
    let last_acks = Mutex::new(vec![clock(); partitions]);
    let latencies = Arc::<Mutex<Vec<u64>>>::default();
    let all = Arc::clone(&latencies);
    let producer = Producer::builder(&config)
        .on_delivery(move |batch| {
            let (now, partition) = (clock(), batch.partition());
            if let Some(error) = batch.error() {
                println!("{now} partition {partition}: {} records failed: {error}", batch.len());
            }
            all.lock().unwrap().extend(batch.opaques().iter().map(|sent| now - sent));
            let mut last_acks = last_acks.lock().unwrap();
            let Some(last) = last_acks.get_mut(partition as usize) else { return };
            if now - *last > LONG {
                let oldest = batch.opaques().first().copied().unwrap_or(now);
                println!("{now} partition {partition}: nothing acknowledged since {last}; the oldest record waited {} ms", now - oldest);
            }
            *last = now;
        })
        .build()?;

    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut known = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                if let Ok(cluster) = admin.metadata(Some(&[topic]), Duration::from_secs(2)) {
                    let states: Vec<_> = cluster
                        .topics
                        .iter()
                        .flat_map(|topic| &topic.partitions)
                        .map(|it| (it.id, it.leader, it.leader_epoch, it.in_sync_replicas.clone()))
                        .collect();
                    for state in states.iter().filter(|state| !known.contains(*state)) {
                        let (id, leader, epoch, in_sync) = state;
                        println!(
                            "{} partition {id}: leader {leader:?}, epoch {epoch:?}, in sync {in_sync:?}",
                            clock()
                        );
                    }
                    known = states;
                }
                thread::sleep(Duration::from_millis(100));
            }
        });
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                while let Some(event) = producer.poll_event() {
                    println!("{} event: {event:?}", clock());
                }
                thread::sleep(Duration::from_millis(20));
            }
        });
        let end = Duration::from_secs(seconds.parse().unwrap_or(60));
        while start.elapsed() < end {
            for partition in 0..partitions as i32 {
                let record = Record::new().value("where do I wait?").partition(partition).opaque(clock());
                if let Err(error) = producer.send(topic, record) {
                    println!("{} partition {partition}: refused: {error}", clock());
                }
            }
            thread::sleep(Duration::from_secs(1) / RECORDS_PER_SECOND);
        }
        let flushed = producer.flush(Duration::from_secs(120));
        println!("{} flushed: {flushed:?}", clock());
        is_over.store(true, Ordering::Relaxed);
    });
    let mut latencies = latencies.lock().unwrap();
    latencies.sort_unstable();
    let at = |part: f64| latencies.get((latencies.len() as f64 * part) as usize).or(latencies.last());
    println!(
        "{} records; p50 {:?}, p99 {:?}, max {:?} ms",
        latencies.len(),
        at(0.5),
        at(0.99),
        latencies.last()
    );
    Ok(())
}
