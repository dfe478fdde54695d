//! The cancellation of threads is delayed while the library runs.

pub(crate) use ottla_net::cancel::Uncancelled;
