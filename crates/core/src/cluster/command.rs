//! The queue of commands from the application to the cluster actor, one of three structures that threads share.

use std::{collections::VecDeque, mem, sync::Arc, time::Duration};

use ottla_protocol::vocabulary::TopicPartition;

use super::reminders::Reminder;
use crate::{
    admin::AdminCall,
    fetch::FetchCommand,
    group::GroupCommand,
    produce::{purge::Purge, topic::ProducerTopic},
    share::ShareCommand,
    stats::{Gather, Statistics},
    sync::Mutex,
    telemetry::TelemetryCommand,
    txn::command::TransactionCommand,
    wake::WakeHandle,
};

/// A command of the application.
#[derive(Debug)]
pub enum Command {
    /// The first message to a topic: request its metadata.
    Topic(Arc<ProducerTopic>),
    /// An application flushes: every broker actor checks what is due.
    Flush,
    /// Purge messages.
    Purge(Purge),
    /// Pause or resume sending to these partitions.
    Pause {
        /// The partitions; they need not be known yet.
        partitions: Vec<TopicPartition>,
        /// False to resume.
        is_paused: bool,
    },
    /// Add bootstrap servers.
    AddServers(Vec<(String, u16)>),
    /// Gather the statistics of all actors.
    Statistics(Arc<Gather>),
    /// Set a timer.
    Remind(Reminder),
    /// An administrative call.
    Admin(AdminCall),
    /// The credentials of SASL have changed, or a token was set.
    Credentials,
    /// The Kerberos library has replied to a message of an authentication.
    SaslReply,
    /// Ask the application for a token, on the I/O thread.
    RequestToken,
    /// No token could be obtained.
    TokenFailed {
        /// Why.
        reason: String,
        /// The time until the next request for one.
        retry_in: Duration,
    },
    /// A command of the consuming half.
    Fetch(FetchCommand),
    /// A transactional call.
    Transaction(TransactionCommand),
    /// A command about the group membership.
    Group(GroupCommand),
    /// A command about the share group.
    Share(ShareCommand),
    /// A command for client telemetry.
    Telemetry(TelemetryCommand),
    /// Close the client: fail what is pending and release everything.
    Close {
        /// The time that the last push of client metrics may take.
        timeout: Duration,
    },
}

impl Command {
    /// Returns the command that delivers a snapshot for a push of client metrics.
    pub(super) fn of_snapshot(snapshot: Statistics) -> Self {
        Self::Telemetry(TelemetryCommand::Snapshot(Box::new(snapshot)))
    }
}

/// The queued commands. The queue is bounded, because each call of the application has at most one command in it.
#[derive(Debug)]
pub struct CommandQueue {
    commands: Mutex<Commands>,
    wake: WakeHandle,
}

#[derive(Debug, Default)]
struct Commands {
    queue: VecDeque<Command>,
    /// True if the cluster actor is gone and reads no more commands.
    is_abandoned: bool,
}

impl CommandQueue {
    /// Creates an empty queue; `wake` wakes the cluster actor.
    pub fn new(wake: WakeHandle) -> Self {
        Self { commands: Mutex::new(Commands::default()), wake }
    }

    /// Appends a command.
    pub fn push(&self, command: Command) {
        self.push_quietly(command);
        self.wake.wake();
    }

    /// Returns the handle that wakes the cluster actor.
    pub const fn wake_handle(&self) -> &WakeHandle {
        &self.wake
    }

    /// Appends a command that the cluster actor needs to see only before the next one.
    pub fn push_quietly(&self, command: Command) {
        let mut commands = self.commands.lock();
        if commands.is_abandoned {
            drop(commands);
            // Dropping the command wakes its waiter, which gets no response.
            return drop(command);
        }
        commands.queue.push_back(command);
    }

    /// Drops all commands because the cluster actor is gone, which ends the waits for their responses.
    pub fn abandon(&self) {
        let mut commands = self.commands.lock();
        commands.is_abandoned = true;
        let left = mem::take(&mut commands.queue);
        drop(commands);
        drop(left);
    }

    /// Takes the oldest command.
    pub fn pop(&self) -> Option<Command> {
        self.commands.lock().queue.pop_front()
    }
}
