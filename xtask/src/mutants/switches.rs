//! Puts many mistakes into one source, each behind its switch.
//!
//! A mistake changes bodies of functions. The function gets all of them, and the environment decides which one runs:
//!
//! ```text
//! fn next(&mut self) -> u32 {                      fn next(&mut self) -> u32 {
//!     self.last += 1;                                  if crate::ottla_mistake::is(7) {
//!     self.last                                            self.last += 2; self.last
//! }                                                    } else {
//!                                                          self.last += 1; self.last
//!                                                      }
//!                                                  }
//! ```
//!
//! A mistake may change several functions and files; its number is the same in each. It may add functions, which nobody
//! calls without it. Anything else is refused with its reason: such a mistake must be written in another way.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use super::functions::{Source, words};
use crate::Result;

/// The variable that chooses the mistake.
pub const VARIABLE: &str = "OTTLA_MISTAKE";

/// The module with the switch, which each crate with mistakes gets.
pub const MODULE: &str = "
pub mod ottla_mistake {
    static CHOSEN: std::sync::OnceLock<u32> = std::sync::OnceLock::new();

    #[inline]
    pub fn is(number: u32) -> bool {
        let chosen = || std::env::var(\"OTTLA_MISTAKE\").map_or(0, |text| text.parse().expect(\"a number\"));
        *CHOSEN.get_or_init(chosen) == number
    }
}
";

/// The beginning of the comment before a changed body, which the number follows.
pub const MARK: &str = "// mistake ";
/// The comment behind the changed bodies.
pub const END_MARK: &str = "// without a mistake";

/// What a mistake changes in a source.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The number of the function in the source, and its body with the mistake.
    bodies: Vec<(usize, String)>,
    /// The number of a function, and what stands behind it.
    added: Vec<(usize, String)>,
}

impl Changes {
    /// Compares a source without and with the mistake. Error: it changes more than bodies of functions.
    pub fn between(right: &str, wrong: &str) -> Result<Self> {
        let (right, wrong) = (Source::new(right), Source::new(wrong));
        let mut changes = Self::default();
        let (mut rest_of_right, mut rest_of_wrong) = (Rest::new(right.text), Rest::new(wrong.text));
        let mut at = 0;
        for function in &wrong.functions {
            let Some(pair) = right.functions.get(at).filter(|pair| right.head(pair) == wrong.head(function))
            else {
                // A function that is new. It must follow one that is not, which tells where it belongs.
                let follows = wrong.text[rest_of_wrong.end..function.item.start].trim().is_empty();
                let Some(before) = at.checked_sub(1).filter(|_| follows) else {
                    return Err(format!("changes or adds the head `{}`", wrong.head(function)).into());
                };
                changes.added.push((before, wrong.text[function.item.clone()].to_owned()));
                rest_of_wrong.skip(function.item.start, function.item.end);
                continue;
            };
            if wrong.body(function) != right.body(pair) {
                if right.head(pair).contains("-> impl ") {
                    return Err(format!("changes `{}`, whose bodies differ in type", right.head(pair)).into());
                }
                changes.bodies.push((at, wrong.body(function).to_owned()));
            }
            rest_of_right.skip(pair.body.start, pair.body.end);
            rest_of_wrong.skip(function.body.start, function.body.end);
            at += 1;
        }
        if let Some(missing) = right.functions.get(at) {
            return Err(format!("changes the head `{}`", right.head(missing)).into());
        }
        let (of_right, of_wrong) = (rest_of_right.finish(), rest_of_wrong.finish());
        if let Some((of_right, of_wrong)) = first_difference(&of_right, &of_wrong) {
            return Err(format!("changes `{of_right}` to `{of_wrong}`, which is in no function").into());
        }
        if changes == Self::default() {
            return Err("changes nothing".into());
        }
        Ok(changes)
    }
}

/// What stands outside of the bodies, in the order of the source.
struct Rest<'a> {
    text: &'a str,
    end: usize,
    words: String,
}

impl<'a> Rest<'a> {
    const fn new(text: &'a str) -> Self {
        Self { text, end: 0, words: String::new() }
    }

    fn skip(&mut self, start: usize, end: usize) {
        self.words += &words(&self.text[self.end..start]);
        self.words.push(' ');
        self.end = end;
    }

    fn finish(mut self) -> String {
        self.skip(self.text.len(), self.text.len());
        words(&self.words)
    }
}

/// Returns some words from the first that differ.
fn first_difference(right: &str, wrong: &str) -> Option<(String, String)> {
    let both = right.split(' ').zip(wrong.split(' '));
    let same = both.take_while(|(right, wrong)| right == wrong).count();
    let rest = |text: &str| text.split(' ').skip(same).take(6).collect::<Vec<_>>().join(" ");
    (right != wrong).then(|| (rest(right), rest(wrong)))
}

/// Returns the source with all of these mistakes behind their switches.
pub fn switched(text: &str, mistakes: &[(u32, &Changes)]) -> String {
    let source = Source::new(text);
    let (mut bodies, mut added) = (BTreeMap::<usize, String>::new(), BTreeMap::<usize, String>::new());
    for (number, changes) in mistakes {
        for (function, body) in &changes.bodies {
            // The marks are on lines of their own, or `mistake_at` takes the end of a body for the next mistake.
            let branch = format!("if crate::ottla_mistake::is({number}) {MARK}{number}\n{body}\nelse ");
            *bodies.entry(*function).or_default() += &branch;
        }
        for (function, item) in &changes.added {
            let _ = write!(added.entry(*function).or_default(), "\n{MARK}{number}\n{item}\n{END_MARK}\n");
        }
    }
    let (mut out, mut at) = (String::with_capacity(text.len() * 2), 0);
    for (place, function) in source.functions.iter().enumerate() {
        if let Some(branches) = bodies.get(&place) {
            // A function that reads the environment is not const.
            let head = source.constness(function).unwrap_or(function.keyword..function.keyword);
            out += &text[at..head.start];
            out += &text[head.end..function.body.start];
            let _ = write!(out, "{{ {branches} {END_MARK}\n{} }}", source.body(function));
        } else {
            out += &text[at..function.body.end];
        }
        out += added.get(&place).map_or("", String::as_str);
        at = function.body.end;
    }
    out + &text[at..]
}

/// Returns the names of the functions that are const without these changes, and cannot be with them.
pub fn no_longer_const(text: &str, changes: &Changes) -> Vec<String> {
    let source = Source::new(text);
    let changed = changes.bodies.iter().map(|(place, _)| &source.functions[*place]);
    let of_const = changed.filter(|function| source.constness(function).is_some());
    of_const.map(|function| source.name(function).to_owned()).collect()
}

/// Returns the source in which no const function calls one of these.
pub fn without_const_callers(text: &str, names: &BTreeSet<String>) -> String {
    let source = Source::new(text);
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    let calls = |body: &str| names.iter().any(|name| body.contains(&format!("{name}(")));
    for function in source.functions.iter().filter(|function| calls(source.body(function))) {
        if let Some(word) = source.constness(function) {
            out += &text[at..word.start];
            at = word.end;
        }
    }
    out + &text[at..]
}

/// Returns the number of the mistake in whose code this line of a source stands. The first line has number 1.
pub fn mistake_at(text: &str, line: usize) -> Option<u32> {
    let lines: Vec<&str> = text.lines().take(line).collect();
    let mark = lines.iter().rev().find(|line| line.contains(MARK) || line.contains(END_MARK))?;
    mark.rsplit_once(MARK)?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHT: &str = "//! A.\nuse b;\n\nfn one() -> u8 {\n    1\n}\n\nimpl A {\n    const fn two() -> u8 {\n        2\n    }\n}\n";

    fn changes(from: &str, to: &str) -> Result<Changes> {
        assert!(RIGHT.contains(from), "{from}");
        Changes::between(RIGHT, &RIGHT.replacen(from, to, 1))
    }

    fn refusal(from: &str, to: &str) -> String {
        changes(from, to).expect_err("it fits in no body").to_string()
    }

    /// Returns the source without line breaks and the words that are not changed here.
    fn switched_words(mistakes: &[(u32, &Changes)]) -> String {
        words(&switched(RIGHT, mistakes)).replace("crate::ottla_mistake::", "")
    }

    #[test]
    fn mistake_gets_a_switch_in_its_function() {
        let changes = changes("    1\n", "    10\n").unwrap();
        let text = switched_words(&[(7, &changes)]);
        let expected = "fn one() -> u8 { if is(7) // mistake 7 { 10 } else // without a mistake { 1 } }";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn two_mistakes_of_one_line_exclude_each_other() {
        let first = changes("    1\n", "    10\n").unwrap();
        let second = changes("    1\n", "    20;\n    30\n").unwrap();
        let text = switched_words(&[(7, &first), (8, &second)]);
        let expected = "{ if is(7) // mistake 7 { 10 } else if is(8) // mistake 8 { 20; 30 } else // without a mistake { 1 } }";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn mistake_in_two_functions_has_one_number() {
        let wrong = RIGHT.replace("    1\n", "    10\n").replace("2\n", "20\n");
        let both = Changes::between(RIGHT, &wrong).unwrap();
        let text = switched_words(&[(7, &both)]);
        assert_eq!(text.matches("if is(7)").count(), 2, "{text}");
        // The function with the switch can't be const.
        assert!(text.contains("{ fn two() -> u8 { if is(7)"), "{text}");
    }

    #[test]
    fn added_functions_stand_behind_the_one_before() {
        let wrong =
            RIGHT.replace("        2\n    }\n", "        three()\n    }\n\n    /// C.\n    fn three() {}\n");
        let changes = Changes::between(RIGHT, &wrong).unwrap();
        let text = switched_words(&[(7, &changes)]);
        assert!(text.ends_with("{ 2 } } // mistake 7 /// C. fn three() {} // without a mistake }"), "{text}");
    }

    #[test]
    fn what_is_in_no_body_is_refused_with_its_reason() {
        assert_eq!(
            refusal("use b", "use c"),
            "changes `b; fn one() -> u8 impl` to `c; fn one() -> u8 impl`, which is in no function"
        );
        assert_eq!(
            refusal("fn one()", "fn one(a: u8)"),
            "changes or adds the head `use b; fn one(a: u8) -> u8`".replace("use b; ", "")
        );
        assert!(
            refusal("fn two() -> u8 {\n        2\n    }\n", "").starts_with("changes the head `const fn two")
        );
        assert_eq!(refusal("    1\n", "    1\n"), "changes nothing");
        let right = "fn all() -> impl Iterator<Item = u8> { once(1) }";
        let error = Changes::between(right, &right.replace('1', "2")).unwrap_err().to_string();
        assert!(error.contains("whose bodies differ in type"), "{error}");
    }

    #[test]
    fn callers_of_a_function_with_a_switch_are_not_const() {
        let names = no_longer_const(RIGHT, &changes("        2\n", "        20\n").unwrap());
        assert_eq!(names, ["two"]);
        assert!(no_longer_const(RIGHT, &changes("    1\n", "    10\n").unwrap()).is_empty());
        let callers = "const fn a() { b.two() }\nconst fn c() { d() }\n";
        let loosened = without_const_callers(callers, &names.into_iter().collect());
        assert_eq!(loosened, " fn a() { b.two() }\nconst fn c() { d() }\n");
    }

    #[test]
    fn line_of_an_error_names_its_mistake() {
        let (first, second) = (changes("    1\n", "    10\n").unwrap(), changes("2\n", "20\n").unwrap());
        let text = switched(RIGHT, &[(7, &first), (8, &second)]);
        let mistake = |wanted: &str| {
            let at = text.lines().position(|line| line.trim() == wanted).expect("a line");
            mistake_at(&text, at + 1)
        };
        assert_eq!(
            [mistake("10"), mistake("1"), mistake("20"), mistake("2")],
            [Some(7), None, Some(8), None]
        );
        assert_eq!(mistake("use b;"), None);
    }
}
