//! Which quota is for a client: the most specific one, in Kafka's order.

use crate::{administration::QuotaEntity, cluster::Cluster, connection::Request};

/// The clients that share a quota: those with this user and client ID; `None` stands for any.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Scope {
    user: Option<String>,
    client_id: Option<String>,
}

/// How an entity names users or client IDs.
#[derive(Clone, Copy)]
enum Named {
    Exactly,
    ByDefault,
    Not,
}

use Named::{ByDefault, Exactly, Not};

/// (user, client ID), the most specific first.
const ORDER: [(Named, Named); 8] = [
    (Exactly, Exactly),
    (Exactly, ByDefault),
    (Exactly, Not),
    (ByDefault, Exactly),
    (ByDefault, ByDefault),
    (ByDefault, Not),
    (Not, Exactly),
    (Not, ByDefault),
];

impl Cluster {
    /// Returns the quota of a client, and who shares it. A default applies to each user and client ID by itself.
    pub(super) fn quota_for(&self, request: &Request, key: &str) -> Option<(Scope, f64)> {
        let quotas = &self.administration.quotas;
        if quotas.is_empty() {
            return None;
        }
        let user = self.principal(request.connection).unwrap_or("ANONYMOUS");
        let client_id = request.client_id.as_deref().unwrap_or_default();
        ORDER.into_iter().find_map(|(of_users, of_clients)| {
            let mut entity = QuotaEntity::new();
            let mut scope = Scope::default();
            for (kind, named, name, place) in [
                ("user", of_users, user, &mut scope.user),
                ("client-id", of_clients, client_id, &mut scope.client_id),
            ] {
                let entry = match named {
                    Exactly => Some(name.to_owned()),
                    ByDefault => None,
                    Not => continue,
                };
                entity.insert(kind.to_owned(), entry);
                *place = Some(name.to_owned());
            }
            // A quota of 0 would be a wait without end.
            let quota = quotas.get(&entity)?.get(key).copied().filter(|quota| *quota > 0.0)?;
            Some((scope, quota))
        })
    }
}
