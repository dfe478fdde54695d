//! The story of a finding: the lines of a trace that concern it, in plain words.
//!
//! A finding names clients, connections and partitions. The story has what happened to all, and what those clients sent and
//! received; lines that repeat become one. If that is too long, it has its beginning and the last lines before the finding.

use crate::Broken;

/// The most lines of a story.
pub const LINES: usize = 80;

/// The number of lines from the beginning of a long story.
const FIRST: usize = 20;

/// Returns the story of a finding in at most [`LINES`] lines.
pub fn tell(trace: &[String], broken: &Broken) -> Vec<String> {
    let subjects = Subjects::of(trace, &broken.what);
    let names = TopicNames::of(trace);
    let timed: Vec<(&str, &str)> = trace.iter().filter_map(|line| timed(line)).collect();
    let chosen = |is_wanted: &dyn Fn(&str) -> bool| -> Vec<String> {
        let lines = timed.iter().filter(|(_, what)| is_wanted(what));
        let lines = lines.map(|(at, what)| format!("{at:>12}  {}", plain(&names.replace(what))));
        collapse(lines.collect())
    };
    let mut lines = chosen(&|what| is_event(what) || is_traffic(what) && subjects.concern(what));
    if lines.len() < LINES / 3 {
        // Short enough for what the actors told each other.
        let more = chosen(&|what| is_event(what) || !is_noise(what) && subjects.concern(what));
        if more.len() <= LINES {
            lines = more;
        }
    }
    if lines.len() > LINES {
        let dropped = lines.len() - LINES + 1;
        let note = format!("{:>12}  ({dropped} lines are left out)", "...");
        lines.splice(FIRST..FIRST + dropped, [note]);
    }
    lines
}

/// Divides a line into its time and what happened; other lines are not events.
fn timed(line: &str) -> Option<(&str, &str)> {
    let (at, what) = line.trim_start().split_once(' ')?;
    at.parse::<f64>().ok()?;
    Some((at, what))
}

/// The clients and connections that a finding names.
#[derive(Debug, Default)]
struct Subjects {
    clients: Vec<String>,
    links: Vec<String>,
}

/// What traces call clients by another number than theirs.
const ROLES: [&str; 4] = ["producer", "consumer", "member", "slot"];

impl Subjects {
    fn of(trace: &[String], finding: &str) -> Self {
        let mut subjects = Self::default();
        let words: Vec<&str> = finding.split([' ', ',', ':', ';', '.', '(', ')']).collect();
        for pair in words.windows(2) {
            let (role, number) = (pair[0], pair[1]);
            if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
                continue;
            }
            match role {
                "client" => subjects.clients.push(number.to_owned()),
                "link" => subjects.links.push(number.to_owned()),
                _ if ROLES.contains(&role) => subjects.clients.extend(with_role(trace, role, number)),
                _ => {}
            }
        }
        let owners = subjects.links.iter().filter_map(|link| owner(trace, link)).collect::<Vec<_>>();
        subjects.clients.extend(owners);
        subjects
    }

    /// Returns true if what happened concerns one of them, or if the finding names none.
    fn concern(&self, what: &str) -> bool {
        if self.clients.is_empty() {
            return true;
        }
        let what = what.strip_prefix("client ").unwrap_or(what);
        let client = what.split([' ', ':']).next().unwrap_or_default();
        self.clients.iter().any(|one| one == client)
    }
}

/// Returns the clients of a role: `client 3 is member 2`, `client 4 is an instance of slot 0`.
fn with_role(trace: &[String], role: &str, number: &str) -> Vec<String> {
    let ending = format!("{role} {number}");
    let roles = trace.iter().filter_map(|line| timed(line)?.1.strip_prefix("client "));
    let of_role = roles.filter(|what| what.contains(" is ") && what.ends_with(&ending));
    of_role.filter_map(|what| Some(what.split_once(' ')?.0.to_owned())).collect()
}

/// Returns the client of a link: `2 connects to 1 by link 7`.
fn owner(trace: &[String], link: &str) -> Option<String> {
    let ending = format!(" by link {link}");
    let line = trace.iter().filter_map(|line| timed(line)).find(|(_, what)| what.ends_with(&ending))?;
    Some(line.1.split_once(' ')?.0.to_owned())
}

/// Returns true for what clients send and receive, and what applications do.
fn is_traffic(what: &str) -> bool {
    !is_noise(what) && !what.contains("BrokerKey(")
}

/// Returns true for events that happen for every byte.
fn is_noise(what: &str) -> bool {
    what.contains(" wakes ")
        || what.starts_with("link ") && what.contains(" bytes to the ")
        || what.contains(" writes ")
        || what.contains(" has the ID ")
}

/// Returns true for faults and for what concerns every client: lines that don't begin with a client's number.
fn is_event(what: &str) -> bool {
    let is_of_client = what.starts_with(|c: char| c.is_ascii_digit());
    !is_of_client && !what.starts_with("Setup {") && !is_noise(what)
}

/// The names of topics whose IDs are in a trace: `topic t0 has the ID aBcD`.
struct TopicNames(Vec<(String, String)>);

impl TopicNames {
    fn of(trace: &[String]) -> Self {
        let names = trace.iter().filter_map(|line| {
            let (name, id) = timed(line)?.1.strip_prefix("topic ")?.split_once(" has the ID ")?;
            Some((id.to_owned(), name.to_owned()))
        });
        Self(names.collect())
    }

    fn replace(&self, what: &str) -> String {
        let mut what = what.to_owned();
        for (id, name) in self.0.iter().filter(|(id, _)| !id.is_empty()) {
            if what.contains(id.as_str()) {
                what = what.replace(id.as_str(), name);
            }
        }
        what
    }
}

/// Says what a line of a client means in words.
fn plain(what: &str) -> String {
    let Some((client, rest)) = what.split_once(' ') else { return what.to_owned() };
    if client.is_empty() || !client.trim_end_matches(':').bytes().all(|byte| byte.is_ascii_digit()) {
        return shorten(what);
    }
    let client = client.trim_end_matches(':');
    let actor = |text: &str| text.replace("BrokerKey(", "its broker actor ").replacen(')', "", 1);
    let words = if let Some(rest) = rest.strip_prefix("from BrokerKey(") {
        let rest = rest.replacen("):", " tells its cluster actor:", 1);
        format!("broker actor {rest}")
    } else if let Some(rest) = rest.strip_prefix("to BrokerKey(") {
        let rest = rest.replacen("):", ":", 1);
        format!("the cluster actor tells broker actor {rest}")
    } else if let Some((broker, link)) =
        rest.strip_prefix("connects to ").and_then(|rest| rest.split_once(" by link "))
    {
        format!("connects to broker {broker} (link {link})")
    } else {
        actor(rest)
    };
    shorten(&format!("client {client}: {words}"))
}

/// The most characters of a line.
const WIDTH: usize = 180;

fn shorten(what: &str) -> String {
    if what.chars().count() <= WIDTH {
        return what.to_owned();
    }
    let short: String = what.chars().take(WIDTH - 3).collect();
    format!("{short}...")
}

/// Replaces lines that repeat what the lines before them say, alone or in groups of up to four, by their number.
fn collapse(lines: Vec<String>) -> Vec<String> {
    let shape = |line: &String| -> String {
        let what = line.trim_start().split_once(' ').map_or("", |(_, what)| what);
        what.chars().filter(|c| !c.is_ascii_digit()).collect()
    };
    let mut lines = lines;
    for group in 1..=4 {
        let shapes: Vec<String> = lines.iter().map(shape).collect();
        let (mut short, mut place): (Vec<String>, usize) = (Vec::new(), 0);
        while place < lines.len() {
            let same = |at: usize| {
                at + group <= lines.len() && shapes[at..at + group] == shapes[place..place + group]
            };
            let repeats = (1..).take_while(|count| same(place + count * group)).count();
            if place + group <= lines.len() && repeats > 1 {
                let last = place + repeats * group;
                short.extend_from_slice(&lines[place..place + group]);
                let until = lines[last + group - 1].trim_start().split(' ').next().unwrap_or_default();
                short.push(match group {
                    1 => format!("{:>12}  (the same {repeats} more times, until {until})", "..."),
                    _ => format!("{:>12}  (these {group} lines {repeats} more times, until {until})", "..."),
                });
                place = last + group;
            } else {
                short.push(lines[place].clone());
                place += 1;
            }
        }
        lines = short;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn story_has_the_clients_of_the_finding_and_all_faults() {
        let trace = lines(
            "  1.000000 client 1 is member 0\n  1.000000 client 2 is member 1\n  1.000000 topic t0 has the ID aBc\n  \
             1.1 1 connects to 3 by link 7\n  1.2 2 sends on link 9: Heartbeat v4 #1\n  1.3 link 7: 20 bytes to the broker\n  \
             1.4 1 receives on link 7: to Fetch v18 #1: aBc [0]: NONE\n  1.5 leaders move\nmore: {\n}",
        );
        let story = tell(&trace, &Broken::new("close", "member 0 did not close in time")).join("\n");
        assert!(story.contains("client 1: connects to broker 3 (link 7)"), "{story}");
        assert!(story.contains("t0 [0]: NONE"), "{story}");
        assert!(story.contains("leaders move"), "{story}");
        assert!(
            !story.contains("Heartbeat") && !story.contains("bytes") && !story.contains("more"),
            "{story}"
        );
    }

    #[test]
    fn repetitions_become_one_line() {
        let beats = (0..100).map(|number| format!("{number}.5 1 sends on link 2: Heartbeat v4 #{number}"));
        let story = tell(&beats.collect::<Vec<_>>(), &Broken::new("storm", "too many"));
        assert_eq!(story.len(), 2, "{story:?}");
        assert!(story[1].contains("99 more times, until 99.5"), "{story:?}");
    }

    #[test]
    fn long_story_has_its_end() {
        let trace: Vec<String> = (0..500_u32)
            .map(|number| format!("{number}.0 1 says {}", "x".repeat(number as usize % 91)))
            .collect();
        let story = tell(&trace, &Broken::new("storm", "client 1"));
        assert_eq!(story.len(), LINES);
        assert!(story[LINES - 1].contains("499.0"), "{}", story[LINES - 1]);
    }
}
