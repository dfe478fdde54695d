//! Notices changed files of certificates and keys, and certificates that expire soon.
//!
//! # Pitfalls
//!
//! - Key and certificate are separate files, and one of them is changed first. The files are read once they have not
//!   changed between two looks; a set that does not fit together keeps the old one in use
//!   (`rotated_files_are_used_after_reload_and_bad_ones_are_not`).
//! - Kubernetes replaces files by a symbolic link to another folder. The time and the inode are those of the link's target
//!   (`swapped_link_is_noticed`).

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Weak, mpsc},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use ottla_core::event::CredentialsEvent;

use super::TlsContext;
use crate::{
    credentials::x509::{date, seconds},
    platform,
};

/// Watches the files of a context until it is dropped.
#[derive(Debug)]
pub struct Watcher {
    /// The thread ends when this end of the channel is dropped.
    _alive: mpsc::Sender<()>,
}

/// Receives what the watcher notices, on its thread.
pub type Report = dyn Fn(CredentialsEvent) + Send;

/// The days before the end of a certificate at which an event is raised.
const WARN_DAYS: [i64; 3] = [30, 7, 1];
const DAY: i64 = 86_400;
/// The time that files must stay unchanged.
const SETTLING: Duration = Duration::from_millis(500);
/// The longest time between two looks at the certificate's end.
const LONGEST: Duration = Duration::from_secs(3600);

impl Watcher {
    /// Starts to watch. Without files and without a client certificate there is nothing to do.
    pub fn start(
        context: &Arc<TlsContext>,
        interval: Option<Duration>,
        report: Box<Report>,
    ) -> io::Result<Option<Self>> {
        let interval = interval.filter(|_| !context.files().is_empty());
        if interval.is_none() && context.certificate().is_none() {
            return Ok(None);
        }
        let (alive, ended) = mpsc::channel();
        let state = State {
            stamps: stamps(&context.files()),
            reloads: interval.is_some(),
            warned_days: i64::MAX,
            context: Arc::downgrade(context),
            report,
        };
        let interval = interval.unwrap_or(LONGEST).min(LONGEST);
        thread::Builder::new()
            .name("ottla-credentials".to_owned())
            .spawn(move || state.run(interval, &ended))?;
        Ok(Some(Self { _alive: alive }))
    }
}

struct State {
    context: Weak<TlsContext>,
    stamps: Vec<Stamp>,
    reloads: bool,
    /// The smallest number of days that was reported.
    warned_days: i64,
    report: Box<Report>,
}

/// The fields of a file that change when it is replaced or written.
type Stamp = (PathBuf, Option<SystemTime>, u64, u64);

impl State {
    fn run(mut self, interval: Duration, ended: &mpsc::Receiver<()>) {
        loop {
            let Some(context) = self.context.upgrade() else { return };
            let now = seconds(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
            self.warn(&context, now);
            drop(context);
            if ended.recv_timeout(interval) != Err(mpsc::RecvTimeoutError::Timeout) {
                return;
            }
            while self.reloads && self.has_changed() {
                if ended.recv_timeout(SETTLING) != Err(mpsc::RecvTimeoutError::Timeout) {
                    return;
                }
                self.settle();
            }
        }
    }

    fn has_changed(&self) -> bool {
        self.context.upgrade().is_some_and(|context| stamps(&context.files()) != self.stamps)
    }

    /// Reads the files again if they have not changed since the time before.
    fn settle(&mut self) {
        let Some(context) = self.context.upgrade() else { return };
        let before = stamps(&context.files());
        let result = context.reload();
        let after = stamps(&context.files());
        if before != after {
            // They changed while they were read; the next look reads them again.
            return;
        }
        self.stamps = after;
        self.warned_days = i64::MAX;
        (self.report)(match result {
            Ok(()) => CredentialsEvent::Reloaded,
            Err(error) => CredentialsEvent::Refused(error),
        });
    }

    /// Raises an event when fewer days are left than at the event before.
    fn warn(&mut self, context: &TlsContext, now: i64) {
        let Some((certificate, not_after)) = context.certificate() else { return };
        if let Some(days) = days_to_warn(not_after - now, self.warned_days) {
            self.warned_days = days;
            (self.report)(CredentialsEvent::Expiring { certificate, days, at: date(not_after) });
        }
    }
}

/// Returns the limit of days to report, with this many seconds left, unless it or a smaller one was reported before.
fn days_to_warn(seconds_left: i64, warned: i64) -> Option<i64> {
    WARN_DAYS.into_iter().rev().find(|days| seconds_left <= days * DAY).filter(|days| *days < warned)
}

fn stamps(paths: &[PathBuf]) -> Vec<Stamp> {
    let mut stamps = Vec::new();
    for path in paths {
        stamps.push(stamp(path));
        if path.is_dir() {
            let entries = fs::read_dir(path).into_iter().flatten().flatten().take(10_000);
            let mut inside: Vec<_> = entries.map(|entry| stamp(&entry.path())).collect();
            inside.sort();
            stamps.append(&mut inside);
        }
    }
    stamps
}

fn stamp(path: &Path) -> Stamp {
    let data = fs::metadata(path).ok();
    let file_id = data.as_ref().map_or(0, platform::file_id);
    let modified = data.as_ref().and_then(|data| data.modified().ok());
    (path.to_owned(), modified, data.map_or(0, |data| data.len()), file_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expiry_is_reported_once_per_limit() {
        let mut warned = i64::MAX;
        let mut reported = Vec::new();
        for days in (-1..40).rev() {
            if let Some(limit) = days_to_warn(days * DAY, warned) {
                warned = limit;
                reported.push((days, limit));
            }
        }
        assert_eq!(reported, [(30, 30), (7, 7), (1, 1)]);
        assert_eq!(days_to_warn(-5 * DAY, i64::MAX), Some(1), "an expired certificate is reported, too");
    }

    #[cfg(unix)]
    #[test]
    fn swapped_link_is_noticed() {
        let folder = std::env::temp_dir().join(format!("ottla-watch-{}", std::process::id()));
        for (name, text) in [("1", "same"), ("2", "same")] {
            fs::create_dir_all(folder.join(name)).unwrap();
            fs::write(folder.join(name).join("ca.pem"), text).unwrap();
        }
        std::os::unix::fs::symlink(folder.join("1"), folder.join("current")).unwrap();
        let paths = [folder.join("current").join("ca.pem")];
        let before = stamps(&paths);
        assert_eq!(stamps(&paths), before);
        std::os::unix::fs::symlink(folder.join("2"), folder.join("next")).unwrap();
        fs::rename(folder.join("next"), folder.join("current")).unwrap();
        assert_ne!(stamps(&paths), before);
        fs::remove_dir_all(folder).unwrap();
    }
}
