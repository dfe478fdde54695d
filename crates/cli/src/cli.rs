//! The subcommands, and which of them is meant.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::commands::{
    broker, consume, consumer_perf_test, metadata, offsets, produce, producer_perf_test, properties,
    rdkafka_performance, topics,
};

/// Kafka from the command line: measure, produce, consume, look, and a cluster of its own
///
/// Called as kafka-producer-perf-test, kafka-consumer-perf-test or rdkafka_performance it is that tool.
#[derive(Parser, Debug)]
#[command(
    name = "ottla",
    version,
    infer_long_args = true,
    after_help = "Examples:\n  \
        ottla producer-perf-test --topic demo --num-records 5000000 --record-size 100 --throughput -1\n  \
        ottla broker --brokers 3 --port 9092\n  \
        echo hello | ottla produce -b localhost:9092 -t demo\n  \
        ottla consume -b localhost:9092 -t demo -o beginning -e\n  \
        ottla -X list                                            # all properties\n\n\
        Exit codes: 0 done, 1 failed, 2 wrongly called"
)]
struct Cli {
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
    Topics(topics::TopicsOptions),
    Offsets(offsets::OffsetsOptions),
    Metadata(metadata::MetadataOptions),
    Broker(broker::BrokerOptions),
    Properties(properties::PropertiesOptions),
    #[command(name = "rdkafka_performance")]
    RdkafkaPerformance(rdkafka_performance::RdkafkaPerformanceOptions),
}

/// Runs the command that the arguments name, the first being the program.
pub fn run(mut arguments: Vec<OsString>) -> ExitCode {
    let program = arguments
        .first()
        .and_then(|path| Path::new(path).file_stem()?.to_str())
        .unwrap_or("ottla")
        .to_string();
    if let Some(command) = tool(&program) {
        arguments.insert(1, command.into());
    }
    // Its flags are not ours to read: the C program takes them as they stand.
    if program == rdkafka_performance::NAME {
        return rdkafka_performance::run(arguments);
    }
    if arguments.get(1).is_some_and(|command| command == rdkafka_performance::NAME) {
        return rdkafka_performance::run(arguments.split_off(1));
    }
    if arguments.len() == 3 && arguments[1] == "-X" && arguments[2] == "list" {
        arguments.splice(1.., ["properties".into()]);
    }
    let outcome = match Cli::parse_from(arguments).command {
        Command::ProducerPerfTest(options) => producer_perf_test::run(&options),
        Command::ConsumerPerfTest(options) => consumer_perf_test::run(&options),
        Command::Produce(options) => produce::run(&options),
        Command::Consume(options) => consume::run(&options),
        Command::Topics(options) => topics::run(&options),
        Command::Offsets(options) => offsets::run(&options),
        Command::Metadata(options) => metadata::run(&options),
        Command::Broker(options) => broker::run(&options),
        Command::Properties(options) => properties::run(&options),
        Command::RdkafkaPerformance(options) => return rdkafka_performance::run(options.flags),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(&program),
    }
}

/// The subcommand that a program of this name is.
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
    use clap::CommandFactory;

    #[test]
    fn the_options_contradict_each_other_nowhere() {
        Cli::command().debug_assert();
    }

    #[test]
    fn kafkas_names_are_tools() {
        assert_eq!(tool("kafka-producer-perf-test"), Some("producer-perf-test"));
        assert_eq!(tool("ottla"), None);
    }
}
