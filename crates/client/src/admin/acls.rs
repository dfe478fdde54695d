//! Calls about access control lists.

use ottla_core::{
    admin::{
        acls::{
            AclBinding, AclFilter, AclOperation, AclPermission, AclResourceType, DeletedAcls, PatternType,
            create_acls, delete_acls, describe_acls,
        },
        item_results::ItemResults,
    },
    error::Result,
};

use super::{
    calls::{calls, check_name, invalid},
    elements::Elements,
};

calls! {
    /// Creates rules of the brokers' authorizer. The results are in the order of the rules; a rule that exists already is a
    /// success.
    ///
    /// ```
    /// # fn example(admin: &ottla::Admin) -> ottla::Result<()> {
    /// use std::time::Duration;
    ///
    /// use ottla::admin::{AclBinding, AclOperation, AclResourceType};
    ///
    /// let rule = AclBinding::allow("User:alice", AclOperation::Write, AclResourceType::Topic, "orders");
    /// for result in admin.create_acls(&[rule], Duration::from_secs(10))? {
    ///     result?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    fn create_acls, create_acls_async(&self, acls: &[AclBinding]; options) -> Vec<Result<()>> {
        const NAME: &str = "create_acls";
        let check = |acl: &&AclBinding| check_acl(acl).map(|()| (*acl).clone());
        Elements::new(acls, check, |_, error| Err(error)).required("rules").ask(NAME, |acls| {
            self.ask(NAME, options, Ok(acls), |acls, done| create_acls(acls, options.timeout, done))
                .and_then(|results| Ok(by_position(results)))
        })
    }

    /// Describes the rules that match a filter. [`AclFilter::default`] matches all.
    fn describe_acls, describe_acls_async(&self, filter: &AclFilter; options) -> Vec<AclBinding> {
        let checked = check_filter(filter).map(|()| filter.clone());
        self.ask("describe_acls", options, checked, |filter, done| {
            describe_acls(filter, options.timeout, done)
        })
    }

    /// Deletes the rules that match any of the filters. Each filter has a result: the rules that it matched, each with its
    /// error if it was not deleted.
    fn delete_acls, delete_acls_async(&self, filters: &[AclFilter]; options) -> Vec<Result<DeletedAcls>> {
        const NAME: &str = "delete_acls";
        let check = |filter: &&AclFilter| check_filter(filter).map(|()| (*filter).clone());
        Elements::new(filters, check, |_, error| Err(error)).required("filters").ask(NAME, |filters| {
            self.ask(NAME, options, Ok(filters), |filters, done| delete_acls(filters, options.timeout, done))
                .and_then(|results| Ok(by_position(results)))
        })
    }
}

fn by_position<T>(results: ItemResults<usize, T>) -> Vec<Result<T>> {
    results.into_iter().map(|(_, result)| result).collect()
}

fn check_acl(acl: &AclBinding) -> Result<()> {
    check_name("name of a rule's resource", &acl.name)?;
    check_name("principal of a rule", &acl.principal)?;
    check_name("host of a rule", &acl.host)?;
    let vague = if matches!(acl.resource_type, AclResourceType::Unknown | AclResourceType::Any) {
        "resource type"
    } else if !matches!(acl.pattern, PatternType::Literal | PatternType::Prefixed) {
        "pattern type"
    } else if matches!(acl.operation, AclOperation::Unknown | AclOperation::Any) {
        "operation"
    } else if matches!(acl.permission, AclPermission::Unknown | AclPermission::Any) {
        "permission"
    } else {
        return Ok(());
    };
    let detail =
        format!("the rule for {} has no definite {vague}; only filters may leave it open", acl.principal);
    Err(invalid(detail))
}

fn check_filter(filter: &AclFilter) -> Result<()> {
    let texts = [
        ("name of a filter's resource", &filter.name),
        ("principal of a filter", &filter.principal),
        ("host of a filter", &filter.host),
    ];
    texts
        .into_iter()
        .try_for_each(|(what, text)| text.as_ref().map_or(Ok(()), |text| check_name(what, text)))?;
    let unknown = if filter.resource_type == AclResourceType::Unknown {
        "resource type"
    } else if filter.pattern == PatternType::Unknown {
        "pattern type"
    } else if filter.operation == AclOperation::Unknown {
        "operation"
    } else if filter.permission == AclPermission::Unknown {
        "permission"
    } else {
        return Ok(());
    };
    Err(invalid(format!("the {unknown} of the filter is unknown; use Any for all")))
}
