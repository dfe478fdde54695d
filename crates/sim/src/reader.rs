//! The consuming application: it reads, seeks, pauses, resumes, and changes its assignment while faults happen.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Wake, Waker},
};

use ottla_core::{
    cluster::command::{Command, CommandQueue},
    completion::{Waiting, completion},
    config::{OffsetReset, TopicRecreatePolicy},
    error::{Error, ErrorKind},
    fetch::{
        deliver::{ConsumerEvent, Message, Next, RecordCursor, Records},
        position::Offset,
        queue::FetchQueue,
        shared::ConsumerShared,
    },
    rng::Rng,
    waiters::Waiter,
};
use ottla_embedded_broker::Cluster;
use ottla_protocol::vocabulary::TopicPartition;
use ottla_sorted::SortedMap;

use crate::{
    checkers::{
        Broken,
        consume::{Expected, Progress},
        log::Change,
    },
    workload::parse_value,
};

/// A consumer and the records that it read.
#[derive(Debug)]
pub struct Reader {
    /// Its number.
    pub number: u32,
    /// The client's index in the world.
    pub client: usize,
    /// The consumer's shared half.
    pub shared: Arc<ConsumerShared>,
    habits: Habits,
    topics: Vec<Arc<str>>,
    partitions: SortedMap<(u32, i32), Progress>,
    /// Seeks whose offset is unknown.
    seeks: SortedMap<(u32, i32), Waiting<Result<i64, Error>>>,
    cursor: RecordCursor,
    bell: Arc<Bell>,
    waiter: Waiter<FetchQueue>,
    asleep: bool,
    records: u64,
    /// The errors that the client reported, the latest last.
    errors: Vec<String>,
}

/// How an application reads.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    /// It sleeps until it is woken; else it polls.
    pub sleeps: bool,
    /// The percentage of cases in which it reads one record; else it reads all that are available.
    pub single_percent: u64,
    /// It seeks, pauses and so on about once in this number of steps.
    pub restless: u64,
}

#[derive(Debug, Default)]
struct Bell(AtomicBool);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Reader {
    /// Creates a consumer of these partitions; none is assigned at first.
    pub fn new(
        number: u32,
        client: usize,
        shared: Arc<ConsumerShared>,
        habits: Habits,
        topics: &[(String, i32)],
        share: impl Fn(u32, i32) -> bool,
    ) -> Self {
        let mut partitions = SortedMap::new();
        for (index, (topic, count)) in topics.iter().enumerate() {
            for partition in (0..*count).filter(|partition| share(index as u32, *partition)) {
                let name = format!("consumer {number}: {topic} [{partition}]");
                partitions.insert((index as u32, partition), Progress::new(name));
            }
        }
        Self {
            number,
            client,
            shared,
            habits,
            topics: topics.iter().map(|(name, _)| Arc::from(name.as_str())).collect(),
            partitions,
            seeks: SortedMap::new(),
            cursor: RecordCursor::default(),
            bell: Arc::default(),
            waiter: Waiter::default(),
            asleep: false,
            records: 0,
            errors: Vec::new(),
        }
    }

    /// Returns the state of each partition.
    pub fn partitions(&self) -> impl Iterator<Item = (&(u32, i32), &Progress)> {
        self.partitions.iter()
    }

    /// Returns the number of records that it received.
    pub const fn records(&self) -> u64 {
        self.records
    }

    /// Returns the errors that the client reported.
    pub fn errors(&self) -> &[String] {
        &self.errors
    }

    /// Assigns about `percent` of its partitions, each at a random position.
    pub fn assign(&mut self, cluster: &mut Cluster, commands: &CommandQueue, percent: u64, rng: &mut Rng) {
        let mut list = Vec::new();
        self.seeks.clear();
        let keys: Vec<_> = self.partitions.keys().copied().collect();
        for key in keys {
            if rng.chance(percent, 100) {
                let (place, expected) = self.some_place(cluster, key, rng);
                list.push((TopicPartition::new(Arc::clone(&self.topics[key.0 as usize]), key.1), place));
                self.progress(key).start(expected);
            } else {
                self.progress(key).stop();
            }
        }
        for command in self.shared.assign(&list) {
            commands.push(Command::Fetch(command));
        }
    }

    /// Acts as applications do, then reads.
    pub fn step(
        &mut self,
        cluster: &mut Cluster,
        commands: &CommandQueue,
        rng: &mut Rng,
    ) -> Result<(), Broken> {
        if rng.chance(1, self.habits.restless) {
            self.act(cluster, commands, rng);
        }
        self.poll(commands, rng)
    }

    /// Handles a change of a log.
    pub fn changed(&mut self, change: Change) {
        let to_end = self.shared.settings.auto_offset_reset == OffsetReset::End;
        match change {
            Change::Start(topic, partition, start) => {
                if let Some(progress) = self.partitions.get_mut(&(topic, partition)) {
                    progress.deleted(start, to_end);
                }
            }
            Change::Cut(topic, partition) => {
                if let Some(progress) = self.partitions.get_mut(&(topic, partition)) {
                    progress.cut();
                }
            }
        }
    }

    /// Starts to read all partitions to the end after all faults have healed, some again from the beginning.
    pub fn settle(&mut self, cluster: &mut Cluster, commands: &CommandQueue, rng: &mut Rng) {
        let again = rng.chance(1, 2);
        let may_restart = self.shared.settings.topic_recreate == TopicRecreatePolicy::Reset;
        let keys: Vec<_> = self.partitions.keys().copied().collect();
        for key in keys {
            let topic = &self.topics[key.0 as usize];
            let start = cluster.control().partition(topic, key.1).map_or(0, |state| state.log_start_offset);
            let progress = self.progress(key);
            if progress.is_assigned() && progress.is_paused() {
                self.resume(key);
            }
            let changed = self.progress(key).is_changed();
            if changed {
                self.progress(key).renew(start, may_restart);
            }
            if !self.progress(key).is_assigned() {
                self.add(key, Offset::Beginning, Expected::At(start), commands);
            } else if again || changed || self.progress(key).next().is_none() {
                self.seek(key, Offset::Beginning, Expected::At(start), commands);
            }
        }
    }

    /// Reads the available records.
    pub fn poll(&mut self, commands: &CommandQueue, rng: &mut Rng) -> Result<(), Broken> {
        let located: Vec<_> = self
            .seeks
            .iter()
            .filter_map(|(key, waiting)| waiting.try_take().map(|response| (*key, response)))
            .collect();
        for (key, response) in located {
            self.seeks.remove(&key);
            match response {
                Ok(offset) => self.progress(key).located(offset)?,
                // The topic was recreated, or the lookup timed out: the application tries the beginning.
                Err(_) => {
                    let expected = self.beginning(key);
                    self.seek(key, Offset::Beginning, expected, commands);
                }
            }
        }
        if self.asleep && self.habits.sleeps && !self.bell.0.swap(false, Ordering::SeqCst) {
            return Ok(());
        }
        let mut events = Vec::new();
        if rng.chance(self.habits.single_percent, 100) {
            self.read_singly(1 + rng.below(20), &mut events)?;
        } else {
            let enough = [1, 2_000, 1 << 20][rng.below(3) as usize];
            self.read_much(enough, &mut events)?;
        }
        for event in events {
            if let ConsumerEvent::Error(error) = &event {
                self.errors.push(error.to_string());
            }
            match event {
                ConsumerEvent::EndOfPartition { topic, partition, offset, .. } => {
                    if let Some(key) = self.key(&topic, partition) {
                        self.progress(key).ended(offset)?;
                    }
                }
                // There is no such offset, or the topic was recreated: the application decides where to read.
                ConsumerEvent::Error(error)
                    if matches!(error.kind(), ErrorKind::OffsetReset | ErrorKind::TopicRecreated) =>
                {
                    let context = error.context();
                    let key = context
                        .topic
                        .as_ref()
                        .zip(context.partition)
                        .and_then(|(topic, partition)| self.key(topic, partition));
                    if let Some(key) = key.filter(|key| self.partitions[key].is_assigned()) {
                        let expected = self.beginning(key);
                        self.seek(key, Offset::Beginning, expected, commands);
                    }
                }
                _ => {}
            }
        }
        let waker = Waker::from(Arc::clone(&self.bell));
        self.asleep = self.shared.queue.register(&mut self.waiter, &waker);
        Ok(())
    }

    /// Returns true if everything was read.
    pub fn is_done(&self, cluster: &mut Cluster) -> bool {
        self.behind(cluster).is_none()
    }

    /// Returns a partition that was not read to its end: topic, number, next offset, end offset and high watermark.
    pub fn behind(&self, cluster: &mut Cluster) -> Option<(String, i32, Option<i64>, i64, i64)> {
        self.partitions.iter().find_map(|((topic, partition), progress)| {
            let topic = &self.topics[*topic as usize];
            // The followers are in reach again, so all records of the log will become visible.
            let state = cluster.control().partition(topic, *partition);
            let (end, visible) = state.map_or((0, 0), |state| (state.log_end_offset, state.high_watermark));
            let behind = progress.next() != Some(end);
            behind.then(|| (topic.to_string(), *partition, progress.next(), end, visible))
        })
    }

    fn read_much(&mut self, enough: usize, events: &mut Vec<ConsumerEvent>) -> Result<(), Broken> {
        let mut records = Records::default();
        self.cursor.take(&mut records, &self.shared.queue);
        self.shared.queue.take(enough, &mut records);
        for message in &records {
            self.take(message.topic(), message.partition(), message.offset(), message.value())?;
        }
        for (fetched, _) in records.pieces() {
            self.check_position(fetched.topic(), fetched.partition())?;
        }
        events.extend_from_slice(records.events());
        Ok(())
    }

    fn read_singly(&mut self, count: u64, events: &mut Vec<ConsumerEvent>) -> Result<(), Broken> {
        let queue = Arc::clone(&self.shared.queue);
        for _ in 0..count {
            let next = self.cursor.next(&queue).or_else(|| {
                let mut records = Records::default();
                queue.take_without_position(1, &mut records);
                self.cursor.push(records);
                self.cursor.next(&queue)
            });
            match next {
                Some(Next::Message(message)) => self.take_message(&message)?,
                Some(Next::Event(event)) => events.push(event),
                None => return Ok(()),
            }
        }
        // The application polls again on its own: a partly read queue sends no notification.
        self.bell.0.store(true, Ordering::SeqCst);
        Ok(())
    }

    fn take_message(&mut self, message: &Message) -> Result<(), Broken> {
        self.take(message.topic(), message.partition(), message.offset(), message.value())?;
        self.check_position(message.topic(), message.partition())
    }

    fn take(&mut self, topic: &str, partition: i32, offset: i64, value: Option<&[u8]>) -> Result<(), Broken> {
        let who = value.and_then(parse_value);
        let (Some(key), Some(who)) = (self.key(topic, partition), who) else {
            let what = format!(
                "consumer {}: {topic} [{partition}] {offset} is the record of no producer",
                self.number
            );
            return Err(Broken::new("consume", what));
        };
        self.records += 1;
        self.progress(key).record(offset, who)
    }

    fn check_position(&self, topic: &str, partition: i32) -> Result<(), Broken> {
        let Some(progress) = self.key(topic, partition).and_then(|key| self.partitions.get(&key)) else {
            return Ok(());
        };
        let position = self.shared.partition(topic, partition).ok().and_then(|handle| handle.position());
        progress.positioned(position)
    }

    /// Does something that applications do.
    fn act(&mut self, cluster: &mut Cluster, commands: &CommandQueue, rng: &mut Rng) {
        let Some(key) = self.some_partition(rng) else { return };
        let is_assigned = self.progress(key).is_assigned();
        match rng.below(20) {
            0..=5 if is_assigned => {
                let (place, expected) = self.some_place(cluster, key, rng);
                self.seek(key, place, expected, commands);
            }
            6..=9 if is_assigned => {
                let topic = Arc::clone(&self.topics[key.0 as usize]);
                if self.shared.pause(&[TopicPartition::new(&*topic, key.1)]).is_ok() {
                    self.progress(key).set_paused(true);
                }
            }
            10..=15 => {
                let paused = self.partitions.iter().filter(|(_, progress)| progress.is_paused());
                let paused: Vec<_> = paused.map(|(key, _)| *key).collect();
                if let Some(key) = paused.get(rng.below(paused.len() as u64) as usize) {
                    self.resume(*key);
                }
            }
            16 => self.assign(cluster, commands, 70, rng),
            17 if is_assigned => {
                let topic = Arc::clone(&self.topics[key.0 as usize]);
                if let Ok(command) = self.shared.incremental_unassign(&[TopicPartition::new(topic, key.1)]) {
                    commands.push(Command::Fetch(command));
                    self.progress(key).stop();
                    self.seeks.remove(&key);
                }
            }
            18..=19 if !is_assigned => {
                let (place, expected) = self.some_place(cluster, key, rng);
                self.add(key, place, expected, commands);
            }
            _ => {}
        }
    }

    fn add(&mut self, key: (u32, i32), place: Offset, expected: Expected, commands: &CommandQueue) {
        let topic = Arc::clone(&self.topics[key.0 as usize]);
        commands.push(Command::Fetch(
            self.shared.incremental_assign(&[(TopicPartition::new(topic, key.1), place)]),
        ));
        self.progress(key).start(expected);
    }

    fn seek(&mut self, key: (u32, i32), place: Offset, expected: Expected, commands: &CommandQueue) {
        let topic = Arc::clone(&self.topics[key.0 as usize]);
        // A given offset is not looked up; it may turn out to be out of range later.
        let (done, waiting) = completion();
        let asked = !matches!(place, Offset::At(_));
        self.seeks.remove(&key);
        match self.shared.seek(&topic, key.1, place, asked.then_some(done)) {
            Ok(command) => {
                commands.push(Command::Fetch(command));
                self.progress(key).start(expected);
                if asked {
                    self.seeks.insert(key, waiting);
                }
            }
            Err(_) => self.progress(key).stop(),
        }
    }

    fn resume(&mut self, key: (u32, i32)) {
        let topic = Arc::clone(&self.topics[key.0 as usize]);
        if self.shared.resume(&[TopicPartition::new(&*topic, key.1)]).is_ok() {
            self.progress(key).set_paused(false);
        }
    }

    /// Returns where the beginning of a partition may be.
    fn beginning(&mut self, key: (u32, i32)) -> Expected {
        self.progress(key).beginning()
    }

    /// Returns a position, and the offsets that it may resolve to.
    fn some_place(&mut self, cluster: &mut Cluster, key: (u32, i32), rng: &mut Rng) -> (Offset, Expected) {
        let topic = &self.topics[key.0 as usize];
        let end = cluster.control().partition(topic, key.1).map_or(0, |state| state.high_watermark);
        let changed = self.progress(key).is_changed();
        let from = |from: i64| Expected::Within { exact: Vec::new(), from };
        match rng.below(10) {
            0..=2 => (Offset::Beginning, self.beginning(key)),
            3..=5 => {
                let offset = rng.below(end as u64 + 1) as i64;
                (Offset::At(offset), Expected::At(offset))
            }
            6 => {
                let offset = end + 1 + rng.below(5) as i64;
                let expected = match self.shared.settings.auto_offset_reset {
                    OffsetReset::Beginning if changed => from(0),
                    OffsetReset::Beginning => Expected::Within { exact: vec![0], from: offset },
                    OffsetReset::End => from(end),
                    OffsetReset::Error | OffsetReset::Since(_) => Expected::At(offset),
                };
                (Offset::At(offset), expected)
            }
            7 => (Offset::End, from(end)),
            8 => {
                let count = rng.below(20) as i64;
                (Offset::Tail(count), from((end - count).max(0)))
            }
            _ => (Offset::Timestamp(1_700_000_000_000 + rng.below(60_000) as i64), from(0)),
        }
    }

    fn some_partition(&self, rng: &mut Rng) -> Option<(u32, i32)> {
        self.partitions.keys().nth(rng.below(self.partitions.len() as u64) as usize).copied()
    }

    fn progress(&mut self, key: (u32, i32)) -> &mut Progress {
        // The keys come from this map.
        self.partitions.entry(key).or_insert_with(|| Progress::new(format!("{key:?}")))
    }

    fn key(&self, topic: &str, partition: i32) -> Option<(u32, i32)> {
        let index = self.topics.iter().position(|known| **known == *topic)?;
        self.partitions.contains_key(&(index as u32, partition)).then_some((index as u32, partition))
    }
}
