//! Kerberos: the calls of `libgssapi_krb5`, on one thread per client.
//!
//! | file | content |
//! |---|---|
//! | [`library`] | the library's functions, loaded at run time |
//! | [`login`] | the command that gets tickets |
//!
//! The name in a ticket is that of the broker's metadata, and not that of its address; `dns_canonicalize_hostname` and `rdns` of
//! `krb5.conf` may change it. Kafka responds to the last message with an empty one, which is not for the Kerberos library.

mod library;
mod login;

use std::{
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread,
};

use library::{Context, Credential, Library};
use ottla_core::{
    config::sasl::kerberos::{KerberosSettings, Login},
    error::{Error, ErrorKind},
    lock::Mutex,
    sasl::gssapi::{Kerberos, Negotiation, Reply},
    secret::Secret,
};

/// The Kerberos of a client. Its thread ends when it is dropped.
pub struct KerberosThread {
    settings: Arc<KerberosSettings>,
    jobs: Mutex<mpsc::Sender<Job>>,
}

/// A message for an authentication, which is given up if no thread waits for it.
struct Job {
    negotiation: Weak<Shared>,
    message: Vec<u8>,
}

/// One authentication, as the connection and the thread share it.
struct Shared {
    target: String,
    /// Locked by the thread only, during calls that wait for servers.
    phase: Mutex<Phase>,
    /// Locked for the time of a copy.
    reply: Mutex<Option<Result<Reply, String>>>,
}

enum Phase {
    New,
    /// The peers exchange tokens.
    Tokens(Context, Option<Credential>),
    /// The broker sends its protection levels next.
    Levels(Context),
    Over,
}

/// Numbers the caches in memory.
static CACHES: AtomicU64 = AtomicU64::new(0);

impl KerberosThread {
    /// Loads the library and starts the thread; `notify` is called after each reply. Error: the library is missing.
    pub fn start(settings: KerberosSettings, notify: Box<dyn Fn() + Send>) -> Result<Self, Error> {
        Library::get().map_err(|why| Error::new(ErrorKind::InvalidArgument, why))?;
        let settings = Arc::new(settings);
        let (jobs, queue) = mpsc::channel::<Job>();
        let of_thread = Arc::clone(&settings);
        let run = move || {
            let cache = format!("MEMORY:ottla-{}", CACHES.fetch_add(1, Ordering::Relaxed));
            let mut login = login::Logins::new(&of_thread);
            login.run_if_due();
            loop {
                match queue.recv_timeout(login.left()) {
                    Ok(job) => {
                        let Some(shared) = job.negotiation.upgrade() else { continue };
                        let reply = shared.handle(&job.message, &of_thread, &cache);
                        let reply = reply.map_err(|why| login.explain(&why, &shared.target));
                        *shared.reply.lock() = Some(reply);
                        notify();
                    }
                    Err(mpsc::RecvTimeoutError::Timeout) => login.run_if_due(),
                    Err(mpsc::RecvTimeoutError::Disconnected) => return,
                }
            }
        };
        thread::Builder::new().name("ottla-kerberos".to_owned()).spawn(run).map_err(|error| {
            Error::new(ErrorKind::State, format!("can't start the thread of Kerberos: {error}"))
        })?;
        Ok(Self { settings, jobs: Mutex::new(jobs) })
    }
}

impl Kerberos for KerberosThread {
    fn start(&self, host: &str) -> Box<dyn Negotiation> {
        let shared = Arc::new(Shared {
            target: format!("{}@{host}", self.settings.service),
            phase: Mutex::new(Phase::New),
            reply: Mutex::new(None),
        });
        Box::new(Running { shared, jobs: self.jobs.lock().clone() })
    }
}

struct Running {
    shared: Arc<Shared>,
    jobs: mpsc::Sender<Job>,
}

impl Negotiation for Running {
    fn pass(&mut self, message: &[u8]) {
        let job = Job { negotiation: Arc::downgrade(&self.shared), message: message.to_vec() };
        if self.jobs.send(job).is_err() {
            *self.shared.reply.lock() = Some(Err("the thread of Kerberos has ended".to_owned()));
        }
    }

    fn take(&mut self) -> Option<Result<Reply, String>> {
        self.shared.reply.lock().take()
    }
}

impl Shared {
    fn handle(&self, message: &[u8], settings: &KerberosSettings, cache: &str) -> Result<Reply, String> {
        let mut phase = self.phase.lock();
        let (mut context, credential) = match std::mem::replace(&mut *phase, Phase::Over) {
            Phase::New => {
                let credential = match &settings.login {
                    Login::KeyTable(file) => Some(Credential::of_keytab(&settings.principal, file, cache)?),
                    Login::Cache | Login::Command { .. } => None,
                };
                (Context::new(&self.target)?, credential)
            }
            Phase::Tokens(context, credential) => (context, credential),
            Phase::Levels(mut context) => return Ok(Reply::Last(levels(&mut context, message)?)),
            Phase::Over => return Err("the broker sent a message after the last one".to_owned()),
        };
        let (token, is_complete) = context.step(message, credential.as_ref())?;
        *phase = if is_complete { Phase::Levels(context) } else { Phase::Tokens(context, credential) };
        Ok(Reply::Message(Secret::new(token)))
    }
}

/// Responds to the broker's protection levels (RFC 4752): none, because TLS protects connections.
fn levels(context: &mut Context, message: &[u8]) -> Result<Secret, String> {
    check_levels(&context.unwrap(message)?)?;
    context.wrap(&[1, 0, 0, 0])
}

/// Checks the protection levels that the broker offers: a byte of levels, and a size of three bytes.
fn check_levels(offered: &[u8]) -> Result<(), String> {
    match offered {
        [levels, _, _, _] if levels & 1 == 1 => Ok(()),
        [_, _, _, _] => {
            Err("the broker demands a protection of messages, which Kafka does not have".to_owned())
        }
        other => Err(format!("the broker's protection levels have {} bytes instead of 4", other.len())),
    }
}

impl fmt::Debug for KerberosThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KerberosThread").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Negotiation({})", self.shared.target)
    }
}

#[cfg(test)]
mod tests {
    use super::check_levels;

    #[test]
    fn protection_levels_have_four_bytes_and_permit_none() {
        assert_eq!(check_levels(&[7, 0, 0x40, 0]), Ok(()));
        for size in [0, 1, 3, 5, 70_000] {
            assert!(check_levels(&vec![1; size]).unwrap_err().contains("instead of 4"), "{size}");
        }
        for levels in [0, 2, 4, 0xfe] {
            assert!(check_levels(&[levels, 0, 0, 0]).unwrap_err().contains("protection of messages"));
        }
    }
}
