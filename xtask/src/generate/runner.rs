//! Runs programs: the runner of `tests/abi/generate`, compiled once, and processes of it for each library.

use std::{
    collections::BTreeMap,
    env, fs,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
};

use super::program::Program;
use crate::{
    Result,
    shell::{self, root},
};

const SOURCES: &str = "tests/abi/generate";
/// The stream of calls that are not compared.
pub const CALLS: &str = "calls";

/// How long a program may wait for what may never come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// A part of its timeouts: most programs end the same, and their waits are in vain with both libraries.
    Quick,
    /// Its timeouts: a difference has to be seen with them.
    Full,
}

impl Pace {
    /// Returns the percentage of timeouts.
    const fn percent(self) -> u32 {
        match self {
            Self::Quick => 30,
            Self::Full => 100,
        }
    }

    /// Returns the time limit of a program in seconds.
    const fn deadline(self) -> u32 {
        match self {
            Self::Quick => 8,
            Self::Full => 20,
        }
    }
}

/// Streams in which the order and the number of lines depend on the speed: each line counts once.
const UNORDERED: [&str; 13] = [
    "library",
    "error_cb",
    "log_cb",
    "stats_cb",
    "throttle_cb",
    "socket_cb",
    "connect_cb",
    "closesocket_cb",
    "queue_cb",
    "event_cb",
    "on_send",
    "on_acknowledgement",
    "oauthbearer_token_refresh_cb",
];

/// What a program printed, by stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript {
    pub streams: BTreeMap<String, Vec<String>>,
    /// The time on a processor, in microseconds.
    pub cpu: u64,
}

impl Transcript {
    /// Reads the lines `STREAM|TEXT`.
    pub fn of(lines: &[String]) -> Self {
        let mut streams: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for line in lines {
            let (stream, text) = line.split_once('|').unwrap_or(("main", line));
            streams.entry(stream.to_owned()).or_default().push(text.trim_end().to_owned());
        }
        for (name, lines) in &mut streams {
            if UNORDERED.contains(&name.as_str()) {
                lines.sort();
                lines.dedup();
            }
        }
        Self { streams, cpu: 0 }
    }

    /// Returns how the program ended, if not by itself: `CRASH ...`, `HANG ...`.
    pub fn ending(&self) -> Option<&str> {
        let main = self.streams.get("main")?;
        main.iter().map(String::as_str).find(|line| {
            ["CRASH ", "HANG ", "ended by signal", "exits with"].iter().any(|ending| line.starts_with(ending))
        })
    }

    /// Returns the functions that were called, each with success or failure.
    pub fn calls(&self) -> impl Iterator<Item = (&str, bool)> {
        self.streams.values().flatten().filter_map(|line| {
            let mut words = line.split(' ').skip(1);
            let outcome = words.next()?;
            let function = words.next().filter(|name| name.starts_with("rd_kafka_"))?;
            ["ok", "no"].contains(&outcome).then_some((function, outcome == "ok"))
        })
    }
}

/// The compiled runner, and the table that it reads.
#[derive(Debug)]
pub struct Compiled {
    runner: PathBuf,
    table: PathBuf,
}

impl Compiled {
    /// Compiles the runner into a folder.
    ///
    /// # Errors
    ///
    /// The C compiler fails.
    pub fn compile(folder: &Path, include: &Path, table: &str) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let compiled = Self { runner: folder.join("runner"), table: folder.join("table.txt") };
        fs::write(&compiled.table, table)?;
        let mut sources: Vec<PathBuf> =
            fs::read_dir(root().join(SOURCES))?.flatten().map(|entry| entry.path()).collect();
        sources.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
        sources.sort();
        let mut command = Command::new(env::var("CC").unwrap_or_else(|_| "cc".into()));
        command
            .args([
                "-std=gnu99",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-Wno-deprecated-declarations",
                "-O1",
                "-g",
                "-o",
            ])
            .arg(&compiled.runner)
            .args(&sources)
            .arg("-I")
            .arg(include)
            .args(["-lpthread", "-ldl"]);
        shell::read(&mut command)?;
        Ok(compiled)
    }

    /// Starts a process for a library.
    ///
    /// # Errors
    ///
    /// The process can't be started.
    pub fn start(&self, library: &Path, broker: Option<&str>) -> Result<Runner> {
        let mut command = Command::new(&self.runner);
        command.arg(library).arg(&self.table).env("LC_ALL", "C").env_remove("RUST_BACKTRACE");
        if let Some(broker) = broker {
            command.env("GENERATE_BROKER", broker);
        }
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn()?;
        let input = child.stdin.take().ok_or("the runner has no input")?;
        let output = BufReader::new(child.stdout.take().ok_or("the runner has no output")?);
        Ok(Runner { child, input: Some(input), output })
    }
}

/// A process that runs programs one after the other, with one library.
#[derive(Debug)]
pub struct Runner {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Runner {
    /// Runs a program.
    ///
    /// # Errors
    ///
    /// The process ended.
    pub fn run(&mut self, program: &Program, pace: Pace) -> Result<Transcript> {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        let input = self.input.as_mut().ok_or("the runner has no input")?;
        let suffix = format!("-x{}x{run}q", std::process::id());
        let (percent, deadline) = (pace.percent(), pace.deadline());
        input.write_all(format!("{}run {deadline} {suffix} {percent}\n", program.text()).as_bytes())?;
        input.flush()?;
        let (mut lines, mut line) = (Vec::new(), Vec::new());
        loop {
            line.clear();
            if self.output.read_until(b'\n', &mut line)? == 0 {
                return Err("the runner ended".into());
            }
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            if let Some(cpu) = text.strip_prefix("done ") {
                return Ok(Transcript { cpu: cpu.parse()?, ..Transcript::of(&lines) });
            }
            lines.push(text);
        }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        // The end of its input ends the process.
        self.input = None;
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_divided_by_stream() {
        let lines = ["main|1 ok rd_kafka_poll -> 0", "error_cb|b", "error_cb|a", "error_cb|b", "main|end"];
        let transcript = Transcript::of(&lines.map(str::to_owned));
        assert_eq!(transcript.streams["error_cb"], ["a", "b"]);
        assert_eq!(transcript.calls().collect::<Vec<_>>(), [("rd_kafka_poll", true)]);
        assert_eq!(transcript.ending(), None);
    }
}
