//! How many bytes a plan moves, as the brokers' directories say.

use std::collections::{BTreeMap, BTreeSet};

use ottla::{Admin, TopicPartition};

use super::plan::Plan;
use crate::client_options::call_timeout;
use crate::failure::Outcome;
use crate::top::figures;

/// The sizes of partitions, in bytes: that of the largest replica.
#[derive(Debug, Default)]
pub struct Sizes {
    bytes: BTreeMap<TopicPartition, i64>,
    /// Why some brokers did not say the sizes of their replicas.
    failures: Vec<String>,
}

impl Sizes {
    /// Asks the brokers that are up and have replicas for the sizes of the partitions that get new ones. What they refuse is not an
    /// error: a plan needs no sizes.
    ///
    /// # Errors
    ///
    /// The cluster can't be described.
    pub fn of(admin: &Admin, plan: &Plan, now: &Plan) -> Outcome<Sizes> {
        let moving = |(key, replicas): &(&TopicPartition, &Vec<i32>)| !added(now, key, replicas).is_empty();
        let keys: Vec<&TopicPartition> = plan.iter().filter(moving).map(|(key, _)| key).collect();
        Sizes::ask(admin, &keys, now)
    }

    /// Asks for the sizes of all partitions. See [`Sizes::of`].
    ///
    /// # Errors
    ///
    /// The cluster can't be described.
    pub fn of_all(admin: &Admin, now: &Plan) -> Outcome<Sizes> {
        Sizes::ask(admin, &now.keys().collect::<Vec<_>>(), now)
    }

    fn ask(admin: &Admin, keys: &[&TopicPartition], now: &Plan) -> Outcome<Sizes> {
        let having: BTreeSet<i32> = keys.iter().filter_map(|key| now.get(*key)).flatten().copied().collect();
        if having.is_empty() {
            return Ok(Sizes::default());
        }
        // One that is down would only be waited for.
        let up = admin.describe_cluster(call_timeout())?.brokers;
        let brokers: Vec<i32> = up.iter().map(|broker| broker.id).filter(|id| having.contains(id)).collect();
        let asked: Vec<(&str, i32)> = keys.iter().map(|key| (&*key.topic, key.partition)).collect();
        let mut sizes = Sizes::default();
        let described = match admin.describe_log_dirs(Some(&brokers), Some(&asked), call_timeout()) {
            Ok(described) => described,
            Err(error) => {
                sizes.failures.push(error.to_string());
                return Ok(sizes);
            }
        };
        for (broker, dirs) in described {
            match dirs {
                Err(error) => sizes.failures.push(format!("broker {broker}: {error}")),
                Ok(dirs) => {
                    let replicas = dirs.into_iter().flat_map(|dir| dir.replicas);
                    for (key, replica) in replicas.filter(|(_, replica)| !replica.is_future) {
                        let known = sizes.bytes.entry(key).or_default();
                        *known = replica.size.max(*known);
                    }
                }
            }
        }
        Ok(sizes)
    }

    /// Returns the size of a partition; `None` if no broker said it.
    pub fn bytes(&self, key: &TopicPartition) -> Option<i64> {
        self.bytes.get(key).copied()
    }

    /// Returns the bytes that a partition's new replicas fetch; `None` if no broker said its size.
    pub fn moved(&self, now: &Plan, key: &TopicPartition, replicas: &[i32]) -> Option<i64> {
        let count = added(now, key, replicas).len() as i64;
        if count == 0 {
            return Some(0);
        }
        self.bytes.get(key).map(|bytes| bytes.saturating_mul(count))
    }

    /// Says how much each broker receives.
    pub fn summary(&self, plan: &Plan, now: &Plan) -> Vec<String> {
        let mut of_brokers: BTreeMap<i32, Load> = BTreeMap::new();
        let mut total = Load::default();
        for (key, replicas) in plan {
            for broker in added(now, key, replicas) {
                let bytes = self.bytes.get(key).copied();
                of_brokers.entry(broker).or_default().add(bytes);
                total.add(bytes);
            }
        }
        let mut lines = Vec::new();
        if total.replicas > 0 {
            lines.push(format!("{} moved", total.text()));
            lines.extend(
                of_brokers.iter().map(|(broker, load)| format!("  to broker {broker}: {}", load.text())),
            );
        }
        lines.extend(self.failures.iter().map(|failure| format!("sizes are missing: {failure}")));
        lines
    }
}

/// What one broker receives.
#[derive(Debug, Default)]
struct Load {
    replicas: usize,
    bytes: i64,
    unknown: usize,
}

impl Load {
    fn add(&mut self, bytes: Option<i64>) {
        self.replicas += 1;
        self.bytes = self.bytes.saturating_add(bytes.unwrap_or(0));
        self.unknown += usize::from(bytes.is_none());
    }

    fn text(&self) -> String {
        let replicas = if self.replicas == 1 { "replica" } else { "replicas" };
        let unknown = match self.unknown {
            0 => String::new(),
            count => format!(", and {count} of unknown size"),
        };
        format!("{} {replicas}, {}{unknown}", self.replicas, size(self.bytes))
    }
}

/// Formats a number of bytes with its unit.
fn size(bytes: i64) -> String {
    let short = figures::bytes(bytes as f64);
    if short.ends_with('B') { short } else { format!("{short}iB") }
}

/// Returns the brokers that get a replica which they do not have.
fn added(now: &Plan, key: &TopicPartition, replicas: &[i32]) -> Vec<i32> {
    let before = now.get(key).map(Vec::as_slice).unwrap_or_default();
    replicas.iter().copied().filter(|broker| !before.contains(broker)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_new_replicas_are_counted() {
        let plan = |replicas: &[&[i32]]| -> Plan {
            let key = |at: usize| TopicPartition::new("t", at as i32);
            replicas.iter().enumerate().map(|(at, replicas)| (key(at), replicas.to_vec())).collect()
        };
        let now = plan(&[&[1, 2], &[2, 3], &[3, 1], &[1]]);
        let after = plan(&[&[2, 1], &[4, 3], &[4, 5], &[1, 4]]);
        let bytes = (0..3).map(|at| (TopicPartition::new("t", at), 1 << (20 + at))).collect();
        let sizes = Sizes { bytes, failures: vec!["broker 1: refused".into()] };
        let moved: Vec<_> = after.iter().map(|(key, replicas)| sizes.moved(&now, key, replicas)).collect();
        assert_eq!(moved, [Some(0), Some(2 << 20), Some(8 << 20), None]);
        assert_eq!(
            sizes.summary(&after, &now),
            [
                "4 replicas, 10.0MiB, and 1 of unknown size moved",
                "  to broker 4: 3 replicas, 6.0MiB, and 1 of unknown size",
                "  to broker 5: 1 replica, 4.0MiB",
                "sizes are missing: broker 1: refused"
            ]
        );
        assert_eq!((size(0), size(1023), size(2048)), ("0B".into(), "1023B".into(), "2.0KiB".into()));
        assert!(Sizes::default().summary(&now, &now).is_empty());
    }
}
