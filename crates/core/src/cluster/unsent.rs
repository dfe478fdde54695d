//! Requests that can't be sent: the nodes that metadata lack, and the errors.

use ottla_protocol::vocabulary::NodeId;

use super::ClusterCore;
use crate::{
    contract::route::Route,
    error::{Error, ErrorKind},
};

impl ClusterCore {
    /// Returns true if the route leads to a node that the metadata do not list.
    pub(super) fn is_unknown(&self, route: &Route) -> bool {
        let lists = |node: Option<NodeId>| node.is_some_and(|node| self.metadata.nodes.contains_key(&node));
        match route {
            Route::Any | Route::Telemetry | Route::Coordinator(_) | Route::Rebalance(_) => false,
            Route::Controller => !lists(self.metadata.controller_id),
            Route::Node(node) => !lists(NodeId::from_wire(*node)),
            Route::PastFetch(node) => !lists(Some(*node)),
        }
    }

    /// Returns the error of a request that was not sent before its deadline.
    pub(super) fn not_sent(&self, route: &Route) -> Error {
        let unlisted =
            |node: i32| format!("not sent: the metadata list no broker with node ID {node}; check the ID");
        if *route == Route::Telemetry {
            return Error::new(ErrorKind::State, "no connected broker takes client metrics");
        }
        let detail = match route {
            Route::Coordinator(key) | Route::Rebalance(key) => return self.coordinators.late(key),
            Route::Node(node) if self.brokers.any_up() => unlisted(*node),
            Route::PastFetch(node) if self.brokers.any_up() => unlisted(node.get()),
            Route::Controller if self.brokers.any_up() => {
                "not sent: the metadata name no controller".to_owned()
            }
            _ => self.last_down.as_ref().map_or_else(String::new, |error| format!("the last error: {error}")),
        };
        Error::new(ErrorKind::AllBrokersDown, detail)
    }
}
