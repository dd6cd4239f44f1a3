//! Where peers are, by their addresses: a table of prefixes with a site each, and its provider and
//! region where that is known.
//!
//! The text is CSV (RFC 4180): `prefix,site[,provider,region]`. A first line that begins with
//! `prefix` names the columns, in any order. LineCount that begin with `#` are comments. Of several
//! prefixes that an address is in, the longest counts, as in a table of routes.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use prefix_trie::PrefixMap;
use serde::Serialize;
use std::collections::HashMap;
use std::net::IpAddr;

/// Where a peer is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct PeerSite {
    /// The site: a data centre, an office, a network.
    pub site: String,
    /// Whose it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// In which region it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
}

/// Prefixes with the sites behind them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Prefixes {
    sites: Vec<PeerSite>,
    of_v4: PrefixMap<Ipv4Net, PrefixEntry>,
    of_v6: PrefixMap<Ipv6Net, PrefixEntry>,
}

/// What stands beside a prefix: a place in the list of sites, and the line that says so.
#[derive(Debug, Clone, Copy, PartialEq)]
struct PrefixEntry {
    site: usize,
    line: u64,
}

/// Why a text is no table of prefixes. LineCount count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrefixesError {
    /// It is no CSV, or no text.
    #[error("line {line}: {problem}")]
    Csv {
        /// Where it stops being one.
        line: u64,
        /// Why.
        problem: String,
    },
    /// The first line names no columns that could be read.
    #[error(
        "line {line}, column {column}: '{text}' is no name of a column, or stands there twice; \
         they are prefix, site, provider and region, and the first two must be there"
    )]
    Header {
        /// Where it is.
        line: u64,
        /// Which column of the line.
        column: usize,
        /// What stands there.
        text: String,
    },
    /// A line has too few or too many columns.
    #[error("line {line}: it has {columns} columns; they are prefix,site[,provider,region]")]
    Columns {
        /// Which one.
        line: u64,
        /// How many there are.
        columns: usize,
    },
    /// There is no prefix where one is expected.
    #[error(
        "line {line}, column {column}: '{text}' is no prefix; write 192.0.2.0/24 or 2001:db8::/32"
    )]
    Prefix {
        /// Where it is.
        line: u64,
        /// Which column of the line.
        column: usize,
        /// What stands there.
        text: String,
    },
    /// A prefix has bits behind its length.
    #[error("line {line}, column {column}: {text} has bits behind its length; write {meant}")]
    Bits {
        /// Where it is.
        line: u64,
        /// Which column of the line.
        column: usize,
        /// What stands there.
        text: String,
        /// The prefix that an address like it is in.
        meant: String,
    },
    /// A site has no name, or a name is too long or has characters that no terminal shows.
    #[error(
        "line {line}, column {column}: the name is empty, longer than {NAME_MOST} bytes, or has \
         characters that a terminal does not show"
    )]
    Name {
        /// Where it is.
        line: u64,
        /// Which column of the line.
        column: usize,
    },
    /// A prefix stands there twice.
    #[error("line {line}, column {column}: {text} stands in line {first}, too; leave one of them")]
    Twice {
        /// Where it is for the second time.
        line: u64,
        /// Which column of the line.
        column: usize,
        /// The prefix.
        text: String,
        /// Where it is first.
        first: u64,
    },
    /// There is nothing in it.
    #[error("it has no prefix; write a line for each: prefix,site[,provider,region]")]
    Empty,
}

/// A longer name of a site is a mistake.
const NAME_MOST: usize = 200;

/// The columns as they stand without a first line that names them.
const COLUMNS: [&str; 4] = ["prefix", "site", "provider", "region"];

/// Which column of a line each of [`COLUMNS`] is.
type Order = [Option<usize>; COLUMNS.len()];

impl Prefixes {
    /// Reads a table.
    ///
    /// # Errors
    /// [`PrefixesError`], with the line and, where it has one, the column.
    pub fn parse(text: &str) -> Result<Prefixes, PrefixesError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut reader = csv::ReaderBuilder::new();
        reader.has_headers(false).flexible(true).comment(Some(b'#')).trim(csv::Trim::All);
        let mut reader = reader.from_reader(text.as_bytes());
        let mut prefixes = Prefixes::default();
        let mut known = HashMap::new();
        let mut order: Order = [Some(0), Some(1), Some(2), Some(3)];
        let mut record = csv::StringRecord::new();
        let (mut is_first, mut lines) =
            (true, LineCount { text: text.as_bytes(), at: 0, before: 0 });
        while reader.read_record(&mut record).map_err(|error| no_csv(&error))? {
            let line = lines.of_record_until(reader.position().byte());
            let names_columns = record.iter().any(|name| name.eq_ignore_ascii_case(COLUMNS[0]));
            if std::mem::take(&mut is_first) && names_columns {
                order = ordered(&record, line)?;
                continue;
            }
            prefixes.add(&record, line, order, &mut known)?;
        }
        if prefixes.is_empty() { Err(PrefixesError::Empty) } else { Ok(prefixes) }
    }

    /// Takes a line.
    fn add(
        &mut self,
        record: &csv::StringRecord,
        line: u64,
        order: Order,
        known: &mut HashMap<PeerSite, usize>,
    ) -> Result<(), PrefixesError> {
        let most = order.iter().flatten().max().map_or(0, |last| last + 1);
        if record.len() < 2 || record.len() > most {
            return Err(PrefixesError::Columns { line, columns: record.len() });
        }
        let [at, site, provider, region] = order;
        let at = at.unwrap_or(0);
        let text = record.get(at).unwrap_or_default();
        let prefix = prefix(text, line, at + 1)?;
        let no_name = PrefixesError::Name { line, column: site.map_or(0, |at| at + 1) };
        let site = PeerSite {
            site: name(record, line, site)?.ok_or(no_name)?,
            provider: name(record, line, provider)?,
            region: name(record, line, region)?,
        };
        let sites = &mut self.sites;
        let place = *known.entry(site).or_insert_with_key(|site| {
            sites.push(site.clone());
            sites.len() - 1
        });
        let entry = PrefixEntry { site: place, line };
        let before = match prefix {
            IpNet::V4(net) => self.of_v4.insert(net, entry),
            IpNet::V6(net) => self.of_v6.insert(net, entry),
        };
        match before {
            Some(PrefixEntry { line: first, .. }) => {
                Err(PrefixesError::Twice { line, column: at + 1, text: prefix.to_string(), first })
            }
            None => Ok(()),
        }
    }

    /// The site of an address: that of the longest prefix that it is in. An address of IPv4 that a
    /// socket of IPv6 has (`::ffff:192.0.2.1`) is one of IPv4.
    pub fn site(&self, address: IpAddr) -> Option<&PeerSite> {
        let entry = match address.to_canonical() {
            IpAddr::V4(address) => self.of_v4.get_lpm(&address.into()).map(|(_, entry)| entry),
            IpAddr::V6(address) => self.of_v6.get_lpm(&address.into()).map(|(_, entry)| entry),
        };
        self.sites.get(entry?.site)
    }

    /// How many prefixes there are.
    pub fn len(&self) -> usize {
        self.of_v4.len() + self.of_v6.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Counts lines: where a record begins is told by its reader with the empty lines and comments
/// above it.
struct LineCount<'t> {
    text: &'t [u8],
    /// As far as was counted.
    at: usize,
    before: u64,
}

impl LineCount<'_> {
    /// The line of the record that ends before this byte.
    fn of_record_until(&mut self, end: u64) -> u64 {
        let end = usize::try_from(end).unwrap_or(usize::MAX).clamp(self.at, self.text.len());
        let read = &self.text[self.at..end];
        let behind = read.iter().rev().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let line = 1 + self.before + self.ends(end - behind);
        (self.at, self.before) = (end, self.before + self.ends(end));
        line
    }

    fn ends_line(&self, at: usize) -> bool {
        match self.text[at] {
            b'\n' => true,
            b'\r' => self.text.get(at + 1) != Some(&b'\n'),
            _ => false,
        }
    }

    /// How many lines end before this byte and behind what was counted: with `\n`, `\r\n` or `\r`,
    /// as its reader has it.
    fn ends(&self, until: usize) -> u64 {
        (self.at..until).filter(|at| self.ends_line(*at)).count() as u64
    }
}

fn no_csv(error: &csv::Error) -> PrefixesError {
    let line = error.position().map_or(0, csv::Position::line);
    PrefixesError::Csv { line, problem: error.to_string() }
}

/// The columns that a first line names.
fn ordered(record: &csv::StringRecord, line: u64) -> Result<Order, PrefixesError> {
    let mut order: Order = [None; COLUMNS.len()];
    for (at, text) in record.iter().enumerate() {
        let wrong = PrefixesError::Header { line, column: at + 1, text: text.into() };
        let known = COLUMNS.iter().position(|name| name.eq_ignore_ascii_case(text));
        match known.map(|known| &mut order[known]) {
            Some(slot @ None) => *slot = Some(at),
            _ => return Err(wrong),
        }
    }
    if order[1].is_none() {
        let column = record.len();
        let text = record.iter().next_back().unwrap_or_default().to_owned();
        return Err(PrefixesError::Header { line, column, text });
    }
    Ok(order)
}

fn prefix(text: &str, line: u64, column: usize) -> Result<IpNet, PrefixesError> {
    let host = text.parse().map(|address: IpAddr| IpNet::from(address));
    let net = text.parse().or(host);
    let net: IpNet = net.map_err(|_| PrefixesError::Prefix { line, column, text: text.into() })?;
    if net != net.trunc() {
        let meant = net.trunc().to_string();
        return Err(PrefixesError::Bits { line, column, text: text.into(), meant });
    }
    Ok(as_v4(net).unwrap_or(net))
}

/// The prefix of IPv4 that one of `::ffff:0:0/96` means.
fn as_v4(net: IpNet) -> Option<IpNet> {
    let IpAddr::V4(address) = net.addr().to_canonical() else { return None };
    let length = match net {
        IpNet::V4(net) => net.prefix_len(),
        IpNet::V6(net) => net.prefix_len().checked_sub(96)?,
    };
    Ipv4Net::new(address, length).ok().map(IpNet::V4)
}

/// A name in a line; `None` where the column is not there or empty.
fn name(
    record: &csv::StringRecord,
    line: u64,
    at: Option<usize>,
) -> Result<Option<String>, PrefixesError> {
    let found = at.and_then(|at| Some((at + 1, record.get(at)?)));
    let Some((column, text)) = found.filter(|(_, text)| !text.is_empty()) else { return Ok(None) };
    if text.len() > NAME_MOST || text.chars().any(char::is_control) {
        return Err(PrefixesError::Name { line, column });
    }
    Ok(Some(text.to_owned()))
}

#[cfg(test)]
mod tests;
