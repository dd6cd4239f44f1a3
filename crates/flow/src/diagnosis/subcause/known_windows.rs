//! Windows above TCP that programs grant unless they are told otherwise, with the setting that
//! changes each and where that was read.

use super::protocol_window::is_about;
use crate::capture::segment::ApplicationProtocol;
use fullpipe_model::units::Bytes;

/// What a program grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownWindow {
    /// The protocol whose window it is.
    pub protocol: ApplicationProtocol,
    /// What may be sent beyond what the program has taken.
    pub window: Bytes,
    /// Who grants it.
    pub program: &'static str,
    /// What changes it; `None` where nothing does.
    pub setting: Option<&'static str>,
    /// Where the size was read, in November 2026.
    pub source: &'static str,
}

impl KnownWindow {
    /// `PROGRAM: SETTING`.
    pub fn named(self) -> String {
        match self.setting {
            Some(setting) => format!("{}: {setting}", self.program),
            None => self.program.to_owned(),
        }
    }

    /// Those of a protocol that are as large as what was found.
    pub fn like(protocol: ApplicationProtocol, bound: Bytes) -> impl Iterator<Item = Self> {
        KNOWN_WINDOWS
            .into_iter()
            .filter(move |known| known.protocol == protocol && is_about(bound, known.window))
    }
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// By protocol and size.
pub const KNOWN_WINDOWS: [KnownWindow; 15] = [
    http2(
        65_535,
        "Node.js, and whoever grants no more",
        "settings.initialWindowSize and session.setLocalWindowSize",
        "RFC 9113 section 6.9.2; `http2.getDefaultSettings()` of Node.js 20",
    ),
    http2(
        64 * KIB,
        "nginx (uploads)",
        "http2_body_preread_size",
        "ngx_http_v2_module's documentation",
    ),
    http2(
        96 * KIB,
        "Kestrel before .NET 8",
        "Limits.Http2.InitialStreamWindowSize",
        "aspnetcore, pull request 43302",
    ),
    http2(
        512 * KIB,
        "Jetty",
        "jetty.http2.initialStreamRecvWindow",
        "the module's start.d/http2.ini",
    ),
    http2(
        768 * KIB,
        "Kestrel",
        "Limits.Http2.InitialStreamWindowSize",
        "Http2Limits in .NET's documentation",
    ),
    http2(
        MIB,
        "Go net/http server",
        "http2.Server.MaxUploadBufferPerStream, HTTP2Config.MaxReceiveBufferPerStream",
        "net/http of Go 1.26, h2_bundle.go",
    ),
    http2(
        MIB,
        "hyper server",
        "initial_stream_window_size and initial_connection_window_size",
        "hyper 1.12, proto/h2/server.rs",
    ),
    http2(2 * MIB, "hyper client", "initial_stream_window_size", "hyper 1.12, proto/h2/client.rs"),
    http2(
        4 * MIB,
        "Go net/http client",
        "HTTP2Config.MaxReceiveBufferPerStream",
        "net/http of Go 1.26, h2_bundle.go",
    ),
    http2(
        5 * MIB,
        "hyper client (connection)",
        "initial_connection_window_size",
        "hyper 1.12, proto/h2/client.rs",
    ),
    KnownWindow {
        protocol: ApplicationProtocol::Ssh,
        window: Bytes::new(2 * MIB),
        program: "OpenSSH",
        setting: None,
        source: "OpenSSH's channels.h, CHAN_SES_WINDOW_DEFAULT",
    },
    KnownWindow {
        protocol: ApplicationProtocol::Ssh,
        window: Bytes::new(2 * MIB),
        program: "Go's x/crypto/ssh",
        setting: None,
        source: "its mux.go and channel.go, channelWindowSize",
    },
    KnownWindow {
        protocol: ApplicationProtocol::Ssh,
        window: Bytes::new(2 * MIB),
        program: "libssh2 (curl)",
        setting: Some("libssh2_channel_open_ex's window_size"),
        source: "libssh2.h, LIBSSH2_CHANNEL_WINDOW_DEFAULT",
    },
    KnownWindow {
        protocol: ApplicationProtocol::Ssh,
        window: Bytes::new(2 * MIB),
        program: "paramiko",
        setting: Some("Transport's default_window_size"),
        source: "its common.py, DEFAULT_WINDOW_SIZE",
    },
    KnownWindow {
        protocol: ApplicationProtocol::Ssh,
        window: Bytes::new(2 * MIB),
        program: "OpenSSH sftp (64 requests of 32 KiB)",
        setting: Some("sftp -R, -B"),
        source: "sftp-client.h, DEFAULT_NUM_REQUESTS and DEFAULT_COPY_BUFLEN",
    },
];

const fn http2(
    window: u64,
    program: &'static str,
    setting: &'static str,
    source: &'static str,
) -> KnownWindow {
    KnownWindow {
        protocol: ApplicationProtocol::Http2,
        window: Bytes::new(window),
        program,
        setting: Some(setting),
        source,
    }
}
