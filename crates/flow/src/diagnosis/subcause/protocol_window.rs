//! Which protocol's window it is, and who sets it: by how the two ends begin to speak, their ports,
//! and what one message grants.

use super::DataSeen;
use crate::capture::segment::{ApplicationProtocol, PayloadStart, SshSoftware};
use crate::connection::Greeting;
use crate::windows::is_about;
use fullpipe_model::units::Bytes;

/// A window above TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtocolWindow {
    /// Of a channel of SSH (RFC 4254 section 5.2), granted by this software.
    SshChannel(SshSoftware),
    /// Requests of SFTP under way, so many of [`SFTP_BLOCK`].
    SftpRequests(u64),
    /// Of a stream or a connection of HTTP/2 (RFC 9113 section 5.2), unless TLS hides another.
    Http2,
    /// Of another protocol that is known, and whose own window is not.
    Of(ApplicationProtocol),
    /// Of a protocol that does not say what it is.
    Unknown,
}

/// What OpenSSH and those that followed it grant a channel: 64 packets of 32 KiB. No setting
/// changes it (OpenSSH's `CHAN_SES_WINDOW_DEFAULT`; `channelWindowSize` of golang.org/x/crypto/ssh;
/// libssh2's `LIBSSH2_CHANNEL_WINDOW_DEFAULT` and paramiko's `DEFAULT_WINDOW_SIZE` are defaults of
/// the program that uses them).
pub const SSH_CHANNEL: Bytes = Bytes::new(64 << 15);
/// What one request of OpenSSH's sftp asks for, or brings (`-B`).
pub const SFTP_BLOCK: Bytes = Bytes::new(1 << 15);
/// What a stream of HTTP/2 may carry unless its receiver grants more (RFC 9113 section 6.9.2).
pub const HTTP2_INITIAL: Bytes = Bytes::new(65_535);

impl ProtocolWindow {
    /// The one that holds this data. One message of the peer grants `step`, of `bound` in all.
    pub(super) fn of(seen: DataSeen<'_>, bound: Bytes, step: Option<Bytes>) -> Self {
        let (sender, receiver) = (seen.facts().begins, seen.receiver_facts().begins);
        let (protocol, segment) = (seen.connection.protocol, seen.segment());
        let is_ssh = protocol == Some(ApplicationProtocol::Ssh);
        // What the server of TLS chose is encrypted from 1.3 on, and many captures are cut before
        // the offer.
        let greeting = seen.connection.greeting.as_deref();
        let may_be_http2 = greeting.is_none_or(Greeting::may_have_http2);
        let is_http2 = [sender, receiver].iter().any(|begins| match begins {
            PayloadStart::Http2Preface | PayloadStart::Says(ApplicationProtocol::Http2) => true,
            PayloadStart::ClientHello => may_be_http2,
            _ => false,
        });
        let software = match receiver {
            PayloadStart::Ssh(software) => software,
            _ => SshSoftware::Other,
        };
        // What is less than a channel always has is bounded within it.
        let is_within = software.fixes_window()
            && bound.as_f64() < SSH_CHANNEL.as_f64()
            && !is_about(bound, SSH_CHANNEL);
        match () {
            () if is_ssh && (is_within || step.is_some_and(|step| is_a_block(step, segment))) => {
                let requests = bound.as_f64() / SFTP_BLOCK.as_f64();
                ProtocolWindow::SftpRequests(requests.round() as u64)
            }
            () if is_ssh => ProtocolWindow::SshChannel(software),
            () if is_http2 => ProtocolWindow::Http2,
            () => match protocol {
                // What TLS hides is not known, nor what HTTP/1 was upgraded to: it has no window.
                Some(ApplicationProtocol::Tls | ApplicationProtocol::Http1) | None => {
                    ProtocolWindow::Unknown
                }
                Some(protocol) => ProtocolWindow::Of(protocol),
            },
        }
    }

    /// Whether it is as large as usual of its protocol.
    pub fn is_usual(self, bound: Bytes) -> bool {
        match self {
            ProtocolWindow::SshChannel(_) => is_about(bound, SSH_CHANNEL),
            ProtocolWindow::Http2 => is_about(bound, HTTP2_INITIAL),
            ProtocolWindow::SftpRequests(_) | ProtocolWindow::Of(_) | ProtocolWindow::Unknown => {
                false
            }
        }
    }

    /// Whether its programs are not known to have it in any other size, and it is as large.
    pub(super) fn is_fixed(self, bound: Bytes) -> bool {
        matches!(self, ProtocolWindow::SshChannel(_)) && self.is_usual(bound)
    }

    /// Whether the end that asks sets it, in both directions, and not the end that receives.
    pub(crate) const fn is_the_clients(self) -> bool {
        match self {
            ProtocolWindow::SftpRequests(_) => true,
            // They ask, and are answered, whichever way the data goes.
            ProtocolWindow::Of(protocol) => {
                !matches!(protocol, ApplicationProtocol::Mqtt | ApplicationProtocol::Rsync)
            }
            ProtocolWindow::SshChannel(_) | ProtocolWindow::Http2 | ProtocolWindow::Unknown => {
                false
            }
        }
    }
}

/// Whether so much is granted at a time by a request of SFTP's. What a message acknowledges is
/// whole segments, often two at a time.
pub(super) fn is_a_block(step: Bytes, segment: u64) -> bool {
    let most = (2 * segment).min(SFTP_BLOCK.get() / 8);
    is_about(step, SFTP_BLOCK) || step.get().abs_diff(SFTP_BLOCK.get()) <= most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_told_in_whole_segments_and_not_from_two_of_them() {
        for (step, segment, is_block) in [
            (32_856, 1448, true),
            (24 * 1448, 1448, true),
            (22 * 1448, 1448, true),
            (27 * 1448, 1448, false),
            (2 * 32_856, 1448, false),
            (4 * 8948, 8948, true),
            (5 * 8948, 8948, false),
        ] {
            assert_eq!(is_a_block(Bytes::new(step), segment), is_block, "{step}");
        }
    }

    #[test]
    fn a_block_is_told_with_its_header_and_not_from_three_of_them() {
        assert!(is_about(Bytes::new(32_804), SFTP_BLOCK));
        assert!(!is_about(Bytes::new(98_304), SFTP_BLOCK));
        assert!(is_about(Bytes::new(2_099_492), SSH_CHANNEL));
    }
}
