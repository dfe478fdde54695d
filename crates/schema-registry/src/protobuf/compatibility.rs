//! Which changes of a file leave it readable.

use std::collections::HashMap;

use prost_reflect::{FieldDescriptor, FileDescriptor, Kind, MessageDescriptor};

/// Says why the reader's file can't read what the writer's file writes.
pub fn incompatibilities(reader: &FileDescriptor, writer: &FileDescriptor) -> Vec<String> {
    let mut found = Vec::new();
    if reader.package_name() != writer.package_name() {
        found.push(format!("the package {:?} became {:?}", writer.package_name(), reader.package_name()));
    }
    let readers: HashMap<String, MessageDescriptor> =
        reader.messages().map(|it| (it.name().to_owned(), it)).collect();
    for message in writer.messages() {
        match readers.get(message.name()) {
            Some(reader) => compare(reader, &message, &mut found),
            None => found.push(format!("the message {} is gone", message.full_name())),
        }
    }
    found
}

fn compare(reader: &MessageDescriptor, writer: &MessageDescriptor, found: &mut Vec<String>) {
    for nested in writer.child_messages().filter(|it| !it.is_map_entry()) {
        match reader.child_messages().find(|it| it.name() == nested.name()) {
            Some(reader) => compare(&reader, &nested, found),
            None => found.push(format!("the message {} is gone", nested.full_name())),
        }
    }
    for field in writer.fields() {
        let name = format!("{}.{}", writer.full_name(), field.name());
        let Some(reads) = reader.get_field(field.number()) else {
            if field.is_required() {
                found.push(format!("the required field {name} is gone"));
            } else if field.containing_oneof().is_some_and(|it| !it.is_synthetic()) {
                found.push(format!("the field {name} of a oneof is gone"));
            }
            continue;
        };
        if let Some(why) = different(&reads, &field) {
            found.push(format!("{name} [{}]: {why}", field.number()));
        }
    }
    for field in reader.fields().filter(FieldDescriptor::is_required) {
        if writer.get_field(field.number()).is_none() {
            found.push(format!("the required field {}.{} is new", reader.full_name(), field.name()));
        }
    }
    for oneof in reader.oneofs().filter(|it| !it.is_synthetic()) {
        let before = oneof.fields().filter_map(|field| writer.get_field(field.number()));
        let outside = before.filter(|it| it.containing_oneof().is_none_or(|it| it.is_synthetic()));
        if outside.count() > 1 {
            found.push(format!(
                "several fields moved into the oneof {}.{}",
                reader.full_name(),
                oneof.name()
            ));
        }
    }
}

/// Says how two fields with the same number differ.
fn different(reader: &FieldDescriptor, writer: &FieldDescriptor) -> Option<String> {
    if reader.is_map() != writer.is_map() {
        return Some("a map became another type, or the reverse".to_owned());
    }
    let is_packable =
        |field: &FieldDescriptor| !matches!(field.kind(), Kind::String | Kind::Bytes | Kind::Message(_));
    if reader.is_list() != writer.is_list() && is_packable(reader) {
        return Some("a repeated number became a single one, or the reverse".to_owned());
    }
    let (to, from) = (reader.kind(), writer.kind());
    let is_same = match (&from, &to) {
        (Kind::Message(from), Kind::Message(to)) if from.is_map_entry() && to.is_map_entry() => {
            let key = different(&to.map_entry_key_field(), &from.map_entry_key_field());
            return key.or_else(|| different(&to.map_entry_value_field(), &from.map_entry_value_field()));
        }
        (Kind::Message(from), Kind::Message(to)) => from.full_name() == to.full_name(),
        (Kind::Enum(_), Kind::Enum(_)) => true,
        (from, to) => group(from) == group(to),
    };
    (!is_same).then(|| format!("{from:?} became {to:?}"))
}

/// Kinds of the same group have the same bytes.
fn group(kind: &Kind) -> u8 {
    match kind {
        Kind::Int32 | Kind::Int64 | Kind::Uint32 | Kind::Uint64 | Kind::Bool | Kind::Enum(_) => 0,
        Kind::Sint32 | Kind::Sint64 => 1,
        Kind::String | Kind::Bytes => 2,
        Kind::Fixed32 | Kind::Sfixed32 => 3,
        Kind::Fixed64 | Kind::Sfixed64 => 4,
        Kind::Float => 5,
        Kind::Double => 6,
        Kind::Message(_) => 7,
    }
}
