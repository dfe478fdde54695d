//! Compiles two programs on librdkafka: its own `rdkafka_performance`, from the sources that the crate rdkafka-sys unpacked
//! to build the library, and ours, with the compiler's settings of that library.

use std::{env, path::PathBuf};

fn main() {
    println!("cargo:rerun-if-changed=../../../crates/rdkafka-performance/c");
    let unpacked =
        PathBuf::from(env::var_os("DEP_RDKAFKA_ROOT").expect("rdkafka-sys says where it was built"));
    cc::Build::new()
        .file(unpacked.join("examples/rdkafka_performance.c"))
        .include(unpacked.join("src"))
        .define("main", "original_rdkafka_performance")
        .opt_level(2)
        .warnings(false)
        .compile("original_rdkafka_performance");
    cc::Build::new()
        .file("../../../crates/rdkafka-performance/c/rdkafka_performance.c")
        .include("../../../crates/capi/include")
        // rdkafka-sys has an older librdkafka.
        .define("WITHOUT_SHARE_GROUPS", None)
        .opt_level(2)
        .compile("our_rdkafka_performance");
}
