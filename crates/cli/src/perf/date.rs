//! Times in the pattern letters of Java's SimpleDateFormat, in UTC.

/// Formats a time in milliseconds since 1970 with a pattern such as `yyyy-MM-dd HH:mm:ss:SSS`. The error is the unknown
/// letter.
pub fn format(pattern: &str, unix_ms: u64) -> Result<String, char> {
    let time = Time::new(unix_ms);
    let mut out = String::new();
    let mut rest = pattern.chars().peekable();
    while let Some(letter) = rest.next() {
        if letter == '\'' {
            quoted(&mut rest, &mut out);
            continue;
        }
        if !letter.is_ascii_alphabetic() {
            out.push(letter);
            continue;
        }
        let mut width = 1;
        while rest.next_if_eq(&letter).is_some() {
            width += 1;
        }
        let number = match letter {
            'y' if width == 2 => time.year % 100,
            'y' => time.year,
            'M' if width >= 3 => {
                let name = MONTHS[time.month as usize - 1];
                out.push_str(if width == 3 { &name[..3] } else { name });
                continue;
            }
            'M' => time.month,
            'd' => time.day,
            'D' => time.day_of_year,
            'H' => time.hour,
            'h' => (time.hour + 11) % 12 + 1,
            'm' => time.minute,
            's' => time.second,
            'S' => time.millis,
            'a' => {
                out.push_str(if time.hour < 12 { "AM" } else { "PM" });
                continue;
            }
            'E' => {
                let name = DAYS[time.weekday as usize];
                out.push_str(if width <= 3 { &name[..3] } else { name });
                continue;
            }
            'z' => {
                out.push_str("UTC");
                continue;
            }
            'Z' => {
                out.push_str("+0000");
                continue;
            }
            'X' => {
                out.push('Z');
                continue;
            }
            other => return Err(other),
        };
        out.push_str(&format!("{number:0width$}"));
    }
    Ok(out)
}

/// Returns the text between quotes; two quotes stand for one.
fn quoted(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) {
    if rest.next_if_eq(&'\'').is_some() {
        out.push('\'');
        return;
    }
    while let Some(letter) = rest.next() {
        if letter != '\'' {
            out.push(letter);
        } else if rest.next_if_eq(&'\'').is_some() {
            out.push('\'');
        } else {
            return;
        }
    }
}

struct Time {
    year: u64,
    month: u64,
    day: u64,
    day_of_year: u64,
    weekday: u64,
    hour: u64,
    minute: u64,
    second: u64,
    millis: u64,
}

impl Time {
    fn new(unix_ms: u64) -> Time {
        let (days, ms) = (unix_ms / 86_400_000, unix_ms % 86_400_000);
        let (mut year, mut day) = (1970, days);
        while day >= days_of(year) {
            day -= days_of(year);
            year += 1;
        }
        let day_of_year = day + 1;
        let mut month = 1;
        while day >= days_of_month(year, month) {
            day -= days_of_month(year, month);
            month += 1;
        }
        Time {
            year,
            month,
            day: day + 1,
            day_of_year,
            weekday: (days + 4) % 7,
            hour: ms / 3_600_000,
            minute: ms / 60_000 % 60,
            second: ms / 1000 % 60,
            millis: ms % 1000,
        }
    }
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_of(year: u64) -> u64 {
    if is_leap(year) { 366 } else { 365 }
}

fn days_of_month(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_have_javas_format() {
        let pattern = "yyyy-MM-dd HH:mm:ss:SSS";
        assert_eq!(format(pattern, 0).unwrap(), "1970-01-01 00:00:00:000");
        assert_eq!(format(pattern, 1_795_228_947_708).unwrap(), "2026-11-21 02:42:27:708");
        assert_eq!(format(pattern, 951_782_399_999).unwrap(), "2000-02-28 23:59:59:999");
        assert_eq!(format(pattern, 951_782_400_000).unwrap(), "2000-02-29 00:00:00:000");
        assert_eq!(
            format("EEE d MMM yy, h 'o''clock' a z", 1_795_228_947_708).unwrap(),
            "Sat 21 Nov 26, 2 o'clock AM UTC"
        );
        assert_eq!(format("MMMM EEEE DDD ''", 951_782_400_000).unwrap(), "February Tuesday 060 '");
    }

    #[test]
    fn unknown_pattern_letter_is_named() {
        assert_eq!(format("yyyy Q", 0), Err('Q'));
    }
}
