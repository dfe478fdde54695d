//! Where `ottla groups reset-offsets` moves the committed offsets to, as written on the command line.

use crate::failure::{Failure, Outcome};

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

/// Parses a date and time such as `2026-11-23T10:30:00.000`, in UTC unless it ends with an offset such as `+02:00`. Returns
/// milliseconds since 1970.
pub fn parse_datetime(text: &str) -> Outcome<i64> {
    let wrong = || {
        Failure::Usage(format!(
            "--to-datetime {text}: write it as YYYY-MM-DDTHH:mm:SS.sss, with Z or ±HH:mm behind it"
        ))
    };
    datetime(text).ok_or_else(wrong)
}

fn datetime(text: &str) -> Option<i64> {
    let (date, rest) = text.split_once('T')?;
    let (time, zone) = match rest.find(['Z', '+', '-']) {
        Some(at) => rest.split_at(at),
        None => (rest, "Z"),
    };
    let date: Vec<i64> = numbers(date, '-', 3)?;
    let (seconds, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut time = numbers(seconds, ':', 3).or_else(|| numbers(seconds, ':', 2))?;
    time.resize(3, 0);
    let (year, month, day) = (date[0], date[1], date[2]);
    let (hour, minute, second) = (time[0], time[1], time[2]);
    let is_valid = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days_in(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60
        && fraction.len() <= 3
        && is_number(fraction);
    if !is_valid {
        return None;
    }
    let millis: i64 = format!("{fraction:0<3}").parse().ok()?;
    let seconds = ((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    Some((seconds - zone_seconds(zone)?) * 1000 + millis)
}

fn zone_seconds(zone: &str) -> Option<i64> {
    if zone == "Z" {
        return Some(0);
    }
    let (sign, zone) = zone.split_at_checked(1)?;
    let parts = if zone.contains(':') {
        numbers(zone, ':', 2)?
    } else {
        numbers(&format!("{}:{}", zone.get(..2)?, zone.get(2..)?), ':', 2)?
    };
    let seconds = (parts[0] * 60 + parts[1]) * 60;
    (parts[0] < 24 && parts[1] < 60).then_some(if sign == "-" { -seconds } else { seconds })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.len() <= 10 && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Parses this many numbers without a sign.
fn numbers(text: &str, separator: char, count: usize) -> Option<Vec<i64>> {
    let numbers = text.split(separator).map(|part| is_number(part).then(|| part.parse().ok()).flatten());
    numbers.collect::<Option<Vec<i64>>>().filter(|numbers| numbers.len() == count)
}

const fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

const fn days_in(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + is_leap(year) as i64,
        _ => 31,
    }
}

/// Returns the number of days since 1970-01-01.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let of_years: i64 = (1970..year).map(|year| 365 + i64::from(is_leap(year))).sum();
    of_years + (1..month).map(|month| days_in(year, month)).sum::<i64>() + day - 1
}

/// Parses a duration such as `P1DT2H30M` or `PT0.5S`. Returns milliseconds.
pub fn parse_duration(text: &str) -> Outcome<i64> {
    let wrong =
        || Failure::Usage(format!("--by-duration {text}: write it as PnDTnHnMnS, for example P1DT12H"));
    duration(text).ok_or_else(wrong)
}

fn duration(text: &str) -> Option<i64> {
    let rest = text.strip_prefix('P')?;
    let (date, time) = rest.split_once('T').unwrap_or((rest, ""));
    if rest.is_empty() || rest.ends_with('T') {
        return None;
    }
    let mut millis = 0.0;
    for (part, units) in [(date, &[('D', 86_400.0)][..]), (time, &[('H', 3_600.0), ('M', 60.0), ('S', 1.0)])]
    {
        let mut part = part;
        for (letter, seconds) in units {
            let Some((number, left)) = part.split_once(*letter) else { continue };
            let is_valid =
                number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') && number.len() <= 12;
            millis += is_valid.then(|| number.parse::<f64>().ok()).flatten()? * seconds * 1000.0;
            part = left;
        }
        if !part.is_empty() {
            return None;
        }
    }
    (millis <= 1e15).then_some(millis as i64)
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
        ] {
            assert_eq!(parse_datetime(text), Ok(millis), "{text}");
        }
        for wrong in [
            "",
            "2024-02-30T00:00:00",
            "2023-02-29T00:00:00",
            "2024-13-01T00:00:00",
            "2024-01-01",
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
