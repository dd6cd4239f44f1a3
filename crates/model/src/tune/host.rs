//! The settings of a host, by Linux's sysctl names.

use crate::change::{Knob, MemTriple, Sysctl, Value, ValueError};
use crate::law::window_scale::WindowScale;
use crate::law::{
    AdvWinScale, KernelVersion, ScalingRatio, WindowLaw, receive_buffer, send_buffer,
};
use crate::units::{Bytes, Window};

/// The settings of one host that decide how much data it can have in flight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostSettings {
    /// Decides the law that turns buffers into windows.
    pub kernel: KernelVersion,
    /// `net.ipv4.tcp_rmem`.
    pub tcp_rmem: MemTriple,
    /// `net.ipv4.tcp_wmem`.
    pub tcp_wmem: MemTriple,
    /// `net.core.rmem_max`.
    pub rmem_max: Bytes,
    /// `net.core.wmem_max`.
    pub wmem_max: Bytes,
    /// `net.ipv4.tcp_adv_win_scale`; without effect since Linux 6.6.
    pub tcp_adv_win_scale: AdvWinScale,
    /// `net.ipv4.tcp_window_scaling`.
    pub tcp_window_scaling: bool,
    /// `net.ipv4.tcp_moderate_rcvbuf`.
    pub tcp_moderate_rcvbuf: bool,
    /// `net.ipv4.tcp_slow_start_after_idle`.
    pub tcp_slow_start_after_idle: bool,
    /// Pages at which all TCP sockets together come under memory pressure (`net.ipv4.tcp_mem[1]`),
    /// if known.
    pub tcp_mem_pressure_pages: Option<u64>,
    /// The application's SO_RCVBUF, if it sets one; that ends autotuning.
    pub so_rcvbuf: Option<Bytes>,
    /// The application's SO_SNDBUF, if it sets one; that ends autotuning.
    pub so_sndbuf: Option<Bytes>,
    /// What the application writes at once when it sends.
    pub write: Bytes,
    /// The `scaling_ratio` that this host's device leads to, if known; the usual one otherwise.
    pub scaling_ratio: Option<ScalingRatio>,
}

/// What a queued packet of one segment takes beside its data, at least: `sk_buff` (256) and head
/// (576) on x86-64.
const PACKET_OVERHEAD: Bytes = Bytes::new(832);

/// What an application writes at once if nothing is known: as much as a pipe holds, which is also
/// about the longest packet.
const USUAL_WRITE: Bytes = Bytes::new(64 << 10);

impl HostSettings {
    /// The defaults of `kernel` on a machine with enough memory (several GiB).
    pub fn defaults(kernel: KernelVersion) -> Self {
        let initial = if kernel < KernelVersion::RMEM_INITIAL_128K { 87_380 } else { 131_072 };
        let rmem_max = if kernel < KernelVersion::RMEM_32M { 6_291_456 } else { 33_554_432 };
        let core_max = if kernel < KernelVersion::CORE_MEM_4M { 212_992 } else { 4_194_304 };
        HostSettings {
            kernel,
            tcp_rmem: MemTriple::new(4096, initial, rmem_max),
            tcp_wmem: MemTriple::new(4096, 16_384, 4_194_304),
            rmem_max: Bytes::new(core_max),
            wmem_max: Bytes::new(core_max),
            tcp_adv_win_scale: AdvWinScale::DEFAULT,
            tcp_window_scaling: true,
            tcp_moderate_rcvbuf: true,
            tcp_slow_start_after_idle: true,
            tcp_mem_pressure_pages: None,
            so_rcvbuf: None,
            so_sndbuf: None,
            write: USUAL_WRITE,
            scaling_ratio: None,
        }
    }

    /// Gives a setting the value that a kernel shows as `text`. One that makes no window is left
    /// alone.
    ///
    /// # Errors
    /// The text is not a value of this setting.
    pub fn read(&mut self, sysctl: Sysctl, text: &str) -> Result<(), ValueError> {
        let knob = Knob::Sysctl(sysctl);
        let value = knob.read(text)?;
        self.set(sysctl, &value).ok_or_else(|| knob.refuses(text))
    }

    /// Gives the setting of `knob` a value, as far as it makes a window.
    ///
    /// # Panics
    /// The value is not of the knob's type: [`Knob::read`] makes none.
    pub fn make(&mut self, knob: &Knob, value: &Value) {
        if let Knob::Sysctl(sysctl) = knob {
            self.set(*sysctl, value).expect("a knob's value is of its own type");
        }
    }

    /// Gives a setting a value; `None` where it is no value of this setting. One that makes no
    /// window is left alone.
    fn set(&mut self, sysctl: Sysctl, value: &Value) -> Option<()> {
        match sysctl {
            Sysctl::TcpRmem => self.tcp_rmem = value.triple()?,
            Sysctl::TcpWmem => self.tcp_wmem = value.triple()?,
            Sysctl::RmemMax => self.rmem_max = value.bytes()?,
            Sysctl::WmemMax => self.wmem_max = value.bytes()?,
            Sysctl::TcpWindowScaling => self.tcp_window_scaling = value.number()? != 0,
            Sysctl::TcpModerateRcvbuf => self.tcp_moderate_rcvbuf = value.number()? != 0,
            Sysctl::TcpSlowStartAfterIdle => self.tcp_slow_start_after_idle = value.number()? != 0,
            Sysctl::TcpAdvWinScale => {
                let scale = i8::try_from(value.number()?).ok()?;
                self.tcp_adv_win_scale = AdvWinScale::new(scale)?;
            }
            Sysctl::TcpMem => {
                let Value::Triple([_, pressure, _]) = value else { return None };
                self.tcp_mem_pressure_pages = Some(u64::try_from(*pressure).ok()?);
            }
            _ => {}
        }
        Some(())
    }

    /// The value of a setting; `None` of one that makes no window.
    pub fn get(&self, sysctl: Sysctl) -> Option<Value> {
        Some(match sysctl {
            Sysctl::TcpRmem => self.tcp_rmem.into(),
            Sysctl::TcpWmem => self.tcp_wmem.into(),
            Sysctl::RmemMax => self.rmem_max.into(),
            Sysctl::WmemMax => self.wmem_max.into(),
            Sysctl::TcpWindowScaling => Value::flag(self.tcp_window_scaling),
            Sysctl::TcpModerateRcvbuf => Value::flag(self.tcp_moderate_rcvbuf),
            Sysctl::TcpSlowStartAfterIdle => Value::flag(self.tcp_slow_start_after_idle),
            Sysctl::TcpAdvWinScale => Value::Number(self.tcp_adv_win_scale.get().into()),
            _ => return None,
        })
    }

    /// How this host turns a receive buffer into a window.
    pub fn window_law(&self) -> WindowLaw {
        match (WindowLaw::of(self.kernel, self.tcp_adv_win_scale), self.scaling_ratio) {
            (WindowLaw::ScalingRatio(_), Some(ratio)) => WindowLaw::ScalingRatio(ratio),
            (law, _) => law,
        }
    }

    /// The window scale that this host offers in its SYN.
    pub fn window_scale(&self) -> WindowScale {
        WindowScale::chosen(self.tcp_rmem.max, self.rmem_max, Bytes::MAX)
    }

    /// The largest `sk_rcvbuf` of a connection.
    pub fn rcvbuf(&self) -> Bytes {
        match self.so_rcvbuf {
            Some(requested) => receive_buffer::so_rcvbuf(requested, self.rmem_max),
            None if self.tcp_moderate_rcvbuf => self.tcp_rmem.max,
            None => self.tcp_rmem.default,
        }
    }

    /// The largest `sk_sndbuf` of a connection.
    pub fn sndbuf(&self) -> Bytes {
        match self.so_sndbuf {
            Some(requested) => send_buffer::so_sndbuf(requested, self.wmem_max),
            None => self.tcp_wmem.max,
        }
    }

    /// The largest window that this host advertises when it receives.
    pub fn receive_window(&self) -> Window {
        self.window_law().window(self.rcvbuf()).min(self.window_scale().largest())
    }

    /// The window that this host advertises to a steady sender of segments of `mss` bytes.
    pub fn steady_window(&self, mss: Bytes) -> Window {
        let law = self.window_law();
        // The window last grew while a packet was queued (`tcp_grow_window`).
        let packet = mss.saturating_add(PACKET_OVERHEAD);
        let rcvbuf = self.rcvbuf();
        let window = law.window(rcvbuf.saturating_sub(packet)).bytes();
        let is_as_made = self.so_rcvbuf.is_some() || rcvbuf <= self.tcp_rmem.default;
        let window = match law {
            // A new socket keeps a segment in reserve (`tcp_init_buffer_space`); a change of its
            // buffer, or of its scaling ratio, ends that.
            WindowLaw::AdvWinScale(_) if is_as_made => {
                let reserved = law.window(rcvbuf).bytes().saturating_sub(mss);
                window.min(reserved.max(Bytes::new(mss.get().saturating_mul(2))))
            }
            _ => window,
        };
        // Too small for a segment, it keeps the first window that the handshake offered: whole
        // segments of half of the buffer (`tcp_select_initial_window`).
        let first = law.cautious().window(rcvbuf).bytes().get();
        let kept = Bytes::new(if window < mss { first - first % mss.get().max(1) } else { 0 });
        Window::new(window.max(kept)).min(self.window_scale().largest())
    }

    /// The bytes that this host keeps in flight when it sends.
    pub fn send_window(&self) -> Window {
        send_buffer::window(self.sndbuf())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_what_is_got() {
        let mut host = HostSettings::defaults(KernelVersion::new(6, 18));
        for (setting, value) in [
            (Sysctl::TcpRmem, "4096 87380 100000000"),
            (Sysctl::TcpWmem, "4096 16384 1"),
            (Sysctl::RmemMax, "2500000"),
            (Sysctl::WmemMax, "0"),
            (Sysctl::TcpWindowScaling, "0"),
            (Sysctl::TcpModerateRcvbuf, "0"),
        ] {
            host.read(setting, value).unwrap();
            assert_eq!(host.get(setting).unwrap().to_string(), value);
            let error = host.read(setting, "much").unwrap_err().to_string();
            assert!(error.contains(setting.name()) && error.contains("'much'"), "{error}");
        }
        assert!(host.set(Sysctl::TcpRmem, &Value::Number(1)).is_none(), "of another's type");
        assert!(host.read(Sysctl::RmemMax, "-1").is_err());
        assert_eq!(host.get(Sysctl::TcpSack), None);
        host.read(Sysctl::TcpSack, "0").unwrap();
    }

    #[test]
    fn an_application_that_sets_its_buffer_is_bounded_by_the_machine() {
        let host = HostSettings {
            so_rcvbuf: Some("64MiB".parse().unwrap()),
            ..HostSettings::defaults(KernelVersion::new(6, 1))
        };
        assert_eq!(host.rcvbuf(), Bytes::new(2 * 212_992));
        assert_eq!(host.receive_window(), Window::new(Bytes::new(212_992)));
        let host = HostSettings {
            tcp_moderate_rcvbuf: false,
            ..HostSettings::defaults(KernelVersion::new(6, 1))
        };
        assert_eq!(host.receive_window(), Window::new(Bytes::new(65_536)));
    }
}
