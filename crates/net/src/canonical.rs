//! Replaces bootstrap servers by the canonical names of their addresses (`client.dns.lookup`), for aliases of several
//! hosts and for authentication mechanisms that verify the host's canonical name.

use std::net::SocketAddr;

use ottla_core::config::AddressFamily;

use crate::{platform::name_of, transport::Transport};

/// Replaces each server by the canonical names of its addresses. An address without a name is kept, and so is a host
/// without an address. Blocks in the system's resolver.
pub fn canonical_servers(
    servers: Vec<(String, u16)>,
    family: AddressFamily,
    transport: &dyn Transport,
) -> Vec<(String, u16)> {
    expand(servers, family, |host, port| transport.resolve(host, port).unwrap_or_default(), name_of)
}

fn expand(
    servers: Vec<(String, u16)>,
    family: AddressFamily,
    resolve: impl Fn(&str, u16) -> Vec<SocketAddr>,
    name_of: impl Fn(SocketAddr) -> Option<String>,
) -> Vec<(String, u16)> {
    let is_permitted = |address: &SocketAddr| match family {
        AddressFamily::Any => true,
        AddressFamily::V4 => address.is_ipv4(),
        AddressFamily::V6 => address.is_ipv6(),
    };
    let mut found = Vec::new();
    for (host, port) in servers {
        let addresses = resolve(&host, port);
        let names = addresses
            .into_iter()
            .filter(is_permitted)
            .map(|address| (name_of(address).unwrap_or_else(|| address.ip().to_string()), address.port()));
        let mut names: Vec<_> = names.collect();
        if names.is_empty() {
            names.push((host, port));
        }
        for name in names {
            if !found.contains(&name) {
                found.push(name);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::SystemTransport;

    fn server(host: &str) -> (String, u16) {
        (host.to_owned(), 9092)
    }

    #[test]
    fn alias_is_replaced_by_each_name_of_its_addresses_once() {
        let resolve = |host: &str, port| {
            let addresses: &[[u8; 4]] = match host {
                "alias" => &[[10, 0, 0, 1], [10, 0, 0, 2]],
                "one" => &[[10, 0, 0, 1]],
                "nameless" => &[[10, 0, 0, 9]],
                _ => &[],
            };
            let of = |address: &[u8; 4]| SocketAddr::from((*address, port));
            let v6 = SocketAddr::from(([0u16, 0, 0, 0, 0, 0, 0, 1], port));
            addresses.iter().map(of).chain((host == "alias").then_some(v6)).collect()
        };
        let name_of = |address: SocketAddr| match address.ip().to_string().as_str() {
            "10.0.0.1" => Some("b1.example".to_owned()),
            "10.0.0.2" => Some("b2.example".to_owned()),
            "::1" => Some("v6.example".to_owned()),
            _ => None,
        };
        let servers = ["alias", "one", "nameless", "unknown"].map(server).to_vec();
        let names = |family| {
            let found = expand(servers.clone(), family, resolve, name_of);
            assert!(found.iter().all(|(_, port)| *port == 9092));
            found.into_iter().map(|(host, _)| host).collect::<Vec<_>>()
        };
        assert_eq!(names(AddressFamily::V4), ["b1.example", "b2.example", "10.0.0.9", "unknown"]);
        assert_eq!(
            names(AddressFamily::Any),
            ["b1.example", "b2.example", "v6.example", "10.0.0.9", "unknown"]
        );
    }

    #[test]
    fn canonical_name_of_an_address_resolves_to_it() {
        let servers = canonical_servers(vec![server("127.0.0.1")], AddressFamily::V4, &SystemTransport);
        assert_eq!(servers.len(), 1);
        let (name, port) = &servers[0];
        let back = SystemTransport.resolve(name, *port).unwrap();
        assert!(back.iter().any(|address| address.ip().is_loopback()), "{name}");
    }
}
