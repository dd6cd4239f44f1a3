//! curl's time breakdown.

use fullpipe_model::units::{Duration, column};
use serde::Serialize;

/// What a download waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DownloadPhase {
    /// Redirects.
    Redirects,
    /// The host's address.
    Name,
    /// The TCP handshake.
    Connect,
    /// The TLS handshake.
    Tls,
    /// The first byte of the answer, without the round trip that it takes.
    Answer,
    /// The rest of the answer.
    Transfer,
}

/// When each step was done, with the names of `curl --write-out '%{time_..}'`, since the start of
/// the download.
///
/// They never decrease from top to bottom. A step that does not exist is zero:
/// [`Timing::appconnect`] without TLS, and [`Timing::redirect`] without a redirect. After redirects
/// the steps are those of the last request, still counted from the very start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Timing {
    /// When the last redirect's request began.
    #[serde(rename = "redirect_us", serialize_with = "column::micros::serialize")]
    pub redirect: Duration,
    /// The host's address was known.
    #[serde(rename = "namelookup_us", serialize_with = "column::micros::serialize")]
    pub namelookup: Duration,
    /// The TCP handshake was done, as the client sees it: its SYN was acknowledged.
    #[serde(rename = "connect_us", serialize_with = "column::micros::serialize")]
    pub connect: Duration,
    /// The TLS handshake was done.
    #[serde(rename = "appconnect_us", serialize_with = "column::micros::serialize")]
    pub appconnect: Duration,
    /// The request was about to be sent.
    #[serde(rename = "pretransfer_us", serialize_with = "column::micros::serialize")]
    pub pretransfer: Duration,
    /// The response's first byte (of its status line) was read.
    #[serde(rename = "starttransfer_us", serialize_with = "column::micros::serialize")]
    pub starttransfer: Duration,
    /// The end.
    #[serde(rename = "total_us", serialize_with = "column::micros::serialize")]
    pub total: Duration,
}

impl Timing {
    /// The time of each phase; they sum to [`Timing::total`]. Of the wait for the first byte, the
    /// round trip that the TCP handshake took counts as the transfer's: no server can save it.
    pub fn phases(&self) -> [(DownloadPhase, Duration); 6] {
        let ready = self.connect.max(self.appconnect);
        let round_trip = self.connect.saturating_sub(self.namelookup);
        let answer = self.starttransfer.saturating_sub(ready).saturating_sub(round_trip);
        let [redirects, name] = [self.redirect, self.namelookup.saturating_sub(self.redirect)];
        let tls = ready.saturating_sub(self.connect);
        let before = [redirects, name, round_trip, tls, answer].into_iter();
        let before = before.fold(Duration::ZERO, Duration::saturating_add);
        [
            (DownloadPhase::Redirects, redirects),
            (DownloadPhase::Name, name),
            (DownloadPhase::Connect, round_trip),
            (DownloadPhase::Tls, tls),
            (DownloadPhase::Answer, answer),
            (DownloadPhase::Transfer, self.total.saturating_sub(before)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn phases_sum_to_the_whole(mut steps in prop::array::uniform7(0_u64..10_000_000), has_tls: bool) {
            steps.sort_unstable();
            let [redirect, namelookup, connect, appconnect, pretransfer, starttransfer, total] =
                steps.map(Duration::from_micros);
            let appconnect = if has_tls { appconnect } else { Duration::ZERO };
            let timing =
                Timing { redirect, namelookup, connect, appconnect, pretransfer, starttransfer, total };
            let phases = timing.phases().map(|(_, time)| time).into_iter();
            prop_assert_eq!(phases.fold(Duration::ZERO, Duration::saturating_add), total);
        }
    }

    #[test]
    fn a_server_that_thinks_is_waited_for_but_for_the_round_trip() {
        let ms = Duration::from_millis;
        let timing = Timing {
            namelookup: ms(1),
            connect: ms(41),
            pretransfer: ms(41),
            starttransfer: ms(4081),
            total: ms(4100),
            ..Timing::default()
        };
        let of = |phase| timing.phases().into_iter().find(|(one, _)| *one == phase).unwrap().1;
        assert_eq!(of(DownloadPhase::Answer), ms(4000));
        assert_eq!(of(DownloadPhase::Transfer), ms(59));
    }
}
