//! The wheel `ottla-librdkafka`: the library, and the Python module that puts it into an installed `confluent_kafka`
//! (packaging/python).

use std::{fs, path::PathBuf};

use super::{Workshop, builds::X86_64, trees};
use crate::{
    Result, install,
    library::VERSION,
    shell::{read, root},
};

/// The platform's tag: what every Linux with glibc 2.28 accepts.
const TAG: &str = "py3-none-manylinux_2_28_x86_64";

pub fn make(workshop: &Workshop) -> Result<Vec<PathBuf>> {
    let (folder, version) = (workshop.empty("wheel")?, &workshop.version);
    let module = folder.join("ottla_librdkafka");
    let sources = root().join("packaging/python/ottla_librdkafka");
    fs::create_dir_all(&module)?;
    for source in ["__init__.py", "__main__.py", "swap.py"] {
        let text = fs::read_to_string(sources.join(source))?;
        trees::write(
            &module.join(source),
            &text.replace("@VERSION@", version).replace("@LIBRDKAFKA@", VERSION),
        )?;
    }
    let tree = workshop.empty("wheel-library")?;
    trees::install(workshop, &X86_64, "/", "lib", &tree)?;
    trees::copy_program(&tree.join("lib/librdkafka.so.1"), &module.join("librdkafka.so.1"))?;
    let about = folder.join(format!("ottla_librdkafka-{version}.dist-info"));
    let summary = "The Kafka client library Ottla for Python programs that use confluent-kafka";
    let readme = fs::read_to_string(root().join("packaging/python/README.md"))?;
    let metadata = format!(
        "Metadata-Version: 2.1\nName: ottla-librdkafka\nVersion: {version}\nSummary: {summary}\n\
         License: MIT OR Apache-2.0\nRequires-Python: >=3.8\nDescription-Content-Type: text/markdown\n\n{readme}"
    );
    trees::write(&about.join("METADATA"), &metadata)?;
    trees::write(
        &about.join("WHEEL"),
        &format!("Wheel-Version: 1.0\nGenerator: cargo xtask package\nRoot-Is-Purelib: false\nTag: {TAG}\n"),
    )?;
    trees::licences(&about.join("licenses"))?;
    // It writes RECORD, and takes the times of the files from SOURCE_DATE_EPOCH.
    let mut pack = workshop.command(install::python()?);
    read(pack.args(["-m", "wheel", "pack", "--dest-dir"]).arg(&workshop.folder).arg(&folder))?;
    Ok(vec![workshop.folder.join(format!("ottla_librdkafka-{version}-{TAG}.whl"))])
}
