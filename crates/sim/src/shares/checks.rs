//! The checks after the first phase.

use std::{sync::Arc, time::Duration};

use ottla_core::machine::Instant;

use super::{GROUP, LEAVE, Run, SESSION, TOPIC, member::State, setup::Setup};
use crate::checkers::Broken;

impl Run {
    /// Waits until every record is finished and every acknowledgement has an outcome.
    pub(super) fn drain(&mut self) -> Result<(), Broken> {
        // A record may need all of its deliveries, one after the other.
        let patience = SESSION + self.setup.lock * 4 + Duration::from_secs(60) + self.polling_time();
        let deadline = self.awake() + patience;
        loop {
            let until = self.world.now + Duration::from_millis(200);
            while self.world.now < until {
                self.step()?;
            }
            let Some(what) = self.unfinished() else { return Ok(()) };
            if self.world.now > deadline {
                return Err(Broken::new("drain", what));
            }
        }
    }

    /// Returns when no host sleeps any more.
    fn awake(&self) -> Instant {
        let until = self.members.iter().map(|member| member.frozen_until).max();
        until.unwrap_or(Instant::ZERO).max(self.world.now)
    }

    /// Returns how long polls take for all unfinished records, if one member gets all of them.
    fn polling_time(&mut self) -> Duration {
        let Setup { delivery_count_limit, max_poll_records, max_record_locks, .. } = self.setup;
        // Before their last delivery records are handed out one by one: with two deliveries, always.
        let per_poll = if delivery_count_limit <= 2 { 1 } else { max_poll_records.min(max_record_locks) };
        let mut records = 0;
        for partition in 0..self.setup.partitions {
            let control = self.world.cluster.control();
            let start = control.share_progress(GROUP, TOPIC, partition).map_or(0, |it| it.start_offset);
            let end = control.partition(TOPIC, partition).map_or(0, |it| it.log_end_offset);
            records += u32::try_from(end - start).unwrap_or(0);
        }
        let round_trip = (self.setup.network.latency + self.setup.network.jitter) * 2;
        (Duration::from_millis(60) + round_trip) * (records / u32::try_from(per_poll).unwrap_or(1).max(1))
    }

    /// Returns what is not finished.
    fn unfinished(&mut self) -> Option<String> {
        if self.producer.queued_messages() > 0 {
            return Some("the producer has records".to_owned());
        }
        for partition in 0..self.setup.partitions {
            let control = self.world.cluster.control();
            let end = control.partition(TOPIC, partition)?.log_end_offset;
            let progress = control.share_progress(GROUP, TOPIC, partition).unwrap_or_default();
            if progress.start_offset < end {
                return Some(format!("[{partition}] ends at {end}: {progress:?}"));
            }
        }
        let busy = self.members.iter().find(|member| member.is_running() && member.is_busy());
        if let Some(member) = busy {
            return Some(format!("member {} has records", member.index));
        }
        self.ledger.unsettled()
    }

    /// A record of which a success was reported is finished. Brokers report success, too, for what another member finished.
    pub(super) fn check_claims(&mut self) -> Result<(), Broken> {
        for (partition, offset) in std::mem::take(&mut self.ledger.claims) {
            let progress = self.world.cluster.control().share_progress(GROUP, TOPIC, partition);
            let progress = progress.unwrap_or_default();
            let mut finished = progress.acknowledged.iter().chain(&progress.archived);
            let is_within = |(first, last): &(i64, i64)| (*first..=*last).contains(&offset);
            if offset >= progress.start_offset && !finished.any(is_within) {
                let what = format!("success was reported for offset {offset} of [{partition}]: {progress:?}");
                return Err(Broken::new("finished", what));
            }
        }
        Ok(())
    }

    /// Each finished record has a verdict, or was delivered as often as allowed.
    pub(super) fn check_verdicts(&mut self) -> Result<(), Broken> {
        for partition in 0..self.setup.partitions {
            let end =
                self.world.cluster.control().partition(TOPIC, partition).map_or(0, |it| it.log_end_offset);
            for offset in 0..end {
                let record = self.ledger.records.get(&(partition, offset));
                let is_decided = record.is_some_and(|it| it.accept_asked || it.reject_asked);
                let is_used_up = record.is_some_and(|it| it.count >= self.setup.delivery_count_limit);
                // Records may be used up by deliveries that never arrived, or whose locks ended in a queue.
                let may_be_lost = self.setup.delivery_count_limit < 1_000;
                if !is_decided && !is_used_up && !may_be_lost {
                    let what =
                        format!("offset {offset} of [{partition}] is finished without a verdict: {record:?}");
                    return Err(Broken::new("verdicts", what));
                }
            }
        }
        Ok(())
    }

    /// Without faults, no lock ends of records that are renewed.
    pub(super) fn check_renewals(&self) -> Result<(), Broken> {
        let Setup { renews_locks, permits_renewals, version, .. } = self.setup;
        let expired = self.members.iter().find(|member| member.expired > 0);
        match expired {
            Some(member) if self.setup.is_calm() && renews_locks && permits_renewals && version >= 2 => Err(
                Broken::new("renewal", format!("{} locks of member {} ended", member.expired, member.index)),
            ),
            _ => Ok(()),
        }
    }

    /// All members leave in time, and keep nothing.
    pub(super) fn leave_all(&mut self) -> Result<(), Broken> {
        for index in 0..self.members.len() {
            if self.members[index].is_running() {
                let commands = Arc::clone(&self.world.clients[self.members[index].client].commands);
                self.members[index].leave(self.world.now, LEAVE, &commands);
            }
        }
        let deadline = self.awake() + LEAVE + Duration::from_secs(1);
        while self.members.iter().any(|member| matches!(member.state, State::Leaving(..))) {
            self.step()?;
            if self.world.now > deadline {
                return Err(Broken::new("close", "a member does not leave"));
            }
        }
        for partition in 0..self.setup.partitions {
            let progress = self.world.cluster.control().share_progress(GROUP, TOPIC, partition);
            if let Some(progress) = progress.filter(|progress| !progress.acquired.is_empty()) {
                return Err(Broken::new("close", format!("[{partition}]: {progress:?}")));
            }
        }
        match self.ledger.unsettled() {
            Some(what) => Err(Broken::new("reports", format!("all members have left: {what}"))),
            None => Ok(()),
        }
    }
}
