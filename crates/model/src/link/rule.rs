//! Rules: which packets take which path. The first rule that matches decides; all others take the
//! default path.
//!
//! A rule matches a conversation, not a direction: `to 10.0.0.5:443` means every packet to that
//! address and port, and every answer from it.

use super::grammar::{Reader, WordsError, words_serde};
use std::net::IpAddr;

/// The fields of a packet that rules look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PacketKey {
    /// Source address of the IP header.
    pub source: IpAddr,
    /// Destination address of the IP header.
    pub destination: IpAddr,
    /// Protocol of the IP header (or of the last extension header).
    pub protocol: Protocol,
    /// Source and destination port, if the protocol has them and the packet contains them (a later
    /// fragment does not).
    pub ports: Option<(u16, u16)>,
}

/// An IP protocol number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Protocol(pub u8);

impl Protocol {
    /// RFC 9293.
    pub const TCP: Protocol = Protocol(6);
    /// RFC 768.
    pub const UDP: Protocol = Protocol(17);
    /// RFC 792.
    pub const ICMP: Protocol = Protocol(1);
    /// RFC 4443.
    pub(crate) const ICMPV6: Protocol = Protocol(58);
}

/// A prefix of addresses, IPv4 or IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

impl Prefix {
    /// The addresses that share the first `length` bits of `address`; `None` if it has fewer bits.
    pub fn new(address: IpAddr, length: u8) -> Option<Self> {
        let address = match address {
            IpAddr::V4(v4) if length <= 32 => {
                IpAddr::V4((u32::from(v4) & mask(length, 32) as u32).into())
            }
            IpAddr::V6(v6) if length <= 128 => {
                IpAddr::V6((u128::from(v6) & mask(length, 128)).into())
            }
            _ => return None,
        };
        Some(Prefix { address, length })
    }

    /// The first address.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// How many bits are fixed.
    pub fn length(&self) -> u8 {
        self.length
    }

    /// Whether `address` is in it.
    pub fn contains(&self, address: IpAddr) -> bool {
        Prefix::new(address, self.length).is_some_and(|of| of.address == self.address)
    }

    fn is_one_address(&self) -> bool {
        self.length == if self.address.is_ipv4() { 32 } else { 128 }
    }
}

/// A mask of the first `length` of `bits` bits.
fn mask(length: u8, bits: u32) -> u128 {
    let all = if bits == 128 { u128::MAX } else { (1 << bits) - 1 };
    let rest = bits - u32::from(length);
    if rest == 128 { 0 } else { (all >> rest) << rest }
}

/// One end of a conversation: addresses, ports, or both.
///
/// Text: `10.0.0.5`, `10.0.0.0/24:8000-8080`, `:443`, `[2001:db8::/32]:443`, `2001:db8::1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// `None`: any address.
    pub prefix: Option<Prefix>,
    /// First and last port; `None`: any, including packets without ports.
    pub ports: Option<(u16, u16)>,
}

impl Endpoint {
    fn is(&self, address: IpAddr, port: Option<u16>) -> bool {
        self.prefix.is_none_or(|prefix| prefix.contains(address))
            && self
                .ports
                .is_none_or(|(first, last)| port.is_some_and(|port| (first..=last).contains(&port)))
    }
}

/// Which packets a rule applies to; all its parts must match. A rule without parts matches every
/// packet.
///
/// Text: `[to] ENDPOINT [from ENDPOINT] [protocol NAME]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Match {
    /// The destination of packets, and the source of answers.
    pub to: Option<Endpoint>,
    /// The source of packets, and the destination of answers.
    pub from: Option<Endpoint>,
    /// The protocol above IP.
    pub protocol: Option<Protocol>,
}

impl Match {
    /// Whether it matches the packet or the answer to it.
    pub fn matches(&self, key: &PacketKey) -> bool {
        if self.protocol.is_some_and(|protocol| protocol != key.protocol) {
            return false;
        }
        let (source_port, destination_port) = key.ports.unzip();
        let source = (key.source, source_port);
        let destination = (key.destination, destination_port);
        self.leads(source, destination) || self.leads(destination, source)
    }

    /// Whether packets from one address and port to the other are between its ends.
    fn leads(&self, from: (IpAddr, Option<u16>), to: (IpAddr, Option<u16>)) -> bool {
        self.to.is_none_or(|end| end.is(to.0, to.1))
            && self.from.is_none_or(|end| end.is(from.0, from.1))
    }
}

/// A list of matches; the first that matches decides.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Classifier(Vec<Match>);

impl Classifier {
    /// Tries them in order.
    pub fn new(matches: Vec<Match>) -> Self {
        Classifier(matches)
    }

    /// The index of the matching rule, from 0; `None`: the default path.
    pub fn classify(&self, key: &PacketKey) -> Option<usize> {
        self.0.iter().position(|rule| rule.matches(key))
    }
}

impl std::fmt::Display for Protocol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Protocol::TCP => f.write_str("tcp"),
            Protocol::UDP => f.write_str("udp"),
            Protocol::ICMP => f.write_str("icmp"),
            Protocol::ICMPV6 => f.write_str("icmpv6"),
            Protocol(number) => write!(f, "{number}"),
        }
    }
}

impl std::str::FromStr for Protocol {
    type Err = WordsError;

    fn from_str(text: &str) -> Result<Self, WordsError> {
        let words = Reader::new("protocol", "tcp, udp, icmp, icmpv6 or a number below 256", text);
        match text.trim() {
            "tcp" => Ok(Protocol::TCP),
            "udp" => Ok(Protocol::UDP),
            "icmp" => Ok(Protocol::ICMP),
            "icmpv6" => Ok(Protocol::ICMPV6),
            number => {
                number.parse().map(Protocol).map_err(|_| words.error("no protocol of that name"))
            }
        }
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(prefix) = self.prefix {
            let length =
                if prefix.is_one_address() { String::new() } else { format!("/{}", prefix.length) };
            match (prefix.address, self.ports) {
                (IpAddr::V6(v6), Some(_)) => write!(f, "[{v6}{length}]")?,
                (address, _) => write!(f, "{address}{length}")?,
            }
        }
        match self.ports {
            Some((first, last)) if first == last => write!(f, ":{first}"),
            Some((first, last)) => write!(f, ":{first}-{last}"),
            None if self.prefix.is_none() => f.write_str("*"),
            None => Ok(()),
        }
    }
}

impl std::str::FromStr for Endpoint {
    type Err = WordsError;

    fn from_str(text: &str) -> Result<Self, WordsError> {
        let example = "10.0.0.5, 10.0.0.0/24:8000-8080, :443, 2001:db8::1 or [2001:db8::/32]:443";
        let words = Reader::new("endpoint", example, text);
        let text = text.trim();
        let (host, ports) = if let Some(rest) = text.strip_prefix('[') {
            let Some((host, ports)) = rest.split_once(']') else {
                return Err(words.error("']' is missing"));
            };
            match ports.strip_prefix(':') {
                Some(ports) => (host, Some(ports)),
                None if ports.is_empty() => (host, None),
                None => return Err(words.error("after ']' only a colon and a port can follow")),
            }
        } else if text.matches(':').count() == 1 {
            text.split_once(':').map_or((text, None), |(host, ports)| (host, Some(ports)))
        } else {
            (text, None)
        };
        let prefix = match host {
            "" | "*" if ports.is_some() || host == "*" => None,
            host => Some(
                prefix(host)
                    .ok_or_else(|| words.error(format!("'{host}' is no address and no prefix")))?,
            ),
        };
        let ports = ports.map(|ports| {
            port_range(ports).ok_or_else(|| words.error(format!("'{ports}' is no port")))
        });
        Ok(Endpoint { prefix, ports: ports.transpose()? })
    }
}

fn prefix(text: &str) -> Option<Prefix> {
    let (address, length) =
        text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
    let address: IpAddr = address.parse().ok()?;
    let all = if address.is_ipv4() { 32 } else { 128 };
    Prefix::new(address, length.map_or(Some(all), |length| length.parse().ok())?)
}

fn port_range(text: &str) -> Option<(u16, u16)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let range = (first.parse().ok()?, last.parse().ok()?);
    (range.0 <= range.1).then_some(range)
}

impl std::fmt::Display for Match {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut words = Vec::new();
        words.extend(self.to.map(|to| format!("to {to}")));
        words.extend(self.from.map(|from| format!("from {from}")));
        words.extend(self.protocol.map(|protocol| format!("protocol {protocol}")));
        f.write_str(&words.join(" "))
    }
}

impl std::str::FromStr for Match {
    type Err = WordsError;

    fn from_str(text: &str) -> Result<Self, WordsError> {
        let mut words =
            Reader::new("match", "to 10.0.0.5:443, or to :443 from 10.0.0.0/8 protocol tcp", text);
        let mut found = Match::default();
        if !matches!(words.peek(), None | Some("to" | "from" | "protocol")) {
            found.to = Some(words.value("to")?);
        }
        loop {
            if let Some(to) = words.after("to")? {
                found.to = Some(to);
            } else if let Some(from) = words.after("from")? {
                found.from = Some(from);
            } else if let Some(protocol) = words.after("protocol")? {
                found.protocol = Some(protocol);
            } else {
                break;
            }
        }
        words.end()?;
        Ok(found)
    }
}

words_serde!(Protocol);
words_serde!(Endpoint);
words_serde!(Match);
