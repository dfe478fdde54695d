//! Administrative calls.

use crate::{
    broker::connection::Response,
    cluster::{Route, RoutedRequest, metadata::Metadata},
    error::Result,
    machine::Instant,
};

/// An administrative call.
#[derive(Debug)]
pub struct AdminCall;

/// The calls under way.
#[derive(Debug, Default)]
pub struct AdminCalls;

impl AdminCalls {
    pub(crate) fn start(&mut self, _: Instant, _: AdminCall) {}
    pub(crate) fn advance(&mut self, _: Instant, _: &Metadata) {}
    pub(crate) fn poll_request(&mut self) -> Option<(u64, Route, RoutedRequest)> {
        None
    }
    pub(crate) fn handle_answer(&mut self, _: Instant, _: u64, _: Result<Response>) {}
    pub(crate) fn handle_timeout(&mut self, _: Instant) {}
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        None
    }
    pub(crate) fn close(&mut self) {}
}
