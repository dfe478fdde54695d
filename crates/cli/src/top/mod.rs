//! `ottla top`: what happens in a cluster, on a terminal or as one table.
//!
//! ```text
//!  collector (a thread) ── Update ──► Model ──► screen: keys ─► State ─► frame
//!                                       └─────► plain: a table or JSON
//! ```
//!
//! | file | noun |
//! |---|---|
//! | [`update`] | what the collector reports |
//! | [`collector`] | the requests, and how often they are sent |
//! | [`model`], [`groups`], [`history`] | the cluster's state, lags and rates; no I/O, no clock |
//! | [`plain`] | one snapshot as text or JSON |
//! | [`screen`] | the full-screen view: feature `top` |

mod block_on;
pub mod collector;
pub mod figures;
pub mod groups;
pub mod history;
pub mod model;
pub mod plain;
#[cfg(feature = "top")]
pub mod screen;
pub mod update;
