//! The inputs of a target: one file in the repository, a file for each under libFuzzer.
//!
//! `fuzz/corpus/NAME.bin` is a sequence of inputs, the shortest first, each behind its length in four bytes, big-endian.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The largest file, in bytes: together they are smaller than 5 MB.
pub const MOST_BYTES: usize = 500_000;

/// Returns the file of a target.
pub fn path(root: &Path, target: &str) -> PathBuf {
    root.join("fuzz/corpus").join(target).with_extension("bin")
}

/// Returns the inputs of a target; a missing file has none.
///
/// # Errors
///
/// The file can't be read.
pub fn read(root: &Path, target: &str) -> io::Result<Vec<Vec<u8>>> {
    match fs::read(path(root, target)) {
        Ok(bytes) => Ok(unpack(&bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Returns the inputs of a file.
fn unpack(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut inputs = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk()
        && let Some((input, rest)) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)
    {
        inputs.push(input.to_vec());
        bytes = rest;
    }
    inputs
}

/// Returns the file of these inputs. Of too many bytes the longest inputs are left out.
fn pack(mut inputs: Vec<Vec<u8>>) -> Vec<u8> {
    inputs.sort_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    inputs.dedup();
    let mut bytes = Vec::new();
    for input in inputs {
        if bytes.len() + 4 + input.len() > MOST_BYTES {
            break;
        }
        bytes.extend((input.len() as u32).to_be_bytes());
        bytes.extend(input);
    }
    bytes
}

/// Writes the inputs of a target.
///
/// # Errors
///
/// The file can't be written.
pub fn write(root: &Path, target: &str, inputs: Vec<Vec<u8>>) -> io::Result<()> {
    fs::write(path(root, target), pack(inputs))
}

/// Writes each input to a file of its own.
///
/// # Errors
///
/// A file can't be written.
pub fn spread(inputs: &[Vec<u8>], folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    inputs
        .iter()
        .enumerate()
        .try_for_each(|(index, input)| fs::write(folder.join(format!("{index:05}")), input))
}

/// Reads the files of a folder.
///
/// # Errors
///
/// A file can't be read.
pub fn gather(folder: &Path) -> io::Result<Vec<Vec<u8>>> {
    let paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.iter().filter(|path| path.is_file()).map(fs::read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{fuzz::coverage::TARGETS, shell::root};

    #[test]
    fn inputs_are_packed_shortest_first_and_unpacked() {
        let inputs = [&b"ccc"[..], b"", b"a", b"ccc", b"bb"].map(<[u8]>::to_vec);
        let packed = pack(inputs.to_vec());
        assert_eq!(unpack(&packed), [&b""[..], b"a", b"bb", b"ccc"]);
        assert_eq!(unpack(&packed[..packed.len() - 1]).len(), 3, "a file that breaks off");
        let large = vec![vec![1; MOST_BYTES / 2], vec![2; MOST_BYTES / 2], vec![3; 10]];
        assert_eq!(unpack(&pack(large)).len(), 2);
    }

    #[test]
    fn inputs_of_all_targets_are_small_and_in_order() {
        for (name, _) in TARGETS {
            let bytes = fs::read(path(&root(), name)).expect("each target has inputs");
            assert!(bytes.len() <= MOST_BYTES, "{name}: {} bytes", bytes.len());
            assert_eq!(pack(unpack(&bytes)), bytes, "{name}");
        }
        assert!(TARGETS.len() * MOST_BYTES < 5_000_000);
    }
}
