//! `cargo xtask abi --generate`: programs that are made from seeds run with Ottla's C library and with the original, and their
//! transcripts are compared.
//!
//! ```text
//! crates/capi/abi/functions.txt ──► table ──► builder, clients, sequences, generator ──► program (text)
//!                                                                                         │ tests/abi/generate/*.c
//!                                                             the original ◄── runner ──► Ottla
//!                                                                  └────── compare ──────┘
//!                           docs/guide/differences.md, tests/abi/generate/differences.txt  │ without a row: shrink, print as C
//! ```
//!
//! [`table`] gives each argument a code, [`values`] has the values of arguments, [`kinds`] the kinds of handles. [`mod@print`] writes
//! a program as C. A finding is a difference that three more runs confirm; what does not repeat is counted.

mod builder;
mod clients;
mod compare;
mod events;
mod generator;
mod kinds;
mod print;
mod program;
mod random;
mod rare;
mod report;
mod results;
mod runner;
mod sequences;
mod shrink;
mod table;
mod values;

use std::{
    collections::BTreeSet,
    fs,
    path::PathBuf,
    process::ExitCode,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use clap::Parser as _;

use self::{
    builder::Builder,
    compare::{Outcome, Rows},
    program::Program,
    report::{Finding, Report},
    runner::{Compiled, Pace},
    shrink::Pair,
    table::Table,
};
use crate::{
    Result, abi,
    embedded::Embedded,
    library,
    shell::root,
    side_by_side::Original,
    test::{Session, target_folder},
};

/// Runs programs that are made from seeds with Ottla's C library and with the original librdkafka 2.16.0, and compares what they
/// print. A difference without a row in docs/guide/differences.md is shrunk and printed as C.
#[derive(Debug, clap::Parser)]
#[command(name = "cargo xtask abi --generate", disable_help_subcommand = true)]
struct Options {
    /// Only the program of this seed; prints both transcripts
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,
    /// The program in this file instead of one from a seed
    #[arg(long, value_name = "FILE", conflicts_with = "seed")]
    program: Option<PathBuf>,
    /// Print the program of `--seed` or `--program` as C, and run nothing
    #[arg(long)]
    print: bool,
    /// Fresh seeds for this time
    #[arg(long, value_name = "MINUTES")]
    minutes: Option<u64>,
    /// The number of seeds, unless `--minutes` is given
    #[arg(long, value_name = "NUMBER", default_value_t = 2000)]
    programs: u64,
    /// These seeds
    #[arg(long, value_name = "SEED", value_delimiter = ',', conflicts_with_all = ["minutes", "write"])]
    seeds: Vec<u64>,
    /// The first seed
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    first: u64,
    /// Programs at a time; most of them wait
    #[arg(long, value_name = "NUMBER", default_value_t = 40)]
    jobs: usize,
    /// Name the functions that were not reached
    #[arg(long)]
    coverage: bool,
    /// Name the differences that did not repeat: what depends on the speed, and what a busy machine shows
    #[arg(long)]
    unsteady: bool,
    /// Do not start an embedded broker, which operations of the administration need
    #[arg(long)]
    without_broker: bool,
    /// An embedded broker that runs already, with `--super-user ANONYMOUS`
    #[arg(long, value_name = "SERVERS", conflicts_with = "without_broker")]
    broker: Option<String>,
    /// Write the seeds on which the libraries agree into tests/abi/generate/agreed.txt, which CI runs
    #[arg(long)]
    write: bool,
    /// Write the parameters for which the original survives NULL into tests/abi/generate/nulls.txt
    #[arg(long)]
    write_nulls: bool,
    /// Write the number of programs that met each row into docs/guide/differences.md
    #[arg(long, conflicts_with_all = ["write", "write_nulls"])]
    write_counts: bool,
    /// Do not shrink what is found
    #[arg(long)]
    whole: bool,
    /// The original library, instead of fetching it with pip
    #[arg(long, value_name = "LIBRARY")]
    original: Option<PathBuf>,
    /// Another build of Ottla's library
    #[arg(long, value_name = "LIBRARY")]
    ottla: Option<PathBuf>,
    /// The profile that Ottla is built with: dev or release
    #[arg(long, value_name = "NAME", default_value = "dev")]
    profile: String,
}

/// The seeds of the programs that CI runs: the libraries agreed on them several times, also while the machine was busy.
const AGREED: &str = "tests/abi/generate/agreed.txt";
/// How often a program has to end the same before its seed is one of them.
const AGREEMENTS: usize = 3;

/// All that a run needs.
struct Setting {
    table: Table,
    rows: Rows,
    compiled: Compiled,
    original: PathBuf,
    ottla: PathBuf,
    /// The servers of the embedded broker.
    servers: Option<String>,
    _broker: Option<Embedded>,
}

impl Setting {
    fn new(options: &Options) -> Result<Self> {
        let table = Table::read()?;
        let original = Original::fetch(options.original.clone()).c?;
        let ottla = match &options.ottla {
            Some(library) => library.clone(),
            None => abi::installed(&options.profile)?.join("lib/librdkafka.so.1"),
        };
        let folder = target_folder()?.join("generate");
        let compiled = Compiled::compile(&folder, &root().join("crates/capi/include"), &table.text())?;
        let broker = if options.without_broker || options.broker.is_some() {
            None
        } else {
            Some(Embedded::start(
                &library::ottla(&options.profile)?,
                &folder,
                &["--partitions", "2", "--super-user", "ANONYMOUS"],
            )?)
        };
        let started = broker.as_ref().map(|broker| broker.bootstrap.clone());
        let servers = options.broker.clone().or(started);
        let rows = Rows::read()?;
        Ok(Self { table, rows, compiled, original, ottla, servers, _broker: broker })
    }

    fn pair(&self) -> Result<Pair> {
        let servers = self.servers.as_deref();
        Ok(Pair {
            original: self.compiled.start(&self.original, servers)?,
            ottla: self.compiled.start(&self.ottla, servers)?,
        })
    }

    fn program(&self, seed: u64) -> Program {
        generator::program(&self.table, seed, self.servers.is_some())
    }
}

pub fn main(args: &[String]) -> Result<ExitCode> {
    let words = ["generate"].into_iter().chain(args.iter().map(String::as_str));
    let options = match Options::try_parse_from(words) {
        Ok(options) => options,
        Err(error) => {
            error.print()?;
            return Ok(if error.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS });
        }
    };
    let given = match (&options.seed, &options.program) {
        (Some(seed), _) => Some(generator::program(&Table::read()?, *seed, !options.without_broker)),
        (None, Some(file)) => Some(Program::parse(&fs::read_to_string(file)?)?),
        (None, None) => None,
    };
    if let (Some(program), true) = (&given, options.print) {
        print!("{}", print::as_c(&Table::read()?, program));
        return Ok(ExitCode::SUCCESS);
    }
    let setting = Setting::new(&options)?;
    if let Some(program) = given {
        return one(&setting, &program);
    }
    let first = match options.minutes {
        // Fresh ones: the time of day in milliseconds.
        Some(_) => std::time::UNIX_EPOCH.elapsed()?.as_millis() as u64,
        None => options.first,
    };
    let until = options.minutes.map(|minutes| Instant::now() + Duration::from_secs(minutes * 60));
    let count = if until.is_some() { u64::MAX } else { options.programs };
    let began = Instant::now();
    if options.write_nulls {
        write_nulls(&setting, options.jobs)?;
        return Ok(ExitCode::SUCCESS);
    }
    if options.write {
        return write_agreed(&setting, first, count, options.jobs);
    }
    let of = |at: u64| match usize::try_from(at) {
        Ok(at) if !options.seeds.is_empty() => options.seeds.get(at).copied(),
        _ => (at < count).then_some(first + at),
    };
    let seeds = Seeds { next: AtomicU64::new(0), of: &of, until };
    let report = hunt(&setting, &seeds, options.jobs, !options.whole)?;
    if options.unsteady {
        print!("{}", report.unsteady());
    }
    println!("{}", report.summary(&setting.table, options.coverage));
    let minutes = began.elapsed().as_secs_f64() / 60.0;
    println!("{:.0} programs per minute, from seed {first}", report.programs as f64 / minutes);
    if options.write_counts {
        let path = root().join(compare::PAGE);
        fs::write(&path, report.write_counts(&fs::read_to_string(&path)?)?)?;
    }
    Ok(if report.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs one program, and prints it with both transcripts.
fn one(setting: &Setting, program: &Program) -> Result<ExitCode> {
    let mut pair = setting.pair()?;
    println!("{}", program.text());
    for (library, transcript) in [
        ("the original", pair.original.run(program, Pace::Full)?),
        ("Ottla", pair.ottla.run(program, Pace::Full)?),
    ] {
        println!("---- {library}");
        for (stream, lines) in &transcript.streams {
            lines.iter().for_each(|line| println!("{stream}| {line}"));
        }
    }
    let (outcome, _) = pair.compare(program, Pace::Full)?;
    Ok(match outcome {
        Outcome::Differs(difference) => {
            println!("---- the first difference\n{}", difference.text());
            match setting.rows.permits(&difference, program) {
                Some(row) => println!("{row} permits it"),
                None => return Ok(ExitCode::FAILURE),
            }
            ExitCode::SUCCESS
        }
        Outcome::OriginalFails(ending) => {
            println!("---- the original ends with {ending}");
            ExitCode::SUCCESS
        }
        Outcome::Same => ExitCode::SUCCESS,
    })
}

/// The seeds of a run.
struct Seeds<'a> {
    next: AtomicU64,
    of: &'a (dyn Fn(u64) -> Option<u64> + Sync),
    until: Option<Instant>,
}

impl Seeds<'_> {
    fn next(&self) -> Option<u64> {
        let is_over = self.until.is_some_and(|until| Instant::now() >= until);
        (self.of)(self.next.fetch_add(1, Ordering::Relaxed)).filter(|_| !is_over)
    }
}

/// Does something with each seed, several at a time, each worker with processes of its own.
fn each_seed(
    setting: &Setting,
    seeds: &Seeds<'_>,
    jobs: usize,
    run: &(dyn Fn(&mut Pair, u64) -> Result<()> + Sync),
) -> Result<()> {
    let failure = Mutex::new(None);
    let work = || -> Result<()> {
        let mut pair = setting.pair()?;
        while let Some(seed) = seeds.next() {
            run(&mut pair, seed)?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                if let Err(error) = work() {
                    let text = error.to_string();
                    failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(text);
                }
            });
        }
    });
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(failure) => Err(failure.into()),
        None => Ok(()),
    }
}

/// Runs the programs of seeds.
fn hunt(setting: &Setting, seeds: &Seeds<'_>, jobs: usize, shrinks: bool) -> Result<Report> {
    let report = Mutex::new(Report { rows: setting.rows.unused(), ..Report::default() });
    each_seed(setting, seeds, jobs, &|pair, seed| try_seed(setting, pair, seed, &report, shrinks))?;
    Ok(report.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Writes the seeds on which both libraries agree each time.
fn write_agreed(setting: &Setting, first: u64, count: u64, jobs: usize) -> Result<ExitCode> {
    let agreed = Mutex::new(BTreeSet::new());
    let seeds = Seeds { next: AtomicU64::new(0), of: &|at| (at < count).then_some(first + at), until: None };
    each_seed(setting, &seeds, jobs, &|pair, seed| {
        let program = setting.program(seed);
        for _ in 0..AGREEMENTS {
            if pair.compare(&program, Pace::Quick)?.0 != Outcome::Same {
                return Ok(());
            }
        }
        agreed.lock().unwrap_or_else(PoisonError::into_inner).insert(seed);
        Ok(())
    })?;
    let agreed = agreed.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut text = String::new();
    for line in agreed.iter().collect::<Vec<_>>().chunks(20) {
        text += &line.iter().map(|seed| format!("{seed:5}")).collect::<Vec<_>>().join(" ");
        text.push('\n');
    }
    fs::write(root().join(AGREED), text)?;
    println!("{} of {count} seeds", agreed.len());
    Ok(ExitCode::SUCCESS)
}

/// Writes the parameters for which the original survives NULL. Programs use no other.
fn write_nulls(setting: &Setting, jobs: usize) -> Result<()> {
    let mut pairs = Vec::new();
    for function in setting.table.called() {
        // Most functions use the client sooner or later.
        let without_client =
            ["rd_kafka_mem_", "rd_kafka_log_"].iter().any(|it| function.name.starts_with(it));
        let handles = function.parameters.iter().filter(|parameter| {
            parameter.code.starts_with('h') && (without_client || parameter.kind() != Some("client"))
        });
        pairs.extend(handles.map(|parameter| (function.name.clone(), parameter.name.clone())));
    }
    let survived = Mutex::new(BTreeSet::new());
    let of = |at: u64| (at < pairs.len() as u64).then_some(at);
    let seeds = Seeds { next: AtomicU64::new(0), of: &of, until: None };
    each_seed(setting, &seeds, jobs, &|pair, at| {
        let Some((function, parameter)) = usize::try_from(at).ok().and_then(|at| pairs.get(at)) else {
            return Ok(());
        };
        let mut builder = Builder::new(&setting.table, at, setting.servers.is_some());
        builder.odd = 0;
        builder.call_with(function, &[(parameter, "NULL")]);
        let transcript = pair.original.run(&builder.program, Pace::Quick)?;
        // The address of a part of NULL is not a handle.
        let is_getter = setting.table.functions[function].result.starts_with("get:");
        let is_called =
            transcript.calls().any(|(called, succeeded)| called == function && !(is_getter && succeeded));
        if is_called && transcript.ending().is_none() {
            let line = format!("{function} {parameter}\n");
            survived.lock().unwrap_or_else(PoisonError::into_inner).insert(line);
        }
        Ok(())
    })?;
    let lines: Vec<String> =
        survived.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().collect();
    fs::write(root().join(table::NULLS), lines.concat())?;
    println!("{} of {} parameters may be NULL", lines.len(), pairs.len());
    Ok(())
}

/// Runs the program of a seed. The first program with a difference of its class is shrunk and printed.
fn try_seed(
    setting: &Setting,
    pair: &mut Pair,
    seed: u64,
    report: &Mutex<Report>,
    shrinks: bool,
) -> Result<()> {
    let lock = || report.lock().unwrap_or_else(PoisonError::into_inner);
    let program = setting.program(seed);
    let began = Instant::now();
    let (outcome, transcripts) = pair.compare(&program, Pace::Quick)?;
    lock().count(&transcripts, began.elapsed());
    match outcome {
        Outcome::Same => lock().same += 1,
        Outcome::OriginalFails(ending) => {
            let step: Vec<&str> = ending.split(' ').filter(|word| word.parse::<u64>().is_err()).collect();
            *lock().original_fails.entry(step.join(" ")).or_default() += 1;
        }
        Outcome::Differs(difference) => {
            if let Some(row) = setting.rows.permits(&difference, &program) {
                *lock().rows.entry(row.to_owned()).or_default() += 1;
                return Ok(());
            }
            if let Some(finding) = lock().findings.get_mut(&difference.class()) {
                finding.programs += 1;
                return Ok(());
            }
            let Some(difference) = pair.confirm(&program)? else {
                lock().unstable.push((seed, difference));
                return Ok(());
            };
            if let Some(row) = setting.rows.permits(&difference, &program) {
                *lock().rows.entry(row.to_owned()).or_default() += 1;
                return Ok(());
            }
            let finding =
                Finding { seed, difference: difference.clone(), program: program.clone(), programs: 1 };
            let is_first = {
                let mut report = lock();
                let known = report.findings.get_mut(&difference.class()).map(|known| known.programs += 1);
                if known.is_none() {
                    report.findings.insert(difference.class(), finding);
                }
                known.is_none()
            };
            if is_first && shrinks {
                let shortest = pair.shrink(&program, &difference)?;
                let text = shortest.text();
                println!("FOUND by seed {seed}\n{}{text}", difference.text());
                println!("{}", print::as_c(&setting.table, &shortest));
                if let Some(finding) = lock().findings.get_mut(&difference.class()) {
                    finding.program = shortest;
                }
            }
        }
    }
    Ok(())
}

/// The part that CI runs: programs on which the libraries agreed, each of which is a test.
pub fn step(session: &Session) -> Result<()> {
    let options = Options::parse_from(["generate"]);
    let setting = match Setting::new(&options) {
        Ok(setting) => setting,
        Err(error) => {
            session.not_checked(&format!("generated programs with both libraries: {error}"));
            return Ok(());
        }
    };
    let text = fs::read_to_string(root().join(AGREED))?;
    let agreed = text.split_whitespace().map(str::parse).collect::<std::result::Result<Vec<u64>, _>>()?;
    let of = |at: u64| usize::try_from(at).ok().and_then(|at| agreed.get(at)).copied();
    let seeds = Seeds { next: AtomicU64::new(0), of: &of, until: None };
    let report = hunt(&setting, &seeds, options.jobs, true)?;
    println!("    {}", report.summary(&setting.table, false).replace('\n', "\n    "));
    let failed: usize = report.findings.values().map(|finding| finding.programs).sum();
    for _ in failed..report.programs {
        session.pass("a generated program does the same with both libraries");
    }
    for finding in report.findings.values() {
        let (seed, text) = (finding.seed, finding.difference.text());
        println!("{}", print::as_c(&setting.table, &finding.program));
        session.fail(&format!("generated program: cargo xtask abi --generate --seed {seed}\n{text}"));
    }
    Ok(())
}
