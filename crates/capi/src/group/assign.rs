//! Changes of the assignment by the application: on its own, and in response to rebalances.

use ottla::Consumer;
use ottla_core::{
    cluster::command::Command,
    error::ErrorKind,
    fetch::{FetchCommand, position::Offset},
    group::{GroupCommand, rebalance::RebalanceAnswer, shared::RebalanceProtocol},
};
use ottla_protocol::vocabulary::TopicPartition;
use ottla_sorted::SortedSet;

use super::state::Phase;
use crate::{
    client::handle::Client,
    consume::Places,
    ffi::{codes::code, error::ErrorObject},
};

/// A change of the assignment.
#[derive(Debug)]
pub(crate) enum Change {
    /// `rd_kafka_assign` of these partitions.
    Replace(Places),
    /// `rd_kafka_incremental_assign`.
    Add(Places),
    /// `rd_kafka_incremental_unassign`.
    Remove(Vec<(String, i32)>),
    /// No partition, whatever the protocol is: the consumer closes or failed.
    Nothing,
}

/// Changes the assignment of a group member, and responds to its rebalance if one is pending.
pub(crate) fn change_assignment(
    client: &Client,
    consumer: &Consumer,
    change: Change,
) -> Result<(), ErrorObject> {
    let is_over = client.membership().phase() != Phase::Open || client.fatal().is_some();
    let change = if is_over { Change::Nothing } else { change };
    if let Some(text) = contradiction_in_group(consumer, &change) {
        return Err(ErrorObject::new(code::_STATE, text));
    }
    let core = consumer.core();
    let given_up = match &change {
        Change::Replace(_) | Change::Nothing => core.assignment().into_iter().collect(),
        Change::Add(_) => SortedSet::new(),
        Change::Remove(pairs) => {
            pairs.iter().map(|(topic, number)| TopicPartition::new(topic.as_str(), *number)).collect()
        }
    };
    let is_lost = consumer.group().is_assignment_lost();
    let may_commit = client.membership().auto_commit && !is_lost;
    let offsets = if may_commit { core.offsets_to_commit(&given_up) } else { Vec::new() };
    let commands = match change {
        Change::Replace(Places { starts, epochs }) => {
            let commands = core.assign(&shared_names(starts)).into_iter();
            commands.map(|command| command.with_epochs(&epochs)).collect()
        }
        Change::Nothing => core.assign(&[]),
        Change::Add(Places { starts, epochs }) => {
            vec![core.incremental_assign(&shared_names(starts)).with_epochs(&epochs)]
        }
        Change::Remove(pairs) => {
            let pairs = pairs.into_iter().map(|(topic, number)| TopicPartition::new(topic, number));
            let pairs: Vec<_> = pairs.collect();
            let command = core.incremental_unassign(&pairs).map_err(|error| match error.kind() {
                // Here, a partition that is not assigned is an invalid argument.
                ErrorKind::State => ErrorObject::new(code::_INVALID_ARG, error.to_string()),
                _ => ErrorObject::from(&error),
            });
            vec![command?]
        }
    };
    consumer.group().set_lost(false);
    client.membership().end_asking();
    given_up.iter().for_each(|key| client.offsets().forget(&key.topic, key.partition));
    commands.into_iter().for_each(|command: FetchCommand| {
        consumer.handle().command(Command::Fetch(command));
    });
    let answer = RebalanceAnswer::Changed(offsets);
    consumer.handle().command(Command::Group(GroupCommand::Answer(answer)));
    Ok(())
}

/// Returns the reason why the change does not fit the protocol of the consumer's group; `None` if it fits.
pub(crate) fn contradiction_in_group(consumer: &Consumer, change: &Change) -> Option<&'static str> {
    contradiction(consumer.group().view().protocol?, change)
}

const fn contradiction(protocol: RebalanceProtocol, change: &Change) -> Option<&'static str> {
    match (protocol, change) {
        (RebalanceProtocol::Cooperative, Change::Replace(_)) => Some(
            "the group's rebalance protocol is COOPERATIVE: change the assignment with rd_kafka_incremental_assign() or \
             rd_kafka_incremental_unassign()",
        ),
        (RebalanceProtocol::Eager, Change::Add(_) | Change::Remove(_)) => {
            Some("the group's rebalance protocol is EAGER: change the assignment with rd_kafka_assign()")
        }
        _ => None,
    }
}

impl Client {
    /// Returns true if the assign functions apply to the consumer's group.
    pub(crate) fn is_in_group(&self, consumer: &Consumer) -> bool {
        let is_in = self.membership().is_active(consumer) || self.membership().phase() != Phase::Open;
        self.offsets().set_grouped(is_in);
        is_in
    }
}

fn shared_names(places: Vec<(String, i32, Offset)>) -> Vec<(TopicPartition, Offset)> {
    places.into_iter().map(|(topic, number, from)| (TopicPartition::new(topic, number), from)).collect()
}
