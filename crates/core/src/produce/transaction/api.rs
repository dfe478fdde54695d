//! The transactional functions, and their names in the texts of errors.

/// The transactional functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionApi {
    /// Obtain the producer ID, and end what an earlier producer left.
    Init,
    /// Begin a transaction.
    Begin,
    /// Add offsets to the transaction.
    SendOffsets,
    /// Commit the transaction.
    Commit,
    /// Abort the transaction.
    Abort,
}

/// The interface whose names the texts of errors use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FunctionNames {
    /// Rust's: `Producer::begin`, `Transaction::commit`.
    Rust,
    /// librdkafka's: `rd_kafka_begin_transaction`.
    #[default]
    Librdkafka,
}

impl FunctionNames {
    /// Returns how to continue a call that is not finished. Rust's commit and abort consume the transaction.
    pub(crate) const fn continue_with(self, api: TransactionApi) -> &'static str {
        match (self, api) {
            (Self::Rust, TransactionApi::Commit | TransactionApi::Abort) => "resume_transaction",
            _ => api.name_in(self),
        }
    }
}

impl TransactionApi {
    /// Returns librdkafka's name of the function.
    pub const fn name(self) -> &'static str {
        self.name_in(FunctionNames::Librdkafka)
    }

    /// Returns the name of the function in an interface.
    pub const fn name_in(self, names: FunctionNames) -> &'static str {
        match (self, names) {
            (Self::Init, _) => "init_transactions",
            (Self::Begin, FunctionNames::Rust) => "begin",
            (Self::SendOffsets, FunctionNames::Rust) => "send_offsets",
            (Self::Commit, FunctionNames::Rust) => "commit",
            (Self::Abort, FunctionNames::Rust) => "abort",
            (Self::Begin, _) => "begin_transaction",
            (Self::SendOffsets, _) => "send_offsets_to_transaction",
            (Self::Commit, _) => "commit_transaction",
            (Self::Abort, _) => "abort_transaction",
        }
    }

    /// Returns true if a call that timed out continues when it is called again.
    pub(crate) const fn is_resumable(self) -> bool {
        matches!(self, Self::Init | Self::Commit | Self::Abort)
    }
}
