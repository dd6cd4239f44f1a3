//! What held a connection that was captured at two places.
//!
//! Each capture alone has its own answer, and one of them is better placed to give it: what held
//! data is seen best where it comes from, and how long a program took is seen without the path
//! where that program runs. The two together know what one cannot: how much of a round trip is
//! between them, and for how long data waited there. A link that was seen to be busy is proof, and
//! no capture alone overrules it.

use super::{DiagnosedConnection, Diagnosis};
use crate::account::{Account, Owner};
use crate::connection::Direction;
use crate::connection::pair::{PairedCaptures, PairedConnection, Tap};
use crate::finding::Headline;
use crate::limit::{Candidate, Limit, Policed};
use fullpipe_model::limit::Cause as CongestionCause;
use fullpipe_model::units::{Duration, column};
use serde::Serialize;
use std::collections::HashMap;
use std::net::SocketAddr;

/// A connection that passed both places, with what held it.
#[derive(Debug, Clone, Serialize)]
pub struct AnsweredPair {
    /// What passed both.
    #[serde(flatten)]
    pub paired: PairedConnection,
    /// What held it; `None` where neither capture's analysis kept it.
    pub answer: Option<PairAnswer>,
}

/// What held a connection, by the capture that is placed best to say it.
#[derive(Debug, Clone, Serialize)]
pub struct PairAnswer {
    /// Whose capture it is.
    pub seen_at: Tap,
    /// Which way more data went.
    pub direction: Direction,
    /// What held that data.
    pub limited_by: Option<SeenLimit>,
    /// What both together prove, where the capture alone says otherwise, or only guesses.
    pub proof: Option<LinkProof>,
    /// What the other capture alone says.
    pub other: Option<SeenLimit>,
    /// Where the time went.
    pub account: Option<Account>,
    /// The least round trip of that data, and where it is spent.
    pub round_trip: Option<RoundTripParts>,
    /// All that the capture says.
    #[serde(skip)]
    pub seen: DiagnosedConnection,
}

/// Why what is between the two places is what held the data.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkProof {
    /// Data waited there, for this part of the time.
    Busy(f64),
    /// A policer dropped what came above its rate.
    Policed(Policed),
}

/// A limit as one capture sees it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SeenLimit {
    /// It, and its share of the time.
    #[serde(flatten)]
    pub candidate: Candidate,
    /// How often verdicts like this one are right, 0 to 1.
    pub confidence: f64,
    /// Whether it is no more than a guess.
    pub is_guess: bool,
}

/// The least round trip of data at the place that it passes first, and how much of that lies
/// beyond the other one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RoundTripParts {
    /// The second place.
    pub far: Tap,
    /// From the first place to the receiver and back.
    #[serde(rename = "whole_us", with = "column::micros")]
    pub whole: Duration,
    /// From the second place to the receiver and back.
    #[serde(rename = "beyond_us", with = "column::micros")]
    pub beyond: Duration,
}

impl RoundTripParts {
    /// What the path between the two places takes of it.
    pub fn between(&self) -> Duration {
        self.whole.saturating_sub(self.beyond)
    }
}

/// Adds to two captures what each of them alone says of its connections.
pub fn answered(
    paired: PairedCaptures,
    seen: [Vec<DiagnosedConnection>; 2],
) -> PairedCaptures<AnsweredPair> {
    let mut seen = seen.map(SeenAtPlace::new);
    paired.with(|paired| {
        let [a, b] = &mut seen;
        let both = [a.take(&paired, Tap::A), b.take(&paired, Tap::B)];
        let answer = answer(&paired, both);
        AnsweredPair { paired, answer }
    })
}

/// The connections of one place, by their ends.
struct SeenAtPlace(HashMap<[SocketAddr; 2], Vec<DiagnosedConnection>>);

impl SeenAtPlace {
    fn new(all: Vec<DiagnosedConnection>) -> Self {
        let mut by_ends: HashMap<_, Vec<_>> = HashMap::new();
        for one in all {
            let ends = sorted([one.connection.client, one.connection.server]);
            by_ends.entry(ends).or_default().push(one);
        }
        SeenAtPlace(by_ends)
    }

    /// The one that began when this did: ports are used again.
    fn take(&mut self, paired: &PairedConnection, tap: Tap) -> Option<DiagnosedConnection> {
        let of_tap = tap as usize;
        let ends = sorted([paired.client[of_tap], paired.server[of_tap]]);
        let same = self.0.get_mut(&ends)?;
        let began = paired.began[of_tap];
        let starts = same.iter().map(|one| one.connection.start).enumerate();
        let (at, _) =
            starts.min_by_key(|(_, start)| start.since(began).max(began.since(*start)))?;
        Some(same.swap_remove(at))
    }
}

fn sorted(mut ends: [SocketAddr; 2]) -> [SocketAddr; 2] {
    ends.sort();
    ends
}

fn answer(paired: &PairedConnection, seen: [Option<DiagnosedConnection>; 2]) -> Option<PairAnswer> {
    let views = Views { paired, seen: seen.each_ref().map(Option::as_ref) };
    let round_trip = views.round_trip();
    let proof = views.proof();
    let seen_at = match proof {
        Some(_) => views.near_sender()?,
        None => views.best_placed()?,
    };
    let direction = views.of(seen_at)?.connection.bulk();
    let alone = seen_limit(views.of(seen_at)?, direction);
    let limited_by = proof.map(SeenLimit::proven).or(alone);
    let other = views.of(seen_at.other()).and_then(|other| {
        // Without the handshake one of the two may take the client for the server.
        let agrees = views.knows_client(seen_at) == views.knows_client(seen_at.other());
        seen_limit(other, if agrees { direction } else { direction.reversed() })
    });
    let [a, b] = seen;
    let best = match seen_at {
        Tap::A => a?,
        Tap::B => b?,
    };
    Some(PairAnswer {
        seen_at,
        direction,
        limited_by,
        proof,
        other,
        account: best.account(),
        round_trip,
        seen: best,
    })
}

fn seen_limit(seen: &DiagnosedConnection, direction: Direction) -> Option<SeenLimit> {
    let diagnosis = seen.diagnosis(direction)?;
    let confidence = diagnosis.verdict.confidence;
    let is_guess = diagnosis.headline().is_guess();
    Some(SeenLimit { candidate: diagnosis.limited_by(), confidence, is_guess })
}

impl SeenLimit {
    fn proven(proof: LinkProof) -> Self {
        let (LinkProof::Busy(share) | LinkProof::Policed(Policed { part: share, .. })) = proof;
        let candidate = Candidate { limit: Limit::Link, share };
        SeenLimit { candidate, confidence: SURE_OF_PROOF, is_guess: false }
    }
}

/// A link before which data waits for this part of the time holds it, whatever one capture says;
/// and where that only guesses that it may be the link, from half of the time on.
const BUSY_MOST: f64 = 0.9;
const BUSY_OF_GUESS: f64 = 0.5;
/// Where the better place can only guess, the other one answers if it is so sure.
const SURE_ALONE: f64 = 0.9;
/// What is proven is right as often as verdicts are whose proof is in one capture.
const SURE_OF_PROOF: f64 = 0.98;

/// A connection as each place alone sees it.
struct Views<'a> {
    paired: &'a PairedConnection,
    seen: [Option<&'a DiagnosedConnection>; 2],
}

impl<'a> Views<'a> {
    fn of(&self, tap: Tap) -> Option<&'a DiagnosedConnection> {
        self.seen[tap as usize]
    }

    /// What that place says of the data of the end that sent more.
    fn headline(&self, tap: Tap) -> Option<Headline> {
        self.of(tap)?.bulk().map(Diagnosis::headline)
    }

    /// Whether the place takes the same end for the client.
    fn knows_client(&self, tap: Tap) -> bool {
        let client = self.paired.client[tap as usize];
        self.of(tap).is_some_and(|seen| seen.connection.client == client)
    }

    /// Whether the client sent more, as that place sees it.
    fn client_sends(&self, tap: Tap) -> Option<bool> {
        let bulk = self.of(tap)?.connection.bulk();
        Some((bulk == Direction::ClientToServer) == self.knows_client(tap))
    }

    /// The place nearer to the end that sent more.
    fn near_sender(&self) -> Option<Tap> {
        let near_client = self.paired.near_client?;
        let client_sends = self.client_sends(near_client)?;
        Some(if client_sends { near_client } else { near_client.other() })
    }

    /// The place whose capture answers.
    fn best_placed(&self) -> Option<Tap> {
        match self.seen {
            [Some(_), Some(_)] => {}
            [Some(_), None] => return Some(Tap::A),
            [None, Some(_)] => return Some(Tap::B),
            [None, None] => return None,
        }
        let (Some(near_client), Some(near_sender)) = (self.paired.near_client, self.near_sender())
        else {
            return Some(self.surer(Tap::A));
        };
        let account = self.of(near_sender).and_then(DiagnosedConnection::account);
        // A program's time is seen without the path where the program runs.
        match account.as_ref().and_then(Account::first).map(|first| first.owner) {
            Some(Owner::ServerApplication) => Some(near_client.other()),
            Some(Owner::ClientApplication) => Some(near_client),
            _ => Some(self.surer(near_sender)),
        }
    }

    /// This place, unless it can only guess where the other one is sure.
    fn surer(&self, tap: Tap) -> Tap {
        let is_guess = self.headline(tap).is_none_or(|headline| headline.is_guess());
        let other = self.headline(tap.other()).and_then(|headline| headline.sure());
        if is_guess && other.is_some_and(|sure| sure >= SURE_ALONE) { tap.other() } else { tap }
    }

    /// What both together prove of what is between them, where that decides.
    fn proof(&self) -> Option<LinkProof> {
        let near = self.near_sender()?;
        let is_client = self.paired.near_client == Some(near);
        let way = if is_client { &self.paired.to_server } else { &self.paired.to_client };
        let way = way.as_ref()?;
        let headline = self.headline(near)?;
        if headline.limit == Limit::Link && !headline.is_guess() {
            return None;
        }
        // What a policer does to a sender is loss.
        let loss = Limit::CongestionWindow(CongestionCause::Loss);
        let named = [Some(headline.limit), headline.or];
        let may_be_link = named.contains(&Some(Limit::Link));
        let policed = way.policed.filter(Policed::is_usual);
        if let Some(policed) = policed.filter(|_| may_be_link || named.contains(&Some(loss))) {
            return Some(LinkProof::Policed(policed));
        }
        let least = if may_be_link { BUSY_OF_GUESS } else { BUSY_MOST };
        way.waited.filter(|waited| *waited >= least).map(LinkProof::Busy)
    }

    /// How the least round trip of the data divides between the two places and what is beyond.
    fn round_trip(&self) -> Option<RoundTripParts> {
        let near = self.near_sender()?;
        let far = near.other();
        let (whole, beyond) = (self.least_rtt(near)?, self.least_rtt(far)?);
        (whole >= beyond).then_some(RoundTripParts { far, whole, beyond })
    }

    fn least_rtt(&self, tap: Tap) -> Option<Duration> {
        let connection = &self.of(tap)?.connection;
        match connection.bulk() {
            Direction::ClientToServer => connection.client_to_server.rtt.min,
            Direction::ServerToClient => connection.server_to_client.rtt.min,
        }
    }
}
