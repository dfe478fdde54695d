//! What a batch costs a producer, without threads, sockets and brokers: `crates/core/examples/batch_cost.rs` under callgrind, which
//! counts instructions only inside of the functions of one part of the work. The counts are the same in every run.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::{A_WHILE, Result};
use crate::{
    library,
    shell::{self, root},
    test::target_folder,
};

/// What is counted.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// The instructions of the application's thread, which appends the records.
    Application,
    /// The instructions of the I/O thread, which takes, sends and acknowledges the batch.
    Io,
    /// The instructions of a thread that reads the reports and the records in them.
    Reports,
    /// The calls of the allocator in all of them, per thousand batches. The scripted broker makes none per batch.
    Allocations,
}

/// The numbers of batches of the two runs.
const FEW: u64 = 2_000;
const MANY: u64 = 12_000;

/// The records of a batch.
const RECORDS: &str = "12";

/// The functions of the C library that allocate.
const ALLOCATORS: [&str; 5] = ["malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc"];

impl What {
    /// Returns the option that counts instructions in some functions only. Calls are counted everywhere.
    const fn functions(self) -> Option<&'static str> {
        match self {
            Self::Application => Some("--toggle-collect=*application_half*"),
            Self::Io => Some("--toggle-collect=*io_half*"),
            Self::Reports => Some("--toggle-collect=*reports_half*"),
            Self::Allocations => None,
        }
    }

    pub(super) const fn unit(self) -> &'static str {
        match self {
            Self::Application | Self::Io | Self::Reports => "instructions per batch",
            Self::Allocations => "allocations per 1,000 batches",
        }
    }
}

/// Builds the example, with the features of the other programs, so that the core is not compiled twice.
pub(super) fn build() -> Result<PathBuf> {
    let mut build = library::build_of("ottla-cli", "release");
    build.args(["--package", "ottla-core", "--example", "batch_cost"]);
    let done = shell::run(&mut build, A_WHILE * 8, true)?;
    if !done.success {
        return Err(format!("the example batch_cost can't be built ({})", done.ending).into());
    }
    Ok(target_folder()?.join("release/examples/batch_cost"))
}

/// Counts what a batch costs.
pub(super) fn count(program: &Path, what: What) -> Result<u64> {
    let [few, many] = [FEW, MANY].map(|batches| run(program, what, batches));
    let count = many?.saturating_sub(few?);
    Ok(match what {
        What::Application | What::Io | What::Reports => count / (MANY - FEW),
        What::Allocations => count * 1000 / (MANY - FEW),
    })
}

fn run(program: &Path, what: What, batches: u64) -> Result<u64> {
    let counts = target_folder()?.join("instructions").join(format!("batch-{what:?}-{batches}"));
    let mut counted = Command::new("valgrind");
    counted.args(["--tool=callgrind", "--compress-strings=no"]).current_dir(root());
    counted.args(what.functions()).arg(format!("--callgrind-out-file={}", counts.display()));
    counted.arg(program).args([&batches.to_string(), RECORDS]);
    let done = shell::run(&mut counted, A_WHILE, false)?;
    if !done.success {
        return Err(format!("batch_cost of {batches} batches: {}\n{}", done.ending, done.output).into());
    }
    let text = fs::read_to_string(&counts).map_err(|error| format!("{}: {error}", counts.display()))?;
    let count = match what {
        What::Application | What::Io | What::Reports => instructions(&text),
        What::Allocations => Some(allocations(&text)),
    };
    count
        .filter(|count| *count > 0)
        .ok_or_else(|| format!("{}: nothing was counted", counts.display()).into())
}

/// Returns the instructions of a profile.
fn instructions(profile: &str) -> Option<u64> {
    profile.lines().find_map(|line| line.strip_prefix("totals: "))?.trim().parse().ok()
}

/// Returns the calls of the allocator in a profile: `cfn=malloc`, then `calls=` with their number.
fn allocations(profile: &str) -> u64 {
    let mut callee = "";
    let mut count = 0;
    for line in profile.lines() {
        if let Some(name) = line.strip_prefix("cfn=") {
            callee = name;
        } else if let Some(calls) = line.strip_prefix("calls=")
            && ALLOCATORS.contains(&callee)
        {
            count += calls.split(' ').next().and_then(|calls| calls.parse::<u64>().ok()).unwrap_or(0);
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_the_allocator_are_counted_for_all_callers() {
        let profile = "fn=a\n1 10\ncfn=malloc\ncalls=3 0 \n1 30\ncfn=free\ncalls=9 0 \n1 90\nfn=b\ncfn=malloc\ncalls=4 0 \n1 7\n\
                       cfn=realloc\ncalls=1 0 \n1 7\ntotals: 1234\n";
        assert_eq!((instructions(profile), allocations(profile)), (Some(1234), 8));
    }
}
