//! Reads filters.

use super::{Condition, Filter, FilterError, FilterProblem, LiveFilter};
use std::iter::Peekable;
use std::net::IpAddr;
use std::str::{FromStr, SplitWhitespace};

/// Parentheses deeper than this are not believed; they would only fill the stack.
const MAX_DEPTH: u32 = 32;

/// The words that have a meaning of their own; on a screen they are not searched for.
const KEYWORDS: [&str; 20] = [
    "and",
    "&&",
    "or",
    "||",
    "not",
    "!",
    "(",
    ")",
    "ip",
    "ip6",
    "tcp",
    "host",
    "net",
    "port",
    "portrange",
    "peer",
    "pid",
    "process",
    "cgroup",
    "pod",
];

/// What begins a condition, as it is told to who wrote another word.
const KNOWN_OF_CAPTURE: &str = "host, net, port, portrange, ip, ip6, not, (";
const KNOWN_OF_LIVE: &str =
    "host, peer, net, port, portrange, pid, process, cgroup, pod, ip, ip6, not, (";

/// The words that are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    /// Of a capture, which has the two ends only.
    Capture,
    /// Of a connection of this host.
    Live,
    /// Of a screen, where bare words have a meaning, and one after the other means `and`.
    Typed,
}

impl Dialect {
    fn examples(self) -> &'static str {
        match self {
            Dialect::Capture => "'host 10.0.0.1 and port 443', 'net 10.0.0.0/8 and not port 22'",
            Dialect::Live | Dialect::Typed => {
                "'peer 10.0.0.1 and port 443', 'process nginx and not net 10.0.0.0/8'"
            }
        }
    }
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        read(text, Dialect::Capture).map(Filter)
    }
}

impl FromStr for LiveFilter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        read(text, Dialect::Live).map(LiveFilter)
    }
}

impl LiveFilter {
    /// The filter of a text as it is typed on a screen, where nothing is refused: beside the words
    /// of a filter, `443` or `:443` is a port, `pid:12` a process, and anything else a part of an
    /// address, a name or a command. All that is typed must hold. What makes no sense is looked for
    /// as it is. No text means all connections.
    pub fn typed(text: &str) -> LiveFilter {
        if text.trim().is_empty() {
            return LiveFilter::default();
        }
        LiveFilter(
            read(text, Dialect::Typed)
                .unwrap_or_else(|_| Condition::Text(text.trim().to_lowercase())),
        )
    }
}

fn read(text: &str, dialect: Dialect) -> Result<Condition, FilterError> {
    let spaced =
        text.replace('(', " ( ").replace(')', " ) ").replace('!', " ! ").replace("&&", " && ");
    let spaced = spaced.replace("||", " || ");
    let mut parser = Parser { words: spaced.split_whitespace().peekable(), dialect };
    let parsed = parser.any_of(0).and_then(|condition| match parser.words.next() {
        None => Ok(condition),
        Some(word) => Err(FilterProblem::NoEnd(word.into())),
    });
    parsed.map_err(|problem| FilterError {
        filter: text.into(),
        problem,
        examples: dialect.examples(),
    })
}

struct Parser<'a> {
    words: Peekable<SplitWhitespace<'a>>,
    dialect: Dialect,
}

impl Parser<'_> {
    fn any_of(&mut self, depth: u32) -> Result<Condition, FilterProblem> {
        let mut any = vec![self.all_of(depth)?];
        while self.words.next_if(|word| matches!(*word, "or" | "||")).is_some() {
            any.push(self.all_of(depth)?);
        }
        Ok(if any.len() == 1 { any.remove(0) } else { Condition::Or(any) })
    }

    fn all_of(&mut self, depth: u32) -> Result<Condition, FilterProblem> {
        let mut all = vec![self.one(depth)?];
        while self.has_another() {
            all.push(self.one(depth)?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Condition::And(all) })
    }

    /// Takes the `and` before the next condition; on a screen it may be missing.
    fn has_another(&mut self) -> bool {
        if self.words.next_if(|word| matches!(*word, "and" | "&&")).is_some() {
            return true;
        }
        let next = self.words.peek();
        self.dialect == Dialect::Typed
            && next.is_some_and(|word| !matches!(*word, "or" | "||" | ")"))
    }

    fn one(&mut self, depth: u32) -> Result<Condition, FilterProblem> {
        if depth > MAX_DEPTH {
            return Err(FilterProblem::Deep { most: MAX_DEPTH });
        }
        let word = self.words.next().ok_or(FilterProblem::Ends)?;
        match word {
            "not" | "!" => Ok(Condition::Not(Box::new(self.one(depth + 1)?))),
            "(" => {
                let inner = self.any_of(depth + 1)?;
                match self.words.next() {
                    Some(")") => Ok(inner),
                    _ => Err(FilterProblem::Unclosed),
                }
            }
            "ip" => Ok(Condition::Version4(true)),
            "ip6" => Ok(Condition::Version4(false)),
            "tcp" => Ok(Condition::Any),
            "host" => {
                let host = address(self.value(word)?)?.to_canonical();
                Ok(Condition::Net(host, bits(host)))
            }
            "net" => net(self.value(word)?),
            "port" => port(self.value(word)?).map(|port| Condition::Ports(port, port)),
            "portrange" => ports(self.value(word)?),
            "peer" | "pid" | "process" | "cgroup" | "pod" if self.dialect == Dialect::Capture => {
                Err(FilterProblem::LiveOnly(word.into()))
            }
            "peer" => address(self.value(word)?).map(|peer| Condition::Peer(peer.to_canonical())),
            "pid" => pid(self.value(word)?),
            "process" => Ok(Condition::Process(self.value(word)?.to_lowercase())),
            "cgroup" => Ok(Condition::Cgroup(self.value(word)?.to_owned())),
            "pod" => Ok(Condition::Pod(self.value(word)?.to_lowercase())),
            "src" | "dst" if self.dialect == Dialect::Capture => {
                Err(FilterProblem::OneDirection(word.into()))
            }
            other => self.other(other),
        }
    }

    fn value(&mut self, word: &str) -> Result<&str, FilterProblem> {
        self.words.next().ok_or_else(|| FilterProblem::NoValue(word.into()))
    }

    /// A word that begins no condition.
    fn other(&self, word: &str) -> Result<Condition, FilterProblem> {
        match self.dialect {
            Dialect::Typed if KEYWORDS.contains(&word.to_lowercase().as_str()) => {
                Err(FilterProblem::NoCondition(word.into()))
            }
            Dialect::Typed => Ok(bare(word)),
            Dialect::Capture => {
                Err(FilterProblem::Unknown { word: word.into(), known: KNOWN_OF_CAPTURE })
            }
            Dialect::Live => {
                Err(FilterProblem::Unknown { word: word.into(), known: KNOWN_OF_LIVE })
            }
        }
    }
}

/// What a bare word means on a screen.
fn bare(word: &str) -> Condition {
    if let Some(pid) = word.strip_prefix("pid:").and_then(|pid| pid.parse().ok()) {
        return Condition::Pid(pid);
    }
    match word.strip_prefix(':').unwrap_or(word).parse() {
        Ok(port) => Condition::Ports(port, port),
        Err(_) => Condition::Text(word.to_lowercase()),
    }
}

fn net(text: &str) -> Result<Condition, FilterProblem> {
    let (start, length) = text.split_once('/').unwrap_or((text, ""));
    let address = address(start)?;
    let longest = bits(address);
    let length = if length.is_empty() { Ok(longest) } else { length.parse() };
    match length {
        Ok(length) if length <= longest => Ok(Condition::Net(address, length)),
        _ => Err(FilterProblem::Length { text: text.into(), longest }),
    }
}

fn ports(range: &str) -> Result<Condition, FilterProblem> {
    let (low, high) = range.split_once('-').ok_or_else(|| FilterProblem::Range(range.into()))?;
    Ok(Condition::Ports(port(low)?, port(high)?))
}

/// The length of an address.
pub(super) fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn address(text: &str) -> Result<IpAddr, FilterProblem> {
    text.parse().map_err(|_| FilterProblem::Address(text.into()))
}

fn port(text: &str) -> Result<u16, FilterProblem> {
    text.parse().map_err(|_| FilterProblem::Port(text.into()))
}

fn pid(text: &str) -> Result<Condition, FilterProblem> {
    text.parse().map(Condition::Pid).map_err(|_| FilterProblem::Pid(text.into()))
}
