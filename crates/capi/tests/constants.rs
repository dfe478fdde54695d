//! The macros and enumerators of the three headers, compared with those of the original headers.
//!
//! `abi/macros.txt` has the names of all macros that the original headers define, except those of its own type checks and
//! of Windows; `abi/layout.txt` and `abi/constants-cpp.txt` have the values of those that are constants, and of all
//! enumerators.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

const HERE: &str = env!("CARGO_MANIFEST_DIR");

fn here(path: &str) -> PathBuf {
    Path::new(HERE).join(path)
}

/// Returns the rows of a table as words.
fn rows(table: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(here(table)).unwrap();
    text.lines().map(|line| line.splitn(3, ' ').map(str::to_owned).collect()).collect()
}

/// Compiles a program for the headers, without the library, and runs it; it prints what differs.
fn compare(name: &str, includes: &str, checks: &str) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("constants");
    fs::create_dir_all(folder.join("librdkafka")).unwrap();
    for header in ["include/librdkafka/rdkafka.h", "include/librdkafka/rdkafka_mock.h", "cpp/rdkafkacpp.h"] {
        let from = here(header);
        fs::copy(&from, folder.join("librdkafka").join(from.file_name().unwrap())).unwrap();
    }
    let (source, program) = (folder.join(format!("{name}.cpp")), folder.join(name));
    let text = format!(
        "{includes}#include <cstdio>\n#include <cstring>\nint bad = 0;\nint main() {{\n{checks}return bad != 0;\n}}\n"
    );
    fs::write(&source, text).unwrap();
    let compiler = env::var("CXX").unwrap_or_else(|_| "c++".into());
    let built = Command::new(compiler).arg("-o").arg(&program).arg(&source).arg("-I").arg(&folder).output();
    let built = built.unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let ran = Command::new(&program).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
}

fn check(what: &str, value: &str) -> String {
    format!("if ((long)({what}) != {value}L) bad++, printf(\"%s is %ld\\n\", \"{what}\", (long)({what}));\n")
}

#[test]
fn headers_define_every_macro_of_the_original() {
    for header in ["rdkafka.h", "rdkafka_mock.h", "rdkafkacpp.h"] {
        let rows = rows("abi/macros.txt");
        let macros: Vec<_> = rows.iter().filter(|row| row[0] == header).map(|row| &row[1]).collect();
        assert!(!macros.is_empty(), "{header}");
        let is_missing = |name| format!("#ifndef {name}\nbad++, puts(\"{name} of {header}\");\n#endif\n");
        let checks: String = macros.into_iter().map(is_missing).collect();
        let include = format!("#include <librdkafka/{header}>\n");
        compare(&format!("macros_of_{}", header.replace('.', "_")), &include, &checks);
    }
}

#[test]
fn cxx_constants_have_the_values_of_the_original() {
    let rows = rows("abi/constants-cpp.txt");
    assert_eq!(rows.len(), 203);
    let checks = rows.iter().map(|row| match &*row[0] {
        "macro" => check(&format!("RdKafka::{}", row[1]), &row[2]),
        _ => check(&row[1], &row[2]),
    });
    compare("values", "#include <librdkafka/rdkafkacpp.h>\n", &checks.collect::<String>());
}

/// The codes of the C header, of which the C++ header has each with the same value.
#[test]
fn cxx_header_has_every_code_of_the_c_header() {
    let rows = rows("abi/layout.txt");
    let rows = rows.iter().filter(|row| row[0] == "enum");
    let codes = rows.filter_map(|row| Some((row[1].strip_prefix("RD_KAFKA_RESP_")?, &row[2])));
    let codes: Vec<_> = codes.filter(|(name, _)| *name != "ERR_END_ALL").collect();
    assert!(codes.len() > 150, "{}", codes.len());
    let checks: String =
        codes.into_iter().map(|(name, value)| check(&format!("RdKafka::{name}"), value)).collect();
    compare("codes", "#include <librdkafka/rdkafkacpp.h>\n", &checks);
}
