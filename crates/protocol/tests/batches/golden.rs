//! Batches that Apache Kafka's Java client and librdkafka wrote decode to the original records.

use std::{fs, path::PathBuf};

use ottla_protocol::batch::{Batch, Batches, ControlRecord, Records};

use crate::lines;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/batches")
}

pub fn file(name: &str) -> Vec<u8> {
    fs::read(folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns the names of all golden batches of records, without those of markers.
pub fn names() -> Vec<String> {
    let entries = fs::read_dir(folder()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .filter_map(|name| name.strip_suffix(".bin").map(str::to_owned))
        .filter(|name| name != "java-control")
        .collect()
}

/// Returns the expected records of a file, derived from its name, without the fields that the format does not have.
fn expected(name: &str) -> Vec<String> {
    let text = file(if name.ends_with("-large") { "large.txt" } else { "records.txt" });
    let first_offset = if name.starts_with("java") { 1000 } else { 0 };
    let lines = String::from_utf8(text).unwrap();
    let record = |(index, line): (usize, &str)| {
        let (timestamp, rest) = line.split_once(' ').unwrap();
        let timestamp = match name {
            _ if name.contains("-v0-") => "-1",
            _ if name.ends_with("append-time") => "1800000000000",
            _ => timestamp,
        };
        let (rest, headers) = rest.rsplit_once(' ').unwrap();
        let headers = if name.contains("-v2-") { headers } else { "." };
        format!("{} {timestamp} {rest} {headers}", first_offset + index)
    };
    lines.lines().enumerate().map(record).collect()
}

#[test]
fn golden_batches_cover_every_client_format_and_codec() {
    let names = names();
    for client in ["java", "librdkafka"] {
        for (format, codecs) in [
            (0, &["none", "gzip", "snappy", "lz4"][..]),
            (1, &["none", "gzip", "snappy", "lz4"]),
            (2, &["none", "gzip", "snappy", "lz4", "zstd"]),
        ] {
            for codec in codecs {
                let name = format!("{client}-v{format}-{codec}");
                assert!(names.contains(&name), "{name}");
                let bytes = file(&format!("{name}.bin"));
                assert_eq!(bytes[16], format, "{name}");
                // Both clients really compress: the attributes name the codec.
                let attributes = bytes[if format == 2 { 22 } else { 17 }];
                assert_eq!(["none", "gzip", "snappy", "lz4", "zstd"][usize::from(attributes & 7)], *codec);
            }
        }
    }
}

#[test]
fn batches_of_other_clients_decode_to_the_original_records() {
    for name in names() {
        let found =
            lines::read(&file(&format!("{name}.bin"))).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(found, expected(&name), "{name}");
    }
}

#[test]
fn batches_of_different_formats_can_be_concatenated() {
    let mut together = Vec::new();
    let mut records = Vec::new();
    for name in ["java-v2-zstd", "librdkafka-v0-none", "java-v1-lz4", "librdkafka-v2-snappy"] {
        together.extend(file(&format!("{name}.bin")));
        records.extend(expected(name));
    }
    assert_eq!(lines::read(&together).unwrap(), records);
    together.extend(&file("java-v2-gzip.bin")[..500]);
    assert_eq!(lines::read(&together).unwrap(), records, "a batch that is cut off is left out");
}

#[test]
fn transaction_markers_of_brokers_decode() {
    let bytes = file("java-control.bin");
    let mut found = Vec::new();
    for batch in Batches::new(&bytes) {
        let Batch::V2(batch) = batch.unwrap() else { panic!("an old format") };
        batch.verify_crc().unwrap();
        let header = batch.header();
        assert!(header.is_control() && header.is_transactional());
        assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), (4000, 5, -1));
        assert_eq!(header.partition_leader_epoch, 3);
        let raw = batch.records(lines::LIMIT).unwrap();
        for record in Records::new(header, &raw) {
            let record = record.unwrap();
            let marker = ControlRecord::parse(record.key, record.value).unwrap();
            let (key, value) = marker.encode();
            assert_eq!((record.key, record.value), (Some(&key[..]), Some(&value[..])), "ours is the same");
            found.push((record.offset, marker));
        }
    }
    let marker = |committed| ControlRecord::EndTransaction { committed, coordinator_epoch: 7 };
    assert_eq!(found, [(1000, marker(true)), (1001, marker(false))]);
}

#[test]
fn uncompressed_batches_are_identical_to_librdkafkas() {
    let records = lines::parse(&String::from_utf8(file("records.txt")).unwrap());
    for magic in [0, 1, 2] {
        let mut theirs = file(&format!("librdkafka-v{magic}-none.bin"));
        let mut ours = lines::write(magic, ottla_protocol::compress::Compression::None, None, &records);
        if magic == 2 {
            // The broker sets the partition leader epoch: librdkafka writes 0, we write -1 as Java does.
            theirs.drain(12..16);
            ours.drain(12..16);
        }
        assert!(ours == theirs, "format {magic}");
    }
}
