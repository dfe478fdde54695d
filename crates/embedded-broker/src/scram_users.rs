//! The SCRAM credentials that AlterUserScramCredentials changed. They replace those of the listeners' users.

use ottla_sorted::SortedMap;

use crate::{
    cluster::Cluster,
    sasl::{Keys, SaslListener, ScramHash},
};

/// The changed credentials by user and mechanism; `None` for deleted ones.
pub(crate) type ScramChanges = SortedMap<(String, ScramHash), Option<Keys>>;

impl Cluster {
    /// Returns a SASL listener with the changes, and with the delegation tokens.
    pub(crate) fn scram_listener(&self, mut listener: SaslListener) -> SaslListener {
        self.valid_tokens().for_each(|(id, hmac, owner)| listener.add_token(id, hmac, owner));
        self.scram_changes
            .iter()
            .for_each(|((user, hash), keys)| listener.set_keys(user, *hash, keys.as_ref()));
        listener
    }

    /// Returns the number of iterations of each user's credentials.
    pub(crate) fn scram_users(&self) -> SortedMap<String, SortedMap<ScramHash, u32>> {
        let mut users = SortedMap::<String, SortedMap<ScramHash, u32>>::new();
        let further = self.options.listeners.iter().filter_map(|listener| listener.sasl.as_ref());
        for listener in self.options.sasl.iter().chain(further) {
            for (user, hash, iterations) in listener.credentials() {
                users.entry(user.to_owned()).or_default().insert(hash, iterations);
            }
        }
        for ((user, hash), keys) in &self.scram_changes {
            let of_user = users.entry(user.clone()).or_default();
            match keys {
                Some(keys) => drop(of_user.insert(*hash, keys.iterations)),
                None => drop(of_user.remove(hash)),
            }
        }
        users.retain(|_, of_user| !of_user.is_empty());
        users
    }
}
