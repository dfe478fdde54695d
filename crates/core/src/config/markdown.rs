//! Generates CONFIGURATION.md from the table.

use std::fmt::Write;

use super::table::{self, Kind, Origin, Property, Scope, Status};

/// Returns the text of CONFIGURATION.md.
pub fn markdown() -> String {
    let mut out = String::from(
        "# Configuration\n\n\
         <!-- Generated from crates/core/src/config/table. Change the rows there and run `cargo xtask docs`. -->\n\n\
         Every property that librdkafka 2.16 documents is known, and the Java client's names are too: programs keep \
         their configuration. A property is **used**, **accepted** without effect, or **refused** with the reason \
         unless it is set to its default. A name that isn't known is an error with the nearest one that is.\n\n\
         The default is librdkafka's, which holds in the C library; where Rust starts safer, its own default stands \
         behind it. C/P says who looks at it: a consumer, a producer, or both (*). An alias is another name for the \
         same value.\n\n\
         `Config::load` and the commands' `-F` read files as `java.util.Properties` does. Every public property of the clients of \
         Kafka 4.4 is accepted there and by `Config::set`: a number that Java permits and a range here does not becomes the \
         nearest one, classes of Kafka stand for what does their work here, and a value without effect is a warning. What \
         would change the outcome silently is refused: other partitioners and login modules, and values that a class of \
         `config.providers` would replace. The C library has librdkafka's ranges.\n",
    );
    let scoped =
        |scope| move |property: &&&Property| property.origin == Origin::Librdkafka && property.scope == scope;
    let properties: Vec<_> = table::properties().collect();
    section(&mut out, "Global properties", properties.iter().filter(scoped(Scope::Global)));
    section(&mut out, "Topic properties", properties.iter().filter(scoped(Scope::Topic)));
    let from = |origin| move |property: &&&Property| property.origin == origin;
    section(&mut out, "Ottla's own properties", properties.iter().filter(from(Origin::Ottla)));
    section(&mut out, "Names of the Java client", properties.iter().filter(from(Origin::Java)));
    out
}

fn section<'a>(out: &mut String, title: &str, rows: impl Iterator<Item = &'a &'static Property>) {
    let _ = write!(
        out,
        "\n## {title}\n\n\
         | Property | C/P | Range | Default | Importance | What it does |\n\
         |---|:-:|---|---|---|---|\n"
    );
    for property in rows {
        let default = match (property.default, property.rust_default) {
            (default, Some(rust)) => format!("{} (Rust: {})", code(default), code(rust)),
            (default, None) => code(default),
        };
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            code(property.name),
            property.side,
            cell(&range(property)),
            default,
            property.importance,
            cell(&description(property)),
        );
    }
}

fn range(property: &Property) -> String {
    match property.kind {
        Kind::Text => "text".to_string(),
        Kind::Call => "set by a call".to_string(),
        _ => property.range(),
    }
}

fn description(property: &'static Property) -> String {
    let mut text = match property.alias {
        Some(alias) => format!("Alias of `{}`: {}", alias.of, property.text()),
        None => property.text().to_string(),
    };
    if property.deprecated {
        text.insert_str(0, "**Deprecated.** ");
    }
    match property.status {
        Status::Used => {}
        Status::Accepted(reason) => {
            let _ = write!(text, " *Accepted without effect: {reason}.*");
        }
        Status::Unbuilt(reason) => {
            let _ = write!(
                text,
                " *No effect with `security.protocol=plaintext`, refused with others: {reason}.*"
            );
        }
        Status::Refused(_) => {}
    }
    text
}

fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{}`", cell(text)) }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../CONFIGURATION.md");

    /// `OTTLA_WRITE_DOCS=1 cargo test -p ottla-core configuration_md` writes the file instead of comparing it.
    #[test]
    fn configuration_md_matches_the_table() {
        if std::env::var_os("OTTLA_WRITE_DOCS").is_some() {
            std::fs::write(FILE, markdown()).unwrap();
        }
        let file = std::fs::read_to_string(FILE).unwrap_or_default();
        assert!(file == markdown(), "CONFIGURATION.md is stale: run `cargo xtask docs`");
    }

    #[test]
    fn every_row_has_the_columns_of_the_head() {
        for line in markdown().lines().filter(|line| line.starts_with("| `")) {
            assert_eq!(line.replace("\\|", "").matches('|').count(), 7, "{line}");
        }
    }
}
