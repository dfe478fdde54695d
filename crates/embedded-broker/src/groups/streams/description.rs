//! The description of a group's topology, which a plug-in of Kafka's brokers stores (KIP-1331). The coordinator asks one member
//! for it, and another one only after some time. Unlike Kafka, it does not wait longer after each failure.

use std::time::Duration;

use ottla_protocol::{
    generated::streams_group_topology_description_update::request::TopologyDescription, time::Instant,
};

/// What the brokers have of a description.
#[derive(Debug)]
pub(crate) struct DescriptionStore {
    /// The description, with the epoch of the topology.
    stored: Option<(i32, TopologyDescription)>,
    /// No member is asked before this time.
    asks_from: Instant,
    /// How often members were asked.
    pub asked: u64,
    /// How often members sent it.
    pub pushed: u64,
    /// How often a member sent it that was not asked in its membership.
    pub unasked: u64,
}

impl Default for DescriptionStore {
    fn default() -> Self {
        Self { stored: None, asks_from: Instant::ZERO, asked: 0, pushed: 0, unasked: 0 }
    }
}

impl DescriptionStore {
    /// Returns true if a member is to be asked now for the description of this epoch.
    pub fn asks(&mut self, now: Instant, epoch: i32, interval: Duration) -> bool {
        if self.of_epoch(epoch).is_some() || now < self.asks_from {
            return false;
        }
        self.asks_from = now + interval;
        self.asked += 1;
        true
    }

    /// Stores a description.
    pub fn store(&mut self, epoch: i32, description: TopologyDescription) {
        self.stored = Some((epoch, description));
    }

    /// Returns the description of the topology of this epoch.
    pub fn of_epoch(&self, epoch: i32) -> Option<&TopologyDescription> {
        self.stored.as_ref().filter(|(of, _)| *of == epoch).map(|(_, description)| description)
    }

    /// The plug-in has lost the description. Members are asked at once.
    pub fn forget(&mut self) {
        self.stored = None;
        self.asks_from = Instant::ZERO;
    }
}
