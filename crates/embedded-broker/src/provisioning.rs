//! Creates, changes and deletes topics.

use ottla_protocol::{error_code::ErrorCode, uuid::Uuid};
use ottla_sorted::SortedMap;

use crate::{
    changes::{Change, ConfiguredResource},
    cluster::Cluster,
    compaction::Compaction,
    log::segments::SegmentLimits,
    options::BrokerId,
    retention::Retention,
    topics::{Partition, Topic, TopicIndex, TopicLimits, check_name},
    validation::Demands,
};

/// The maximum number of warnings that are kept.
const MAX_WARNINGS: usize = 1000;

/// The error code and message of a rejected request.
pub(crate) type Refusal = (ErrorCode, String);

/// Returns the result for one resource.
pub(crate) fn code_and_message(done: Result<(), Refusal>) -> (ErrorCode, Option<String>) {
    done.map_or_else(|(error, message)| (error, Some(message)), |()| (ErrorCode::NONE, None))
}

impl Cluster {
    /// Creates a topic, or only validates the request with `validate_only`. -1 stands for the cluster's defaults.
    pub(crate) fn create_topic(
        &mut self,
        name: &str,
        partitions: i32,
        replication_factor: i16,
        configs: SortedMap<String, String>,
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

    /// Creates a topic with the given replicas.
    pub(crate) fn create_topic_assigned(
        &mut self,
        name: &str,
        assignment: Vec<Vec<BrokerId>>,
        configs: SortedMap<String, String>,
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
        let assignment_len = assignment.len();
        let partitions =
            assignment.into_iter().enumerate().map(|(i, replicas)| self.new_partition(i, replicas)).collect();
        self.warn_of_configs(name, &configs);
        self.note_creation(name, assignment_len, &configs);
        let topic = Topic { name: name.to_owned(), id, partitions, configs, limits };
        Ok(self.topics.insert(topic))
    }

    fn note_creation(&mut self, topic: &str, partitions: usize, configs: &SortedMap<String, String>) {
        self.note_change(|| Change::TopicCreated {
            topic: topic.to_owned(),
            partitions: i32::try_from(partitions).unwrap_or(i32::MAX),
            configs: configs.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        });
    }

    /// Deletes a topic with its records and with the offsets that groups committed for it.
    pub(crate) fn delete_topic(&mut self, index: TopicIndex) {
        self.share_groups.forget_topic(index);
        let Some(topic) = self.topics.remove(index) else { return };
        self.groups.forget_topic(&topic.name);
        self.note_change(|| Change::TopicDeleted { topic: topic.name.clone() });
        for partition in topic.partitions {
            self.stored_bytes -= partition.log.bytes();
            self.satisfied.extend(partition.fetch_waiters);
            self.satisfied.extend(partition.share_waiters);
            self.satisfied.extend(partition.produce_waiters);
        }
    }

    /// Adds partitions to a topic, up to `count` in total, with the replication factor of its first partition.
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
        let requested = usize::try_from(count).unwrap_or(0);
        if requested <= now {
            let message = if requested == now {
                format!("Topic already has {now} partition(s).")
            } else {
                format!(
                    "The topic {} currently has {now} partition(s); {count} would not be an increase.",
                    topic.name
                )
            };
            return Err((ErrorCode::INVALID_PARTITIONS, message));
        }
        self.check_room(requested - now)?;
        let alive = self.alive_brokers();
        let replicas = topic.partitions[0].replicas.len();
        if replicas > alive.len() {
            let message = format!("There are not {replicas} brokers for the new partitions' replicas.");
            return Err((ErrorCode::INVALID_REPLICATION_FACTOR, message));
        }
        let added: Vec<Partition> = (now..requested)
            .map(|i| self.new_partition(i, (0..replicas).map(|k| alive[(i + k) % alive.len()]).collect()))
            .collect();
        if !validate_only {
            self.topics.add_partitions(index, added);
            if let Some(topic) = self.topics.get(index).map(|topic| topic.name.clone()) {
                self.note_change(|| Change::PartitionsAdded { topic, partitions: count });
            }
        }
        Ok(())
    }

    /// Replaces a topic's configuration.
    pub(crate) fn set_topic_configs(
        &mut self,
        index: TopicIndex,
        configs: SortedMap<String, String>,
    ) -> Result<(), Refusal> {
        let limits = self.limits(&configs)?;
        let Some(topic) = self.topics.get_mut(index) else { return Ok(()) };
        topic.limits = limits;
        let name = topic.name.clone();
        self.note_configs(ConfiguredResource::Topic, &name, &configs);
        let Some(topic) = self.topics.get_mut(index) else { return Ok(()) };
        let before = std::mem::replace(&mut topic.configs, configs);
        let partitions = 0..i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX);
        let changed = topic.configs.iter().filter(|(name, value)| before.get(*name) != Some(value));
        let changed = changed.map(|(name, value)| (name.clone(), value.clone())).collect();
        self.warn_of_configs(&name, &changed);
        partitions.for_each(|partition| self.clean_up(index, partition));
        Ok(())
    }

    /// Records a warning for configuration that is accepted, as in Kafka, but has no effect here.
    fn warn_of_configs(&mut self, topic: &str, configs: &SortedMap<String, String>) {
        let ignored = crate::api::config_effects::unenforced(configs);
        if !ignored.is_empty() && self.warnings.len() < MAX_WARNINGS {
            let ignored = ignored.join(", ");
            self.warnings.push(format!(
                "topic \"{topic}\": {ignored}: accepted, but the embedded broker does not enforce it"
            ));
        }
    }

    pub(crate) fn alive_brokers(&self) -> Vec<BrokerId> {
        self.brokers.iter().filter(|(_, broker)| broker.alive).map(|(id, _)| *id).collect()
    }

    /// Computes the limits for appends from a topic's configuration. Error: the values are inconsistent.
    pub(crate) fn limits(&self, configs: &SortedMap<String, String>) -> Result<TopicLimits, Refusal> {
        crate::api::configs::check_topic_configs(configs)?;
        let number =
            |name: &str, default: usize| configs.get(name).and_then(|v| v.parse().ok()).unwrap_or(default);
        let min_insync_replicas = usize::try_from(self.options.min_insync_replicas).unwrap_or(1);
        let compaction = Compaction::new(configs);
        Ok(TopicLimits {
            max_message_bytes: number("max.message.bytes", self.options.message_max_bytes),
            min_insync_replicas: number("min.insync.replicas", min_insync_replicas),
            compaction,
            demands: Demands::new(configs, compaction.is_some()),
            segments: SegmentLimits::new(configs, compaction.map(|compaction| compaction.max_lag_ms)),
            retention: Retention::new(configs),
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

    /// Error: the replicas are none, or not distinct brokers of the cluster.
    pub(crate) fn check_replicas(&self, replicas: &[BrokerId]) -> Result<(), Refusal> {
        let refuse = |message: String| Err((ErrorCode::INVALID_REPLICA_ASSIGNMENT, message));
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
        Ok(())
    }

    fn check_assignment(&self, assignment: &[Vec<BrokerId>]) -> Result<(), Refusal> {
        let refuse = |message: String| Err((ErrorCode::INVALID_REPLICA_ASSIGNMENT, message));
        self.check_room(assignment.len())?;
        for replicas in assignment {
            self.check_replicas(replicas)?;
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
