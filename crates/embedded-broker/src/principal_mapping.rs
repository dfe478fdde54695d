//! How the subject of a client's certificate becomes its principal: the rules of Kafka's `ssl.principal.mapping.rules`.

use ottla_protocol::pattern::GroupPattern;

/// The rules of a listener, of which the first that matches counts.
#[derive(Clone, Debug)]
pub struct PrincipalMapping {
    rules: Vec<Rule>,
}

#[derive(Clone, Debug)]
enum Rule {
    /// The subject itself.
    Default,
    /// The replacement, if the pattern matches the whole subject.
    Replace { pattern: GroupPattern, replacement: String, case: Case },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    Unchanged,
    Lower,
    Upper,
}

impl PrincipalMapping {
    /// Reads rules in Kafka's form, separated by commas: `DEFAULT`, or `RULE:pattern/replacement/` with `L` or
    /// `U` behind it for lower or upper case. `$1` in the replacement is the first group of the pattern, and `\/` is a slash.
    /// Patterns can't look around or refer to groups. Error: the rule that can't be read.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut rules = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let wrong = |why: &str| format!("principal mapping rule \"{rest}\": {why}");
            let (rule, behind) = match (rest.strip_prefix("DEFAULT"), rest.strip_prefix("RULE:")) {
                (Some(behind), _) => (Rule::Default, behind),
                (None, Some(body)) => Rule::parse(body).map_err(|why| wrong(&why))?,
                (None, None) => return Err(wrong("write DEFAULT or RULE:pattern/replacement/[LU]")),
            };
            let behind = behind.trim_start_matches([' ', '\t']);
            rest = match behind.strip_prefix(',') {
                Some(next) => next.trim_start(),
                None if behind.is_empty() => behind,
                None => return Err(wrong("a comma has to follow a rule")),
            };
            rules.push(rule);
        }
        if rules.is_empty() {
            return Err("principal mapping: there is no rule; DEFAULT takes the subject itself".to_owned());
        }
        Ok(Self { rules })
    }

    /// Returns the principal of this subject; `None` if no rule matches, so that the client is refused.
    pub fn principal(&self, subject: &str) -> Option<String> {
        self.rules.iter().find_map(|rule| rule.apply(subject))
    }
}

impl Rule {
    /// Reads what follows `RULE:`. Returns the rule and the text behind it.
    fn parse(body: &str) -> Result<(Self, &str), String> {
        let (pattern, body) = until_slash(body).ok_or("there is no slash behind the pattern")?;
        let (replacement, body) = until_slash(body).ok_or("there is no slash behind the replacement")?;
        let (case, behind) = match (body.strip_prefix('L'), body.strip_prefix('U')) {
            (Some(behind), _) => (Case::Lower, behind),
            (None, Some(behind)) => (Case::Upper, behind),
            (None, None) => (Case::Unchanged, body),
        };
        let pattern =
            GroupPattern::whole(pattern).map_err(|error| format!("the pattern can't be used: {error}"))?;
        Ok((Self::Replace { pattern, replacement: replacement.to_owned(), case }, behind))
    }

    fn apply(&self, subject: &str) -> Option<String> {
        let Self::Replace { pattern, replacement, case } = self else { return Some(subject.to_owned()) };
        let name = expanded(replacement, &pattern.groups(subject)?);
        Some(match case {
            Case::Unchanged => name,
            Case::Lower => name.to_lowercase(),
            Case::Upper => name.to_uppercase(),
        })
    }
}

/// Splits at the first slash without a backslash before it.
fn until_slash(text: &str) -> Option<(&str, &str)> {
    let mut is_escaped = false;
    for (at, letter) in text.char_indices() {
        match letter {
            '/' if !is_escaped => return Some((&text[..at], &text[at + 1..])),
            _ => is_escaped = letter == '\\' && !is_escaped,
        }
    }
    None
}

/// Replaces `$1` by groups as Java does: of several digits those count that still name a group. What names no group stays.
fn expanded(replacement: &str, groups: &[String]) -> String {
    let mut out = String::new();
    let mut letters = replacement.chars().peekable();
    while let Some(letter) = letters.next() {
        let first = letters.peek().and_then(|next| next.to_digit(10)).map(|digit| digit as usize);
        match (letter, first) {
            ('\\', _) => out.extend(letters.next()),
            ('$', Some(mut group)) if group < groups.len() => {
                letters.next();
                while let Some(digit) = letters.peek().and_then(|next| next.to_digit(10)) {
                    let longer = group * 10 + digit as usize;
                    if longer >= groups.len() {
                        break;
                    }
                    group = longer;
                    letters.next();
                }
                out.push_str(groups.get(group).map_or("", String::as_str));
            }
            _ => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rules, a subject, and the name that Kafka 4.3.1 makes of it.
    const ROWS: [(&str, &str, Option<&str>); 13] = [
        ("DEFAULT", "CN=a,O=b", Some("CN=a,O=b")),
        ("RULE:^CN=(.*?),OU=Users.*$/$1/", "CN=Alice,OU=Users,O=X", Some("Alice")),
        ("RULE:^CN=(.*?),OU=Users.*$/$1/", "CN=Alice,OU=Others,O=X", None),
        ("RULE:^CN=(.*?),OU=Users.*$/$1/,DEFAULT", "CN=Alice,OU=Others", Some("CN=Alice,OU=Others")),
        ("RULE:^CN=(.*?),OU=(.*?)$/$1@$2/L", "CN=Alice,OU=Admin", Some("alice@admin")),
        ("RULE:^CN=(.*?)$/$1/U", "CN=Alice", Some("ALICE")),
        ("RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L", "OU=x,cn=Kafka.Host,O=y", Some("kafka.host")),
        ("RULE:CN=(.*?)/$1/", "CN=part,O=whole", Some("part,O=whole")),
        ("RULE:CN=([a-z]*)/$1/", "CN=part,O=whole", None),
        ("RULE:^CN=(.*)$/$1 at $2/", "CN=a", Some("a at $2")),
        ("RULE:^CN=(.*)$/$12/", "CN=a", Some("a2")),
        ("RULE:^CN=a\\/(.*)$/$1\\/x/", "CN=a/b", Some("b/x")),
        ("RULE:^CN=x$/one/, RULE:^CN=(y)$/Two-$1/L, DEFAULT", "CN=y", Some("two-y")),
    ];

    #[test]
    fn first_matching_rule_makes_the_principal() {
        for (rules, subject, expected) in ROWS {
            let mapping = PrincipalMapping::parse(rules).unwrap();
            assert_eq!(mapping.principal(subject).as_deref(), expected, "{rules} with {subject}");
        }
    }

    #[test]
    fn malformed_rules_are_refused() {
        for rules in [
            "",
            "default",
            "RULE:",
            "RULE:^CN=(.*)$",
            "RULE:^CN=(.*)$/$1",
            "RULE:^CN=(.*$/$1/",
            "RULE:a/b/X",
            "RULE:a/b/L DEFAULT",
            "DEFAULT,,DEFAULT",
            "RULE:a\\/b/",
        ] {
            let error = PrincipalMapping::parse(rules).unwrap_err();
            assert!(error.contains("principal mapping"), "{rules}: {error}");
        }
    }
}
