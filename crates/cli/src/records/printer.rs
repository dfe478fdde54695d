//! What the commands call for each record: filter, decode, print.

use std::io::Write;

use clap::Args;
use ottla::{Message, MessageRef};

use super::csv::{COLUMNS, Csv};
use super::decoder::Decoders;
use super::filter::Filter;
use super::format::MessageFormat;
use super::json::write_json;
use super::part_format::PartFormats;
use super::registry::{Registry, RegistryOptions};
use super::{DecodedRecord, RecordParts, with_parts};
use crate::client_options::ClientOptions;
use crate::failure::{Failure, Outcome};
use crate::standard_error::note;

/// The options that choose records and their output.
#[derive(Args, Debug)]
pub struct OutputOptions {
    /// Print only messages for which this expression is true, such as 'value.total > 100'; see below
    #[arg(long, value_name = "EXPRESSION")]
    filter: Option<String>,

    /// How keys and values are decoded: key=FORMAT,value=FORMAT or FORMAT for both; see below. Can be repeated
    #[arg(short = 's', long, visible_alias = "decode", value_name = "FORMAT")]
    serde: Vec<String>,

    /// A folder with the files that a .proto file or a JSON Schema of -s uses, or a file with types of Avro; can be repeated
    #[arg(short = 'I', long, value_name = "PATH")]
    include: Vec<std::path::PathBuf>,

    #[command(flatten)]
    registry: RegistryOptions,

    /// The format of a message; see below
    #[arg(short = 'f', long, value_name = "FORMAT", conflicts_with_all = ["json", "csv"])]
    format: Option<String>,

    /// Print each message as a line of JSON
    #[arg(short = 'J', long, conflicts_with = "csv")]
    json: bool,

    /// Print comma-separated values with a line of headings: all columns, or those of --csv=key,time,header:NAME,value
    #[arg(long, value_name = "COLUMNS", num_args = 0..=1, require_equals = true, default_missing_value = COLUMNS)]
    csv: Option<String>,

    /// Print the key, followed by this text, before each message
    #[arg(short = 'K', long, value_name = "TEXT")]
    key_delimiter: Option<String>,

    /// The text after each message
    #[arg(short = 'D', long, value_name = "TEXT", default_value = "\\n")]
    delimiter: String,

    /// Print null keys and values as NULL
    #[arg(short = 'Z', long)]
    null: bool,
}

/// Prints records.
#[derive(Debug)]
pub struct Printer {
    filter: Option<Filter>,
    decoders: Decoders,
    output: Output,
}

#[derive(Debug)]
enum Output {
    Format(MessageFormat),
    Json,
    Csv(Csv),
}

impl OutputOptions {
    /// Returns the printer that the options describe; `client` chooses the profile that may name the registry.
    ///
    /// # Errors
    ///
    /// [`Failure::Usage`] if the format, a decoder, a column or the filter is wrong.
    pub fn printer(&self, client: &ClientOptions) -> Outcome<Printer> {
        let formats = PartFormats::parse(&self.serde, &self.include).map_err(Failure::Usage)?;
        let decoders = Decoders::new(formats, || Registry::new(&self.registry, client))?;
        let filter = self.filter.as_deref().map(|text| Filter::parse(text, &decoders)).transpose()?;
        let output = match (&self.format, &self.csv) {
            (Some(format), _) => {
                Output::Format(MessageFormat::parse(format, self.null).map_err(Failure::Usage)?)
            }
            (None, Some(columns)) => Output::Csv(Csv::parse(columns).map_err(Failure::Usage)?),
            (None, None) if self.json => Output::Json,
            (None, None) => Output::Format(MessageFormat::usual(
                self.key_delimiter.as_deref(),
                &self.delimiter,
                self.null,
            )),
        };
        Ok(Printer { filter, decoders, output })
    }
}

impl Printer {
    /// Prints what stands before the first record.
    ///
    /// # Errors
    ///
    /// That of the output.
    pub fn begin(&mut self, out: &mut impl Write) -> Outcome {
        match &mut self.output {
            Output::Csv(csv) => Ok(csv.begin(out)?),
            _ => Ok(()),
        }
    }

    /// Prints a message. Returns false if the filter left it out.
    ///
    /// # Errors
    ///
    /// That of the output; [`Failure::Failed`] if a message can't be decoded and the output is not JSON, which has the error.
    pub fn print(&mut self, message: &MessageRef<'_>, out: &mut impl Write) -> Outcome<bool> {
        with_parts!(message, |parts| self.print_parts(parts, out))
    }

    /// Prints a message that was taken out of its records. See [`Printer::print`].
    ///
    /// # Errors
    ///
    /// Those of [`Printer::print`].
    pub fn print_message(&mut self, message: &Message, out: &mut impl Write) -> Outcome<bool> {
        with_parts!(message, |parts| self.print_parts(parts, out))
    }

    /// Prints the parts of a message. See [`Printer::print`].
    ///
    /// # Errors
    ///
    /// Those of [`Printer::print`].
    fn print_parts(&mut self, parts: &RecordParts<'_>, out: &mut impl Write) -> Outcome<bool> {
        if let Some(filter) = &self.filter
            && !filter.passes(parts)?
        {
            return Ok(false);
        }
        let record = DecodedRecord {
            parts: *parts,
            key: self.decoders.key_of(parts),
            value: self.decoders.value_of(parts),
        };
        if !matches!(self.output, Output::Json) {
            for (name, field) in [("key", &record.key), ("value", &record.value)] {
                if let Err(error) = field {
                    return Err(Failure::Failed(format!(
                        "{} [{}] at offset {}: the {name} can't be decoded (-s): {error}; -J prints such messages with the error",
                        parts.topic, parts.partition, parts.offset
                    )));
                }
            }
        }
        match &mut self.output {
            Output::Format(format) => format.write(&record, out)?,
            Output::Json => write_json(&record, out)?,
            Output::Csv(csv) => csv.write(&record, out)?,
        }
        Ok(true)
    }

    /// Prints the warning about records for which the filter failed, at the end.
    pub fn warn(&self) {
        if let Some(warning) = self.filter.as_ref().and_then(Filter::warning) {
            note!("% {warning}");
        }
    }
}
