//! The functions of a Rust source: where their heads and bodies stand.
//!
//! This is not a parser. Comments, strings and characters are blanked, and what remains is searched for `fn NAME`, the
//! brace that begins the body, and the one that ends it. The sources are formatted and compile, so that is enough.

use std::ops::Range;

/// A function with a body that is in no other function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// From its comments and attributes to the end of its body.
    pub item: Range<usize>,
    /// The place of the word `fn`.
    pub keyword: usize,
    /// The body with its braces.
    pub body: Range<usize>,
}

/// A source and its functions, in their order.
#[derive(Debug)]
pub struct Source<'a> {
    /// The text.
    pub text: &'a str,
    /// The text with spaces instead of comments, strings and characters.
    code: String,
    /// The functions.
    pub functions: Vec<Function>,
}

impl<'a> Source<'a> {
    /// Finds the functions of a source.
    pub fn new(text: &'a str) -> Self {
        let code = blank(text);
        let (bytes, mut functions, mut at) = (code.as_bytes(), Vec::new(), 0);
        while let Some(keyword) = next_function(bytes, at) {
            let Some(start) = body_start(bytes, keyword) else {
                at = keyword + 2;
                continue;
            };
            let end = matching_brace(bytes, start);
            functions.push(Function { item: item_start(bytes, keyword)..end, keyword, body: start..end });
            at = end;
        }
        Self { text, code, functions }
    }

    /// Returns what stands before the body, without comments and line breaks.
    pub fn head(&self, function: &Function) -> String {
        words(&self.code[function.item.start..function.body.start])
    }

    /// Returns the body's text, with its braces.
    pub fn body(&self, function: &Function) -> &'a str {
        &self.text[function.body.clone()]
    }

    /// Returns the function's name.
    pub fn name(&self, function: &Function) -> &'a str {
        let rest = self.text[function.keyword + "fn".len()..].trim_start();
        rest.split(|character: char| !character.is_alphanumeric() && character != '_')
            .next()
            .unwrap_or_default()
    }

    /// Returns where the word `const` stands before `fn`.
    pub fn constness(&self, function: &Function) -> Option<Range<usize>> {
        let before = &self.code[function.item.start..function.keyword];
        let at = before.rfind("const")?;
        let rest = before[at + "const".len()..].split_whitespace();
        let is_qualifier = rest.into_iter().all(|word| ["unsafe", "extern", "async"].contains(&word));
        is_qualifier.then(|| function.item.start + at..function.item.start + at + "const".len())
    }
}

/// Returns the text with single spaces instead of line breaks and indentation.
pub fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the text with spaces instead of comments, strings and characters. Line breaks stay, and so does the length.
fn blank(text: &str) -> String {
    let (bytes, mut out, mut at) = (text.as_bytes(), text.as_bytes().to_vec(), 0);
    while at < bytes.len() {
        let end = match bytes[at] {
            b'/' if bytes[at..].starts_with(b"//") => find(bytes, at, b"\n").unwrap_or(bytes.len()),
            b'/' if bytes[at..].starts_with(b"/*") => comment_end(bytes, at),
            b'r' if !is_word(bytes, at) => raw_string_end(bytes, at).unwrap_or(at),
            // `br"..."` and `cr"..."`: the prefix alone is part of a word.
            b'b' | b'c' if !is_word(bytes, at) && bytes.get(at + 1) == Some(&b'r') => {
                raw_string_end(bytes, at + 1).unwrap_or(at)
            }
            b'"' => quoted_end(bytes, at, b'"'),
            b'\'' if is_character(text, at) => quoted_end(bytes, at, b'\''),
            _ => at,
        };
        out[at..end].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
        at = end.max(at + 1);
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn find(bytes: &[u8], from: usize, wanted: &[u8]) -> Option<usize> {
    bytes[from..].windows(wanted.len()).position(|window| window == wanted).map(|place| from + place)
}

/// True if the byte before is part of a word.
fn is_word(bytes: &[u8], at: usize) -> bool {
    at.checked_sub(1).is_some_and(|before| is_word_byte(bytes[before]))
}

const fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn comment_end(bytes: &[u8], start: usize) -> usize {
    let (mut depth, mut at) = (0, start);
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if bytes[at..].starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    at
}

/// Returns the end of `r#"..."#`, if that begins here.
fn raw_string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let hashes = bytes[start + 1..].iter().take_while(|byte| **byte == b'#').count();
    let open = start + 1 + hashes;
    if bytes.get(open) != Some(&b'"') {
        return None;
    }
    let close: Vec<u8> = [b"\"".as_slice(), &vec![b'#'; hashes]].concat();
    Some(find(bytes, open + 1, &close).map_or(bytes.len(), |place| place + close.len()))
}

fn quoted_end(bytes: &[u8], start: usize, quote: u8) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != quote {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

/// True if a character begins at this apostrophe, and no lifetime.
fn is_character(text: &str, at: usize) -> bool {
    let mut rest = text[at + 1..].chars();
    rest.next() == Some('\\') || rest.next() == Some('\'')
}

/// Returns the place of the next `fn` that a name follows.
fn next_function(code: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(place) = find(code, at, b"fn ") {
        let name = code[place + 3..].iter().find(|byte| **byte != b' ');
        if !is_word(code, place) && name.is_some_and(|byte| is_word_byte(*byte)) {
            return Some(place);
        }
        at = place + 3;
    }
    None
}

/// Returns the place of the brace that begins the body, if there is one.
fn body_start(code: &[u8], keyword: usize) -> Option<usize> {
    let mut depth = 0_u32;
    for (at, byte) in code.iter().enumerate().skip(keyword) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            b'{' if depth == 0 => return Some(at),
            b';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// Returns the place behind the brace that ends what this one begins.
fn matching_brace(code: &[u8], open: usize) -> usize {
    let mut depth = 0_u32;
    for (at, byte) in code.iter().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 1 => return at + 1,
            b'}' => depth -= 1,
            _ => {}
        }
    }
    code.len()
}

/// Returns the place behind the last item, or behind the brace that begins what the function is in.
fn item_start(code: &[u8], keyword: usize) -> usize {
    code[..keyword].iter().rposition(|byte| b"{};".contains(byte)).map_or(0, |place| place + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bodies(text: &str) -> Vec<&str> {
        let source = Source::new(text);
        source.functions.iter().map(|function| source.body(function)).collect()
    }

    #[test]
    fn functions_of_modules_and_implementations_are_found() {
        let text = "use a;\nfn a() { 1 }\nimpl A {\n    /// B.\n    #[x]\n    pub fn b<'a>(&'a self) -> [u8; 2] { 2 }\n}\n";
        assert_eq!(bodies(text), ["{ 1 }", "{ 2 }"]);
        let source = Source::new(text);
        assert_eq!(source.head(&source.functions[1]), "#[x] pub fn b<'a>(&'a self) -> [u8; 2]");
        assert_eq!(text[source.functions[1].item.clone()].trim_start().split('\n').next(), Some("/// B."));
    }

    #[test]
    fn functions_in_functions_are_part_of_them() {
        assert_eq!(bodies("fn a() { fn b() { 1 } b() }"), ["{ fn b() { 1 } b() }"]);
    }

    #[test]
    fn declarations_and_pointers_are_no_functions() {
        assert!(
            bodies("trait A {\n    fn a(&self);\n}\nstruct B(fn (u8) -> u8);\nstruct C { a: fn(u8) }\n")
                .is_empty()
        );
    }

    #[test]
    fn braces_in_strings_characters_and_comments_do_not_count() {
        let text =
            "fn a() { '{'; '\\''; \"}\\\"}\"; r#\"}\"}\"#; br\"}\"; /* } /* } */ } */ 'a: loop {} // }\n}";
        assert_eq!(bodies(text), [&text[7..]]);
        assert!(bodies("// fn a() {}\n/* fn b() {} */ \"fn c() {}\";").is_empty());
    }

    #[test]
    fn constness_is_found_before_fn_only() {
        let text = "const A: u8 = 1;\npub const fn a() {}\nfn b(_: *const u8) {}\n";
        let source = Source::new(text);
        let found: Vec<_> = source.functions.iter().map(|function| source.constness(function)).collect();
        assert_eq!(found, [Some(21..26), None]);
        assert_eq!(
            source.functions.iter().map(|function| source.name(function)).collect::<Vec<_>>(),
            ["a", "b"]
        );
    }
}
