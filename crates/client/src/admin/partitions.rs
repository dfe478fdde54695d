//! Calls about leaders, replicas and log directories of partitions, and about topic IDs.

use std::collections::BTreeMap;

use ottla_core::{
    admin::{
        describe::TopicDescription,
        elections::{ElectionResults, ElectionType, elect_leaders},
        item_results::ItemResults,
        leader_epochs::{EpochEnd, epoch_ends},
        log_dirs::{LogDir, LogDirs, alter_log_dirs, describe_all_log_dirs, describe_log_dirs},
        reassignments::{OngoingReassignment, Reassignments, alter_reassignments, list_reassignments},
        topic_ids::{delete_topics_by_id, describe_topics_by_id},
    },
    error::Result,
};
use ottla_protocol::{
    uuid::Uuid,
    vocabulary::{LeaderEpoch, TopicPartition},
};

use super::{
    AdminFuture,
    calls::{calls, distinct, invalid},
};
use crate::topic_name::check_partition;

calls! {
    /// Elects leaders of these partitions, or of all. Each partition has a result: a new leader, or none because the leader is
    /// the right one already. The result of all partitions omits those that need no election.
    ///
    /// ```
    /// # fn example(admin: &ottla::Admin) -> ottla::Result<()> {
    /// use std::time::Duration;
    ///
    /// use ottla::admin::ElectionType;
    ///
    /// let partitions = [("orders", 0), ("orders", 1)];
    /// for (partition, outcome) in
    ///     admin.elect_leaders(ElectionType::Preferred, Some(&partitions), Duration::from_secs(30))?
    /// {
    ///     println!("{partition:?}: {outcome:?}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    fn elect_leaders, elect_leaders_async(
        &self,
        election: ElectionType,
        partitions: Option<&[(&str, i32)]>;
        options
    ) -> ElectionResults {
        let checked = some_distinct(partitions);
        self.ask("elect_leaders", options, checked, |partitions, done| {
            elect_leaders(election, partitions, options.timeout, done)
        })
    }

    /// Moves replicas of partitions to brokers, the preferred leader first; `None` cancels a reassignment in progress. Each
    /// partition has a result: whether the reassignment began. [`Admin::list_reassignments`](Self::list_reassignments) shows
    /// its progress. Needs Kafka 2.4 or later.
    fn alter_reassignments, alter_reassignments_async(
        &self,
        reassignments: &Reassignments;
        options
    ) -> ItemResults<TopicPartition, ()> {
        let checked = check_reassignments(reassignments).map(|()| reassignments.clone());
        self.ask("alter_reassignments", options, checked, |reassignments, done| {
            let may_change = !options.same_replication_factor;
            alter_reassignments(reassignments, may_change, options.timeout, done)
        })
    }

    /// Lists the reassignments in progress: of these partitions, or all. Needs Kafka 2.4 or later.
    fn list_reassignments, list_reassignments_async(
        &self,
        partitions: Option<&[(&str, i32)]>;
        options
    ) -> BTreeMap<TopicPartition, OngoingReassignment> {
        let checked = some_distinct(partitions);
        self.ask("list_reassignments", options, checked, |partitions, done| {
            list_reassignments(partitions, options.timeout, done)
        })
    }

    /// Describes the log directories of these brokers, or of all, with the replicas of these partitions or of all. A broker
    /// that fails has an error.
    fn describe_log_dirs, describe_log_dirs_async(
        &self,
        brokers: Option<&[i32]>,
        partitions: Option<&[(&str, i32)]>;
        options
    ) -> LogDirs {
        const NAME: &str = "describe_log_dirs";
        let partitions = match some_distinct(partitions) {
            Ok(partitions) => partitions,
            Err(error) => return AdminFuture::failed(NAME, error),
        };
        let Some(brokers) = brokers else {
            return self.ask(NAME, options, Ok(partitions), |partitions, done| {
                describe_all_log_dirs(partitions, options.timeout, done)
            });
        };
        if let Err(error) = check_brokers(brokers) {
            return AdminFuture::failed(NAME, error);
        }
        let calls = brokers.iter().map(|broker| {
            let (broker, partitions) = (*broker, partitions.clone());
            let call = move |done| describe_log_dirs(broker, partitions, options.timeout, done);
            self.start(NAME, options.timeout, Ok(call))
        });
        let brokers = brokers.to_vec();
        let results: AdminFuture<Vec<Result<Vec<LogDir>>>> =
            AdminFuture::all(NAME, options.timeout, calls.collect());
        results.and_then(|results| Ok(brokers.into_iter().zip(results).collect()))
    }

    /// Looks up where leader epochs end in the logs of partitions, with one request to each of their leaders. Each
    /// partition has a result, in the order of the arguments. Needs Kafka 2.0 or later.
    fn list_epoch_ends, list_epoch_ends_async(
        &self,
        partitions: &[(&str, i32, LeaderEpoch)];
        options
    ) -> Vec<Result<EpochEnd>> {
        let keys = distinct(partitions.iter().map(|(topic, partition, _)| (*topic, *partition)));
        let call = keys.map(|keys| {
            let epochs = keys.into_iter().zip(partitions.iter().map(|(_, _, epoch)| *epoch)).collect();
            move |done| epoch_ends(epochs, options.timeout, done).done(options.how())
        });
        self.start("list_epoch_ends", options.timeout, call)
    }

    /// Describes topics by ID: a topic that was recreated under the same name has another one. Each ID has a result. Needs Kafka
    /// 3.1 or later.
    fn describe_topics_by_id, describe_topics_by_id_async(
        &self,
        ids: &[Uuid];
        options
    ) -> ItemResults<Uuid, TopicDescription> {
        self.ask("describe_topics_by_id", options, check_topic_ids(ids), |ids, done| {
            describe_topics_by_id(ids, options.authorized_operations, options.timeout, done)
        })
    }

    /// Deletes topics by ID, so that a topic that was recreated under the same name stays. Each ID has a result. Needs Kafka
    /// 2.8 or later.
    fn delete_topics_by_id, delete_topics_by_id_async(&self, ids: &[Uuid]; options) -> ItemResults<Uuid, ()> {
        let checked = check_topic_ids(ids);
        self.ask("delete_topics_by_id", options, checked, |ids, done| {
            delete_topics_by_id(ids, options.timeout, done)
        })
    }

    /// Moves replicas of a broker to other log directories, given by their absolute paths. A success means that the broker
    /// began to copy; [`Admin::describe_log_dirs`](Self::describe_log_dirs) shows future replicas until they are complete.
    fn alter_replica_log_dirs, alter_replica_log_dirs_async(
        &self,
        broker: i32,
        paths: &BTreeMap<TopicPartition, String>;
        options
    ) -> ItemResults<TopicPartition, ()> {
        let checked = check_brokers(&[broker]).and_then(|()| check_paths(paths)).map(|()| paths.clone());
        self.ask("alter_replica_log_dirs", options, checked, |paths, done| {
            alter_log_dirs(broker, paths, options.timeout, done)
        })
    }
}

fn some_distinct(partitions: Option<&[(&str, i32)]>) -> Result<Option<Vec<TopicPartition>>> {
    partitions.map(|partitions| distinct(partitions.iter().copied())).transpose()
}

fn check_brokers(brokers: &[i32]) -> Result<()> {
    let mut sorted = brokers.to_vec();
    sorted.sort_unstable();
    match sorted.first() {
        None => return Err(invalid("no brokers; name at least one")),
        Some(id) if *id < 0 => return Err(invalid(format!("broker {id}; IDs of brokers are at least 0"))),
        Some(_) => {}
    }
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(invalid(format!("broker {} is named twice; name each broker once", pair[0]))),
        None => Ok(()),
    }
}

fn check_reassignments(reassignments: &Reassignments) -> Result<()> {
    if reassignments.is_empty() {
        return Err(invalid("no partitions; name at least one"));
    }
    reassignments.iter().try_for_each(|(key, replicas)| {
        check_partition(&key.topic, key.partition)?;
        let Some(replicas) = replicas else { return Ok(()) };
        check_brokers(replicas).map_err(|error| error.with_partition(&*key.topic, key.partition))
    })
}

fn check_paths(paths: &BTreeMap<TopicPartition, String>) -> Result<()> {
    if paths.is_empty() {
        return Err(invalid("no replicas; name at least one"));
    }
    paths.iter().try_for_each(|(key, path)| {
        check_partition(&key.topic, key.partition)?;
        if path.starts_with('/') || path.get(1..2) == Some(":") {
            return Ok(());
        }
        let detail = format!("the path \"{path}\" is not absolute; use one that describe_log_dirs reports");
        Err(invalid(detail).with_partition(&*key.topic, key.partition))
    })
}

/// Returns the IDs, of which there is at least one, none twice, and none that stands for no topic.
fn check_topic_ids(ids: &[Uuid]) -> Result<Vec<Uuid>> {
    let mut sorted = ids.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    if ids.is_empty() {
        Err(invalid("no topic IDs; name at least one"))
    } else if sorted.len() < ids.len() {
        Err(invalid("a topic ID is named twice; name each one once per call"))
    } else if sorted[0].is_zero() {
        Err(invalid("a topic ID is zero, which stands for no topic"))
    } else {
        Ok(ids.to_vec())
    }
}
