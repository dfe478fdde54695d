//! The views and their columns, and which of them fit into a width.

use std::sync::Arc;

use super::messages::Source;

/// What a page lists.
#[derive(Clone, Debug, PartialEq)]
pub enum View {
    Topics,
    Brokers,
    Partitions(Scope),
    Groups,
    /// The members of a group.
    Members(String),
    /// The last messages.
    Messages(Source),
}

/// Which partitions.
#[derive(Clone, Debug, PartialEq)]
pub enum Scope {
    All,
    /// Those without a leader, or without all replicas.
    Problems,
    Topic(Arc<str>),
    /// Those that a broker has a replica of.
    Broker(i32),
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    Name,
    Partitions,
    Rate,
    History,
    ByteRate,
    Size,
    UnderReplicated,
    Leaderless,
    Id,
    Leads,
    Replicas,
    Leader,
    End,
    InSync,
    State,
    Members,
    Lag,
    Trend,
    LagHistory,
    Slow,
    Host,
    Time,
    Partition,
    Offset,
    Key,
    Value,
}

use Column as C;

impl View {
    /// Returns the views of the first level, in the order of their keys.
    pub fn roots() -> [View; 4] {
        [View::Topics, View::Brokers, View::Partitions(Scope::All), View::Groups]
    }

    /// Returns the name of the view.
    pub fn title(&self) -> &'static str {
        match self {
            View::Topics => "topics",
            View::Brokers => "brokers",
            View::Partitions(_) => "partitions",
            View::Groups => "groups",
            View::Members(_) => "members",
            View::Messages(_) => "messages",
        }
    }

    /// Returns the columns from left to right.
    pub fn columns(&self) -> &'static [Column] {
        match self {
            View::Topics => &[
                C::Name,
                C::Partitions,
                C::Rate,
                C::History,
                C::ByteRate,
                C::Size,
                C::UnderReplicated,
                C::Leaderless,
            ],
            View::Brokers => {
                &[C::Id, C::Name, C::Leads, C::Replicas, C::UnderReplicated, C::Rate, C::History, C::Size]
            }
            View::Partitions(_) => {
                &[C::Name, C::Partition, C::Leader, C::Rate, C::End, C::Size, C::InSync, C::State]
            }
            View::Groups => &[C::Name, C::State, C::Members, C::Lag, C::Trend, C::LagHistory, C::Slow],
            View::Members(_) => &[C::Name, C::Host, C::Partitions, C::Rate, C::Lag, C::Trend, C::Slow],
            View::Messages(_) => &[C::Time, C::Partition, C::Offset, C::Key, C::Value],
        }
    }

    /// Returns the column that orders the rows at first: what is probably looked for comes first.
    pub fn usual_order(&self) -> Column {
        match self {
            View::Topics => C::Rate,
            View::Brokers => C::Id,
            View::Partitions(_) => C::State,
            View::Groups | View::Members(_) => C::Lag,
            View::Messages(_) => C::Time,
        }
    }
}

impl Column {
    /// Returns the heading.
    pub fn heading(self, view: &View) -> &'static str {
        match self {
            C::Name => match view {
                View::Topics | View::Partitions(_) => "TOPIC",
                View::Brokers => "ADDRESS",
                View::Groups => "GROUP",
                _ => "CLIENT",
            },
            C::Partitions => "PARTS",
            C::Rate => "REC/S",
            C::History | C::LagHistory => "HISTORY",
            C::ByteRate => "BYTE/S",
            C::Size => "SIZE",
            C::UnderReplicated => "URP",
            C::Leaderless => "NOLEAD",
            C::Id => "ID",
            C::Leads => "LEADS",
            C::Replicas => "REPLICAS",
            C::Leader => "LEADER",
            C::End => "END",
            C::InSync => "IN SYNC",
            C::State => "STATE",
            C::Members => "MEMBERS",
            C::Lag => "LAG",
            C::Trend => "TREND/S",
            C::Slow => "SLOWEST",
            C::Host => "HOST",
            C::Time => "TIME",
            C::Partition => "PART",
            C::Offset => "OFFSET",
            C::Key => "KEY",
            C::Value => "VALUE",
        }
    }

    /// Returns the width that the column needs, or at least wants.
    fn width(self) -> u16 {
        match self {
            C::Id => 4,
            C::Partition | C::UnderReplicated => 5,
            C::Partitions | C::Leads => 6,
            C::Rate | C::ByteRate | C::Size | C::Lag | C::Leader | C::Leaderless => 7,
            C::Members | C::Trend | C::InSync => 8,
            C::Replicas => 9,
            C::End | C::Offset | C::Key => 10,
            C::Name | C::History | C::LagHistory | C::Time | C::Slow => 12,
            C::Host => 13,
            C::State => 14,
            C::Value => 20,
        }
    }

    /// Whether the column takes the space that is left.
    fn is_elastic(self) -> bool {
        matches!(self, C::Name | C::History | C::LagHistory | C::Value)
    }

    /// Whether the figures are at the right of the column.
    pub fn is_right(self) -> bool {
        !matches!(
            self,
            C::Name
                | C::History
                | C::LagHistory
                | C::State
                | C::Slow
                | C::Host
                | C::Time
                | C::Key
                | C::Value
                | C::InSync
        )
    }

    /// Whether the largest figure comes first.
    pub fn is_descending(self) -> bool {
        matches!(
            self,
            C::Rate
                | C::ByteRate
                | C::Size
                | C::UnderReplicated
                | C::Leaderless
                | C::Lag
                | C::Trend
                | C::Slow
                | C::End
                | C::Time
                | C::Partitions
                | C::Members
        )
    }

    /// Whether the column shows values over time.
    pub fn is_history(self) -> bool {
        matches!(self, C::History | C::LagHistory)
    }

    /// Whether rows can be ordered by the column.
    pub fn is_sortable(self) -> bool {
        !self.is_history() && self != C::Value
    }

    /// Returns how much the column matters: the least one goes first if the width is too small.
    fn weight(self, view: &View) -> u8 {
        match (self, view) {
            (C::Value, _)
            | (C::Name, View::Topics | View::Groups | View::Partitions(_) | View::Members(_)) => 10,
            (C::Id, _) => 10,
            (C::Rate, View::Topics | View::Brokers) | (C::Lag | C::Partition, _) => 9,
            (C::State, View::Partitions(_)) | (C::Trend, _) => 8,
            (C::UnderReplicated | C::Leader | C::Offset, _) => 7,
            (C::Rate | C::History, _) => 6,
            (C::Leaderless | C::InSync | C::Slow, _) => 5,
            (C::Time | C::LagHistory | C::Name, _) => 4,
            (C::Size | C::State | C::Key, _) => 3,
            _ => 2,
        }
    }
}

/// A column with its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The column.
    pub column: Column,
    /// The distance from the left edge.
    pub x: u16,
    /// The width.
    pub width: u16,
}

/// The most that a column of names takes: what is more goes to histories.
const WIDEST_NAME: u16 = 48;

/// Places the columns that fit into `width`, separated by a blank each. `longest` is the longest name that is shown.
pub fn place(view: &View, longest: u16, width: u16) -> Vec<Placed> {
    let mut columns: Vec<Column> = view.columns().to_vec();
    let needed = |columns: &[Column]| {
        columns.iter().map(|column| column.width()).sum::<u16>() + columns.len() as u16 - 1
    };
    while columns.len() > 1 && needed(&columns) > width {
        let least = columns
            .iter()
            .enumerate()
            .min_by_key(|(index, column)| (column.weight(view), std::cmp::Reverse(*index)));
        let Some((index, _)) = least else { break };
        columns.remove(index);
    }
    let mut left = width.saturating_sub(needed(&columns));
    let mut widths: Vec<u16> = columns.iter().map(|column| column.width().min(width)).collect();
    // Names come first, then the last of the other columns.
    let wanted = longest.clamp(C::Name.width(), WIDEST_NAME);
    for (column, place) in columns.iter().zip(&mut widths).filter(|(column, _)| **column == C::Name) {
        let more = wanted.saturating_sub(column.width()).min(left);
        *place += more;
        left -= more;
    }
    let elastic = |column: &&Column| column.is_elastic() && **column != C::Name;
    if let Some(last) = columns
        .iter()
        .rposition(|column| elastic(&column))
        .or_else(|| columns.iter().position(|column| column.is_elastic()))
    {
        widths[last] += left;
    }
    let mut x = 0;
    let placed = columns.into_iter().zip(widths).map(|(column, width)| {
        let placed = Placed { column, x, width };
        x += width + 1;
        placed
    });
    placed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_views() -> Vec<View> {
        let source = Source { topic: "t".into(), partition: None };
        View::roots().into_iter().chain([View::Members("g".into()), View::Messages(source)]).collect()
    }

    #[test]
    fn columns_fill_the_width_and_never_exceed_it() {
        for view in all_views() {
            for width in 1..=300 {
                let placed = place(&view, 30, width);
                let end = placed.last().map_or(0, |last| last.x + last.width);
                assert!(!placed.is_empty() && end <= width, "{view:?} {width}: {placed:?}");
                let starts = placed.windows(2).all(|pair| pair[0].x + pair[0].width < pair[1].x);
                assert!(starts, "{view:?} {width}: {placed:?}");
            }
        }
    }

    #[test]
    fn columns_that_matter_most_stay_in_a_narrow_window() {
        let shown = |view: &View, width| -> Vec<Column> {
            place(view, 12, width).into_iter().map(|placed| placed.column).collect()
        };
        assert_eq!(shown(&View::Topics, 20), [C::Name, C::Rate]);
        assert_eq!(shown(&View::Brokers, 20), [C::Id, C::UnderReplicated, C::Rate]);
        assert_eq!(shown(&View::Groups, 20), [C::Name, C::Lag]);
        assert_eq!(shown(&View::Partitions(Scope::All), 20), [C::Name, C::Partition]);
        assert_eq!(shown(&View::Topics, 80), View::Topics.columns());
        assert_eq!(shown(&View::Groups, 80), View::Groups.columns());
    }

    #[test]
    fn every_view_can_be_ordered_by_its_usual_column() {
        for view in all_views() {
            let usual = view.usual_order();
            assert!(usual.is_sortable() && view.columns().contains(&usual), "{view:?}");
        }
    }
}
