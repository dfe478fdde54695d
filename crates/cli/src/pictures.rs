//! The pictures of the documents, which tests draw.

/// Compares a picture with the file in docs/pictures, or writes it if `OTTLA_WRITE_DOCS` is set.
pub fn compare(name: &str, picture: &str) {
    assert!(picture.len() < 16_000, "{} bytes", picture.len());
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures");
    let path = folder.join(name);
    if std::env::var_os("OTTLA_WRITE_DOCS").is_some() {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(&path, picture).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == picture,
        "docs/pictures/{name} is old: OTTLA_WRITE_DOCS=1 cargo test -p ottla-cli picture"
    );
}
