//! `ottla produce`: sends messages from standard input or files.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::Args;
use ottla::{Producer, Record, Topic};

use crate::client_options::{ClientOptions, print_warnings};
use crate::events::EventWatch;
use crate::failure::{EXIT_CODES, Failure, Outcome};
use crate::in_transactions::{Transactions, ensure_id};
use crate::input::InterruptibleInput;
use crate::metrics_port::MetricsServer;
use crate::perf::payload::unescape;
use crate::sending::{Sending, require_topic};
use crate::signals::Interrupt;
use crate::standard_error::note;

/// The time for the last push of metrics.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Produce messages: one per line of standard input, or one per file
#[derive(Args, Debug)]
#[command(after_help = format!("Examples:\n  \
    echo hello | ottla produce -b localhost:9092 -t demo\n  \
    printf 'k1:v1\\nk2:v2\\n' | ottla produce -b localhost:9092 -t demo -K : -H source=cli -p 3\n  \
    ottla produce -b localhost:9092 -t pictures -k cat cat.jpg -z zstd\n  \
    ottla produce -b localhost:9092 -t orders -l orders.txt --transactional\n\n\
    SIGINT (Ctrl-C) ends the input; messages that were already read are still delivered within a few seconds, or with\n\
    --transactional, aborted. A second SIGINT ends at once.\n\n\
    {EXIT_CODES}"))]
pub struct ProduceOptions {
    #[command(flatten)]
    client: ClientOptions,

    /// Produce to this topic (required)
    #[arg(short = 't', long, add = crate::completion::topics())]
    topic: Option<String>,

    /// Produce to this partition [default: the partitioner chooses]
    #[arg(short = 'p', long, value_parser = clap::value_parser!(i32).range(0..))]
    partition: Option<i32>,

    /// The key of all messages
    #[arg(short = 'k', long, conflicts_with = "key_delimiter")]
    key: Option<String>,

    /// Each message starts with its key, which this text separates from the value
    #[arg(short = 'K', long, value_name = "TEXT")]
    key_delimiter: Option<String>,

    /// The text that separates messages; the escapes \n, \t, \r, \0, \\ and \xHH are supported
    #[arg(short = 'D', long, value_name = "TEXT", default_value = "\\n")]
    delimiter: String,

    /// Add a header to all messages; can be repeated. Without "=" the value is null
    #[arg(short = 'H', long, value_name = "NAME=VALUE")]
    header: Vec<String>,

    /// The timestamp of all messages, in milliseconds since 1970
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(i64).range(0..))]
    timestamp: Option<i64>,

    /// Send empty keys and values as null
    #[arg(short = 'Z', long)]
    null: bool,

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

/// Runs the command; `outer` are the options before its name.
pub fn run(options: &ProduceOptions, outer: &ClientOptions) -> Outcome {
    let mut client = options.client.after(outer);
    if let Some(codec) = &options.compression {
        client.property.push(format!("compression.type={codec}"));
    }
    if client.wants_list() {
        return super::properties::list(&mut io::stdout().lock());
    }
    let topic =
        options.topic.as_deref().ok_or_else(|| Failure::Usage("no topic is named: add -t TOPIC".into()))?;
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
    require_topic(&producer, topic, client.timeout())?;
    let interrupt = Interrupt::catch()?;
    let sending = Sending::new(&producer, &interrupt, client.timeout);
    let mut transactions = match config.get("transactional.id").filter(|id| !id.is_empty()) {
        Some(_) => Some(Transactions::start(&producer, &config, Duration::MAX, &sending)?),
        None => None,
    };
    if let Some(transactions) = &mut transactions {
        transactions.before_message()?;
    }
    let mut sender = Sender {
        options,
        topic: producer.topic(topic),
        key_delimiter: options.key_delimiter.as_deref().map(unescape),
        interrupt: interrupt.clone(),
        sending: sending.clone(),
        number: 0,
    };
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

/// Reads a file that is one message of at most `max_bytes`.
fn read_message(path: &Path, mut file: File, max_bytes: usize) -> Result<Vec<u8>, Failure> {
    let failed = |error: io::Error| Failure::Failed(format!("{}: {error}", path.display()));
    let too_large = |size: &str| {
        Failure::Failed(format!(
            "{}: the file has {size}; raise the limit with -X message.max.bytes=BYTES, or send its lines as messages \
             with -l",
            path.display()
        ))
    };
    // A file that is too large is not read; the error contains its size.
    let size = file.metadata().map_err(failed)?.len();
    if size > max_bytes as u64 {
        return Err(too_large(&format!("{size} bytes, more than message.max.bytes={max_bytes}")));
    }
    let mut message = Vec::new();
    // Reads at most one byte more than the limit, so that memory is bounded.
    file.by_ref().take(max_bytes as u64 + 1).read_to_end(&mut message).map_err(failed)?;
    if message.len() > max_bytes {
        // A pipe, or a file that grows: its whole size is unknown.
        return Err(too_large(&format!("more than message.max.bytes={max_bytes} bytes")));
    }
    Ok(message)
}

/// Returns "1 message", "2 messages".
fn messages(count: u64) -> String {
    format!("{count} message{}", if count == 1 { "" } else { "s" })
}

#[derive(Default)]
struct Deliveries {
    delivered: AtomicU64,
    failures: Mutex<Option<(u64, String)>>,
}

impl Deliveries {
    fn fail(&self, count: u64, error: &ottla::Error) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.get_or_insert_with(|| (0, error.to_string())).0 += count;
    }

    /// The number of messages that failed, with the first error.
    fn failed(&self) -> Option<String> {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, first) = failures.as_ref()?;
        let verb = if *count == 1 { "was" } else { "were" };
        Some(format!("{} {verb} not delivered; first error: {first}", messages(*count)))
    }
}

struct Sender<'a> {
    options: &'a ProduceOptions,
    topic: Topic,
    key_delimiter: Option<Vec<u8>>,
    interrupt: Interrupt,
    sending: Sending,
    /// The number of messages that were sent.
    number: u64,
}

impl Sender<'_> {
    /// Sends the messages of standard input or of the files.
    fn send_all(&mut self, delimiter: &[u8], max_bytes: usize) -> Outcome {
        let options = self.options;
        let mut left = options.count.unwrap_or(u64::MAX);
        if options.files.is_empty() {
            return self.send_pieces(io::stdin(), delimiter, max_bytes, &mut left);
        }
        for path in &options.files {
            let file =
                File::open(path).map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))?;
            if options.lines {
                self.send_pieces(file, delimiter, max_bytes, &mut left)?;
            } else if left > 0 {
                self.send(&read_message(path, file, max_bytes)?)?;
                left -= 1;
            }
        }
        Ok(())
    }

    fn send_pieces(
        &mut self,
        input: impl Read + Send + 'static,
        delimiter: &[u8],
        max_bytes: usize,
        left: &mut u64,
    ) -> Outcome {
        let mut pieces = Pieces::new(InterruptibleInput::new(input, &self.interrupt), delimiter, max_bytes);
        while *left > 0 {
            let piece = pieces.next()?;
            // If a signal ended the input, the last piece may be an incomplete message.
            self.interrupt.check()?;
            match piece {
                Some(piece) => self.send(piece)?,
                None => return Ok(()),
            }
            *left -= 1;
        }
        Ok(())
    }

    fn send(&mut self, message: &[u8]) -> Outcome {
        let (key, value) = match &self.key_delimiter {
            Some(delimiter) => match find(message, delimiter) {
                Some(end) => (Some(&message[..end]), &message[end + delimiter.len()..]),
                None => (None, message),
            },
            None => (self.options.key.as_deref().map(str::as_bytes), message),
        };
        let is_sent = |bytes: &&[u8]| !(self.options.null && bytes.is_empty());
        let mut record = Record::new();
        if let Some(key) = key.as_ref().filter(|key| is_sent(key)) {
            record = record.key(*key);
        }
        if is_sent(&value) {
            record = record.value(value);
        }
        if let Some(partition) = self.options.partition {
            record = record.partition(partition);
        }
        if let Some(timestamp) = self.options.timestamp {
            record = record.timestamp(timestamp);
        }
        for header in &self.options.header {
            record = match header.split_once('=') {
                Some((name, value)) => record.header(name, value),
                None => record.null_header(header),
            };
        }
        self.number += 1;
        self.sending
            .send(&self.topic, &record)?
            .map_err(|error| Failure::Failed(format!("message {} was not accepted: {error}", self.number)))
    }
}

/// Splits a stream at a delimiter.
struct Pieces<'a, R> {
    input: R,
    delimiter: &'a [u8],
    max_bytes: usize,
    buffer: Vec<u8>,
    start: usize,
    at_end: bool,
}

impl<'a, R: Read> Pieces<'a, R> {
    fn new(input: R, delimiter: &'a [u8], max_bytes: usize) -> Pieces<'a, R> {
        Pieces { input, delimiter, max_bytes, buffer: Vec::new(), start: 0, at_end: false }
    }

    /// Returns the next piece; the last one may lack its delimiter.
    fn next(&mut self) -> Outcome<Option<&[u8]>> {
        const READ: usize = 64 << 10;
        let mut searched = 0;
        loop {
            let rest = &self.buffer[self.start..];
            if let Some(end) = find(&rest[searched..], self.delimiter).map(|end| end + searched) {
                let piece = self.start..self.start + end;
                self.start = piece.end + self.delimiter.len();
                return Ok(Some(&self.buffer[piece]));
            }
            if self.at_end {
                let piece = self.start..self.buffer.len();
                self.start = piece.end;
                return Ok((!piece.is_empty()).then(|| &self.buffer[piece]));
            }
            if rest.len() > self.max_bytes {
                return Err(Failure::Failed(format!(
                    "a message is larger than message.max.bytes={}: the input has no delimiter (-D) before that size; raise it \
                     with -X message.max.bytes=BYTES",
                    self.max_bytes
                )));
            }
            searched = rest.len().saturating_sub(self.delimiter.len() - 1);
            self.buffer.drain(..self.start);
            self.start = 0;
            let filled = self.buffer.len();
            self.buffer.resize(filled + READ, 0);
            let count = loop {
                match self.input.read(&mut self.buffer[filled..]) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    result => break result,
                }
            };
            let count =
                count.map_err(|error| Failure::Failed(format!("the input can't be read: {error}")))?;
            self.buffer.truncate(filled + count);
            self.at_end = count == 0;
        }
    }
}

fn find(bytes: &[u8], delimiter: &[u8]) -> Option<usize> {
    match delimiter {
        [] => None,
        [byte] => bytes.iter().position(|other| other == byte),
        _ => bytes.windows(delimiter.len()).position(|window| window == delimiter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that returns one byte at a time.
    struct Drip<'a>(&'a [u8]);

    impl Read for Drip<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let Some((first, rest)) = self.0.split_first() else { return Ok(0) };
            buffer[0] = *first;
            self.0 = rest;
            Ok(1)
        }
    }

    fn pieces(input: impl Read, delimiter: &[u8]) -> Vec<String> {
        let mut pieces = Pieces::new(input, delimiter, 1000);
        let mut out = Vec::new();
        while let Some(piece) = pieces.next().unwrap() {
            out.push(String::from_utf8_lossy(piece).into_owned());
        }
        out
    }

    #[test]
    fn input_is_split_at_the_delimiter_in_chunks_of_any_size() {
        for input in ["a\n\nbc\n", "a\n\nbc"] {
            assert_eq!(pieces(input.as_bytes(), b"\n"), ["a", "", "bc"]);
            assert_eq!(pieces(Drip(input.as_bytes()), b"\n"), ["a", "", "bc"]);
        }
        assert_eq!(pieces(Drip(b"a-=-b-=c-=-"), b"-=-"), ["a", "b-=c"]);
        assert_eq!(pieces(&b""[..], b"\n"), Vec::<String>::new());
    }

    #[test]
    fn message_without_delimiter_is_an_error_of_bounded_size() {
        let mut pieces = Pieces::new(io::repeat(b'x'), b"\n", 1000);
        assert!(matches!(pieces.next(), Err(Failure::Failed(_))));
    }
}
