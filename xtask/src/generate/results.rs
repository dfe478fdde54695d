//! Operations of the administration that have something to do, and everything that can be read of their results.

use super::{
    builder::{Builder, Role},
    clients::ADMIN,
    table::Function,
};

/// How deep results are read.
const DEEPEST: usize = 5;

/// Carries out an operation, and reads its result.
pub fn inspect_results(b: &mut Builder<'_>) {
    let at = b.random.below(ADMIN.len());
    let (operation, of_type) = ADMIN[at];
    if !b.has_broker {
        return;
    }
    let client = b.administrator();
    let arguments = arguments(b, &client, operation);
    let (queue, options, event, result) = (b.name("q"), b.name("o"), b.name("e"), b.name("r"));
    b.step(&format!("{queue} = rd_kafka_queue_new {client}"));
    b.step(&format!("{options} = rd_kafka_AdminOptions_new {client} {}", at + 1));
    for (option, value) in [
        ("include_authorized_operations", "1"),
        ("request_timeout", "5000 512"),
        ("require_stable_offsets", "1"),
        ("isolation_level", "1"),
        ("opaque", "7"),
        ("validate_only", "1 512"),
        ("operation_timeout", "1000 512"),
        ("match_consumer_group_states", "[3,5]"),
        ("match_consumer_group_types", "[1,2]"),
    ] {
        if b.random.percent(25) {
            b.step(&format!("_ = rd_kafka_AdminOptions_set_{option} {options} {value}"));
        }
    }
    b.step(&format!("rd_kafka_{operation} {client} {arguments} {options} {queue}").replace("  ", " "));
    b.step(&format!("{event} = await {queue} {of_type}"));
    b.step(&format!("{result} = rd_kafka_event_{operation}_result {event}"));
    b.add(queue, "queue", Role::None);
    b.add(event, "event", Role::None);
    inspect(b, &format!("{operation}_result"), &result, 0);
}

/// Calls every function that reads a part of a result, and what that returns.
fn inspect(b: &mut Builder<'_>, kind: &str, name: &str, depth: usize) {
    let table = b.table;
    let reads = |function: &&Function| {
        let mut parameters = function.parameters.iter();
        parameters.next().is_some_and(|it| it.code == format!("h:{kind}"))
            && parameters.all(|it| it.code == "cnt" || it.code.starts_with("below@"))
            && !function.name.ends_with("_copy")
            && !function.result.starts_with("new:")
    };
    for function in table.called().filter(reads) {
        let given: Vec<(&str, &str)> = function
            .parameters
            .iter()
            .zip([name, "0"])
            .map(|(parameter, word)| (parameter.name.as_str(), word))
            .collect();
        let made = b.call_with(&function.name, &given);
        for (kind, name) in made.iter().filter(|_| depth < DEEPEST) {
            let is_of_result = !["topic_partition_list", "topic_partition"].contains(&kind.as_str());
            if is_of_result {
                inspect(b, kind, name, depth + 1);
            }
        }
    }
}

/// Makes what an operation is about, and returns the words for it.
fn arguments(b: &mut Builder<'_>, client: &str, operation: &str) -> String {
    let needs_member = operation.contains("Group");
    if needs_member {
        member(b);
    }
    match operation {
        "CreateTopics" if b.random.percent(50) => {
            let name = b.name("NewTopic");
            b.step(&format!("{name} = rd_kafka_NewTopic_new \"n%\" 2 -1 512"));
            for partition in 0..2 {
                b.step(&format!("rd_kafka_NewTopic_set_replica_assignment {name} {partition} [1] 512"));
            }
            format!("[{}]", b.add(name, "NewTopic", Role::None))
        }
        "CreateTopics" => made(b, "rd_kafka_NewTopic_new \"n%\" 1 1 512", "NewTopic"),
        "DeleteTopics" => made(b, "rd_kafka_DeleteTopic_new \"t%a\"", "DeleteTopic"),
        "CreatePartitions" => made(b, "rd_kafka_NewPartitions_new \"t%a\" 4 512", "NewPartitions"),
        "AlterConfigs" | "DescribeConfigs" | "IncrementalAlterConfigs" => {
            let resource = made(b, "rd_kafka_ConfigResource_new 2 \"t%a\"", "ConfigResource");
            let name = resource.trim_matches(['[', ']']);
            match operation {
                "AlterConfigs" => {
                    b.step(&format!("rd_kafka_ConfigResource_set_config {name} \"retention.ms\" \"1000\""));
                }
                "IncrementalAlterConfigs" => b.step(&format!(
                    "_ = rd_kafka_ConfigResource_add_incremental_config {name} \"retention.ms\" 0 \"1000\""
                )),
                _ => {}
            }
            resource
        }
        "DeleteRecords" => {
            let list = partitions(b, "1");
            let name = b.name("d");
            b.step(&format!("{name} = rd_kafka_DeleteRecords_new {list}"));
            format!("[{}]", b.add(name, "DeleteRecords", Role::None))
        }
        "DeleteGroups" => made(b, "rd_kafka_DeleteGroup_new \"g%\"", "DeleteGroup"),
        "ListConsumerGroups" | "DescribeCluster" => String::new(),
        "DescribeConsumerGroups" => "[\"g%\"]".to_owned(),
        "DeleteConsumerGroupOffsets" | "ListConsumerGroupOffsets" | "AlterConsumerGroupOffsets" => {
            let list = partitions(b, "1");
            let name = b.name("d");
            b.step(&format!("{name} = rd_kafka_{operation}_new \"g%\" {list}"));
            format!("[{}]", b.add(name, operation, Role::None))
        }
        "CreateAcls" => acl(b),
        "DescribeAcls" | "DeleteAcls" => {
            let (acl, queue, event) = (acl(b), b.name("q"), b.name("e"));
            b.step(&format!("{queue} = rd_kafka_queue_new {client}"));
            b.step(&format!("rd_kafka_CreateAcls {client} {acl} NULL {queue}"));
            b.step(&format!("{event} = await {queue} 0x400"));
            b.add(queue, "queue", Role::None);
            b.add(event, "event", Role::None);
            let filter = b.name("f");
            b.step(&format!("{filter} = rd_kafka_AclBindingFilter_new 2 \"t%a\" 3 NULL NULL 1 1 512"));
            b.add(filter.clone(), "AclBindingFilter", Role::None);
            if operation == "DescribeAcls" { filter } else { format!("[{filter}]") }
        }
        "DescribeUserScramCredentials" => {
            let (user, queue, event) = (user(b), b.name("q"), b.name("e"));
            b.step(&format!("{queue} = rd_kafka_queue_new {client}"));
            b.step(&format!("rd_kafka_AlterUserScramCredentials {client} {user} NULL {queue}"));
            b.step(&format!("{event} = await {queue} 0x80000"));
            b.add(queue, "queue", Role::None);
            b.add(event, "event", Role::None);
            "[\"u%\"]".to_owned()
        }
        "AlterUserScramCredentials" => user(b),
        "DescribeTopics" => {
            let topics = made(b, "rd_kafka_TopicCollection_of_topic_names [\"t%a\"]", "TopicCollection");
            topics.trim_matches(['[', ']']).to_owned()
        }
        "ListOffsets" => {
            let offset = *b.random.one(&["-1", "-3"]);
            partitions(b, offset)
        }
        "ElectLeaders" => {
            let list = partitions(b, "0");
            let name = b.name("d");
            b.step(&format!("{name} = rd_kafka_ElectLeaders_new 0 {list}"));
            b.add(name, "ElectLeaders", Role::None)
        }
        _ => String::new(),
    }
}

/// Makes an object, and returns an array of it.
fn made(b: &mut Builder<'_>, text: &str, kind: &str) -> String {
    let name = b.name(kind);
    b.step(&format!("{name} = {text}"));
    format!("[{}]", b.add(name, kind, Role::None))
}

/// A list with the first partition of the usual topic, and an offset.
fn partitions(b: &mut Builder<'_>, offset: &str) -> String {
    let list = b.name("l");
    b.step(&format!("{list} = rd_kafka_topic_partition_list_new 1"));
    b.step(&format!("_ = rd_kafka_topic_partition_list_add {list} \"t%a\" 0"));
    b.step(&format!("offset {list} 0 {offset}"));
    b.add(list, "topic_partition_list", Role::None)
}

fn acl(b: &mut Builder<'_>) -> String {
    let name = b.name("a");
    b.step(&format!("{name} = rd_kafka_AclBinding_new 2 \"t%a\" 3 \"User:u\" \"*\" 3 3 512"));
    format!("[{}]", b.add(name, "AclBinding", Role::None))
}

fn user(b: &mut Builder<'_>) -> String {
    let name = b.name("u");
    b.step(&format!(
        "{name} = rd_kafka_UserScramCredentialUpsertion_new \"u%\" 1 4096 \"password\" \"salt\""
    ));
    format!("[{}]", b.add(name, "UserScramCredentialAlteration", Role::None))
}

/// A group with a committed offset, which mostly has a member.
fn member(b: &mut Builder<'_>) {
    let (conf, client, message) = (b.conf(), b.name("k"), b.name("m"));
    b.step(&format!("bootstrap {conf}"));
    for (name, value) in
        [("group.id", "g%"), ("auto.offset.reset", "earliest"), ("enable.auto.commit", "false")]
    {
        b.step(&format!("rd_kafka_conf_set {conf} \"{name}\" \"{value}\" 512"));
    }
    if b.random.percent(40) {
        b.step(&format!("rd_kafka_conf_set {conf} \"group.instance.id\" \"i%\" 512"));
    }
    if b.random.percent(50) {
        b.step(&format!("rd_kafka_conf_set {conf} \"group.protocol\" \"consumer\" 512"));
    }
    b.step(&format!("{client} = rd_kafka_new 1 {conf} 512"));
    b.subscribe_to(&client, "\"t%a\"");
    b.step(&format!("{message} = next {client}"));
    b.step(&format!("rd_kafka_commit_message {client} {message} 0"));
    if b.random.percent(40) {
        b.step(&format!("rd_kafka_consumer_close {client}"));
    }
    b.add(message, "message", Role::None);
    b.add(client, "client", Role::Consumer);
}
