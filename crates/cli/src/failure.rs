//! The result of a command: exit code 0 for success, 1 for a failure, 2 for wrong arguments, 128 + the number for a
//! signal.

use std::process::ExitCode;

use crate::standard_error::note;

/// The sentence about exit codes that ends the help of every command.
pub const EXIT_CODES: &str = "Exit codes: 0 success, 1 failure, 2 wrong options or properties, 130 interrupted (SIGINT), 143 terminated (SIGTERM)";

/// The reason why a command failed.
#[derive(Debug, PartialEq)]
pub enum Failure {
    /// The command line or a property is wrong: exit code 2.
    Usage(String),
    /// The work itself failed: exit code 1.
    Failed(String),
    /// A check found that a limit is exceeded: exit code 3.
    Exceeded(String),
    /// A signal with this number ended the command early: exit code 128 + number. The command has printed its summary.
    Interrupted(u8),
    /// The reader closed the output, as `| head` does. This counts as success.
    OutputClosed,
}

/// The result of a command.
pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// Prints the failure to standard error and returns the exit code.
    pub fn report(&self, program: &str) -> ExitCode {
        match self {
            Failure::Usage(message) => {
                note!("{program}: {message}");
                ExitCode::from(2)
            }
            Failure::Failed(message) => {
                note!("{program}: {message}");
                ExitCode::from(1)
            }
            Failure::Exceeded(message) => {
                note!("{program}: {message}");
                ExitCode::from(3)
            }
            Failure::Interrupted(signal) => ExitCode::from(128 + signal),
            Failure::OutputClosed => ExitCode::SUCCESS,
        }
    }
}

impl From<ottla::ConfigError> for Failure {
    fn from(error: ottla::ConfigError) -> Failure {
        Failure::Usage(error.to_string())
    }
}

impl From<ottla::Error> for Failure {
    fn from(error: ottla::Error) -> Failure {
        match error.kind() {
            ottla::ErrorKind::InvalidArgument => Failure::Usage(error.to_string()),
            _ => Failure::Failed(error.to_string()),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Failure::OutputClosed,
            _ => Failure::Failed(format!("standard output can't be written: {error}")),
        }
    }
}
