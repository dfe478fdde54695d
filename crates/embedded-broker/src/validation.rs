//! What a topic's configuration asks of a produced batch: keys, timestamps, and the codec.
//!
//! As in Kafka, a batch is refused as a whole, with the records at fault (KIP-467). Its records are only read if the topic asks for
//! something that the header doesn't tell.

use ottla_protocol::{
    batch::reader::{BatchHeader, RecordBatch, RecordView, Records},
    compress::Compression,
    error_code::ErrorCode,
    generated::produce::response::RecordError,
};
use ottla_sorted::SortedMap;

use crate::{
    batch::UNCOMPRESSED_LIMIT,
    rewriting::{Rewriting, rewrite},
};

/// The demands of a topic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Demands {
    /// The topic is compacted: compaction keeps the newest record of each key.
    pub keys: bool,
    /// `message.timestamp.before.max.ms`, if the topic sets it: the age of the oldest permitted timestamp.
    pub before_max_ms: Option<i64>,
    /// `message.timestamp.after.max.ms`, if the topic sets it: how far the latest is in the future.
    pub after_max_ms: Option<i64>,
    /// `compression.type`, unless the producer chooses.
    pub codec: Option<(Compression, Option<i32>)>,
}

/// The error for a refused batch.
#[derive(Debug)]
pub(crate) struct Refused {
    pub error: ErrorCode,
    pub message: Option<String>,
    pub records: Vec<RecordError>,
}

impl From<ErrorCode> for Refused {
    fn from(error: ErrorCode) -> Self {
        Self { error, message: None, records: Vec::new() }
    }
}

impl Demands {
    /// Reads the demands of a topic.
    pub fn new(configs: &SortedMap<String, String>, keys: bool) -> Self {
        let has_append_time =
            configs.get("message.timestamp.type").is_some_and(|kind| kind == "LogAppendTime");
        let bound = |name: &str| {
            let set = configs.get(name).filter(|_| !has_append_time);
            set.and_then(|value| value.parse().ok())
        };
        let codec = match configs.get("compression.type").map(String::as_str) {
            Some("uncompressed") => Some(Compression::None),
            Some(name) => Compression::parse(name),
            None => None,
        };
        let level = |codec: Compression| {
            let set = configs.get(&format!("compression.{codec}.level"));
            set.and_then(|level| level.parse().ok()).filter(|level| codec.check_level(Some(*level)).is_ok())
        };
        Self {
            keys,
            before_max_ms: bound("message.timestamp.before.max.ms"),
            after_max_ms: bound("message.timestamp.after.max.ms"),
            codec: codec.map(|codec| (codec, level(codec))),
        }
    }

    /// Checks a batch, and returns it in the topic's codec if it has another one.
    ///
    /// # Errors
    ///
    /// Records lack a key, have a timestamp out of bounds, or can't be read.
    pub fn apply(
        &self,
        header: &BatchHeader,
        batch: &[u8],
        unix_ms: i64,
        place: (&str, i32),
    ) -> Result<Option<Vec<u8>>, Refused> {
        let codec = self.codec.filter(|(codec, _)| header.compression() != Ok(*codec));
        if !self.reads_records() && codec.is_none() {
            return Ok(None);
        }
        let raw = RecordBatch::new(*header, batch).records(UNCOMPRESSED_LIMIT);
        let raw = raw.map_err(|_| ErrorCode::CORRUPT_MESSAGE)?;
        let records = Records::new(header, &raw).collect::<Result<Vec<_>, _>>();
        let records = records.map_err(|_| ErrorCode::CORRUPT_MESSAGE)?;
        self.check(&records, unix_ms, place)?;
        let Some((codec, level)) = codec else { return Ok(None) };
        let rewriting = Rewriting { codec, level, delete_horizon: None };
        rewrite(header, &records, rewriting).map(Some).map_err(|_| ErrorCode::UNKNOWN_SERVER_ERROR.into())
    }

    fn reads_records(&self) -> bool {
        self.keys || self.before_max_ms.is_some() || self.after_max_ms.is_some()
    }

    fn check(&self, records: &[RecordView<'_>], unix_ms: i64, place: (&str, i32)) -> Result<(), Refused> {
        let mut errors = Vec::new();
        let mut has_wrong_time = false;
        for (batch_index, record) in (0..).zip(records) {
            let message = if self.keys && record.key.is_none() {
                let (topic, partition) = place;
                format!(
                    "Compacted topic cannot accept message without key in topic partition {topic}-{partition}"
                )
            } else if let Some(message) = self.timestamp_error(record, unix_ms) {
                has_wrong_time = true;
                message
            } else {
                continue;
            };
            errors.push(RecordError { batch_index, batch_index_error_message: Some(message) });
        }
        if errors.is_empty() {
            return Ok(());
        }
        let (error, reason) = match has_wrong_time {
            true => (ErrorCode::INVALID_TIMESTAMP, "invalid timestamp".to_owned()),
            false => (ErrorCode::INVALID_RECORD, first_errors(&errors)),
        };
        let message = format!("One or more records have been rejected due to {reason}");
        Err(Refused { error, message: Some(message), records: errors })
    }

    fn timestamp_error(&self, record: &RecordView<'_>, unix_ms: i64) -> Option<String> {
        let timestamp = record.timestamp;
        let earliest = self.before_max_ms.map(|before| unix_ms.saturating_sub(before));
        let latest = self.after_max_ms.map(|after| unix_ms.saturating_add(after));
        let is_wrong = earliest.is_some_and(|earliest| timestamp < earliest)
            || latest.is_some_and(|latest| timestamp > latest);
        // -1 stands for no timestamp.
        (is_wrong && timestamp != -1).then(|| {
            format!(
                "Timestamp {timestamp} of message with offset {} is out of range. The timestamp should be within \
                 [{}, {}]",
                record.offset,
                earliest.unwrap_or(0),
                latest.unwrap_or(i64::MAX)
            )
        })
    }
}

/// Describes the first three errors, as Kafka does.
fn first_errors(errors: &[RecordError]) -> String {
    let first = errors.iter().take(3).map(|error| {
        let message = error.batch_index_error_message.as_deref().unwrap_or_default();
        format!("RecordError(batchIndex={}, message='{message}')", error.batch_index)
    });
    let first = first.collect::<Vec<_>>().join(", ");
    format!(
        "{} record errors in total, and only showing the first three errors at most: [{first}]",
        errors.len()
    )
}
