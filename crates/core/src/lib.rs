//! See the crate's description.

pub mod config;
pub mod produce;
