//! The tools that look at this host, and those that calculate: `why`, `calc` and `tune_plan`.

use super::refusal::ToolRefusal;
use super::work::ToolCall;
use crate::cmd::{calc, tune};
use clap::Parser;
use fullpipe_flow::connection::filter::LiveFilter;
use fullpipe_host::WhyOptions;
use fullpipe_host::tune::ThisMachine;
use fullpipe_host::watch::{Namespaces, Watch};
use fullpipe_model::law::KernelVersion;
use fullpipe_model::tune::{FileSheet, HostSettings, Path, Question, sheet_for};
use fullpipe_model::units::{Bytes, Duration, Probability};
use fullpipe_report::agent::{self, LiveLook};
use serde::Deserialize;
use serde_json::Value;
use std::fmt::Display;
use std::str::FromStr;

/// What `why` is asked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Why {
    filter: Option<String>,
    #[serde(default = "three")]
    seconds: u64,
    #[serde(default)]
    loopback: bool,
}

/// What `calc` is asked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calc {
    rate: String,
    rtt: String,
    loss: Option<String>,
    buffer: Option<String>,
    file: Option<String>,
    kernel: Option<String>,
}

/// What `tune_plan` is asked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TunePlan {
    rate: String,
    rtt: String,
    role: Option<String>,
    connections: Option<u64>,
    memory: Option<String>,
    loss: Option<String>,
    #[serde(default)]
    pauses: bool,
}

/// The same as words of a command line, whose bounds are the same.
#[derive(Parser)]
struct PlanWords {
    #[command(flatten)]
    goal: tune::Goal,
}

fn three() -> u64 {
    3
}

/// How long connections are followed at most.
const SECONDS_MAX: u64 = 30;
/// How many are followed at most.
const MOST: usize = 32;

impl Why {
    pub fn run(self, work: &ToolCall) -> Result<Value, ToolRefusal> {
        if !(1..=SECONDS_MAX).contains(&self.seconds) {
            let hint = "give seconds from 1 to 30";
            return Err(ToolRefusal::new("why", self.seconds, "it is too short or too long", hint));
        }
        let words = self.filter.unwrap_or_default();
        let filter = Some(words.as_str()).filter(|words| !words.is_empty());
        let filter = filter.map(str::parse::<LiveFilter>).transpose().map_err(|cause| {
            let hint = "write for example `peer 192.0.2.7` or `process nginx and port 443`";
            ToolRefusal::new("why", &words, cause, hint)
        })?;
        let filter = LiveFilter::all([filter]);
        let span = Duration::from_secs(self.seconds);
        let loopback = self.loopback || filter.names_connections();
        let options = WhyOptions { loopback, span, most: MOST };
        work.add_total(span.as_micros());
        let found = Watch::open(Namespaces::All).and_then(|mut watch| {
            fullpipe_host::why(&mut watch, &filter, options, work.interrupt(), &mut |passed| {
                work.set_done(passed.as_micros());
            })
        });
        let found = found.map_err(|refused| {
            ToolRefusal::new(
                "why",
                "this host's sockets",
                refused,
                "`fullpipe doctor` says what works",
            )
        })?;
        let connections: Vec<_> = found.followed.iter().map(|one| one.connection.clone()).collect();
        Ok(agent::live(LiveLook {
            total: found.connections,
            busy: found.selected,
            connections: &connections,
            machine: &found.machine,
        }))
    }
}

impl Calc {
    pub fn run(self) -> Result<Value, ToolRefusal> {
        let rate = calc::rate(&self.rate).map_err(|cause| {
            ToolRefusal::new("calc", &self.rate, cause.english(), "write 1gbit, 100mbit or 125MB/s")
        })?;
        let rtt: Duration = quantity(&self.rtt, "write 146ms or 50us")?;
        let loss: Option<Probability> = maybe(self.loss.as_deref(), "write 0.1% or 0.001")?;
        let buffer: Option<Bytes> = maybe(self.buffer.as_deref(), "write 6MiB or 4194304")?;
        let file: Option<Bytes> = maybe(self.file.as_deref(), "write 1GB or 700MiB")?;
        let kernel: Option<KernelVersion> = maybe(self.kernel.as_deref(), "write 6.1 or 6.18")?;
        let question = Question { path: Path::new(rate, rtt), buffer, kernel, loss };
        let settings: Vec<_> = question.kernels().into_iter().map(HostSettings::defaults).collect();
        let sheet = sheet_for(&question, &settings);
        let file = file.map(|amount| FileSheet::new(&sheet, amount));
        Ok(agent::calculation(&sheet, file.as_ref()))
    }
}

fn maybe<T: FromStr<Err: Display>>(
    text: Option<&str>,
    hint: &'static str,
) -> Result<Option<T>, ToolRefusal> {
    text.map(|text| quantity(text, hint)).transpose()
}

fn quantity<T: FromStr<Err: Display>>(text: &str, hint: &'static str) -> Result<T, ToolRefusal> {
    text.parse().map_err(|cause: T::Err| ToolRefusal::new("calc", text, cause, hint))
}

impl TunePlan {
    pub fn run(self) -> Result<Value, ToolRefusal> {
        let words = self.words();
        let hint = "give rate as 1gbit, rtt as 146ms, role as sender, receiver or both, memory as \
                    2GiB, loss as 0.1%";
        let parsed = PlanWords::try_parse_from(&words).map_err(|error| {
            let told = error.to_string();
            let first = told.lines().next().unwrap_or_default().to_owned();
            ToolRefusal::new("tune_plan", words[1..].join(" "), first, hint)
        })?;
        let plan = ThisMachine::to_read()
            .map_err(Into::into)
            .and_then(|mut machine| parsed.goal.plan(&mut machine));
        let plan = plan.map_err(|failure| {
            let hint = "`fullpipe tune status` and `fullpipe doctor` say what may be read here";
            ToolRefusal::new("tune_plan", "this host's settings", failure.message().english(), hint)
        })?;
        Ok(agent::host_plan(&plan))
    }

    /// Each value behind its option and `=`, so that none can be an option itself.
    fn words(&self) -> Vec<String> {
        let mut words = vec![String::from("tune plan")];
        let connections = self.connections.map(|count| count.to_string());
        let given = [
            ("rate", Some(&self.rate)),
            ("rtt", Some(&self.rtt)),
            ("role", self.role.as_ref()),
            ("connections", connections.as_ref()),
            ("memory", self.memory.as_ref()),
            ("loss", self.loss.as_ref()),
        ];
        let given = given.into_iter().filter_map(|(name, value)| Some((name, value?)));
        words.extend(given.map(|(name, value)| format!("--{name}={value}")));
        words.extend(self.pauses.then(|| "--pauses".to_owned()));
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn no_value_is_an_option() {
        let plan: TunePlan = serde_json::from_value(json!({
            "rate": "1gbit --from=/etc/passwd", "rtt": "10ms",
        }))
        .unwrap();
        let refused = plan.run().unwrap_err().to_json().to_string();
        assert!(refused.contains("tune_plan"), "{refused}");
        let plan: Result<TunePlan, _> =
            serde_json::from_value(json!({"rate": "1gbit", "rtt": "1ms", "from": "/etc/passwd"}));
        assert!(plan.is_err());
    }

    #[test]
    fn a_calculation_is_that_of_the_laws() {
        let ask: Calc = serde_json::from_value(json!({"rate": "1gbit", "rtt": "146ms"})).unwrap();
        let told = ask.run().unwrap();
        // 1 Gbit/s for 146 ms.
        assert_eq!(told["bdp_bytes"], 18_250_000);
        for (rate, rtt) in [("1", "x"), ("", ""), ("900 Tbit", "1ms")] {
            let ask: Calc = serde_json::from_value(json!({"rate": rate, "rtt": rtt})).unwrap();
            assert!(ask.run().is_err(), "{rate} {rtt}");
        }
    }
}
