//! The life of a client's offset files: they are read when a partition starts, written periodically, and written for
//! the last time when it stops.

use std::{
    sync::Weak,
    thread,
    time::{Duration, Instant},
};

use ottla_core::fetch::position::Offset;

use crate::{
    client::{handle::Client, topic::Topic},
    consume::offset_file::{OffsetFile, Slot, file_name, file_path, read},
    ffi::codes::code,
};

impl Client {
    /// Returns the start offset of a partition whose offset is stored in a file, and keeps the file from now on; `None`
    /// if the partition has no file. Error: there is no start offset, because `auto.offset.reset` is an error.
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
        let path = file_path(topic.property("offset.store.path"), &name);
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
                is_reported: false,
                path: path.clone(),
            };
            self.keep_offset_file((topic.name().to_owned(), partition), file);
        }
        if from != Offset::Committed {
            return Some(Ok(from));
        }
        let known = known.unwrap_or_else(|error| {
            let text = format!(
                "{} [{partition}]: offset file {} can't be used: {error}; `auto.offset.reset` determines the start",
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
        let mut failed = None;
        {
            let mut state = files.state.lock();
            if state.thread.is_none() && file.interval.is_some() && !state.is_over {
                let me = self.weak();
                match thread::Builder::new().name("ottla-offsets".into()).spawn(move || run(&me)) {
                    Ok(thread) => state.thread = Some(thread),
                    Err(error) => failed = Some(error),
                }
            }
            state.files.insert(partition, Slot::Here(file));
            files.changed.notify_all();
        }
        if let Some(error) = failed {
            self.error(code::_FS, format!("can't start the thread that writes offset files: {error}"));
        }
    }

    /// Stops a partition: writes its stored offset, and removes its file from the list.
    pub(crate) fn stop_offset_file(&self, topic: &str, partition: i32) {
        let key = (topic.to_owned(), partition);
        match self.offset_files().remove(&key) {
            Some(Slot::Here(mut file)) => self.write_offset_file(&key, &mut file),
            // The thread writes this file, and called an application function that called this one: the write in
            // progress is the last.
            Some(Slot::WrittenBy(_)) => {}
            None => return,
        }
        self.offsets().keep_in_group(topic, partition);
    }

    /// Ends the files with the client: writes all offsets, and ends the thread.
    pub(crate) fn stop_offset_files(&self) {
        let files = self.offset_files();
        let thread = {
            let mut state = files.state.lock();
            state.is_over = true;
            files.changed.notify_all();
            state.thread.take()
        };
        // The other thread returns the file that it writes.
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != thread::current().id()) {
            // A join error means a panic inside the application's functions, which ends the process anyway.
            let _ = thread.join();
        }
        let left = std::mem::take(&mut files.state.lock().files);
        for (partition, slot) in left {
            if let Slot::Here(mut file) = slot {
                self.write_offset_file(&partition, &mut file);
            }
        }
    }

    /// Writes the stored offset, if it has changed.
    fn write_offset_file(&self, (topic, partition): &(String, i32), file: &mut OffsetFile) {
        let Some(consumer) = self.consumer() else { return };
        let Some((offset, ..)) = self.offsets().stored(consumer, topic, *partition) else { return };
        if offset < 0 || file.written == Some(offset) {
            return;
        }
        match file.write(offset, Instant::now(), self.opener()) {
            Ok(()) => (file.written, file.is_reported) = (Some(offset), false),
            Err(_) if file.is_reported => {}
            Err(error) => {
                file.is_reported = true;
                let path = file.path.display();
                let text =
                    format!("{topic} [{partition}]: offset {offset} can't be written to {path}: {error}");
                self.error(code::_FS, text);
            }
        }
    }

    /// Writes the files that are due; returns when the next one is due.
    fn write_due_offset_files(&self) -> Option<Instant> {
        let now = Instant::now();
        let files = self.offset_files();
        while let Some((partition, interval, mut file)) = files.take_due(now) {
            self.write_offset_file(&partition, &mut file);
            file.next_write = now + interval;
            files.put_back(&partition, file);
        }
        files.next_write()
    }
}

/// Runs the thread: writes due files until the client ends.
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
