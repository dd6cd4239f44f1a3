//! Prints the intervals of one capture: a help for whoever changes the limits' rules.
#![allow(clippy::print_stdout, reason = "a program for people")]
#[path = "../tests/lab/fates.rs"]
#[allow(dead_code, reason = "it scores no losses")]
mod fates;
#[path = "../tests/lab/score.rs"]
mod score;
fn main() {
    let file = std::env::args_os().nth(1).expect("usage: intervals FILE");
    let edge = score::edge(std::path::Path::new(&file));
    let verdict = edge.verdict.expect("the server sent data");
    for i in verdict.shown() {
        let e = &i.evidence;
        println!(
            "{:>9.3} {:>8.3} {:<34} {:>12} fl {:>10} mean {:>10} win {:>10} rtt {:>9} full {:.2} idle {:.2} rex {}",
            i.start.since(edge.connection.start).as_secs_f64(),
            i.length.as_secs_f64(),
            i.limit().to_string(),
            e.goodput.to_string(),
            e.in_flight.to_string(),
            e.in_flight_mean.map(|m| m.to_string()).unwrap_or_default(),
            e.window.map(|w| w.to_string()).unwrap_or_default(),
            e.rtt.map(|r| r.to_string()).unwrap_or_default(),
            e.window_full,
            e.idle,
            e.retransmissions
        );
    }
}
