//! The loop: keys and reports come in, frames go out. Sets the modes of the terminal, and restores them however the command ends.

use std::io::{self, Stdout, Write};
use std::panic;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use ottla::{Config, TopicPartition};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{self, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

use super::frame::draw;
use super::messages::{self, Messages, Source};
use super::state::{Action, Key, State};
use super::theme::Theme;
use crate::failure::{Failure, Outcome};
use crate::signals::Interrupt;
use crate::top::collector::Collector;
use crate::top::model::Model;
use crate::top::update::Update;

/// The interval at which the loop looks for signals.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(250);

/// What the loop waits for.
enum Event {
    Key(Key),
    /// The size of the window changed.
    Resized,
    Update(Update),
    Messages(Messages),
    /// The terminal is gone.
    Closed,
}

/// Shows the cluster until the user quits.
///
/// # Errors
///
/// The terminal can't be used, or a signal ended the command.
pub fn run(config: &Config, collector: Collector, interval: Duration) -> Outcome {
    let interrupt = Interrupt::catch()?;
    let theme = Theme::new(|name| std::env::var_os(name));
    let guard = Guard::enter().map_err(broken)?;
    let mut terminal = Terminal::new(CrosstermBackend::new(io::stdout())).map_err(broken)?;
    let (sender, events) = mpsc::channel();
    read_keys(sender.clone())?;
    let collecting = collect(collector, interval, sender.clone())?;
    let mut screen = Screen { state: State::default(), model: Model::default(), config, sender };
    let ended =
        screen.show(&mut terminal, theme, &events, || interrupt.is_requested() || collecting.is_finished());
    drop(guard);
    ended?;
    interrupt.check()?;
    match collecting.is_finished() {
        true => Err(Failure::Failed("the thread that reads the cluster has ended".to_owned())),
        false => Ok(()),
    }
}

struct Screen<'a> {
    state: State,
    model: Model,
    config: &'a Config,
    sender: Sender<Event>,
}

impl Screen<'_> {
    /// Draws after each change, until a key quits or `is_over`.
    fn show(
        &mut self,
        terminal: &mut Terminal<CrosstermBackend<Stdout>>,
        theme: Theme,
        events: &Receiver<Event>,
        is_over: impl Fn() -> bool,
    ) -> Outcome {
        let mut is_changed = true;
        loop {
            if is_changed {
                let picture = |frame: &mut ratatui::Frame<'_>| {
                    draw(&mut self.state, &self.model, theme, frame.buffer_mut());
                };
                terminal.draw(picture).map_err(broken)?;
            }
            is_changed = false;
            let first = match events.recv_timeout(SIGNAL_INTERVAL) {
                Ok(event) => Some(event),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
            // All that waits becomes one picture.
            for event in first.into_iter().chain(events.try_iter()) {
                match self.take(event) {
                    Some(changed) => is_changed |= changed,
                    None => return Ok(()),
                }
            }
            if is_over() {
                return Ok(());
            }
        }
    }

    /// Takes an event. Returns whether something changed, or `None` at the end.
    fn take(&mut self, event: Event) -> Option<bool> {
        Some(match event {
            Event::Update(update) => {
                self.model.apply(update);
                true
            }
            Event::Resized => true,
            Event::Messages(messages) => self.state.take_messages(messages),
            Event::Closed => return None,
            Event::Key(key) => match self.state.press(key, &self.model) {
                Action::Quit => return None,
                Action::Nothing => false,
                Action::Draw => true,
                Action::Read(source) => {
                    self.read(source);
                    true
                }
            },
        })
    }

    /// Reads messages in a thread of its own.
    fn read(&self, source: Source) {
        let partitions =
            self.model.topics.get(&*source.topic).into_iter().flat_map(|topic| &topic.partitions);
        let meant = partitions.filter(|(id, _)| source.partition.is_none_or(|one| one == **id));
        let ends: Vec<_> = meant
            .filter_map(|(id, one)| Some((TopicPartition::new(&*source.topic, *id), one.end.value()?)))
            .collect();
        let (config, sender, wanted) = (self.config.clone(), self.sender.clone(), source.clone());
        let work = move || {
            // The loop may have ended.
            let _ = sender.send(Event::Messages(messages::read(&config, wanted, ends)));
        };
        if let Err(error) = thread::Builder::new().name("messages".into()).spawn(work) {
            let failure = Some(format!("messages can't be read: {error}"));
            let messages = Messages { source: Some(source), failure, ..Messages::default() };
            let _ = self.sender.send(Event::Messages(messages));
        }
    }
}

/// Starts the thread that reads the cluster every `interval`.
fn collect(
    mut collector: Collector,
    interval: Duration,
    sender: Sender<Event>,
) -> Outcome<thread::JoinHandle<()>> {
    let work = move || {
        loop {
            let began = Instant::now();
            let mut is_wanted = true;
            collector.read(&mut |update| {
                is_wanted = sender.send(Event::Update(update)).is_ok();
                is_wanted
            });
            if !is_wanted {
                return;
            }
            thread::sleep(interval.saturating_sub(began.elapsed()));
        }
    };
    thread::Builder::new().name("collector".into()).spawn(work).map_err(broken)
}

/// Starts the thread that waits for keys.
fn read_keys(sender: Sender<Event>) -> Outcome {
    let work = move || {
        loop {
            let event = match event::read() {
                Ok(event::Event::Key(event)) => match key(event) {
                    Some(key) => Event::Key(key),
                    None => continue,
                },
                Ok(event::Event::Resize(..)) => Event::Resized,
                Ok(_) => continue,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => Event::Closed,
            };
            let is_closed = matches!(event, Event::Closed);
            if sender.send(event).is_err() || is_closed {
                return;
            }
        }
    };
    thread::Builder::new().name("keys".into()).spawn(work).map(|_| ()).map_err(broken)
}

/// Translates a key; `None` for those without a meaning.
fn key(event: KeyEvent) -> Option<Key> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let has_control = event.modifiers.contains(KeyModifiers::CONTROL);
    Some(match event.code {
        KeyCode::Char('c' | 'd') if has_control => Key::Interrupt,
        KeyCode::Char(_) if has_control || event.modifiers.contains(KeyModifiers::ALT) => return None,
        KeyCode::Char(letter) => Key::Char(letter),
        KeyCode::Enter | KeyCode::Right => Key::Enter,
        KeyCode::Esc | KeyCode::Left => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Tab => Key::Tab,
        KeyCode::BackTab => Key::BackTab,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        _ => return None,
    })
}

fn broken(error: io::Error) -> Failure {
    Failure::Failed(format!("the terminal can't be used: {error}"))
}

/// The modes of the terminal, which are restored when this is dropped, and before a panic is printed.
struct Guard;

impl Guard {
    fn enter() -> io::Result<Guard> {
        enable_raw_mode()?;
        let guard = Guard;
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            leave();
            print(panic);
        }));
        execute!(io::stdout(), EnterAlternateScreen, Hide)?;
        Ok(guard)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        leave();
    }
}

/// Restores the terminal, as far as it is still there.
fn leave() {
    let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
    let _ = io::stdout().flush();
}

#[cfg(all(test, unix))]
#[path = "../../../tests/support/pseudo_terminal.rs"]
mod pseudo_terminal;

#[cfg(test)]
mod tests {
    #[cfg(unix)]
    use super::pseudo_terminal::PseudoTerminal;
    use super::*;

    #[test]
    fn keys_of_the_terminal_have_one_meaning() {
        let plain = |code| key(KeyEvent::new(code, KeyModifiers::NONE));
        assert_eq!(plain(KeyCode::Char('q')), Some(Key::Char('q')));
        assert_eq!(plain(KeyCode::Left), Some(Key::Escape));
        assert_eq!(plain(KeyCode::F(1)), None);
        let control = |letter| key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL));
        assert_eq!((control('c'), control('z')), (Some(Key::Interrupt), None));
        let mut released = KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE);
        released.kind = KeyEventKind::Release;
        assert_eq!(key(released), None);
    }
    /// Says that the test is the program on the pseudo-terminal.
    #[cfg(unix)]
    const CHILD: &str = "OTTLA_TEST_OF_A_PANIC";

    /// Panics in a thread beside the one that draws, and then in that one.
    #[cfg(unix)]
    fn panic_in_the_full_screen() {
        let _guard = Guard::enter().unwrap();
        io::stdout().write_all(b"a picture").unwrap();
        let beside = thread::Builder::new().name("collector".into());
        beside.spawn(|| panic!("broken in the collector")).unwrap().join().unwrap_err();
        panic!("broken while drawing");
    }

    #[cfg(unix)]
    #[test]
    fn panic_restores_the_terminal_before_it_is_printed() {
        if std::env::var_os(CHILD).is_some() {
            panic_in_the_full_screen();
        }
        let this = "top::screen::terminal::tests::panic_restores_the_terminal_before_it_is_printed";
        let arguments = ["--exact", this, "--nocapture", "--test-threads=1"];
        let program = std::env::current_exe().unwrap();
        let mut terminal =
            PseudoTerminal::of(&program, (100, 30), &[("RUST_BACKTRACE", "0"), (CHILD, "1")], &arguments);
        assert_eq!(terminal.finish().code(), Some(101));
        terminal.wait_until("restored", |_| {
            terminal.is_restored() && terminal.written().contains("broken while drawing")
        });
        let written = terminal.written();
        let at = |text: &str| written.find(text).unwrap_or_else(|| panic!("{text:?}: {written:?}"));
        assert!(at("\x1b[?1049h") < at("a picture") && at("a picture") < at("\x1b[?1049l"), "{written:?}");
        for message in ["broken in the collector", "broken while drawing"] {
            assert!(at("\x1b[?1049l") < at(message), "{written:?}");
        }
    }
}
