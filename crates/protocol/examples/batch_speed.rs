//! Measures CPU nanoseconds per record of the steps that every message passes: append, seal, checksum, read.
//!
//! `cargo run --release -p ottla-protocol --example batch_speed [record size]`; the best of seven runs counts, as CPU
//! time of the thread, so that other load on the machine disturbs little.

use std::{fs, hint::black_box};

use ottla_protocol::{
    batch::{Batch, Batches, ChunkPool, HeaderRef, RecordBatchBuilder, Records, SealOptions, SealedBatch},
    compress::Compression,
};

const RUNS: usize = 7;
const BATCH_BYTES: usize = 1_000_000;

fn main() {
    let size = std::env::args().nth(1).and_then(|size| size.parse().ok()).unwrap_or(100);
    let pool = ChunkPool::new();
    let payloads = payloads(size);
    println!("records of {size} bytes in batches of {BATCH_BYTES} bytes, CPU ns per record");

    let batches = (200 * 100 / size.max(10)).max(20);
    let mut copy = vec![0; BATCH_BYTES + size];
    report("only copying the payloads, for comparison", || {
        let mut records = 0;
        for _ in 0..batches {
            for (room, payload) in copy.chunks_exact_mut(size + 7).zip(payloads.iter().cycle()) {
                room[..payload.len()].copy_from_slice(payload);
                records += 1;
            }
            black_box(&mut copy);
        }
        records
    });
    report("append", || {
        let mut records = 0;
        for _ in 0..batches {
            let builder = fill(&pool, &payloads, BATCH_BYTES);
            records += u64::from(builder.record_count());
            black_box(&builder);
        }
        records
    });
    report("append with a key of 8 bytes", || {
        let mut records = 0;
        for _ in 0..batches {
            let mut builder = RecordBatchBuilder::new(&pool);
            for payload in payloads.iter().cycle() {
                builder.append(1_700_000_000_000, Some(b"01234567"), Some(payload), &[]);
                if builder.len() > BATCH_BYTES {
                    break;
                }
            }
            records += u64::from(builder.record_count());
        }
        records
    });
    report("append with a header", || {
        let headers = [HeaderRef { key: b"trace", value: Some(b"0123456789abcdef") }];
        let mut records = 0;
        for _ in 0..batches {
            let mut builder = RecordBatchBuilder::new(&pool);
            for payload in payloads.iter().cycle() {
                builder.append(1_700_000_000_000, None, Some(payload), &headers);
                if builder.len() > BATCH_BYTES {
                    break;
                }
            }
            records += u64::from(builder.record_count());
        }
        records
    });
    report("append round robin over 1000 batches of 2 KB", || {
        let mut records = 0;
        for _ in 0..batches / 4 {
            let mut builders: Vec<_> = (0..1000).map(|_| RecordBatchBuilder::new(&pool)).collect();
            let mut payloads = payloads.iter().cycle();
            for _ in 0..(2000 / size).max(1) {
                for builder in &mut builders {
                    builder.append(1_700_000_000_000, None, payloads.next().map(|p| &p[..]), &[]);
                    records += 1;
                }
            }
        }
        records
    });
    report("append and seal", || {
        let mut records = 0;
        for _ in 0..batches {
            let sealed = seal(fill(&pool, &payloads, BATCH_BYTES), Compression::None);
            records += u64::from(sealed.record_count());
        }
        records
    });
    for codec in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
        let mut len = 0;
        report(&format!("append and seal, {codec:?}"), || {
            let mut records = 0;
            for _ in 0..batches.div_ceil(40) {
                let sealed = seal(fill(&pool, &payloads, BATCH_BYTES), codec);
                records += u64::from(sealed.record_count());
                len = sealed.len();
            }
            records
        });
        println!("    {:.2} times smaller", BATCH_BYTES as f64 / len as f64);
    }

    let plain = seal(fill(&pool, &payloads, BATCH_BYTES), Compression::None).to_vec();
    report("read", || (0..batches).map(|_| read(&plain, false)).sum());
    report("read and check the checksum", || (0..batches).map(|_| read(&plain, true)).sum());
    for codec in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
        let bytes = seal(fill(&pool, &payloads, BATCH_BYTES), codec).to_vec();
        report(&format!("read, {codec:?}"), || (0..batches.div_ceil(20)).map(|_| read(&bytes, true)).sum());
    }
}

/// Returns distinct payloads that a codec can compress.
fn payloads(size: usize) -> Vec<Vec<u8>> {
    let mut state = 1u64;
    (0..2048)
        .map(|index| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let mut text = String::new();
            while text.len() < size {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
                let (name, amount) = (state >> 58, state >> 40);
                text.push_str(&format!("{{\"id\":{index},\"name\":\"user-{name}\",\"amount\":{amount}}},"));
            }
            text.into_bytes()[..size].to_vec()
        })
        .collect()
}

fn fill(pool: &ChunkPool, payloads: &[Vec<u8>], bytes: usize) -> RecordBatchBuilder {
    let mut builder = RecordBatchBuilder::new(pool);
    for payload in payloads.iter().cycle() {
        builder.append(1_700_000_000_000, None, Some(payload), &[]);
        if builder.len() > bytes {
            break;
        }
    }
    builder
}

fn seal(builder: RecordBatchBuilder, compression: Compression) -> SealedBatch {
    builder.seal(&SealOptions { compression, ..SealOptions::default() }).expect("the codecs work")
}

fn read(bytes: &[u8], check: bool) -> u64 {
    let Some(Ok(Batch::V2(batch))) = Batches::new(bytes).next() else { panic!("no batch") };
    if check {
        batch.verify_crc().expect("intact");
    }
    let raw = batch.records(64 << 20).expect("intact");
    let mut records = 0;
    for record in Records::new(batch.header(), &raw) {
        let record = record.expect("intact");
        black_box(&record);
        records += 1;
    }
    records
}

fn report(what: &str, mut run: impl FnMut() -> u64) {
    run();
    let best = (0..RUNS)
        .map(|_| {
            let start = cpu_nanos();
            let records = run();
            (cpu_nanos() - start) as f64 / records as f64
        })
        .fold(f64::INFINITY, f64::min);
    println!("{best:10.1}  {what}");
}

/// Returns the CPU time of this thread. The kernel updates the figure when the thread yields.
fn cpu_nanos() -> u64 {
    std::thread::yield_now();
    let stat = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    stat.split_whitespace().next().and_then(|nanos| nanos.parse().ok()).expect("a number")
}
