//! Runs other programs: their output is shown immediately and kept, they have a time limit, and they never outlive this
//! process.

use std::{
    env,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use wait4::Wait4 as _;

use crate::{Result, test::usage};

/// Returns the folder of the workspace.
pub fn root() -> PathBuf {
    let manifest =
        env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    manifest.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// Returns the folder that keeps downloads between runs: `OTTLA_CACHE`, or `ottla` in the user's cache folder.
pub fn cache() -> PathBuf {
    if let Some(folder) = env::var_os("OTTLA_CACHE") {
        return folder.into();
    }
    let base = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let base = base.or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")));
    base.unwrap_or_else(env::temp_dir).join("ottla")
}

/// Returns the cargo that runs this program.
pub fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    forget_package(command.current_dir(root()));
    command
}

/// Returns the cargo that runs this program, for work that gives way to tests: they wait for each other's answers, the compiler
/// for nobody.
pub fn patient_cargo() -> Command {
    let mut command = patient(Path::new(&env::var_os("CARGO").unwrap_or_else(|| "cargo".into())));
    forget_package(command.current_dir(root()));
    command
}

/// Returns a command that runs a program with a low priority.
pub fn patient(program: &Path) -> Command {
    let mut command = Command::new("nice");
    command.args(["-n", "10"]).arg(program);
    command
}

/// Hides the variables in which cargo passes this program its package. The build script of `ring` reads them, and would run again
/// whenever cargo is called from here after a call from a shell, and with it most of the workspace would be compiled again.
pub fn forget_package(command: &mut Command) -> &mut Command {
    let names = env::vars_os().map(|(name, _)| name);
    for name in names.filter(|name| is_of_package(&name.to_string_lossy())) {
        command.env_remove(name);
    }
    command
}

fn is_of_package(variable: &str) -> bool {
    ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|prefix| variable.starts_with(prefix))
}

/// True if a program of this name is on the PATH.
pub fn installed(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// True if the user is root.
pub fn is_root() -> bool {
    read(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

/// The result of a program, with its output on both streams.
#[derive(Debug)]
pub struct Finished {
    /// Exit code 0, in time.
    pub success: bool,
    /// The lines of both streams in the order of their arrival.
    pub output: String,
    /// The cause of a failure: the exit status, or the time limit.
    pub ending: String,
    /// The CPU time of the program and of the processes that it waited for.
    pub cpu: Duration,
}

/// Runs a program until it ends, or kills it at the time limit; prints its output if `show`.
pub fn run(command: &mut Command, deadline: Duration, show: bool) -> Result<Finished> {
    use std::os::unix::process::CommandExt as _;

    let (reader, writer) = std::io::pipe()?;
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer).process_group(0);
    let program = command.get_program().to_string_lossy().into_owned();
    let child = forget_package(command).spawn().map_err(|error| format!("cannot run {program}: {error}"))?;
    let group = Reaper::of_group(child.id())?;
    // The command holds the writing ends of the pipe; the reader gets no end of file until they are closed.
    command.stdout(Stdio::null()).stderr(Stdio::null());

    let (lines, incoming) = mpsc::channel();
    thread::spawn(move || {
        let mut reader = BufReader::new(reader);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            if lines.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                break;
            }
            line.clear();
        }
    });

    let end = Instant::now() + deadline;
    let mut output = String::new();
    let timed_out = loop {
        match incoming.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                if show {
                    print!("{line}");
                    let _ = std::io::stdout().flush();
                }
                output.push_str(&line);
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break false,
            Err(mpsc::RecvTimeoutError::Timeout) => break true,
        }
    };
    if timed_out {
        drop(group); // kills the whole group
        let cpu = child.wait4().map_or(Duration::ZERO, |used| used.rusage.utime + used.rusage.stime);
        usage::add(cpu);
        let ending = format!("{program} was not done after {} s and was killed", deadline.as_secs());
        return Ok(Finished { success: false, output, ending, cpu });
    }
    let used = child.wait4()?;
    group.dismiss();
    let (status, cpu) = (used.status, used.rusage.utime + used.rusage.stime);
    usage::add(cpu);
    Ok(Finished { success: status.success(), output, ending: format!("{program}: {status}"), cpu })
}

/// Runs a program and returns its output. Error: it failed.
pub fn read(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let done =
        command.stdin(Stdio::null()).output().map_err(|error| format!("cannot run {program}: {error}"))?;
    if !done.status.success() {
        return Err(format!("{program}: {}\n{}", done.status, String::from_utf8_lossy(&done.stderr)).into());
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// A shell that kills processes when it is dropped, or when this process ends in any way.
///
/// It reads a pipe that only this process holds: a line makes it exit without killing, the end of the pipe makes it
/// kill.
#[derive(Debug)]
pub struct Reaper {
    shell: Child,
    pipe: Option<ChildStdin>,
}

impl Reaper {
    /// Kills the process group.
    pub fn of_group(leader: u32) -> Result<Self> {
        Self::new(&format!("kill -KILL -{leader}"))
    }

    /// Kills the processes.
    pub fn of_processes(ids: &[u32]) -> Result<Self> {
        let ids: Vec<_> = ids.iter().map(u32::to_string).collect();
        Self::new(&format!("kill -KILL {}", ids.join(" ")))
    }

    fn new(action: &str) -> Result<Self> {
        use std::os::unix::process::CommandExt as _;
        let script = format!("read -r line || {action} 2>/dev/null");
        let mut shell = Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let pipe = shell.stdin.take();
        Ok(Self { shell, pipe })
    }

    /// The processes have already ended.
    pub fn dismiss(mut self) {
        if let Some(mut pipe) = self.pipe.take() {
            let _ = pipe.write_all(b"dismissed\n");
        }
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        self.pipe = None;
        let _ = self.shell.wait();
    }
}
