//! A handshake with a proxy on a stream that blocks, for a diagnosis.

use std::{
    io::{ErrorKind as IoKind, Read, Write},
    sync::Arc,
};

use ottla_core::{config::ProxyUrl, error::Error};

use super::{Handshake, http};

/// Asks a proxy for a connection to a broker, on a connected stream that blocks. The stream limits the time.
///
/// # Errors
///
/// The proxy refuses, or does not answer in time; the error names it.
pub fn open_tunnel(
    stream: &mut (impl Read + Write),
    proxy: &Arc<ProxyUrl>,
    host: &str,
    port: u16,
) -> Result<(), Error> {
    let mut handshake = Handshake::new(proxy, host, port)?;
    let mut space = [0; http::CHUNK_BYTES];
    loop {
        stream.write_all(handshake.outgoing()).map_err(|error| handshake.closed(&error.to_string()))?;
        handshake.written(handshake.outgoing().len());
        let wanted = handshake.wanted().min(space.len());
        match stream.read(&mut space[..wanted]) {
            Ok(0) => return Err(handshake.closed("closed by the peer")),
            Ok(n) => {
                if handshake.receive(&space[..n])? {
                    return Ok(());
                }
            }
            Err(error) if error.kind() == IoKind::Interrupted => {}
            Err(error) => return Err(handshake.closed(&error.to_string())),
        }
    }
}
