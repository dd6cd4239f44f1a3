//! From a file to ready scenarios: cases times matrix, with each combination checked.

use super::combinations::{Combinations, REPEAT_MAX};
use super::error::ScenarioError;
use super::file::{LinkFile, RuleFile};
use super::{Capture, File, Host, Hosts, Override, Path, Rule, Scenario, transfer};
use crate::link::rule::Match;
use crate::link::{Config, Words};
use crate::units::{Bytes, Duration};

const SNAPLEN_DEFAULT: Bytes = Bytes::new(128);
const SNAPLEN_MIN: Bytes = Bytes::new(100);
const MTU_DEFAULT: Bytes = Bytes::new(1500);

/// Reads a file that a word names: returns its bytes, or why it cannot.
type Read<'a> = dyn FnMut(&str) -> Result<Vec<u8>, String> + 'a;

impl File {
    /// Every row of the file as a ready scenario. `fallback_name` is used if the file has no name.
    /// A file that only includes others has no rows; the caller resolves [`File::include`].
    ///
    /// # Errors
    /// The first invalid row, with its name. A row that names a file (`trace file:PATH`) is invalid
    /// here; use [`File::scenarios_with`].
    pub fn scenarios(&self, fallback_name: &str) -> Result<Vec<Scenario>, ScenarioError> {
        self.scenarios_with(fallback_name, &[], &mut |_| Err("no files are read here".into()))
    }

    /// Like [`File::scenarios`], with `over` overriding the file. `read` reads the files that the
    /// link names, and says why it cannot. The scenario contains what was read and does not need
    /// the file any more.
    ///
    /// # Errors
    /// The first invalid row, with its name.
    pub fn scenarios_with(
        &self,
        fallback_name: &str,
        over: &[Override],
        read: &mut Read<'_>,
    ) -> Result<Vec<Scenario>, ScenarioError> {
        let name = self.name.as_deref().unwrap_or(fallback_name);
        check_name(name)?;
        if !self.include.is_empty() {
            let mut rest = File { name: None, include: Vec::new(), ..self.clone() };
            rest.description.clear();
            rest.table.clear();
            return if rest == File::default() {
                Ok(Vec::new())
            } else {
                Err(ScenarioError::IncludeAndOwn)
            };
        }
        let mut rows = Vec::new();
        for row in Combinations::new(self, name)?.iter() {
            let (row_name, mut table) = row?;
            check_name(&row_name)?;
            over.iter().for_each(|over| over.apply(&mut table));
            let wrong = |problem: String| ScenarioError::Row { row: row_name.clone(), problem };
            let row: File = table.try_into().map_err(|error: toml::de::Error| {
                wrong(error.to_string().trim().replace('\n', " "))
            })?;
            rows.push(ready(&row_name, &row, read).map_err(wrong)?);
        }
        Ok(rows)
    }
}

fn check_name(name: &str) -> Result<(), ScenarioError> {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.=/".contains(c));
    let parts_fine = name.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
    if name.len() <= 100 && parts_fine && is_plain {
        Ok(())
    } else {
        Err(ScenarioError::Name(name.into()))
    }
}

/// A row with all defaults filled in and all bounds checked.
fn ready(name: &str, file: &File, read: &mut Read<'_>) -> Result<Scenario, String> {
    let repeat = file.repeat.unwrap_or(1);
    if !(1..=REPEAT_MAX).contains(&repeat) {
        return Err(format!("repeat {repeat} must be between 1 and {REPEAT_MAX}"));
    }
    let sample_interval = file.sample.interval.unwrap_or(Duration::from_millis(10));
    if !(Duration::from_millis(1)..=Duration::from_secs(10)).contains(&sample_interval) {
        return Err(format!("sample.interval {sample_interval} must be between 1 ms and 10 s"));
    }
    let snaplen = file.capture.snaplen.unwrap_or(SNAPLEN_DEFAULT);
    if !(SNAPLEN_MIN..=Bytes::new(65_535)).contains(&snaplen) {
        return Err(format!(
            "capture.snaplen {snaplen} must be between {SNAPLEN_MIN} (all headers) and 65535 B"
        ));
    }
    Ok(Scenario {
        name: name.into(),
        description: file.description.clone(),
        kernel: kernel(file.kernel.as_deref())?,
        link_engine: file.link.engine,
        hosts: Hosts {
            server: host("server", &file.hosts.server)?,
            client: host("client", &file.hosts.client)?,
        },
        path: path(&file.link, read)?,
        transfer: transfer::checked(&file.transfer)?,
        capture: Capture { snaplen },
        sample_interval,
        repeat,
        reference: file.reference.clone(),
        truth: file.truth,
    })
}

fn kernel(release: Option<&str>) -> Result<Option<String>, String> {
    match release {
        Some(release)
            if !release.starts_with(|c: char| c.is_ascii_digit())
                || !release.chars().all(|c| c.is_ascii_alphanumeric() || ".-+~".contains(c)) =>
        {
            Err(format!(
                "kernel '{release}' is not a Linux release or the beginning of one, such as 6.12 or 6.1"
            ))
        }
        release => Ok(release.map(str::to_string)),
    }
}

fn host(which: &str, host: &Host) -> Result<Host, String> {
    for nice in [Some(host.nice), host.cpu_hog_nice].into_iter().flatten() {
        if !(-20..=19).contains(&nice) {
            return Err(format!("hosts.{which}: niceness {nice} must be between -20 and 19"));
        }
    }
    if host.cpu_hog_nice.is_some() && host.cpu.is_none() {
        return Err(format!(
            "hosts.{which}: cpu_hog_nice needs `cpu`, the CPU that hog and application share"
        ));
    }
    if which == "server" && host.window_agent {
        return Err("hosts.server.window_agent: the server receives requests only; give it to \
                    hosts.client"
            .into());
    }
    if host.window_budget.is_some() && !host.window_agent {
        return Err(format!("hosts.{which}.window_budget needs window_agent = true"));
    }
    let budgets = Bytes::new(1 << 20)..=Bytes::new(1 << 40);
    if let Some(budget) = host.window_budget.filter(|budget| !budgets.contains(budget)) {
        return Err(format!("hosts.{which}.window_budget {budget} must be between 1MiB and 1TiB"));
    }
    for (word, segments) in [("initcwnd", host.initcwnd), ("initrwnd", host.initrwnd)] {
        if segments.is_some_and(|segments| !(1..=65_535).contains(&segments)) {
            return Err(format!("hosts.{which}.{word}: it must be between 1 and 65535 segments"));
        }
    }
    for (key, value) in &host.sysctl {
        let known = key.starts_with("net.")
            && key.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
        if !known || key.contains("..") {
            return Err(format!(
                "hosts.{which}.sysctl \"{key}\": only names below net. can be set for one host"
            ));
        }
        if value.0.is_empty() || value.0.len() > 200 || value.0.chars().any(char::is_control) {
            return Err(format!(
                "hosts.{which}.sysctl \"{key}\": value '{}' is not one line of text",
                value.0
            ));
        }
    }
    if let Some(name) = host.congestion_control.as_deref().filter(|name| !is_word(name)) {
        return Err(format!(
            "hosts.{which}.congestion_control '{name}' is no name of one, such as cubic, bbr or reno"
        ));
    }
    Ok(host.clone())
}

/// Whether it can be the name of a congestion control.
fn is_word(name: &str) -> bool {
    !name.is_empty()
        && name.len() < 16
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn path(file: &LinkFile, read: &mut Read<'_>) -> Result<Path, String> {
    let [to_client, to_server] =
        directions("link", file.rtt, &file.words(), [&file.to_client, &file.to_server], read)?;
    let mtu = file.mtu.unwrap_or(MTU_DEFAULT);
    if !(Bytes::new(576)..=Bytes::new(65_535)).contains(&mtu) {
        return Err(format!("link.mtu {mtu} must be between 576 B and 65535 B"));
    }
    let rules = file.rules.iter().enumerate().map(|(index, rule)| rule_of(index, rule, read));
    let rules = rules.collect::<Result<Vec<_>, _>>()?;
    Ok(Path { to_client, to_server, mtu, seed: file.seed.unwrap_or(1), rules })
}

fn rule_of(index: usize, rule: &RuleFile, read: &mut Read<'_>) -> Result<Rule, String> {
    let name = format!("link.rules[{}]", index + 1);
    let matches = Match { to: rule.to, from: rule.from, protocol: rule.protocol };
    if matches == Match::default() {
        return Err(format!(
            "{name} says no `to`, `from` or `protocol`: it would match every packet; use [link]"
        ));
    }
    let [to_client, to_server] =
        directions(&name, rule.rtt, &rule.words(), [&rule.to_client, &rule.to_server], read)?;
    Ok(Rule { matches, to_client, to_server })
}

/// Both directions of a table: the common words, completed by each direction's own.
fn directions(
    name: &str,
    rtt: Option<Duration>,
    both: &Words,
    over: [&Words; 2],
    read: &mut Read<'_>,
) -> Result<[Config; 2], String> {
    let mut both = both.clone();
    if let Some(rtt) = rtt {
        if both.delay.is_some() {
            return Err(format!("{name}: give `rtt` or `delay`, not both (rtt = two delays)"));
        }
        both.delay = Some(Duration::from_nanos(rtt.as_nanos() / 2).into());
    }
    let mut direction = |which: &str, over: &Words| {
        over.over(&both).config(read).map_err(|error| format!("{name}.{which}: {error}"))
    };
    Ok([direction("to_client", over[0])?, direction("to_server", over[1])?])
}
