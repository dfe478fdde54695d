//! Generates STATISTICS.md from the table.

use std::fmt::Write;

use super::table::{BROKER, COLLECTOR, CONSUMER, EOS, Field, GROUP, Kind, PARTITION, TOP, TOPIC, WINDOW};

/// Returns the text of STATISTICS.md.
pub fn markdown() -> String {
    let mut out = String::from(
        "# Statistics\n\n\
         <!-- Generated from crates/core/src/stats/table.rs. Change the rows there and run `cargo xtask docs`. -->\n\n\
         With `statistics.interval.ms` a client passes its statistics to the callback (`on_statistics`) at that \
         interval; `Producer::statistics()` and `Consumer::statistics()` return them at any time. Both give a struct. \
         `to_json()` writes it with the names of librdkafka 2.16; `to_prometheus()` writes text for Prometheus, which \
         `ottla ... --metrics-port` serves. A Prometheus name is `ottla_`, the name of the object and the name of the \
         field; counters end with `_total`.\n\n\
         Counters grow from the start of the client. Windows cover the time since the last event of \
         `statistics.interval.ms`, or since the start if there are no events; a call does not reset them.\n",
    );
    section(&mut out, "The client", TOP);
    section(&mut out, "brokers", BROKER);
    section(&mut out, "brokers.collector", COLLECTOR);
    section(&mut out, "Windows", WINDOW);
    let _ = writeln!(
        out,
        "\n## brokers.toppars\n\n| Field | Kind | What it is |\n|---|---|---|\n\
         | `topic` | text | The topic. |\n| `partition` | gauge | The partition. |"
    );
    section(&mut out, "topics", TOPIC);
    section(&mut out, "topics.partitions", PARTITION);
    section(&mut out, "cgrp", GROUP);
    section(&mut out, "eos", EOS);
    section(&mut out, "consumer", CONSUMER);
    out
}

fn section<T>(out: &mut String, title: &str, fields: &[Field<T>]) {
    let _ = write!(out, "\n## {title}\n\n| Field | Kind | What it is |\n|---|---|---|\n");
    for field in fields {
        let kind = match field.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Text => "text",
            Kind::Boolean => "boolean",
            Kind::Object => "object",
        };
        let _ = writeln!(out, "| `{}` | {kind} | {} |", field.name, field.doc.replace('|', "\\|"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../STATISTICS.md");

    /// `OTTLA_WRITE_DOCS=1 cargo test -p ottla-core statistics_md` writes the file instead of comparing it.
    #[test]
    fn statistics_md_matches_the_table() {
        if std::env::var_os("OTTLA_WRITE_DOCS").is_some() {
            std::fs::write(FILE, markdown()).unwrap();
        }
        let file = std::fs::read_to_string(FILE).unwrap_or_default();
        assert!(file == markdown(), "STATISTICS.md is stale: run `cargo xtask docs`");
    }

    #[test]
    fn every_field_of_librdkafka_is_there() {
        let text = markdown();
        for (section, fields) in LIBRDKAFKA {
            let start = text.find(&format!("\n## {section}\n")).unwrap_or_else(|| panic!("{section}"));
            let body = text[start + 4..].split("\n## ").next().unwrap_or_default();
            for field in fields.split_whitespace() {
                assert!(
                    body.contains(&format!("| `{field}` |"))
                        || matches!(
                            (*section, field),
                            ("topics", "topic") | ("topics.partitions", "partition")
                        ),
                    "{section}.{field}"
                );
            }
        }
    }

    /// The names in librdkafka 2.16.
    const LIBRDKAFKA: &[(&str, &str)] = &[
        (
            "The client",
            "name client_id type ts time age replyq msg_cnt msg_size msg_max msg_size_max tx tx_bytes \
             rx rx_bytes txmsgs txmsg_bytes rxmsgs rxmsg_bytes simple_cnt metadata_cache_cnt brokers \
             topics cgrp eos",
        ),
        (
            "brokers",
            "name nodeid nodename source state stateage outbuf_cnt outbuf_msg_cnt waitresp_cnt \
             waitresp_msg_cnt tx txbytes txerrs txretries txidle req_timeouts rx rxbytes rxerrs \
             rxcorriderrs rxpartial rxidle req zbuf_grow buf_grow wakeups connects disconnects \
             int_latency outbuf_latency rtt throttle toppars",
        ),
        ("Windows", "min max avg sum cnt stddev hdrsize p50 p75 p90 p95 p99 p99_99 outofrange"),
        ("brokers.toppars", "topic partition"),
        ("topics", "topic age metadata_age batchsize batchcnt partitions"),
        (
            "topics.partitions",
            "partition broker leader desired unknown msgq_cnt msgq_bytes xmit_msgq_cnt xmit_msgq_bytes \
             fetchq_cnt fetchq_size fetch_state query_offset next_offset app_offset stored_offset \
             stored_leader_epoch committed_offset committed_leader_epoch eof_offset lo_offset hi_offset \
             ls_offset consumer_lag consumer_lag_stored leader_epoch txmsgs txbytes rxmsgs rxbytes msgs \
             rx_ver_drops msgs_inflight next_ack_seq next_err_seq acked_msgid",
        ),
        ("cgrp", "state stateage join_state rebalance_age rebalance_cnt rebalance_reason assignment_size"),
        (
            "eos",
            "idemp_state idemp_stateage txn_state txn_stateage txn_may_enq producer_id producer_epoch \
             epoch_cnt",
        ),
    ];
}
