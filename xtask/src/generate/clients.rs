//! Clients, mock clusters, and handles that no single call makes: messages, events, results.

use super::{
    builder::{Builder, Role},
    values::PROPERTIES,
};

impl Builder<'_> {
    /// Makes a handle of a kind.
    pub fn make(&mut self, kind: &str) -> Option<String> {
        match kind {
            "client" => match self.random.below(4) {
                0 => Some(self.producer()),
                1 => Some(self.consumer(false)),
                2 => Some(self.bare_client()),
                _ => Some(self.host()),
            },
            "mock_cluster" => Some(self.cluster().1),
            "share" => Some(self.share()),
            "message" => Some(self.message()),
            "messages" => Some(self.shared_messages()),
            "event" => Some(self.event()),
            "error" => {
                let name = self.name("error");
                let code = *self.random.one(&["-185", "3", "-172", "27", "0"]);
                self.step(&format!("{name} = rd_kafka_error_new {code} \"text\""));
                Some(self.add(name, "error", Role::None))
            }
            "topic_partition_list" => Some(self.list()),
            "mock_cgrp_consumer_target_assignment" => {
                let (client, list) = (self.consumer(true), self.list());
                let name = self.name("x");
                self.step(&format!(
                    "{name} = rd_kafka_mock_cgrp_consumer_target_assignment_new {client} {list}"
                ));
                Some(self.add(name, kind, Role::None))
            }
            _ => match kind.strip_suffix("_result") {
                Some(operation) if operation.starts_with(|first: char| first.is_ascii_uppercase()) => {
                    self.admin(operation)
                }
                _ => self.make_by_call(kind),
            },
        }
    }

    /// Returns the client that owns the mock cluster, and the cluster.
    pub fn cluster(&mut self) -> (String, String) {
        let cluster = self.handles.iter().rfind(|it| it.kind == "mock_cluster").map(|it| it.name.clone());
        if let (Some(cluster), Some(client)) = (cluster, self.client(&[Role::Host])) {
            return (client, cluster);
        }
        let client = self.host();
        let cluster = self.name("mock_cluster");
        self.step(&format!("{cluster} = rd_kafka_handle_mock_cluster {client}"));
        self.step(&format!("rd_kafka_mock_group_initial_rebalance_delay_ms {cluster} 0"));
        let (partitions, is_created) = (1 + self.random.below(3), self.random.percent(80));
        if is_created {
            self.step(&format!("rd_kafka_mock_topic_create {cluster} \"t%a\" {partitions} 1"));
        }
        self.add(cluster.clone(), "mock_cluster", Role::None);
        (client, cluster)
    }

    /// A producer with a mock cluster of its own.
    pub fn host(&mut self) -> String {
        let brokers = *self.random.one(&["1", "1", "3"]);
        let (conf, client) = (self.conf(), self.name("k"));
        self.step(&format!("rd_kafka_conf_set {conf} \"test.mock.num.brokers\" \"{brokers}\" 512"));
        self.step(&format!("{client} = rd_kafka_new 0 {conf} 512"));
        self.add(client, "client", Role::Host)
    }

    /// A configuration that lets clients notice and retry quickly.
    pub fn conf(&mut self) -> String {
        let conf = self.name("c");
        self.step(&format!("{conf} = rd_kafka_conf_new"));
        for (name, value) in [("log_level", "0"), ("reconnect.backoff.ms", "10"), ("retry.backoff.ms", "10")]
        {
            self.step(&format!("rd_kafka_conf_set {conf} \"{name}\" \"{value}\" 512"));
        }
        conf
    }

    /// Sets some properties; odd values now and then.
    pub fn properties(&mut self, conf: &str) {
        let count = self.random.below(3);
        for _ in 0..count {
            let (name, values) = *self.random.one(&PROPERTIES);
            let value = if self.random.percent(self.odd) { *self.random.one(values) } else { values[0] };
            self.step(&format!("rd_kafka_conf_set {conf} \"{name}\" \"{value}\" 512"));
        }
    }

    /// A client without brokers.
    fn bare_client(&mut self) -> String {
        let (conf, client) = (self.conf(), self.name("k"));
        let is_consumer = self.random.percent(50);
        if is_consumer && self.random.percent(80) {
            self.step(&format!("rd_kafka_conf_set {conf} \"group.id\" \"g%\" 512"));
        }
        self.properties(&conf);
        self.step(&format!("{client} = rd_kafka_new {} {conf} 512", i32::from(is_consumer)));
        self.add(client, "client", if is_consumer { Role::Consumer } else { Role::Producer })
    }

    /// A producer that is connected to the mock cluster, with callbacks of some types.
    pub fn producer(&mut self) -> String {
        let (_, cluster) = self.cluster();
        let (conf, client) = (self.conf(), self.name("k"));
        self.step(&format!("bootstrap {conf} {cluster}"));
        self.step(&format!("rd_kafka_conf_set {conf} \"message.timeout.ms\" \"3000\" 512"));
        self.properties(&conf);
        match self.random.below(5) {
            0 => self.step(&format!("rd_kafka_conf_set_events {conf} 1")),
            1 => self.set_callback(&conf, "dr_cb"),
            2 => {}
            _ => self.set_callback(&conf, "dr_msg_cb"),
        }
        self.interceptors(&conf);
        self.step(&format!("{client} = rd_kafka_new 0 {conf} 512"));
        self.add(client, "client", Role::Producer)
    }

    fn set_callback(&mut self, conf: &str, callback: &str) {
        let block = self.callback(callback);
        self.step(&format!("rd_kafka_conf_set_{callback} {conf} {block}"));
    }

    /// Interceptors, which are added when the client is made.
    fn interceptors(&mut self, conf: &str) {
        if !self.random.percent(8) {
            return;
        }
        self.callback("on_new");
        self.step(&format!("rd_kafka_conf_interceptor_add_on_new {conf} \"i\" on_new 0"));
        let Some(at) = self.program.blocks.iter().position(|block| block.header == "in on_new") else {
            return;
        };
        let back = std::mem::replace(&mut self.block, at);
        for of in ["on_send", "on_acknowledgement", "on_consume", "on_commit", "on_destroy"] {
            let callback = if of == "on_consume" { "on_consume_message" } else { of };
            if self.random.percent(50) {
                self.callback(callback);
                self.step(&format!("rd_kafka_interceptor_add_{of} cb_client \"i\" {callback} 0"));
            }
        }
        self.block = back;
    }

    /// A producer with a transactional id.
    pub fn transactional(&mut self) -> String {
        let (_, cluster) = self.cluster();
        let (conf, client) = (self.conf(), self.name("k"));
        self.step(&format!("bootstrap {conf} {cluster}"));
        self.step(&format!("rd_kafka_conf_set {conf} \"transactional.id\" \"x%\" 512"));
        self.set_callback(&conf, "dr_msg_cb");
        self.step(&format!("{client} = rd_kafka_new 0 {conf} 512"));
        self.add(client, "client", Role::Transactional)
    }

    /// A consumer that is connected to the mock cluster.
    pub fn consumer(&mut self, is_member: bool) -> String {
        let (_, cluster) = self.cluster();
        let (conf, client) = (self.conf(), self.name("k"));
        self.step(&format!("bootstrap {conf} {cluster}"));
        for (name, value) in [
            ("group.id", "g%"),
            ("auto.offset.reset", "earliest"),
            // The ends of several partitions come in any order.
            ("enable.partition.eof", if is_member { "false" } else { "true" }),
            ("enable.auto.commit", "false"),
            ("fetch.wait.max.ms", "20"),
            // Only Ottla's mock cluster knows which transactions are open.
            ("isolation.level", "read_uncommitted"),
        ] {
            self.step(&format!("rd_kafka_conf_set {conf} \"{name}\" \"{value}\" 512"));
        }
        self.properties(&conf);
        if is_member && self.random.percent(60) {
            self.set_callback(&conf, "rebalance_cb");
        }
        if self.random.percent(30) {
            self.set_callback(&conf, "offset_commit_cb");
        }
        self.interceptors(&conf);
        self.step(&format!("{client} = rd_kafka_new 1 {conf} 512"));
        if self.random.percent(50) {
            self.step(&format!("rd_kafka_poll_set_consumer {client}"));
        }
        self.add(client, "client", Role::Consumer)
    }

    /// A share consumer that is connected to the mock cluster.
    pub fn share(&mut self) -> String {
        let (_, cluster) = self.cluster();
        self.step(&format!("rd_kafka_mock_sharegroup_set_auto_offset_reset {cluster} 1"));
        let (conf, share) = (self.conf(), self.name("s"));
        self.step(&format!("bootstrap {conf} {cluster}"));
        // A group has one type.
        self.step(&format!("rd_kafka_conf_set {conf} \"group.id\" \"s%\" 512"));
        if self.random.percent(30) {
            let explicit = "\"share.acknowledgement.mode\" \"explicit\"";
            self.step(&format!("rd_kafka_conf_set {conf} {explicit} 512"));
        }
        self.step(&format!("{share} = rd_kafka_share_consumer_new {conf} 512"));
        if self.random.percent(30) {
            let block = self.callback("share_acknowledgement_commit_cb");
            self.step(&format!("rd_kafka_share_set_acknowledgement_commit_cb {share} {block} 0"));
        }
        self.add(share, "share", Role::None)
    }

    /// A list with the partition of the usual topic that has messages.
    pub fn list_of_one(&mut self) -> String {
        let list = self.name("l");
        self.step(&format!("{list} = rd_kafka_topic_partition_list_new 1"));
        let partition = if self.random.percent(self.odd) { *self.random.one(&["1", "7", "-1"]) } else { "0" };
        self.element(&list, "\"t%a\"", partition, 0);
        self.add(list, "topic_partition_list", Role::None)
    }

    /// Adds a partition to a list; now and then the element at an index gets an offset, and the new one a leader epoch.
    fn element(&mut self, list: &str, topic: &str, partition: &str, at: usize) {
        let element = self.name("t");
        self.step(&format!("{element} = rd_kafka_topic_partition_list_add {list} {topic} {partition}"));
        if self.random.percent(30) {
            let offset = *self.random.one(&["0", "1", "-1", "-2", "-1000", "-1001", "100", "-5"]);
            self.step(&format!("offset {list} {at} {offset}"));
        }
        if self.random.percent(20) {
            let epoch = *self.random.one(&["0", "0", "1", "7", "-1"]);
            self.step(&format!("rd_kafka_topic_partition_set_leader_epoch {element} {epoch}"));
        }
    }

    /// A list with partitions of the usual topic.
    pub fn list(&mut self) -> String {
        let list = self.name("l");
        self.step(&format!("{list} = rd_kafka_topic_partition_list_new 2"));
        let count =
            if self.random.percent(self.odd) { self.random.below(4) } else { 1 + self.random.below(2) };
        for partition in 0..count {
            let is_odd = self.random.percent(self.odd);
            let topic = if is_odd { *self.random.one(&["\"t%b\"", "\"no%\"", "\"\""]) } else { "\"t%a\"" };
            let odd = *self.random.one(&["-1", "7", "0"]);
            let partition = if is_odd { odd.to_owned() } else { partition.to_string() };
            self.element(&list, topic, &partition, count - 1);
        }
        self.add(list, "topic_partition_list", Role::None)
    }

    /// Subscribes to a topic.
    pub fn subscribe_to(&mut self, client: &str, topic: &str) {
        let list = self.name("l");
        self.step(&format!("{list} = rd_kafka_topic_partition_list_new 1"));
        self.step(&format!("_ = rd_kafka_topic_partition_list_add {list} {topic} -1"));
        self.step(&format!("rd_kafka_subscribe {client} {list}"));
        self.add(list, "topic_partition_list", Role::None);
    }

    /// Produces some messages, and waits until they are written.
    pub fn written(&mut self, count: usize) {
        self.written_to("\"t%a\"", count);
    }

    /// Produces some messages to a topic, and waits until they are written.
    pub fn written_to(&mut self, topic: &str, count: usize) {
        let (client, _) = self.cluster();
        for at in 0..count {
            // One partition: the order between several is not determined.
            self.step(&format!(
                "rd_kafka_producev {client} topic={topic} partition=0 flags=2 value=\"m{at}\" key=\"k\" header=h:\"v\""
            ));
        }
        self.step(&format!("rd_kafka_flush {client} 4000"));
    }

    /// A message that a consumer got.
    fn message(&mut self) -> String {
        let count = 1 + self.random.below(3);
        self.written(count);
        let (consumer, list) = (self.consumer(false), self.name("l"));
        self.step(&format!("{list} = rd_kafka_topic_partition_list_new 1"));
        self.step(&format!("_ = rd_kafka_topic_partition_list_add {list} \"t%a\" 0"));
        self.step(&format!("rd_kafka_assign {consumer} {list}"));
        let message = self.name("m");
        self.step(&format!("{message} = next {consumer}"));
        self.add(list, "topic_partition_list", Role::None);
        self.add(message, "message", Role::None)
    }

    /// The messages that a share consumer got.
    pub fn shared_messages(&mut self) -> String {
        // Only this writes to the topic, and to one partition: a share consumer reads several in any order.
        self.written_to("\"t%b\"", 2);
        let (share, list, messages) = (self.handle("share"), self.name("l"), self.name("m"));
        self.step(&format!("{list} = rd_kafka_topic_partition_list_new 1"));
        self.step(&format!("_ = rd_kafka_topic_partition_list_add {list} \"t%b\" -1"));
        self.step(&format!("rd_kafka_share_subscribe {share} {list}"));
        self.step(&format!("{messages} = shared {share}"));
        self.add(messages, "messages", Role::None)
    }

    /// An event of some type.
    fn event(&mut self) -> String {
        if self.random.percent(40) {
            let operation = *self.random.one(&ADMIN);
            self.admin(operation.0);
            let found = self.handles.iter().rfind(|it| it.kind == "event").map(|it| it.name.clone());
            if let Some(found) = found {
                return found;
            }
        }
        let (_, cluster) = self.cluster();
        let (conf, client, queue, event) = (self.conf(), self.name("k"), self.name("q"), self.name("e"));
        self.step(&format!("bootstrap {conf} {cluster}"));
        self.step(&format!("rd_kafka_conf_set_events {conf} 1"));
        self.step(&format!("{client} = rd_kafka_new 0 {conf} 512"));
        self.step(&format!("{queue} = rd_kafka_queue_get_main {client}"));
        self.step(&format!("rd_kafka_producev {client} topic=\"t%a\" partition=0 flags=2 value=\"m\""));
        self.step(&format!("{event} = await {queue} 1"));
        self.add(client, "client", Role::Producer);
        self.add(queue, "queue", Role::None);
        self.add(event, "event", Role::None)
    }

    /// An operation of the administration and its result, with the embedded broker if there is one.
    pub fn admin(&mut self, operation: &str) -> Option<String> {
        let (name, number) = ADMIN.iter().find(|(name, _)| *name == operation)?;
        let client = if self.has_broker {
            let found = self.handles.iter().find(|it| it.name.starts_with("ka")).map(|it| it.name.clone());
            found.unwrap_or_else(|| self.administrator())
        } else {
            self.handle("client")
        };
        let queue = self.name("q");
        self.step(&format!("{queue} = rd_kafka_queue_new {client}"));
        self.call_with(
            &format!("rd_kafka_{name}"),
            &[("rk", &client), ("rkqu", &queue), ("options", "NULL")],
        );
        let event = self.name("e");
        self.step(&format!("{event} = await {queue} {number}"));
        self.add(queue, "queue", Role::None);
        self.add(event.clone(), "event", Role::None);
        let made = self.call_with(&format!("rd_kafka_event_{name}_result"), &[("rkev", &event)]);
        made.into_iter().next().map(|(_, name)| name)
    }

    /// A client of the embedded broker, with a topic.
    pub fn administrator(&mut self) -> String {
        let (conf, client) = (self.conf(), format!("ka{}", self.handles.len()));
        self.step(&format!("bootstrap {conf}"));
        self.step(&format!("{client} = rd_kafka_new 0 {conf} 512"));
        self.step(&format!("rd_kafka_producev {client} topic=\"t%a\" partition=0 flags=2 value=\"m\""));
        self.step(&format!("rd_kafka_flush {client} 4000"));
        self.add(client, "client", Role::Producer)
    }
}

/// The operations of the administration, with the types of their events.
pub const ADMIN: [(&str, &str); 22] = [
    ("CreateTopics", "100"),
    ("DeleteTopics", "101"),
    ("CreatePartitions", "102"),
    ("AlterConfigs", "103"),
    ("DescribeConfigs", "104"),
    ("DeleteRecords", "105"),
    ("DeleteGroups", "106"),
    ("DeleteConsumerGroupOffsets", "107"),
    ("CreateAcls", "0x400"),
    ("DescribeAcls", "0x800"),
    ("DeleteAcls", "0x1000"),
    ("ListConsumerGroups", "0x2000"),
    ("DescribeConsumerGroups", "0x4000"),
    ("ListConsumerGroupOffsets", "0x8000"),
    ("AlterConsumerGroupOffsets", "0x10000"),
    ("IncrementalAlterConfigs", "0x20000"),
    ("DescribeUserScramCredentials", "0x40000"),
    ("AlterUserScramCredentials", "0x80000"),
    ("DescribeTopics", "0x100000"),
    ("DescribeCluster", "0x200000"),
    ("ListOffsets", "0x400000"),
    ("ElectLeaders", "0x800000"),
];
