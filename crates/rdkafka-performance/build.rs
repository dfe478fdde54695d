//! Compiles the program, which is C because it is a program of the C library.

fn main() {
    println!("cargo:rerun-if-changed=c");
    println!("cargo:rerun-if-changed=../capi/include");
    cc::Build::new()
        .file("c/rdkafka_performance.c")
        .include("../capi/include")
        .flag("-fvisibility=hidden")
        .opt_level(2)
        .warnings(true)
        .extra_warnings(true)
        .compile("ottla_rdkafka_performance");
}
