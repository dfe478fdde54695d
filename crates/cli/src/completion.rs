//! Completion of the command line in shells: commands and options, and the names of topics and groups.
//!
//! The shell runs the program with `OTTLA_COMPLETE` set and the words of the line after `--`. Names come from the brokers that
//! the line names with -b, -F and -X; without a response in time there are none.

use std::ffi::{OsStr, OsString};
use std::io;
use std::time::Duration;

use clap::Args;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::Shells;
use ottla::{Admin, GroupFilter};

use crate::client_options::ClientOptions;
use crate::failure::{Failure, Outcome};
use crate::profiles::Store;

/// The environment variable that names the shell.
pub const VARIABLE: &str = "OTTLA_COMPLETE";
/// A user waits for the names.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Print the code that lets a shell complete this program's commands, options, topics and groups
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    source <(ottla completion bash)               # in ~/.bashrc\n  \
    source <(ottla completion zsh)                # in ~/.zshrc\n  \
    ottla completion fish | source                # in ~/.config/fish/config.fish")]
pub struct CompletionOptions {
    /// The shell: bash, elvish, fish, powershell or zsh
    #[arg(value_name = "SHELL", value_parser = ["bash", "elvish", "fish", "powershell", "zsh"])]
    shell: String,
}

/// Prints the code for a shell.
pub fn run(options: &CompletionOptions) -> Outcome {
    let shells = Shells::builtins();
    let shell = shells.completer(&options.shell).ok_or_else(|| Failure::Usage("an unknown shell".into()))?;
    let mut code = Vec::new();
    shell.write_registration(VARIABLE, "ottla", "ottla", "ottla", &mut code)?;
    io::Write::write_all(&mut io::stdout(), &code)?;
    Ok(())
}

/// Completes the names of topics.
pub fn topics() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        candidates(current, |admin| admin.list_topics(TIMEOUT).unwrap_or_default())
    })
}

/// Completes the IDs of groups.
pub fn groups() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        candidates(current, |admin| {
            let listed = admin.list_groups(&GroupFilter::default(), TIMEOUT);
            listed.into_iter().flat_map(|found| found.groups).map(|group| group.group_id).collect()
        })
    })
}

/// Completes the names of profiles.
pub fn profiles() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let Some(current) = current.to_str() else { return Vec::new() };
        let names =
            Store::load().map(|store| store.profiles.keys().cloned().collect::<Vec<_>>()).unwrap_or_default();
        names.into_iter().filter(|name| name.starts_with(current)).map(CompletionCandidate::new).collect()
    })
}

/// Returns the names that begin with the current word.
fn candidates(current: &OsStr, names: impl FnOnce(&Admin) -> Vec<String>) -> Vec<CompletionCandidate> {
    let Some(current) = current.to_str() else { return Vec::new() };
    let Ok(config) = options(std::env::args_os()).config() else { return Vec::new() };
    let Ok(admin) = Admin::new(&config) else { return Vec::new() };
    let mut found = names(&admin);
    found.sort();
    found.retain(|name| name.starts_with(current));
    found.into_iter().map(CompletionCandidate::new).collect()
}

/// Returns the options of the client among the words of the line, which follow `--`.
fn options(arguments: impl Iterator<Item = OsString>) -> ClientOptions {
    let words = arguments.skip_while(|word| word != "--").skip(1);
    let words: Vec<String> = words.filter_map(|word| word.into_string().ok()).collect();
    let mut options = ClientOptions::default();
    for pair in words.windows(2) {
        let value = || pair[1].clone();
        match pair[0].as_str() {
            "--bootstrap-controller" | "--bootstrap-controllers" => {
                options.bootstrap_controller = Some(value());
            }
            "-b" | "--bootstrap-server" | "--bootstrap-servers" => options.bootstrap_server.push(value()),
            "--profile" => options.profile = Some(value()),
            "-F" => options.file = Some(value().into()),
            "-X" => options.property.push(value()),
            _ => {}
        }
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_client_are_found_among_the_words() {
        let line = ["ottla", "--", "ottla", "topics", "-b", "h:1", "-X", "a=b", "-F", "f", "describe", "or"];
        let found = options(line.into_iter().map(OsString::from));
        assert_eq!(found.bootstrap_server, ["h:1"]);
        assert_eq!((found.property, found.file), (vec!["a=b".to_owned()], Some("f".into())));
    }
}
