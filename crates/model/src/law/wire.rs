//! Framing: the share of a link's rate that carries application data.
//!
//! Each segment of MSS bytes carries an IP header (20 bytes in IPv4, RFC 791; 40 in IPv6, RFC
//! 8200), a TCP header (20, RFC 9293) and, with timestamps on, 12 bytes of options (RFC 7323,
//! padded). So 1448 of 1500 bytes are goodput. What the link itself adds to each packet depends on
//! where its rate is counted: nothing for a link that counts IP packets (this project's), 14 for a
//! qdisc on Ethernet (tbf, htb, netem), 38 for Ethernet's own rate (header, FCS, preamble and the
//! gap between frames).

use crate::units::{Bytes, Rate, column};

/// The IP version of the segments.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum IpVersion {
    /// RFC 791, 20 bytes of header.
    #[default]
    Ipv4,
    /// RFC 8200, 40 bytes of header.
    Ipv6,
}

impl IpVersion {
    /// Length of its header without options or extensions.
    pub const fn header(self) -> Bytes {
        match self {
            IpVersion::Ipv4 => Bytes::new(20),
            IpVersion::Ipv6 => Bytes::new(40),
        }
    }
}

/// Length of a TCP header without options.
const TCP_HEADER: Bytes = Bytes::new(20);
/// Length of the timestamps option, padded to words.
const TIMESTAMPS: Bytes = Bytes::new(12);
/// Bytes that a qdisc on Ethernet counts in addition to the IP packet.
pub const ETHERNET_HEADER: Bytes = Bytes::new(14);

/// How data is segmented and framed on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Framing {
    /// Largest IP packet.
    #[serde(rename = "mtu_bytes", with = "column::bytes")]
    pub mtu: Bytes,
    /// IP version.
    pub ip: IpVersion,
    /// Whether `tcp_timestamps` is on at both ends, as by default in Linux.
    pub timestamps: bool,
    /// Bytes that the link counts for each packet in addition to the packet itself.
    #[serde(rename = "link_overhead_bytes", with = "column::bytes")]
    pub link_overhead: Bytes,
}

impl Framing {
    /// MTU 1500, IPv4, timestamps, and a link whose rate counts IP packets: 1448 of 1500.
    pub const IP_1500: Framing = Framing {
        mtu: Bytes::new(1500),
        ip: IpVersion::Ipv4,
        timestamps: true,
        link_overhead: Bytes::ZERO,
    };

    /// Bytes of data in a full segment (RFC 9293 section 3.7.1, less the options in each segment);
    /// at least 1.
    pub fn mss(self) -> Bytes {
        let options = if self.timestamps { TIMESTAMPS } else { Bytes::ZERO };
        let headers = self.ip.header().saturating_add(TCP_HEADER).saturating_add(options);
        self.mtu.saturating_sub(headers).max(Bytes::new(1))
    }

    /// Data over everything that the link counts, between 0 and 1.
    fn goodput_share(self) -> f64 {
        let counted = self.mtu.saturating_add(self.link_overhead).max(self.mss());
        self.mss().as_f64() / counted.as_f64()
    }

    /// The largest goodput of a link of `rate`.
    ///
    /// ```
    /// use fullpipe_model::law::Framing;
    /// assert_eq!(Framing::IP_1500.goodput("1gbit".parse().unwrap()).to_string(), "965.3 Mbit/s");
    /// ```
    pub fn goodput(self, rate: Rate) -> Rate {
        Rate::from_bits_per_sec_f64(rate.as_f64() * self.goodput_share()).min(rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What a frame takes of Ethernet's own rate beside the IP packet: header 14, FCS 4, preamble 8,
    /// gap 12.
    const ETHERNET_WIRE: Bytes = Bytes::new(38);

    #[test]
    fn segments_and_shares_on_ethernet() {
        assert_eq!(Framing::IP_1500.mss().get(), 1448);
        assert_eq!(Framing { ip: IpVersion::Ipv6, ..Framing::IP_1500 }.mss().get(), 1428);
        assert_eq!(Framing { timestamps: false, ..Framing::IP_1500 }.mss().get(), 1460);
        // The 941 Mbit/s that every gigabit Ethernet test shows: 1448 / 1538.
        let wire = Framing { link_overhead: ETHERNET_WIRE, ..Framing::IP_1500 };
        assert_eq!(wire.goodput("1gbit".parse().unwrap()).to_string(), "941.5 Mbit/s");
    }

    /// Trial on 6.12 with htb at 1 Gbit/s: 116.25 MB/s with the handshake and slow start of a 2 GB
    /// transfer included.
    #[test]
    fn a_shaped_links_goodput_is_above_what_was_measured_through_it() {
        let htb = Framing { link_overhead: ETHERNET_HEADER, ..Framing::IP_1500 };
        let bound = htb.goodput("1gbit".parse().unwrap());
        assert_eq!(format!("{bound:#}"), "119.6 MB/s");
        assert!(Rate::from_bits_per_sec(116_250_000 * 8) < bound);
    }

    proptest! {
        #[test]
        fn goodput_is_below_the_rate(mtu: u64, overhead: u64, v6: bool, timestamps: bool, bits: u64) {
            let ip = if v6 { IpVersion::Ipv6 } else { IpVersion::Ipv4 };
            let framing = Framing { mtu: Bytes::new(mtu), ip, timestamps, link_overhead: Bytes::new(overhead) };
            prop_assert!((0.0..=1.0).contains(&framing.goodput_share()));
            prop_assert!(framing.goodput(Rate::from_bits_per_sec(bits)) <= Rate::from_bits_per_sec(bits));
        }
    }
}
