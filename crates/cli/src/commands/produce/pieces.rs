//! The messages of the input: pieces between delimiters, or whole files.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::failure::{Failure, Outcome};

/// Reads a file that is one message of at most `max_bytes`.
pub fn read_message(path: &Path, mut file: File, max_bytes: usize) -> Result<Vec<u8>, Failure> {
    let failed = |error: io::Error| Failure::Failed(format!("{}: {error}", path.display()));
    let too_large = |size: &str| {
        Failure::Failed(format!(
            "{}: the file has {size}; raise the limit with -X message.max.bytes=BYTES, or send its lines as messages \
             with -l",
            path.display()
        ))
    };
    // A file that is too large is not read; the error contains its size.
    let size = file.metadata().map_err(failed)?.len();
    if size > max_bytes as u64 {
        return Err(too_large(&format!("{size} bytes, more than message.max.bytes={max_bytes}")));
    }
    let mut message = Vec::new();
    // Reads at most one byte more than the limit, so that memory is bounded.
    file.by_ref().take(max_bytes as u64 + 1).read_to_end(&mut message).map_err(failed)?;
    if message.len() > max_bytes {
        // A pipe, or a file that grows: its whole size is unknown.
        return Err(too_large(&format!("more than message.max.bytes={max_bytes} bytes")));
    }
    Ok(message)
}

/// Splits a stream at a delimiter.
pub struct Pieces<'a, R> {
    input: R,
    delimiter: &'a [u8],
    max_bytes: usize,
    buffer: Vec<u8>,
    start: usize,
    at_end: bool,
}

impl<'a, R: Read> Pieces<'a, R> {
    /// Begins to split.
    pub fn new(input: R, delimiter: &'a [u8], max_bytes: usize) -> Pieces<'a, R> {
        Pieces { input, delimiter, max_bytes, buffer: Vec::new(), start: 0, at_end: false }
    }

    /// Returns the next piece; the last one may lack its delimiter.
    pub fn next(&mut self) -> Outcome<Option<&[u8]>> {
        const READ: usize = 64 << 10;
        let mut searched = 0;
        loop {
            let rest = &self.buffer[self.start..];
            if let Some(end) = find(&rest[searched..], self.delimiter).map(|end| end + searched) {
                let piece = self.start..self.start + end;
                self.start = piece.end + self.delimiter.len();
                return Ok(Some(&self.buffer[piece]));
            }
            if self.at_end {
                let piece = self.start..self.buffer.len();
                self.start = piece.end;
                return Ok((!piece.is_empty()).then(|| &self.buffer[piece]));
            }
            if rest.len() > self.max_bytes {
                return Err(Failure::Failed(format!(
                    "a message is larger than message.max.bytes={}: the input has no delimiter (-D) before that size; raise it \
                     with -X message.max.bytes=BYTES",
                    self.max_bytes
                )));
            }
            searched = rest.len().saturating_sub(self.delimiter.len() - 1);
            self.buffer.drain(..self.start);
            self.start = 0;
            let filled = self.buffer.len();
            self.buffer.resize(filled + READ, 0);
            let count = loop {
                match self.input.read(&mut self.buffer[filled..]) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    result => break result,
                }
            };
            let count =
                count.map_err(|error| Failure::Failed(format!("the input can't be read: {error}")))?;
            self.buffer.truncate(filled + count);
            self.at_end = count == 0;
        }
    }
}

/// Returns where the delimiter is.
pub fn find(bytes: &[u8], delimiter: &[u8]) -> Option<usize> {
    match delimiter {
        [] => None,
        [byte] => bytes.iter().position(|other| other == byte),
        _ => bytes.windows(delimiter.len()).position(|window| window == delimiter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that returns one byte at a time.
    struct Drip<'a>(&'a [u8]);

    impl Read for Drip<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let Some((first, rest)) = self.0.split_first() else { return Ok(0) };
            buffer[0] = *first;
            self.0 = rest;
            Ok(1)
        }
    }

    fn pieces(input: impl Read, delimiter: &[u8]) -> Vec<String> {
        let mut pieces = Pieces::new(input, delimiter, 1000);
        let mut out = Vec::new();
        while let Some(piece) = pieces.next().unwrap() {
            out.push(String::from_utf8_lossy(piece).into_owned());
        }
        out
    }

    #[test]
    fn input_is_split_at_the_delimiter_in_chunks_of_any_size() {
        for input in ["a\n\nbc\n", "a\n\nbc"] {
            assert_eq!(pieces(input.as_bytes(), b"\n"), ["a", "", "bc"]);
            assert_eq!(pieces(Drip(input.as_bytes()), b"\n"), ["a", "", "bc"]);
        }
        assert_eq!(pieces(Drip(b"a-=-b-=c-=-"), b"-=-"), ["a", "b-=c"]);
        assert_eq!(pieces(&b""[..], b"\n"), Vec::<String>::new());
    }

    #[test]
    fn message_without_delimiter_is_an_error_of_bounded_size() {
        let mut pieces = Pieces::new(io::repeat(b'x'), b"\n", 1000);
        assert!(matches!(pieces.next(), Err(Failure::Failed(_))));
    }
}
