//! The kinds of handles: how each is destroyed, and whether threads may share it.

use std::collections::BTreeSet;

use super::table::Table;

/// Kinds that threads may use at the same time.
const SHARED: [&str; 4] = ["client", "topic", "queue", "mock_cluster"];

/// Kinds whose function is not called `rd_kafka_KIND_destroy`.
const DESTROYED_BY: [(&str, &str); 5] = [
    ("client", "rd_kafka_destroy"),
    ("share", "rd_kafka_share_destroy"),
    ("AclBindingFilter", "rd_kafka_AclBinding_destroy"),
    ("memory", "-"),
    ("conf_view", "-"),
];

/// Returns all kinds with the function that destroys them, `-` for none.
pub fn all(table: &Table) -> Vec<(String, String, bool)> {
    let mut names: BTreeSet<&str> = BTreeSet::from(["mock_cgrp_consumer_target_assignment", "error"]);
    for function in table.functions.values() {
        names.extend(function.makes());
        names.extend(function.parameters.iter().filter_map(super::table::Parameter::kind));
    }
    let kind = |name: &str| {
        let by = DESTROYED_BY.iter().find(|(kind, _)| *kind == name).map(|(_, by)| (*by).to_owned());
        let usual = format!("rd_kafka_{name}_destroy");
        let exists = table.functions.contains_key(&usual);
        let destroy = by.unwrap_or_else(|| if exists { usual } else { "-".to_owned() });
        (name.to_owned(), destroy, SHARED.contains(&name))
    };
    names.into_iter().map(kind).collect()
}
