//! The parts that the administrative commands share.
//!
//! [`subcommands!`] defines a command with subcommands: each is a struct of options with `common: Common` and a method `run`.

use std::io::{self, Read, Write};
use std::path::Path;

use clap::Args;
use ottla::Admin;

use super::table::Table;
use crate::client_options::{ClientOptions, call_timeout};
use crate::events::EventWatch;
use crate::failure::{Failure, Outcome};

/// The options of every administrative subcommand.
#[derive(Args, Debug)]
pub struct Common {
    #[command(flatten)]
    pub client: ClientOptions,

    /// Print the results as JSON
    #[arg(short = 'J', long)]
    pub json: bool,
}

/// Defines a command with subcommands, and the function that runs it.
macro_rules! subcommands {
    ($(#[$doc:meta])* $options:ident { $($variant:ident($kind:ty)),* $(,)? }) => {
        #[derive(clap::Args, Debug)]
        $(#[$doc])*
        pub struct $options {
            #[command(flatten)]
            client: $crate::client_options::ClientOptions,

            #[command(subcommand)]
            action: Action,
        }

        #[derive(clap::Subcommand, Debug)]
        #[allow(clippy::large_enum_variant)]
        enum Action {
            $($variant($kind),)*
        }

        /// Runs the command; `outer` are the options before its name.
        pub fn run(
            options: &$options,
            outer: &$crate::client_options::ClientOptions,
        ) -> $crate::failure::Outcome {
            let outer = options.client.after(outer);
            match &options.action {
                $(Action::$variant(one) => {
                    $crate::commands::admin_command::connected(&one.common, &outer, |admin| one.run(admin))
                })*
            }
        }
    };
}
pub(super) use subcommands;

/// Runs a subcommand with a connected client.
pub fn connected(common: &Common, outer: &ClientOptions, run: impl FnOnce(&Admin) -> Outcome) -> Outcome {
    let client = common.client.after(outer);
    if client.wants_list() {
        return super::properties::list(&mut io::stdout().lock());
    }
    let (admin, _watch) = EventWatch::connect_admin(&client)?;
    run(&admin)
}

impl Common {
    /// Prints a row for each item: what was done with it, or its error. Fails with all errors if there are any.
    pub fn report(
        &self,
        noun: &'static str,
        done: &str,
        results: impl IntoIterator<Item = (String, Result<(), String>)>,
    ) -> Outcome {
        let mut failures = Vec::new();
        let mut rows = Vec::new();
        for (item, result) in results {
            match result {
                Ok(()) if self.json => rows.push((item, done.to_owned())),
                Ok(()) => writeln!(io::stdout(), "{done} {noun} {item}")?,
                Err(error) => {
                    failures.push(format!("{noun} {item}: {error}"));
                    rows.push((item, error));
                }
            }
        }
        if self.json {
            let mut table = Table::new(&[("ITEM", "item", 0), ("STATUS", "status", 0)]);
            rows.into_iter().for_each(|(item, status)| table.add([item.into(), status.into()]));
            table.print(true)?;
        }
        finish(failures)
    }

    /// Prints what a command without `--dry-run` would do.
    pub fn preview(
        &self,
        noun: &'static str,
        items: impl IntoIterator<Item = String>,
        done: &str,
    ) -> Outcome {
        self.report(noun, &format!("would be {done}:"), items.into_iter().map(|item| (item, Ok(()))))
    }
}

/// Fails with all errors, one per line, if there are any.
pub fn finish(failures: Vec<String>) -> Outcome {
    if failures.is_empty() { Ok(()) } else { Err(Failure::Failed(failures.join("\n"))) }
}

/// Converts the results of a call for [`Common::report`].
pub fn texts<K>(
    results: impl IntoIterator<Item = (K, ottla::Result<()>)>,
    name: impl Fn(&K) -> String,
) -> Vec<(String, Result<(), String>)> {
    results.into_iter().map(|(key, result)| (name(&key), result.map_err(|error| error.to_string()))).collect()
}

/// Reads a file; `-` is standard input. `what` names it in errors.
pub fn read_text(path: &Path, what: &str) -> Outcome<String> {
    let mut text = String::new();
    let read = match path.as_os_str() == "-" {
        true => io::stdin().lock().read_to_string(&mut text).map(|_| text),
        false => std::fs::read_to_string(path),
    };
    read.map_err(|error| Failure::Usage(format!("the {what} {} can't be read: {error}", path.display())))
}

/// Parses `NAME=VALUE`.
pub fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("\"=\" is missing; write NAME=VALUE")?;
    match name.trim() {
        "" => Err("the name before \"=\" is empty".to_owned()),
        name => Ok((name.to_owned(), value.to_owned())),
    }
}

/// Partitions of a topic, as `TOPIC` or `TOPIC:0,1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partitions {
    topic: String,
    /// Empty for all.
    numbers: Vec<i32>,
}

/// Parses partitions.
pub fn partitions(text: &str) -> Result<Partitions, String> {
    let (topic, numbers) = text.split_once(':').unwrap_or((text, ""));
    let number = |text: &str| match text.trim().parse() {
        Ok(number @ 0..) => Ok(number),
        _ => Err(format!("\"{text}\" is not a partition; write TOPIC or TOPIC:PARTITION,...")),
    };
    let numbers = match text.contains(':') {
        true => numbers.split(',').map(number).collect::<Result<_, _>>()?,
        false => Vec::new(),
    };
    if topic.is_empty() {
        return Err("the topic is missing; write TOPIC or TOPIC:PARTITION,...".to_owned());
    }
    Ok(Partitions { topic: topic.to_owned(), numbers })
}

/// Returns the partitions, each once and in order. Topics without numbers are looked up.
pub fn resolve(admin: &Admin, all: &[Partitions]) -> Outcome<Vec<(String, i32)>> {
    let mut found = Vec::new();
    let open: Vec<&str> =
        all.iter().filter(|one| one.numbers.is_empty()).map(|one| one.topic.as_str()).collect();
    if !open.is_empty() {
        for topic in admin.describe_topics(&open, call_timeout())? {
            if let Some(error) = topic.error {
                return Err(error.into());
            }
            found.extend(topic.partitions.iter().map(|partition| (topic.name.clone(), partition.id)));
        }
    }
    for one in all {
        found.extend(one.numbers.iter().map(|number| (one.topic.clone(), *number)));
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// Returns partitions as arguments of the client.
pub fn named(partitions: &[(String, i32)]) -> Vec<(&str, i32)> {
    partitions.iter().map(|(topic, partition)| (topic.as_str(), *partition)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_a_topic_with_or_without_numbers() {
        let of = |topic: &str, numbers: &[i32]| Partitions { topic: topic.into(), numbers: numbers.into() };
        assert_eq!(partitions("orders"), Ok(of("orders", &[])));
        assert_eq!(partitions("orders:2,0"), Ok(of("orders", &[2, 0])));
        for wrong in ["", ":1", "orders:", "orders:-1", "orders:1,x", "orders:1,,2"] {
            assert!(partitions(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn pairs_have_a_name() {
        assert_eq!(pair("a=b=c"), Ok(("a".into(), "b=c".into())));
        assert!(pair("a").is_err() && pair("=b").is_err());
    }
}
