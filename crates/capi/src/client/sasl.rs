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
        op::{Op, wants},
        queue::{Queue, raw},
    },
    ffi::{
        argument::{Buffer, Ref, Text, Texts},
        boundary::c_text,
        codes::{RespErr, code},
        error::{ErrorObject, code_of},
        export,
        types::event_type,
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
        // The library fetches the tokens itself, unless the application has a callback.
        let is_asked = conf.callbacks.token_refresh.is_some()
            || wants(conf.events, event_type::OAUTHBEARER_TOKEN_REFRESH) && !is_unsecured && !is_oidc;
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
        let Some((client, queue)) = rk.get().and_then(|rk| Some((rk, rk.sasl_queue.as_ref()?))) else {
            let text = "No SASL mechanism using callbacks is configured";
            return ErrorObject::new(code::_NOT_CONFIGURED, text).into_raw();
        };
        match client.start_background() {
            Ok(background) => {
                queue.forward(Some(Arc::clone(background.queue())));
                ptr::null_mut()
            }
            Err(error) => {
                let text = format!("can't start the background thread: {error}");
                ErrorObject::new(code::_CRIT_SYS_RESOURCE, text).into_raw()
            }
        }
    }
);

export!(
    #[on(rk, ptr::null_mut())]
    fn rd_kafka_sasl_set_credentials(rk: Ref<Client>, username: Text, password: Text) -> *mut ErrorObject {
        let (Some(client), Some(username), Some(password)) = (rk.get(), username.get(), password.get())
        else {
            return ErrorObject::new(code::_INVALID_ARG, "Username and password are required").into_raw();
        };
        if let Some(sasl) = client.sasl() {
            sasl.set_credentials(&username, Secret::from(&*password));
        }
        ptr::null_mut()
    }
);

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
        let failed = |code: RespErr, text: &str| {
            errstr.put(errstr_size, text);
            code
        };
        let Some(client) = rk.get() else { return failed(code::_INVALID_ARG, "this is no client") };
        let Some(sasl) = client.sasl().filter(|sasl| sasl.uses_tokens()) else {
            return failed(code::_STATE, NOT_CONFIGURED);
        };
        let (Some(value), Some(principal)) = (token_value.get(), md_principal_name.get()) else {
            return failed(code::_INVALID_ARG, "a token needs a value and the name of a principal");
        };
        if extension_size % 2 != 0 || extensions.is_null() && extension_size > 0 {
            let text =
                format!("Incorrect extension size (must be a non-negative multiple of 2): {extension_size}");
            return failed(code::_INVALID_ARG, &text);
        }
        let mut texts = extensions.get(extension_size).map(|text| text.into_owned());
        let mut pairs = Vec::new();
        while let (Some(key), Some(value)) = (texts.next(), texts.next()) {
            pairs.push((key, value));
        }
        let token = OauthToken {
            value: Secret::from(&*value),
            expires_ms: md_lifetime_ms,
            principal: principal.into_owned(),
            extensions: pairs,
        };
        match sasl.set_token(token) {
            Ok(()) => code::NO_ERROR,
            Err(error) if error.kind() == ErrorKind::InvalidArgument => {
                failed(code::_INVALID_ARG, &error.context().detail)
            }
            Err(error) => failed(code_of(&error), &error.to_string()),
        }
    }
);

export!(
    #[on(rk, code::_INVALID_ARG)]
    fn rd_kafka_oauthbearer_set_token_failure(rk: Ref<Client>, errstr: Text<'_>) -> RespErr {
        let Some(client) = rk.get() else { return code::_INVALID_ARG };
        let Some(sasl) = client.sasl().filter(|sasl| sasl.uses_tokens()) else { return code::_STATE };
        match errstr.get().filter(|text| !text.is_empty()) {
            Some(text) if sasl.set_token_failure(&text).is_ok() => code::NO_ERROR,
            _ => code::_INVALID_ARG,
        }
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
