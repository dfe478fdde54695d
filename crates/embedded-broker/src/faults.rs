//! What goes wrong on purpose.

use std::{collections::VecDeque, time::Duration};

use ottla_protocol::{api::ApiKey, error_code::ErrorCode};

use crate::{options::BrokerId, topics::TopicIndex};

/// Requests to be treated badly: those that match all of the given fields.
///
/// ```
/// use ottla_embedded_broker::{Fault, FaultAction};
/// use ottla_protocol::{api::ApiKey, error_code::ErrorCode};
///
/// let twice = Fault::new(FaultAction::Error(ErrorCode::NOT_LEADER_OR_FOLLOWER)).api(ApiKey::Produce).times(2);
/// let always = Fault::new(FaultAction::LoseAnswer).topic("orders");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// Only this API.
    pub api: Option<ApiKey>,
    /// Only requests to this broker.
    pub broker: Option<BrokerId>,
    /// Only this topic. Of a request with several topics only this one fails.
    pub topic: Option<String>,
    /// Only this partition of the topic.
    pub partition: Option<i32>,
    /// So many matches are let through first.
    pub skip: u32,
    /// So many matches are treated badly; none for all.
    pub times: Option<u32>,
    /// What happens.
    pub action: FaultAction,
}

/// What happens to a request that a [`Fault`] matches.
#[derive(Clone, Debug, PartialEq)]
pub enum FaultAction {
    /// It is not done and answered with this error.
    Error(ErrorCode),
    /// The connection is closed; the request is not done.
    CloseConnection,
    /// The request is done, then the connection is closed instead of answering.
    LoseAnswer,
    /// The request is done; the connection stays open but never answers again.
    NeverAnswer,
    /// The answer is late, and so is every later one on this connection.
    Delay(Duration),
    /// The answer asks the client to pause this long (`throttle_time_ms`).
    Throttle(Duration),
    /// The answer bears this number more than the right correlation id.
    ShiftCorrelationId(i32),
    /// The answer breaks off after so many bytes, then the connection is closed.
    TruncateAnswer(usize),
    /// These bytes are sent instead of the answer (with its length prefix, if they are to have one).
    ReplaceAnswer(Vec<u8>),
}

impl Fault {
    /// A fault that matches every request, each time.
    pub fn new(action: FaultAction) -> Self {
        Self { api: None, broker: None, topic: None, partition: None, skip: 0, times: None, action }
    }

    /// Only requests of this API.
    #[must_use]
    pub fn api(mut self, api: ApiKey) -> Self {
        self.api = Some(api);
        self
    }

    /// Only requests to this broker.
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

    /// Only this partition of the topic.
    #[must_use]
    pub fn partition(mut self, partition: i32) -> Self {
        self.partition = Some(partition);
        self
    }

    /// Lets so many matches through first.
    #[must_use]
    pub fn skip(mut self, matches: u32) -> Self {
        self.skip = matches;
        self
    }

    /// Ends after so many matches.
    #[must_use]
    pub fn times(mut self, matches: u32) -> Self {
        self.times = Some(matches);
        self
    }

    /// Counts a match; true if it is to be treated badly.
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

/// Which requests a script of errors is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptScope {
    /// Those to any broker. A broker's own script goes first.
    Cluster,
    /// Those to this broker.
    Broker(BrokerId),
    /// The parts of requests that are about this partition of a topic.
    Partition(String, i32),
}

/// What happens to one request, the next in the order of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptStep {
    /// The error; [`ErrorCode::NONE`] lets the request through.
    pub error: ErrorCode,
    /// Instead of an answer the connection is closed; the request is not done.
    pub closes: bool,
    /// The answer comes this much later.
    pub delay: Duration,
}

impl ScriptStep {
    /// An answer with an error.
    pub const fn error(error: ErrorCode) -> Self {
        Self { error, closes: false, delay: Duration::ZERO }
    }

    /// No answer: the connection is closed.
    pub const fn close() -> Self {
        Self { error: ErrorCode::NETWORK_EXCEPTION, closes: true, delay: Duration::ZERO }
    }
}

/// Steps that wait for requests of one API.
#[derive(Debug)]
struct Script {
    scope: ScriptScope,
    api: i16,
    steps: VecDeque<ScriptStep>,
}

/// All faults that are set, in the order in which they were.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    faults: Vec<Fault>,
    scripts: Vec<Script>,
}

/// The faults that struck one request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Struck {
    pub error: Option<ErrorCode>,
    /// Errors of single partitions.
    pub partition_errors: Vec<(TopicIndex, i32, ErrorCode)>,
    pub close: bool,
    pub lose_answer: bool,
    pub never_answer: bool,
    pub delay: Duration,
    pub throttle: Duration,
    pub correlation_shift: i32,
    pub truncate: Option<usize>,
    pub replace: Option<Vec<u8>>,
    /// The error is a script's: in an answer about partitions each of them has it, as when a broker says it.
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

    /// How many steps of a script are left.
    pub fn script_len(&self, scope: &ScriptScope, api: i16) -> usize {
        let found = self.scripts.iter().find(|script| script.api == api && script.scope == *scope);
        found.map_or(0, |script| script.steps.len())
    }

    /// The next step of the first script that is meant.
    fn take_step(&mut self, api: ApiKey, is_meant: impl Fn(&ScriptScope) -> bool) -> Option<ScriptStep> {
        let at =
            self.scripts.iter().position(|script| script.api == api as i16 && is_meant(&script.scope))?;
        let step = self.scripts[at].steps.pop_front();
        if self.scripts[at].steps.is_empty() {
            self.scripts.remove(at);
        }
        step
    }

    /// The faults without a topic that strike this request.
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

    /// The faults with a topic that strike this topic's or partition's part of a request (partition -1: the topic's).
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
            // The rest of the request was done by then.
            struck.lose_answer |= step.closes;
            struck.add_step(step);
        }
    }

    fn strike(&mut self, api: ApiKey, broker: BrokerId, part: Option<(&str, i32)>, struck: &mut Struck) {
        if self.faults.is_empty() {
            return;
        }
        for fault in &mut self.faults {
            let matches = fault.api.is_none_or(|wanted| wanted == api)
                && fault.broker.is_none_or(|wanted| wanted == broker)
                && match (part, &fault.topic) {
                    (None, None) => true,
                    (Some((topic, partition)), Some(wanted)) => {
                        wanted == topic && fault.partition.is_none_or(|wanted| wanted == partition)
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
            FaultAction::LoseAnswer => self.lose_answer = true,
            FaultAction::NeverAnswer => self.never_answer = true,
            FaultAction::Delay(delay) => self.delay = self.delay.max(*delay),
            FaultAction::Throttle(throttle) => self.throttle = self.throttle.max(*throttle),
            FaultAction::ShiftCorrelationId(shift) => self.correlation_shift = *shift,
            FaultAction::TruncateAnswer(len) => self.truncate = Some(*len),
            FaultAction::ReplaceAnswer(bytes) => self.replace = Some(bytes.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_strikes_after_its_skips_and_ends_after_its_times() {
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
    fn a_script_gives_each_request_its_own_step_and_a_brokers_goes_first() {
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
    fn a_script_of_a_partition_strikes_only_its_part_of_a_request() {
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
    fn a_fault_with_a_topic_strikes_only_that_topics_part() {
        let mut faults = Faults::default();
        faults.push(Fault::new(FaultAction::LoseAnswer).topic("t").partition(1));
        let mut struck = Struck::default();
        faults.strike_request(ApiKey::Produce, BrokerId(1), &mut struck);
        faults.strike_partition(ApiKey::Produce, BrokerId(1), "t", 0, &mut struck);
        faults.strike_partition(ApiKey::Produce, BrokerId(1), "u", 1, &mut struck);
        assert!(!struck.lose_answer);
        faults.strike_partition(ApiKey::Produce, BrokerId(1), "t", 1, &mut struck);
        assert!(struck.lose_answer);
    }
}
