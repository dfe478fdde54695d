//! Responses on their way to the parts that asked for them.

use super::ClusterCore;
use crate::{connection::Response, contract::part::RequestOwner, error::Error, machine::Instant};

impl ClusterCore {
    /// Passes a response to the part that sent the request. Returns true if it reports that the node is not the
    /// coordinator.
    pub(super) fn dispatch(
        &mut self,
        now: Instant,
        owner: RequestOwner,
        result: Result<Response, Error>,
    ) -> bool {
        match owner {
            RequestOwner::Metadata => {}
            RequestOwner::Coordinators => self.handle_coordinators(now, result),
            RequestOwner::ProducerId => {
                if let Some(producer) = &mut self.producer {
                    producer.handle_identity(now, result);
                }
            }
            RequestOwner::Transaction(request) => {
                if let Some(transactions) = &mut self.transactions {
                    return transactions.handle_response(now, request, result);
                }
            }
            RequestOwner::Fetch(request) => {
                if let Some(fetch) = &mut self.fetch {
                    return fetch.handle_response(now, request, result);
                }
            }
            RequestOwner::Group(request) => {
                if let Some(group) = &mut self.group {
                    return group.handle_response(now, request, result);
                }
            }
            RequestOwner::Share(term) => {
                if let Some(share) = &mut self.share {
                    return share.handle_response(now, term, result);
                }
            }
            RequestOwner::Streams(term) => {
                if let Some(streams) = &mut self.streams {
                    return streams.handle_response(now, term, result);
                }
            }
            RequestOwner::StreamsDescription(number) => {
                if let Some(streams) = &mut self.streams {
                    return streams.handle_push_response(now, number, result);
                }
            }
            RequestOwner::Admin(request) => return self.admin.handle_response(now, request, result),
            RequestOwner::Telemetry(request) => {
                if let Some(telemetry) = &mut self.telemetry
                    && telemetry.handle_response(now, request, result)
                {
                    self.brokers.refuse_telemetry();
                }
            }
        }
        false
    }

    fn handle_coordinators(&mut self, now: Instant, result: Result<Response, Error>) {
        for (key, error) in self.coordinators.handle_response(now, result) {
            for waiting in self.requests.take_waiting_for(&key) {
                self.dispatch(now, waiting.owner, Err(error.clone()));
            }
        }
        self.send_waiting();
    }
}
