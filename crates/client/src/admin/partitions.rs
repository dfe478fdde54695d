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
    calls::{calls, invalid},
    elements::{Elements, Names, checked_partitions},
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
        const NAME: &str = "elect_leaders";
        let elect = |partitions: Option<Vec<TopicPartition>>| {
            self.ask(NAME, options, Ok(partitions), |partitions, done| {
                elect_leaders(election, partitions, options.timeout, done)
            })
        };
        match partitions {
            None => elect(None),
            Some(partitions) => checked_partitions(partitions, |key, error| (key, Err(error)))
                .ask(NAME, |partitions| elect(Some(partitions))),
        }
    }

    /// Moves replicas of partitions to brokers, the preferred leader first; `None` cancels a reassignment in progress. Each
    /// partition has a result: whether the reassignment began. [`Admin::list_reassignments`](Self::list_reassignments) shows
    /// its progress. Needs Kafka 2.4 or later.
    fn alter_reassignments, alter_reassignments_async(
        &self,
        reassignments: &Reassignments;
        options
    ) -> ItemResults<TopicPartition, ()> {
        const NAME: &str = "alter_reassignments";
        let check = |(key, replicas): &(&TopicPartition, &Option<Vec<i32>>)| {
            check_reassignment(key, replicas.as_deref()).map(|()| ((*key).clone(), (*replicas).clone()))
        };
        let reassignments = Elements::new(reassignments, check, |(key, _), error| ((*key).clone(), Err(error)));
        reassignments.required("partitions").ask(NAME, |reassignments| {
            let reassignments = reassignments.into_iter().collect();
            self.ask(NAME, options, Ok(reassignments), |reassignments, done| {
                let may_change = !options.same_replication_factor;
                alter_reassignments(reassignments, may_change, options.timeout, done)
            })
        })
    }

    /// Lists the reassignments in progress: of these partitions, or all. Needs Kafka 2.4 or later.
    fn list_reassignments, list_reassignments_async(
        &self,
        partitions: Option<&[(&str, i32)]>;
        options
    ) -> BTreeMap<TopicPartition, OngoingReassignment> {
        const NAME: &str = "list_reassignments";
        let checked = possible(partitions);
        if matches!(&checked, Ok(Some(partitions)) if partitions.is_empty()) {
            return AdminFuture::ready(NAME, Ok(BTreeMap::new()));
        }
        self.ask(NAME, options, checked, |partitions, done| {
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
        let partitions = match possible(partitions) {
            Ok(partitions) => partitions,
            Err(error) => return AdminFuture::failed(NAME, error),
        };
        let Some(brokers) = brokers else {
            return self.ask(NAME, options, Ok(partitions), |partitions, done| {
                describe_all_log_dirs(partitions, options.timeout, done)
            });
        };
        let mut known = Names::new();
        let check = |broker: &&i32| {
            check_broker(**broker).and_then(|()| known.add(&format!("broker {broker}"), **broker)).map(|()| **broker)
        };
        let brokers = Elements::new(brokers, check, |broker, error| (**broker, Err(error)));
        brokers.required("brokers").ask(NAME, |brokers| {
            let calls = brokers.iter().map(|broker| {
                let (broker, partitions) = (*broker, partitions.clone());
                let call = move |done| describe_log_dirs(broker, partitions, options.timeout, done);
                self.start(NAME, options.timeout, Ok(call))
            });
            let results: AdminFuture<Vec<Result<Vec<LogDir>>>> =
                AdminFuture::all(NAME, options.timeout, calls.collect());
            results.and_then(|results| Ok(brokers.into_iter().zip(results).collect()))
        })
    }

    /// Looks up where leader epochs end in the logs of partitions, with one request to each of their leaders. Each
    /// partition has a result, in the order of the arguments. Needs Kafka 2.0 or later.
    fn list_epoch_ends, list_epoch_ends_async(
        &self,
        partitions: &[(&str, i32, LeaderEpoch)];
        options
    ) -> Vec<Result<EpochEnd>> {
        const NAME: &str = "list_epoch_ends";
        let mut names = Names::new();
        let check = |(topic, partition, epoch): &&(&str, i32, LeaderEpoch)| {
            names.check_partition(topic, *partition)?;
            Ok((TopicPartition::new(*topic, *partition), *epoch))
        };
        Elements::new(partitions, check, |_, error| Err(error)).required("partitions").ask(NAME, |epochs| {
            let call = move |done| epoch_ends(epochs, options.timeout, done).done(options.how());
            self.start(NAME, options.timeout, Ok(call))
        })
    }

    /// Describes topics by ID: a topic that was recreated under the same name has another one. Each ID has a result. Needs Kafka
    /// 3.1 or later.
    fn describe_topics_by_id, describe_topics_by_id_async(
        &self,
        ids: &[Uuid];
        options
    ) -> ItemResults<Uuid, TopicDescription> {
        const NAME: &str = "describe_topics_by_id";
        checked_topic_ids(ids).ask(NAME, |ids| {
            self.ask(NAME, options, Ok(ids), |ids, done| {
                describe_topics_by_id(ids, options.authorized_operations, options.timeout, done)
            })
        })
    }

    /// Deletes topics by ID, so that a topic that was recreated under the same name stays. Each ID has a result. Needs Kafka
    /// 2.8 or later.
    fn delete_topics_by_id, delete_topics_by_id_async(&self, ids: &[Uuid]; options) -> ItemResults<Uuid, ()> {
        const NAME: &str = "delete_topics_by_id";
        checked_topic_ids(ids).ask(NAME, |ids| {
            self.ask(NAME, options, Ok(ids), |ids, done| delete_topics_by_id(ids, options.timeout, done))
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
        const NAME: &str = "alter_replica_log_dirs";
        let check = |(key, path): &(&TopicPartition, &String)| {
            check_path(key, path).map(|()| ((*key).clone(), (*path).clone()))
        };
        let paths = Elements::new(paths, check, |(key, _), error| ((*key).clone(), Err(error)));
        paths.required("replicas").only_if(check_broker(broker)).ask(NAME, |paths| {
            let paths = paths.into_iter().collect();
            self.ask(NAME, options, Ok(paths), |paths, done| {
                alter_log_dirs(broker, paths, options.timeout, done)
            })
        })
    }
}

/// Returns the partitions of a filter that can exist, none twice. Error: the filter is empty.
fn possible(partitions: Option<&[(&str, i32)]>) -> Result<Option<Vec<TopicPartition>>> {
    let Some(partitions) = partitions else { return Ok(None) };
    if partitions.is_empty() {
        return Err(invalid("no partitions; name at least one"));
    }
    let mut names = Names::new();
    let possible = partitions.iter().filter(|one| names.check_partition(one.0, one.1).is_ok());
    Ok(Some(possible.map(|one| TopicPartition::new(one.0, one.1)).collect()))
}

fn check_broker(broker: i32) -> Result<()> {
    match broker {
        0.. => Ok(()),
        _ => Err(invalid(format!("broker {broker}; IDs of brokers are at least 0"))),
    }
}

/// Checks the brokers of a partition's replicas.
fn check_replicas(brokers: &[i32]) -> Result<()> {
    if brokers.is_empty() {
        return Err(invalid("no brokers; name at least one"));
    }
    let mut known = Names::new();
    brokers.iter().try_for_each(|broker| {
        check_broker(*broker).and_then(|()| known.add(&format!("broker {broker}"), *broker))
    })
}

fn check_reassignment(key: &TopicPartition, replicas: Option<&[i32]>) -> Result<()> {
    check_partition(&key.topic, key.partition)?;
    let Some(replicas) = replicas else { return Ok(()) };
    check_replicas(replicas).map_err(|error| error.with_partition(&*key.topic, key.partition))
}

fn check_path(key: &TopicPartition, path: &str) -> Result<()> {
    check_partition(&key.topic, key.partition)?;
    if path.starts_with('/') || path.get(1..2) == Some(":") {
        return Ok(());
    }
    let detail = format!("the path \"{path}\" is not absolute; use one that describe_log_dirs reports");
    Err(invalid(detail).with_partition(&*key.topic, key.partition))
}

/// Checks IDs, of which there must be some: one that is listed twice, or is zero, is refused.
fn checked_topic_ids<T: Send + 'static>(ids: &[Uuid]) -> Elements<Uuid, (Uuid, Result<T>)> {
    let mut known = Names::new();
    let check = |id: &&Uuid| match id.is_zero() {
        true => Err(invalid("the topic ID is zero, which stands for no topic")),
        false => known.add(&format!("topic ID {id}"), **id).map(|()| **id),
    };
    Elements::new(ids, check, |id, error| (**id, Err(error))).required("topic IDs")
}
