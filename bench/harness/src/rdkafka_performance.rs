//! `cargo xtask bench rdkafka-performance`: runs the four commands whose results librdkafka publishes, with the
//! original program and with Ottla's, on two brokers of Apache Kafka. The table in `docs/internals/rdkafka-performance.md` is
//! generated from the stored runs.

use std::{
    fs,
    os::unix::process::CommandExt as _,
    process::Command,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    Result,
    case::Against,
    folder, machine,
    measure::{self, Used},
    peer,
    record::date_of_now,
    server::{self, Server},
};

const HELP: &str = "\
cargo xtask bench rdkafka-performance [OPTIONS]

  --runs N            runs of every program, interleaved (default 3)
  --messages N,...    the numbers of messages per run (default 500000,5000000)
  --replicas N        replicas of the topic, 1 or 2 (default 2, because the commands have `-a 2`)
  --only NAME,...     only these programs (ottla, original, original-linger, ours-on-librdkafka)
  --command NAME,...  only these commands (none, acks-0, snappy, gzip)
  --no-build          do not build again
  --no-keep           print, but write neither bench/runs/rdkafka-performance/ nor docs/internals/rdkafka-performance.md
  --report            only write docs/internals/rdkafka-performance.md again, from the newest file of bench/runs/rdkafka-performance/
";

/// A program, with its arguments in addition to the published ones.
struct Program {
    name: &'static str,
    what: &'static str,
    settings: &'static [&'static str],
}

const PROGRAMS: [Program; 4] = [
    Program { name: "ottla", what: "Ottla", settings: &[] },
    Program { name: "original", what: "librdkafka's own", settings: &[] },
    Program {
        name: "original-linger",
        what: "librdkafka's own, `-X linger.ms=5`",
        settings: &["-X", "linger.ms=5"],
    },
    Program { name: "ours-on-librdkafka", what: "Ottla's program, linked to librdkafka", settings: &[] },
];

impl Program {
    fn command(&self) -> Command {
        let mut command;
        if self.name == "ottla" {
            command = Command::new(server::own_target().join("release/ottla"));
            command.arg0("rdkafka_performance");
        } else {
            command = Command::new(peer::target().join("release/peer-rdkafka-performance"));
            command.arg(if self.name.starts_with("original") { "original" } else { "ours" });
        }
        command
    }

    /// Current brokers refuse any number other than -1, 0 and 1. Ottla's program prints a warning and sends -1; the
    /// original would fail.
    fn acks(&self, published: &'static str) -> &'static str {
        if published == "2" && self.name.starts_with("original") { "-1" } else { published }
    }
}

/// One of the published commands.
struct Published {
    name: &'static str,
    payload: &'static str,
    acks: &'static str,
    more: &'static [&'static str],
}

const TWO_BROKERS: &str = "_____________Test1:TwoBrokers:500kmsgs:100bytes";
const ONE_BROKER: &str = "_____________Test2:OneBrokers:500kmsgs:100bytes";

const COMMANDS: [Published; 4] = [
    Published { name: "none", payload: TWO_BROKERS, acks: "2", more: &[] },
    Published { name: "acks-0", payload: ONE_BROKER, acks: "0", more: &["-p", "1"] },
    Published { name: "snappy", payload: TWO_BROKERS, acks: "2", more: &["-z", "snappy"] },
    Published { name: "gzip", payload: TWO_BROKERS, acks: "2", more: &["-z", "gzip"] },
];

impl Published {
    fn text(&self) -> String {
        let Self { payload, acks, more, .. } = self;
        let text = format!("-P -t test2 -s 100 -c 500000 -m \"{payload}\" -S 1 -a {acks} {}", more.join(" "));
        text.trim_end().to_owned()
    }
}

struct Options {
    runs: usize,
    messages: Vec<u64>,
    replicas: usize,
    only: Vec<String>,
    commands: Vec<String>,
    build: bool,
    keep: bool,
}

pub fn main(mut args: impl Iterator<Item = String>) -> Result<()> {
    let mut options = Options {
        runs: 3,
        messages: vec![500_000, 5_000_000],
        replicas: 2,
        only: Vec::new(),
        commands: Vec::new(),
        build: true,
        keep: true,
    };
    let list = |text: String| text.split(',').map(str::to_owned).collect::<Vec<_>>();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a value"));
        match arg.as_str() {
            "--runs" => options.runs = value()?.parse()?,
            "--messages" => {
                options.messages =
                    value()?.split(',').map(str::parse).collect::<std::result::Result<_, _>>()?;
            }
            "--replicas" => options.replicas = value()?.parse()?,
            "--only" => options.only = list(value()?),
            "--command" => options.commands = list(value()?),
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
    if options.runs == 0 || options.messages.contains(&0) || !(1..=2).contains(&options.replicas) {
        return Err("--runs and --messages are at least 1, --replicas is 1 or 2".into());
    }
    let known = |names: &[&str], asked: &[String]| match asked.iter().find(|it| !names.contains(&it.as_str()))
    {
        Some(name) => Err(format!("`{name}`? There are {}", names.join(", "))),
        None => Ok(()),
    };
    known(&PROGRAMS.map(|it| it.name), &options.only)?;
    known(&COMMANDS.map(|it| it.name), &options.commands)?;
    measure_all(&options)
}

fn measure_all(options: &Options) -> Result<()> {
    let chosen = |asked: &[String], name: &str| asked.is_empty() || asked.iter().any(|it| it == name);
    let programs: Vec<_> = PROGRAMS.iter().filter(|it| chosen(&options.only, it.name)).collect();
    if options.build {
        // The program that creates the topics is built with the peers.
        peer::build(&[])?;
        peer::cargo(&["peer-rdkafka-performance"])?;
        server::build_package("ottla-cli")?;
    }
    let server = Server::start(Against::Kafka { brokers: 2 })?;
    let mut runs = Vec::new();
    // A JVM that just started is slow, so the first measured peer would be at a disadvantage.
    for command in &COMMANDS {
        if let Some(program) = programs.first() {
            one(&server, options, program, command, options.messages.iter().copied().max().unwrap_or(1))?;
        }
    }
    for &messages in &options.messages {
        for command in COMMANDS.iter().filter(|it| chosen(&options.commands, it.name)) {
            println!("\n{}, {messages} messages: {}", command.name, command.text());
            for run in 1..=options.runs {
                // The order changes from run to run.
                let first = (run - 1) % programs.len();
                for program in programs[first..].iter().chain(&programs[..first]) {
                    let load = machine::load();
                    let mut row = json!({
                        "command": command.name, "messages": messages, "program": program.name, "run": run, "load": load,
                    });
                    match one(&server, options, program, command, messages) {
                        Ok(outcome) => {
                            println!(
                                "  {:20} {run}  {:12.0} msg/s  {:8.1} ns CPU/msg  {:7.1} MiB, load {load}",
                                program.name, outcome.rate, outcome.nanoseconds, outcome.mib
                            );
                            row["messages_per_second"] = json!(outcome.rate);
                            row["cpu_ns_per_message"] = json!((outcome.nanoseconds * 10.0).round() / 10.0);
                            row["max_resident_mib"] = json!((outcome.mib * 10.0).round() / 10.0);
                            row["line"] = json!(outcome.line);
                        }
                        Err(error) => {
                            println!("  {:20} {run}  FAILED: {error}", program.name);
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
    }
    if options.keep { report() } else { Ok(()) }
}

struct Outcome {
    /// As the program printed it.
    rate: f64,
    line: String,
    nanoseconds: f64,
    mib: f64,
}

/// A run of a program, on its own topic.
fn one(
    server: &Server,
    options: &Options,
    program: &Program,
    published: &Published,
    messages: u64,
) -> Result<Outcome> {
    // Brokers may keep a deleted topic for a while, so each run's topic has a unique name.
    static TOPICS: AtomicUsize = AtomicUsize::new(1);
    let topic = format!("test2-{}", TOPICS.fetch_add(1, Relaxed));
    peer::topic("create", server, &topic, 2, options.replicas)?;
    // A follower that fetches from a leader too early retries after a second, and `acks=-1` would wait for it.
    thread::sleep(Duration::from_millis(1500));
    let mut command = program.command();
    command.args(["-P", "-b", &server.bootstrap(), "-t", &topic, "-s", "100", "-c", &messages.to_string()]);
    command.args(["-m", published.payload, "-S", "1", "-a", program.acks(published.acks)]);
    command.args(published.more).args(program.settings);
    let used = measure::run(&mut command);
    peer::topic("delete", server, &topic, 0, 0)?;
    outcome(&used?, messages)
}

fn outcome(used: &Used, messages: u64) -> Result<Outcome> {
    let said =
        || used.stderr.lines().chain(used.stdout.lines()).rev().take(3).collect::<Vec<_>>().join(" / ");
    let line = used.stdout.lines().rfind(|line| line.contains(" msgs/s and ")).unwrap_or_default();
    let (Some(delivered), Some(failed), Some(rate)) = (delivered(line), failed(line), rate(line)) else {
        return Err(format!("the program printed no result: {}", said()).into());
    };
    if !used.success || delivered != messages || failed != 0 {
        return Err(format!("{delivered} of {messages} messages were delivered: {}", said()).into());
    }
    Ok(Outcome {
        rate,
        line: line.to_owned(),
        nanoseconds: (used.user + used.system) * 1e9 / messages as f64,
        mib: used.max_resident as f64 / 1024.0,
    })
}

/// Returns the number before these words.
fn before(line: &str, words: &str) -> Option<f64> {
    line.split_once(words)?.0.rsplit([' ', '(']).next()?.parse().ok()
}

fn rate(line: &str) -> Option<f64> {
    before(line, " msgs/s")
}

/// The original prints the produced and the delivered messages, Ottla's program only the delivered ones.
fn delivered(line: &str) -> Option<u64> {
    before(line, " delivered").or_else(|| before(line, " messages and ")).map(|it| it as u64)
}

fn failed(line: &str) -> Option<u64> {
    before(line, " failed)").or_else(|| before(line, " messages failed")).map(|it| it as u64)
}

fn keep(options: &Options, runs: &[Value]) -> Result<()> {
    let (commit, changed) = machine::commit();
    let file = json!({
        "date": date_of_now()?, "commit": commit, "changed_since": changed, "machine": machine::describe(),
        "replicas": options.replicas, "runs": runs,
    });
    let path = folder().join("runs/rdkafka-performance");
    fs::create_dir_all(&path)?;
    // One file per commit; a complete run overwrites a partial one.
    Ok(fs::write(path.join(format!("{commit}.json")), format!("{file:#}\n"))?)
}

const BEGIN: &str = "<!-- The table: written by `cargo xtask bench rdkafka-performance`. -->";
const END: &str = "<!-- The end of the table. -->";

/// Puts the newest runs into the page.
fn report() -> Result<()> {
    let newest = fs::read_dir(folder().join("runs/rdkafka-performance"))
        .map_err(|_| "nothing was measured yet")?
        .flatten()
        .filter_map(|entry| fs::read_to_string(entry.path()).ok())
        .filter_map(|text| serde_json::from_str::<Value>(&text).ok())
        .max_by_key(|file| file["date"].as_str().unwrap_or_default().to_owned())
        .ok_or("nothing was measured yet")?;
    let page = folder().join("../docs/internals/rdkafka-performance.md");
    let text = fs::read_to_string(&page)?;
    let (before, rest) = text
        .split_once(BEGIN)
        .ok_or("docs/internals/rdkafka-performance.md has lost the beginning of its table")?;
    let (_, after) =
        rest.split_once(END).ok_or("docs/internals/rdkafka-performance.md has lost the end of its table")?;
    fs::write(&page, format!("{before}{BEGIN}\n\n{}\n{END}{after}", tables(&newest)))?;
    println!("\ndocs/internals/rdkafka-performance.md is written");
    Ok(())
}

fn tables(file: &Value) -> String {
    let field = |name: &str| file[name].as_str().unwrap_or_default().to_owned();
    let mut text = format!(
        "{}, commit {}{}, {} ({} cores), two brokers, {} of the topic's two partitions.\n\
         Medians of the runs; in parentheses the least and the most.\n",
        field("date"),
        field("commit"),
        if file["changed_since"] == true { " with changes since" } else { "" },
        file["machine"]["cpu"].as_str().unwrap_or_default(),
        file["machine"]["cores"],
        if file["replicas"] == 1 { "one replica" } else { "two replicas" },
    );
    let rows: Vec<&Value> = file["runs"].as_array().into_iter().flatten().collect();
    let mut counts: Vec<u64> = rows.iter().filter_map(|row| row["messages"].as_u64()).collect();
    counts.sort_unstable();
    counts.dedup();
    for command in &COMMANDS {
        for &messages in &counts {
            let of = |program: &str| -> Vec<&Value> {
                let here = |row: &&&Value| {
                    row["command"] == command.name && row["messages"] == messages && row["program"] == program
                };
                rows.iter().filter(here).copied().collect()
            };
            let table: Vec<String> = PROGRAMS
                .iter()
                .filter(|program| !of(program.name).is_empty())
                .map(|program| line(program, &of(program.name), &of("original")))
                .collect();
            if !table.is_empty() {
                text += &format!(
                    "\n### {}, {} messages\n\n`rdkafka_performance {}`\n\n\
                     | program | messages/s | of the original's | CPU ns per message | of the original's | peak MiB | runs | load up to |\n\
                     |---|---:|---:|---:|---:|---:|---:|---:|\n{}\n",
                    command.name,
                    grouped(messages as f64),
                    command.text().replace("500000", &messages.to_string()),
                    table.join("\n")
                );
            }
        }
    }
    text
}

fn line(program: &Program, rows: &[&Value], original: &[&Value]) -> String {
    let share = |figure| match (median(rows, figure), median(original, figure)) {
        (Some(ours), Some(theirs)) => format!("{:.2}", ours / theirs),
        _ => "-".to_owned(),
    };
    let failed = rows.iter().filter(|row| !row["failed"].is_null()).count();
    let runs = if failed == 0 { rows.len().to_string() } else { format!("{}, {failed} failed", rows.len()) };
    let load = rows.iter().filter_map(|row| row["load"].as_f64()).fold(0.0, f64::max);
    format!(
        "| {} | {} | {} | {} | {} | {} | {runs} | {load} |",
        program.what,
        spread(rows, "messages_per_second"),
        share("messages_per_second"),
        spread(rows, "cpu_ns_per_message"),
        share("cpu_ns_per_message"),
        spread(rows, "max_resident_mib"),
    )
}

fn sorted(rows: &[&Value], figure: &str) -> Vec<f64> {
    let mut figures: Vec<f64> = rows.iter().filter_map(|row| row[figure].as_f64()).collect();
    figures.sort_by(f64::total_cmp);
    figures
}

fn median(rows: &[&Value], figure: &str) -> Option<f64> {
    let figures = sorted(rows, figure);
    let middle = figures.len() / 2;
    let median = *figures.get(middle)?;
    Some(if figures.len() % 2 == 1 { median } else { f64::midpoint(figures[middle - 1], median) })
}

fn spread(rows: &[&Value], figure: &str) -> String {
    let figures = sorted(rows, figure);
    match (median(rows, figure), &figures[..]) {
        (Some(median), [least, .., most]) => {
            format!("{} ({} to {})", grouped(median), grouped(*least), grouped(*most))
        }
        (Some(only), _) => grouped(only),
        (None, _) => "-".to_owned(),
    }
}

/// Formats a number without fraction, with commas between groups of thousands.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "% 500000 messages and 50000000 bytes sent in 587ms: 851531 msgs/s and 85.15 Mb/s, \
                        0 messages failed, no compression";
    const THEIRS: &str = "% 500000 messages produced (50000000 bytes), 499990 delivered (offset 0, 10 failed) in 587ms: \
                          851514 msgs/s and 85.15 MB/s, 3 produce failures, 0 in queue, gzip compression";

    #[test]
    fn result_lines_of_both_programs_are_parsed() {
        assert_eq!((delivered(OURS), failed(OURS), rate(OURS)), (Some(500_000), Some(0), Some(851_531.0)));
        assert_eq!(
            (delivered(THEIRS), failed(THEIRS), rate(THEIRS)),
            (Some(499_990), Some(10), Some(851_514.0))
        );
        assert_eq!(rate("% 500000 messages produced"), None);
    }

    #[test]
    fn run_that_lost_messages_is_rejected() {
        let used = |stdout: &str, success| Used {
            stdout: stdout.to_owned(),
            stderr: String::new(),
            success,
            user: 0.1,
            system: 0.1,
            max_resident: 2048,
        };
        let good = outcome(&used(OURS, true), 500_000).unwrap();
        assert_eq!((good.rate, good.nanoseconds, good.mib), (851_531.0, 400.0, 2.0));
        assert!(outcome(&used(THEIRS, true), 500_000).is_err());
        assert!(outcome(&used(OURS, false), 500_000).is_err());
        assert!(outcome(&used("", true), 500_000).is_err());
    }

    #[test]
    fn table_has_a_row_per_program_with_its_ratio() {
        let run = |program: &str, rate: f64| {
            json!({"command": "gzip", "messages": 5_000_000, "program": program, "load": 0.5,
                "messages_per_second": rate, "cpu_ns_per_message": 100.0, "max_resident_mib": 20.0})
        };
        let runs = [run("ottla", 3e6), run("ottla", 1e6), run("ottla", 2e6), run("original", 1e6)];
        let text = tables(&json!({"runs": runs, "replicas": 2}));
        assert!(text.contains("### gzip, 5,000,000 messages"), "{text}");
        assert!(
            text.contains("| Ottla | 2,000,000 (1,000,000 to 3,000,000) | 2.00 | 100 (100 to 100) | 1.00 |"),
            "{text}"
        );
        assert!(text.contains("| librdkafka's own | 1,000,000 | 1.00 |"), "{text}");
        assert!(!text.contains("snappy"), "{text}");
    }
}
