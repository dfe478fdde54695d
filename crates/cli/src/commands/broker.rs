//! `ottla broker`: an embedded cluster as a server.

use std::{fmt::Write as _, io::Write as _, time::Duration};

use clap::Args;
use ottla_embedded_broker::{ClientTelemetry, ClusterOptions, EmbeddedCluster, TelemetryPush};

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

    /// Ask clients for the metrics whose names begin so, or `*` for all (KIP-714), and print what they push
    #[arg(long, value_name = "PREFIX", value_delimiter = ',')]
    client_metrics: Vec<String>,

    /// How often clients are to push them, in milliseconds
    #[arg(long, default_value_t = 5000, value_parser = clap::value_parser!(u64).range(100..=3_600_000))]
    client_metrics_interval: u64,
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
        client_telemetry: match options.client_metrics.is_empty() {
            true => ClientTelemetry::None,
            false => ClientTelemetry::Kafka,
        },
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
    cluster.control(|control| {
        control.telemetry().set_requested_metrics(options.client_metrics.iter().cloned());
        control.telemetry().set_push_interval(Duration::from_millis(options.client_metrics_interval));
    });
    println!("bootstrap.servers={}", cluster.bootstrap_servers());
    eprintln!("{} broker(s) running, Ctrl-C ends them", options.brokers);
    loop {
        // The brokers run on a thread of their own; the process ends by a signal.
        if options.client_metrics.is_empty() {
            std::thread::park();
            continue;
        }
        std::thread::sleep(Duration::from_millis(100));
        let pushes = cluster.control(|control| control.telemetry().take_pushes());
        let mut out = std::io::stdout().lock();
        pushes
            .iter()
            .try_for_each(|push| out.write_all(written(push).as_bytes()))
            .map_err(|error| Failure::Failed(format!("what clients pushed can't be printed: {error}")))?;
    }
}

/// A push as lines: who, and each value.
fn written(push: &TelemetryPush) -> String {
    let (software, version) =
        push.software.as_ref().map_or(("a client", ""), |(name, version)| (name.as_str(), version.as_str()));
    let points = push.points();
    let mut out = String::new();
    let _ = writeln!(
        out,
        "push by {} ({software} {version}, instance {}) to broker {}: {} values, {}{}",
        push.client_id.as_deref().unwrap_or_default(),
        push.client_instance_id,
        push.broker,
        points.len(),
        push.compression,
        if push.terminating { ", its last" } else { "" },
    );
    for point in &points {
        let _ = write!(out, "  {}", point.name);
        let attributes: Vec<_> =
            point.attributes.iter().map(|(key, value)| format!("{key}={value}")).collect();
        if !attributes.is_empty() {
            let _ = write!(out, "{{{}}}", attributes.join(","));
        }
        let _ = writeln!(out, " {}", point.value);
    }
    out
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
