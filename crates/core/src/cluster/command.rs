//! The queue of commands from the application to the cluster actor, one of three structures that threads share.

use std::{collections::VecDeque, mem, sync::Arc, time::Duration};

use ottla_protocol::vocabulary::TopicPartition;

use super::reminders::Reminder;
use crate::{
    admin::AdminCall,
    contract::purge::Purge,
    fetch::FetchCommand,
    group::GroupCommand,
    produce::topic::ProducerTopic,
    share::ShareCommand,
    stats::{Gather, Statistics},
    streams::StreamsCommand,
    sync::Mutex,
    telemetry::TelemetryCommand,
    txn::{call::TransactionCommands, command::TransactionCommand},
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
    /// A command about the streams group.
    Streams(StreamsCommand),
    /// A command for client telemetry.
    Telemetry(TelemetryCommand),
    /// Close the client: fail what is pending and release everything.
    Close {
        /// The time that the last push of client metrics may take.
        timeout: Duration,
    },
}

/// The end of the queue that the application's threads have. The queue is bounded, because each call of the application has at
/// most one command in it.
#[derive(Debug)]
pub struct CommandQueue {
    commands: Mutex<Commands>,
    wake: WakeHandle,
}

/// The end of the queue that the cluster actor has. Dropping it closes the queue, so that no command waits for an actor
/// that reads no more.
#[derive(Debug)]
pub struct CommandReader(Arc<CommandQueue>);

#[derive(Debug)]
struct Commands {
    queue: VecDeque<Command>,
    accepts: Accepts,
}

/// Whose commands a queue accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Accepts {
    /// Those of the application and of the client itself.
    All,
    /// Those of the client itself: [`Command::Close`] was the application's last one.
    OwnOnly,
    /// None.
    None,
}

impl CommandQueue {
    /// Creates an empty queue, and its reading end; `wake` wakes the cluster actor.
    pub fn new(wake: WakeHandle) -> (Arc<Self>, CommandReader) {
        let commands = Commands { queue: VecDeque::new(), accepts: Accepts::All };
        let queue = Arc::new(Self { commands: Mutex::new(commands), wake });
        (Arc::clone(&queue), CommandReader(queue))
    }

    /// Appends a command. Returns false if the queue is closed: the command is dropped, which ends the wait for its result.
    pub fn push(&self, command: Command) -> bool {
        let is_accepted = self.push_quietly(command);
        if is_accepted {
            self.wake.wake();
        }
        is_accepted
    }

    /// Returns the handle that wakes the cluster actor.
    pub const fn wake_handle(&self) -> &WakeHandle {
        &self.wake
    }

    /// Appends a command as [`Self::push`] does, which the cluster actor needs to see only before the next one.
    pub fn push_quietly(&self, command: Command) -> bool {
        self.append(command, false).is_none()
    }

    /// Appends a snapshot for the push of client metrics, of which the last one follows the application's last command.
    pub(super) fn push_snapshot(&self, snapshot: Statistics) {
        let command = Command::Telemetry(TelemetryCommand::Snapshot(Box::new(snapshot)));
        if self.append(command, true).is_none() {
            self.wake.wake();
        }
    }

    /// Returns true if the cluster actor has taken all commands.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.commands.lock().queue.is_empty()
    }

    /// Returns the command unless the queue accepts it. It is dropped without the lock: that wakes its waiter.
    fn append(&self, command: Command, is_own: bool) -> Option<Command> {
        let mut commands = self.commands.lock();
        let is_accepted = match commands.accepts {
            Accepts::All => true,
            Accepts::OwnOnly => is_own,
            Accepts::None => false,
        };
        if !is_accepted {
            return Some(command);
        }
        if matches!(command, Command::Close { .. }) {
            commands.accepts = Accepts::OwnOnly;
        }
        commands.queue.push_back(command);
        None
    }
}

impl TransactionCommands for CommandQueue {
    fn push(&self, command: TransactionCommand) {
        Self::push(self, Command::Transaction(command));
    }

    fn push_quietly(&self, command: TransactionCommand) {
        Self::push_quietly(self, Command::Transaction(command));
    }

    fn announce_failure(&self) {
        Self::push(self, Command::Flush);
    }

    fn wake_handle(&self) -> &WakeHandle {
        &self.wake
    }
}

impl CommandReader {
    /// Takes the oldest command.
    pub fn pop(&self) -> Option<Command> {
        self.0.commands.lock().queue.pop_front()
    }

    /// Returns the application's end.
    pub const fn queue(&self) -> &Arc<CommandQueue> {
        &self.0
    }

    /// Refuses further commands, and drops those in the queue, which ends the waits for their results.
    pub fn close(&self) {
        let left = {
            let mut commands = self.0.commands.lock();
            commands.accepts = Accepts::None;
            mem::take(&mut commands.queue)
        };
        drop(left);
    }
}

impl Drop for CommandReader {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(all(test, not(ottla_loom)))]
mod tests {
    use std::{
        future::Future,
        pin::Pin,
        task::{Context, Waker},
    };

    use super::*;
    use crate::{
        completion::{Waiting, completion},
        machine::Instant,
    };

    fn has_ended(waiting: &mut Waiting<()>) -> bool {
        Pin::new(waiting).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    fn reminder() -> (Command, Waiting<()>) {
        let (done, waiting) = completion();
        (Command::Remind(Reminder { at: Instant::ZERO, done }), waiting)
    }

    #[test]
    fn application_has_no_command_after_close_and_the_client_has() {
        let (queue, reader) = CommandQueue::new(WakeHandle::noop());
        let (before, mut is_before) = reminder();
        assert!(queue.push(before));
        assert!(queue.push(Command::Close { timeout: Duration::ZERO }));
        let (after, mut is_after) = reminder();
        assert!(!queue.push(after) && !queue.push(Command::Close { timeout: Duration::ZERO }));
        assert!(has_ended(&mut is_after) && !has_ended(&mut is_before));
        queue.push_snapshot(Statistics::default());
        assert!(matches!(reader.pop(), Some(Command::Remind(_))));
        assert!(has_ended(&mut is_before));
        assert!(matches!(reader.pop(), Some(Command::Close { .. })));
        assert!(matches!(reader.pop(), Some(Command::Telemetry(_))));
        assert!(reader.pop().is_none());
    }

    #[test]
    fn end_of_the_reader_completes_what_is_queued_and_refuses_the_rest() {
        let (queue, reader) = CommandQueue::new(WakeHandle::noop());
        let (queued, mut is_queued) = reminder();
        assert!(queue.push(queued) && !has_ended(&mut is_queued));
        drop(reader);
        assert!(has_ended(&mut is_queued));
        let (late, mut is_late) = reminder();
        assert!(!queue.push(late) && has_ended(&mut is_late));
        queue.push_snapshot(Statistics::default());
        assert!(queue.is_empty());
    }
}
