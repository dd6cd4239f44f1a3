//! Where a far end may connect to.
//!
//! A rule is `HOST:PORT`. HOST is a name, an address, a network (`10.0.0.0/8`) or `*`; PORT is a
//! number, a range (`8000-8999`) or `*`. A name rule is about the name that the near end asks for,
//! an address rule about the address that the far end would connect to, so names are looked up
//! before the decision ([`AllowList::permits`]).
//!
//! The far host itself and what only it can reach are never meant by a name, by `*` or by a wide
//! network: loopback, the unspecified address, link-local addresses (`169.254.0.0/16`,
//! `fe80::/10`), where clouds have their metadata ([`GUARDED`]), and each address of the host's own
//! interfaces. For them a rule has to name an address or a network inside them; `localhost` counts
//! as `127.0.0.1` and `::1`. So a name that somebody lets point to 127.0.0.1 opens nothing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

/// What a rule says of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Host {
    Any,
    Name(String),
    Network { address: IpAddr, prefix: u8 },
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    host: Host,
    ports: RangeInclusive<u16>,
}

/// The destinations that a far end may connect to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowList(Vec<Rule>);

/// Why a text is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseAllowError {
    /// It has another form.
    #[error(
        "'{0}' is no destination to allow: it is HOST:PORT, where HOST is a name, an address, a \
         network such as 10.0.0.0/8, or *, and PORT is a number, a range such as 8000-8999, or *"
    )]
    Form(String),
    /// IPv6 without brackets: nobody can say where the port begins.
    #[error(
        "'{0}' is no destination to allow: in HOST:PORT, an address or a network of IPv6 needs \
         brackets, as in [2001:db8::1]:443 or [::/0]:443"
    )]
    Brackets(String),
}

/// A destination: `HOST:PORT`, with an IPv6 address in brackets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Destination {
    pub host: String,
    pub port: u16,
}

impl Destination {
    /// Reads a destination; `None` if it is none.
    pub fn parse(text: &str) -> Option<Destination> {
        let (host, port) = split(text)?;
        let port = port.parse().ok().filter(|port| *port > 0)?;
        let is_host = !host.is_empty()
            && host.len() <= 253
            && host.chars().all(|c| !c.is_control() && !c.is_whitespace() && c != '*' && c != '/');
        is_host.then(|| Destination { host: host.to_owned(), port })
    }
}

/// Host and port of a text; brackets are taken off an IPv6 address.
fn split(text: &str) -> Option<(&str, &str)> {
    let (host, port) = text.rsplit_once(':')?;
    match host.strip_prefix('[') {
        Some(inner) => inner.strip_suffix(']').map(|host| (host, port)),
        None if host.contains(':') => None,
        None => Some((host, port)),
    }
}

impl std::str::FromStr for AllowList {
    type Err = ParseAllowError;

    /// A list with one rule.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        rules(text).map(AllowList).ok_or_else(|| {
            let shown = text.chars().take(100).filter(|c| !c.is_control()).collect();
            let is_bare_ipv6 = text.matches(':').count() > 1 && !text.contains(['[', ']']);
            let error =
                if is_bare_ipv6 { ParseAllowError::Brackets } else { ParseAllowError::Form };
            error(shown)
        })
    }
}

fn rules(text: &str) -> Option<Vec<Rule>> {
    let (host, port) = split(text)?;
    let ports = match port.split_once('-') {
        None if port == "*" => 1..=u16::MAX,
        None => port_number(port).map(|port| port..=port)?,
        Some((first, last)) => port_number(first)?..=port_number(last)?,
    };
    if ports.is_empty() || host.is_empty() {
        return None;
    }
    let rule = |host| Rule { host, ports: ports.clone() };
    if host == "*" {
        return Some(vec![rule(Host::Any)]);
    }
    if host.eq_ignore_ascii_case("localhost") {
        let own = [(Ipv4Addr::LOCALHOST.into(), 32), (Ipv6Addr::LOCALHOST.into(), 128)];
        let own = own.map(|(address, prefix)| rule(Host::Network { address, prefix }));
        return Some(own.to_vec());
    }
    if let Ok(address) = host.parse::<IpAddr>() {
        let address = address.to_canonical();
        return Some(vec![rule(Host::Network { address, prefix: bits(address) })]);
    }
    if let Some((address, prefix)) = host.split_once('/') {
        let address: IpAddr = address.parse().ok()?;
        let prefix: u8 = prefix.parse().ok().filter(|prefix| *prefix <= bits(address))?;
        return Some(vec![rule(Host::Network { address, prefix })]);
    }
    host.chars()
        .all(|c| c.is_alphanumeric() || matches!(c, '-' | '.' | '_'))
        .then(|| vec![rule(Host::Name(host.to_ascii_lowercase()))])
}

fn port_number(text: &str) -> Option<u16> {
    text.parse().ok().filter(|port| *port > 0)
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// Whether `address` lies in the network.
fn is_in(address: IpAddr, network: IpAddr, prefix: u8) -> bool {
    let both: [u128; 2] = match (address, network) {
        (IpAddr::V4(a), IpAddr::V4(b)) => [a, b].map(|address| address.to_bits().into()),
        (IpAddr::V6(a), IpAddr::V6(b)) => [a, b].map(|address| address.to_bits()),
        _ => return false,
    };
    let host_bits = bits(network).saturating_sub(prefix);
    let [a, b] = both.map(|address| address.checked_shr(host_bits.into()).unwrap_or(0));
    a == b
}

/// The networks that only a rule inside them opens.
const GUARDED: [(IpAddr, u8); 10] = [
    (IpAddr::V4(Ipv4Addr::LOCALHOST), 8),
    // To connect there is to connect to this host.
    (IpAddr::V4(Ipv4Addr::UNSPECIFIED), 8),
    (IpAddr::V4(Ipv4Addr::new(169, 254, 0, 0)), 16),
    (IpAddr::V6(Ipv6Addr::LOCALHOST), 128),
    (IpAddr::V6(Ipv6Addr::UNSPECIFIED), 128),
    (IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0)), 10),
    // The metadata of clouds that is not link-local: of AWS and of Google Cloud over IPv6, of
    // Alibaba Cloud, and the host agent of Azure.
    (IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)), 128),
    (IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)), 128),
    (IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)), 32),
    (IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)), 32),
];

/// The guarded network that an address lies in; `own` are the addresses of this host.
fn guard(address: IpAddr, own: &[IpAddr]) -> Option<(IpAddr, u8)> {
    let guarded = GUARDED.into_iter().find(|(network, prefix)| is_in(address, *network, *prefix));
    guarded.or_else(|| own.contains(&address).then(|| (address, bits(address))))
}

impl AllowList {
    /// Adds another list's rules.
    pub fn extend(&mut self, other: AllowList) {
        self.0.extend(other.0);
    }

    /// Whether the list has no rule, so that nothing is allowed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether any address could make the destination allowed: if not, it is not even looked up.
    pub(super) fn may_permit(&self, to: &Destination) -> bool {
        self.0.iter().any(|rule| {
            let fits = match &rule.host {
                Host::Name(name) => name.eq_ignore_ascii_case(&to.host),
                Host::Any | Host::Network { .. } => true,
            };
            fits && rule.ports.contains(&to.port)
        })
    }

    /// Whether the far end, which has the addresses `own`, may connect to `address` for `to`.
    pub(super) fn permits(&self, to: &Destination, address: IpAddr, own: &[IpAddr]) -> bool {
        let address = address.to_canonical();
        let guard = guard(address, own);
        self.0.iter().filter(|rule| rule.ports.contains(&to.port)).any(|rule| match &rule.host {
            Host::Any => guard.is_none(),
            Host::Name(name) => guard.is_none() && name.eq_ignore_ascii_case(&to.host),
            Host::Network { address: network, prefix } => {
                let is_literal = guard.is_none_or(|(guarded, least)| {
                    *prefix >= least && is_in(*network, guarded, least)
                });
                is_literal && is_in(address, *network, *prefix)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn list(rules: &[&str]) -> AllowList {
        let mut list = AllowList::default();
        rules.iter().for_each(|rule| list.extend(rule.parse().unwrap()));
        list
    }

    /// What the far host has in these tests.
    fn own() -> [IpAddr; 2] {
        ["203.0.113.7", "2001:db8:7::7"].map(|address| address.parse().unwrap())
    }

    fn permits(rules: &[&str], to: &str, address: &str) -> bool {
        let to = Destination::parse(to).unwrap();
        let list = list(rules);
        let is_permitted = list.permits(&to, address.parse().unwrap(), &own());
        assert!(!is_permitted || list.may_permit(&to), "{to:?}");
        is_permitted
    }

    #[test]
    fn names_addresses_networks_and_ports() {
        for (rule, to, address, expected) in [
            ("db.example:5432", "DB.example:5432", "10.0.0.1", true),
            ("db.example:5432", "db.example:5433", "10.0.0.1", false),
            ("db.example:5432", "other.example:5432", "10.0.0.1", false),
            ("10.0.0.0/8:8000-8999", "any.example:8080", "10.1.2.3", true),
            ("10.0.0.0/8:8000-8999", "any.example:8080", "11.1.2.3", false),
            ("10.0.0.1:80", "10.0.0.1:80", "10.0.0.1", true),
            ("10.0.0.1:80", "10.0.0.1:80", "::ffff:10.0.0.1", true),
            ("*:443", "a.example:443", "192.0.2.1", true),
            ("*:443", "a.example:80", "192.0.2.1", false),
            ("*:*", "a.example:1", "2001:db8::1", true),
            ("[2001:db8::/32]:80", "a.example:80", "2001:db8::1", true),
            ("[2001:db8::/32]:80", "a.example:80", "2001:db9::1", false),
            ("0.0.0.0/0:80", "a.example:80", "2001:db8::1", false),
        ] {
            assert_eq!(permits(&[rule], to, address), expected, "{rule} {to} {address}");
        }
    }

    #[test]
    fn the_far_host_and_link_local_need_a_literal_rule() {
        let wide = ["*:*", "0.0.0.0/0:*", "[::/0]:*", "rebound.example:*", "128.0.0.0/1:*"];
        let guarded = [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "169.254.169.254",
            "::1",
            "::",
            "fe80::1",
            "febf::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "fd00:ec2::254",
            "fd20:ce::254",
            "100.100.100.200",
            "168.63.129.16",
            "203.0.113.7",
            "::ffff:203.0.113.7",
            "2001:db8:7::7",
        ];
        for address in guarded {
            assert!(!permits(&wide, "rebound.example:80", address), "{address}");
        }
        for (rule, address) in [
            ("localhost:80", "127.0.0.1"),
            ("localhost:80", "::1"),
            ("127.0.0.0/8:80", "127.9.9.9"),
            ("169.254.169.254:80", "169.254.169.254"),
            ("[fe80::/10]:80", "fe80::1"),
            ("100.100.100.200:80", "100.100.100.200"),
            ("203.0.113.7:80", "203.0.113.7"),
            ("203.0.113.7/32:80", "::ffff:203.0.113.7"),
            ("[2001:db8:7::7]:80", "2001:db8:7::7"),
            // Their neighbours are ordinary.
            ("203.0.113.0/24:80", "203.0.113.8"),
            ("*:80", "100.100.100.201"),
            ("*:80", "168.63.129.17"),
        ] {
            assert!(permits(&[rule], "rebound.example:80", address), "{rule}");
        }
        assert!(!permits(&["localhost:80"], "localhost:80", "127.0.0.2"));
        assert!(!permits(&["126.0.0.0/7:80"], "a.example:80", "127.0.0.1"), "wider than the guard");
        assert!(!permits(&["203.0.113.0/24:80"], "a.example:80", "203.0.113.7"), "its own");
    }

    #[test]
    fn what_is_no_rule_is_refused_with_its_form() {
        for wrong in
            ["", "host", "host:", ":80", "host:0", "h:9-8", "10.0.0.0/33:1", "::1:80", "a b:1"]
        {
            let error = wrong.parse::<AllowList>().unwrap_err().to_string();
            assert!(error.contains("HOST:PORT"), "{error}");
            assert_eq!(error.contains("brackets"), wrong == "::1:80", "{error}");
        }
        for bare in ["::/0:80", "2001:db8::/32:*", "fe80::1:80", "::"] {
            let error = bare.parse::<AllowList>().unwrap_err();
            assert_eq!(error, ParseAllowError::Brackets(bare.into()));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_rule_or_refused(text: String, to: String, address: [u8; 16]) {
            let to = Destination::parse(&to);
            if let (Ok(list), Some(to)) = (text.parse::<AllowList>(), to) {
                list.permits(&to, IpAddr::from(address), &own());
            }
        }

        /// Against any list of wide rules, whatever the destination's name.
        #[test]
        fn no_wide_rule_opens_loopback(prefix in 0u8..8, network: [u8; 4], last: [u8; 3]) {
            let rule = format!("{}/{prefix}:*", Ipv4Addr::from(network));
            let address = Ipv4Addr::new(127, last[0], last[1], last[2]);
            let name = ["a.example:80"];
            prop_assert!(!permits(&[&rule, "*:*"], name[0], &address.to_string()));
        }
    }
}
