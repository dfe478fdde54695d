//! The inputs of a target: `corpus/NAME.bin`, one file for all of them, and `findings/NAME`, a file for each.
//!
//! A corpus file is a sequence of inputs, each behind its length in four bytes, big-endian.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Returns the folder `fuzz` of the repository, which `manifest`, the folder of a crate, is in.
pub fn folder(manifest: &str) -> PathBuf {
    let is_root = |folder: &&Path| folder.join("fuzz/corpus").is_dir();
    Path::new(manifest).ancestors().find(is_root).map_or_else(PathBuf::new, |root| root.join("fuzz"))
}

/// Splits a corpus file. Stops at a length that is wrong.
pub fn unpack(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut inputs = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk()
        && let Some((input, rest)) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)
    {
        inputs.push(input);
        bytes = rest;
    }
    inputs
}

/// Returns all inputs of a target, the findings last.
///
/// # Errors
///
/// A file can't be read. A target without a file has no inputs.
pub fn inputs(folder: &Path, target: &str) -> io::Result<Vec<Vec<u8>>> {
    let packed = or_none(fs::read(folder.join("corpus").join(target).with_extension("bin")))?;
    let packed = packed.unwrap_or_default();
    let mut inputs: Vec<Vec<u8>> = unpack(&packed).into_iter().map(<[u8]>::to_vec).collect();
    let findings = or_none(fs::read_dir(folder.join("findings").join(target)))?;
    let mut paths =
        findings.into_iter().flatten().map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    for path in paths {
        inputs.push(fs::read(path)?);
    }
    Ok(inputs)
}

fn or_none<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}
