//! Files of properties, read as `java.util.Properties` reads them.
//!
//! | rule | example |
//! |---|---|
//! | the name ends at `=`, `:` or white space, which a backslash protects | `acks=all`, `acks: all`, `acks all`, `odd\ name=x` |
//! | white space is a space, a tab or a form feed; the rest of a line is the value | `client.id = orders 1` |
//! | a line that begins with `#` or `!` is a comment | `# acks=1` |
//! | an odd number of backslashes at the end of a line continues it; the next line's white space at its start is skipped | |
//! | escapes are `\t`, `\n`, `\r`, `\f` and `\uXXXX`; any other character after a backslash stands for itself | `\u00e9`, `\:` |
//!
//! The white space behind a value is skipped, too, as the Java client does with the values of its properties.

/// A name and a value. Error: the line has no name. Its text is left out, because it may be a part of a password or a key.
pub(super) type Line = Result<Pair, NotAProperty>;

/// A property of a file.
#[derive(Debug, PartialEq)]
pub(super) struct Pair {
    pub name: String,
    pub value: String,
    /// True if `=` or `:` separates the two. A line without them may also be a piece of another text.
    pub is_explicit: bool,
}

/// A line that is not a property.
#[derive(Debug, PartialEq)]
pub(super) struct NotAProperty;

const WHITE: [char; 3] = [' ', '\t', '\u{c}'];

/// Parses the properties of a file, each with the number of its first line, counted from 1.
pub(super) fn parse(text: &str) -> Vec<(usize, Line)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut pairs = Vec::new();
    let mut lines = lines(text).enumerate();
    while let Some((index, line)) = lines.next() {
        let line = line.trim_start_matches(WHITE);
        if line.is_empty() || line.starts_with(['#', '!']) {
            continue;
        }
        let mut whole = line.to_string();
        while goes_on(&whole) {
            whole.pop();
            match lines.next() {
                Some((_, next)) => whole.push_str(next.trim_start_matches(WHITE)),
                None => break,
            }
        }
        pairs.push((index + 1, pair(&whole)));
    }
    pairs
}

/// Splits a text at `\n`, `\r` and `\r\n`.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'))
}

/// Returns whether the line ends in a backslash that isn't itself escaped.
fn goes_on(line: &str) -> bool {
    line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

fn pair(line: &str) -> Line {
    let is_end = |letter: char| matches!(letter, '=' | ':') || WHITE.contains(&letter);
    let mut is_escaped = false;
    let end = line.char_indices().find(|(_, letter)| {
        let ends = !is_escaped && is_end(*letter);
        is_escaped = *letter == '\\' && !is_escaped;
        ends
    });
    let (name, rest) = line.split_at(end.map_or(line.len(), |(at, _)| at));
    let rest = rest.trim_start_matches(WHITE);
    let value = rest.strip_prefix(['=', ':']);
    let name = unescape(name);
    if name.is_empty() || name.contains(char::is_whitespace) {
        return Err(NotAProperty);
    }
    Ok(Pair {
        name,
        value: unescape(value.unwrap_or(rest).trim_matches(WHITE)),
        is_explicit: value.is_some(),
    })
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            out.push(letter);
            continue;
        }
        match letters.next() {
            Some('t') => out.push('\t'),
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('f') => out.push('\u{c}'),
            Some('u') => match unicode(letters.as_str()) {
                Some((letter, rest)) => {
                    out.push(letter);
                    letters = rest.chars();
                }
                None => out.push('u'),
            },
            Some(other) => out.push(other),
            None => {}
        }
    }
    out
}

/// Reads the digits of `\uXXXX`, and of a second escape if the first one is half of a character. Returns the rest, too.
fn unicode(text: &str) -> Option<(char, &str)> {
    let (first, rest) = unit(text)?;
    let (second, rest_of_second) = rest.strip_prefix("\\u").and_then(unit).unwrap_or((0, rest));
    let mut decoded = char::decode_utf16([first, second]);
    match decoded.next()? {
        Ok(letter) if letter.len_utf16() == 2 => Some((letter, rest_of_second)),
        Ok(letter) => Some((letter, rest)),
        Err(_) => None,
    }
}

fn unit(text: &str) -> Option<(u16, &str)> {
    let digits = text.get(..4).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
    Some((u16::from_str_radix(digits, 16).ok()?, &text[4..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<(usize, String)> {
        let shown = |line: Line| match line {
            Ok(Pair { name, value, is_explicit: true }) => format!("{name}>{value}"),
            Ok(Pair { name, value, is_explicit: false }) => format!("{name} {value}"),
            Err(NotAProperty) => "?".to_owned(),
        };
        parse(text).into_iter().map(|(number, line)| (number, shown(line))).collect()
    }

    #[test]
    fn names_and_values_are_trimmed_and_comments_left_out() {
        let text = "\u{feff}# comment\r\n! another\n\n  acks = all \r\nclient.id:me\nempty=\nurl=a=b:c\n";
        let expected = [(4, "acks>all"), (5, "client.id>me"), (6, "empty>"), (7, "url>a=b:c")];
        assert_eq!(pairs(text), expected.map(|(line, pair)| (line, pair.to_string())));
    }

    #[test]
    fn a_backslash_joins_lines_and_escapes() {
        let text = "bootstrap.servers=a:1,\\\n    b:2\nclient.id=x\\ty\\u0041\\=\\\\\nodd\\=name=1\n";
        let expected = [(1, "bootstrap.servers>a:1,b:2"), (3, "client.id>x\ty\u{41}=\\"), (4, "odd=name>1")];
        assert_eq!(pairs(text), expected.map(|(line, pair)| (line, pair.to_string())));
    }

    #[test]
    fn white_space_ends_a_name_as_in_java() {
        let text = "acks all\nclient.id \t me too \nlinger.ms\n\x0cgroup.id : g\rretries   = 3\rname two=1\n";
        let expected = [
            (1, "acks all"),
            (2, "client.id me too"),
            (3, "linger.ms "),
            (4, "group.id>g"),
            (5, "retries>3"),
            (6, "name two=1"),
        ];
        assert_eq!(pairs(text), expected.map(|(line, pair)| (line, pair.to_string())));
    }

    #[test]
    fn continued_lines_are_those_of_java() {
        // The first backslash escapes the blank after it. A continued line is never a comment.
        assert_eq!(pairs("a=b\\ \nc=d"), [(1, "a>b".to_owned()), (2, "c>d".to_owned())]);
        assert_eq!(pairs("a=b\\\n  #c\\\r\n\n"), [(1, "a>b#c".to_owned())]);
        assert_eq!(pairs("a=b\\\\\nc=d"), [(1, "a>b\\".to_owned()), (2, "c>d".to_owned())]);
    }

    #[test]
    fn escaped_halves_of_a_character_are_joined() {
        assert_eq!(pairs("a=\\uD83D\\uDE00\\u00e9\\u0041\\u0042"), [(1, "a>\u{1f600}éAB".to_owned())]);
        assert_eq!(pairs("a=\\uD83D!"), [(1, "a>uD83D!".to_owned())]);
    }

    #[test]
    fn lines_that_are_no_properties_are_not_handed_back() {
        assert_eq!(pairs("=1"), [(1, "?".to_string())]);
        assert_eq!(pairs("two\\ words=1"), [(1, "?".to_string())]);
        assert_eq!(pairs("end=\\u12"), [(1, "end>u12".to_string())]);
        assert_eq!(pairs("end=\\"), [(1, "end>".to_string())]);
    }
}
