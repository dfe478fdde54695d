//! A broker's socket with TLS: ciphertext outside, the frames of the core inside.
//!
//! ```text
//!   kernel ──read──► incoming ──decrypt in place──► read space of the core
//!   kernel ◄─write── outgoing ◄──────encrypt─────── unsent slices of the core
//! ```
//!
//! # Pitfalls
//!
//! - Bytes count as written once they are encrypted: the records can't be encrypted again in another order, and a part
//!   of them may reach the broker before the connection breaks
//!   (`damaged_records_close_the_connection_and_the_client_recovers`).
//! - After an error rustls remembers where a message began in bytes that are gone, and must not look for its rest
//!   (`unknown_authority_is_named`).

use std::{fmt, io::IoSlice};

use ottla_core::{
    broker::BrokerCore,
    error::{Error, ErrorKind},
    machine::Instant,
};
use rustls::{
    client::UnbufferedClientConnection,
    unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus, WriteTraffic},
};

use super::{
    buffers::{ByteQueue, OVERHEAD_BYTES, RECORD_BYTES},
    failure,
};
use crate::socket::{Received, Socket, Turn};

/// A TCP socket and its TLS session.
pub struct TlsSocket {
    pub(crate) socket: Socket,
    session: UnbufferedClientConnection,
    stage: Stage,
    incoming: ByteQueue,
    outgoing: ByteQueue,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The handshake is not complete.
    Handshaking,
    /// Frames can be sent and received.
    Open,
    /// The peer has ended the session.
    Ended,
}

/// The bytes after which a busy connection yields to the others.
const READ_TURN_BYTES: usize = 1 << 20;
/// The slices that are encrypted for one write.
const SLICES: usize = 64;
/// A shorter slice is copied to share a record with its neighbours; a longer one is encrypted from where it is. A record
/// costs as much as copying about this many bytes.
const COPIED_BYTES: usize = 4096;

impl TlsSocket {
    /// Adds TLS to a socket that is connecting.
    pub fn new(socket: Socket, session: UnbufferedClientConnection) -> Self {
        Self {
            socket,
            session,
            stage: Stage::Handshaking,
            incoming: ByteQueue::default(),
            outgoing: ByteQueue::default(),
        }
    }

    /// Reads and decrypts the available bytes, up to a fair share.
    pub fn read(&mut self, now: Instant, core: &mut BrokerCore) -> Turn {
        let mut total = 0;
        loop {
            if let Err(turn) = self.process(now, core) {
                return turn;
            }
            if total >= READ_TURN_BYTES {
                return Turn::More;
            }
            match self.socket.receive(self.incoming.space()) {
                Received::Bytes(n) => {
                    total += n;
                    self.incoming.filled(n);
                }
                Received::Nothing => {
                    self.incoming.release();
                    return Turn::Waiting;
                }
                Received::Closed(reason) => return Turn::Closed(reason),
            }
        }
    }

    /// Encrypts the pending bytes and writes them, as far as the kernel accepts them.
    pub fn write(&mut self, now: Instant, core: &mut BrokerCore) -> Turn {
        loop {
            if let Some(turn) = self.flush() {
                return turn;
            }
            if self.stage != Stage::Open {
                return Turn::Waiting;
            }
            match self.encrypt(now, core) {
                Ok(0) => {
                    self.outgoing.release();
                    return Turn::Waiting;
                }
                Ok(_) => {}
                Err(turn) => return turn,
            }
        }
    }

    /// Writes the encrypted bytes; `None` if all of them were written.
    fn flush(&mut self) -> Option<Turn> {
        while !self.outgoing.is_empty() {
            match self.socket.transmit(self.outgoing.bytes()) {
                Ok(0) => return Some(Turn::Waiting),
                Ok(n) => self.outgoing.discard(n),
                Err(reason) => return Some(Turn::Closed(reason)),
            }
        }
        None
    }

    /// Sends the alert that ends the session, if the kernel accepts it at once.
    pub fn say_goodbye(&mut self) {
        if self.stage != Stage::Open {
            return;
        }
        let status = self.session.process_tls_records(self.incoming.bytes_mut());
        if let Ok(ConnectionState::WriteTraffic(mut traffic)) = status.state
            && let Ok(n) = traffic.queue_close_notify(self.outgoing.space())
        {
            self.outgoing.filled(n);
        }
        let _ = self.flush();
    }

    /// Advances the handshake and decrypts all complete records.
    fn process(&mut self, now: Instant, core: &mut BrokerCore) -> Result<(), Turn> {
        let mut copied = 0;
        let result = loop {
            let UnbufferedStatus { mut discard, state } =
                self.session.process_tls_records(self.incoming.bytes_mut());
            match state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    if self.stage == Stage::Handshaking {
                        self.stage = Stage::Open;
                        core.handle_connected(now);
                    }
                    while let Some(Ok(record)) = traffic.next_record() {
                        discard += record.discard;
                        copied = deliver(now, core, record.payload, copied);
                    }
                    self.incoming.discard(discard);
                }
                Ok(ConnectionState::EncodeTlsData(mut data)) => {
                    let mut encoded = data.encode(self.outgoing.space());
                    if let Err(EncodeError::InsufficientSize(size)) = &encoded {
                        encoded = data.encode(self.outgoing.space_of(size.required_size));
                    }
                    if let Ok(n) = encoded {
                        self.outgoing.filled(n);
                    }
                    self.incoming.discard(discard);
                }
                // The bytes are in `outgoing` and leave in this order.
                Ok(ConnectionState::TransmitTlsData(data)) => {
                    data.done();
                    self.incoming.discard(discard);
                }
                Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => {
                    self.incoming.discard(discard);
                    self.stage = Stage::Ended;
                    break Err(Turn::Closed("closed by the peer".to_owned()));
                }
                Ok(ConnectionState::WriteTraffic(_)) => {
                    self.incoming.discard(discard);
                    if self.stage == Stage::Handshaking {
                        self.stage = Stage::Open;
                        core.handle_connected(now);
                    }
                    break Ok(());
                }
                Ok(_) => {
                    self.incoming.discard(discard);
                    break Ok(());
                }
                Err(error) => {
                    let first = self.incoming.bytes().first_chunk().copied();
                    let stage = self.stage;
                    self.incoming.discard(discard);
                    self.send_alert();
                    self.stage = Stage::Ended;
                    break Err(Turn::Failed(failure::explain(&error, first, stage == Stage::Open)));
                }
            }
        };
        if copied > 0 {
            core.handle_read(now, copied);
        }
        result
    }

    /// Sends the alert that explains a failure to the peer, if the kernel accepts it at once.
    fn send_alert(&mut self) {
        // Without something to send, rustls would look for the rest of a message in bytes that are not there.
        while self.session.wants_write() {
            let status = self.session.process_tls_records(&mut []);
            let Ok(ConnectionState::EncodeTlsData(mut data)) = status.state else { break };
            let Ok(n) = data.encode(self.outgoing.space()) else { break };
            self.outgoing.filled(n);
        }
        let _ = self.flush();
    }

    /// Encrypts the next bytes of the core into the empty outgoing buffer. Returns their number.
    fn encrypt(&mut self, now: Instant, core: &mut BrokerCore) -> Result<usize, Turn> {
        let mut slices = [IoSlice::new(&[]); SLICES];
        let filled = core.unsent(&mut slices);
        if filled == 0 {
            return Ok(0);
        }
        let status = self.session.process_tls_records(self.incoming.bytes_mut());
        let Ok(ConnectionState::WriteTraffic(traffic)) = status.state else {
            // Something else goes first, such as a response to the peer's change of its keys.
            self.process(now, core)?;
            return if self.outgoing.is_empty() { Ok(0) } else { Ok(1) };
        };
        let mut writer = RecordWriter { traffic, out: &mut self.outgoing, accepted: 0 };
        let result = writer.write_all(&slices[..filled]);
        let accepted = writer.accepted;
        core.handle_written(now, accepted);
        match result {
            Ok(()) => Ok(accepted),
            Err(error) => {
                let detail = format!("can't encrypt: {error}; the client reconnects");
                Err(Turn::Failed(Error::new(ErrorKind::Tls, detail)))
            }
        }
    }
}

impl fmt::Debug for TlsSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsSocket")
            .field("socket", &self.socket)
            .field("stage", &self.stage)
            .field("incoming", &self.incoming)
            .field("outgoing", &self.outgoing)
            .finish_non_exhaustive()
    }
}

/// Encrypts slices into records until these fill the buffer.
struct RecordWriter<'a, Data> {
    traffic: WriteTraffic<'a, Data>,
    out: &'a mut ByteQueue,
    /// The bytes that were encrypted.
    accepted: usize,
}

impl<Data> RecordWriter<'_, Data> {
    fn write_all(&mut self, slices: &[IoSlice<'_>]) -> Result<(), EncryptError> {
        let mut shared = [0; RECORD_BYTES];
        let mut copied = 0;
        for slice in slices {
            let mut rest: &[u8] = slice;
            while !rest.is_empty() {
                if copied > 0 && (rest.len() >= COPIED_BYTES || copied + rest.len() > RECORD_BYTES) {
                    self.record(&shared[..copied])?;
                    copied = 0;
                }
                // Room for this record, and for the shared one.
                if self.out.space().len() < 2 * (RECORD_BYTES + OVERHEAD_BYTES) {
                    return self.record(&shared[..copied]);
                }
                let (part, behind) = rest.split_at(rest.len().min(RECORD_BYTES));
                if part.len() < COPIED_BYTES {
                    shared[copied..copied + part.len()].copy_from_slice(part);
                    copied += part.len();
                } else {
                    self.record(part)?;
                }
                rest = behind;
            }
        }
        self.record(&shared[..copied])
    }

    fn record(&mut self, plain: &[u8]) -> Result<(), EncryptError> {
        if plain.is_empty() {
            return Ok(());
        }
        let n = self.traffic.encrypt(plain, self.out.space())?;
        self.out.filled(n);
        self.accepted += plain.len();
        Ok(())
    }
}

/// Copies decrypted bytes into the core's read space, of which `copied` bytes are filled but not reported. Returns the
/// number of bytes that are filled afterwards.
fn deliver(now: Instant, core: &mut BrokerCore, mut plain: &[u8], mut copied: usize) -> usize {
    while !plain.is_empty() {
        let space = &mut core.read_space()[copied..];
        let n = space.len().min(plain.len());
        if n == 0 && copied == 0 {
            // The core has failed the connection and takes no more bytes.
            return 0;
        }
        space[..n].copy_from_slice(&plain[..n]);
        plain = &plain[n..];
        copied += n;
        if n == space.len() {
            core.handle_read(now, copied);
            copied = 0;
        }
    }
    copied
}
