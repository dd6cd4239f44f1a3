//! Loss, as a sender counts it, with its interval.

use fullpipe_model::observe::TcpInfo;

/// The quantile of the normal distribution for 95 %.
const Z: f64 = 1.959_964;

/// Segments that had to be sent again.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Loss {
    /// Segments with data that were sent, those sent again included.
    pub sent_segments: u64,
    /// Of them, sent again and needed: without those that the receiver reported as duplicates.
    pub lost_segments: u64,
    /// Sent again although the first had arrived (DSACK, RFC 2883).
    pub spurious_segments: u64,
    /// The share that was lost, 0 to 1.
    pub share: f64,
    /// The least share that the counts allow at 95 % (Wilson 1927).
    pub share_least: f64,
    /// The largest.
    pub share_most: f64,
}

impl Loss {
    /// The loss of some connections, each by its sender's first and last state. `None` if nothing
    /// was sent, or if the kernel does not count it (before Linux 4.6).
    pub(super) fn of<'a>(ends: impl Iterator<Item = (&'a TcpInfo, &'a TcpInfo)>) -> Option<Loss> {
        let (mut sent, mut again, mut spurious) = (0, 0, 0);
        for (first, last) in ends {
            sent += grown(first.data_segs_out, last.data_segs_out)?;
            let sent_again = u64::from(last.total_retrans.wrapping_sub(first.total_retrans));
            let needless = grown(first.dsack_dups, last.dsack_dups).unwrap_or(0);
            again += sent_again;
            spurious += needless.min(sent_again);
        }
        (sent > 0).then(|| Loss::new(sent, again.saturating_sub(spurious), spurious))
    }

    fn new(sent: u64, lost: u64, spurious: u64) -> Loss {
        let (least, most) = wilson(lost.min(sent), sent);
        let share = lost.min(sent) as f64 / sent as f64;
        Loss {
            sent_segments: sent,
            lost_segments: lost,
            spurious_segments: spurious,
            share,
            share_least: least,
            share_most: most,
        }
    }
}

/// By how much a counter grew that may begin anew; `None` where the kernel does not count it.
fn grown(first: Option<u32>, last: Option<u32>) -> Option<u64> {
    Some(last?.wrapping_sub(first?).into())
}

/// Wilson's interval for `hits` of `all` at 95 %: "Probable Inference, the Law of Succession, and
/// Statistical Inference", JASA 22 (1927). Unlike the normal approximation it is right where
/// nothing was lost.
fn wilson(hits: u64, all: u64) -> (f64, f64) {
    let (n, p) = (all as f64, hits as f64 / all as f64);
    let z2 = Z * Z / n;
    let middle = (p + z2 / 2.0) / (1.0 + z2);
    let half = Z / (1.0 + z2) * (p * (1.0 - p) / n + z2 / (4.0 * n)).sqrt();
    ((middle - half).max(0.0), (middle + half).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_interval_as_published() {
        // Newcombe, Statistics in Medicine 17 (1998), table I, method 3: 81 of 263, 15 of 148, 0 of
        // 20, 1 of 29.
        for (hits, all, least, most) in [
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0, 0.1611),
            (1, 29, 0.0061, 0.1718),
        ] {
            let (low, high) = wilson(hits, all);
            assert!((low - least).abs() < 1e-4 && (high - most).abs() < 1e-4, "{low} {high}");
        }
    }

    #[test]
    fn what_was_sent_again_needlessly_is_no_loss() {
        let info = |sent, again, dups| TcpInfo {
            data_segs_out: Some(sent),
            total_retrans: again,
            dsack_dups: Some(dups),
            ..TcpInfo::default()
        };
        let (first, last) = (info(10, 0, 0), info(1010, 30, 10));
        let loss = Loss::of([(&first, &last)].into_iter()).unwrap();
        assert_eq!(
            (loss.sent_segments, loss.lost_segments, loss.spurious_segments),
            (1000, 20, 10)
        );
        assert!((loss.share - 0.02).abs() < 1e-12);
        assert_eq!(Loss::of([(&first, &first)].into_iter()), None);
        assert_eq!(Loss::of([].into_iter()), None);
    }

    proptest! {
        #[test]
        fn the_share_is_in_its_interval(all in 1u64.., part in 0.0..=1.0f64) {
            let hits = (all as f64 * part) as u64;
            let loss = Loss::new(all, hits.min(all), 0);
            prop_assert!(loss.share_least <= loss.share + 1e-9);
            prop_assert!(loss.share <= loss.share_most + 1e-9);
        }
    }
}
