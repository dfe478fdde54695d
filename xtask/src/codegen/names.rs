//! Chooses a type name for every struct in a message: the singular of the field's name, in camel case.

use std::collections::BTreeMap;

use super::schema::{Base, Field};

/// A nested struct of a message.
#[derive(Debug)]
pub struct Struct<'a> {
    /// The type name.
    pub name: String,
    /// The first field with this struct.
    pub field: &'a Field,
}

/// The structs of a message, outer ones first, and the struct of each field.
#[derive(Debug, Default)]
pub struct Structs<'a> {
    /// The structs.
    pub all: Vec<Struct<'a>>,
    by_field: BTreeMap<*const Field, String>,
}

/// Names that would shadow items of the prelude.
const TAKEN: [&str; 12] =
    ["Box", "Clone", "Copy", "Default", "Err", "None", "Ok", "Option", "Result", "Some", "String", "Vec"];

impl<'a> Structs<'a> {
    /// Names the structs below `fields`. Equal structs with the same name become one type. Different structs with the
    /// same name, or with a name in use, are prefixed with the name of the enclosing struct (`outer` at the top).
    pub fn of(outer: &str, fields: &'a [Field]) -> Result<Self, String> {
        let mut shapes: BTreeMap<String, Vec<&[Field]>> = BTreeMap::new();
        collect(fields, &mut shapes);
        let mut structs = Self::default();
        structs.name(outer, fields, &shapes)?;
        Ok(structs)
    }

    fn name(
        &mut self,
        outer: &str,
        fields: &'a [Field],
        shapes: &BTreeMap<String, Vec<&[Field]>>,
    ) -> Result<(), String> {
        for field in fields {
            let Base::Struct(inner) = &field.base else { continue };
            let mut name = type_name(field);
            let is_ambiguous = shapes.get(&name).is_some_and(|shapes| shapes.len() > 1);
            if is_ambiguous || TAKEN.contains(&name.as_str()) {
                name = format!("{outer}{name}");
            }
            self.by_field.insert(field, name.clone());
            match self.all.iter().find(|each| each.name == name) {
                Some(same) if same.field.base == field.base => {}
                Some(_) => return Err(format!("two different structs would be called {name}")),
                None => self.all.push(Struct { name: name.clone(), field }),
            }
            self.name(&name, inner, shapes)?;
        }
        Ok(())
    }

    /// Returns the type name of the struct of `field`, or of its elements.
    pub fn of_field(&self, field: &Field) -> &str {
        self.by_field.get(&std::ptr::from_ref(field)).map_or("", String::as_str)
    }
}

fn collect<'a>(fields: &'a [Field], shapes: &mut BTreeMap<String, Vec<&'a [Field]>>) {
    for field in fields {
        if let Base::Struct(inner) = &field.base {
            let shapes_here = shapes.entry(type_name(field)).or_default();
            if !shapes_here.contains(&inner.as_slice()) {
                shapes_here.push(inner);
            }
            collect(inner, shapes);
        }
    }
}

fn type_name(field: &Field) -> String {
    if field.is_array { camel(&singular(&field.name)) } else { camel(&field.name) }
}

fn singular(name: &str) -> String {
    let ends = |suffix: &str| name.strip_suffix(suffix);
    if let Some(stem) = ends("ies") {
        format!("{stem}y")
    } else if ["sses", "xes", "ches"].iter().any(|suffix| name.ends_with(suffix)) {
        name[..name.len() - 2].to_owned()
    } else if ends("ss").is_some() || ends("us").is_some() {
        name.to_owned()
    } else {
        ends("s").unwrap_or(name).to_owned()
    }
}

fn camel(name: &str) -> String {
    let mut camel = String::new();
    for word in name.split('_') {
        let mut letters = word.chars();
        camel.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    camel
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::schema::Schema;

    #[test]
    fn names_are_singular() {
        for (plural, one) in [
            ("topics", "topic"),
            ("entries", "entry"),
            ("responses", "response"),
            ("aborted_transactions", "aborted_transaction"),
            ("status", "status"),
            ("topic_data", "topic_data"),
            ("addresses", "address"),
            ("indexes", "index"),
        ] {
            assert_eq!(singular(plural), one);
        }
    }

    #[test]
    fn different_structs_with_one_name_get_their_parents_names() {
        let text = "api Demo 7\nversions 0-2\nrequest\n  a []{}\n    topics []{}\n      x int8\n  \
                    bs []{}\n    topics []{}\n      y int8\n  results []{}\n    z int8\n";
        let schema = Schema::parse("07_demo", text).unwrap();
        let structs = Structs::of("Demo", &schema.messages[0].fields).unwrap();
        let names: Vec<&str> = structs.all.iter().map(|each| each.name.as_str()).collect();
        assert_eq!(names, ["A", "ATopic", "B", "BTopic", "DemoResult"]);
    }
}
