//! `bootstrap.servers`: the first brokers to connect to.

use std::fmt;

/// A host and a port, not yet resolved.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServerAddress {
    /// The name or address; an IPv6 address has no brackets here.
    pub host: String,
    /// The TCP port.
    pub port: u16,
}

const DEFAULT_PORT: u16 = 9092;

impl ServerAddress {
    /// Parses a comma-separated list of servers and removes duplicates. The error contains the invalid entry.
    pub fn parse_list(list: &str) -> Result<Vec<ServerAddress>, String> {
        let mut servers = Vec::new();
        for entry in list.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let server = ServerAddress::parse(entry)?;
            if !servers.contains(&server) {
                servers.push(server);
            }
        }
        Ok(servers)
    }

    /// Parses a comma-separated list of servers and removes duplicates. Also returns the reasons of the entries that
    /// are skipped. A path after the port is ignored.
    pub fn parse_usable(list: &str) -> (Vec<ServerAddress>, Vec<String>) {
        let (mut servers, mut skipped) = (Vec::new(), Vec::new());
        for entry in list.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let start = entry.find("://").map_or(0, |scheme| scheme + 3);
            let end = entry[start..].find('/').map_or(entry.len(), |path| start + path);
            // A port alone is one of this machine.
            let is_port = entry[..end].strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
            let host = if is_port { "localhost" } else { "" };
            match ServerAddress::parse(&format!("{host}{}", &entry[..end])) {
                Ok(server) if servers.contains(&server) => {}
                Ok(server) => servers.push(server),
                Err(sentence) => skipped.push(sentence),
            }
        }
        (servers, skipped)
    }

    /// Parses one server: `host`, `host:port`, `[v6]:port`, or a bare IPv6 address, each optionally with `PLAINTEXT://`
    /// in front.
    pub fn parse(entry: &str) -> Result<ServerAddress, String> {
        let rest = match entry.split_once("://") {
            None => entry,
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("plaintext") => rest,
            Some((scheme, _))
                if ["ssl", "sasl_ssl", "sasl_plaintext"].contains(&&*scheme.to_ascii_lowercase()) =>
            {
                return Err(format!("{entry}: {scheme} is unimplemented, only PLAINTEXT"));
            }
            Some((scheme, _)) => {
                return Err(format!("{entry}: {scheme}:// is not a Kafka listener; write host:port"));
            }
        };
        let (host, port) = if let Some(bracketed) = rest.strip_prefix('[') {
            let (host, after) = bracketed.split_once(']').ok_or(format!("{entry}: there is no ] after ["))?;
            if host.parse::<core::net::Ipv6Addr>().is_err() {
                return Err(format!("{entry}: there is no IPv6 address in the brackets"));
            }
            match after.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if after.is_empty() => (host, None),
                None => return Err(format!("{entry}: only :port may follow ]")),
            }
        } else if rest.parse::<core::net::Ipv6Addr>().is_ok() {
            (rest, None)
        } else {
            match rest.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (rest, None),
            }
        };
        if host.is_empty() {
            return Err(format!("{entry}: there is no host"));
        }
        let strange =
            |letter: char| letter.is_whitespace() || letter.is_control() || "/\\@?#=\"'()".contains(letter);
        if host.len() > 255 || host.contains(strange) {
            return Err(format!("{}: that is not a host name", entry.chars().take(100).collect::<String>()));
        }
        let port = match port {
            None => DEFAULT_PORT,
            Some(digits) => match digits.parse::<u16>() {
                Ok(port) if port > 0 && digits.bytes().all(|digit| digit.is_ascii_digit()) => port,
                _ => return Err(format!("{entry}: the port must be in 1 .. 65535")),
            },
        };
        Ok(ServerAddress { host: host.to_string(), port })
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(list: &str) -> Vec<String> {
        ServerAddress::parse_list(list).unwrap().iter().map(ServerAddress::to_string).collect()
    }

    #[test]
    fn every_usual_way_to_write_a_server_is_understood() {
        assert_eq!(parsed(""), Vec::<String>::new());
        assert_eq!(parsed("kafka"), ["kafka:9092"]);
        assert_eq!(parsed(" a:1 , b:2,,a:1 "), ["a:1", "b:2"]);
        assert_eq!(parsed("[::1]:9093,[fe80::1],::1"), ["[::1]:9093", "[fe80::1]:9092", "[::1]:9092"]);
        assert_eq!(parsed("PLAINTEXT://127.0.0.1:9094"), ["127.0.0.1:9094"]);
    }

    #[test]
    fn unusable_entries_are_skipped_with_a_reason() {
        let (servers, skipped) =
            ServerAddress::parse_usable("a:1,,b:2/path, PLAINTEXT://c/x ,a:1,SSL://d:1,e:x,,");
        let servers: Vec<_> = servers.iter().map(ServerAddress::to_string).collect();
        assert_eq!(servers, ["a:1", "b:2", "c:9092"]);
        assert!(skipped.len() == 2 && skipped[0].starts_with("SSL://d:1") && skipped[1].starts_with("e:x"));
        assert_eq!(ServerAddress::parse_usable(","), (vec![], vec![]));
        assert_eq!(ServerAddress::parse_usable(":9093").0[0].to_string(), "localhost:9093");
        assert_eq!(ServerAddress::parse_usable("::1").0[0].to_string(), "[::1]:9092");
    }

    #[test]
    fn invalid_bootstrap_entry_is_named_in_the_error() {
        for entry in [
            ":9092",
            "host:",
            "host:0",
            "host:65536",
            "host:9092x",
            "host:+1",
            "[::1",
            "[::1]9092",
            "[nonsense]:1",
            "http://host:9092",
            "SSL://host:9093",
            "host name:1",
            "host/path:1",
            "a=b",
            "host:1:2",
        ] {
            let error = ServerAddress::parse_list(&format!("ok:1,{entry}")).unwrap_err();
            assert!(error.starts_with(entry), "{entry} gave {error}");
        }
        assert!(ServerAddress::parse(&"x".repeat(1 << 20)).unwrap_err().len() < 200);
    }
}
