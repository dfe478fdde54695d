//! Applications that query the cluster beside the traffic, on the connections of their producers and consumers: first
//! and last offsets, cluster, topics and statistics. Each query completes within its timeout, and its result was true
//! at some time between query and response.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use ottla_core::{
    admin::{
        AdminCall,
        describe::{ClusterDescription, WhichTopics, describe},
    },
    cluster::command::Command,
    completion::{Waiting, completion},
    error::Error,
    machine::Instant,
    offsets::list_offsets::{OffsetQuery, OffsetResults, OffsetSpec},
    rng::Rng,
    stats::{Gather, Statistics},
};

use crate::{checkers::Broken, deadlines::is_over, world::World};

/// The application of a client that sends queries.
#[derive(Debug)]
pub struct Querier {
    client: usize,
    rng: Rng,
    /// It sends a query in one of this number of steps.
    every: u64,
    timeout: Duration,
    open: Vec<Query>,
}

/// The rate at which an application sends queries, and their timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queries {
    /// It sends a query in one of this number of steps; 0 is never.
    pub every: u64,
    /// The timeout of a query.
    pub timeout: Duration,
}

#[derive(Debug)]
struct Query {
    asked: Instant,
    timeout: Duration,
    result: Expected,
}

#[derive(Debug)]
enum Expected {
    Offsets(Vec<PartitionQuery>, Waiting<OffsetResults>),
    Cluster(Waiting<Result<ClusterDescription, Error>>),
    Statistics(Waiting<Statistics>),
}

/// A partition with its state at the time of the query.
#[derive(Clone, Debug)]
struct PartitionQuery {
    topic: (u32, Arc<str>),
    partition: i32,
    spec: OffsetSpec,
    then: Option<Bounds>,
}

/// The log's offsets as consumers see them, and the number of changes by anything but producers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bounds {
    start: i64,
    end: i64,
    changes: u64,
}

/// A constant that keeps the traces of the seeds named in tests and documents.
const QUESTIONS: u64 = 0x8848cb;

impl Queries {
    /// No queries.
    pub const NONE: Self = Self { every: 0, timeout: Duration::ZERO };

    /// Draws the habits; three of four worlds have no queries.
    pub fn from_seed(seed: u64) -> Self {
        let mut rng = Rng::from_seed(seed ^ QUESTIONS);
        if !rng.chance(1, 4) {
            return Self::NONE;
        }
        let mut pick = |choices: &[u64]| choices[rng.below(choices.len() as u64) as usize];
        Self { every: pick(&[20, 100, 500]), timeout: Duration::from_millis(pick(&[100, 1_000, 10_000])) }
    }
}

impl Querier {
    /// Creates the application of a client in the world of a seed.
    pub fn new(habits: Queries, seed: u64, client: usize) -> Self {
        let Queries { every, timeout } = habits;
        let rng = Rng::from_seed(seed ^ QUESTIONS ^ ((client as u64 + 1) << 32));
        Self { client, rng, every, timeout, open: Vec::new() }
    }

    /// Returns true if no response is pending.
    pub fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    /// Checks the responses, and sends a new query where it `may`.
    pub fn step(
        &mut self,
        world: &mut World,
        topics: &[(String, i32)],
        brokers: i32,
        may: bool,
    ) -> Result<(), Broken> {
        let name = format!("client {}", self.client);
        let mut index = 0;
        while index < self.open.len() {
            let query = &mut self.open[index];
            let what = query.result.what();
            match query.result.check(world, topics, brokers) {
                Poll::Ready(Some(Ok(()))) => drop(self.open.swap_remove(index)),
                Poll::Ready(Some(Err(wrong))) => {
                    return Err(Broken::new("queries", format!("{name} queried {what}: {wrong}")));
                }
                // A closed client sends no more responses.
                Poll::Ready(None) if world.clients[self.client].closing => drop(self.open.swap_remove(index)),
                Poll::Ready(None) => {
                    return Err(Broken::new("liveness", format!("{name} dropped its query of {what}")));
                }
                // A query reaches the client when its host is awake.
                Poll::Pending if is_over(world, self.client, query.asked, query.timeout) => {
                    return Err(Broken::new(
                        "liveness",
                        format!("{name} did not complete its query of {what}"),
                    ));
                }
                Poll::Pending => index += 1,
            }
        }
        if may && self.every > 0 && self.rng.chance(1, self.every) && !world.clients[self.client].closed {
            self.ask(world, topics);
        }
        Ok(())
    }
}

impl Querier {
    fn ask(&mut self, world: &mut World, topics: &[(String, i32)]) {
        let commands = Arc::clone(&world.clients[self.client].commands);
        let timeout = self.timeout;
        let (timeout, result) = match self.rng.below(4) {
            0 => {
                let (done, waiting) = completion();
                commands.push(Command::Admin(describe(WhichTopics::All, timeout, done)));
                (timeout, Expected::Cluster(waiting))
            }
            1 => {
                let (done, waiting) = completion();
                commands.push(Command::Statistics(Arc::new(Gather::for_caller(done))));
                // These results come from the client alone, without a request.
                (Duration::ZERO, Expected::Statistics(waiting))
            }
            _ => {
                let places: Vec<PartitionQuery> =
                    (0..1 + self.rng.below(3)).map(|_| self.draw_place(world, topics)).collect();
                let query = |place: &PartitionQuery| {
                    ((Arc::clone(&place.topic.1), place.partition).into(), place.spec)
                };
                let query = OffsetQuery {
                    questions: places.iter().map(query).collect(),
                    timeout,
                    read_committed: self.rng.chance(1, 2),
                    refusals: None,
                };
                let (done, waiting) = completion();
                commands.push(Command::Admin(AdminCall::list_offsets(query, done)));
                (timeout, Expected::Offsets(places, waiting))
            }
        };
        world.trace.note(world.now, format_args!("client {} queries {}", self.client, result.what()));
        self.open.push(Query { asked: world.now, timeout, result });
    }

    fn draw_place(&mut self, world: &mut World, topics: &[(String, i32)]) -> PartitionQuery {
        let index = self.rng.below(topics.len() as u64) as u32;
        let (topic, partitions) = &topics[index as usize];
        let partition = self.rng.below(*partitions as u64) as i32;
        let spec = [OffsetSpec::Earliest, OffsetSpec::Latest][self.rng.below(2) as usize];
        let topic = (index, Arc::from(topic.as_str()));
        let then = bounds(world, &topic, partition);
        PartitionQuery { topic, partition, spec, then }
    }
}

impl Expected {
    const fn what(&self) -> &'static str {
        match self {
            Self::Offsets(..) => "offsets",
            Self::Cluster(_) => "the cluster",
            Self::Statistics(_) => "statistics",
        }
    }

    /// Returns the error in the response, if there is a response.
    fn check(&mut self, world: &mut World, topics: &[(String, i32)], brokers: i32) -> Poll<Given> {
        match self {
            Self::Offsets(places, waiting) => take(waiting).map(|results| {
                let results = results?;
                if results.len() != places.len() {
                    return Some(Err(format!("{} results for {} partitions", results.len(), places.len())));
                }
                let wrong = places.iter().zip(results).find_map(|(place, result)| {
                    let offset = result.ok()?.offset;
                    let now = bounds(world, &place.topic, place.partition);
                    place.contradiction(now, offset)
                });
                Some(wrong.map_or(Ok(()), Err))
            }),
            Self::Cluster(waiting) => take(waiting).map(|result| {
                let Ok(cluster) = result? else { return Some(Ok(())) };
                let known = |id: i32| (1..=brokers).contains(&id);
                if let Some(broker) = cluster.brokers.iter().find(|broker| !known(broker.id)) {
                    return Some(Err(format!("there is no such broker: {broker:?}")));
                }
                let wrong = cluster.topics.iter().find_map(|topic| {
                    let partitions =
                        topics.iter().find(|(name, _)| *name == topic.name).map(|(_, count)| *count);
                    let Some(partitions) = partitions else {
                        return Some(format!("no such topic: {topic:?}"));
                    };
                    let leads = topic.partitions.iter().all(|partition| partition.leader.is_none_or(known));
                    let complete = topic.error.is_some() || topic.partitions.len() == partitions as usize;
                    (!leads || !complete).then(|| format!("the topic has {partitions} partitions: {topic:?}"))
                });
                Some(wrong.map_or(Ok(()), Err))
            }),
            Self::Statistics(waiting) => take(waiting).map(|statistics| {
                let statistics = statistics?;
                let sums = statistics.topics.values().flat_map(|topic| topic.partitions.values());
                let negative = sums.clone().any(|partition| {
                    [partition.msgq_cnt, partition.xmit_msgq_cnt, partition.msgs_inflight]
                        .iter()
                        .any(|n| *n < 0)
                });
                Some(if negative { Err("a count below zero".to_owned()) } else { Ok(()) })
            }),
        }
    }
}

/// `None` if there will be no response, else the result of its check.
type Given = Option<Result<(), String>>;

impl PartitionQuery {
    /// Returns how an offset contradicts the log, if only producers changed the log in the meantime.
    fn contradiction(&self, now: Option<Bounds>, offset: Option<i64>) -> Option<String> {
        let (then, now) = (self.then?, now?);
        let allowed = match self.spec {
            OffsetSpec::Earliest => then.start..=now.start,
            _ => then.end..=now.end,
        };
        (then.changes == now.changes && !offset.is_some_and(|offset| allowed.contains(&offset))).then(|| {
            format!(
                "{:?} of {} [{}] is reported as {offset:?}, but was in {allowed:?}",
                self.spec, self.topic.1, self.partition
            )
        })
    }
}

/// Returns the current offsets of a partition's log, if it exists.
fn bounds(world: &mut World, (index, topic): &(u32, Arc<str>), partition: i32) -> Option<Bounds> {
    let changes = world.history.changes_of(*index, partition);
    let state = world.cluster.control().partition(topic, partition)?;
    Some(Bounds { start: state.log_start_offset, end: state.high_watermark, changes })
}

/// Takes the response, or the notice that there will be none.
fn take<T>(waiting: &mut Waiting<T>) -> Poll<Option<T>> {
    Pin::new(waiting).poll(&mut Context::from_waker(Waker::noop()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(spec: OffsetSpec, start: i64, end: i64) -> PartitionQuery {
        let then = Some(Bounds { start, end, changes: 1 });
        PartitionQuery { topic: (0, Arc::from("t0")), partition: 0, spec, then }
    }

    #[test]
    fn end_offset_may_be_any_between_query_and_result() {
        let (last, now) = (place(OffsetSpec::Latest, 3, 7), Some(Bounds { start: 3, end: 9, changes: 1 }));
        assert!((7..=9).all(|offset| last.contradiction(now, Some(offset)).is_none()));
        assert!([3, 6, 10].into_iter().all(|offset| last.contradiction(now, Some(offset)).is_some()));
    }

    #[test]
    fn beginning_does_not_move() {
        let first = place(OffsetSpec::Earliest, 3, 7);
        let now = Bounds { start: 3, end: 9, changes: 1 };
        assert_eq!(first.contradiction(Some(now), Some(3)), None);
        assert!([2, 4, 7].into_iter().all(|offset| first.contradiction(Some(now), Some(offset)).is_some()));
        assert_eq!(first.contradiction(Some(Bounds { changes: 2, ..now }), Some(0)), None, "it was changed");
        assert_eq!(first.contradiction(None, Some(0)), None, "the topic was deleted");
    }
}
