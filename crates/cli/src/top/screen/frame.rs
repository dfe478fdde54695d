//! The picture: two lines of the cluster, the headings, the rows, and a line at the bottom.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use super::columns::{Column, Placed, Scope, View, place};
use super::figure::figure;
use super::items::{Item, items};
use super::state::{Page, State};
use super::theme::{Emphasis, Theme};
use crate::top::figures::{clean, short, sparkline};
use crate::top::model::Model;
use crate::top::plain::problems;

/// The keys, for the page of help.
const HELP: &[(&str, &str)] = &[
    ("1 2 3 4", "topics, brokers, partitions, groups"),
    ("Tab", "the next of them"),
    ("Enter", "open: partitions, messages, members"),
    ("m", "the last messages; again: read anew"),
    ("p", "only partitions with problems, or all"),
    ("Esc", "back"),
    ("s S r", "order by the next column, the previous; reverse"),
    ("/", "filter the rows; Enter keeps it, Esc drops it"),
    ("j k g G Space", "down, up, first, last, next page; arrows too"),
    ("q, Ctrl-C", "quit"),
    ("", ""),
    ("URP", "under-replicated partitions; of a broker: its replicas not in sync"),
    ("NOLEAD", "partitions without a leader"),
    ("TREND/S", "change of the lag per second"),
    ("SLOWEST", "the member with more than twice the others' average lag"),
];

/// The least height in which the lines of the cluster are drawn.
const HEIGHT_WITH_HEAD: u16 = 8;

/// Draws the state into a buffer.
pub fn draw(state: &mut State, model: &Model, theme: Theme, buffer: &mut Buffer) {
    let area = buffer.area;
    if area.is_empty() {
        return;
    }
    let mut canvas = Canvas { buffer, area, theme };
    let mut line = 0;
    if area.height >= HEIGHT_WITH_HEAD {
        canvas.head(model);
        canvas.tabs(state, model);
        line = 2;
    }
    let bottom = area.height - 1;
    if state.is_help {
        canvas.help(line, bottom);
    } else {
        let height = bottom.saturating_sub(line + 1);
        state.set_height(height.into());
        canvas.table(state, model, line, height);
    }
    canvas.bottom(state, model, bottom);
}

struct Canvas<'a> {
    buffer: &'a mut Buffer,
    area: Rect,
    theme: Theme,
}

impl Canvas<'_> {
    /// Writes a text at a place, at most `width` columns of it. Returns the column behind it.
    fn put(&mut self, (x, y): (u16, u16), text: &str, width: u16, style: Style) -> u16 {
        if x >= self.area.width || y >= self.area.height {
            return x;
        }
        let width = width.min(self.area.width - x);
        let (end, _) = self.buffer.set_stringn(self.area.x + x, self.area.y + y, text, width.into(), style);
        end.saturating_sub(self.area.x)
    }

    fn write(&mut self, x: u16, y: u16, text: &str, emphasis: Emphasis) -> u16 {
        let style = self.theme.style(emphasis);
        self.put((x, y), text, u16::MAX, style)
    }

    /// The first line: what the cluster is, and how much it does.
    fn head(&mut self, model: &Model) {
        let counted =
            |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
        let mut x = self.write(0, 0, "ottla top ", Emphasis::Title);
        let up = model.brokers.values().filter(|broker| broker.is_up).count();
        let down = model.brokers.len() - up;
        x = self.write(x, 0, &counted(up, "broker"), Emphasis::Plain);
        if down > 0 {
            x = self.write(x, 0, &format!(", {down} down"), Emphasis::Bad);
        }
        let parts = [
            counted(model.topics.len(), "topic"),
            counted(model.partitions(), "partition"),
            counted(model.groups.len(), "group"),
        ];
        let counts = format!(", {}", parts.join(", "));
        x = self.write(x, 0, &counts, Emphasis::Plain);
        let (rate, is_ascii) = (model.rate.last().map_or("-".into(), short), self.theme.is_ascii);
        let text = format!("{rate} rec/s");
        let at = self.area.width.saturating_sub(text.len() as u16);
        if at <= x {
            return;
        }
        let room = usize::from(at - x).saturating_sub(2).min(24);
        let bar = sparkline(model.rate.newest(room), room, is_ascii);
        self.write(at.saturating_sub(room as u16 + 1), 0, &bar, Emphasis::History);
        let emphasis = if model.is_stale { Emphasis::Old } else { Emphasis::Heading };
        self.write(at, 0, &text, emphasis);
    }

    /// The second line: the views of the first level, or where a page comes from; and what is wrong with the cluster.
    fn tabs(&mut self, state: &State, model: &Model) {
        let page = state.page();
        let mut x = 0;
        for (index, view) in View::roots().iter().enumerate() {
            let is_shown = view.title() == page.view.title();
            let style = match is_shown {
                true => Style::new().add_modifier(Modifier::REVERSED),
                false => self.theme.style(Emphasis::Muted),
            };
            x = self.put((x, 1), &format!(" {} {} ", index + 1, view.title()), u16::MAX, style);
        }
        let (lacking, leaderless) = problems(model);
        let parts = [(lacking, "under-replicated"), (leaderless, "leaderless")];
        let texts: Vec<String> = parts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        let text = texts.join(", ");
        let at = self.area.width.saturating_sub(text.len() as u16);
        if at > x {
            self.write(at, 1, &text, Emphasis::Bad);
        } else if !text.is_empty() {
            let text = format!("{} bad", lacking + leaderless);
            self.write(x.min(self.area.width.saturating_sub(text.len() as u16)), 1, &text, Emphasis::Bad);
        }
    }

    /// The headings and the rows.
    fn table(&mut self, state: &mut State, model: &Model, line: u16, height: u16) {
        let (page, messages) = state.parts();
        let rows = items(model, messages, page);
        let (top, selected) = page.scroll(&rows, height.into());
        let shown = &rows[top.min(rows.len())..rows.len().min(top + usize::from(height))];
        let name = |row| figure(row, Column::Name).text(0, true).chars().count();
        let longest = shown.iter().map(name).max().unwrap_or(0);
        let placed = place(&page.view, u16::try_from(longest).unwrap_or(u16::MAX), self.area.width);
        self.headings(page, &placed, line);
        for (index, row) in shown.iter().enumerate() {
            let y = line + 1 + index as u16;
            for place in &placed {
                self.cell(row, *place, y, model);
            }
            if top + index == selected {
                self.mark(&placed, y);
            }
        }
        if rows.is_empty() && height > 0 {
            let text = nothing(page, model, messages.is_awaited);
            self.write(0, line + 1, text, Emphasis::Muted);
        }
    }

    /// Marks the selected row. A history stays as it is: reversed, high and low would be exchanged.
    fn mark(&mut self, placed: &[Placed], y: u16) {
        let history = placed.iter().find(|place| place.column.is_history());
        let is_history = |x: u16| history.is_some_and(|place| (place.x..place.x + place.width).contains(&x));
        for x in (0..self.area.width).filter(|x| !is_history(*x)) {
            let cell = Rect { x: self.area.x + x, y: self.area.y + y, width: 1, height: 1 };
            self.buffer.set_style(cell, Style::new().add_modifier(Modifier::REVERSED));
        }
    }

    fn headings(&mut self, page: &Page, placed: &[Placed], line: u16) {
        for place in placed {
            let heading = place.column.heading(&page.view);
            let mark = match (place.column == page.sort, page.is_descending(), self.theme.is_ascii) {
                (false, ..) => "",
                (true, true, false) => "▾",
                (true, false, false) => "▴",
                (true, true, true) => "v",
                (true, false, true) => "^",
            };
            let text = aligned(&format!("{heading}{mark}"), *place);
            let style = self.theme.style(Emphasis::Heading).add_modifier(Modifier::UNDERLINED);
            self.put((place.x, line), &text, place.width, style);
        }
    }

    fn cell(&mut self, row: &Item<'_>, place: Placed, y: u16, model: &Model) {
        let text = figure(row, place.column).text(place.width.into(), self.theme.is_ascii);
        let style = self.theme.style(emphasis(row, place.column, model));
        let text = if place.column.is_right() { aligned(&text, place) } else { text };
        self.put((place.x, y), &text, place.width, style);
    }

    fn help(&mut self, line: u16, bottom: u16) {
        for (index, (keys, meaning)) in HELP.iter().enumerate() {
            let y = line + index as u16;
            if y >= bottom {
                break;
            }
            let x = self.write(0, y, &format!("{keys:<14}"), Emphasis::Title);
            self.write(x.min(15), y, meaning, Emphasis::Plain);
        }
    }

    /// The last line: the filter, what is wrong, or the keys.
    fn bottom(&mut self, state: &State, model: &Model, y: u16) {
        let page = state.page();
        if state.is_typing() {
            let x = self.write(0, y, &format!("/{}", page.filter), Emphasis::Heading);
            self.put((x, y), " ", 1, Style::new().add_modifier(Modifier::REVERSED));
            return;
        }
        let mut x = 0;
        if !page.filter.is_empty() {
            x = self.write(x, y, &format!("/{} ", page.filter), Emphasis::Warning);
        }
        if let Some(trouble) = failure(state, model) {
            self.write(x, y, &clean(&trouble), Emphasis::Bad);
            return;
        }
        if let Some(what) = about(&page.view) {
            x = self.write(x, y, &format!("{} ", clean(&what)), Emphasis::Title);
        }
        let keys = "Enter open  m messages  s order  / filter  p problems  Esc back  ? help  q quit";
        let short = "? help  q quit";
        let fits = usize::from(self.area.width.saturating_sub(x)) >= keys.len();
        self.write(x, y, if fits { keys } else { short }, Emphasis::Muted);
    }
}

/// Returns what a page is about, if its view does not say it.
fn about(view: &View) -> Option<String> {
    Some(match view {
        View::Partitions(Scope::Problems) => "partitions with problems".to_owned(),
        View::Partitions(Scope::Topic(topic)) => format!("topic {topic}"),
        View::Partitions(Scope::Broker(id)) => format!("replicas of broker {id}"),
        View::Members(group) => format!("group {group}"),
        View::Messages(source) => match source.partition {
            Some(partition) => format!("{} [{partition}]", source.topic),
            None => format!("topic {}", source.topic),
        },
        View::Topics | View::Brokers | View::Groups | View::Partitions(Scope::All) => return None,
    })
}

/// Returns why values of the page are missing.
fn failure(state: &State, model: &Model) -> Option<String> {
    let of_view = match &state.page().view {
        View::Groups | View::Members(_) => &model.groups_failure,
        View::Messages(_) => &state.messages.failure,
        View::Topics | View::Brokers | View::Partitions(_) => &model.sizes_failure,
    };
    match (&model.trouble, of_view, &state.page().view) {
        (Some(trouble), ..) => Some(trouble.clone()),
        (None, Some(text), View::Groups | View::Members(_)) => Some(format!("groups are missing: {text}")),
        (None, Some(text), View::Messages(_)) => Some(text.clone()),
        (None, Some(text), _) => Some(format!("sizes are missing: {text}")),
        (None, None, _) => None,
    }
}

/// Returns why a page has no rows.
fn nothing(page: &Page, model: &Model, is_awaited: bool) -> &'static str {
    match &page.view {
        _ if !page.filter.is_empty() => "no row matches the filter",
        View::Messages(_) if is_awaited => "reading ...",
        View::Messages(_) => "no messages",
        View::Groups if !model.knows_groups => "reading ...",
        View::Topics | View::Brokers | View::Partitions(Scope::All) if model.brokers.is_empty() => {
            "reading ..."
        }
        View::Partitions(Scope::Problems) => "all partitions have a leader and all their replicas",
        View::Topics => "no topics",
        View::Groups => "no groups of consumers",
        View::Members(_) => "no members",
        _ => "nothing",
    }
}

/// Returns the text, at the right of its column if that is where it belongs.
fn aligned(text: &str, place: Placed) -> String {
    let width = usize::from(place.width);
    match place.column.is_right() {
        true => format!("{text:>width$}"),
        false => format!("{text:<width$}"),
    }
}

/// Returns how a cell is drawn.
fn emphasis(row: &Item<'_>, column: Column, model: &Model) -> Emphasis {
    if is_old(row, model) {
        return Emphasis::Old;
    }
    match (row, column) {
        (Item::Broker(_, broker), _) if !broker.is_up => Emphasis::Bad,
        (Item::Topic(_, topic), Column::UnderReplicated) if topic.under_replicated() > 0 => Emphasis::Bad,
        (Item::Topic(_, topic), Column::Leaderless) if topic.leaderless() > 0 => Emphasis::Bad,
        (Item::Topic(_, topic), Column::Name) if topic.error.is_some() => Emphasis::Warning,
        (Item::Broker(_, broker), Column::UnderReplicated) if broker.lagging > 0 => Emphasis::Bad,
        (Item::Partition(_, _, one), Column::State | Column::Leader) if one.is_leaderless() => Emphasis::Bad,
        (Item::Partition(_, _, one), Column::State | Column::InSync) if one.is_under_replicated() => {
            Emphasis::Warning
        }
        (Item::Group(_, group), Column::Trend) if group.trend > Some(0.0) => Emphasis::Warning,
        (Item::Group(_, group), Column::Slow) if group.slowest().is_some() => Emphasis::Warning,
        (Item::Member(_, member), Column::Trend) if member.trend > Some(0.0) => Emphasis::Warning,
        (Item::Member(_, member), _) if member.is_slow => Emphasis::Warning,
        (_, column) if column.is_history() => Emphasis::History,
        _ => Emphasis::Plain,
    }
}

/// Whether the figures of a row are not current.
fn is_old(row: &Item<'_>, model: &Model) -> bool {
    match row {
        Item::Topic(_, topic) => {
            model.is_stale || topic.partitions.values().any(|one| !one.is_leaderless() && model.is_old(one))
        }
        Item::Partition(_, _, one) => model.is_stale || !one.is_leaderless() && model.is_old(one),
        Item::Message(_) => false,
        Item::Broker(..) | Item::Group(..) | Item::Member(..) => model.is_stale,
    }
}
