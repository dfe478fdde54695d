//! Access control lists: creating, describing and deleting rules.

use std::{
    ffi::{CStr, CString, c_char, c_int},
    ptr,
};

use ottla::admin::{
    AclBinding as Rule, AclFilter, AclOperation, AclPermission, AclResourceType, PatternType,
};
use ottla_core::error::Error;

use super::{
    call::{Listed, call, code_in_result, found, objects},
    options::AdminOptions,
};
use crate::{
    client::{
        event::{Event, Failure},
        handle::Client,
        queue::Queue,
    },
    ffi::{
        argument::{Buffer, Handles, Part, Place, Ref, Text},
        boundary::{Handle, Tag, c_text},
        destroyers,
        error::ErrorObject,
        export, getters, or_null, text_or_null,
    },
};

/// `RD_KAFKA_EVENT_CREATEACLS_RESULT`.
pub(super) const CREATED: c_int = 1 << 10;
/// `RD_KAFKA_EVENT_DESCRIBEACLS_RESULT`.
pub(super) const DESCRIBED: c_int = 1 << 11;
/// `RD_KAFKA_EVENT_DELETEACLS_RESULT`.
pub(super) const DELETED: c_int = 1 << 12;

/// The number of resource types in the interface, which lacks some of Kafka's. `BROKER` is Kafka's `CLUSTER`.
const RESOURCE_TYPES: i8 = 6;
/// The number of operations in the interface, which lacks some of Kafka's.
const OPERATIONS: i8 = 13;

const PATTERN_TYPES: [&CStr; 5] = [c"UNKNOWN", c"ANY", c"MATCH", c"LITERAL", c"PREFIXED"];
const OPERATION_NAMES: [&CStr; OPERATIONS as usize] = [
    c"UNKNOWN",
    c"ANY",
    c"ALL",
    c"READ",
    c"WRITE",
    c"CREATE",
    c"DELETE",
    c"ALTER",
    c"DESCRIBE",
    c"CLUSTER_ACTION",
    c"DESCRIBE_CONFIGS",
    c"ALTER_CONFIGS",
    c"IDEMPOTENT_WRITE",
];
const PERMISSIONS: [&CStr; 4] = [c"UNKNOWN", c"ANY", c"DENY", c"ALLOW"];

/// Declares the functions that return the name of a number.
macro_rules! names {
    ($($name:ident($number:ident) of $names:expr;)*) => {$(
        export!(
            #[local(c"UNSUPPORTED".as_ptr())]
            fn $name($number: c_int) -> *const c_char {
                let found = usize::try_from($number).ok().and_then(|number| $names.get(number));
                found.copied().unwrap_or(c"UNSUPPORTED").as_ptr()
            }
        );
    )*};
}

names! {
    rd_kafka_ResourcePatternType_name(resource_pattern_type) of PATTERN_TYPES;
    rd_kafka_AclOperation_name(acl_operation) of OPERATION_NAMES;
    rd_kafka_AclPermissionType_name(acl_permission_type) of PERMISSIONS;
}

/// `rd_kafka_AclBinding_t` and `rd_kafka_AclBindingFilter_t`: of the application, or of a result.
#[repr(C)]
#[derive(Debug)]
pub struct AclBinding {
    tag: Tag,
    filter: AclFilter,
    name: Option<CString>,
    principal: Option<CString>,
    host: Option<CString>,
    error: Option<ErrorObject>,
}

// SAFETY: `repr(C)`, the tag comes first.
unsafe impl Handle for AclBinding {
    const KIND: u32 = 0x6f74_410a;

    fn is_live(kind: u32) -> bool {
        matches!(kind, Self::KIND | OF_A_RESULT)
    }
}

/// The tag of a rule that belongs to a result: it can be read and used as an argument, but not destroyed.
const OF_A_RESULT: u32 = 0x6f74_410b;

impl AclBinding {
    fn new(filter: AclFilter) -> Self {
        let text = |text: &Option<String>| text.as_deref().map(c_text);
        Self {
            tag: Tag::of::<Self>(),
            name: text(&filter.name),
            principal: text(&filter.principal),
            host: text(&filter.host),
            filter,
            error: None,
        }
    }

    fn of_result(rule: &Rule, error: Option<&Error>) -> Self {
        let binding = Self { error: error.map(error_object), ..Self::new(AclFilter::from(rule)) };
        binding.tag.change(Self::KIND, OF_A_RESULT);
        binding
    }

    fn rule(&self) -> Rule {
        let AclFilter { resource_type, name, pattern, principal, host, operation, permission } =
            self.filter.clone();
        let (name, principal) = (name.unwrap_or_default(), principal.unwrap_or_default());
        let host = host.unwrap_or_default();
        Rule { resource_type, name, pattern, principal, host, operation, permission }
    }
}

fn error_object(error: &Error) -> ErrorObject {
    ErrorObject::new(code_in_result(error), error.to_string())
}

/// The numbers of a rule, as the application passes them.
struct Numbers {
    resource_type: c_int,
    pattern: c_int,
    operation: c_int,
    permission: c_int,
}

impl Numbers {
    /// Returns the filter with these values. Error: one of them does not exist, or only in filters.
    fn filter(&self, is_filter: bool) -> Result<AclFilter, &'static str> {
        let known =
            |number: c_int, end: i8| i8::try_from(number).ok().filter(|number| (1..end).contains(number));
        let resource_type = known(self.resource_type, RESOURCE_TYPES).map(AclResourceType::from_number);
        let pattern = known(self.pattern, 5).map(PatternType::from_number);
        let operation = known(self.operation, OPERATIONS).map(AclOperation::from_number);
        let permission = known(self.permission, 4).map(AclPermission::from_number);
        Ok(AclFilter {
            resource_type: resource_type
                .filter(|it| is_filter || *it != AclResourceType::Any)
                .ok_or("Invalid resource type")?,
            pattern: pattern
                .filter(|it| is_filter || matches!(it, PatternType::Literal | PatternType::Prefixed))
                .ok_or("Invalid resource pattern type")?,
            operation: operation
                .filter(|it| is_filter || *it != AclOperation::Any)
                .ok_or("Invalid operation")?,
            permission: permission
                .filter(|it| is_filter || *it != AclPermission::Any)
                .ok_or("Invalid permission type")?,
            ..AclFilter::default()
        })
    }
}

/// Creates a rule or a filter. Error: the reason why the arguments are invalid.
fn new_binding(
    numbers: &Numbers,
    [name, principal, host]: [Text; 3],
    is_filter: bool,
) -> Result<AclBinding, &'static str> {
    let text = |text: Text, missing| match text.get() {
        None if !is_filter => Err(missing),
        text => Ok(text.map(std::borrow::Cow::into_owned)),
    };
    let name = text(name, "Invalid resource name")?;
    let principal = text(principal, "Invalid principal")?;
    let host = text(host, "Invalid host")?;
    Ok(AclBinding::new(AclFilter { name, principal, host, ..numbers.filter(is_filter)? }))
}

/// Declares the functions that create rules and filters.
macro_rules! constructors {
    ($($name:ident, $is_filter:literal;)*) => {$(
        export!(
            #[local(ptr::null_mut())]
            fn $name(
                restype: c_int,
                name: Text,
                resource_pattern_type: c_int,
                principal: Text,
                host: Text,
                operation: c_int,
                permission_type: c_int,
                errstr: Buffer,
                errstr_size: usize,
            ) -> *mut AclBinding {
                let numbers = Numbers {
                    resource_type: restype,
                    pattern: resource_pattern_type,
                    operation,
                    permission: permission_type,
                };
                match new_binding(&numbers, [name, principal, host], $is_filter) {
                    Ok(binding) => Box::into_raw(Box::new(binding)),
                    Err(text) => {
                        errstr.put(errstr_size, text);
                        ptr::null_mut()
                    }
                }
            }
        );
    )*};
}

constructors! {
    rd_kafka_AclBinding_new, false;
    rd_kafka_AclBindingFilter_new, true;
}

destroyers! {
    rd_kafka_AclBinding_destroy(acl_binding), rd_kafka_AclBinding_destroy_array(acl_bindings): AclBinding;
}

/// Returns the number of a value of the protocol, 0 if the interface has none.
fn shown(number: i8, end: i8) -> c_int {
    if number < end { number.into() } else { 0 }
}

getters! {
    fn rd_kafka_AclBinding_restype(acl: Ref<AclBinding>) -> c_int {
        0; shown(acl.filter.resource_type.number(), RESOURCE_TYPES)
    }
    fn rd_kafka_AclBinding_name(acl: Ref<AclBinding>) -> *const c_char {
        ptr::null(); text_or_null(acl.name.as_ref())
    }
    fn rd_kafka_AclBinding_principal(acl: Ref<AclBinding>) -> *const c_char {
        ptr::null(); text_or_null(acl.principal.as_ref())
    }
    fn rd_kafka_AclBinding_host(acl: Ref<AclBinding>) -> *const c_char {
        ptr::null(); text_or_null(acl.host.as_ref())
    }
    fn rd_kafka_AclBinding_operation(acl: Ref<AclBinding>) -> c_int {
        0; shown(acl.filter.operation.number(), OPERATIONS)
    }
    fn rd_kafka_AclBinding_permission_type(acl: Ref<AclBinding>) -> c_int {
        0; acl.filter.permission.number().into()
    }
    fn rd_kafka_AclBinding_resource_pattern_type(acl: Ref<AclBinding>) -> c_int {
        0; acl.filter.pattern.number().into()
    }
    fn rd_kafka_AclBinding_error(acl: Ref<AclBinding>) -> *const ErrorObject {
        ptr::null(); or_null(acl.error.as_ref())
    }
}

// ---- create

/// `rd_kafka_acl_result_t`.
#[derive(Debug)]
pub struct AclResult {
    error: Option<ErrorObject>,
}

getters! {
    fn rd_kafka_acl_result_error(aclres: Part<AclResult>) -> *const ErrorObject {
        ptr::null(); or_null(aclres.error.as_ref())
    }
}

export!(
    #[on(rk, ())]
    fn rd_kafka_CreateAcls(
        rk: Ref<Client>,
        new_acls: Handles<AclBinding>,
        new_acls_cnt: usize,
        options: Ref<AdminOptions>,
        rkqu: Ref<Queue>,
    ) {
        call(rk, options, rkqu, CREATED, |admin, options| {
            let rules: Vec<Rule> = objects(new_acls, new_acls_cnt, "rules to create")?
                .into_iter()
                .map(AclBinding::rule)
                .collect();
            let created = admin.create_acls_async(&rules, *options);
            Ok(async move {
                let results = created.await.map_err(|error| Failure::of(&error))?;
                let result =
                    |result: &Result<(), Error>| AclResult { error: result.as_ref().err().map(error_object) };
                found(Listed::new(results.iter().map(result)))
            })
        });
    }
);

export!(
    #[local(ptr::null())]
    fn rd_kafka_CreateAcls_result_acls(result: Ref<Event>, cntp: Place<usize>) -> *const *const AclResult {
        Listed::show(result.get().and_then(Event::result::<Listed<AclResult>>), cntp)
    }
);

// ---- describe

export!(
    #[on(rk, ())]
    fn rd_kafka_DescribeAcls(
        rk: Ref<Client>,
        acl_filter: Ref<AclBinding>,
        options: Ref<AdminOptions>,
        rkqu: Ref<Queue>,
    ) {
        call(rk, options, rkqu, DESCRIBED, |admin, options| {
            let filter = acl_filter.get().ok_or_else(|| Failure::misuse("there is no filter"))?;
            let described = admin.describe_acls_async(&filter.filter, *options);
            Ok(async move {
                let rules = described.await.map_err(|error| Failure::of(&error))?;
                found(Listed::new(rules.iter().map(|rule| AclBinding::of_result(rule, None))))
            })
        });
    }
);

export!(
    #[local(ptr::null())]
    fn rd_kafka_DescribeAcls_result_acls(result: Ref<Event>, cntp: Place<usize>) -> *const *const AclBinding {
        Listed::show(result.get().and_then(Event::result::<Listed<AclBinding>>), cntp)
    }
);

// ---- delete

/// `rd_kafka_DeleteAcls_result_response_t`.
#[derive(Debug)]
pub struct DeletedAcls {
    error: Option<ErrorObject>,
    matching: Listed<AclBinding>,
}

export!(
    #[on(rk, ())]
    fn rd_kafka_DeleteAcls(
        rk: Ref<Client>,
        del_acls: Handles<AclBinding>,
        del_acls_cnt: usize,
        options: Ref<AdminOptions>,
        rkqu: Ref<Queue>,
    ) {
        call(rk, options, rkqu, DELETED, |admin, options| {
            let filters = objects(del_acls, del_acls_cnt, "filters of rules to delete")?;
            let filters: Vec<AclFilter> = filters.into_iter().map(|acl| acl.filter.clone()).collect();
            let deleted = admin.delete_acls_async(&filters, *options);
            Ok(async move {
                let results = deleted.await.map_err(|error| Failure::of(&error))?;
                found(Listed::new(results.iter().map(deleted_acls)))
            })
        });
    }
);

fn deleted_acls(result: &Result<ottla::admin::DeletedAcls, Error>) -> DeletedAcls {
    let rules = result.iter().flatten();
    let matching = rules.map(|(rule, error)| AclBinding::of_result(rule, error.as_ref()));
    DeletedAcls { error: result.as_ref().err().map(error_object), matching: Listed::new(matching) }
}

export!(
    #[local(ptr::null())]
    fn rd_kafka_DeleteAcls_result_responses(
        result: Ref<Event>,
        cntp: Place<usize>,
    ) -> *const *const DeletedAcls {
        Listed::show(result.get().and_then(Event::result::<Listed<DeletedAcls>>), cntp)
    }
);

getters! {
    fn rd_kafka_DeleteAcls_result_response_error(result_response: Part<DeletedAcls>) -> *const ErrorObject {
        ptr::null(); or_null(result_response.error.as_ref())
    }
}

export!(
    #[local(ptr::null())]
    fn rd_kafka_DeleteAcls_result_response_matching_acls(
        result_response: Part<DeletedAcls>,
        matching_acls_cntp: Place<usize>,
    ) -> *const *const AclBinding {
        Listed::show(result_response.get().map(|response| &response.matching), matching_acls_cntp)
    }
);
