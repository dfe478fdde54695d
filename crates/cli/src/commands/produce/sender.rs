//! Sends the messages of the input, of files or of a template.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ottla::{Producer, Topic};
use ottla_sorted::SortedMap;

use super::ProduceOptions;
use super::draft::{Draft, Field, Layout, Structured, partition_of};
use super::pieces::{Pieces, read_message};
use super::template::{Generator, Template};
use crate::failure::{Failure, Outcome};
use crate::input::InterruptibleInput;
use crate::perf::pace::Pace;
use crate::perf::payload::unescape;
use crate::records::{Encoders, Part};
use crate::sending::{Sending, require_topic};
use crate::signals::Interrupt;
use crate::times::{now_ms, parse_time};

/// What the options say about each message.
pub struct Plan {
    layout: Layout,
    encoders: Encoders,
    generate: Option<Template>,
    key: Option<Template>,
    partition: Option<Template>,
    timestamp: Option<Template>,
    headers: Vec<(String, Option<Template>)>,
}

impl Plan {
    /// Reads the options.
    ///
    /// # Errors
    ///
    /// [`Failure::Usage`] if a template or its constant is wrong.
    pub fn new(options: &ProduceOptions, encoders: Encoders) -> Outcome<Plan> {
        let template = |option: &str, text: &String| {
            Template::parse(text).map_err(|error| Failure::Usage(format!("{option} {text}: {error}")))
        };
        let of = |option: &str, text: &Option<String>| {
            text.as_ref().map(|text| template(option, text)).transpose()
        };
        let delimiter = options.key_delimiter.as_deref().map(unescape);
        if delimiter.as_ref().is_some_and(Vec::is_empty) {
            return Err(Failure::Usage("-K: the text must not be empty".into()));
        }
        let layout = match (&options.fields, delimiter) {
            (Some(fields), delimiter) => {
                Layout::Fields(fields.0.clone(), delimiter.unwrap_or_else(|| b"\t".to_vec()))
            }
            (None, Some(delimiter)) => Layout::KeyAndValue(delimiter),
            (None, None) if options.json => Layout::Json(Structured {
                key: !encoders.is_plain(Part::Key),
                value: !encoders.is_plain(Part::Value),
            }),
            (None, None) => Layout::Value,
        };
        let mut headers = Vec::new();
        for header in &options.header {
            headers.push(match header.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(template("-H", &value.to_owned())?)),
                None => (header.clone(), None),
            });
        }
        let plan = Plan {
            layout,
            encoders,
            generate: of("--generate", &options.generate)?,
            key: of("-k", &options.key)?,
            partition: of("-p", &options.partition)?,
            timestamp: of("--timestamp", &options.timestamp)?,
            headers,
        };
        if plan.generate.as_ref().is_some_and(Template::needs_message) {
            return Err(Failure::Usage(
                "--generate makes the value: {{value}} and {{key}} are not there yet".into(),
            ));
        }
        // Constants are checked before the first message.
        if let Some(text) = plan.partition.as_ref().and_then(Template::constant) {
            partition_of(text).map_err(|error| Failure::Usage(format!("-p: {error}")))?;
        }
        if let Some(text) = plan.timestamp.as_ref().and_then(Template::constant) {
            parse_time(text, now_ms()).map_err(|error| Failure::Usage(format!("--timestamp: {error}")))?;
        }
        Ok(plan)
    }

    /// True if messages name their topics.
    pub fn has_topics(&self) -> bool {
        match &self.layout {
            Layout::Json(_) => true,
            Layout::Fields(fields, _) => fields.contains(&Field::Topic),
            _ => false,
        }
    }

    /// True if messages are lines of JSON.
    fn is_json(&self) -> bool {
        matches!(self.layout, Layout::Json(_))
    }

    /// Encodes key and value, as `-s` says. With `nulls`, empty ones become null later.
    fn encode(&self, draft: &mut Draft<'_>, topic: &str, nulls: bool) -> Result<(), String> {
        for part in [Part::Key, Part::Value] {
            // A copied record may name the schema that it had before.
            if let Some(name) = self.encoders.id_header(part) {
                draft.headers.retain(|(header, _)| **header != *name.as_bytes());
            }
            let field = match part {
                Part::Key => &mut draft.key,
                Part::Value => &mut draft.value,
            };
            let text = field.take_if(|text| !(self.encoders.is_plain(part) || nulls && text.is_empty()));
            let Some(text) = text else { continue };
            let encoded =
                self.encoders.encode(part, topic, &text).map_err(|error| format!("the {part}: {error}"))?;
            *field = Some(encoded.payload.into());
            if let (Some(id), Some(name)) = (encoded.id, self.encoders.id_header(part)) {
                draft.headers.push((name.as_bytes().into(), Some(id.into())));
            }
        }
        Ok(())
    }

    /// Sets what the options say about a message.
    fn complete(
        &self,
        draft: &mut Draft<'_>,
        generator: &mut Generator,
        repartition: bool,
    ) -> Result<(), String> {
        if let Some(template) = &self.generate {
            draft.value = Some(template.fill(generator, draft)?.into_bytes().into());
        }
        if repartition {
            draft.partition = None;
        }
        let fill =
            |template: &Template, generator: &mut Generator, draft: &Draft<'_>| match template.constant() {
                Some(text) => Ok(text.to_owned()),
                None => template.fill(generator, draft),
            };
        if let Some(template) = &self.partition {
            draft.partition = Some(partition_of(&fill(template, generator, draft)?)?);
        }
        if let Some(template) = &self.timestamp {
            draft.timestamp = Some(parse_time(&fill(template, generator, draft)?, now_ms())?);
        }
        for (name, template) in &self.headers {
            let value = template.as_ref().map(|template| fill(template, generator, draft)).transpose()?;
            draft
                .headers
                .push((name.clone().into_bytes().into(), value.map(|value| value.into_bytes().into())));
        }
        if let Some(template) = &self.key {
            draft.key = Some(fill(template, generator, draft)?.into_bytes().into());
        }
        Ok(())
    }
}

/// Sends messages.
pub struct Sender<'a> {
    options: &'a ProduceOptions,
    plan: Plan,
    producer: &'a Producer,
    /// The topics by name.
    topics: SortedMap<String, Topic>,
    timeout: Duration,
    generator: Generator,
    /// The file and the line of the message, in an input of lines.
    place: Option<(Option<PathBuf>, u64)>,
    pace: Option<Pace>,
    interrupt: Interrupt,
    sending: Sending,
}

impl<'a> Sender<'a> {
    /// Creates a sender.
    pub fn new(
        options: &'a ProduceOptions,
        plan: Plan,
        producer: &'a Producer,
        sending: &Sending,
        interrupt: &Interrupt,
        timeout: Duration,
    ) -> Sender<'a> {
        let topics = options.topic.iter().map(|topic| (topic.clone(), producer.topic(topic))).collect();
        Sender {
            options,
            plan,
            producer,
            topics,
            timeout,
            generator: Generator::new(options.seed),
            place: None,
            pace: options.rate.map(|rate| Pace::new(Instant::now(), rate)),
            interrupt: interrupt.clone(),
            sending: sending.clone(),
        }
    }

    /// Sends all messages.
    ///
    /// # Errors
    ///
    /// The input can't be read, or a message is wrong or was not accepted.
    pub fn send_all(&mut self, delimiter: &[u8], max_bytes: usize) -> Outcome {
        let options = self.options;
        let mut left = options.count.unwrap_or(u64::MAX);
        if options.generate.is_some() {
            return self.send_generated(left);
        }
        if options.files.is_empty() {
            self.place = (delimiter == b"\n").then_some((None, 0));
            return self.send_pieces(io::stdin(), delimiter, max_bytes, &mut left);
        }
        for path in &options.files {
            self.place = (options.lines && delimiter == b"\n").then(|| (Some(path.clone()), 0));
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

    fn send_generated(&mut self, count: u64) -> Outcome {
        for _ in 0..count {
            self.interrupt.check()?;
            self.send_draft(Draft::default())?;
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
        // JSON needs more bytes than the message that it describes.
        let max_bytes = if self.plan.is_json() { max_bytes.saturating_mul(7) } else { max_bytes };
        let mut pieces = Pieces::new(InterruptibleInput::new(input, &self.interrupt), delimiter, max_bytes);
        while *left > 0 {
            let piece = pieces.next()?;
            // If a signal ended the input, the last piece may be an incomplete message.
            self.interrupt.check()?;
            if let Some((_, line)) = &mut self.place {
                *line += 1;
            }
            match piece {
                Some(piece) if piece.is_empty() && self.plan.is_json() => continue,
                Some(piece) => self.send(piece)?,
                None => return Ok(()),
            }
            *left -= 1;
        }
        Ok(())
    }

    fn send(&mut self, piece: &[u8]) -> Outcome {
        let draft = self.plan.layout.read(piece).map_err(|error| self.wrong(&error))?;
        self.send_draft(draft)
    }

    fn wrong(&self, error: &str) -> Failure {
        let place = match &self.place {
            Some((Some(path), line)) => format!(" ({}, line {line})", path.display()),
            Some((None, line)) => format!(" (line {line})"),
            None => String::new(),
        };
        Failure::Failed(format!("message {}{place}: {error}", self.generator.number + 1))
    }

    fn send_draft(&mut self, mut draft: Draft<'_>) -> Outcome {
        let completed = self.plan.complete(&mut draft, &mut self.generator, self.options.repartition);
        completed.map_err(|error| self.wrong(&error))?;
        if let Some(pace) = &self.pace {
            pace.keep(self.generator.number, &self.interrupt)?;
        }
        let name = match (&self.options.topic, &draft.topic) {
            (Some(topic), _) => topic.as_str(),
            (None, Some(topic)) => topic,
            (None, None) => return Err(self.wrong("it names no topic, and -t is missing")),
        };
        if !self.topics.contains_key(name) {
            require_topic(self.producer, name, self.timeout)?;
            self.topics.insert(name.to_owned(), self.producer.topic(name));
        }
        let Some((name, topic)) = self.topics.get_key_value(name) else { return Ok(()) };
        self.plan.encode(&mut draft, name, self.options.null).map_err(|error| self.wrong(&error))?;
        let record = draft.record(self.options.null);
        self.generator.number += 1;
        let number = self.generator.number;
        self.sending
            .send(topic, &record)?
            .map_err(|error| Failure::Failed(format!("message {number} was not accepted: {error}")))
    }
}
