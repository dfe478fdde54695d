//! Times as they are written on the command line: the same forms in every option.

use std::time::{SystemTime, UNIX_EPOCH};

/// The forms of a time, for `--help` and errors.
pub const TIME_FORMS: &str = "-1h (or -30s, -15m, -2d, -1w, -1h30m), now, 2026-11-29, 2026-11-29T10:00, 2026-11-29T10:00:05.250+01:00 or @MILLISECONDS \
     since 1970; UTC without an offset";

/// The units of durations, the longest first, in milliseconds.
const UNITS: [(&str, i64); 6] =
    [("w", 604_800_000), ("d", 86_400_000), ("h", 3_600_000), ("ms", 1), ("m", 60_000), ("s", 1000)];

/// Returns the time in milliseconds since 1970.
pub fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

/// Parses a time in one of the [`TIME_FORMS`], or a number of milliseconds since 1970. Returns milliseconds since 1970.
///
/// # Errors
///
/// A text that names the forms.
pub fn parse_time(text: &str, now_ms: i64) -> Result<i64, String> {
    let digits = text.strip_prefix('@').unwrap_or(text);
    if is_digits(digits) {
        return digits.parse().map_err(|_| format!("\"{text}\" is too large for milliseconds since 1970"));
    }
    written_time(text, now_ms).ok_or_else(|| format!("\"{text}\" is not a time; write {TIME_FORMS}"))
}

/// Parses the forms of a time that can't be an offset or a number of records.
pub fn written_time(text: &str, now_ms: i64) -> Option<i64> {
    if let Some(ms) = text.strip_prefix('@') {
        return is_digits(ms).then(|| ms.parse().ok()).flatten();
    }
    let rest = text.strip_prefix("now").unwrap_or(text);
    if text.starts_with("now") && rest.is_empty() {
        return Some(now_ms);
    }
    if let Some(ago) = rest.strip_prefix('-') {
        return Some((now_ms - parse_duration(ago)?).max(0));
    }
    if let Some(ahead) = rest.strip_prefix('+') {
        return now_ms.checked_add(parse_duration(ahead)?);
    }
    match text.len() {
        10 => date_and_time(&format!("{text}T00:00")),
        _ => date_and_time(&text.replacen(' ', "T", 1)),
    }
}

/// Parses a duration such as `1h30m`, `500ms` or `2d`. Returns milliseconds.
pub fn parse_duration(text: &str) -> Option<i64> {
    let (mut rest, mut total) = (text, 0_i64);
    if text.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|letter: char| !letter.is_ascii_digit())?;
        let (number, after) = rest.split_at(end);
        let (unit, ms) = UNITS.iter().find(|(unit, _)| after.starts_with(unit))?;
        total = total.checked_add(number.parse::<i64>().ok()?.checked_mul(*ms)?)?;
        rest = &after[unit.len()..];
    }
    Some(total)
}

/// Formats milliseconds since 1970 as `2026-11-29T10:00:05.250Z`; a negative number stays one.
pub fn iso_time(ms: i64) -> String {
    let formatted = u64::try_from(ms)
        .ok()
        .and_then(|ms| crate::perf::date::format("yyyy-MM-dd'T'HH:mm:ss.SSSX", ms).ok());
    formatted.unwrap_or_else(|| ms.to_string())
}

/// True for one or more digits.
pub fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Parses a date and time such as `2026-11-23T10:30:00.000`, in UTC unless it ends with an offset such as `+02:00`. Returns
/// milliseconds since 1970.
pub fn date_and_time(text: &str) -> Option<i64> {
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
pub fn iso_duration(text: &str) -> Option<i64> {
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

    const NOW: i64 = 1_709_209_815_250;

    #[test]
    fn times_are_relative_iso_or_milliseconds() {
        for (text, ms) in [
            ("now", NOW),
            ("-1h", NOW - 3_600_000),
            ("now-1h30m", NOW - 5_400_000),
            ("-250ms", NOW - 250),
            ("+1d", NOW + 86_400_000),
            ("2024-02-29", 1_709_164_800_000),
            ("2024-02-29T12:30:15.250Z", NOW),
            ("2024-02-29 12:30", 1_709_209_800_000),
            ("@1700000000000", 1_700_000_000_000),
            ("1700000000000", 1_700_000_000_000),
        ] {
            assert_eq!(parse_time(text, NOW), Ok(ms), "{text}");
        }
        for wrong in [
            "",
            "-",
            "-1",
            "-1y",
            "-h",
            "soon",
            "now1h",
            "2024-02-30",
            "@",
            "@x",
            "99999999999999999999",
            "-9223372036854775807w",
        ] {
            assert!(parse_time(wrong, NOW).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_are_printed_as_iso_8601() {
        assert_eq!(iso_time(NOW), "2024-02-29T12:30:15.250Z");
        assert_eq!(iso_time(-1), "-1");
    }
}
