//! Windows above TCP that programs grant unless they are told otherwise, with the setting that
//! changes each and where that was read.

use super::protocol_window::{SSH_CHANNEL, is_about};
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
    /// Where the size was read, in November 2026. The report's page has no room for it.
    #[cfg(not(target_arch = "wasm32"))]
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

    /// Those of HTTP/2 that are as large as what was found.
    pub fn http2_like(bound: Bytes) -> impl Iterator<Item = Self> {
        HTTP2_WINDOWS.into_iter().filter(move |known| is_about(bound, known.window))
    }
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Of HTTP/2, by size.
pub const HTTP2_WINDOWS: [KnownWindow; 10] = [
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
        "http2.Server.MaxUploadBufferPerStream",
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
];

/// Of SSH.
pub const SSH_WINDOWS: [KnownWindow; 5] = [
    ssh("OpenSSH", None, "OpenSSH's channels.h, CHAN_SES_WINDOW_DEFAULT"),
    ssh("Go's x/crypto/ssh", None, "its mux.go and channel.go, channelWindowSize"),
    ssh(
        "libssh2 (curl)",
        Some("libssh2_channel_open_ex's window_size"),
        "libssh2.h, LIBSSH2_CHANNEL_WINDOW_DEFAULT",
    ),
    ssh("paramiko", Some("Transport's default_window_size"), "its common.py, DEFAULT_WINDOW_SIZE"),
    ssh(
        "OpenSSH sftp (64 requests of 32 KiB)",
        Some("sftp -R, -B"),
        "sftp-client.h, DEFAULT_NUM_REQUESTS and DEFAULT_COPY_BUFLEN",
    ),
];

const fn http2(
    window: u64,
    program: &'static str,
    setting: &'static str,
    source: &'static str,
) -> KnownWindow {
    known(ApplicationProtocol::Http2, window, program, Some(setting), source)
}

const fn ssh(
    program: &'static str,
    setting: Option<&'static str>,
    source: &'static str,
) -> KnownWindow {
    known(ApplicationProtocol::Ssh, SSH_CHANNEL.get(), program, setting, source)
}

#[cfg_attr(target_arch = "wasm32", allow(unused_variables, reason = "the source is left out"))]
const fn known(
    protocol: ApplicationProtocol,
    window: u64,
    program: &'static str,
    setting: Option<&'static str>,
    source: &'static str,
) -> KnownWindow {
    KnownWindow {
        protocol,
        window: Bytes::new(window),
        program,
        setting,
        #[cfg(not(target_arch = "wasm32"))]
        source,
    }
}
