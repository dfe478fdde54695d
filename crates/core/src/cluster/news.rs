//! Information that brokers send along with responses.

use ottla_protocol::vocabulary::NodeId;

use super::ClusterCore;
use crate::{
    contract::broker::{BrokerKey, BrokerNews},
    event::{Event, Throttle},
    machine::Instant,
};

impl ClusterCore {
    pub(super) fn handle_news(&mut self, now: Instant, from: BrokerKey, news: BrokerNews) {
        match news {
            BrokerNews::LeaderHint(hint) if self.settings.leader_discovery => self.handle_hint(from, hint),
            BrokerNews::LeaderHint(_) => {}
            BrokerNews::StaleMetadata(_) => self.refresh_soon(now),
            BrokerNews::UnknownTopicId(topic, id) => self.metadata.doubt_id(&topic, id),
            BrokerNews::Throttled(millis) => {
                let throttle = Throttle {
                    broker: self.brokers.address(from).unwrap_or_default(),
                    node_id: self.brokers.node_id(from).map(NodeId::get),
                    millis,
                };
                self.events.push(Event::Throttled(throttle));
            }
            BrokerNews::Warning(error) => {
                let reported = self.warnings.admit(now, error);
                reported.into_iter().for_each(|error| self.events.push(Event::Error(error)));
            }
        }
    }
}
