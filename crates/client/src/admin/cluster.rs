//! Calls about features, the controllers' quorum and the members of the cluster.

use std::collections::BTreeMap;

use ottla_core::{
    admin::{
        broker_apis::{BrokerApis, describe_broker_apis},
        features::{FeatureUpdate, Features, describe_features, update_features},
        item_results::ItemResults,
        quorum::{
            QuorumDescription, Voter, VoterListener, add_voter, describe_quorum, remove_voter,
            unregister_broker, unregister_controller,
        },
    },
    error::Result,
};

use super::calls::{calls, check_name, invalid};

calls! {
    /// Describes the features of the cluster: the versions that a broker supports, and those that the cluster uses.
    fn describe_features, describe_features_async(&self; options) -> Features {
        self.ask("describe_features", options, Ok(()), |(), done| describe_features(options.timeout, done))
    }

    /// Describes the APIs of all brokers, by key, with their versions and the one that this client uses. A broker that fails has
    /// an error.
    fn describe_broker_apis, describe_broker_apis_async(&self; options) -> BrokerApis {
        self.ask("describe_broker_apis", options, Ok(()), |(), done| describe_broker_apis(options.timeout, done))
    }

    /// Changes the versions of features that the cluster uses. Each feature has a result. Needs Kafka 2.7 or later.
    fn update_features, update_features_async(
        &self,
        updates: &BTreeMap<String, FeatureUpdate>;
        options
    ) -> ItemResults<String, ()> {
        let checked = check_updates(updates).map(|()| updates.clone());
        self.ask("update_features", options, checked, |updates, done| {
            update_features(updates, options.validate_only, options.timeout, done)
        })
    }

    /// Describes the controllers' quorum: leader, voters and observers, and their progress. Needs Kafka 3.0 or later with KRaft.
    ///
    /// ```
    /// # fn example(admin: &ottla::Admin) -> ottla::Result<()> {
    /// let quorum = admin.describe_quorum(std::time::Duration::from_secs(10))?;
    /// for voter in &quorum.voters {
    ///     println!("{} lags by {}", voter.id, quorum.high_watermark - voter.log_end_offset);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    fn describe_quorum, describe_quorum_async(&self; options) -> QuorumDescription {
        self.ask("describe_quorum", options, Ok(()), |(), done| describe_quorum(options.timeout, done))
    }

    /// Makes a controller a voter of the quorum. With a cluster ID, another cluster refuses. Needs Kafka 3.9 or later.
    fn add_raft_voter, add_raft_voter_async(
        &self,
        cluster_id: Option<&str>,
        voter: Voter,
        listeners: &[VoterListener];
        options
    ) -> () {
        let checked = check_voter(voter).and_then(|()| match listeners {
            [] => Err(invalid("no listeners; name at least the controller's")),
            _ => listeners.iter().try_for_each(|one| {
                check_name("name of a listener", &one.name)?;
                check_name("host of a listener", &one.host)
            }),
        });
        let arguments = checked.map(|()| (cluster_id.map(str::to_owned), listeners.to_vec()));
        self.ask("add_raft_voter", options, arguments, |(cluster_id, listeners), done| {
            add_voter(cluster_id, voter, listeners, options.timeout, done)
        })
    }

    /// Removes a controller from the voters of the quorum. With a cluster ID, another cluster refuses. Needs Kafka 3.9 or later.
    fn remove_raft_voter, remove_raft_voter_async(&self, cluster_id: Option<&str>, voter: Voter; options) -> () {
        let arguments = check_voter(voter).map(|()| cluster_id.map(str::to_owned));
        self.ask("remove_raft_voter", options, arguments, |cluster_id, done| {
            remove_voter(cluster_id, voter, options.timeout, done)
        })
    }

    /// Removes a broker that is shut down from the cluster. Needs KRaft.
    fn unregister_broker, unregister_broker_async(&self, broker: i32; options) -> () {
        let checked = match broker {
            0.. => Ok(()),
            _ => Err(invalid(format!("broker {broker}; IDs of brokers are at least 0"))),
        };
        self.ask("unregister_broker", options, checked, |(), done| {
            unregister_broker(broker, options.timeout, done)
        })
    }

    /// Removes the registration of a controller that is shut down, for example one that was removed from the voters. Needs Kafka 4.4 or later.
    fn unregister_controller, unregister_controller_async(&self, controller: i32; options) -> () {
        let checked = match controller {
            0.. => Ok(()),
            _ => Err(invalid(format!("controller {controller}; IDs of controllers are at least 0"))),
        };
        self.ask("unregister_controller", options, checked, |(), done| {
            unregister_controller(controller, options.timeout, done)
        })
    }
}

fn check_updates(updates: &BTreeMap<String, FeatureUpdate>) -> Result<()> {
    if updates.is_empty() {
        return Err(invalid("no features; name at least one"));
    }
    updates.iter().try_for_each(|(feature, update)| {
        check_name("name of a feature", feature)?;
        match update.version {
            0.. => Ok(()),
            version => {
                Err(invalid(format!("version {version} of feature {feature}; versions are at least 0")))
            }
        }
    })
}

fn check_voter(voter: Voter) -> Result<()> {
    if voter.id < 0 {
        return Err(invalid(format!("controller {}; node IDs are at least 0", voter.id)));
    }
    if voter.directory_id.is_zero() {
        return Err(invalid("the directory ID is zero; use the one of the controller's meta.properties"));
    }
    Ok(())
}
