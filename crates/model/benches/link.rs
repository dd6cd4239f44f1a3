//! What the link's model costs a packet: `cargo bench -p fullpipe-model`.
//!
//! A full-size packet arrives each time one has been serialised at 1 Gbit/s, and 25 ms of packets
//! are on the wire. The best of several rounds is shown, as other work on the machine only adds to
//! it.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a bench measures wall time and shows it"
)]

use fullpipe_model::link::{Config, Event, Link, Packet};
use fullpipe_model::units::{Bytes, Duration, Instant};
use std::hint::black_box;

const PACKETS: u64 = 2_000_000;
const ROUNDS: u32 = 5;

fn round(config: &Config) -> f64 {
    let mut link: Link<(u64, u16)> = Link::new(config, Duration::from_millis(50), 1);
    let (mut now, mut out) = (0u64, 0u64);
    let begin = std::time::Instant::now();
    for number in 0..PACKETS {
        now += 12_000;
        let instant = Instant::from_nanos(now);
        let fate = link.push((number, 0), Packet::from(Bytes::new(1500)), instant);
        let _ = black_box(fate);
        while link.poll_at().is_some_and(|at| at <= instant) {
            match link.poll(instant) {
                Some(Event::Departure(departure)) => out += departure.item.0 & 1,
                Some(Event::Drop(_)) => {}
                None => break,
            }
        }
    }
    black_box(out);
    begin.elapsed().as_nanos() as f64 / PACKETS as f64
}

fn main() {
    let plain = |loss: &str| Config {
        delay: "25ms".parse().unwrap(),
        rate: Some("1gbit".parse().unwrap()),
        loss: loss.parse().unwrap(),
        ..Config::default()
    };
    let fancy = |delay: &str, discipline: &str| Config {
        delay: delay.parse().unwrap(),
        discipline: discipline.parse().unwrap(),
        ..plain("0.1%")
    };
    for (name, config) in [
        ("delay, rate", plain("0%")),
        ("delay, rate, loss", plain("0.1%")),
        ("and jitter", fancy("25ms 1ms distribution normal", "droptail")),
        ("and codel", fancy("25ms", "codel")),
        ("and fq_codel", fancy("25ms", "fq_codel")),
        ("and red", fancy("25ms", "red")),
    ] {
        let best = (0..ROUNDS).map(|_| round(&config)).fold(f64::INFINITY, f64::min);
        println!("{name:20} {best:6.1} ns a packet");
    }
}
