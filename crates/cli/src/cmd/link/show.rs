//! `--show`: the same path as `tc` commands, for a machine whose kernel has netem.
//!
//! Our grammar for an impairment is tc's, so it is written unchanged. Where tc has no equivalent, a
//! comment says so. netem acts on packets that leave a device, so one direction is at the device
//! itself, and the other at an `ifb` to which arriving packets are redirected.

use fullpipe_model::link::rule::Endpoint;
use fullpipe_model::link::{Config, Discipline, Words};
use fullpipe_model::scenario::Path;
use std::fmt::Write;

/// The commands for both directions of `device`.
pub fn commands(path: &Path, device: &str) -> String {
    let mut text = format!("# outwards: at {device}\n");
    direction(&mut text, path, device, |rule| &rule.to_server, &path.to_server, ["dst", "src"]);
    let _ = write!(
        text,
        "# back: what arrives at {device}, by way of an ifb\n\
         modprobe ifb numifbs=0\nip link add ifb-{device} type ifb\nip link set ifb-{device} up\n\
         tc qdisc add dev {device} clsact\n\
         tc filter add dev {device} ingress matchall action mirred egress redirect dev ifb-{device}\n"
    );
    let ifb = format!("ifb-{device}");
    direction(&mut text, path, &ifb, |rule| &rule.to_client, &path.to_client, ["src", "dst"]);
    let _ = write!(
        text,
        "# all of it away again\ntc qdisc del dev {device} root\ntc qdisc del dev {device} clsact\nip link del {ifb}\n"
    );
    text
}

type OfRule = fn(&fullpipe_model::scenario::Rule) -> &Config;

/// One direction; `ends` are tc's words for the end that a rule calls `to`, and for the other end.
fn direction(
    text: &mut String,
    path: &Path,
    device: &str,
    of: OfRule,
    default: &Config,
    ends: [&str; 2],
) {
    if path.rules.is_empty() {
        netem(text, path, default, device, "root handle 1:");
        return;
    }
    // One band for each rule and one for the rest. The priomap sends everything that no filter
    // matches to the last.
    let bands = path.rules.len() + 1;
    let map = vec![(bands - 1).to_string(); 16].join(" ");
    let _ = writeln!(
        text,
        "tc qdisc replace dev {device} root handle 1: prio bands {bands} priomap {map}"
    );
    for (number, rule) in path.rules.iter().enumerate() {
        let band = number + 1;
        netem(text, path, of(rule), device, &format!("parent 1:{band} handle {band}0:"));
        let mut matches = String::new();
        let mut ipv6 = false;
        for (end, word) in [(&rule.matches.to, ends[0]), (&rule.matches.from, ends[1])] {
            let Some(Endpoint { prefix, ports }) = end else { continue };
            if let Some(prefix) = prefix {
                ipv6 = prefix.address().is_ipv6();
                let _ = write!(matches, " {word}_ip {}/{}", prefix.address(), prefix.length());
            }
            if let Some((first, last)) = ports {
                let range =
                    if first == last { first.to_string() } else { format!("{first}-{last}") };
                let _ = write!(matches, " {word}_port {range}");
            }
        }
        let family = if ipv6 { "ipv6" } else { "ip" };
        // flower matches ports only together with a protocol.
        let protocols = match rule.matches.protocol {
            Some(protocol) => vec![protocol.0.to_string()],
            None if matches.contains("_port") => vec!["tcp".into(), "udp".into()],
            None => vec![String::new()],
        };
        for protocol in protocols {
            let protocol =
                if protocol.is_empty() { protocol } else { format!(" ip_proto {protocol}") };
            let _ = writeln!(
                text,
                "tc filter add dev {device} parent 1: protocol {family} prio {band} flower{protocol}{matches} classid 1:{band}"
            );
        }
    }
    netem(text, path, default, device, &format!("parent 1:{bands} handle {bands}0:"));
}

/// One netem qdisc.
fn netem(text: &mut String, path: &Path, config: &Config, device: &str, place: &str) {
    let words = Words::from(config);
    let mut options = String::new();
    for (key, value) in [
        ("delay", words.delay.map(|delay| delay.to_string())),
        ("loss", words.loss.map(|loss| loss.to_string())),
        ("duplicate", words.duplicate.map(|chance| chance.to_string())),
        ("corrupt", words.corrupt.map(|chance| chance.to_string())),
        ("reorder", words.reorder.map(|reorder| reorder.to_string())),
        ("rate", words.rate.map(|rate| rate.to_string())),
        ("slot", words.slot.map(|slot| slot.to_string())),
    ] {
        if let Some(value) = value {
            let _ = write!(options, " {key} {value}");
        }
    }
    if config.discipline != Discipline::DropTail {
        let _ =
            writeln!(text, "# netem has no discipline {}: put one behind it", config.discipline);
    }
    if let Some(changes) = &config.changes {
        let _ = writeln!(
            text,
            "# netem has no changes over time ({changes}): repeat the command with other words then"
        );
    }
    // netem's limit counts delayed packets as well as queued ones.
    let held = config
        .bytes_in_flight(path.rtt())
        .map(|held| held.get().div_ceil(path.mtu.get().max(1)).max(1));
    let limit = held.unwrap_or(1_000_000);
    let _ = writeln!(text, "tc qdisc replace dev {device} {place} netem limit {limit}{options}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_model::scenario::File;

    fn shown(text: &str) -> String {
        commands(&File::parse(text).unwrap().scenarios("test").unwrap().remove(0).path, "eth0")
    }

    #[test]
    fn the_words_are_tcs() {
        let text = shown("[link]\nrate = \"1gbit\"\ndelay = \"25ms\"\nloss = \"1% 25%\"");
        assert!(text.contains("tc qdisc replace dev eth0 root handle 1: netem limit "), "{text}");
        assert!(text.contains(" delay 25ms loss 1% 25% rate 1gbit"), "{text}");
        // One BDP of queue and half of one on the way: 6.25 MB and 3.125 MB in packets of 1500
        // bytes.
        assert!(text.contains("limit 6250 "), "{text}");
    }

    #[test]
    fn a_rule_is_a_band_with_its_filters() {
        let text = shown("[[link.rules]]\nto = \"10.0.0.5:443\"\ndelay = \"17ms\"");
        assert!(text.contains("prio bands 2 priomap 1 1 1"), "{text}");
        assert!(
            text.contains("flower ip_proto tcp dst_ip 10.0.0.5/32 dst_port 443 classid 1:1"),
            "{text}"
        );
        assert!(
            text.contains("flower ip_proto udp src_ip 10.0.0.5/32 src_port 443 classid 1:1"),
            "{text}"
        );
        assert!(text.contains("parent 1:1 handle 10: netem"), "{text}");
    }
}
