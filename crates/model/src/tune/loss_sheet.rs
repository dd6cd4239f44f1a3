//! What random loss leaves of a path, by congestion control, and how many connections would fill
//! it.

use super::Path;
use crate::law::{cubic, mathis, pftk};
use crate::units::{Probability, Rate, column};

/// What one connection carries under random loss. BBR is not here: it does not slow down for random
/// loss of a few per cent.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct LossSheet {
    /// The loss.
    #[serde(serialize_with = "fraction")]
    pub loss: Probability,
    /// CUBIC, by RFC 9438.
    pub cubic: LossLaw,
    /// Reno, by Mathis.
    pub reno: LossLaw,
    /// Reno with its timeouts, by Padhye: a lower estimate for Linux.
    pub reno_with_timeouts: LossLaw,
}

/// One law's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct LossLaw {
    /// Goodput of one connection.
    #[serde(rename = "goodput_bps", with = "column::rate")]
    pub goodput: Rate,
    /// Connections that together carry what the path does; absent where one carries nothing.
    pub connections_to_fill: Option<u64>,
}

impl LossSheet {
    pub(super) fn new(path: Path, loss: Probability) -> Self {
        let (mss, rtt, link) = (path.framing.mss(), path.rtt, path.goodput());
        LossSheet {
            loss,
            cubic: LossLaw::new(cubic::rate(mss, rtt, loss, link), link),
            reno: LossLaw::new(mathis::rate(mss, rtt, loss, link).0, link),
            reno_with_timeouts: LossLaw::new(pftk::rate(mss, rtt, loss, link), link),
        }
    }
}

impl LossLaw {
    fn new(goodput: Rate, link: Rate) -> Self {
        LossLaw {
            goodput,
            connections_to_fill: (goodput > Rate::ZERO)
                .then(|| link.bits_per_sec().div_ceil(goodput.bits_per_sec())),
        }
    }
}

fn fraction<S: serde::Serializer>(loss: &Probability, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_f64(loss.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_path_with_little_loss_needs_many_connections() {
        let path = Path::new("1gbit".parse().unwrap(), "146ms".parse().unwrap());
        let sheet = LossSheet::new(path, "0.01%".parse().unwrap());
        assert!(sheet.cubic.goodput > sheet.reno.goodput);
        assert!(sheet.reno.goodput > sheet.reno_with_timeouts.goodput);
        let needed = |law: LossLaw| law.connections_to_fill.unwrap();
        assert!(needed(sheet.cubic) < needed(sheet.reno), "{sheet:?}");
        let carried = needed(sheet.reno) * sheet.reno.goodput.bits_per_sec();
        assert!(carried >= path.goodput().bits_per_sec());
        let none = LossSheet::new(path, Probability::ZERO);
        assert_eq!(none.reno.connections_to_fill, Some(1));
    }
}
