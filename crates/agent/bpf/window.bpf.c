/* The window agent: the receive window of each TCP connection of a control group follows the rate
 * at which its application reads. The law is in window_law.h; here is what it is told, and what is
 * done with its answer. `cargo xtask bpf` builds window.bpf.o, which is committed.
 *
 * The hook runs once for each segment that carries an acknowledgement, just before the kernel
 * chooses its window: BPF_SOCK_OPS_HDR_OPT_LEN_CB, where it reserves no option. The kernel does not
 * call it where SACK blocks (three, beside timestamps) leave no room for options. While data is out
 * of order no segment is taken by the kernel's fast path, so BPF_SOCK_OPS_PARSE_HDR_OPT_CB stands
 * in, for each segment that comes. Connections are told to call when they are established; those
 * that exist already, by the iterator `visit`, which also lets go of all at the end.
 *
 * What it takes from the kernel: TCP_WINDOW_CLAMP always; SO_RCVBUF, which ends the kernel's own
 * autotuning, only where a connection needs more than tcp_rmem[2] lets the kernel give. What it
 * leaves behind therefore is a buffer of at least that, and autotuning where it was. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include "window_law.h"

#define SOL_SOCKET 1
#define SO_RCVBUF 8
#define SOL_TCP 6
#define TCP_WINDOW_CLAMP 10
#define TCP_BPF_SOCK_OPS_CB_FLAGS 1008
/* States of include/net/tcp_states.h in which data may still come. */
#define TCP_ESTABLISHED_STATE 1
#define TCP_FIN_WAIT1_STATE 4
#define TCP_FIN_WAIT2_STATE 5
#define TCP_CLOSE_STATE 7
/* What calls `follow` for a segment. */
#define SEGMENT_FLAGS (BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG | BPF_SOCK_OPS_PARSE_ALL_HDR_OPT_CB_FLAG)
#define OUR_FLAGS (BPF_SOCK_OPS_STATE_CB_FLAG | SEGMENT_FLAGS)
/* No control group lies deeper. */
#define DEEPEST_GROUP 32
#define INET 2
#define RCVBUF_LOCKED 2
/* So many blocks a receiver keeps (RFC 2018 section 3 leaves room for four). */
#define SACK_BLOCKS 4
/* So many of them and timestamps take all 40 bytes of options. */
#define BLOCKS_THAT_FILL 3

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct netns_ipv4 {
	int sysctl_tcp_rmem[3];
};
struct net {
	struct netns_ipv4 ipv4;
};
typedef struct {
	struct net *net;
} possible_net_t;
struct in6_addr {
	union {
		u32 u6_addr32[4];
	} in6_u;
};
struct sock_common {
	possible_net_t skc_net;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	u32 skc_daddr;
	struct in6_addr skc_v6_daddr;
};
struct kernfs_node {
	u64 id;
};
struct cgroup {
	struct kernfs_node *kn;
	int level;
	struct cgroup *ancestors[1];
};
struct sock_cgroup_data {
	struct cgroup *cgroup;
};
typedef struct {
	int counter;
} atomic_t;
struct sock {
	struct sock_common __sk_common;
	struct {
		atomic_t rmem_alloc;
	} sk_backlog;
	int sk_rcvbuf;
	unsigned char sk_userlocks;
	struct sock_cgroup_data sk_cgrp_data;
};
struct tcp_sack_block {
	u32 start_seq, end_seq;
};
struct tcp_options_received {
	unsigned short saw_tstamp : 1, tstamp_ok : 1;
	unsigned char num_sacks;
	unsigned short mss_clamp;
};
struct inet_connection_sock {
	struct {
		unsigned short rcv_mss;
	} icsk_ack;
};
struct tcp_sock {
	struct inet_connection_sock inet_conn;
	unsigned short advmss;
	u32 rcv_nxt, copied_seq, rcv_wnd, rcv_wup, window_clamp, srtt_us;
	unsigned char scaling_ratio, bpf_sock_ops_cb_flags;
	struct tcp_options_received rx_opt;
	struct tcp_sack_block selective_acks[SACK_BLOCKS];
	struct {
		u32 rtt_us;
	} rcv_rtt_est;
};
struct seq_file;
struct bpf_iter_meta {
	struct seq_file *seq;
};
struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};
#pragma clang attribute pop

char LICENSE[] SEC("license") = "GPL";

enum mode { MODE_WATCH, MODE_CONTROL, MODE_RELEASE };

/* As in src/wire.rs: so many words. */
struct config {
	struct law_settings law;
	u64 mode, loopback, unfreeze, most_buffer;
	/* The number of the control group, for the iterator. */
	u64 group;
};

enum standing { FOLLOWED, FROZEN_BY_APPLICATION };

/* What is shown of a connection; all words, as in src/wire.rs. */
struct shown {
	u64 local[2], remote[2], ports;
	u64 window, drained, drained_in_us, queue, queue_peak, queue_mean, rtt_us, least_rtt_us;
	u64 phase, reads, standing, buffer, promised, out_of_order, errors, acks, seen, closed;
	u64 two_segments;
};

struct connection {
	struct law law;
	/* The queue in KiB times the microseconds that it stood, for its mean over time. */
	u64 acks, queues, stood_us, looked, queue_peak, errors;
	u32 set_buffer, standing;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct config);
} configuration SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct connection);
} connections SEC(".maps");

/* By socket cookie; the oldest make room. Written once in a round trip, not for each segment. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, struct shown);
} shown SEC(".maps");

static __always_inline u64 ratio_of(struct tcp_sock *tp)
{
	u64 ratio = tp->scaling_ratio;

	return ratio ? ratio : 128;
}

/* tcp_space_from_win of the kernel. */
static __always_inline u64 space_of(u64 window, u64 ratio) { return (window << 8) / ratio; }

static __always_inline int is_locked(struct sock *sk)
{
	return BPF_CORE_READ_BITFIELD(sk, sk_userlocks) & RCVBUF_LOCKED;
}

/* From rcv_nxt to the end of what came beyond a hole: the furthest block that would be told by
 * SACK. The newest block is among them, and nearly always it is the furthest. */
static __always_inline u64 out_of_order_of(struct tcp_sock *tp)
{
	u32 blocks = tp->rx_opt.num_sacks;
	u64 furthest = 0;

	if (blocks > 0)
		furthest = advanced(tp->rcv_nxt, tp->selective_acks[0].end_seq);
	if (blocks > 1)
		furthest = most_of(furthest, advanced(tp->rcv_nxt, tp->selective_acks[1].end_seq));
	if (blocks > 2)
		furthest = most_of(furthest, advanced(tp->rcv_nxt, tp->selective_acks[2].end_seq));
	if (blocks > 3)
		furthest = most_of(furthest, advanced(tp->rcv_nxt, tp->selective_acks[3].end_seq));
	return furthest;
}

/* The receiver's estimate of the round trip. Without timestamps it is the least time in which a
 * window's worth came, and if a whole window came in one burst, that is the burst. The handshake
 * knows better then. */
static __always_inline u64 rtt_of(struct tcp_sock *tp)
{
	u64 rtt = tp->rcv_rtt_est.rtt_us >> 3, smoothed = tp->srtt_us >> 3;

	if (!rtt || !BPF_CORE_READ_BITFIELD(tp, rx_opt.tstamp_ok))
		return most_of(rtt, smoothed);
	return rtt;
}

/* What the peer may send: no more than it was told, and no more than its own device takes, which is
 * what it told us. Whatever was seen is true nevertheless: a router on the way may rewrite one. */
static __always_inline u64 segment_of(struct tcp_sock *tp)
{
	u64 told = tp->advmss, of_peer = tp->rx_opt.mss_clamp;

	return most_of(tp->inet_conn.icsk_ack.rcv_mss, least_of(told, of_peer));
}

static __always_inline void look_at(struct tcp_sock *tp, struct connection *c, struct look *look)
{
	struct sock *sk = (struct sock *)tp;
	u32 passed, promised = tp->rcv_wnd;

	look->received = tp->rcv_nxt;
	look->copied = tp->copied_seq;
	look->out_of_order = out_of_order_of(tp);
	/* tcp_receive_window: what is left of the window of the last acknowledgement. */
	passed = tp->rcv_nxt - tp->rcv_wup;
	look->promised = promised > passed ? promised - passed : 0;
	look->rtt_us = rtt_of(tp);
	look->segment = segment_of(tp);
	/* Once the buffer is ours, it says nothing of the kernel's choice. */
	look->own = c->set_buffer ? 0 : ((u64)(u32)sk->sk_rcvbuf * ratio_of(tp)) >> 8;
}

/* Gives the socket what the law grants. The context is what the program was called with, or the
 * socket. */
static __always_inline void grant(void *context, struct tcp_sock *tp,
				  struct connection *c, const struct config *set, u64 window,
				  u64 room)
{
	struct sock *sk = (struct sock *)tp;
	u64 ratio = ratio_of(tp), old = (u32)sk->sk_rcvbuf;
	u64 own_most = (u32)sk->__sk_common.skc_net.net->ipv4.sysctl_tcp_rmem[2];
	u64 need = space_of(room, ratio);
	/* Up to here the kernel grows by itself, unless the application's choice stopped it. */
	u64 by_kernel = is_locked(sk) && !c->set_buffer ? 0 : own_most;

	need += need / 16;
	need = least_of(need, set->most_buffer);
	if (c->set_buffer) {
		/* It shrinks to what the kernel could give, and holds what is queued and promised. */
		u64 held = (u32)sk->sk_backlog.rmem_alloc.counter + space_of(tp->rcv_wnd, ratio);

		need = most_of(need, own_most);
		if (need < old)
			need = most_of(need, least_of(held, old));
	}
	if ((need > by_kernel && need > old + old / 32) || (c->set_buffer && need + old / 8 < old)) {
		int half = need / 2;

		if (bpf_setsockopt(context, SOL_SOCKET, SO_RCVBUF, &half, sizeof(half)))
			c->errors++;
		else
			c->set_buffer = sk->sk_rcvbuf;
	}
	if (tp->window_clamp != window) {
		int clamp = window;

		if (bpf_setsockopt(context, SOL_TCP, TCP_WINDOW_CLAMP, &clamp, sizeof(clamp)))
			c->errors++;
	}
}

/* The last word: all of its buffer, and no more of us. */
static __always_inline void let_go(void *context, struct tcp_sock *tp, struct connection *c,
				   const struct config *set)
{
	struct sock *sk = (struct sock *)tp;
	u64 most = most_of((u32)sk->sk_rcvbuf,
			   (u32)sk->__sk_common.skc_net.net->ipv4.sysctl_tcp_rmem[2]);

	if (c->standing == FOLLOWED)
		grant(context, tp, c, set, (most * ratio_of(tp)) >> 8, c->law.room);
}

/* A field of the context. The verifier refuses one whose address the compiler moved, as it does to
 * join two branches that read alike; so each is read at once. */
#define FIELD(ops, name)                                                                           \
	({                                                                                         \
		u32 _field = (ops)->name;                                                          \
		barrier_var(_field);                                                               \
		_field;                                                                            \
	})

struct addresses {
	u32 local[4], remote[4];
};

/* In host order; IPv4 as ::ffff:a.b.c.d (RFC 4291 section 2.5.5.2). */
static __always_inline void addresses_of(struct bpf_sock_ops *ops, struct addresses *a)
{
	u32 local4 = FIELD(ops, local_ip4), remote4 = FIELD(ops, remote_ip4);

	a->local[0] = bpf_ntohl(FIELD(ops, local_ip6[0]));
	a->local[1] = bpf_ntohl(FIELD(ops, local_ip6[1]));
	a->local[2] = bpf_ntohl(FIELD(ops, local_ip6[2]));
	a->local[3] = bpf_ntohl(FIELD(ops, local_ip6[3]));
	a->remote[0] = bpf_ntohl(FIELD(ops, remote_ip6[0]));
	a->remote[1] = bpf_ntohl(FIELD(ops, remote_ip6[1]));
	a->remote[2] = bpf_ntohl(FIELD(ops, remote_ip6[2]));
	a->remote[3] = bpf_ntohl(FIELD(ops, remote_ip6[3]));
	if (FIELD(ops, family) == INET) {
		a->local[0] = a->local[1] = a->remote[0] = a->remote[1] = 0;
		a->local[2] = a->remote[2] = 0xffff;
		a->local[3] = bpf_ntohl(local4);
		a->remote[3] = bpf_ntohl(remote4);
	}
}

static __always_inline int is_loopback(struct bpf_sock_ops *ops)
{
	struct addresses a;

	addresses_of(ops, &a);
	if (a.remote[0] || a.remote[1])
		return 0;
	if (a.remote[2] == 0xffff)
		return a.remote[3] >> 24 == 127;
	return !a.remote[2] && a.remote[3] == 1;
}

static __always_inline void show(struct bpf_sock_ops *ops, struct tcp_sock *tp,
				 struct connection *c, const struct look *look, u64 now)
{
	u64 cookie = bpf_get_socket_cookie(ops);
	u32 local_port = FIELD(ops, local_port);
	struct shown s = {};
	struct addresses a;

	/* The program has closed it. What was shown last stays. */
	if (!local_port)
		return;
	addresses_of(ops, &a);
	s.local[0] = (u64)a.local[0] << 32 | a.local[1];
	s.local[1] = (u64)a.local[2] << 32 | a.local[3];
	s.remote[0] = (u64)a.remote[0] << 32 | a.remote[1];
	s.remote[1] = (u64)a.remote[2] << 32 | a.remote[3];
	s.ports = (u64)local_port << 32 | bpf_ntohl(FIELD(ops, remote_port));
	s.window = c->law.window;
	s.drained = c->law.drained;
	s.drained_in_us = c->law.drained_in_us;
	s.queue = queue_of(look);
	s.queue_peak = c->queue_peak;
	s.queue_mean = c->stood_us ? (c->queues / c->stood_us) << 10 : 0;
	s.rtt_us = look->rtt_us;
	s.least_rtt_us = least_of(c->law.rtt_now, c->law.rtt_before);
	s.phase = c->law.phase;
	s.reads = c->law.reads;
	s.standing = c->standing;
	s.buffer = (u32)((struct sock *)tp)->sk_rcvbuf;
	s.promised = look->promised;
	s.out_of_order = c->law.beyond_hole;
	s.errors = c->errors;
	s.acks = c->acks;
	s.two_segments = c->law.two_segments;
	s.seen = now;
	bpf_map_update_elem(&shown, &cookie, &s, BPF_ANY);
}

SEC("sockops")
int follow(struct bpf_sock_ops *ops)
{
	u32 op = ops->op, zero = 0;
	struct config *set;
	struct bpf_sock *sk;
	struct tcp_sock *tp;
	struct connection *c;
	struct look look = {};
	u64 now;
	int ended;

	if (op == BPF_SOCK_OPS_STATE_CB) {
		u64 cookie = bpf_get_socket_cookie(ops);

		struct shown *s = bpf_map_lookup_elem(&shown, &cookie);

		if (s && ops->args[1] == TCP_CLOSE_STATE)
			s->closed = 1;
		return 1;
	}
	if (op != BPF_SOCK_OPS_HDR_OPT_LEN_CB && op != BPF_SOCK_OPS_PARSE_HDR_OPT_CB &&
	    op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB && op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		return 1;
	set = bpf_map_lookup_elem(&configuration, &zero);
	sk = ops->sk;
	if (!set || !sk)
		return 1;
	if (op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB || op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB) {
		if (set->mode != MODE_RELEASE && (set->loopback || !is_loopback(ops)))
			bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags | OUR_FLAGS);
		return 1;
	}
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 1;
	/* Fewer blocks than these and the segment that is sent will tell. One more may be a duplicate
	 * (RFC 2883). */
	if (op == BPF_SOCK_OPS_PARSE_HDR_OPT_CB && tp->rx_opt.num_sacks < BLOCKS_THAT_FILL - 1)
		return 1;
	now = bpf_ktime_get_ns();
	c = bpf_sk_storage_get(&connections, sk, 0, 0);
	if (!c) {
		c = bpf_sk_storage_get(&connections, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
		if (!c)
			return 1;
		look_at(tp, c, &look);
		law_new(&c->law, &set->law, now, &look);
	} else {
		look_at(tp, c, &look);
	}
	ended = law_acknowledge(&c->law, &set->law, now, &look);
	c->acks++;
	if (c->looked) {
		u64 stood_us = since(now, c->looked) / 1000;

		c->queues += (queue_of(&look) >> 10) * stood_us;
		c->stood_us += stood_us;
	}
	c->looked = now;
	c->queue_peak = most_of(c->queue_peak, queue_of(&look));
	if (set->mode == MODE_RELEASE) {
		let_go(ops, tp, c, set);
		bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags &
						       ~SEGMENT_FLAGS);
		return 1;
	}
	/* A buffer that the application chose, before us or after, is its own. */
	if (!set->unfreeze && is_locked((struct sock *)tp) &&
	    (u32)((struct sock *)tp)->sk_rcvbuf != c->set_buffer)
		c->standing = FROZEN_BY_APPLICATION;
	if (set->mode == MODE_CONTROL && c->standing == FOLLOWED)
		grant(ops, tp, c, set, c->law.window, c->law.room);
	if (ended)
		show(ops, tp, c, &look, now);
	return 1;
}

/* Whether the socket belongs to this control group or one below it. */
static __always_inline int is_within(struct sock *sk, u64 group)
{
	struct cgroup *own = sk->sk_cgrp_data.cgroup;
	u32 level;

	if (!own)
		return 0;
	level = BPF_CORE_READ(own, level);
	for (u32 i = 0; i < DEEPEST_GROUP && i <= level; i++) {
		struct cgroup *above = 0;

		bpf_probe_read_kernel(&above, sizeof(above),
				      (void *)own + bpf_core_field_offset(own->ancestors) + 8 * i);
		if (above && BPF_CORE_READ(above, kn, id) == group)
			return 1;
	}
	return 0;
}

static __always_inline int comes_from_here(struct sock_common *skc)
{
	const u32 *remote = skc->skc_v6_daddr.in6_u.u6_addr32;

	if (skc->skc_family == INET)
		return (skc->skc_daddr & bpf_htonl(0xff000000)) == bpf_htonl(127U << 24);
	if (remote[0] || remote[1])
		return 0;
	if (remote[2] == bpf_htonl(0xffff))
		return (remote[3] & bpf_htonl(0xff000000)) == bpf_htonl(127U << 24);
	return !remote[2] && remote[3] == bpf_htonl(1);
}

/* Goes through the connections of a network namespace: it tells those of the control group to call
 * `follow`, or at the end lets go of them. Writes a letter for each: what became of it. */
SEC("iter/tcp")
int visit(struct bpf_iter__tcp *ctx)
{
	struct sock_common *skc = ctx->sk_common;
	struct config *set;
	struct tcp_sock *tp;
	u32 zero = 0;
	char became = 'f';
	unsigned char state;

	if (!skc)
		return 0;
	state = skc->skc_state;
	if (state != TCP_ESTABLISHED_STATE && state != TCP_FIN_WAIT1_STATE &&
	    state != TCP_FIN_WAIT2_STATE)
		return 0;
	set = bpf_map_lookup_elem(&configuration, &zero);
	tp = bpf_skc_to_tcp_sock(skc);
	if (!set || !tp || !is_within((struct sock *)tp, set->group))
		return 0;
	if (set->mode == MODE_RELEASE) {
		struct connection *c = bpf_sk_storage_get(&connections, tp, 0, 0);

		if (!c)
			return 0;
		let_go(tp, tp, c, set);
		became = 'l';
	} else {
		int flags = tp->bpf_sock_ops_cb_flags | OUR_FLAGS;

		if ((tp->bpf_sock_ops_cb_flags & OUR_FLAGS) == OUR_FLAGS)
			return 0;
		if (!set->loopback && comes_from_here(skc))
			return 0;
		if (bpf_setsockopt(tp, SOL_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &flags, sizeof(flags)))
			became = 'r';
	}
	bpf_seq_write(ctx->meta->seq, &became, sizeof(became));
	return 0;
}
