//! docs/guide/errors.md: every error code with its names, its text, and what to do.

use std::fmt::Write as _;

use ottla_core::advice::{self, Advice};
use ottla_protocol::error_code::ErrorCode;

use crate::ffi::{
    codes::{CODES, RespErr},
    error::describe,
};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/errors.md");

const HEAD: &str = "# Errors, and what to do

Generated from the tables in crates/core/src/advice; change it there.

An error of the C library has a code (`rd_kafka_resp_err_t`), a name without `RD_KAFKA_RESP_ERR_` (`rd_kafka_err2name()`) and a text
(`rd_kafka_err2str()`); events and logs add what failed, where, and why. In Rust, `Error::kind()` has the variant, `Error::culprit()` the
party at fault, and `Error::advice()` the sentence of this page. *Who* is the one who can change something: *nobody* if it passes by itself
or the client deals with it. For everything between a client and its brokers, `ottla doctor -b HOST:PORT` or `-F client.properties`
tries each step and names the one that fails ([Security](security.md), [Operation](operating.md)).

";

fn text_of(code: i32) -> String {
    describe(RespErr(code)).to_string_lossy().replace('|', "\\|")
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    page += "## Codes that the client sets\n\nNegative; the broker never sends them.\n\n";
    page += "| code | name | text | who | what to do |\n|---:|---|---|---|---|\n";
    let errors = || CODES.iter().filter(|(code, ..)| !text_of(code.0).starts_with("Err-") && code.is_error());
    let mut local: Vec<_> = errors().filter(|(code, ..)| code.0 < -1).collect();
    local.sort_by_key(|(code, ..)| -code.0);
    for (code, name, _) in local {
        let Advice { fault, what_to_do } =
            advice::of_library(name).unwrap_or_else(|| panic!("no advice: {name}"));
        writeln!(page, "| {code} | `{name}` | {} | {fault} | {what_to_do} |", text_of(code.0)).unwrap();
    }
    page += "\n## Codes that brokers send\n\nThe first name is that of the C interface, the second Kafka's, if it is another one. \
        A request with an error marked *yes* is sent again by the client, until its time is over.\n\n";
    page += "| code | names | text | again | who | what to do |\n|---:|---|---|---|---|---|\n";
    for code in ErrorCode::all().filter(|code| code.is_error()) {
        let Advice { fault, what_to_do } = advice::of_broker(code).unwrap();
        let in_c = errors().find(|(other, ..)| other.0 == i32::from(code.0)).map(|(_, name, _)| *name);
        let names = match in_c {
            Some(name) if name != code.name() => format!("`{name}`, `{}`", code.name()),
            _ => format!("`{}`", code.name()),
        };
        let text = match in_c {
            Some(_) => text_of(code.0.into()),
            None => code.description().replace('|', "\\|"),
        };
        let again = if code.is_retriable() { "yes" } else { "" };
        writeln!(page, "| {} | {names} | {text} | {again} | {fault} | {what_to_do} |", code.0).unwrap();
    }
    page
}

/// `OTTLA_WRITE_DOCS=1 cargo test -p ottla-capi errors_md` writes the file instead of comparing it.
#[test]
fn errors_md_has_every_code() {
    let page = page();
    if std::env::var_os("OTTLA_WRITE_DOCS").is_some() {
        std::fs::write(FILE, &page).unwrap();
    }
    let file = std::fs::read_to_string(FILE).unwrap_or_default();
    assert!(file == page, "docs/guide/errors.md is stale: run `cargo xtask docs`");
}

#[test]
fn advice_of_the_client_is_about_codes_that_exist() {
    for name in advice::library_names() {
        assert!(CODES.iter().any(|(_, other, _)| *other == name), "{name}");
    }
}
