//! `ottla metadata`: prints brokers, topics and partitions in kcat's layout or as JSON.

use std::io::{self, Write};

use clap::Args;
use ottla::ClusterDescription;
use serde_json::{Value, json};

use crate::client_options::{ClientOptions, call_timeout};
use crate::commands::topics::join;
use crate::events::EventWatch;
use crate::failure::{EXIT_CODES, Outcome};

/// Print the cluster's brokers, topics and partitions
#[derive(Args, Debug)]
#[command(after_help = format!("Examples:\n  \
    ottla metadata -b localhost:9092\n  \
    ottla metadata -b localhost:9092 -t demo -J\n\n{EXIT_CODES}"))]
pub struct MetadataOptions {
    #[command(flatten)]
    client: ClientOptions,

    /// Print only this topic; can be repeated
    #[arg(short = 't', long)]
    topic: Vec<String>,

    /// Print JSON
    #[arg(short = 'J', long)]
    json: bool,
}

/// Runs the command; `outer` are the options before its name.
pub fn run(options: &MetadataOptions, outer: &ClientOptions) -> Outcome {
    let client = options.client.after(outer);
    if client.wants_list() {
        return super::properties::list(&mut io::stdout().lock());
    }
    let (admin, _watch) = EventWatch::connect_admin(&client)?;
    let names: Vec<_> = options.topic.iter().map(String::as_str).collect();
    let which = if names.is_empty() { None } else { Some(names.as_slice()) };
    let mut cluster = admin.metadata(which, call_timeout())?;
    cluster.brokers.sort_by_key(|broker| broker.id);
    cluster.topics.sort_by(|left, right| left.name.cmp(&right.name));
    let mut out = io::stdout().lock();
    match options.json {
        true => writeln!(out, "{}", as_json(&cluster))?,
        false => print(&cluster, &options.topic, &mut out)?,
    }
    let error = cluster.topics.into_iter().find_map(|topic| topic.error);
    match error.filter(|_| !names.is_empty()) {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}

fn print(cluster: &ClusterDescription, topics: &[String], out: &mut impl Write) -> io::Result<()> {
    let which = if topics.is_empty() { "all topics".to_string() } else { topics.join(", ") };
    writeln!(
        out,
        "Metadata for {which} (cluster {}):",
        cluster.cluster_id.as_deref().unwrap_or("without id")
    )?;
    writeln!(out, " {} brokers:", cluster.brokers.len())?;
    for broker in &cluster.brokers {
        let rack = broker.rack.as_ref().map_or(String::new(), |rack| format!(" in rack {rack}"));
        let controller = if cluster.controller_id == Some(broker.id) { " (controller)" } else { "" };
        writeln!(out, "  broker {} at {}:{}{rack}{controller}", broker.id, broker.host, broker.port)?;
    }
    writeln!(out, " {} topics:", cluster.topics.len())?;
    for topic in &cluster.topics {
        let error = topic.error.as_ref().map_or(String::new(), |error| format!(" {error}"));
        writeln!(out, "  topic \"{}\" with {} partitions:{error}", topic.name, topic.partitions.len())?;
        for partition in &topic.partitions {
            let error = partition.error.as_ref().map_or(String::new(), |error| format!(", {error}"));
            writeln!(
                out,
                "    partition {}, leader {}, replicas: {}, isrs: {}{error}",
                partition.id,
                partition.leader.unwrap_or(-1),
                join(&partition.replicas),
                join(&partition.in_sync_replicas),
            )?;
        }
    }
    Ok(())
}

/// Returns kcat's fields, and the IDs that kcat does not print.
fn as_json(cluster: &ClusterDescription) -> Value {
    let ids = |ids: &[i32]| ids.iter().map(|id| json!({ "id": id })).collect::<Vec<_>>();
    json!({
        "clusterid": cluster.cluster_id,
        "controllerid": cluster.controller_id,
        "brokers": cluster.brokers.iter().map(|broker| json!({
            "id": broker.id,
            "name": format!("{}:{}", broker.host, broker.port),
            "rack": broker.rack,
        })).collect::<Vec<_>>(),
        "topics": cluster.topics.iter().map(|topic| json!({
            "topic": topic.name,
            "topicid": topic.id,
            "error": topic.error.as_ref().map(ToString::to_string),
            "partitions": topic.partitions.iter().map(|partition| json!({
                "partition": partition.id,
                "leader": partition.leader.unwrap_or(-1),
                "replicas": ids(&partition.replicas),
                "isrs": ids(&partition.in_sync_replicas),
                "error": partition.error.as_ref().map(ToString::to_string),
            })).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
    })
}
