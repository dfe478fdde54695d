//! Applications that ask beside the traffic, on the connections of their producers and consumers: for the first and the last
//! offset of partitions, for the cluster and its topics, for what the client counted. Each question is answered within its
//! time, and what is told was true at some moment between question and answer.

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
    fetch::offsets::{OffsetAnswers, OffsetQuery, OffsetSpec},
    machine::Instant,
    rng::Rng,
    stats::{Gather, Statistics},
};

use crate::{checkers::Broken, impatience::is_over, world::World};

/// What the application of a client asks.
#[derive(Debug)]
pub struct Asker {
    client: usize,
    rng: Rng,
    /// It asks in one of so many steps.
    every: u64,
    patience: Duration,
    open: Vec<Question>,
}

/// Asks about in one of so many steps, with so much patience; 0 steps are never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Curiosity {
    /// In one of so many steps; 0 is never.
    pub every: u64,
    /// How long a question may take.
    pub patience: Duration,
}

#[derive(Debug)]
struct Question {
    asked: Instant,
    patience: Duration,
    answer: Answer,
}

#[derive(Debug)]
enum Answer {
    Offsets(Vec<Place>, Waiting<OffsetAnswers>),
    Cluster(Waiting<Result<ClusterDescription, Error>>),
    Statistics(Waiting<Statistics>),
}

/// A partition, as it was when it was asked about.
#[derive(Clone, Debug)]
struct Place {
    topic: (u32, Arc<str>),
    partition: i32,
    spec: OffsetSpec,
    then: Option<Bounds>,
}

/// Where a log begins and ends for consumers, and how often others than producers changed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bounds {
    start: i64,
    end: i64,
    changes: u64,
}

/// Of the constants that would do, one that keeps the stories of the seeds that are named somewhere.
const QUESTIONS: u64 = 0x8848cb;

impl Curiosity {
    /// Nothing is asked.
    pub const NONE: Self = Self { every: 0, patience: Duration::ZERO };

    /// Draws the habits; in three of four worlds nothing is asked.
    pub fn from_seed(seed: u64) -> Self {
        let mut rng = Rng::from_seed(seed ^ QUESTIONS);
        if !rng.chance(1, 4) {
            return Self::NONE;
        }
        let mut pick = |choices: &[u64]| choices[rng.below(choices.len() as u64) as usize];
        Self { every: pick(&[20, 100, 500]), patience: Duration::from_millis(pick(&[100, 1_000, 10_000])) }
    }
}

impl Asker {
    /// The application of a client in the world of a seed.
    pub fn new(habits: Curiosity, seed: u64, client: usize) -> Self {
        let Curiosity { every, patience } = habits;
        let rng = Rng::from_seed(seed ^ QUESTIONS ^ ((client as u64 + 1) << 32));
        Self { client, rng, every, patience, open: Vec::new() }
    }

    /// True if it waits for no answer.
    pub fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    /// Looks at the answers, and asks something new where it `may`.
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
            let question = &mut self.open[index];
            let what = question.answer.what();
            match question.answer.check(world, topics, brokers) {
                Poll::Ready(Some(Ok(()))) => drop(self.open.swap_remove(index)),
                Poll::Ready(Some(Err(wrong))) => {
                    return Err(Broken::new("answers", format!("{name} was asked for {what}: {wrong}")));
                }
                // Whoever closes answers nothing more.
                Poll::Ready(None) if world.clients[self.client].closing => drop(self.open.swap_remove(index)),
                Poll::Ready(None) => {
                    return Err(Broken::new("liveness", format!("{name} will not answer with {what}")));
                }
                // A question is heard when the host is awake.
                Poll::Pending if is_over(world, self.client, question.asked, question.patience) => {
                    return Err(Broken::new("liveness", format!("{name} did not answer with {what}")));
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

impl Asker {
    fn ask(&mut self, world: &mut World, topics: &[(String, i32)]) {
        let commands = Arc::clone(&world.clients[self.client].commands);
        let patience = self.patience;
        let (patience, answer) = match self.rng.below(4) {
            0 => {
                let (done, waiting) = completion();
                commands.push(Command::Admin(describe(WhichTopics::All, patience, done)));
                (patience, Answer::Cluster(waiting))
            }
            1 => {
                let (done, waiting) = completion();
                commands.push(Command::Statistics(Arc::new(Gather::for_caller(done))));
                // Nobody outside is asked.
                (Duration::ZERO, Answer::Statistics(waiting))
            }
            _ => {
                let places: Vec<Place> =
                    (0..1 + self.rng.below(3)).map(|_| self.draw_place(world, topics)).collect();
                let question = |place: &Place| (Arc::clone(&place.topic.1), place.partition, place.spec);
                let query = OffsetQuery {
                    questions: places.iter().map(question).collect(),
                    timeout: patience,
                    read_committed: self.rng.chance(1, 2),
                };
                let (done, waiting) = completion();
                commands.push(Command::Admin(AdminCall::list_offsets(query, done)));
                (patience, Answer::Offsets(places, waiting))
            }
        };
        world.trace.note(world.now, format_args!("client {} is asked for {}", self.client, answer.what()));
        self.open.push(Question { asked: world.now, patience, answer });
    }

    fn draw_place(&mut self, world: &mut World, topics: &[(String, i32)]) -> Place {
        let index = self.rng.below(topics.len() as u64) as u32;
        let (topic, partitions) = &topics[index as usize];
        let partition = self.rng.below(*partitions as u64) as i32;
        let spec = [OffsetSpec::Earliest, OffsetSpec::Latest][self.rng.below(2) as usize];
        let topic = (index, Arc::from(topic.as_str()));
        let then = bounds(world, &topic, partition);
        Place { topic, partition, spec, then }
    }
}

impl Answer {
    const fn what(&self) -> &'static str {
        match self {
            Self::Offsets(..) => "offsets",
            Self::Cluster(_) => "the cluster",
            Self::Statistics(_) => "statistics",
        }
    }

    /// What is wrong with the answer, if it is there.
    fn check(&mut self, world: &mut World, topics: &[(String, i32)], brokers: i32) -> Poll<Given> {
        match self {
            Self::Offsets(places, waiting) => take(waiting).map(|answers| {
                let answers = answers?;
                if answers.len() != places.len() {
                    return Some(Err(format!("{} answers to {} questions", answers.len(), places.len())));
                }
                let wrong = places.iter().zip(answers).find_map(|(place, answer)| {
                    let offset = answer.ok()?.offset;
                    let now = bounds(world, &place.topic, place.partition);
                    place.contradiction(now, offset)
                });
                Some(wrong.map_or(Ok(()), Err))
            }),
            Self::Cluster(waiting) => take(waiting).map(|answer| {
                let Ok(cluster) = answer? else { return Some(Ok(())) };
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
                    (!leads || !complete).then(|| format!("{partitions} partitions were made: {topic:?}"))
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

/// Nothing if there will be no answer, else whether it may be true.
type Given = Option<Result<(), String>>;

impl Place {
    /// What an offset that was told contradicts, where the log was only appended to meanwhile.
    fn contradiction(&self, now: Option<Bounds>, offset: i64) -> Option<String> {
        let (then, now) = (self.then?, now?);
        let allowed = match self.spec {
            OffsetSpec::Earliest => then.start..=now.start,
            _ => then.end..=now.end,
        };
        (then.changes == now.changes && !allowed.contains(&offset)).then(|| {
            format!(
                "{:?} of {} [{}] is told as {offset}, and was in {allowed:?}",
                self.spec, self.topic.1, self.partition
            )
        })
    }
}

/// Where a partition's log begins and ends now, if there is one.
fn bounds(world: &mut World, (index, topic): &(u32, Arc<str>), partition: i32) -> Option<Bounds> {
    let changes = world.history.changes_of(*index, partition);
    let state = world.cluster.control().partition(topic, partition)?;
    Some(Bounds { start: state.log_start_offset, end: state.high_watermark, changes })
}

/// The answer, or that there will be none.
fn take<T>(waiting: &mut Waiting<T>) -> Poll<Option<T>> {
    Pin::new(waiting).poll(&mut Context::from_waker(Waker::noop()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(spec: OffsetSpec, start: i64, end: i64) -> Place {
        let then = Some(Bounds { start, end, changes: 1 });
        Place { topic: (0, Arc::from("t0")), partition: 0, spec, then }
    }

    #[test]
    fn the_end_may_have_been_anywhere_between_question_and_answer() {
        let (last, now) = (place(OffsetSpec::Latest, 3, 7), Some(Bounds { start: 3, end: 9, changes: 1 }));
        assert!((7..=9).all(|offset| last.contradiction(now, offset).is_none()));
        assert!([3, 6, 10].into_iter().all(|offset| last.contradiction(now, offset).is_some()));
    }

    #[test]
    fn the_beginning_is_where_it_was() {
        let first = place(OffsetSpec::Earliest, 3, 7);
        let now = Bounds { start: 3, end: 9, changes: 1 };
        assert_eq!(first.contradiction(Some(now), 3), None);
        assert!([2, 4, 7].into_iter().all(|offset| first.contradiction(Some(now), offset).is_some()));
        assert_eq!(first.contradiction(Some(Bounds { changes: 2, ..now }), 0), None, "it was changed");
        assert_eq!(first.contradiction(None, 0), None, "the topic is gone");
    }
}
