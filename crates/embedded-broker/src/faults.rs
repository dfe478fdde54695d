//! Fault injection.
//!
//! # Pitfalls
//!
//! - Scripted errors of an API are used up one per request; faults apply to every request
//!   (`script_applies_a_step_per_request_and_broker_scripts_first`).

use std::{collections::VecDeque, time::Duration};

use ottla_protocol::{api::ApiKey, error_code::ErrorCode};

use crate::{options::BrokerId, topics::TopicIndex};

/// A fault for requests that match all of the given fields.
///
/// ```
/// use ottla_embedded_broker::{Fault, FaultAction};
/// use ottla_protocol::{api::ApiKey, error_code::ErrorCode};
///
/// let twice = Fault::new(FaultAction::Error(ErrorCode::NOT_LEADER_OR_FOLLOWER)).api(ApiKey::Produce).times(2);
/// let always = Fault::new(FaultAction::LoseResponse).topic("orders");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// Only this API.
    pub api: Option<ApiKey>,
    /// Affects only requests to this broker.
    pub broker: Option<BrokerId>,
    /// Affects only this topic. Other topics of the same request are not affected.
    pub topic: Option<String>,
    /// Affects only this partition of the topic.
    pub partition: Option<i32>,
    /// The number of matches that pass first.
    pub skip: u32,
    /// The number of matches that are affected; `None` for all.
    pub times: Option<u32>,
    /// What happens.
    pub action: FaultAction,
}

/// The effect on a request that a [`Fault`] matches.
#[derive(Clone, Debug, PartialEq)]
pub enum FaultAction {
    /// Rejects the request with this error.
    Error(ErrorCode),
    /// Closes the connection without handling the request.
    CloseConnection,
    /// Handles the request, then closes the connection instead of responding.
    LoseResponse,
    /// Handles the request; the connection stays open but never responds again.
    NeverRespond,
    /// Closes the connection, and handles the request this much later: requests that the client sends meanwhile come first,
    /// as when a request waits in a broker's queue. Not for faults with a topic.
    DeliverLate(Duration),
    /// Delays the response, and with it all later ones on this connection.
    Delay(Duration),
    /// Asks the client to pause for this duration (`throttle_time_ms`), and handles no request of its connection
    /// meanwhile, as Kafka does (KIP-219).
    Throttle(Duration),
    /// Adds this number to the correlation ID of the response.
    ShiftCorrelationId(i32),
    /// Sends only the given number of bytes of the response, then closes the connection.
    TruncateResponse(usize),
    /// Sends these bytes instead of the response (including its length prefix, if there is to be one).
    ReplaceResponse(Vec<u8>),
}

impl Fault {
    /// Creates a fault that matches every request, each time.
    pub fn new(action: FaultAction) -> Self {
        Self { api: None, broker: None, topic: None, partition: None, skip: 0, times: None, action }
    }

    /// Affects only requests of this API.
    #[must_use]
    pub fn api(mut self, api: ApiKey) -> Self {
        self.api = Some(api);
        self
    }

    /// Affects only requests to this broker.
    #[must_use]
    pub fn broker(mut self, broker: BrokerId) -> Self {
        self.broker = Some(broker);
        self
    }

    /// Only this topic.
    #[must_use]
    pub fn topic(mut self, topic: &str) -> Self {
        self.topic = Some(topic.to_owned());
        self
    }

    /// Affects only this partition of the topic.
    #[must_use]
    pub fn partition(mut self, partition: i32) -> Self {
        self.partition = Some(partition);
        self
    }

    /// Lets this number of matching requests pass first.
    #[must_use]
    pub fn skip(mut self, matches: u32) -> Self {
        self.skip = matches;
        self
    }

    /// Ends after this number of matches.
    #[must_use]
    pub fn times(mut self, matches: u32) -> Self {
        self.times = Some(matches);
        self
    }

    /// Counts a match; returns true if it is affected.
    fn strike(&mut self) -> bool {
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        match &mut self.times {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }
}

/// The requests that a script of errors applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptScope {
    /// Requests to any broker. A broker's own script takes precedence.
    Cluster,
    /// Requests to this broker.
    Broker(BrokerId),
    /// The parts of requests that concern this partition of a topic.
    Partition(String, i32),
}

/// One step of a script: the effect on one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptStep {
    /// The error; [`ErrorCode::NONE`] lets the request pass.
    pub error: ErrorCode,
    /// Closes the connection without handling the request.
    pub closes: bool,
    /// Delays the response by this duration.
    pub delay: Duration,
}

impl ScriptStep {
    /// Creates a step that responds with an error.
    pub const fn error(error: ErrorCode) -> Self {
        Self { error, closes: false, delay: Duration::ZERO }
    }

    /// Creates a step that closes the connection without a response.
    pub const fn close() -> Self {
        Self { error: ErrorCode::NETWORK_EXCEPTION, closes: true, delay: Duration::ZERO }
    }
}

/// The remaining steps for requests of one API.
#[derive(Debug)]
struct Script {
    scope: ScriptScope,
    api: i16,
    steps: VecDeque<ScriptStep>,
}

/// All injected faults, in the order of their injection.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    faults: Vec<Fault>,
    scripts: Vec<Script>,
}

/// The faults that affect one request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Struck {
    pub error: Option<ErrorCode>,
    /// Errors of single partitions.
    pub partition_errors: Vec<(TopicIndex, i32, ErrorCode)>,
    pub close: bool,
    pub lose_response: bool,
    pub never_respond: bool,
    pub late: Option<Duration>,
    pub delay: Duration,
    pub throttle: Duration,
    pub correlation_shift: i32,
    pub truncate: Option<usize>,
    pub replace: Option<Vec<u8>>,
    /// The error comes from a script: every partition in the response gets it, as when a broker fails.
    pub is_scripted: bool,
}

impl Faults {
    pub fn push(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    pub fn clear(&mut self) {
        self.faults.clear();
        self.scripts.clear();
    }

    pub fn is_empty(&self) -> bool {
        self.faults.is_empty() && self.scripts.is_empty()
    }

    /// Appends steps to a script.
    pub fn extend_script(
        &mut self,
        scope: ScriptScope,
        api: i16,
        steps: impl IntoIterator<Item = ScriptStep>,
    ) {
        let at = self.scripts.iter().position(|script| script.api == api && script.scope == scope);
        let at = at.unwrap_or_else(|| {
            self.scripts.push(Script { scope, api, steps: VecDeque::new() });
            self.scripts.len() - 1
        });
        self.scripts[at].steps.extend(steps);
        self.scripts.retain(|script| !script.steps.is_empty());
    }

    pub fn clear_script(&mut self, scope: &ScriptScope, api: i16) {
        self.scripts.retain(|script| script.api != api || script.scope != *scope);
    }

    /// Returns the number of remaining steps of a script.
    pub fn script_len(&self, scope: &ScriptScope, api: i16) -> usize {
        let found = self.scripts.iter().find(|script| script.api == api && script.scope == *scope);
        found.map_or(0, |script| script.steps.len())
    }

    /// Takes the next step of the first script that `is_meant` selects.
    fn take_step(&mut self, api: ApiKey, is_meant: impl Fn(&ScriptScope) -> bool) -> Option<ScriptStep> {
        let at =
            self.scripts.iter().position(|script| script.api == api as i16 && is_meant(&script.scope))?;
        let step = self.scripts[at].steps.pop_front();
        if self.scripts[at].steps.is_empty() {
            self.scripts.remove(at);
        }
        step
    }

    /// Returns the faults without a topic that affect this request.
    pub fn strike_request(&mut self, api: ApiKey, broker: BrokerId, struck: &mut Struck) {
        self.strike(api, broker, None, struck);
        if self.scripts.is_empty() {
            return;
        }
        let step = self.take_step(api, |scope| *scope == ScriptScope::Broker(broker));
        if let Some(step) = step.or_else(|| self.take_step(api, |scope| *scope == ScriptScope::Cluster)) {
            struck.close |= step.closes;
            struck.add_step(step);
        }
    }

    /// Returns the faults with a topic that affect this topic's or partition's part of a request (partition -1: the
    /// topic's).
    pub fn strike_partition(
        &mut self,
        api: ApiKey,
        broker: BrokerId,
        topic: &str,
        partition: i32,
        struck: &mut Struck,
    ) {
        self.strike(api, broker, Some((topic, partition)), struck);
        if self.scripts.is_empty() {
            return;
        }
        let is_meant = |scope: &ScriptScope| matches!(scope, ScriptScope::Partition(name, number) if name == topic && *number == partition);
        if let Some(step) = self.take_step(api, is_meant) {
            // The rest of the request was already handled.
            struck.lose_response |= step.closes;
            struck.add_step(step);
        }
    }

    fn strike(&mut self, api: ApiKey, broker: BrokerId, part: Option<(&str, i32)>, struck: &mut Struck) {
        if self.faults.is_empty() {
            return;
        }
        for fault in &mut self.faults {
            let matches = fault.api.is_none_or(|requested| requested == api)
                && fault.broker.is_none_or(|requested| requested == broker)
                && match (part, &fault.topic) {
                    (None, None) => true,
                    (Some((topic, partition)), Some(requested)) => {
                        requested == topic && fault.partition.is_none_or(|requested| requested == partition)
                    }
                    _ => false,
                };
            if matches && fault.strike() {
                struck.add(&fault.action);
            }
        }
        self.faults.retain(|fault| fault.times != Some(0));
    }
}

impl Struck {
    pub fn partition_error(&self, topic: TopicIndex, partition: i32) -> Option<ErrorCode> {
        let errors = &mut self.partition_errors.iter();
        errors.find(|(t, p, _)| *t == topic && *p == partition).map(|(_, _, error)| *error)
    }

    fn add_step(&mut self, step: ScriptStep) {
        if step.error != ErrorCode::NONE {
            self.is_scripted |= self.error.is_none();
            self.error.get_or_insert(step.error);
        }
        self.delay = self.delay.max(step.delay);
    }

    fn add(&mut self, action: &FaultAction) {
        match action {
            FaultAction::Error(error) => {
                self.error.get_or_insert(*error);
            }
            FaultAction::CloseConnection => self.close = true,
            FaultAction::LoseResponse => self.lose_response = true,
            FaultAction::NeverRespond => self.never_respond = true,
            FaultAction::DeliverLate(delay) => self.late = Some(*delay),
            FaultAction::Delay(delay) => self.delay = self.delay.max(*delay),
            FaultAction::Throttle(throttle) => self.throttle = self.throttle.max(*throttle),
            FaultAction::ShiftCorrelationId(shift) => self.correlation_shift = *shift,
            FaultAction::TruncateResponse(len) => self.truncate = Some(*len),
            FaultAction::ReplaceResponse(bytes) => self.replace = Some(bytes.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_applies_after_its_skips_for_its_number_of_times() {
        let mut faults = Faults::default();
        let error = FaultAction::Error(ErrorCode::CORRUPT_MESSAGE);
        faults.push(Fault::new(error).api(ApiKey::Produce).skip(1).times(2));
        let mut strike = |api| {
            let mut struck = Struck::default();
            faults.strike_request(api, BrokerId(1), &mut struck);
            struck.error.is_some()
        };
        assert!(!strike(ApiKey::Fetch));
        assert_eq!([(); 4].map(|()| strike(ApiKey::Produce)), [false, true, true, false]);
        assert!(faults.is_empty());
    }

    #[test]
    fn script_applies_a_step_per_request_and_broker_scripts_first() {
        let mut faults = Faults::default();
        let errors = |codes: &[i16]| -> Vec<_> {
            codes.iter().map(|code| ScriptStep::error(ErrorCode(*code))).collect()
        };
        let produce = ApiKey::Produce as i16;
        faults.extend_script(ScriptScope::Cluster, produce, errors(&[1, 0]));
        faults.extend_script(ScriptScope::Broker(BrokerId(2)), produce, errors(&[3]));
        faults.extend_script(ScriptScope::Cluster, produce, [ScriptStep::close()]);
        assert_eq!(faults.script_len(&ScriptScope::Cluster, produce), 3);
        let mut strike = |api, broker| {
            let mut struck = Struck::default();
            faults.strike_request(api, BrokerId(broker), &mut struck);
            (struck.error.map(|error| error.0), struck.close)
        };
        assert_eq!(strike(ApiKey::Fetch, 2), (None, false));
        assert_eq!(strike(ApiKey::Produce, 2), (Some(3), false));
        assert_eq!(strike(ApiKey::Produce, 2), (Some(1), false));
        assert_eq!(strike(ApiKey::Produce, 1), (None, false));
        assert_eq!(strike(ApiKey::Produce, 1), (Some(13), true));
        assert_eq!(strike(ApiKey::Produce, 1), (None, false));
        assert!(faults.is_empty());
    }

    #[test]
    fn script_of_a_partition_applies_only_to_its_partition() {
        let mut faults = Faults::default();
        let scope = ScriptScope::Partition("t".to_owned(), 1);
        faults.extend_script(scope.clone(), 0, [ScriptStep::error(ErrorCode::CORRUPT_MESSAGE)]);
        let mut struck = Struck::default();
        faults.strike_request(ApiKey::Produce, BrokerId(1), &mut struck);
        faults.strike_partition(ApiKey::Produce, BrokerId(1), "t", 0, &mut struck);
        assert_eq!((struck.error, faults.script_len(&scope, 0)), (None, 1));
        faults.strike_partition(ApiKey::Produce, BrokerId(1), "t", 1, &mut struck);
        assert_eq!((struck.error, faults.script_len(&scope, 0)), (Some(ErrorCode::CORRUPT_MESSAGE), 0));
    }

    #[test]
    fn fault_with_a_topic_applies_only_to_that_topic() {
        let mut faults = Faults::default();
        faults.push(Fault::new(FaultAction::LoseResponse).topic("t").partition(1));
        let mut struck = Struck::default();
        faults.strike_request(ApiKey::Produce, BrokerId(1), &mut struck);
        faults.strike_partition(ApiKey::Produce, BrokerId(1), "t", 0, &mut struck);
        faults.strike_partition(ApiKey::Produce, BrokerId(1), "u", 1, &mut struck);
        assert!(!struck.lose_response);
        faults.strike_partition(ApiKey::Produce, BrokerId(1), "t", 1, &mut struck);
        assert!(struck.lose_response);
    }
}
