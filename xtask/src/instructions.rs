//! `cargo xtask instructions`: the instructions that a message costs, counted by valgrind and compared with
//! `bench/instructions.json`. Unlike CPU time they are nearly the same on a busy machine.
//!
//! Each case runs its program twice under callgrind, with different numbers of messages, and divides the difference: starting
//! and connecting do not count. The embedded brokers run outside of valgrind.
//!
//! What would make the counts differ:
//!
//! - Programs run much slower under valgrind, and a linger would end their batches with fewer messages, so it is long ([`LINGER`]).
//! - How far a producer's application runs ahead of the thread that sends depends on the machine's load, and with it how much new
//!   memory batches take. The C library's allocator zeroes it a byte at a time, up to 110 instructions of a message, unless it
//!   comes from the kernel ([`NEW_MEMORY`]).
//! - What is left depends on how valgrind's turns of the threads fall: compare several runs.
//!
//! The cost of a batch is counted without threads ([`batch`]).

mod batch;

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    process::{Command, ExitCode},
    time::Duration,
};

use self::batch::What;
use crate::{
    Result, abi,
    embedded::Embedded,
    install, library, peer,
    shell::{self, root},
    test::{Session, target_folder},
};

/// Counts the instructions per message of producing, consuming and transactions, in Rust and in C, and the instructions and
/// allocations of a batch, with valgrind. Fails if a case takes over 3 % more than bench/instructions.json says.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// The cases whose name contains the text.
    #[arg(long, default_value = "", value_name = "TEXT")]
    only: String,
    /// Write the counts to bench/instructions.json.
    #[arg(long)]
    write: bool,
}

/// The counts to compare with, per case.
const EXPECTED: &str = "bench/instructions.json";

/// A count may be this much higher than expected.
const TOLERANCE: f64 = 0.03;

/// The number of times that a count may be too high, before the case fails.
const ATTEMPTS: u32 = 5;

/// The numbers of messages of the two runs.
const FEW: u64 = 50_000;
const MANY: u64 = 150_000;

const A_WHILE: Duration = Duration::from_secs(300);

/// What is counted.
struct Case {
    name: &'static str,
    program: Program,
}

enum Program {
    /// `ottla producer-perf-test`.
    Produce,
    /// `ottla consumer-perf-test`.
    Consume,
    /// The program in C with these arguments.
    C(&'static [&'static str]),
    /// The core's example `batch_cost`.
    Batch(What),
}

const CASES: [Case; 10] = [
    Case { name: "batch-application", program: Program::Batch(What::Application) },
    Case { name: "batch-io", program: Program::Batch(What::Io) },
    Case { name: "batch-reports", program: Program::Batch(What::Reports) },
    Case { name: "batch-allocations", program: Program::Batch(What::Allocations) },
    Case { name: "rust-produce", program: Program::Produce },
    Case { name: "rust-consume", program: Program::Consume },
    Case {
        name: "c-produce",
        program: Program::C(&["produce", "--mode", "single", "--acks", "1", "--warm", "yes"]),
    },
    Case { name: "c-poll", program: Program::C(&["consume", "--mode", "poll"]) },
    Case { name: "c-poll-group", program: Program::C(&["consume", "--mode", "member-poll"]) },
    Case {
        name: "c-transactions-of-1000",
        program: Program::C(&["produce", "--mode", "transactions", "--transaction", "1000", "--acks", "all"]),
    },
];

pub fn main(options: &Options) -> Result<ExitCode> {
    let mut expected = expected()?;
    let cases: Vec<_> = CASES.iter().filter(|case| case.name.contains(&options.only)).collect();
    let counter = Counter::start(&cases)?;
    let mut is_worse = false;
    for case in cases {
        if options.write {
            // The fetches of a consumer, for example, differ between runs.
            let count = counter.count(case)?.max(counter.count(case)?).max(counter.count(case)?);
            println!("    {:29} {count:6} {}", case.name, case.unit());
            expected.insert(case.name.to_owned(), count);
        } else {
            is_worse |= !counter.judge(case, &expected)?;
        }
    }
    if options.write {
        fs::write(root().join(EXPECTED), serde_json::to_string_pretty(&expected)? + "\n")?;
    }
    Ok(if is_worse { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Counts every case as a test of `session`.
pub fn step(session: &Session) -> Result<()> {
    let (expected, counter) = (expected()?, Counter::start(&CASES.iter().collect::<Vec<_>>())?);
    session.side_by_side(&CASES, |session, case| {
        let what = format!("{}: {}", case.name, case.unit());
        if counter.judge(case, &expected)? {
            session.pass(&what);
        } else {
            session.fail(&what);
        }
        Ok(())
    });
    Ok(())
}

fn expected() -> Result<BTreeMap<String, u64>> {
    let text = fs::read_to_string(root().join(EXPECTED)).map_err(|error| format!("{EXPECTED}: {error}"))?;
    Ok(serde_json::from_str(&text)?)
}

impl Case {
    const fn unit(&self) -> &'static str {
        match self.program {
            Program::Batch(what) => what.unit(),
            Program::Produce | Program::Consume | Program::C(_) => "instructions per message",
        }
    }

    const fn needs_brokers(&self) -> bool {
        !matches!(self.program, Program::Batch(..))
    }
}

/// What the cases need.
struct Counter {
    /// The programs, and the brokers that they use.
    connected: Option<(Programs, Brokers)>,
    /// The core's example.
    batch_cost: Option<PathBuf>,
}

impl Counter {
    fn start(cases: &[&Case]) -> Result<Self> {
        install::debian("valgrind", "valgrind")?;
        fs::create_dir_all(target_folder()?.join("instructions"))?;
        let mut counter = Self { connected: None, batch_cost: None };
        if cases.iter().any(|case| !case.needs_brokers()) {
            counter.batch_cost = Some(batch::build()?);
        }
        if cases.iter().any(|case| case.needs_brokers()) {
            let programs = Programs::build()?;
            let brokers = Brokers::start(&programs)?;
            counter.connected = Some((programs, brokers));
        }
        Ok(counter)
    }

    /// Returns the instructions of a message, or what else the case counts.
    fn count(&self, case: &Case) -> Result<u64> {
        if let (Program::Batch(what), Some(program)) = (&case.program, &self.batch_cost) {
            return batch::count(program, *what);
        }
        let (programs, brokers) = self.connected.as_ref().ok_or("the brokers are not started")?;
        let [few, many] = [FEW, MANY].map(|messages| brokers.count(programs, case, messages));
        Ok(many?.saturating_sub(few?) / (MANY - FEW))
    }

    /// Counts a case and prints the result. Returns false if it is too high, also when it is counted again: threads may have run
    /// in an unusual order.
    fn judge(&self, case: &Case, expected: &BTreeMap<String, u64>) -> Result<bool> {
        let expected = *expected.get(case.name).ok_or_else(|| format!("{EXPECTED} has no {}", case.name))?;
        for _ in 0..ATTEMPTS {
            let count = self.count(case)?;
            let change = count as f64 / expected as f64 - 1.0;
            let name = case.name;
            let unit = case.unit();
            println!("    {name:29} {count:6} {unit}, expected {expected}: {:+.1} %", change * 100.0);
            if change <= TOLERANCE {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The programs that are counted, and the folder for their files.
struct Programs {
    ottla: PathBuf,
    c: PathBuf,
    library: PathBuf,
    folder: PathBuf,
}

impl Programs {
    fn build() -> Result<Self> {
        let (prefix, ottla) = (abi::installed("release")?, library::ottla("release")?);
        let folder = target_folder()?.join("instructions");
        let (c, library) = (folder.join("peer"), prefix.join("lib"));
        peer::compile(&c, &library, &[])?;
        // The same payload for all messages, in a file of many.
        fs::write(folder.join("payloads"), [b'x'; 100_000])?;
        Ok(Self { ottla, c, library, folder })
    }

    fn ottla(&self) -> Command {
        let mut command = Command::new(&self.ottla);
        command.current_dir(&self.folder);
        command
    }
}

/// The embedded brokers, with a topic of [`MANY`] messages for the consumers.
struct Brokers {
    embedded: Embedded,
}

impl Brokers {
    fn start(programs: &Programs) -> Result<Self> {
        let embedded = Embedded::start(&programs.ottla, &programs.folder, &["--partitions", "1"])?;
        let brokers = Self { embedded };
        shell::read(&mut brokers.produce(programs, "full", MANY))?;
        Ok(brokers)
    }

    fn produce(&self, programs: &Programs, topic: &str, messages: u64) -> Command {
        let mut command = programs.ottla();
        command.args([
            "producer-perf-test",
            "-b",
            &self.embedded.bootstrap,
            "--topic",
            topic,
            "--record-size",
            "100",
        ]);
        command.args(["--num-records", &messages.to_string(), "-X", LINGER, "-X", ROOM]);
        command
    }

    fn command(&self, programs: &Programs, case: &Case, messages: u64) -> Result<Command> {
        let topic = format!("{}-{messages}", case.name);
        Ok(match case.program {
            Program::Batch(..) => return Err("a batch is counted without brokers".into()),
            Program::Produce => self.produce(programs, &topic, messages),
            Program::Consume => {
                let mut command = programs.ottla();
                command.args(["consumer-perf-test", "-b", &self.embedded.bootstrap, "--topic", "full"]);
                command.args(["--num-records", &messages.to_string()]);
                command
            }
            Program::C(arguments) => {
                let mut command = Command::new(&programs.c);
                let topic = if arguments[0] == "consume" { "full" } else { &topic };
                command.args(arguments).current_dir(&programs.folder);
                command.env("LD_LIBRARY_PATH", &programs.library);
                for (name, value) in [
                    ("bootstrap", self.embedded.bootstrap.as_str()),
                    ("topic", topic),
                    ("messages", &messages.to_string()),
                    ("size", "100"),
                    ("partitions", "1"),
                    ("codec", "none"),
                    ("payloads", "payloads"),
                    ("set", LINGER),
                    ("set", ROOM),
                ] {
                    command.arg(format!("--{name}")).arg(value);
                }
                command
            }
        })
    }

    /// Runs a case under callgrind, and returns the number of instructions.
    fn count(&self, programs: &Programs, case: &Case, messages: u64) -> Result<u64> {
        let command = self.command(programs, case, messages)?;
        let mut counted = Command::new("valgrind");
        counted.args(["--tool=callgrind", "--callgrind-out-file=counts"]).arg(command.get_program());
        counted.args(command.get_args()).current_dir(&programs.folder).env("GLIBC_TUNABLES", NEW_MEMORY);
        counted.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let done = shell::run(&mut counted, A_WHILE, false)?;
        let collected = done.output.lines().find_map(|line| line.split_once("Collected :"));
        let count = collected.and_then(|(_, count)| count.trim().parse().ok()).filter(|_| done.success);
        count.ok_or_else(|| {
            format!("{} of {messages} messages: {}\n{}", case.name, done.ending, done.output).into()
        })
    }
}

/// Chunks of batches come from the kernel, which has zeroed them.
const NEW_MEMORY: &str = "glibc.malloc.mmap_threshold=8192:glibc.malloc.mmap_max=1000000";

/// Longer than filling a batch takes under valgrind.
const LINGER: &str = "linger.ms=2000";

/// No call finds the queue full: how often it would try again depends on the machine's other load.
const ROOM: &str = "queue.buffering.max.messages=1000000";
