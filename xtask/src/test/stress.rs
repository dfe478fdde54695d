//! `cargo xtask test --stress N`: repeats the test programs on a busy machine. A test that depends on time fails here.

use std::{
    collections::BTreeMap,
    process::{Child, Command, Stdio},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use super::{programs::TestProgram, session::Session, summary::Summary, usage::processors};
use crate::{
    Result,
    shell::{self, Reaper},
};

/// The time limit of a program.
const LONGEST: Duration = Duration::from_secs(30 * 60);

/// Busy loops, one per processor.
struct Load {
    loops: Vec<Child>,
    /// Ends them if this program is killed.
    _reaper: Reaper,
}

impl Load {
    fn start() -> Result<Self> {
        let mut loops = Vec::new();
        for _ in 0..processors() as usize {
            let mut busy = Command::new("sh");
            busy.args(["-c", "while :; do :; done"]).stdin(Stdio::null()).stdout(Stdio::null());
            loops.push(busy.spawn()?);
        }
        let ids: Vec<u32> = loops.iter().map(Child::id).collect();
        Ok(Self { _reaper: Reaper::of_processes(&ids)?, loops })
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for busy in &mut self.loops {
            let _ = busy.kill();
            let _ = busy.wait();
        }
    }
}

/// Runs each test program whose name contains the text this often, and fails with the names of the tests that failed.
pub fn run(session: &Session, times: u32, name: &str) -> Result<()> {
    let programs: Vec<_> = session.programs()?.iter().filter(|program| program.name.contains(name)).collect();
    if programs.is_empty() {
        return Err(format!("no test program's name contains `{name}`").into());
    }
    let load = Load::start()?;
    let failed: Mutex<BTreeMap<String, u32>> = Mutex::default();
    let round = |session: &Session, program: &&TestProgram| {
        let mut command = program.command();
        if program.uses_kafka() {
            session.give_kafka(&mut command)?;
        }
        let done = shell::run(&mut command, LONGEST, false)?;
        let summary = Summary::of(&done.output);
        let mut names: Vec<String> =
            summary.failed.iter().map(|test| format!("{}: {test}", program.name)).collect();
        if !done.success && names.is_empty() {
            names.push(format!("{} ({})", program.name, done.ending));
        }
        if names.is_empty() {
            session.pass(&program.name);
        } else {
            println!("--- {}\n{}", program.name, done.output);
        }
        let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
        names.into_iter().for_each(|name| *failed.entry(name).or_default() += 1);
        Ok(())
    };
    // A program does not run twice at a time: some write to a folder of their own.
    for _ in 0..times {
        session.side_by_side(&programs, round);
    }
    drop(load);
    for (name, count) in failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        session.fail(&format!("{name}: {count} of {times} times"));
    }
    Ok(())
}
