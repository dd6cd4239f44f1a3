//! The calculator's questions: what a path needs, what bounds a transfer on it, and the curve over
//! one of the quantities.

use fullpipe_model::law::window::{Windows, rate};
use fullpipe_model::law::{mathis, send_buffer};
use fullpipe_model::tune::{Path, Question as SheetQuestion, Sheet, sheet};
use fullpipe_model::units::{Bytes, Duration, Probability, Rate, Window, column};
use serde::{Deserialize, Serialize};
use std::io::Read;

/// Points of a curve: one for each few pixels of a graph.
const POINTS: u32 = 160;
/// How far to both sides of the present value a curve reaches.
const REACH: f64 = 30.0;

/// A question of the calculator.
#[derive(Debug, Clone, Copy, Deserialize)]
struct LawQuestion {
    /// The bottleneck's rate.
    #[serde(rename = "rate_bps", with = "column::rate")]
    rate: Rate,
    /// The round trip without queues.
    #[serde(rename = "rtt_us", with = "column::micros")]
    rtt: Duration,
    /// The receive window of each connection; absent: it never limits.
    #[serde(default, rename = "window_bytes", with = "column::bytes_optional")]
    window: Option<Bytes>,
    /// The send buffer of each connection; absent: it never limits.
    #[serde(default, rename = "send_buffer_bytes", with = "column::bytes_optional")]
    send_buffer: Option<Bytes>,
    /// Random loss, 0 to 1.
    #[serde(default)]
    loss: f64,
    /// Connections that share the path.
    #[serde(default)]
    connections: u32,
    /// The quantity on the curve's axis.
    over: Axis,
}

/// A quantity that a slider moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Axis {
    Rate,
    Rtt,
    Window,
    SendBuffer,
    Loss,
    Connections,
}

/// The answer.
#[derive(Debug, Serialize)]
struct LawAnswer {
    /// Goodput of all connections together.
    #[serde(rename = "goodput_bps", with = "column::rate")]
    goodput: Rate,
    /// What bounds it.
    limit: String,
    /// What the path needs, by `fullpipe calc`.
    needs: Sheet,
    /// Goodput over the axis.
    curve: Vec<Point>,
}

/// A point of the curve.
#[derive(Debug, Serialize)]
struct Point {
    /// The quantity: µs, bytes, bit/s, a share or a number.
    x: f64,
    #[serde(rename = "goodput_bps", with = "column::rate")]
    goodput: Rate,
    limit: String,
}

/// Answers a question given as JSON.
///
/// # Errors
/// The question is not one: a sentence with the cause.
pub fn answer(question: impl Read) -> Result<String, String> {
    let question: LawQuestion = serde_json::from_reader(question)
        .map_err(|cause| format!("read the calculator's question: {cause}"))?;
    let (goodput, limit) = question.bound();
    let needs = SheetQuestion {
        path: Path::new(question.rate, question.rtt),
        buffer: question.window,
        kernel: None,
        loss: None,
    };
    let answer = LawAnswer { goodput, limit, needs: sheet(&needs), curve: question.curve() };
    serde_json::to_string(&answer).map_err(|cause| cause.to_string())
}

impl LawQuestion {
    /// Goodput of all connections, and what bounds it.
    fn bound(self) -> (Rate, String) {
        let path = Path::new(self.rate, self.rtt);
        let (link, mss) = (path.framing.goodput(self.rate), path.framing.mss());
        let loss = Probability::new(self.loss).unwrap_or(Probability::ZERO);
        let windows = Windows {
            receive: self.window.map_or(Window::UNLIMITED, Window::new),
            send: self.send_buffer.map_or(Window::UNLIMITED, send_buffer::window),
            congestion: mathis::congestion_window(mss, loss),
        };
        let connections = u64::from(self.connections.max(1));
        let share = Rate::from_bits_per_sec(link.bits_per_sec() / connections);
        let (one, limit) = rate(windows, self.rtt, share);
        (Rate::from_bits_per_sec(one.bits_per_sec().saturating_mul(connections)), limit.to_string())
    }

    /// Goodput over the axis, on a logarithmic scale around the present value.
    fn curve(self) -> Vec<Point> {
        let (from, to) = self.range();
        let ratio = (to / from).max(1.0);
        let mut steps: Vec<f64> = (0..POINTS)
            .map(|step| from * ratio.powf(f64::from(step) / f64::from(POINTS - 1)))
            .collect();
        if self.over == Axis::Connections {
            steps = (1..=64).map(f64::from).collect();
        }
        steps
            .into_iter()
            .map(|x| {
                let (goodput, limit) = self.with(x).bound();
                Point { x, goodput, limit }
            })
            .collect()
    }

    fn range(self) -> (f64, f64) {
        let around = |present: f64, least: f64, most: f64| {
            ((present / REACH).clamp(least, most), (present * REACH).clamp(least, most))
        };
        let bdp = fullpipe_model::law::bdp::bdp(self.rate, self.rtt).as_f64();
        match self.over {
            Axis::Rate => around(self.rate.as_f64(), 1e4, 1e12),
            Axis::Rtt => around(self.rtt.as_secs_f64() * 1e6, 10.0, 1e7),
            Axis::Window => around(self.window.map_or(bdp, Bytes::as_f64), 1e3, 1e11),
            Axis::SendBuffer => around(self.send_buffer.map_or(bdp, Bytes::as_f64), 1e3, 1e11),
            Axis::Loss => (1e-6, 0.1),
            Axis::Connections => (1.0, 64.0),
        }
    }

    /// The question with another value on the axis.
    fn with(self, x: f64) -> LawQuestion {
        match self.over {
            Axis::Rate => LawQuestion { rate: Rate::from_bits_per_sec_f64(x), ..self },
            Axis::Rtt => LawQuestion { rtt: Duration::from_secs_f64(x / 1e6), ..self },
            Axis::Window => LawQuestion { window: Some(Bytes::from_f64(x)), ..self },
            Axis::SendBuffer => LawQuestion { send_buffer: Some(Bytes::from_f64(x)), ..self },
            Axis::Loss => LawQuestion { loss: x, ..self },
            Axis::Connections => LawQuestion { connections: x as u32, ..self },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(json: &str) -> serde_json::Value {
        serde_json::from_str(&answer(json.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn a_window_bounds_a_long_path_and_the_curve_says_from_where() {
        let answer = asked(
            r#"{"rate_bps": 1000000000, "rtt_us": 146000, "window_bytes": 3000000, "over": "rtt"}"#,
        );
        assert_eq!(answer["limit"], "receive window");
        let goodput = answer["goodput_bps"].as_u64().unwrap();
        assert!((164_000_000..165_000_000).contains(&goodput), "{goodput}");
        let curve = answer["curve"].as_array().unwrap();
        let rates: Vec<u64> =
            curve.iter().map(|point| point["goodput_bps"].as_u64().unwrap()).collect();
        assert!(rates.is_sorted_by(|a, b| a >= b), "{rates:?}");
        assert_eq!(curve[0]["limit"], "link");
    }

    #[test]
    fn connections_share_what_one_cannot_fill() {
        let one =
            r#"{"rate_bps": 1000000000, "rtt_us": 50000, "loss": 0.0001, "over": "connections"}"#;
        let answer = asked(one);
        let curve = answer["curve"].as_array().unwrap();
        assert_eq!(curve.len(), 64);
        let rate = |at: usize| curve[at]["goodput_bps"].as_u64().unwrap();
        assert!(rate(3) > 3 * rate(0) && rate(63) < 1_000_000_000);
        assert_eq!(curve[63]["limit"], "link");
    }

    #[test]
    fn what_is_no_question_says_why() {
        for wrong in ["", "{}", r#"{"rate_bps": -1, "rtt_us": 1, "over": "rtt"}"#] {
            assert!(answer(wrong.as_bytes()).unwrap_err().contains("question"), "{wrong}");
        }
        // Nothing moves, and nothing is divided by zero.
        for over in ["rate", "rtt", "window", "send_buffer", "loss", "connections"] {
            asked(&format!(r#"{{"rate_bps": 0, "rtt_us": 0, "over": "{over}"}}"#));
        }
    }
}
