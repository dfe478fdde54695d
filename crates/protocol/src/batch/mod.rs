//! temp
#![expect(missing_docs, reason = "first cut")]
use crate::compress::Compression;
#[derive(Clone, Debug, Default)]
pub struct ChunkPool;
impl ChunkPool {
    pub fn new() -> Self {
        Self
    }
}
#[derive(Clone, Copy, Debug)]
pub struct HeaderRef<'a> {
    pub key: &'a str,
    pub value: Option<&'a [u8]>,
}
#[derive(Debug)]
pub struct RecordBatchBuilder {
    bytes: Vec<u8>,
    count: u32,
    base: i64,
    max: i64,
}
fn varlong(out: &mut Vec<u8>, v: i64) {
    let mut z = ((v << 1) ^ (v >> 63)) as u64;
    while z >= 0x80 {
        out.push(z as u8 | 0x80);
        z >>= 7;
    }
    out.push(z as u8);
}
fn varlen(v: i64) -> usize {
    let z = ((v << 1) ^ (v >> 63)) as u64;
    (70 - (z | 1).leading_zeros() as usize) / 7
}
impl RecordBatchBuilder {
    pub fn new(_: &ChunkPool) -> Self {
        Self { bytes: vec![0; 61], count: 0, base: 0, max: i64::MIN }
    }
    pub fn record_count(&self) -> u32 {
        self.count
    }
    pub fn len(&self) -> usize {
        self.bytes.len()
    }
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
    pub fn append(&mut self, ts: i64, key: Option<&[u8]>, value: Option<&[u8]>, headers: &[HeaderRef<'_>]) {
        if self.count == 0 {
            self.base = ts;
        }
        self.max = self.max.max(ts);
        let l = |o: Option<&[u8]>| o.map_or(1, |b| varlen(b.len() as i64) + b.len());
        let d = ts - self.base;
        let mut n =
            1 + varlen(d) + varlen(self.count as i64) + l(key) + l(value) + varlen(headers.len() as i64);
        for h in headers {
            n += l(Some(h.key.as_bytes())) + l(h.value);
        }
        let o = &mut self.bytes;
        varlong(o, n as i64);
        o.push(0);
        varlong(o, d);
        varlong(o, self.count as i64);
        let p = |o: &mut Vec<u8>, b: Option<&[u8]>| match b {
            None => varlong(o, -1),
            Some(b) => {
                varlong(o, b.len() as i64);
                o.extend_from_slice(b)
            }
        };
        p(o, key);
        p(o, value);
        varlong(o, headers.len() as i64);
        for h in headers {
            p(o, Some(h.key.as_bytes()));
            p(o, h.value);
        }
        self.count += 1;
    }
    pub fn seal(mut self, _o: &SealOptions) -> Result<SealedBatch, String> {
        let n = self.bytes.len();
        let b = &mut self.bytes;
        b[8..12].copy_from_slice(&((n - 12) as i32).to_be_bytes());
        b[12..16].copy_from_slice(&(-1i32).to_be_bytes());
        b[16] = 2;
        b[23..27].copy_from_slice(&(self.count as i32 - 1).to_be_bytes());
        b[27..35].copy_from_slice(&self.base.to_be_bytes());
        b[35..43].copy_from_slice(&self.max.to_be_bytes());
        b[43..51].copy_from_slice(&(-1i64).to_be_bytes());
        b[51..53].copy_from_slice(&(-1i16).to_be_bytes());
        b[53..57].copy_from_slice(&(-1i32).to_be_bytes());
        b[57..61].copy_from_slice(&(self.count as i32).to_be_bytes());
        let crc = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, &b[21..]) as u32;
        b[17..21].copy_from_slice(&crc.to_be_bytes());
        Ok(SealedBatch { bytes: self.bytes, count: self.count })
    }
}
#[derive(Clone, Debug, Default)]
pub struct SealOptions {
    pub compression: Compression,
    pub level: Option<i32>,
}
#[derive(Debug)]
pub struct SealedBatch {
    bytes: Vec<u8>,
    count: u32,
}
impl SealedBatch {
    pub fn len(&self) -> usize {
        self.bytes.len()
    }
    pub fn is_empty(&self) -> bool {
        false
    }
    pub fn record_count(&self) -> u32 {
        self.count
    }
    pub fn segments(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::once(&self.bytes[..])
    }
    pub fn to_message_set(&self, _magic: i8) -> Vec<u8> {
        Vec::new()
    }
}
