//! Runs a process and returns its output and the resources that it used according to the kernel.

use std::{
    io::Read,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use crate::Result;

/// The time limit of a process. After it the process is killed, and its run has failed.
const DEADLINE: Duration = Duration::from_secs(240);

/// The resources that a finished process used.
#[derive(Clone, Debug)]
pub struct Used {
    pub stdout: String,
    pub stderr: String,
    pub success: bool,
    pub user: f64,
    pub system: f64,
    /// KiB.
    pub max_resident: i64,
}

/// Runs the program until it ends.
pub fn run(command: &mut Command) -> Result<Used> {
    let program = command.get_program().to_string_lossy().into_owned();
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("{program}: {error}"))?;
    let process = child.id() as libc::pid_t;
    let done = Arc::new(AtomicBool::new(false));
    let watched = done.clone();
    thread::spawn(move || {
        let began = Instant::now();
        while !watched.load(Relaxed) && began.elapsed() < DEADLINE {
            thread::sleep(Duration::from_millis(100));
        }
        if !watched.load(Relaxed) {
            // SAFETY: the signal goes to our own child, which has not been waited for yet.
            unsafe { libc::kill(process, libc::SIGKILL) };
        }
    });
    let mut stderr = child.stderr.take().ok_or("no stderr")?;
    let errors = thread::spawn(move || {
        let mut text = String::new();
        let _ = stderr.read_to_string(&mut text);
        text
    });
    let mut stdout = String::new();
    child.stdout.take().ok_or("no stdout")?.read_to_string(&mut stdout)?;

    let mut status = 0;
    // SAFETY: `rusage` is plain old data, for which all zeros is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointers are to living variables; the child is ours, and `child.wait` is never called.
    let waited = unsafe { libc::wait4(process, &raw mut status, 0, &raw mut usage) };
    done.store(true, Relaxed);
    if waited != process {
        return Err(format!("{program}: waiting for its end failed").into());
    }
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Ok(Used {
        stdout,
        stderr: errors.join().unwrap_or_default(),
        success: libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0,
        user: seconds(usage.ru_utime),
        system: seconds(usage.ru_stime),
        max_resident: usage.ru_maxrss,
    })
}
