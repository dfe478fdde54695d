//! An assignor of the application: each member gets partitions in proportion to the capacity that it reports.
//!
//!     cargo run --package ottla --example custom_assignor

mod support;

use std::{
    collections::BTreeSet,
    error::Error,
    sync::Arc,
    time::{Duration, Instant},
};

use ottla::{Admin, Consumer, GroupAssignment, GroupTable, NewTopic, PartitionAssignor, TopicPartition};

const TIMEOUT: Duration = Duration::from_secs(20);
const TOPIC: &str = "example-custom-assignor";

/// Members send their capacity as user data; the leader divides the partitions accordingly.
struct ByCapacity {
    capacity: u8,
}

impl PartitionAssignor for ByCapacity {
    fn name(&self) -> &str {
        "by-capacity"
    }

    fn user_data(&self, _topics: &BTreeSet<Arc<str>>) -> Option<Vec<u8>> {
        Some(vec![self.capacity])
    }

    fn assign(&self, group: &GroupTable) -> Result<GroupAssignment, Box<dyn Error + Send + Sync>> {
        let mut assignment = GroupAssignment::default();
        for (topic, table) in group.topics() {
            let members = group.members().iter().filter(|member| member.topics.contains(topic));
            // Each member is listed once per unit of its capacity. The data of other processes may be anything.
            let units = members.flat_map(|member| {
                let capacity =
                    member.user_data.as_ref().and_then(|data| data.first()).map_or(1, |first| *first);
                std::iter::repeat_n(&member.id, capacity.max(1).into())
            });
            let units: Vec<&String> = units.collect();
            for number in 0..table.partitions() {
                let unit = units[number % units.len()];
                assignment.add(unit, TopicPartition::new(Arc::clone(topic), number as i32));
            }
        }
        Ok(assignment)
    }
}

/// Runs the example.
pub fn main() -> support::Result {
    let brokers = support::Brokers::find()?;
    let mut config = brokers.config()?;
    let topics = [NewTopic::new(TOPIC, 8, 1)];
    for (_, created) in Admin::new(&config)?.create_topics(&topics, TIMEOUT)? {
        created?;
    }
    config.set("group.id", "example-custom-assignor")?;
    config.set("partition.assignment.strategy", "by-capacity")?;
    let members: Vec<Consumer> = [1, 3]
        .into_iter()
        .map(|capacity| Consumer::builder(&config).assignor(ByCapacity { capacity }).build())
        .collect::<Result<_, _>>()?;
    for member in &members {
        member.subscribe(&[TOPIC])?;
    }
    let began = Instant::now();
    loop {
        for member in &members {
            let records = member.poll(Duration::from_millis(20))?;
            records.events().iter().for_each(|event| println!("{event:?}"));
        }
        let counts: Vec<usize> = members.iter().map(|member| member.assignment().len()).collect();
        if counts == [2, 6] {
            println!("partitions of the members: {counts:?}");
            break;
        }
        if began.elapsed() > TIMEOUT {
            return Err(format!("the members have {counts:?} partitions instead of [2, 6]").into());
        }
    }
    for member in members {
        member.close(TIMEOUT)?;
    }
    Ok(())
}
