//! How a command ends: 0 done, 1 failed, 2 wrongly called.

use std::process::ExitCode;

/// Why a command didn't do what it was asked for.
#[derive(Debug, PartialEq)]
pub enum Failure {
    /// The command line or a property is wrong: exit code 2.
    Usage(String),
    /// The work itself failed: exit code 1.
    Failed(String),
    /// Nobody reads the output any more, as behind `| head`: nothing to complain about.
    OutputClosed,
}

/// The result of a command.
pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// Tells the user, and gives the exit code.
    pub fn report(&self, program: &str) -> ExitCode {
        match self {
            Failure::Usage(message) => {
                eprintln!("{program}: {message}");
                ExitCode::from(2)
            }
            Failure::Failed(message) => {
                eprintln!("{program}: {message}");
                ExitCode::from(1)
            }
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
            _ => Failure::Failed(error.to_string()),
        }
    }
}
