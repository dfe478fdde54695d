//! Logs: a small logger that prints the lines of a client with their fields. Any logger of the `log` facade does.
//!
//!     cargo run --package ottla --example logging

mod support;

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use log::kv::{Error, Key, Value, VisitSource};
use ottla::{Producer, Record};

const TIMEOUT: Duration = Duration::from_secs(10);

static LINES: AtomicUsize = AtomicUsize::new(0);

struct Printer;

impl log::Log for Printer {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.target().starts_with("ottla")
    }

    fn log(&self, record: &log::Record<'_>) {
        struct Fields(String);
        impl<'kvs> VisitSource<'kvs> for Fields {
            fn visit_pair(&mut self, key: Key<'kvs>, value: Value<'kvs>) -> Result<(), Error> {
                self.0 += &format!(" {key}={value}");
                Ok(())
            }
        }
        if self.enabled(record.metadata()) {
            let mut fields = Fields(String::new());
            let _ = record.key_values().visit(&mut fields);
            println!("{:5} {} {}{}", record.level(), record.target(), record.args(), fields.0);
            LINES.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn flush(&self) {}
}

/// Runs the example.
pub fn main() -> support::Result {
    log::set_logger(&Printer).map_err(|error| error.to_string())?;
    log::set_max_level(log::LevelFilter::Debug);

    let brokers = support::Brokers::find()?;
    let mut config = brokers.config()?;
    // `debug` selects the contexts; the logger selects among their lines.
    config.set("debug", "broker,topic,msg")?;
    let producer = Producer::new(&config)?;
    producer.deliver("example-logging", Record::new().value("hello"), TIMEOUT)?;
    producer.close(TIMEOUT)?;
    assert!(LINES.load(Ordering::SeqCst) > 0);
    Ok(())
}
