//! Topics come and go.

use std::collections::BTreeMap;

use ottla_protocol::{error_code::ErrorCode, uuid::Uuid};

use crate::{
    cluster::Cluster,
    options::BrokerId,
    topics::{Partition, Topic, TopicIndex, TopicLimits, check_name},
};

/// What is refused, and why in words.
pub(crate) type Refusal = (ErrorCode, String);

impl Cluster {
    /// Creates a topic (or, with `validate_only`, only checks whether it could be). -1 stands for the cluster's defaults.
    pub(crate) fn create_topic(
        &mut self,
        name: &str,
        partitions: i32,
        replication_factor: i16,
        configs: BTreeMap<String, String>,
        validate_only: bool,
    ) -> Result<TopicIndex, Refusal> {
        let partitions = if partitions == -1 { self.options.partitions } else { partitions };
        if partitions <= 0 {
            let message = "Number of partitions was set to an invalid non-positive value.".to_owned();
            return Err((ErrorCode::INVALID_PARTITIONS, message));
        }
        self.check_room(usize::try_from(partitions).unwrap_or(usize::MAX))?;
        let alive: Vec<BrokerId> = self.alive_brokers();
        let replicas = match replication_factor {
            -1 => usize::try_from(self.options.replication_factor).unwrap_or(1).clamp(1, alive.len().max(1)),
            n => usize::try_from(n).unwrap_or(0),
        };
        if replicas == 0 {
            let message =
                "Replication factor must be larger than 0, or -1 to use the default value.".to_owned();
            return Err((ErrorCode::INVALID_REPLICATION_FACTOR, message));
        }
        if replicas > alive.len() {
            let message = format!(
                "Unable to replicate the partition {replicas} time(s): The target replication factor of {replicas} cannot \
                 be reached because only {} broker(s) are registered.",
                alive.len()
            );
            return Err((ErrorCode::INVALID_REPLICATION_FACTOR, message));
        }
        let first = self.topics.len();
        let place = |i: i32| {
            let at = first + usize::try_from(i).unwrap_or(0);
            (0..replicas).map(|k| alive[(at + k) % alive.len()]).collect::<Vec<_>>()
        };
        let assignment = (0..partitions).map(place).collect();
        self.create_topic_assigned(name, assignment, configs, validate_only)
    }

    /// Creates a topic whose replicas are given.
    pub(crate) fn create_topic_assigned(
        &mut self,
        name: &str,
        assignment: Vec<Vec<BrokerId>>,
        configs: BTreeMap<String, String>,
        validate_only: bool,
    ) -> Result<TopicIndex, Refusal> {
        if let Err(reason) = check_name(name) {
            return Err((ErrorCode::INVALID_TOPIC_EXCEPTION, format!("Topic name is invalid: {reason}")));
        }
        if self.topics.by_name(name).is_some() {
            return Err((ErrorCode::TOPIC_ALREADY_EXISTS, format!("Topic '{name}' already exists.")));
        }
        self.check_assignment(&assignment)?;
        let limits = self.limits(&configs)?;
        if validate_only {
            return Ok(TopicIndex(usize::MAX));
        }
        let id = Uuid(self.random.uuid_bytes());
        let partitions =
            assignment.into_iter().enumerate().map(|(i, replicas)| self.new_partition(i, replicas)).collect();
        let topic = Topic { name: name.to_owned(), id, partitions, configs, limits };
        Ok(self.topics.insert(topic))
    }

    /// Deletes a topic with its records.
    pub(crate) fn delete_topic(&mut self, index: TopicIndex) {
        self.share_groups.forget_topic(index);
        for partition in self.topics.remove(index).map(|topic| topic.partitions).unwrap_or_default() {
            self.stored_bytes -= partition.log.bytes();
            self.satisfied.extend(partition.fetch_waiters);
            self.satisfied.extend(partition.share_waiters);
            self.satisfied.extend(partition.produce_waiters);
        }
    }

    /// Gives a topic more partitions, `count` in all, with as many replicas as its first one has.
    pub(crate) fn create_partitions(
        &mut self,
        index: TopicIndex,
        count: i32,
        validate_only: bool,
    ) -> Result<(), Refusal> {
        let Some(topic) = self.topics.get(index) else {
            return Err((
                ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                "This server does not host this topic.".to_owned(),
            ));
        };
        let now = topic.partitions.len();
        let wanted = usize::try_from(count).unwrap_or(0);
        if wanted <= now {
            let message = if wanted == now {
                format!("Topic already has {now} partition(s).")
            } else {
                format!(
                    "The topic {} currently has {now} partition(s); {count} would not be an increase.",
                    topic.name
                )
            };
            return Err((ErrorCode::INVALID_PARTITIONS, message));
        }
        self.check_room(wanted - now)?;
        let alive = self.alive_brokers();
        let replicas = topic.partitions[0].replicas.len();
        if replicas > alive.len() {
            let message = format!("There are not {replicas} brokers for the new partitions' replicas.");
            return Err((ErrorCode::INVALID_REPLICATION_FACTOR, message));
        }
        let added: Vec<Partition> = (now..wanted)
            .map(|i| self.new_partition(i, (0..replicas).map(|k| alive[(i + k) % alive.len()]).collect()))
            .collect();
        if !validate_only {
            self.topics.add_partitions(index, added);
        }
        Ok(())
    }

    /// Gives a topic other configuration.
    pub(crate) fn set_topic_configs(
        &mut self,
        index: TopicIndex,
        configs: BTreeMap<String, String>,
    ) -> Result<(), Refusal> {
        let limits = self.limits(&configs)?;
        if let Some(topic) = self.topics.get_mut(index) {
            topic.limits = limits;
            topic.configs = configs;
        }
        Ok(())
    }

    pub(crate) fn alive_brokers(&self) -> Vec<BrokerId> {
        self.brokers.iter().filter(|(_, broker)| broker.alive).map(|(id, _)| *id).collect()
    }

    /// What appending needs to know of a topic's configuration; an error if that makes no sense.
    pub(crate) fn limits(&self, configs: &BTreeMap<String, String>) -> Result<TopicLimits, Refusal> {
        crate::api::configs::check_topic_configs(configs)?;
        let number =
            |name: &str, default: usize| configs.get(name).and_then(|v| v.parse().ok()).unwrap_or(default);
        let min_insync_replicas = usize::try_from(self.options.min_insync_replicas).unwrap_or(1);
        Ok(TopicLimits {
            max_message_bytes: number("max.message.bytes", self.options.message_max_bytes),
            min_insync_replicas: number("min.insync.replicas", min_insync_replicas),
            log_append_time: configs.get("message.timestamp.type").is_some_and(|v| v == "LogAppendTime"),
        })
    }

    fn new_partition(&self, index: usize, replicas: Vec<BrokerId>) -> Partition {
        let in_sync = replicas.iter().copied().filter(|id| self.brokers[id].alive).collect();
        Partition::new(i32::try_from(index).unwrap_or(i32::MAX), replicas, in_sync)
    }

    fn check_room(&self, more: usize) -> Result<(), Refusal> {
        if more <= MAX_PARTITIONS.saturating_sub(self.topics.partitions()) {
            return Ok(());
        }
        let message = format!("The cluster can't have more than {MAX_PARTITIONS} partitions.");
        Err((ErrorCode::INVALID_PARTITIONS, message))
    }

    fn check_assignment(&self, assignment: &[Vec<BrokerId>]) -> Result<(), Refusal> {
        let refuse = |message: String| Err((ErrorCode::INVALID_REPLICA_ASSIGNMENT, message));
        self.check_room(assignment.len())?;
        for replicas in assignment {
            if replicas.is_empty() {
                return refuse("The manual partition assignment includes an empty replica list.".to_owned());
            }
            for (i, id) in replicas.iter().enumerate() {
                if !self.brokers.contains_key(id) {
                    return refuse(format!(
                        "The manual partition assignment includes broker {id}, but no such broker is registered."
                    ));
                }
                if replicas[..i].contains(id) {
                    return refuse(format!(
                        "The manual partition assignment includes the broker {id} more than once."
                    ));
                }
            }
            if !replicas.iter().any(|id| self.brokers[id].alive) {
                return refuse(
                    "None of the brokers specified in the manual partition assignment is up.".to_owned(),
                );
            }
        }
        Ok(())
    }
}

/// A request of a few bytes must not make the cluster allocate without bounds.
const MAX_PARTITIONS: usize = 200_000;
