//! How fast the two ends are on this machine, and against real programs.
//!
//! ```text
//! loopback                 both ends in one process, each on its thread
//! loopback serve [DIR]     the server alone, until its standard input ends; prints its address
//! loopback get URL...      the client alone
//! ```
//!
//! Each transfer prints its rate and the CPU time per gigabyte of the thread at that end.
#![allow(clippy::print_stdout, reason = "a benchmark prints")]

use fullpipe_transfer::{
    DownloadOptions, DownloadRequest, Resource, Server, ServerOptions, Stop, download,
};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use std::error::Error;
use std::io::Read;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        None => both(),
        Some("serve") => serve(arguments.get(1)),
        Some("get") => arguments[1..].iter().try_for_each(|url| get(url)),
        Some(other) => Err(format!("unknown argument '{other}'").into()),
    }
}

fn both() -> Result<(), Box<dyn Error>> {
    let server = Server::bind(ServerOptions::default())?;
    let url = format!("http://{}/bytes/8GiB", server.local_addr());
    let stop = Stop::new();
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| -> Result<_, String> {
            let before = cpu_seconds();
            let served = server.run(&stop).map_err(|error| error.to_string())?;
            Ok((served, cpu_seconds() - before))
        });
        for _ in 0..3 {
            get(&url)?;
        }
        stop.stop();
        let (served, cpu) = serving.join().expect("the server does not panic")?;
        println!("server: {:.3} s CPU per GB", cpu / (served.body.as_f64() / 1e9));
        Ok(())
    })
}

fn serve(directory: Option<&String>) -> Result<(), Box<dyn Error>> {
    let server =
        Server::bind(ServerOptions { directory: directory.map(Into::into), ..Default::default() })?;
    println!("http://{}", server.local_addr());
    let stop = Stop::new();
    let before = cpu_seconds();
    let served = std::thread::scope(|scope| {
        scope.spawn(|| {
            let _ = std::io::stdin().read(&mut [0]);
            stop.stop();
        });
        server.run(&stop)
    })?;
    println!(
        "{served:?}, {:.3} s CPU per GB",
        (cpu_seconds() - before) / (served.body.as_f64() / 1e9)
    );
    Ok(())
}

fn get(url: &str) -> Result<(), Box<dyn Error>> {
    let before = cpu_seconds();
    let (server, path) = url
        .strip_prefix("http://")
        .and_then(|rest| rest.split_once('/'))
        .ok_or("a URL is http://ADDRESS:PORT/PATH")?;
    let resource = Resource { server: server.parse()?, path: format!("/{path}") };
    let request = DownloadRequest { resource, options: DownloadOptions::default() };
    let got = download(&request, &Stop::new(), &mut |_| {})?;
    let rate = got.goodput().ok_or("too short to have a rate")?;
    println!(
        "client: {} at {rate}, {:.3} s CPU per GB",
        got.body,
        (cpu_seconds() - before) / (got.body.as_f64() / 1e9)
    );
    Ok(())
}

/// CPU time of the calling thread.
fn cpu_seconds() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("the thread exists");
    (usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6
}
