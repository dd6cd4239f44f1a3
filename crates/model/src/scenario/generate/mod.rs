//! Random scenarios whose limit is known. A cause is drawn first, then a path, two hosts and a
//! transfer for which that cause is the limit. So all causes are equally frequent, whatever the
//! shape of the parameter space.
//!
//! Scenario `index` of a seed does not depend on which other scenarios are generated, so sets can
//! grow.
//!
//! ```
//! use fullpipe_model::scenario::{File, generate};
//! let generated = generate(7, 0);
//! assert_eq!(generated, generate(7, 0));
//! let scenarios = File::parse(&generated.text).unwrap().scenarios("x").unwrap();
//! assert_eq!(scenarios[0].truth.unwrap().cause, generated.cause);
//! ```

mod addition;
mod binding;
mod conversation;
mod dice;
mod draft;
mod nuisance;
mod variation;
mod varied;
mod world;

use super::Cause;
pub use conversation::{Conversation, Hindrance, conversation};
use dice::Dice;
use draft::Draft;
use variation::Variation;
pub use world::{World, world};

/// Distinguishes the random stream of additions from that of the scenario.
const ADDITIONS: u64 = 0x5851_f42d_4c95_7f2d;

/// A generated scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generated {
    /// Name of the experiment, unique in its set: `truth/7/0042-loss`.
    pub name: String,
    /// The cause that was built in, for all of the time or most of it.
    pub cause: Cause,
    /// The cause that was built in for the rest of the time.
    pub also: Option<Cause>,
    /// The scenario file.
    pub text: String,
    /// The same scenario file with only its cause relaxed. If the cause was the limit, this
    /// transfer is faster.
    pub relaxed: String,
}

impl Generated {
    /// Its file name: `0042-loss.toml`.
    pub fn file_name(&self) -> String {
        let name = self.name.rsplit('/').next().unwrap_or(&self.name);
        format!("{name}.toml")
    }
}

/// Scenario `index` of set `seed`.
pub fn generate(seed: u64, index: u32) -> Generated {
    let mut dice = Dice::new(seed, index);
    let cause = *dice.pick(&Cause::ALL);
    let variation = Variation::draw(cause, &mut Dice::new(!seed, index));
    let mut draft = Draft::new(cause, variation);
    draft.seconds_least = variation.seconds_least();
    binding::draw(&mut draft, &mut dice);
    nuisance::draw(&mut draft, &mut dice);
    addition::draw(&mut draft, &mut Dice::new(seed ^ ADDITIONS, index));
    let (cause, also) = (draft.cause, draft.also);
    let name = format!("truth/{seed}/{index:04}-{}", cause.name());
    draft.set(&["name"], name.as_str());
    let (text, relaxed) = draft.into_toml();
    let built =
        format!("# Scenario {index} of `fullpipe lab generate --seed {seed}`, built so that");
    Generated {
        text: format!(
            "{built} {} limits it.
{text}",
            cause.name()
        ),
        relaxed: format!(
            "{built} {} limits it, without that.
{relaxed}",
            cause.name()
        ),
        name,
        cause,
        also,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{File, Scenario};
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// The one scenario of a file.
    pub fn read(text: &str) -> Scenario {
        let file = File::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let rows = file.scenarios("fallback");
        let rows = rows.unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(rows.len(), 1);
        rows.into_iter().next().unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn every_scenario_is_one_that_runs(seed: u64, index in 0_u32..10_000) {
            let generated = generate(seed, index);
            let scenario = read(&generated.text);
            prop_assert_eq!(&scenario.name, &generated.name);
            prop_assert_ne!(&read(&generated.relaxed), &scenario);
            prop_assert_eq!(scenario.truth.map(|truth| truth.cause), Some(generated.cause));
            let rate = scenario.path.to_client.rate.unwrap().bits_per_sec();
            prop_assert!((256_000..=1_000_000_000).contains(&rate), "{}", rate);
            let rtt = scenario.path.rtt().as_micros();
            prop_assert!((990..=600_000).contains(&rtt), "{}", rtt);
            let size = scenario.transfer.size.get();
            let ends = size < 1 << 40 || scenario.transfer.duration.as_millis_f64() < 150_000.0;
            prop_assert!(ends, "{}", generated.text);
        }

        #[test]
        fn the_same_numbers_give_the_same_scenario(seed: u64, index: u32) {
            prop_assert_eq!(generate(seed, index), generate(seed, index));
        }
    }

    #[test]
    fn causes_are_even_and_parameters_are_wide() {
        let mut causes: BTreeMap<Cause, u32> = BTreeMap::new();
        let mut seen: BTreeMap<String, u32> = BTreeMap::new();
        for index in 0..1600 {
            let generated = generate(1, index);
            *causes.entry(generated.cause).or_default() += 1;
            let scenario = read(&generated.text);
            let server = &scenario.hosts.server;
            let words = [
                server.congestion_control.clone().unwrap(),
                format!("discipline {}", scenario.path.to_client.discipline.name()),
                format!("{:?}", scenario.transfer.server),
                format!("{:?}", scenario.transfer.client),
                format!("mtu {}", scenario.path.mtu),
                format!("kernel {:?}", scenario.kernel),
            ];
            let transfer = &scenario.transfer;
            let additions = [
                ("upload", transfer.upload),
                ("long polling", transfer.answer_after.is_some()),
                ("keepalive", transfer.keepalive.is_some()),
                ("outage", generated.text.contains("ms down")),
            ];
            let words = words.into_iter().chain(
                additions.into_iter().filter(|(_, is)| *is).map(|(name, _)| name.to_owned()),
            );
            for word in words.chain(server.sysctl.keys().cloned()) {
                *seen.entry(word).or_default() += 1;
            }
        }
        assert!(Cause::ALL.iter().all(|cause| (120..=290).contains(&causes[cause])), "{causes:?}");
        let kinds = [
            "cubic",
            "reno",
            "bbr",
            "discipline droptail",
            "discipline codel",
            "discipline fq_codel",
            "discipline red",
            "discipline police",
            "Nginx",
            "Python",
            "Curl",
            "Iperf3",
            "upload",
            "long polling",
            "keepalive",
            "outage",
            "net.ipv4.tcp_sack",
            "net.ipv4.tcp_timestamps",
            "net.ipv4.tcp_wmem",
        ];
        for kind in kinds {
            assert!(seen.get(kind).is_some_and(|count| *count >= 10), "{kind}: {seen:?}");
        }
    }
}
