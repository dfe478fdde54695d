//! `ottla check lag`: the lag of groups.

use clap::Args;
use ottla::{GroupFilter, GroupListing};
use ottla_sorted::SortedMap;

use super::report::{CommonOptions, Metric, Report};
use crate::client_options::{ClientOptions, call_timeout};
use crate::commands::groups::{committed_and_ends, finish, resolve};
use crate::events::EventWatch;
use crate::failure::{Failure, Outcome};

const LAG: Metric =
    Metric { name: "ottla_group_lag_messages", help: "Messages of a topic that a group has not read." };

/// Check that groups have not more than a number of messages left to read
#[derive(Args, Debug)]
pub struct LagOptions {
    #[command(flatten)]
    pub common: CommonOptions,

    /// IDs of the groups
    #[arg(value_name = "GROUP", required_unless_present = "all", add = crate::completion::groups())]
    groups: Vec<String>,

    /// All consumer groups
    #[arg(long, conflicts_with = "groups")]
    all: bool,

    /// The most messages that a group may have left in a topic
    #[arg(long, value_name = "COUNT")]
    max: u64,
}

/// Runs the check.
pub fn run(options: &LagOptions, client: &ClientOptions) -> Outcome {
    let (admin, _watch) = EventWatch::connect_admin(client)?;
    let named = (!options.all).then_some(&*options.groups);
    let list = || Ok(admin.list_groups(&GroupFilter::default(), call_timeout())?);
    let (mut report, mut failures) = (Report::default(), Vec::new());
    for group in resolve(named, list, GroupListing::is_of_consumers)? {
        let mut topics: SortedMap<String, i64> = SortedMap::new();
        for (key, (committed, end)) in committed_and_ends(&admin, &group, &mut failures)? {
            // The end can be older than a commit that came between the two requests.
            if let (Some(committed), Some(end)) = (committed, end) {
                *topics.entry(key.topic.to_string()).or_default() += (end - committed).max(0);
            }
        }
        if topics.is_empty() && failures.is_empty() && !options.all {
            return Err(Failure::Failed(format!(
                "group \"{group}\" has no committed offsets; `ottla groups list` prints all groups"
            )));
        }
        for (topic, lag) in topics {
            report.add(LAG, &[("group", &group), ("topic", &topic)], lag as f64, Some(options.max as f64));
        }
    }
    let outcome = report.finish("lag", &options.common);
    finish(failures).and(outcome)
}
