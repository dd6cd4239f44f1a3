/** The words of the page as a program. */

/** A quantity of the calculator. */
export type Quantity = "rate" | "rtt" | "window" | "send_buffer" | "loss" | "connections";

export interface ViewWords {
  readonly code: string;
  readonly capture: string;
  readonly calculator: string;
  readonly drop: string;
  readonly choose: string;
  readonly stays: string;
  readonly reads: string;
  readonly another: string;
  readonly calculating: string;
  readonly over: string;
  readonly unlimited: string;
  readonly quantity: Record<Quantity, { name: string; means: string }>;
  readonly limit: Record<string, string>;
  readonly needs: Record<
    "bdp" | "goodput" | "sndbuf" | "rcvbuf" | "slow_start" | "gigabyte",
    string
  >;
  readonly units: string;
  reading(done: string, all: string): string;
  failed(name: string, why: string): string;
  answer(rate: string, limit: string): string;
}

export const en: ViewWords = {
  code: "en",
  capture: "Capture",
  calculator: "Calculator",
  drop: "Drop a capture here",
  choose: "Choose a file",
  stays:
    "The file stays on this machine: the analysis runs in this page, and nothing is sent anywhere.",
  reads: "pcap, pcapng or snoop, plain or packed with gzip, zstd, xz or lz4",
  another: "Another capture",
  calculating: "Calculating",
  over: "Curve over",
  unlimited: "no limit",
  quantity: {
    rate: {
      name: "Rate of the bottleneck",
      means: "Bits a second of whole packets. 1 Gbit/s is 125 MB/s.",
    },
    rtt: { name: "Round trip", means: "Without queues: what ping shows on an idle path." },
    window: {
      name: "Receive window",
      means: "The largest that the receiver advertises, for each connection.",
    },
    send_buffer: {
      name: "Send buffer",
      means: "SO_SNDBUF or the third value of tcp_wmem. Two thirds of it are data in flight.",
    },
    loss: {
      name: "Random loss",
      means:
        "Packets that are lost whatever the sender does. The law is Mathis's, for Reno; CUBIC is somewhat faster, BBR hardly minds.",
    },
    connections: { name: "Connections", means: "That share the path, each with its own window." },
  },
  limit: {
    link: "the link",
    "receive window": "the receive window",
    "send buffer": "the send buffer",
    "congestion window (loss)": "the congestion window, which loss keeps small",
  },
  needs: {
    bdp: "in flight fill the path (rate × round trip)",
    goodput: "of payload at most, after headers",
    sndbuf: "of send buffer keep that in flight",
    rcvbuf: "of tcp_rmem advertise that window, on Linux",
    slow_start: "of slow start, at least",
    gigabyte: "for 1 GB, at least",
  },
  units: "Mbit/s are bits, MB/s are bytes: 8 Mbit/s are 1 MB/s.",
  reading: (done, all) => `Reading: ${done} of ${all}`,
  failed: (name, why) => `${name} cannot be read: ${why}`,
  answer: (rate, limit) => `${rate}, limited by ${limit}.`,
};

export const zh: ViewWords = {
  code: "zh-CN",
  capture: "抓包文件",
  calculator: "计算器",
  drop: "把抓包文件拖到这里",
  choose: "选择文件",
  stays: "文件不会离开本机：分析就在本页面中进行，不会上传任何内容。",
  reads: "支持 pcap、pcapng、snoop，可用 gzip、zstd、xz 或 lz4 压缩",
  another: "换一个文件",
  calculating: "正在计算",
  over: "曲线的横轴",
  unlimited: "不限",
  quantity: {
    rate: { name: "瓶颈速率", means: "整个数据包的每秒比特数。1 Gbit/s 等于 125 MB/s。" },
    rtt: { name: "往返时间", means: "没有排队时的往返时间，即空闲路径上 ping 的结果。" },
    window: { name: "接收窗口", means: "接收端为每个连接通告的最大窗口。" },
    send_buffer: {
      name: "发送缓冲区",
      means: "SO_SNDBUF 或 tcp_wmem 的第三个值，其中约三分之二是在途数据。",
    },
    loss: {
      name: "随机丢包",
      means: "与发送端行为无关的丢包。采用针对 Reno 的 Mathis 公式；CUBIC 略快，BBR 几乎不受影响。",
    },
    connections: { name: "连接数", means: "共享同一路径的连接，每个连接有自己的窗口。" },
  },
  limit: {
    link: "链路",
    "receive window": "接收窗口",
    "send buffer": "发送缓冲区",
    "congestion window (loss)": "拥塞窗口（被丢包压小）",
  },
  needs: {
    bdp: "在途数据即可填满路径（速率 × 往返时间）",
    goodput: "是扣除包头后的最大有效速率",
    sndbuf: "的发送缓冲区可以容纳这些在途数据",
    rcvbuf: "的 tcp_rmem 在 Linux 上可以通告这样的窗口",
    slow_start: "至少用于慢启动",
    gigabyte: "是传输 1 GB 至少需要的时间",
  },
  units: "Mbit/s 是比特，MB/s 是字节：8 Mbit/s 等于 1 MB/s。",
  reading: (done, all) => `正在读取：${done} / ${all}`,
  failed: (name, why) => `无法读取 ${name}：${why}`,
  answer: (rate, limit) => `${rate}，受限于${limit}。`,
};
