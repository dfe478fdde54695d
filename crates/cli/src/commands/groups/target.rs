//! Where `ottla groups reset-offsets` moves the committed offsets to, as written on the command line.

use crate::failure::{Failure, Outcome};
use crate::times;

/// Where the offsets are moved to.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// The first record.
    Earliest,
    /// The end.
    Latest,
    /// The committed offset, or the end without one.
    Current,
    /// This offset.
    Offset(i64),
    /// This many records further, or back.
    Shift(i64),
    /// The first record that is not older, in milliseconds since 1970.
    Time(i64),
}

/// Parses a date and time, or another form of a time. Returns milliseconds since 1970.
///
/// # Errors
///
/// [`Failure::Usage`] that names the forms.
pub fn parse_datetime(text: &str) -> Outcome<i64> {
    let wrong = || Failure::Usage(format!("--to-datetime {text}: write {}", times::TIME_FORMS));
    times::written_time(text, times::now_ms()).ok_or_else(wrong)
}

/// Parses a duration such as `P1DT2H30M` or `PT0.5S`. Returns milliseconds.
pub fn parse_duration(text: &str) -> Outcome<i64> {
    let wrong = || {
        Failure::Usage(format!(
            "--by-duration {text}: write it as 36h, 1d12h or PnDTnHnMnS, for example P1DT12H"
        ))
    };
    times::iso_duration(text).or_else(|| times::parse_duration(text)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_with_and_without_a_zone() {
        for (text, millis) in [
            ("1970-01-01T00:00:00.000", 0),
            ("2024-02-29T12:30:15.250Z", 1_709_209_815_250),
            ("2024-02-29T12:30:15.25+02:00", 1_709_202_615_250),
            ("2024-02-29T12:30:15-0130", 1_709_215_215_000),
            ("2024-02-29T12:30", 1_709_209_800_000),
            ("2024-02-29", 1_709_164_800_000),
            ("@1709209800000", 1_709_209_800_000),
        ] {
            assert_eq!(parse_datetime(text), Ok(millis), "{text}");
        }
        for wrong in [
            "",
            "2024-02-30T00:00:00",
            "2023-02-29T00:00:00",
            "2024-13-01T00:00:00",
            "2024-01-01T25:00:00",
            "2024-01-01T00:00:00.1234",
            "+024-01-01T00:00:00",
            "2024-01-01T00:00:00+2",
            "2024-01-01T00:00:00+25:00",
            "99999999999-01-01T00:00:00",
        ] {
            assert!(matches!(parse_datetime(wrong), Err(Failure::Usage(_))), "{wrong}");
        }
    }

    #[test]
    fn durations_are_read_as_java_writes_them() {
        for (text, millis) in
            [("P1D", 86_400_000), ("PT1H30M", 5_400_000), ("P1DT0.5S", 86_400_500), ("PT0S", 0)]
        {
            assert_eq!(parse_duration(text), Ok(millis), "{text}");
        }
        for wrong in ["", "P", "PT", "1D", "P1H", "PT1D", "P-1D", "PT1M1H", "P1DT", "PTS", "P99999999999D"] {
            assert!(matches!(parse_duration(wrong), Err(Failure::Usage(_))), "{wrong}");
        }
    }
}
