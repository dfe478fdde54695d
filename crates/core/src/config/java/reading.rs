//! Values that the Java clients permit and a row of the table does not.

use std::borrow::Cow;

use super::{
    super::table::{Kind, Property},
    classes, duration,
    properties::{self, JavaKind},
};

/// A value as the check of its row gets it.
pub(in crate::config) struct Reading<'a> {
    pub value: Cow<'a, str>,
    /// True if the value is not the one that was written, but the nearest one that this client has.
    pub is_nearest: bool,
}

/// The word in front of a duration in `auto.offset.reset`.
pub(in crate::config) const BY_DURATION: &str = "by_duration:";

/// Reads a value as the Java clients do, for the check of its row.
pub(in crate::config) fn read<'a>(property: &'static Property, value: &'a str) -> Reading<'a> {
    let exact = |value| Reading { value, is_nearest: false };
    match (property.name, property.kind) {
        ("partition.assignment.strategy", _) => exact(Cow::Owned(classes::assignors(value))),
        // Java turns the check off by an empty value.
        ("ssl.endpoint.identification.algorithm", _) if value.trim().is_empty() => {
            exact(Cow::Borrowed("none"))
        }
        // A negative time is none: connections are never closed.
        ("connections.max.idle.ms", _) if is_negative(value) => exact(Cow::Borrowed("0")),
        (_, Kind::Integer { min, max, .. }) => {
            nearest(property, value, min as f64, max as f64, &max.to_string())
        }
        (_, Kind::Float { min, max, .. }) => nearest(property, value, min, max, &max.to_string()),
        _ => exact(Cow::Borrowed(value)),
    }
}

/// Returns the nearest number of the row's range, if Java permits the number.
fn nearest<'a>(property: &Property, value: &'a str, min: f64, max: f64, most: &str) -> Reading<'a> {
    let permitted = properties::find(property.name).and_then(|java| match java.kind {
        JavaKind::Whole(min, max) => Some(min.max(0)..=max),
        _ => None,
    });
    let number = value
        .trim()
        .parse::<i64>()
        .ok()
        .filter(|number| permitted.is_some_and(|range| range.contains(number)));
    let nearest = match number {
        Some(number) if (number as f64) < min => min.to_string(),
        Some(number) if number as f64 > max => most.to_owned(),
        _ => return Reading { value: Cow::Borrowed(value), is_nearest: false },
    };
    Reading { value: Cow::Owned(nearest), is_nearest: true }
}

fn is_negative(value: &str) -> bool {
    value.trim().parse::<i64>().is_ok_and(|number| number < 0)
}

/// Returns true if a value of `auto.offset.reset` is a duration.
pub(in crate::config) fn is_duration(property: &Property, value: &str) -> bool {
    property.name == "auto.offset.reset"
        && value.strip_prefix(BY_DURATION).is_some_and(|text| duration::parse(text).is_some())
}
