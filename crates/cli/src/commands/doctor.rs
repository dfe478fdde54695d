//! `ottla doctor`: examines the way to a cluster.

use std::{io, time::Duration};

use clap::Args;
use ottla_core::config::EffectiveConfig;

use crate::{
    client_options::ClientOptions,
    doctor::{Doctor, Report, Style, Wanted},
    failure::{EXIT_CODES, Failure, Outcome},
};

/// Find out why a client can't connect, and what to change
///
/// Connects step by step, as a client with these properties would: the name, TCP, TLS with the broker's certificates, the
/// API versions, SASL, metadata, a connection to each broker by its advertised address, and access to the topics and
/// groups that you name. Each step is a line; a step that fails says what is wrong and what to change. Nothing is written to
/// the cluster.
#[derive(Args, Debug)]
#[command(after_help = format!("Examples:\n  \
    ottla doctor -b localhost:9092\n  \
    ottla doctor -F client.properties --produce orders --consume orders --group billing\n  \
    ottla doctor -b kafka-1:9093 -X security.protocol=ssl -X ssl.ca.location=ca.pem\n  \
    ottla doctor -F client.properties --json | jq -r '.problems[]'\n\n\
    It recognizes, among others: a plaintext client on a TLS port and the reverse; a listener that requires SASL, or has\n\
    none; expired, future and revoked certificates; a wrong host, an unknown CA, a missing or refused client certificate;\n\
    a wrong mechanism or password; wrong clocks; advertised addresses that can't be reached; missing permissions.\n\n\
    Each wait lasts for 5 seconds at most; with --timeout the whole examination ends after that time.\n\n\
    {EXIT_CODES}"))]
pub struct DoctorOptions {
    #[command(flatten)]
    client: ClientOptions,

    /// Check that this topic exists and has leaders; can be repeated
    #[arg(short = 't', long, value_name = "TOPIC")]
    topic: Vec<String>,

    /// Check that the client may write to this topic; can be repeated
    #[arg(long, value_name = "TOPIC")]
    produce: Vec<String>,

    /// Check that the client may read this topic; can be repeated
    #[arg(long, value_name = "TOPIC")]
    consume: Vec<String>,

    /// Check that the client may be a member of this group; can be repeated
    #[arg(short = 'g', long, value_name = "GROUP")]
    group: Vec<String>,

    /// Print JSON
    #[arg(short = 'J', long)]
    json: bool,
}

/// Runs the command; `outer` are the options before its name.
pub fn run(options: &DoctorOptions, outer: &ClientOptions) -> Outcome {
    let client = options.client.after(outer);
    if client.wants_list() {
        return super::properties::list(&mut io::stdout().lock());
    }
    let config = client.config()?;
    let effective = EffectiveConfig::admin(config.raw())?;
    let wanted = Wanted {
        described: options.topic.clone(),
        produced: options.produce.clone(),
        consumed: options.consume.clone(),
        groups: options.group.clone(),
    };
    let mut report = Report::new(io::stdout().lock(), Style::for_output(options.json));
    examine(&effective, client.timeout, &wanted, &mut report);
    let problems = report.finish()?;
    if problems.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = problems.iter().map(|problem| problem.name()).collect();
    Err(Failure::Failed(format!("doctor: {}", names.join(", "))))
}

fn examine<W: io::Write>(
    config: &EffectiveConfig<'_>,
    timeout: Option<Duration>,
    wanted: &Wanted,
    report: &mut Report<W>,
) {
    let Some(doctor) = Doctor::new(config, timeout, report) else { return };
    let mut connected = None;
    let servers = config.servers();
    for (index, server) in servers.iter().enumerate() {
        doctor.share_time(servers.len() - index);
        if let Some(connection) = doctor.connect(&server.host, server.port, report)
            && connected.is_none()
        {
            connected = Some((connection, (server.host.as_str(), server.port)));
        }
    }
    if let Some((connection, server)) = connected {
        doctor.share_time(1);
        doctor.examine_cluster(connection, server, wanted, report);
    }
}
