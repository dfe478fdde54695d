//! The second of the three places where threads meet: what the application asks of the cluster's owner.

use std::{collections::VecDeque, mem, sync::Arc};

use super::reminders::Reminder;
use crate::{
    admin::AdminCall,
    fetch::FetchCommand,
    produce::{sender::Purge, topic::ProducerTopic},
    stats::Gather,
    sync::Mutex,
    wake::WakeHandle,
};

/// Something that the application wants.
#[derive(Debug)]
pub enum Command {
    /// A topic is produced to for the first time: find out about it.
    Topic(Arc<ProducerTopic>),
    /// Somebody flushes: let every broker look.
    Flush,
    /// Remove messages.
    Purge(Purge),
    /// Send no more of these partitions, or go on with them.
    Pause {
        /// The partitions, also some that are not known yet.
        partitions: Vec<(Arc<str>, i32)>,
        /// False to go on.
        is_paused: bool,
    },
    /// More servers to start from.
    AddServers(Vec<(String, u16)>),
    /// Gather what everybody counted.
    Statistics(Arc<Gather>),
    /// Remind somebody.
    Remind(Reminder),
    /// An administrative call.
    Admin(AdminCall),
    /// Something of the receiving half.
    Fetch(FetchCommand),
    /// Close the client: fail what is left and let go of everything.
    Close,
}

/// Commands on their way. Bounded by what the application waits for: each call has at most one command under way.
#[derive(Debug)]
pub struct CommandQueue {
    commands: Mutex<Commands>,
    wake: WakeHandle,
}

#[derive(Debug, Default)]
struct Commands {
    queue: VecDeque<Command>,
    /// Nobody reads them any more.
    is_abandoned: bool,
}

impl CommandQueue {
    /// An empty queue whose owner is woken by `wake`.
    pub fn new(wake: WakeHandle) -> Self {
        Self { commands: Mutex::new(Commands::default()), wake }
    }

    /// Appends a command.
    pub fn push(&self, command: Command) {
        let mut commands = self.commands.lock();
        if commands.is_abandoned {
            drop(commands);
            // Who waits for its answer is woken and told that there is none.
            return drop(command);
        }
        commands.queue.push_back(command);
        drop(commands);
        self.wake.wake();
    }

    /// The owner is gone: nobody will read commands, and who waits for their answers waits no longer.
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
