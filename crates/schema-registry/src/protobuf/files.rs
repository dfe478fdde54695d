//! Compiles a file and those that it imports.

use std::collections::HashMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use prost::Message as _;
use prost_reflect::{DescriptorPool, FileDescriptor, prost_types::FileDescriptorProto};
use protox::{
    Compiler,
    file::{ChainFileResolver, File, FileResolver, GoogleFileResolver},
};

use crate::{Error, Result, schema::check_size};

/// The name of the file that is compiled. No import has it.
const ROOT: &str = "schema.of.this.record.proto";
/// The deepest nesting of braces.
const MAX_DEPTH: usize = 100;

pub fn compile(text: &str, references: &[(String, String)]) -> Result<FileDescriptor> {
    let mut files = HashMap::new();
    for (name, text) in references {
        check_size(text)?;
        files.insert(name.clone(), file(name, text).map_err(|error| invalid(&error))?);
    }
    check_size(text)?;
    files.insert(ROOT.to_owned(), file(ROOT, text).map_err(|error| invalid(&error))?);
    let mut resolver = ChainFileResolver::new();
    resolver.add(Files(files));
    resolver.add(GoogleFileResolver::new());
    let mut compiler = Compiler::with_file_resolver(resolver);
    compiler.include_imports(true);
    compiler.open_file(ROOT).map_err(|error| invalid(&error))?;
    // The compiler's own descriptors do not know the option `packed`, which it reads last.
    let pool = DescriptorPool::decode(compiler.encode_file_descriptor_set().as_slice())
        .map_err(|error| Error::schema(format!("it is not a file in Protobuf: {error}")))?;
    let file = pool.get_file_by_name(ROOT);
    file.ok_or_else(|| Error::schema("the compiler returned no file"))
}

pub fn invalid(error: &protox::Error) -> Error {
    let shown = error.to_string().replace(ROOT, "the schema");
    if error.is_file_not_found() {
        return Error::schema(format!("{shown}; is a reference missing?"));
    }
    Error::schema(format!("it is not a file in Protobuf: {shown}"))
}

/// Parses a text, or a descriptor in base64.
pub fn file(name: &str, text: &str) -> Result<File, protox::Error> {
    if let Some(descriptor) = descriptor(text) {
        return Ok(File::from_file_descriptor_proto(FileDescriptorProto {
            name: Some(name.to_owned()),
            ..descriptor
        }));
    }
    let mut depth = 0usize;
    for byte in text.bytes() {
        match byte {
            b'{' | b'[' | b'(' => depth += 1,
            b'}' | b']' | b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Err(protox::Error::new(format!("its brackets are nested more than {MAX_DEPTH} deep")));
        }
    }
    File::from_source(name, text)
}

fn descriptor(text: &str) -> Option<FileDescriptorProto> {
    let bytes = STANDARD.decode(text.trim()).ok().filter(|it| !it.is_empty())?;
    FileDescriptorProto::decode(bytes.as_slice()).ok()
}

/// The schema and its references.
struct Files(HashMap<String, File>);

impl FileResolver for Files {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        self.0.get(name).cloned().ok_or_else(|| protox::Error::file_not_found(name))
    }
}
