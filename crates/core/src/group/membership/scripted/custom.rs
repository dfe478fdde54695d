//! A classic member with an assignor of the application.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use super::{
    super::super::assignor::{
        GroupTable, RebalanceProtocol, Strategy,
        custom::{CustomAssignor, GroupAssignment, MemberAssignment, PartitionAssignor},
    },
    *,
};
use crate::lock::Mutex;

/// An assignor that gives everything to the last member, sends user data, and panics on demand.
#[derive(Default)]
struct ToTheLast {
    panics: AtomicBool,
    panics_at_join: AtomicBool,
    seen: Mutex<Vec<(MemberAssignment, i32)>>,
}

impl PartitionAssignor for ToTheLast {
    fn name(&self) -> &str {
        "to-the-last"
    }

    fn protocols(&self) -> &[RebalanceProtocol] {
        &[RebalanceProtocol::Eager, RebalanceProtocol::Cooperative]
    }

    fn user_data(&self, topics: &std::collections::BTreeSet<Arc<str>>) -> Option<Vec<u8>> {
        assert!(!self.panics_at_join.load(Ordering::Relaxed), "no data");
        Some(vec![topics.len() as u8])
    }

    fn assign(
        &self,
        group: &GroupTable,
    ) -> Result<GroupAssignment, Box<dyn std::error::Error + Send + Sync>> {
        if self.panics.load(Ordering::Relaxed) {
            return Err("no member is good enough".into());
        }
        let mut assignment = GroupAssignment::default();
        let last = group.members().last().ok_or("no members")?;
        for (topic, table) in group.topics() {
            (0..table.partitions()).for_each(|number| {
                assignment.add(&last.id, TopicPartition::new(Arc::clone(topic), number as i32));
            });
        }
        assignment.set_user_data(&last.id, last.user_data.clone().unwrap_or_default());
        Ok(assignment)
    }

    fn on_assignment(&self, assignment: &MemberAssignment, generation: i32) {
        self.seen.lock().push((assignment.clone(), generation));
        assert!(!self.panics_at_join.load(Ordering::Relaxed), "no interest");
    }
}

/// A member with the assignor alone.
fn script(assignor: &Arc<ToTheLast>) -> Script {
    let custom = CustomAssignor::new(Arc::clone(assignor) as _).expect("it is valid");
    let assignors = vec![Strategy::Custom(custom)];
    Script::with(GroupSettings { assignors, ..GroupSettings::with_defaults("g") })
}

fn with_assignor(response: JoinGroupResponse) -> Result<JoinGroupResponse, Error> {
    Ok(JoinGroupResponse { protocol_name: Some("to-the-last".into()), ..response })
}

/// Joins as the leader of these members, which know one topic with two partitions.
fn lead(script: &mut Script, generation: i32) {
    let (term, request) = script.take_join();
    let members = [("a", subscription(&["t"])), ("m", request.protocols[0].metadata.clone())];
    let response = with_assignor(joined("m", generation, "m", &members));
    script.member.handle_join(script.now, term, response);
    script.member.assign(script.now, [(Arc::from("t"), TopicTable::without_racks(2))].into());
    script.settle();
}

#[test]
fn leader_calls_the_assignor_with_the_user_data_of_all() {
    let assignor = Arc::default();
    let mut script = script(&assignor);
    lead(&mut script, 4);
    let (term, request) = script.take_sync();
    assert_eq!(request.protocol_name.as_deref(), Some("to-the-last"));
    let of = |id: &str| {
        let sent = request.assignments.iter().find(|sent| sent.member_id == id);
        sent.expect("each member is listed").assignment.clone()
    };
    assert_eq!(decode_assignment(&of("a")).expect("it can be decoded").len(), 0);
    let response = SyncGroupResponse { assignment: of("m"), ..SyncGroupResponse::default() };
    script.member.handle_sync(script.now, term, Ok(response));
    script.settle();
    assert_eq!(script.take_steps(), ["assign [t [0], t [1]]"]);
    let partitions = [("t", 0), ("t", 1)].map(TopicPartition::from).to_vec();
    let expected = MemberAssignment { partitions, user_data: Some(vec![1]) };
    assert_eq!(*assignor.seen.lock(), [(expected, 4)]);
}

#[test]
fn leader_whose_assignor_fails_leaves_the_group_to_others() {
    let assignor = Arc::new(ToTheLast { panics: true.into(), ..ToTheLast::default() });
    let mut script = script(&assignor);
    lead(&mut script, 1);
    let steps = script.take_steps();
    assert!(steps.len() == 1 && steps[0].contains("no member is good enough"), "{steps:?}");
    assert!(steps[0].contains("next attempt in"), "{steps:?}");
    assert_eq!(script.sent(), ["LeaveGroup"], "it joins again after a back-off");
    script.take("LeaveGroup");
    assert_eq!(script.member.identity(), None);

    // Another failure of the same kind is not reported again.
    script.pass(Duration::from_secs(2));
    lead(&mut script, 3);
    assert_eq!(script.take_steps(), [""; 0]);
    script.take("LeaveGroup");

    // Another member leads now.
    script.pass(Duration::from_secs(2));
    let (term, request) = script.take_join();
    assert_eq!(request.member_id, "");
    script.member.handle_join(script.now, term, with_assignor(joined("m2", 5, "a", &[])));
    script.settle();
    script.sync(Ok(assignment(&[1])));
    assert_eq!(script.take_steps(), ["assign [t [1]]"]);
}

#[test]
fn cooperative_leader_whose_assignor_fails_loses_its_partitions() {
    let assignor = Arc::default();
    let mut script = script(&assignor);
    lead(&mut script, 1);
    script.sync(Ok(assignment(&[0, 1])));
    script.take_steps();
    script.owned = [("t", 0), ("t", 1)].map(TopicPartition::from).into();
    assignor.panics.store(true, Ordering::Relaxed);
    script.beat_after_interval(ErrorCode::REBALANCE_IN_PROGRESS);
    lead(&mut script, 2);
    let steps = script.take_steps();
    assert!(steps.len() == 2 && steps[1] == "lost", "others get its partitions: {steps:?}");
}

#[test]
fn assignor_that_panics_elsewhere_is_reported_and_does_no_harm() {
    let assignor = Arc::new(ToTheLast { panics_at_join: true.into(), ..ToTheLast::default() });
    let mut script = script(&assignor);
    assert!(script.sent().is_empty(), "there is no subscription to send");
    let steps = script.take_steps();
    assert!(steps.len() == 1 && steps[0].contains("`user_data`: no data"), "{steps:?}");

    assignor.panics_at_join.store(false, Ordering::Relaxed);
    script.pass(Duration::from_secs(2));
    let (term, _) = script.take_join();
    script.member.handle_join(script.now, term, with_assignor(joined("m", 1, "a", &[])));
    script.settle();
    assignor.panics_at_join.store(true, Ordering::Relaxed);
    script.sync(Ok(assignment(&[0])));
    let steps = script.take_steps();
    assert!(steps.len() == 2 && steps[1] == "assign [t [0]]", "{steps:?}");
    assert!(steps[0].contains("`on_assignment`: no interest"), "{steps:?}");
}
