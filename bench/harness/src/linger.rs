//! `cargo xtask bench linger`: measures linger per broker. Ottla with linger per partition, per broker and `auto`,
//! librdkafka and franz-go do the same work: messages of 100 bytes at a fixed rate, to random partitions. The report is
//! `docs/internals/broker-linger.md`, with its charts next to it.

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

  --seconds N         how long each run counts, after a warm-up of 3 s (default 60; the sweeps over partitions and
                      loads at most 10)
  --only NAME,...     only these clients (ottla-partition, ottla-broker, ottla-auto, librdkafka, franz-go)
  --work NAME,...     only this work (see the report; `partitions` and `loads` are the sweeps)
  --against NAME      only `kafka` or only `embedded`
  --no-build          do not build again
  --no-keep           print, but write neither bench/runs/linger/ nor docs/internals/broker-linger.md
  --report            only write docs/internals/broker-linger.md again, from bench/runs/linger/
";

const SIZE: usize = 100;
const WARM_UP: u64 = 3;

/// A client with its linger settings.
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

/// A workload.
struct Work {
    name: &'static str,
    what: &'static str,
    partitions: usize,
    rate: u64,
    linger: u64,
    /// The response delay of the last of the three embedded brokers, in milliseconds.
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
        what: "as 5ms, and one of the three brokers takes 200 ms longer for each response",
        partitions: 1000,
        rate: 20_000,
        linger: 5,
        slow: 200,
        on_kafka: false,
        clients: &["ottla-broker", "ottla-auto"],
    },
];

/// The numbers of partitions of the sweep, at 5 ms and 20,000 messages/s.
const PARTITIONS: [usize; 4] = [10, 100, 1000, 10_000];

/// The maximum measured time of a run of a sweep, in seconds.
const SWEEP_SECONDS: u64 = 10;

/// `auto` beside fixed lingers, over 24 partitions.
const LOADS: [u64; 5] = [100, 1_000, 10_000, 100_000, 1_000_000];
const FIXED: [u64; 3] = [0, 5, 100];

#[derive(Clone)]
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
    let sweep = Options { seconds: options.seconds.min(SWEEP_SECONDS), ..options.clone() };
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
        if works("partitions") && name == "embedded" {
            println!("\n{name}: requests over partitions, 20,000 messages/s, linger 5 ms");
            for partitions in PARTITIONS {
                for client in CLIENTS.iter().filter(|c| chosen(c.name)) {
                    let label = json!({"against": name, "work": "partitions", "client": client.name, "partitions": partitions});
                    let settings = (client.settings)(5);
                    one(
                        &sweep,
                        &server,
                        &peers,
                        client.peer,
                        partitions,
                        20_000,
                        &settings,
                        label,
                        &mut runs,
                    )?;
                }
            }
        }
        // The rate goes up to a million messages a second; two cores are not enough for that and real brokers.
        if works("loads") && name == "embedded" {
            println!("\n{name}: auto beside fixed lingers, 24 partitions");
            for rate in LOADS {
                let mut ways: Vec<(String, Vec<String>)> =
                    FIXED.iter().map(|ms| (ms.to_string(), set(&format!("broker.linger.ms={ms}")))).collect();
                ways.push(("auto".to_owned(), set("broker.linger.ms=auto")));
                for (way, settings) in ways {
                    let label = json!({"against": name, "work": "loads", "client": way, "rate": rate});
                    one(&sweep, &server, &peers, "ottla", 24, rate, &settings, label, &mut runs)?;
                }
            }
        }
    }
    if options.keep { report() } else { Ok(()) }
}

/// The slow broker.
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
    peer::topic("create", server, &topic, partitions, 1)?;
    let mut command = peer.program()?;
    command.args(["steady", "--bootstrap", &server.bootstrap(), "--topic", &topic]);
    command.args(["--partitions", &partitions.to_string(), "--size", &SIZE.to_string()]);
    command.args(["--codec", "none", "--acks", "all", "--rate", &rate.to_string(), "--tick", "1"]);
    command.args(["--spread", "random", "--warm", &WARM_UP.to_string()]);
    command.args(["--seconds", &options.seconds.to_string()]);
    command.arg("--payloads").arg(peer::payloads(SIZE)?).args(settings);
    if row["work"] == "slow-broker" {
        command.args(["--slow-broker", &SLOW_BROKER.to_string()]);
    }
    row["load"] = json!(machine::load());
    let used = measure::run(&mut command)?;
    peer::topic("delete", server, &topic, 0, 0)?;
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
                ("quick_p50_ms", "quick_p50_us"),
                ("quick_p99_ms", "quick_p99_us"),
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

/// Writes the page and its charts from the newest runs.
fn report() -> Result<()> {
    let newest = fs::read_dir(folder().join("runs/linger"))?
        .flatten()
        .filter_map(|entry| fs::read_to_string(entry.path()).ok())
        .filter_map(|text| serde_json::from_str::<Value>(&text).ok())
        .max_by_key(|file| file["date"].as_str().unwrap_or_default().to_owned())
        .ok_or("no measurement yet")?;
    let docs: PathBuf = folder().join("../docs/internals");
    let file = docs.join("broker-linger.md");
    let text = fs::read_to_string(&file)?;
    let (before, rest) = text
        .split_once(BEGIN)
        .ok_or("docs/internals/broker-linger.md has lost the beginning of its tables")?;
    let (_, after) =
        rest.split_once(END).ok_or("docs/internals/broker-linger.md has lost the end of its tables")?;
    fs::write(&file, format!("{before}{BEGIN}\n\n{}\n{END}{after}", tables(&newest)))?;
    let runs = list(&newest);
    let named = |run: &Value| {
        let name = run["client"].as_str().unwrap_or_default();
        CLIENTS.iter().find(|client| client.name == name).map_or_else(
            || if name == "auto" { name.to_owned() } else { format!("{name} ms") },
            |client| client.what.replace('`', ""),
        )
    };
    let of = |work: &str, x: &str, y: &str| -> Vec<Point> {
        runs.iter()
            .filter(|run| run["work"] == work && run["against"] == "embedded")
            .filter_map(|run| Some(Point { line: named(run), x: run[x].as_f64()?, y: run[y].as_f64()? }))
            .filter(|point| point.y > 0.0)
            .collect()
    };
    let requests = of("partitions", "partitions", "requests_per_second");
    let picture = lines("Produce requests per second, over partitions", &requests);
    fs::write(docs.join("broker-linger-requests.svg"), picture)?;
    let latency = of("loads", "rate", "p99_ms");
    let picture = lines("p99 in ms, over messages per second (broker.linger.ms)", &latency);
    fs::write(docs.join("broker-linger-latency.svg"), picture)?;
    println!("docs/internals/broker-linger.md is written");
    Ok(())
}

fn list(file: &Value) -> Vec<&Value> {
    file["runs"].as_array().into_iter().flatten().collect()
}

const BEGIN: &str = "<!-- The tables: written by `cargo xtask bench linger`. -->";
const END: &str = "<!-- The end of the tables. -->";

fn tables(file: &Value) -> String {
    let runs = list(file);
    let mut text = format!(
        "Measured {} at commit {}{}, {} with {} cores.\n",
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
                .flat_map(|run| [Some(row(client_name(run), run)), quick_row(run)])
                .flatten()
                .collect();
            table(&mut text, &format!("{}: {}; {title}", work.name, work.what), "client", &rows);
        }
        let rows: Vec<String> = runs
            .iter()
            .filter(|run| run["against"] == against && run["work"] == "partitions")
            .map(|run| row(format!("{}, {}", run["partitions"], client_name(run)), run))
            .collect();
        let title_of_sweep = format!("partitions: 20,000 messages/s, linger 5 ms; {title}");
        table(&mut text, &title_of_sweep, "partitions, client", &rows);
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
        "\n### {title}\n\n\
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

/// For the workload with a slow broker: the latency of the partitions of the other brokers.
fn quick_row(run: &Value) -> Option<String> {
    let (p50, p99) = (run["quick_p50_ms"].as_f64()?, run["quick_p99_ms"].as_f64()?);
    (p50 > 0.0).then(|| {
        let name = client_name(run);
        format!("| {name}, partitions of the other two brokers | | | {p50:.2} | {p99:.2} | | | | | |")
    })
}

/// A point of a chart.
struct Point {
    line: String,
    x: f64,
    y: f64,
}

/// Draws a line per name; both axes are logarithmic and span whole powers of ten.
fn lines(title: &str, points: &[Point]) -> String {
    const COLORS: [&str; 6] = ["#2a7ab0", "#d1603d", "#3d9a5f", "#8a5fb0", "#777777", "#c0a020"];
    let (left, top, width, tall) = (70.0, 40.0, 520.0, 300.0);
    let range = |of: fn(&Point) -> f64| {
        let low = points.iter().map(of).fold(f64::INFINITY, f64::min).max(1e-3).log10().floor();
        let high = points.iter().map(of).fold(1e-3, f64::max).log10().ceil();
        (low.min(high), if high > low { high } else { low + 1.0 })
    };
    let (x, y) = (range(|point| point.x), range(|point| point.y));
    let across = |value: f64| left + (value.log10() - x.0) / (x.1 - x.0) * width;
    let down = |value: f64| top + tall - (value.log10() - y.0) / (y.1 - y.0) * tall;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"860\" height=\"380\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"860\" height=\"380\" fill=\"white\"/>\n\
         <text x=\"10\" y=\"22\" font-size=\"15\">{title}</text>\n"
    );
    for power in x.0 as i32..=x.1 as i32 {
        let at = across(10f64.powi(power));
        let _ = writeln!(
            svg,
            "<line x1=\"{at:.0}\" y1=\"{top}\" x2=\"{at:.0}\" y2=\"{}\" stroke=\"#dddddd\"/><text x=\"{at:.0}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            top + tall,
            top + tall + 18.0,
            10f64.powi(power)
        );
    }
    for power in y.0 as i32..=y.1 as i32 {
        let at = down(10f64.powi(power));
        let _ = writeln!(
            svg,
            "<line x1=\"{left}\" y1=\"{at:.0}\" x2=\"{}\" y2=\"{at:.0}\" stroke=\"#dddddd\"/><text x=\"{}\" y=\"{:.0}\" text-anchor=\"end\">{}</text>",
            left + width,
            left - 6.0,
            at + 4.0,
            10f64.powi(power)
        );
    }
    let mut names: Vec<&str> = Vec::new();
    for point in points {
        if !names.contains(&point.line.as_str()) {
            names.push(&point.line);
        }
    }
    for (index, name) in names.iter().enumerate() {
        let color = COLORS[index % COLORS.len()];
        let of_line: Vec<&Point> = points.iter().filter(|point| point.line == *name).collect();
        let way: Vec<String> =
            of_line.iter().map(|point| format!("{:.1},{:.1}", across(point.x), down(point.y))).collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>",
            way.join(" ")
        );
        for point in of_line {
            let _ = writeln!(
                svg,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{color}\"/>",
                across(point.x),
                down(point.y)
            );
        }
        let at = top + 10.0 + index as f64 * 22.0;
        let _ = writeln!(
            svg,
            "<rect x=\"610\" y=\"{:.0}\" width=\"14\" height=\"4\" fill=\"{color}\"/><text x=\"630\" y=\"{:.0}\">{name}</text>",
            at - 6.0,
            at
        );
    }
    svg + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_has_a_table_per_measured_workload() {
        let run = json!({
            "against": "embedded", "work": "500ms", "client": "ottla-broker", "load": 0.5, "messages": 60, "errors": 0,
            "requests_per_second": 6.05, "messages_per_request": 3300.0, "p50_ms": 255.5, "p99_ms": 501.0,
            "longest_wait_ms": 500.9, "cpu_us_per_message": 1.25,
        });
        let file = json!({"runs": [run]});
        let text = tables(&file);
        let row = "| Ottla, `broker.linger.ms` | 6.05 | 3300 | 256 | 501 | 501 | 1.25 | 60 | 0 | 0.5 |";
        assert!(text.contains(row), "{text}");
        assert!(!text.contains("### 5ms") && !text.contains("### loads"), "{text}");
    }

    #[test]
    fn chart_has_a_line_per_client_and_a_point_per_figure() {
        let point = |line: &str, x, y| Point { line: line.to_owned(), x, y };
        let picture = lines("x", &[point("a", 10.0, 1.0), point("b", 10.0, 5.0), point("a", 1000.0, 100.0)]);
        assert_eq!(picture.matches("<polyline").count(), 2);
        assert_eq!(picture.matches("<circle").count(), 3);
        assert!(picture.contains("70.0,340.0 590.0,40.0"), "from corner to corner: {picture}");
    }
}
