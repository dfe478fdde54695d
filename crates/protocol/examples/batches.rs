//! Writes and reads record batches for the comparison with other clients in `tests/interop/batches.sh`.
//!
//! - `batches write FOLDER` encodes FOLDER/records.txt and large.txt in every format and codec as FOLDER/ottla-*.bin
//! - `batches read FILE...` prints every record, after checking every batch as a consumer does

#[path = "../tests/batches/lines.rs"]
mod lines;

use std::{env, error::Error, fs, path::Path};

use ottla_protocol::compress::Compression;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["write", folder] => write(Path::new(folder)),
        ["read", ref files @ ..] if !files.is_empty() => {
            files.iter().try_for_each(|file| read(Path::new(file)))
        }
        _ => Err("batches write FOLDER, or batches read FILE...".into()),
    }
}

fn write(folder: &Path) -> Result<(), Box<dyn Error>> {
    for (file, suffix) in [("records.txt", ""), ("large.txt", "-large")] {
        let records = lines::parse(&fs::read_to_string(folder.join(file))?);
        for magic in 0..=2 {
            for codec in Compression::ALL {
                if codec == Compression::Zstd && magic < 2 {
                    continue;
                }
                let highest = codec.levels().map(|levels| *levels.end());
                for (level, name) in [(None, ""), (highest, "-highest")] {
                    if name.is_empty() || level.is_some() {
                        let name = format!("ottla-v{magic}-{codec}{name}{suffix}.bin");
                        fs::write(folder.join(name), lines::write(magic, codec, level, &records))?;
                    }
                }
            }
        }
    }
    Ok(())
}

fn read(file: &Path) -> Result<(), Box<dyn Error>> {
    println!("# {}", file.file_stem().unwrap_or_default().display());
    for line in lines::read(&fs::read(file)?)? {
        println!("{line}");
    }
    Ok(())
}
