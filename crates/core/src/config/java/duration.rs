//! ISO 8601 durations, as Java's `Duration.parse` reads them.

use std::time::Duration;

/// Parses a duration that is not negative: `PT1H`, `P2DT3H4M`, `pt0.5s`. `None`: it is another text, or too long.
pub(in crate::config) fn parse(text: &str) -> Option<Duration> {
    let text = text.trim().to_ascii_uppercase();
    let rest = text.strip_prefix('+').unwrap_or(&text).strip_prefix('P')?;
    let (days, times) = match rest.split_once('T') {
        Some((_, "")) => return None,
        Some((days, times)) => (days, times),
        None => (rest, ""),
    };
    if rest.is_empty() {
        return None;
    }
    let mut sum = Duration::ZERO;
    for (part, units) in [(days, &[('D', 86_400)][..]), (times, &[('H', 3600), ('M', 60), ('S', 1)][..])] {
        sum = sum.checked_add(parts(part, units)?)?;
    }
    Some(sum)
}

/// Adds the numbers in front of units, which come in this order.
fn parts(mut text: &str, units: &[(char, u64)]) -> Option<Duration> {
    let mut sum = Duration::ZERO;
    for (unit, seconds) in units {
        let Some((number, rest)) = text.split_once(*unit) else { continue };
        text = rest;
        let (whole, fraction) = number.split_once(['.', ',']).unwrap_or((number, ""));
        let has_fraction = whole.len() != number.len();
        let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
        if !is_digits(whole) || (has_fraction && (*unit != 'S' || fraction.len() > 9)) {
            return None;
        }
        let whole: u64 = whole.parse().ok()?;
        let nanos = match fraction {
            "" => 0,
            digits if is_digits(digits) => format!("{digits:0<9}").parse().ok()?,
            _ => return None,
        };
        sum = sum.checked_add(Duration::new(whole.checked_mul(*seconds)?, nanos))?;
    }
    text.is_empty().then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_java() {
        for (text, seconds) in [
            ("PT1H", 3600.0),
            ("P1D", 86_400.0),
            ("p2dt3h4m5.5s", 183_845.5),
            (" PT0S ", 0.0),
            ("+PT90M", 5400.0),
            ("PT0.000000001S", 1e-9),
        ] {
            assert_eq!(parse(text).map(|found| found.as_secs_f64()), Some(seconds), "{text}");
        }
        for text in [
            "", "P", "PT", "1H", "P1H", "PT1", "PT1D", "PT-1H", "-PT1H", "PT1M2H", "P1W", "PT1.5H", "PTS",
            "PT1H ",
        ] {
            let expected = if text == "PT1H " { Some(Duration::from_secs(3600)) } else { None };
            assert_eq!(parse(text), expected, "{text}");
        }
        assert_eq!(parse(&format!("P{}D", u64::MAX)), None);
    }
}
