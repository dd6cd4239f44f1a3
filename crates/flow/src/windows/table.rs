//! Made of `windows.toml`: `FULLPIPE_FIGURES=1 cargo test -p fullpipe-flow windows`.

use super::{KnownWindow, Version};
use crate::capture::segment::ApplicationProtocol::{self, *};
use fullpipe_model::units::Bytes;

/// What programs grant, by protocol and size.
#[rustfmt::skip]
pub const KNOWN_WINDOWS: [KnownWindow; 37] = [
    known(Http2, 65535, "Node.js, and whoever grants no more", None, None, None, Some("settings.initialWindowSize and session.setLocalWindowSize"), "RFC 9113 section 6.9.2; `http2.getDefaultSettings()` of Node.js 20", "2026-11"),
    known(Http2, 65535, "gRPC for Go, which grows it by measuring the path", Some("grpc-go/"), None, None, Some("grpc.WithInitialWindowSize, grpc.InitialWindowSize (a fixed one)"), "grpc/grpc-go internal/transport/defaults.go", "2026-11"),
    known(Http2, 65535, "gRPC for Java over OkHttp", Some("grpc-java-okhttp/"), None, None, Some("OkHttpChannelBuilder.flowControlWindow"), "grpc-java's OkHttpChannelBuilder, DEFAULT_FLOW_CONTROL_WINDOW", "2026-11"),
    known(Http2, 65535, "HAProxy (to 2.8)", None, None, None, Some("tune.h2.fe.initial-window-size and tune.h2.be.initial-window-size"), "haproxy/haproxy src/mux_h2.c, h2_settings_initial_window_size", "2026-11"),
    known(Http2, 65535, "Varnish", Some("Varnish"), None, None, Some("h2_initial_window_size"), "varnishd's parameter h2_initial_window_size", "2026-11"),
    known(Http2, 65536, "nginx (uploads)", Some("nginx/"), None, None, Some("http2_body_preread_size"), "ngx_http_v2_module's documentation; its SETTINGS (1.22.1)", "2026-11"),
    known(Http2, 98304, "Kestrel before .NET 8", None, None, None, Some("Limits.Http2.InitialStreamWindowSize"), "aspnetcore, pull request 43302", "2026-11"),
    known(Http2, 524288, "Jetty", Some("Jetty("), None, None, Some("jetty.http2.initialStreamRecvWindow"), "the module's start.d/http2.ini", "2026-11"),
    known(Http2, 786432, "Kestrel", None, None, None, Some("Limits.Http2.InitialStreamWindowSize"), "Http2Limits in .NET's documentation", "2026-11"),
    known(Http2, 1048576, "Go net/http server", None, None, None, Some("http2.Server.MaxUploadBufferPerStream"), "net/http of Go 1.26, h2_bundle.go", "2026-11"),
    known(Http2, 1048576, "gRPC for Java over Netty", Some("grpc-java-netty/"), None, None, Some("flowControlWindow of NettyServerBuilder and NettyChannelBuilder"), "grpc-java's NettyServerBuilder, DEFAULT_FLOW_CONTROL_WINDOW", "2026-11"),
    known(Http2, 1048576, "hyper server", None, None, None, Some("initial_stream_window_size and initial_connection_window_size"), "hyper 1.12, proto/h2/server.rs", "2026-11"),
    known(Http2, 2097152, "hyper client", None, None, None, Some("initial_stream_window_size"), "hyper 1.12, proto/h2/client.rs", "2026-11"),
    known(Http2, 4194304, "Go net/http client", Some("Go-http-client/"), None, None, Some("HTTP2Config.MaxReceiveBufferPerStream"), "net/http of Go 1.26, h2_bundle.go", "2026-11"),
    known(Http2, 5242880, "hyper client (connection)", None, None, None, Some("initial_connection_window_size"), "hyper 1.12, proto/h2/client.rs", "2026-11"),
    known(Http2, 6291456, "Chrome and Edge", Some("Chrome/"), None, None, None, "chromium net/http/http_network_session.cc, kSpdyStreamMaxRecvWindowSize", "2026-11"),
    known(Http2, 15728640, "Chrome and Edge (connection)", Some("Chrome/"), None, None, None, "chromium net/http/http_network_session.cc, kSpdySessionMaxRecvWindowSize", "2026-11"),
    known(Http2, 10485760, "curl 8", Some("curl/"), Some((8, 0)), None, None, "curl/curl lib/http2.c, H2_STREAM_WINDOW_SIZE_MAX", "2026-11"),
    known(Http2, 33554432, "curl 7", Some("curl/"), None, Some((8, 0)), None, "curl/curl lib/http2.c, HTTP2_HUGE_WINDOW_SIZE; its SETTINGS (7.88.1)", "2026-11"),
    known(Http2, 12582912, "Firefox", Some("Firefox/"), None, None, Some("network.http.http2.pull-allowance"), "Firefox's preference of that name, 12582912", "2026-11"),
    known(Http2, 16777216, "OkHttp", Some("okhttp/"), None, None, None, "OkHttp's Http2Connection, OKHTTP_CLIENT_WINDOW_SIZE", "2026-11"),
    known(Http2, 16777216, "Java's HttpClient", Some("Java-http-client/"), None, None, Some("-Djdk.httpclient.windowsize"), "openjdk/jdk java.net.http's Http2ClientImpl", "2026-11"),
    known(Http2, 268435456, "Envoy", Some("envoy"), None, None, Some("initial_stream_window_size and initial_connection_window_size of http2_protocol_options"), "envoy's api/envoy/config/core/v3/protocol.proto", "2026-11"),
    known(Ssh, 2097152, "OpenSSH", Some("OpenSSH_"), None, None, None, "openssh/openssh-portable channels.h, CHAN_SES_WINDOW_DEFAULT (64 times 32 KiB in 7.3 to 9.2)", "2026-11"),
    known(Ssh, 2097152, "Go's x/crypto/ssh", Some("Go"), None, None, None, "its mux.go and channel.go, channelWindowSize", "2026-11"),
    known(Ssh, 2097152, "libssh2 (curl)", Some("libssh2"), None, None, Some("libssh2_channel_open_ex's window_size"), "libssh2.h, LIBSSH2_CHANNEL_WINDOW_DEFAULT", "2026-11"),
    known(Ssh, 2097152, "paramiko", Some("paramiko"), None, None, Some("Transport's default_window_size"), "paramiko/paramiko paramiko/common.py, DEFAULT_WINDOW_SIZE", "2026-11"),
    known(Ssh, 2097152, "AsyncSSH", Some("AsyncSSH_"), None, None, Some("the argument window of create_session and listen"), "ronf/asyncssh asyncssh/connection.py, _DEFAULT_WINDOW", "2026-11"),
    known(Ssh, 64000, "libssh", Some("libssh_"), None, None, None, "libssh's src/channels.c, CHANNEL_INITIAL_WINDOW", "2026-11"),
    known(Ssh, 24576, "Dropbear", Some("dropbear"), None, None, Some("dropbear -W, dbclient -W"), "mkj/dropbear default_options.h, DEFAULT_RECV_WINDOW", "2026-11"),
    known(Ssh, 2097152, "OpenSSH sftp (64 requests of 32 KiB)", None, None, None, Some("sftp -R, -B"), "sftp-client.h, DEFAULT_NUM_REQUESTS and DEFAULT_COPY_BUFLEN", "2026-11"),
    known(Ssh, 2097152, "rclone sftp (64 requests of 32 KiB)", None, None, None, Some("rclone's --sftp-concurrency, --sftp-chunk-size"), "rclone/rclone backend/sftp/sftp.go", "2026-11"),
    known(Iscsi, 262144, "what two ends of iSCSI agree on unless they ask for more", None, None, None, Some("MaxBurstLength (node.session.iscsi.MaxBurstLength of open-iscsi)"), "RFC 7143 section 13.13", "2026-11"),
    known(Iscsi, 65536, "what an initiator of iSCSI sends unasked", None, None, None, Some("FirstBurstLength (node.session.iscsi.FirstBurstLength of open-iscsi)"), "RFC 7143 section 13.14", "2026-11"),
    known(Nfs, 1048576, "Linux's NFS server (one request)", None, None, None, Some("rsize, wsize and nconnect of the mount; max_block_size of nfsd"), "torvalds/linux fs/nfsd/nfsd.h, NFSSVC_MAXBLKSIZE", "2026-11"),
    known(Smb, 4194304, "Linux's SMB client (one request of SMB 3)", None, None, None, Some("rsize and wsize of the mount"), "torvalds/linux fs/smb/common/smb2pdu.h, SMB3_DEFAULT_IOSIZE", "2026-11"),
    known(Smb, 8388608, "Samba (one request)", None, None, None, Some("smb2 max read, smb2 max write"), "samba source3/include/local.h, DEFAULT_SMB2_MAX_READ", "2026-11"),
];

#[rustfmt::skip]
#[cfg_attr(target_arch = "wasm32", allow(unused_variables, reason = "sources are left out"))]
#[allow(clippy::too_many_arguments, reason = "a row of the table")]
const fn known(
    protocol: ApplicationProtocol,
    window: u64,
    program: &'static str,
    banner: Option<&'static str>,
    from: Option<Version>,
    before: Option<Version>,
    setting: Option<&'static str>,
    source: &'static str,
    read: &'static str,
) -> KnownWindow {
    KnownWindow {
        protocol,
        window: Bytes::new(window),
        program,
        banner,
        from,
        before,
        setting,
        is_own: false,
        #[cfg(not(target_arch = "wasm32"))]
        source,
        #[cfg(not(target_arch = "wasm32"))]
        read,
    }
}
