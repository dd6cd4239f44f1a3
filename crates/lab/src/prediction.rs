//! What the laws predict for a scenario, before it runs or for the window that was seen.

use crate::path_for::path_for;
use crate::tuning::{self, EndTuning};
use fullpipe_flow::schema::Clock;
use fullpipe_model::change::Sysctl;
use fullpipe_model::law::{Framing, KernelVersion, ScalingRatio};
use fullpipe_model::limit::Limit;
use fullpipe_model::scenario::{LinkEngine, Scenario};
use fullpipe_model::tune::{self, Path, Prediction};
use fullpipe_model::units::{Bytes, Rate, Window};

/// What a packet of a guest's netem takes beside its data: an `sk_buff` (256) and a head (576).
const NETEM_OVERHEAD: Bytes = Bytes::new(832);

/// Where a run happens, as far as it decides what is known of it before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ground {
    pub(crate) kernel: KernelVersion,
    pub(crate) clock: Clock,
    pub(crate) link_engine: LinkEngine,
}

/// The steady goodput that the laws predict, and which of them limits it; `None` if nothing does.
///
/// In a guest with netem everything is known before the run: the kernel's defaults and what a
/// packet takes. Elsewhere the window is the largest that was seen, and a send buffer that the
/// scenario does not set is taken for unlimited.
pub(crate) fn of(
    scenario: &Scenario,
    ground: Ground,
    window_seen: Option<Window>,
) -> Option<Prediction> {
    let unlimited = Rate::from_bits_per_sec(u64::MAX);
    let transfer = path_for(scenario);
    let path = Path {
        framing: Framing { mtu: scenario.path.mtu, ..Framing::IP_1500 },
        ..Path::new(transfer.to_client.mean_rate().unwrap_or(unlimited), transfer.rtt())
    };
    let EndTuning { mut sender, mut receiver } = tuning::ends(scenario, ground.kernel);
    let known = ground.clock == Clock::Virtual && ground.link_engine == LinkEngine::Netem;
    let prediction = if known {
        let mss = path.framing.mss();
        receiver.scaling_ratio =
            Some(ScalingRatio::measured(mss, mss.saturating_add(NETEM_OVERHEAD)));
        tune::predict(path, &sender, &receiver)
    } else {
        let sysctl = &scenario.hosts.server.sysctl;
        if sender.so_sndbuf.is_none() && !sysctl.contains_key(Sysctl::TcpWmem.name()) {
            sender.tcp_wmem.max = Bytes::MAX;
        }
        tune::predict_with_window(path, &sender, window_seen.unwrap_or(Window::UNLIMITED))
    };
    let prediction = match scenario.transfer.granted() {
        Some(granted) => {
            let goodput = granted.rate(path.goodput(), path.rtt);
            let limited_by = Limit::ApplicationWindow;
            let is_less = goodput < prediction.goodput;
            if is_less { Prediction { goodput, limited_by, ..prediction } } else { prediction }
        }
        None => prediction,
    };
    (prediction.goodput < path.goodput() || path.rate < unlimited).then_some(prediction)
}
