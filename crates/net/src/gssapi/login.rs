//! The command that gets tickets: `sasl.kerberos.kinit.cmd`.

use std::{
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use ottla_core::{
    config::sasl::kerberos::{KerberosSettings, Login},
    shown::quoted,
};

/// The longest run of the command.
const LONGEST: Duration = Duration::from_secs(60);
/// The wait of a client without a command.
const NEVER: Duration = Duration::from_secs(24 * 3600);

/// Runs the command when it is due.
pub struct Logins {
    command: Option<(String, Option<Duration>)>,
    due: Option<Instant>,
    /// The advice for a user after a failure.
    advice: String,
    /// Why the last run has failed.
    failure: Option<String>,
}

impl Logins {
    pub fn new(settings: &KerberosSettings) -> Self {
        let advice = match &settings.login {
            Login::Cache => {
                "; set sasl.kerberos.keytab and sasl.kerberos.principal, or get a ticket with kinit"
                    .to_owned()
            }
            Login::KeyTable(file) => {
                format!("; check that the key table \"{file}\" has the keys of {}", settings.principal)
            }
            Login::Command { .. } => String::new(),
        };
        let command = match &settings.login {
            Login::Command { command, interval } => Some((command.clone(), *interval)),
            Login::Cache | Login::KeyTable(_) => None,
        };
        Self { due: command.is_some().then(Instant::now), advice, command, failure: None }
    }

    /// Returns the time until the next run.
    pub fn left(&self) -> Duration {
        self.due.map_or(NEVER, |due| due.saturating_duration_since(Instant::now()))
    }

    /// Runs the command, if it is due.
    pub fn run_if_due(&mut self) {
        let Some((command, interval)) = &self.command else { return };
        if self.due.is_none_or(|due| due > Instant::now()) {
            return;
        }
        self.failure = run(command, LONGEST).err();
        self.due = interval.map(|interval| Instant::now() + interval);
    }

    /// Adds what a user can do to the reason of a failure.
    pub fn explain(&self, why: &str, target: &str) -> String {
        let failure = self.failure.as_ref().map(|failure| format!("; sasl.kerberos.kinit.cmd {failure}"));
        format!("authentication to {target}: {}{}", quoted(why), failure.as_ref().unwrap_or(&self.advice))
    }
}

/// Runs a command of the shell. Error: how it ended. Its output is the terminal's, and may have secrets: it is discarded.
fn run(command: &str, longest: Duration) -> Result<(), String> {
    let child = Command::new("/bin/sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut child = child.map_err(|error| format!("can't be started: {error}"))?;
    let end = Instant::now() + longest;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("has failed: {status}")),
            // The program's handler of SIGCHLD has taken the status.
            Err(_) => return Ok(()),
            Ok(None) if Instant::now() >= end => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("has not ended within {} s", longest.as_secs()));
            }
            Ok(None) => thread::sleep(Duration::from_millis(20)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(login: Login) -> KerberosSettings {
        KerberosSettings { service: "kafka".to_owned(), principal: "alice".to_owned(), login }
    }

    #[test]
    fn command_is_run_at_the_start_and_after_each_interval() {
        let file = std::env::temp_dir().join(format!("ottla-kinit-{}", std::process::id()));
        let command = format!("echo x >> '{}'; exit 1", file.display());
        let mut logins =
            Logins::new(&settings(Login::Command { command, interval: Some(Duration::from_millis(50)) }));
        logins.run_if_due();
        logins.run_if_due();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "x\n");
        assert!(logins.explain("no ticket", "kafka@a").contains("kinit.cmd has failed: exit status: 1"));
        thread::sleep(logins.left());
        logins.run_if_due();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "x\nx\n");
        std::fs::remove_file(file).unwrap();
    }

    #[test]
    fn command_that_hangs_is_ended() {
        let started = Instant::now();
        let error = run("sleep 100", Duration::from_millis(100)).unwrap_err();
        assert!(error.contains("not ended") && started.elapsed() < Duration::from_secs(50), "{error}");
        assert!(run("true", LONGEST).is_ok());
        let without = Logins::new(&settings(Login::Cache));
        assert!(
            without
                .explain("no\u{7} ticket", "kafka@a")
                .contains("kafka@a: no  ticket; set sasl.kerberos.keytab")
        );
        let key_table = Logins::new(&settings(Login::KeyTable("/k".to_owned())));
        assert!(key_table.explain("no key", "kafka@a").contains("\"/k\" has the keys of alice"));
    }
}
