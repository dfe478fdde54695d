//! The table of all functions, read from `functions.txt`, and the pages and sources that are generated from it. Used by
//! `build.rs` and by the tests.

/// The text of the entries.
pub const FUNCTIONS: &str = include_str!("functions.txt");

/// The completeness of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The function is complete.
    Complete,
    /// A part is missing; the entry describes it.
    Partial,
}

/// A function of the C library.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its completeness.
    pub status: Status,
    /// The header that declares it.
    pub header: String,
    /// Its prototype.
    pub prototype: String,
    /// Its documentation.
    pub doc: String,
    /// The description of the missing part.
    pub missing: Option<String>,
}

impl Function {
    /// Returns the name.
    pub fn name(&self) -> &str {
        let end = self.prototype.find('(').unwrap_or(0);
        let start = self.prototype[..end]
            .rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .map_or(0, |at| at + 1);
        &self.prototype[start..end]
    }

    /// Returns its documentation for readers of the Rust code: the header's text, with the prototype.
    pub fn rust_doc(&self) -> String {
        let doc = self.doc.replace('[', "\\[").replace(']', "\\]").replace('<', "\\<");
        format!("{doc}\n\n```c\n{}\n```\n\n# Safety\n\nThe caller keeps to the header.\n", self.prototype)
    }

    /// Returns the type of its result, without spaces at the ends.
    pub fn return_type(&self) -> &str {
        let end = self.prototype.find(self.name()).unwrap_or(0);
        self.prototype[..end].trim_start_matches("RD_DEPRECATED").trim()
    }

    /// Returns the parameters, as written.
    pub fn parameters(&self) -> Vec<&str> {
        let start = self.prototype.find('(').map_or(0, |at| at + 1);
        let (mut depth, mut from, mut list) = (0, start, Vec::new());
        for (at, letter) in self.prototype.char_indices().skip_while(|(at, _)| *at < start) {
            match letter {
                '(' => depth += 1,
                ')' if depth > 0 => depth -= 1,
                ',' | ')' if depth == 0 => {
                    list.push(self.prototype[from..at].trim());
                    from = at + 1;
                    if letter == ')' {
                        break;
                    }
                }
                _ => {}
            }
        }
        list.retain(|parameter| *parameter != "void");
        list
    }
}

/// The headers.
pub const HEADERS: [&str; 3] = ["rdkafka.h", "rdkafka_mock.h", OTTLA];
/// The header of the functions that librdkafka does not have.
const OTTLA: &str = "rdkafka_ottla.h";

/// Returns the functions that librdkafka has, too.
pub fn functions_of_librdkafka() -> Vec<Function> {
    functions().into_iter().filter(|function| function.header != OTTLA).collect()
}

/// Returns all functions in the order of the headers.
pub fn functions() -> Vec<Function> {
    let entries = FUNCTIONS.split("\n\n").filter(|entry| !entry.trim().is_empty() && !entry.starts_with('#'));
    entries
        .map(|entry| {
            let mut lines = entry.trim().lines().map(str::trim);
            let mut next =
                || lines.next().unwrap_or_else(|| panic!("an entry is too short: {entry}")).to_owned();
            let head = next();
            let (status, header) = head.split_once(' ').unwrap_or_else(|| panic!("no header: {entry}"));
            let status = match status {
                "complete" => Status::Complete,
                "partial" => Status::Partial,
                other => panic!("`{other}` is not a status"),
            };
            let (prototype, doc) = (next(), next());
            let missing = lines.next().map(|line| match line.strip_prefix("! ") {
                Some(missing) => missing.to_owned(),
                None => panic!("{prototype} has more than one line of documentation: {line}"),
            });
            let is_reported = match status {
                Status::Complete => missing.is_none(),
                Status::Partial => missing.is_some(),
            };
            assert!(is_reported, "{prototype} says what is missing if it is partial");
            Function { status, header: header.to_owned(), prototype, doc, missing }
        })
        .collect()
}

/// The page that says how much of each function is there.
pub fn status_page() -> String {
    let functions = functions();
    let original = functions_of_librdkafka();
    let count = |status| original.iter().filter(|function| function.status == status).count();
    let mut page = format!(
        "# What is there of librdkafka's interface\n\n\
         All {} symbols are exported: {} complete, {} partial. `rdkafka_ottla.h` adds {} functions, whose names begin with\n\
         `rd_kafka_ottla_`. The headers describe each function. What all of them do with mistakes and with panics is in\n\
         [misuse.md](../../docs/guide/misuse.md), and how they differ from the original in\n\
         [differences.md](../../docs/guide/differences.md).\n\n\
         Generated from [functions.txt](abi/functions.txt); a test compares it with the library's symbols.\n",
        original.len(),
        count(Status::Complete),
        count(Status::Partial),
        functions.len() - original.len(),
    );
    for function in functions.iter().filter(|function| function.status == Status::Partial) {
        let missing = function.missing.as_deref().unwrap_or_default();
        page.push_str(&format!("\n- `{}` is partial: {missing}", function.name()));
    }
    page
}

/// Returns one of the [`HEADERS`].
pub fn header(name: &str) -> String {
    let (guard, head, types) = match name {
        "rdkafka.h" => ("_RDKAFKA_H_", RDKAFKA_HEAD, include_str!("types.h")),
        OTTLA => ("_RDKAFKA_OTTLA_H_", OTTLA_HEAD, OTTLA_TYPES),
        _ => ("_RDKAFKA_MOCK_H_", MOCK_HEAD, MOCK_TYPES),
    };
    let mut text = format!(
        "/*\n * {name}: {head}\n *\n * Ottla, an Apache Kafka client. Licensed under MIT or Apache-2.0.\n * Generated from \
         crates/capi/abi; change it there.\n */\n#ifndef {guard}\n#define {guard}\n\n"
    );
    text.push_str(if name == "rdkafka.h" { RDKAFKA_INCLUDES } else { "#include \"rdkafka.h\"\n" });
    text.push_str("\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    text.push_str(types);
    text.push('\n');
    for function in functions().iter().filter(|function| function.header == name) {
        text.push_str(&format!("/** {} */\nRD_EXPORT\n{}\n\n", function.doc, function.prototype));
    }
    text.push_str("#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
    text
}

const RDKAFKA_HEAD: &str = "the C interface of an Apache Kafka client, as librdkafka 2.16 has it.";
const MOCK_HEAD: &str = "a cluster inside the process, for tests.";
const MOCK_TYPES: &str = "\
/** A cluster inside the process. */
typedef struct rd_kafka_mock_cluster_s rd_kafka_mock_cluster_t;
/** A request that it was sent. */
typedef struct rd_kafka_mock_request_s rd_kafka_mock_request_t;
/** What the members of a consumer group are to be given. */
typedef struct rd_kafka_mock_cgrp_consumer_target_assignment_s rd_kafka_mock_cgrp_consumer_target_assignment_t;
";
const OTTLA_HEAD: &str = "administrative calls that librdkafka does not have.";
const OTTLA_TYPES: &str = "\
/** The version of this interface. It rises when functions are added; a library with a higher one has all functions of this header. */
#define RD_KAFKA_OTTLA_VERSION 1

/** The type of the events of all calls of this header, for rd_kafka_event_type(). */
#define RD_KAFKA_OTTLA_EVENT_RESULT 0x40000000

/** The arguments of a call: rows of fields, which have names and texts as values. The documentation of a call has the fields. A call
 *  with an unknown field, a missing one, or a wrong value ends with RD_KAFKA_RESP_ERR__INVALID_ARG and a text that names it.
 *
 *  All calls have the same form: they copy the request, and end with an event on rkqu, or on the client's main queue if that is NULL.
 *  options is NULL or made by rd_kafka_AdminOptions_new() for RD_KAFKA_ADMIN_OP_ANY. */
typedef struct rd_kafka_ottla_request_s rd_kafka_ottla_request_t;
/** A part of a result: fields, and an error. Newer brokers and libraries may add fields. */
typedef struct rd_kafka_ottla_row_s rd_kafka_ottla_row_t;
";
const RDKAFKA_INCLUDES: &str = "\
#include <stdio.h>
#include <inttypes.h>
#include <stddef.h>
#include <sys/types.h>

struct sockaddr;
struct addrinfo;

#ifndef RD_EXPORT
#define RD_EXPORT
#endif

#if defined(__GNUC__)
#define RD_DEPRECATED __attribute__((deprecated))
#define RD_FORMAT(kind, text, first) __attribute__((format(kind, text, first)))
#define RD_UNUSED __attribute__((unused))
#define RD_INLINE __inline
#else
#define RD_DEPRECATED
#define RD_FORMAT(kind, text, first)
#define RD_UNUSED
#define RD_INLINE inline
#endif
";
