//! The trace of a run: one line per transition, and a hash of all lines.

use std::fmt::Write;

use ottla_core::machine::Instant;

/// The trace of a run.
#[derive(Debug)]
pub struct Trace {
    hash: u64,
    events: u64,
    /// The lines, if they are kept.
    lines: Option<Vec<String>>,
    buffer: String,
}

impl Trace {
    /// Creates an empty trace; `keep` keeps the lines.
    pub fn new(keep: bool) -> Self {
        Self { hash: 0xcbf2_9ce4_8422_2325, events: 0, lines: keep.then(Vec::new), buffer: String::new() }
    }

    /// Notes a transition.
    pub fn note(&mut self, now: Instant, what: std::fmt::Arguments<'_>) {
        self.events += 1;
        self.buffer.clear();
        // Writing to a String can't fail.
        let _ = write!(self.buffer, "{:>14.6} {what}", now.as_nanos() as f64 / 1e9);
        for byte in self.buffer.bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        if let Some(lines) = &mut self.lines {
            lines.push(self.buffer.clone());
        }
    }

    /// Adds a line that is not part of the hash.
    pub fn remark(&mut self, what: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            lines.push(what());
        }
    }

    /// Adds a line with the time that is not part of the hash, for a reader of the trace.
    pub fn tell(&mut self, now: Instant, what: std::fmt::Arguments<'_>) {
        self.remark(|| format!("{:>14.6} {what}", now.as_nanos() as f64 / 1e9));
    }

    /// Returns true if the lines are kept.
    pub const fn keeps(&self) -> bool {
        self.lines.is_some()
    }

    /// Returns what the first line behind this number of lines says, without its time.
    pub fn first_since(&self, lines: usize) -> &str {
        let line = self.lines().get(lines).map_or("", |line| line.trim_start());
        line.split_once(' ').map_or("", |(_, what)| what)
    }

    /// Returns the hash of all transitions.
    pub const fn hash(&self) -> u64 {
        self.hash
    }

    /// Returns the number of transitions.
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// Returns the lines, if they were kept.
    pub fn lines(&self) -> &[String] {
        self.lines.as_deref().unwrap_or_default()
    }
}
