//! Administration: topics, configurations, offsets.
//!
//!     cargo run --package ottla --example admin

mod support;

use std::time::Duration;

use ottla::{
    Admin, AdminOptions, ConfigChange, ConfigResource, NewPartitions, NewTopic, OffsetSpec, RecordsToDelete,
};

const TIMEOUT: Duration = Duration::from_secs(10);
const TOPIC: &str = "example-admin";

/// Runs the example.
pub fn main() -> support::Result {
    let brokers = support::Brokers::find()?;
    let admin = Admin::new(&brokers.config()?)?;
    let cluster = admin.describe_cluster(TIMEOUT)?;
    println!("cluster {:?} with {} brokers", cluster.cluster_id, cluster.brokers.len());

    // First a check, then the topic itself.
    let topics = [NewTopic::new(TOPIC, 2, 1).config("retention.ms", "3600000")];
    for options in [AdminOptions::new(TIMEOUT).validate_only(true), TIMEOUT.into()] {
        for (topic, result) in admin.create_topics(&topics, options)? {
            result?;
            println!("{topic}: {}", if options.validate_only { "possible" } else { "created" });
        }
    }
    for (_, result) in admin.create_partitions(&[NewPartitions::new(TOPIC, 4)], TIMEOUT)? {
        result?;
    }

    let changes = vec![(ConfigResource::topic(TOPIC), vec![ConfigChange::set("cleanup.policy", "compact")])];
    for (_, result) in admin.incremental_alter_configs(&changes, TIMEOUT)? {
        result?;
    }
    for (resource, entries) in admin.describe_configs(&[ConfigResource::topic(TOPIC)], TIMEOUT)? {
        for entry in entries?.iter().filter(|entry| !entry.is_default) {
            println!("{}: {}={:?}", resource.name, entry.name, entry.value);
        }
    }

    for listed in admin.list_offsets(&[(TOPIC, 0, OffsetSpec::Latest)], TIMEOUT)? {
        if let Some(end) = listed?.offset {
            println!("the end of partition 0 is at offset {end}");
        }
    }
    for lowest in admin.delete_records(&[(TOPIC, 0, RecordsToDelete::All)], TIMEOUT)? {
        println!("the lowest offset is {}", lowest?);
    }
    for (_, result) in admin.delete_topics(&[TOPIC], TIMEOUT)? {
        result?;
    }
    Ok(())
}
