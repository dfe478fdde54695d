//! Files of the file system, and descriptor sets that protoc wrote.

use std::{
    cell::Cell,
    fs,
    path::{Component, Path, PathBuf},
};

use prost_reflect::{DescriptorPool, FileDescriptor};
use protox::{
    Compiler,
    file::{ChainFileResolver, File, FileResolver, GoogleFileResolver},
};

use super::files::{file, invalid};
use crate::{
    Error, Result,
    schema::{MAX_SCHEMA_BYTES, read_file},
};

/// The largest size of all files together, in bytes.
const MAX_BYTES: usize = 16 << 20;

/// Compiles a file and those that it imports, which are in its folder or in one of these.
pub fn open(path: &Path, folders: &[PathBuf]) -> Result<FileDescriptor> {
    let whole = fs::canonicalize(path)
        .map_err(|error| Error::schema(format!("{} can't be read: {error}", path.display())))?;
    let mut roots: Vec<PathBuf> = folders.iter().filter_map(|it| fs::canonicalize(it).ok()).collect();
    roots.extend(whole.parent().map(Path::to_path_buf));
    // As with protoc, the name is what follows the folder.
    let name = roots.iter().find_map(|root| whole.strip_prefix(root).ok()).unwrap_or(&whole);
    let name = name.components().map(|it| it.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/");
    let mut resolver = ChainFileResolver::new();
    resolver.add(Folders { roots, bytes: Cell::new(0) });
    resolver.add(GoogleFileResolver::new());
    let mut compiler = Compiler::with_file_resolver(resolver);
    compiler.include_imports(true);
    compiler.open_file(&name).map_err(|error| invalid(&error))?;
    let pool = DescriptorPool::decode(compiler.encode_file_descriptor_set().as_slice());
    let file = pool.ok().and_then(|pool| pool.get_file_by_name(&name));
    file.ok_or_else(|| Error::schema(format!("{} is not a file in Protobuf", path.display())))
}

/// Reads a descriptor set, and returns its last file: that which the others are imported by.
pub fn from_descriptor_set(bytes: &[u8]) -> Result<FileDescriptor> {
    let refused = |why: String| Error::schema(format!("it is not a descriptor set of protoc: {why}"));
    if bytes.len() > MAX_SCHEMA_BYTES {
        return Err(refused(format!("it has {} bytes, and {MAX_SCHEMA_BYTES} are the limit", bytes.len())));
    }
    let pool = DescriptorPool::decode(bytes).map_err(|error| {
        refused(format!("{error}; --include_imports of protoc adds the files that others import"))
    })?;
    let last = pool.files().filter(|file| file.messages().len() > 0).last();
    last.ok_or_else(|| refused("it has no message".to_owned()))
}

/// Folders with files.
struct Folders {
    roots: Vec<PathBuf>,
    /// The bytes that were read.
    bytes: Cell<usize>,
}

impl FileResolver for Folders {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        let is_inside = Path::new(name).components().all(|it| matches!(it, Component::Normal(_)));
        let found = self.roots.iter().map(|root| root.join(name)).find(|path| path.is_file());
        let Some(path) = found.filter(|_| is_inside) else { return Err(protox::Error::file_not_found(name)) };
        let text = read_file(&path).map_err(protox::Error::new)?;
        self.bytes.set(self.bytes.get() + text.len());
        if self.bytes.get() > MAX_BYTES {
            return Err(protox::Error::new(format!("the imported files have more than {MAX_BYTES} bytes")));
        }
        file(name, &text)
    }
}
