//! The values of arguments: for each name or code a pool of usual values and one of odd ones.

use super::{random::Random, table::Parameter};

/// A row: the name of a parameter, usual values, odd values.
type Pool = (&'static str, &'static [&'static str], &'static [&'static str]);

const TOPICS: &[&str] = &["\"t%a\"", "\"t%a\"", "\"t%b\""];

/// The pools by the name of the parameter.
const BY_NAME: [Pool; 48] = [
    // Metadata of a group, as bytes.
    (
        "buffer",
        &["\"CGMDv2:\\xff\\xff\\xff\\xffg\\x00\\x00\\x01\""],
        &["NULL", "\"\"", "\"CGMDv1:\"", "\"CGMDv2:\\x01\""],
    ),
    ("errnox", &["0", "22", "2"], &["-1", "110"]),
    ("topic", TOPICS, &["\"\"", "\"no%\"", "\"a b\"", "\"^t%\"", "\".\""]),
    ("topics", &["[\"t%a\"]", "[\"t%a\",\"t%b\"]"], &["[]", "[\"\"]", "[\"no%\"]", "[\"t%a\",\"t%a\"]"]),
    ("partition", &["0", "1"], &["-1", "-2", "5", "100000", "2147483647", "-2147483648"]),
    ("offset", &["0", "1", "-2", "-1"], &["-1000", "-1001", "-2002", "100", "9223372036854775807", "-5"]),
    ("before_offset", &["0", "1"], &["-1", "100", "-5"]),
    ("group", &["\"g%\""], &["\"\"", "\"none%\""]),
    ("group_id", &["\"g%\""], &["\"\"", "\"none%\""]),
    ("groups", &["[\"g%\"]", "[\"none%\"]"], &["[]", "[\"\"]", "[\"g%\",\"g%\"]"]),
    ("users", &["[\"u%\"]", "[]"], &["[\"\"]", "[\"u%\",\"u%\"]"]),
    ("broker_id", &["1", "2"], &["0", "-1", "9", "2147483647"]),
    ("broker_ids", &["[1]", "[1,2]"], &["[]", "[9]", "[1,1]", "[-1]"]),
    ("ApiKey", &["0", "1", "3", "10", "22"], &["-1", "12", "99", "32767"]),
    (
        "err",
        &["0", "-185", "-195", "3", "6", "7", "15", "16", "27"],
        &["-300", "-200", "-100", "-1", "1000", "47", "-150"],
    ),
    ("error", &["0", "3", "7"], &["-300", "1000"]),
    ("errors", &["[7]", "[3,3]", "[16]"], &["[]", "[1000]", "[-300]"]),
    ("flags", &["0", "8"], &["1", "-1"]),
    ("msgflags", &["2", "1", "0"], &["3", "4", "6", "8", "-1"]),
    ("purge_flags", &["1", "2", "3"], &["0", "4", "7", "-1"]),
    ("events", &["1", "2", "8", "3"], &["0", "-1", "-2147483648"]),
    ("async", &["0", "1"], &["-1", "2"]),
    ("level", &["0", "6"], &["-1", "7", "100"]),
    ("num_partitions", &["1", "3"], &["0", "-1", "-2", "2147483647"]),
    ("replication_factor", &["1"], &["0", "-1", "-2", "9"]),
    ("partition_cnt", &["1", "3", "4"], &["2"]),
    ("broker_cnt", &["1", "3"], &["1"]),
    ("size", &["1", "4"], &["100"]),
    ("num", &["1", "4"], &["1"]),
    ("initial_count", &["0", "2"], &["100"]),
    ("idx", &["0", "1"], &["7", "-1"]),
    ("index", &["0", "1"], &["7"]),
    ("start", &["0"], &["2", "-1"]),
    ("stop", &["0", "3"], &["1"]),
    ("type", &["0", "1", "2"], &["3", "-1", "99"]),
    ("restype", &["2", "3", "4"], &["0", "1", "-1", "99"]),
    ("iterations", &["4096"], &["0", "-1", "1"]),
    ("mechanism", &["1", "2"], &["0", "-1", "9"]),
    ("for_api", &["0", "1", "2"], &["5", "9", "15", "-1", "99"]),
    ("errstr_size", &["512"], &["0", "1"]),
    ("leader_epoch", &["0", "1"], &["-1", "2147483647"]),
    ("resource_pattern_type", &["3", "4"], &["0", "1", "-1", "99"]),
    ("operation", &["3", "4", "2"], &["0", "1", "-1", "99"]),
    ("permission_type", &["3", "2"], &["0", "1", "-1", "99"]),
    ("principal", &["\"User:u\""], &["\"\"", "NULL"]),
    ("host", &["\"*\""], &["\"\"", "NULL"]),
    ("new_total_cnt", &["3", "4"], &["0", "1"]),
    ("value", &["\"v\"", "\"1\""], &["\"\"", "NULL"]),
];

/// The pools by code.
const BY_CODE: [Pool; 13] = [
    ("amsg", &["4", "1"], &["100"]),
    ("i", &["0", "1", "2"], &["-1", "3", "2147483647", "-2147483648", "100"]),
    ("t", &["100", "1000", "0"], &["1", "0"]),
    ("s", &["\"a\"", "\"t%a\""], &["\"\"", "\"a b\"", "\"\\xc3\\xa4\""]),
    ("b", &["\"payload\"", "\"k\""], &["\"\"", "NULL", "\"\\x01\\xff\""]),
    ("e", &["512"], &["0", "1", "NULL"]),
    ("d", &["512"], &["1", "0", "NULL"]),
    ("p", &["7"], &["0"]),
    ("flags", &["2", "1", "0"], &["3", "4", "8"]),
    ("as", &["[\"a\"]"], &["[]", "[\"\"]"]),
    ("as<", &["[\"client.\"]"], &["[]", "[\"\"]"]),
    ("ai", &["[1]"], &["[]", "[-1]", "[99]"]),
    ("ai<", &["[7]"], &["[]"]),
];

/// Properties with values, of which the first is the usual one.
pub const PROPERTIES: [(&str, &[&str]); 33] = [
    ("client.id", &["c", "", "a b"]),
    ("linger.ms", &["0", "1", "900001", "-1", "x"]),
    ("acks", &["all", "1", "0", "-1", "7"]),
    ("enable.idempotence", &["true", "false", "yes"]),
    ("message.timeout.ms", &["3000", "0", "-1"]),
    ("retries", &["2", "0", "-1"]),
    ("batch.num.messages", &["10", "0", "1000001"]),
    ("compression.type", &["none", "gzip", "zstd", "lz4", "snappy", "inherit", "bzip"]),
    ("queue.buffering.max.messages", &["3", "0", "-1"]),
    ("message.max.bytes", &["1000", "999", "1000000001"]),
    ("enable.auto.commit", &["false", "true", "t"]),
    ("enable.auto.offset.store", &["false", "true"]),
    ("auto.offset.reset", &["earliest", "latest", "error", "none"]),
    ("isolation.level", &["read_uncommitted", "x"]),
    (
        "partition.assignment.strategy",
        &["range", "roundrobin", "cooperative-sticky", "range,roundrobin", "", "x", "range,x"],
    ),
    ("group.instance.id", &["i%", ""]),
    ("group.protocol", &["classic", "consumer", "x"]),
    ("max.poll.interval.ms", &["20000", "1"]),
    ("session.timeout.ms", &["6000", "1", "0"]),
    ("check.crcs", &["true", "false"]),
    ("statistics.interval.ms", &["0", "100", "-1"]),
    ("partitioner", &["consistent", "murmur2", "fnv1a", "consistent_random", "x"]),
    ("sticky.partitioning.linger.ms", &["0", "10"]),
    ("delivery.report.only.error", &["false", "true"]),
    ("enable.gapless.guarantee", &["false", "true"]),
    ("transactional.id", &["x%", ""]),
    ("debug", &["", "all", "nothing"]),
    ("security.protocol", &["plaintext", "x"]),
    ("queued.min.messages", &["1", "0", "10000001"]),
    ("topic.metadata.refresh.interval.ms", &["1000", "-1", "-2"]),
    ("allow.auto.create.topics", &["true", "false"]),
    ("client.rack", &["r", ""]),
    ("no.such.property", &["1"]),
];

/// Chooses a value for a parameter that is not a handle. Half of the values of a program that leaves the contract are odd.
pub fn value(random: &mut Random, parameter: &Parameter, is_odd: bool) -> String {
    let code = parameter.code.trim_end_matches(['~', ':']);
    let code = if code.starts_with("below@") { "i" } else { code };
    let named = |pool: &&Pool| pool.0 == parameter.name && suits(code, pool.1[0]);
    let pool = BY_NAME.iter().find(named).or_else(|| BY_CODE.iter().find(|pool| pool.0 == code));
    let Some((_, usual, odd)) = pool else { return "0".to_owned() };
    (*random.one(if is_odd { odd } else { usual })).to_owned()
}

/// True if a value has the form that a code needs.
fn suits(code: &str, value: &str) -> bool {
    match code {
        "s" | "b" => value.starts_with('"'),
        "as" | "as<" | "ai" | "ai<" => value.starts_with('['),
        "i" | "flags" => value.starts_with(|first: char| first.is_ascii_digit() || first == '-'),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_form_of_their_code() {
        let mut random = Random::new(1);
        for (name, code, first) in
            [("topic", "s", '"'), ("type", "i", ' '), ("topics", "as", '['), ("offset", "i", ' ')]
        {
            for is_odd in [false, true] {
                let parameter = Parameter { name: name.into(), code: code.into() };
                let value = value(&mut random, &parameter, is_odd);
                assert_eq!(value.starts_with(['"', '[']), first != ' ', "{name} {value}");
            }
        }
    }
}
