//! Compiles the C program, which the harness compiles once more for Ottla, with the same compiler and settings.

fn main() {
    println!("cargo:rerun-if-changed=peer.c");
    cc::Build::new()
        .file("peer.c")
        .include("../../../crates/capi/include")
        // rdkafka-sys has an older librdkafka.
        .define("WITHOUT_SHARE_GROUPS", None)
        .opt_level(2)
        .compile("peer_c");
}
