//! From a seed to a program: some usual sequences of calls, calls of any function in between, steps of callbacks and of a second
//! thread.

use super::{
    builder::{Builder, Role},
    program::{Block, Program},
    sequences::SEQUENCES,
    table::{Function, Table},
};

/// Functions that end what the rest of a program needs.
const ENDINGS: [&str; 9] = [
    "_destroy",
    "_destroy_flags",
    "_destroy_array",
    "consumer_close",
    "_yield",
    "unsubscribe",
    "broker_set_down",
    "broker_decommission",
    "broker_remove_from_metadata",
];

/// Functions that are not called in callbacks: they make or end clients.
const NOT_IN_CALLBACKS: [&str; 7] = [
    "rd_kafka_new",
    "rd_kafka_destroy",
    "rd_kafka_destroy_flags",
    "rd_kafka_share_consumer_new",
    "rd_kafka_share_destroy",
    "rd_kafka_share_destroy_flags",
    "rd_kafka_mock_cluster_new",
];

/// What on_new interceptors call: in the original the client has no queues and no group yet.
const IN_ON_NEW: [&str; 12] = [
    "rd_kafka_name",
    "rd_kafka_type",
    "rd_kafka_subscribe",
    "rd_kafka_subscription",
    "rd_kafka_unsubscribe",
    "rd_kafka_assignment",
    "rd_kafka_commit",
    "rd_kafka_rebalance_protocol",
    "rd_kafka_memberid",
    "rd_kafka_consumer_group_metadata",
    "rd_kafka_consumer_closed",
    "rd_kafka_consumer_close",
];

/// Functions that callbacks call most of all, if they have a client.
const USUAL_IN_CALLBACKS: [&str; 22] = [
    "rd_kafka_poll",
    "rd_kafka_flush",
    "rd_kafka_purge",
    "rd_kafka_outq_len",
    "rd_kafka_assign",
    "rd_kafka_assignment",
    "rd_kafka_incremental_assign",
    "rd_kafka_incremental_unassign",
    "rd_kafka_assignment_lost",
    "rd_kafka_rebalance_protocol",
    "rd_kafka_commit",
    "rd_kafka_committed",
    "rd_kafka_position",
    "rd_kafka_pause_partitions",
    "rd_kafka_resume_partitions",
    "rd_kafka_seek_partitions",
    "rd_kafka_subscription",
    "rd_kafka_unsubscribe",
    "rd_kafka_consumer_poll",
    "rd_kafka_consumer_closed",
    "rd_kafka_message_status",
    "rd_kafka_consumer_close",
];

/// Builds the program of a seed.
pub fn program(table: &Table, seed: u64, has_broker: bool) -> Program {
    let mut builder = Builder::new(table, seed, has_broker);
    // The original asserts that interceptors are added while the client is made.
    let functions: Vec<&Function> =
        table.called().filter(|function| !function.name.starts_with("rd_kafka_interceptor_add_")).collect();
    // Half of the programs are about one function, so that each has its turn; the others about a sequence.
    if seed.is_multiple_of(2) {
        for at in 0..=builder.random.below(4) {
            let turn = usize::try_from(seed / 2).unwrap_or_default() % functions.len();
            let function = functions[if at == 0 { turn } else { builder.random.below(functions.len()) }];
            if at == 0 {
                builder.call(&function.name);
                continue;
            }
            if !is_ending(function) || builder.random.percent(20) {
                builder.call(&function.name);
            }
        }
    } else {
        let count = 1 + builder.random.below(2);
        for _ in 0..count {
            let sequence = *builder.random.one(&SEQUENCES);
            sequence(&mut builder);
        }
    }
    let further = builder.random.below(8);
    for _ in 0..further {
        further_call(&mut builder, &functions);
    }
    if builder.random.percent(15) && builder.handles.iter().any(|handle| handle.kind == "client") {
        second_thread(&mut builder, &functions);
    }
    let mut at = 1;
    while at < builder.program.blocks.len() {
        if builder.program.blocks[at].header.starts_with("in ") {
            builder.block = at;
            callback_steps(&mut builder, &functions);
        }
        at += 1;
    }
    builder.program
}

fn is_ending(function: &Function) -> bool {
    ENDINGS.iter().any(|ending| function.name.ends_with(ending))
}

/// Calls a function that uses one of the handles that are there.
fn further_call(builder: &mut Builder<'_>, functions: &[&Function]) {
    let kinds: Vec<String> = builder.handles.iter().map(|handle| handle.kind.clone()).collect();
    for _ in 0..20 {
        let function = functions[builder.random.below(functions.len())];
        let uses = function.parameters.iter().filter_map(|parameter| parameter.kind());
        let is_possible =
            uses.clone().count() > 0 && uses.clone().all(|kind| kinds.iter().any(|it| it == kind));
        if is_possible && (!is_ending(function) || builder.random.percent(15)) {
            builder.call(&function.name);
            return;
        }
    }
}

/// What each type of callback is given, besides a client.
const GIVEN: [(&str, &str); 12] = [
    ("dr_msg_cb", "message"),
    ("consume_cb", "message"),
    ("on_send", "message"),
    ("on_acknowledgement", "message"),
    ("on_consume_message", "message"),
    ("rebalance_cb", "topic_partition_list"),
    ("offset_commit_cb", "topic_partition_list"),
    ("event_cb", "event"),
    ("partitioner", "topic"),
    ("share_acknowledgement_commit_cb", "share_partition_offsets_list"),
    ("on_conf_set", "conf"),
    ("on_conf_dup", "conf"),
];

fn callback_steps(builder: &mut Builder<'_>, functions: &[&Function]) {
    let header = builder.program.blocks[builder.block].header.clone();
    let given = GIVEN.iter().find(|(callback, _)| header.ends_with(callback)).map(|(_, kind)| *kind);
    let of_given: Vec<&&Function> = functions
        .iter()
        .filter(|function| {
            function.parameters.iter().any(|parameter| parameter.kind() == given && given.is_some())
        })
        .collect();
    let count = builder.random.below(4);
    for _ in 0..count {
        let name = match builder.random.below(10) {
            _ if header == "in on_new" => (*builder.random.one(&IN_ON_NEW)).to_owned(),
            0..4 if !of_given.is_empty() => builder.random.one(&of_given).name.clone(),
            0..8 => (*builder.random.one(&USUAL_IN_CALLBACKS)).to_owned(),
            _ => functions[builder.random.below(functions.len())].name.clone(),
        };
        if !NOT_IN_CALLBACKS.contains(&name.as_str()) {
            builder.call_with(&name, &[("timeout_ms", "100")]);
        }
    }
}

/// A thread that makes calls while the main one does, with two meeting points.
fn second_thread(builder: &mut Builder<'_>, functions: &[&Function]) {
    builder.step("start b");
    builder.step("meet one");
    let main = builder.block;
    builder.program.blocks.push(Block { header: "thread b".to_owned(), steps: Vec::new() });
    let other = builder.program.blocks.len() - 1;
    for block in [other, main] {
        builder.block = block;
        if block == other {
            builder.step("meet one");
        }
        for _ in 0..3 {
            further_call(builder, functions);
        }
        builder.step("meet two");
    }
    builder.block = main;
    if let Some(client) = builder.client(&[Role::Producer, Role::Consumer]) {
        builder.step(&format!("rd_kafka_poll {client} 0"));
    }
    builder.step("join");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_gives_the_same_program_and_its_text() {
        let table = Table::read().unwrap();
        for seed in 0..200 {
            let built = program(&table, seed, true);
            assert_eq!(built, program(&table, seed, true));
            assert_eq!(Program::parse(&built.text()).unwrap().text(), built.text());
        }
    }
}
