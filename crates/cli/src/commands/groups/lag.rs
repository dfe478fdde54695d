//! `ottla groups lag`: committed offsets, ends of the partitions, and who consumes them.

use ottla::{Admin, GroupDescription, GroupOffset, MemberDescription, OffsetSpec, TopicPartition};
use ottla_sorted::SortedMap;

use super::{TableOptions, describe::described, finish};
use crate::client_options::call_timeout;
use crate::commands::table::Table;
use crate::failure::Outcome;
use crate::standard_error::note;

/// Runs `lag`.
pub fn run(options: &TableOptions, admin: &Admin) -> Outcome {
    let (groups, mut failures) = described(admin, &options.selection.resolve(admin)?)?;
    let mut table = Table::new(&[
        ("GROUP", "group", 15),
        ("TOPIC", "topic", 15),
        ("PARTITION", "partition", 10),
        ("CURRENT-OFFSET", "current_offset", 15),
        ("LOG-END-OFFSET", "log_end_offset", 15),
        ("LAG", "lag", 15),
        ("CONSUMER-ID", "consumer_id", 15),
        ("HOST", "host", 15),
        ("CLIENT-ID", "client_id", 0),
    ]);
    for group in groups {
        if group.members.is_empty() && !options.json {
            note!("group \"{}\" has no active members", group.group_id);
        }
        for row in rows(admin, &group, &mut failures)? {
            let member = row.member;
            table.add([
                group.group_id.as_str().into(),
                (*row.key.topic).into(),
                row.key.partition.into(),
                row.committed.into(),
                row.end.into(),
                row.lag().into(),
                member.map(|member| member.member_id.as_str()).into(),
                member.map(|member| member.host.as_str()).into(),
                member.map(|member| member.client_id.as_str()).into(),
            ]);
        }
    }
    table.print(options.json)?;
    finish(failures)
}

/// A partition that the group consumes or has consumed.
struct Row<'a> {
    key: TopicPartition,
    committed: Option<i64>,
    end: Option<i64>,
    member: Option<&'a MemberDescription>,
}

impl Row<'_> {
    fn lag(&self) -> Option<i64> {
        // The end can be older than a commit that came between the two requests.
        Some((self.end? - self.committed?).max(0))
    }
}

fn rows<'a>(admin: &Admin, group: &'a GroupDescription, failures: &mut Vec<String>) -> Outcome<Vec<Row<'a>>> {
    let mut found: SortedMap<TopicPartition, (Option<i64>, Option<&MemberDescription>)> = SortedMap::new();
    for member in &group.members {
        for key in &member.assignment {
            found.insert(key.clone(), (None, Some(member)));
        }
    }
    for (key, offset) in committed(admin, &group.group_id, failures)? {
        found.entry(key).or_default().0 = offset;
    }
    let ends = ends(admin, found.keys(), failures)?;
    let row = |(key, (committed, member)): (TopicPartition, (Option<i64>, _))| {
        let end = ends.get(&key).copied();
        Row { key, committed, end, member }
    };
    Ok(found.into_iter().map(row).collect())
}

/// Returns the committed offsets of a group; the errors of partitions are added to `failures`.
fn committed(
    admin: &Admin,
    group_id: &str,
    failures: &mut Vec<String>,
) -> Outcome<SortedMap<TopicPartition, Option<i64>>> {
    let mut found = SortedMap::new();
    for (key, result) in admin.list_group_offsets(group_id, None, call_timeout())? {
        match result {
            Ok(committed) => {
                found.insert(key, committed.map(|committed: GroupOffset| committed.offset));
            }
            Err(error) => failures.push(error.to_string()),
        }
    }
    Ok(found)
}

/// The committed offset of a partition, and its end.
pub type CommittedAndEnd = (Option<i64>, Option<i64>);

/// Returns committed offset and end of each partition of which the group has a committed offset.
pub fn committed_and_ends(
    admin: &Admin,
    group_id: &str,
    failures: &mut Vec<String>,
) -> Outcome<SortedMap<TopicPartition, CommittedAndEnd>> {
    let committed = committed(admin, group_id, failures)?;
    let ends = ends(admin, committed.keys(), failures)?;
    let both = |(key, offset): (TopicPartition, Option<i64>)| {
        let end = ends.get(&key).copied();
        (key, (offset, end))
    };
    Ok(committed.into_iter().map(both).collect())
}

/// Returns the end offsets of partitions; the errors of the others are added to `failures`.
fn ends<'a>(
    admin: &Admin,
    partitions: impl Iterator<Item = &'a TopicPartition>,
    failures: &mut Vec<String>,
) -> Outcome<SortedMap<TopicPartition, i64>> {
    let partitions: Vec<&TopicPartition> = partitions.collect();
    if partitions.is_empty() {
        return Ok(SortedMap::new());
    }
    let questions: Vec<_> =
        partitions.iter().map(|key| (&*key.topic, key.partition, OffsetSpec::Latest)).collect();
    let mut ends = SortedMap::new();
    for (key, result) in partitions.into_iter().zip(admin.list_offsets(&questions, call_timeout())?) {
        match result {
            Ok(listed) => ends.extend(listed.offset.map(|end| (key.clone(), end))),
            Err(error) => failures.push(error.to_string()),
        }
    }
    Ok(ends)
}
