//! Conversations whose times are known: a client asks one thing after another, and the server's
//! application takes a given time for each answer.

use super::dice::Dice;
use crate::units::Duration;
use std::fmt::Write;

/// A conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
    /// Name of the experiment, unique in its set: `conversations/7/0042`.
    pub name: String,
    /// How often the client asks.
    pub requests: u32,
    /// How long the server's application takes for each answer at least: timers and its own work
    /// add to it.
    pub answer_after: Duration,
    /// The round trip of the path, without its queue.
    pub rtt: Duration,
    /// Whether packets are lost: then some of the time is repair, and no time of the path is known.
    pub is_lossy: bool,
    /// The scenario file.
    pub text: String,
}

/// The longest that all requests together may wait, in seconds.
const MAX_WAIT: f64 = 60.0;
/// The most bytes that are carried.
const MAX_CARRIED: f64 = 20e6;

/// Conversation `index` of set `seed`.
///
/// ```
/// use fullpipe_model::scenario::{File, conversation};
/// let drawn = conversation(7, 0);
/// let scenarios = File::parse(&drawn.text).unwrap().scenarios("x").unwrap();
/// assert_eq!(scenarios[0].transfer.requests, Some(drawn.requests));
/// ```
pub fn conversation(seed: u64, index: u32) -> Conversation {
    let mut dice = Dice::new(seed, index);
    let rtt = even_micros(dice.log(0.2e-3, 0.3));
    let rate = dice.log(2e6, 1e9).round();
    let requests = dice.log(1.0, 100.0).round() as u32;
    let longest = (MAX_WAIT / f64::from(requests)).min(8.0);
    let thinks = if dice.chance(0.2) { 0.0 } else { dice.log(0.2e-3, longest) };
    let answer_after = even_micros(thinks);
    let size = dice.log(100.0, (MAX_CARRIED / f64::from(requests)).min(2e6)).round();
    let is_lossy = dice.chance(0.2);
    let mut text = format!(
        "# Conversation {index} of seed {seed}: {requests} requests.\nkernel = \"{}\"\n\n[link]\nrtt = \"{}us\"\nrate = \"{}kbit\"\n",
        dice.pick(&["6.1", "6.12"]),
        rtt.as_micros(),
        (rate / 1e3).round(),
    );
    if is_lossy {
        // Writing to a text cannot fail.
        let _ = writeln!(text, "loss = \"{:.3}%\"", dice.log(0.1, 3.0));
    }
    let _ = writeln!(
        text,
        "\n[transfer]\nclient = \"curl\"\nrequests = {requests}\nsize = {size}\nduration = \"600s\""
    );
    if answer_after > Duration::ZERO {
        let _ = writeln!(text, "answer_after = \"{}us\"", answer_after.as_micros());
    }
    let name = format!("conversations/{seed}/{index:04}");
    Conversation { name, requests, answer_after, rtt, is_lossy, text }
}

/// A time that halves to whole microseconds, for a round trip of two ways.
fn even_micros(seconds: f64) -> Duration {
    Duration::from_micros((seconds * 1e6 / 2.0).round() as u64 * 2)
}

#[cfg(test)]
mod tests {
    use super::super::super::File;
    use super::*;

    #[test]
    fn each_is_a_scenario_that_does_not_depend_on_the_others() {
        for index in 0..300 {
            let drawn = conversation(3, index);
            let scenarios = File::parse(&drawn.text).and_then(|file| file.scenarios("x"));
            let [scenario] =
                &scenarios.unwrap_or_else(|error| panic!("{error}: {}", drawn.text))[..]
            else {
                panic!("one scenario")
            };
            assert_eq!(scenario.transfer.requests, Some(drawn.requests));
            let waits = drawn.answer_after.as_secs_f64() * f64::from(drawn.requests);
            assert!(waits <= MAX_WAIT * 1.01, "{}", drawn.text);
            assert_eq!(drawn, conversation(3, index));
        }
    }
}
