//! `cargo xtask bench kip-951`: measures the time from send to acknowledgement while leaders move, with and without
//! KIP-951, for all peers. The table in `docs/internals/kip-951.md` is generated from the stored runs.
//!
//! One run is one process that sends at a fixed rate. While it does, the leaders of all partitions are rotated three
//! times. The same is done with every client in turn, and then again.

use std::{fs, thread, time::Duration};

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
cargo xtask bench kip-951 [OPTIONS]

  --runs N            runs of every client, interleaved (default 3)
  --rate N            records per second, of 1000 bytes (default 2000)
  --seconds N         how long each run counts, after a warm-up (default 30)
  --only NAME,...     only these clients (ottla, ottla-off, franz-go, java, librdkafka)
  --against NAME      only `kafka`, `quick-followers` (Kafka with replica.fetch.backoff.ms=10) or `embedded`
  --lag MILLISECONDS  how long the embedded brokers' metadata lag (default 1000)
  --no-build          do not build again
  --no-keep           print, but write neither bench/runs/kip-951/ nor docs/internals/kip-951.md
  --report            only write docs/internals/kip-951.md again, from the newest file of bench/runs/kip-951/
";

const PARTITIONS: usize = 100;
const SIZE: usize = 1000;
const ROTATIONS: u64 = 3;
/// The warm-up in seconds: connections, and the JVM's compiler.
const WARM_UP: u64 = 5;

/// A client with its settings. `producer-perf-test` was called with `acks=all linger.ms=0 batch.size=16384`.
struct Client {
    name: &'static str,
    what: &'static str,
    peer: &'static str,
    settings: &'static [&'static str],
}

const SETTINGS: &[&str] = &["--set", "linger.ms=0", "--set", "batch.size=16384"];

const CLIENTS: [Client; 5] = [
    Client { name: "ottla", what: "Ottla", peer: "ottla", settings: SETTINGS },
    Client {
        name: "ottla-off",
        what: "Ottla, metadata.leader.discovery=false",
        peer: "ottla",
        settings: &[
            "--set",
            "linger.ms=0",
            "--set",
            "batch.size=16384",
            "--set",
            "metadata.leader.discovery=false",
        ],
    },
    Client { name: "franz-go", what: "franz-go", peer: "franz-go", settings: &["--batch", "16384"] },
    Client { name: "java", what: "Java", peer: "java", settings: SETTINGS },
    Client { name: "librdkafka", what: "librdkafka", peer: "librdkafka", settings: SETTINGS },
];

#[derive(Clone)]
struct Options {
    runs: usize,
    rate: u64,
    seconds: u64,
    only: Vec<String>,
    against: Option<String>,
    lag: u64,
    build: bool,
    keep: bool,
}

pub fn main(mut args: impl Iterator<Item = String>) -> Result<()> {
    let mut options = Options {
        runs: 3,
        rate: 2000,
        seconds: 30,
        only: Vec::new(),
        against: None,
        lag: 1000,
        build: true,
        keep: true,
    };
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a value"));
        match arg.as_str() {
            "--runs" => options.runs = value()?.parse()?,
            "--rate" => options.rate = value()?.parse()?,
            "--seconds" => options.seconds = value()?.parse()?,
            "--only" => options.only = value()?.split(',').map(str::to_owned).collect(),
            "--against" => options.against = Some(value()?),
            "--lag" => options.lag = value()?.parse()?,
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
    if options.rate == 0 || options.seconds == 0 || options.runs == 0 {
        return Err("--rate, --seconds and --runs are at least 1".into());
    }
    measure_all(&options)
}

fn measure_all(options: &Options) -> Result<()> {
    let chosen =
        |client: &&Client| options.only.is_empty() || options.only.iter().any(|it| it == client.name);
    let clients: Vec<&Client> = CLIENTS.iter().filter(chosen).collect();
    let wanted: Vec<&'static Peer> =
        peer::PEERS.iter().filter(|peer| clients.iter().any(|client| client.peer == peer.name)).collect();
    if clients.is_empty() {
        return Err(format!("there is no client {}", options.only.join(",")).into());
    }
    let peers = if options.build {
        server::build()?;
        peer::build(&wanted)?
    } else {
        peer::built(&wanted)
    };
    let mut runs = Vec::new();
    for (against, name) in [
        (Against::Kafka { brokers: 3 }, "kafka"),
        (Against::QuickFollowers { brokers: 3 }, "quick-followers"),
        (Against::Lagging { brokers: 6 }, "embedded"),
    ] {
        if options.against.as_deref().is_some_and(|only| only != name) {
            continue;
        }
        println!("\n{name}: {} records/s of {SIZE} B for {} s", options.rate, options.seconds);
        let server = Server::start(against)?;
        if let (true, Some(client)) = (name != "embedded", clients.first()) {
            // A JVM that just started is slow, so the first measured peer would be at a disadvantage.
            let peer = peers.iter().find(|peer| peer.name == client.peer).ok_or("no peer to warm up with")?;
            let warm = Options { seconds: 60, ..options.clone() };
            peer::topic("create", &server, "warm-up", PARTITIONS, 3)?;
            one(&warm, &server, client, peer, "warm-up")?;
            peer::topic("delete", &server, "warm-up", 0, 0)?;
        }
        for run in 1..=options.runs {
            // The order rotates: each peer is first once, and last once.
            let first = (run - 1) % clients.len();
            for client in clients[first..].iter().chain(&clients[..first]) {
                let Some(peer) = peers.iter().find(|peer| peer.name == client.peer) else { continue };
                let topic = format!("kip-951-{}-{run}", client.name);
                peer::topic("create", &server, &topic, PARTITIONS, 3)?;
                let load = machine::load();
                let outcome = one(options, &server, client, peer, &topic);
                peer::topic("delete", &server, &topic, 0, 0)?;
                let mut row = json!({"against": name, "client": client.name, "run": run, "load": load});
                match outcome {
                    Ok(said) => {
                        let ms = |name: &str| said[name].as_f64().unwrap_or(f64::NAN) / 1000.0;
                        println!(
                            "  {:12} {run}  p50 {:7.2}  p99 {:8.2}  p99.9 {:8.2}  max {:8.2} ms, {} errors, load {load}",
                            client.name,
                            ms("p50_us"),
                            ms("p99_us"),
                            ms("p999_us"),
                            ms("max_us"),
                            said["errors"]
                        );
                        row["said"] = said;
                    }
                    Err(error) => {
                        println!("  {:12} {run}  FAILED: {error}", client.name);
                        row["failed"] = json!(error.to_string());
                    }
                }
                runs.push(row);
                if options.keep {
                    keep(options, &runs)?;
                }
            }
        }
    }
    if options.keep { report() } else { Ok(()) }
}

/// One client, with the rotations beside it.
fn one(options: &Options, server: &Server, client: &Client, peer: &Peer, topic: &str) -> Result<Value> {
    let mut command = peer.program()?;
    command.args(["steady", "--bootstrap", &server.bootstrap(), "--topic", topic]);
    command.args(["--partitions", &PARTITIONS.to_string(), "--size", &SIZE.to_string()]);
    command.args(["--codec", "none", "--acks", "all", "--rate", &options.rate.to_string()]);
    command.args(["--warm", &WARM_UP.to_string(), "--seconds", &options.seconds.to_string()]);
    command.arg("--payloads").arg(peer::payloads(SIZE)?).args(client.settings);
    // Spread evenly over the measured time; the process itself takes a while to start.
    let between = Duration::from_millis(options.seconds * 1000 / (ROTATIONS + 1));
    let (used, rotated) = thread::scope(|scope| {
        let rotations = scope.spawn(|| {
            thread::sleep(Duration::from_secs(WARM_UP));
            for _ in 0..ROTATIONS {
                thread::sleep(between);
                server.rotate(topic, PARTITIONS, options.lag).map_err(|error| error.to_string())?;
            }
            Ok::<_, String>(())
        });
        (measure::run(&mut command), rotations.join())
    });
    rotated.map_err(|_| "the rotation panicked")??;
    let used = used?;
    let said: Value = serde_json::from_str(used.stdout.lines().last().unwrap_or_default())
        .map_err(|_| format!("it failed: {}", used.stderr.trim()))?;
    let expected = options.rate * options.seconds;
    if said["messages"].as_u64() != Some(expected) {
        return Err(format!("{} of {expected} records were reported", said["messages"]).into());
    }
    Ok(said)
}

fn keep(options: &Options, runs: &[Value]) -> Result<()> {
    let (commit, changed) = machine::commit();
    let file = json!({
        "date": date_of_now()?, "commit": commit, "changed_since": changed, "machine": machine::describe(),
        "rate": options.rate, "seconds": options.seconds, "lag_ms": options.lag, "partitions": PARTITIONS,
        "rotations": ROTATIONS, "runs": runs,
    });
    let path = folder().join("runs/kip-951");
    fs::create_dir_all(&path)?;
    // One file per commit; a complete run overwrites a partial one.
    Ok(fs::write(path.join(format!("{commit}.json")), format!("{file:#}\n"))?)
}

const BEGIN: &str = "<!-- The table: written by `cargo xtask bench kip-951`. -->";
const END: &str = "<!-- The end of the table. -->";

/// Puts the newest runs against each kind of brokers into the page.
fn report() -> Result<()> {
    let mut files: Vec<Value> = fs::read_dir(folder().join("runs/kip-951"))?
        .flatten()
        .filter_map(|entry| fs::read_to_string(entry.path()).ok())
        .filter_map(|text| serde_json::from_str(&text).ok())
        .collect();
    files.sort_by_key(|file| std::cmp::Reverse(file["date"].as_str().unwrap_or_default().to_owned()));
    let page = folder().join("../docs/internals/kip-951.md");
    let text = fs::read_to_string(&page)?;
    let (before, rest) =
        text.split_once(BEGIN).ok_or("docs/internals/kip-951.md has lost the beginning of its table")?;
    let (_, after) = rest.split_once(END).ok_or("docs/internals/kip-951.md has lost the end of its table")?;
    fs::write(&page, format!("{before}{BEGIN}\n\n{}\n{END}{after}", tables(&files)))?;
    println!("docs/internals/kip-951.md is written");
    Ok(())
}

/// Of files with the newest one first.
fn tables(files: &[Value]) -> String {
    let mut text = "Medians of the runs in ms; in parentheses the least and the most.\n".to_owned();
    for (against, title) in [
        ("kafka", "Three brokers of Apache Kafka"),
        ("quick-followers", "Three brokers of Apache Kafka, followers try again after 10 ms"),
        ("embedded", "Six embedded brokers, delayed metadata"),
    ] {
        let measured = |file: &&Value| runs_of(file).any(|run| run["against"] == against);
        let Some(file) = files.iter().find(measured) else { continue };
        let field = |name: &str| file[name].as_str().unwrap_or_default();
        let lag = if against == "embedded" {
            format!(", metadata delayed by {} ms", file["lag_ms"])
        } else {
            String::new()
        };
        text += &format!(
            "\n### {title}\n\n{}, commit {}, {} ({} cores), {} records/s for {} s, {} rotations of {} partitions{lag}.\n",
            field("date"),
            field("commit"),
            file["machine"]["cpu"].as_str().unwrap_or_default(),
            file["machine"]["cores"],
            file["rate"],
            file["seconds"],
            file["rotations"],
            file["partitions"],
        );
        let mut rows = Vec::new();
        for client in &CLIENTS {
            let runs: Vec<&Value> = runs_of(file)
                .filter(|run| run["against"] == against && run["client"] == client.name)
                .collect();
            if runs.is_empty() {
                continue;
            }
            let figures = ["p50_us", "p99_us", "p999_us", "max_us"]
                .map(|figure| spread(&runs, |run| &run["said"][figure]));
            let errors: u64 = runs.iter().filter_map(|run| run["said"]["errors"].as_u64()).sum();
            let failed = runs.iter().filter(|run| !run["failed"].is_null()).count();
            let loads: Vec<f64> = runs.iter().filter_map(|run| run["load"].as_f64()).collect();
            let load = loads.iter().copied().fold(0.0, f64::max);
            let fine =
                if failed == 0 { runs.len().to_string() } else { format!("{}, {failed} failed", runs.len()) };
            rows.push(format!("| {} | {} | {errors} | {fine} | {load} |", client.what, figures.join(" | ")));
        }
        text += &format!(
            "\n| client | p50 | p99 | p99.9 | max | errors | runs | load up to |\n|---|---|---|---|---|---|---|---|\n{}\n",
            rows.join("\n")
        );
    }
    text
}

fn runs_of(file: &Value) -> impl Iterator<Item = &Value> {
    file["runs"].as_array().into_iter().flatten()
}

fn spread<'a>(runs: &[&'a Value], figure: impl Fn(&'a Value) -> &'a Value) -> String {
    let mut values: Vec<f64> = runs
        .iter()
        .filter_map(|run| figure(run).as_f64())
        .map(|microseconds| microseconds / 1000.0)
        .collect();
    values.sort_by(f64::total_cmp);
    match values[..] {
        [] => "-".to_owned(),
        [one] => short(one),
        _ => format!(
            "{} ({} to {})",
            short(values[values.len() / 2]),
            short(values[0]),
            short(values[values.len() - 1])
        ),
    }
}

/// Formats a number with three significant digits.
fn short(value: f64) -> String {
    if value >= 100.0 {
        format!("{value:.0}")
    } else if value >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_shows_median_and_range_of_each_client() {
        let run = |client: &str, p999: f64| {
            json!({"against": "kafka", "client": client, "load": 0.5,
            "said": {"p50_us": 1500.0, "p99_us": 20_000.0, "p999_us": p999, "max_us": 300_000.0, "errors": 0}})
        };
        let runs = [run("ottla", 30_000.0), run("ottla", 10_000.0), run("ottla", 20_000.0), run("java", 5.0)];
        let newer = json!({"runs": [{"against": "embedded", "client": "ottla"}], "lag_ms": 7});
        let older = json!({"runs": [{"against": "embedded", "client": "java"}], "lag_ms": 5});
        let text = tables(&[newer, json!({"runs": runs, "rate": 2000}), older]);
        let row = "| Ottla | 1.50 (1.50 to 1.50) | 20.0 (20.0 to 20.0) | 20.0 (10.0 to 30.0) | 300 (300 to 300) | 0 | 3 | 0.5 |";
        assert!(text.contains(row), "{text}");
        assert!(text.contains("| Java | 1.50 | 20.0 | 0.01 | 300 | 0 | 1 | 0.5 |"), "{text}");
        assert!(text.contains("2000 records/s"), "{text}");
        assert!(
            text.contains("metadata delayed by 7 ms") && !text.contains("by 5 ms"),
            "the newest of each: {text}"
        );
    }
}
