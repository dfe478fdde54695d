//! The rules of properties that only the Java clients have.

use super::Outcome;
use crate::config::{
    effective::EffectiveConfig,
    error::{ConfigError, ConfigErrorKind},
    java::classes,
    table::{Kind, Side},
};

/// Applies the rules.
pub(super) fn apply(config: &mut EffectiveConfig<'_>, side: Side) -> Outcome {
    nearest_values(config);
    values_of_providers(config)?;
    partitioner(config);
    token_handler(config);
    request_timeout(config, side);
    Ok(())
}

/// Warns about numbers that this client replaces by the nearest one that it has.
fn nearest_values(config: &mut EffectiveConfig<'_>) {
    let raw = config.client_raw();
    for (property, name) in raw.modified() {
        if let Some(written) = raw.written(property) {
            let value = raw.text(property.name);
            config.warn(format!(
                "`{name}` is {value} and not {written}: it is the nearest value that this client has"
            ));
        }
    }
}

/// Refuses a value that a class of `config.providers` would replace, because it would be taken as it is.
fn values_of_providers(config: &EffectiveConfig<'_>) -> Outcome {
    let list = config.text("config.providers");
    for provider in list.split(',').map(str::trim).filter(|provider| !provider.is_empty()) {
        let reference = format!("${{{provider}:");
        let raw = config.client_raw();
        let found =
            raw.modified().find(|(row, _)| row.kind != Kind::Call && raw.text(row.name).contains(&reference));
        if let Some((_, name)) = found {
            let sentence = format!(
                "`{name}` asks the provider `{provider}` of `config.providers`, which is Java code: set the value itself"
            );
            let other = "config.providers".to_owned();
            return Err(ConfigError::new(name, ConfigErrorKind::Conflict { other, sentence }));
        }
    }
    Ok(())
}

/// Chooses the partitioner that `partitioner.class` and `partitioner.ignore.keys` ask for. `partitioner` takes precedence.
pub(super) fn partitioner(config: &mut EffectiveConfig<'_>) {
    if config.is_modified("partitioner") {
        return;
    }
    if let Some(word) = classes::partitioner(config.text("partitioner.class")) {
        config.adapt("partitioner", word);
    } else if config.boolean("partitioner.ignore.keys") {
        config.adapt("partitioner", "sticky");
    }
}

/// Gets tokens from the identity provider if Java's class that does so is named.
fn token_handler(config: &mut EffectiveConfig<'_>) {
    if config.is_modified("sasl.oauthbearer.method")
        || !classes::gets_tokens(config.text("sasl.login.callback.handler.class"))
    {
        return;
    }
    config.adapt("sasl.oauthbearer.method", "oidc");
    let retriever = classes::simple_name(config.text("sasl.oauthbearer.jwt.retriever.class"));
    if retriever == "JwtBearerJwtRetriever" && !config.is_modified("sasl.oauthbearer.grant.type") {
        config.adapt("sasl.oauthbearer.grant.type", "urn:ietf:params:oauth:grant-type:jwt-bearer");
    }
}

/// Bounds the requests of clients other than producers by `request.timeout.ms`, as in Java; librdkafka has it for producers
/// only.
fn request_timeout(config: &mut EffectiveConfig<'_>, side: Side) {
    let name = "request.timeout.ms";
    if side != Side::Producer
        && !config.is_librdkafka()
        && config.is_modified(name)
        && !config.is_modified("socket.timeout.ms")
    {
        let (least, most) = (10, 300_000);
        config.adapt("socket.timeout.ms", config.integer(name).clamp(least, most));
    }
}
