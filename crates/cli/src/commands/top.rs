//! `ottla top`: throughput, health and lag of a cluster, on a terminal.

use std::io::{self, IsTerminal};
use std::time::Duration;

use clap::Args;
use ottla::{Admin, Config};

use crate::client_options::{ClientOptions, parse_seconds, print_warnings};
use crate::events::EventWatch;
use crate::failure::{EXIT_CODES, Failure, Outcome};
use crate::signals::Interrupt;
use crate::standard_error::note;
use crate::top::collector::Collector;
use crate::top::model::Model;
use crate::top::plain;

/// Watch throughput, under-replicated partitions and the lag of groups
///
/// A full-screen view on a terminal: `?` lists the keys. Elsewhere, and with --once, it prints one table, whose rates are those of
/// one interval.
#[derive(Args, Debug)]
#[command(after_help = format!("Examples:\n  \
    ottla top -b localhost:9092\n  \
    ottla top -b localhost:9092 --interval 5\n  \
    ottla top -b localhost:9092 --once\n  \
    ottla top -b localhost:9092 --once --json\n\n\
    An interval costs one ListOffsets request per broker. Metadata and groups are read every second interval, sizes every eighth.\n\
    With more than 2000 partitions, metadata is read every fourth interval, and so are the ends of partitions without new records.\n\
    Colours are those of the terminal; NO_COLOR=1 switches them off. With TERM=dumb one table is printed.\n\n{EXIT_CODES}"))]
pub struct TopOptions {
    #[command(flatten)]
    client: ClientOptions,

    /// The time between two requests for the ends of the partitions
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = parse_seconds)]
    interval: Duration,

    /// Print one table, and end
    #[arg(long)]
    once: bool,

    /// Print one snapshot as JSON, and end
    #[arg(short = 'J', long)]
    json: bool,
}

/// Runs the command; `outer` are the options before its name.
pub fn run(options: &TopOptions, outer: &ClientOptions) -> Outcome {
    let client = options.client.after(outer);
    if client.wants_list() {
        return super::properties::list(&mut io::stdout().lock());
    }
    let config = client.config()?;
    let admin = Admin::new(&config)?;
    print_warnings(admin.warnings());
    let watch = EventWatch::start(admin.clone());
    watch.wait_for_broker(client.timeout())?;
    let collector = Collector::new(admin, options.interval);
    if options.once || options.json || !io::stdout().is_terminal() {
        return once(options, collector);
    }
    if !io::stdin().is_terminal() {
        note!("% standard input is not a terminal, so no keys can be read: this is one snapshot");
        return once(options, collector);
    }
    if std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb") {
        note!("% this terminal (TERM) can't show a full screen: this is one snapshot");
        return once(options, collector);
    }
    // From here on the collector takes the events.
    drop(watch.into_printer());
    full_screen(options, &config, collector)
}

#[cfg(feature = "top")]
fn full_screen(options: &TopOptions, config: &Config, collector: Collector) -> Outcome {
    crate::top::screen::run(config, collector, options.interval)
}

#[cfg(not(feature = "top"))]
fn full_screen(options: &TopOptions, _config: &Config, collector: Collector) -> Outcome {
    note!("% this program was built without the feature \"top\": this is one snapshot");
    once(options, collector)
}

/// Prints a snapshot. Rates need two rounds.
fn once(options: &TopOptions, mut collector: Collector) -> Outcome {
    let interrupt = Interrupt::catch()?;
    let mut model = Model::default();
    for round in 0..2 {
        if round > 0 {
            interrupt.pause(options.interval)?;
        }
        collector.make_all_due();
        collector.read(&mut |update| {
            model.apply(update);
            !interrupt.is_requested()
        });
        interrupt.check()?;
    }
    match &model.trouble {
        Some(trouble) if model.is_stale => return Err(Failure::Failed(trouble.clone())),
        Some(trouble) => note!("% some values are missing: {trouble}"),
        None => {}
    }
    for (what, failure) in [("groups", &model.groups_failure), ("sizes", &model.sizes_failure)] {
        if let Some(failure) = failure {
            note!("% {what} are missing: {failure}");
        }
    }
    plain::print(&model, options.json)
}
