//! `cargo xtask bench linger`: what gathering per broker brings. Per-partition linger, broker linger, `auto`, librdkafka
//! and franz-go do the same work: messages of 100 bytes at a fixed rate, partitions at random. The report is
//! `docs/broker-linger.md`, with its pictures beside it.

use std::{fmt::Write, fs, path::PathBuf};

use serde_json::{Value, json};

use crate::{
    Result,
    case::Against,
    folder, machine, measure,
    peer::{self, Peer},
    record::date_of_now,
    server::{self, Server},
};

const HELP: &str = "\
cargo xtask bench linger [OPTIONS]

  --seconds N         how long each run counts, after a warm-up of 3 s (default 60)
  --only NAME,...     only these clients (ottla-partition, ottla-broker, ottla-auto, librdkafka, franz-go)
  --work NAME,...     only this work (see the report; `loads` is the last table)
  --against NAME      only `kafka` or only `embedded`
  --no-build          use what was built before
  --no-keep           print, but write neither bench/runs/linger/ nor docs/broker-linger.md
  --report            only write docs/broker-linger.md again, from bench/runs/linger/
";

const SIZE: usize = 100;
const WARM_UP: u64 = 3;

/// A way of lingering.
struct Client {
    name: &'static str,
    what: &'static str,
    peer: &'static str,
    settings: fn(u64) -> Vec<String>,
}

const CLIENTS: [Client; 5] = [
    Client {
        name: "ottla-partition",
        what: "Ottla, `linger.ms`",
        peer: "ottla",
        settings: |linger| set(&format!("linger.ms={linger}")),
    },
    Client {
        name: "ottla-broker",
        what: "Ottla, `broker.linger.ms`",
        peer: "ottla",
        settings: |linger| set(&format!("broker.linger.ms={linger}")),
    },
    Client {
        name: "ottla-auto",
        what: "Ottla, `broker.linger.ms=auto`",
        peer: "ottla",
        settings: |_| set("broker.linger.ms=auto"),
    },
    Client {
        name: "librdkafka",
        what: "librdkafka",
        peer: "librdkafka",
        settings: |linger| {
            let mut all = set(&format!("linger.ms={linger}"));
            all.extend(set("statistics.interval.ms=1000"));
            all.extend(set("enable.idempotence=true"));
            all
        },
    },
    Client {
        name: "franz-go",
        what: "franz-go",
        peer: "franz-go",
        settings: |linger| {
            ["--linger", &linger.to_string(), "--batch", "1000000"].map(str::to_owned).to_vec()
        },
    },
];

fn set(pair: &str) -> Vec<String> {
    vec!["--set".to_owned(), pair.to_owned()]
}

/// A piece of work.
struct Work {
    name: &'static str,
    what: &'static str,
    partitions: usize,
    rate: u64,
    linger: u64,
    /// The last of the three embedded brokers takes so many milliseconds more for every answer.
    slow: u64,
    on_kafka: bool,
    clients: &'static [&'static str],
}

const EVERYBODY: &[&str] = &["ottla-partition", "ottla-broker", "ottla-auto", "librdkafka", "franz-go"];
const WORK: [Work; 6] = [
    Work {
        name: "500ms",
        what: "1,000 partitions, 20,000 messages/s, linger 500 ms",
        partitions: 1000,
        rate: 20_000,
        linger: 500,
        slow: 0,
        on_kafka: true,
        clients: EVERYBODY,
    },
    Work {
        name: "5ms",
        what: "1,000 partitions, 20,000 messages/s, linger 5 ms",
        partitions: 1000,
        rate: 20_000,
        linger: 5,
        slow: 0,
        on_kafka: true,
        clients: EVERYBODY,
    },
    Work {
        name: "1100ms",
        what: "1,000 partitions, 20,000 messages/s, linger 1,100 ms",
        partitions: 1000,
        rate: 20_000,
        linger: 1100,
        slow: 0,
        on_kafka: true,
        clients: &["ottla-broker"],
    },
    Work {
        name: "50000",
        what: "1,000 partitions, 50,000 messages/s, linger 500 ms",
        partitions: 1000,
        rate: 50_000,
        linger: 500,
        slow: 0,
        on_kafka: true,
        clients: &["ottla-broker", "ottla-auto", "franz-go"],
    },
    Work {
        name: "10000-partitions",
        what: "10,000 partitions, 20,000 messages/s, linger 500 ms",
        partitions: 10_000,
        rate: 20_000,
        linger: 500,
        slow: 0,
        on_kafka: false,
        clients: &["ottla-broker", "ottla-auto"],
    },
    Work {
        name: "slow-broker",
        what: "as 5ms, and one of the three brokers takes 200 ms more for every answer",
        partitions: 1000,
        rate: 20_000,
        linger: 5,
        slow: 200,
        on_kafka: false,
        clients: &["ottla-broker", "ottla-auto"],
    },
];

/// `auto` beside fixed lingers, over 24 partitions.
const LOADS: [u64; 5] = [100, 1_000, 10_000, 100_000, 1_000_000];
const FIXED: [u64; 3] = [0, 5, 100];

struct Options {
    seconds: u64,
    only: Vec<String>,
    work: Vec<String>,
    against: Option<String>,
    build: bool,
    keep: bool,
}

pub fn main(mut args: impl Iterator<Item = String>) -> Result<()> {
    let mut options =
        Options { seconds: 60, only: Vec::new(), work: Vec::new(), against: None, build: true, keep: true };
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a value"));
        match arg.as_str() {
            "--seconds" => options.seconds = value()?.parse()?,
            "--only" => options.only = value()?.split(',').map(str::to_owned).collect(),
            "--work" => options.work = value()?.split(',').map(str::to_owned).collect(),
            "--against" => options.against = Some(value()?),
            "--no-build" => options.build = false,
            "--no-keep" => options.keep = false,
            "--report" => return report(),
            "--help" | "-h" => {
                print!("{HELP}");
                return Ok(());
            }
            other => return Err(format!("`{other}`?\n\n{HELP}").into()),
        }
    }
    if options.seconds == 0 {
        return Err("--seconds is at least 1".into());
    }
    measure_all(&options)
}

fn measure_all(options: &Options) -> Result<()> {
    let chosen = |name: &str| options.only.is_empty() || options.only.iter().any(|only| only == name);
    let wanted: Vec<&'static Peer> = peer::PEERS
        .iter()
        .filter(|peer| {
            peer.name == "franz-go" || CLIENTS.iter().any(|c| c.peer == peer.name && chosen(c.name))
        })
        .collect();
    let peers = if options.build {
        server::build()?;
        peer::build(&wanted)?
    } else {
        peer::built(&wanted)
    };
    let works = |name: &str| options.work.is_empty() || options.work.iter().any(|only| only == name);
    let mut runs = Vec::new();
    for (against, name) in [(Against::Discard, "embedded"), (Against::Kafka { brokers: 3 }, "kafka")] {
        if options.against.as_deref().is_some_and(|only| only != name) {
            continue;
        }
        let server = Server::start(against)?;
        for work in WORK.iter().filter(|work| works(work.name) && (work.on_kafka || name == "embedded")) {
            println!("\n{name}: {}", work.what);
            if work.slow > 0 {
                server.slow(SLOW_BROKER, work.slow)?;
            }
            for client in CLIENTS.iter().filter(|c| chosen(c.name) && work.clients.contains(&c.name)) {
                let label = json!({"against": name, "work": work.name, "client": client.name});
                let settings = (client.settings)(work.linger);
                one(
                    options,
                    &server,
                    &peers,
                    client.peer,
                    work.partitions,
                    work.rate,
                    &settings,
                    label,
                    &mut runs,
                )?;
            }
            if work.slow > 0 {
                server.slow(SLOW_BROKER, 0)?;
            }
        }
        if works("loads") {
            println!("\n{name}: auto beside fixed lingers, 24 partitions");
            for rate in LOADS {
                let mut ways: Vec<(String, Vec<String>)> =
                    FIXED.iter().map(|ms| (ms.to_string(), set(&format!("broker.linger.ms={ms}")))).collect();
                ways.push(("auto".to_owned(), set("broker.linger.ms=auto")));
                for (way, settings) in ways {
                    let label = json!({"against": name, "work": "loads", "client": way, "rate": rate});
                    one(options, &server, &peers, "ottla", 24, rate, &settings, label, &mut runs)?;
                }
            }
        }
    }
    if options.keep { report() } else { Ok(()) }
}

/// The broker that is slowed down.
const SLOW_BROKER: i32 = 3;

#[expect(clippy::too_many_arguments, reason = "one run, from two tables")]
fn one(
    options: &Options,
    server: &Server,
    peers: &[&'static Peer],
    peer: &str,
    partitions: usize,
    rate: u64,
    settings: &[String],
    mut row: Value,
    runs: &mut Vec<Value>,
) -> Result<()> {
    let Some(peer) = peers.iter().find(|known| known.name == peer) else { return Ok(()) };
    let topic = format!("linger-{}", runs.len());
    peer::topic("create", &server.bootstrap(), &topic, partitions, 1)?;
    let mut command = peer.program()?;
    command.args(["steady", "--bootstrap", &server.bootstrap(), "--topic", &topic]);
    command.args(["--partitions", &partitions.to_string(), "--size", &SIZE.to_string()]);
    command.args(["--codec", "none", "--acks", "all", "--rate", &rate.to_string(), "--tick", "1"]);
    command.args(["--spread", "random", "--warm", &WARM_UP.to_string()]);
    command.args(["--seconds", &options.seconds.to_string()]);
    command.arg("--payloads").arg(peer::payloads(SIZE)?).args(settings);
    row["load"] = json!(machine::load());
    let used = measure::run(&mut command)?;
    peer::topic("delete", &server.bootstrap(), &topic, 0, 0)?;
    let name = row["client"].as_str().unwrap_or_default().to_owned();
    match serde_json::from_str::<Value>(used.stdout.lines().last().unwrap_or_default()) {
        Ok(said) => {
            let all = (rate * (options.seconds + WARM_UP)) as f64;
            let requests = said["requests"].as_f64().unwrap_or(0.0);
            row["seconds"] = json!(options.seconds);
            row["requests_per_second"] = json!(requests / (options.seconds + WARM_UP) as f64);
            row["messages_per_request"] = json!(all / requests.max(1.0));
            row["cpu_us_per_message"] = json!((used.user + used.system) * 1e6 / all);
            for (ours, theirs) in [
                ("p50_ms", "p50_us"),
                ("p99_ms", "p99_us"),
                ("max_ms", "max_us"),
                ("longest_wait_ms", "longest_wait_us"),
            ] {
                row[ours] = json!(said[theirs].as_f64().unwrap_or(0.0) / 1000.0);
            }
            row["errors"] = said["errors"].clone();
            row["messages"] = said["messages"].clone();
            println!(
                "  {name:16} {rate:8}/s  {:9.1} requests/s  {:8.1} messages/request  p50 {:8.2}  p99 {:8.2} ms  {:6.2} us CPU/message",
                row["requests_per_second"].as_f64().unwrap_or(0.0),
                row["messages_per_request"].as_f64().unwrap_or(0.0),
                row["p50_ms"].as_f64().unwrap_or(0.0),
                row["p99_ms"].as_f64().unwrap_or(0.0),
                row["cpu_us_per_message"].as_f64().unwrap_or(0.0),
            );
        }
        Err(_) => {
            let reason = used.stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no word");
            println!("  {name:16} FAILED: {reason}");
            row["failed"] = json!(reason);
        }
    }
    runs.push(row);
    if options.keep { keep(runs) } else { Ok(()) }
}

fn keep(runs: &[Value]) -> Result<()> {
    let (commit, changed) = machine::commit();
    let file = json!({
        "date": date_of_now()?, "commit": commit, "changed_since": changed, "machine": machine::describe(), "runs": runs,
    });
    let path = folder().join("runs/linger");
    fs::create_dir_all(&path)?;
    Ok(fs::write(path.join(format!("{commit}.json")), format!("{file:#}\n"))?)
}

/// Writes the page and its pictures from the newest runs.
fn report() -> Result<()> {
    let newest = fs::read_dir(folder().join("runs/linger"))?
        .flatten()
        .filter_map(|entry| fs::read_to_string(entry.path()).ok())
        .filter_map(|text| serde_json::from_str::<Value>(&text).ok())
        .max_by_key(|file| file["date"].as_str().unwrap_or_default().to_owned())
        .ok_or("nothing was measured yet")?;
    let docs: PathBuf = folder().join("../docs");
    fs::write(docs.join("broker-linger.md"), page(&newest))?;
    let runs = list(&newest);
    fs::write(
        docs.join("broker-linger-requests.svg"),
        bars("Produce requests per second", &runs, "requests_per_second"),
    )?;
    fs::write(docs.join("broker-linger-latency.svg"), bars("p99 in milliseconds", &runs, "p99_ms"))?;
    println!("docs/broker-linger.md is written");
    Ok(())
}

fn list(file: &Value) -> Vec<&Value> {
    file["runs"].as_array().into_iter().flatten().collect()
}

fn page(file: &Value) -> String {
    let runs = list(file);
    let mut text = format!(
        "# Gathering per broker\n\n\
         <!-- Written by `cargo xtask bench linger`; `--report` writes it again from bench/runs/linger/. -->\n\n\
         With `broker.linger.ms` the records for all partitions of a broker wait together and leave in one request; with \
         `linger.ms` every partition has a clock of its own; `auto` has no number, a request on its way is the timer. \
         Below, the same work done in these ways, and by librdkafka and franz-go: messages of 100 bytes at a fixed rate, \
         partitions at random, acks=all, idempotence on.\n\n\
         Measured {} at commit {}{}, {} with {} cores, shared with the brokers and with whatever else ran: *load* is the \
         load average before the run. CPU is the user and system time of the client's whole process over all messages, \
         its start and the sender's loop of 1 ms ticks included. Latency is from `send` to the report; where the load is \
         above the cores it is the machine's as much as the client's. *Longest wait* is the longest that a message waited \
         for its first request, from the client's own statistics, the warm-up with its connections and metadata \
         included.\n",
        file["date"].as_str().unwrap_or_default(),
        file["commit"].as_str().unwrap_or_default(),
        if file["changed_since"] == true { " with changes" } else { "" },
        file["machine"]["cpu"].as_str().unwrap_or_default(),
        file["machine"]["cores"],
    );
    for (against, title) in
        [("embedded", "three embedded brokers"), ("kafka", "three brokers of Apache Kafka")]
    {
        for work in &WORK {
            let rows: Vec<String> = runs
                .iter()
                .filter(|run| run["against"] == against && run["work"] == work.name)
                .map(|run| row(client_name(run), run))
                .collect();
            table(&mut text, &format!("{}: {}; {title}", work.name, work.what), "client", &rows);
        }
        let rows: Vec<String> = runs
            .iter()
            .filter(|run| run["against"] == against && run["work"] == "loads")
            .map(|run| {
                let name = format!("{}/s, {}", run["rate"], run["client"].as_str().unwrap_or_default());
                row(name, run)
            })
            .collect();
        table(
            &mut text,
            &format!("loads: auto beside fixed lingers, 24 partitions; {title}"),
            "load, linger ms",
            &rows,
        );
    }
    text +=
        "\n## Pictures\n\n![Requests](broker-linger-requests.svg)\n\n![Latency](broker-linger-latency.svg)\n";
    text
}

fn client_name(run: &Value) -> String {
    CLIENTS.iter().find(|client| run["client"] == client.name).map_or_else(String::new, |c| c.what.to_owned())
}

fn table(text: &mut String, title: &str, first: &str, rows: &[String]) {
    if rows.is_empty() {
        return;
    }
    let _ = write!(
        text,
        "\n## {title}\n\n\
         | {first} | requests/s | messages/request | p50 ms | p99 ms | longest wait ms | CPU us/message | messages | errors | load |\n\
         |---|---|---|---|---|---|---|---|---|---|\n{}\n",
        rows.join("\n")
    );
}

fn row(name: String, run: &Value) -> String {
    if let Some(reason) = run["failed"].as_str() {
        return format!("| {name} | failed: {} | | | | | | | | {} |", reason.replace('|', "/"), run["load"]);
    }
    let figure = |field: &str| match run[field].as_f64() {
        Some(value) if value < 0.0 => "".to_owned(),
        Some(value) if value >= 100.0 => format!("{value:.0}"),
        Some(value) if value >= 10.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.2}"),
        None => String::new(),
    };
    format!(
        "| {name} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
        figure("requests_per_second"),
        figure("messages_per_request"),
        figure("p50_ms"),
        figure("p99_ms"),
        figure("longest_wait_ms"),
        figure("cpu_us_per_message"),
        run["messages"],
        run["errors"],
        run["load"]
    )
}

/// Bars on a logarithmic scale, one per run of the tables by client.
fn bars(title: &str, runs: &[&Value], field: &str) -> String {
    let shown: Vec<(String, f64)> = runs
        .iter()
        .filter(|run| run["work"] != "loads" && run[field].as_f64().is_some_and(|value| value > 0.0))
        .map(|run| {
            let text = |name: &str| run[name].as_str().unwrap_or_default();
            let label = format!("{} {} {}", text("against"), text("work"), text("client"));
            (label, run[field].as_f64().unwrap_or(1.0))
        })
        .collect();
    let highest = shown.iter().map(|(_, value)| *value).fold(10.0, f64::max).log10();
    let height = shown.len() * 22 + 50;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"860\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"860\" height=\"{height}\" fill=\"white\"/>\n\
         <text x=\"10\" y=\"22\" font-size=\"15\">{title} (logarithmic)</text>\n"
    );
    for (index, (label, value)) in shown.iter().enumerate() {
        let y = index * 22 + 36;
        // From a tenth on, so that every bar has a length.
        let width = ((value.max(0.1).log10() + 1.0) / (highest + 1.0) * 420.0).max(2.0);
        let color = if label.contains("ottla") { "#2a7ab0" } else { "#999999" };
        let _ = writeln!(
            svg,
            "<text x=\"10\" y=\"{}\">{label}</text><rect x=\"330\" y=\"{y}\" width=\"{width:.0}\" height=\"16\" fill=\"{color}\"/>\
             <text x=\"{:.0}\" y=\"{}\">{value:.1}</text>",
            y + 13,
            336.0 + width,
            y + 13
        );
    }
    svg + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_a_table_per_work_that_was_measured_and_none_for_the_rest() {
        let run = json!({
            "against": "embedded", "work": "500ms", "client": "ottla-broker", "load": 0.5, "messages": 60, "errors": 0,
            "requests_per_second": 6.05, "messages_per_request": 3300.0, "p50_ms": 255.5, "p99_ms": 501.0,
            "longest_wait_ms": 500.9, "cpu_us_per_message": 1.25,
        });
        let file = json!({"runs": [run]});
        let text = page(&file);
        let row = "| Ottla, `broker.linger.ms` | 6.05 | 3300 | 256 | 501 | 501 | 1.25 | 60 | 0 | 0.5 |";
        assert!(text.contains(row), "{text}");
        assert!(!text.contains("## 5ms") && !text.contains("## loads"), "{text}");
        assert!(bars("x", &list(&file), "p99_ms").contains("embedded 500ms ottla-broker"));
    }
}
