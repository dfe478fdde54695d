//! Offsets of the older consumer in files (`offset.store.method=file`): one for each partition, with the offset to go on
//! from as a line of text.
//!
//! A file is written beside the old one and put in its place, so that a crash leaves the old or the new offset. A thread
//! of the client writes from time to time; it starts with the first file. Starting, stopping and destroying read and write
//! in the application's own call. No I/O thread touches a file.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::Weak,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use ottla::Offset;
use parking_lot::{Condvar, Mutex};

use crate::{client::Client, codes::code, topic::Topic, transport::Opener};

/// The files of a client's partitions.
#[derive(Debug, Default)]
pub(crate) struct OffsetFiles {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    files: BTreeMap<(String, i32), OffsetFile>,
    thread: Option<JoinHandle<()>>,
    is_over: bool,
}

#[derive(Debug)]
struct OffsetFile {
    path: PathBuf,
    /// `auto.commit.interval.ms`, with `auto.commit.enable`.
    interval: Option<Duration>,
    /// `offset.store.sync.interval.ms`: zero syncs each write, `None` none.
    sync_interval: Option<Duration>,
    next_write: Instant,
    last_sync: Instant,
    written: Option<i64>,
    /// That it can't be written was told.
    is_told: bool,
}

/// A file with more bytes than this holds no offset.
const MOST_BYTES: u64 = 64;

impl Client {
    /// Where a partition whose offset is stored in a file begins, and from now on the file is kept; `None` if it is not
    /// stored in one. `Err` if it begins nowhere: `auto.offset.reset` is an error.
    pub(crate) fn start_offset_file(
        &self,
        topic: &Topic,
        partition: i32,
        from: Offset,
    ) -> Option<Result<Offset, String>> {
        if topic.property("offset.store.method") != "file" {
            return None;
        }
        let name = file_name(topic.name(), partition, self.property("group.id").as_deref());
        let path = place(topic.property("offset.store.path"), &name);
        let millis = |name| topic.property(name).parse::<u64>().ok().map(Duration::from_millis);
        let is_usable = !path.exists() || path.is_file();
        let known =
            if is_usable { read(&path, self.opener()) } else { Err("it is not a regular file".to_owned()) };
        let now = Instant::now();
        let interval = topic.auto_commit_interval();
        if is_usable {
            let file = OffsetFile {
                interval,
                sync_interval: millis("offset.store.sync.interval.ms"),
                next_write: now + interval.unwrap_or_default(),
                last_sync: now,
                written: known.as_ref().ok().copied().flatten(),
                is_told: false,
                path: path.clone(),
            };
            self.keep_offset_file((topic.name().to_owned(), partition), file);
        }
        if from != Offset::Stored {
            return Some(Ok(from));
        }
        let known = known.unwrap_or_else(|error| {
            let text = format!(
                "{} [{partition}]: offset file {} can't be used: {error}; `auto.offset.reset` says where to begin",
                topic.name(),
                path.display()
            );
            self.error(code::_FS, text);
            None
        });
        Some(match (known, topic.property("auto.offset.reset")) {
            (Some(offset), _) => Ok(Offset::At(offset)),
            (None, "smallest" | "earliest" | "beginning") => Ok(Offset::Beginning),
            (None, "largest" | "latest" | "end") => Ok(Offset::End),
            _ => Err(format!(
                "{} [{partition}]: there is no offset in {} and `auto.offset.reset` is an error",
                topic.name(),
                path.display()
            )),
        })
    }

    fn keep_offset_file(&self, partition: (String, i32), file: OffsetFile) {
        self.offsets().keep_in_file(&partition.0, partition.1);
        let files = self.offset_files();
        let mut state = files.state.lock();
        if state.thread.is_none() && file.interval.is_some() && !state.is_over {
            let me = self.weak();
            let thread = thread::Builder::new().name("ottla-offsets".into()).spawn(move || run(&me));
            match thread {
                Ok(thread) => state.thread = Some(thread),
                Err(error) => {
                    let text = format!("can't start the thread that writes offset files: {error}");
                    self.error(code::_FS, text);
                }
            }
        }
        state.files.insert(partition, file);
        files.changed.notify_all();
    }

    /// A partition is stopped: what is stored of it is written, and the file is let go.
    pub(crate) fn stop_offset_file(&self, topic: &str, partition: i32) {
        let key = (topic.to_owned(), partition);
        let file = self.offset_files().state.lock().files.remove(&key);
        if let Some(mut file) = file {
            self.write_offset_file(&key, &mut file);
            self.offsets().keep_in_group(topic, partition);
        }
    }

    /// The client ends: everything is written, and the thread is over.
    pub(crate) fn stop_offset_files(&self) {
        let files = self.offset_files();
        let (left, thread) = {
            let mut state = files.state.lock();
            state.is_over = true;
            files.changed.notify_all();
            (std::mem::take(&mut state.files), state.thread.take())
        };
        for (partition, mut file) in left {
            self.write_offset_file(&partition, &mut file);
        }
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != thread::current().id()) {
            // It does not panic but in the application's functions, which ends the process anyway.
            let _ = thread.join();
        }
    }

    /// Writes what is stored, if that is something new.
    fn write_offset_file(&self, (topic, partition): &(String, i32), file: &mut OffsetFile) {
        let Some(consumer) = self.consumer() else { return };
        let Some((offset, ..)) = self.offsets().stored(consumer, topic, *partition) else { return };
        if offset < 0 || file.written == Some(offset) {
            return;
        }
        match file.write(offset, Instant::now(), self.opener()) {
            Ok(()) => (file.written, file.is_told) = (Some(offset), false),
            Err(_) if file.is_told => {}
            Err(error) => {
                file.is_told = true;
                let path = file.path.display();
                let text =
                    format!("{topic} [{partition}]: offset {offset} can't be written to {path}: {error}");
                self.error(code::_FS, text);
            }
        }
    }

    /// Writes the files that are due; answers when to come again.
    fn write_due_offset_files(&self) -> Option<Instant> {
        let now = Instant::now();
        let mut state = self.offset_files().state.lock();
        for (partition, file) in &mut state.files {
            if let Some(interval) = file.interval.filter(|_| file.next_write <= now) {
                self.write_offset_file(partition, file);
                file.next_write = now + interval;
            }
        }
        state.files.values().filter(|file| file.interval.is_some()).map(|file| file.next_write).min()
    }
}

impl OffsetFile {
    fn write(&mut self, offset: i64, now: Instant, opener: Opener) -> io::Result<()> {
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

/// The thread: writes what is due, until the client ends.
fn run(client: &Weak<Client>) {
    let mut due = Some(Instant::now());
    loop {
        let Some(client) = client.upgrade() else { return };
        let files = client.offset_files();
        let mut state = files.state.lock();
        if state.is_over {
            return;
        }
        match due {
            Some(due) => {
                files.changed.wait_until(&mut state, due);
            }
            None => files.changed.wait(&mut state),
        }
        if state.is_over {
            return;
        }
        drop(state);
        due = client.write_due_offset_files();
    }
}

/// The file's name in its folder.
fn file_name(topic: &str, partition: i32, group: Option<&str>) -> String {
    let name = match group.filter(|group| !group.is_empty()) {
        Some(group) => format!("{topic}-{partition}-{group}.offset"),
        None => format!("{topic}-{partition}.offset"),
    };
    name.replace('/', "%2F").replace(':', "%3A").replace('\\', "%5C")
}

/// The file: in a folder by its name, otherwise the path itself.
fn place(path: &str, name: &str) -> PathBuf {
    let path = Path::new(if path.is_empty() { "." } else { path });
    let path = if path.is_dir() { path.join(name) } else { path.to_owned() };
    // What a link leads to is written, not the link.
    fs::canonicalize(&path).unwrap_or(path)
}

/// The offset in a file; `None` if there is no file or nothing in it.
fn read(path: &Path, opener: Opener) -> Result<Option<i64>, String> {
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
