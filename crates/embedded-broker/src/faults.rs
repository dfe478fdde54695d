//! What goes wrong on purpose.

use std::time::Duration;

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

/// All faults that are set, in the order in which they were.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    faults: Vec<Fault>,
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
}

impl Faults {
    pub fn push(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    pub fn clear(&mut self) {
        self.faults.clear();
    }

    pub fn is_empty(&self) -> bool {
        self.faults.is_empty()
    }

    /// The faults without a topic that strike this request.
    pub fn strike_request(&mut self, api: ApiKey, broker: BrokerId, struck: &mut Struck) {
        self.strike(api, broker, None, struck);
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
