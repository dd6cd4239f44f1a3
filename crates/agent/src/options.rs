//! What an agent is asked for.

use fullpipe_model::tune::window_control::Settings;
use fullpipe_model::units::Bytes;

/// What the agent does with a control group's connections.
#[derive(Debug, Clone)]
pub struct AgentOptions {
    /// The law's.
    pub settings: Settings,
    /// Whether sockets are changed; otherwise the law is computed and shown.
    pub control: bool,
    /// Connections over loopback too.
    pub loopback: bool,
    /// Sockets whose application chose its buffer too.
    pub unfreeze: bool,
    /// The largest buffer that the kernel grants: twice `net.core.rmem_max`.
    pub most_buffer: Bytes,
}
