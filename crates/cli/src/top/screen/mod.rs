//! The full-screen view: a pure state that keys change and that is drawn into a buffer, and a loop that connects it to a terminal.
//!
//! ```text
//!  terminal ── Key ──► State ──┐
//!                              ├─ draw ──► buffer ──► terminal: only cells that differ
//!  collector ── Update ─► Model┘
//! ```
//!
//! | file | noun |
//! |---|---|
//! | [`state`] | the pages on top of each other, their order and filter, and what keys do |
//! | [`items`] | the rows of a view, filtered and sorted |
//! | [`columns`] | the columns of a view, and which of them fit |
//! | [`figure`] | what is in a cell |
//! | [`frame`] | the picture |
//! | [`theme`] | colours, or none |
//! | [`messages`] | reads the last messages of a topic |
//! | [`terminal`] | the loop, and the terminal's modes |
//!
//! # Pitfalls
//!
//! - Names and messages may contain escape sequences. Everything that a broker sent is cleaned before it is drawn
//!   (`escape_sequences_of_a_message_are_not_drawn`).
//! - Rows move while the user looks at them, because their order is that of rates. The selection follows its row
//!   (`selection_follows_its_row`).

mod columns;
mod figure;
mod frame;
mod items;
mod messages;
#[cfg(test)]
mod picture;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod scripted;
mod state;
mod terminal;
mod theme;

pub use terminal::run;
