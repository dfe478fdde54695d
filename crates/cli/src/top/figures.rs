//! Numbers in few columns, bars of one line, and texts of others that are safe to print.

/// The levels of a sparkline, in characters that need a font with blocks.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The levels of a sparkline in ASCII.
const ASCII: [char; 8] = ['_', '.', ':', '-', '=', '+', '*', '#'];

/// Formats a number in at most five characters, such as `999`, `1.5k` or `12.3M`.
pub fn short(value: f64) -> String {
    scaled(value, 1000.0, &["", "k", "M", "G", "T", "P", "E"])
}

/// Formats a number of bytes in at most six characters, such as `512B` or `1.5MiB` without `iB`.
pub fn bytes(value: f64) -> String {
    scaled(value, 1024.0, &["B", "K", "M", "G", "T", "P", "E"])
}

fn scaled(value: f64, step: f64, units: &[&str]) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    let (sign, mut value) = (if value < 0.0 { "-" } else { "" }, value.abs());
    let mut unit = 0;
    // 999.95 would be printed as 1000.0.
    while value >= step - 0.5 && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    match (unit, value) {
        (0, value) if value > 0.0 && value < 9.95 && value.fract() != 0.0 => {
            format!("{sign}{value:.1}{}", units[0])
        }
        (0, value) => format!("{sign}{value:.0}{}", units[0]),
        (_, value) if value < 99.95 => format!("{sign}{value:.1}{}", units[unit]),
        (_, value) => format!("{sign}{value:.0}{}", units[unit]),
    }
}

/// Formats a change with its sign.
pub fn change(value: f64) -> String {
    match short(value) {
        text if value > 0.0 && text != "0" => format!("+{text}"),
        text => text,
    }
}

/// Draws values as a bar of `width` characters, the newest value at the right, relative to the largest.
pub fn sparkline(values: impl Iterator<Item = f64>, width: usize, is_ascii: bool) -> String {
    let levels = if is_ascii { &ASCII } else { &BLOCKS };
    let values: Vec<f64> = values.map(|value| if value.is_finite() { value.max(0.0) } else { 0.0 }).collect();
    let values = &values[values.len().saturating_sub(width)..];
    let most = values.iter().copied().fold(0.0, f64::max);
    let level = |value: &f64| match most > 0.0 {
        true => levels[((value / most * 7.0).round() as usize).min(7)],
        false => levels[0],
    };
    std::iter::repeat_n(' ', width - values.len()).chain(values.iter().map(level)).collect()
}

/// Returns a text of a broker, a client or a message without characters that a terminal obeys.
pub fn clean(text: &str) -> String {
    // Also those that change the direction of text or have no width.
    let is_unsafe = |letter: char| {
        letter.is_control()
            || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    text.chars().map(|letter| if is_unsafe(letter) { '·' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fit_into_few_columns() {
        for (value, text) in [
            (0.0, "0"),
            (0.5, "0.5"),
            (9.0, "9"),
            (12.4, "12"),
            (999.0, "999"),
            (999.7, "1.0k"),
            (1500.0, "1.5k"),
            (99_960.0, "100k"),
            (12_345_678.0, "12.3M"),
            (-2500.0, "-2.5k"),
            (f64::NAN, "-"),
            (1e30, "1000000000000E"),
        ] {
            assert_eq!(short(value), text, "{value}");
        }
        assert_eq!(bytes(0.0), "0B");
        assert_eq!(bytes(1536.0), "1.5K");
        assert_eq!(bytes(5e9), "4.7G");
        assert_eq!([change(0.0), change(5.0), change(-1500.0)], ["0", "+5", "-1.5k"]);
    }

    #[test]
    fn sparkline_is_relative_to_its_largest_value() {
        assert_eq!(sparkline([0.0, 50.0, 100.0].into_iter(), 5, false), "  ▁▅█");
        assert_eq!(sparkline([1.0, 2.0, 4.0, 8.0].into_iter(), 2, true), "=#");
        assert_eq!(sparkline([0.0, 0.0].into_iter(), 2, false), "▁▁");
        assert_eq!(sparkline([f64::NAN, -1.0, f64::INFINITY].into_iter(), 3, false), "▁▁▁");
        assert_eq!(sparkline([1.0].into_iter(), 0, false), "");
    }

    #[test]
    fn text_of_others_cannot_control_the_terminal() {
        assert_eq!(clean("a\x1b[2Jb\r\n\u{202e}c\u{9b}"), "a·[2Jb···c·");
        assert_eq!(clean("Ünïcödé 漢字"), "Ünïcödé 漢字");
    }
}
