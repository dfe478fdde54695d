//! `ottla topics delete-records`: deletes the oldest records of partitions, as Kafka's kafka-delete-records.

use ottla_sorted::SortedMap;
use std::path::PathBuf;

use clap::Args;
use ottla::{Admin, OffsetSpec, RecordsToDelete, TopicPartition};
use serde_json::Value;

use super::admin_command::{Common, finish, read_text};
use super::table::Table;
use crate::client_options::call_timeout;
use crate::failure::{Failure, Outcome};

/// Delete the records of partitions before an offset
///
/// The records of a partition are deleted from the first one on; those before and after an offset can't be exchanged. A topic
/// that is only compacted refuses.
#[derive(Args, Debug)]
pub struct DeleteRecordsOptions {
    #[command(flatten)]
    pub common: Common,

    /// Partitions with the offset of the first record that stays; "end" deletes all records
    #[arg(value_name = "TOPIC:PARTITION=OFFSET", value_parser = records, required_unless_present = "from_file")]
    records: Vec<Records>,

    /// A file in the format of kafka-delete-records, whose offset -1 is the end; - for standard input:
    /// {"partitions": [{"topic": "orders", "partition": 0, "offset": 100}], "version": 1}
    #[arg(long, value_name = "FILE", visible_alias = "offset-json-file", conflicts_with = "records")]
    from_file: Option<PathBuf>,

    /// Only print the offsets of the records that would be deleted
    #[arg(long)]
    dry_run: bool,
}

/// The first offset of a partition that stays; `None` for the end.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Records {
    key: TopicPartition,
    before: Option<i64>,
}

fn records(text: &str) -> Result<Records, String> {
    const FORM: &str = "write TOPIC:PARTITION=OFFSET";
    let (key, offset) = text.split_once('=').ok_or_else(|| format!("\"=\" is missing; {FORM}"))?;
    let (topic, number) = key.rsplit_once(':').ok_or_else(|| format!("\":\" is missing; {FORM}"))?;
    if topic.is_empty() {
        return Err(format!("the topic is missing; {FORM}"));
    }
    let Ok(number @ 0..) = number.parse() else {
        return Err(format!("\"{number}\" is not a partition; {FORM}"));
    };
    let before = match (offset, offset.parse()) {
        ("end", _) => None,
        (_, Ok(offset @ 0..)) => Some(offset),
        _ => return Err(format!("\"{offset}\" is not an offset; write a number or \"end\"")),
    };
    Ok(Records { key: TopicPartition::new(topic, number), before })
}

fn parse_file(text: &str) -> Result<Vec<Records>, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if value.get("version").is_some_and(|version| *version != 1) {
        return Err("its version is not 1".into());
    }
    let partitions = value.get("partitions").and_then(Value::as_array).ok_or("\"partitions\" is missing")?;
    let one = |one: &Value| {
        let topic = one.get("topic").and_then(Value::as_str).filter(|topic| !topic.is_empty());
        let number = one.get("partition").and_then(Value::as_i64);
        let number = number.and_then(|number| i32::try_from(number).ok()).filter(|number| *number >= 0);
        let offset = one.get("offset").and_then(Value::as_i64).filter(|offset| *offset >= -1);
        let (Some(topic), Some(number), Some(offset)) = (topic, number, offset) else {
            return Err(format!("{one} needs \"topic\", \"partition\" and \"offset\""));
        };
        Ok(Records {
            key: TopicPartition::new(topic, number),
            before: Some(offset).filter(|offset| *offset >= 0),
        })
    };
    partitions.iter().map(one).collect()
}

/// Returns the offset of each partition, each of which is named once.
fn by_partition(all: Vec<Records>) -> Result<SortedMap<TopicPartition, Option<i64>>, String> {
    let mut found = SortedMap::new();
    for Records { key, before } in all {
        if found.insert(key.clone(), before).is_some() {
            return Err(format!("topic \"{}\" [{}] is named twice", key.topic, key.partition));
        }
    }
    if found.is_empty() { Err("no partitions are named".into()) } else { Ok(found) }
}

impl DeleteRecordsOptions {
    fn partitions(&self) -> Outcome<SortedMap<TopicPartition, Option<i64>>> {
        let Some(path) = &self.from_file else {
            return by_partition(self.records.clone()).map_err(Failure::Usage);
        };
        let text = read_text(path, "file")?;
        parse_file(&text)
            .and_then(by_partition)
            .map_err(|reason| Failure::Usage(format!("the file {} is invalid: {reason}", path.display())))
    }

    /// Runs the command.
    pub fn run(&self, admin: &Admin) -> Outcome {
        let partitions = self.partitions()?;
        if self.dry_run {
            return self.preview(&partitions, admin);
        }
        let records = partitions.iter().map(|(key, before)| {
            let records = before.map_or(RecordsToDelete::All, RecordsToDelete::Before);
            (&*key.topic, key.partition, records)
        });
        let results = admin.delete_records(&records.collect::<Vec<_>>(), call_timeout())?;
        let mut failures = Vec::new();
        let mut table = Table::new(&[
            ("TOPIC", "topic", 15),
            ("PARTITION", "partition", 10),
            ("LOW-WATERMARK", "low_watermark", 0),
        ]);
        for (key, result) in partitions.keys().zip(results) {
            match result {
                Ok(low) => table.add([(*key.topic).into(), key.partition.into(), low.into()]),
                Err(error) => failures.push(error.to_string()),
            }
        }
        table.print(self.common.json)?;
        finish(failures)
    }

    fn preview(&self, partitions: &SortedMap<TopicPartition, Option<i64>>, admin: &Admin) -> Outcome {
        let mut offsets = Vec::new();
        for spec in [OffsetSpec::Earliest, OffsetSpec::Latest] {
            let questions: Vec<_> = partitions.keys().map(|key| (&*key.topic, key.partition, spec)).collect();
            offsets.push(admin.list_offsets(&questions, call_timeout())?.into_iter());
        }
        let mut failures = Vec::new();
        let mut table = Table::new(&[
            ("TOPIC", "topic", 15),
            ("PARTITION", "partition", 10),
            ("FIRST-OFFSET", "first_offset", 15),
            ("END-OFFSET", "end_offset", 15),
            ("LOW-WATERMARK", "low_watermark", 0),
        ]);
        let ends = offsets.pop().into_iter().flatten();
        let firsts = offsets.pop().into_iter().flatten();
        for (((key, before), first), end) in partitions.iter().zip(firsts).zip(ends) {
            let (first, end) = match (first, end) {
                (Ok(first), Ok(end)) => (first.offset.unwrap_or(0), end.offset.unwrap_or(0)),
                (Err(error), _) | (_, Err(error)) => {
                    failures.push(error.to_string());
                    continue;
                }
            };
            let before = before.unwrap_or(end);
            if before > end {
                let (topic, partition) = (&key.topic, key.partition);
                failures.push(format!("topic \"{topic}\" [{partition}] ends at {end}, before {before}"));
                continue;
            }
            table.add([
                (*key.topic).into(),
                key.partition.into(),
                first.into(),
                end.into(),
                before.max(first).into(),
            ]);
        }
        table.print(self.common.json)?;
        finish(failures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(topic: &str, partition: i32, before: Option<i64>) -> Records {
        Records { key: TopicPartition::new(topic, partition), before }
    }

    #[test]
    fn arguments_name_partitions_and_offsets() {
        assert_eq!(records("orders:0=100"), Ok(of("orders", 0, Some(100))));
        assert_eq!(records("orders:7=end"), Ok(of("orders", 7, None)));
        for wrong in ["orders", "orders:0", "orders=1", ":0=1", "orders:-1=1", "orders:x=1", "orders:0=-1"] {
            assert!(records(wrong).is_err(), "{wrong}");
        }
        assert!(by_partition(vec![of("t", 0, None), of("t", 0, Some(1))]).is_err());
    }

    #[test]
    fn files_have_the_form_of_kafkas_tool() {
        let text = r#"{"partitions": [{"topic": "a", "partition": 1, "offset": 5},
            {"topic": "b", "partition": 0, "offset": -1}], "version": 1}"#;
        assert_eq!(parse_file(text), Ok(vec![of("a", 1, Some(5)), of("b", 0, None)]));
        for wrong in [
            "",
            "{}",
            r#"{"partitions": [], "version": 2}"#,
            r#"{"partitions": [{"topic": "a", "partition": 1}]}"#,
            r#"{"partitions": [{"topic": "a", "partition": -1, "offset": 0}]}"#,
            r#"{"partitions": [{"topic": "a", "partition": 0, "offset": -2}]}"#,
            r#"{"partitions": [{"topic": "", "partition": 0, "offset": 0}]}"#,
        ] {
            assert!(parse_file(wrong).is_err(), "{wrong}");
        }
        assert!(parse_file(r#"{"partitions": []}"#).and_then(by_partition).is_err());
    }
}
