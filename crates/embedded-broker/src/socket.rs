//! A client's TCP connection: unwritten responses, and when the client was last active.

use std::{
    collections::VecDeque,
    io::{self, IoSlice, Read},
};

use bytes::{Buf, Bytes};
use mio::net::TcpStream;
use ottla_protocol::time::Instant;
use socket2::SockRef;

use crate::tls::Session;

pub(crate) struct Socket {
    pub stream: TcpStream,
    pub out: VecDeque<Bytes>,
    pub out_bytes: usize,
    pub readable: bool,
    /// The client closed its end, or the connection broke: no bytes follow those that are left to read.
    pub ended: bool,
    /// The cluster handles no further requests of this connection.
    pub held: bool,
    /// Close once everything is written.
    pub closing: bool,
    pub broken: bool,
    /// TLS, if the listener has it.
    pub tls: Option<Box<Session>>,
    /// The time at which the last byte was read or written.
    pub active_at: Instant,
    /// The time at which the client last accepted a byte, or had read everything.
    pub taken_at: Instant,
}

/// The flags of each `sendmsg`: a connection that the client has reset must not end the process by SIGPIPE. Apple's
/// systems have a socket option instead.
#[cfg(all(unix, not(target_vendor = "apple")))]
pub(crate) const SEND_FLAGS: i32 = libc::MSG_NOSIGNAL;
#[cfg(not(all(unix, not(target_vendor = "apple"))))]
pub(crate) const SEND_FLAGS: i32 = 0;

/// Whether the kernel reports the next byte after a read of less than was asked for. On Windows it does so only after an attempt that
/// found nothing.
pub(crate) const EDGES_FOLLOW: bool = cfg!(not(windows));

impl Socket {
    pub fn new(now: Instant, stream: TcpStream, tls: Option<Box<Session>>) -> Self {
        Self {
            stream,
            out: VecDeque::new(),
            out_bytes: 0,
            readable: false,
            ended: false,
            held: false,
            closing: false,
            broken: false,
            tls,
            active_at: now,
            taken_at: now,
        }
    }

    /// Reads bytes of requests.
    pub fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.stream.read(space),
            Some(tls) => tls.read(&mut self.stream, space),
        }
    }

    /// Returns true if nothing waits to be written.
    pub fn is_flushed(&self) -> bool {
        self.out.is_empty() && !self.tls.as_ref().is_some_and(|tls| tls.is_waiting())
    }

    /// Writes as much as the system accepts. Returns the number of bytes.
    pub fn flush(&mut self, now: Instant) -> usize {
        if self.tls.is_some() {
            return self.flush_encrypted(now);
        }
        let before = self.out_bytes;
        while !self.out.is_empty() && !self.broken {
            let mut slices = [IoSlice::new(&[]); 64];
            let mut count = 0;
            for (slice, chunk) in slices.iter_mut().zip(&self.out) {
                *slice = IoSlice::new(chunk);
                count += 1;
            }
            let (stream, slices) = (&self.stream, &slices[..count]);
            match stream.try_io(|| SockRef::from(stream).send_vectored_with_flags(slices, SEND_FLAGS)) {
                Ok(0) => self.broken = true,
                Ok(n) => self.written(n),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.broken = true,
            }
        }
        let written = before - self.out_bytes;
        if written > 0 {
            (self.active_at, self.taken_at) = (now, now);
        }
        written
    }

    /// Encrypts and writes as much as the system accepts. Returns the number of bytes that were encrypted.
    fn flush_encrypted(&mut self, now: Instant) -> usize {
        let Some(mut tls) = self.tls.take() else { return 0 };
        let before = self.out_bytes;
        while !self.broken {
            while let Some(chunk) = self.out.front() {
                let n = tls.encrypt(chunk);
                if n == 0 && !chunk.is_empty() {
                    break;
                }
                self.written(n);
            }
            if self.closing && self.out.is_empty() {
                tls.end();
            }
            if !tls.is_waiting() {
                break;
            }
            match tls.flush(&mut self.stream) {
                Ok(true) => {}
                Ok(false) => break,
                Err(_) => self.broken = true,
            }
        }
        self.tls = Some(tls);
        let written = before - self.out_bytes;
        if written > 0 {
            (self.active_at, self.taken_at) = (now, now);
        }
        written
    }

    fn written(&mut self, mut n: usize) {
        self.out_bytes -= n;
        while let Some(front) = self.out.front_mut() {
            if front.len() > n {
                front.advance(n);
                return;
            }
            n -= front.len();
            self.out.pop_front();
        }
    }
}
