//! Counts what a synchronous round trip costs: `round_trips [deliver|send|flush|admin|consume] [COUNT] [true|false]`, the last for
//! `io.on.waiting.threads`, against an embedded broker in a process of its own. Prints how often the threads slept per round trip, and
//! CPU and time; `ping` is a bare TCP ping-pong between the two processes.

use std::{
    env,
    error::Error,
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use ottla::{Admin, Config, Consumer, Offset, Producer, Record};
use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};

const TIMEOUT: Duration = Duration::from_secs(60);
type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let mode = arguments.first().map_or("deliver", String::as_str);
    if mode == "serve" {
        return serve();
    }
    let count: u32 = arguments.get(1).map_or(Ok(5000), |text| text.parse())?;
    let leads = arguments.get(2).map_or("false", String::as_str);
    let mut broker = Command::new(env::current_exe()?)
        .arg("serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let result = measure(&mut broker, mode, count, leads);
    drop(broker.stdin.take());
    broker.wait()?;
    result
}

/// Runs the broker and an echo server until the parent closes the standard input.
fn serve() -> Result<()> {
    let cluster = EmbeddedCluster::start(ClusterOptions { partitions: 1, ..ClusterOptions::default() })?;
    let echo = TcpListener::bind("127.0.0.1:0")?;
    println!("{} {}", cluster.bootstrap_servers(), echo.local_addr()?);
    thread::spawn(move || {
        for stream in echo.incoming().flatten() {
            let _ = answer(stream);
        }
    });
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut bytes = [0; 200];
    loop {
        stream.read_exact(&mut bytes)?;
        stream.write_all(&bytes)?;
    }
}

fn measure(broker: &mut Child, mode: &str, count: u32, leads: &str) -> Result<()> {
    let mut line = String::new();
    BufReader::new(broker.stdout.take().ok_or("no output")?).read_line(&mut line)?;
    let (servers, echo) = line.trim().split_once(' ').ok_or("no addresses")?;
    let mut config = Config::new();
    config.set("bootstrap.servers", servers)?;
    config.set("linger.ms", "0")?;
    config.set("io.on.waiting.threads", leads)?;
    let mut round_trip = operation(&config, mode, echo)?;
    for _ in 0..200 {
        round_trip()?;
    }
    let before = usage()?;
    let mut times = Vec::new();
    for _ in 0..count {
        let start = Instant::now();
        round_trip()?;
        times.push(start.elapsed());
    }
    let after = usage()?;
    times.sort_unstable();
    let each = |total: u64| total as f64 / f64::from(count);
    println!(
        "{mode} {leads}: sleeps {:.2}, of the I/O thread {:.2}; CPU {:.1} us; p50 {:.1} us, p99 {:.1} us",
        each(after.sleeps - before.sleeps),
        each(after.io_sleeps - before.io_sleeps),
        each(after.cpu_nanos - before.cpu_nanos) / 1000.0,
        times[times.len() / 2].as_secs_f64() * 1e6,
        times[times.len() * 99 / 100].as_secs_f64() * 1e6,
    );
    Ok(())
}

/// Returns a function that makes one round trip.
fn operation(config: &Config, mode: &str, echo: &str) -> Result<Box<dyn FnMut() -> Result<()>>> {
    let value = [7; 100];
    if mode == "ping" {
        let mut stream = TcpStream::connect(echo)?;
        stream.set_nodelay(true)?;
        let mut bytes = [0; 200];
        return Ok(Box::new(move || {
            stream.write_all(&bytes)?;
            Ok(stream.read_exact(&mut bytes)?)
        }));
    }
    if mode == "admin" {
        let admin = Admin::new(config)?;
        return Ok(Box::new(move || Ok(admin.list_groups(&Default::default(), TIMEOUT).map(drop)?)));
    }
    let producer = Producer::new(config)?;
    let topic = producer.topic("measured");
    topic.deliver(Record::new().value("first"), TIMEOUT)?;
    Ok(match mode {
        "deliver" => Box::new(move || Ok(topic.deliver(Record::new().value(&value), TIMEOUT).map(drop)?)),
        "send" => {
            Box::new(move || Ok(topic.send_tracked(Record::new().value(&value))?.wait(TIMEOUT).map(drop)?))
        }
        "flush" => Box::new(move || {
            topic.send(Record::new().value(&value))?;
            Ok(producer.flush(TIMEOUT)?)
        }),
        "consume" => {
            let mut config = config.clone();
            config.set("auto.offset.reset", "earliest")?;
            let consumer = Consumer::new(&config)?;
            consumer.assign(&[("measured", 0, Offset::Beginning)])?;
            while consumer.next(TIMEOUT)?.is_none() {}
            Box::new(move || {
                topic.send(Record::new().value(&value))?;
                while consumer.next(TIMEOUT)?.is_none() {}
                Ok(())
            })
        }
        other => return Err(format!("unknown mode {other}").into()),
    })
}

struct Usage {
    sleeps: u64,
    io_sleeps: u64,
    cpu_nanos: u64,
}

/// Adds up what the kernel counted of this process's threads.
fn usage() -> Result<Usage> {
    let mut usage = Usage { sleeps: 0, io_sleeps: 0, cpu_nanos: 0 };
    for thread in fs::read_dir("/proc/self/task")? {
        let path = thread?.path();
        let status = fs::read_to_string(path.join("status"))?;
        let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        let sleeps: u64 = count.ok_or("no count of sleeps")?.trim().parse()?;
        usage.sleeps += sleeps;
        if fs::read_to_string(path.join("comm"))?.starts_with("ottla-io") {
            usage.io_sleeps += sleeps;
        }
        let times = fs::read_to_string(path.join("schedstat"))?;
        usage.cpu_nanos += times.split_whitespace().next().ok_or("no times")?.parse::<u64>()?;
    }
    Ok(usage)
}
