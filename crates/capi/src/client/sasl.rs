//! SASL: credentials and tokens that the application sets while a client runs, and token requests.

use std::{
    ffi::{c_char, c_int},
    ptr,
    sync::Arc,
};

use ottla::{OauthToken, Sasl, Secret};
use ottla_core::{config::RawConfig, error::ErrorKind};

use crate::{
    client::{
        conf::Conf,
        core::Core,
        event::Event,
        handle::Client,
        op::Op,
        queue::{Queue, raw},
    },
    ffi::{
        argument::{Buffer, Ref, Text, Texts},
        boundary::c_text,
        codes::{RespErr, code},
        error::{ErrorObject, code_of},
        export,
    },
};

/// Returns true if a client with this configuration authenticates with tokens.
pub(super) fn uses_tokens(raw: &RawConfig) -> bool {
    raw.get("security.protocol").is_ok_and(|protocol| protocol.starts_with("sasl_"))
        && raw.get("sasl.mechanisms") == Ok("OAUTHBEARER")
}

const NOT_CONFIGURED: &str = "SASL/OAUTHBEARER is not the configured authentication mechanism";

impl Client {
    /// Returns the function that requests a token from the application, if the application can provide tokens.
    pub(super) fn token_notification(&self) -> Option<Arc<dyn Fn() + Send + Sync>> {
        let conf = self.conf();
        let is_unsecured = self.property("enable.sasl.oauthbearer.unsecure.jwt").as_deref() == Some("true");
        let is_oidc = self.property("sasl.oauthbearer.method").as_deref() == Some("oidc");
        // The library fetches the tokens itself, unless the application has a callback. Without one, whoever polls the queue gets
        // an event, also if the configuration does not name that type.
        let is_asked = conf.callbacks.token_refresh.is_some() || !is_unsecured && !is_oidc;
        let me = self.weak();
        is_asked.then(|| {
            Arc::new(move || {
                let Some(client) = me.upgrade().filter(|client| !client.is_closing()) else { return };
                let config = client.property("sasl.oauthbearer.config").unwrap_or_default();
                let queue = client.sasl_queue.as_ref().unwrap_or_else(|| client.main());
                queue.push(Op::TokenRefresh(c_text(&config)));
            }) as Arc<dyn Fn() + Send + Sync>
        })
    }

    /// Checks that tokens have exactly one source.
    pub(super) fn check_tokens(&self) -> Result<(), String> {
        let is_unsecured = self.property("enable.sasl.oauthbearer.unsecure.jwt").as_deref() == Some("true");
        if is_unsecured && self.conf().callbacks.token_refresh.is_some() && uses_tokens(&self.raw.lock()) {
            return Err("`enable.sasl.oauthbearer.unsecure.jwt` and `oauthbearer_token_refresh_cb` are mutually exclusive"
                .to_owned());
        }
        Ok(())
    }

    /// Returns the credentials of the running client, if its protocol uses SASL.
    fn sasl(&self) -> Option<&Sasl> {
        match self.core().ok()? {
            Core::Producer(producer, _) => producer.sasl(),
            Core::Consumer(consumer) => consumer.sasl(),
            Core::Share(consumer) => consumer.sasl(),
        }
    }
}

export!(
    #[local(())]
    fn rd_kafka_conf_enable_sasl_queue(conf: *mut Conf, enable: c_int) {
        // SAFETY: the header demands NULL or a configuration.
        if let Some(conf) = unsafe { Conf::changeable(conf) } {
            conf.has_sasl_queue = enable != 0;
        }
    }
);

export!(
    #[on(rk, ptr::null())]
    fn rd_kafka_queue_get_sasl(rk: Ref<Client>) -> *const Queue {
        raw(rk.get().and_then(|client| client.sasl_queue.clone()))
    }
);

export!(
    #[on(rk, ptr::null_mut())]
    fn rd_kafka_sasl_background_callbacks_enable(rk: Ref<Client>) -> *mut ErrorObject {
        ErrorObject::from_result(rk.get().map_or_else(|| Err(no_queue()), Client::serve_tokens_in_background))
    }
);

export!(
    #[on(rk, ptr::null_mut())]
    fn rd_kafka_sasl_set_credentials(rk: Ref<Client>, username: Text, password: Text) -> *mut ErrorObject {
        let set = |client: &Client| client.set_sasl_credentials(username, password);
        ErrorObject::from_result(rk.get().map_or_else(|| Err(no_credentials()), set))
    }
);

/// A token as the application sets it.
pub(crate) struct PassedToken<'a> {
    pub(crate) value: Text<'a>,
    pub(crate) lifetime_ms: i64,
    pub(crate) principal: Text<'a>,
    pub(crate) extensions: Texts<'a>,
    pub(crate) extension_size: usize,
}

impl Client {
    /// Returns the queue of requests for tokens, if they have one of their own.
    pub(crate) const fn sasl_queue(&self) -> Option<&Arc<Queue>> {
        self.sasl_queue.as_ref()
    }

    /// Serves the queue of requests for tokens on the background thread.
    pub(crate) fn serve_tokens_in_background(&self) -> Result<(), ErrorObject> {
        let queue = self.sasl_queue.as_ref().ok_or_else(no_queue)?;
        match self.start_background() {
            Ok(background) => {
                queue.forward(Some(Arc::clone(background.queue())));
                Ok(())
            }
            Err(error) => {
                let text = format!("can't start the background thread: {error}");
                Err(ErrorObject::new(code::_CRIT_SYS_RESOURCE, text))
            }
        }
    }

    /// Replaces user name and password.
    pub(crate) fn set_sasl_credentials(
        &self,
        username: Text<'_>,
        password: Text<'_>,
    ) -> Result<(), ErrorObject> {
        let (Some(username), Some(password)) = (username.get(), password.get()) else {
            return Err(no_credentials());
        };
        if let Some(sasl) = self.sasl() {
            sasl.set_credentials(&username, Secret::from(&*password));
        }
        Ok(())
    }

    /// Sets the token that the connections authenticate with.
    pub(crate) fn set_token(&self, token: &PassedToken<'_>) -> Result<(), (RespErr, String)> {
        let failed = |code: RespErr, text: &str| Err((code, text.to_owned()));
        let Some(sasl) = self.sasl().filter(|sasl| sasl.uses_tokens()) else {
            return failed(code::_STATE, NOT_CONFIGURED);
        };
        let (Some(value), Some(principal)) = (token.value.get(), token.principal.get()) else {
            return failed(code::_INVALID_ARG, "a token needs a value and the name of a principal");
        };
        let size = token.extension_size;
        if !size.is_multiple_of(2) || token.extensions.is_null() && size > 0 {
            let text = format!("Incorrect extension size (must be a non-negative multiple of 2): {size}");
            return failed(code::_INVALID_ARG, &text);
        }
        let mut texts = token.extensions.get(size).map(|text| text.into_owned());
        let mut pairs = Vec::new();
        while let (Some(key), Some(value)) = (texts.next(), texts.next()) {
            pairs.push((key, value));
        }
        let token = OauthToken {
            value: Secret::from(&*value),
            expires_ms: token.lifetime_ms,
            principal: principal.into_owned(),
            extensions: pairs,
        };
        sasl.set_token(token).map_err(|error| match error.kind() {
            ErrorKind::InvalidArgument => (code::_INVALID_ARG, error.context().detail.clone()),
            _ => (code_of(&error), error.to_string()),
        })
    }

    /// Notes that the application has no token.
    pub(crate) fn set_token_failure(&self, errstr: Text<'_>) -> RespErr {
        let Some(sasl) = self.sasl().filter(|sasl| sasl.uses_tokens()) else { return code::_STATE };
        match errstr.get().filter(|text| !text.is_empty()) {
            Some(text) if sasl.set_token_failure(&text).is_ok() => code::NO_ERROR,
            _ => code::_INVALID_ARG,
        }
    }
}

fn no_queue() -> ErrorObject {
    ErrorObject::new(code::_NOT_CONFIGURED, "No SASL mechanism using callbacks is configured")
}

fn no_credentials() -> ErrorObject {
    ErrorObject::new(code::_INVALID_ARG, "Username and password are required")
}

export!(
    #[on(rk, code::_INVALID_ARG)]
    fn rd_kafka_oauthbearer_set_token(
        rk: Ref<Client>,
        token_value: Text,
        md_lifetime_ms: i64,
        md_principal_name: Text,
        extensions: Texts,
        extension_size: usize,
        errstr: Buffer,
        errstr_size: usize,
    ) -> RespErr {
        let token = PassedToken {
            value: token_value,
            lifetime_ms: md_lifetime_ms,
            principal: md_principal_name,
            extensions,
            extension_size,
        };
        let no_client = || Err((code::_INVALID_ARG, "this is not a client".to_owned()));
        match rk.get().map_or_else(no_client, |client| client.set_token(&token)) {
            Ok(()) => code::NO_ERROR,
            Err((code, text)) => {
                errstr.put(errstr_size, &text);
                code
            }
        }
    }
);

export!(
    #[on(rk, code::_INVALID_ARG)]
    fn rd_kafka_oauthbearer_set_token_failure(rk: Ref<Client>, errstr: Text<'_>) -> RespErr {
        rk.get().map_or(code::_INVALID_ARG, |client| client.set_token_failure(errstr))
    }
);

export!(
    #[local(ptr::null())]
    fn rd_kafka_event_config_string(event: Ref<Event>) -> *const c_char {
        match event.get().and_then(|event| event.op.as_ref()) {
            Some(Op::TokenRefresh(config)) if !config.is_empty() => config.as_ptr(),
            _ => ptr::null(),
        }
    }
);
