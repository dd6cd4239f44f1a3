//! What each preset of the lab shows.

/// A description as its scenario has it, and in Chinese.
pub const PRESETS: [(&str, &str); 42] = [
    (
        "A few seconds: 200 Mbit/s and 20 ms, filled, and held back by each end's buffer",
        "几秒钟：200 Mbit/s、20 ms，先跑满，再分别受两端缓冲区限制",
    ),
    (
        "Article A, experiment A1: 4096-byte buffers at both ends, RTT from 2 to 100 ms",
        "文章 A，实验 A1：两端缓冲区均为 4096 字节，RTT 从 2 到 100 ms",
    ),
    (
        "Article A, experiment A2: 4096-byte buffers, 2 ms, random loss of the data",
        "文章 A，实验 A2：缓冲区 4096 字节，2 ms，数据随机丢包",
    ),
    (
        "Article A, experiment A3: only the client's receive buffer small, then only the server's send buffer (not captured there)",
        "文章 A，实验 A3：先只缩小客户端的接收缓冲区，再只缩小服务器的发送缓冲区（此处不抓包）",
    ),
    (
        "Article B: the buffer experiments B0 to B5'', one row each",
        "文章 B：缓冲区实验 B0 到 B5''，每个一行",
    ),
    (
        "Article B, impairment: in 0.1 % of the data's packets a bit is flipped",
        "文章 B，损伤：0.1 % 的数据包有一个比特翻转",
    ),
    (
        "Article B, impairment: 1 % of the data's packets come twice",
        "文章 B，损伤：1 % 的数据包重复到达",
    ),
    (
        "Article B, impairment: 100 ms +- 10 ms on the way of the data",
        "文章 B，损伤：数据方向时延 100 ms ± 10 ms",
    ),
    (
        "Article B, impairment: 100 ms +- 10 ms, each delay 30 % that of the packet before",
        "文章 B，损伤：100 ms ± 10 ms，每个时延与前一个包相关 30 %",
    ),
    (
        "Article B, impairment: 100 ms +- 20 ms, normally distributed",
        "文章 B，损伤：100 ms ± 20 ms，正态分布",
    ),
    ("Article B, impairment: 1 % of the data's packets lost", "文章 B，损伤：1 % 的数据包丢失"),
    (
        "Article B, impairment: 17 ms for one destination address only",
        "文章 B，损伤：只对一个目的地址加 17 ms",
    ),
    (
        "Asked for in article B and not solved there: 17 ms for one port of a server, nothing for another",
        "文章 B 提出而未解决：只对服务器的一个端口加 17 ms，其他端口不变",
    ),
    (
        "Article B, impairment: 25 % at once (50 % as the one before), the others after 10 ms",
        "文章 B，损伤：25 % 立即发出（与前一个包相关 50 %），其余 10 ms 之后",
    ),
    (
        "Article B, impairment: every fifth packet at once, the others after 10 ms",
        "文章 B，损伤：每五个包有一个立即发出，其余 10 ms 之后",
    ),
    (
        "Article B, step B0: no shaping but the article's 10 Gbit/s, default buffers",
        "文章 B，步骤 B0：除文章的 10 Gbit/s 外不整形，默认缓冲区",
    ),
    (
        "Article B, step B1: 1000 Mbit/s, no delay, default buffers",
        "文章 B，步骤 B1：1000 Mbit/s，无时延，默认缓冲区",
    ),
    (
        "Article B, step B2: 1000 Mbit/s, 50 ms, default buffers",
        "文章 B，步骤 B2：1000 Mbit/s，50 ms，默认缓冲区",
    ),
    (
        "Article B, step B3: 1000 Mbit/s, 50 ms, client's receive buffer 13107200",
        "文章 B，步骤 B3：1000 Mbit/s，50 ms，客户端接收缓冲区 13107200",
    ),
    (
        "Article B, step B4: 1000 Mbit/s, 50 ms, both buffers 13107200",
        "文章 B，步骤 B4：1000 Mbit/s，50 ms，两端缓冲区均为 13107200",
    ),
    (
        "Article B, step B5: 1000 Mbit/s, 50 ms, both buffers 4096",
        "文章 B，步骤 B5：1000 Mbit/s，50 ms，两端缓冲区均为 4096",
    ),
    (
        "Article B, step B5': 1000 Mbit/s, 50 ms, only the server's send buffer 4096",
        "文章 B，步骤 B5'：1000 Mbit/s，50 ms，只有服务器的发送缓冲区为 4096",
    ),
    (
        "Article B, step B5'': 1000 Mbit/s, 50 ms, only the client's receive buffer 4096",
        "文章 B，步骤 B5''：1000 Mbit/s，50 ms，只有客户端的接收缓冲区为 4096",
    ),
    (
        "Article B, step B6: the client at nice 19 shares its CPU with a hog at nice -20 (as root; otherwise 0)",
        "文章 B，步骤 B6：nice 19 的客户端与 nice -20 的占用程序共用 CPU（以 root 运行时；否则为 0）",
    ),
    (
        "Article C, step C1: 1 Gbit/s, 146 ms, default buffers",
        "文章 C，步骤 C1：1 Gbit/s，146 ms，默认缓冲区",
    ),
    ("Article C, step C2: the same, send buffer raised", "文章 C，步骤 C2：同上，调大发送缓冲区"),
    (
        "Article C, step C3: the same, both buffers raised",
        "文章 C，步骤 C3：同上，两端缓冲区均调大",
    ),
    (
        "Article C, step C4: 68 ms, receive buffer of 12 MB",
        "文章 C，步骤 C4：68 ms，接收缓冲区 12 MB",
    ),
    (
        "Article D: 25 Gbit/s, 40 ms: default and huge receive buffers",
        "文章 D：25 Gbit/s，40 ms：默认的与极大的接收缓冲区",
    ),
    (
        "Article E, remedy E1: 50 MB over 350 ms, receive buffers from 2 to 324 MB",
        "文章 E，办法 E1：350 ms 上传 50 MB，接收缓冲区从 2 到 324 MB",
    ),
    (
        "Article E, remedy E1, through the warm carrier of a relay",
        "文章 E，办法 E1，经中继的热连接",
    ),
    (
        "Article E, remedy E2: 50 MB over 300 ms through a relay with 1 to 40 carriers",
        "文章 E，办法 E2：300 ms 上传 50 MB，经有 1 到 40 条承载连接的中继",
    ),
    (
        "The window agent on article D's path: 25 Gbit/s and 40 ms, a reader that takes all, tcp_rmem up to 6 and 600 MB",
        "窗口代理，文章 D 的路径：25 Gbit/s、40 ms，读取方来者全收，tcp_rmem 上限 6 和 600 MB",
    ),
    (
        "The window agent in the first second of a connection: 2 Gbit/s and 80 ms, by congestion control",
        "窗口代理，连接的第一秒：2 Gbit/s、80 ms，按拥塞控制",
    ),
    (
        "The window agent: 2 Gbit/s and 80 ms, a reader that takes all, tcp_rmem up to 6, 32 and 256 MB",
        "窗口代理：2 Gbit/s、80 ms，读取方来者全收，tcp_rmem 上限 6、32 和 256 MB",
    ),
    (
        "The window agent: 2 Gbit/s and 80 ms, a reader of 200 Mbit/s, tcp_rmem up to 6, 32 and 256 MB",
        "窗口代理：2 Gbit/s、80 ms，读取方 200 Mbit/s，tcp_rmem 上限 6、32 和 256 MB",
    ),
    (
        "The window agent: 2 Gbit/s and 80 ms, a reader that pauses for 150 ms in each second",
        "窗口代理：2 Gbit/s、80 ms，读取方每秒停顿 150 ms",
    ),
    (
        "The window agent: 1000 connections over 2 Gbit/s and 80 ms; 900 readers of 1 Mbit/s, 90 of 10 Mbit/s, 10 that take all",
        "窗口代理：1000 条连接共用 2 Gbit/s、80 ms；900 个读取方 1 Mbit/s，90 个 10 Mbit/s，10 个来者全收",
    ),
    (
        "The window agent where there is nothing to win: 25 Gbit/s and 0.2 ms",
        "窗口代理，没有可得之处：25 Gbit/s、0.2 ms",
    ),
    (
        "The window agent: 500 Mbit/s, whose round trip becomes 140 ms after 5 s and 60 ms after 10 s",
        "窗口代理：500 Mbit/s，往返时间在 5 s 后变为 140 ms，10 s 后变为 60 ms",
    ),
    (
        "The window agent: 2 Gbit/s and 80 ms with loss, by congestion control",
        "窗口代理，有丢包：2 Gbit/s、80 ms，按拥塞控制",
    ),
    (
        "The window agent without TCP timestamps: 2 Gbit/s and 80 ms, by congestion control",
        "窗口代理，没有 TCP 时间戳：2 Gbit/s、80 ms，按拥塞控制",
    ),
];
