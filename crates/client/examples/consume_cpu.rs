//! Measures the CPU time of consuming: `consume_cpu SERVERS TOPIC PARTITIONS MESSAGES [poll|next]`.

use std::time::{Duration, Instant};

use ottla::{Config, Consumer, Offset};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, servers, topic, partitions, messages, rest @ ..] = &arguments[..] else {
        return Err("SERVERS TOPIC PARTITIONS MESSAGES [poll|next]".into());
    };
    let (partitions, messages): (i32, u64) = (partitions.parse()?, messages.parse()?);
    let mut config = Config::new();
    config.set("bootstrap.servers", servers)?;
    for property in rest.iter().skip(1) {
        let (name, value) = property.split_once('=').ok_or("NAME=VALUE")?;
        config.set(name, value)?;
    }
    let consumer = Consumer::new(&config)?;
    let all: Vec<(&str, i32, Offset)> = (0..partitions).map(|p| (&**topic, p, Offset::Beginning)).collect();
    let (cpu, start) = (cpu_time()?, Instant::now());
    consumer.assign(&all)?;
    let (mut seen, mut bytes, mut polls) = (0u64, 0u64, 0u64);
    while seen < messages {
        if rest.first().is_some_and(|mode| mode == "next") {
            let message = consumer.next(Duration::from_secs(10))?.ok_or("no record for 10 s")?;
            seen += 1;
            bytes += message.value().map_or(0, |value| value.len() as u64);
            continue;
        }
        let records = consumer.poll(Duration::from_secs(10))?;
        if records.is_empty() {
            return Err(format!("no record for 10 s after {seen}").into());
        }
        polls += 1;
        for message in &records {
            seen += 1;
            bytes += message.value().map_or(0, |value| value.len() as u64);
        }
    }
    let (cpu, wall) = (cpu_time()? - cpu, start.elapsed());
    println!(
        "{seen} messages, {bytes} bytes, {polls} polls: {:.1} ns CPU per message, {:.2} M messages/s",
        cpu.as_nanos() as f64 / seen as f64,
        seen as f64 / wall.as_secs_f64() / 1e6
    );
    consumer.close(Duration::from_secs(5))?;
    Ok(())
}

/// User and system time of this process.
fn cpu_time() -> Result<Duration, Box<dyn std::error::Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit_once(')').ok_or("no stat")?.1.split_whitespace().collect();
    let ticks = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
    Ok(Duration::from_millis(ticks * 10))
}
