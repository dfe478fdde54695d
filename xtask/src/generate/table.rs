//! The functions of the C library with a code for each argument, from the prototypes of `crates/capi/abi/functions.txt`.
//!
//! A code says what a word of a step stands for, and which arguments of C it becomes; `tests/abi/generate/arguments.c` has the other
//! side. `h` is a handle, with a flag and its kind: `h:conf` is used, `h!conf` destroyed, `h^conf` taken over, `h&...` printed after
//! the call, `h%conf` may be constant. `below@COUNT` is an index below what this function returns, `arr#KIND` an array whose length
//! differs between runs. [`CODES`] has what the prototypes do not say.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
};

use super::kinds;
use crate::{Result, shell::root};

/// The parameters for which the original survives NULL; `--write` finds them.
pub const NULLS: &str = "tests/abi/generate/nulls.txt";
const FUNCTIONS: &str = "crates/capi/abi/functions.txt";

/// A parameter that a word of a step stands for, or that the runner fills in.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The name in the prototype, which chooses the values.
    pub name: String,
    pub code: String,
}

impl Parameter {
    /// Returns the kind of handle, if it is one.
    pub fn kind(&self) -> Option<&str> {
        let (code, kind) = self.code.split_once([':', '!', '&', '^', '%'])?;
        (code == "h" || code == "ah").then_some(kind)
    }

    /// True if a word of the step stands for it.
    pub fn is_word(&self) -> bool {
        !self.code.starts_with('o') && !["cnt", "file", "fd"].contains(&self.code.as_str())
    }
}

/// A function.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    pub name: String,
    pub prototype: String,
    pub result: String,
    pub parameters: Vec<Parameter>,
}

impl Function {
    /// Returns the kinds of handles that a call makes, the result first.
    pub fn makes(&self) -> Vec<&str> {
        let made =
            |code: &str| ["new:", "get:", "arr:", "arr#", "oh:", "ob:"].iter().any(|it| code.starts_with(it));
        let result = (made(&self.result) || self.result == "E").then_some(self.result.as_str());
        let outs = self.parameters.iter().map(|parameter| parameter.code.as_str()).filter(|code| made(code));
        result
            .into_iter()
            .chain(outs)
            .map(|code| code.split_once([':', '#']).map_or("error", |(_, kind)| kind))
            .collect()
    }
}

/// All functions by name.
#[derive(Debug)]
pub struct Table {
    pub functions: BTreeMap<String, Function>,
    /// The names of the functions that make a handle of each kind.
    pub makers: BTreeMap<String, Vec<String>>,
    /// Functions and parameters for which the original survives NULL.
    pub nulls: BTreeSet<(String, String)>,
}

/// Functions that the steps of the runner call, because no table describes their arguments.
pub const BY_HAND: [&str; 17] = [
    "rd_kafka_error_new",
    "rd_kafka_producev",
    "rd_kafka_produceva",
    "rd_kafka_produce_batch",
    "rd_kafka_mock_push_request_errors",
    "rd_kafka_mock_broker_push_request_error_rtts",
    "rd_kafka_mock_partition_push_request_errors",
    "rd_kafka_mock_cgrp_consumer_target_assignment_new",
    "rd_kafka_mock_sharegroup_target_assignment",
    "rd_kafka_mock_sharegroup_get_member_ids",
    "rd_kafka_get_err_descs",
    "rd_kafka_mock_get_requests",
    "rd_kafka_mock_request_destroy_array",
    "rd_kafka_mock_request_destroy",
    "rd_kafka_mock_request_id",
    "rd_kafka_mock_request_api_key",
    "rd_kafka_mock_request_timestamp",
];

/// Functions that are not called, with the reason.
pub const EXCLUDED: [(&str, &str); 3] = [
    ("rd_kafka_unittest", "runs the original's own tests for a minute"),
    ("rd_kafka_wait_destroyed", "counts clients that the runner still has"),
    ("rd_kafka_conf_properties_show", "prints a table of hundreds of lines, which side_by_side compares"),
];

/// Functions that no program calls with success, with the reason.
pub const WITHOUT_SUCCESS: [(&str, &str); 3] = [
    ("rd_kafka_errno2err", "no number of the system stands for success"),
    ("rd_kafka_ListConsumerGroups_result_errors", "needs a broker that fails while another answers"),
    ("rd_kafka_Node_rack", "the brokers of a run have no racks"),
];

/// What a prototype does not say: the code of the result, or of a parameter.
const CODES: [(&str, &str, &str); 77] = [
    ("rd_kafka_ListOffsetsResultInfo_timestamp", "", "i64~"),
    ("rd_kafka_consume_callback", "", "i~"),
    ("rd_kafka_consume_callback_queue", "", "i~"),
    ("rd_kafka_err2str", "", "s~"),
    (
        "rd_kafka_ConsumerGroupDescription_member",
        "idx",
        "below@rd_kafka_ConsumerGroupDescription_member_count",
    ),
    (
        "rd_kafka_UserScramCredentialsDescription_scramcredentialinfo",
        "idx",
        "below@rd_kafka_UserScramCredentialsDescription_scramcredentialinfo_count",
    ),
    (
        "rd_kafka_share_partition_offsets_list_get",
        "index",
        "below@rd_kafka_share_partition_offsets_list_count",
    ),
    // Groups of other programs are listed, too.
    ("rd_kafka_ListConsumerGroups_result_valid", "", "arr#ConsumerGroupListing"),
    ("rd_kafka_ConsumerGroupListing_group_id", "", "s~"),
    ("rd_kafka_ConsumerGroupListing_is_simple_consumer_group", "", "v"),
    ("rd_kafka_ConsumerGroupListing_state", "", "v"),
    ("rd_kafka_ConsumerGroupListing_type", "", "v"),
    ("rd_kafka_produce", "", "ierr"),
    ("rd_kafka_produce", "msgflags", "flags"),
    ("rd_kafka_consume_start", "", "ierr"),
    ("rd_kafka_consume_start_queue", "", "ierr"),
    ("rd_kafka_consume_stop", "", "ierr"),
    // How much there is to serve, or left to do, is a matter of time.
    ("rd_kafka_poll", "", "v"),
    ("rd_kafka_queue_poll_callback", "", "v"),
    ("rd_kafka_outq_len", "", "v"),
    ("rd_kafka_topic_partition_available", "", "v"),
    ("rd_kafka_thread_cnt", "", "i~"),
    ("rd_kafka_queue_length", "", "i64~"),
    ("rd_kafka_controllerid", "", "i~"),
    ("rd_kafka_msg_partitioner_random", "", "v"),
    ("rd_kafka_msg_partitioner_consistent_random", "", "v"),
    ("rd_kafka_msg_partitioner_murmur2_random", "", "v"),
    ("rd_kafka_msg_partitioner_fnv1a_random", "", "v"),
    ("rd_kafka_message_latency", "", "i64~"),
    ("rd_kafka_message_timestamp", "", "i64~"),
    ("rd_kafka_message_timestamp", "tstype", "oi32~"),
    ("rd_kafka_message_errstr", "", "s~"),
    ("rd_kafka_message_produce_errstr", "", "s~"),
    ("rd_kafka_error_string", "", "s~"),
    ("rd_kafka_event_error_string", "", "s~"),
    ("rd_kafka_topic_result_error_string", "", "s~"),
    ("rd_kafka_ConfigResource_error_string", "", "s~"),
    ("rd_kafka_event_stats", "", "s~"),
    ("rd_kafka_event_config_string", "", "s~"),
    ("rd_kafka_version_str", "", "s~"),
    ("rd_kafka_get_debug_contexts", "", "s~"),
    ("rd_kafka_Uuid_base64str", "", "s~"),
    ("rd_kafka_memberid", "", "text~"),
    ("rd_kafka_clusterid", "", "text~"),
    ("rd_kafka_Node_port", "", "u16~"),
    ("rd_kafka_consumer_group_metadata_member_id", "", "s~"),
    ("rd_kafka_MemberDescription_consumer_id", "", "s~"),
    ("rd_kafka_DescribeCluster_result_cluster_id", "", "s~"),
    ("rd_kafka_brokers_learned_ids", "", "arr~"),
    ("rd_kafka_conf_dump", "", "arr~"),
    ("rd_kafka_topic_conf_dump", "", "arr~"),
    // The original reads a field that only events with an error have.
    ("rd_kafka_event_error_is_fatal", "", "v"),
    ("rd_kafka_mem_malloc", "", "new:memory"),
    ("rd_kafka_mem_calloc", "", "new:memory"),
    ("rd_kafka_mem_free", "ptr", "h!memory"),
    ("rd_kafka_topic_partition_list_add", "", "get:topic_partition"),
    ("rd_kafka_topic_partition_list_find", "", "get:topic_partition"),
    ("rd_kafka_event_topic_partition_list", "", "get:topic_partition_list"),
    ("rd_kafka_messages_get", "", "get:message"),
    ("rd_kafka_mock_cluster_handle", "", "get:client"),
    ("rd_kafka_handle_mock_cluster", "", "get:mock_cluster"),
    ("rd_kafka_conf_get_default_topic_conf", "", "get:topic_conf"),
    ("rd_kafka_conf", "", "get:conf_view"),
    ("rd_kafka_new", "conf", "h^conf"),
    ("rd_kafka_share_consumer_new", "conf", "h^conf"),
    ("rd_kafka_topic_new", "conf", "h^topic_conf"),
    ("rd_kafka_conf_set_default_topic_conf", "tconf", "h^topic_conf"),
    ("rd_kafka_message_set_headers", "hdrs", "h^headers"),
    ("rd_kafka_message_headers", "hdrsp", "ob:headers"),
    ("rd_kafka_event_message_array", "rkmessages", "amsg~"),
    ("rd_kafka_event_message_array", "", "batch"),
    ("rd_kafka_event_log", "fac", "ostr~"),
    ("rd_kafka_event_log", "str", "ostr~"),
    ("rd_kafka_event_log", "level", "oi32~"),
    ("rd_kafka_queue_cb_event_enable", "event_cb", "cb:queue_cb"),
    ("rd_kafka_commit_queue", "cb", "cb:offset_commit_cb"),
    ("rd_kafka_set_logger", "func", "cb:log_cb"),
];

/// Functions whose list is printed after the call, because they write into it.
const WRITES_LIST: [&str; 7] = [
    "rd_kafka_committed",
    "rd_kafka_position",
    "rd_kafka_offsets_for_times",
    "rd_kafka_offsets_store",
    "rd_kafka_seek_partitions",
    "rd_kafka_pause_partitions",
    "rd_kafka_resume_partitions",
];

impl Table {
    /// Reads the prototypes.
    ///
    /// # Errors
    ///
    /// The file can't be read, or a type has no code.
    pub fn read() -> Result<Self> {
        let text = fs::read_to_string(root().join(FUNCTIONS))?;
        let mut functions = BTreeMap::new();
        // librdkafka does not have the additional functions.
        let prototypes = text.lines().filter(|line| {
            line.starts_with("  ") && line.trim_end().ends_with(';') && !line.contains("rd_kafka_ottla_")
        });
        for prototype in prototypes.map(str::trim) {
            let function = function(prototype)?;
            functions.insert(function.name.clone(), function);
        }
        let pairs = fs::read_to_string(root().join(NULLS)).unwrap_or_default();
        let nulls = pairs.lines().filter_map(|line| line.split_once(' '));
        let nulls = nulls.map(|(function, parameter)| (function.to_owned(), parameter.to_owned())).collect();
        let mut table = Self { functions, makers: BTreeMap::new(), nulls };
        let mut makers: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for function in table.called().filter(|function| function.result != "E") {
            for kind in function.makes() {
                makers.entry(kind.to_owned()).or_default().push(function.name.clone());
            }
        }
        table.makers = makers;
        Ok(table)
    }

    /// Returns the functions that the runner calls through the table.
    pub fn called(&self) -> impl Iterator<Item = &Function> {
        self.functions.values().filter(|function| {
            let name = function.name.as_str();
            !BY_HAND.contains(&name) && EXCLUDED.iter().all(|(excluded, _)| *excluded != name)
        })
    }

    /// Formats the table for the runner.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (name, destroy, is_shared) in kinds::all(self) {
            let _ = writeln!(text, "kind {name} {destroy} {}", if is_shared { "shared" } else { "own" });
        }
        for function in self.called() {
            let codes: Vec<&str> =
                function.parameters.iter().map(|parameter| parameter.code.as_str()).collect();
            let _ = writeln!(text, "function {} {} {}", function.name, function.result, codes.join(" "));
        }
        text
    }
}

fn code_of(function: &str, parameter: &str) -> Option<&'static str> {
    let row = CODES.iter().find(|(name, of, _)| *name == function && *of == parameter)?;
    Some(row.2)
}

/// Reads a prototype.
fn function(prototype: &str) -> Result<Function> {
    let prototype = prototype.trim_start_matches("RD_DEPRECATED ");
    let open = prototype.find('(').ok_or_else(|| format!("`{prototype}` is not a prototype"))?;
    let start = prototype[..open].rfind([' ', '*']).map_or(0, |at| at + 1);
    let name = prototype[start..open].to_owned();
    let parts = parameters_of(&prototype[open + 1..]);
    let has_count = parts.iter().any(|part| part.starts_with("size_t *"));
    let result = match code_of(&name, "") {
        Some(code) => code.to_owned(),
        None => result_code(prototype[..start].trim(), has_count),
    };
    let mut parameters = Vec::new();
    let mut at = 0;
    while !BY_HAND.contains(&name.as_str()) && at < parts.len() {
        let (parameter, used) = parameter(&name, &parts[at..], &result)?;
        parameters.push(parameter);
        at += used;
    }
    Ok(Function { name, prototype: prototype.to_owned(), result, parameters })
}

/// Divides the text after the opening parenthesis.
fn parameters_of(text: &str) -> Vec<String> {
    let (mut depth, mut parts, mut part) = (0, Vec::new(), String::new());
    for letter in text.chars() {
        match letter {
            ')' if depth == 0 => break,
            ',' if depth == 0 => parts.push(std::mem::take(&mut part).trim().to_owned()),
            _ => {
                depth += i32::from(letter == '(') - i32::from(letter == ')');
                part.push(letter);
            }
        }
    }
    parts.push(part.trim().to_owned());
    parts.retain(|part| !part.is_empty() && part != "void");
    parts
}

/// Returns the kind of a handle's type: `rd_kafka_topic_t` is `topic`.
fn kind(of_type: &str) -> Option<String> {
    let name = of_type.trim_start_matches("struct ").strip_prefix("rd_kafka_")?;
    match name {
        "t" => Some("client".to_owned()),
        "metadata" | "group_list" => Some(name.to_owned()),
        _ => name.strip_suffix("_t").map(str::to_owned),
    }
}

fn result_code(result: &str, has_count: bool) -> String {
    let is_constant = result.starts_with("const ");
    let (base, stars) = split(result);
    match (base, stars) {
        ("void", 0) => "v".into(),
        ("rd_kafka_resp_err_t", 0) => "err".into(),
        ("rd_kafka_conf_res_t", 0) => "conf".into(),
        ("int64_t" | "size_t", 0) => "i64".into(),
        ("ssize_t", 0) => "batch".into(),
        ("int16_t", 0) => "i16".into(),
        ("uint16_t", 0) => "u16".into(),
        (_, 0) => "i".into(),
        ("char", 1) => if is_constant { "s" } else { "text" }.into(),
        ("void", 1) => "p".into(),
        ("rd_kafka_error_t", 1) => if is_constant { "ce" } else { "E" }.into(),
        ("rd_kafka_error_t" | "char", 2) | ("int32_t" | "int64_t" | "rd_kafka_AclOperation_t", 1) => {
            // Without a count it is one value, behind a pointer.
            if has_count || stars == 2 { "arr" } else { "p" }.into()
        }
        (handle, stars) => {
            let kind = kind(handle).unwrap_or_default();
            match (stars, is_constant) {
                (2, _) => format!("arr:{kind}"),
                (_, true) => format!("get:{kind}"),
                (_, false) => format!("new:{kind}"),
            }
        }
    }
}

/// Returns the type without its stars and `const`, and the number of stars.
fn split(text: &str) -> (&str, usize) {
    let stars = text.matches('*').count();
    let base = text.trim_start_matches("const ").trim_start_matches("unsigned ");
    (base.split([' ', '*']).find(|word| !word.is_empty() && *word != "struct").unwrap_or_default(), stars)
}

/// Returns the next parameter, and how many of C it covers.
fn parameter(function: &str, parts: &[String], result: &str) -> Result<(Parameter, usize)> {
    let part = parts[0].as_str();
    if let Some((_, rest)) = part.split_once("(*") {
        let name = rest.split(')').next().unwrap_or_default().to_owned();
        let code = code_of(function, &name).map_or_else(|| format!("cb:{name}"), str::to_owned);
        return Ok((Parameter { name, code }, 1));
    }
    let at = part.rfind([' ', '*']).map_or(0, |at| at + 1);
    let name = part[at..].to_owned();
    let (base, stars) = split(&part[..at]);
    let following = parts.get(1).map(String::as_str).unwrap_or_default();
    let has_size = following.starts_with("size_t ") && !following.starts_with("size_t *");
    let has_size_out = following.starts_with("size_t *");
    let (code, used) = match (base, stars) {
        ("char", 1) if has_size && !part.starts_with("const") => ("e".to_owned(), 2),
        ("char", 1) if has_size_out => ("d".to_owned(), 2),
        ("char", 1) if part.contains("unsigned") => ("b".to_owned(), 2),
        ("char", 1) if following.starts_with("ssize_t") => ("b".to_owned(), 2),
        ("char", 1) => ("s".to_owned(), 1),
        ("char", 2) if has_size => ("as".to_owned(), 2),
        ("char", 2) => ("ostr".to_owned(), 1),
        ("void", 1) if has_size || following.starts_with("ssize_t") => ("b".to_owned(), 2),
        ("void", 1) => ("p".to_owned(), 1),
        ("void", 2) => (if part.starts_with("const") { "obytes" } else { "obuf" }.to_owned(), 2),
        ("FILE", 1) => ("file".to_owned(), 1),
        ("size_t", 1) => (if result.starts_with("arr") { "cnt" } else { "oi64" }.to_owned(), 1),
        ("int64_t", 1) => ("oi64".to_owned(), 1),
        ("int32_t", 1) | ("rd_kafka_consumer_group_state_t" | "rd_kafka_consumer_group_type_t", 1)
            if has_size =>
        {
            ("ai".to_owned(), 2)
        }
        ("int" | "rd_kafka_timestamp_type_t", 1) => ("oi32".to_owned(), 1),
        ("rd_kafka_message_t", 2) => ("amsg".to_owned(), 2),
        ("size_t", 0) if following.starts_with("const rd_kafka_resp_err_t *") => ("ai<".to_owned(), 2),
        ("size_t", 0) if following.starts_with("const char **") => ("as<".to_owned(), 2),
        (_, 0) if name == "timeout_ms" => ("t".to_owned(), 1),
        ("int", 0) if name == "fd" => ("fd".to_owned(), 1),
        (_, 0) => ("i".to_owned(), 1),
        (interceptor, 1) if interceptor.starts_with("rd_kafka_interceptor_f_") => {
            let of = interceptor.trim_start_matches("rd_kafka_interceptor_f_").trim_end_matches("_t");
            (format!("cb:{}", if of == "on_consume" { "on_consume_message" } else { of }), 1)
        }
        (handle, 2) if has_size => {
            (format!("ah{}{}", flag(function, "_destroy_array", ':'), named(handle, part)?), 2)
        }
        (handle, 2) => (format!("oh:{}", named(handle, part)?), 1),
        (handle, _) => (format!("h{}{}", handle_flag(function, handle, part), named(handle, part)?), 1),
    };
    let code = code_of(function, &name).map_or(code, str::to_owned);
    Ok((Parameter { name, code }, used))
}

fn named(handle: &str, part: &str) -> Result<String> {
    kind(handle).ok_or_else(|| format!("`{part}` has no kind").into())
}

fn flag(function: &str, suffix: &str, otherwise: char) -> char {
    if function.ends_with(suffix) { '!' } else { otherwise }
}

fn handle_flag(function: &str, handle: &str, part: &str) -> char {
    // Functions that add an interceptor of destruction destroy nothing.
    let function = if function.contains("interceptor_add_") { "" } else { function };
    let destroys = ["rd_kafka_destroy_flags", "rd_kafka_share_destroy_flags"].contains(&function);
    match handle {
        _ if destroys => '!',
        "rd_kafka_topic_partition_list_t" if WRITES_LIST.contains(&function) => '&',
        "rd_kafka_conf_t" if part.starts_with("const") => '%',
        _ => flag(function, "_destroy", ':'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(name: &str) -> String {
        let table = Table::read().unwrap();
        let function = &table.functions[name];
        let codes: Vec<&str> = function.parameters.iter().map(|it| it.code.as_str()).collect();
        format!("{} {}", function.result, codes.join(" "))
    }

    #[test]
    fn prototypes_become_codes() {
        assert_eq!(codes("rd_kafka_new"), "new:client i h^conf e");
        assert_eq!(codes("rd_kafka_destroy"), "v h!client");
        assert_eq!(codes("rd_kafka_conf_get"), "conf h%conf s d");
        assert_eq!(codes("rd_kafka_CreateTopics"), "v h:client ah:NewTopic h:AdminOptions h:queue");
        assert_eq!(codes("rd_kafka_assignment"), "err h:client oh:topic_partition_list");
        assert_eq!(codes("rd_kafka_header_add"), "err h:headers b b");
        assert_eq!(
            codes("rd_kafka_CreateTopics_result_topics"),
            "arr:topic_result h:CreateTopics_result cnt"
        );
    }

    #[test]
    fn every_row_of_codes_is_used() {
        let table = Table::read().unwrap();
        for (function, parameter, _) in CODES {
            let function = table.functions.get(function).unwrap_or_else(|| panic!("{function}"));
            assert!(
                parameter.is_empty() || function.parameters.iter().any(|it| it.name == parameter),
                "{} has no {parameter}",
                function.name
            );
        }
        let excluded = EXCLUDED.iter().chain(&WITHOUT_SUCCESS).map(|(name, _)| name);
        for name in BY_HAND.iter().chain(excluded) {
            assert!(table.functions.contains_key(*name), "{name}");
        }
    }
}
