//! Which connections the screen shows: words that all have to fit.

use super::row::Row;
use std::net::{IpAddr, SocketAddr};

/// Words, each a port, an address or a part of a process; a connection fits if all of them do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowFilter(Vec<Word>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Word {
    /// A port of either end.
    Port(u16),
    /// The other end's address.
    Peer(IpAddr),
    /// The process with this id.
    Pid(u32),
    /// A part of the process's name or command, in lower case.
    Process(String),
    /// A part of an address or of the process, in lower case.
    Text(String),
}

impl RowFilter {
    /// The filter of a text as it is typed: `443` or `:443` is a port, `pid:12` a process, anything
    /// else a part of an address, a name or a command.
    pub fn typed(text: &str) -> RowFilter {
        let word = |word: &str| {
            if let Some(pid) = word.strip_prefix("pid:").and_then(|pid| pid.parse().ok()) {
                return Word::Pid(pid);
            }
            match word.strip_prefix(':').unwrap_or(word).parse() {
                Ok(port) => Word::Port(port),
                Err(_) => Word::Text(word.to_lowercase()),
            }
        };
        RowFilter(text.split_whitespace().map(word).collect())
    }

    /// Adds a port of either end.
    pub fn port(&mut self, port: u16) {
        self.0.push(Word::Port(port));
    }

    /// Adds the other end's address.
    pub fn peer(&mut self, address: IpAddr) {
        self.0.push(Word::Peer(address));
    }

    /// Adds a process's id.
    pub fn pid(&mut self, pid: u32) {
        self.0.push(Word::Pid(pid));
    }

    /// Adds a part of a process's name or command.
    pub fn process(&mut self, name: &str) {
        self.0.push(Word::Process(name.to_lowercase()));
    }

    /// Whether it lets everything pass.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a connection fits.
    pub fn fits(&self, row: &Row) -> bool {
        self.0.iter().all(|word| word.fits(row))
    }
}

impl Word {
    fn fits(&self, row: &Row) -> bool {
        let ends = [row.local, row.remote];
        match self {
            Word::Port(port) => ends.iter().any(|end| end.port() == *port),
            Word::Peer(address) => row.remote.ip().to_canonical() == address.to_canonical(),
            Word::Pid(pid) => row.process.as_ref().is_some_and(|process| process.pid == *pid),
            Word::Process(part) => has_process(row, part),
            Word::Text(part) => {
                let has = |end: &SocketAddr| end.to_string().contains(part.as_str());
                ends.iter().any(has) || has_process(row, part)
            }
        }
    }
}

fn has_process(row: &Row, part: &str) -> bool {
    row.process.as_ref().is_some_and(|process| {
        [&process.name, &process.command].iter().any(|text| text.to_lowercase().contains(part))
    })
}

/// As it would be typed.
impl std::fmt::Display for RowFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, word) in self.0.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { " " })?;
            match word {
                Word::Port(port) => write!(f, ":{port}")?,
                Word::Peer(address) => write!(f, "{address}")?,
                Word::Pid(pid) => write!(f, "pid:{pid}")?,
                Word::Process(text) | Word::Text(text) => f.write_str(text)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::row;
    use super::*;

    #[test]
    fn words_select_by_port_address_and_process() {
        // curl 4711, 10.0.0.1:40000 -> 10.0.0.2:443
        let row = row();
        for fitting in ["", "443", ":443", "40000", "10.0.0.2", "CURL", "pid:4711", "443 curl"] {
            assert!(RowFilter::typed(fitting).fits(&row), "{fitting}");
        }
        for other in ["80", "10.9.", "nginx", "pid:1", "443 nginx"] {
            assert!(!RowFilter::typed(other).fits(&row), "{other}");
        }
        let mut filter = RowFilter::default();
        filter.peer("::ffff:10.0.0.2".parse().unwrap());
        filter.process("Curl");
        assert!(filter.fits(&row), "an IPv4 address in IPv6 is the same address");
        filter.port(80);
        assert!(!filter.fits(&row));
        assert_eq!(filter.to_string(), "::ffff:10.0.0.2 curl :80");
    }
}
