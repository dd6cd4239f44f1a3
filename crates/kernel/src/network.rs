//! Network namespaces, their devices, and what stands between them.

pub mod ethtool;
pub mod filters;
pub mod netem;
pub mod netlink;
pub mod netns;
pub mod packet_filter;
pub mod packet_ring;
pub mod port;
pub mod redirect;
pub mod wire;
