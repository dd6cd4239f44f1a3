//! The most that a cloud gives one connection: delivery at a flat rate, without loss and without a
//! queue that the round trip would show.

use fullpipe_flow::diagnosis::Explanation;
use fullpipe_flow::limit::Limit;
use fullpipe_flow::live::Answer;
use fullpipe_model::units::Rate;
use std::fs;

/// A published bound on one connection.
struct Cap {
    rate: Rate,
    claim: &'static str,
}

const fn gbit(count: u64) -> Rate {
    Rate::from_bits_per_sec(count * 1_000_000_000)
}

/// Source: Amazon EC2 User Guide, "Amazon EC2 instance network bandwidth", section on single-flow
/// traffic (read 2026-11).
const AMAZON: [Cap; 3] = [
    Cap {
        rate: gbit(5),
        claim: "Amazon EC2 gives one connection 5 Gbit/s outside of a cluster placement group",
    },
    Cap {
        rate: gbit(10),
        claim: "Amazon EC2 gives one connection 10 Gbit/s within a cluster placement group",
    },
    Cap { rate: gbit(25), claim: "Amazon EC2 gives one connection 25 Gbit/s with ENA Express" },
];

/// A cap counts the bits of the wire; payload is up to a tenth below it.
const OF_CAP: std::ops::RangeInclusive<f64> = 0.88..=1.0;
/// The vendor's name in the machine's firmware.
const VENDOR: &str = "/sys/class/dmi/id/sys_vendor";

/// The cap that a connection runs into, on a machine of a cloud that publishes one.
pub(crate) fn flow_cap(answer: &Answer) -> Option<Explanation> {
    of(&fs::read_to_string(VENDOR).unwrap_or_default(), answer.limit, answer.goodput)
}

fn of(vendor: &str, limit: Limit, goodput: Rate) -> Option<Explanation> {
    if !vendor.starts_with("Amazon") || limit != Limit::Link {
        return None;
    }
    let cap = AMAZON.iter().find(|cap| OF_CAP.contains(&goodput.fraction_of(cap.rate)))?;
    Some(Explanation {
        name: "cloud_flow_cap",
        claim: format!("{}, and this one carries {goodput}", cap.claim),
        remedy: "use several connections (`fullpipe get --connections`, several streams), Multipath TCP, or hosts in \
                 one placement group",
        count: None,
        time: None,
        rate: Some(cap.rate),
        amount: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cap_is_named_only_where_it_applies() {
        let rate = |mbit: u64| Rate::from_bits_per_sec(mbit * 1_000_000);
        let found = of("Amazon EC2\n", Limit::Link, rate(4_700)).unwrap();
        assert_eq!((found.name, found.rate), ("cloud_flow_cap", Some(gbit(5))));
        for (vendor, limit, mbit) in [
            ("Amazon EC2\n", Limit::Link, 3_000),
            ("Amazon EC2\n", Limit::SendBuffer, 4_700),
            ("QEMU\n", Limit::Link, 4_700),
        ] {
            assert_eq!(of(vendor, limit, rate(mbit)), None, "{vendor} {limit} {mbit}");
        }
    }
}
