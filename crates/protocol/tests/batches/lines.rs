//! Records as lines of text, the common format of the golden files and the programs of other clients. See
//! `tests/golden/batches/README.md`.

use ottla_protocol::{
    batch::{
        Batch, BatchError, Batches, ChunkPool, HeaderRef, LegacyFormat, LegacyRecords, RecordBatchBuilder,
        RecordView, Records, SealOptions, put_message_set,
    },
    compress::Compression,
};

/// The largest decompressed batch in these tests, in bytes.
pub const LIMIT: usize = 1 << 20;

/// A record to write.
#[derive(Clone, Debug)]
pub struct Line {
    pub timestamp: i64,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

/// Parses the records of a text file.
pub fn parse(text: &str) -> Vec<Line> {
    text.lines()
        .map(|line| {
            let fields: Vec<_> = line.split(' ').collect();
            let headers = if fields[3] == "." { Vec::new() } else { fields[3].split(',').collect() };
            let header = |header: &str| {
                let (key, value) = header.split_once('=').unwrap();
                (parse_field(key).unwrap(), parse_field(value))
            };
            Line {
                timestamp: fields[0].parse().unwrap(),
                key: parse_field(fields[1]),
                value: parse_field(fields[2]),
                headers: headers.into_iter().map(header).collect(),
            }
        })
        .collect()
}

/// Encodes the records with this crate, in format 0, 1 or 2.
pub fn write(magic: u8, codec: Compression, level: Option<i32>, lines: &[Line]) -> Vec<u8> {
    let Some(format) = LegacyFormat::from_magic(magic as i8) else {
        let mut builder = RecordBatchBuilder::new(&ChunkPool::new());
        for line in lines {
            let headers: Vec<_> =
                line.headers.iter().map(|(key, value)| HeaderRef { key, value: value.as_deref() }).collect();
            builder.append(line.timestamp, line.key.as_deref(), line.value.as_deref(), &headers);
        }
        let options = SealOptions { compression: codec, level, ..SealOptions::default() };
        return builder.seal(&options).unwrap().to_vec();
    };
    let records = lines.iter().enumerate().map(|(index, line)| {
        let (key, value) = (line.key.as_deref(), line.value.as_deref());
        RecordView::without_headers(index as i64, line.timestamp, key, value)
    });
    let mut out = Vec::new();
    put_message_set(format, codec, level, records, &mut out).unwrap();
    out
}

/// Returns every record in `bytes` as a line with its offset, after checking every batch as a consumer does.
pub fn read(bytes: &[u8]) -> Result<Vec<String>, BatchError> {
    let mut lines = Vec::new();
    for batch in Batches::new(bytes) {
        match batch? {
            Batch::V2(batch) => {
                batch.verify_crc()?;
                let raw = batch.records(LIMIT)?;
                for record in Records::new(batch.header(), &raw) {
                    lines.push(format(&record?));
                }
            }
            Batch::Legacy(message) => {
                message.verify_crc()?;
                let raw = message.records(LIMIT)?;
                for record in LegacyRecords::new(&message, &raw) {
                    lines.push(format(&record?));
                }
            }
        }
    }
    Ok(lines)
}

fn format(record: &RecordView<'_>) -> String {
    let header =
        |header: HeaderRef<'_>| format!("{}={}", format_field(Some(header.key)), format_field(header.value));
    let headers: Vec<_> = record.headers().map(header).collect();
    let headers = if headers.is_empty() { ".".to_owned() } else { headers.join(",") };
    let (key, value) = (format_field(record.key), format_field(record.value));
    format!("{} {} {key} {value} {headers}", record.offset, record.timestamp)
}

fn parse_field(field: &str) -> Option<Vec<u8>> {
    let (kind, rest) = field.split_at(1);
    match kind {
        "-" => None,
        "g" => Some(generated(rest.parse().unwrap())),
        _ => Some(
            (0..rest.len()).step_by(2).map(|at| u8::from_str_radix(&rest[at..at + 2], 16).unwrap()).collect(),
        ),
    }
}

fn format_field(field: Option<&[u8]>) -> String {
    match field {
        None => "-".to_owned(),
        Some(bytes) if bytes.len() >= 30 && bytes == generated(bytes.len()) => format!("g{}", bytes.len()),
        Some(bytes) => bytes.iter().fold("x".to_owned(), |text, byte| text + &format!("{byte:02x}")),
    }
}

fn generated(length: usize) -> Vec<u8> {
    (0..length).map(|i| b'a' + (i * i / 100 % 26) as u8).collect()
}
