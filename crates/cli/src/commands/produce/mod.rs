//! `ottla produce`: sends messages from standard input, files or a template.
//!
//! | file | what it does |
//! |---|---|
//! | `pieces.rs` | splits the input |
//! | `draft.rs` | turns a piece into a message: key and value, fields, JSON |
//! | `template.rs` | texts that are filled in for each message |
//! | `sender.rs` | sends the messages |

pub(super) mod draft;
mod pieces;
mod sender;
mod template;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Args;
use ottla::Producer;

use self::draft::parse_fields;
use self::sender::{Plan, Sender};
use self::template::TEMPLATE_HELP;
use crate::client_options::{ClientOptions, print_warnings};
use crate::deliveries::{Deliveries, messages};
use crate::events::EventWatch;
use crate::failure::{EXIT_CODES, Failure, Outcome};
use crate::in_transactions::{Transactions, ensure_id};
use crate::metrics_port::MetricsServer;
use crate::perf::payload::unescape;
use crate::records::{Encoders, FORMAT_LIST, PartFormats, WriterOptions};
use crate::sending::{Sending, require_topic};
use crate::signals::Interrupt;
use crate::standard_error::note;

/// What only `produce` has of `-s`, for `--help`.
const SERIALIZER_HELP: &str = "\
  A schema of the registry is the latest version of the subject TOPIC-value or TOPIC-key, or that of --value-schema or
  --key-schema. -P takes the properties of Confluent's serializers: auto.register.schemas, use.latest.version, use.schema.id,
  normalize.schemas, subject.name.strategy, schema.id.serializer; key. or value. before one limits it to that part";

/// The time for the last push of metrics.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Produce messages: one per line of standard input, or one per file
#[derive(Args, Debug)]
#[command(after_help = format!("{TEMPLATE_HELP}\n\nFormats of -s, which take JSON:\n{FORMAT_LIST}\n{SERIALIZER_HELP}\n\nExamples:\n  \
    echo hello | ottla produce -b localhost:9092 -t demo\n  \
    printf 'k1:v1\\nk2:v2\\n' | ottla produce -b localhost:9092 -t demo -K : -H source=cli -p 3\n  \
    ottla produce -b localhost:9092 -t pictures -k cat cat.jpg -z zstd\n  \
    ottla produce -b localhost:9092 -t orders -l orders.txt --transactional\n  \
    ottla consume -b localhost:9092 -t orders -o beginning -e -J > orders.jsonl\n  \
    ottla produce -b localhost:9092 -J -l orders.jsonl\n  \
    ottla produce -b localhost:9092 -t orders -k '{{{{value.customer}}}}' < orders.json\n  \
    ottla produce -b localhost:9092 -t orders --fields key,header:source,value -K , -l orders.csv\n  \
    ottla produce -b localhost:9092 -t demo --generate '{{\"id\": {{{{number}}}}, \"n\": {{{{random 1 9}}}}}}' -c 1000 --rate 100\n  \
    ottla produce -b localhost:9092 -t orders -s value=avro --value-schema order.avsc -r http://localhost:8081 < orders.json\n  \
    ottla consume -b localhost:9092 -t orders -o beginning -e -J -s value=avro | ottla produce -b other:9092 -J -s value=avro\n  \
    ottla produce -b localhost:9092 -t orders -s value=protobuf:order.proto#shop.Order -I protos < orders.json\n\n\
    SIGINT (Ctrl-C) ends the input; messages that were already read are still delivered within a few seconds, or with\n\
    --transactional, aborted. A second SIGINT ends at once.\n\n\
    {EXIT_CODES}"))]
pub struct ProduceOptions {
    #[command(flatten)]
    client: ClientOptions,

    /// Produce to this topic (required, except with -J and with the field topic)
    #[arg(short = 't', long, add = crate::completion::topics())]
    topic: Option<String>,

    /// Produce to this partition, a number or a template [default: the partitioner chooses]
    #[arg(short = 'p', long)]
    partition: Option<String>,

    /// The key of all messages, a text or a template
    #[arg(short = 'k', long, conflicts_with = "key_delimiter")]
    key: Option<String>,

    /// Each message is a line of JSON, as `ottla consume -J` and kcat print it: topic, partition, ts, key, payload, headers
    #[arg(short = 'J', long, conflicts_with_all = ["key_delimiter", "fields", "null"])]
    json: bool,

    /// Each message has these fields, separated by the text of -K or a tab: topic, partition, timestamp, key, header:NAME, value,
    /// and - for one to ignore. The last one has the rest of the message
    #[arg(long, value_name = "NAMES", value_parser = parse_fields_option)]
    fields: Option<FieldList>,

    /// Generate the values from this template, as many as -c says
    #[arg(long, value_name = "TEMPLATE", requires = "count", conflicts_with_all = ["json", "fields", "key_delimiter", "files"])]
    generate: Option<String>,

    /// Generate other random values: the same number makes the same messages
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    seed: u64,

    /// Send at most this many messages per second
    #[arg(long, value_name = "COUNT", value_parser = parse_rate)]
    rate: Option<f64>,

    /// Let the partitioner choose the partitions, not the field of -J
    #[arg(long, conflicts_with = "partition")]
    repartition: bool,

    /// Each message starts with its key, which this text separates from the value
    #[arg(short = 'K', long, value_name = "TEXT")]
    key_delimiter: Option<String>,

    /// The text that separates messages; the escapes \n, \t, \r, \0, \\ and \xHH are supported
    #[arg(short = 'D', long, value_name = "TEXT", default_value = "\\n")]
    delimiter: String,

    /// Add a header to all messages, a text or a template; can be repeated. Without "=" the value is null
    #[arg(short = 'H', long, value_name = "NAME=VALUE")]
    header: Vec<String>,

    /// The timestamp of all messages: milliseconds since 1970, 2026-11-29T10:00, -1h, or a template [default: now]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    timestamp: Option<String>,

    /// Send empty keys and values as null
    #[arg(short = 'Z', long)]
    null: bool,

    /// How keys and values are encoded: key=FORMAT,value=FORMAT or FORMAT for both; see below. Can be repeated
    #[arg(short = 's', long, visible_alias = "encode", value_name = "FORMAT")]
    serde: Vec<String>,

    /// A folder with the files that a .proto file or a JSON Schema of -s uses, or a file with types of Avro; can be repeated
    #[arg(short = 'I', long, value_name = "PATH")]
    include: Vec<PathBuf>,

    #[command(flatten)]
    writer: WriterOptions,

    /// Stop after this many messages
    #[arg(short = 'c', long, value_name = "COUNT")]
    count: Option<u64>,

    /// The compression: none, gzip, snappy, lz4, zstd
    #[arg(short = 'z', long, value_name = "CODEC")]
    compression: Option<String>,

    /// Split files into messages at the delimiter, instead of sending each file as one message
    #[arg(short = 'l', long, requires = "files")]
    lines: bool,

    /// Send all messages in one transaction, which is committed at the end of the input, and aborted if a message fails. It
    /// may last for transaction.timeout.ms. Without the property transactional.id, the ID is a new one
    #[arg(long)]
    transactional: bool,

    /// Print how many messages were delivered
    #[arg(short = 'v', long)]
    verbose: bool,

    /// Serve the client's statistics in Prometheus format on this port of 127.0.0.1; 0 chooses a free port
    #[arg(long, value_name = "PORT")]
    metrics_port: Option<u16>,

    /// Files to send [default: standard input]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// The fields of `--fields`.
#[derive(Clone, Debug)]
struct FieldList(Vec<draft::Field>);

fn parse_fields_option(text: &str) -> Result<FieldList, String> {
    parse_fields(text).map(FieldList)
}

/// Parses a number of messages per second.
pub(super) fn parse_rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if (0.001..=1e9).contains(&rate) => Ok(rate),
        _ => Err("it must be a number of messages per second from 0.001 to 1000000000".into()),
    }
}

/// Runs the command; `outer` are the options before its name.
pub fn run(options: &ProduceOptions, outer: &ClientOptions) -> Outcome {
    let mut client = options.client.after(outer);
    if let Some(codec) = &options.compression {
        client.property.push(format!("compression.type={codec}"));
    }
    if client.wants_list() {
        return super::properties::list(&mut io::stdout().lock());
    }
    let formats = PartFormats::parse(&options.serde, &options.include).map_err(Failure::Usage)?;
    let encoders = Encoders::new(formats, &options.writer, &client)?;
    let plan = Plan::new(options, encoders)?;
    let topic = options.topic.as_deref();
    if topic.is_none() && !plan.has_topics() {
        return Err(Failure::Usage("no topic is named: add -t TOPIC".into()));
    }
    let mut config = client.config()?;
    if options.transactional {
        ensure_id(&mut config, "ottla-produce")?;
    }
    let max_bytes = config.get("message.max.bytes").and_then(|bytes| bytes.parse().ok()).unwrap_or(1_000_000);
    let delimiter = unescape(&options.delimiter);
    if delimiter.is_empty() {
        return Err(Failure::Usage("-D: the delimiter must not be empty".into()));
    }
    let deliveries = Arc::new(Deliveries::default());
    let sink = Arc::clone(&deliveries);
    let producer = Producer::builder(&config)
        .on_delivery(move |batch| match batch.error() {
            None => {
                sink.delivered.fetch_add(batch.len() as u64, Ordering::Relaxed);
            }
            Some(error) => sink.fail(batch.len() as u64, error),
        })
        .build()?;
    print_warnings(producer.warnings());
    let watch = EventWatch::start(producer.admin());
    let counted = producer.clone();
    let _metrics = MetricsServer::start(options.metrics_port, move || counted.statistics())?;
    watch.wait_for_broker(client.timeout())?;
    if let Some(topic) = topic {
        require_topic(&producer, topic, client.timeout())?;
    }
    let interrupt = Interrupt::catch()?;
    let sending = Sending::new(&producer, &interrupt, client.timeout);
    let mut transactions = match config.get("transactional.id").filter(|id| !id.is_empty()) {
        Some(_) => Some(Transactions::start(&producer, &config, Duration::MAX, &sending)?),
        None => None,
    };
    if let Some(transactions) = &mut transactions {
        transactions.before_message()?;
    }
    let mut sender = Sender::new(options, plan, &producer, &sending, &interrupt, client.timeout());
    let result = sender.send_all(&delimiter, max_bytes);
    let ended = match &mut transactions {
        Some(transactions) if result.is_ok() => transactions.commit(),
        Some(transactions) => transactions.abort(),
        None => Ok(()),
    };
    // Nothing is left to deliver when it closes, which pushes the last metrics to a broker that subscribed to them.
    let flushed = sending.flush().and_then(|()| Ok(producer.close(CLOSE_TIMEOUT)?));
    drop(watch);
    let delivered = deliveries.delivered.load(Ordering::Relaxed);
    if options.verbose || interrupt.is_requested() {
        note!("{} delivered", messages(delivered));
    }
    let failed = deliveries.failed();
    let outcome = result.and(ended).and(flushed).and_then(|()| interrupt.check());
    match (outcome, failed) {
        (Ok(()), Some(failed)) => Err(Failure::Failed(failed)),
        (outcome, failed) => {
            failed.iter().for_each(|failed| note!("{failed}"));
            outcome
        }
    }
}
