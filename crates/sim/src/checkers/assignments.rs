//! Checks the assignments that leaders of classic groups send.

use std::time::Duration;

use ottla_core::machine::Instant;
use ottla_protocol::{
    consumer_protocol::ConsumerProtocolAssignment, generated::sync_group::SyncGroupRequest,
};
use ottla_sorted::{SortedMap, SortedSet};

use super::membership::Partitions;

/// The members of a generation: the topics and partitions of each.
pub(super) type LedMembers = SortedMap<String, (SortedSet<String>, Partitions)>;

/// The time after which a leader knows of new partitions.
const LEARNS: Duration = Duration::from_secs(15);

/// Checks the assignment of a leader. `topics` are the numbers of partitions that each topic had, and since when.
pub(super) fn check_assignment(
    now: Instant,
    led: &LedMembers,
    topics: &SortedMap<String, Vec<(Instant, i32)>>,
    request: &SyncGroupRequest,
    has_faults: bool,
) -> Result<(), String> {
    if request.assignments.is_empty() {
        return Ok(());
    }
    let count = |topic: &str, until: Instant| {
        let counts = topics.get(topic).into_iter().flatten();
        counts.filter(|(since, _)| *since <= until).map(|(_, count)| *count).max().unwrap_or(0)
    };
    let (mut assigned, mut sizes) = (SortedMap::new(), Vec::new());
    for entry in &request.assignments {
        let id = &entry.member_id;
        let Some((subscribed, _)) = led.get(id) else {
            return Err(format!("{id} is not in the group"));
        };
        let Ok((_, decoded)) = ConsumerProtocolAssignment::from_bytes(&entry.assignment) else {
            return Err(format!("the assignment of {id} can't be read"));
        };
        sizes.push(0);
        for topic in decoded.assigned_partitions {
            if !subscribed.contains(&topic.topic) {
                return Err(format!("{id} does not subscribe to {}", topic.topic));
            }
            for number in topic.partitions {
                sizes.last_mut().into_iter().for_each(|size| *size += 1);
                let key = (topic.topic.clone(), number);
                if !(0..count(&key.0, now)).contains(&number) {
                    return Err(format!("{key:?} does not exist"));
                }
                if let Some(other) = assigned.insert(key.clone(), id) {
                    return Err(format!("{key:?} is assigned to {other} and {id}"));
                }
            }
        }
    }
    if has_faults {
        return Ok(());
    }
    let is_cooperative = request.protocol_name.as_deref() == Some("cooperative-sticky");
    let owned: SortedSet<_> = led.values().flat_map(|(_, owned)| owned).collect();
    let subscribed: SortedSet<_> = led.values().flat_map(|(topics, _)| topics).collect();
    // The leader learns of new partitions with newer metadata.
    let known = Instant::from_nanos(now.as_nanos().saturating_sub(LEARNS.as_nanos() as u64));
    for topic in subscribed {
        for key in (0..count(topic, known)).map(|number| (topic.clone(), number)) {
            let may_wait = is_cooperative && owned.contains(&key);
            if !may_wait && !assigned.contains_key(&key) {
                return Err(format!("{key:?} is not assigned"));
            }
        }
    }
    let is_even = sizes.iter().max().copied().unwrap_or(0) - sizes.iter().min().copied().unwrap_or(0) <= 1;
    let must_be_even = matches!(request.protocol_name.as_deref(), Some("roundrobin" | "sticky"));
    if must_be_even && !is_even {
        return Err(format!("members get {sizes:?} partitions"));
    }
    Ok(())
}
