//! What to try, after a cause.

/// By the English, in its order.
pub const ADVICE: [(&str, &str); 100] = [
    (
        "a device name has 1 to 15 bytes, without '/', '%' and blanks",
        "设备名为 1 到 15 个字节，不含 '/'、'%' 和空白",
    ),
    ("a firewall may drop it, or the host is down", "可能被防火墙丢弃，或对方主机没有运行"),
    (
        "another program has it (ss -ltnp shows which); choose another port with --listen, or port 0 for a free one",
        "已被另一个程序占用（ss -ltnp 可见是哪个）；请用 --listen 换一个端口，或用端口 0 取空闲的",
    ),
    ("ask the link what it does", "请询问链路的状态"),
    (
        "check that there is room and that the file system can be written",
        "请检查是否有空间，文件系统是否可写",
    ),
    ("check the address", "请检查地址"),
    ("check the address and the route to it", "请检查地址和到它的路由"),
    ("check the address, and firewalls on the path", "请检查地址和路径上的防火墙"),
    (
        "check the address, and the limit of open files (ulimit -n)",
        "请检查地址和打开文件数的上限（ulimit -n）",
    ),
    ("check the device's name and its namespace", "请检查设备名及其所在命名空间"),
    ("check the directory's permissions", "请检查目录的权限"),
    (
        "check the limit on processes (ulimit -u, and pids.max of the control group)",
        "请检查进程数的上限（ulimit -u，以及控制组的 pids.max）",
    ),
    (
        "check the port, and that the server runs (ss -ltn on its host)",
        "请检查端口，以及服务器是否在运行（在其主机上 ss -ltn）",
    ),
    (
        "check the route (ip route get shows it) and that the host is up",
        "请检查路由（ip route get 可见），以及对方主机是否在运行",
    ),
    ("check the route to it", "请检查到它的路由"),
    (
        "choose a name that is not taken; it needs CAP_NET_ADMIN in the host's namespace",
        "请换一个未被占用的名字；需要该主机命名空间中的 CAP_NET_ADMIN",
    ),
    ("choose a port of 1024 or above", "请选择 1024 或更大的端口"),
    ("choose a port of 1024 or above, or run as root", "请选择 1024 或更大的端口，或以 root 运行"),
    ("choose a smaller receive buffer", "请选择更小的接收缓冲区"),
    (
        "choose an address of this host (ip address shows them)",
        "请选择本机的地址（ip address 可列出）",
    ),
    (
        "choose another name or address, or remove the old one first",
        "请换一个名字或地址，或先删除旧的",
    ),
    (
        "choose another port, or port 0 for a free one (ss -ltnp shows who listens)",
        "请换一个端口，或用端口 0 取空闲的（ss -ltnp 可见谁在监听）",
    ),
    (
        "compare --server-key with what `fullpipe serve` printed, and look whether this key is in its --allow-key file",
        "请核对 --server-key 与 `fullpipe serve` 显示的是否一致，并查看此密钥是否在其 --allow-key 文件中",
    ),
    (
        "containers mount /proc/sys read-only, for root too: give the container its settings when it starts, as `fullpipe tune plan --format docker` or `kubernetes` prints them",
        "容器把 /proc/sys 挂载为只读，对 root 也是：请在启动容器时给出设置，如 `fullpipe tune plan --format docker` 或 `kubernetes` 所示",
    ),
    (
        "does something else hold the device's ingress? `tc qdisc show` and `tc filter show` tell",
        "设备的 ingress 是否已被占用？`tc qdisc show` 和 `tc filter show` 可见",
    ),
    ("free some space", "请腾出空间"),
    ("give a file name with -o", "请用 -o 给出文件名"),
    (
        "install nftables (on Debian: apt-get install nftables)",
        "请安装 nftables（Debian：apt-get install nftables）",
    ),
    ("is the guest's kernel one of ours?", "客户机的内核是 fullpipe 的吗？"),
    (
        "it has no Ethernet frames; attach to the device below it, or run the program with `link -- CMD`",
        "它没有以太网帧；请挂到其下层设备，或用 `link -- CMD` 运行程序",
    ),
    (
        "it is not in net.ipv4.tcp_allowed_congestion_control: use a route's congctl, or root",
        "它不在 net.ipv4.tcp_allowed_congestion_control 中：请用路由的 congctl，或以 root 运行",
    ),
    (
        "it must belong to this user alone; root needs to be able to write there",
        "它必须只属于当前用户；root 也要能写入",
    ),
    (
        "it needs CAP_BPF and CAP_NET_ADMIN on the machine itself: run as root",
        "需要机器本身的 CAP_BPF 和 CAP_NET_ADMIN：请以 root 运行",
    ),
    (
        "it needs CAP_NET_ADMIN over this network namespace: root, or a user namespace",
        "需要对此网络命名空间的 CAP_NET_ADMIN：root，或用户命名空间",
    ),
    (
        "it needs CAP_NET_ADMIN over this network namespace: run it as root",
        "需要对此网络命名空间的 CAP_NET_ADMIN：请以 root 运行",
    ),
    ("it needs CAP_NET_RAW in the namespace", "需要该命名空间中的 CAP_NET_RAW"),
    (
        "it needs CAP_SYS_ADMIN here and in the user namespace that made it",
        "需要此处以及创建它的用户命名空间中的 CAP_SYS_ADMIN",
    ),
    (
        "it needs CAP_SYS_PTRACE (root) and Linux 5.6 or later",
        "需要 CAP_SYS_PTRACE（root）和 Linux 5.6 或更新版本",
    ),
    ("it needs Linux 2.6.27 or later", "需要 Linux 2.6.27 或更新版本"),
    ("it needs Linux 3.2 or later", "需要 Linux 3.2 或更新版本"),
    ("it needs Linux 4.20 or later", "需要 Linux 4.20 或更新版本"),
    ("it needs Linux 5.3 or later", "需要 Linux 5.3 或更新版本"),
    (
        "it needs Linux 6.4 or later with BPF as congestion control (CONFIG_BPF_JIT)",
        "需要 Linux 6.4 或更新版本，并支持用 BPF 作拥塞控制（CONFIG_BPF_JIT）",
    ),
    ("it needs Linux 6.6 or later (tcx)", "需要 Linux 6.6 或更新版本（tcx）"),
    (
        "it needs root, or CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON, and a kernel whose lockdown allows BPF (/sys/kernel/security/lockdown)",
        "需要 root，或 CAP_BPF、CAP_NET_ADMIN 和 CAP_PERFMON，并且内核的 lockdown 允许 BPF（/sys/kernel/security/lockdown）",
    ),
    ("it takes some megabytes of memory of the kernel", "它占用内核的几 MB 内存"),
    (
        "let ordinary users open it (chmod 0666, the usual mode), or run as root",
        "请让普通用户能打开它（chmod 0666，即通常的权限），或以 root 运行",
    ),
    (
        "load the module (modprobe tun), or give the container the device (--device /dev/net/tun)",
        "请加载模块（modprobe tun），或把设备交给容器（--device /dev/net/tun）",
    ),
    ("make its directory first", "请先创建其目录"),
    ("name prefixes and ranges of ports", "请改用前缀和端口范围"),
    (
        "no answer came: the path or the other host may be down",
        "没有应答：路径可能不通，或对方主机没有运行",
    ),
    ("number CPUs from 0, as in /proc/cpuinfo", "CPU 从 0 开始编号，如 /proc/cpuinfo"),
    ("only a guest's first process may do that", "只有客户机的第一个进程可以这样做"),
    (
        "only those in net.ipv4.tcp_allowed_congestion_control can be set here: use a route's congctl instead",
        "此处只能设置 net.ipv4.tcp_allowed_congestion_control 中的：请改用路由的 congctl",
    ),
    ("run as root of the machine", "请以机器的 root 运行"),
    (
        "run as root, or add it to net.ipv4.tcp_allowed_congestion_control",
        "请以 root 运行，或把它加入 net.ipv4.tcp_allowed_congestion_control",
    ),
    (
        "run as root, or raise the limit `ulimit -r` (rtprio in /etc/security/limits.conf) to 1",
        "请以 root 运行，或把上限 `ulimit -r`（/etc/security/limits.conf 中的 rtprio）提高到 1",
    ),
    (
        "run inside the sandbox (root, or a user namespace)",
        "请在沙箱中运行（root，或用户命名空间）",
    ),
    (
        "run inside the sandbox, which asks for a user namespace where needed",
        "请在沙箱中运行，需要时它会申请用户命名空间",
    ),
    (
        "set XDG_STATE_HOME or HOME to a directory of your own",
        "请把 XDG_STATE_HOME 或 HOME 设为自己的目录",
    ),
    (
        "set it with `ip route change`, which can tell them apart",
        "请用 `ip route change` 设置，它能区分这些路由",
    ),
    ("someone killed it, or memory ran out (see dmesg)", "可能被人终止，或内存耗尽（见 dmesg）"),
    (
        "start `fullpipe serve` there, or check the port",
        "请在那里启动 `fullpipe serve`，或检查端口",
    ),
    ("start the link again, and leave that process alone", "请重新启动链路，不要动那个进程"),
    (
        "take a size between 2304 B and net.core.wmem_max",
        "请取 2304 B 与 net.core.wmem_max 之间的大小",
    ),
    (
        "take one of net.ipv4.tcp_available_congestion_control, or load its module (modprobe tcp_<name>)",
        "请取 net.ipv4.tcp_available_congestion_control 之一，或加载其模块（modprobe tcp_<name>）",
    ),
    (
        "the daemon closed the connection: it may not know this key, have no keys, or be full (then try again)",
        "守护进程关闭了连接：它可能不认识此密钥、没有密钥，或已满（请稍后再试）",
    ),
    (
        "the daemon may not know this key: its --allow-key file needs the line that `fullpipe keygen` printed",
        "守护进程可能不认识此密钥：其 --allow-key 文件需要有 `fullpipe keygen` 显示的那一行",
    ),
    (
        "the kernel does not take this value: check its range and how many numbers it wants",
        "内核不接受此值：请检查其范围以及需要几个数",
    ),
    (
        "the other end closed the connection: it may have ended, be full, or want keys (--key, --server-key); its log says more",
        "对端关闭了连接：它可能已结束、已满，或要求密钥（--key、--server-key）；详见其日志",
    ),
    ("the reader has left", "读取方已离开"),
    ("there is no such route: see `ip route`", "没有这条路由：见 `ip route`"),
    (
        "this kernel does not have it: see net.ipv4.tcp_available_congestion_control",
        "此内核没有它：见 net.ipv4.tcp_available_congestion_control",
    ),
    (
        "this kernel has no netem: load it (modprobe sch_netem; on RHEL it is in kernel-modules-extra), or use our own link, which needs none (`--engine own` of `link`, `--link-engine own` of `lab`); `lab run --engine virtual` has a kernel with netem",
        "此内核没有 netem：请加载它（modprobe sch_netem；RHEL 中在 kernel-modules-extra），或使用不需要它的自有链路（`link` 的 `--engine own`，`lab` 的 `--link-engine own`）；`lab run --engine virtual` 的内核带有 netem",
    ),
    (
        "this kernel has no such setting: check the name with `sysctl -a`",
        "此内核没有这项设置：请用 `sysctl -a` 核对名字",
    ),
    (
        "this kernel is built without BPF (CONFIG_BPF_SYSCALL)",
        "此内核编译时未带 BPF（CONFIG_BPF_SYSCALL）",
    ),
    ("this kernel is built without cls_bpf (modprobe it)", "此内核没有 cls_bpf（请 modprobe）"),
    (
        "this kernel is built without it: it takes sch_ingress, cls_matchall and act_mirred (modprobe them)",
        "此内核没有它：需要 sch_ingress、cls_matchall 和 act_mirred（请 modprobe）",
    ),
    (
        "this kernel is built without it: load sch_ingress and cls_bpf (modprobe them)",
        "此内核没有它：请加载 sch_ingress 和 cls_bpf（modprobe）",
    ),
    ("this kernel may be built without CONFIG_INET_DIAG", "此内核编译时可能未带 CONFIG_INET_DIAG"),
    (
        "this kernel may be built without nf_tables, nft_tproxy or nft_masq",
        "此内核编译时可能未带 nf_tables、nft_tproxy 或 nft_masq",
    ),
    ("this kernel was built without it", "此内核编译时未带它"),
    (
        "too many connections at once, or the process left outside was killed",
        "同时的连接太多，或留在外面的进程被终止",
    ),
    ("it belongs to another user", "它属于另一个用户"),
    ("its owner cannot be read", "无法读取它的所有者"),
    ("others can write to it (chmod go-w mends that)", "其他用户可以写入它（chmod go-w 可纠正）"),
    ("the output takes bytes in order alone", "输出只按顺序接收字节"),
    ("it has no ranges: it sends whole files only", "服务器不支持范围请求：只发送完整的文件"),
    (
        "it does not say that it has ranges (Accept-Ranges)",
        "服务器没有说明支持范围请求（Accept-Ranges）",
    ),
    ("it does not say how long the file is", "服务器没有说明文件有多长"),
    (
        "it sends neither a strong ETag nor an old enough Last-Modified to know the file by",
        "服务器既没有发送强 ETag，也没有发送足够早的 Last-Modified，无法认出文件",
    ),
    ("it does not say which file its part is of", "服务器没有说明它发送的部分属于哪个文件"),
    ("is a symbolic link", "是符号链接"),
    ("is no plain file", "不是普通文件"),
    ("belongs to another user", "属于另一个用户"),
    ("may be written by other users", "其他用户可以写入"),
    ("has a second name (a hard link)", "有另一个名字（硬链接）"),
    ("cannot be read", "无法读取"),
    ("is no record of this version", "不是此版本的记录"),
    ("lacks bytes", "缺少字节"),
];
