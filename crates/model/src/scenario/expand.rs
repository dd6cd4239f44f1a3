//! From a file to ready scenarios: cases times matrix, with each combination checked.

use super::combinations::{Combinations, REPEAT_MAX};
use super::error::ScenarioError;
use super::file::{LinkFile, RuleFile, TransferFile};
use super::{Capture, Client, File, Host, Hosts, Override, Path, Rule, Scenario, Server, Transfer};
use crate::link::rule::Match;
use crate::link::{Config, Words};
use crate::units::{Bytes, Duration};

/// Duration of a transfer that has neither size nor duration.
const DURATION_DEFAULT: Duration = Duration::from_secs(10);
/// The longest transfer in real time.
const DURATION_MAX: Duration = Duration::from_secs(3600);
const NANOS_PER_SEC: u64 = 1_000_000_000;
const SNAPLEN_DEFAULT: Bytes = Bytes::new(128);
const SNAPLEN_MIN: Bytes = Bytes::new(100);
const MTU_DEFAULT: Bytes = Bytes::new(1500);
/// As many downloads as curl's command line and its summary stay short with.
const DOWNLOADS_MAX: u32 = 100;
/// A server that takes longer to answer has given up.
const ANSWER_AFTER_MAX: Duration = Duration::from_secs(600);
/// As many connections as a guest with its usual memory holds.
const CONNECTIONS_MAX: u32 = 4000;
/// A larger block would be the whole transfer.
const BLOCK_MAX: Bytes = Bytes::new(64 << 20);

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
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.=/".contains(c);
    let parts_fine = name.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
    if name.len() <= 100 && parts_fine && name.chars().all(plain) {
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
        transfer: transfer(&file.transfer)?,
        capture: Capture { snaplen },
        sample_interval,
        repeat,
        reference: file.reference.clone(),
        truth: file.truth,
    })
}

fn kernel(release: Option<&str>) -> Result<Option<String>, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || ".-+~".contains(c);
    match release {
        Some(release)
            if !release.starts_with(|c: char| c.is_ascii_digit())
                || !release.chars().all(plain) =>
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
    let word = |name: &str| {
        !name.is_empty()
            && name.len() < 16
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    if let Some(name) = host.congestion_control.as_deref().filter(|name| !word(name)) {
        return Err(format!(
            "hosts.{which}.congestion_control '{name}' is no name of one, such as cubic, bbr or reno"
        ));
    }
    Ok(host.clone())
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

fn transfer(file: &TransferFile) -> Result<Transfer, String> {
    let server = file.server.unwrap_or(Server::Builtin);
    let client = file.client.unwrap_or(Client::Builtin);
    only_with_builtin_ends(file, server, client)?;
    several_downloads(file, server, client)?;
    idle_and_upload(file, server, client)?;
    rates_and_blocks(file)?;
    pauses(file)?;
    readers(file, server, client)?;
    let duration =
        file.duration.unwrap_or(if file.size.is_some() { DURATION_MAX } else { DURATION_DEFAULT });
    if !(Duration::from_millis(100)..=DURATION_MAX).contains(&duration) {
        return Err(format!("transfer.duration {duration} must be between 100 ms and 1 h"));
    }
    let size = file.size.unwrap_or(Bytes::new(1 << 40));
    if size == Bytes::ZERO || size > Bytes::new(1 << 50) {
        return Err(format!("transfer.size {size} must be between 1 B and 1024 TiB"));
    }
    what_foreign_programs_need(file, server, client, duration)?;
    limited(file, client)?;
    relayed(file, server, client)?;
    if file.port == Some(0) {
        return Err("transfer.port 0 is no port: leave it out for any that is free".into());
    }
    Ok(Transfer {
        server,
        client,
        port: file.port,
        size,
        duration,
        requests: file.requests,
        connections: file.connections,
        answer_after: file.answer_after,
        keepalive: file.keepalive,
        upload: file.upload,
        limit_rate: file.limit_rate,
        read_rate: file.read_rate,
        read_block: file.read_block,
        read_pause: file.read_pause,
        read_pause_every: file.read_pause_every,
        readers: file.readers.clone(),
        write_rate: file.write_rate,
        write_rate_after: file.write_rate_after,
        write_block: file.write_block,
        carriers: file.carriers,
        warm: file.warm,
        receive_buffer: file.receive_buffer,
        send_buffer: file.send_buffer,
    })
}

/// Keys that our own programs obey, and foreign ones know nothing of.
fn only_with_builtin_ends(
    file: &TransferFile,
    server: Server,
    client: Client,
) -> Result<(), String> {
    let builtin_only = [
        ("read_rate", file.read_rate.is_some(), client == Client::Builtin, "client"),
        ("read_pause", file.read_pause.is_some(), client == Client::Builtin, "client"),
        ("receive_buffer", file.receive_buffer.is_some(), client == Client::Builtin, "client"),
        ("write_rate", file.write_rate.is_some(), server == Server::Builtin, "server"),
        ("send_buffer", file.send_buffer.is_some(), server == Server::Builtin, "server"),
        ("answer_after", file.answer_after.is_some(), server == Server::Builtin, "server"),
    ];
    for (key, given, builtin, end) in builtin_only {
        if given && !builtin {
            return Err(format!("transfer.{key} works with {end} = \"builtin\" only"));
        }
    }
    Ok(())
}

/// Several downloads, one after another or at once: curl can, from servers that keep connections
/// open.
fn several_downloads(file: &TransferFile, server: Server, client: Client) -> Result<(), String> {
    for (key, count) in [("requests", file.requests), ("connections", file.connections)] {
        let Some(count) = count else { continue };
        if client != Client::Curl {
            return Err(format!("transfer.{key} works with client = \"curl\" only"));
        }
        if !(1..=DOWNLOADS_MAX).contains(&count) {
            return Err(format!("transfer.{key} must be between 1 and {DOWNLOADS_MAX}"));
        }
        if file.size.is_none() {
            return Err(format!("transfer.{key} needs transfer.size: how much each one fetches"));
        }
    }
    match (file.requests, file.connections) {
        (Some(_), Some(_)) => {
            Err("give transfer.requests or transfer.connections, not both".into())
        }
        (Some(_), _) if server == Server::Python => {
            Err("transfer.requests needs a server that keeps a connection open: \"builtin\" or \
                 \"nginx\""
                .into())
        }
        _ => Ok(()),
    }
}

/// What keeps a connection idle and alive, and who opens it.
fn idle_and_upload(file: &TransferFile, server: Server, client: Client) -> Result<(), String> {
    if file.answer_after.is_some_and(|time| time > ANSWER_AFTER_MAX) {
        return Err(format!("transfer.answer_after must be at most {ANSWER_AFTER_MAX}"));
    }
    if let Some(idle) = file.keepalive {
        if client != Client::Curl {
            return Err("transfer.keepalive works with client = \"curl\" only".into());
        }
        let is_whole = idle.as_nanos().is_multiple_of(NANOS_PER_SEC);
        if !is_whole || !(Duration::from_secs(1)..=DURATION_MAX).contains(&idle) {
            return Err("transfer.keepalive must be whole seconds, 1 s to 1 h".into());
        }
    }
    let own = [
        file.read_rate.is_some(),
        file.write_rate.is_some(),
        file.receive_buffer.is_some(),
        file.send_buffer.is_some(),
        file.answer_after.is_some(),
    ];
    let is_plain = (server, client) == (Server::Builtin, Client::Builtin) && !own.contains(&true);
    if file.upload && !is_plain {
        return Err("transfer.upload works with server = \"builtin\" and client = \"builtin\" \
                    only, without rates, buffers and answer_after"
            .into());
    }
    Ok(())
}

/// How fast the applications read and write, and how much at a time.
fn rates_and_blocks(file: &TransferFile) -> Result<(), String> {
    for (key, rate) in [("read_rate", file.read_rate), ("write_rate", file.write_rate)] {
        if rate.is_some_and(|rate| rate.bits_per_sec() < 8_000) {
            return Err(format!("transfer.{key} must be at least 1 kB/s"));
        }
    }
    if file.write_rate_after.is_some() && file.write_rate.is_none() {
        return Err(
            "transfer.write_rate_after needs transfer.write_rate: what holds after it".into()
        );
    }
    let blocks = [
        ("read_block", file.read_block, "read_rate", file.read_rate),
        ("write_block", file.write_block, "write_rate", file.write_rate),
    ];
    for (key, block, rate_key, rate) in blocks {
        if block.is_some() && rate.is_none() {
            return Err(format!(
                "transfer.{key} needs transfer.{rate_key}: the rate says how long to wait after a block"
            ));
        }
        if block.is_some_and(|block| !(Bytes::new(1)..=BLOCK_MAX).contains(&block)) {
            return Err(format!("transfer.{key} must be between 1 B and {BLOCK_MAX}"));
        }
    }
    Ok(())
}

/// Checks the readers of a file.
fn readers(file: &TransferFile, server: Server, client: Client) -> Result<(), String> {
    if file.readers.is_empty() {
        return Ok(());
    }
    if (server, client) != (Server::Builtin, Client::Builtin) || file.upload {
        return Err("transfer.readers works with server = \"builtin\" and client = \"builtin\" \
                    only, and not with upload"
            .into());
    }
    if file.read_rate.is_some() || file.read_pause.is_some() {
        return Err("give transfer.readers a read_rate each, and transfer none".into());
    }
    if file.readers.iter().flat_map(|one| one.read_rate).any(|rate| rate.bits_per_sec() < 8_000) {
        return Err("transfer.readers.read_rate must be at least 1 kB/s".into());
    }
    let most = CONNECTIONS_MAX;
    let counts = file.readers.iter().map(|one| one.connections);
    let sum = counts.clone().fold(0, u32::saturating_add);
    if counts.clone().any(|count| count == 0) || sum > most {
        return Err(format!(
            "transfer.readers: each needs a connection, and together they have at most {most}"
        ));
    }
    Ok(())
}

/// A reader that pauses.
fn pauses(file: &TransferFile) -> Result<(), String> {
    match (file.read_pause, file.read_pause_every) {
        (None, None) => Ok(()),
        (Some(pause), Some(every)) if pause > Duration::ZERO && pause < every => Ok(()),
        (Some(_), Some(_)) => {
            Err("transfer.read_pause must be shorter than transfer.read_pause_every".into())
        }
        _ => Err("transfer.read_pause and transfer.read_pause_every need each other".into()),
    }
}

/// What iperf3, nginx and Python's server can do, and what they must be told.
fn what_foreign_programs_need(
    file: &TransferFile,
    server: Server,
    client: Client,
    duration: Duration,
) -> Result<(), String> {
    if (server == Server::Iperf3) != (client == Client::Iperf3) {
        return Err(
            "iperf3 works only with itself: give server = \"iperf3\" and client = \"iperf3\""
                .into(),
        );
    }
    if server == Server::Iperf3
        && (file.size.is_some() || !duration.as_nanos().is_multiple_of(NANOS_PER_SEC))
    {
        // By size it polls the clock until time passes, which never happens in virtual time.
        return Err(
            "iperf3 ends by transfer.duration, in whole seconds, not by transfer.size".into()
        );
    }
    if file.size.is_none() && matches!(server, Server::Nginx | Server::Python) {
        return Err(
            "transfer.size is needed with server = \"nginx\" or \"python\": they send a file"
                .into(),
        );
    }
    Ok(())
}

/// Downloaders that keep a rate, and those that end with the file alone.
fn limited(file: &TransferFile, client: Client) -> Result<(), String> {
    let keeps = matches!(client, Client::Get | Client::Curl | Client::Wget | Client::Pv);
    if file.limit_rate.is_some() && !keeps {
        return Err("transfer.limit_rate works with client = \"get\", \"curl\", \"wget\" or \
                    \"pv\" only; the built-in client has read_rate"
            .into());
    }
    if file.limit_rate.is_some_and(|rate| rate.bits_per_sec() < 8_000) {
        return Err("transfer.limit_rate must be at least 1 kB/s".into());
    }
    if client == Client::Pv && file.limit_rate.is_none() {
        return Err(
            "client = \"pv\" needs transfer.limit_rate: it is there for nothing else".into()
        );
    }
    let by_size = matches!(client, Client::Wget | Client::Pv);
    if by_size && (file.size.is_none() || file.duration.is_some()) {
        return Err(
            "client = \"wget\" and \"pv\" end by transfer.size, not by transfer.duration".into()
        );
    }
    Ok(())
}

/// What goes through the relay.
fn relayed(file: &TransferFile, server: Server, client: Client) -> Result<(), String> {
    if client != Client::Relay {
        return match (file.carriers, file.warm) {
            (None, false) => Ok(()),
            _ => {
                Err("transfer.carriers and transfer.warm work with client = \"relay\" only".into())
            }
        };
    }
    if server != Server::Builtin {
        return Err("client = \"relay\" works with server = \"builtin\" only".into());
    }
    if file.carriers.is_some_and(|carriers| !(1..=64).contains(&carriers)) {
        return Err("transfer.carriers must be 1 to 64".into());
    }
    Ok(())
}
