//! `ottla consume --share-group`: prints messages as a member of a share group.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::time::Duration;

use ottla::{AcknowledgeOutcome, Admin, ConfigChange, ConfigResource, ErrorKind, ShareConsumer, ShareEvent};

use super::ConsumeOptions;
use crate::client_options::{ClientOptions, call_timeout, print_warnings};
use crate::commands::topics::partition_count;
use crate::events::{EventPrinter, EventWatch};
use crate::failure::{Failure, Outcome};
use crate::metrics_port::MetricsServer;
use crate::records::Printer;
use crate::signals::Interrupt;

/// The time to acknowledge the last messages and to leave the group.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs the command as a member of the share group `group`.
pub fn run(
    options: &ConsumeOptions,
    client: &ClientOptions,
    topics: &[String],
    group: &str,
    mut printer: Printer,
) -> Outcome {
    let start = start_of(&options.offset)?;
    let mut config = client.config()?;
    config.set("group.id", group)?;
    let consumer = ShareConsumer::new(&config)?;
    print_warnings(consumer.warnings());
    let watch = EventWatch::start(consumer.admin());
    let counted = consumer.clone();
    let _metrics = MetricsServer::start(options.metrics_port, move || counted.statistics())?;
    watch.wait_for_broker(client.timeout())?;
    for topic in topics {
        partition_count(&consumer.admin(), topic)?;
    }
    if let Some(start) = start {
        set_start(&consumer.admin(), group, start)?;
    }
    // From here on the loop below returns the events.
    let events = watch.into_printer();
    let interrupt = Interrupt::catch()?;
    consumer.subscribe(topics)?;
    let is_terminal = io::stdout().is_terminal();
    let mut left = options.count.unwrap_or(u64::MAX);
    let mut out = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    printer.begin(&mut out)?;
    while left > 0 && !interrupt.is_requested() {
        let records = consumer.poll(Duration::from_millis(100))?;
        let is_idle = records.is_empty();
        let mut printed = Vec::with_capacity(records.len());
        for record in records {
            if left == 0 {
                // A record that is dropped is released: another member gets it.
                break;
            }
            if printer.print_message(&record, &mut out)? {
                left -= 1;
            }
            printed.push(record);
        }
        if is_terminal || is_idle || left == 0 {
            out.flush()?;
        }
        // Messages are accepted when they were printed.
        printed.into_iter().try_for_each(|record| record.accept())?;
        report(&consumer, &events);
    }
    out.flush()?;
    printer.warn();
    for (partition, result) in consumer.commit_sync(interrupt.bound(CLOSE_TIMEOUT))?.partitions {
        if let Err(error) = result {
            events.error(&error.with_partition(&*partition.topic, partition.partition));
        }
    }
    consumer.close(interrupt.bound(CLOSE_TIMEOUT))?;
    report(&consumer, &events);
    interrupt.check()
}

/// Prints errors of the consumer, and acknowledgements that failed: those messages are delivered again.
fn report(consumer: &ShareConsumer, printer: &EventPrinter) {
    while let Some(event) = consumer.poll_event() {
        if let ShareEvent::Error(error) = event {
            printer.error(&error);
        }
    }
    for AcknowledgeOutcome { partition, result, .. } in consumer.take_outcomes() {
        if let Err(error) = result
            && error.kind() != ErrorKind::Closed
        {
            printer.error(&error.with_partition(&*partition.topic, partition.partition));
        }
    }
}

/// Returns where a new group starts, if the command line says so.
fn start_of(offsets: &[String]) -> Outcome<Option<&'static str>> {
    let mut start = None;
    for offset in offsets {
        start = Some(match offset.as_str() {
            "beginning" | "earliest" => "earliest",
            "end" | "latest" => "latest",
            other => {
                let text = format!(
                    "-o {other}: a share group has no offsets of its members; only beginning and end are possible, for a new \
                     group (`ottla share-groups reset-offsets` moves a group without members)"
                );
                return Err(Failure::Usage(text));
            }
        });
    }
    Ok(start)
}

/// Changes where the group starts, which is a setting of the group at the brokers.
fn set_start(admin: &Admin, group: &str, start: &str) -> Outcome {
    let changes = vec![ConfigChange::set("share.auto.offset.reset", start)];
    for (_, result) in
        admin.incremental_alter_configs(&vec![(ConfigResource::group(group), changes)], call_timeout())?
    {
        result?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_group_starts_only_at_the_beginning_or_the_end() {
        assert_eq!(start_of(&[]), Ok(None));
        assert_eq!(start_of(&["beginning".to_owned()]), Ok(Some("earliest")));
        for wrong in ["5", "-5", "s@5", "e@5", "stored"] {
            assert!(matches!(start_of(&[wrong.to_owned()]), Err(Failure::Usage(_))), "{wrong}");
        }
    }
}
