//! Faults of logs: records and topics are deleted, tails are cut off.

use super::{FaultKind, Heal, Strike};

impl Strike<'_> {
    /// Injects a fault of these kinds; returns false if it is of another kind.
    pub(super) fn strike_logs(&mut self, kind: FaultKind) -> bool {
        match kind {
            FaultKind::DeleteRecords => self.delete_records(),
            FaultKind::ElectUnclean => self.elect_unclean(),
            FaultKind::DeleteTopic => self.delete_topic(),
            _ => return false,
        }
        true
    }

    /// Deletes records.
    fn delete_records(&mut self) {
        if !self.knobs.records_deleted {
            return;
        }
        let (now, topic, index, partition) = (self.world.now, self.topic.clone(), self.index, self.partition);
        let Some(state) = self.world.cluster.control().partition(&topic, partition) else { return };
        let room = (state.high_watermark - state.log_start_offset).max(0) as u64;
        let start = state.log_start_offset + self.rng.below(room + 1) as i64;
        self.world.trace.note(now, format_args!("{topic} [{partition}] loses the records before {start}"));
        self.world.history.delete(&mut self.world.cluster, &topic, index, partition, start);
    }

    /// Elects a replica without the newest records.
    fn elect_unclean(&mut self) {
        if !self.knobs.unclean {
            return;
        }
        let (now, broker, topic, index, partition) =
            (self.world.now, self.broker, self.topic.clone(), self.index, self.partition);
        let Some(state) = self.world.cluster.control().partition(&topic, partition) else { return };
        let room = (state.log_end_offset - state.log_start_offset).max(0) as u64;
        let end = state.log_start_offset + self.rng.below(room + 1) as i64;
        self.world.trace.note(
            now,
            format_args!("{topic} [{partition}]: {broker:?} is elected and has no more than {end}"),
        );
        if self.world.cluster.control().is_alive(broker) {
            self.world.cluster.control().move_leader(&topic, partition, Some(broker));
        }
        self.world.history.cut(&mut self.world.cluster, &topic, index, partition, end);
    }

    /// Deletes a topic.
    fn delete_topic(&mut self) {
        if !self.knobs.topics_deleted {
            return;
        }
        let (now, until, topic, index, partitions) =
            (self.world.now, self.until, self.topic.clone(), self.index, self.partitions);
        if self.world.cluster.control().topic_id(&topic).is_none() {
            return;
        }
        self.world.trace.note(now, format_args!("{topic} is deleted"));
        self.world.history.delete_topic(&mut self.world.cluster, &topic, index, partitions);
        let at = if self.rng.chance(1, 2) { now } else { until };
        self.heals.push((at, Heal::Create(index, partitions)));
    }
}
