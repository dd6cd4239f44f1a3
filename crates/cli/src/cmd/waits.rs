//! What a download waited for, by curl's times: for those who cannot see its packets.

use fullpipe_model::units::Duration;
use fullpipe_report::connection::account::rounded;
use fullpipe_transfer::{DownloadPhase, Timing};

/// Linux sends a SYN again after a second at the earliest (TCP_TIMEOUT_INIT).
const SYN_SENT_AGAIN: Duration = Duration::from_secs(1);

/// `4 s of 4.01 s: the server took 4 s to begin its answer`, where something other than the
/// transfer took half of the time or more.
pub fn longest_wait(timing: &Timing) -> Option<String> {
    let phases = timing.phases().into_iter();
    let (phase, time) = phases.max_by_key(|(_, time)| *time)?;
    if time.saturating_mul(2) < timing.total {
        return None;
    }
    let took = rounded(time);
    let what = match phase {
        DownloadPhase::Transfer => return None,
        DownloadPhase::Redirects => "redirects".into(),
        DownloadPhase::Name => "the address of the name was looked up".into(),
        DownloadPhase::Connect if time >= SYN_SENT_AGAIN => {
            "connecting: a SYN or its answer was lost and sent again".into()
        }
        DownloadPhase::Connect => "the round trip of the TCP handshake".into(),
        DownloadPhase::Tls => "the TLS handshake".into(),
        DownloadPhase::Answer => format!("the server took {took} to begin its answer"),
    };
    Some(format!("{took} of {}: {what}", rounded(timing.total)))
}

/// `name 148.6 us, connected 269.8 us, first byte 4.006 s`, all since the start.
pub fn times(timing: &Timing) -> String {
    let secured = match timing.appconnect {
        Duration::ZERO => String::new(),
        secured => format!("TLS {secured}, "),
    };
    format!(
        "name {}, connected {}, {secured}first byte {}",
        timing.namelookup, timing.connect, timing.starttransfer
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(connect: u64, first_byte: u64, total: u64) -> Option<String> {
        let ms = Duration::from_millis;
        let (namelookup, connect) = (ms(1), ms(connect));
        let (starttransfer, total) = (ms(first_byte), ms(total));
        longest_wait(&Timing { namelookup, connect, starttransfer, total, ..Timing::default() })
    }

    #[test]
    fn the_longest_wait_is_told_and_a_transfer_is_none() {
        let server = told(11, 4021, 4030).unwrap();
        assert_eq!(server, "4 s of 4.03 s: the server took 4 s to begin its answer");
        assert!(told(1021, 1041, 1050).unwrap().contains("a SYN or its answer was lost"));
        assert!(told(21, 41, 50).is_none(), "three round trips of 20 ms");
        assert!(told(11, 21, 4030).is_none());
    }
}
