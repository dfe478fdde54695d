//! The smallest, the largest and the default value of every property of the table, in a client that runs: it is created or
//! refused, does a little work, and ends. No value makes it panic, hang, repeat requests without a pause, or reserve
//! memory before it needs any. With the default it does its work, however long a busy machine takes.

use std::{collections::VecDeque, fs, sync::Mutex, thread, time::Duration};

use ottla::{Admin, Config, Consumer, Producer, Record};
use ottla_core::config::table::{Kind, Property, Scope, Status, properties};
use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};

/// Only a failure takes this long.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How long a client with an unusual value is given to work, which the value may keep it from.
const A_WHILE: Duration = Duration::from_millis(200);
/// Clients that run at a time: most of their time they wait.
const CLIENTS: usize = 16;
/// More requests than a client sends in its short life, unless it repeats them without a pause.
const MANY_REQUESTS: usize = 200;
/// More than the clients that run at a time need together, and less than one of them would take if it reserved what the
/// largest values permit, in KiB.
const MUCH_MEMORY: u64 = 1 << 20;

#[derive(Clone, Copy, Debug)]
enum Client {
    Producer,
    Consumer,
    Admin,
}

/// A client with one property other than usual.
#[derive(Debug)]
struct Trial {
    client: Client,
    property: &'static Property,
    value: String,
}

/// Returns the values of a property to try; none for texts, which have no extremes.
fn values(property: &Property) -> Vec<String> {
    let mut values: Vec<String> = match property.kind {
        Kind::Boolean => vec!["true".into(), "false".into()],
        Kind::Integer { min, max, names } => {
            let names = names.iter().map(|(name, _)| (*name).to_owned());
            [min.to_string(), max.to_string()].into_iter().chain(names).collect()
        }
        Kind::Float { min, max, auto } => {
            let auto = auto.then(|| "auto".to_owned());
            [min.to_string(), max.to_string()].into_iter().chain(auto).collect()
        }
        Kind::OneOf(words) | Kind::Flags(words) => words.iter().map(|word| (*word).to_owned()).collect(),
        Kind::Text | Kind::Call => return Vec::new(),
    };
    values.push(property.default.to_owned());
    values.sort();
    values.dedup();
    values
}

fn trials() -> VecDeque<Trial> {
    // A property of a topic is set by its name only where the client has none of that name.
    let is_hidden = |property: &Property| {
        let mut named = properties().filter(|row| row.name == property.name);
        property.scope == Scope::Topic && named.any(|row| row.scope == Scope::Global)
    };
    let used = properties().filter(|row| row.status == Status::Used && row.alias.is_none());
    let used = used.filter(|row| !is_hidden(row));
    used.flat_map(|property| {
        let clients = [
            (Client::Producer, property.is_for_producers()),
            (Client::Consumer, property.is_for_consumers()),
            (Client::Admin, property.is_for_producers() && property.is_for_consumers()),
        ];
        let clients = clients.into_iter().filter(|(_, uses)| *uses).map(|(client, _)| client);
        let clients =
            clients.filter(|client| property.scope == Scope::Global || !matches!(client, Client::Admin));
        clients.flat_map(move |client| {
            values(property).into_iter().map(move |value| Trial { client, property, value })
        })
    })
    .collect()
}

impl Trial {
    /// Whether the client has to work.
    fn is_usual(&self) -> bool {
        self.value == self.property.default
    }

    /// Runs the client. Returns true if it was created and did its work.
    fn run(&self, servers: &str, number: usize) -> bool {
        let patience = if self.is_usual() { TIMEOUT / 2 } else { A_WHILE };
        let mut config = Config::new();
        config.set("bootstrap.servers", servers).unwrap();
        if config.set(self.property.name, &self.value).is_err() {
            return false;
        }
        match self.client {
            Client::Producer => produce(&config, patience),
            Client::Consumer => {
                config.set("group.id", &format!("group-{number}")).unwrap();
                if self.property.name != "auto.offset.reset" {
                    config.set("auto.offset.reset", "earliest").unwrap();
                }
                consume(&config, patience)
            }
            Client::Admin => {
                let Ok(admin) = Admin::new(&config) else { return false };
                let described = admin.describe_topics(&["extremes"], patience).is_ok();
                let _ = admin.close(A_WHILE);
                described
            }
        }
    }
}

fn produce(config: &Config, patience: Duration) -> bool {
    let Ok(producer) = Producer::new(config) else { return false };
    let is_sent = producer.send("extremes", Record::new().value("value")).is_ok();
    let is_delivered = is_sent && producer.flush(patience).is_ok();
    let _ = producer.close(A_WHILE);
    is_delivered
}

fn consume(config: &Config, patience: Duration) -> bool {
    let Ok(consumer) = Consumer::new(config) else { return false };
    let is_subscribed = consumer.subscribe(&["extremes"]).is_ok();
    let has_polled = is_subscribed && consumer.poll(patience).is_ok_and(|records| !records.is_empty());
    let _ = consumer.close(A_WHILE);
    has_polled
}

/// Returns the memory that the process may write to, in KiB: 0 where the system does not tell.
fn writable_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmData:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[test]
fn every_extreme_value_leaves_a_client_that_runs_and_ends() {
    let cluster = EmbeddedCluster::start(ClusterOptions::default()).expect("a local port is free");
    cluster.control(|control| control.create_topic("extremes", 1, 1)).expect("the topic is new");
    cluster.control(|control| control.record_requests());
    let servers = cluster.bootstrap_servers();
    let usual = Config::new().set("bootstrap.servers", &servers).unwrap().clone();
    assert!(produce(&usual, TIMEOUT), "there is a record to read");
    let trials = trials();
    let count = trials.len();
    let waiting = Mutex::new(trials);
    let next = || {
        let mut waiting = waiting.lock().unwrap();
        let number = waiting.len();
        Some((number, waiting.pop_front()?))
    };
    let before = writable_memory();
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                while let Some((number, trial)) = next() {
                    let (ended, has_ended) = std::sync::mpsc::channel();
                    let servers = servers.clone();
                    let name = format!("{trial:?}");
                    // A thread of its own: one that hangs is reported and left behind.
                    let run = thread::spawn(move || {
                        let _ = ended.send((trial.run(&servers, number), trial.is_usual()));
                    });
                    let outcome = has_ended.recv_timeout(TIMEOUT);
                    let (has_worked, is_usual) = outcome.unwrap_or_else(|error| panic!("{name}: {error}"));
                    assert!(has_worked || !is_usual, "{name} did not work");
                    run.join().unwrap_or_else(|_| panic!("{name} panicked"));
                    let memory = writable_memory().saturating_sub(before);
                    assert!(memory < MUCH_MEMORY, "{memory} KiB after {name}");
                }
            });
        }
    });
    let requests = cluster.control(|control| control.requests().len());
    assert!(requests < count * MANY_REQUESTS, "{count} clients sent {requests} requests");
}
