//! `--report` of the performance tests and `ottla report`: a measurement as one HTML file.
//!
//! ```text
//!  perf test ── Reading, four per second ──► Recorder ──► Run ──┬─► page: charts, table ──► Output ──► FILE
//!                                    earlier FILE ──► Run ──────┘    (the runs are in the page as JSON)
//! ```
//!
//! | file | noun |
//! |---|---|
//! | [`recorder`] | collects readings while a test runs, and says what to show meanwhile |
//! | [`sampling`] | the thread that takes readings |
//! | [`run`] | a measurement, to JSON and back |
//! | [`chart`], [`scale`] | one diagram as SVG, and its axes |
//! | [`page`] | the page: a table and five charts |
//! | [`output`] | the file, which is checked before the test and replaced at once |
//! | [`options`] | the options that both tests have |
//!
//! # Pitfalls
//!
//! - The JSON of a run contains texts of the user, such as names of topics, and lies in a `<script>`: every `<` is escaped
//!   (`text_of_a_run_cannot_end_the_script`).
//! - Properties may be passwords: only those that don't hide their value are part of a run
//!   (`secret_properties_are_not_in_the_report`).

mod chart;
pub mod options;
mod output;
mod page;
#[cfg(test)]
mod picture;
mod recorder;
pub mod run;
mod sampling;
mod scale;

pub use options::{Recording, ReportOptions};
pub use output::Output;
pub use page::{cells, headings, page};
pub use recorder::Latencies;
pub use sampling::{Counters, Sampling};
