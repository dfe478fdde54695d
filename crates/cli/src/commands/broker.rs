//! `ottla broker`: an embedded cluster as a server.

use clap::Args;
use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};

use crate::failure::{Failure, Outcome};

/// Run an embedded Kafka cluster, until Ctrl-C
///
/// Everything is kept in memory and gone afterwards. Any Kafka client can connect.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    ottla broker --brokers 3 --port 9092\n  \
    ottla broker --discard --port 9092      # to measure producers")]
pub struct BrokerOptions {
    /// How many brokers
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(i32).range(1..=300))]
    brokers: i32,

    /// The first broker's port; the others get the ports after it. 0 takes free ones
    #[arg(long, default_value_t = 9092)]
    port: u16,

    /// The host that is listened on and advertised
    #[arg(long, default_value = "127.0.0.1")]
    host: String,

    /// Acknowledge records and throw them away
    #[arg(long)]
    discard: bool,

    /// Partitions of topics that are created by themselves
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(i32).range(1..=100_000))]
    partitions: i32,

    /// Don't create topics when a client asks for them
    #[arg(long)]
    no_auto_create: bool,

    /// Create a topic at the start; may stand more than once
    #[arg(long, value_name = "NAME[:PARTITIONS]")]
    topic: Vec<String>,

    /// Racks, given to the brokers in turn
    #[arg(long, value_delimiter = ',')]
    racks: Vec<String>,
}

/// Runs it.
pub fn run(options: &BrokerOptions) -> Outcome {
    if options.port != 0 && i32::from(options.port) + options.brokers - 1 > 65_535 {
        return Err(Failure::Usage(format!(
            "there are not {} ports from --port {} on",
            options.brokers, options.port
        )));
    }
    let topics = options
        .topic
        .iter()
        .map(|topic| parse_topic(topic, options.partitions))
        .collect::<Outcome<Vec<_>>>()?;
    let cluster = EmbeddedCluster::start(ClusterOptions {
        brokers: options.brokers,
        port: options.port,
        host: options.host.clone(),
        discard: options.discard,
        partitions: options.partitions,
        auto_create_topics: !options.no_auto_create,
        racks: options.racks.clone(),
        ..ClusterOptions::default()
    })
    .map_err(|error| {
        Failure::Failed(format!(
            "the brokers can't listen on {} port {}: {error}",
            options.host, options.port
        ))
    })?;
    for (name, partitions) in &topics {
        let replicas = options.brokers.min(3) as i16;
        cluster
            .control(|control| control.create_topic(name, *partitions, replicas))
            .map_err(|error| Failure::Usage(format!("--topic {name}: {error:?}")))?;
    }
    println!("bootstrap.servers={}", cluster.bootstrap_servers());
    eprintln!("{} broker(s) running, Ctrl-C ends them", options.brokers);
    loop {
        // The brokers run on a thread of their own; the process ends by a signal.
        std::thread::park();
    }
}

fn parse_topic(topic: &str, partitions: i32) -> Outcome<(String, i32)> {
    let Some((name, count)) = topic.rsplit_once(':') else { return Ok((topic.to_string(), partitions)) };
    match count.parse() {
        Ok(count @ 1..=100_000) => Ok((name.to_string(), count)),
        _ => Err(Failure::Usage(format!(
            "--topic {topic}: write NAME:PARTITIONS, with 1 to 100000 partitions"
        ))),
    }
}
