//! Redirects a device's traffic through this process and back to where it was taken from.
//!
//! ```text
//!   network ──► device, ingress hook ──► TAP n ──► [ read a │ this process │ write b ] ──► TAP h ──► device's stack, bridge
//!   network ◄── device, egress hook ◄─── TAP n ◄── [ write a │ this process │ read b ] ◄── TAP h ◄── (host sends)
//! ```
//!
//! Two TAP devices, `a` at the network's side and `b` at the host's, are a [`PortPair`] like any
//! other. A program at each of the device's hooks takes the selected packets (all IP packets, or
//! those that rules match) and sends them out of a TAP, where this process reads them. What the
//! process writes arrives on the other TAP. A program there marks it and returns it to the device,
//! in the direction in which it went; the mark tells the device's program not to take it again.
//!
//! The device's addresses, routes and queueing disciplines do not change, and other programs and
//! filters on it stay. Only the four programs and the two TAPs are new, and all six end with the
//! descriptors of this process ([`crate::bpf`]): **a killed process is detached**. Before Linux 6.6
//! this needs filters, which stay behind without effect ([`crate::network::filters`]).
//!
//! These packets bypass the link: ARP and everything else that is not IP, and frames with a VLAN
//! tag (attach to the VLAN's own device). A packet's own mark (`fwmark`) is lost here, after
//! routing has used it. Later fragments have no ports, so a rule with ports does not match them,
//! nor packets with ports behind IPv6 extension headers.

use std::net::IpAddr;

use fullpipe_model::link::rule::{Endpoint, Match, Prefix};

use crate::Refused;
use crate::bpf::{self, Assembler, AttachedProgram, Hook, Label, Register, Size, Test};
use crate::network::filters::{self, Filter};
use crate::network::netlink::Netlink;
use crate::network::netns::NetNs;
use crate::network::port::{PortConfig, PortPair};

use Register::{R0, R1, R2, R3, R4, R5, R6, R8, R9, R10};

/// Marks packets that have passed this process; only our programs see it.
const MARK: u32 = 0x6670_6c6b;
/// With more rules the verifier would reject the program as too complex.
const RULES_MAX: usize = 64;

// linux/bpf.h: struct __sk_buff
const SKB_MARK: i16 = 8;
const SKB_PROTOCOL: i16 = 16;
const SKB_VLAN_PRESENT: i16 = 20;
const BPF_REDIRECT: i32 = 23;
const BPF_SKB_LOAD_BYTES_RELATIVE: i32 = 68;
const BPF_HDR_START_NET: i32 = 1;
const BPF_F_INGRESS: i32 = 1;
/// The programs after this one at the hook decide.
const TC_ACT_UNSPEC: i32 = -1;

// Offsets on the program's stack.
const HEADER: i16 = -48;
const PORTS: i16 = -8;

/// How programs are attached to a device's hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Hooks {
    /// By links if the kernel has them, else by filters.
    #[default]
    Auto,
    /// By `tcx` links (Linux 6.6), which end with this process.
    Links,
    /// By `clsact` filters, which let every packet pass once this process has ended; see
    /// [`crate::network::filters`].
    Filters,
}

/// A program at a hook.
#[derive(Debug)]
#[expect(dead_code, reason = "held, so that the program stays")]
enum Program {
    Link(AttachedProgram),
    Filter(Filter),
}

/// Traffic that passes this process as long as this value lives.
#[derive(Debug)]
pub struct Redirect {
    /// `a` is the network's side, `b` the host's.
    pub ports: std::sync::Arc<PortPair>,
    programs: Vec<Program>,
}

impl Redirect {
    /// Redirects the traffic of `device` in the namespace `ns`: packets that one of `wanted`
    /// matches, or all IP packets if it is empty. From now on packets wait until the ports are
    /// read.
    ///
    /// # Errors
    /// The device does not exist, has no Ethernet frames, or is already redirected; the kernel does
    /// not have these `hooks`; this process has no privilege over the machine.
    pub fn start(
        ns: &NetNs,
        device: &str,
        wanted: &[Match],
        hooks: Hooks,
    ) -> Result<Redirect, Refused> {
        let mut netlink = Netlink::open(ns)?;
        let found = netlink.device(device)?;
        if !found.ethernet {
            let cause = std::io::Error::from(std::io::ErrorKind::Unsupported);
            let hint = "it has no Ethernet frames; attach to the device below it, or run the program with `link -- CMD`";
            return Err(Refused::new("redirect traffic of", device, cause).hint(hint));
        }
        if wanted.len() > RULES_MAX {
            let cause = std::io::Error::other(format!(
                "{} matches, at most {RULES_MAX} are possible",
                wanted.len()
            ));
            return Err(Refused::new("redirect traffic of", device, cause)
                .hint("name prefixes and ranges of ports"));
        }
        let [network, host] = taps(found.index);
        let [network_side, host_side] =
            [&network, &host].map(|device| PortConfig { ns, device, addresses: &[] });
        let ports = PortPair::taps(&network_side, &host_side, found.mtu);
        let ports = ports.map_err(|refused| match refused.errno() {
            Some(libc::EBUSY) => {
                refused.hint(format!("another link is on {device}: detach it first"))
            }
            _ => refused,
        })?;
        let [at_network, at_host] = [netlink.link_index(&network)?, netlink.link_index(&host)?];
        let attach = |program: Option<Vec<u64>>, index, hook, name: &str| {
            let program = program.ok_or_else(|| {
                Refused::new("make program for", device, std::io::Error::other("too many matches"))
            })?;
            let subject = format!("device {name} ({hook})");
            let by_link =
                || ns.run(|| bpf::attach(&program, index, hook, &subject))?.map(Program::Link);
            let by_filter = || {
                Filter::add(ns, &program, index, hook, index == found.index, &subject)
                    .map(Program::Filter)
            };
            match hooks {
                Hooks::Links => by_link(),
                Hooks::Filters => by_filter(),
                Hooks::Auto => match by_link() {
                    Err(refused) if refused.errno() == Some(libc::EINVAL) => by_filter(),
                    done => done,
                },
            }
        };
        // The ways back come first, so that nothing is taken that cannot be returned.
        let programs = vec![
            attach(give_back(found.index, Hook::Egress), at_network, Hook::Ingress, &network)?,
            attach(give_back(found.index, Hook::Ingress), at_host, Hook::Ingress, &host)?,
            attach(take(at_network, wanted), found.index, Hook::Ingress, device)?,
            attach(take(at_host, wanted), found.index, Hook::Egress, device)?,
        ];
        Ok(Redirect { ports: std::sync::Arc::new(ports), programs })
    }

    /// Removes what killed redirections left on devices of `ns`; returns the number of devices.
    pub fn clean(ns: &NetNs) -> Result<usize, Refused> {
        // A TAP ends with its process, so an existing one is in use.
        filters::clean(ns, |netlink, device| netlink.link_index(&taps(device)[0]).is_ok())
    }

    /// Stops taking packets. Those taken before can still be returned.
    pub fn release(&mut self) {
        self.programs.truncate(2);
    }
}

/// Names of the TAPs of the device with this number: the network's side, and the host's.
fn taps(device: u32) -> [String; 2] {
    [format!("fp{device}n"), format!("fp{device}h")]
}

/// The program of a TAP: returns packets to the device, in the direction of `hook`.
fn give_back(device: u32, hook: Hook) -> Option<Vec<u64>> {
    let mut a = Assembler::default();
    a.set(R0, MARK as i32);
    a.store(Size::Word, R1, SKB_MARK, R0);
    a.set(R1, device as i32);
    a.set(R2, if hook == Hook::Ingress { BPF_F_INGRESS } else { 0 });
    a.call(BPF_REDIRECT);
    a.exit();
    a.finish()
}

/// The device's program: sends selected packets that were not there before to the TAP `target`.
fn take(target: u32, wanted: &[Match]) -> Option<Vec<u64>> {
    let mut a = Assembler::default();
    let (been_here, pass, redirect, v4, v6) =
        (a.label(), a.label(), a.label(), a.label(), a.label());
    a.copy(R6, R1);
    a.load(Size::Word, R0, R6, SKB_MARK);
    a.jump_if(R0, Test::Equal, MARK, been_here);
    a.load(Size::Word, R0, R6, SKB_VLAN_PRESENT);
    a.jump_if(R0, Test::Different, 0, pass);
    a.load(Size::Word, R0, R6, SKB_PROTOCOL);
    a.jump_if(R0, Test::Equal, u32::from((libc::ETH_P_IP as u16).to_be()), v4);
    a.jump_if(R0, Test::Equal, u32::from((libc::ETH_P_IPV6 as u16).to_be()), v6);
    a.jump(pass);
    for (label, family) in [(v4, Family::V4), (v6, Family::V6)] {
        a.here(label);
        if wanted.is_empty() {
            a.jump(redirect);
        } else {
            choose(&mut a, family, wanted, redirect, pass);
        }
    }
    a.here(been_here);
    a.set(R0, 0);
    a.store(Size::Word, R6, SKB_MARK, R0);
    a.here(pass);
    a.set(R0, TC_ACT_UNSPEC);
    a.exit();
    a.here(redirect);
    a.set(R1, target as i32);
    a.set(R2, 0);
    a.call(BPF_REDIRECT);
    a.exit();
    a.finish()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    V4,
    V6,
}

impl Family {
    fn header_len(self) -> i32 {
        if self == Family::V4 { 20 } else { 40 }
    }

    /// Offsets of source and destination in the header.
    fn addresses(self) -> [i16; 2] {
        if self == Family::V4 { [12, 16] } else { [8, 24] }
    }

    fn protocol(self) -> i16 {
        if self == Family::V4 { 9 } else { 6 }
    }
}

/// Reads `length` bytes at `R2` of the packet to `place` on the stack; `R0` is not 0 if the packet
/// is too short.
fn read_packet(a: &mut Assembler, place: i16, length: i32) {
    a.copy(R1, R6);
    a.copy(R3, R10);
    a.add(R3, place.into());
    a.set(R4, length);
    a.set(R5, BPF_HDR_START_NET);
    a.call(BPF_SKB_LOAD_BYTES_RELATIVE);
}

/// Continues at `redirect` if one of `wanted` matches, else at `pass`. R8: protocol, R9: whether
/// there are ports.
fn choose(a: &mut Assembler, family: Family, wanted: &[Match], redirect: Label, pass: Label) {
    a.set(R2, 0);
    read_packet(a, HEADER, family.header_len());
    a.jump_if(R0, Test::Different, 0, pass);
    a.load(Size::Byte, R8, R10, HEADER + family.protocol());
    a.set(R9, 0);
    let (no_ports, has_ports) = (a.label(), a.label());
    for protocol in [libc::IPPROTO_TCP, libc::IPPROTO_UDP] {
        a.jump_if(R8, Test::Equal, protocol as u32, has_ports);
    }
    a.jump(no_ports);
    a.here(has_ports);
    if family == Family::V4 {
        a.load(Size::Half, R0, R10, HEADER + 6);
        a.swap_from_network(R0, Size::Half);
        a.and(R0, 0x1fff);
        a.jump_if(R0, Test::Different, 0, no_ports);
        a.load(Size::Byte, R2, R10, HEADER);
        a.and(R2, 0x0f);
        a.shift_left(R2, 2);
    } else {
        a.set(R2, family.header_len());
    }
    read_packet(a, PORTS, 4);
    a.jump_if(R0, Test::Different, 0, no_ports);
    a.set(R9, 1);
    a.here(no_ports);
    // A test that always fails would make the rest of its rule unreachable, which the verifier
    // rejects.
    let of_family = wanted.iter().filter(|rule| {
        let ends = [&rule.to, &rule.from].into_iter().flatten();
        let mut prefixes = ends.filter_map(|end| end.prefix.as_ref());
        prefixes.all(|prefix| words(family, prefix).is_some())
    });
    for rule in of_family {
        // A rule means a conversation: the packet, or the answer to it.
        for [to, from] in [[1, 0], [0, 1]] {
            let fails = a.label();
            if let Some(protocol) = rule.protocol {
                a.jump_if(R8, Test::Different, protocol.0.into(), fails);
            }
            for (end, which) in [(&rule.to, to), (&rule.from, from)] {
                if let Some(end) = end {
                    compare(a, family, end, which, fails);
                }
            }
            a.jump(redirect);
            a.here(fails);
        }
    }
    a.jump(pass);
}

/// Continues at `fails` unless the packet's source (0) or destination (1) is `end`.
fn compare(a: &mut Assembler, family: Family, end: &Endpoint, which: usize, fails: Label) {
    if let Some(prefix) = &end.prefix {
        let words = words(family, prefix).unwrap_or_default();
        for (number, (value, mask)) in
            words.into_iter().enumerate().filter(|(_, (_, mask))| *mask != 0)
        {
            a.load(Size::Word, R0, R10, HEADER + family.addresses()[which] + 4 * number as i16);
            a.swap_from_network(R0, Size::Word);
            a.and(R0, mask);
            a.jump_if(R0, Test::Different, value & mask, fails);
        }
    }
    if let Some((first, last)) = end.ports {
        a.jump_if(R9, Test::Equal, 0, fails);
        a.load(Size::Half, R0, R10, PORTS + 2 * which as i16);
        a.swap_from_network(R0, Size::Half);
        a.jump_if(R0, Test::Below, first.into(), fails);
        a.jump_if(R0, Test::Above, last.into(), fails);
    }
}

/// A prefix as 32-bit words with their masks; `None` for one of the other family.
fn words(family: Family, prefix: &Prefix) -> Option<Vec<(u32, u32)>> {
    let bytes: Vec<u8> = match (family, prefix.address()) {
        (Family::V4, IpAddr::V4(v4)) => v4.octets().to_vec(),
        (Family::V6, IpAddr::V6(v6)) => v6.octets().to_vec(),
        _ => return None,
    };
    let words = bytes.chunks_exact(4).enumerate().map(|(number, chunk)| {
        let fixed = u32::from(prefix.length()).saturating_sub(32 * number as u32).min(32);
        let mask = u32::MAX.checked_shl(32 - fixed).unwrap_or(0);
        (u32::from_be_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]), mask)
    });
    Some(words.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_compared_word_by_word() {
        let endpoint: Endpoint = "[2001:db8:1::/40]:443".parse().unwrap();
        let words = words(Family::V6, &endpoint.prefix.unwrap()).unwrap();
        assert_eq!(words[..3], [(0x2001_0db8, u32::MAX), (0, 0xff00_0000), (0, 0)]);
        assert!(super::words(Family::V4, &endpoint.prefix.unwrap()).is_none());
    }

    #[test]
    fn every_program_comes_to_an_end_within_bounds() {
        let rule: Match =
            "to 10.0.0.0/8:8000-8080 from [2001:db8::/32]:443 protocol tcp".parse().unwrap();
        for wanted in [vec![], vec![rule], vec![rule; RULES_MAX]] {
            let program = take(7, &wanted).unwrap();
            assert!(program.len() < 4096, "{}", program.len());
        }
        assert!(give_back(7, Hook::Ingress).is_some());
    }
}
