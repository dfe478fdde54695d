//! Copies: polls the source, sends to the target, commits both in one transaction.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ottla::{
    Config, Consumer, ConsumerEvent, ConsumerGroupMetadata, GroupOffset, MessageRef, Offset, Producer,
    Record, Records, Topic, TopicPartition, Transaction,
};
use ottla_sorted::SortedMap;

use super::CopyOptions;
use super::targets::{Copy, Part};
use crate::client_options::{ClientOptions, call_timeout, print_warnings};
use crate::commands::consume::is_final;
use crate::events::{EventPrinter, EventWatch, describe};
use crate::failure::{Failure, Outcome};
use crate::perf::pace::Pace;
use crate::progress::Progress;
use crate::records::Filter;
use crate::sending::Sending;
use crate::signals::Interrupt;
use crate::standard_error::note;

/// A transaction is committed after this time.
const INTERVAL: Duration = Duration::from_secs(1);
/// The time for the end of a transaction.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(60);

/// The cluster that is read.
#[derive(Debug)]
pub struct Source {
    /// Its consumer.
    pub consumer: Consumer,
    watch: EventWatch,
}

impl Source {
    /// Connects to the cluster.
    ///
    /// # Errors
    ///
    /// The options are wrong, or no broker responds.
    pub fn open(client: &ClientOptions) -> Outcome<Source> {
        let mut config = client.config()?;
        config.set("enable.partition.eof", "true")?;
        config.set("enable.auto.commit", "false")?;
        // A position that is gone must not be skipped.
        config.set("auto.offset.reset", "error")?;
        let consumer = Consumer::new(&config)?;
        print_warnings(consumer.warnings());
        let watch = EventWatch::start(consumer.admin());
        watch.wait_for_broker(client.timeout())?;
        Ok(Source { consumer, watch })
    }
}

/// A partition that is being copied.
#[derive(Debug)]
struct Open {
    topic: Topic,
    part: Part,
}

struct Session<'a> {
    options: &'a CopyOptions,
    filter: Option<Filter>,
    stop_ms: Option<i64>,
    /// The partitions that have not reached the point to stop at.
    open: SortedMap<TopicPartition, Open>,
    /// The next offset of each partition since the last commit, by the partition of the target.
    read: SortedMap<TopicPartition, i64>,
    marks: SortedMap<String, String>,
    sending: Sending,
    interrupt: Interrupt,
    pace: Option<Pace>,
    sent: Arc<AtomicU64>,
}

/// Runs the command.
///
/// # Errors
///
/// A partition can't be read, or the target does not accept a record. What was committed stays.
pub fn run(
    options: &CopyOptions,
    source: Source,
    target: &ClientOptions,
    mut copy: Copy,
    filter: Option<Filter>,
) -> Outcome {
    let config = producer_config(options, target)?;
    let producer = Producer::new(&config)?;
    print_warnings(producer.warnings());
    let _target_watch = EventWatch::start(producer.admin());
    let Source { consumer, watch } = source;
    let events = watch.into_printer();
    let interrupt = Interrupt::catch()?;
    let sending = Sending::new(&producer, &interrupt, target.timeout);
    for part in &copy.partitions {
        producer.partition_count(&part.target, target.timeout())?;
    }
    let ended = |error: &ottla::TransactionError| {
        Failure::Failed(format!("can't start transactions: {}", error.error()))
    };
    // An earlier copy with this transactional ID that still runs can't commit any more, and its open transaction is aborted:
    // the progress that is read now stays as it is.
    producer.init_transactions(sending.bound(COMMIT_TIMEOUT)).map_err(|error| ended(&error))?;
    copy.resume(&options.group, &producer.admin(), true)?;
    let start = |part: &Part| (part.key.topic.to_string(), part.key.partition, part.start);
    consumer.assign(&copy.partitions.iter().map(start).collect::<Vec<_>>())?;
    let sent = Arc::new(AtomicU64::new(0));
    let bar = (!options.quiet).then(|| {
        let (total, sent) = (expected(&copy.partitions), Arc::clone(&sent));
        Progress::start(
            total,
            Duration::from_secs(3600),
            || None,
            move || (sent.load(Ordering::Relaxed), String::new()),
        )
    });
    let began = Instant::now();
    let partitions = copy.partitions.into_iter();
    let mut session = Session {
        options,
        filter,
        stop_ms: copy.stop_ms,
        open: partitions
            .map(|part| (part.key.clone(), Open { topic: producer.topic(&part.target), part }))
            .collect(),
        read: SortedMap::new(),
        marks: copy.marks,
        sending,
        interrupt: interrupt.clone(),
        pace: options.rate.map(|rate| Pace::new(began, rate)),
        sent: Arc::clone(&sent),
    };
    let outcome = session.copy(&consumer, &producer, &events);
    drop(bar);
    let count = sent.load(Ordering::Relaxed);
    if let Some(warning) = session.filter.as_ref().and_then(Filter::warning) {
        note!("% {warning}");
    }
    outcome.map_err(|failure| match failure {
        Failure::Failed(text) => Failure::Failed(format!("{text}; the same command continues the copy")),
        other => other,
    })?;
    if !options.quiet {
        let seconds = began.elapsed().as_secs_f64();
        writeln!(
            io::stdout(),
            "copied {count} messages in {seconds:.1} s ({:.0} per second)",
            count as f64 / seconds.max(0.001)
        )?;
    }
    interrupt.check()
}

/// Returns how many messages there are at most, for the progress bar.
fn expected(parts: &[Part]) -> u64 {
    let of = |part: &Part| match (part.start, part.stop) {
        (Offset::At(start), Some(stop)) => (stop - start).max(0) as u64,
        (_, Some(stop)) => stop as u64,
        (_, None) => 0,
    };
    parts.iter().map(of).sum()
}

fn producer_config(options: &CopyOptions, target: &ClientOptions) -> Outcome<Config> {
    let mut config = target.config()?;
    if config.get("transactional.id").is_none_or(|id| id.is_empty()) {
        // Of two copies with the same progress, the later one fences the earlier one.
        config.set("transactional.id", &format!("ottla-copy-{}", options.group))?;
    }
    if !config.is_modified("linger.ms") && !config.is_modified("broker.linger.ms") {
        config.set("broker.linger.ms", "20")?;
    }
    Ok(config)
}

impl Session<'_> {
    fn copy(&mut self, consumer: &Consumer, producer: &Producer, events: &EventPrinter) -> Outcome {
        let mut transaction: Option<(Transaction<'_>, Instant)> = None;
        let outcome = loop {
            if self.open.is_empty() || self.interrupt.is_requested() {
                break Ok(());
            }
            let records = consumer.poll(Duration::from_millis(100))?;
            if records.pieces().len() > 0 && transaction.is_none() {
                let begun = producer.begin().map_err(|error| failed("can't begin a transaction", &error))?;
                transaction = Some((begun, Instant::now()));
            }
            if let Err(failure) = self.send(&records).and_then(|()| self.handle_events(&records, events)) {
                break Err(failure);
            }
            if let Some((open, _)) = transaction.take_if(|(_, began)| began.elapsed() >= INTERVAL) {
                self.commit(open)?;
            }
        };
        match (transaction, outcome) {
            (Some((open, _)), Ok(())) => self.commit(open),
            (Some((open, _)), Err(failure)) => {
                self.abort(open);
                Err(failure)
            }
            (None, outcome) => outcome,
        }
    }

    /// Sends the records of a poll.
    fn send(&mut self, records: &Records) -> Outcome {
        // All messages of a piece are of one partition.
        for (_, mut messages) in records.pieces() {
            let Some(first) = messages.next() else { continue };
            let key = TopicPartition::new(first.topic(), first.partition());
            let Some(open) = self.open.remove(&key) else { continue };
            let goes_on = self.send_piece(&open, std::iter::once(first).chain(messages))?;
            if goes_on {
                self.open.insert(key, open);
            }
        }
        Ok(())
    }

    /// Sends messages of a partition. Returns false if it has reached the point to stop at.
    fn send_piece<'m>(
        &mut self,
        open: &Open,
        messages: impl Iterator<Item = MessageRef<'m>>,
    ) -> Outcome<bool> {
        let stop = open.part.stop.unwrap_or(i64::MAX);
        let mut next = None;
        let mut goes_on = true;
        for message in messages {
            goes_on = message.offset() < stop && self.stop_ms.is_none_or(|stop| message.timestamp() < stop);
            if !goes_on || self.interrupt.is_requested() {
                break;
            }
            if self.filter.as_ref().map_or(Ok(true), |filter| filter.passes_message(&message))? {
                self.send_message(open, &message)?;
            }
            next = Some(message.offset() + 1);
            goes_on = message.offset() + 1 < stop;
        }
        if let Some(next) = next {
            self.read.insert(TopicPartition::new(open.part.target.as_str(), open.part.key.partition), next);
        }
        Ok(goes_on)
    }

    fn send_message(&self, open: &Open, message: &MessageRef<'_>) -> Outcome {
        let number = self.sent.fetch_add(1, Ordering::Relaxed);
        if let Some(pace) = &self.pace {
            pace.keep(number, &self.interrupt)?;
        }
        let mut record = Record::new();
        if let Some(key) = message.key() {
            record = record.key(key);
        }
        if let Some(value) = message.value() {
            record = record.value(value);
        }
        if !self.options.repartition {
            record = record.partition(message.partition());
        }
        if message.timestamp() >= 0 {
            record = record.timestamp(message.timestamp());
        }
        for header in message.headers() {
            record = record.raw_header(header);
        }
        self.sending.send(&open.topic, &record)?.map_err(|error| {
            Failure::Failed(format!(
                "{} [{}] at offset {} was not accepted: {error}",
                message.topic(),
                message.partition(),
                message.offset()
            ))
        })
    }

    fn handle_events(&mut self, records: &Records, events: &EventPrinter) -> Outcome {
        for event in records.events() {
            match event {
                ConsumerEvent::EndOfPartition { topic, partition, .. } if !self.options.follow => {
                    self.open.remove(&TopicPartition::new(&**topic, *partition));
                }
                ConsumerEvent::EndOfPartition { .. } => {}
                ConsumerEvent::Error(error) if is_final(error) => {
                    return Err(Failure::Failed(describe(error)));
                }
                ConsumerEvent::Error(error) => events.error(error),
                _ => events.line(&event.to_string(), Instant::now()),
            }
        }
        Ok(())
    }

    /// Commits the records and the progress.
    fn commit(&mut self, transaction: Transaction<'_>) -> Outcome {
        let offset = |(key, next): (TopicPartition, i64)| {
            let mut offset = GroupOffset::new(&*key.topic, key.partition, next);
            offset.metadata = self.marks.get(&*key.topic).cloned().unwrap_or_default();
            offset
        };
        let offsets: Vec<GroupOffset> = std::mem::take(&mut self.read).into_iter().map(offset).collect();
        if !offsets.is_empty() {
            let group = ConsumerGroupMetadata {
                group_id: self.options.group.clone(),
                generation: None,
                member_id: String::new(),
                instance_id: None,
                topic_ids: Arc::default(),
            };
            if let Err(error) = transaction.send_offsets_of(group, &offsets, call_timeout()) {
                self.abort(transaction);
                return Err(failed("the progress was not added to the transaction", &error));
            }
        }
        transaction
            .commit(COMMIT_TIMEOUT)
            .map_err(|error| failed("the transaction was not committed", &error))
    }

    /// Waits until the transaction is aborted, so that its end does not depend on `transaction.timeout.ms` after the program has
    /// ended. If it can't be, the next copy aborts it.
    fn abort(&self, transaction: Transaction<'_>) {
        let _ = transaction.abort(self.sending.bound(COMMIT_TIMEOUT));
    }
}

fn failed(what: &str, error: &ottla::TransactionError) -> Failure {
    Failure::Failed(format!("{what}: {}", error.error()))
}
