//! Conversations whose times are known: a client asks one thing after another, the server's
//! application takes a given time for each answer and the client's for each next question, and
//! something may come between them.

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
    /// How long the client's application takes from an answer to its next request at least.
    pub ask_after: Duration,
    /// The round trip of the path, without its queue.
    pub rtt: Duration,
    /// What comes between.
    pub hindrance: Hindrance,
    /// The scenario file.
    pub text: String,
}

/// What comes between the ends of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hindrance {
    /// Nothing.
    None,
    /// Packets are lost: one in a thousand to one in three, SYNs and requests among them.
    Loss,
    /// The path carries nothing for some time, and then what it held.
    Outage,
    /// From some time on the path carries nothing any more.
    PathEnds,
    /// From some time on the client does not read any more.
    ReaderStops,
}

impl Hindrance {
    /// Whether all that is sent arrives in time, so that the times of the ends' applications are
    /// those of their own wires.
    pub fn is_harmless(self) -> bool {
        matches!(self, Hindrance::None | Hindrance::ReaderStops)
    }
}

/// The longest that all requests together may wait for the server, and for the client, in seconds.
const MAX_WAIT: f64 = 60.0;
/// The most bytes that are carried.
const MAX_CARRIED: f64 = 20e6;
/// How long a run lasts in which somebody waits for what does not come, in seconds.
const HANG: std::ops::Range<f64> = 15.0..60.0;

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
    let mut draft = ConversationDraft::draw(&mut dice);
    draft.hinder(&mut dice);
    let ConversationDraft { hindrance, rtt, requests, .. } = draft;
    let (answer_after, ask_after) = (draft.answer_after(), draft.ask_after());
    let text = draft.text(&mut dice);
    let text = format!("# Conversation {index} of seed {seed}: {requests} requests.\n{text}");
    let name = format!("conversations/{seed}/{index:04}");
    Conversation { name, requests, answer_after, ask_after, rtt, hindrance, text }
}

/// A conversation while it is drawn.
struct ConversationDraft {
    hindrance: Hindrance,
    rtt: Duration,
    /// Bits a second.
    rate: f64,
    /// Per cent.
    loss: f64,
    requests: u32,
    /// How long the server and the client think, in seconds.
    thinks: f64,
    asks: f64,
    /// Bytes of an answer.
    size: f64,
    duration: String,
    /// More lines of the link and of the transfer.
    path: String,
    transfer: String,
}

impl ConversationDraft {
    fn draw(dice: &mut Dice) -> Self {
        let hindrance = match dice.uniform(0.0, 1.0) {
            ..0.4 => Hindrance::None,
            ..0.6 => Hindrance::Loss,
            ..0.7 => Hindrance::Outage,
            ..0.85 => Hindrance::PathEnds,
            _ => Hindrance::ReaderStops,
        };
        let rtt = even_micros(dice.log(0.2e-3, 0.3));
        let rate = dice.log(2e6, 1e9).round();
        let loss = dice.log(0.1, 33.0);
        // What is lost is waited for, up to two minutes each time.
        let is_heavy = hindrance == Hindrance::Loss && loss > 3.0;
        let requests = match hindrance {
            Hindrance::ReaderStops => 1,
            _ if is_heavy => dice.log(1.0, 5.0).round() as u32,
            _ => dice.log(1.0, 100.0).round() as u32,
        };
        let longest = (MAX_WAIT / f64::from(requests)).min(8.0);
        let thinks = if dice.chance(0.2) { 0.0 } else { dice.log(0.2e-3, longest) };
        let asks = if dice.chance(0.5) { 0.0 } else { dice.log(0.2e-3, longest) };
        let most = if is_heavy { 20e3 } else { (MAX_CARRIED / f64::from(requests)).min(2e6) };
        ConversationDraft {
            hindrance,
            rtt,
            rate,
            loss,
            requests,
            thinks,
            asks,
            size: dice.log(100.0, most).round(),
            duration: "600s".into(),
            path: String::new(),
            transfer: String::new(),
        }
    }

    fn answer_after(&self) -> Duration {
        even_micros(self.thinks)
    }

    fn ask_after(&self) -> Duration {
        if self.requests > 1 { even_micros(self.asks) } else { Duration::ZERO }
    }

    /// How long one request takes with its answer, and all of them, in seconds.
    fn times(&self) -> (f64, f64) {
        let rtt = self.rtt.as_secs_f64();
        let each = self.thinks + self.asks + rtt + self.size * 8.0 / self.rate;
        (each, rtt + f64::from(self.requests) * each)
    }

    /// Writes what comes between.
    fn hinder(&mut self, dice: &mut Dice) {
        let (each, time) = self.times();
        match self.hindrance {
            Hindrance::None => {}
            Hindrance::Loss => line(&mut self.path, &format!("loss = \"{:.3}%\"", self.loss)),
            Hindrance::Outage => {
                let at = dice.uniform(0.0, time);
                let until = at + dice.log(0.3, 10.0);
                let changes = format!("{} down, {} up", micros(at), micros(until));
                line(&mut self.path, &format!("changes = \"{changes}\""));
            }
            Hindrance::PathEnds => {
                // The first answer has come.
                let first = 2.0 * each + self.rtt.as_secs_f64();
                let at = dice.uniform(first, (3.0 * each).max(time));
                line(&mut self.path, &format!("changes = \"{} down\"", micros(at)));
                self.duration = micros(at + dice.uniform(HANG.start, HANG.end));
            }
            Hindrance::ReaderStops => {
                self.rate = self.rate.min(1e8);
                let reads = dice.uniform(0.2, 1.0) + self.thinks;
                // More than arrives until then and all buffers hold.
                self.size = (self.rate / 8.0 * reads + 32e6).round();
                let whole = reads + dice.uniform(HANG.start, HANG.end);
                self.duration = micros(whole);
                let (pause, every) = (micros(whole + 60.0 - reads), micros(whole + 60.0));
                line(&mut self.transfer, &format!("read_pause = \"{pause}\""));
                line(&mut self.transfer, &format!("read_pause_every = \"{every}\""));
            }
        }
    }

    /// The scenario file.
    fn text(mut self, dice: &mut Dice) -> String {
        for (key, time) in [("ask_after", self.ask_after()), ("answer_after", self.answer_after())]
        {
            if time > Duration::ZERO {
                line(&mut self.transfer, &format!("{key} = \"{}us\"", time.as_micros()));
            }
        }
        // curl's time limit is that of one download of several.
        let may_hang = matches!(self.hindrance, Hindrance::ReaderStops | Hindrance::PathEnds);
        let needs_own = self.ask_after() > Duration::ZERO || may_hang;
        let client = if needs_own || dice.chance(0.5) { "builtin" } else { "curl" };
        let ConversationDraft { requests, size, duration, path, transfer, .. } = self;
        format!(
            "kernel = \"{}\"\n\n[link]\nrtt = \"{}us\"\nrate = \"{}kbit\"\n{path}\n[transfer]\nclient = \"{client}\"\nrequests = {requests}\nsize = {size}\nduration = \"{duration}\"\n{transfer}",
            dice.pick(&["6.1", "6.12"]),
            self.rtt.as_micros(),
            (self.rate / 1e3).round(),
        )
    }
}

fn line(text: &mut String, line: &str) {
    // Writing to a text cannot fail.
    let _ = writeln!(text, "{line}");
}

fn micros(seconds: f64) -> String {
    format!("{}us", (seconds * 1e6).round().max(1.0))
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
            let lasts = scenario.transfer.duration;
            assert!(drawn.hindrance.is_harmless() || lasts > Duration::from_secs(15));
            let waits = drawn.answer_after.as_secs_f64() * f64::from(drawn.requests);
            assert!(waits <= MAX_WAIT * 1.01, "{}", drawn.text);
            assert_eq!(drawn, conversation(3, index));
        }
    }
}
