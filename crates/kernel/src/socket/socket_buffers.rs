//! The buffers of a socket: how large they are, and how large an application may have them.

use std::os::fd::AsFd;

use fullpipe_model::units::Bytes;
use nix::sys::socket::{getsockopt, setsockopt, sockopt};

use crate::Refused;

/// The receive buffer of `socket` (`sk_rcvbuf`).
pub fn receive(socket: &impl AsFd) -> Result<Bytes, Refused> {
    let size = getsockopt(socket, sockopt::RcvBuf)
        .map_err(|errno| Refused::new("read SO_RCVBUF", "socket", errno))?;
    Ok(Bytes::new(size as u64))
}

/// The send buffer of `socket` (`sk_sndbuf`).
pub fn send(socket: &impl AsFd) -> Result<Bytes, Refused> {
    let size = getsockopt(socket, sockopt::SndBuf)
        .map_err(|errno| Refused::new("read SO_SNDBUF", "socket", errno))?;
    Ok(Bytes::new(size as u64))
}

/// Asks for a receive buffer of `size`, and returns what the kernel gave: twice of it, or of
/// `rmem_max`. It ends autotuning.
pub fn ask_receive(socket: &impl AsFd, size: Bytes) -> Result<Bytes, Refused> {
    let wanted = size.get().min(i32::MAX as u64) as usize;
    setsockopt(socket, sockopt::RcvBuf, &wanted)
        .map_err(|errno| Refused::new("set SO_RCVBUF", size.to_string(), errno))?;
    receive(socket)
}

/// Asks for a send buffer of `size`, and returns what the kernel gave: twice of it, or of
/// `wmem_max`. It ends autotuning.
pub fn ask_send(socket: &impl AsFd, size: Bytes) -> Result<Bytes, Refused> {
    let wanted = size.get().min(i32::MAX as u64) as usize;
    setsockopt(socket, sockopt::SndBuf, &wanted)
        .map_err(|errno| Refused::new("set SO_SNDBUF", size.to_string(), errno))?;
    send(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_doubled() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let asked = Bytes::new(16_384);
        assert_eq!(ask_receive(&socket, asked).unwrap(), Bytes::new(32_768));
        assert_eq!(ask_send(&socket, asked).unwrap(), Bytes::new(32_768));
        assert_eq!(receive(&socket).unwrap(), send(&socket).unwrap());
    }
}
