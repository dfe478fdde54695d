//! Functions that succeed only after what other sequences seldom do.

use super::builder::{Builder, Role};

/// What a program may begin with.
const CALLS: [fn(&mut Builder<'_>); 5] =
    [arrays, replicas, old_consumer, errors_of_messages, failed_operation];

/// Adds the calls of one kind.
pub fn call(b: &mut Builder<'_>) {
    let call = *b.random.one(&CALLS);
    call(b);
}

/// Objects that are destroyed together, and a certificate that is taken back.
fn arrays(b: &mut Builder<'_>) {
    let conf = b.conf();
    b.step(&format!("rd_kafka_conf_set_ssl_cert {conf} 0 1 NULL 512"));
    b.add(conf, "conf", Role::None);
    let objects = [
        ("rd_kafka_AclBinding_new 2 \"t\" 3 \"User:u\" \"*\" 3 3 512", "AclBinding"),
        ("rd_kafka_NewTopic_new \"t\" 1 1 512", "NewTopic"),
        ("rd_kafka_ConfigResource_new 2 \"t\"", "ConfigResource"),
    ];
    for (text, kind) in objects {
        let name = b.name(kind);
        b.step(&format!("{name} = {text}"));
        b.step(&format!("rd_kafka_{kind}_destroy_array [{name}]"));
    }
}

/// Replicas of partitions that are added.
fn replicas(b: &mut Builder<'_>) {
    let name = b.name("NewPartitions");
    b.step(&format!("{name} = rd_kafka_NewPartitions_new \"t%a\" 3 512"));
    b.step(&format!("rd_kafka_NewPartitions_set_replica_assignment {name} 0 [1] 512"));
    b.add(name, "NewPartitions", Role::None);
}

/// The older functions, on a partition that has messages.
fn old_consumer(b: &mut Builder<'_>) {
    b.written(3);
    let (client, topic, queue, message) = (b.consumer(false), b.name("topic"), b.name("q"), b.name("m"));
    b.step(&format!("{topic} = rd_kafka_topic_new {client} \"t%a\" NULL"));
    match b.random.below(3) {
        0 => {
            b.step(&format!("rd_kafka_consume_start {topic} 0 -2"));
            b.step(&format!("{message} = rd_kafka_consume {topic} 0 4000"));
        }
        at => {
            b.step(&format!("{queue} = rd_kafka_queue_new {client}"));
            b.step(&format!("rd_kafka_consume_start_queue {topic} 0 -2 {queue}"));
            if at == 1 {
                b.step(&format!("{message} = rd_kafka_consume_queue {queue} 4000"));
            } else {
                b.step(&format!("rd_kafka_consume_batch_queue {queue} 4000 1"));
            }
            b.add(queue, "queue", Role::None);
        }
    }
    b.step(&format!("rd_kafka_consume_stop {topic} 0"));
    b.add(message, "message", Role::None);
    b.add(topic, "topic", Role::None);
}

/// The texts of messages that were not delivered, and of the end of a partition.
fn errors_of_messages(b: &mut Builder<'_>) {
    let (conf, client) = (b.conf(), b.name("k"));
    let block = b.callback("dr_msg_cb");
    b.step(&format!("rd_kafka_conf_set_dr_msg_cb {conf} {block}"));
    b.step(&format!("{client} = rd_kafka_new 0 {conf} 512"));
    if let Some(at) = b.program.blocks.iter().position(|it| it.header == "in dr_msg_cb") {
        let back = std::mem::replace(&mut b.block, at);
        for function in ["rd_kafka_message_produce_errstr", "rd_kafka_message_errstr"] {
            b.step(&format!("{function} cb_message"));
        }
        b.block = back;
    }
    b.step(&format!("rd_kafka_producev {client} topic=\"t%a\" partition=0 flags=2 value=\"m\""));
    b.step(&format!("rd_kafka_purge {client} 1"));
    b.step(&format!("rd_kafka_poll {client} 1000"));
    b.add(client, "client", Role::Producer);
}

/// Operations on a topic that does not exist, whose results have texts.
fn failed_operation(b: &mut Builder<'_>) {
    if !b.has_broker {
        return;
    }
    let client = b.administrator();
    let (object, queue, event, result) = (b.name("o"), b.name("q"), b.name("e"), b.name("r"));
    let list = b.name("l");
    let (operation, number, make, list_of, text) = if b.random.percent(50) {
        (
            "DeleteTopics",
            101,
            "rd_kafka_DeleteTopic_new \"no%\"",
            "topics",
            "rd_kafka_topic_result_error_string",
        )
    } else {
        (
            "DescribeConfigs",
            104,
            "rd_kafka_ConfigResource_new 2 \"no%\"",
            "resources",
            "rd_kafka_ConfigResource_error_string",
        )
    };
    b.step(&format!("{object} = {make}"));
    b.step(&format!("{queue} = rd_kafka_queue_new {client}"));
    b.step(&format!("rd_kafka_{operation} {client} [{object}] NULL {queue}"));
    b.step(&format!("{event} = await {queue} {number}"));
    b.step(&format!("{result} = rd_kafka_event_{operation}_result {event}"));
    b.step(&format!("{list} = rd_kafka_{operation}_result_{list_of} {result}"));
    b.step(&format!("{text} {list}"));
    b.add(queue, "queue", Role::None);
    b.add(event, "event", Role::None);
}
