//! Analyses one capture with one thread and says what was found: `analyze_file FILE`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

use fullpipe_flow::connection::Label;
use fullpipe_flow::{Analysis, Analyzer, Config, capture};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(name) = arguments.next() else {
        eprintln!("usage: analyze_file FILE");
        std::process::exit(2);
    };
    let analysis = analyze(&name);
    println!("{} packets, {} connections", analysis.counts.packets, analysis.connections.len());
    for label in Label::ALL {
        let counts = analysis.connections.iter().map(|one| {
            let c = &one.connection;
            c.client_to_server.labels.of(label) + c.server_to_client.labels.of(label)
        });
        println!("{:24} {}", label.name(), counts.sum::<u64>());
    }
}

fn analyze(name: &str) -> Analysis {
    let mut analyzer = Analyzer::new(Config::default());
    let file = std::fs::File::open(name).unwrap_or_else(|error| panic!("{name}: {error}"));
    let end = capture::read(file, |packet| {
        analyzer.push_packet(&packet);
    });
    if let Err(error) = end {
        eprintln!("{name}: {error}");
    }
    analyzer.finish()
}
