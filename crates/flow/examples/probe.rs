#![allow(missing_docs, dead_code, clippy::all, clippy::pedantic, clippy::print_stdout, clippy::unwrap_used)]
#[path = "../tests/limits/sim.rs"]
mod sim;
#[path = "../tests/trace/mod.rs"]
mod trace;
use fullpipe_flow::capture::{self, Unpack};
use fullpipe_flow::{Analyzer, Config};
use sim::{Point, Transfer};
use std::io::Write;
fn main() {
    let mut args = std::env::args().skip(1);
    match args.next().as_deref() {
        Some("gen") => generate(&args.next().unwrap()),
        _ => args.for_each(|file| show(&file)),
    }
}
fn show(file: &str) {
    let mut analyzer = Analyzer::new(Config::default());
    let opened = std::fs::File::open(file).unwrap();
    let _ = capture::read(Unpack::new(opened).unwrap(), |packet| { analyzer.push_packet(&packet); });
    let connections = analyzer.finish().connections;
    let Some(one) = connections.into_iter().max_by_key(|one| one.connection.server_to_client.payload.get() + one.connection.client_to_server.payload.get()) else { return };
    let Some(d) = one.bulk() else { println!("{file} none"); return };
    let v = &d.verdict;
    let f = d.findings();
    let shares: Vec<String> = v.shares.iter().map(|c| format!("{:?} {:.2}", c.limit, c.share)).collect();
    let why: Vec<String> = v.reasons().iter().map(|r| format!("{} {:.2}", r.name, r.weight)).collect();
    println!("{file} {} {:.2} | {} | {} | {:?} {:?}", v.limited_by().limit, v.confidence, shares.join(", "), f.first().map_or("", |f| f.claim.as_str()), why, one.sub_causes(one.connection.bulk()).map(|c| c.name()).collect::<Vec<_>>());
    if std::env::var("FP_INTERVALS").is_ok() {
        for i in &v.intervals {
            let e = &i.evidence;
            println!("  {} {} {} fl {} mean {:?} win {:?} rtt {:?} full {:.2} idle {:.2} re {}", i.limit(), i.length, e.goodput, e.in_flight, e.in_flight_mean.map(|b| b.get()), e.window.map(|w| w.bytes().get()), e.rtt.map(|r| r.as_micros()), e.window_full, e.idle, e.retransmissions);
        }
    }
}
fn generate(dir: &str) {
    let mut cases: Vec<(String, Transfer)> = Vec::new();
    for mbit in [10u64, 50, 100, 200, 300, 500, 1000, 2500] {
        for ms in [1u64, 10, 50, 200] {
            let rate = mbit * 125_000;
            let bdp = rate * ms / 1000;
            if bdp > 7_000_000 { continue; }
            let queue = bdp.max(96_000);
            let rtt = ms * 1_000_000;
            let bytes = (rate as f64 * if mbit >= 1000 { 1.5 } else { 3.0 }) as u64 + 4 * bdp;
            let base = Transfer { rate, rtt, queue, bytes, receive_buffer: 16 * bdp + 4_000_000, send_buffer: 16 * bdp + 8_000_000, ..Transfer::default() };
            let mut add = |name: &str, t: Transfer| cases.push((format!("{name}-{mbit}m-{ms}ms"), t));
            add("link-win0.9q", Transfer { receive_buffer: bdp + queue * 9 / 10, ..base.clone() });
            add("link-win0.3q", Transfer { receive_buffer: bdp + queue * 3 / 10, ..base.clone() });
            add("link-buf0.8q", Transfer { send_buffer: bdp + queue * 8 / 10, ..base.clone() });
            if mbit <= 500 { add("link-plain", base.clone()); }
            if bdp >= 100_000 {
                if mbit <= 300 { for (q, n) in [(10, "0.1"), (25, "0.25"), (50, "0.5")] {
                    add(&format!("shallow{n}"), Transfer { queue: (bdp * q / 100).max(15_000), bytes: bytes + rate * 2, ..base.clone() });
                } }
                add("receive_window0.8", Transfer { receive_buffer: bdp * 8 / 10, ..base.clone() });
                add("receive_window0.3", Transfer { receive_buffer: bdp * 3 / 10, bytes: bytes / 2, ..base.clone() });
                add("receiver_application0.8", Transfer { receive_buffer: bdp * 3, read_rate: rate * 8 / 10, ..base.clone() });
                add("receiver_application0.4", Transfer { receive_buffer: bdp * 3 / 2, read_rate: rate * 4 / 10, bytes: bytes / 2, ..base.clone() });
                add("send_buffer0.7", Transfer { send_buffer: bdp * 7 / 10, ..base.clone() });
                add("send_buffer0.3", Transfer { send_buffer: bdp * 3 / 10, bytes: bytes / 2, ..base.clone() });
                add("sender_application0.8", Transfer { write: (rate / 125, 10_000_000), ..base.clone() });
            }
        }
    }
    for (name, transfer) in cases {
        for (point, end) in [(Point::Sender, "server"), (Point::Receiver, "client")] {
            let mut file = std::io::BufWriter::new(std::fs::File::create(format!("{dir}/{name}.{end}.pcap")).unwrap());
            file.write_all(&0xa1b2_3c4du32.to_le_bytes()).unwrap();
            for v in [2u16, 4] { file.write_all(&v.to_le_bytes()).unwrap(); }
            for v in [0u32, 0, 96, 101] { file.write_all(&v.to_le_bytes()).unwrap(); }
            for line in sim::run(&transfer, point) {
                let p = line.packet();
                let n = line.at.as_nanos();
                let cap = p.len().min(96);
                for v in [(n / 1_000_000_000) as u32, (n % 1_000_000_000) as u32, cap as u32, p.len() as u32] { file.write_all(&v.to_le_bytes()).unwrap(); }
                file.write_all(&p[..cap]).unwrap();
            }
        }
    }
}
