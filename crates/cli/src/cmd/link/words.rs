//! The path on the command line: the keys of a scenario's `[link]` as options.
//!
//! `--delay 20ms` applies to both directions, `--up-delay` to the direction from the command (or
//! this machine) outwards, `--down-delay` to the way back. Options before the first match (`--to`,
//! `--from`, `--protocol`) apply to every packet; options after a match apply to the packets that
//! it matches, up to the next match.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use fullpipe_link::{Directions, Scope, Words};
use fullpipe_model::scenario::Path;

/// An option: its key, its names for one direction, the name of its value, its help.
struct PathOption {
    key: &'static str,
    up: &'static str,
    down: &'static str,
    value: &'static str,
    help: &'static str,
}

/// clap needs the names of options as static strings.
macro_rules! word {
    ($key:literal, $value:literal, $help:literal) => {
        PathOption {
            key: $key,
            up: concat!("up-", $key),
            down: concat!("down-", $key),
            value: $value,
            help: $help,
        }
    };
}

impl PathOption {
    fn option(&self, way: Directions) -> &'static str {
        match way {
            Directions::Both => self.key,
            Directions::Up => self.up,
            Directions::Down => self.down,
        }
    }

    /// It as clap has it, by one of its names.
    fn argument(&self, id: &'static str, heading: &'static str) -> Arg {
        let argument = Arg::new(id).long(id).value_name(self.value).help(self.help);
        argument.help_heading(heading).action(ArgAction::Append)
    }
}

/// Options that each direction can have.
const WORDS: &[PathOption] = &[
    word!("rate", "RATE", "Rate of IP packets: 100mbit"),
    word!(
        "delay",
        "TIME",
        "Propagation delay one way, jitter and distribution: 25ms, \"100ms 10ms 30% distribution normal\""
    ),
    word!("loss", "SPEC", "Loss: 0.1%, \"1% 25%\", \"gemodel 1% 10% 70% 0.1%\""),
    word!("queue", "SIZE", "Size of the queue: 1bdp, 100kB, 1000packets, 20ms"),
    word!(
        "discipline",
        "SPEC",
        "Queue discipline: droptail, police, \"codel target 5ms\", fq_codel, red, \"mark 50packets\""
    ),
    word!("duplicate", "SPEC", "Share of packets that are duplicated: 1%"),
    word!("corrupt", "SPEC", "Share of packets in which a bit is flipped: 0.1%"),
    word!("reorder", "SPEC", "Share of packets that overtake the delayed ones: \"25% 50% gap 5\""),
    word!("slot", "SPEC", "Slots in which packets leave together: \"5ms 20ms packets 10\""),
    word!(
        "changes",
        "SPEC",
        "Rate and delay that change over time: \"5s rate 1mbit, 10s rate 10mbit\""
    ),
];
/// Options for both directions only.
const RTT: PathOption =
    word!("rtt", "TIME", "Round-trip time: half of it is each direction's delay");
/// Options that select packets.
const MATCHES: &[PathOption] = &[
    word!(
        "to",
        "ENDPOINT",
        "Apply the following options only to packets to this endpoint and answers from it: 10.0.0.5:443"
    ),
    word!("from", "ENDPOINT", "The same for packets from this endpoint and answers to it"),
    word!("protocol", "NAME", "The same for packets of this protocol: tcp, udp"),
];
const SETTINGS: &[PathOption] = &[
    word!("mtu", "BYTES", "Largest IP packet [default: 1500]"),
    word!("seed", "N", "Seed of everything random [default: 1]"),
];
const HEADING: &str = "The path";
const HEADING_WAYS: &str = "The path, one direction (up: outwards; down: back)";

/// A requested path.
#[derive(Debug, Clone)]
pub struct RequestedPath {
    /// The path that is emulated.
    pub path: Path,
    /// The path as it was requested.
    pub words: Words,
}

/// The path as options of a command.
#[derive(Debug, Clone, Default)]
pub struct PathOptions(pub Words);

impl Args for PathOptions {
    fn augment_args(mut command: Command) -> Command {
        for word in [&RTT].into_iter().chain(WORDS).chain(MATCHES).chain(SETTINGS) {
            command = command.arg(word.argument(word.key, HEADING));
        }
        for (way, name) in [(Directions::Up, "outwards"), (Directions::Down, "back")] {
            for word in WORDS {
                let help = format!("--{} for the direction {name} only", word.key);
                command = command.arg(
                    word.argument(word.option(way), HEADING_WAYS).help(help).hide_short_help(true),
                );
            }
        }
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for PathOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut given = Vec::new();
        let mut take = |id: &str, scope: Scope| {
            let values = matches.get_many::<String>(id).into_iter().flatten();
            let indices = matches.indices_of(id).into_iter().flatten();
            given.extend(indices.zip(values).map(|(index, value)| (index, scope, value.clone())));
        };
        take(RTT.key, Scope::Word(Directions::Both, RTT.key));
        MATCHES.iter().for_each(|word| take(word.key, Scope::Match(word.key)));
        SETTINGS.iter().for_each(|word| take(word.key, Scope::Setting(word.key)));
        for word in WORDS {
            for way in [Directions::Both, Directions::Up, Directions::Down] {
                take(word.option(way), Scope::Word(way, word.key));
            }
        }
        given.sort_by_key(|&(index, ..)| index);
        Ok(PathOptions(Words::of(given.into_iter().map(|(_, scope, value)| (scope, value)))))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(arguments: &[&str]) -> Words {
        let command = PathOptions::augment_args(Command::new("link").no_binary_name(true));
        PathOptions::from_arg_matches(&command.try_get_matches_from(arguments).unwrap()).unwrap().0
    }

    #[test]
    fn words_are_a_path() {
        let path =
            words(&["--rate", "1gbit", "--delay", "25ms", "--down-loss", "1%", "--mtu", "1400"])
                .path()
                .unwrap();
        assert_eq!(path.rtt(), "50ms".parse().unwrap());
        assert_eq!(path.to_server.rate, path.to_client.rate);
        assert_ne!(path.to_server.loss, path.to_client.loss);
        assert_eq!(path.mtu.get(), 1400);
        assert_eq!(words(&[]).path().unwrap().rtt().as_nanos(), 0);
        assert_eq!(words(&["--rtt", "17ms"]).path().unwrap().rtt(), "17ms".parse().unwrap());
    }

    #[test]
    fn a_match_begins_a_group_of_its_own() {
        let given = words(&[
            "--delay",
            "5ms",
            "--to",
            "10.0.0.5:443",
            "--protocol",
            "tcp",
            "--delay",
            "17ms",
            "--to",
            "10.0.0.6",
            "--loss",
            "1%",
            "--seed",
            "7",
        ]);
        let matches: Vec<_> = given.groups.iter().map(|group| group.matches.len()).collect();
        assert_eq!(matches, [0, 2, 1]);
        assert_eq!(
            given.groups[1].words,
            [(Directions::Both, "delay".to_string(), "17ms".to_string())]
        );
        assert_eq!(given.settings, [("seed".to_string(), "7".to_string())]);
    }

    #[test]
    fn what_is_set_takes_the_place_of_what_says_the_same() {
        let before = words(&["--rtt", "50ms", "--rate", "1gbit", "--down-rate", "2gbit"]);
        let now = before.with(&words(&["--delay", "10ms", "--up-rate", "5mbit"]));
        let path = now.path().unwrap();
        assert_eq!(path.rtt(), "20ms".parse().unwrap());
        let rate = |text: &str| Some(text.parse::<fullpipe_model::units::Rate>().unwrap());
        assert_eq!(now.groups[0].words.len(), 4);
        let over = now.with(&words(&["--rate", "3mbit"])).path().unwrap();
        assert_eq!(over.to_client.rate, rate("3mbit"));
        assert_eq!(over.to_server.rate, rate("3mbit"));
        assert_eq!(path.to_server.rate, rate("5mbit"));
    }

    #[test]
    fn an_error_names_the_option() {
        let problem =
            |arguments: &[&str]| words(arguments).path().map(drop).unwrap_err().to_string();
        assert!(
            problem(&["--delay", "25x"]).starts_with("`--delay 25x`: "),
            "{}",
            problem(&["--delay", "25x"])
        );
        assert!(problem(&["--seed", "x"]).contains("--seed x"), "{}", problem(&["--seed", "x"]));
        assert!(problem(&["--rtt", "5ms", "--delay", "5ms"]).contains("not both"));
    }
}
