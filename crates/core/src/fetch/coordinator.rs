//! The receiving half of the cluster's owner.
use super::{FetchCommand, FetchMail, FetchReply, shared::ConsumerShared};
use crate::{
    broker::connection::Response,
    cluster::{
        Route, RoutedRequest,
        metadata::{Metadata, TopicError},
    },
    error::Result,
    machine::Instant,
    mail::BrokerKey,
};
use std::{collections::BTreeSet, sync::Arc};

/// The receiving half of the cluster's owner.
#[derive(Debug)]
pub struct FetchCoordinator;
pub(crate) enum FetchCoordinatorOutput {
    RefreshMetadata,
    ToNode(i32, FetchMail),
    ToBroker(BrokerKey, FetchMail),
    Request(u64, Route, RoutedRequest),
}
impl FetchCoordinator {
    pub(crate) fn new(_: Arc<ConsumerShared>) -> Self {
        Self
    }
    pub(crate) fn handle_command(&mut self, _: Instant, _: FetchCommand) {}
    pub(crate) fn handle_reply(&mut self, _: Instant, _: BrokerKey, _: FetchReply) {}
    pub(crate) fn handle_metadata(&mut self, _: Instant, _: &Metadata, _: &[TopicError]) -> bool {
        false
    }
    pub(crate) fn handle_answer(&mut self, _: Instant, _: u64, _: Result<Response>) {}
    pub(crate) fn advance(&mut self, _: Instant, _: &Metadata) {}
    pub(crate) fn poll_output(&mut self) -> Option<FetchCoordinatorOutput> {
        None
    }
    pub(crate) fn wanted_topics(&self, _: &mut BTreeSet<Arc<str>>) {}
    pub(crate) fn handle_timeout(&mut self, _: Instant) {}
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        None
    }
    pub(crate) fn close(&mut self) {}
}
