//! Describing, setting and deleting credentials of SCRAM users.

use std::{
    borrow::Cow,
    ffi::{CString, c_char, c_int},
    ptr,
};

use ottla::{
    Secret,
    admin::{ScramAlteration, ScramCredential, ScramMechanism, scram_password, scram_password_with_salt},
};
use ottla_core::error::Error;
use ottla_sorted::SortedSet;

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
        argument::{Bytes, Handles, Part, Place, Ref, Text, Texts},
        boundary::{Handle, Tag, c_text},
        codes::code,
        destroyers,
        error::ErrorObject,
        export, getters, or_null,
    },
};

/// `RD_KAFKA_EVENT_DESCRIBEUSERSCRAMCREDENTIALS_RESULT`.
pub(super) const DESCRIBED: c_int = 1 << 18;
/// `RD_KAFKA_EVENT_ALTERUSERSCRAMCREDENTIALS_RESULT`.
pub(super) const ALTERED: c_int = 1 << 19;

/// Returns an error object, also for success: the interface has no NULL here.
fn error_object(error: Option<&Error>) -> ErrorObject {
    error.map_or_else(
        || ErrorObject::new(code::NO_ERROR, "Success"),
        |error| ErrorObject::new(code_in_result(error), error.to_string()),
    )
}

// ---- describe

/// `rd_kafka_ScramCredentialInfo_t`.
#[derive(Debug)]
pub struct CredentialInfo {
    mechanism: c_int,
    iterations: i32,
}

/// `rd_kafka_UserScramCredentialsDescription_t`.
#[derive(Debug)]
pub struct UserDescription {
    user: CString,
    error: ErrorObject,
    credentials: Box<[CredentialInfo]>,
}

impl UserDescription {
    fn new(user: &str, result: &Result<Vec<ScramCredential>, Error>) -> Self {
        let credentials = result.iter().flatten().map(|one| CredentialInfo {
            mechanism: one.mechanism.number().into(),
            iterations: one.iterations,
        });
        Self {
            user: c_text(user),
            // The original has no text here without an error, and one in the responses to alterations.
            error: match result {
                Ok(_) => ErrorObject::new(code::NO_ERROR, ""),
                Err(error) => error_object(Some(error)),
            },
            credentials: credentials.collect(),
        }
    }
}

getters! {
    fn rd_kafka_ScramCredentialInfo_mechanism(scram_credential_info: Part<CredentialInfo>) -> c_int {
        0; scram_credential_info.mechanism
    }
    fn rd_kafka_ScramCredentialInfo_iterations(scram_credential_info: Part<CredentialInfo>) -> i32 {
        0; scram_credential_info.iterations
    }
    fn rd_kafka_UserScramCredentialsDescription_user(description: Part<UserDescription>) -> *const c_char {
        ptr::null(); description.user.as_ptr()
    }
    fn rd_kafka_UserScramCredentialsDescription_error(description: Part<UserDescription>) -> *const ErrorObject {
        ptr::null(); ptr::from_ref(&description.error)
    }
    fn rd_kafka_UserScramCredentialsDescription_scramcredentialinfo_count(
        description: Part<UserDescription>
    ) -> usize {
        0; description.credentials.len()
    }
}

export!(
    #[local(ptr::null())]
    fn rd_kafka_UserScramCredentialsDescription_scramcredentialinfo(
        description: Part<UserDescription>,
        idx: usize,
    ) -> *const CredentialInfo {
        or_null(description.get().and_then(|description| description.credentials.get(idx)))
    }
);

/// Returns the names of the users; `None` for all.
fn names(users: Texts, count: usize) -> Result<Option<Vec<String>>, Failure> {
    if count == 0 || users.is_null() {
        return Ok(None);
    }
    if count > c_int::MAX as usize {
        return Err(Failure::misuse(format!("{count} users, but not where they are")));
    }
    let names: Vec<String> = users.get(count).map(Cow::into_owned).collect();
    if let Some(index) = names.iter().position(String::is_empty) {
        return Err(Failure::misuse(format!("Empty users aren't allowed, index {index}")));
    }
    if names.iter().collect::<SortedSet<_>>().len() < names.len() {
        return Err(Failure::misuse("Duplicate users aren't allowed in the same request"));
    }
    Ok(Some(names))
}

export!(
    #[on(rk, ())]
    fn rd_kafka_DescribeUserScramCredentials(
        rk: Ref<Client>,
        users: Texts,
        user_cnt: usize,
        options: Ref<AdminOptions>,
        rkqu: Ref<Queue>,
    ) {
        call(rk, options, rkqu, DESCRIBED, |admin, options| {
            let names = names(users, user_cnt)?;
            let named: Option<Vec<&str>> =
                names.as_ref().map(|names| names.iter().map(String::as_str).collect());
            let described = admin.describe_scram_users_async(named.as_deref(), *options);
            Ok(async move {
                let users = described.await.map_err(|error| Failure::of(&error))?;
                found(Listed::new(users.iter().map(|(user, result)| UserDescription::new(user, result))))
            })
        });
    }
);

export!(
    #[local(ptr::null())]
    fn rd_kafka_DescribeUserScramCredentials_result_descriptions(
        result: Ref<Event>,
        cntp: Place<usize>,
    ) -> *const *const UserDescription {
        Listed::show(result.get().and_then(Event::result::<Listed<UserDescription>>), cntp)
    }
);

// ---- alter

/// `rd_kafka_UserScramCredentialAlteration_t`.
#[repr(C)]
#[derive(Debug)]
pub struct Alteration {
    tag: Tag,
    user: String,
    mechanism: c_int,
    /// `None` deletes the credential.
    upsertion: Option<Upsertion>,
}

#[derive(Debug)]
struct Upsertion {
    iterations: i32,
    password: Secret,
    /// `None` stands for a random one.
    salt: Option<Vec<u8>>,
}

// SAFETY: `repr(C)`, the tag comes first.
unsafe impl Handle for Alteration {
    const KIND: u32 = 0x6f74_410c;
}

fn new_alteration(username: Text, mechanism: c_int, upsertion: Option<Upsertion>) -> *mut Alteration {
    let Some(user) = username.get() else { return ptr::null_mut() };
    let user = user.into_owned();
    Box::into_raw(Box::new(Alteration { tag: Tag::of::<Alteration>(), user, mechanism, upsertion }))
}

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_UserScramCredentialUpsertion_new(
        username: Text,
        mechanism: c_int,
        iterations: i32,
        password: Bytes,
        password_size: usize,
        salt: Bytes,
        salt_size: usize,
    ) -> *mut Alteration {
        let password = Secret::new(password.get(password_size).unwrap_or_default().to_vec());
        let salt = salt.get(salt_size).filter(|salt| !salt.is_empty()).map(<[u8]>::to_vec);
        new_alteration(username, mechanism, Some(Upsertion { iterations, password, salt }))
    }
);

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_UserScramCredentialDeletion_new(username: Text, mechanism: c_int) -> *mut Alteration {
        new_alteration(username, mechanism, None)
    }
);

destroyers! {
    rd_kafka_UserScramCredentialAlteration_destroy(alteration),
    rd_kafka_UserScramCredentialAlteration_destroy_array(alterations): Alteration;
}

impl Alteration {
    /// Returns the alteration as the client takes it. Error: the reason why the one at this index is invalid.
    fn for_admin(&self, index: usize) -> Result<ScramAlteration, Failure> {
        let wrong = |what: &str| Failure::misuse(format!("{what}, index {index}"));
        if self.user.is_empty() {
            return Err(wrong("Empty user"));
        }
        let mechanism = i8::try_from(self.mechanism).map(ScramMechanism::from_number).unwrap_or_default();
        if mechanism == ScramMechanism::Unknown {
            return Err(wrong("SCRAM mechanism must be specified"));
        }
        let Some(upsertion) = &self.upsertion else {
            return Ok(ScramAlteration::Delete { user: self.user.clone(), mechanism });
        };
        if upsertion.password.is_empty() {
            return Err(wrong("Empty password"));
        }
        if upsertion.iterations <= 0 {
            return Err(wrong("Non-positive iterations"));
        }
        let Upsertion { iterations, password, salt } = upsertion;
        let derived = match salt {
            Some(salt) => scram_password_with_salt(&self.user, mechanism, *iterations, password, salt),
            None => scram_password(&self.user, mechanism, *iterations, password),
        };
        derived.map_err(|error| wrong(&error.to_string()))
    }
}

/// `rd_kafka_AlterUserScramCredentials_result_response_t`.
#[derive(Debug)]
pub struct AlteredUser {
    user: CString,
    error: ErrorObject,
}

export!(
    #[on(rk, ())]
    fn rd_kafka_AlterUserScramCredentials(
        rk: Ref<Client>,
        alterations: Handles<Alteration>,
        alteration_cnt: usize,
        options: Ref<AdminOptions>,
        rkqu: Ref<Queue>,
    ) {
        call(rk, options, rkqu, ALTERED, |admin, options| {
            if alteration_cnt == 0 {
                return Err(Failure::misuse("At least one alteration is required"));
            }
            let alterations = objects(alterations, alteration_cnt, "alterations")?;
            let alterations = alterations.iter().enumerate().map(|(index, one)| one.for_admin(index));
            let alterations: Vec<ScramAlteration> = alterations.collect::<Result<_, _>>()?;
            let altered = admin.alter_scram_users_unchecked(&alterations, *options);
            Ok(async move {
                let results = altered.await.map_err(|error| Failure::of(&error))?;
                let altered = results.iter().map(|(user, result)| AlteredUser {
                    user: c_text(user),
                    error: error_object(result.as_ref().err()),
                });
                found(Listed::new(altered))
            })
        });
    }
);

getters! {
    fn rd_kafka_AlterUserScramCredentials_result_response_user(response: Part<AlteredUser>) -> *const c_char {
        ptr::null(); response.user.as_ptr()
    }
    fn rd_kafka_AlterUserScramCredentials_result_response_error(
        response: Part<AlteredUser>
    ) -> *const ErrorObject {
        ptr::null(); ptr::from_ref(&response.error)
    }
}

export!(
    #[local(ptr::null())]
    fn rd_kafka_AlterUserScramCredentials_result_responses(
        result: Ref<Event>,
        cntp: Place<usize>,
    ) -> *const *const AlteredUser {
        Listed::show(result.get().and_then(Event::result::<Listed<AlteredUser>>), cntp)
    }
);
