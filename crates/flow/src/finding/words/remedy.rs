//! What would change it.

use crate::finding::{MachineRemedy, OnLoss, PacketRemedy, Remedy, SocketRemedy};

const RAISE_PACING: &str = "raise or remove what spaces the data at the sender: the timer of its \
    program, SO_MAX_PACING_RATE (iperf3 --fq-rate), or a rate of tc (fq, htb, tbf) on its host; \
    `fullpipe why` there says which";

const GROW_BACK_SOONER: &str = "try another congestion control: bbr keeps its rate over such \
    drops; longer transfers suffer less, and so does a link whose queue holds more";

/// What would change it, as a sentence without its end.
pub const fn remedy(remedy: Remedy) -> &'static str {
    match remedy {
        Remedy::RemoveLoss(on_loss) => remove_loss(on_loss),
        Remedy::Packets(remedy) => of_packets(remedy),
        Remedy::Socket(remedy) => of_socket(remedy),
        Remedy::Machine(remedy) => of_machine(remedy),
        Remedy::GrowReceiveBuffer => {
            "let the receiver's buffer grow: raise the third value of net.ipv4.tcp_rmem \
             on the receiver, and remove or raise SO_RCVBUF in its application"
        }
        Remedy::ScaleOrGrowReceiveBuffer => {
            "see that window scaling is on at both ends (net.ipv4.tcp_window_scaling): \
             without it no window is above 65535 bytes, which is where this one stands; \
             if it is on, raise the third value of net.ipv4.tcp_rmem on the receiver, and \
             remove or raise SO_RCVBUF in its application"
        }
        Remedy::ScaleWindow => {
            "switch window scaling on: one of the SYNs does not offer it, so that no \
             buffer makes the window larger than 65,535 bytes; set \
             net.ipv4.tcp_window_scaling=1 at that end, or find the middlebox that \
             removes the option"
        }
        Remedy::ReadFaster => {
            "read faster: more CPU, a faster disk or a larger read on the receiver; \
             larger buffers would only fill"
        }
        Remedy::GrowSendBuffer => {
            "let the sender's buffer grow: raise the third value of net.ipv4.tcp_wmem on \
             the sender, and remove or raise SO_SNDBUF in its application"
        }
        Remedy::FreeSendBuffer => {
            "let the sender's buffer grow: its size never changed, so the application set \
             it; remove SO_SNDBUF there or raise it with net.core.wmem_max \
             (net.ipv4.tcp_wmem has no effect on it)"
        }
        Remedy::WriteFaster => {
            "make the sending application produce data faster, or in larger writes"
        }
        Remedy::RaisePacing => RAISE_PACING,
        Remedy::KeepConnections => {
            "keep connections open between transfers, or raise the route's initcwnd; \
             longer transfers suffer less"
        }
        Remedy::NoneAtTheHosts => "nothing at the hosts: this is what the path carries",
        Remedy::SendEvenly => {
            "send evenly, not in bursts: try bbr, or pacing (tc fq with maxrate, \
             SO_MAX_PACING_RATE); what drops without a queue is a policer or a very short \
             queue, and may carry more than this; whoever runs it knows its rate and its \
             burst"
        }
        Remedy::GrowBackSooner => GROW_BACK_SOONER,
        Remedy::FewerRoundTrips => {
            "nothing at TCP: pay fewer round trips before it (keep the connection open, \
             TLS 1.3, fewer requests), or fetch it from nearer"
        }
        Remedy::CaptureTheStart => {
            "capture at the sender, from the connection's start, and sample its socket"
        }
        Remedy::CaptureBothEnds => {
            "no setting is advised on this evidence: capture at both ends, from before \
             the connection begins and for 10 s or longer, and sample the sockets \
             meanwhile (`fullpipe why --record`)"
        }
        Remedy::WatchLonger => {
            "no setting is advised on this evidence: watch for longer (`fullpipe why \
             --for 30s`), at both ends, or capture the packets at the sender from before \
             the connection begins"
        }
    }
}

const fn remove_loss(on_loss: OnLoss) -> &'static str {
    match on_loss {
        OnLoss::RunsBbr => {
            "remove the loss; the sender runs bbr already, which does not take each loss \
             for congestion"
        }
        OnLoss::SlowsDown => {
            "remove the loss, or use a congestion control that does not take each loss \
             for congestion (bbr); the one in use slows down after it, as cubic and reno \
             do"
        }
        OnLoss::GoesOn => {
            "remove the loss; what is in flight hardly falls after it, so that the sender \
             may run bbr already: look with `ss -ti` before another congestion control \
             is tried"
        }
        OnLoss::Unknown => {
            "remove the loss, or, where `ss -ti` at the sender does not show it in use \
             already, use a congestion control that does not take each loss for \
             congestion (bbr)"
        }
    }
}

const fn of_packets(remedy: PacketRemedy) -> &'static str {
    match remedy {
        PacketRemedy::LetSynPass => {
            "see whether the server is up, its address is right, and no firewall drops \
             the SYN; capture at the server, to see whether it arrives"
        }
        PacketRemedy::LetSynAckPass => {
            "look for what drops the answer on its way back, a firewall or a route that \
             is not the way there; capture at the client, to see whether it arrives"
        }
        PacketRemedy::LetMtuBeKnown => {
            "let ICMP pass that says what fits (\"fragmentation needed\", IPv6 \"packet \
             too big\"); or lower the MTU of the hosts' interface to that of the tunnel \
             between them, or clamp the MSS where the tunnel begins (nft: tcp option \
             maxseg size set rt mtu); net.ipv4.tcp_mtu_probing=1 at the sender finds the \
             size by itself"
        }
        PacketRemedy::LetScalePass => {
            "find the device between the ends that changes or does not know the window \
             scale (a firewall, a load balancer, a NAT that inspects TCP), and let it \
             pass the option as it is; no buffer of either host changes this. Until then, \
             net.ipv4.tcp_window_scaling=0 at one end makes both agree on windows of 64 \
             KiB"
        }
        PacketRemedy::LiftPolicer => {
            "ask whoever polices it (a provider, a cloud, a QoS rule) for more, or for a \
             shaper in its place; bbr, or pacing below the rate (SO_MAX_PACING_RATE, \
             tc-fq maxrate), avoids the loss, and passes more where the bucket is smaller \
             than what is sent at once"
        }
        PacketRemedy::ShareLess => {
            "fewer connections at a time, or a queue at the narrowest place that shares \
             fairly (tc-fq_codel, tc-cake), change what one of them gets; together they \
             get no more"
        }
        PacketRemedy::NoticeLossSooner => {
            "remove the loss; where SACK is off at one end, switch it on \
             (net.ipv4.tcp_sack), and keep net.ipv4.tcp_early_retrans at 3, so that a \
             lost end of a flight is probed for before the timer runs out"
        }
        PacketRemedy::KeepWindowOverPauses => {
            "set net.ipv4.tcp_slow_start_after_idle=0 on the sender, so that a connection \
             keeps its window over a pause"
        }
        PacketRemedy::WriteWholeMessages => {
            "write a whole message at once (writev, MSG_MORE, TCP_CORK, a buffered \
             stream), or set TCP_NODELAY on the sender's socket; TCP_QUICKACK on the \
             receiver helps for a moment only"
        }
        PacketRemedy::MakeRoomForAcks => {
            "give the ACKs room on their way back: fewer uploads beside this download, a \
             queue there that shares fairly or thins ACKs out (tc-fq_codel, tc-cake with \
             ack-filter), or more bandwidth that way; the data's own way has no queue"
        }
        PacketRemedy::SendInOrder => {
            "find what parts the segments of one connection at that host: a bond in mode balance-rr, \
             several transmit queues that take turns, a driver's fault (see whether it stays after \
             `ethtool -K DEVICE tso off`, and undo that with `tso on`)"
        }
        PacketRemedy::KeepOrder => {
            "find the device that spreads one connection's packets over several links \
             (per-packet balancing, bonding in round-robin mode)"
        }
        // What the applications have under way.
        _ => of_window(remedy),
    }
}

const fn of_socket(remedy: SocketRemedy) -> &'static str {
    match remedy {
        SocketRemedy::ScaleWindowAtSyn => {
            "set net.ipv4.tcp_window_scaling=1 at the end where it is off, or find the \
             middlebox that removes the option; only new connections gain"
        }
        SocketRemedy::FreeReceiveBufferOrRaiseMax => {
            "remove SO_RCVBUF from the application, so that the buffer grows by itself, \
             or raise net.core.rmem_max and restart it"
        }
        SocketRemedy::FreeReceiveBuffer => {
            "remove SO_RCVBUF from the application, so that the buffer grows by itself \
             (up to the third value of net.ipv4.tcp_rmem), or ask for more there"
        }
        SocketRemedy::FreeWindow => "remove TCP_WINDOW_CLAMP from the application",
        SocketRemedy::RaiseReceiveMax => {
            "raise the third value of net.ipv4.tcp_rmem on the receiver (`fullpipe tune \
             plan` there says to what); new connections gain immediately"
        }
        SocketRemedy::ReadMore => {
            "give the reading process more CPU, a faster disk or larger reads; larger \
             buffers would only fill"
        }
        SocketRemedy::FreeSendBufferOrRaiseMax => {
            "remove SO_SNDBUF from the application, so that the buffer grows by itself, \
             or raise net.core.wmem_max and restart it"
        }
        SocketRemedy::RaiseSendBuffer => {
            "remove SO_SNDBUF from the application, so that the buffer grows by itself \
             (up to the third value of net.ipv4.tcp_wmem), or ask for more there"
        }
        SocketRemedy::RaiseSendMax => {
            "raise the third value of net.ipv4.tcp_wmem on the sender (`fullpipe tune \
             plan` there says to what)"
        }
        SocketRemedy::PaceLess => "raise or remove SO_MAX_PACING_RATE in the application",
        SocketRemedy::WriteWholeOrNoDelay => {
            "write a whole message at once (writev, MSG_MORE, TCP_CORK, a buffered \
             stream), or set TCP_NODELAY on the sender's socket"
        }
        SocketRemedy::RaiseUnsentMark => {
            "raise TCP_NOTSENT_LOWAT in the application, or let it write as soon as poll \
             says so"
        }
        SocketRemedy::RemoveLossOrUseSack => {
            "remove the loss; where SACK is off at one end, switch it on \
             (net.ipv4.tcp_sack)"
        }
        SocketRemedy::KeepWindowOfBursts => {
            "set net.ipv4.tcp_slow_start_after_idle=0 on the sender, if the connection is \
             used in bursts"
        }
        SocketRemedy::FindSmallMtu => {
            "find the tunnel or the device with the small MTU (`tracepath`); where ICMP \
             is filtered, net.ipv4.tcp_mtu_probing=1 finds the largest that passes"
        }
        SocketRemedy::ReadOrGrowMemory => {
            "let the application read, or raise net.ipv4.tcp_rmem; under memory pressure \
             (net.ipv4.tcp_mem) the whole host drops"
        }
    }
}

/// Against a window above TCP.
const fn of_window(remedy: PacketRemedy) -> &'static str {
    match remedy {
        PacketRemedy::LeaveSshChannel => {
            "no setting of OpenSSH and no buffer of the kernel changes its channel's window: \
             use several transfers side by side (each channel has a window of its own, on one \
             connection or on several), HPN-SSH at the end that receives, or another protocol \
             for the data (rsync's daemon, HTTPS, `fullpipe relay`)"
        }
        PacketRemedy::AskMoreOfSftp => {
            "have more under way: sftp -R 256 or more, and -B 261120 where the server takes \
             it (sshfs: several connections, max_conns); beyond 2 MiB the window of SSH's \
             channel holds it; several transfers side by side have requests of their own"
        }
        PacketRemedy::GrowHttp2Window => {
            "let the receiving program grant more to its streams and to the connection, which \
             both count: SETTINGS_INITIAL_WINDOW_SIZE and WINDOW_UPDATE (nginx, for uploads: \
             http2_body_preread_size; hyper and tonic: initial_stream_window_size, \
             initial_connection_window_size or adaptive_window; gRPC: its BDP estimator; \
             Go: http2.Server's MaxUploadBufferPerStream and PerConnection); HTTP/1.1 has \
             no such window"
        }
        PacketRemedy::AskMoreOfHttp1 => {
            "ask for more at a time: several requests at once (HTTP/2, or more connections), or \
             fewer and larger ones; or move the two ends nearer"
        }
        PacketRemedy::AskMoreOfIscsi => {
            "have more under way: deeper queues at the initiator (open-iscsi: \
             node.session.queue_depth, node.session.cmds_max), larger bursts at both ends \
             (MaxBurstLength, FirstBurstLength; InitialR2T=No and ImmediateData=Yes save a round \
             trip for each write), several sessions"
        }
        PacketRemedy::AskMoreOfMysql => {
            "ask for more at a time: a join in place of a query for each row, many rows in one \
             INSERT (Connector/J: rewriteBatchedStatements), a larger fetch size where a cursor \
             reads (useCursorFetch, defaultFetchSize); or move the two ends nearer"
        }
        PacketRemedy::AskMoreOfNfs => {
            "have more under way: the mount options rsize and wsize as large as the server grants \
             (1 MiB) and nconnect (several connections), a larger read_ahead_kb of the mount \
             (/sys/class/bdi); fewer questions for attributes (actimeo)"
        }
        PacketRemedy::AskMoreOfPostgresql => {
            "ask for more at a time: a larger fetch size where a cursor reads (FETCH; JDBC: \
             defaultRowFetchSize; psql: FETCH_COUNT), a join in place of a query for each row, \
             statements by pipeline mode, in batches or by COPY; or move the two ends nearer"
        }
        PacketRemedy::AskMoreOfRedis => {
            "send several commands before the first is answered (a pipeline), or one for many keys \
             (MGET, MSET, a script); or move the two ends nearer"
        }
        PacketRemedy::AskMoreOfSmb => {
            "have more under way: several files at a time (robocopy /MT), larger requests \
             (mount.cifs: rsize, wsize), several connections (multichannel; mount.cifs: \
             max_channels), or more credits where the server grants few"
        }
        _ => {
            "raise the window of the protocol that both applications speak, at the \
             receiving one (HTTP/2: SETTINGS_INITIAL_WINDOW_SIZE and the connection's; \
             SSH: an implementation with a larger channel window; SMB: more credits), or \
             request more at a time; several connections side by side have a window each; \
             no buffer of the kernel changes it"
        }
    }
}

const fn of_machine(remedy: MachineRemedy) -> &'static str {
    match remedy {
        MachineRemedy::RaiseTcpMemory => "raise net.ipv4.tcp_mem, or find who holds the memory",
        MachineRemedy::RaiseTcpMemoryOrFindHolder => {
            "raise net.ipv4.tcp_mem, or find who holds the memory; windows shrink \
             meanwhile"
        }
        MachineRemedy::FreeTcpMemory => {
            "let the process that holds most read or close what it does not need, or \
             raise net.ipv4.tcp_mem where the machine has the memory"
        }
        MachineRemedy::RaiseGroupMemory => {
            "raise the group's memory limit (memory.max), or let its processes hold less \
             in sockets"
        }
        MachineRemedy::ReadOrRaiseReceiveMax => {
            "let the application read, or raise the third value of net.ipv4.tcp_rmem"
        }
        MachineRemedy::ReadSmallerPieces => "raise net.ipv4.tcp_rmem; read in smaller pieces",
        MachineRemedy::AcceptFaster => {
            "let the server accept faster, or raise its backlog and net.core.somaxconn"
        }
        MachineRemedy::RaiseReceiveMaxOrKeepOrder => {
            "raise the third value of net.ipv4.tcp_rmem; remove the loss or the \
             reordering"
        }
        MachineRemedy::LargerInstance => {
            "use a larger instance or spread the load: the allowance belongs to the \
             instance's type"
        }
        MachineRemedy::LargerRing => {
            "enlarge the ring (`ethtool -G DEVICE rx N`), and spread interrupts over more \
             CPUs"
        }
        MachineRemedy::ChangeCable => "change the cable, the optic or the port",
        MachineRemedy::LookAtQdisc => {
            "look at `tc -s qdisc show`; a shaper or a short queue there drops"
        }
        MachineRemedy::RaiseBacklog => {
            "raise net.core.netdev_max_backlog, and spread packets over more CPUs (RSS, \
             RPS)"
        }
        MachineRemedy::RaiseBudget => {
            "raise net.core.netdev_budget, or spread packets over more CPUs (RSS, RPS)"
        }
        MachineRemedy::SwitchOffloadOn => {
            "switch it on (`ethtool -K DEVICE tso on gro on`), unless a driver's fault \
             made somebody switch it off"
        }
        MachineRemedy::SeveralConnections => {
            "use several connections (`fullpipe get --connections`, several streams), \
             Multipath TCP, or hosts in one placement group"
        }
        MachineRemedy::ChangeShaper => {
            "change or remove that queueing discipline (`tc -s qdisc show`, `tc qdisc del \
             dev DEVICE root`), if nobody wants the shaping"
        }
        MachineRemedy::LargerQueue => {
            "give the queue more room (`tc qdisc change .. limit N`, `ip link set DEVICE \
             txqueuelen N`) or use fq, which lets one connection fill no more than its \
             part; take an emulated loss away"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_remedy_has_a_name_and_a_sentence_of_its_own() {
        let all = Remedy::all();
        let names: BTreeSet<&str> = all.iter().map(|one| one.name()).collect();
        let sentences: BTreeSet<&str> = all.iter().map(|one| remedy(*one)).collect();
        assert_eq!((names.len(), sentences.len()), (all.len(), all.len()));
        assert!(names.contains("grow_receive_buffer") && names.contains("remove_loss_or_use_bbr"));
    }

    #[test]
    fn a_sentence_that_names_a_setting_is_of_a_remedy_that_is_one() {
        const SETTINGS: [&str; 6] =
            ["net.", "SO_", "TCP_", "initcwnd", "congestion control", "maxrate"];
        // What a machine counted does not rest on how sure the answer is.
        for one in Remedy::all().into_iter().filter(|one| !matches!(one, Remedy::Machine(_))) {
            let names_one = SETTINGS.iter().any(|part| remedy(one).contains(part));
            assert_eq!(one.is_setting(), names_one, "{one:?}: {}", remedy(one));
        }
    }
}
