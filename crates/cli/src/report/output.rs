//! The file of a report: checked before the test, and replaced at once after it.

use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Outcome};

/// The bytes that are reserved before the test: more than a report usually has.
const RESERVED_BYTES: usize = 256 * 1024;

/// A file that will be written. Until then there is a temporary file beside it, which is removed if nothing is written.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    temporary: PathBuf,
    file: Option<File>,
}

impl Output {
    /// Checks that the file can be written, and reserves some space.
    ///
    /// # Errors
    ///
    /// The path is not one of a file, or its folder can't be written, or the disk is full.
    pub fn open(path: &Path) -> Outcome<Output> {
        let wrong = |what: &str| Failure::Usage(format!("the report {} {what}", path.display()));
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => return Err(wrong("is a folder; name a file in it")),
            Ok(found) if !found.is_file() => return Err(wrong("is not a regular file")),
            Ok(found) if found.permissions().readonly() => return Err(wrong("is read-only")),
            _ => {}
        }
        // A link stays a link.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let Some(name) = path.file_name() else { return Err(wrong("is not the name of a file")) };
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}", std::process::id()));
        let temporary = path.with_file_name(hidden);
        let failed = |error: &io::Error| wrong(&format!("can't be written: {error}"));
        let file = File::options().write(true).create_new(true).open(&temporary);
        let mut file = file.map_err(|error| failed(&error))?;
        let output = |file| Output { path: path.clone(), temporary: temporary.clone(), file };
        if let Err(error) = reserve(&mut file) {
            drop(output(Some(file)));
            return Err(failed(&error));
        }
        Ok(output(Some(file)))
    }

    /// Writes the text, and then gives the file its name.
    ///
    /// # Errors
    ///
    /// The text can't be written; what had this name before is still there.
    pub fn write(mut self, text: &str) -> Outcome {
        let Some(mut file) = self.file.take() else { return Ok(()) };
        let written = file
            .rewind()
            .and_then(|()| file.write_all(text.as_bytes()))
            .and_then(|()| file.set_len(text.len() as u64))
            .and_then(|()| file.sync_all());
        drop(file);
        let renamed = written.and_then(|()| fs::rename(&self.temporary, &self.path));
        renamed.map_err(|error| {
            let _ = fs::remove_file(&self.temporary);
            Failure::Failed(format!("the report {} can't be written: {error}", self.path.display()))
        })
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

fn reserve(file: &mut File) -> io::Result<()> {
    file.write_all(&vec![b' '; RESERVED_BYTES])?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("ottla-output-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        path
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn report_replaces_the_old_one_only_when_it_is_complete() {
        let folder = folder("replace");
        let path = folder.join("report.html");
        fs::write(&path, "old").unwrap();
        let output = Output::open(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        drop(output);
        assert_eq!(names(&folder), ["report.html"], "nothing else is left");
        Output::open(&path).unwrap().write("new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(names(&folder), ["report.html"]);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn path_that_can_not_be_written_is_refused_at_once() {
        let folder = folder("refused");
        let of = |path: &Path| match Output::open(path) {
            Err(Failure::Usage(text)) => text,
            other => panic!("{other:?}"),
        };
        assert!(of(&folder).ends_with("is a folder; name a file in it"));
        assert!(of(&folder.join("no/report.html")).contains("can't be written"));
        #[cfg(unix)]
        assert!(of(Path::new("/dev/full")).ends_with("is not a regular file"));
        fs::remove_dir_all(&folder).unwrap();
    }
}
