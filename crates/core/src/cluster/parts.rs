//! The parts of the cluster actor, whatever they tell to one another and to the halves of broker actors.

use std::convert::Infallible;

use ottla_protocol::vocabulary::NodeId;

use super::ClusterCore;
use crate::{
    contract::metadata::Metadata,
    contract::part::{Need, Needs, Part, ToNode},
    fetch::{FetchCommand, message::FetchMessage},
    message::ToBroker,
    produce::message::ProduceMessage,
    share::message::ShareMessage,
    states::See,
};

/// What a part tells to others.
#[derive(Debug)]
pub(super) enum Tell {
    /// A message to a half of the broker actor of a node.
    Broker(NodeId, ToBroker),
    /// A command for the consumer's partitions.
    Fetch(FetchCommand),
}

/// A part of any type.
pub(super) trait AnyPart: Part {
    /// Returns the next need of the part.
    fn poll_any_need(&mut self) -> Option<Need<Tell>>;
}

impl<P: Needs<Message: Into<Tell>>> AnyPart for P {
    fn poll_any_need(&mut self) -> Option<Need<Tell>> {
        self.poll_need().map(|need| need.map(Into::into))
    }
}

impl ClusterCore {
    /// Shows the states of the actor's machines.
    pub fn states(&self, see: &mut See<'_>) {
        self.refresh.states(see);
        self.coordinators.states(see);
        self.parts().for_each(|part| part.states(see));
    }

    pub(super) fn parts(&self) -> impl Iterator<Item = &dyn Part> {
        let parts: [Option<&dyn Part>; 8] = [
            self.producer.as_ref().map(|part| part as _),
            self.transactions.as_ref().map(|part| part as _),
            self.group.as_ref().map(|part| part as _),
            self.fetch.as_ref().map(|part| part as _),
            self.share.as_ref().map(|part| part as _),
            self.streams.as_ref().map(|part| part as _),
            self.telemetry.as_ref().map(|part| part as _),
            Some(&self.admin),
        ];
        parts.into_iter().flatten()
    }

    pub(super) fn parts_mut(&mut self) -> impl Iterator<Item = &mut dyn AnyPart> {
        self.metadata_and_parts().1
    }

    /// Returns the metadata, and the parts that use it.
    pub(super) fn metadata_and_parts(&mut self) -> (&Metadata, impl Iterator<Item = &mut dyn AnyPart>) {
        let parts: [Option<&mut dyn AnyPart>; 8] = [
            self.producer.as_mut().map(|part| part as _),
            self.transactions.as_mut().map(|part| part as _),
            self.group.as_mut().map(|part| part as _),
            self.fetch.as_mut().map(|part| part as _),
            self.share.as_mut().map(|part| part as _),
            self.streams.as_mut().map(|part| part as _),
            self.telemetry.as_mut().map(|part| part as _),
            Some(&mut self.admin),
        ];
        (&self.metadata, parts.into_iter().flatten())
    }
}

impl Need<Tell> {
    /// Returns true for a command that one part gives to another.
    pub(super) const fn is_command(&self) -> bool {
        matches!(
            self,
            Self::Tell(Tell::Fetch(_)) | Self::CheckMembership | Self::Purge(_) | Self::StopProducer(_)
        )
    }
}

impl From<Infallible> for Tell {
    fn from(nothing: Infallible) -> Self {
        match nothing {}
    }
}

impl From<FetchCommand> for Tell {
    fn from(command: FetchCommand) -> Self {
        Self::Fetch(command)
    }
}

impl From<ToNode<ProduceMessage>> for Tell {
    fn from(ToNode { node, message }: ToNode<ProduceMessage>) -> Self {
        Self::Broker(node, ToBroker::Produce(message))
    }
}

impl From<ToNode<FetchMessage>> for Tell {
    fn from(ToNode { node, message }: ToNode<FetchMessage>) -> Self {
        Self::Broker(node, ToBroker::Fetch(message))
    }
}

impl From<ToNode<ShareMessage>> for Tell {
    fn from(ToNode { node, message }: ToNode<ShareMessage>) -> Self {
        Self::Broker(node, ToBroker::Share(message))
    }
}
