//! What the two ends of a connection speak, and who they are, in a line: by their own words, or by
//! the server's port alone.

use crate::table::escape;
use fullpipe_flow::Language;
use fullpipe_flow::capture::segment::ApplicationProtocol;
use fullpipe_flow::connection::{Connection, Greeting};

/// That line: `ssh 2.0 (OpenSSH_9.2p1 to OpenSSH_8.4)`. `None` where nothing is known.
pub fn spoken(connection: &Connection, language: Language) -> Option<String> {
    let silent = Greeting::default();
    let greeting = connection.greeting.as_deref().unwrap_or(&silent);
    let mut parts: Vec<String> = Vec::new();
    if let Some(protocol) = connection.protocol.filter(|one| *one != ApplicationProtocol::Tls) {
        parts.push(match (protocol, &greeting.protocol_version) {
            (ApplicationProtocol::Http1, Some(version)) => format!("http/{version}"),
            (_, Some(version)) => format!("{} {version}", protocol.name()),
            (_, None) => protocol.name().to_owned(),
        });
        if !connection.says_protocol() {
            parts.extend([by_port(language).to_owned()]);
        }
    }
    parts.extend(tls(connection, greeting, language));
    parts.extend(greeting.method.as_ref().map(|method| format!("{method}")));
    parts.extend(application(greeting, language));
    parts.extend(greeting.server_name.as_deref().map(str::to_owned));
    let mut text = parts.join(separator(language));
    if let Some(programs) = programs(greeting, language) {
        text += &programs;
    }
    // Their characters are plain since they were read; whatever is printed is escaped.
    (!text.is_empty()).then(|| escape::in_line(&text).into_owned())
}

/// `tls 1.3`, as the server chose, or what was offered.
fn tls(connection: &Connection, greeting: &Greeting, language: Language) -> Option<String> {
    if let Some(version) = greeting.tls_version {
        return Some(format!("tls {version}"));
    }
    match (greeting.tls_offered, language) {
        (Some(version), Language::English) => Some(format!("tls (up to {version} offered)")),
        (Some(version), Language::Chinese) => Some(format!("tls（最高提供 {version}）")),
        (None, _) => {
            (connection.protocol == Some(ApplicationProtocol::Tls)).then(|| "tls".to_owned())
        }
    }
}

/// What is spoken inside TLS: chosen, or offered.
fn application(greeting: &Greeting, language: Language) -> Option<String> {
    match (greeting.alpn_chosen, greeting.alpn_offered, language) {
        (Some(chosen), ..) => Some(chosen.to_string()),
        (None, Some(offered), Language::English) => Some(format!("{offered} offered")),
        (None, Some(offered), Language::Chinese) => Some(format!("提供 {offered}")),
        (None, None, _) => None,
    }
}

/// Who speaks.
fn programs(greeting: &Greeting, language: Language) -> Option<String> {
    Some(match (greeting.client_program, greeting.server_program, language) {
        (Some(client), Some(server), Language::English) => format!(" ({client} to {server})"),
        (Some(client), Some(server), Language::Chinese) => format!("（{client} 到 {server}）"),
        (Some(client), None, Language::English) => format!(" (client {client})"),
        (Some(client), None, Language::Chinese) => format!("（客户端 {client}）"),
        (None, Some(server), Language::English) => format!(" (server {server})"),
        (None, Some(server), Language::Chinese) => format!("（服务器 {server}）"),
        (None, None, _) => return None,
    })
}

const fn by_port(language: Language) -> &'static str {
    match language {
        Language::English => "by the port alone",
        Language::Chinese => "仅据端口",
    }
}

const fn separator(language: Language) -> &'static str {
    match language {
        Language::English => ", ",
        Language::Chinese => "，",
    }
}
