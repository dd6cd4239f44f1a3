//! The same path for Linux's own tools: `tc` commands, and what they cannot express.
//!
//! A direction is one netem with delay, jitter, loss, duplication, corruption, reordering, rate and
//! slots. If the queue is not drop-tail, or its room is in bytes or time, an htb class has the
//! rate, with a queueing discipline below it and netem above. Rules are bands of a prio, chosen by
//! flower filters.
//!
//! netem keeps waiting and propagating packets in one list, whose `limit` counts packets: it must
//! be larger than both together, or netem drops what the path would not.

use super::rule::{Endpoint, Match};
use super::{Capacity, Config, Discipline, Distribution, Loss, LossModel, Overhead, Spacing};
use crate::units::{Bytes, Duration, Probability};

/// Why netem cannot emulate `config`, one reason for each word. Empty if it can.
pub fn refusals(config: &Config) -> Vec<String> {
    let mut why = Vec::new();
    if config.changes.is_some() {
        why.push(
            "changes: netem's rate and delay stay as they are; use the own engine, or change them by `link set`".into(),
        );
    }
    if let Distribution::Table(_) | Distribution::File(_) = config.delay.distribution {
        why.push(
            "delay distribution of one's own: tc reads tables from its own folder only; use the own engine".into(),
        );
    }
    if let Some(Spacing::Distributed {
        distribution: Distribution::Table(_) | Distribution::File(_),
        ..
    }) = config.slot.as_ref().map(|slot| &slot.spacing)
    {
        why.push("slot distribution of one's own: tc reads tables from its own folder only; use the own engine".into());
    }
    if matches!(config.discipline, Discipline::Mark(_)) {
        why.push(
            "discipline mark: no discipline of Linux marks by the bytes that wait; use codel's ce_threshold".into(),
        );
    }
    if config.discipline == Discipline::Police {
        why.push(
            "discipline police: tc polices with an action of a filter, not with a discipline; use the own engine"
                .into(),
        );
    }
    if config.discipline != Discipline::DropTail && config.overhead != Overhead::NONE {
        why.push(format!(
            "overhead with discipline {}: htb knows no cells; use the own engine",
            config.discipline.name()
        ));
    }
    why
}

/// The commands that apply `config` to what leaves `device`; `rtt` is that of the path. The first
/// command removes what was there.
///
/// # Errors
/// What netem cannot do: [`refusals`].
pub fn commands(device: &str, config: &Config, rtt: Duration) -> Result<Vec<String>, Vec<String>> {
    let why = refusals(config);
    if !why.is_empty() {
        return Err(why);
    }
    let mut commands = vec![format!("tc qdisc del dev {device} root")];
    commands.extend(below(device, "root", 1, config, rtt));
    Ok(commands)
}

/// The commands for a path with rules: each rule a band, the rest the last band.
///
/// # Errors
/// What netem cannot do, and more rules than prio has bands for.
pub fn commands_with_rules(
    device: &str,
    default: &Config,
    rules: &[(Match, Config)],
    rtt: Duration,
) -> Result<Vec<String>, Vec<String>> {
    let mut why: Vec<String> =
        rules.iter().flat_map(|(_, config)| refusals(config)).chain(refusals(default)).collect();
    if rules.len() > 15 {
        why.push(format!(
            "{} rules: prio has 16 bands, one of them for everything else",
            rules.len()
        ));
    }
    if !why.is_empty() {
        return Err(why);
    }
    if rules.is_empty() {
        return commands(device, default, rtt);
    }
    let bands = (rules.len() + 1).max(2);
    // Priorities of packets choose no band: everything goes to the last one unless a filter
    // matches.
    let last = vec![(bands - 1).to_string(); 16].join(" ");
    let mut commands = vec![
        format!("tc qdisc del dev {device} root"),
        format!("tc qdisc add dev {device} root handle 1: prio bands {bands} priomap {last}"),
    ];
    for (index, (matches, config)) in rules.iter().enumerate() {
        let band = index + 1;
        commands.extend(below(
            device,
            &format!("parent 1:{band:x}"),
            16 * band as u32,
            config,
            rtt,
        ));
        // A conversation: both packets to the endpoint and packets from it may leave through this
        // device.
        for (to, from) in [(matches.to, matches.from), (matches.from, matches.to)] {
            commands.extend(filters(device, band, matches, to, from));
        }
    }
    commands.extend(below(device, &format!("parent 1:{bands:x}"), 16 * bands as u32, default, rtt));
    Ok(commands)
}

/// One direction at `place`; handles count from `handle`.
fn below(device: &str, place: &str, handle: u32, config: &Config, rtt: Duration) -> Vec<String> {
    let netem = netem_words(config);
    let (Some(rate), false) = (config.rate, config.discipline == Discipline::DropTail) else {
        let limit = format!(" limit {}", packets(config, rtt));
        return vec![format!(
            "tc qdisc add dev {device} {place} handle {handle:x}: netem{netem}{limit}"
        )];
    };
    // netem comes first, so that lost packets take no room. The delay is there too, which makes no
    // difference to the ends.
    let without_rate = Config { rate: None, ..config.clone() };
    let words = netem_words(&without_rate);
    let mut commands = Vec::new();
    let mut place = place.to_string();
    let mut handle = handle;
    commands.push(format!("tc qdisc add dev {device} {place} handle {handle:x}: htb default 1"));
    let rate = rate.to_exact();
    commands
        .push(format!("tc class add dev {device} parent {handle:x}: classid {handle:x}:1 htb rate {rate} ceil {rate}"));
    place = format!("parent {handle:x}:1");
    handle += 1;
    if !words.is_empty() {
        // An inner queue below netem would never fill, so netem must be on a second device (ifb).
        commands.push(format!(
            "# on the device that the packets come from, as netem must not hold the queue: netem{words}"
        ));
    }
    commands.push(format!(
        "tc qdisc add dev {device} {place} handle {handle:x}: {}",
        queue_words(config, rtt)
    ));
    commands
}

/// netem's options, each with a space before it.
fn netem_words(config: &Config) -> String {
    let mut words = String::new();
    if config.delay != super::Delay::default() {
        words += &format!(" delay {}", config.delay);
    }
    if let Some(reorder) = config.reorder {
        words += &format!(" reorder {reorder}");
    }
    if !config.loss.is_never() {
        let Loss { model, ecn } = config.loss;
        let kind = if matches!(model, LossModel::Random(_)) { "random " } else { "" };
        words += &format!(" loss {kind}{}", Loss { model, ecn: false });
        words += if ecn { " ecn" } else { "" };
    }
    for (word, chance) in [("duplicate", config.duplicate), ("corrupt", config.corrupt)] {
        if chance.probability > Probability::ZERO {
            words += &format!(" {word} {chance}");
        }
    }
    if let Some(rate) = config.rate {
        words += &format!(" rate {}", super::RateWords { rate, overhead: config.overhead });
    }
    if let Some(slot) = &config.slot {
        words += &format!(" slot {slot}").replace("kB", "000");
    }
    words
}

/// The discipline below htb.
fn queue_words(config: &Config, rtt: Duration) -> String {
    let ecn = |ecn: bool| if ecn { " ecn" } else { " noecn" };
    let limit = packets_waiting(config.capacity(rtt));
    match config.discipline {
        Discipline::Codel(codel) => {
            format!("codel limit {limit}{codel}{}", if codel.ecn { ecn(true) } else { "" })
        }
        Discipline::FqCodel(fq) => format!(
            "fq_codel limit {limit} flows {} quantum {}{}{}",
            fq.flows,
            fq.quantum.get(),
            fq.codel,
            if fq.codel.ecn { ecn(true) } else { "" }
        ),
        Discipline::Red(red) => {
            let room = match config.capacity(rtt) {
                Capacity::Bytes(bytes) => bytes,
                _ => Bytes::new(limit * 1000),
            };
            let max = red.max.unwrap_or(Bytes::new(room.get() / 4));
            let min = red.min.unwrap_or(Bytes::new(max.get() / 3));
            let burst =
                red.burst.map_or((2 * min.get() + max.get()) / 3000, |burst| burst.get().into());
            format!(
                "red limit {} min {} max {} avpkt 1000 burst {} probability {}{}",
                room.get(),
                min.get(),
                max.get(),
                burst.max(1),
                red.probability.get(),
                if red.ecn { " ecn" } else { "" }
            )
        }
        Discipline::DropTail | Discipline::Police | Discipline::Mark(_) => {
            format!("pfifo limit {limit}")
        }
    }
}

/// Packets that wait and propagate together: netem's `limit`.
fn packets(config: &Config, rtt: Duration) -> u64 {
    let wire = config.rate.map_or(10_000, |rate| rate.over(config.delay_max()).get() / 1000);
    wire.saturating_add(packets_waiting(config.capacity(rtt))).clamp(1, u32::MAX.into())
}

fn packets_waiting(capacity: Capacity) -> u64 {
    match capacity {
        Capacity::Unlimited => 10_000,
        Capacity::Packets(packets) => packets,
        Capacity::Bytes(bytes) => (bytes.get() / 1500).max(1),
    }
}

/// Filters for packets to `to` and from `from`: one for each IP version that the addresses allow.
fn filters(
    device: &str,
    band: usize,
    matches: &Match,
    to: Option<Endpoint>,
    from: Option<Endpoint>,
) -> Vec<String> {
    let prefix = |end: Option<Endpoint>| end.and_then(|end| end.prefix);
    let v6 = [to, from].map(|end| prefix(end).map(|prefix| prefix.address().is_ipv6()));
    let ports = [to, from].map(|end| end.and_then(|end| end.ports));
    let mut filters = Vec::new();
    for (version, is_v6) in [("ip", false), ("ipv6", true)] {
        if v6.iter().flatten().any(|other| *other != is_v6) {
            continue;
        }
        let protocols: Vec<String> = match matches.protocol {
            Some(protocol) => vec![format!(" ip_proto {protocol}")],
            // flower needs a protocol to match ports.
            None if ports.iter().any(Option::is_some) => {
                vec![" ip_proto tcp".into(), " ip_proto udp".into()]
            }
            None => vec![String::new()],
        };
        for protocol in protocols {
            let mut keys = protocol;
            for (side, end) in [("dst", to), ("src", from)] {
                if let Some(prefix) = prefix(end) {
                    keys += &format!(" {side}_ip {}/{}", prefix.address(), prefix.length());
                }
                if let Some((first, last)) = end.and_then(|end| end.ports) {
                    let range =
                        if first == last { first.to_string() } else { format!("{first}-{last}") };
                    keys += &format!(" {side}_port {range}");
                }
            }
            // Each priority has filters of one protocol; priorities keep the order of the rules.
            let priority = 2 * band + usize::from(is_v6);
            filters.push(format!(
                "tc filter add dev {device} parent 1: protocol {version} prio {priority} flower{keys} classid 1:{band:x}"
            ));
        }
    }
    filters
}

#[cfg(test)]
mod tests {
    use super::super::tests::written;
    use super::*;

    const RTT: Duration = Duration::from_millis(50);

    #[test]
    fn the_articles_commands_come_out() {
        for (words, command) in [
            ("delay = '100ms 10ms'", "netem delay 100ms 10ms limit"),
            ("delay = '100ms 10ms 30%'", "netem delay 100ms 10ms 30% limit"),
            (
                "delay = '100ms 20ms distribution normal'",
                "netem delay 100ms 20ms distribution normal limit",
            ),
            ("loss = '1%'", "netem loss random 1% limit"),
            ("loss = 'gemodel 1% 10%'", "netem loss gemodel 1% 10% 100% 0% limit"),
            ("corrupt = '0.1%'", "netem corrupt 0.1% limit"),
            ("delay = '10ms'\nreorder = '25% 50%'", "netem delay 10ms reorder 25% 50% limit"),
            ("delay = '10ms'\nreorder = 'gap 5'", "netem delay 10ms reorder 100% gap 5 limit"),
            ("rate = '1gbit 38'", "netem rate 1gbit 38 limit"),
        ] {
            let commands = commands("eth0", &written(words), RTT).unwrap();
            assert_eq!(commands[0], "tc qdisc del dev eth0 root");
            assert!(commands[1].contains(command), "{words}: {commands:?}");
        }
    }

    #[test]
    fn one_address_and_port_is_a_band_of_its_own() {
        let rule = ("to 10.0.0.5:443".parse().unwrap(), written("delay = '17ms'"));
        let commands = commands_with_rules("eth0", &Config::default(), &[rule], RTT).unwrap();
        assert!(commands[1].contains("prio bands 2 priomap 1 1 1"), "{commands:?}");
        assert!(commands[2].contains("parent 1:1 handle 10: netem delay 17ms"), "{commands:?}");
        assert!(commands[3].contains(
            "protocol ip prio 2 flower ip_proto tcp dst_ip 10.0.0.5/32 dst_port 443 classid 1:1"
        ));
        assert!(commands.iter().any(|command| command.contains("src_ip 10.0.0.5/32 src_port 443")));
        assert!(!commands.iter().any(|command| command.contains("protocol ipv6")));
    }

    #[test]
    fn what_netem_cannot_do_is_said() {
        for (words, says) in [
            ("rate = '1mbit'\nchanges = '5s rate 2mbit'", "changes:"),
            ("rate = '1mbit'\ndiscipline = 'mark 30kB'", "discipline mark"),
            ("delay = '10ms 1ms distribution table:-1,0,1'", "distribution of one's own"),
        ] {
            let why = commands("eth0", &written(words), RTT).unwrap_err();
            assert!(why.iter().any(|why| why.contains(says)), "{words}: {why:?}");
        }
    }

    #[test]
    fn a_discipline_stands_below_htb() {
        let commands =
            commands("eth0", &written("rate = '10mbit'\ndiscipline = 'codel noecn'"), RTT).unwrap();
        assert!(commands[2].contains("htb rate 10mbit ceil 10mbit"), "{commands:?}");
        assert!(
            commands[3].contains("codel limit 64 target 5ms interval 100ms noecn"),
            "{commands:?}"
        );
    }
}
