//! The truth of a run, where its kernel counts why sockets do not send: see
//! [`fullpipe_flow::limit::truth`].

use crate::hosts::CLIENT_ADDRESS;
use crate::path_for::path_for;
use fullpipe_flow::capture::Packet;
use fullpipe_flow::limit::truth::{Knowledge, LinkUse, TruthInterval, intervals};
use fullpipe_model::link::{Changes, Config, Discipline, Overhead, Steps};
use fullpipe_model::observe::Sample;
use fullpipe_model::scenario::Scenario;
use fullpipe_model::units::{Bytes, Duration, Instant, Rate};
use std::net::IpAddr;

/// Where an IPv4 header has its destination.
const DESTINATION: std::ops::Range<usize> = 16..20;

/// What the link carried to the client, from the packets that reached the client's edge.
#[derive(Debug)]
pub(crate) struct Carried {
    /// The rate from each of these times on, since the link's start; `None`: no serialisation time.
    rates: Vec<(Duration, Option<Rate>)>,
    overhead: Overhead,
    /// When the link started, on the capture's clock.
    start: Instant,
    /// From the capture's clock to that of the samples.
    epoch: Duration,
    link: LinkUse,
}

impl Carried {
    /// On the link of `scenario`, which started at `start` on the capture's clock, `epoch` behind
    /// that of the samples; `None` where the link's rate at a time is not known.
    pub(crate) fn new(scenario: &Scenario, start: Instant, epoch: Duration) -> Option<Carried> {
        let config = path_for(scenario).to_client;
        let (rates, overhead) = (rates(config)?, config.overhead);
        Some(Carried { rates, overhead, start, epoch, link: LinkUse::default() })
    }

    /// Takes the next packet at the client's edge.
    pub(crate) fn see(&mut self, packet: &Packet<'_>) {
        let IpAddr::V4(client) = CLIENT_ADDRESS else { return };
        if packet.data.get(DESTINATION) != Some(client.octets().as_slice()) {
            return;
        }
        let since = packet.at.since(self.start);
        let holds = self.rates.partition_point(|(from, _)| *from <= since).max(1) - 1;
        let Some(rate) = self.rates[holds].1 else { return };
        let size = self.overhead.on_wire(Bytes::new(packet.original_length as u64));
        let time = rate.time_for(size).unwrap_or_default();
        self.link.push(packet.at.saturating_sub(self.epoch), time);
    }
}

/// The rates of a link, each with the time from which on it holds; `None` where it also stands
/// still, starts again, or follows a trace.
fn rates(config: &Config) -> Option<Vec<(Duration, Option<Rate>)>> {
    let mut rates = vec![(Duration::ZERO, config.rate)];
    match &config.changes {
        None => {}
        Some(Changes::Steps(Steps { steps, every: None })) => {
            for step in steps {
                if step.up.is_some() {
                    return None;
                }
                rates.extend(step.rate.map(|rate| (step.at, Some(rate))));
            }
        }
        Some(_) => return None,
    }
    Some(rates)
}

/// The truth of a run of `scenario`; empty where the kernel did not count. `epoch` is what is added
/// to the samples' clock to have the time since 1970.
pub(crate) fn of_run(
    scenario: &Scenario,
    sender: &[Sample],
    receiver: &[Sample],
    carried: Option<&Carried>,
    epoch: Duration,
) -> Vec<TruthInterval> {
    let path = path_for(scenario);
    let is_policed =
        path.to_client.discipline == Discipline::Police && path.to_client.loss.is_never();
    let link = carried.map(|carried| &carried.link);
    let rtt = path.rtt();
    intervals(&Knowledge { sender, receiver, link, rtt, is_policed, epoch })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_flow::capture::LinkType;
    use fullpipe_model::scenario::File;

    fn scenario(link: &str) -> Scenario {
        let text = format!("[link]\n{link}");
        File::parse(&text).unwrap().scenarios("test").unwrap().remove(0)
    }

    #[test]
    fn what_reaches_the_client_is_counted_at_the_rate_of_its_time() {
        let second = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        let scenario = scenario("rate = \"12kbit\"\nto_client.changes = \"10s rate 6kbit\"");
        let epoch = Duration::from_secs(100);
        let mut carried = Carried::new(&scenario, second(100), epoch).unwrap();
        let mut header = [0; 20];
        for (at, destination) in
            [(101, [10, 77, 0, 2]), (102, [10, 77, 0, 1]), (115, [10, 77, 0, 2])]
        {
            header[DESTINATION].copy_from_slice(&destination);
            let (data, original_length) = (&header[..], 1500);
            let at = second(at);
            carried.see(&Packet { at, link_type: LinkType::RAW, data, original_length });
        }
        // 12 kbit are a second of 12 kbit/s, and two of 6 kbit/s.
        let busy = |from, to| carried.link.busy(second(from), second(to));
        assert_eq!([busy(0, 1), busy(1, 2), busy(13, 15), busy(12, 16)], [1.0, 0.0, 1.0, 0.5]);
    }

    #[test]
    fn a_link_whose_rate_is_not_known_is_not_counted() {
        for changes in ["1s down, 2s up", "1s rate 1mbit, every 2s", "outage 200ms every 15s"] {
            let scenario =
                scenario(&format!("rate = \"10mbit\"\nto_client.changes = \"{changes}\""));
            assert!(Carried::new(&scenario, Instant::ZERO, Duration::ZERO).is_none(), "{changes}");
        }
    }
}
