//! Which connections are meant: `host 10.0.0.1 and port 443`.
//!
//! The words are those of tcpdump's filters that hold for a connection as a whole: `host ADDRESS`,
//! `net ADDRESS/LENGTH`, `port N`, `portrange N-M`, `ip`, `ip6`, `tcp`, joined by `and`, `or`,
//! `not` and parentheses. `and` binds tighter than `or`; that both words may stand without their
//! kind (`host A or B`) is not taken over. There is no `src` and no `dst`: a connection has both
//! ends as its source, and half of one cannot be analysed.

use std::net::{IpAddr, SocketAddr};

/// A condition on the two ends of a connection.
///
/// ```
/// use fullpipe_flow::connection::filter::Filter;
/// let filter: Filter = "net 10.0.0.0/8 and not port 22".parse().unwrap();
/// let ends = |a: &str, b: &str| filter.matches(a.parse().unwrap(), b.parse().unwrap());
/// assert!(ends("192.0.2.1:443", "10.1.2.3:40000"));
/// assert!(!ends("10.1.2.3:22", "10.1.2.4:40000"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter(Condition);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Condition {
    /// Address and how many of its leading bits count.
    Net(IpAddr, u8),
    Ports(u16, u16),
    Version4(bool),
    Any,
    Not(Box<Condition>),
    And(Vec<Condition>),
    Or(Vec<Condition>),
}

/// A filter that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "read filter '{filter}': {problem}; e.g. 'host 10.0.0.1 and port 443', 'net 10.0.0.0/8 and not port 22'"
)]
pub struct FilterError {
    filter: String,
    problem: String,
}

impl Filter {
    /// Whether a connection between these two ends is meant; their order does not matter.
    pub fn matches(&self, a: SocketAddr, b: SocketAddr) -> bool {
        self.0.holds(a, b)
    }
}

impl Condition {
    fn holds(&self, a: SocketAddr, b: SocketAddr) -> bool {
        match self {
            Condition::Net(net, length) => [a, b].iter().any(|end| is_in(end.ip(), *net, *length)),
            Condition::Ports(low, high) => {
                [a, b].iter().any(|end| (*low..=*high).contains(&end.port()))
            }
            Condition::Version4(four) => a.is_ipv4() == *four,
            Condition::Any => true,
            Condition::Not(inner) => !inner.holds(a, b),
            Condition::And(all) => all.iter().all(|one| one.holds(a, b)),
            Condition::Or(any) => any.iter().any(|one| one.holds(a, b)),
        }
    }
}

fn is_in(address: IpAddr, net: IpAddr, length: u8) -> bool {
    let same = |difference: u128, bits: u8| length == 0 || difference >> (bits - length) == 0;
    match (address, net) {
        (IpAddr::V4(a), IpAddr::V4(b)) => same(u128::from(a.to_bits() ^ b.to_bits()), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => same(a.to_bits() ^ b.to_bits(), 128),
        _ => false,
    }
}

/// Parentheses deeper than this are not believed; they would only fill the stack.
const DEPTH_MAX: u32 = 32;

impl std::str::FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        let spaced =
            text.replace('(', " ( ").replace(')', " ) ").replace('!', " ! ").replace("&&", " && ");
        let spaced = spaced.replace("||", " || ");
        let mut words = spaced.split_whitespace().peekable();
        let parsed = any_of(&mut words, 0).and_then(|condition| match words.next() {
            None => Ok(condition),
            Some(word) => Err(format!("'{word}' stands where 'and', 'or' or the end was expected")),
        });
        parsed.map(Filter).map_err(|problem| FilterError { filter: text.into(), problem })
    }
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any_of(words: &mut Words<'_>, depth: u32) -> Result<Condition, String> {
    let mut any = vec![all_of(words, depth)?];
    while words.next_if(|word| matches!(*word, "or" | "||")).is_some() {
        any.push(all_of(words, depth)?);
    }
    Ok(if any.len() == 1 { any.remove(0) } else { Condition::Or(any) })
}

fn all_of(words: &mut Words<'_>, depth: u32) -> Result<Condition, String> {
    let mut all = vec![one(words, depth)?];
    while words.next_if(|word| matches!(*word, "and" | "&&")).is_some() {
        all.push(one(words, depth)?);
    }
    Ok(if all.len() == 1 { all.remove(0) } else { Condition::And(all) })
}

fn one(words: &mut Words<'_>, depth: u32) -> Result<Condition, String> {
    if depth > DEPTH_MAX {
        return Err(format!("more than {DEPTH_MAX} levels of parentheses and 'not'"));
    }
    let word = words.next().ok_or("it ends where a condition was expected")?;
    let mut value = || words.next().ok_or(format!("'{word}' needs a value"));
    match word {
        "not" | "!" => Ok(Condition::Not(Box::new(one(words, depth + 1)?))),
        "(" => {
            let inner = any_of(words, depth + 1)?;
            match words.next() {
                Some(")") => Ok(inner),
                _ => Err("a ')' is missing".into()),
            }
        }
        "host" => {
            let address = address(value()?)?;
            Ok(Condition::Net(address, bits(address)))
        }
        "net" => net(value()?),
        "port" => port(value()?).map(|port| Condition::Ports(port, port)),
        "portrange" => {
            let range = value()?;
            let (low, high) =
                range.split_once('-').ok_or(format!("'{range}' is no range such as 8000-8080"))?;
            Ok(Condition::Ports(port(low)?, port(high)?))
        }
        "ip" => Ok(Condition::Version4(true)),
        "ip6" => Ok(Condition::Version4(false)),
        "tcp" => Ok(Condition::Any),
        "src" | "dst" => Err(format!(
            "'{word}' would take one direction of a connection; name the 'host' or 'port'"
        )),
        other => Err(format!("'{other}' is none of host, net, port, portrange, ip, ip6, not, (")),
    }
}

fn net(text: &str) -> Result<Condition, String> {
    let (start, length) = text.split_once('/').unwrap_or((text, ""));
    let address = address(start)?;
    let most = bits(address);
    let length = if length.is_empty() { Ok(most) } else { length.parse() };
    match length {
        Ok(length) if length <= most => Ok(Condition::Net(address, length)),
        _ => Err(format!("'{text}' needs a length from 0 to {most} after '/'")),
    }
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn address(text: &str) -> Result<IpAddr, String> {
    text.parse()
        .map_err(|_| format!("'{text}' is no IPv4 or IPv6 address (names are not looked up)"))
}

fn port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| format!("'{text}' is no port from 0 to 65535"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(filter: &str, a: &str, b: &str) -> bool {
        filter.parse::<Filter>().unwrap().matches(a.parse().unwrap(), b.parse().unwrap())
    }

    #[test]
    fn conditions_hold_for_either_end() {
        let (a, b) = ("10.0.0.1:40000", "192.0.2.7:443");
        for (filter, expected) in [
            ("host 10.0.0.1 and port 443", true),
            ("host 10.0.0.2 or port 443", true),
            ("host 10.0.0.2", false),
            ("not host 10.0.0.1", false),
            ("!(port 22 || port 23) && net 192.0.2.0/24", true),
            ("net 192.0.2.8/29", false),
            ("net 0.0.0.0/0", true),
            ("portrange 400-450", true),
            ("ip6", false),
            ("tcp", true),
            // `and` binds tighter than `or`.
            ("port 443 or port 1 and port 2", true),
            ("(port 443 or port 1) and port 2", false),
        ] {
            assert_eq!(matches(filter, a, b), expected, "{filter}");
            assert_eq!(matches(filter, b, a), expected, "{filter}, the other way");
        }
        assert!(matches("net 2001:db8::/32", "[2001:db8:1::1]:1", "[::1]:2"));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (filter, named) in [
            ("", "it ends"),
            ("host example.org", "'example.org' is no IPv4"),
            ("port 70000", "'70000' is no port"),
            ("host 10.0.0.1 port 1", "'port' stands where"),
            ("(port 1", "')' is missing"),
            ("src host 10.0.0.1", "one direction"),
            ("net 10.0.0.0/33", "from 0 to 32"),
            ("portrange 7", "no range"),
        ] {
            let error = filter.parse::<Filter>().unwrap_err().to_string();
            assert!(error.contains(named), "{filter}: {error}");
        }
        assert!("(".repeat(100_000).parse::<Filter>().is_err());
        assert!("not ".repeat(100_000).parse::<Filter>().is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(host|port|net|and|or|not|\\(|\\)|10\\.0\\.0\\.1|/8|[0-9]{1,6}| ){0,20}") {
            if let Ok(filter) = text.parse::<Filter>() {
                let (a, b) = ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:2".parse().unwrap());
                prop_assert_eq!(filter.matches(a, b), filter.matches(b, a));
            }
        }
    }
}
