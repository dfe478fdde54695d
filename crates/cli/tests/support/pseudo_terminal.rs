//! A pseudo-terminal with a screen: what a program draws, as lines of text.

#![allow(dead_code)]

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

/// A generous timeout: the waits end much earlier unless the machine is overloaded.
const DEADLINE: Duration = Duration::from_secs(60);

/// A program on a pseudo-terminal.
pub struct PseudoTerminal {
    controller: File,
    /// The program's side, which stays open so that its modes can be read after the end.
    user: File,
    child: Child,
    shown: Arc<(Mutex<Shown>, Condvar)>,
}

#[derive(Default)]
struct Shown {
    bytes: Vec<u8>,
    screen: Screen,
}

impl PseudoTerminal {
    /// Starts the binary on a terminal of this size, with these variables.
    pub fn start(size: (u16, u16), variables: &[(&str, &str)], arguments: &[&str]) -> PseudoTerminal {
        // Only tests of the binary itself are compiled without its path.
        let Some(binary) = option_env!("CARGO_BIN_EXE_ottla") else { panic!("the path is missing") };
        PseudoTerminal::of(Path::new(binary), size, variables, arguments)
    }

    /// Starts a program on a terminal of this size, with these variables.
    pub fn of(
        program: &Path,
        (columns, rows): (u16, u16),
        variables: &[(&str, &str)],
        arguments: &[&str],
    ) -> PseudoTerminal {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let name = ptsname(&controller, Vec::new()).unwrap().into_string().unwrap();
        let user = File::options().read(true).write(true).open(name).unwrap();
        tcsetwinsize(&user, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let child = Command::new(program)
            .args(arguments)
            .env_remove("NO_COLOR")
            .env_remove("LC_ALL")
            .envs([("OTTLA_CONFIG", "/nonexistent/ottla"), ("TERM", "xterm-256color"), ("LANG", "C.UTF-8")])
            .envs(variables.iter().copied())
            .stdin(user.try_clone().unwrap())
            .stdout(user.try_clone().unwrap())
            .stderr(user.try_clone().unwrap())
            .spawn()
            .unwrap();
        let shown = Arc::new((Mutex::new(Shown::default()), Condvar::new()));
        let controller = File::from(controller);
        let (mut output, taken) = (controller.try_clone().unwrap(), Arc::clone(&shown));
        thread::spawn(move || {
            let mut piece = [0; 4096];
            // The end is an error on Linux.
            while let Ok(count @ 1..) = output.read(&mut piece) {
                let mut shown = taken.0.lock().unwrap();
                shown.bytes.extend_from_slice(&piece[..count]);
                shown.screen.write(&piece[..count]);
                taken.1.notify_all();
            }
        });
        PseudoTerminal { controller, user, child, shown }
    }

    /// Types keys.
    pub fn press(&mut self, keys: &str) {
        self.controller.write_all(keys.as_bytes()).unwrap();
    }

    /// Returns the lines of the screen.
    pub fn lines(&self) -> Vec<String> {
        self.shown.0.lock().unwrap().screen.lines()
    }

    /// Returns all that was written.
    pub fn written(&self) -> String {
        String::from_utf8_lossy(&self.shown.0.lock().unwrap().bytes).into_owned()
    }

    /// Waits until the screen is as expected.
    pub fn wait_until(&self, what: &str, is_so: impl Fn(&[String]) -> bool) {
        let (shown, changed) = &*self.shown;
        let start = Instant::now();
        loop {
            let seen = shown.lock().unwrap().bytes.len();
            // Without the lock, because the expectation may look at all that was written.
            if is_so(&self.lines()) {
                return;
            }
            assert!(start.elapsed() < DEADLINE, "{what}:\n{}", self.lines().join("\n"));
            // The modes of the terminal change without output.
            let is_old = |shown: &mut Shown| shown.bytes.len() == seen;
            drop(changed.wait_timeout_while(shown.lock().unwrap(), Duration::from_secs(1), is_old).unwrap());
        }
    }

    /// Sends a signal.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// Waits for the end of the program.
    pub fn finish(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(start.elapsed() < DEADLINE, "the program does not end:\n{}", self.lines().join("\n"));
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Whether the terminal shows what is typed, and hands over whole lines.
    pub fn is_in_line_mode(&self) -> bool {
        tcgetattr(&self.user).unwrap().local_modes.contains(LocalModes::ECHO | LocalModes::ICANON)
    }

    /// Whether the terminal left the alternate screen, and shows its cursor.
    pub fn is_restored(&self) -> bool {
        let written = self.written();
        let is_last = |on: &str, off: &str| written.rfind(off) > written.rfind(on);
        is_last("\x1b[?1049h", "\x1b[?1049l") && is_last("\x1b[?25l", "\x1b[?25h") && self.is_in_line_mode()
    }
}

impl Drop for PseudoTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The part of a terminal that is needed here: characters of one column, the position of the cursor, and erasing.
#[derive(Default)]
struct Screen {
    cells: std::collections::BTreeMap<(usize, usize), char>,
    row: usize,
    column: usize,
    /// Bytes whose meaning depends on those that follow.
    rest: Vec<u8>,
}

impl Screen {
    fn write(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        let taken = std::mem::take(&mut self.rest);
        let valid = match std::str::from_utf8(&taken) {
            Ok(text) => text.len(),
            Err(error) => error.valid_up_to(),
        };
        let text = std::str::from_utf8(&taken[..valid]).unwrap();
        let mut left = text;
        while let Some(letter) = left.chars().next() {
            if letter == '\x1b' {
                let Some(after) = self.escape(left) else { break };
                left = after;
                continue;
            }
            left = &left[letter.len_utf8()..];
            match letter {
                '\r' => self.column = 0,
                '\n' => self.row += 1,
                letter if letter.is_control() => {}
                letter => {
                    self.cells.insert((self.row, self.column), letter);
                    self.column += 1;
                }
            }
        }
        self.rest = [left.as_bytes(), &taken[valid..]].concat();
    }

    /// Takes an escape sequence; `None` if its end is missing.
    fn escape<'t>(&mut self, text: &'t str) -> Option<&'t str> {
        let body = match text[1..].strip_prefix('[') {
            Some(body) => body,
            None if text.len() > 1 => return Some(&text[2..]),
            None => return None,
        };
        let end = body.find(|letter: char| ('@'..='~').contains(&letter))?;
        let numbers: Vec<usize> = body[..end].split(';').filter_map(|number| number.parse().ok()).collect();
        match body.as_bytes()[end] {
            b'H' => {
                self.row = numbers.first().map_or(0, |row| row - 1);
                self.column = numbers.get(1).map_or(0, |column| column - 1);
            }
            b'J' => self.cells.clear(),
            _ => {}
        }
        Some(&body[end + 1..])
    }

    fn lines(&self) -> Vec<String> {
        let last = self.cells.keys().map(|(row, _)| *row).max().map_or(0, |row| row + 1);
        let mut lines = vec![String::new(); last];
        for ((row, column), letter) in &self.cells {
            let line = &mut lines[*row];
            line.extend(std::iter::repeat_n(' ', column.saturating_sub(line.chars().count())));
            line.push(*letter);
        }
        lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
    }
}
