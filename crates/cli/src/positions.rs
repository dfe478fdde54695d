//! Where to start and to stop in partitions, as written behind `-o` and `--until`.

use ottla::Offset;

use crate::failure::{Failure, Outcome};
use crate::times::{TIME_FORMS, is_digits, now_ms, parse_time, written_time};

/// Where a command stops in each partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Before this offset.
    Offset(i64),
    /// This many records before the end at the start of the command; 0 is the end.
    Tail(i64),
    /// Before the first record with this timestamp, in milliseconds since 1970, or a later one.
    Time(i64),
}

/// Where a command starts and stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The start.
    pub start: Offset,
    /// The point to stop at, if there is one.
    pub stop: Option<Stop>,
}

/// Parses the values of `-o`, and that of `--until`.
///
/// # Errors
///
/// [`Failure::Usage`] that names the possible forms.
pub fn parse_range(offsets: &[String], until: Option<&str>) -> Outcome<Range> {
    parse_range_at(offsets, until, now_ms())
}

fn parse_range_at(offsets: &[String], until: Option<&str>, now_ms: i64) -> Outcome<Range> {
    let mut range = Range { start: Offset::End, stop: None };
    for text in offsets {
        match text.strip_prefix("e@") {
            Some(time) => range.stop = Some(Stop::Time(time_of("-o", text, time, now_ms)?)),
            None => range.start = start_of(text, now_ms)?,
        }
    }
    if let Some(text) = until {
        range.stop = Some(stop_of(text, now_ms)?);
    }
    Ok(range)
}

fn start_of(text: &str, now_ms: i64) -> Outcome<Offset> {
    match text {
        "beginning" | "earliest" => return Ok(Offset::Beginning),
        "end" | "latest" => return Ok(Offset::End),
        "stored" => {
            let text = "-o stored: a group (-G ID) continues at its committed offsets without -o";
            return Err(Failure::Usage(text.into()));
        }
        _ => {}
    }
    if let Some(time) = text.strip_prefix("s@") {
        return time_of("-o", text, time, now_ms).map(Offset::Timestamp);
    }
    number(text).map(|(is_tail, count)| if is_tail { Offset::Tail(count) } else { Offset::At(count) })
        .or_else(|| written_time(text, now_ms).map(Offset::Timestamp))
        .ok_or_else(|| {
            Failure::Usage(format!(
                "-o {text}: must be beginning, end, an offset, -N for the last N messages of each partition, or a time: {TIME_FORMS}; \
                 s@TIME and e@TIME are a start and an end"
            ))
        })
}

fn stop_of(text: &str, now_ms: i64) -> Outcome<Stop> {
    if matches!(text, "end" | "latest") {
        return Ok(Stop::Tail(0));
    }
    if let Some(time) = text.strip_prefix("e@") {
        return time_of("--until", text, time, now_ms).map(Stop::Time);
    }
    number(text).map(|(is_tail, count)| if is_tail { Stop::Tail(count) } else { Stop::Offset(count) })
        .or_else(|| written_time(text, now_ms).map(Stop::Time))
        .ok_or_else(|| {
            Failure::Usage(format!(
                "--until {text}: must be end, an offset, -N for N messages before the end of each partition, or a time: {TIME_FORMS}"
            ))
        })
}

/// Returns a number, and whether a minus stands before it.
fn number(text: &str) -> Option<(bool, i64)> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let number = is_digits(digits).then(|| digits.parse().ok()).flatten()?;
    Some((digits.len() < text.len(), number))
}

fn time_of(option: &str, whole: &str, time: &str, now_ms: i64) -> Outcome<i64> {
    parse_time(time, now_ms).map_err(|error| Failure::Usage(format!("{option} {whole}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_709_209_815_250;

    fn parse(texts: &[&str], until: Option<&str>) -> Outcome<Range> {
        parse_range_at(&texts.iter().map(|text| text.to_string()).collect::<Vec<_>>(), until, NOW)
    }

    #[test]
    fn offsets_are_written_as_in_kcat() {
        let start = |text: &str| parse(&[text], None).map(|range| range.start);
        assert_eq!(parse(&[], None), Ok(Range { start: Offset::End, stop: None }));
        assert_eq!(start("beginning"), Ok(Offset::Beginning));
        assert_eq!(start("42"), Ok(Offset::At(42)));
        assert_eq!(start("-42"), Ok(Offset::Tail(42)));
        let range = Range { start: Offset::Timestamp(5), stop: Some(Stop::Time(7)) };
        assert_eq!(parse(&["s@5", "e@7"], None), Ok(range));
        for wrong in ["", "x", "--1", "s@", "e@x", "99999999999999999999", "+1", "stored", "-1y"] {
            assert!(matches!(parse(&[wrong], None), Err(Failure::Usage(_))), "{wrong}");
        }
    }

    #[test]
    fn start_and_stop_are_also_times_and_distances() {
        let start = |text: &str| parse(&[text], None).map(|range| range.start);
        let stop = |text: &str| parse(&[], Some(text)).map(|range| range.stop);
        assert_eq!(start("-1h"), Ok(Offset::Timestamp(NOW - 3_600_000)));
        assert_eq!(start("s@-1h"), Ok(Offset::Timestamp(NOW - 3_600_000)));
        assert_eq!(start("2024-02-29"), Ok(Offset::Timestamp(1_709_164_800_000)));
        assert_eq!(start("@5"), Ok(Offset::Timestamp(5)));
        assert_eq!(stop("end"), Ok(Some(Stop::Tail(0))));
        assert_eq!(stop("-5"), Ok(Some(Stop::Tail(5))));
        assert_eq!(stop("17"), Ok(Some(Stop::Offset(17))));
        assert_eq!(stop("-5m"), Ok(Some(Stop::Time(NOW - 300_000))));
        assert_eq!(stop("e@7"), Ok(Some(Stop::Time(7))));
        for wrong in ["", "beginning", "soon", "s@5"] {
            assert!(matches!(stop(wrong), Err(Failure::Usage(_))), "{wrong}");
        }
    }
}
