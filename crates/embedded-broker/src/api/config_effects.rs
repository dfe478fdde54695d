//! What the configurations of a topic do here. Those without a row are stored and listed, and have no effect.

use ottla_sorted::SortedMap;

use super::configs::default_of;

/// (name, effect)
pub(crate) const EFFECTS: [(&str, &str); 18] = [
    (
        "cleanup.policy",
        "`delete`, `compact` or both; a compacted topic refuses records without a key (`INVALID_RECORD`)",
    ),
    ("compression.gzip.level", "the level if `compression.type` is `gzip`"),
    ("compression.lz4.level", "the level if `compression.type` is `lz4`"),
    ("compression.type", "batches with another codec are compressed anew"),
    ("compression.zstd.level", "the level if `compression.type` is `zstd`"),
    (
        "delete.retention.ms",
        "the time from the first compaction of a tombstone to the one that may remove it",
    ),
    ("max.compaction.lag.ms", "older closed segments are compacted, whatever the dirty ratio"),
    ("max.message.bytes", "larger batches are refused (`MESSAGE_TOO_LARGE`)"),
    ("message.timestamp.after.max.ms", "if set: records of a later time are refused (`INVALID_TIMESTAMP`)"),
    ("message.timestamp.before.max.ms", "if set: older records are refused (`INVALID_TIMESTAMP`)"),
    ("message.timestamp.type", "`LogAppendTime`: the brokers set the timestamps"),
    ("min.cleanable.dirty.ratio", "closed segments are compacted once they make up more than this share"),
    ("min.compaction.lag.ms", "younger segments are not compacted"),
    (
        "min.insync.replicas",
        "with fewer, `acks=all` fails (`NOT_ENOUGH_REPLICAS`, `NOT_ENOUGH_REPLICAS_AFTER_APPEND`)",
    ),
    ("retention.bytes", "if set: the oldest segments are deleted while at least this much stays"),
    ("retention.ms", "if set: segments without a younger record are deleted"),
    ("segment.bytes", "a batch that does not fit begins a segment; at least 14, where Kafka 4 has 1 MiB"),
    ("segment.ms", "a batch that is this much younger than the first one begins a segment"),
];

/// Returns a topic's entries that differ from the default and have no effect.
pub(crate) fn unenforced(configs: &SortedMap<String, String>) -> Vec<String> {
    let has_effect = |name: &str, value: &str| {
        EFFECTS.iter().any(|(known, _)| *known == name) || default_of(name) == Some(value)
    };
    let ignored = configs.iter().filter(|(name, value)| !has_effect(name, value));
    ignored.map(|(name, value)| format!("{name}={value}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: &str = "| topic configuration | effect |\n|---|---|\n";

    /// Compares the table in docs/guide/testing.md, or writes it if `OTTLA_WRITE_DOCS` is set.
    #[test]
    fn testing_md_lists_the_configurations_with_effect() {
        let rows = EFFECTS.iter().map(|(name, effect)| format!("| `{name}` | {effect} |\n"));
        let table = rows.collect::<String>();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/testing.md");
        // The published crate has no documentation beside it.
        let Ok(page) = std::fs::read_to_string(path) else { return };
        let begin = page.find(BEGIN).expect("testing.md has the table") + BEGIN.len();
        let end = begin + page[begin..].find("\n\n").expect("something follows the table") + 1;
        if std::env::var_os("OTTLA_WRITE_DOCS").is_some() {
            std::fs::write(path, format!("{}{table}{}", &page[..begin], &page[end..])).unwrap();
        } else {
            assert_eq!(
                &page[begin..end],
                table,
                "OTTLA_WRITE_DOCS=1 cargo test -p ottla-embedded-broker _md_"
            );
        }
    }

    #[test]
    fn every_effect_is_of_a_configuration_that_exists() {
        for (name, _) in EFFECTS {
            assert!(default_of(name).is_some(), "{name}");
        }
    }
}
