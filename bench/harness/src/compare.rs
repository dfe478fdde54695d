//! `cargo xtask bench compare`: measures this tree and an earlier commit with the same work.
//!
//! Every run of a case is a pair, one process of each commit in random order, so that a change of the machine's pace meets
//! both. The table shows the median CPU time of each, the median ratio of the pairs, and the instructions that valgrind
//! counts, which hardly depend on the machine's load.

use std::process::Command;

use crate::{
    Result,
    case::{self, Case},
    machine,
    peer::{self, PEERS, Peer},
    server::{self, Server},
    tree::Tree,
};

const HELP: &str = "\
cargo xtask bench compare COMMIT [OPTIONS]

  --only TEXT,...     cases whose name contains one of these (default: 100 bytes without compression, Rust and C)
  --runs N            pairs of runs per case, in random order (default 9)
  --scale FACTOR      multiply the number of messages by this factor (default 1)
  --no-build          do not build again
  --no-time           count instructions only; needs valgrind and no idle machine
  --no-instructions   measure CPU time only

Builds COMMIT in a copy below bench/target/compare/, runs the peers of Ottla from both trees, and prints a table.
";

/// The default cases, without `--only`.
const CASES: [&str; 8] = [
    "produce-100-none-acks1-discard",
    "consume-100-none-embedded",
    "c-produce",
    "c-produce-batch",
    "c-produce-4-threads",
    "c-consume-callback",
    "c-consume-batch",
    "c-consume-poll",
];

/// The numbers of messages under valgrind. The difference of two runs excludes the start and the end of the process; the
/// smaller one is past the records that wait for the first metadata, whose number depends on timing.
const COUNTED: [u64; 2] = [400_000, 1_600_000];

struct Options {
    commit: String,
    only: Vec<String>,
    runs: usize,
    scale: f64,
    build: bool,
    time: bool,
    instructions: bool,
}

pub fn main(args: impl Iterator<Item = String>) -> Result<()> {
    let Some(options) = options(args)? else {
        print!("{HELP}");
        return Ok(());
    };
    let trees = [Tree::of_commit(&options.commit)?, Tree::here()];
    if options.build {
        server::build()?;
        peer::build(&[])?;
        trees.iter().try_for_each(Tree::build)?;
    }
    println!(
        "| case | CPU per message: {} | now | ratio, median (range) | instructions per message: {0} | now |",
        options.commit
    );
    println!("|---|---:|---:|---:|---:|---:|");
    for case in options.cases() {
        let peer = measured(&case)?;
        let mut server = None;
        Server::prepare(&mut server, &case)?;
        let server = server.ok_or("no server")?;
        server.fill(&case)?;
        let times =
            if options.time { times(peer, &case, &server, &trees, options.runs)? } else { Vec::new() };
        let counts = if options.instructions { counts(peer, &case, &server, &trees)? } else { None };
        println!("{}", row(&case.name, &times, counts));
        server.empty(&case)?;
    }
    println!("\nload average at the end: {}", machine::load());
    Ok(())
}

fn options(mut args: impl Iterator<Item = String>) -> Result<Option<Options>> {
    let mut options = Options {
        commit: String::new(),
        only: Vec::new(),
        runs: 9,
        scale: 1.0,
        build: true,
        time: true,
        instructions: true,
    };
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a value"));
        match arg.as_str() {
            "--only" => options.only = value()?.split(',').map(str::to_owned).collect(),
            "--runs" => options.runs = value()?.parse()?,
            "--scale" => options.scale = value()?.parse()?,
            "--no-build" => options.build = false,
            "--no-time" => options.time = false,
            "--no-instructions" => options.instructions = false,
            "--help" | "-h" => return Ok(None),
            other if other.starts_with('-') || !options.commit.is_empty() => {
                return Err(format!("unknown argument `{other}`\n\n{HELP}").into());
            }
            commit => options.commit = machine::abbreviated(commit)?,
        }
    }
    if options.commit.is_empty() {
        Err(format!("a commit is missing\n\n{HELP}").into())
    } else {
        Ok(Some(options))
    }
}

impl Options {
    fn cases(&self) -> Vec<Case> {
        let mut cases = case::all();
        cases.retain(|case| match self.only.is_empty() {
            true => CASES.contains(&case.name.as_str()),
            false => self.only.iter().any(|text| case.name.contains(text)),
        });
        for case in &mut cases {
            case.messages = ((case.messages as f64 * self.scale) as u64).max(COUNTED[1]);
        }
        cases
    }
}

/// Returns Ottla's peer for the case.
fn measured(case: &Case) -> Result<&'static Peer> {
    let name = if case.calls.is_some() { "ottla-c" } else { "ottla" };
    PEERS.iter().find(|peer| peer.name == name).ok_or_else(|| format!("no peer {name}").into())
}

fn program(case: &Case, tree: &Tree) -> std::path::PathBuf {
    if case.calls.is_some() { tree.c_program() } else { tree.rust_program() }
}

/// Measures nanoseconds of CPU per message, in pairs.
fn times(peer: &Peer, case: &Case, server: &Server, trees: &[Tree; 2], runs: usize) -> Result<Vec<[f64; 2]>> {
    let mut pairs = Vec::new();
    for _ in 0..runs {
        let mut pair = [0.0; 2];
        for which in if fastrand::bool() { [0, 1] } else { [1, 0] } {
            let program = Command::new(program(case, &trees[which]));
            let topic = server.topic(case)?;
            pair[which] = peer.run_program(program, case, server, &topic)?.0.cpu_nanoseconds_per_message;
        }
        pairs.push(pair);
    }
    Ok(pairs)
}

/// Measures the instructions per message of each tree; `None` without valgrind.
fn counts(peer: &Peer, case: &Case, server: &Server, trees: &[Tree; 2]) -> Result<Option<[f64; 2]>> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return Ok(None);
    }
    let mut counts = [0.0; 2];
    for (which, tree) in trees.iter().enumerate() {
        let mut totals = [0.0; 2];
        for (total, messages) in totals.iter_mut().zip(COUNTED) {
            let mut program_under = Command::new("valgrind");
            program_under
                .args(["--tool=callgrind", "--fair-sched=yes", "--callgrind-out-file=/dev/null"])
                .arg(program(case, tree));
            let case = Case { messages, ..case.clone() };
            let topic = server.topic(&case)?;
            let (_, used) = peer.run_program(program_under, &case, server, &topic)?;
            *total = collected(&used.stderr).ok_or("callgrind printed no count")?;
        }
        counts[which] = (totals[1] - totals[0]) / (COUNTED[1] - COUNTED[0]) as f64;
    }
    Ok(Some(counts))
}

/// Returns the number of instructions in the output of callgrind.
fn collected(stderr: &str) -> Option<f64> {
    let line = stderr.lines().find(|line| line.contains("Collected :"))?;
    line.rsplit(':').next()?.trim().parse().ok()
}

fn row(name: &str, times: &[[f64; 2]], counts: Option<[f64; 2]>) -> String {
    let sorted = |figure: fn(&[f64; 2]) -> f64| {
        let mut figures: Vec<f64> = times.iter().map(figure).collect();
        figures.sort_by(f64::total_cmp);
        figures
    };
    let (base, now, ratios) =
        (sorted(|pair| pair[0]), sorted(|pair| pair[1]), sorted(|pair| pair[1] / pair[0]));
    let median = |figures: &[f64]| figures.get(figures.len() / 2).copied();
    let shown = |figures: &[f64]| median(figures).map_or("-".to_owned(), |figure| format!("{figure:.1} ns"));
    let ratio = match (median(&ratios), &ratios[..]) {
        (Some(median), [least, .., most]) => format!("{median:.3} ({least:.2}..{most:.2})"),
        (Some(median), _) => format!("{median:.3}"),
        (None, _) => "-".to_owned(),
    };
    let count = |which: usize| counts.map_or("-".to_owned(), |counts| format!("{:.1}", counts[which]));
    format!("| {name} | {} | {} | {ratio} | {} | {} |", shown(&base), shown(&now), count(0), count(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_shows_medians_and_the_range_of_the_ratios() {
        let times = [[100.0, 90.0], [110.0, 121.0], [100.0, 100.0]];
        assert_eq!(
            row("c-produce", &times, Some([594.25, 579.0])),
            "| c-produce | 100.0 ns | 100.0 ns | 1.000 (0.90..1.10) | 594.2 | 579.0 |"
        );
        assert_eq!(row("latency", &[], None), "| latency | - | - | - | - | - |");
    }

    #[test]
    fn the_count_is_found_in_the_output_of_callgrind() {
        let text = "==7== Events    : Ir\n==7== Collected : 123456\n==7==\n";
        assert_eq!(collected(text), Some(123_456.0));
        assert_eq!(collected("==7== nothing"), None);
    }
}
