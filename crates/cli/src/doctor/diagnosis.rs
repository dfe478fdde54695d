//! What a check found.

use std::time::Duration;

use serde_json::{Value, json};

/// A problem that the doctor recognizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Problem {
    BadConfiguration,
    UnknownHost,
    ConnectionRefused,
    Unreachable,
    ProxyFailed,
    Silent,
    Closed,
    TlsListener,
    PlaintextListener,
    SaslListener,
    NoSaslListener,
    ControllerListener,
    HttpServer,
    NotKafka,
    CertificateExpired,
    CertificateNotYetValid,
    ClockSkew,
    WrongHost,
    UnknownAuthority,
    CertificateRevoked,
    BadCertificate,
    NothingInCommon,
    TlsFailed,
    ClientCertificateMissing,
    ClientCertificateRefused,
    ClientCertificateExpired,
    WrongMechanism,
    WrongCredentials,
    NoToken,
    AuthenticationFailed,
    BadResponse,
    BrokerUnreachable,
    NoLeader,
    UnderReplicated,
    UnknownTopic,
    NotAuthorized,
    GroupUnavailable,
}

impl Problem {
    /// Returns the name in JSON and in the last line.
    pub fn name(self) -> &'static str {
        match self {
            Self::BadConfiguration => "bad_configuration",
            Self::UnknownHost => "unknown_host",
            Self::ConnectionRefused => "connection_refused",
            Self::Unreachable => "unreachable",
            Self::ProxyFailed => "proxy_failed",
            Self::Silent => "silent",
            Self::Closed => "closed",
            Self::TlsListener => "tls_listener",
            Self::PlaintextListener => "plaintext_listener",
            Self::SaslListener => "sasl_listener",
            Self::NoSaslListener => "no_sasl_listener",
            Self::ControllerListener => "controller_listener",
            Self::HttpServer => "http_server",
            Self::NotKafka => "not_kafka",
            Self::CertificateExpired => "certificate_expired",
            Self::CertificateNotYetValid => "certificate_not_yet_valid",
            Self::ClockSkew => "clock_skew",
            Self::WrongHost => "wrong_host",
            Self::UnknownAuthority => "unknown_ca",
            Self::CertificateRevoked => "certificate_revoked",
            Self::BadCertificate => "bad_certificate",
            Self::NothingInCommon => "nothing_in_common",
            Self::TlsFailed => "tls_failed",
            Self::ClientCertificateMissing => "client_certificate_missing",
            Self::ClientCertificateRefused => "client_certificate_refused",
            Self::ClientCertificateExpired => "client_certificate_expired",
            Self::WrongMechanism => "wrong_mechanism",
            Self::WrongCredentials => "wrong_credentials",
            Self::NoToken => "no_token",
            Self::AuthenticationFailed => "authentication_failed",
            Self::BadResponse => "bad_response",
            Self::BrokerUnreachable => "broker_unreachable",
            Self::NoLeader => "no_leader",
            Self::UnderReplicated => "under_replicated",
            Self::UnknownTopic => "unknown_topic",
            Self::NotAuthorized => "not_authorized",
            Self::GroupUnavailable => "group_unavailable",
        }
    }
}

/// A step of the examination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Config,
    Dns,
    Tcp,
    Proxy,
    Tls,
    Api,
    Sasl,
    Metadata,
    Broker,
    Topic,
    Group,
}

impl Step {
    /// Returns the name in all formats.
    pub fn name(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::Dns => "dns",
            Self::Tcp => "tcp",
            Self::Proxy => "proxy",
            Self::Tls => "tls",
            Self::Api => "api",
            Self::Sasl => "sasl",
            Self::Metadata => "metadata",
            Self::Broker => "broker",
            Self::Topic => "topic",
            Self::Group => "group",
        }
    }
}

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Passed,
    /// It works, but something deserves attention.
    Warning(Problem),
    Failed(Problem),
}

/// The result of a check.
#[derive(Clone, Debug)]
pub struct Finding {
    pub verdict: Verdict,
    /// What was found, in a sentence.
    pub summary: String,
    /// Details, a line each.
    pub notes: Vec<String>,
    /// What to change, a line each.
    pub advice: Vec<String>,
    /// Details for programs.
    pub data: Value,
}

impl Finding {
    /// A check that passed.
    pub fn passed(summary: impl Into<String>) -> Self {
        Self::new(Verdict::Passed, summary.into())
    }

    /// A check that found something that deserves attention.
    pub fn warning(problem: Problem, summary: impl Into<String>) -> Self {
        Self::new(Verdict::Warning(problem), summary.into())
    }

    /// A check that failed.
    pub fn failed(problem: Problem, summary: impl Into<String>) -> Self {
        Self::new(Verdict::Failed(problem), summary.into())
    }

    fn new(verdict: Verdict, summary: String) -> Self {
        Self { verdict, summary, notes: Vec::new(), advice: Vec::new(), data: json!({}) }
    }

    /// Adds a detail.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Adds what to change.
    pub fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice.push(advice.into());
        self
    }

    /// Adds a detail for programs.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.data[name] = value.into();
        self
    }

    /// Returns the problem, unless the check passed.
    pub fn problem(&self) -> Option<Problem> {
        match self.verdict {
            Verdict::Passed => None,
            Verdict::Warning(problem) | Verdict::Failed(problem) => Some(problem),
        }
    }
}

/// A check that has ended.
#[derive(Clone, Debug)]
pub struct Check {
    /// The server, broker, topic or group that was checked.
    pub target: String,
    pub step: Step,
    pub took: Duration,
    pub finding: Finding,
}

/// The outcome of a step: its value and what was found, or why the next steps are impossible.
pub type Stepped<T> = Result<(T, Finding), Finding>;

/// Receives the checks as they begin and end.
pub trait Sink {
    /// A check has begun.
    fn begin(&mut self, target: &str, step: Step);
    /// The check that began last has ended.
    fn end(&mut self, check: Check);
}

/// Performs a step and reports it. Returns its value, unless it failed.
pub fn step<T>(
    sink: &mut dyn Sink,
    target: &str,
    step: Step,
    work: impl FnOnce() -> Stepped<T>,
) -> Option<T> {
    sink.begin(target, step);
    let start = std::time::Instant::now();
    let (value, finding) = match work() {
        Ok((value, finding)) => (Some(value), finding),
        Err(finding) => (None, finding),
    };
    sink.end(Check { target: target.to_owned(), step, took: start.elapsed(), finding });
    value
}
