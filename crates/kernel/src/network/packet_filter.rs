//! Which packets a ring keeps, and how much of each: a classic BPF program that the kernel runs
//! before it copies anything.
//!
//! It reads a packet from its link header: of Ethernet with up to one VLAN tag, of other devices
//! from the IP header that comes first there. Behind IPv6's extension headers it does not look for
//! TCP, and a fragment but the first has no ports. Source:
//! Documentation/networking/filter.rst, linux/bpf_common.h, linux/filter.h.

use fullpipe_model::units::Bytes;
use std::net::{IpAddr, SocketAddr};

/// The most addresses, and the most ports, of a filter.
pub const ENDS_MAX: usize = 16;

/// Which packets are kept, and how much of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketFilter {
    /// TCP with these ends; `None`: everything.
    tcp: Option<Ends>,
    keep: Keep,
}

/// Where a TCP packet comes from or goes to; none of a kind: anywhere.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Ends {
    hosts: Vec<IpAddr>,
    ports: Vec<u16>,
}

impl Ends {
    /// Whether one of `ends` has an address of these, and one a port.
    fn have(&self, ends: [SocketAddr; 2]) -> bool {
        let [hosts, ports] = [self.hosts.is_empty(), self.ports.is_empty()];
        (hosts || ends.iter().any(|end| self.hosts.contains(&end.ip().to_canonical())))
            && (ports || ends.iter().any(|end| self.ports.contains(&end.port())))
    }
}

/// How much of a packet is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Up to so many bytes, with the link header.
    Bytes(Bytes),
    /// The headers of TCP and what comes before it, and not a byte of what they carry.
    Headers,
}

/// A filter with more ends than the kernel is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("filter packets: {count} {kind} are too many; name at most {ENDS_MAX}")]
pub struct TooManyEnds {
    /// Ports or addresses.
    pub kind: &'static str,
    /// How many were named.
    pub count: usize,
}

impl PacketFilter {
    /// Every packet, up to `snaplen` bytes of it with its link header.
    pub fn everything(snaplen: Bytes) -> PacketFilter {
        PacketFilter { tcp: None, keep: Keep::Bytes(snaplen) }
    }

    /// Every TCP packet.
    pub fn tcp(keep: Keep) -> PacketFilter {
        PacketFilter { tcp: Some(Ends::default()), keep }
    }

    /// TCP packets with one of `hosts` at either end, and one of `ports` at either end; where there
    /// are none, any will do.
    ///
    /// # Errors
    /// There are more than 16 of a kind.
    pub fn tcp_between(
        hosts: &[IpAddr],
        ports: &[u16],
        keep: Keep,
    ) -> Result<PacketFilter, TooManyEnds> {
        for (kind, count) in [("addresses", hosts.len()), ("ports", ports.len())] {
            if count > ENDS_MAX {
                return Err(TooManyEnds { kind, count });
            }
        }
        let hosts = hosts.iter().map(IpAddr::to_canonical).collect();
        Ok(PacketFilter { tcp: Some(Ends { hosts, ports: ports.into() }), keep })
    }

    /// Whether it takes what these two ends send each other by TCP. What the kernel is given takes
    /// the same.
    pub fn takes(&self, ends: [SocketAddr; 2]) -> bool {
        self.tcp.as_ref().is_none_or(|wanted| wanted.have(ends))
    }

    /// The program for the kernel.
    pub(super) fn program(&self) -> Vec<libc::sock_filter> {
        let mut program = Program::default();
        match &self.tcp {
            Some(ends) => program.tcp(ends, self.keep),
            None => program.accept(self.keep, 0),
        }
        program.code
    }
}

// From linux/if_packet.h, linux/if_ether.h and linux/filter.h.
const ETHERNET: u32 = 1;
const LOOPBACK: u32 = 772;
const VLAN: u32 = 0x8100;
const SERVICE_VLAN: u32 = 0x88a8;
const TCP: u32 = 6;
/// Where the kernel has the type of the device.
const DEVICE_TYPE: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_HATYPE) as u32;

const LOAD_WORD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_IND;
const LOAD_HALF: u32 = libc::BPF_LD | libc::BPF_H | libc::BPF_IND;
const LOAD_BYTE: u32 = libc::BPF_LD | libc::BPF_B | libc::BPF_IND;
const SET_X: u32 = libc::BPF_LDX | libc::BPF_W | libc::BPF_IMM;
const A_TO_X: u32 = libc::BPF_MISC | libc::BPF_TAX;
const SHIFT_LEFT: u32 = libc::BPF_ALU | libc::BPF_LSH | libc::BPF_K;
const SHIFT_RIGHT: u32 = libc::BPF_ALU | libc::BPF_RSH | libc::BPF_K;
const MASK: u32 = libc::BPF_ALU | libc::BPF_AND | libc::BPF_K;
const ADD: u32 = libc::BPF_ALU | libc::BPF_ADD | libc::BPF_K;
const ADD_X: u32 = libc::BPF_ALU | libc::BPF_ADD | libc::BPF_X;
const EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const ANY_BIT: u32 = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
const GO: u32 = libc::BPF_JMP | libc::BPF_JA;
const KEEP_CONSTANT: u32 = libc::BPF_RET | libc::BPF_K;
const KEEP_A: u32 = libc::BPF_RET | libc::BPF_A;

/// A program that is being written. Jumps lead forward only.
#[derive(Default)]
struct Program {
    code: Vec<libc::sock_filter>,
}

/// Jumps that wait for their target.
type Jumps = Vec<usize>;

impl Program {
    /// Appends an instruction; returns its place.
    fn push(&mut self, code: u32, k: u32) -> usize {
        self.skip_if(code, k, [0, 0])
    }

    /// The same for a condition that skips so many instructions where it holds, and where not.
    fn skip_if(&mut self, code: u32, k: u32, [jt, jf]: [u8; 2]) -> usize {
        self.code.push(libc::sock_filter { code: code as u16, jt, jf, k });
        self.code.len() - 1
    }

    /// Leads jumps to what is appended next.
    fn land(&mut self, jumps: Jumps) {
        for jump in jumps {
            self.code[jump].k = (self.code.len() - jump - 1) as u32;
        }
    }

    /// Appends what drops the packet.
    fn drop_packet(&mut self) {
        self.push(KEEP_CONSTANT, 0);
    }

    /// Goes on where the value is `k`, and otherwise drops the packet.
    fn only_if(&mut self, k: u32) {
        self.skip_if(EQUAL, k, [1, 0]);
        self.drop_packet();
    }

    /// Ends it for a packet that is kept: X is where its TCP header begins, if headers are.
    fn accept(&mut self, keep: Keep, tcp_offset_of_x: u32) {
        match keep {
            Keep::Bytes(bytes) => {
                self.push(KEEP_CONSTANT, u32::try_from(bytes.get()).unwrap_or(u32::MAX));
            }
            Keep::Headers => {
                // The data offset, in words, is the upper half of the byte.
                self.push(LOAD_BYTE, tcp_offset_of_x + 12);
                self.push(SHIFT_RIGHT, 4);
                self.push(SHIFT_LEFT, 2);
                self.push(ADD, tcp_offset_of_x);
                self.push(ADD_X, 0);
                self.push(KEEP_A, 0);
            }
        }
    }

    fn tcp(&mut self, ends: &Ends, keep: Keep) {
        self.find_ip();
        self.push(LOAD_BYTE, 0);
        self.push(SHIFT_RIGHT, 4);
        self.skip_if(EQUAL, 6, [0, 1]);
        let version_6 = self.push(GO, 0);
        self.only_if(4);
        self.version_4(ends, keep);
        self.land(vec![version_6]);
        self.version_6(ends, keep);
    }

    /// Sets X to where the IP header begins.
    fn find_ip(&mut self) {
        let absolute = libc::BPF_LD | libc::BPF_ABS;
        self.push(absolute | libc::BPF_W, DEVICE_TYPE);
        self.skip_if(EQUAL, ETHERNET, [3, 0]);
        self.skip_if(EQUAL, LOOPBACK, [2, 0]);
        self.push(SET_X, 0);
        let bare = self.push(GO, 0);
        self.push(absolute | libc::BPF_H, 12);
        self.skip_if(EQUAL, VLAN, [3, 0]);
        self.skip_if(EQUAL, SERVICE_VLAN, [2, 0]);
        self.push(SET_X, 14);
        let plain = self.push(GO, 0);
        self.push(SET_X, 18);
        self.land(vec![bare, plain]);
    }

    fn version_4(&mut self, ends: &Ends, keep: Keep) {
        self.push(LOAD_BYTE, 9);
        self.only_if(TCP);
        // A fragment but the first has no TCP header.
        self.push(LOAD_HALF, 6);
        self.skip_if(ANY_BIT, 0x1fff, [0, 1]);
        self.drop_packet();
        let hosts = ends.hosts.iter().filter_map(|host| match host {
            IpAddr::V4(host) => Some(vec![host.to_bits()]),
            IpAddr::V6(_) => None,
        });
        self.hosts(hosts.collect(), ends, [12, 16]);
        self.push(LOAD_BYTE, 0);
        self.push(MASK, 15);
        self.push(SHIFT_LEFT, 2);
        self.push(ADD_X, 0);
        self.push(A_TO_X, 0);
        self.ports(ends, 0);
        self.accept(keep, 0);
    }

    fn version_6(&mut self, ends: &Ends, keep: Keep) {
        const HEADER: u32 = 40;
        self.push(LOAD_BYTE, 6);
        self.only_if(TCP);
        let hosts = ends.hosts.iter().filter_map(|host| match host {
            IpAddr::V6(host) => {
                let bits = host.to_bits();
                Some([96, 64, 32, 0].map(|shift| (bits >> shift) as u32).to_vec())
            }
            IpAddr::V4(_) => None,
        });
        self.hosts(hosts.collect(), ends, [8, 24]);
        self.ports(ends, HEADER);
        self.accept(keep, HEADER);
    }

    /// Goes on where one of the addresses, each in words, is at one of the two `places` behind X.
    fn hosts(&mut self, hosts: Vec<Vec<u32>>, ends: &Ends, places: [u32; 2]) {
        if ends.hosts.is_empty() {
            return;
        }
        let mut found = Jumps::new();
        for (host, place) in hosts.iter().flat_map(|host| places.map(|place| (host, place))) {
            // Where a word differs, the rest of this comparison is skipped.
            for (number, word) in (0..).zip(host) {
                let left = host.len() as u8 - 1 - number;
                self.push(LOAD_WORD, place + 4 * u32::from(number));
                self.skip_if(EQUAL, *word, [0, 2 * left + 1]);
            }
            found.push(self.push(GO, 0));
        }
        self.drop_packet();
        self.land(found);
    }

    /// Goes on where one of the ports is in the TCP header so far behind X.
    fn ports(&mut self, ends: &Ends, tcp: u32) {
        if ends.ports.is_empty() {
            return;
        }
        let mut found = Jumps::new();
        for place in [tcp, tcp + 2] {
            self.push(LOAD_HALF, place);
            for port in &ends.ports {
                self.skip_if(EQUAL, u32::from(*port), [0, 1]);
                found.push(self.push(GO, 0));
            }
        }
        self.drop_packet();
        self.land(found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::sample::{select, subsequence};

    /// What the kernel would return: how many bytes of the packet are kept. A load beyond the
    /// packet ends it with 0.
    fn run(program: &[libc::sock_filter], device_type: u32, packet: &[u8]) -> u32 {
        let load = |at: usize, size: usize| -> Option<u32> {
            let bytes = packet.get(at..at + size)?;
            Some(bytes.iter().fold(0, |value, byte| value << 8 | u32::from(*byte)))
        };
        let (mut a, mut x, mut at) = (0_u32, 0_u32, 0);
        loop {
            let one = program[at];
            let (code, k) = (u32::from(one.code), one.k);
            at += 1;
            let behind = (k as usize).wrapping_add(x as usize);
            let loaded = match code {
                LOAD_WORD => load(behind, 4),
                LOAD_HALF => load(behind, 2),
                LOAD_BYTE => load(behind, 1),
                0x20 if k == DEVICE_TYPE => Some(device_type),
                0x28 => load(k as usize, 2),
                _ => Some(a),
            };
            let Some(loaded) = loaded else { return 0 };
            a = loaded;
            match code {
                LOAD_WORD | LOAD_HALF | LOAD_BYTE | 0x20 | 0x28 => {}
                SET_X => x = k,
                A_TO_X => x = a,
                SHIFT_LEFT => a <<= k,
                SHIFT_RIGHT => a >>= k,
                MASK => a &= k,
                ADD => a += k,
                ADD_X => a += x,
                EQUAL => at += usize::from(if a == k { one.jt } else { one.jf }),
                ANY_BIT => at += usize::from(if a & k != 0 { one.jt } else { one.jf }),
                GO => at += k as usize,
                KEEP_CONSTANT => return k,
                KEEP_A => return a,
                other => panic!("an instruction {other:#x} that is not written"),
            }
        }
    }

    /// What is sent, and over what.
    #[derive(Debug, Clone)]
    struct Sent {
        /// The device's type, and bytes before the IP header.
        link: (u32, Vec<u8>),
        ends: [IpAddr; 2],
        ports: [u16; 2],
        protocol: u8,
        fragment: u16,
        ip_options: u8,
        tcp_words: u8,
    }

    impl Sent {
        /// The packet, and where its payload begins.
        fn packet(&self) -> (Vec<u8>, usize) {
            let mut packet = self.link.1.clone();
            let [from, to] = self.ends;
            match (from, to) {
                (IpAddr::V4(from), IpAddr::V4(to)) => {
                    let [high, low] = self.fragment.to_be_bytes();
                    packet.extend([0x45 + self.ip_options, 0, 0, 0, 0, 0, high, low]);
                    packet.extend([64, self.protocol, 0, 0]);
                    packet.extend(from.octets());
                    packet.extend(to.octets());
                    packet.extend(vec![1; 4 * usize::from(self.ip_options)]);
                }
                (IpAddr::V6(from), IpAddr::V6(to)) => {
                    packet.extend([0x60, 0, 0, 0, 0, 0, self.protocol, 64]);
                    packet.extend(from.octets());
                    packet.extend(to.octets());
                }
                _ => unreachable!("both ends are of one kind"),
            }
            let tcp = packet.len();
            packet.extend(self.ports.iter().flat_map(|port| port.to_be_bytes()));
            packet.extend([0; 8]);
            packet.push(self.tcp_words << 4);
            packet.resize(tcp + 4 * usize::from(self.tcp_words), 0);
            let payload = packet.len();
            packet.extend(b"not a header");
            (packet, payload)
        }

        /// Whether it is TCP that `filter` takes, said without a program.
        fn is_wanted(&self, filter: &PacketFilter) -> bool {
            let is_whole = self.ends[0].is_ipv6() || self.fragment & 0x1fff == 0;
            let [from, to] = [0, 1].map(|end| (self.ends[end], self.ports[end]).into());
            self.protocol == 6 && is_whole && filter.takes([from, to])
        }
    }

    const PORTS: [u16; 6] = [22, 80, 443, 5001, 8080, 40_000];

    fn hosts() -> Vec<IpAddr> {
        let texts = ["10.0.0.1", "10.0.0.2", "192.0.2.7", "2001:db8::1", "2001:db8::2", "fe80::1"];
        texts.map(|text| text.parse().unwrap()).into()
    }

    fn sent() -> impl Strategy<Value = Sent> {
        let ethernet = |tags: &[u8]| [&[2; 12], tags].concat();
        let links = vec![
            (ETHERNET, ethernet(&[8, 0])),
            (LOOPBACK, ethernet(&[0x86, 0xdd])),
            (ETHERNET, ethernet(&[0x81, 0, 0, 7, 8, 0])),
            (ETHERNET, ethernet(&[0x88, 0xa8, 0, 7, 8, 0])),
            (65_534, Vec::new()),
        ];
        let four: Vec<IpAddr> = hosts().into_iter().filter(IpAddr::is_ipv4).collect();
        let six: Vec<IpAddr> = hosts().into_iter().filter(IpAddr::is_ipv6).collect();
        let ends =
            prop_oneof![[select(four.clone()), select(four)], [select(six.clone()), select(six)]];
        let rest = (
            select(vec![6_u8, 6, 6, 17]),
            select(vec![0_u16, 0x4000, 0x2000, 0x2007]),
            0_u8..=10,
            5_u8..=15,
        );
        (select(links), ends, [select(PORTS.to_vec()), select(PORTS.to_vec())], rest).prop_map(
            |(link, ends, ports, (protocol, fragment, ip_options, tcp_words))| Sent {
                link,
                ends,
                ports,
                protocol,
                fragment,
                ip_options,
                tcp_words,
            },
        )
    }

    proptest! {
        /// What is wanted is kept up to its payload, and nothing else is.
        #[test]
        fn a_program_keeps_the_headers_of_what_is_wanted(
            sent in sent(),
            hosts in subsequence(hosts(), 0..=6),
            ports in subsequence(PORTS.to_vec(), 0..=6),
        ) {
            let filter = PacketFilter::tcp_between(&hosts, &ports, Keep::Headers).unwrap();
            let (packet, payload) = sent.packet();
            let expected = if sent.is_wanted(&filter) { payload as u32 } else { 0 };
            prop_assert_eq!(run(&filter.program(), sent.link.0, &packet), expected);
        }

        /// Whatever arrives, a program ends, and never keeps more than the longest headers.
        #[test]
        fn any_bytes_are_survived(packet in prop::collection::vec(any::<u8>(), 0..100), device in select(vec![ETHERNET, LOOPBACK, 0])) {
            let filter = PacketFilter::tcp_between(&hosts(), &PORTS, Keep::Headers).unwrap();
            prop_assert!(run(&filter.program(), device, &packet) <= 18 + 60 + 60);
        }
    }

    #[test]
    fn the_largest_filter_is_a_program_and_a_larger_one_is_refused() {
        let address = |number: u16| IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, number]);
        let hosts: Vec<IpAddr> = (0..ENDS_MAX as u16).map(address).collect();
        let ports: Vec<u16> = (1..=ENDS_MAX as u16).collect();
        let filter = PacketFilter::tcp_between(&hosts, &ports, Keep::Bytes(Bytes::new(96)));
        let program = filter.unwrap().program();
        // The kernel takes 4096 instructions (BPF_MAXINSNS), the last of which must end it.
        assert!(program.len() < 4096 && program.last().unwrap().k == 96);
        let more: Vec<u16> = (0..=ENDS_MAX as u16).collect();
        let refused = PacketFilter::tcp_between(&[], &more, Keep::Headers).unwrap_err();
        assert!(refused.to_string().contains("17 ports"), "{refused}");
    }

    #[test]
    fn everything_is_kept_up_to_a_length() {
        let filter = PacketFilter::everything(Bytes::new(128));
        assert_eq!(run(&filter.program(), ETHERNET, b"anything"), 128);
    }
}
