//! Writes the documentation of the exported functions and the headers, and compiles the C half of the variadic functions.

#[path = "abi/table.rs"]
#[allow(dead_code)]
mod table;

use std::{env, fs, path::Path};

/// Tells the linker about the shared library.
fn link() {
    if env::var("CARGO_CFG_TARGET_VENDOR").is_ok_and(|vendor| vendor == "apple") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-install_name,@rpath/librdkafka.1.dylib");
        return;
    }
    // The library's name and the list of its functions are rustc's.
    if env::var("CARGO_CFG_WINDOWS").is_ok() {
        return;
    }
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,librdkafka.so.1");
    // Debug information is found by it. Not every linker writes one by itself.
    println!("cargo:rustc-cdylib-link-arg=-Wl,--build-id=sha1");
    // A thread may outlive all clients, in getaddrinfo() or in a function of the application that does not return: the
    // code to which it returns has to be mapped after dlclose(), too.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}

fn main() {
    println!("cargo:rerun-if-changed=abi");
    println!("cargo:rerun-if-changed=shim");
    link();
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    // The documentation of each exported function, which `export!` includes.
    let docs = Path::new(&out).join("docs");
    fs::create_dir_all(&docs).expect("OUT_DIR can be written");
    for function in table::functions() {
        fs::write(docs.join(function.name()).with_extension("md"), function.rust_doc())
            .expect("OUT_DIR can be written");
    }
    // A test checks that the committed headers are the same.
    let include = Path::new(&out).join("include/librdkafka");
    fs::create_dir_all(&include).expect("OUT_DIR can be written");
    for name in table::HEADERS {
        fs::write(include.join(name), table::header(name)).expect("OUT_DIR can be written");
    }
    cc::Build::new()
        .file("shim/variadic.c")
        .include(Path::new(&out).join("include"))
        .flag("-fvisibility=hidden")
        .warnings(true)
        .extra_warnings(true)
        .compile("ottla_variadic");
}
