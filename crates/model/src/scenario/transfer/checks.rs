//! What the keys of `[transfer]` may be, alone and together, and what stands where they are left
//! out.

use super::{Client, Server, Transfer, TransferFile};
use crate::units::{Bytes, Duration};

/// Duration of a transfer that has neither size nor duration.
const DURATION_DEFAULT: Duration = Duration::from_secs(10);
/// The longest transfer in real time.
const DURATION_MAX: Duration = Duration::from_secs(3600);
const NANOS_PER_SEC: u64 = 1_000_000_000;
/// As many downloads as curl's command line and its summary stay short with.
const DOWNLOADS_MAX: u32 = 100;
/// A server that takes longer to answer has given up.
const ANSWER_AFTER_MAX: Duration = Duration::from_secs(600);
/// As many connections as a guest with its usual memory holds.
const CONNECTIONS_MAX: u32 = 4000;
/// Less than a segment is a message; more is no window.
const GRANTED_LEAST: Bytes = Bytes::new(1 << 10);
const GRANTED_MOST: Bytes = Bytes::new(1 << 30);
/// A larger block would be the whole transfer.
const BLOCK_MAX: Bytes = Bytes::new(64 << 20);

/// The transfer with its defaults, if its keys fit together.
pub(in crate::scenario) fn checked(file: &TransferFile) -> Result<Transfer, String> {
    let server = file.server.unwrap_or(Server::Builtin);
    let client = file.client.unwrap_or(Client::Builtin);
    only_with_builtin_ends(file, server, client)?;
    several_downloads(file, server, client)?;
    idle_and_upload(file, server, client)?;
    granted(file)?;
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
    Ok(file.filled_in(server, client, size, duration))
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
        ("ask_after", file.ask_after.is_some(), client == Client::Builtin, "client"),
    ];
    for (key, given, builtin, end) in builtin_only {
        if given && !builtin {
            return Err(format!("transfer.{key} works with {end} = \"builtin\" only"));
        }
    }
    Ok(())
}

/// Several downloads, one after another or at once: curl can, from servers that keep connections
/// open, and our own client can do the former.
fn several_downloads(file: &TransferFile, server: Server, client: Client) -> Result<(), String> {
    for (key, count) in [("requests", file.requests), ("connections", file.connections)] {
        let Some(count) = count else { continue };
        match (key, client) {
            (_, Client::Curl) | ("requests", Client::Builtin) => {}
            ("requests", _) => {
                return Err(
                    "transfer.requests works with client = \"builtin\" or \"curl\" only".into()
                );
            }
            _ => return Err(format!("transfer.{key} works with client = \"curl\" only")),
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
    for (key, time) in [("answer_after", file.answer_after), ("ask_after", file.ask_after)] {
        if time.is_some_and(|time| time > ANSWER_AFTER_MAX) {
            return Err(format!("transfer.{key} must be at most {ANSWER_AFTER_MAX}"));
        }
    }
    if file.ask_after.is_some() && file.requests.is_none() {
        return Err("transfer.ask_after needs transfer.requests: how often the client asks".into());
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
        file.requests.is_some(),
    ];
    let is_plain = (server, client) == (Server::Builtin, Client::Builtin) && !own.contains(&true);
    if file.upload && !is_plain {
        return Err("transfer.upload works with server = \"builtin\" and client = \"builtin\" \
                    only, without rates, buffers and answer_after"
            .into());
    }
    Ok(())
}

/// A window above TCP's, which our own ends of an upload know.
fn granted(file: &TransferFile) -> Result<(), String> {
    let Some(window) = file.application_window else {
        return match file.application_window_step {
            None => Ok(()),
            Some(_) => Err("transfer.application_window_step needs transfer.application_window: \
                            what it is a step of"
                .into()),
        };
    };
    if !file.upload {
        return Err("transfer.application_window needs transfer.upload = true: only our own ends \
                    of an upload grant"
            .into());
    }
    if !(GRANTED_LEAST..=GRANTED_MOST).contains(&window) {
        return Err(format!(
            "transfer.application_window must be between {GRANTED_LEAST} and {GRANTED_MOST}"
        ));
    }
    let step = file.application_window_step.unwrap_or(window);
    if step == Bytes::ZERO || step > window {
        return Err("transfer.application_window_step must be between 1 B and the window: what \
                    is never granted is never sent"
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
    if file.requests.is_some() {
        return Err("give transfer.readers or transfer.requests, not both".into());
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
