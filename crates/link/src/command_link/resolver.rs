//! Name resolution for a command with its own loopback.
//!
//! A `resolv.conf` that names a resolver on the loopback (systemd-resolved's 127.0.0.53, dnsmasq's
//! 127.0.0.1) does not work behind a link, where that address is the command's own loopback. Such a
//! file is replaced by one that names the gateway, and queries to the gateway's port 53 go to the
//! original resolver. Other files stay as they are: their resolvers are reached over the link like
//! anything else.

use std::net::IpAddr;

/// A replaced `resolv.conf`, and the resolver behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// The text of its `resolv.conf`.
    pub text: String,
    /// The resolver on the machine's loopback.
    pub resolver: IpAddr,
}

/// A `resolv.conf` for a command whose `gateway` stands for the machine's loopback; `None` if
/// `text` can stay.
pub fn replace(text: &str, gateway: IpAddr) -> Option<Replaced> {
    let servers: Vec<Option<IpAddr>> = text.lines().filter_map(nameserver).collect();
    // Without any, the resolver queries the loopback (resolv.conf(5)).
    let loopback = servers.iter().flatten().copied().find(IpAddr::is_loopback);
    let resolver = match (loopback, servers.is_empty()) {
        (Some(resolver), _) => resolver,
        (None, true) => IpAddr::from([127, 0, 0, 1]),
        (None, false) => return None,
    };
    let mut shown =
        format!("# fullpipe link: {resolver}, by way of the gateway\nnameserver {gateway}\n");
    for line in text.lines() {
        let is_loopback = nameserver(line)
            .is_some_and(|server| server.is_some_and(|server| server.is_loopback()));
        let is_comment = line.trim_start().starts_with(['#', ';']);
        if !is_loopback && !is_comment && !line.trim().is_empty() {
            shown.push_str(line);
            shown.push('\n');
        }
    }
    Some(Replaced { text: shown, resolver })
}

/// Whether a line names a resolver, and its address if it can be parsed (`fe80::1%eth0` cannot).
fn nameserver(line: &str) -> Option<Option<IpAddr>> {
    let mut words = line.split_whitespace();
    (words.next()? == "nameserver").then(|| words.next().and_then(|word| word.parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GATEWAY: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 77, 0, 1));

    #[test]
    fn only_a_resolver_on_the_loopback_is_replaced() {
        assert_eq!(replace("nameserver 192.0.2.53\nsearch lan\n", GATEWAY), None);
        assert_eq!(replace("nameserver fe80::1%eth0\n", GATEWAY), None);
        let stub = "# by systemd\nnameserver 127.0.0.53\noptions edns0 trust-ad\nsearch lan\n";
        let replaced = replace(stub, GATEWAY).unwrap();
        assert_eq!(replaced.resolver, IpAddr::from([127, 0, 0, 53]));
        assert!(
            replaced.text.ends_with("nameserver 10.77.0.1\noptions edns0 trust-ad\nsearch lan\n"),
            "{replaced:?}"
        );
        assert_eq!(
            replace("search lan\n", GATEWAY).unwrap().resolver,
            IpAddr::from([127, 0, 0, 1])
        );
        assert!(replace("nameserver ::1\n", GATEWAY).unwrap().resolver.is_ipv6());
    }

    proptest! {
        #[test]
        fn what_is_shown_names_no_loopback(text in "((nameserver (127.0.0.[0-9]|::1|9.9.9.9|x)|search a)\n){0,5}|\\PC*") {
            if let Some(replaced) = replace(&text, GATEWAY) {
                prop_assert!(replaced.resolver.is_loopback());
                prop_assert_eq!(replace(&replaced.text, GATEWAY), None);
            }
        }
    }
}
