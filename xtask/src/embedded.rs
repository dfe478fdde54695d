//! Embedded brokers in a process of their own, for the commands that measure other programs.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use crate::{Result, shell::Reaper};

/// Running embedded brokers. They end with this value.
pub struct Embedded {
    /// The value for `bootstrap.servers`.
    pub bootstrap: String,
    _reaper: Reaper,
}

impl Embedded {
    /// Runs `ottla broker` with these options. Its output goes to a file in `folder`.
    pub fn start(ottla: &Path, folder: &Path, options: &[&str]) -> Result<Self> {
        Self::with(Command::new(ottla), folder, options)
    }

    /// Runs `broker` of the program of a command.
    pub fn with(mut command: Command, folder: &Path, options: &[&str]) -> Result<Self> {
        let output = folder.join("brokers");
        command.args(["broker", "--port", "0"]).args(options).current_dir(folder);
        let child = command.stdin(Stdio::null()).stdout(fs::File::create(&output)?).spawn()?;
        let reaper = Reaper::of_processes(&[child.id()])?;
        Ok(Self { bootstrap: first_value(&output, "bootstrap.servers=")?, _reaper: reaper })
    }
}

/// Waits for a file's line that begins with this name, and returns the rest of the line.
fn first_value(file: &Path, name: &str) -> Result<String> {
    for _ in 0..100 {
        let text = fs::read_to_string(file)?;
        if let Some(value) = text.lines().find_map(|line| line.strip_prefix(name)) {
            return Ok(value.to_owned());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Err(format!("{}: no line `{name}` after 10 s", file.display()).into())
}
