//! "Did you mean": finds the known name that is closest to an unknown one.

/// Returns the name that was probably meant, if any is close enough.
///
/// Spelling (`_` or nothing for `.`, capitals) is ignored first, then a missing end or beginning is accepted, then a
/// number of typing mistakes up to a quarter of the name's length.
pub fn closest<'a>(written: &str, names: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let plain = letters(written);
    if plain.len() < 2 || written.len() > 200 {
        return None;
    }
    let same_letters = names.clone().find(|name| letters(name) == plain);
    let near = || {
        names
            .clone()
            .filter_map(|name| {
                let letters = letters(name);
                let most = (letters.len().min(plain.len()) / 4).clamp(1, 4);
                let is_near = letters.len().abs_diff(plain.len()) <= most;
                let distance = is_near.then(|| strsim::osa_distance(&plain, &letters))?;
                (distance <= most).then_some((distance, name))
            })
            .min_by_key(|(distance, _)| *distance)
            .map(|(_, name)| name)
    };
    let part = || {
        names
            .clone()
            .filter(|name| {
                let name = letters(name);
                plain.len() >= 4
                    && (name.starts_with(&plain) || name.ends_with(&plain) || plain.ends_with(&name))
            })
            .min_by_key(|name| name.len().abs_diff(written.len()))
    };
    same_letters.or_else(near).or_else(part)
}

fn letters(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::table;

    fn suggest(written: &str) -> Option<&'static str> {
        closest(written, table::properties().map(|property| property.name))
    }

    #[test]
    fn other_spellings_of_a_name_lead_to_it() {
        assert_eq!(suggest("bootstrap_servers"), Some("bootstrap.servers"));
        assert_eq!(suggest("bootstrapServers"), Some("bootstrap.servers"));
        assert_eq!(suggest("COMPRESSION.TYPE"), Some("compression.type"));
    }

    #[test]
    fn typing_mistakes_lead_to_the_name_that_was_meant() {
        assert_eq!(suggest("bootstrap.server"), Some("bootstrap.servers"));
        assert_eq!(suggest("lingr.ms"), Some("linger.ms"));
        assert_eq!(suggest("compresion.type"), Some("compression.type"));
        assert_eq!(suggest("enable.idempotance"), Some("enable.idempotence"));
        assert_eq!(suggest("acsk"), Some("acks"));
    }

    #[test]
    fn a_beginning_or_an_end_leads_to_the_shortest_name_that_has_it() {
        assert_eq!(suggest("idempotence"), Some("enable.idempotence"));
        assert_eq!(suggest("client.software"), Some("client.software.name"));
    }

    #[test]
    fn a_name_that_is_near_to_nothing_gets_no_suggestion() {
        assert_eq!(suggest("zookeeper.connect"), None);
        assert_eq!(suggest("x"), None);
        assert_eq!(suggest(&"linger.ms".repeat(1000)), None);
    }
}
