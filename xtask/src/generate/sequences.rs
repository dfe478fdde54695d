//! Usual sequences of calls, the frame of half of the programs.

use super::builder::{Builder, Role};

/// All sequences; each adds steps to the main thread.
pub const SEQUENCES: [fn(&mut Builder<'_>); 21] = [
    produce,
    produce,
    consume,
    consume,
    consume_old,
    subscribe,
    transact,
    share,
    disturb,
    administer,
    queues,
    settings,
    objects,
    observe,
    super::results::inspect_results,
    super::results::inspect_results,
    super::events::inspect_events,
    super::events::tokens,
    super::rare::call,
    share_outcomes,
    identities,
];

fn produce(b: &mut Builder<'_>) {
    if b.random.percent(30) {
        disturb(b);
    }
    let client = b.producer();
    let topic = if b.random.percent(60) { topic_of(b, &client) } else { String::new() };
    let count = 1 + b.random.below(4);
    for _ in 0..count {
        match b.random.below(4) {
            0 if !topic.is_empty() => {
                b.call_with("rd_kafka_produce", &[("rkt", &topic), ("payload", "\"p\""), ("partition", "0")]);
            }
            1 if !topic.is_empty() => {
                let (partition, flags) = ("0", *b.random.one(&["2", "2", "6", "0"]));
                b.step(&format!("rd_kafka_produce_batch {topic} {partition} {flags} 3"));
            }
            _ => produce_entries(b, &client),
        }
    }
    match b.random.below(6) {
        0 => {
            let flags = 1 + b.random.below(3);
            b.step(&format!("rd_kafka_purge {client} {flags}"));
        }
        1 => b.step(&format!("rd_kafka_poll {client} 100")),
        2 => {}
        _ => b.step(&format!("rd_kafka_flush {client} 4000")),
    }
    if b.random.percent(30) {
        produce_entries(b, &client);
    }
    if b.random.percent(10) {
        b.step(&format!("rd_kafka_test_fatal_error {client} 45 \"r\""));
        produce_entries(b, &client);
    }
    if b.random.percent(30) {
        b.step(&format!("rd_kafka_destroy {client}"));
    }
}

fn topic_of(b: &mut Builder<'_>, client: &str) -> String {
    let topic = b.name("topic");
    let conf = if b.random.percent(20) { b.handle("topic_conf") } else { "NULL".to_owned() };
    b.step(&format!("{topic} = rd_kafka_topic_new {client} \"t%a\" {conf}"));
    b.add(topic, "topic", Role::None)
}

/// A message of rd_kafka_producev or rd_kafka_produceva, with some entries; sometimes a wrong one.
fn produce_entries(b: &mut Builder<'_>, client: &str) {
    // Without a partition or key it would be a random one.
    let place = if b.random.percent(70) { "partition=0" } else { "key=\"k\"" };
    let mut entries =
        vec!["topic=\"t%a\"".to_owned(), "flags=2".to_owned(), "value=\"v\"".to_owned(), place.to_owned()];
    for entry in ["opaque=7", "timestamp=5", "header=h:\"v\"", "header=n:NULL"] {
        if b.random.percent(25) {
            entries.push(entry.to_owned());
        }
    }
    if b.random.percent(b.odd) {
        let odd = *b.random.one(&[
            "99=1",
            "partition=-2",
            "partition=7",
            "flags=3",
            "flags=8",
            "timestamp=-1",
            "timestamp=0",
            "value=NULL",
            "partition=2147483647",
            "topic=\"\"",
        ]);
        entries.push(odd.to_owned());
    }
    if b.random.percent(b.odd / 2) {
        entries.remove(0);
    }
    if b.random.percent(10) {
        let headers = b.handle("headers");
        entries.push(format!("headers={headers}"));
    }
    let function = *b.random.one(&["rd_kafka_producev", "rd_kafka_producev", "rd_kafka_produceva"]);
    b.step(&format!("{function} {client} {}", entries.join(" ")));
}

/// A consumer with an assignment of its own.
fn consume(b: &mut Builder<'_>) {
    let count = 1 + b.random.below(4);
    b.written(count);
    let (client, list) = (b.consumer(false), b.list_of_one());
    b.step(&format!("rd_kafka_assign {client} {list}"));
    let polls = 1 + b.random.below(3);
    for _ in 0..polls {
        let message = b.name("m");
        b.step(&format!("{message} = next {client}"));
        b.add(message, "message", Role::None);
        between_polls(b, &client);
    }
    ending_of_consumer(b, &client);
}

/// What a consumer does between two polls.
fn between_polls(b: &mut Builder<'_>, client: &str) {
    let function = *b.random.one(&[
        "rd_kafka_pause_partitions",
        "rd_kafka_resume_partitions",
        "rd_kafka_seek_partitions",
        "rd_kafka_position",
        "rd_kafka_committed",
        "rd_kafka_commit",
        "rd_kafka_commit_message",
        "rd_kafka_offsets_store",
        "rd_kafka_offset_store_message",
        "rd_kafka_assignment",
        "rd_kafka_assign",
        "rd_kafka_incremental_assign",
        "rd_kafka_incremental_unassign",
        "rd_kafka_get_watermark_offsets",
        "rd_kafka_query_watermark_offsets",
        "rd_kafka_offsets_for_times",
        "rd_kafka_commit_queue",
        "rd_kafka_consumer_group_metadata",
        "rd_kafka_subscription",
        "rd_kafka_consumer_closed",
    ]);
    b.call_with(function, &[("rk", client), ("timeout_ms", "2000")]);
}

fn ending_of_consumer(b: &mut Builder<'_>, client: &str) {
    match b.random.below(5) {
        0 => b.step(&format!("rd_kafka_consumer_close {client}")),
        1 => b.step(&format!("rd_kafka_destroy_flags {client} 8")),
        2 => {
            let queue = b.name("q");
            b.step(&format!("{queue} = rd_kafka_queue_new {client}"));
            b.step(&format!("_ = rd_kafka_consumer_close_queue {client} {queue}"));
            b.add(queue, "queue", Role::None);
        }
        3 => {
            b.step(&format!("rd_kafka_consumer_close {client}"));
            between_polls(b, client);
        }
        _ => {}
    }
}

/// The older functions, with a topic and a partition.
fn consume_old(b: &mut Builder<'_>) {
    b.written(2);
    let client = b.consumer(false);
    let topic = topic_of(b, &client);
    let is_queued = b.random.percent(30);
    if is_queued {
        let queue = b.name("q");
        b.step(&format!("{queue} = rd_kafka_queue_new {client}"));
        b.add(queue.clone(), "queue", Role::None);
        b.step(&format!("rd_kafka_consume_start_queue {topic} 0 -2 {queue}"));
        let function = *b.random.one(&[
            "rd_kafka_consume_queue",
            "rd_kafka_consume_batch_queue",
            "rd_kafka_consume_callback_queue",
        ]);
        b.call_with(function, &[("rkqu", &queue), ("timeout_ms", "2000")]);
    } else {
        b.call_with("rd_kafka_consume_start", &[("rkt", &topic), ("partition", "0")]);
        let count = 1 + b.random.below(3);
        for _ in 0..count {
            let function = *b.random.one(&[
                "rd_kafka_consume",
                "rd_kafka_consume_batch",
                "rd_kafka_consume_callback",
                "rd_kafka_seek",
                "rd_kafka_offset_store",
            ]);
            b.call_with(function, &[("rkt", &topic), ("timeout_ms", "2000")]);
        }
    }
    if b.random.percent(70) {
        b.step(&format!("rd_kafka_consume_stop {topic} 0"));
    }
}

/// A member of a group.
fn subscribe(b: &mut Builder<'_>) {
    b.written(2);
    let client = b.consumer(true);
    let list = b.name("l");
    b.step(&format!("{list} = rd_kafka_topic_partition_list_new 1"));
    let topic = if b.random.percent(b.odd) {
        *b.random.one(&["\"^t%\"", "\"no%\"", "\"\"", "\"t%b\""])
    } else {
        "\"t%a\""
    };
    b.step(&format!("_ = rd_kafka_topic_partition_list_add {list} {topic} -1"));
    b.add(list.clone(), "topic_partition_list", Role::None);
    b.step(&format!("rd_kafka_subscribe {client} {list}"));
    let polls = 1 + b.random.below(2);
    for _ in 0..polls {
        let message = b.name("m");
        b.step(&format!("{message} = next {client}"));
        b.add(message, "message", Role::None);
        between_polls(b, &client);
    }
    if b.random.percent(30) {
        b.step(&format!("rd_kafka_unsubscribe {client}"));
        between_polls(b, &client);
    }
    ending_of_consumer(b, &client);
}

fn transact(b: &mut Builder<'_>) {
    if b.random.percent(20) {
        disturb(b);
    }
    let client = b.transactional();
    if !b.random.percent(b.odd / 2) {
        b.step(&format!("_ = rd_kafka_init_transactions {client} 4000"));
    }
    let rounds = 1 + b.random.below(2);
    for _ in 0..rounds {
        if !b.random.percent(b.odd / 2) {
            b.step(&format!("_ = rd_kafka_begin_transaction {client}"));
        }
        if b.random.percent(80) {
            produce_entries(b, &client);
        }
        if b.random.percent(40) {
            b.call_with("rd_kafka_send_offsets_to_transaction", &[("rk", &client), ("timeout_ms", "2000")]);
        }
        if b.random.percent(10) {
            b.step(&format!("rd_kafka_purge {client} 3"));
        }
        let end = *b.random.one(&["commit", "commit", "abort"]);
        if !b.random.percent(b.odd / 2) {
            b.step(&format!("_ = rd_kafka_{end}_transaction {client} 4000"));
        }
    }
}

fn share(b: &mut Builder<'_>) {
    let messages = b.shared_messages();
    let share = b.handle("share");
    let message = b.name("m");
    b.step(&format!("{message} = rd_kafka_messages_get {messages} 0"));
    b.add(message, "message", Role::None);
    let count = b.random.below(4);
    for _ in 0..count {
        let function = *b.random.one(&[
            "rd_kafka_share_acknowledge",
            "rd_kafka_share_acknowledge_type",
            "rd_kafka_share_acknowledge_offset",
            "rd_kafka_share_commit_async",
            "rd_kafka_share_commit_sync",
            "rd_kafka_share_subscription",
            "rd_kafka_share_unsubscribe",
            "rd_kafka_share_consumer_closed",
            "rd_kafka_share_poll",
        ]);
        b.call_with(function, &[("rkshare", &share), ("timeout_ms", "2000")]);
    }
    if b.random.percent(40) {
        b.step(&format!("_ = rd_kafka_share_consumer_close {share}"));
    }
}

/// Verdicts in explicit mode, and what their callback reads; the target assignment of the group.
fn share_outcomes(b: &mut Builder<'_>) {
    // As for `shared_messages`: the order between partitions is not determined.
    b.written_to("\"t%b\"", 2);
    let (_, cluster) = b.cluster();
    b.step(&format!("rd_kafka_mock_sharegroup_set_auto_offset_reset {cluster} 1"));
    let (conf, share, list) = (b.conf(), b.name("s"), b.name("l"));
    b.step(&format!("bootstrap {conf} {cluster}"));
    for (name, value) in [("group.id", "s%"), ("share.acknowledgement.mode", "explicit")] {
        b.step(&format!("rd_kafka_conf_set {conf} \"{name}\" \"{value}\" 512"));
    }
    b.step(&format!("{share} = rd_kafka_share_consumer_new {conf} 512"));
    let block = b.callback("share_acknowledgement_commit_cb");
    b.step(&format!("_ = rd_kafka_share_set_acknowledgement_commit_cb {share} {block} 0"));
    if let Some(at) = b.program.blocks.iter().position(|it| it.header.ends_with(&block)) {
        let back = std::mem::replace(&mut b.block, at);
        let offsets = b.name("p");
        b.step(&format!("{offsets} = rd_kafka_share_partition_offsets_list_get cb_offsets 0"));
        for function in ["partition", "offsets", "offsets_cnt"] {
            b.step(&format!("rd_kafka_share_partition_offsets_{function} {offsets}"));
        }
        b.block = back;
    }
    b.step(&format!("{list} = rd_kafka_topic_partition_list_new 1"));
    b.step(&format!("_ = rd_kafka_topic_partition_list_add {list} \"t%b\" -1"));
    b.step(&format!("rd_kafka_share_subscribe {share} {list}"));
    let (messages, message, target) = (b.name("m"), b.name("m"), b.list_of_one());
    b.step(&format!("{messages} = shared {share}"));
    b.step(&format!("{message} = rd_kafka_messages_get {messages} 0"));
    b.step(&format!("rd_kafka_share_acknowledge_offset {share} \"t%b\" 0 0 1"));
    b.step(&format!("rd_kafka_share_acknowledge_type {share} {message} 2"));
    b.step(&format!("_,_ = rd_kafka_share_commit_sync {share} 2000"));
    if b.random.percent(30) {
        b.step(&format!("rd_kafka_mock_sharegroup_target_assignment {cluster} \"s%\" {target}"));
    }
    b.add(share, "share", Role::None);
    b.add(list, "topic_partition_list", Role::None);
    b.add(messages, "messages", Role::None);
    b.add(message, "message", Role::None);
}

/// Identities of group members as bytes, epochs of partitions, offsets that the application stores.
fn identities(b: &mut Builder<'_>) {
    let (group, read) = (b.name("c"), b.name("c"));
    b.step(&format!("{group} = rd_kafka_consumer_group_metadata_new \"g%\""));
    b.step(&format!("_ = rd_kafka_consumer_group_metadata_write {group}"));
    b.add(group, "consumer_group_metadata", Role::None);
    b.call_with("rd_kafka_consumer_group_metadata_read", &[]);
    let (list, partition) = (b.name("l"), b.name("t"));
    b.step(&format!("{list} = rd_kafka_topic_partition_list_new 1"));
    b.step(&format!("{partition} = rd_kafka_topic_partition_list_add {list} \"t%a\" 0"));
    b.step(&format!("rd_kafka_topic_partition_set_leader_epoch {partition} 0"));
    b.step(&format!("rd_kafka_topic_partition_get_leader_epoch {partition}"));
    b.step(&format!("offset {list} 0 1"));
    b.written(2);
    let (_, cluster) = b.cluster();
    let (conf, client) = (b.conf(), b.name("k"));
    b.step(&format!("bootstrap {conf} {cluster}"));
    for (name, value) in
        [("group.id", "g%"), ("enable.auto.offset.store", "false"), ("enable.auto.commit", "false")]
    {
        b.step(&format!("rd_kafka_conf_set {conf} \"{name}\" \"{value}\" 512"));
    }
    b.step(&format!("{client} = rd_kafka_new 1 {conf} 512"));
    b.step(&format!("rd_kafka_assign {client} {list}"));
    b.step(&format!("{read} = next {client}"));
    b.step(&format!("rd_kafka_offsets_store {client} {list}"));
    b.step(&format!("rd_kafka_commit {client} NULL 0"));
    b.add(list, "topic_partition_list", Role::None);
    b.add(read, "message", Role::None);
    b.add(client, "client", Role::Consumer);
}

/// Errors, delays and moves of the mock cluster.
fn disturb(b: &mut Builder<'_>) {
    let (_, cluster) = b.cluster();
    let count = 1 + b.random.below(2);
    for _ in 0..count {
        let key =
            *b.random.one(&["0", "1", "2", "3", "8", "9", "10", "11", "14", "22", "24", "25", "26", "28"]);
        let error = *b.random.one(&[
            "7", "6", "5", "3", "16", "15", "14", "29", "22", "25", "27", "47", "45", "48", "53", "-1",
        ]);
        match b.random.below(7) {
            0 => {
                b.call_with(
                    "rd_kafka_mock_partition_set_leader",
                    &[("mcluster", &cluster), ("topic", "\"t%a\"")],
                );
            }
            1 => {
                b.call_with("rd_kafka_mock_broker_set_rtt", &[("mcluster", &cluster), ("rtt_ms", "50")]);
            }
            2 => {
                b.call_with(
                    "rd_kafka_mock_coordinator_set",
                    &[("mcluster", &cluster), ("key_type", "\"group\"")],
                );
            }
            3 => {
                b.step(&format!("rd_kafka_mock_broker_push_request_error_rtts {cluster} 1 {key} {error} 20"))
            }
            4 => b.step(&format!(
                "rd_kafka_mock_partition_push_request_errors {cluster} \"t%a\" 0 {key} {error}"
            )),
            _ => b.step(&format!("rd_kafka_mock_push_request_errors {cluster} {key} {error}")),
        }
    }
}

fn administer(b: &mut Builder<'_>) {
    let (operation, _) = *b.random.one(&super::clients::ADMIN);
    b.admin(operation);
}

fn queues(b: &mut Builder<'_>) {
    let client = if b.random.percent(50) { b.producer() } else { b.consumer(false) };
    let count = 2 + b.random.below(4);
    for _ in 0..count {
        let function = *b.random.one(&[
            "rd_kafka_queue_new",
            "rd_kafka_queue_get_main",
            "rd_kafka_queue_get_consumer",
            "rd_kafka_queue_get_partition",
            "rd_kafka_queue_get_background",
            "rd_kafka_queue_forward",
            "rd_kafka_queue_length",
            "rd_kafka_queue_poll",
            "rd_kafka_queue_poll_callback",
            "rd_kafka_queue_cb_event_enable",
            "rd_kafka_queue_io_event_enable",
            "rd_kafka_queue_yield",
            "rd_kafka_set_log_queue",
            "rd_kafka_consume_queue",
            "rd_kafka_queue_destroy",
        ]);
        b.call_with(function, &[("rk", &client), ("timeout_ms", "100")]);
    }
}

/// Objects that need no client: headers, configurations of topics, metadata of groups, errors.
fn objects(b: &mut Builder<'_>) {
    let headers = b.name("headers");
    b.step(&format!("{headers} = rd_kafka_headers_new 2"));
    b.add(headers.clone(), "headers", Role::None);
    let count = 2 + b.random.below(5);
    for _ in 0..count {
        let name = *b.random.one(&["\"h\"", "\"h\"", "\"i\"", "\"\""]);
        let value = *b.random.one(&["\"v\"", "\"\"", "NULL"]);
        let index = b.random.below(3);
        match b.random.below(5) {
            0 => b.step(&format!("rd_kafka_header_get {headers} {index} {name}")),
            1 => b.step(&format!("rd_kafka_header_get_all {headers} {index}")),
            2 => b.step(&format!("rd_kafka_header_get_last {headers} {name}")),
            3 if b.random.percent(30) => b.step(&format!("rd_kafka_header_remove {headers} {name}")),
            _ => b.step(&format!("rd_kafka_header_add {headers} {name} {value}")),
        }
    }
    let conf = b.name("topic_conf");
    b.step(&format!("{conf} = rd_kafka_topic_conf_new"));
    b.add(conf.clone(), "topic_conf", Role::None);
    for (name, value) in [("acks", "1"), ("message.timeout.ms", "5000"), ("no.such.property", "1")] {
        if b.random.percent(50) {
            b.step(&format!("rd_kafka_topic_conf_set {conf} \"{name}\" \"{value}\" 512"));
            b.step(&format!("rd_kafka_topic_conf_get {conf} \"{name}\" 512"));
        }
    }
    if b.random.percent(50) {
        b.step("descriptions");
    }
}

/// What interceptors of every type and the log of a mock cluster see.
fn observe(b: &mut Builder<'_>) {
    let (_, cluster) = b.cluster();
    b.step(&format!("rd_kafka_mock_start_request_tracking {cluster}"));
    let (conf, client) = (b.name("conf"), b.name("k"));
    b.step(&format!("{conf} = rd_kafka_conf_new"));
    b.step(&format!("bootstrap {conf} {cluster}"));
    b.callback("on_new");
    b.step(&format!("rd_kafka_conf_interceptor_add_on_new {conf} \"i\" on_new 0"));
    if let Some(at) = b.program.blocks.iter().position(|block| block.header == "in on_new") {
        let back = std::mem::replace(&mut b.block, at);
        for of in [
            "request_sent",
            "response_received",
            "thread_start",
            "thread_exit",
            "broker_state_change",
            "destroy",
        ] {
            b.step(&format!("rd_kafka_interceptor_add_on_{of} cb_client \"o\" on_{of} 0"));
        }
        b.block = back;
    }
    b.step(&format!("{client} = rd_kafka_new 0 {conf} 512"));
    b.add(client.clone(), "client", Role::Producer);
    produce_entries(b, &client);
    b.step(&format!("rd_kafka_flush {client} 4000"));
    b.step(&format!("requests {cluster}"));
}

/// Properties, read and written.
fn settings(b: &mut Builder<'_>) {
    let conf = b.name("conf");
    b.step(&format!("{conf} = rd_kafka_conf_new"));
    b.add(conf.clone(), "conf", Role::None);
    let count = 1 + b.random.below(6);
    for _ in 0..count {
        b.odd = 60;
        b.properties(&conf);
        let (name, _) = *b.random.one(&super::values::PROPERTIES);
        b.step(&format!("rd_kafka_conf_get {conf} \"{name}\" 512"));
    }
    if b.random.percent(50) {
        let (client, kind) = (b.name("k"), b.random.below(2));
        b.step(&format!("{client} = rd_kafka_new {kind} {conf} 512"));
        b.add(client, "client", Role::Producer);
    }
}
