//! `ottla broker`: runs an embedded cluster as a server.
//!
//! `seed.rs` has the topics and records that are there at the start, `recording.rs` writes what clients change and `replay.rs` repeats
//! it, `fault.rs` has what goes wrong while it runs.

mod fault;
mod recording;
mod replay;
mod seed;

use std::{
    fmt::Write as _,
    io::Write as _,
    net::{IpAddr, ToSocketAddrs},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use clap::{Args, Subcommand};
use ottla_embedded_broker::{
    Authorizer, ClientTelemetry, ClusterOptions, EmbeddedCluster, Listener, ListenerId, TelemetryPush,
};

use self::recording::Recording;
use self::replay::Replay;
use self::seed::Seed;
#[cfg(feature = "schemas")]
use super::schema_registry;
use super::{
    listeners::{ListenerOption, SecurityProtocol, listeners},
    sasl::Sasl,
    self_signed::SelfSigned,
};
use crate::{
    failure::{Failure, Outcome},
    signals::Interrupt,
    standard_error::note,
};

/// Run an embedded Kafka cluster, until SIGINT (Ctrl-C) or SIGTERM
///
/// Any Kafka client can connect. All data is in memory and lost at the end. All logs together hold up to 4 GiB; beyond
/// that the oldest batches of the longest logs are deleted. The IDs of topics and of the cluster are new at each start.
///
/// Topics are compacted and their segments deleted as in Kafka, if a topic sets retention.ms or retention.bytes; limits for batches and
/// timestamps, compression.type and quotas are enforced. docs/guide/testing.md lists the topic configurations that have an
/// effect. All others are accepted and listed; a warning names them.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  \
    ottla broker --brokers 3 --port 9092\n  \
    ottla broker --discard --port 9092      # for benchmarks of producers\n  \
    ottla broker --tls-self-signed --port 9093      # prints the properties for clients\n  \
    ottla broker --sasl scram-sha-512 --sasl-user alice:secret\n  \
    ottla broker --listener plaintext --listener sasl_ssl:9094 --sasl plain --sasl-user alice:secret\n  \
    ottla broker --schema-registry      # also a schema registry on http://127.0.0.1:8081\n  \
    ottla broker --seed-topics orders.jsonl --control-port 9999\n  \
    ottla broker --record fixture.jsonl      # later: ottla broker --replay fixture.jsonl\n  \
    ottla broker --host 0.0.0.0 --advertised-host kafka      # in a container with the host name kafka"
)]
pub struct BrokerOptions {
    #[command(subcommand)]
    action: Option<Action>,

    /// The number of brokers
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(i32).range(1..=300))]
    pub(super) brokers: i32,

    /// The port of the first broker; the others get the following ports. 0 chooses free ports
    #[arg(long, default_value_t = 9092)]
    pub(super) port: u16,

    /// The host or address to listen on; 0.0.0.0 for all interfaces
    #[arg(long, default_value = "127.0.0.1")]
    pub(super) host: String,

    /// The advertised host, which clients connect to [default: --host, or the loopback address if that is 0.0.0.0 or
    /// ::]
    #[arg(long, value_name = "HOST", env = "OTTLA_ADVERTISED_HOST")]
    pub(super) advertised_host: Option<String>,

    /// The advertised port of the first broker, which clients connect to; the others get the following ports [default:
    /// --port]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    advertised_port: Option<u16>,

    /// A listener of each broker: plaintext, ssl, sasl_plaintext or sasl_ssl, and the port of the first broker, which is
    /// --port for the first listener and a free port for further ones; can be repeated. Clients stay at the listener to
    /// which they connect [default: one listener, as --tls-self-signed and --sasl have it]
    #[arg(long, value_name = "PROTOCOL[:PORT]", conflicts_with_all = ["tls_self_signed", "advertised_port"], value_parser = ListenerOption::parse)]
    pub(super) listener: Vec<ListenerOption>,

    /// Encrypt all connections with TLS, with a certificate that is made at the start. The CA's certificate is written to a
    /// file, and the properties for clients are printed
    #[arg(long)]
    pub(super) tls_self_signed: bool,

    /// With TLS: require a client certificate. One is made, written to files and printed, too
    #[arg(long)]
    pub(super) tls_client_auth: bool,

    /// With --tls-client-auth: how the subject of a client's certificate becomes its principal, as in Kafka's
    /// ssl.principal.mapping.rules, for example `RULE:^CN=([^,]*).*$/$1/L,DEFAULT` [default: the subject]
    #[arg(long, value_name = "RULES", requires = "tls_client_auth")]
    pub(super) tls_principal_mapping: Option<String>,

    /// Require clients to authenticate with one of these mechanisms: plain, scram-sha-256, scram-sha-512, oauthbearer
    /// (tokens with signatures, see --sasl-jwks), or oauthbearer-unsecured, which believes every name that a client claims.
    /// The properties for clients are printed
    #[arg(long, value_name = "MECHANISM", value_delimiter = ',', value_parser = ["plain", "scram-sha-256", "scram-sha-512", "oauthbearer", "oauthbearer-unsecured"])]
    pub(super) sasl: Vec<String>,

    /// With --sasl oauthbearer: the file with the public keys of the identity provider (a JSON Web Key Set)
    #[arg(long, value_name = "FILE", requires = "sasl")]
    pub(super) sasl_jwks: Option<PathBuf>,

    /// With --sasl oauthbearer: accept only tokens of this issuer
    #[arg(long, value_name = "ISSUER", requires = "sasl_jwks")]
    pub(super) sasl_issuer: Option<String>,

    /// With --sasl oauthbearer: accept only tokens for this audience
    #[arg(long, value_name = "AUDIENCE", requires = "sasl_jwks")]
    pub(super) sasl_audience: Option<String>,

    /// With --sasl: a user of plain and scram; can be repeated
    #[arg(long, value_name = "NAME:PASSWORD", requires = "sasl")]
    pub(super) sasl_user: Vec<String>,

    /// With --sasl: clients must authenticate again within this number of milliseconds (connections.max.reauth.ms)
    #[arg(long, value_name = "MS", requires = "sasl", value_parser = clap::value_parser!(u64).range(100..=86_400_000))]
    pub(super) sasl_max_session: Option<u64>,

    /// Check access with rules (`ottla acls`). This user may do everything, and all other users only what a rule allows; can
    /// be repeated. Clients that do not authenticate are ANONYMOUS
    #[arg(long, value_name = "NAME")]
    super_user: Vec<String>,

    /// With --super-user: all users may do with a resource whatever they like while no rule is about it
    /// (allow.everyone.if.no.acl.found)
    #[arg(long, requires = "super_user")]
    allow_everyone_if_no_acl_found: bool,

    /// The cluster's ID [default: a random one]
    #[arg(long, value_name = "ID")]
    cluster_id: Option<String>,

    /// Derive the IDs of topics and of the cluster from this number, so that they are the same at each start. A client
    /// that survives a restart then takes the new, empty topics for the old ones
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,

    /// Also run a schema registry, which answers as Confluent's, on 127.0.0.1:8081 or here; port 0 chooses a free one. It
    /// keeps schemas in the topic _schemas, and its address is the last property that is printed
    #[cfg(feature = "schemas")]
    #[arg(long, value_name = "HOST:PORT", num_args = 0..=1, default_missing_value = "127.0.0.1:8081", conflicts_with = "discard")]
    schema_registry: Option<String>,

    /// Acknowledge records and discard them
    #[arg(long)]
    discard: bool,

    /// The number of partitions of automatically created topics
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(i32).range(1..=100_000))]
    partitions: i32,

    /// Do not create unknown topics that a client requests
    #[arg(long)]
    no_auto_create: bool,

    /// Create a topic at the start; can be repeated
    #[arg(long, value_name = "NAME[:PARTITIONS]")]
    topic: Vec<String>,

    /// Create topics and records at the start: lines of `ottla consume -J`, and lines like {"create": "orders", "partitions": 3,
    /// "config": {"retention.ms": "60000"}}
    #[arg(long, value_name = "FILE", conflicts_with = "discard")]
    seed_topics: Option<PathBuf>,

    /// Write what clients change to this new file, as lines of JSON: topics, records, committed offsets, deleted groups and
    /// configurations
    #[arg(long, value_name = "FILE", conflicts_with = "discard")]
    record: Option<PathBuf>,

    /// Begin with the state that a file of --record ends with; --seed-topics comes after it
    #[arg(long, value_name = "FILE", conflicts_with = "discard")]
    replay: Option<PathBuf>,

    /// Serve `ottla broker fault` on this port of 127.0.0.1, and print the address; 0 chooses a free port
    #[arg(long, value_name = "PORT")]
    control_port: Option<u16>,

    /// Racks, assigned to the brokers in turn
    #[arg(long, value_delimiter = ',')]
    racks: Vec<String>,

    /// The finalized feature transaction.version: 2 as in a new cluster of Kafka 4, 1 or 0 as in one that was not upgraded
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(i16).range(0..=2))]
    transaction_version: i16,

    /// The interval of the heartbeats of members in the consumer protocol, in milliseconds (group.consumer.heartbeat.interval.ms)
    #[arg(long, value_name = "MS", default_value_t = 5000, value_parser = clap::value_parser!(u64).range(50..=30_000))]
    group_heartbeat_interval: u64,

    /// Request client metrics whose names start with one of these prefixes, or `*` for all (KIP-714), and print them
    #[arg(long, value_name = "PREFIX", value_delimiter = ',')]
    client_metrics: Vec<String>,

    /// The interval at which clients push metrics, in milliseconds
    #[arg(long, default_value_t = 5000, value_parser = clap::value_parser!(u64).range(100..=3_600_000))]
    client_metrics_interval: u64,
}

/// What to do with a running cluster.
#[derive(Subcommand, Debug)]
enum Action {
    Fault(fault::FaultOptions),
}

/// Runs it.
pub fn run(options: &BrokerOptions) -> Outcome {
    if let Some(Action::Fault(options)) = &options.action {
        return fault::run(options);
    }
    check(options)?;
    let seed = options.seed_topics.as_deref().map(Seed::read).transpose()?;
    let replay = options.replay.as_deref().map(Replay::read).transpose()?;
    let topics = options
        .topic
        .iter()
        .map(|topic| parse_topic(topic, options.partitions))
        .collect::<Outcome<Vec<_>>>()?;
    let interrupt = Interrupt::catch()?;
    let sasl = Sasl::new(options)?;
    let listeners = listeners(options, sasl.is_some())?;
    let has_tls = listeners.iter().any(|listener| listener.protocol.has_tls());
    if options.tls_client_auth && !has_tls {
        return Err(Failure::Usage(
            "--tls-client-auth: no listener uses TLS; add --tls-self-signed".to_owned(),
        ));
    }
    let tls = has_tls.then(|| SelfSigned::new(options)).transpose()?;
    let cluster = Arc::new(start(options, &listeners, tls.as_ref(), sasl.as_ref())?);
    let mut recording = options.record.as_deref().map(Recording::create).transpose()?;
    if recording.is_some() {
        cluster.control(|control| control.record_changes());
    }
    if let Some(replay) = &replay {
        replay.apply(&cluster)?;
    }
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
    let texts = properties(options, &cluster, &listeners, tls.as_ref(), sasl.as_ref());
    let own = texts.first().map_or("", String::as_str);
    if let Some(seed) = &seed {
        seed.sow(own, options.brokers.min(3) as i16)?;
    }
    let mut text = texts.join("\n");
    #[cfg(feature = "schemas")]
    let registry = match &options.schema_registry {
        Some(address) => {
            let registry = schema_registry::start(address, &cluster, options.brokers, own)?;
            let _ = writeln!(text, "schema.registry.url={}", registry.url());
            Some(registry)
        }
        None => None,
    };
    if let Some(port) = options.control_port {
        let _ = writeln!(text, "control={}", fault::serve(port, &cluster)?);
    }
    std::io::stdout().write_all(text.as_bytes())?;
    note!("{} broker(s) running; Ctrl-C stops them", options.brokers);
    // The brokers run in a separate thread.
    let mut is_over = false;
    while !is_over {
        std::thread::sleep(Duration::from_millis(100));
        is_over = interrupt.is_requested();
        if let Some(recording) = &mut recording {
            recording.write(&cluster.control(|control| control.take_changes()))?;
        }
        let (warnings, pushes) =
            cluster.control(|control| (control.take_warnings(), control.telemetry().take_pushes()));
        warnings.iter().for_each(|warning| note!("warning: {warning}"));
        let mut out = std::io::stdout().lock();
        pushes.iter().try_for_each(|push| out.write_all(written(push).as_bytes()))?;
    }
    #[cfg(feature = "schemas")]
    drop(registry);
    drop(cluster);
    note!("brokers stopped");
    Ok(())
}

/// Returns the properties for clients of each listener.
fn properties(
    options: &BrokerOptions,
    cluster: &EmbeddedCluster,
    listeners: &[ListenerOption],
    tls: Option<&SelfSigned>,
    sasl: Option<&Sasl>,
) -> Vec<String> {
    let mut texts = Vec::with_capacity(listeners.len());
    for (number, listener) in listeners.iter().enumerate() {
        let mut text = String::new();
        let protocol = listener.protocol;
        let servers = cluster.bootstrap_servers_of(ListenerId(number)).unwrap_or_default();
        let _ = writeln!(text, "bootstrap.servers={servers}");
        if protocol != SecurityProtocol::Plaintext || !options.listener.is_empty() {
            let _ = writeln!(text, "security.protocol={}", protocol.name());
        }
        tls.iter().filter(|_| protocol.has_tls()).for_each(|tls| text.push_str(&tls.properties));
        sasl.iter().filter(|_| protocol.has_sasl()).for_each(|sasl| text.push_str(&sasl.properties));
        texts.push(text);
    }
    texts
}

/// Returns an authorizer without rules.
fn authorizer(options: &BrokerOptions) -> Authorizer {
    let add = |authorizer: Authorizer, user: &String| authorizer.super_user(&format!("User:{user}"));
    let mut authorizer = options.super_user.iter().fold(Authorizer::default(), add);
    authorizer.allow_everyone_if_no_acl_found = options.allow_everyone_if_no_acl_found;
    authorizer
}

fn start(
    options: &BrokerOptions,
    listeners: &[ListenerOption],
    tls: Option<&SelfSigned>,
    sasl: Option<&Sasl>,
) -> Outcome<EmbeddedCluster> {
    let mut listeners = listeners.iter().map(|listener| Listener {
        port: listener.port.unwrap_or(0),
        advertised_port: None,
        tls: tls.filter(|_| listener.protocol.has_tls()).map(|tls| tls.listener.clone()),
        sasl: sasl.filter(|_| listener.protocol.has_sasl()).map(|sasl| sasl.listener.clone()),
    });
    let first = listeners.next().unwrap_or_default();
    let cluster_options = ClusterOptions {
        brokers: options.brokers,
        port: first.port,
        tls: first.tls,
        sasl: first.sasl,
        listeners: listeners.collect(),
        authorizer: (!options.super_user.is_empty()).then(|| authorizer(options)),
        host: options.host.clone(),
        advertised_host: options.advertised_host.clone(),
        advertised_port: options.advertised_port,
        cluster_id: options.cluster_id.clone(),
        seed: options.seed,
        discard: options.discard,
        partitions: options.partitions,
        auto_create_topics: !options.no_auto_create,
        racks: options.racks.clone(),
        transaction_version: options.transaction_version,
        group_consumer_heartbeat_interval: Duration::from_millis(options.group_heartbeat_interval),
        client_telemetry: match options.client_metrics.is_empty() {
            true => ClientTelemetry::None,
            false => ClientTelemetry::Kafka,
        },
        ..ClusterOptions::default()
    };
    let advertised = cluster_options.advertised_host();
    if options.advertised_host.is_none() && advertised != options.host {
        note!(
            "warning: the brokers advertise {advertised}, which only clients on this machine can reach; set \
             --advertised-host to a host that other machines can reach"
        );
    }
    if let Some(host) = &options.advertised_host {
        warn_of_unknown_host(host.clone());
    }
    EmbeddedCluster::start(cluster_options).map_err(|error| {
        Failure::Failed(format!(
            "the brokers can't listen on {} port {}: {error}",
            options.host, options.port
        ))
    })
}

/// Warns if this machine can't resolve the advertised host. Clients elsewhere may know the name, so the brokers start, and do
/// not wait for the answer.
fn warn_of_unknown_host(host: String) {
    std::thread::spawn(move || {
        if let Err(error) = (host.as_str(), 0).to_socket_addrs() {
            note!(
                "warning: --advertised-host {host}: this machine can't resolve the name ({error}); clients that can't either \
                 fail after their first request, so name a host that every client can resolve"
            );
        }
    });
}

fn check(options: &BrokerOptions) -> Outcome {
    for (name, port) in
        [("--port", options.port), ("--advertised-port", options.advertised_port.unwrap_or(0))]
    {
        if port != 0 && i32::from(port) + options.brokers - 1 > 65_535 {
            return Err(Failure::Usage(format!(
                "{name} {port}: {} brokers need as many ports, and the last port is 65535; choose a lower one",
                options.brokers
            )));
        }
    }
    let address = options.advertised_host.as_ref().and_then(|host| host.parse::<IpAddr>().ok());
    if options.advertised_host.as_ref().is_some_and(String::is_empty)
        || address.is_some_and(|address| address.is_unspecified())
    {
        return Err(Failure::Usage(
            "--advertised-host: no client can connect to this address; name a host that clients can reach"
                .to_owned(),
        ));
    }
    Ok(())
}

/// Formats a push: a line about the client, then a line per value.
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
