//! Behaviours of the client, one file per subject. See the crate's documentation for how they are run.

mod produce;
