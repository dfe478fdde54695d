//! The receiving half of a broker.
use super::{FetchMail, FetchReply, shared::ConsumerShared};
use crate::{
    broker::{
        buffer::BufferPool,
        connection::{Connection, Response},
    },
    error::Error,
    machine::Instant,
    rng::Rng,
    wake::WakeHandle,
};
use std::sync::Arc;

/// The receiving half of a broker.
#[derive(Debug)]
pub struct Fetcher;
/// What it tells.
#[derive(Debug)]
pub enum FetcherOutput {
    /// Mail.
    ToCluster(FetchReply),
    /// Refresh.
    RefreshMetadata(Arc<str>),
    /// Garbage.
    Misbehaved(Error),
}
impl Fetcher {
    pub(crate) fn new(_: Arc<ConsumerShared>, _: BufferPool, _: WakeHandle, _: Rng) -> Self {
        Self
    }
    pub(crate) fn handle_mail(&mut self, _: Instant, _: FetchMail) {}
    pub(crate) fn handle_connected(&mut self, _: Instant) {}
    pub(crate) fn handle_response(&mut self, _: Instant, _: Response, _: &str) {}
    pub(crate) fn handle_lost(&mut self, _: Instant, _: &Error) {}
    pub(crate) fn handle_timeout(&mut self, _: Instant) {}
    pub(crate) fn poll_timeout(&self, _: &Connection) -> Option<Instant> {
        None
    }
    pub(crate) fn wants_connection(&self) -> bool {
        false
    }
    pub(crate) fn pump(&mut self, _: Instant, _: &mut Connection) {}
    pub(crate) fn poll_output(&mut self) -> Option<FetcherOutput> {
        None
    }
}
