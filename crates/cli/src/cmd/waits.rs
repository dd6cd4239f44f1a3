//! What a download waited for, by curl's times: for those who cannot see its packets.

use fullpipe_flow::Language;
use fullpipe_model::units::Duration;
use fullpipe_report::connection::account::rounded;
use fullpipe_transfer::{DownloadPhase, Timing};

/// Linux sends a SYN again after a second at the earliest (TCP_TIMEOUT_INIT).
const SYN_SENT_AGAIN: Duration = Duration::from_secs(1);

/// `4 s of 4.01 s: the server took 4 s to begin its answer`, where something other than the
/// transfer took half of the time or more.
pub fn longest_wait(timing: &Timing, language: Language) -> Option<String> {
    let phases = timing.phases().into_iter();
    let (phase, time) = phases.max_by_key(|(_, time)| *time)?;
    if time.saturating_mul(2) < timing.total {
        return None;
    }
    let (took, total) = (rounded(time), rounded(timing.total));
    let is_repeated = time >= SYN_SENT_AGAIN;
    Some(match language {
        Language::English => {
            let what = match phase {
                DownloadPhase::Transfer => return None,
                DownloadPhase::Redirects => "redirects".into(),
                DownloadPhase::Name => "the address of the name was looked up".into(),
                DownloadPhase::Connect if is_repeated => {
                    "connecting: a SYN or its answer was lost and sent again".into()
                }
                DownloadPhase::Connect => "the round trip of the TCP handshake".into(),
                DownloadPhase::Tls => "the TLS handshake".into(),
                DownloadPhase::Answer => format!("the server took {took} to begin its answer"),
            };
            format!("{took} of {total}: {what}")
        }
        Language::Chinese => {
            let what = match phase {
                DownloadPhase::Transfer => return None,
                DownloadPhase::Redirects => "重定向".into(),
                DownloadPhase::Name => "域名解析".into(),
                DownloadPhase::Connect if is_repeated => {
                    "建立连接：SYN 或其应答丢失，重新发送".into()
                }
                DownloadPhase::Connect => "TCP 握手的往返".into(),
                DownloadPhase::Tls => "TLS 握手".into(),
                DownloadPhase::Answer => format!("服务器用了 {took} 才开始应答"),
            };
            format!("{total} 中有 {took}：{what}")
        }
    })
}

/// `name 148.6 us, connected 269.8 us, first byte 4.006 s`, all since the start.
pub fn times(timing: &Timing, language: Language) -> String {
    let (words, next) = match language {
        Language::English => (["name", "connected", "TLS", "first byte"], ", "),
        Language::Chinese => (["域名解析", "连接", "TLS", "首字节"], "，"),
    };
    let times = [timing.namelookup, timing.connect, timing.appconnect, timing.starttransfer];
    let steps =
        words.iter().zip(times).filter(|(name, at)| **name != "TLS" || *at > Duration::ZERO);
    steps.map(|(name, at)| format!("{name} {at}")).collect::<Vec<_>>().join(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(connect: u64, first_byte: u64, total: u64) -> Option<String> {
        let ms = Duration::from_millis;
        let (namelookup, connect) = (ms(1), ms(connect));
        let (starttransfer, total) = (ms(first_byte), ms(total));
        let timing = Timing { namelookup, connect, starttransfer, total, ..Timing::default() };
        longest_wait(&timing, Language::English)
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
