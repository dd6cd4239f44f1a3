//! The causes that the trials of `fullpipe why` plant between two hosts, and what each end should
//! say of them.

/// A peer that is not ours. The one that listens sends, the other receives; each sets the options
/// `level:name:value` before it connects or listens, and works in pieces with a pause after each.
pub const PEER: &str = r#"
import socket, sys, time
role, address, port, piece, pause = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5])
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
for option in sys.argv[6:]:
    s.setsockopt(*map(int, option.split(':')))
end = time.time() + 60
if role == 'send':
    s.bind((address, port)); s.listen(1); print('ready', flush=True)
    c, _ = s.accept()
    data = b'x' * piece
    while time.time() < end:
        c.sendall(data)
        if pause: time.sleep(pause)
else:
    s.connect((address, port)); print('ready', flush=True)
    while time.time() < end and s.recv(piece):
        if pause: time.sleep(pause)
"#;

pub const SOL_SOCKET: i32 = 1;
pub const SO_SNDBUF: i32 = 7;
const SO_RCVBUF: i32 = 8;
const SO_MAX_PACING_RATE: i32 = 47;
const IPPROTO_TCP: i32 = 6;
const TCP_MAXSEG: i32 = 2;
const TCP_WINDOW_CLAMP: i32 = 10;

/// What one host's peer does: its piece and pause, and the options that it sets.
#[derive(Clone, Copy, Default)]
pub struct Peer {
    pub piece: usize,
    pub pause: f64,
    pub options: &'static [(i32, i32, i32)],
}

pub const GREEDY: Peer = Peer { piece: 262_144, pause: 0.0, options: &[] };

/// A cause by construction, and what each end should say of it.
pub struct Planted {
    pub name: &'static str,
    /// Lines of the scenario: of the server, of the client, of the link.
    pub scenario: [&'static str; 3],
    pub sender: Peer,
    pub receiver: Peer,
    /// The limits that are right, and a cause that must be among those told; empty for none.
    pub at_sender: (&'static [&'static str], &'static str),
    pub at_receiver: (&'static [&'static str], &'static str),
}

pub const LINK: &str = "rate = \"200mbit\"\nrtt = \"40ms\"\nqueue = \"1MB\"";
pub const PLAIN: [&str; 3] = ["", "", LINK];
const WINDOW: &[&str] = &["receive_window"];
const BUFFER: &[&str] = &["send_buffer"];
/// What a receiver cannot see it does not claim.
const NOT_THE_LINK: &[&str] = &["send_buffer", "sender_application", "unknown"];
const READER: &[&str] = &["receiver_application"];
const WRITER: &[&str] = &["sender_application"];

pub const CAUSES: [Planted; 17] = [
    Planted {
        name: "a small tcp_rmem",
        scenario: ["", "\"net.ipv4.tcp_rmem\" = \"4096 131072 262144\"", LINK],
        sender: GREEDY,
        receiver: GREEDY,
        at_sender: (WINDOW, ""),
        at_receiver: (WINDOW, "receive_buffer_at_its_largest"),
    },
    Planted {
        name: "SO_RCVBUF",
        scenario: PLAIN,
        sender: GREEDY,
        receiver: Peer { options: &[(SOL_SOCKET, SO_RCVBUF, 100_000)], ..GREEDY },
        at_sender: (WINDOW, ""),
        at_receiver: (WINDOW, "receive_buffer_frozen"),
    },
    Planted {
        name: "SO_RCVBUF above rmem_max",
        // The machine's rmem_max is what it is; a long path makes any bound bind.
        scenario: [
            "\"net.ipv4.tcp_wmem\" = \"4096 16384 67108864\"",
            "",
            "rate = \"2gbit\"\nrtt = \"160ms\"\nqueue = \"8MB\"",
        ],
        sender: GREEDY,
        receiver: Peer { options: &[(SOL_SOCKET, SO_RCVBUF, 1 << 30)], ..GREEDY },
        at_sender: (WINDOW, ""),
        at_receiver: (WINDOW, "receive_buffer_capped"),
    },
    Planted {
        name: "no window scale",
        scenario: ["", "\"net.ipv4.tcp_window_scaling\" = 0", LINK],
        sender: GREEDY,
        receiver: GREEDY,
        at_sender: (WINDOW, "window_scale_missing"),
        at_receiver: (WINDOW, "window_scale_missing"),
    },
    Planted {
        name: "TCP_WINDOW_CLAMP",
        scenario: PLAIN,
        sender: GREEDY,
        receiver: Peer { options: &[(IPPROTO_TCP, TCP_WINDOW_CLAMP, 60_000)], ..GREEDY },
        at_sender: (WINDOW, ""),
        at_receiver: (WINDOW, ""),
    },
    Planted {
        name: "a slow reader",
        scenario: PLAIN,
        sender: GREEDY,
        receiver: Peer { piece: 65_536, pause: 0.25, options: &[] },
        at_sender: (READER, ""),
        at_receiver: (READER, "application_does_not_read"),
    },
    Planted {
        name: "a reader that stopped",
        scenario: PLAIN,
        sender: GREEDY,
        receiver: Peer { piece: 1, pause: 30.0, options: &[] },
        at_sender: (READER, ""),
        at_receiver: (READER, "application_does_not_read"),
    },
    Planted {
        name: "a small tcp_wmem",
        scenario: ["\"net.ipv4.tcp_wmem\" = \"4096 16384 262144\"", "", LINK],
        sender: GREEDY,
        receiver: GREEDY,
        at_sender: (BUFFER, "send_buffer_at_its_largest"),
        at_receiver: (NOT_THE_LINK, ""),
    },
    Planted {
        name: "SO_SNDBUF",
        scenario: PLAIN,
        sender: Peer { options: &[(SOL_SOCKET, SO_SNDBUF, 60_000)], ..GREEDY },
        receiver: GREEDY,
        at_sender: (BUFFER, "send_buffer_frozen"),
        at_receiver: (NOT_THE_LINK, ""),
    },
    Planted {
        name: "SO_SNDBUF above wmem_max",
        scenario: [
            "",
            "\"net.ipv4.tcp_rmem\" = \"4096 131072 134217728\"",
            "rate = \"2gbit\"\nrtt = \"160ms\"\nqueue = \"8MB\"",
        ],
        sender: Peer { options: &[(SOL_SOCKET, SO_SNDBUF, 1 << 30)], ..GREEDY },
        receiver: GREEDY,
        at_sender: (BUFFER, "send_buffer_capped"),
        at_receiver: (NOT_THE_LINK, ""),
    },
    Planted {
        name: "an application that writes little",
        scenario: PLAIN,
        sender: Peer { piece: 8_000, pause: 0.1, options: &[] },
        receiver: GREEDY,
        at_sender: (WRITER, ""),
        at_receiver: (WRITER, ""),
    },
    Planted {
        name: "SO_MAX_PACING_RATE",
        scenario: PLAIN,
        sender: Peer { options: &[(SOL_SOCKET, SO_MAX_PACING_RATE, 2_500_000)], ..GREEDY },
        receiver: GREEDY,
        // By its queue it is a link at that rate; the cause says whose.
        at_sender: (&["link", "sender_application"], "paced_by_application"),
        at_receiver: (NOT_THE_LINK, ""),
    },
    Planted {
        name: "the link",
        scenario: ["", "", "rate = \"50mbit\"\nrtt = \"40ms\"\nqueue = \"500kB\""],
        sender: GREEDY,
        receiver: GREEDY,
        at_sender: (&["link"], ""),
        at_receiver: (&["link"], ""),
    },
    Planted {
        name: "loss",
        scenario: [
            "",
            "",
            "rate = \"200mbit\"\nrtt = \"40ms\"\nqueue = \"1MB\"\n[link.to_client]\nloss = \"1%\"",
        ],
        sender: GREEDY,
        receiver: GREEDY,
        at_sender: (&["congestion_window"], ""),
        at_receiver: (&["congestion_window"], ""),
    },
    Planted {
        name: "small segments",
        scenario: ["", "\"net.ipv4.tcp_rmem\" = \"4096 131072 262144\"", LINK],
        sender: GREEDY,
        receiver: Peer { options: &[(IPPROTO_TCP, TCP_MAXSEG, 536)], ..GREEDY },
        at_sender: (WINDOW, "small_segments"),
        at_receiver: (WINDOW, "small_segments"),
    },
    Planted {
        name: "slow start after each pause",
        scenario: PLAIN,
        // A burst of 2 MB takes 0.1 s at the link's rate; the timer is at some 0.24 s.
        sender: Peer { piece: 2_000_000, pause: 0.8, options: &[] },
        receiver: GREEDY,
        at_sender: (WRITER, "idle_restart"),
        at_receiver: (WRITER, ""),
    },
    // What it takes at once comes as a burst, which stands in the path's queue for a moment. The
    // sender sees a window that is closed, and in three seconds not always why.
    Planted {
        name: "a reader that takes 200 kB every 100 ms",
        scenario: PLAIN,
        sender: GREEDY,
        receiver: Peer { piece: 200_000, pause: 0.1, options: &[] },
        at_sender: (&["receiver_application", "receive_window"], ""),
        at_receiver: (READER, "application_does_not_read"),
    },
];
