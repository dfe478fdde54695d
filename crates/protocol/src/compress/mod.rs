//! First cut.
#![expect(missing_docs, reason = "first cut")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Compression {
    #[default]
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}
impl Compression {
    pub fn id(self) -> u8 {
        self as u8
    }
    pub fn from_id(id: u8) -> Option<Self> {
        [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd].get(id as usize).copied()
    }
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompressError;
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecompressError;
impl std::fmt::Display for CompressError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no codec")
    }
}
impl std::fmt::Display for DecompressError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no codec")
    }
}
pub fn compress<'a>(
    _: Compression,
    _: Option<i32>,
    _: impl Iterator<Item = &'a [u8]>,
    _: &mut Vec<u8>,
) -> Result<(), CompressError> {
    Err(CompressError)
}
pub fn decompress(_: Compression, _: &[u8], _: usize, _: &mut Vec<u8>) -> Result<(), DecompressError> {
    Err(DecompressError)
}
