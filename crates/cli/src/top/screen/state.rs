//! What the user looks at: pages on top of each other, and what keys do to them.

use std::sync::Arc;

use super::columns::{Column, View};
use super::items::{Id, Item, items};
use super::messages::{Messages, Source};
use crate::top::model::Model;

/// A key of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    Enter,
    Escape,
    Backspace,
    Tab,
    BackTab,
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    /// Ctrl-C.
    Interrupt,
}

/// What the loop has to do after a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Nothing changed.
    Nothing,
    /// Draw.
    Draw,
    /// Read the last messages, and draw.
    Read(Source),
    /// End.
    Quit,
}

/// A view with its order, its filter and its selection.
#[derive(Clone, Debug)]
pub struct Page {
    /// What is listed.
    pub view: View,
    /// The column that orders the rows.
    pub sort: Column,
    /// Whether the order is the opposite of the column's usual one.
    pub is_reversed: bool,
    /// The text that a row has to contain.
    pub filter: String,
    /// The row that the user selected; `None` for the first.
    selected: Option<Id>,
    /// Where the selection was drawn last.
    index: usize,
    /// The first row that is drawn.
    top: usize,
}

/// The state of the screen.
#[derive(Debug)]
pub struct State {
    /// The pages; Escape goes back. Never empty.
    pages: Vec<Page>,
    /// Whether the keys are listed.
    pub is_help: bool,
    /// The filter before the user began to type another.
    typing: Option<String>,
    /// The messages of the newest page of messages.
    pub messages: Messages,
    /// The number of rows that were drawn last.
    height: usize,
}

impl Page {
    fn new(view: View) -> Page {
        let sort = view.usual_order();
        Page { view, sort, is_reversed: false, filter: String::new(), selected: None, index: 0, top: 0 }
    }

    /// Whether the largest figure comes first.
    pub fn is_descending(&self) -> bool {
        // The worst state of a partition is the largest.
        let is_severity = matches!((self.sort, &self.view), (Column::State, View::Partitions(_)));
        (self.sort.is_descending() || is_severity) != self.is_reversed
    }

    /// Returns the position of the selection.
    fn position(&self, rows: &[Item<'_>]) -> usize {
        let place = self.selected.as_ref().and_then(|id| rows.iter().position(|row| row.id() == *id));
        match &self.selected {
            None => 0,
            Some(_) => place.unwrap_or(self.index).min(rows.len().saturating_sub(1)),
        }
    }

    /// Scrolls so that the selection is visible. Returns the first row and the selected one.
    pub fn scroll(&mut self, rows: &[Item<'_>], height: usize) -> (usize, usize) {
        self.index = self.position(rows);
        let last_top = rows.len().saturating_sub(height);
        self.top =
            self.top.clamp(self.index.saturating_sub(height.saturating_sub(1)), self.index).min(last_top);
        (self.top, self.index)
    }
}

impl Default for State {
    fn default() -> State {
        State {
            pages: vec![Page::new(View::Topics)],
            is_help: false,
            typing: None,
            messages: Messages::default(),
            height: 1,
        }
    }
}

impl State {
    /// Returns the page that is drawn.
    pub fn page(&self) -> &Page {
        &self.pages[self.pages.len() - 1]
    }

    /// Returns the page that is drawn, and the messages.
    pub fn parts(&mut self) -> (&mut Page, &Messages) {
        let last = self.pages.len() - 1;
        (&mut self.pages[last], &self.messages)
    }

    /// Whether the user types a filter.
    pub fn is_typing(&self) -> bool {
        self.typing.is_some()
    }

    /// Remembers the number of rows that fit, for the keys that turn pages.
    pub fn set_height(&mut self, rows: usize) {
        self.height = rows.max(1);
    }

    /// Takes the messages of a source, unless the user has left them.
    pub fn take_messages(&mut self, messages: Messages) -> bool {
        let is_awaited = messages.source == self.messages.source;
        if is_awaited {
            self.messages = messages;
        }
        is_awaited
    }

    /// Changes the state by a key.
    pub fn press(&mut self, key: Key, model: &Model) -> Action {
        if key == Key::Interrupt {
            return Action::Quit;
        }
        if self.is_help {
            self.is_help = false;
            return if key == Key::Char('q') { Action::Quit } else { Action::Draw };
        }
        if self.typing.is_some() {
            return self.type_filter(key);
        }
        match key {
            Key::Char('q') => Action::Quit,
            Key::Char('?' | 'h') => {
                self.is_help = true;
                Action::Draw
            }
            Key::Char('/') => {
                self.typing = Some(self.page().filter.clone());
                Action::Draw
            }
            Key::Char(digit @ '1'..='4') => self.show(digit as usize - '1' as usize),
            Key::Tab | Key::BackTab => self.turn(key == Key::Tab),
            Key::Char('s' | 'S' | 'r') => self.reorder(key),
            Key::Char('p') => self.toggle_problems(),
            Key::Char('m') => self.look(model),
            Key::Enter => self.open(model),
            Key::Escape => self.back(),
            _ => self.select(key, model),
        }
    }

    /// Shows one of the views of the first level.
    fn show(&mut self, number: usize) -> Action {
        self.pages = vec![Page::new(View::roots()[number].clone())];
        Action::Draw
    }

    fn turn(&mut self, is_forward: bool) -> Action {
        let roots = View::roots();
        let now = roots.iter().position(|view| view.title() == self.pages[0].view.title()).unwrap_or(0);
        self.show((now + if is_forward { 1 } else { roots.len() - 1 }) % roots.len())
    }

    fn reorder(&mut self, key: Key) -> Action {
        let (page, _) = self.parts();
        if key == Key::Char('r') {
            page.is_reversed = !page.is_reversed;
            return Action::Draw;
        }
        let columns: Vec<Column> =
            page.view.columns().iter().copied().filter(|column| column.is_sortable()).collect();
        let now = columns.iter().position(|column| *column == page.sort).unwrap_or(0);
        let step = if key == Key::Char('s') { 1 } else { columns.len() - 1 };
        (page.sort, page.is_reversed) = (columns[(now + step) % columns.len()], false);
        Action::Draw
    }

    /// Shows only the partitions with problems, or all again.
    fn toggle_problems(&mut self) -> Action {
        let other = match self.page().view {
            View::Partitions(super::columns::Scope::Problems) => super::columns::Scope::All,
            _ => super::columns::Scope::Problems,
        };
        self.pages = vec![Page::new(View::Partitions(other))];
        Action::Draw
    }

    fn type_filter(&mut self, key: Key) -> Action {
        let before = self.typing.take();
        let (page, _) = self.parts();
        match key {
            Key::Enter => return Action::Draw,
            Key::Escape => {
                page.filter = before.unwrap_or_default();
                return Action::Draw;
            }
            Key::Backspace => {
                page.filter.pop();
            }
            Key::Char(letter) if !letter.is_control() => page.filter.push(letter),
            _ => {
                self.typing = before;
                return Action::Nothing;
            }
        }
        self.typing = before;
        Action::Draw
    }

    /// Opens what is selected.
    fn open(&mut self, model: &Model) -> Action {
        let (page, messages) = self.parts();
        let rows = items(model, messages, page);
        let Some(row) = rows.get(page.position(&rows)) else { return Action::Nothing };
        match row.opens() {
            Some(View::Messages(source)) => self.read(source),
            Some(view) => {
                self.pages.push(Page::new(view));
                Action::Draw
            }
            None => Action::Nothing,
        }
    }

    /// Looks into the messages of the selected topic or partition.
    fn look(&mut self, model: &Model) -> Action {
        if let View::Messages(source) = &self.page().view {
            let source = source.clone();
            self.pages.pop();
            return self.read(source);
        }
        let (page, messages) = self.parts();
        let rows = items(model, messages, page);
        match rows.get(page.position(&rows)) {
            Some(Item::Topic(name, _)) => {
                let source = Source { topic: Arc::clone(name), partition: None };
                self.read(source)
            }
            Some(Item::Partition(name, id, _)) => {
                let source = Source { topic: Arc::clone(name), partition: Some(*id) };
                self.read(source)
            }
            _ => Action::Nothing,
        }
    }

    fn read(&mut self, source: Source) -> Action {
        self.messages = Messages::awaited(source.clone());
        self.pages.push(Page::new(View::Messages(source.clone())));
        Action::Read(source)
    }

    fn back(&mut self) -> Action {
        let (page, _) = self.parts();
        if !page.filter.is_empty() {
            page.filter.clear();
            return Action::Draw;
        }
        if self.pages.len() == 1 {
            return Action::Nothing;
        }
        self.pages.pop();
        Action::Draw
    }

    /// Moves the selection.
    fn select(&mut self, key: Key, model: &Model) -> Action {
        let height = self.height;
        let (page, messages) = self.parts();
        let rows = items(model, messages, page);
        let now = page.position(&rows);
        let next = match key {
            Key::Up | Key::Char('k') => now.saturating_sub(1),
            Key::Down | Key::Char('j') => now + 1,
            Key::PageUp => now.saturating_sub(height),
            Key::PageDown | Key::Char(' ') => now + height,
            Key::Home | Key::Char('g') => 0,
            Key::End | Key::Char('G') => usize::MAX,
            _ => return Action::Nothing,
        };
        let next = next.min(rows.len().saturating_sub(1));
        // The first row stays selected, whatever comes first, until the user chooses another one.
        let selected = rows.get(next).filter(|_| next > 0).map(Item::id);
        if selected == page.selected && next == now {
            return Action::Nothing;
        }
        (page.selected, page.index) = (selected, next);
        Action::Draw
    }
}
