//! `ottla reassign plan`: a plan that moves as few replicas as its aim needs.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use clap::Args;
use ottla::{Admin, TopicPartition};

use super::plan::{self, Plan};
use super::sizes::Sizes;
use super::{current, shown};
use crate::client_options::call_timeout;
use crate::commands::admin_command::{Common, Partitions, partitions, resolve};
use crate::failure::{Failure, Outcome};
use crate::standard_error::note;

/// Print a plan for another number of replicas, without a broker, or balanced, that moves as little as possible
///
/// Replicas stay where they are unless the aim needs it. New ones are placed on the brokers with the fewest replicas, in racks that
/// the partition does not have yet. Standard error says how many bytes each broker will receive. `ottla reassign execute` runs the
/// plan, limited by --throttle, and prints the one that undoes it.
#[derive(Args, Debug)]
pub struct PlanOptions {
    #[command(flatten)]
    pub common: Common,

    /// Partitions, as TOPIC or TOPIC:PARTITION,... [default: all partitions]
    #[arg(value_name = "PARTITIONS", value_parser = partitions)]
    partitions: Vec<Partitions>,

    /// The number of replicas [default: as now]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..))]
    replication_factor: Option<u16>,

    /// Move all replicas away from these brokers
    #[arg(long, value_name = "ID,...", value_delimiter = ',')]
    remove_broker: Vec<i32>,

    /// Move replicas from brokers with many to those with few, such as new ones
    #[arg(long)]
    balance: bool,

    /// Move replicas from brokers with many bytes to those with few, until they differ by at most a twentieth of the average
    #[arg(long, conflicts_with = "balance")]
    balance_size: bool,

    /// Let each broker be the preferred leader of as many partitions as the others, without moving data
    #[arg(long)]
    balance_leaders: bool,
}

impl PlanOptions {
    /// Runs the command.
    pub fn run(&self, admin: &Admin) -> Outcome {
        let cluster = admin.metadata(None, call_timeout())?;
        let keys: Vec<TopicPartition> = match self.partitions.is_empty() {
            true => {
                let of = |topic: &ottla::TopicDescription| {
                    let name = topic.name.clone();
                    topic
                        .partitions
                        .iter()
                        .map(move |one| TopicPartition::new(name.as_str(), one.id))
                        .collect::<Vec<_>>()
                };
                cluster.topics.iter().flat_map(of).collect()
            }
            false => resolve(admin, &self.partitions)?
                .iter()
                .map(|(topic, partition)| TopicPartition::new(topic.as_str(), *partition))
                .collect(),
        };
        let removed: BTreeSet<i32> = self.remove_broker.iter().copied().collect();
        let staying = cluster.brokers.iter().filter(|broker| !removed.contains(&broker.id));
        let racks = staying.map(|broker| (broker.id, broker.rack.clone())).collect();
        let now = current(admin, keys.into_iter())?;
        let mut placement = Placement::new(now.clone(), racks);
        placement.place(self.replication_factor.map(usize::from)).map_err(Failure::Usage)?;
        if self.balance {
            placement.balance();
        }
        let mut sizes = None;
        if self.balance_size {
            let known = Sizes::of_all(admin, &now)?;
            placement.balance_by_size(|key| known.bytes(key));
            sizes = Some(known);
        }
        if self.balance_leaders {
            placement.balance_leaders();
        }
        let mut plan = placement.plan;
        plan.retain(|key, replicas| now.get(key) != Some(replicas));
        if plan.is_empty() {
            note!("% nothing has to move");
        }
        let sizes = sizes.map_or_else(|| Sizes::of(admin, &plan, &now), Ok)?;
        sizes.summary(&plan, &now).iter().for_each(|line| note!("% {line}"));
        // Without a change of the other output: the plan itself is JSON.
        writeln!(io::stdout(), "{:#}", plan::to_json(&plan))?;
        Ok(())
    }
}

/// Where replicas are placed.
#[derive(Debug)]
pub struct Placement {
    /// The replicas of each partition.
    pub plan: Plan,
    /// The racks of the brokers that can have replicas.
    pub racks: BTreeMap<i32, Option<String>>,
    /// The number of replicas of each broker.
    loads: BTreeMap<i32, usize>,
}

impl Placement {
    /// Counts the replicas of brokers.
    pub fn new(plan: Plan, racks: BTreeMap<i32, Option<String>>) -> Placement {
        let mut loads: BTreeMap<i32, usize> = racks.keys().map(|broker| (*broker, 0)).collect();
        for broker in plan.values().flatten() {
            if let Some(load) = loads.get_mut(broker) {
                *load += 1;
            }
        }
        Placement { plan, racks, loads }
    }

    /// Drops replicas of brokers that are gone or too many, and adds those that are missing.
    fn place(&mut self, count: Option<usize>) -> Result<(), String> {
        let keys: Vec<TopicPartition> = self.plan.keys().cloned().collect();
        for key in keys {
            let mut replicas = self.plan.get(&key).cloned().unwrap_or_default();
            let count = count.unwrap_or(replicas.len());
            if count > self.racks.len() {
                return Err(format!(
                    "{} needs {count} replicas, for {} brokers",
                    shown(&key),
                    self.racks.len()
                ));
            }
            replicas.retain(|broker| self.racks.contains_key(broker));
            while replicas.len() > count {
                // The preferred leader stays.
                let Some(at) = (1..replicas.len()).max_by_key(|at| self.badness(&replicas, replicas[*at]))
                else {
                    break;
                };
                self.add_load(replicas.remove(at), -1);
            }
            while replicas.len() < count {
                let Some(broker) = self.best(&replicas) else { break };
                replicas.push(broker);
                self.add_load(broker, 1);
            }
            self.plan.insert(key, replicas);
        }
        Ok(())
    }

    /// Moves replicas from the broker with the most to that with the fewest, as long as they differ by more than one.
    fn balance(&mut self) {
        while let Some((key, from, to)) = self.next_move() {
            if let Some(replica) = self
                .plan
                .get_mut(&key)
                .and_then(|replicas| replicas.iter_mut().find(|broker| **broker == from))
            {
                *replica = to;
            }
            self.add_load(from, -1);
            self.add_load(to, 1);
        }
    }

    /// Returns a move that makes the loads more even and loses no rack.
    fn next_move(&self) -> Option<(TopicPartition, i32, i32)> {
        let mut by_load: Vec<(usize, i32)> =
            self.loads.iter().map(|(broker, load)| (*load, *broker)).collect();
        by_load.sort_unstable();
        for (most, from) in by_load.iter().rev() {
            for (least, to) in by_load.iter().take_while(|(least, _)| least + 1 < *most) {
                debug_assert!(least < most);
                let fits = |replicas: &Vec<i32>| self.can_move(replicas, *from, *to);
                if let Some((key, _)) = self.plan.iter().find(|(_, replicas)| fits(replicas)) {
                    return Some((key.clone(), *from, *to));
                }
            }
        }
        None
    }

    /// True if a replica can move between two brokers, and the partition keeps its racks.
    pub fn can_move(&self, replicas: &[i32], from: i32, to: i32) -> bool {
        let others: Vec<i32> = replicas.iter().copied().filter(|broker| *broker != from).collect();
        replicas.contains(&from)
            && !replicas.contains(&to)
            && self.shares_rack(&others, to) <= self.shares_rack(&others, from)
    }

    /// Makes the replica first whose broker leads the fewest partitions so far.
    fn balance_leaders(&mut self) {
        let mut leads: BTreeMap<i32, usize> = BTreeMap::new();
        for replicas in self.plan.values_mut() {
            let fewest = |at: &usize| leads.get(&replicas[*at]).copied().unwrap_or(0);
            let Some(at) = (0..replicas.len()).min_by_key(fewest) else { continue };
            let leader = replicas.remove(at);
            replicas.insert(0, leader);
            *leads.entry(leader).or_default() += 1;
        }
    }

    /// Changes the number of replicas of a broker.
    pub fn add_load(&mut self, broker: i32, change: isize) {
        let load = self.loads.entry(broker).or_default();
        *load = load.saturating_add_signed(change);
    }

    /// Returns the broker for one more replica; of equal ones that which follows the last replica.
    fn best(&self, replicas: &[i32]) -> Option<i32> {
        let last = replicas.last().copied().unwrap_or(-1);
        let free = self.racks.keys().copied().filter(|broker| !replicas.contains(broker));
        free.min_by_key(|broker| (self.badness(replicas, *broker), *broker < last, *broker))
    }

    /// Orders brokers of a partition: those in a rack of another replica last, then those with many replicas.
    fn badness(&self, replicas: &[i32], broker: i32) -> (usize, usize) {
        let others: Vec<i32> = replicas.iter().copied().filter(|other| *other != broker).collect();
        (self.shares_rack(&others, broker), self.loads.get(&broker).copied().unwrap_or(0))
    }

    /// Returns the number of replicas in the rack of a broker.
    fn shares_rack(&self, others: &[i32], broker: i32) -> usize {
        let rack = |broker: i32| self.racks.get(&broker).and_then(Option::as_deref);
        let Some(own) = rack(broker) else { return 0 };
        others.iter().filter(|other| rack(**other) == Some(own)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placement(replicas: &[&[i32]], racks: &[(i32, &str)]) -> Placement {
        let plan = (0..)
            .zip(replicas)
            .map(|(number, replicas)| (TopicPartition::new("t", number), replicas.to_vec()));
        let rack = |rack: &str| (!rack.is_empty()).then(|| rack.to_owned());
        Placement::new(plan.collect(), racks.iter().map(|(id, name)| (*id, rack(name))).collect())
    }

    fn replicas(placement: &Placement) -> Vec<Vec<i32>> {
        placement.plan.values().cloned().collect()
    }

    const THREE: [(i32, &str); 3] = [(1, ""), (2, ""), (3, "")];

    #[test]
    fn other_number_of_replicas_keeps_those_that_are_there() {
        let mut more = placement(&[&[1], &[2], &[3]], &THREE);
        more.place(Some(2)).unwrap();
        assert!(replicas(&more).iter().zip([1, 2, 3]).all(|(all, first)| all[0] == first && all.len() == 2));
        assert!(more.loads.values().all(|load| *load == 2), "{more:?}");
        let mut fewer = placement(&[&[1, 2, 3], &[1, 2, 3], &[1, 2, 3]], &THREE);
        fewer.place(Some(1)).unwrap();
        assert_eq!(replicas(&fewer), [[1], [1], [1]], "leaders stay");
        assert!(
            placement(&[&[1]], &THREE)
                .place(Some(4))
                .unwrap_err()
                .contains("needs 4 replicas, for 3 brokers")
        );
    }

    #[test]
    fn replicas_of_a_removed_broker_move_and_racks_stay_apart() {
        let racks = [(1, "a"), (2, "a"), (4, "b")];
        let mut without = placement(&[&[1, 3], &[3, 4], &[2, 4]], &racks);
        without.place(None).unwrap();
        let all = replicas(&without);
        assert_eq!(all[0], [1, 4], "the other rack");
        assert_eq!((all[1][0], all[2].clone()), (4, vec![2, 4]));
    }

    #[test]
    fn balance_moves_only_what_evens_the_loads() {
        let mut uneven = placement(&[&[1, 2], &[1, 2], &[1, 2], &[2, 1]], &THREE);
        uneven.balance();
        let loads: Vec<usize> = uneven.loads.values().copied().collect();
        assert!(loads.iter().max().unwrap() - loads.iter().min().unwrap() <= 1, "{loads:?}");
        let before = replicas(&uneven);
        uneven.balance();
        assert_eq!(replicas(&uneven), before);
        let mut leaders = placement(&[&[1, 2], &[1, 2], &[1, 2], &[1, 2]], &THREE[..2]);
        leaders.balance_leaders();
        assert_eq!(replicas(&leaders), [[1, 2], [2, 1], [1, 2], [2, 1]]);
    }
}
