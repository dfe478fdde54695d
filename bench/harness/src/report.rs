//! Generates `bench/RESULTS.md` and `bench/cpu.svg` from `bench/measured.json` and the files in `bench/runs/`.
//!
//! The figures of a case, for all its peers, come from the newest call that measured it: figures of different calls are never
//! compared. `bench/measured.json` keeps those, and nothing older; `bench/runs/` is what was measured in this tree.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    fs,
    path::Path,
};

use serde_json::Value;

use crate::{Result, case, folder, peer::PEERS};

/// Writes both files.
pub fn write() -> Result<()> {
    let mut files = known(&folder().join(MEASURED))?;
    for entry in fs::read_dir(folder().join("runs")).into_iter().flatten() {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let value: Value = serde_json::from_str(&fs::read_to_string(&path)?)
                .map_err(|error| format!("{name}: {error}"))?;
            files.retain(|(known, _)| *known != name);
            files.push((name, value));
        }
    }
    files.sort_by(|a, b| a.0.cmp(&b.0));
    let measured = Measured::of(&files);
    fs::write(folder().join(MEASURED), measured.keep(&files))?;
    fs::write(folder().join("cpu.svg"), picture(&measured))?;
    fs::write(folder().join("RESULTS.md"), page(&measured, &files))?;
    println!("\nwrote bench/{MEASURED}, bench/RESULTS.md and bench/cpu.svg");
    Ok(())
}

/// The newest runs of each case.
const MEASURED: &str = "measured.json";
/// What the page needs of a run.
const KEPT: [&str; 9] = [
    "case",
    "peer",
    "load",
    "version",
    "cpu_ns_per_message",
    "messages_per_second",
    "max_resident_mib",
    "latency_us",
    "failed",
];

/// Reads the calls that are kept.
fn known(path: &Path) -> Result<Vec<(String, Value)>> {
    let Ok(text) = fs::read_to_string(path) else { return Ok(Vec::new()) };
    let calls: serde_json::Map<String, Value> =
        serde_json::from_str(&text).map_err(|error| format!("{MEASURED}: {error}"))?;
    Ok(calls.into_iter().collect())
}

/// The minimum, median and maximum.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spread {
    min: f64,
    median: f64,
    max: f64,
}

impl Spread {
    fn of(mut figures: Vec<f64>) -> Option<Self> {
        figures.sort_by(f64::total_cmp);
        let (min, max) = (*figures.first()?, *figures.last()?);
        let middle = figures.len() / 2;
        let median = if figures.len() % 2 == 1 {
            figures[middle]
        } else {
            (figures[middle - 1] + figures[middle]) / 2.0
        };
        Some(Self { min, median, max })
    }

    fn text(self, digits: usize) -> String {
        let number = |value: f64| grouped(value, digits);
        format!("{} ({} to {})", number(self.median), number(self.min), number(self.max))
    }
}

/// The runs of one peer in one case.
struct Runs<'a> {
    rows: Vec<&'a Value>,
}

impl Runs<'_> {
    fn spread(&self, figure: &str) -> Option<Spread> {
        Spread::of(self.rows.iter().filter_map(|row| row.pointer(figure)?.as_f64()).collect())
    }

    fn failure(&self) -> Option<&str> {
        self.rows.iter().find_map(|row| row["failed"].as_str())
    }
}

/// The newest runs of each case.
struct Measured<'a> {
    cases: BTreeMap<&'a str, (usize, Vec<&'a Value>)>,
}

impl<'a> Measured<'a> {
    fn of(files: &'a [(String, Value)]) -> Self {
        let mut cases: BTreeMap<&str, (usize, Vec<&Value>)> = BTreeMap::new();
        for (at, (_, file)) in files.iter().enumerate() {
            for row in file["runs"].as_array().into_iter().flatten() {
                let entry = cases.entry(row["case"].as_str().unwrap_or_default()).or_default();
                if entry.0 != at {
                    *entry = (at, Vec::new());
                }
                entry.1.push(row);
            }
        }
        Self { cases }
    }

    /// Returns the text of the file with the newest runs of each case: a line per run.
    fn keep(&self, files: &[(String, Value)]) -> String {
        let mut calls = Vec::new();
        for (at, (name, file)) in files.iter().enumerate() {
            let rows = self.cases.values().filter(|(from, _)| *from == at).flat_map(|(_, rows)| rows);
            let kept = |row: &Value| {
                let known =
                    |key: &&str| Some((key.to_string(), row.get(*key).filter(|it| !it.is_null())?.clone()));
                Value::Object(KEPT.iter().filter_map(known).collect()).to_string()
            };
            let rows: Vec<String> = rows.map(|row| kept(row)).collect();
            let Some(mut head) = file.as_object().filter(|_| !rows.is_empty()).cloned() else { continue };
            head.remove("runs");
            let head = Value::Object(head).to_string();
            let head = head.strip_suffix('}').unwrap_or(&head);
            calls.push(format!("\"{name}\":{head},\"runs\":[\n{}\n]}}", rows.join(",\n")));
        }
        format!("{{\n{}\n}}\n", calls.join(",\n"))
    }

    fn runs(&self, case: &str, peer: &str) -> Runs<'a> {
        let rows = self.cases.get(case).map(|(_, rows)| rows.as_slice()).unwrap_or_default();
        Runs { rows: rows.iter().copied().filter(|row| row["peer"] == peer).collect() }
    }

    fn median(&self, case: &str, peer: &str, figure: &str) -> Option<f64> {
        Some(self.runs(case, peer).spread(figure)?.median)
    }

    /// The names of the measured cases that start with `start`, in the order of the case table.
    fn named(&self, start: &str) -> Vec<String> {
        let names = case::all().into_iter().map(|case| case.name);
        names.filter(|name| name.starts_with(start) && self.cases.contains_key(name.as_str())).collect()
    }

    /// The peers that have a row in any of these cases.
    fn peers(&self, cases: &[String]) -> Vec<&'static str> {
        let names = PEERS.iter().map(|peer| peer.name);
        names.filter(|peer| cases.iter().any(|case| !self.runs(case, peer).rows.is_empty())).collect()
    }
}

const CPU: &str = "/cpu_ns_per_message";
const RATE: &str = "/messages_per_second";
const MEMORY: &str = "/max_resident_mib";
const LATENCY: &str = "/latency_us/0";

fn page(measured: &Measured<'_>, files: &[(String, Value)]) -> String {
    let mut out = String::from(
        "# Results\n\n\
         <!-- Written by `cargo xtask bench`. `cargo xtask bench --report` writes it again from bench/measured.json. -->\n\n\
         Every client (peer) runs in its own process and does the same work; the runs of a case are interleaved, in random order. CPU is the \
         user and system time of the whole process, including its start, divided by the number of messages. Client and brokers \
         share the machine, so messages per second are comparable only within a row. Every single run is in `measured.json`.\n\n\
         ![CPU per message](cpu.svg)\n",
    );
    targets(&mut out, measured);
    let groups = [
        ("Producing", "produce-"),
        ("Partitions: 2 and 1000, in turn", "partitions-"),
        ("Consuming", "consume-"),
        ("Over TLS 1.3", "tls-"),
        ("The C interface: one program, linked to Ottla and to librdkafka", "c-"),
        (
            "librdkafka's published measurement: 500,000 x 100 B, two real brokers, two partitions",
            "published-",
        ),
    ];
    for (title, start) in groups {
        let cases = measured.named(start);
        if cases.is_empty() {
            continue;
        }
        let _ = write!(out, "\n## {title}\n\n{}\n", origins(measured, files, &cases));
        for (what, figure) in [
            ("CPU nanoseconds per message, median (smallest to largest)", CPU),
            ("Messages per second, median", RATE),
            ("Peak resident memory in MiB, median", MEMORY),
        ] {
            table(&mut out, measured, &cases, what, figure);
        }
    }
    latency(&mut out, measured, files);
    start(&mut out, measured, files);
    sources(&mut out, measured, files);
    out
}

fn table(out: &mut String, measured: &Measured<'_>, cases: &[String], what: &str, figure: &str) {
    let peers = measured.peers(cases);
    let _ =
        write!(out, "\n{what}:\n\n| case | {} |\n|---|{}\n", peers.join(" | "), "---:|".repeat(peers.len()));
    for case in cases {
        let cells = peers.iter().map(|peer| {
            let runs = measured.runs(case, peer);
            match runs.spread(figure) {
                Some(spread) if figure == CPU => spread.text(0),
                Some(spread) => grouped(spread.median, 0),
                None if runs.failure().is_some() => "failed".to_owned(),
                None => String::new(),
            }
        });
        let _ = writeln!(out, "| {case} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
}

/// Says at which commits, on which processor and under which load the cases were measured.
fn origins(measured: &Measured<'_>, files: &[(String, Value)], cases: &[String]) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("unknown").to_owned();
    let mut origins: Vec<(String, Vec<&str>)> = Vec::new();
    for case in cases {
        let Some((at, _)) = measured.cases.get(case.as_str()) else { continue };
        let head = &files[*at].1;
        let origin = format!("Commit {}, {}", text(&head["commit"]), text(&head["machine"]["cpu"]));
        match origins.iter_mut().find(|(known, _)| *known == origin) {
            Some((_, cases)) => cases.push(case),
            None => origins.push((origin, vec![case])),
        }
    }
    let is_single = origins.len() == 1;
    let lines = origins.into_iter().map(|(origin, cases)| {
        let rows = cases.iter().flat_map(|case| &measured.cases[case].1);
        let load = Spread::of(rows.filter_map(|row| row["load"].as_f64()).collect());
        let load = load.map_or_else(|| "unknown".to_owned(), |load| load.text(1));
        let (bullet, cases) =
            if is_single { ("", String::new()) } else { ("- ", format!(": {}", cases.join(", "))) };
        format!("{bullet}{origin}, load average {load}{cases}.")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Writes what a process costs before it has sent more than one message.
fn start(out: &mut String, measured: &Measured<'_>, files: &[(String, Value)]) {
    let cases = measured.named("start");
    if cases.is_empty() {
        return;
    }
    let _ = write!(
        out,
        "\n## A process that sends one message\n\n{}\n\nThe other figures contain this: a virtual machine that \
         compiles its code, for example.\n\n| peer | CPU, ms | peak MiB |\n|---|---:|---:|\n",
        origins(measured, files, &cases)
    );
    for peer in measured.peers(&cases) {
        let runs = measured.runs("start", peer);
        let cpu = runs.spread(CPU).map_or_else(|| "failed".to_owned(), |cpu| grouped(cpu.median / 1e6, 1));
        let memory = runs.spread(MEMORY).map_or_else(String::new, |memory| grouped(memory.median, 0));
        let _ = writeln!(out, "| {peer} | {cpu} | {memory} |");
    }
}

fn latency(out: &mut String, measured: &Measured<'_>, files: &[(String, Value)]) {
    let cases = measured.named("latency");
    if cases.is_empty() {
        return;
    }
    let _ = write!(
        out,
        "\n## One message at a time\n\n{}\n\nThe latency from the call to the acknowledgement, with linger 0, acks=1 and the \
         embedded broker in another process; `tcp` is a bare request and response of the same sizes. Microseconds, median of \
         the runs (smallest to largest):\n\n\
         | peer | p50 | p99 | p99.9 | CPU microseconds per message |\n|---|---:|---:|---:|---:|\n",
        origins(measured, files, &cases)
    );
    for peer in measured.peers(&cases) {
        let runs = measured.runs("latency", peer);
        let figure = |at: &str| runs.spread(at).map_or_else(|| "failed".to_owned(), |spread| spread.text(1));
        let cpu = runs.spread(CPU).map_or_else(String::new, |spread| grouped(spread.median / 1000.0, 1));
        let _ = writeln!(
            out,
            "| {peer} | {} | {} | {} | {cpu} |",
            figure(LATENCY),
            figure("/latency_us/1"),
            figure("/latency_us/2")
        );
    }
}

/// Writes the table of targets and measured figures.
fn targets(out: &mut String, measured: &Measured<'_>) {
    let ours = |case: &str, figure: &str| measured.median(case, "ottla", figure);
    let ratio = |case: &str, peer: &str| Some(ours(case, CPU)? / measured.median(case, peer, CPU)?);
    let c = |case: &str| measured.median(case, "ottla-c", CPU);
    let c_ratio = |case: &str| Some(c(case)? / measured.median(case, "librdkafka-c", CPU)?);
    let best = |case: &str| {
        let peers = PEERS.iter().map(|peer| peer.name).filter(|name| !name.starts_with("ottla"));
        let figures = peers.filter_map(|peer| measured.median(case, peer, CPU));
        Some(ours(case, CPU)? / figures.min_by(f64::total_cmp)?)
    };
    let produce = "produce-100-none-acks1-discard";
    let consume = if measured.cases.contains_key("consume-100-none-embedded") {
        "consume-100-none-embedded"
    } else {
        "consume-100-none-kafka"
    };
    let partitions = || Some(ours("partitions-1000", CPU)? / ours("partitions-2", CPU)?);
    let rows = [
        ("produce 100 B, none, acks=1, discarding broker: CPU ns per message", 80.0, ours(produce, CPU)),
        ("the same, relative to librdkafka", 0.25, ratio(produce, "librdkafka")),
        ("consume 100 B, none: CPU ns per message", 50.0, ours(consume, CPU)),
        ("the same, relative to librdkafka's group consumer", 0.2, ratio(consume, "librdkafka-group")),
        (
            "produce 1000 B, none, acks=1: CPU relative to franz-go",
            1.0 / 3.0,
            ratio("produce-1000-none-acks1-discard", "franz-go"),
        ),
        (
            "produce 100 B, lz4, acks=1: CPU relative to the best other client",
            0.7,
            best("produce-100-lz4-acks1-discard"),
        ),
        (
            "produce 100 B, zstd, acks=1: CPU relative to the best other client",
            0.7,
            best("produce-100-zstd-acks1-discard"),
        ),
        (
            "produce 1000 B, lz4, acks=1: CPU relative to the best other client",
            0.7,
            best("produce-1000-lz4-acks1-discard"),
        ),
        (
            "produce 1000 B, zstd, acks=1: CPU relative to the best other client",
            0.7,
            best("produce-1000-zstd-acks1-discard"),
        ),
        (
            "one message at a time, median latency relative to a TCP ping-pong",
            2.5,
            (|| Some(ours("latency", LATENCY)? / measured.median("latency", "tcp", LATENCY)?))(),
        ),
        ("peak resident memory while producing 5 million messages, MiB", 64.0, ours(produce, MEMORY)),
        ("C: rd_kafka_produce, F_COPY, delivery callback: CPU ns per message", 130.0, c("c-produce")),
        ("the same, relative to librdkafka", 1.0 / 3.0, c_ratio("c-produce")),
        ("C: rd_kafka_produce_batch: CPU ns per message", 100.0, c("c-produce-batch")),
        ("C: consumption by callback: CPU ns per message", 90.0, c("c-consume-callback")),
        ("the same, relative to librdkafka", 1.0 / 3.0, c_ratio("c-consume-callback")),
        ("C: consumption in batches: CPU ns per message", 90.0, c("c-consume-batch")),
        ("the same, relative to librdkafka", 1.0 / 3.0, c_ratio("c-consume-batch")),
        ("C: rd_kafka_consumer_poll: CPU ns per message", 120.0, c("c-consume-poll")),
        ("the same, relative to librdkafka", 0.25, c_ratio("c-consume-poll")),
        ("1000 partitions in turn: CPU relative to 2 partitions", 1.5, partitions()),
    ];
    out.push_str("\n## Targets\n\n| what | at most | measured | |\n|---|---:|---:|---|\n");
    let others = targets_of_large_messages(measured).into_iter().chain(targets_of_groups(measured));
    for (what, limit, measured) in rows.into_iter().chain(others).chain(targets_of_tls(measured)) {
        let digits = if limit < 10.0 { 2 } else { 0 };
        let (figure, verdict) = match measured {
            Some(figure) => {
                (grouped(figure, digits), if figure <= limit { "reached" } else { "**not reached**" })
            }
            None => ("".to_owned(), "not measured"),
        };
        let _ = writeln!(out, "| {what} | {} | {figure} | {verdict} |", grouped(limit, digits));
    }
}

/// Returns the targets of messages of 1,000 bytes in C.
fn targets_of_large_messages(measured: &Measured<'_>) -> [(&'static str, f64, Option<f64>); 5] {
    let ratio = |codec: &str| {
        let case = format!("c-produce-1000-{codec}");
        let of = |peer: &str| measured.median(&case, peer, CPU);
        let best = ["librdkafka-c", "librdkafka-2.16-c"].into_iter().filter_map(of).min_by(f64::total_cmp);
        Some(of("ottla-c")? / best?)
    };
    [
        ("C: produce 1000 B, none, delivery callback: CPU relative to librdkafka", 0.4, ratio("none")),
        ("the same, lz4", 0.7, ratio("lz4")),
        ("the same, zstd", 0.65, ratio("zstd")),
        ("the same, gzip", 0.7, ratio("gzip")),
        (
            "C: produce 1000 B, lz4: peak resident memory, MiB",
            64.0,
            measured.median("c-produce-1000-lz4", "ottla-c", MEMORY),
        ),
    ]
}

/// Returns the targets of members of groups, with their limits and the measured figures.
fn targets_of_groups(measured: &Measured<'_>) -> [(&'static str, f64, Option<f64>); 7] {
    let members = "consume-100-none-member-embedded";
    let cpu = |peer: &str| measured.median(members, peer, CPU);
    let ratio = |peer: &str| Some(cpu("ottla-member")? / cpu(peer)?);
    let share = |peer: &str| measured.median("c-consume-share-poll", peer, CPU);
    let c_ratio = |case: &str| {
        Some(measured.median(case, "ottla-c", CPU)? / measured.median(case, "librdkafka-c", CPU)?)
    };
    [
        (
            "member of a group, Rust: CPU ns per message beyond the assigned consumer's",
            2.0,
            (|| Some(cpu("ottla-member")? - cpu("ottla")?))(),
        ),
        ("the same, relative to librdkafka's group consumer", 0.2, ratio("librdkafka-group")),
        ("the same, relative to franz-go's group consumer", 0.2, ratio("franz-go-member")),
        (
            "member of a group, C: rd_kafka_consumer_poll: CPU relative to librdkafka",
            0.2,
            c_ratio("c-consume-member-poll"),
        ),
        ("member of a group, C: in batches, relative to librdkafka", 0.2, c_ratio("c-consume-member-batch")),
        (
            "member of a share group, C: CPU ns per message beyond a group's member",
            40.0,
            (|| Some(share("ottla-c")? - measured.median("c-consume-member-batch", "ottla-c", CPU)?))(),
        ),
        (
            "the same, relative to librdkafka 2.16",
            0.2,
            (|| Some(share("ottla-c")? / share("librdkafka-2.16-c")?))(),
        ),
    ]
}

/// Returns the targets of TLS for one C program, relative to librdkafka with OpenSSL.
fn targets_of_tls(measured: &Measured<'_>) -> [(&'static str, f64, Option<f64>); 8] {
    let ratio = |case: &str, peer: &str| {
        Some(measured.median(case, "ottla-c", CPU)? / measured.median(case, peer, CPU)?)
    };
    let (embedded, kafka) = ("librdkafka-c", "librdkafka-2.16-c");
    [
        ("TLS, C: produce 100 B, relative to librdkafka", 0.35, ratio("c-tls-produce-100", embedded)),
        ("TLS, C: consume 100 B, relative to librdkafka", 0.35, ratio("c-tls-consume-100", embedded)),
        ("TLS, C: produce 1000 B, relative to librdkafka", 0.7, ratio("c-tls-produce-1000", embedded)),
        ("TLS, C: consume 1000 B, relative to librdkafka", 0.7, ratio("c-tls-consume-1000", embedded)),
        ("the same with Kafka: produce 100 B", 0.35, ratio("c-tls-produce-100-kafka", kafka)),
        ("the same with Kafka: consume 100 B", 0.35, ratio("c-tls-consume-100-kafka", kafka)),
        ("the same with Kafka: produce 1000 B", 0.7, ratio("c-tls-produce-1000-kafka", kafka)),
        ("the same with Kafka: consume 1000 B", 0.7, ratio("c-tls-consume-1000-kafka", kafka)),
    ]
}

/// Writes on which machines the cases ran, and what the peers are.
fn sources(out: &mut String, measured: &Measured<'_>, files: &[(String, Value)]) {
    let text = |value: &Value| value.as_str().unwrap_or("unknown").to_owned();
    let used = |at: usize| measured.cases.values().any(|(from, _)| *from == at);
    let machines: BTreeSet<String> = files
        .iter()
        .enumerate()
        .filter(|(at, _)| used(*at))
        .map(|(_, (_, file))| {
            let machine = &file["machine"];
            format!(
                "{}, {} cores, {}, Linux {}, {}, {}, {}",
                text(&machine["cpu"]),
                machine["cores"],
                text(&machine["memory"]),
                text(&machine["kernel"]),
                text(&machine["rustc"]),
                text(&machine["go"]),
                text(&machine["java"])
            )
        })
        .collect();
    // A load above one or two means that other processes ran: shared caches raise the CPU time, and rates suffer more.
    out.push_str("\n## Machines and peers\n\n");
    for machine in machines {
        let _ = writeln!(out, "- {machine}");
    }
    out.push('\n');
    for peer in &PEERS {
        let rows = measured.cases.values().flat_map(|(_, rows)| rows);
        let versions: BTreeSet<&str> =
            rows.filter(|row| row["peer"] == peer.name).filter_map(|row| row["version"].as_str()).collect();
        let versions = versions.into_iter().collect::<Vec<_>>().join(", ");
        let _ = writeln!(out, "- **{}** ({versions}): {}", peer.name, peer.what);
    }
}

/// Draws horizontal bars, in a group per case.
fn picture(measured: &Measured<'_>) -> String {
    const CASES: [&str; 6] = [
        "produce-100-none-acks1-discard",
        "produce-100-lz4-acks1-discard",
        "produce-100-zstd-acks1-discard",
        "produce-1000-none-acks1-discard",
        "consume-100-none-embedded",
        "consume-100-none-kafka",
    ];
    let mut bars = Vec::new();
    for case in CASES {
        let mut of_case: Vec<(&str, f64)> = PEERS
            .iter()
            .filter_map(|peer| Some((peer.name, measured.median(case, peer.name, CPU)?)))
            .collect();
        of_case.sort_by(|a, b| a.1.total_cmp(&b.1));
        if !of_case.is_empty() {
            bars.push((case, of_case));
        }
    }
    let (left, width, line) = (150.0, 760.0, 18.0);
    let mut y = 30.0;
    let mut body = String::new();
    for (case, of_case) in &bars {
        let largest = of_case.iter().map(|bar| bar.1).fold(1.0, f64::max);
        let _ = writeln!(body, "<text x=\"10\" y=\"{:.0}\" font-weight=\"bold\">{case}</text>", y + 13.0);
        y += line + 2.0;
        for (peer, figure) in of_case {
            let length = figure / largest * (width - left - 90.0);
            let colour = if *peer == "ottla" { "#c2410c" } else { "#94a3b8" };
            let _ = writeln!(
                body,
                "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{peer}</text>\
                 <rect x=\"{left:.0}\" y=\"{:.0}\" width=\"{length:.1}\" height=\"13\" fill=\"{colour}\"/>\
                 <text x=\"{:.1}\" y=\"{:.0}\">{figure:.0}</text>",
                left - 6.0,
                y + 11.0,
                y,
                left + length + 5.0,
                y + 11.0
            );
            y += line;
        }
        y += 10.0;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {y:.0}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"10\" y=\"18\" font-size=\"14\">CPU nanoseconds per message (median): less is better; a scale per group</text>\n\
         {body}</svg>\n"
    )
}

/// Formats a number with commas between groups of thousands.
fn grouped(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    let (whole, fraction) =
        text.split_once('.').map_or((text.as_str(), None), |(whole, rest)| (whole, Some(rest)));
    let mut out = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 && digit.is_ascii_digit() {
            out.push(',');
        }
        out.push(digit);
    }
    fraction.map_or(out.clone(), |fraction| format!("{out}.{fraction}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!(grouped(1_234_567.0, 0), "1,234,567");
        assert_eq!(grouped(12.345, 2), "12.35");
        assert_eq!(grouped(999.0, 0), "999");
    }

    #[test]
    fn median_of_two_is_their_mean() {
        assert_eq!(Spread::of(vec![3.0, 1.0]), Some(Spread { min: 1.0, median: 2.0, max: 3.0 }));
        assert_eq!(Spread::of(Vec::new()), None);
    }

    #[test]
    fn kept_runs_are_those_of_the_page() {
        let file = |peer: &str, cpu: f64| json!({"commit": "c", "runs": [{"case": "partitions-2", "peer": peer, "cpu_ns_per_message": cpu, "user_s": 1, "failed": null}]});
        let files = [("a".to_owned(), file("ottla", 1.0)), ("b".to_owned(), file("java", 2.0))];
        let kept: Value = serde_json::from_str(&Measured::of(&files).keep(&files)).unwrap();
        let run = json!({"case": "partitions-2", "peer": "java", "cpu_ns_per_message": 2.0});
        assert_eq!(kept, json!({"b": {"commit": "c", "runs": [run]}}));
    }

    #[test]
    fn figures_of_a_case_come_from_the_newest_file() {
        let file = |peer: &str, cpu: f64| json!({"runs": [{"case": "partitions-2", "peer": peer, "cpu_ns_per_message": cpu}]});
        let files = [("a".to_owned(), file("ottla", 1.0)), ("b".to_owned(), file("java", 2.0))];
        let measured = Measured::of(&files);
        assert_eq!(measured.median("partitions-2", "ottla", CPU), None);
        assert_eq!(measured.median("partitions-2", "java", CPU), Some(2.0));
    }
}
