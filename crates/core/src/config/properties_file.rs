//! Files of properties, in the form that the Java client and librdkafka's tools share: `name=value` lines.
//!
//! Java's rules also apply: `:` instead of `=`, `!` instead of `#`, a backslash at the end of a line continues it on
//! the next, and `\t`, `\n`, `\r`, `\f`, `\u` with four digits are escapes. Any other character after a backslash
//! stands for itself.

/// A name and a value. Error: the line is neither a comment nor a property. Its text is left out, because it may be a part of
/// a password or a key.
pub(super) type Pair = Result<(String, String), NotAProperty>;

/// A line that is no property.
#[derive(Debug, PartialEq)]
pub(super) struct NotAProperty;

/// Parses the properties of a file, each with the number of its first line, counted from 1.
pub(super) fn parse(text: &str) -> Vec<(usize, Pair)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut pairs = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', '!']) {
            continue;
        }
        let mut whole = line.to_string();
        while goes_on(&whole) {
            whole.pop();
            match lines.next() {
                Some((_, next)) => whole.push_str(next.trim()),
                None => break,
            }
        }
        pairs.push((index + 1, pair(&whole)));
    }
    pairs
}

/// Returns whether the line ends in a backslash that isn't itself escaped.
fn goes_on(line: &str) -> bool {
    line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

fn pair(line: &str) -> Pair {
    let mut escaped = false;
    let end = line.char_indices().find(|(_, letter)| {
        let ends = !escaped && matches!(letter, '=' | ':');
        escaped = *letter == '\\' && !escaped;
        ends
    });
    let Some((end, _)) = end else { return Err(NotAProperty) };
    let name = unescape(line[..end].trim());
    if name.is_empty() || name.contains(char::is_whitespace) {
        return Err(NotAProperty);
    }
    Ok((name, unescape(line[end + 1..].trim())))
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
                Some(letter) => {
                    out.push(letter);
                    letters.nth(3);
                }
                None => out.push('u'),
            },
            Some(other) => out.push(other),
            None => {}
        }
    }
    out
}

fn unicode(rest: &str) -> Option<char> {
    let digits = rest.get(..4).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
    char::from_u32(u32::from_str_radix(digits, 16).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<(usize, String)> {
        parse(text)
            .into_iter()
            .map(|(line, pair)| {
                (
                    line,
                    pair.map_or_else(
                        |NotAProperty| "?".to_owned(),
                        |(name, value)| format!("{name}>{value}"),
                    ),
                )
            })
            .collect()
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
    fn lines_that_are_no_properties_are_not_handed_back() {
        assert_eq!(pairs("words"), [(1, "?".to_string())]);
        assert_eq!(pairs("=1"), [(1, "?".to_string())]);
        assert_eq!(pairs("two words=1"), [(1, "?".to_string())]);
        assert_eq!(pairs("end=\\u12"), [(1, "end>u12".to_string())]);
        assert_eq!(pairs("end=\\"), [(1, "end>".to_string())]);
    }
}
