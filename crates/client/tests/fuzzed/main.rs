//! The fuzz targets with the inputs that cover most, and with those that broke a guarantee once. `cargo xtask fuzz --coverage` looks
//! for further ones with libFuzzer, which is not needed here.

#[path = "../../../../fuzz/src/targets/mod.rs"]
mod targets;

use targets::{TARGETS, corpus};

/// Repeats the inputs of a target, each of which is named if it breaks a guarantee.
fn repeat(name: &str) {
    let target = TARGETS.into_iter().find(|target| target.name == name).expect("the target exists");
    let folder = corpus::folder(env!("CARGO_MANIFEST_DIR"));
    let inputs = corpus::inputs(&folder, name).expect("the inputs can be read");
    assert!(inputs.len() > 10, "{name} has {} inputs", inputs.len());
    for input in &inputs {
        if std::panic::catch_unwind(|| target.check(input)).is_err() {
            panic!("{name} breaks a guarantee with the {} bytes {input:02x?}", input.len());
        }
    }
}

#[test]
fn fuzzed_messages_keep_all_guarantees() {
    repeat("messages");
}

#[test]
fn fuzzed_batches_keep_all_guarantees() {
    repeat("batches");
}

#[test]
fn fuzzed_credentials_keep_all_guarantees() {
    repeat("credentials");
}

#[test]
fn fuzzed_configurations_keep_all_guarantees() {
    repeat("configuration");
}

#[test]
fn fuzzed_token_responses_keep_all_guarantees() {
    repeat("oidc");
}

#[test]
fn fuzzed_authentications_keep_all_guarantees() {
    repeat("sasl");
}

#[test]
fn fuzzed_metrics_keep_all_guarantees() {
    repeat("telemetry");
}

#[test]
fn fuzzed_requests_to_brokers_keep_all_guarantees() {
    repeat("broker");
}

#[test]
fn target_that_needs_too_much_memory_is_noticed() {
    fn hungry(input: &[u8]) {
        drop(Vec::<u8>::with_capacity(1000 * input.len()));
    }
    let target = targets::Target { name: "hungry", run: hungry, memory: 5000 };
    target.check(&[0; 5]);
    assert!(std::panic::catch_unwind(|| target.check(&[0; 6])).is_err());
}
