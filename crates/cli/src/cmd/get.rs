//! `fullpipe get`: fetches files.

mod diagnose;
mod show;
mod words;
mod write_out;

use crate::failure::{Failure, Kind};
use crate::sentence::Sentence;
use crate::terminal::{print, print_json, remark};
use clap::{Args, ValueEnum};
use diagnose::Diagnosing;
use fullpipe_flow::schema::Version;
use fullpipe_kernel::run::sandbox::Interrupt;
use fullpipe_model::units::{Duration, Rate};
use fullpipe_report::plan::convert::rate_or_curls;
use fullpipe_transfer::{
    Connections, Diagnosis, Family, GetError, GetEvent, GetOptions, GetRequest, LimiterKind, Stop,
    Target, get,
};
use serde::Serialize;
use show::{Bar, Fetched};
use std::path::{Path, PathBuf};
use write_out::Template;

/// Download files: resumed, checked, without bursts, with as many connections as pay.
///
/// Fetches each URL into a file by HTTP/1.1 or HTTP/2 and says what limited it. Until all bytes are
/// there they are in FILE.part, with a record in FILE.part.json: the same command continues after
/// any failure, if the server still has the same file. Flags that curl and wget have mean the same.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe get https://example.org/large.iso
  fullpipe get --sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 URL
  fullpipe get --limit-rate 1M URL                 1 MiB/s, in small steps instead of bursts
  fullpipe get --connections auto URL              more than one where that pays
  fullpipe get -o - URL | tar xz
  fullpipe get -s -w '%{time_total} %{size_download}\\n' -o /dev/null URL
  fullpipe get --json URL | jq '.files[0].limit'")]
pub struct Get {
    /// What to download: http:// or https://.
    #[arg(value_name = "URL", required = true)]
    urls: Vec<String>,
    /// Write to FILE instead of the URL's last part; - is standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write files into DIR.
    #[arg(short = 'P', long, value_name = "DIR", conflicts_with = "output")]
    output_dir: Option<PathBuf>,
    /// Name the file as the URL does (the default, for curl's users).
    #[arg(short = 'O', long, conflicts_with = "output")]
    remote_name: bool,
    /// Follow redirects (the default, for curl's users).
    #[arg(short = 'L', long)]
    location: bool,
    /// Continue a partial file (the default, for wget's users).
    #[arg(short = 'c', long = "continue", conflicts_with = "restart")]
    continues: bool,
    /// Forget what an earlier run has fetched.
    #[arg(long)]
    restart: bool,
    /// Refuse the file unless its SHA-256 is HASH.
    #[arg(long, value_name = "HASH")]
    sha256: Option<String>,
    /// The most that all connections together may receive: 200K and 1M as curl has them (bytes,
    /// powers of 1024), or 10mbit, 1MB/s.
    #[arg(long, value_name = "RATE", value_parser = rate_or_curls)]
    limit_rate: Option<Rate>,
    /// The most that each connection may receive.
    #[arg(long, value_name = "RATE", value_parser = rate_or_curls)]
    limit_rate_each: Option<Rate>,
    /// How the rate is limited.
    #[arg(long, value_name = "KIND", value_enum, default_value_t = Limiter::Smooth)]
    limiter: Limiter,
    /// How many connections share a file: a number, or auto, which adds some while that pays.
    #[arg(long, value_name = "N|auto", default_value = "1", value_parser = connections)]
    connections: Option<u16>,
    /// The most connections that --connections auto may use [default: 8, and 16 while a window
    /// holds each of them].
    #[arg(long, value_name = "N", value_parser = most())]
    max_connections: Option<u16>,
    /// Send a field of HTTP: 'NAME: VALUE'. May be repeated.
    #[arg(short = 'H', long = "header", value_name = "FIELD", value_parser = field)]
    headers: Vec<(String, String)>,
    /// Trust any certificate.
    #[arg(short = 'k', long)]
    insecure: bool,
    /// Trust the certificates in FILE (PEM) instead of the machine's.
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// Use this proxy: http://HOST:PORT, socks5://HOST:PORT or socks5h://HOST:PORT. Default: the
    /// environment's http_proxy, https_proxy, all_proxy.
    #[arg(short = 'x', long, value_name = "PROXY")]
    proxy: Option<String>,
    /// Hosts and domains to reach without a proxy, by commas; * is all. Default: no_proxy.
    #[arg(long, value_name = "LIST")]
    noproxy: Option<String>,
    /// How often in succession to try again after a failure that may pass.
    #[arg(long, value_name = "N", default_value_t = 3)]
    retry: u32,
    /// Try again, too, where nobody listens: a server that is being started.
    #[arg(long)]
    retry_connrefused: bool,
    /// The most redirects to follow.
    #[arg(long, value_name = "N", default_value_t = 20)]
    max_redirs: u32,
    /// How long a file may take.
    #[arg(short, long, value_name = "TIME", value_parser = seconds)]
    max_time: Option<Duration>,
    /// How long a connection may take.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = seconds)]
    connect_timeout: Duration,
    /// How long the server may be silent.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = seconds)]
    read_timeout: Duration,
    /// Use IPv4 alone.
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    ipv4: bool,
    /// Use IPv6 alone.
    #[arg(short = '6', long)]
    ipv6: bool,
    /// Use HTTP/2 for http:// without asking the server.
    #[arg(long, conflicts_with = "http1")]
    http2_prior_knowledge: bool,
    /// Do not use HTTP/2.
    #[arg(long = "http1.1")]
    http1: bool,
    /// Print FORMAT about each file that arrived, as curl does: %{time_total}, %{size_download},
    /// %{http_code} and others, \n and %%.
    #[arg(short, long, value_name = "FORMAT")]
    write_out: Option<Template>,
    /// Print errors alone.
    #[arg(short, long)]
    silent: bool,
    /// Print JSON.
    #[arg(long, conflicts_with_all = ["silent", "write_out"])]
    json: bool,
}

/// Bounds of --max-connections: more is an attack on a server.
fn most() -> clap::builder::RangedI64ValueParser<u16> {
    clap::value_parser!(u16).range(1..=64)
}

/// How the rate is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Limiter {
    /// Small steps on a schedule, and a receive buffer of the rate's size.
    Smooth,
    /// As curl 7 and 8 until 8.16: reads at full speed and sleeps, for comparison.
    Sleep,
}

/// The JSON of `fullpipe get`.
#[derive(Serialize)]
struct GetDocument<'a> {
    schema: Version,
    files: &'a [Fetched],
}

fn seconds(text: &str) -> Result<Duration, Sentence> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number < 1e9 => Ok(Duration::from_secs_f64(number)),
        Ok(_) => Err(not_above_zero(text)),
        Err(_) => match text.parse::<Duration>().map_err(|error| Sentence::from(&error))? {
            Duration::ZERO => Err(not_above_zero(text)),
            time => Ok(time),
        },
    }
}

fn not_above_zero(text: &str) -> Sentence {
    Sentence::new(format!("'{text}' must be above zero"), format!("'{text}' 须大于零"))
}

/// A number, or nothing for `auto`.
fn connections(text: &str) -> Result<u16, Sentence> {
    match text.parse() {
        // Clap keeps an option's value where it is absent; zero stands for auto.
        Err(_) if text == "auto" => Ok(0),
        Ok(count @ 1..=64) => Ok(count),
        _ => Err(Sentence::new(
            format!("'{text}' must be 1 to 64, or auto"),
            format!("'{text}' 须为 1 到 64，或 auto"),
        )),
    }
}

fn field(text: &str) -> Result<(String, String), Sentence> {
    let (name, value) = text.split_once(':').ok_or_else(|| {
        let must = format!("'{text}' must be 'NAME: VALUE'");
        Sentence::new(must, format!("'{text}' 须写作 'NAME: VALUE'"))
    })?;
    Ok((name.trim().into(), value.trim().into()))
}

impl Get {
    pub fn run(self) -> Result<u8, Failure> {
        if self.urls.len() > 1 && self.output.is_some() {
            let message = Sentence::new(
                "get: one -o for several URLs; leave -o out, or name a folder with -P",
                "get：多个 URL 只有一个 -o；请去掉 -o，或用 -P 给出文件夹",
            );
            return Err(Failure::new(Kind::Usage, message));
        }
        let interrupt = Interrupt::on_signals().map_err(|error| Failure::new(Kind::Run, &error))?;
        let stop = Stop::new();
        let options = self.options();
        let (mut all, mut failed) = (Vec::new(), None);
        std::thread::scope(|scope| {
            let (signal, stops) = (interrupt.clone(), stop.clone());
            scope.spawn(move || {
                // An error would mean that the descriptor is gone, and we hold it.
                let _ = signal.wait(None);
                stops.stop();
            });
            for url in &self.urls {
                match self.fetch(url, &options, &stop) {
                    Ok(fetched) => all.push(fetched),
                    Err(failure) if self.urls.len() == 1 || stop.is_stopped() => {
                        failed = Some(failure);
                        break;
                    }
                    Err(failure) => {
                        let code = failure.report();
                        let what = "get: not all URLs arrived";
                        let told = Sentence::new(what, "get：并非所有 URL 都已取得");
                        failed.get_or_insert(Failure::with_code(code, told));
                    }
                }
            }
            // The thread that waits for a signal ends, too.
            interrupt.set();
        });
        if self.json && (failed.is_none() || !all.is_empty()) {
            print_json(&GetDocument { schema: Version::default(), files: &all })?;
        }
        failed.map_or(Ok(0), Err)
    }

    fn options(&self) -> GetOptions {
        let by_environment = of_environment();
        let no_proxy = self.noproxy.as_deref().map(names).unwrap_or(by_environment.no_proxy);
        GetOptions {
            headers: self.headers.clone(),
            redirects: self.max_redirs,
            retries: self.retry,
            retry_refused: self.retry_connrefused,
            connect_timeout: self.connect_timeout,
            read_timeout: self.read_timeout,
            max_time: self.max_time,
            limit_rate: self.limit_rate,
            limit_rate_each: self.limit_rate_each,
            limiter: match self.limiter {
                Limiter::Smooth => LimiterKind::Smooth,
                Limiter::Sleep => LimiterKind::Sleep,
            },
            connections: match self.connections {
                Some(0) | None => Connections::Auto {
                    most: self.max_connections.unwrap_or(MOST),
                    windows: self.max_connections.unwrap_or(MOST_WINDOWS),
                },
                Some(count) => Connections::Fixed(count),
            },
            family: match (self.ipv4, self.ipv6) {
                (true, _) => Family::V4,
                (_, true) => Family::V6,
                _ => Family::Any,
            },
            http_proxy: self.proxy.clone().or(by_environment.http_proxy),
            https_proxy: self.proxy.clone().or(by_environment.https_proxy),
            no_proxy,
            cacert: self.cacert.clone(),
            insecure: self.insecure,
            http2_prior_knowledge: self.http2_prior_knowledge,
            http1_only: self.http1,
            sha256: self.sha256.clone(),
            restart: self.restart,
        }
    }

    fn fetch(&self, url: &str, options: &GetOptions, stop: &Stop) -> Result<Fetched, Failure> {
        let target = match &self.output {
            Some(path) if path == Path::new("-") => Target::Stdout,
            Some(path) => Target::File(path.clone()),
            None => {
                let name = file_name(url);
                Target::File(self.output_dir.clone().unwrap_or_default().join(name))
            }
        };
        let request = GetRequest { url: url.into(), target, options: options.clone() };
        let diagnosis = Diagnosis::default();
        let bar = Bar::new(&request, self.silent || self.json);
        let diagnosing = Diagnosing::start(diagnosis.clone());
        let got = get(&request, &diagnosis, stop, &mut |event| {
            if let GetEvent::Connected { local, peer } = &event {
                diagnosing.look_at(*local, *peer);
            }
            if let (GetEvent::Notice(notice), false) = (&event, self.silent) {
                bar.with_bar_hidden(|| remark(&format!("get: {}", Sentence::from(notice).here())));
            }
            bar.show(&event, diagnosis.get());
        });
        bar.finish();
        diagnosing.end();
        let fetched = Fetched::new(got.map_err(of_get)?, &request, diagnosis.get());
        if !self.silent && !self.json {
            fetched.tell()?;
        }
        if let Some(template) = &self.write_out {
            print(&template.fill(&fetched))?;
        }
        Ok(fetched)
    }
}

/// The most connections of --connections auto: usually, and while a window holds each of them.
const MOST: u16 = 8;
const MOST_WINDOWS: u16 = 16;

/// The usual options, with the proxies that the environment names.
pub(super) fn of_environment() -> GetOptions {
    let any = environment(&["all_proxy", "ALL_PROXY"]);
    // As curl: HTTP_PROXY is not read, because a CGI program's environment has a client's field
    // under that name.
    GetOptions {
        http_proxy: environment(&["http_proxy"]).or_else(|| any.clone()),
        https_proxy: environment(&["https_proxy", "HTTPS_PROXY"]).or(any),
        no_proxy: environment(&["no_proxy", "NO_PROXY"])
            .map(|list| names(&list))
            .unwrap_or_default(),
        ..GetOptions::default()
    }
}

/// The first of the variables that is set; `None` where that is empty.
fn environment(names: &[&str]) -> Option<String> {
    let set = names.iter().find_map(|name| std::env::var(name).ok());
    set.filter(|value| !value.is_empty())
}

/// The names in a list with commas.
fn names(list: &str) -> Vec<String> {
    list.split(',').map(|name| name.trim().into()).collect()
}

pub(super) fn of_get(error: GetError) -> Failure {
    let kind = match &error {
        error if error.is_usage() => Kind::Usage,
        error if error.is_stop() => Kind::Interrupted,
        GetError::Output { source, .. } if source.kind() == std::io::ErrorKind::BrokenPipe => {
            Kind::BrokenPipe
        }
        GetError::Hash { .. } => Kind::Input,
        _ => Kind::Run,
    };
    Failure::new(kind, &error)
}

/// The URL's last part as a file name: without anything that leads elsewhere.
fn file_name(url: &str) -> String {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let path = path.split_once("://").map_or(path, |(_, rest)| rest);
    let name = path.split_once('/').map_or("", |(_, rest)| rest).rsplit('/').next();
    let name: String =
        name.unwrap_or_default().chars().filter(|c| !c.is_control()).take(200).collect();
    if name.trim_matches('.').is_empty() { "index.html".into() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_url_names_its_file() {
        for (url, name) in [
            ("http://a/b/c.iso", "c.iso"),
            ("http://a/b/c.iso?x=/y", "c.iso"),
            ("http://a", "index.html"),
            ("http://a/b/", "index.html"),
            ("http://a/b/..", "index.html"),
        ] {
            assert_eq!(file_name(url), name, "{url}");
        }
    }

    #[test]
    fn a_time_is_in_seconds_unless_it_says_otherwise() {
        assert_eq!(seconds("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(seconds("20ms"), Ok(Duration::from_millis(20)));
        for wrong in ["0", "-1", "NaN", "inf", "0s", "soon"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_url_leads_out_of_the_folder(url in "\\PC*") {
            let name = file_name(&url);
            prop_assert!(!name.contains('/') && name != "." && name != ".." && !name.is_empty());
        }
    }
}
