//! Plans in the format of Kafka's kafka-reassign-partitions: the replicas of partitions, and their directories.

use std::collections::BTreeMap;
use std::path::Path;

use ottla::TopicPartition;
use serde_json::{Value, json};

use super::super::admin_command::read_text;
use crate::failure::{Failure, Outcome};

/// The replicas of partitions.
pub type Plan = BTreeMap<TopicPartition, Vec<i32>>;

/// The directories of replicas, by broker.
pub type LogDirs = BTreeMap<i32, BTreeMap<TopicPartition, String>>;

/// The directory of a replica that may be in any.
const ANY: &str = "any";

/// Reads a plan; `-` is standard input.
pub fn read(path: &Path) -> Outcome<(Plan, LogDirs)> {
    let text = read_text(path, "plan")?;
    let invalid = |reason| Failure::Usage(format!("the plan {} is invalid: {reason}", path.display()));
    parse(&text).map_err(invalid)
}

fn parse(text: &str) -> Result<(Plan, LogDirs), String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let partitions = value.get("partitions").and_then(Value::as_array).ok_or("\"partitions\" is missing")?;
    let (mut plan, mut log_dirs) = (Plan::new(), LogDirs::new());
    for one in partitions {
        let number = |value: &Value| value.as_i64().and_then(|number| i32::try_from(number).ok());
        let topic = one.get("topic").and_then(Value::as_str);
        let partition = one.get("partition").and_then(number);
        let replicas = one.get("replicas").and_then(Value::as_array);
        let replicas =
            replicas.and_then(|replicas| replicas.iter().map(number).collect::<Option<Vec<i32>>>());
        let (Some(topic), Some(partition), Some(replicas)) = (topic, partition, replicas) else {
            return Err(format!("{one} needs \"topic\", \"partition\" and \"replicas\""));
        };
        let key = TopicPartition::new(topic, partition);
        for (broker, path) in replicas.iter().zip(dirs_of(one, replicas.len())?) {
            if path != ANY {
                log_dirs.entry(*broker).or_default().insert(key.clone(), path.to_owned());
            }
        }
        if plan.insert(key, replicas).is_some() {
            return Err(format!("topic \"{topic}\" [{partition}] is listed twice"));
        }
    }
    if plan.is_empty() { Err("it has no partitions".into()) } else { Ok((plan, log_dirs)) }
}

/// Returns the directory of each replica of a partition, if the plan has them.
fn dirs_of(one: &Value, replicas: usize) -> Result<Vec<&str>, String> {
    let Some(dirs) = one.get("log_dirs") else { return Ok(Vec::new()) };
    let paths = dirs.as_array().and_then(|dirs| dirs.iter().map(Value::as_str).collect::<Option<Vec<_>>>());
    match paths {
        Some(paths) if paths.len() == replicas => Ok(paths),
        Some(paths) => Err(format!("{one} has {} \"log_dirs\" for {replicas} replicas", paths.len())),
        None => Err(format!("{one} needs a path or \"{ANY}\" for each of its \"log_dirs\"")),
    }
}

/// Returns a plan as a file has it.
pub fn to_json(plan: &Plan) -> Value {
    let partitions = plan.iter().map(
        |(key, replicas)| json!({"topic": &*key.topic, "partition": key.partition, "replicas": replicas}),
    );
    json!({"version": 1, "partitions": partitions.collect::<Vec<_>>()})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_read_as_they_are_written() {
        let plan: Plan = (0..3).map(|number| (TopicPartition::new("t", number), vec![1, 2])).collect();
        assert_eq!(parse(&to_json(&plan).to_string()), Ok((plan, LogDirs::new())));
        for wrong in [
            "",
            "{}",
            "{\"partitions\": []}",
            "{\"partitions\": [{\"topic\": \"t\", \"partition\": 0}]}",
            "{\"partitions\": [{\"topic\": \"t\", \"partition\": 0, \"replicas\": [\"a\"]}]}",
            "{\"partitions\": [{\"topic\": \"t\", \"partition\": 0, \"replicas\": [1]}, {\"topic\": \"t\", \"partition\": 0, \"replicas\": [2]}]}",
            "{\"partitions\": [{\"topic\": \"t\", \"partition\": 0, \"replicas\": [1, 2], \"log_dirs\": [\"any\"]}]}",
            "{\"partitions\": [{\"topic\": \"t\", \"partition\": 0, \"replicas\": [1], \"log_dirs\": [7]}]}",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn directories_of_a_plan_belong_to_its_replicas() {
        let text = r#"{"partitions": [{"topic": "t", "partition": 4, "replicas": [3, 1], "log_dirs": ["any", "/b"]}]}"#;
        let key = TopicPartition::new("t", 4);
        let dirs = LogDirs::from([(1, BTreeMap::from([(key.clone(), "/b".to_owned())]))]);
        assert_eq!(parse(text), Ok((Plan::from([(key, vec![3, 1])]), dirs)));
    }
}
