//! Offsets of the older consumer in files (`offset.store.method=file`): one file for each partition, with the offset of
//! the next message as a line of text.
//!
//! A new file is written beside the old one and renamed over it, so that a crash leaves the old or the new offset. A
//! thread of the client writes at the interval of `auto.commit.interval.ms`; it starts with the first file. Starting,
//! stopping and destroying read and write in the application's own call. No I/O thread accesses a file.
//!
//! # Pitfalls
//!
//! - A file that is replaced by a rename must be a regular file: `offset.store.path=/dev/null` would replace the device
//!   (`offset_file.c`).

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    thread::{self, JoinHandle, ThreadId},
    time::{Duration, Instant},
};

use ottla_sorted::SortedMap;

use crate::{
    client::transport::Opener,
    ffi::lock::{Condvar, Mutex},
};

/// The files of a client's partitions.
#[derive(Debug, Default)]
pub(crate) struct OffsetFiles {
    pub(super) state: Mutex<State>,
    pub(super) changed: Condvar,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) files: SortedMap<(String, i32), Slot>,
    pub(super) thread: Option<JoinHandle<()>>,
    pub(super) is_over: bool,
}

/// The state of a partition's file.
#[derive(Debug)]
pub(super) enum Slot {
    Here(OffsetFile),
    /// A thread writes the file, without the lock: `open_cb` and errors call the application.
    WrittenBy(ThreadId),
}

#[derive(Debug)]
pub(super) struct OffsetFile {
    pub(super) path: PathBuf,
    /// `auto.commit.interval.ms`, if `auto.commit.enable` is set.
    pub(super) interval: Option<Duration>,
    /// `offset.store.sync.interval.ms`: zero syncs each write; `None` never syncs.
    pub(super) sync_interval: Option<Duration>,
    pub(super) next_write: Instant,
    pub(super) last_sync: Instant,
    pub(super) written: Option<i64>,
    /// True once an error of writing was reported.
    pub(super) is_reported: bool,
}

/// The maximum size: a longer file contains no offset.
const MOST_BYTES: u64 = 64;

impl OffsetFiles {
    /// Removes a file, once no other thread writes it.
    pub(super) fn remove(&self, partition: &(String, i32)) -> Option<Slot> {
        let mut state = self.state.lock();
        loop {
            match state.files.get(partition) {
                Some(Slot::WrittenBy(thread)) if *thread != thread::current().id() => {
                    self.changed.wait(&mut state);
                }
                _ => return state.files.remove(partition),
            }
        }
    }

    /// Takes a file that is due, to be written without the lock.
    pub(super) fn take_due(&self, now: Instant) -> Option<((String, i32), Duration, OffsetFile)> {
        let mut state = self.state.lock();
        for (partition, slot) in &mut state.files {
            if let Slot::Here(file) = slot
                && let Some(interval) = file.interval.filter(|_| file.next_write <= now)
                && let Slot::Here(file) = std::mem::replace(slot, Slot::WrittenBy(thread::current().id()))
            {
                return Some((partition.clone(), interval, file));
            }
        }
        None
    }

    /// Returns a file that was written, unless its partition was stopped meanwhile.
    pub(super) fn put_back(&self, partition: &(String, i32), file: OffsetFile) {
        let mut state = self.state.lock();
        if let Some(slot @ Slot::WrittenBy(_)) = state.files.get_mut(partition) {
            *slot = Slot::Here(file);
        }
        self.changed.notify_all();
    }

    /// Returns the time at which the next file is due.
    pub(super) fn next_write(&self) -> Option<Instant> {
        let state = self.state.lock();
        let due = |slot: &Slot| match slot {
            Slot::Here(file) => file.interval.map(|_| file.next_write),
            Slot::WrittenBy(_) => None,
        };
        state.files.values().filter_map(due).min()
    }
}

impl OffsetFile {
    pub(super) fn write(&mut self, offset: i64, now: Instant, opener: Opener) -> io::Result<()> {
        let is_synced = self.sync_interval.is_some_and(|interval| now >= self.last_sync + interval);
        let beside = PathBuf::from(format!("{}.new", self.path.display()));
        let mut new = opener.create(&beside)?;
        new.write_all(format!("{offset}\n").as_bytes())?;
        if is_synced {
            new.sync_all()?;
            self.last_sync = now;
        }
        drop(new);
        fs::rename(&beside, &self.path)?;
        if let Some(folder) = self.path.parent().filter(|_| is_synced) {
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            File::open(folder)?.sync_all()?;
        }
        Ok(())
    }
}

/// Returns the file's name in its folder.
pub(super) fn file_name(topic: &str, partition: i32, group: Option<&str>) -> String {
    let name = match group.filter(|group| !group.is_empty()) {
        Some(group) => format!("{topic}-{partition}-{group}.offset"),
        None => format!("{topic}-{partition}.offset"),
    };
    name.replace('/', "%2F").replace(':', "%3A").replace('\\', "%5C")
}

/// Returns the path of the file: in a folder by its name, otherwise the configured path itself.
pub(super) fn file_path(path: &str, name: &str) -> PathBuf {
    let path = Path::new(if path.is_empty() { "." } else { path });
    let path = if path.is_dir() { path.join(name) } else { path.to_owned() };
    // For a link, its target is replaced.
    fs::canonicalize(&path).unwrap_or(path)
}

/// Reads the offset from a file; `None` if the file is missing or empty.
pub(super) fn read(path: &Path, opener: Opener) -> Result<Option<i64>, String> {
    let file = match opener.read(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    let text = std::str::from_utf8(&bytes).unwrap_or("?").trim();
    if bytes.is_empty() {
        return Ok(None);
    }
    match text.parse::<i64>() {
        Ok(offset) if offset >= 0 && bytes.len() as u64 <= MOST_BYTES => Ok(Some(offset)),
        _ => Err("it holds no offset".to_owned()),
    }
}
