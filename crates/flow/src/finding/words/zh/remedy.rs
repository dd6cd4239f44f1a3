//! What would change it.

use crate::finding::{MachineRemedy, OnLoss, PacketRemedy, Remedy, SocketRemedy};

/// What would change it, as a sentence without its end.
pub const fn remedy(remedy: Remedy) -> &'static str {
    match remedy {
        Remedy::RemoveLoss(on_loss) => remove_loss(on_loss),
        Remedy::Packets(remedy) => of_packets(remedy),
        Remedy::Socket(remedy) => of_socket(remedy),
        Remedy::Machine(remedy) => of_machine(remedy),
        Remedy::GrowReceiveBuffer => {
            "让接收缓冲区增长：调大接收方 net.ipv4.tcp_rmem 的第三个值，并去掉或调大应用中的 \
             SO_RCVBUF"
        }
        Remedy::ScaleOrGrowReceiveBuffer => {
            "检查两端是否启用了窗口缩放（net.ipv4.tcp_window_scaling）：未启用时窗口不会超过 65535 \
             字节，而此处正停留在这一大小。若已启用，请调大接收方 net.ipv4.tcp_rmem 的第三个值，\
             并去掉或调大应用中的 SO_RCVBUF"
        }
        Remedy::ScaleWindow => {
            "开启窗口缩放：某一端的 SYN 没有提供该选项，缓冲区再大窗口也不会变大（\
             net.ipv4.tcp_window_scaling = 1，或检查去除该选项的中间设备）"
        }
        Remedy::ReadFaster => {
            "让接收方读得更快：更多 CPU、更快的磁盘或更大的单次读取；更大的缓冲区只会被填满"
        }
        Remedy::GrowSendBuffer => {
            "让发送缓冲区增长：调大发送方 net.ipv4.tcp_wmem 的第三个值，并去掉或调大应用中的 \
             SO_SNDBUF"
        }
        Remedy::FreeSendBuffer => {
            "让发送缓冲区增长：它的大小从未变化，说明由应用设定；请去掉应用中的 SO_SNDBUF，或配合 \
             net.core.wmem_max 调大（net.ipv4.tcp_wmem 对它无效）"
        }
        Remedy::WriteFaster => "让发送端应用更快地产生数据，或每次写入更多",
        Remedy::RaisePacing => {
            "在发送端提高或去掉匀速发送（pacing）的设置：程序自己的定时器、\
             SO_MAX_PACING_RATE（iperf3 --fq-rate），或该主机上 tc 的速率（fq、htb、tbf）；\
             在该主机上运行 `fullpipe why` 可知是哪一个"
        }
        Remedy::KeepConnections => {
            "在多次传输之间保持连接，或调大路由的 initcwnd；传输越长，受影响越小"
        }
        Remedy::NoneAtTheHosts => "主机上无需改动：这就是路径的承载能力",
        Remedy::SendEvenly => {
            "请均匀发送而非突发：试用 bbr 或限速发送（tc fq 的 maxrate、SO_MAX_PACING_RATE）。不排\
             队就丢包的路径是限速器（policer）或队列极短，实际可承载的可能更多；其速率与突发量请询\
             问运营方"
        }
        Remedy::GrowBackSooner => {
            "换用其他拥塞控制：bbr 遇到这类丢包时保持速率；传输越长影响越小，链路的队列在丢包之前能容纳得越多，\
             影响也越小"
        }
        Remedy::FewerRoundTrips => {
            "TCP 无需改动：减少之前的往返（保持连接、TLS 1.3、减少请求），或使用更近的服务器"
        }
        Remedy::CaptureTheStart => "请在发送方从连接建立时开始抓包，并采样其套接字",
        Remedy::CaptureBothEnds => {
            "现有证据不足以建议任何设置：请在两端从连接建立之前开始抓包（至少 10 秒），同时采样套\
             接字（`fullpipe why --record`）"
        }
        Remedy::WatchLonger => {
            "现有证据不足以建议任何设置：请在两端观察更长时间（`fullpipe why --for 30s`），或在发\
             送方从连接建立之前开始抓包"
        }
    }
}

const fn remove_loss(on_loss: OnLoss) -> &'static str {
    match on_loss {
        OnLoss::RunsBbr => "消除丢包；发送方已在使用 bbr，它不会把每次丢包都当作拥塞",
        OnLoss::SlowsDown => {
            "消除丢包，或改用不把每次丢包都当作拥塞的拥塞控制（bbr）；当前所用的会像 cubic 和 reno \
             那样在丢包后减速"
        }
        OnLoss::GoesOn => {
            "消除丢包；丢包后在途数据几乎没有下降，发送方可能已在使用 bbr：更换拥塞控制之前，请先\
             用 `ss -ti` 查看"
        }
        OnLoss::Unknown => {
            "消除丢包；或者，若发送方的 `ss -ti` 显示尚未使用 bbr，改用不把每次丢包都当作拥塞的拥\
             塞控制（bbr）"
        }
    }
}

const fn of_packets(remedy: PacketRemedy) -> &'static str {
    match remedy {
        PacketRemedy::LetSynPass => {
            "检查服务器是否在运行、地址是否正确、防火墙是否丢弃了 SYN；并在服务器端抓包，看它是否\
             到达"
        }
        PacketRemedy::LetSynAckPass => {
            "找出是什么丢弃了返回的应答：防火墙，或与去程不同的路由；并在客户端抓包，看它是否到达"
        }
        PacketRemedy::LetMtuBeKnown => {
            "放行告知可用大小的 ICMP（“需要分片”，IPv6 为“包过大”）；或把主机接口的 MTU 降到隧\
             道的 MTU，或在隧道入口钳制 MSS（nft：tcp option maxseg size set rt mtu）；发送方的 \
             net.ipv4.tcp_mtu_probing=1 可自行探测"
        }
        PacketRemedy::LetScalePass => {
            "找出两端之间改写或不认识窗口缩放选项的设备（防火墙、负载均衡、检查 TCP 的 NAT），让该\
             选项原样通过；调整任何一端的缓冲区都无效。在此之前，可在一端设置 \
             net.ipv4.tcp_window_scaling=0，使两端都使用 64 KiB 的窗口"
        }
        PacketRemedy::LiftPolicer => {
            "请向限速方（运营商、云厂商、QoS 规则）申请更高速率或改用整形；bbr 或低于该速率的均匀\
             发送（SO_MAX_PACING_RATE、tc-fq maxrate）可避免丢包，令牌桶小于一次突发时还能传得更快"
        }
        PacketRemedy::ShareLess => {
            "减少同时的连接数，或在最窄处使用公平队列（tc-fq_codel、tc-cake），可改变各自所得；总\
             量不会增加"
        }
        PacketRemedy::NoticeLossSooner => {
            "消除丢包；若某一端关闭了 SACK，请开启（net.ipv4.tcp_sack），并保持 \
             net.ipv4.tcp_early_retrans 为 3，以便在定时器到期前探测尾部丢包"
        }
        PacketRemedy::KeepWindowOverPauses => {
            "在发送方设置 net.ipv4.tcp_slow_start_after_idle=0，使连接在停顿后保持窗口"
        }
        PacketRemedy::WriteWholeMessages => {
            "一次写入完整消息（writev、MSG_MORE、TCP_CORK 或带缓冲的流），或在发送方套接字上设置 \
             TCP_NODELAY；接收方的 TCP_QUICKACK 只能暂时有效"
        }
        PacketRemedy::MakeRoomForAcks => {
            "为返回的 ACK 留出空间：减少与此下载同时进行的上传，在那里使用公平或精简 ACK 的队列（\
             tc-fq_codel、带 ack-filter 的 tc-cake），或增加该方向的带宽；数据方向本身没有排队"
        }
        PacketRemedy::SendInOrder => {
            "查明该主机上是什么打乱了同一连接的报文段：balance-rr 模式的 bond、轮流使用的多个发送队列、\
             驱动的缺陷（看 `ethtool -K DEVICE tso off` 之后是否仍然如此，再用 `tso on` 恢复）"
        }
        PacketRemedy::KeepOrder => {
            "找出把同一连接的数据包分散到多条链路的设备（逐包负载均衡、轮询模式的网卡绑定）"
        }
        // What the applications have under way.
        _ => of_window(remedy),
    }
}

const fn of_window(remedy: PacketRemedy) -> &'static str {
    match remedy {
        PacketRemedy::LeaveSshChannel => {
            "OpenSSH 没有任何设置、内核缓冲区也都不能改变其通道窗口：并行进行多个传输（每个通道都有自己的窗口，无论在同一条连接还是多条连接上），在接收端\
             使用 HPN-SSH，或改用其他协议传数据（rsync 守护进程、HTTPS、`fullpipe relay`）"
        }
        PacketRemedy::AskMoreOfSftp => {
            "让更多请求在途：sftp -R 256 或更大，服务器支持时再加 -B 261120（sshfs：用 max_conns \
             开多条连接）；超过 2 MiB 后受 SSH 通道窗口限制；并行的多个传输各有自己的请求"
        }
        PacketRemedy::GrowHttp2Window => {
            "让接收端程序给流和连接（二者都计数）更大的额度：SETTINGS_INITIAL_WINDOW_SIZE 与 \
             WINDOW_UPDATE（nginx 上传：http2_body_preread_size；hyper、tonic：\
             initial_stream_window_size、initial_connection_window_size 或 \
             adaptive_window；gRPC：其 BDP 估计器；Go：http2.Server 的 \
             MaxUploadBufferPerStream 与 PerConnection）；HTTP/1.1 没有这种窗口"
        }
        PacketRemedy::AskMoreOfHttp1 => {
            "一次请求更多：同时多个请求（HTTP/2 或多条连接），或更少而更大的请求；或让两端更近"
        }
        PacketRemedy::AskMoreOfIscsi => {
            "让更多请求在途：调大发起端的队列（open-iscsi：node.session.queue_depth、\
             node.session.cmds_max）和两端的突发长度（MaxBurstLength、FirstBurstLength；\
             InitialR2T=No 与 ImmediateData=Yes 可为每次写省一个往返），使用多个会话"
        }
        PacketRemedy::AskMoreOfMysql => {
            "一次请求更多：用连接查询代替逐行查询，一条 INSERT 写多行（Connector/J：\
             rewriteBatchedStatements），用游标读取时调大 fetch size（useCursorFetch、\
             defaultFetchSize）；或让两端更近"
        }
        PacketRemedy::AskMoreOfNfs => {
            "让更多请求在途：挂载选项 rsize、wsize 用服务器允许的最大值（1 MiB），nconnect（多条连接），\
             调大挂载的 read_ahead_kb（/sys/class/bdi）；减少属性查询（actimeo）"
        }
        PacketRemedy::AskMoreOfPostgresql => {
            "一次请求更多：用游标读取时调大 fetch size（FETCH；JDBC：defaultRowFetchSize；psql：\
             FETCH_COUNT），用连接查询代替逐行查询，语句用流水线模式、批处理或 COPY；或让两端更近"
        }
        PacketRemedy::AskMoreOfRedis => {
            "在第一个应答之前发出多个命令（流水线），或一个命令处理多个键（MGET、MSET、脚本）；或让两端更近"
        }
        PacketRemedy::AskMoreOfSmb => {
            "让更多请求在途：同时复制多个文件（robocopy /MT），更大的请求（mount.cifs：rsize、wsize），\
             多条连接（多通道；mount.cifs：max_channels），服务器授予的信用太少时加大信用"
        }
        _ => {
            "在接收端应用中调大两端应用所用协议的窗口（HTTP/2：SETTINGS_INITIAL_WINDOW_SIZE 及连接\
             级窗口；SSH：通道窗口更大的实现；SMB：更多 credits），或一次请求更多；多个连接各有自\
             己的窗口；内核缓冲区对此无效"
        }
    }
}

const fn of_socket(remedy: SocketRemedy) -> &'static str {
    match remedy {
        SocketRemedy::ScaleWindowAtSyn => {
            "在未启用的一端设置 net.ipv4.tcp_window_scaling=1，或找出去除该选项的中间设备；只有新\
             连接受益"
        }
        SocketRemedy::FreeReceiveBufferOrRaiseMax => {
            "去掉应用中的 SO_RCVBUF，让缓冲区自行增长；或调大 net.core.rmem_max 并重启应用"
        }
        SocketRemedy::FreeReceiveBuffer => {
            "去掉应用中的 SO_RCVBUF，让缓冲区自行增长（至 net.ipv4.tcp_rmem 的第三个值），或在应用\
             中设得更大"
        }
        SocketRemedy::FreeWindow => "去掉应用中的 TCP_WINDOW_CLAMP",
        SocketRemedy::RaiseReceiveMax => {
            "调大接收方 net.ipv4.tcp_rmem 的第三个值（在那里运行 `fullpipe tune plan` 可知调到多少）；\
             新连接立即受益"
        }
        SocketRemedy::ReadMore => {
            "给读取进程更多 CPU、更快的磁盘或更大的单次读取；更大的缓冲区只会被填满"
        }
        SocketRemedy::FreeSendBufferOrRaiseMax => {
            "去掉应用中的 SO_SNDBUF，让缓冲区自行增长；或调大 net.core.wmem_max 并重启应用"
        }
        SocketRemedy::RaiseSendBuffer => {
            "去掉应用中的 SO_SNDBUF，让缓冲区自行增长（至 net.ipv4.tcp_wmem 的第三个值），或在应用\
             中设得更大"
        }
        SocketRemedy::RaiseSendMax => {
            "调大发送方 net.ipv4.tcp_wmem 的第三个值（在那里运行 `fullpipe tune plan` 可知调到多少）"
        }
        SocketRemedy::PaceLess => "调大或去掉应用中的 SO_MAX_PACING_RATE",
        SocketRemedy::WriteWholeOrNoDelay => {
            "一次写入完整消息（writev、MSG_MORE、TCP_CORK 或带缓冲的流），或在发送方套接字上设置 \
             TCP_NODELAY"
        }
        SocketRemedy::RaiseUnsentMark => {
            "调大应用中的 TCP_NOTSENT_LOWAT，或让应用在 poll 返回后立即写入"
        }
        SocketRemedy::RemoveLossOrUseSack => {
            "消除丢包；若某一端关闭了 SACK，请开启（net.ipv4.tcp_sack）"
        }
        SocketRemedy::KeepWindowOfBursts => {
            "若连接用于突发传输，在发送方设置 net.ipv4.tcp_slow_start_after_idle=0"
        }
        SocketRemedy::FindSmallMtu => {
            "找出 MTU 较小的隧道或设备（`tracepath`）；若 ICMP 被过滤，net.ipv4.tcp_mtu_probing=1 \
             可探测能通过的最大值"
        }
        SocketRemedy::ReadOrGrowMemory => {
            "让应用及时读取，或调大 net.ipv4.tcp_rmem；内存紧张时（net.ipv4.tcp_mem）整台主机都会\
             丢弃"
        }
    }
}

const fn of_machine(remedy: MachineRemedy) -> &'static str {
    match remedy {
        MachineRemedy::RaiseTcpMemory => "调大 net.ipv4.tcp_mem，或找出是谁占用了内存",
        MachineRemedy::RaiseTcpMemoryOrFindHolder => {
            "调大 net.ipv4.tcp_mem，或找出是谁占用了内存；在此期间窗口会缩小"
        }
        MachineRemedy::FreeTcpMemory => {
            "让占用最多的进程读取或关闭不需要的连接，或在机器内存充足时调大 net.ipv4.tcp_mem"
        }
        MachineRemedy::RaiseGroupMemory => {
            "调大该控制组的内存上限（memory.max），或让其中的进程在套接字中少积压数据"
        }
        MachineRemedy::ReadOrRaiseReceiveMax => {
            "让应用及时读取，或调大 net.ipv4.tcp_rmem 的第三个值"
        }
        MachineRemedy::ReadSmallerPieces => "调大 net.ipv4.tcp_rmem；每次读取小一些",
        MachineRemedy::AcceptFaster => {
            "让服务器更快地 accept，或调大其 backlog 和 net.core.somaxconn"
        }
        MachineRemedy::RaiseReceiveMaxOrKeepOrder => {
            "调大 net.ipv4.tcp_rmem 的第三个值；消除丢包或乱序"
        }
        MachineRemedy::LargerInstance => "使用更大的实例或分散负载：配额取决于实例类型",
        MachineRemedy::LargerRing => {
            "增大接收环（`ethtool -G DEVICE rx N`），并把中断分散到更多 CPU"
        }
        MachineRemedy::ChangeCable => "更换网线、光模块或端口",
        MachineRemedy::LookAtQdisc => "查看 `tc -s qdisc show`：那里的整形器或过短的队列在丢包",
        MachineRemedy::RaiseBacklog => {
            "调大 net.core.netdev_max_backlog，并把数据包分散到更多 CPU（RSS、RPS）"
        }
        MachineRemedy::RaiseBudget => {
            "调大 net.core.netdev_budget，或把数据包分散到更多 CPU（RSS、RPS）"
        }
        MachineRemedy::SwitchOffloadOn => {
            "请开启它（`ethtool -K DEVICE tso on gro on`），除非有人因驱动缺陷而关闭"
        }
        MachineRemedy::SeveralConnections => {
            "使用多个连接（`fullpipe get --connections`、多条流）、多路径 TCP，或把主机放进同一置\
             放群组"
        }
        MachineRemedy::ChangeShaper => {
            "如果无人需要整形，请修改或删除该排队规则（`tc -s qdisc show`、`tc qdisc del dev \
             DEVICE root`）"
        }
        MachineRemedy::LargerQueue => {
            "给队列更多空间（`tc qdisc change .. limit N`、`ip link set DEVICE txqueuelen N`），或\
             使用 fq，它不让单个连接占满队列；若是有意模拟的丢包，请去掉"
        }
    }
}
