//! The actors of the clients: messages, timers, wake-ups, and their requests to the world.

use std::time::Duration;

use ottla_core::{
    broker::BrokerOutput,
    cluster::{ClusterOutput, command::Command},
    contract::{broker::BrokerKey, purge::Purge},
    machine::Instant,
    message::ToBroker,
    produce::{compression::CompressionJob, message::ProduceMessage},
};

use super::{Actor, Event, World};
use crate::{client::Message, coverage};

impl World {
    pub(super) fn collect_wakes(&mut self, client: usize) {
        self.begin_jobs(client);
        if self.clients[client].is_woken() {
            for actor in self.clients[client].take_woken() {
                let at = self.now + self.thread_delay();
                self.schedule(at, Event::Wake(client, actor));
            }
        }
    }

    /// Lets the workers of a client begin its new jobs.
    pub(super) fn begin_jobs(&mut self, client: usize) {
        for job in self.clients[client].take_jobs() {
            let most = if self.rng.chance(1, 20) { 300_000_000 } else { 5_000_000 };
            let at = self.now + Duration::from_nanos(self.rng.below(most));
            self.schedule(at, Event::Compressed(client, job));
        }
    }

    pub(super) fn end_job(&mut self, client: usize, job: CompressionJob) {
        if self.keeps_jobs {
            self.trace.note(self.now, format_args!("{client} {job:?} never returns"));
            return self.kept_jobs.push(job);
        }
        let is_dropped = self.rng.chance(1, 30);
        self.trace.note(self.now, format_args!("{client} {job:?}, dropped: {is_dropped}"));
        if !is_dropped {
            job.run();
        }
    }

    pub(super) fn deliver_message(&mut self, client: usize, from: Actor, to: Actor) {
        let now = self.now;
        let state = &mut self.clients[client];
        let Some(message) = state.messages.get_mut(&(from, to)).and_then(|queue| queue.pop_front()) else {
            return;
        };
        match (message, from, to) {
            (Message::ToBroker(message), _, Actor::Broker(key)) => {
                let name = name_of(&message);
                coverage::note_event(&name);
                self.trace.note(now, format_args!("{client} to {key:?}: {name}"));
                if matches!(message, ToBroker::Produce(ProduceMessage::Release { .. }))
                    && self.purges_moves > 0
                    && self.rng.chance(1, self.purges_moves)
                {
                    self.trace.note(now, format_args!("{client} is purged during the move"));
                    state.commands.push(Command::Purge(Purge::ALL));
                    self.purged.push((client, now));
                }
                if let Some(core) = state.brokers.get_mut(&key) {
                    core.handle_message(now, message);
                }
            }
            (Message::ToCluster(message), Actor::Broker(key), Actor::Cluster) => {
                let name = name_of(&message);
                coverage::note_event(&name);
                self.trace.note(now, format_args!("{client} from {key:?}: {name}"));
                state.cluster.handle_message(now, key, message);
            }
            (Message::BrokerDone, Actor::Broker(key), Actor::Cluster) => {
                coverage::note_event("the end of a broker actor");
                state.cluster.handle_broker_done(key)
            }
            _ => {}
        }
        self.settle(client, to);
    }

    pub(super) fn fire_timer(&mut self, client: usize, actor: Actor) {
        let state = &mut self.clients[client];
        let due = state.timers.get(&actor).is_some_and(|at| *at <= self.now);
        if !due {
            return;
        }
        state.timers.remove(&actor);
        coverage::note_event("a timer");
        match actor {
            Actor::Cluster => state.cluster.handle_timeout(self.now),
            Actor::Broker(key) => {
                if let Some(core) = state.brokers.get_mut(&key) {
                    core.handle_timeout(self.now);
                }
            }
        }
        self.settle(client, actor);
    }

    /// Carries out the outputs of an actor.
    pub(super) fn settle(&mut self, client: usize, actor: Actor) {
        if coverage::is_on() {
            self.note_states(client, actor);
        }
        match actor {
            Actor::Cluster => {
                while let Some(output) = self.clients[client].cluster.poll_output() {
                    match output {
                        ClusterOutput::StartBroker { key, host, port, node_id, rng } => {
                            coverage::note_event("the start of a broker actor");
                            self.clients[client].start_broker(key, host, port, node_id, rng);
                            self.settle(client, Actor::Broker(key));
                        }
                        ClusterOutput::ToBroker(key, message) => {
                            self.post(client, Actor::Cluster, Actor::Broker(key), Message::ToBroker(message));
                        }
                        ClusterOutput::Done => {
                            self.clients[client].closed = true;
                            self.trace.note(self.now, format_args!("{client} is closed"));
                        }
                    }
                }
            }
            Actor::Broker(key) => {
                self.settle_broker(client, key);
            }
        }
        self.set_timer(client, actor);
    }

    /// Counts what the machines of an actor did.
    fn note_states(&self, client: usize, actor: Actor) {
        let client_state = &self.clients[client];
        match actor {
            Actor::Cluster => coverage::note_states(client, actor, |see| client_state.cluster.states(see)),
            Actor::Broker(key) => {
                if let Some(core) = client_state.brokers.get(&key) {
                    coverage::note_states(client, actor, |see| core.states(see));
                }
            }
        }
    }

    fn settle_broker(&mut self, client: usize, key: BrokerKey) {
        loop {
            let Some(core) = self.clients[client].brokers.get_mut(&key) else { return };
            let Some(output) = core.poll_output() else {
                if self.write(client, key) {
                    continue;
                }
                return;
            };
            match output {
                BrokerOutput::Resolve { host, port } => self.resolve(client, key, &host, port),
                BrokerOutput::Connect(address) => self.connect(client, key, address),
                BrokerOutput::CloseSocket => {
                    if let Some(id) = self.by_actor.remove(&(client, key))
                        && let Some(link) = self.links.get_mut(&id)
                    {
                        link.client_closed = true;
                        let at = self.now + self.some_latency();
                        self.schedule(at, Event::ClosedAtBroker(id));
                    }
                }
                BrokerOutput::ToCluster(message) => {
                    self.post(client, Actor::Broker(key), Actor::Cluster, Message::ToCluster(message));
                }
                BrokerOutput::Done => {
                    self.post(client, Actor::Broker(key), Actor::Cluster, Message::BrokerDone);
                }
            }
        }
    }

    fn set_timer(&mut self, client: usize, actor: Actor) {
        let state = &self.clients[client];
        let deadline = match actor {
            Actor::Cluster => state.cluster.poll_timeout(),
            Actor::Broker(key) => state.brokers.get(&key).and_then(|core| core.poll_timeout()),
        };
        let Some(at) = deadline.filter(|at| *at < Instant::FAR_FUTURE) else {
            self.clients[client].timers.remove(&actor);
            return;
        };
        let at = at.max(self.now);
        if self.clients[client].timers.get(&actor) != Some(&at) {
            self.clients[client].timers.insert(actor, at);
            self.schedule(at, Event::Timer(client, actor));
        }
    }

    fn post(&mut self, client: usize, from: Actor, to: Actor, message: Message) {
        self.clients[client].messages.entry((from, to)).or_default().push_back(message);
        let at = self.now + self.thread_delay();
        self.schedule(at, Event::Message(client, from, to));
    }

    /// Returns how long a thread takes to handle a notification.
    fn thread_delay(&mut self) -> Duration {
        Duration::from_nanos(if self.rng.chance(self.slow_threads, 50) {
            self.rng.below(3_000_000)
        } else {
            self.rng.below(20_000)
        })
    }
}

/// Returns the variant's name for the trace.
fn name_of(message: &impl std::fmt::Debug) -> String {
    let text = format!("{message:?}");
    let mut words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let outer = words.next().unwrap_or_default();
    // The variant inside describes the event.
    let is_group = ["Produce", "Fetch", "News", "Connection"].contains(&outer);
    words.next().filter(|_| is_group).unwrap_or(outer).to_owned()
}
