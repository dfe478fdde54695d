//! `ottla properties` and `-X list`: print the properties of clients.

use std::io::{self, Write};

use clap::Args;
use ottla::properties::{self, Importance, Property, Scope, Side, Status};

use crate::failure::{Failure, Outcome};

/// List the properties of clients, or explain some of them
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  ottla properties\n  ottla properties linger.ms acks\n  ottla -X list")]
pub struct PropertiesOptions {
    /// Explain only these properties
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

/// Prints them.
pub fn run(options: &PropertiesOptions) -> Outcome {
    let mut out = io::stdout().lock();
    if options.names.is_empty() {
        return list(&mut out);
    }
    for name in &options.names {
        let named: Vec<_> = properties::properties().filter(|property| property.name == name).collect();
        if named.is_empty() {
            // Setting it returns an error that suggests a similar name.
            ottla::Config::new().set(name, "")?;
            return Err(Failure::Usage(format!("there is no property `{name}`")));
        }
        for property in named {
            explain(property, &mut out)?;
        }
    }
    Ok(())
}

/// Prints all properties in sections, one per line.
pub fn list(out: &mut impl Write) -> Outcome {
    let section = |property: &Property| match (property.scope, property.side) {
        (Scope::Topic, _) => "Topics",
        (Scope::Global, Side::Both) => "Producer and consumer",
        (Scope::Global, Side::Producer) => "Producer",
        (Scope::Global, Side::Consumer) => "Consumer",
    };
    for title in ["Producer and consumer", "Producer", "Consumer", "Topics"] {
        writeln!(out, "# {title}")?;
        for property in properties::properties().filter(|property| section(property) == title) {
            let note = match (property.alias, property.status) {
                (Some(alias), _) => format!("alias of {}", alias.of),
                (None, Status::Used) => String::new(),
                (None, Status::Accepted(_)) => "no effect".to_string(),
                (None, Status::Unbuilt(_)) => "unimplemented".to_string(),
                (None, Status::Refused(_)) => "set by a call".to_string(),
            };
            let default = property.rust_default.unwrap_or(property.default);
            let line = format!(
                "{:<46} {:<28} {:<20} {note}",
                property.name,
                shortened(&property.range(), 28),
                shortened(default, 20)
            );
            writeln!(out, "{}", line.trim_end())?;
        }
        writeln!(out)?;
    }
    writeln!(out, "name, values, default, note; `ottla properties NAME` explains one")?;
    Ok(())
}

fn explain(property: &'static Property, out: &mut impl Write) -> Outcome {
    let who = match (property.scope, property.side) {
        (Scope::Topic, _) => "topic",
        (_, Side::Both) => "producer and consumer",
        (_, Side::Producer) => "producer",
        (_, Side::Consumer) => "consumer",
    };
    writeln!(out, "{} ({who})", property.name)?;
    writeln!(out, "  {}", property.text())?;
    if let Some(alias) = property.alias {
        writeln!(out, "  alias of: {}", alias.of)?;
    }
    if !property.range().is_empty() {
        writeln!(out, "  values: {}", property.range())?;
    }
    let default = property.rust_default.unwrap_or(property.default);
    if !default.is_empty() {
        writeln!(out, "  default: {default}")?;
    }
    match property.status {
        Status::Used => {}
        Status::Accepted(reason) => writeln!(out, "  accepted without effect: {reason}")?,
        Status::Unbuilt(reason) => writeln!(out, "  unimplemented: {reason}")?,
        Status::Refused(reason) => writeln!(out, "  refused: {reason}")?,
    }
    if property.deprecated {
        writeln!(out, "  deprecated")?;
    }
    if property.importance == Importance::High {
        writeln!(out, "  important: consider it for every new program")?;
    }
    Ok(())
}

fn shortened(text: &str, length: usize) -> String {
    match text.char_indices().nth(length) {
        Some(_) => text.chars().take(length - 1).chain(['…']).collect(),
        None => text.to_string(),
    }
}
