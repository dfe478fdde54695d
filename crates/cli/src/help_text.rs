//! The help of commands: what clap prints of options, and examples whose lines stay whole.
//!
//! clap wraps everything at the width of the terminal, also command lines in the text below the options, which then can't be
//! copied. So that text is a mark while clap prints, and replaced afterwards. `-h` has the examples of it, `--help` all.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Command, Error};

/// The texts below the options of all commands.
#[derive(Debug, Default)]
pub struct HelpTexts(Vec<String>);

impl HelpTexts {
    /// Takes the texts out of a command and its subcommands, and leaves marks.
    pub fn take(&mut self, command: Command) -> Command {
        let text = command.get_after_help().map(ToString::to_string);
        let command = match text {
            Some(text) => {
                self.0.push(text);
                command.after_help(mark(self.0.len() - 1))
            }
            None => command,
        };
        let names: Vec<String> = command.get_subcommands().map(|inner| inner.get_name().to_owned()).collect();
        names
            .into_iter()
            .fold(command, |command, name| command.mut_subcommand(name, |inner| self.take(inner)))
    }

    /// Puts the texts in place of their marks; only the examples for the short help.
    pub fn put(&self, mut printed: String, is_long: bool) -> String {
        for (index, text) in self.0.iter().enumerate() {
            if printed.contains(&mark(index)) {
                printed = printed.replace(&mark(index), &if is_long { text.clone() } else { examples(text) });
            }
        }
        printed
    }

    /// Prints the help or the error of a command line and ends the process.
    pub fn exit(&self, error: &Error, arguments: &[OsString]) -> ! {
        if error.kind() != ErrorKind::DisplayHelp {
            error.exit();
        }
        let is_long = !arguments.iter().any(|argument| argument == "-h");
        let is_terminal = std::io::IsTerminal::is_terminal(&std::io::stdout());
        let has_colour = is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let printed = error.render();
        let printed = if has_colour { printed.ansi().to_string() } else { printed.to_string() };
        let _ = std::io::Write::write_all(&mut std::io::stdout(), self.put(printed, is_long).as_bytes());
        std::process::exit(0);
    }
}

fn mark(index: usize) -> String {
    format!("@@{index}@@")
}

/// Returns the examples of a text, and where there is more.
fn examples(text: &str) -> String {
    let Some(start) = text.find("Examples:") else { return text.to_owned() };
    let examples = text[start..].split("\n\n").next().unwrap_or_default();
    let more = if examples.len() < text.len() { "\n\n--help prints more" } else { "" };
    format!("{}{more}", examples.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_stay_whole_in_a_narrow_terminal() {
        let line = "  ottla consume -b localhost:9092 -t demo -o beginning -e --filter 'value.total > 100'";
        let text = format!("Fields: many\n\nExamples:\n{line}\n\nExit codes: 0");
        let mut texts = HelpTexts::default();
        let mut command = texts.take(Command::new("ottla").after_help(text).term_width(20));
        let printed = command.render_help().to_string();
        let long = texts.put(printed.clone(), true);
        assert!(long.lines().any(|one| one == line) && long.contains("Exit codes"), "{long}");
        let short = texts.put(printed, false);
        assert!(short.lines().any(|one| one == line) && !short.contains("Exit codes"), "{short}");
    }
}
