//! `ottla consume --group`: prints messages as a member of a consumer group.

use ottla_sorted::{SortedMap, SortedSet};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::time::{Duration, Instant};

use ottla::{Config, Consumer, ConsumerEvent, GroupOffset, Records, TopicPartition};

use super::ConsumeOptions;
use crate::client_options::{ClientOptions, print_warnings};
use crate::commands::topics::partition_count;
use crate::events::{EventPrinter, EventWatch};
use crate::failure::{Failure, Outcome};
use crate::metrics_port::MetricsServer;
use crate::patience::Patience;
use crate::progress::StatusLine;
use crate::records::Printer;
use crate::signals::Interrupt;

/// The time to leave the group and to commit.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// The interval of commits by the command itself, and of the status line.
const INTERVAL: Duration = Duration::from_secs(1);

/// Runs the command as a member of `group`.
pub fn run(
    options: &ConsumeOptions,
    client: &ClientOptions,
    topics: &[String],
    group: &str,
    mut printer: Printer,
) -> Outcome {
    let mut config = client.config()?;
    config.set("group.id", group)?;
    config.set("enable.partition.eof", "true")?;
    set_start(&mut config, &options.offset)?;
    let commits = config.get("enable.auto.commit").as_deref() != Some("false");
    // The library commits what a poll returned. With a count, the last messages of a poll may not be printed.
    let commits_itself = commits && options.count.is_some();
    if commits_itself {
        config.set("enable.auto.commit", "false")?;
    }
    let consumer = Consumer::new(&config)?;
    print_warnings(consumer.warnings());
    let watch = EventWatch::start(consumer.admin());
    let counted = consumer.clone();
    let _metrics = MetricsServer::start(options.metrics_port, move || counted.statistics())?;
    watch.wait_for_broker(client.timeout())?;
    // The topics of a pattern may be created later.
    for topic in topics.iter().filter(|topic| !topic.starts_with('^')) {
        partition_count(&consumer.admin(), topic)?;
    }
    // From here on the poll below returns the events.
    let events = watch.into_printer();
    let interrupt = Interrupt::catch()?;
    consumer.subscribe(topics)?;
    let is_terminal = io::stdout().is_terminal();
    let mut out = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    printer.begin(&mut out)?;
    let mut session = Session {
        options,
        printer,
        consumer: &consumer,
        events: &events,
        at_end: SortedSet::new(),
        printed: SortedMap::new(),
        commits: commits_itself,
        left: options.count.unwrap_or(u64::MAX),
        began: Instant::now(),
        count: 0,
        next_interval: Instant::now() + INTERVAL,
        patience: Patience::new(client.timeout.filter(|_| options.exit)),
        status: if is_terminal || options.quiet { None } else { StatusLine::start() },
    };
    while session.left > 0 && !session.is_at_end() && !interrupt.is_requested() {
        let records = consumer.poll(Duration::from_millis(100))?;
        session.print_messages(&records, &mut out)?;
        if is_terminal || records.is_empty() {
            out.flush()?;
        }
        session.handle_events(&records, &mut out)?;
        session.handle_interval()?;
        session.check_patience(&records)?;
    }
    // Offsets are committed only of messages that have left the process.
    out.flush()?;
    session.commit(interrupt.bound(CLOSE_TIMEOUT))?;
    session.printer.warn();
    drop(session);
    consumer.close(interrupt.bound(CLOSE_TIMEOUT))?;
    interrupt.check()
}

/// Sets where partitions without a committed offset start.
fn set_start(config: &mut Config, offsets: &[String]) -> Outcome {
    for offset in offsets {
        let reset = match offset.as_str() {
            "beginning" | "earliest" => "earliest",
            "end" | "latest" => "latest",
            other => {
                let text = format!(
                    "-o {other}: a group continues at its committed offsets; only beginning and end are possible, for \
                     partitions without one (`ottla groups reset-offsets` changes committed offsets)"
                );
                return Err(Failure::Usage(text));
            }
        };
        config.set("auto.offset.reset", reset)?;
    }
    Ok(())
}

/// The state of the print loop.
struct Session<'a> {
    options: &'a ConsumeOptions,
    consumer: &'a Consumer,
    printer: Printer,
    events: &'a EventPrinter,
    /// Partitions whose end was reported after their last message.
    at_end: SortedSet<TopicPartition>,
    /// The offset after the last printed message of each partition, since the last commit.
    printed: SortedMap<TopicPartition, i64>,
    /// True if the command commits, and not the library.
    commits: bool,
    /// The number of messages still to print.
    left: u64,
    began: Instant,
    count: u64,
    next_interval: Instant,
    patience: Patience,
    status: Option<StatusLine>,
}

impl Session<'_> {
    fn print_messages(&mut self, records: &Records, out: &mut impl Write) -> Outcome {
        for message in records {
            if self.left == 0 {
                break;
            }
            if self.printer.print(&message, out)? {
                self.left -= 1;
            }
            self.count += 1;
            let key = TopicPartition::new(message.topic(), message.partition());
            self.at_end.remove(&key);
            if self.commits {
                self.printed.insert(key, message.offset() + 1);
            }
        }
        Ok(())
    }

    fn handle_events(&mut self, records: &Records, out: &mut impl Write) -> Outcome {
        for event in records.events() {
            match event {
                ConsumerEvent::EndOfPartition { topic, partition, .. } => {
                    if !self.options.quiet && self.left > 0 {
                        out.flush()?;
                        self.events.line(&event.to_string(), Instant::now());
                    }
                    self.at_end.insert(TopicPartition::new(&**topic, *partition));
                }
                ConsumerEvent::OffsetReset { .. } if self.options.quiet => {}
                ConsumerEvent::Error(error) => self.events.error(error),
                _ => self.events.line(&event.to_string(), Instant::now()),
            }
        }
        Ok(())
    }

    /// Returns true if the command is to exit at the end, and every assigned partition is there.
    fn is_at_end(&self) -> bool {
        if !self.options.exit {
            return false;
        }
        let assignment = self.consumer.assignment();
        !assignment.is_empty() && assignment.iter().all(|key| self.at_end.contains(key))
    }

    /// Error: nothing came for too long.
    fn check_patience(&mut self, records: &Records) -> Outcome {
        let reached_end = |event: &ConsumerEvent| matches!(event, ConsumerEvent::EndOfPartition { .. });
        self.patience.renew_if(!records.is_empty() || records.events().iter().any(reached_end));
        if self.left == 0 || self.is_at_end() {
            return Ok(());
        }
        self.patience.check(|| {
            let assignment = self.consumer.assignment();
            let left: Vec<String> = assignment
                .iter()
                .filter(|key| !self.at_end.contains(key))
                .map(|key| format!("{} [{}]", key.topic, key.partition))
                .collect();
            match left.is_empty() {
                true => "the group has assigned no partition to this member".to_owned(),
                false => format!("the end of {} was not reached", left.join(", ")),
            }
        })
    }

    fn handle_interval(&mut self) -> Outcome {
        let now = Instant::now();
        if now < self.next_interval {
            return Ok(());
        }
        self.next_interval = now + INTERVAL;
        if let Some(status) = &self.status {
            let assignment = self.consumer.assignment();
            let lag = assignment.iter().filter_map(|key| {
                let (_, end) = self.consumer.cached_watermarks(&key.topic, key.partition)?;
                Some((end - self.consumer.position(&key.topic, key.partition)?).max(0))
            });
            status.set(status_text(self.count, now - self.began, assignment.len(), lag.sum()));
        }
        self.commit(CLOSE_TIMEOUT)
    }

    /// Commits the printed messages of partitions that the consumer still has.
    fn commit(&mut self, timeout: Duration) -> Outcome {
        let assignment: SortedSet<TopicPartition> = self.consumer.assignment().into_iter().collect();
        let printed = std::mem::take(&mut self.printed).into_iter();
        let offsets: Vec<GroupOffset> = printed
            .filter(|(key, _)| assignment.contains(key))
            .map(|(key, offset)| GroupOffset::new(&*key.topic, key.partition, offset))
            .collect();
        if offsets.is_empty() {
            return Ok(());
        }
        for error in self.consumer.commit(&offsets, timeout)?.into_iter().filter_map(Result::err) {
            self.events.error(&error);
        }
        Ok(())
    }
}

fn status_text(count: u64, elapsed: Duration, partitions: usize, lag: i64) -> String {
    let rate = count as f64 / elapsed.as_secs_f64().max(0.001);
    format!("{count} messages, {rate:.0} per second; {partitions} partitions, lag {lag}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_line_has_rate_partitions_and_lag() {
        let text = status_text(3000, Duration::from_secs(2), 4, 17);
        assert_eq!(text, "3000 messages, 1500 per second; 4 partitions, lag 17");
    }

    #[test]
    fn group_starts_only_at_the_beginning_or_the_end() {
        let mut config = Config::new();
        set_start(&mut config, &["beginning".to_owned()]).expect("it is possible");
        assert_eq!(config.get("auto.offset.reset").as_deref(), Some("earliest"));
        for wrong in ["5", "-5", "s@5", "e@5", "stored"] {
            assert!(matches!(set_start(&mut config, &[wrong.to_owned()]), Err(Failure::Usage(_))), "{wrong}");
        }
    }
}
