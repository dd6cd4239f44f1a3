/** Simplified Chinese. Findings are composed anew from limit, cause, share and evidence. */
import type { Finding, Remedied, SubCause } from "../data.ts";
import type { LimitName } from "../limits.ts";
import { bothRates, bytes, count, percent, rate, time } from "../units.ts";
import remedies_zh from "./remedies-zh.json" with { type: "json" };
import { type Words, queueBefore } from "./words.ts";

/** What would change it, by its name: the catalogue of the program. */
const remedies: Record<string, string> = remedies_zh;

/** Simplified Chinese. */
export const zh: Words = {
  code: "zh-CN",
  ui: {
    title: "传输报告",
    capture: "抓包",
    lab: "实验",
    samples: "套接字采样",
    language: "语言",
    theme: "主题",
    light: "浅色",
    dark: "深色",
    verdict: "瓶颈在哪里",
    confidence: "把握",
    whatToDo: "如何改进",
    showMe: "在图中查看",
    showAll: "查看全程",
    copy: "复制",
    copied: "已复制",
    shares: "各限制因素的时间占比",
    behind: "背后的原因",
    warnings: "关于此次抓包的提示",
    connections: "连接",
    client: "客户端",
    server: "服务器",
    bytes: "数据量",
    goodput: "有效吞吐",
    rtt: "RTT",
    limit: "首要限制",
    lost: "损失时间",
    retransmissions: "重传",
    duration: "时长",
    graphs: "图表",
    direction: "方向",
    zoomIn: "放大",
    zoomOut: "缩小",
    left: "更早",
    right: "更晚",
    reset: "全程",
    overTime: "按时间",
    overSequence: "按序列号",
    noSequence: "此报告中的往返时间已按时段汇总，没有对应的序列号。",
    copyPng: "复制为 PNG",
    savePng: "保存为 PNG",
    saveSvg: "保存为 SVG",
    failed: "浏览器拒绝了该操作",
    legend: "图例说明",
    limitsBand: "各时刻的限制因素",
    limitsBandMeans: "色块越高，判断越有把握。",
    noTrace: "此报告没有该连接的图表数据。",
    stalls: "停顿",
    noStalls: "没有超过两个往返时间且长于 100 ms 的静默。",
    time: "时刻",
    length: "时长",
    cause: "原因",
    cost: "代价",
    go: "在图中查看此停顿",
    runs: "各次运行",
    run: "运行",
    law: "理论值",
    curve: "实测与理论对比",
    before: "改动前",
    after: "改动后",
    compare: "改动前后对比",
    measured: "实测",
    keys: "拖动可放大；双击、Esc 或 0 显示全程；+ 和 − 缩放，方向键移动，按住 Shift 则逐包查看；双指缩放，单指平移，轻点两下显示全程。",
    sources: "数据来源",
    packets: "个数据包",
    program: "生成程序",
    sortBy: "排序：",
    place: "序号",
    share: "占比",
    select: "查看此连接",
    numbers: "数据",
    noData: "该方向没有传输数据。",
    otherLimits: "其他限制",
    empty: "此报告中没有 TCP 连接。",
    ratio: "实测 / 理论",
    sum: "合计",
    broken: "此页面中没有报告数据，或数据无法读取。",
    close: "结束方式",
  },
  direction: {
    client_to_server: "客户端 → 服务器（上传）",
    server_to_client: "服务器 → 客户端（下载）",
  },
  account: {
    title: "时间花在哪里",
    cause: {
      connect: "握手的往返",
      syn_repeated: "SYN 或其应答丢失后重发",
      syn_unanswered: "SYN 无人应答",
      refused: "SYN 被拒绝",
      syn_met_old_connection: "SYN 遇到同端口的旧连接",
      tls: "TLS 握手的往返",
      client_thinks: "客户端尚未发出请求",
      server_thinks: "服务器尚未应答",
      turns: "一问一答的往返",
      delayed_ack: "小块数据等待被延迟的 ACK",
      timeouts: "等待重传定时器",
      recovery: "等待丢失的数据重传",
      path_mtu: "报文段超过路径 MTU，反复重传",
      peer_gone: "一端不再应答",
      window_shut: "窗口关闭：应用程序没有读取",
      paused: "发送中途停顿",
      idle: "无事可做",
      closing: "最后的 ACK、FIN、RST",
      not_captured: "未抓到",
    },
    owner: {
      client_application: "客户端程序",
      client_host: "客户端系统",
      path: "路径",
      server_host: "服务器系统",
      server_application: "服务器程序",
      peer_gone: "已失联的一端",
      not_captured: "未抓到",
      nobody: "无",
    },
    sentence: (part, all, cause) => `${all} 中有 ${part}：${cause}。`,
  },
  limit: {
    receive_window: { name: "接收窗口", means: "接收方的窗口已满，发送方在等待空间。" },
    receiver_application: { name: "接收端应用", means: "接收端应用没有及时读取，窗口因此关闭。" },
    send_buffer: { name: "发送缓冲区", means: "发送方内核无法再容纳更多未确认的数据。" },
    sender_application: { name: "发送端应用", means: "发送端应用没有提供可发送的数据。" },
    slow_start: { name: "拥塞窗口（慢启动）", means: "发送方仍在逐步试探路径的速率。" },
    loss: { name: "拥塞窗口（丢包）", means: "发生丢包，拥塞控制使发送方减速。" },
    link: { name: "链路", means: "路径已满：它已达到自身的承载能力。" },
    application_window: {
      name: "应用层窗口",
      means: "对端应用在 TCP 之上没有授予更多额度。",
    },
    unknown: { name: "未知", means: "现有证据不足以判断。" },
  },
  verdict(limit, share, evidence) {
    switch (limit) {
      case "receive_window":
        return `在 ${share} 的时间里，瓶颈是接收窗口。`;
      case "receiver_application":
        return `在 ${share} 的时间里，瓶颈是接收端应用：它读取得不够快。`;
      case "send_buffer":
        return `在 ${share} 的时间里，瓶颈是发送缓冲区。`;
      case "sender_application":
        return `在 ${share} 的时间里，瓶颈是发送端应用：它没有写得更多。`;
      case "slow_start":
        return `在 ${share} 的时间里，瓶颈是慢启动。`;
      case "loss":
        return `在 ${share} 的时间里，瓶颈是丢包。`;
      case "link":
        return `在 ${share} 的时间里，瓶颈是链路。`;
      case "application_window":
        return `在 ${share} 的时间里，瓶颈是应用自身协议的窗口。`;
      case "unknown":
        return evidence?.flights
          ? `在 ${share} 的时间里，没有任何瓶颈。`
          : `在 ${share} 的时间里，证据不足以判断瓶颈。`;
    }
  },
  guess: (limit, or) => `瓶颈可能是${zh.limit[limit].name}或${zh.limit[or].name}，但证据不足。`,
  either: (limit, or) => `可能是${zh.limit[limit].name}或${zh.limit[or].name}`,
  noVerdict: "没有传输数据，因此没有瓶颈。",
  because,
  confidence(of) {
    const right = `此类判断的正确率${of > 0.99 ? "超过 99\u00a0%" : `为 ${percent(of)}`}`;
    if (of >= 0.95) return `几乎可以确定：${right}。`;
    if (of >= 0.8) return `很有可能：${right}。`;
    if (of >= 0.65) return `较有可能：${right}。`;
    if (of >= 0.5) return `可能性过半：${right}。`;
    return `仅为猜测：${right}。`;
  },
  doubt({ doubt, confidence }, rival) {
    if (!doubt) return undefined;
    const other = rival ? `；也可能是${rival}` : "";
    return `这只是猜测：此类判断的正确率为 ${percent(confidence ?? 0)}${other}。请在发送方从连接建立时开始抓包，并采样其套接字，以便确认。`;
  },
  remedy,
  subCause,
  warning: (name) => WARNINGS[name] ?? name,
  graph: {
    sequence: {
      title: "数据随时间的推进（时序图）",
      question: "数据是否沿直线上升？水平之处没有数据移动。",
    },
    throughput: { title: "吞吐量", question: "每一时刻有多快？" },
    rtt: { title: "往返时间", question: "应答需要多久？往返时间上升意味着排队。" },
    window: { title: "窗口与在途数据", question: "在途数据碰到窗口之处，瓶颈在接收方。" },
    queues: { title: "队列", question: "数据在哪里等待：发送方、链路，还是接收方未读？" },
  },
  line: {
    segments: { name: "数据段", means: "每一竖线是一个带数据的包，从首字节到末字节。" },
    acks: { name: "已确认", means: "下方的阶梯：到此为止的数据接收方已全部收到。" },
    window_edge: {
      name: "窗口上沿",
      means: "上方的阶梯是接收方的窗口：发送方碰到它之处，瓶颈在接收方。",
    },
    goodput: { name: "有效吞吐", means: "单位时间内的新数据，即应用得到的数据；重传不计入。" },
    wire: {
      name: "线上速率",
      means: "线路上的全部字节，包括包头和重传；高出有效吞吐的部分是开销。",
    },
    mean: { name: "移动平均", means: "平滑后的有效吞吐。" },
    rtt: { name: "往返时间", means: "从数据包到其确认的时间，以抓包点所见为准。" },
    socket_rtt: { name: "内核平滑 RTT", means: "发送方内核的估计值，其重传定时器以此为依据。" },
    path_rtt: { name: "路径本身", means: "握手时的往返时间，不含排队；高出的部分是等待。" },
    window: { name: "接收窗口", means: "接收方允许的在途数据量。" },
    in_flight: { name: "在途数据", means: "已发送但尚未确认的数据，以抓包点所见为准。" },
    connection_left: {
      name: "HTTP/2 余额（全部流）",
      means: "HTTP/2 的连接窗口还允许发送的数据量；到 0 时发送方等待 WINDOW_UPDATE。",
    },
    stream_left: {
      name: "HTTP/2 余额（单个流）",
      means: "等待自身窗口最久的那个流还能发送的数据量：对方程序已授予而尚未用完的部分。",
    },
    cwnd: { name: "拥塞窗口", means: "拥塞控制允许的在途数据量。" },
    ssthresh: { name: "慢启动阈值", means: "低于它时拥塞窗口每个往返翻倍，高于它时缓慢增长。" },
    send_queue: { name: "发送队列", means: "应用已写入但尚未被确认的数据。" },
    notsent: { name: "尚未发送", means: "发送队列中从未发送过的部分。" },
    receive_queue: { name: "接收队列", means: "已到达但应用尚未读取的数据。" },
    receive_buffer: { name: "接收缓冲区", means: "接收队列可占用的内存，包括内核开销。" },
    drain: { name: "应用读取速率", means: "接收方应用读取数据的速度；到达更快的部分在等待。" },
    link_queue: { name: "链路队列", means: "在链路最窄处等待的数据。" },
  },
  mark: {
    retransmission: { name: "重传", means: "曾经发送过的数据再次发送。" },
    fast_retransmission: { name: "快速重传", means: "重复 ACK 表明有缺口，无需等待定时器即重传。" },
    rto: { name: "超时重传", means: "直到重传定时器到期仍无应答，因此重传。" },
    spurious_retransmission: { name: "虚假重传", means: "接收方已经收到，却又重传。" },
    out_of_order: { name: "乱序", means: "比后发送的数据更晚到达。" },
    lost_segment: { name: "抓包缺口", means: "此包之前的数据缺失：在抓包点之前丢失，或没有抓到。" },
    duplicate_ack: { name: "重复 ACK", means: "接收方再次确认同一字节：缺口之后的数据已到达。" },
    zero_window: { name: "零窗口", means: "接收方缓冲区已满，通知对方停止发送。" },
    zero_window_probe: { name: "零窗口探测", means: "发送方询问关闭的窗口是否已打开。" },
    zero_window_probe_ack: { name: "探测的应答", means: "接收方应答探测：窗口仍然关闭。" },
    window_full: { name: "窗口已满", means: "此包填满了接收方的窗口，发送方现在必须等待。" },
    window_update: { name: "窗口更新", means: "接收方已读取数据，打开了窗口。" },
    keep_alive: { name: "保活", means: "发送方询问对端是否仍在。" },
    keep_alive_ack: { name: "保活应答", means: "对端仍在。" },
    ack_lost_segment: { name: "确认了未抓到的数据", means: "被确认的数据没有出现在抓包中。" },
    reused_ports: { name: "端口重用", means: "相同端口之间的新连接。" },
    duplicate_packet: { name: "重复的包", means: "网络或抓包程序把同一个包带来了两次。" },
    sack: { name: "SACK", means: "接收方已有此数据块，虽然之前的数据缺失。" },
    push: { name: "PUSH", means: "应用一次写入的结尾。" },
  },
  stall: {
    retransmission_timeout: { name: "重传定时器", means: "发生丢包，发送方等到定时器到期才重传。" },
    tail_loss: { name: "尾部丢包", means: "最后的包丢失，其后没有数据能暴露缺口。" },
    zero_window: { name: "窗口关闭", means: "接收方缓冲区已满，发送方只能等待。" },
    sender_application: { name: "无数据可发", means: "发送端应用没有写入数据。" },
    receiver_application: { name: "未读取", means: "接收端应用没有读取数据。" },
    delayed_ack: { name: "延迟 ACK", means: "接收方推迟了发送方正在等待的确认。" },
    idle_restart: { name: "空闲后重启", means: "停顿之后发送方重新慢启动。" },
    packet_delay: { name: "网络延迟", means: "数据包在途时间远长于之前。" },
    unknown: { name: "未知", means: "证据不足以说明原因。" },
  },
  say: {
    packet: (number) => `第 ${count(number)} 个包`,
    segment: (length, end) => `${length} 数据，至第 ${end} 字节`,
    stream: (number) => `HTTP/2 余额（流 ${number}）`,
    mean: (time) => `平滑后的有效吞吐：最近 ${time} 的平均值。`,
    bucket: (length) => `每个点代表 ${length}`,
    range: (low, high) => `${low} 至 ${high}`,
    held: (limit, sure) =>
      `此处的限制：${limit}${sure === null ? "" : `（把握 ${percent(sure)}）`}`,
    full: (inFlight, window) => `在途 ${inFlight}，已填满 ${window} 的窗口。`,
    room: (inFlight, window) => `在途 ${inFlight}，窗口为 ${window}。`,
    stall: (length, cause) => `停顿 ${length}：${cause}`,
    marksLeftOut: (shown, all, name) => `共 ${all} 处，显示 ${shown} 处（${name}）。`,
    all: (count) => `显示全部 ${count} 个`,
    connections: (shown, all) => `共 ${all} 个连接，显示损失时间最多的 ${shown} 个。`,
    connection: (number) => `连接 ${number}`,
    worst: (all) => `${all} 个连接中最差的一个`,
    spans: (n) => `${n} 段`,
    problem: (source, what) => `${source}：${what}`,
    dropped: (packets) =>
      `抓包时丢弃了 ${packets} 个数据包（据抓包文件自带的计数）：看似丢失的数据可能只是没有抓到。请增大抓包缓冲区（dumpcap -B、tcpdump -B），或缩短每个数据包的长度（-s 128）。`,
    backwards: (packets, order, unsorted) =>
      `有 ${packets} 个数据包的时间倒退，多个网卡或多个时钟写入同一文件时会这样：${
        {
          sorted: "已按时间排序。",
          partly: `已按时间排序，其中 ${unsorted} 个来得太晚，未能排序。`,
          as_taken: "已按文件中的顺序读取。",
        }[order]
      }`,
    on: (end) => (end === "sender" ? "在发送方执行" : "在接收方执行"),
    faster: (times) => `速度是之前的 ${times} 倍。`,
    slower: (times) => `没有比之前更快（${times} 倍）。`,
    socket: (name, end) => `${name}（${end === "client" ? "客户端" : "服务器"}）`,
    zoomed: (start, end) => `显示 ${start} 至 ${end}`,
    perConnection: (key) => `有效吞吐随 ${key} 的变化`,
  },
};

function because(limit: LimitName, { evidence: e }: Finding): string[] {
  const out: string[] = [];
  const flight = e.in_flight_bytes ?? 0;
  if (limit === "receive_window" && e.window_bytes && e.rtt_us) {
    out.push(
      `接收方最多允许 ${bytes(e.window_bytes)} 数据在途。往返时间为 ${time(e.rtt_us)} 时，最高只能达到 ${bothRates(e.allowed_bps ?? 0)}。`,
    );
  } else if (limit === "receiver_application") {
    out.push(`应用的读取速度为 ${bothRates(e.goodput_bps)}，窗口因此关闭，发送方只能等待。`);
  } else if (limit === "send_buffer") {
    out.push(
      `发送缓冲区装满了等待确认的数据：在途数据最多 ${bytes(flight)}，实际传输 ${bothRates(e.goodput_bps)}。`,
    );
  } else if (limit === "sender_application") {
    out.push("连接本可承载更多，但应用没有写入数据。");
  } else if (limit === "application_window" && e.rtt_us) {
    out.push(
      `对端应用最多只允许 ${bytes(flight)} 在途，而 TCP 自身的窗口仍有余量。往返时间为 ${time(e.rtt_us)} 时，最高只能达到 ${bothRates(e.allowed_bps ?? 0)}。`,
    );
  } else if (limit === "slow_start" && e.rtt_us) {
    out.push(`新建或空闲的连接从少量数据开始，每个往返翻倍，而一个往返需要 ${time(e.rtt_us)}。`);
  } else if (limit === "loss") {
    out.push(
      `${e.goodput_bps ? "发送方把丢包视为拥塞而减速。" : "发出的数据无一到达，发送方等待重传。"}共重传 ${count(e.retransmissions)} 个数据段。`,
    );
    if (e.allowed_bps && e.rtt_us)
      out.push(
        `在途数据保持在 ${bytes(flight)}，往返时间 ${time(e.rtt_us)}，即 ${bothRates(e.allowed_bps)}。`,
      );
  } else if (e.flights) {
    out.push(`传输很短：分 ${count(e.flights)} 批发出，任何设置都无法使其快十分之一。`);
  } else if (limit === "link") {
    const queue = queueBefore(e.rtt_us, e.rtt_path_us);
    out.push(`链路传输了 ${bothRates(e.goodput_bps)}。`);
    if (queue) out.push(`数据在链路前的队列中等待了 ${time(queue)}。`);
    if (e.burst_bps)
      out.push(
        `路径丢弃突发数据而没有排队；突发数据通过时可达 ${bothRates(e.burst_bps)}，均匀发送可能更快。`,
      );
  }
  if (e.elsewhere_bps) out.push(`在其他时段，同一路径曾达到 ${bothRates(e.elsewhere_bps)}。`);
  return out;
}

function remedy({ remedy_name: name, remedy: english }: Remedied): string {
  return remedies[name ?? ""] ?? english ?? "";
}

function subCause(of: SubCause): { claim: string; remedy: string } {
  return { claim: claim(of), remedy: remedy(of) };
}

function claim(of: SubCause): string {
  const times = count(Number(of.count ?? 0));
  const took = time(Number(of.time_us ?? 0));
  const at = rate(Number(of.rate_bps ?? 0));
  const amount = bytes(Number(of.amount_bytes ?? 0));
  switch (of.sub_cause) {
    case "no_answer":
      return `没有应答：SYN 重复了 ${times} 次，历时 ${took}，没有任何回应。`;
    case "path_mtu":
      return `路径 MTU 黑洞：不超过 ${amount} 的报文段能到达，更大的 ${times} 个报文段从未到达。`;
    case "window_scale":
      return `窗口缩放因子被中间设备破坏：接收方的窗口被当作 ${amount}，而实际要大得多。`;
    case "policer":
      return `限速器：路径不排队就丢包；此前通过的突发至少为 ${amount}，此后传输 ${at}。`;
    case "sharing":
      return `多个连接共享路径：同时 ${times} 个连接共传输 ${at}。`;
    case "timeouts":
      return of.time_us
        ? `重传超时：发送方 ${times} 次等待定时器，共 ${took}。`
        : `重传超时：共 ${times} 次。`;
    case "idle_restart":
      return of.time_us
        ? `空闲后重启：${times} 次停顿之后拥塞窗口重新增长（停顿前在途 ${amount}），共 ${took}。`
        : `空闲后重启：${times} 次停顿之后拥塞窗口缩小并重新增长。`;
    case "delayed_ack":
      return of.count
        ? `延迟 ACK 与 Nagle 算法：${times} 次小写入等待被推迟的 ACK，共 ${took}。`
        : `小写入等待接收方推迟的 ACK，每次约 ${took}。`;
    case "application_window":
      return `应用层窗口：对端应用最多允许 ${amount} 在途，发送方 ${times} 次用完额度后等待其消息，共 ${took}。`;
    case "ack_path":
      return `确认的返回路径：从时间戳看，ACK 在返回途中等待了 ${took}。`;
    case "host_reordering":
      return `发送方主机自身乱序：${times} 个报文段在进入路径之前就以错误的顺序离开主机。`;
    case "ssh_channel_window":
      return `SSH 通道窗口限制了数据：${amount} 在途，对端追加了 ${times} 次额度。`;
    case "window_scale_missing":
      return `某一端的 SYN 没有提供窗口缩放，窗口不会超过 65535 字节。`;
    case "receive_buffer_capped":
      return `应用设置了 SO_RCVBUF，net.core.rmem_max 把它限制在 ${amount}。`;
    case "receive_buffer_frozen":
      return `应用设置了 SO_RCVBUF：缓冲区固定在 ${amount}。`;
    case "window_clamped":
      return `TCP_WINDOW_CLAMP 把窗口限制在 ${amount}。`;
    case "receive_buffer_at_its_largest":
      return `接收缓冲区已自动增长到 net.ipv4.tcp_rmem 的第三个值（${amount}）。`;
    case "application_does_not_read":
      return `应用没有及时读取：套接字中最多积压 ${amount}。`;
    case "send_buffer_capped":
      return `应用设置了 SO_SNDBUF，net.core.wmem_max 把它限制在 ${amount}。`;
    case "send_buffer_frozen":
      return `应用设置了 SO_SNDBUF：缓冲区固定在 ${amount}。`;
    case "send_buffer_at_its_largest":
      return `发送缓冲区已自动增长到 net.ipv4.tcp_wmem 的第三个值（${amount}）。`;
    case "paced_by_application":
      return `应用把 SO_MAX_PACING_RATE 设为 ${at}，套接字按此速率发送。`;
    case "notsent_lowat":
      return `TCP_NOTSENT_LOWAT 只允许 ${amount} 等待发送，少于在途数据。`;
    case "reordering":
      return `${times} 次重传并无必要：路径使数据包乱序。`;
    case "small_segments":
      return `每个数据段最多只携带 ${amount}。`;
    case "dropped_on_arrival":
      return `该套接字所在主机丢弃了 ${times} 个到达的数据段，因为套接字内存已满。`;
    default:
      return of.claim;
  }
}

const WARNINGS: Record<string, string> = {
  offload_super_packets:
    "包大于线上的数据段（TSO、GSO 或 GRO）：用 ethtool -K 关闭卸载，或换一处抓包，以看到单个数据段。",
  capture_dropped:
    "有些被确认的数据没有抓到：请加大抓包缓冲区（tcpdump -B）或截短数据包（-s 128）。",
  captured_twice:
    "同一个包抓到了两次（tcpdump -i any 的多个网卡，或镜像端口）：除包数和线上字节数外，副本都不计入。",
  one_sided: "只抓到一个方向：无法判断往返时间、窗口和限制。",
  handshake_missing: "没有抓到握手：由于缺少缩放因子，窗口可能偏小。",
  window_scale_refused: "窗口缩放已提出但未得到应答：窗口不超过 64 KiB；可能被中间设备去除。",
  no_packets:
    "这些是套接字采样，不是数据包：时序图中的一点是一次采样，线上字节数为估计值，标签、丢包和停顿无从得知；抓包才有这些。",
  socket_log:
    "ss 日志的各次查看相隔较远，也没有应用对套接字的设置和主机的设置：占比来自内核的计数，其余部分由多次查看一起判断，原因无从得知；fullpipe why 有这些。",
  one_look:
    "对此套接字只有一次查看：占比是它打开以来所有忙碌时间的占比，应用的停顿无从得知；请记录多次查看，每次之前有一行 date。",
  no_counters:
    "日志中没有 busy、rwnd_limited 和 sndbuf_limited（Linux 4.10 及其 ss 才有）：接收窗口或发送缓冲区限制发送端多久无从得知。",
  receiver_log:
    "这是接收端的套接字，它不计数是什么限制发送端：请在发送端记录 ss -tinm，或使用发送端自己的结果（在发送端用 iperf3 --json，或 --get-server-output）。",
  no_socket_memory:
    "日志中没有 skmem：除非内核计数了发送缓冲区，写满的发送缓冲区与停顿的应用看起来一样；请记录 ss -tinm。",
  ndt7_result:
    "ndt7 的结果对服务器的套接字每秒约有四次查看，没有其内存，也没有客户端的套接字：占比来自内核的计数，其余部分由多次查看一起判断，原因无从得知。",
  iperf3_result:
    "iperf3 只输出每个时段的平均值，没有接收窗口或发送缓冲区限制发送端多久，也没有等待发送的数据：答案是猜测；请在发送端同时记录 ss -tinm，或在那里运行 fullpipe why。",
  headers_cut:
    "包在 TCP 头内被截断：缺少 SACK 块和时间戳，丢失与重传的计数不准；请保留更多字节（tcpdump -s 128）。",
  frames_gap:
    "HTTP/2 的窗口只读到一处缺口为止：抓包在那里漏掉了数据；请加大抓包缓冲区（tcpdump -B）。",
  frames_cut: "HTTP/2 的窗口未知：数据包只抓了一部分；请完整抓包（tcpdump -s 0）。",
  frames_too_many: "HTTP/2 的窗口未知：同时读取的连接超过 128 个；请用 --filter 选出这一个。",
  frames_cipher:
    "HTTP/2 的窗口未知：不支持这个 TLS 密码套件，只支持 TLS 1.2 和 1.3 的 AES-GCM 与 ChaCha20-Poly1305。",
  frames_undecrypted:
    "HTTP/2 的窗口未知，或只读到中途：有 TLS 记录不能用这个连接的密钥打开；密钥不全，或客户端在握手之前就发了数据（0-RTT）。",
  frames_malformed: "HTTP/2 的窗口只读到一个违反其规则的帧为止。",
};
