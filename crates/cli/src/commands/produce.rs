//! `ottla produce`: messages from standard input or from files.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::Args;
use ottla::{Producer, Record, Topic};

use crate::client_options::{ClientOptions, print_warnings, require_servers};
use crate::failure::{Failure, Outcome};
use crate::metrics_port::MetricsServer;
use crate::perf::payload::unescape;

/// Produce messages from standard input, a line each, or from files, one each
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    echo hello | ottla produce -b localhost:9092 -t demo\n  \
    printf 'k1:v1\\nk2:v2\\n' | ottla produce -b localhost:9092 -t demo -K : -H source=cli -p 3\n  \
    ottla produce -b localhost:9092 -t pictures -k cat cat.jpg -X compression.type=zstd\n\n\
    Exit codes: 0 all messages delivered, 1 some were not, 2 wrong options")]
pub struct ProduceOptions {
    #[command(flatten)]
    client: ClientOptions,

    /// The topic
    #[arg(short = 't', long)]
    topic: Option<String>,

    /// The partition; the partitioner chooses otherwise
    #[arg(short = 'p', long, value_parser = clap::value_parser!(i32).range(0..))]
    partition: Option<i32>,

    /// The key of all messages
    #[arg(short = 'k', long, conflicts_with = "key_delimiter")]
    key: Option<String>,

    /// Messages begin with a key, up to this delimiter
    #[arg(short = 'K', long, value_name = "TEXT")]
    key_delimiter: Option<String>,

    /// What stands between messages
    #[arg(short = 'D', long, value_name = "TEXT", default_value = "\\n")]
    delimiter: String,

    /// Add a header to all messages; may stand more than once. Without = its value is null
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

    /// Cut the files into messages too, instead of sending each as one
    #[arg(short = 'l', long, requires = "files")]
    lines: bool,

    /// Say how many messages were delivered
    #[arg(short = 'v', long)]
    verbose: bool,

    /// Serve what the client counts, as text for Prometheus, on this port of this machine; 0 takes any free one
    #[arg(long, value_name = "PORT")]
    metrics_port: Option<u16>,

    /// Files to send
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Produces.
pub fn run(options: &ProduceOptions) -> Outcome {
    if options.client.wants_list() {
        return super::properties::list(&mut io::stdout().lock());
    }
    let topic = options
        .topic
        .as_deref()
        .ok_or_else(|| Failure::Usage("no topic is named: give one with -t".into()))?;
    let mut config = options.client.config()?;
    if let Some(codec) = &options.compression {
        config.set("compression.type", codec)?;
    }
    require_servers(&config)?;
    let max_bytes = config.get("message.max.bytes").and_then(|bytes| bytes.parse().ok()).unwrap_or(1_000_000);
    let delimiter = unescape(&options.delimiter);
    if delimiter.is_empty() {
        return Err(Failure::Usage("-D must not be empty".into()));
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
    let counted = producer.clone();
    let _metrics = MetricsServer::start(options.metrics_port, move || counted.statistics())?;
    let sender = Sender {
        options,
        topic: producer.topic(topic),
        key_delimiter: options.key_delimiter.as_deref().map(unescape),
    };
    let mut left = options.count.unwrap_or(u64::MAX);
    let result = (|| {
        if options.files.is_empty() {
            return sender.send_pieces(io::stdin().lock(), &delimiter, max_bytes, &mut left);
        }
        for path in &options.files {
            let failed = |error: io::Error| Failure::Failed(format!("{}: {error}", path.display()));
            let mut file = File::open(path).map_err(failed)?;
            if options.lines {
                sender.send_pieces(file, &delimiter, max_bytes, &mut left)?;
            } else if left > 0 {
                let mut message = Vec::new();
                // One byte more than is allowed, so that the producer refuses it and not the memory.
                file.by_ref().take(max_bytes as u64 + 1).read_to_end(&mut message).map_err(failed)?;
                sender.send(&message)?;
                left -= 1;
            }
        }
        Ok(())
    })();
    let flushed = producer.close(Duration::from_secs(3600));
    result?;
    let delivered = deliveries.delivered.load(Ordering::Relaxed);
    if options.verbose {
        eprintln!("{delivered} messages delivered");
    }
    match deliveries.failures.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
        Some((count, first)) => Err(Failure::Failed(format!("{count} messages were not delivered: {first}"))),
        None => Ok(flushed?),
    }
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
}

struct Sender<'a> {
    options: &'a ProduceOptions,
    topic: Topic,
    key_delimiter: Option<Vec<u8>>,
}

impl Sender<'_> {
    fn send_pieces(&self, input: impl Read, delimiter: &[u8], max_bytes: usize, left: &mut u64) -> Outcome {
        let mut pieces = Pieces::new(input, delimiter, max_bytes);
        while *left > 0 {
            match pieces.next()? {
                Some(piece) => self.send(piece)?,
                None => return Ok(()),
            }
            *left -= 1;
        }
        Ok(())
    }

    fn send(&self, message: &[u8]) -> Outcome {
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
                Some((name, value)) => record.header(name, Some(value.as_bytes())),
                None => record.header(header, None),
            };
        }
        self.topic
            .send_blocking(record, Duration::from_secs(300))
            .map_err(|error| Failure::Failed(format!("a message was not accepted: {error}")))
    }
}

/// Cuts a stream at a delimiter.
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

    /// The next piece; the last may lack its delimiter.
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
                    "a message has more than message.max.bytes={} bytes without a delimiter",
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

    /// Gives a byte at a time.
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
    fn input_is_cut_at_the_delimiter_however_it_arrives() {
        for input in ["a\n\nbc\n", "a\n\nbc"] {
            assert_eq!(pieces(input.as_bytes(), b"\n"), ["a", "", "bc"]);
            assert_eq!(pieces(Drip(input.as_bytes()), b"\n"), ["a", "", "bc"]);
        }
        assert_eq!(pieces(Drip(b"a-=-b-=c-=-"), b"-=-"), ["a", "b-=c"]);
        assert_eq!(pieces(&b""[..], b"\n"), Vec::<String>::new());
    }

    #[test]
    fn a_message_without_end_is_an_error_and_not_all_of_the_memory() {
        let mut pieces = Pieces::new(io::repeat(b'x'), b"\n", 1000);
        assert!(matches!(pieces.next(), Err(Failure::Failed(_))));
    }
}
