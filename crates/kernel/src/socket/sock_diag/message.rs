//! The bytes of requests and answers: `struct inet_diag_req_v2`, `struct inet_diag_msg` and their
//! attributes.
//!
//! The reader is a pure function of bytes and tolerates unknown input: it skips attributes by their
//! length, and a message that is too short ends the datagram.

use std::net::SocketAddr;

use fullpipe_model::observe::{Reasons, Sample, SocketMemory, TcpInfo, TcpState};
use fullpipe_model::units::{Bytes, Instant};

use super::{HostSocket, OpenSocket, address, octets};
use fullpipe_model::observe::canonical;

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_MULTI: u16 = 2;
const NLM_F_DUMP: u16 = 0x300;
const SOCK_DIAG_BY_FAMILY: u16 = 20;

const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CONG: u16 = 4;
const INET_DIAG_SKMEMINFO: u16 = 7;
/// Sent without a request, since Linux 5.9.
const INET_DIAG_CGROUP_ID: u16 = 21;
/// Bit n-1 requests attribute n.
const EXTENSIONS: u8 = COUNTERS | 1 << (INET_DIAG_CONG - 1);
/// Numbers alone: a name is an allocation for each socket of a host.
const COUNTERS: u8 = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_SKMEMINFO - 1);

const HEADER_LEN: usize = 16;
const REQUEST_LEN: usize = 56;
/// `struct inet_diag_msg`.
const ANSWER_LEN: usize = 72;

// include/net/tcp_states.h
const TCP_TIME_WAIT: u32 = 6;
/// For UDP: a socket that is not connected.
const TCP_CLOSE: u32 = 7;
const TCP_LISTEN: u32 = 10;
const TCP_NEW_SYN_RECV: u32 = 12;
const STATES: u32 = !(1 << TCP_TIME_WAIT | 1 << TCP_LISTEN | 1 << TCP_NEW_SYN_RECV);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AddressFamily {
    V4,
    V6,
}

impl AddressFamily {
    fn number(self) -> u8 {
        match self {
            AddressFamily::V4 => libc::AF_INET as u8,
            AddressFamily::V6 => libc::AF_INET6 as u8,
        }
    }

    fn from_number(number: u8) -> Option<Self> {
        [AddressFamily::V4, AddressFamily::V6].into_iter().find(|family| family.number() == number)
    }
}

/// A question about sockets.
#[derive(Debug, Clone, Copy)]
pub(super) struct DumpRequest {
    family: AddressFamily,
    flags: u16,
    states: u32,
    extensions: u8,
    protocol: libc::c_int,
    local: ([u8; 16], u16),
    remote: ([u8; 16], u16),
}

impl DumpRequest {
    /// Requests all sockets of a family with these ports.
    pub(super) fn dump(
        family: AddressFamily,
        local_port: Option<u16>,
        remote_port: Option<u16>,
    ) -> Self {
        let [local, remote] = [local_port, remote_port].map(|port| ([0; 16], port.unwrap_or(0)));
        DumpRequest {
            family,
            flags: NLM_F_REQUEST | NLM_F_DUMP,
            states: STATES,
            extensions: EXTENSIONS,
            protocol: libc::IPPROTO_TCP,
            local,
            remote,
        }
    }

    /// Requests the counters of all sockets of a family, without the names of their congestion
    /// controls.
    pub(super) fn counters(family: AddressFamily) -> Self {
        DumpRequest { extensions: COUNTERS, ..DumpRequest::dump(family, None, None) }
    }

    /// Requests all listeners of a family.
    pub(super) fn listeners(family: AddressFamily) -> Self {
        DumpRequest { states: 1 << TCP_LISTEN, ..DumpRequest::dump(family, None, None) }
    }

    /// Requests all sockets of a family that receive datagrams.
    pub(super) fn datagrams(family: AddressFamily) -> Self {
        DumpRequest {
            protocol: libc::IPPROTO_UDP,
            states: 1 << TCP_CLOSE,
            ..DumpRequest::dump(family, None, None)
        }
    }

    /// Requests one connection.
    pub(super) fn one(local: SocketAddr, remote: SocketAddr) -> Self {
        let (local, remote) = (canonical(local), canonical(remote));
        let family = if remote.is_ipv4() { AddressFamily::V4 } else { AddressFamily::V6 };
        DumpRequest {
            family,
            flags: NLM_F_REQUEST,
            states: STATES,
            extensions: EXTENSIONS,
            protocol: libc::IPPROTO_TCP,
            local: (octets(local), local.port()),
            remote: (octets(remote), remote.port()),
        }
    }

    /// Replaces the contents of `buffer` by the request's bytes.
    pub(super) fn write(&self, buffer: &mut Vec<u8>) {
        buffer.clear();
        // struct nlmsghdr; sequence and port numbers are not needed on a connected socket with one
        // request at a time.
        buffer.extend(((HEADER_LEN + REQUEST_LEN) as u32).to_ne_bytes());
        buffer.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        buffer.extend(self.flags.to_ne_bytes());
        buffer.extend([0; 8]);
        // struct inet_diag_req_v2
        buffer.extend([self.family.number(), self.protocol as u8, self.extensions, 0]);
        buffer.extend(self.states.to_ne_bytes());
        // struct inet_diag_sockid: ports and addresses in network order, interface, cookie.
        buffer.extend(self.local.1.to_be_bytes());
        buffer.extend(self.remote.1.to_be_bytes());
        buffer.extend(self.local.0);
        buffer.extend(self.remote.0);
        buffer.extend(0u32.to_ne_bytes());
        // INET_DIAG_NOCOOKIE: whichever socket has these addresses.
        buffer.extend([0xff; 8]);
        debug_assert_eq!(buffer.len(), HEADER_LEN + REQUEST_LEN);
    }
}

/// What to do after a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DumpProgress {
    /// Another datagram follows.
    More,
    /// It was the last one.
    Done,
    /// The kernel refused with this errno.
    Failed(i32),
}

/// Reads a datagram of answers and appends a sample for each socket.
pub(super) fn read(datagram: &[u8], at: Instant, samples: &mut Vec<Sample>) -> DumpProgress {
    read_each(datagram, |payload| samples.extend(read_socket(payload, at)))
}

/// Reads a datagram of answers and appends each socket.
pub(super) fn read_open(datagram: &[u8], sockets: &mut Vec<OpenSocket>) -> DumpProgress {
    read_each(datagram, |payload| sockets.extend(read_open_socket(payload)))
}

/// Reads a datagram of answers and passes each socket to `visit`, with what identifies it.
pub(super) fn read_identified(
    datagram: &[u8],
    at: Instant,
    visit: &mut dyn FnMut(HostSocket),
) -> DumpProgress {
    read_each(datagram, |payload| {
        if let Some(socket) = read_host_socket(payload, at) {
            visit(socket);
        }
    })
}

/// Reads a datagram of answers and passes the payload of each socket to `each`.
fn read_each(mut datagram: &[u8], mut each: impl FnMut(&[u8])) -> DumpProgress {
    let mut multi = false;
    while let Some((header, _)) = datagram.split_first_chunk::<HEADER_LEN>() {
        let length = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let kind = u16::from_ne_bytes([header[4], header[5]]);
        multi |= u16::from_ne_bytes([header[6], header[7]]) & NLM_F_MULTI != 0;
        let Some(payload) = datagram.get(HEADER_LEN..length) else { break };
        match kind {
            NLMSG_DONE => return DumpProgress::Done,
            NLMSG_ERROR => {
                let code = payload
                    .first_chunk()
                    .map_or(-libc::EBADMSG, |bytes| i32::from_ne_bytes(*bytes));
                return if code == 0 {
                    DumpProgress::Done
                } else {
                    DumpProgress::Failed(code.saturating_neg())
                };
            }
            SOCK_DIAG_BY_FAMILY => each(payload),
            _ => {}
        }
        datagram = datagram.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    if multi { DumpProgress::More } else { DumpProgress::Done }
}

/// The fixed part of an answer, without its timers.
fn read_open_socket(payload: &[u8]) -> Option<OpenSocket> {
    let (fixed, _) = payload.split_first_chunk::<ANSWER_LEN>()?;
    let family = AddressFamily::from_number(fixed[0])?;
    let u32_at =
        |offset: usize| fixed[offset..].first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes));
    let [local, remote] = [(8, 4), (24, 6)].map(|(ip, port)| {
        let octets = fixed[ip..].first_chunk::<16>().copied().unwrap_or_default();
        address(family, octets, u16::from_be_bytes([fixed[port], fixed[port + 1]]))
    });
    Some(OpenSocket {
        local,
        remote,
        state: TcpState::from_number(fixed[1]),
        unread: Bytes::new(u32_at(56).into()),
        unsent: Bytes::new(u32_at(60).into()),
        has_owner: u32_at(68) != 0,
    })
}

fn read_host_socket(payload: &[u8], at: Instant) -> Option<HostSocket> {
    let (fixed, attributes) = payload.split_first_chunk::<ANSWER_LEN>()?;
    let u32_at =
        |offset: usize| fixed[offset..].first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes));
    let cgroup = Attributes(attributes).find(|(kind, _)| *kind == INET_DIAG_CGROUP_ID);
    let id = cgroup.and_then(|(_, value)| Some(u64::from_ne_bytes(*value.first_chunk()?)));
    Some(HostSocket {
        sample: read_socket(payload, at)?,
        // Two words, the lower one first.
        cookie: u64::from(u32_at(44)) | u64::from(u32_at(48)) << 32,
        inode: Some(u64::from(u32_at(68))).filter(|inode| *inode != 0),
        uid: u32_at(64),
        cgroup: id.filter(|id| *id != 0),
    })
}

fn read_socket(payload: &[u8], at: Instant) -> Option<Sample> {
    let (_, attributes) = payload.split_first_chunk::<ANSWER_LEN>()?;
    let socket = read_open_socket(payload)?;
    let mut sample = Sample {
        rqueue: socket.unread,
        wqueue: socket.unsent,
        ..Sample::new(at, socket.local, socket.remote, socket.state)
    };
    for (kind, value) in Attributes(attributes) {
        match kind {
            INET_DIAG_INFO => {
                let (info, reasons) = Reasons::split(value);
                sample.info = TcpInfo::parse(info).ok();
                sample.reasons = reasons;
            }
            INET_DIAG_SKMEMINFO => sample.memory = SocketMemory::parse(value).ok(),
            INET_DIAG_CONG => {
                let name = value.split(|&byte| byte == 0).next().unwrap_or_default();
                sample.congestion_control = Some(String::from_utf8_lossy(name).into_owned());
            }
            _ => {}
        }
    }
    Some(sample)
}

/// The attributes (`struct rtattr`: length, type, value, padding to 4 bytes) in a message.
struct Attributes<'a>(&'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let [l0, l1, k0, k1, ..] = *self.0 else { return None };
        let length = usize::from(u16::from_ne_bytes([l0, l1]));
        let value = self.0.get(4..length)?;
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([k0, k1]), value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_model::units::Duration;
    use proptest::prelude::*;

    /// One socket's message with these attributes.
    fn message(kind: u16, flags: u16, body: &[u8], attributes: &[(u16, Vec<u8>)]) -> Vec<u8> {
        let mut payload = body.to_vec();
        for (kind, value) in attributes {
            payload.extend(((value.len() + 4) as u16).to_ne_bytes());
            payload.extend(kind.to_ne_bytes());
            payload.extend(value);
            payload.resize(payload.len().next_multiple_of(4), 0);
        }
        let mut bytes = ((HEADER_LEN + payload.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend([0; 8]);
        bytes.extend(payload);
        bytes
    }

    fn socket() -> Vec<u8> {
        let mut body = vec![libc::AF_INET as u8, 1, 0, 0];
        body.extend(80u16.to_be_bytes());
        body.extend(40_000u16.to_be_bytes());
        body.extend([10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        body.extend([10, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        body.extend([0; 12]);
        body.extend([0; 4]);
        body.extend(7u32.to_ne_bytes());
        body.extend(9u32.to_ne_bytes());
        body.extend([0; 8]);
        body
    }

    /// Linux 6.18's answer about a loopback connection with 100,000 bytes received and 60,000 read;
    /// the figures are those that `ss -tinm` printed for it then.
    #[test]
    fn a_recorded_answer_says_what_ss_said() {
        let bytes = include_bytes!("../../../tests/data/sock_diag-linux-6.18.bin");
        let mut samples = Vec::new();
        assert_eq!(read(bytes, Instant::ZERO, &mut samples), DumpProgress::Done);
        let [sample] = samples.as_slice() else { panic!("{samples:?}") };
        assert_eq!((sample.local, sample.remote), (end("127.0.0.1:43697"), end("127.0.0.1:55578")));
        assert_eq!((sample.state, sample.rqueue), (TcpState::Established, Bytes::new(40_000)));
        assert_eq!(sample.congestion_control.as_deref(), Some("reno"));
        let info = sample.info.as_ref().unwrap();
        assert_eq!((info.snd_mss, info.rcv_mss), (Bytes::new(32_768), Bytes::new(34_518)));
        assert_eq!(
            (info.bytes_received, info.rcv_space),
            (Some(Bytes::new(100_000)), Bytes::new(65_483))
        );
        assert_eq!(info.rtt, Duration::from_micros(13));
        let memory = sample.memory.as_ref().unwrap();
        assert_eq!((memory.rmem_alloc, memory.rcvbuf), (Bytes::new(68_923), Bytes::new(131_072)));
        assert_eq!((memory.sndbuf, memory.fwd_alloc), (Bytes::new(3_939_840), Bytes::new(709)));
    }

    fn end(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn unknown_attributes_are_passed_over() {
        let attributes = [(99, vec![1, 2, 3]), (INET_DIAG_CONG, b"cubic\0".to_vec()), (15, vec![])];
        let bytes = message(SOCK_DIAG_BY_FAMILY, NLM_F_MULTI, &socket(), &attributes);
        let mut samples = Vec::new();
        assert_eq!(read(&bytes, Instant::from_nanos(5), &mut samples), DumpProgress::More);
        let [sample] = samples.as_slice() else { panic!("{samples:?}") };
        assert_eq!(sample.local, "10.0.0.1:80".parse().unwrap());
        assert_eq!(sample.remote, "10.0.0.2:40000".parse().unwrap());
        assert_eq!((sample.rqueue, sample.wqueue), (Bytes::new(7), Bytes::new(9)));
        assert_eq!(sample.state, TcpState::Established);
        assert_eq!(sample.congestion_control.as_deref(), Some("cubic"));
        assert!(sample.info.is_none() && sample.memory.is_none());
        let mut sockets = Vec::new();
        assert_eq!(read_open(&bytes, &mut sockets), DumpProgress::More);
        let [socket] = sockets.as_slice() else { panic!("{sockets:?}") };
        assert_eq!(
            (socket.local, socket.unread, socket.unsent),
            (sample.local, Bytes::new(7), Bytes::new(9))
        );
        assert!(!socket.has_owner, "its inode is 0: no process has it open");
    }

    #[test]
    fn the_end_and_the_errors_are_told_apart() {
        let mut samples = Vec::new();
        let mut read =
            |kind, body: &[u8]| read(&message(kind, 0, body, &[]), Instant::ZERO, &mut samples);
        assert_eq!(read(NLMSG_DONE, &[0; 4]), DumpProgress::Done);
        assert_eq!(
            read(NLMSG_ERROR, &(-libc::ENOENT).to_ne_bytes()),
            DumpProgress::Failed(libc::ENOENT)
        );
        assert_eq!(read(NLMSG_ERROR, &0i32.to_ne_bytes()), DumpProgress::Done);
        assert_eq!(read(NLMSG_ERROR, &[]), DumpProgress::Failed(libc::EBADMSG));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let mut samples = Vec::new();
            read(&bytes, Instant::ZERO, &mut samples);
            read_open(&bytes, &mut Vec::new());
            prop_assert!(samples.len() <= bytes.len() / (HEADER_LEN + ANSWER_LEN));
        }

        #[test]
        fn any_cut_and_any_flip_of_a_message_is_read_without_harm(cut in 0usize..400, at in 0usize..400, bit in 0u8..8) {
            let attributes = [(INET_DIAG_INFO, vec![7; 248]), (INET_DIAG_SKMEMINFO, vec![1; 36])];
            let mut bytes = message(SOCK_DIAG_BY_FAMILY, 0, &socket(), &attributes);
            let length = bytes.len();
            bytes[at % length] ^= 1 << bit;
            bytes.truncate(cut.min(length));
            let mut samples = Vec::new();
            read(&bytes, Instant::ZERO, &mut samples);
            prop_assert!(samples.len() <= 1);
        }
    }
}
