//! Finds the addresses at which other machines may reach this one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns the addresses of this machine, IPv4 first, and then its name `host`.
pub(super) fn local_addresses(host: &str) -> Vec<String> {
    let v4 = std::fs::read_to_string("/proc/net/fib_trie").unwrap_or_default();
    let v6 = std::fs::read_to_string("/proc/net/if_inet6").unwrap_or_default();
    let mut all: Vec<String> =
        parse_fib_trie(&v4).iter().chain(&parse_if_inet6(&v6)).map(IpAddr::to_string).collect();
    // The name is resolved by the other machines; on this one it may resolve to the loopback.
    if !host.is_empty() {
        all.push(host.to_owned());
    }
    all
}

/// Parses `/proc/net/fib_trie`. The line `/32 host LOCAL` follows a local address; each is listed in two tables.
fn parse_fib_trie(text: &str) -> Vec<IpAddr> {
    let mut found: Vec<IpAddr> = Vec::new();
    let mut last: Option<Ipv4Addr> = None;
    for line in text.lines() {
        if let Some((_, address)) = line.split_once("|-- ") {
            last = address.trim().parse().ok();
        } else if line.contains("/32 host LOCAL")
            && let Some(address) = last.filter(|address| !address.is_loopback())
            && !found.contains(&address.into())
        {
            found.push(address.into());
        }
    }
    found
}

/// Parses `/proc/net/if_inet6`: 32 hex digits, then index, prefix length, scope (0: global), flags and name.
fn parse_if_inet6(text: &str) -> Vec<IpAddr> {
    let global = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let digits = u128::from_str_radix(words.next()?, 16).ok()?;
        (words.nth(2)? == "00").then(|| Ipv6Addr::from(digits).into())
    });
    global.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_interfaces_are_found_in_proc() {
        let trie = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n     |-- 10.1.2.3\n        \
                    /32 host LOCAL\n     |-- 10.1.2.255\n        /32 link BROADCAST\n     |-- 127.0.0.1\n        /32 host LOCAL\n\
                    Local:\n     |-- 10.1.2.3\n        /32 host LOCAL\n";
        assert_eq!(parse_fib_trie(trie), ["10.1.2.3".parse::<IpAddr>().unwrap()]);
        let v6 = "fe800000000000000000000000000001 02 40 20 80 eth0\n20010db8000000000000000000000005 02 40 00 80 eth0\n";
        assert_eq!(parse_if_inet6(v6), ["2001:db8::5".parse::<IpAddr>().unwrap()]);
    }
}
