//! Events of each type: what a program can read of them.

use super::builder::{Builder, Role};

/// Functions that read events of a type, and whether the original checks it.
pub const TYPED: [(&str, &str, bool); 9] = [
    ("rd_kafka_event_stats", "0x40", false),
    ("rd_kafka_event_log", "0x4", true),
    ("rd_kafka_event_debug_contexts", "0x4", true),
    ("rd_kafka_event_config_string", "0x100", true),
    ("rd_kafka_event_message_array", "0x1", true),
    ("rd_kafka_event_message_next", "0x1", true),
    ("rd_kafka_event_message_count", "0x1", true),
    ("rd_kafka_event_topic_partition_list", "0x20", true),
    ("rd_kafka_event_topic_partition", "0x2", true),
];

/// Functions that read any event.
const OF_ANY: [&str; 6] = [
    "rd_kafka_event_type",
    "rd_kafka_event_name",
    "rd_kafka_event_error",
    "rd_kafka_event_message_count",
    "rd_kafka_event_message_next",
    "rd_kafka_event_opaque",
];

impl Builder<'_> {
    /// Makes an event of a type, and returns its name.
    pub fn typed_event(&mut self, of_type: &str) -> String {
        let (_, cluster) = self.cluster();
        let (conf, client, queue, event) = (self.conf(), self.name("k"), self.name("q"), self.name("e"));
        self.step(&format!("bootstrap {conf} {cluster}"));
        self.step(&format!("rd_kafka_conf_set_events {conf} {of_type}"));
        let properties: &[(&str, &str)] = match of_type {
            "0x40" => &[("statistics.interval.ms", "50")],
            "0x4" => &[("log.queue", "true"), ("log_level", "7"), ("debug", "conf")],
            "0x100" => &[
                ("security.protocol", "sasl_plaintext"),
                ("sasl.mechanisms", "OAUTHBEARER"),
                ("sasl.oauthbearer.config", "x=y"),
            ],
            "0x1" => &[],
            _ => &[("group.id", "g%"), ("auto.offset.reset", "earliest"), ("enable.auto.commit", "false")],
        };
        for (name, value) in properties {
            self.step(&format!("rd_kafka_conf_set {conf} \"{name}\" \"{value}\" 512"));
        }
        // The callback is what asks for these events.
        if of_type == "0x20" {
            let block = self.callback("offset_commit_cb");
            self.step(&format!("rd_kafka_conf_set_offset_commit_cb {conf} {block}"));
        }
        let is_consumer = ["0x2", "0x10", "0x20"].contains(&of_type);
        if is_consumer {
            self.written(1);
        }
        self.step(&format!("{client} = rd_kafka_new {} {conf} 512", i32::from(is_consumer)));
        let getter = if is_consumer { "consumer" } else { "main" };
        self.step(&format!("{queue} = rd_kafka_queue_get_{getter} {client}"));
        match of_type {
            "0x1" => self
                .step(&format!("rd_kafka_producev {client} topic=\"t%a\" partition=0 flags=2 value=\"m\"")),
            "0x4" => self.step(&format!("_ = rd_kafka_set_log_queue {client} {queue}")),
            "0x10" => self.subscribe_to(&client, "\"t%a\""),
            "0x2" | "0x20" => {
                let list = self.name("l");
                self.step(&format!("{list} = rd_kafka_topic_partition_list_new 1"));
                self.step(&format!("_ = rd_kafka_topic_partition_list_add {list} \"t%a\" 0"));
                self.step(&format!("offset {list} 0 0"));
                self.step(&format!("rd_kafka_assign {client} {list}"));
                if of_type == "0x20" {
                    self.step(&format!("rd_kafka_commit {client} {list} 1"));
                    self.step(&format!("rd_kafka_poll_set_consumer {client}"));
                }
                self.add(list, "topic_partition_list", Role::None);
            }
            _ => {}
        }
        self.step(&format!("{event} = await {queue} {of_type}"));
        self.add(client, "client", if is_consumer { Role::Consumer } else { Role::Producer });
        self.add(queue, "queue", Role::None);
        self.add(event, "event", Role::None)
    }
}

/// Reads an event of some type.
pub fn inspect_events(b: &mut Builder<'_>) {
    let of_type = *b.random.one(&["0x1", "0x2", "0x4", "0x10", "0x20", "0x40", "0x100"]);
    let event = b.typed_event(of_type);
    for (name, _, is_checked) in TYPED {
        if is_checked || of_type == "0x40" {
            b.call_with(name, &[("rkev", &event)]);
        }
    }
    for name in OF_ANY {
        b.call_with(name, &[("rkev", &event)]);
    }
}

/// Tokens of OAUTHBEARER, and the queue for requests of them.
pub fn tokens(b: &mut Builder<'_>) {
    let (_, cluster) = b.cluster();
    let (conf, is_share) = (b.conf(), b.random.percent(40));
    let (client, of) = if is_share { (b.name("s"), "share_") } else { (b.name("k"), "") };
    b.step(&format!("bootstrap {conf} {cluster}"));
    let mechanism = if b.random.percent(70) { "OAUTHBEARER" } else { "PLAIN" };
    for (name, value) in [
        ("security.protocol", "sasl_plaintext"),
        ("sasl.mechanisms", mechanism),
        ("sasl.username", "u"),
        ("sasl.password", "p"),
        ("group.id", "g%"),
    ] {
        b.step(&format!("rd_kafka_conf_set {conf} \"{name}\" \"{value}\" 512"));
    }
    if b.random.percent(50) {
        b.step(&format!("rd_kafka_conf_set {conf} \"log.queue\" \"true\" 512"));
    }
    if b.random.percent(60) {
        b.step(&format!("rd_kafka_conf_enable_sasl_queue {conf} 1"));
    }
    if is_share {
        b.step(&format!("{client} = rd_kafka_share_consumer_new {conf} 512"));
    } else {
        b.step(&format!("{client} = rd_kafka_new {} {conf} 512", b.random.clone().below(2)));
    }
    b.step(&format!("q0 = rd_kafka_{of}queue_get_sasl {client}"));
    let lifetime = *b.random.one(&["9999999999999", "9999999999999", "1", "-1"]);
    let extensions = *b.random.one(&["[]", "[\"key\",\"value\"]", "[\"auth\",\"value\"]", "[\"key\"]"]);
    let token = *b.random.one(&["\"token\"", "\"a b\""]);
    b.step(&format!("rd_kafka_{of}oauthbearer_set_token {client} {token} {lifetime} \"u\" {extensions} 512"));
    let reason = *b.random.one(&["\"reason\"", "\"\""]);
    b.step(&format!("rd_kafka_{of}oauthbearer_set_token_failure {client} {reason}"));
    b.step(&format!("_ = rd_kafka_{of}sasl_background_callbacks_enable {client}"));
    let password = *b.random.one(&["\"p\"", "NULL"]);
    b.step(&format!("_ = rd_kafka_{of}sasl_set_credentials {client} \"u\" {password}"));
    if is_share {
        b.step(&format!("_ = rd_kafka_share_set_log_queue {client} NULL"));
        b.add(client, "share", Role::None);
    } else {
        b.step(&format!("_ = rd_kafka_set_log_queue {client} NULL"));
        b.add(client, "client", Role::Producer);
    }
}
