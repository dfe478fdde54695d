//! Fuzz targets: functions that take any bytes and panic if a guarantee is broken.
//!
//! ```text
//!   libFuzzer ──► src/main.rs ──────────────────────┐
//!                                                   ├──► Target::check ──► run, within its memory
//!   cargo test ──► the tests that repeat the corpus ┘
//! ```
//!
//! | target | what reads the bytes |
//! |---|---|
//! | [`messages`] | the decoder of any request or response, in any version |
//! | [`batches`] | the reader of record batches and message sets, and the codecs |
//! | [`credentials`] | the readers of certificates, keys and key stores |
//! | [`configuration`] | files of properties, single values, JAAS, lists of servers |
//! | [`oidc`] | the response of a token endpoint |
//! | [`sasl`] | a broker's messages in an authentication |
//! | [`telemetry`] | the metrics that a client pushes |
//! | [`broker`] | a cluster of embedded brokers: requests, noise, time |
//!
//! `corpus/NAME.bin` has the inputs of a target that reach something that no other one does, and `findings/NAME` those that
//! broke a guarantee once ([`corpus`]). [`bytes`] and [`body`] make structure out of bytes, [`learned`] has what brokers said before.

pub mod batches;
pub mod body;
pub mod broker;
pub mod bytes;
#[path = "../../../crates/protocol/tests/messages/codecs.rs"]
#[allow(dead_code)]
pub mod codecs;
pub mod configuration;
pub mod corpus;
pub mod credentials;
pub mod learned;
pub mod memory;
pub mod messages;
pub mod oidc;
pub mod sasl;
#[path = "../../../xtask/src/codegen/schema.rs"]
#[allow(dead_code)]
pub mod schema;
pub mod telemetry;

/// A function that takes any bytes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, that of its file.
    pub name: &'static str,
    /// Panics if a guarantee is broken.
    pub run: fn(&[u8]),
    /// The most memory that a run may have at a time, in bytes.
    pub memory: usize,
}

const MIB: usize = 1 << 20;

/// The targets that need no part of the command line.
pub const TARGETS: [Target; 8] = [
    Target { name: "messages", run: messages::run, memory: 16 * MIB },
    Target { name: "batches", run: batches::run, memory: 2 * MIB },
    // scrypt may use 256 MiB.
    Target { name: "credentials", run: credentials::run, memory: 300 * MIB },
    Target { name: "configuration", run: configuration::run, memory: 32 * MIB },
    Target { name: "oidc", run: oidc::run, memory: 4 * MIB },
    Target { name: "sasl", run: sasl::run, memory: 4 * MIB },
    Target { name: "telemetry", run: telemetry::run, memory: 16 * MIB },
    Target { name: "broker", run: broker::run, memory: 64 * MIB },
];

impl Target {
    /// Runs the target with an input.
    ///
    /// # Panics
    ///
    /// A guarantee is broken, or the run needs more memory than the target may.
    pub fn check(&self, input: &[u8]) {
        let ((), used) = memory::count(|| (self.run)(input));
        let (name, most) = (self.name, self.memory);
        assert!(used.most <= most, "{name}: {} bytes at a time, more than {most}", used.most);
    }
}
