//! Which connections are meant: `host 10.0.0.1 and port 443`.
//!
//! The words are those of tcpdump's filters that hold for a connection as a whole: `host ADDRESS`,
//! `net ADDRESS/LENGTH`, `port N`, `portrange N-M`, `ip`, `ip6`, `tcp`, joined by `and`, `or`,
//! `not` and parentheses. `and` binds tighter than `or`; that both words may stand without their
//! kind (`host A or B`) is not taken over. There is no `src` and no `dst`: a connection has both
//! ends as its source, and half of one cannot be analysed.
//!
//! A connection of this host has a process and another end, too: [`LiveFilter`] adds
//! `peer ADDRESS`, `pid N`, `process TEXT`, `cgroup TEXT` and `pod TEXT`.

mod parse;

use fullpipe_model::observe::Process;
use std::fmt;
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

/// A condition on a connection of this host: on its ends, its process, and where it leads.
///
/// ```
/// use fullpipe_flow::connection::filter::LiveFilter;
/// let filter: LiveFilter = "peer 192.0.2.1 and not port 22".parse().unwrap();
/// let (local, remote) = ("10.1.2.3:40000".parse().unwrap(), "192.0.2.1:443".parse().unwrap());
/// assert!(filter.matches(local, remote, None));
/// assert!(!filter.matches(remote, local, None));
/// assert!(LiveFilter::default().matches(local, remote, None), "it selects all");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveFilter(Condition);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Condition {
    /// Address and how many of its leading bits count.
    Net(IpAddr, u8),
    Ports(u16, u16),
    Version4(bool),
    Any,
    /// The other end's address.
    Peer(IpAddr),
    Pid(u32),
    /// A part of the process's name or command, in lower case.
    Process(String),
    /// A part of its control group's path.
    Cgroup(String),
    /// A part of its pod's `NAMESPACE/NAME`, in lower case as these are.
    Pod(String),
    /// A part of an address or of the process, in lower case.
    Text(String),
    Not(Box<Condition>),
    And(Vec<Condition>),
    Or(Vec<Condition>),
}

/// A filter that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read filter '{filter}': {problem}; e.g. {examples}")]
pub struct FilterError {
    /// As it was given.
    pub filter: String,
    /// What is wrong with it.
    pub problem: FilterProblem,
    /// Filters that can be read.
    pub examples: &'static str,
}

/// What is wrong with a filter. Words are as they were given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterProblem {
    /// A condition is complete, and this follows.
    #[error("'{0}' stands where 'and', 'or' or the end was expected")]
    NoEnd(String),
    /// Conditions within conditions.
    #[error("more than {most} levels of parentheses and 'not'")]
    Deep {
        /// Levels that are read.
        most: u32,
    },
    /// The text is over too early.
    #[error("it ends where a condition was expected")]
    Ends,
    /// A parenthesis.
    #[error("a ')' is missing")]
    Unclosed,
    /// Asked of a capture.
    #[error("'{0}' is for live connections: a capture has no processes")]
    LiveOnly(String),
    /// `src`, `dst`.
    #[error("'{0}' would take one direction of a connection; name the 'host' or 'port'")]
    OneDirection(String),
    /// A word at the end that asks for another.
    #[error("'{0}' needs a value")]
    NoValue(String),
    /// A word that begins no condition.
    #[error("'{0}' stands where a condition was expected")]
    NoCondition(String),
    /// A word that has no meaning here.
    #[error("'{word}' is none of {known}")]
    Unknown {
        /// It.
        word: String,
        /// Those that have one.
        known: &'static str,
    },
    /// Of a network.
    #[error("'{text}' needs a length from 0 to {longest} after '/'")]
    Length {
        /// The network.
        text: String,
        /// Of its address.
        longest: u8,
    },
    /// Of ports.
    #[error("'{0}' is no range such as 8000-8080")]
    Range(String),
    /// A host or a network.
    #[error("'{0}' is no IPv4 or IPv6 address (names are not looked up)")]
    Address(String),
    /// One port.
    #[error("'{0}' is no port from 0 to 65535")]
    Port(String),
    /// A process.
    #[error("'{0}' is no process id")]
    Pid(String),
}

/// A connection that a condition may hold for.
struct Candidate<'a> {
    local: SocketAddr,
    remote: SocketAddr,
    process: Option<&'a Process>,
}

impl Filter {
    /// Whether a connection between these two ends is meant; their order does not matter.
    pub fn matches(&self, a: SocketAddr, b: SocketAddr) -> bool {
        self.0.holds(&Candidate { local: a, remote: b, process: None })
    }
}

impl LiveFilter {
    /// Whether a connection from `local` to `remote` is meant. Where its process is not known, it
    /// has none of the traits that are asked of it.
    pub fn matches(
        &self,
        local: SocketAddr,
        remote: SocketAddr,
        process: Option<&Process>,
    ) -> bool {
        self.0.holds(&Candidate { local, remote, process })
    }

    /// Whether it selects every connection.
    pub fn is_any(&self) -> bool {
        self.0 == Condition::Any
    }

    /// All that is asked for must hold; all connections where nothing is.
    pub fn all(asked: impl IntoIterator<Item = Option<LiveFilter>>) -> LiveFilter {
        asked.into_iter().flatten().fold(LiveFilter::default(), LiveFilter::and)
    }

    /// Whether it asks for certain connections, by an end or a process: whoever does that means
    /// them wherever they lead. A name, a control group and what is excluded leave many.
    pub fn names_connections(&self) -> bool {
        self.0.names_connections()
    }

    /// Both must hold.
    fn and(self, other: LiveFilter) -> LiveFilter {
        LiveFilter(match (self.0, other.0) {
            (Condition::Any, one) | (one, Condition::Any) => one,
            (Condition::And(mut all), Condition::And(more)) => {
                all.extend(more);
                Condition::And(all)
            }
            (Condition::And(mut all), one) => {
                all.push(one);
                Condition::And(all)
            }
            (one, other) => Condition::And(vec![one, other]),
        })
    }

    /// With this port at either end.
    pub fn port(port: u16) -> LiveFilter {
        LiveFilter(Condition::Ports(port, port))
    }

    /// With this address at the other end.
    pub fn peer(address: IpAddr) -> LiveFilter {
        LiveFilter(Condition::Peer(address.to_canonical()))
    }

    /// Of the process with this id.
    pub fn pid(pid: u32) -> LiveFilter {
        LiveFilter(Condition::Pid(pid))
    }

    /// Of a process with this in its name or command, in whatever case.
    pub fn process(part: &str) -> LiveFilter {
        LiveFilter(Condition::Process(part.to_lowercase()))
    }

    /// Of a process whose control group's path contains this.
    pub fn cgroup(part: &str) -> LiveFilter {
        LiveFilter(Condition::Cgroup(part.to_owned()))
    }
}

/// All connections.
impl Default for LiveFilter {
    fn default() -> LiveFilter {
        LiveFilter(Condition::Any)
    }
}

impl Condition {
    fn holds(&self, one: &Candidate<'_>) -> bool {
        let ends = [one.local, one.remote];
        match self {
            Condition::Net(net, length) => ends.iter().any(|end| is_in(end.ip(), *net, *length)),
            Condition::Ports(low, high) => {
                ends.iter().any(|end| (*low..=*high).contains(&end.port()))
            }
            Condition::Version4(four) => one.local.is_ipv4() == *four,
            Condition::Any => true,
            Condition::Peer(address) => one.remote.ip() == *address,
            Condition::Pid(pid) => one.process.is_some_and(|process| process.pid == *pid),
            Condition::Process(part) => has_process(one, part),
            Condition::Cgroup(part) => one
                .process
                .and_then(|process| process.cgroup.as_ref())
                .is_some_and(|path| path.contains(part)),
            Condition::Pod(part) => one
                .process
                .and_then(|process| process.pod.as_ref())
                .is_some_and(|pod| pod.to_string().contains(part)),
            Condition::Text(part) => {
                ends.iter().any(|end| end.to_string().contains(part)) || has_process(one, part)
            }
            Condition::Not(inner) => !inner.holds(one),
            Condition::And(all) => all.iter().all(|condition| condition.holds(one)),
            Condition::Or(any) => any.iter().any(|condition| condition.holds(one)),
        }
    }
}

impl Condition {
    fn names_connections(&self) -> bool {
        match self {
            Condition::Net(..) | Condition::Ports(..) | Condition::Peer(_) | Condition::Pid(_) => {
                true
            }
            Condition::And(all) | Condition::Or(all) => {
                all.iter().any(Condition::names_connections)
            }
            Condition::Version4(_)
            | Condition::Any
            | Condition::Process(_)
            | Condition::Cgroup(_)
            | Condition::Pod(_)
            | Condition::Text(_)
            | Condition::Not(_) => false,
        }
    }
}

fn has_process(one: &Candidate<'_>, part: &str) -> bool {
    one.process.is_some_and(|process| {
        [&process.name, &process.command].iter().any(|text| text.to_lowercase().contains(part))
    })
}

fn is_in(address: IpAddr, net: IpAddr, length: u8) -> bool {
    match (address, net) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            is_prefix_equal(u128::from(a.to_bits() ^ b.to_bits()), length, 32)
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => is_prefix_equal(a.to_bits() ^ b.to_bits(), length, 128),
        _ => false,
    }
}

/// Whether two addresses of `bits` bits, of which this is the difference, begin with the same
/// `length` bits.
fn is_prefix_equal(difference: u128, length: u8, bits: u8) -> bool {
    length == 0 || difference >> (bits - length) == 0
}

/// As it can be typed.
impl fmt::Display for LiveFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::Net(address, length) if *length == parse::bits(*address) => {
                write!(f, "host {address}")
            }
            Condition::Net(address, length) => write!(f, "net {address}/{length}"),
            Condition::Ports(low, high) if low == high => write!(f, "port {low}"),
            Condition::Ports(low, high) => write!(f, "portrange {low}-{high}"),
            Condition::Version4(true) => f.write_str("ip"),
            Condition::Version4(false) => f.write_str("ip6"),
            Condition::Any => f.write_str("tcp"),
            Condition::Peer(address) => write!(f, "peer {address}"),
            Condition::Pid(pid) => write!(f, "pid {pid}"),
            Condition::Process(part) => write!(f, "process {part}"),
            Condition::Cgroup(part) => write!(f, "cgroup {part}"),
            Condition::Pod(part) => write!(f, "pod {part}"),
            Condition::Text(part) => f.write_str(part),
            Condition::Not(inner) => write!(f, "not {}", Operand(inner)),
            Condition::And(all) => joined(f, all, " and "),
            Condition::Or(any) => joined(f, any, " or "),
        }
    }
}

/// A condition inside another: in parentheses where it needs them.
struct Operand<'a>(&'a Condition);

impl fmt::Display for Operand<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            inner @ (Condition::And(_) | Condition::Or(_)) => write!(f, "({inner})"),
            inner => write!(f, "{inner}"),
        }
    }
}

fn joined(f: &mut fmt::Formatter<'_>, all: &[Condition], word: &str) -> fmt::Result {
    for (index, condition) in all.iter().enumerate() {
        f.write_str(if index == 0 { "" } else { word })?;
        write!(f, "{}", Operand(condition))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_model::observe::PodName;
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
            ("pid 12", "no processes"),
            ("peer 10.0.0.1", "no processes"),
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

    fn curl() -> Process {
        Process {
            pid: 4711,
            name: "curl".into(),
            command: "Curl -T file https://10.0.0.2/".into(),
            cgroup: Some("/system.slice/app.service".into()),
            container: None,
            pod: Some(PodName { namespace: "shop".into(), name: "web-7d4b9c6f5-x2x9z".into() }),
        }
    }

    fn has(filter: &LiveFilter) -> bool {
        let (local, remote) = ("10.0.0.1:40000".parse().unwrap(), "10.0.0.2:443".parse().unwrap());
        filter.matches(local, remote, Some(&curl()))
    }

    #[test]
    fn a_live_connection_has_a_process_and_a_peer() {
        for (filter, expected) in [
            ("pid 4711", true),
            ("pid 1 or port 443", true),
            ("process CURL", true),
            ("process nginx", false),
            ("cgroup app.service and not pid 1", true),
            ("cgroup other", false),
            ("pod shop/WEB-", true),
            ("pod web-7d4b9c6f5-x2x9z", true),
            ("pod shop/api or pod web/", false),
            ("peer 10.0.0.2", true),
            ("peer ::ffff:10.0.0.2", true),
            ("host ::ffff:10.0.0.1", true),
            ("peer 10.0.0.1", false),
        ] {
            assert_eq!(has(&filter.parse().unwrap()), expected, "{filter}");
        }
        let unknown: LiveFilter = "pid 4711".parse().unwrap();
        let (local, remote) = ("10.0.0.1:40000".parse().unwrap(), "10.0.0.2:443".parse().unwrap());
        assert!(!unknown.matches(local, remote, None));
        assert!("curl".parse::<LiveFilter>().is_err(), "a bare word is for a screen only");
    }

    #[test]
    fn a_screen_takes_bare_words() {
        for text in ["", " ", "443", ":443", "40000", "10.0.0.2", "CURL", "pid:4711", "443 curl"] {
            assert!(has(&LiveFilter::typed(text)), "{text}");
        }
        for text in ["port 443 and curl", "not nginx", "443 (curl or nginx)", "process curl 443"] {
            assert!(has(&LiveFilter::typed(text)), "{text}");
        }
        for text in ["80", "10.9.", "nginx", "pid:1", "443 nginx", "443 not curl", "port", "(443"] {
            assert!(!has(&LiveFilter::typed(text)), "{text}");
        }
    }

    #[test]
    fn an_end_or_a_process_names_connections_and_what_is_excluded_does_not() {
        for (filter, names) in [
            ("port 443", true),
            ("peer 10.0.0.2", true),
            ("pid 1 or process curl", true),
            ("net 127.0.0.0/8 and not pid 1", true),
            ("not port 22", false),
            ("process curl", false),
            ("cgroup app and ip6", false),
        ] {
            let filter: LiveFilter = filter.parse().unwrap();
            assert_eq!(filter.names_connections(), names, "{filter}");
        }
    }

    #[test]
    fn what_options_ask_reads_as_it_would_be_typed() {
        let filter = LiveFilter::all([
            Some(LiveFilter::port(443)),
            None,
            Some(LiveFilter::peer("::ffff:10.0.0.2".parse().unwrap())),
            Some(LiveFilter::pid(4711).and(LiveFilter::process("Curl"))),
        ]);
        assert_eq!(filter.to_string(), "port 443 and peer 10.0.0.2 and pid 4711 and process curl");
        assert!(has(&filter) && !has(&filter.and(LiveFilter::cgroup("other"))));
    }

    proptest! {
        #[test]
        fn what_is_shown_means_the_same(text in "((port|pid|process|peer 10\\.0\\.0\\.2|not|\\(|\\)|and|or|curl|[0-9]{1,4}) ){0,12}") {
            let filter = LiveFilter::typed(&text);
            prop_assert_eq!(LiveFilter::typed(&filter.to_string()), filter);
        }
    }
}
