//! The subcommands, and the choice of the one to run.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::CompleteEnv;

use crate::client_options::ClientOptions;
#[cfg(feature = "schemas")]
use crate::commands::schema;
use crate::commands::{
    acls, broker, check, configs, consume, consumer_perf_test, copy, delegation_tokens, doctor,
    elect_leaders, features, groups, help, log_dirs, metadata, offsets, produce, producer_perf_test, profile,
    properties, quorum, quotas, rdkafka_performance, reassign, report, share_groups, streams_groups, top,
    topics, transactions, users,
};
use crate::help_text::HelpTexts;
use crate::profiles::guard;
use crate::{completion, man_pages};

/// Apache Kafka from the command line: produce, consume, measure, inspect, and run an embedded cluster
///
/// If it is called kafka-producer-perf-test, kafka-consumer-perf-test or rdkafka_performance, it behaves like that
/// tool.
#[derive(Parser, Debug)]
#[command(
    name = "ottla",
    version,
    disable_help_subcommand = true,
    after_help = "Examples:\n  \
        ottla producer-perf-test --topic demo --num-records 5000000 --record-size 100 --throughput -1\n  \
        ottla broker --brokers 3 --port 9092\n  \
        echo hello | ottla produce -b localhost:9092 -t demo\n  \
        ottla consume -b localhost:9092 -t demo -o beginning -e\n  \
        ottla groups lag -b localhost:9092 billing\n  \
        ottla doctor -b localhost:9092        # why does it not connect?\n  \
        ottla -X list                         # all properties\n  \
        ottla properties linger.ms            # one property\n\n\
        `ottla COMMAND --help` prints the options and examples of a command, `ottla help` the commands for everyday tasks.\n\
        -b, -X, -F, --timeout and --profile are accepted before and after the command.\n\n\
        Exit codes: 0 done, 1 failed, 2 wrong options or properties, 130 interrupted (SIGINT), 143 terminated (SIGTERM)"
)]
struct Cli {
    #[command(flatten)]
    client: ClientOptions,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
#[allow(clippy::large_enum_variant)]
enum Command {
    ProducerPerfTest(producer_perf_test::ProducerPerfTestOptions),
    ConsumerPerfTest(consumer_perf_test::ConsumerPerfTestOptions),
    Produce(produce::ProduceOptions),
    Consume(consume::ConsumeOptions),
    Copy(copy::CopyOptions),
    Topics(topics::TopicsOptions),
    Offsets(offsets::OffsetsOptions),
    Groups(groups::GroupsOptions),
    ShareGroups(share_groups::ShareGroupsOptions),
    StreamsGroups(streams_groups::StreamsGroupsOptions),
    Transactions(transactions::TransactionsOptions),
    Configs(configs::ConfigsOptions),
    Acls(acls::AclsOptions),
    Users(users::UsersOptions),
    Quotas(quotas::QuotasOptions),
    Reassign(reassign::ReassignOptions),
    ElectLeaders(elect_leaders::ElectLeadersOptions),
    LogDirs(log_dirs::LogDirsOptions),
    Features(features::FeaturesOptions),
    Quorum(quorum::QuorumOptions),
    DelegationTokens(delegation_tokens::DelegationTokensOptions),
    Metadata(metadata::MetadataOptions),
    #[cfg(feature = "schemas")]
    Schema(schema::SchemaOptions),
    Profile(profile::ProfileOptions),
    Check(check::CheckOptions),
    Doctor(doctor::DoctorOptions),
    Top(top::TopOptions),
    Report(report::ReportCommandOptions),
    Broker(broker::BrokerOptions),
    Properties(properties::PropertiesOptions),
    Help(help::HelpOptions),
    Completion(completion::CompletionOptions),
    #[command(hide = true)]
    ManPages(man_pages::ManPagesOptions),
    #[command(name = "rdkafka_performance")]
    RdkafkaPerformance(rdkafka_performance::RdkafkaPerformanceOptions),
}

/// Runs the command that the arguments name; the first argument is the name of the program.
pub fn run(mut arguments: Vec<OsString>) -> ExitCode {
    CompleteEnv::with_factory(Cli::command).var(completion::VARIABLE).bin("ottla").complete();
    let program = arguments
        .first()
        .and_then(|path| Path::new(path).file_stem()?.to_str())
        .unwrap_or("ottla")
        .to_string();
    if let Some(command) = tool(&program) {
        arguments.insert(1, command.into());
    }
    // The C program parses its own flags.
    if program == rdkafka_performance::NAME {
        return rdkafka_performance::run(arguments);
    }
    if arguments.get(1).is_some_and(|command| command == rdkafka_performance::NAME) {
        return rdkafka_performance::run(arguments.split_off(1));
    }
    if arguments.len() == 3 && arguments[1] == "-X" && arguments[2] == "list" {
        arguments.splice(1.., ["properties".into()]);
    }
    let mut texts = HelpTexts::default();
    let matches = texts
        .take(Cli::command())
        .try_get_matches_from(&arguments)
        .unwrap_or_else(|error| texts.exit(&error, &arguments));
    let Cli { client, command } = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    if let Err(failure) = guard::check(&matches) {
        return failure.report(&program);
    }
    let outcome = match command {
        Command::ProducerPerfTest(options) => producer_perf_test::run(&options, &client),
        Command::ConsumerPerfTest(options) => consumer_perf_test::run(&options, &client),
        Command::Produce(options) => produce::run(&options, &client),
        Command::Consume(options) => consume::run(&options, &client),
        Command::Copy(options) => copy::run(&options, &client),
        Command::Check(options) => check::run(&options, &client),
        Command::Topics(options) => topics::run(&options, &client),
        Command::Offsets(options) => offsets::run(&options, &client),
        Command::Groups(options) => groups::run(&options, &client),
        Command::ShareGroups(options) => share_groups::run(&options, &client),
        Command::StreamsGroups(options) => streams_groups::run(&options, &client),
        Command::Transactions(options) => transactions::run(&options, &client),
        Command::Configs(options) => configs::run(&options, &client),
        Command::Acls(options) => acls::run(&options, &client),
        Command::Users(options) => users::run(&options, &client),
        Command::Quotas(options) => quotas::run(&options, &client),
        Command::Reassign(options) => reassign::run(&options, &client),
        Command::ElectLeaders(options) => elect_leaders::run(&options, &client),
        Command::LogDirs(options) => log_dirs::run(&options, &client),
        Command::Features(options) => features::run(&options, &client),
        Command::Quorum(options) => quorum::run(&options, &client),
        Command::DelegationTokens(options) => delegation_tokens::run(&options, &client),
        Command::Metadata(options) => metadata::run(&options, &client),
        #[cfg(feature = "schemas")]
        Command::Schema(options) => schema::run(&options, &client),
        Command::Profile(options) => profile::run(&options, &client),
        Command::Report(options) => client.refuse("report").and_then(|()| report::run(&options)),
        Command::Top(options) => top::run(&options, &client),
        Command::Doctor(options) => doctor::run(&options, &client),
        Command::Broker(options) => client.refuse("broker").and_then(|()| broker::run(&options)),
        Command::Help(options) => client.refuse("help").and_then(|()| help::run(&options, Cli::command())),
        Command::Completion(options) => client.refuse("completion").and_then(|()| completion::run(&options)),
        Command::ManPages(options) => {
            client.refuse("man-pages").and_then(|()| man_pages::run(Cli::command(), &options))
        }
        Command::Properties(options) => client.refuse("properties").and_then(|()| properties::run(&options)),
        Command::RdkafkaPerformance(options) => match client.refuse(rdkafka_performance::NAME) {
            Ok(()) => return rdkafka_performance::run(options.flags),
            refused => refused,
        },
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(&program),
    }
}

/// Returns the definition of the command line.
#[cfg(test)]
pub fn command() -> clap::Command {
    Cli::command()
}

/// The subcommand that a program of this name runs.
fn tool(program: &str) -> Option<&'static str> {
    match program {
        "kafka-producer-perf-test" => Some("producer-perf-test"),
        "kafka-consumer-perf-test" => Some("consumer-perf-test"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn option_definitions_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn names_of_kafkas_tools_select_subcommands() {
        assert_eq!(tool("kafka-producer-perf-test"), Some("producer-perf-test"));
        assert_eq!(tool("ottla"), None);
    }

    /// Calls `check` with the path of every command and the command.
    fn walk(command: &clap::Command, path: &str, check: &mut impl FnMut(&str, &clap::Command)) {
        check(path, command);
        for inner in command.get_subcommands() {
            walk(inner, format!("{path} {}", inner.get_name()).trim(), check);
        }
    }

    /// Names of one meaning: the long one, and the short one that it has wherever it has one. Kafka's and librdkafka's own tools are
    /// excepted.
    const NAMES: [(&str, char); 13] = [
        ("bootstrap-server", 'b'),
        ("topic", 't'),
        ("partition", 'p'),
        ("json", 'J'),
        ("group", 'G'),
        ("offset", 'o'),
        ("count", 'c'),
        ("exit", 'e'),
        ("format", 'f'),
        ("quiet", 'q'),
        ("header", 'H'),
        ("key", 'k'),
        ("null", 'Z'),
    ];

    #[test]
    fn options_of_one_meaning_have_one_name() {
        let mut wrong = Vec::new();
        let mut shorts: std::collections::BTreeMap<char, String> =
            NAMES.iter().map(|(long, short)| (*short, (*long).to_owned())).collect();
        walk(&command(), "", &mut |path, command| {
            if path.ends_with("-perf-test") || path == "rdkafka_performance" {
                return;
            }
            for arg in command.get_arguments() {
                let Some(long) = arg.get_long() else { continue };
                if long == "json" && arg.get_short() != Some('J') {
                    wrong.push(format!("{path}: --json without -J"));
                }
                // -l has its meaning in kcat, and that of ls in lists.
                let Some(short) = arg.get_short().filter(|short| *short != 'l') else { continue };
                let known = shorts.entry(short).or_insert_with(|| long.to_owned());
                if known != long {
                    wrong.push(format!("{path}: -{short} is --{long} here and --{known} elsewhere"));
                }
            }
        });
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn help_of_options_is_a_sentence_with_units() {
        let mut wrong = Vec::new();
        walk(&command(), "", &mut |path, command| {
            if path == "rdkafka_performance" {
                return;
            }
            if command.get_about().is_none() {
                wrong.push(format!("{path}: no description"));
            }
            for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
                let help =
                    arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
                let name = format!("{path}: {}", arg.get_id());
                if help.is_empty()
                    || help.starts_with(char::is_lowercase)
                    || help.ends_with('.') && !help.ends_with("...")
                {
                    wrong.push(format!(
                        "{name}: \"{help}\" is empty, begins in lower case or ends with a full stop"
                    ));
                }
                let id = arg.get_id().as_str();
                let measures = ["timeout", "interval", "latency", "duration", "_ms", "bytes", "size"];
                let takes = arg.get_action().takes_values();
                let value = arg
                    .get_value_names()
                    .map(|names| names.iter().map(|name| name.to_string()).collect::<String>());
                let text = format!("{} {}", help, value.unwrap_or_default()).to_lowercase();
                let units = ["ms", "second", "byte", "time", "duration", "record", " such as "];
                if takes
                    && measures.iter().any(|part| id.contains(part))
                    && !units.iter().any(|unit| text.contains(unit))
                {
                    wrong.push(format!("{name}: no unit in \"{help}\""));
                }
            }
        });
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn command_lines_in_the_help_are_whole() {
        let (mut texts, mut lines) = (HelpTexts::default(), 0);
        let mut marked = texts.take(command()).term_width(60);
        marked.build();
        walk(&command(), "", &mut |path, command| {
            let Some(text) = command.get_after_help().map(ToString::to_string) else { return };
            let one =
                path.split_whitespace().try_fold(&mut marked, |one, name| one.find_subcommand_mut(name));
            let printed = texts.put(one.unwrap().render_help().to_string(), true);
            for line in text.lines().filter(|line| line.trim_start().starts_with("ottla ")) {
                lines += 1;
                assert!(printed.lines().any(|one| one == line), "{path}: {line}");
                assert!(line.len() <= 160, "{path}: {line}");
            }
        });
        assert!(lines > 100, "{lines}");
    }
}
