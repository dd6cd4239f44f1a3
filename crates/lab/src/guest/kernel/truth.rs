//! The kernel that counts why its sockets do not send: changes on top of those of
//! [`super::patch`], for kernels that are built with `--truth`.
//!
//! Each socket keeps nanoseconds by reason and phase, as its sender goes through them, and, as a
//! receiver, the time with unread data. In virtual time a reason changes only at events, so nothing
//! is sampled. The counters stand behind the end of `tcp_info`, whose last word then is a magic
//! number: programs that do not know them read what they always read, and `fullpipe_model::observe`
//! reads them. The link's queue is not among them. A queue guessed from round trips is wrong under
//! reordering; `crate::truth` takes the link's use from what passed the client's edge.
//!
//! Reasons are what ends the loop of `tcp_write_xmit` (net/ipv4/tcp_output.c). The patches are
//! under the kernel's licence, GPL-2.0.

use super::patch::Patch;

pub(super) const TRUTH: [Patch; 20] = [
    // The reasons, and the name of each slot.
    Patch {
        file: "include/uapi/linux/tcp.h",
        from: r#"struct tcp_info {
"#,
        to: r#"/* fullpipe: why a socket is not sending. */
enum tcp_truth {
	TCP_TRUTH_OTHER, TCP_TRUTH_APP, TCP_TRUTH_SNDBUF, TCP_TRUTH_RWND,
	TCP_TRUTH_CWND, TCP_TRUTH_PACING, TCP_TRUTH_TSQ, TCP_TRUTH_TAIL,
	/* Paced, and held by that within the last round trip. */
	TCP_TRUTH_PACED_APP, TCP_TRUTH_PACED_SNDBUF, TCP_TRUTH_PACED_RWND,
	TCP_TRUTH_REASONS
};

/* Phases of each: the window grows since the start; it was lowered, but not by
 * loss; it was lowered by loss; a loss is being repaired.
 */
#define TCP_TRUTH_PHASES 4
#define TCP_TRUTH_SLOTS (TCP_TRUTH_REASONS * TCP_TRUTH_PHASES)
/* The last word of tcp_info says that the words before it are there. */
#define TCP_TRUTH_MAGIC 0x66756c6c70697065ULL

struct tcp_info {
"#,
    },
    // Behind all that this version of tcp_info has.
    Patch {
        file: "include/uapi/linux/tcp.h",
        from: r#"};

/* netlink attributes types for SCM_TIMESTAMPING_OPT_STATS */
"#,
        to: r#"	__u64	tcpi_truth_unread;
	__u64	tcpi_truth[TCP_TRUTH_SLOTS];
	__u64	tcpi_truth_magic;
};

/* netlink attributes types for SCM_TIMESTAMPING_OPT_STATS */
"#,
    },
    // The counters of a socket.
    Patch {
        file: "include/linux/tcp.h",
        from: r#"	struct request_sock __rcu *fastopen_rsk;
	struct saved_syn *saved_syn;
"#,
        to: r#"	struct request_sock __rcu *fastopen_rsk;
	struct saved_syn *saved_syn;

	u64	truth_ns[TCP_TRUTH_SLOTS];
	u64	truth_since;		/* of truth_slot; 0: nothing was sent yet */
	u64	truth_unread_ns;	/* as the receiver: time with unread data */
	u64	truth_unread_since;
	u64	truth_hard_at;		/* when the last of APP, SNDBUF, RWND ended */
	u8	truth_hard;
	u8	truth_slot;
	bool	truth_full_bw;		/* BBR has left its startup */
"#,
    },
    Patch {
        file: "include/net/tcp.h",
        from: r#"enum tcp_chrono {
"#,
        to: r#"void tcp_truth_set(struct sock *sk, enum tcp_truth reason);
void tcp_truth_idle(struct sock *sk);
void tcp_truth_unread(struct sock *sk);
void tcp_truth_get(const struct tcp_sock *tp, struct tcp_info *info);

enum tcp_chrono {
"#,
    },
    // A writer that waits for room.
    Patch {
        file: "net/ipv4/tcp.c",
        from: r#"		if (copied)
			tcp_push(sk, flags & ~MSG_MORE, mss_now,
				 TCP_NAGLE_PUSH, size_goal);
"#,
        to: r#"		if (copied)
			tcp_push(sk, flags & ~MSG_MORE, mss_now,
				 TCP_NAGLE_PUSH, size_goal);
		if (!tcp_send_head(sk))
			tcp_truth_idle(sk);
"#,
    },
    // A reader has read.
    Patch {
        file: "net/ipv4/tcp.c",
        from: r#"	__tcp_cleanup_rbuf(sk, copied);
}
"#,
        to: r#"	__tcp_cleanup_rbuf(sk, copied);
	tcp_truth_unread(sk);
}
"#,
    },
    Patch {
        file: "net/ipv4/tcp.c",
        from: r#"	info->tcpi_snd_wnd = tp->snd_wnd;
"#,
        to: r#"	tcp_truth_get(tp, info);
	info->tcpi_snd_wnd = tp->snd_wnd;
"#,
    },
    // BBR has no slow start threshold that says so.
    Patch {
        file: "net/ipv4/tcp_bbr.c",
        from: r#"	bbr->full_bw_reached = bbr->full_bw_cnt >= bbr_full_bw_cnt;
"#,
        to: r#"	bbr->full_bw_reached = bbr->full_bw_cnt >= bbr_full_bw_cnt;
	tcp_sk(sk)->truth_full_bw = bbr->full_bw_reached;
"#,
    },
    // Data waits for a reader.
    Patch {
        file: "net/ipv4/tcp_input.c",
        from: r#"void tcp_data_ready(struct sock *sk)
{
"#,
        to: r#"void tcp_data_ready(struct sock *sk)
{
	tcp_truth_unread(sk);
"#,
    },
    // All that there was has been sent.
    Patch {
        file: "net/ipv4/tcp_input.c",
        from: r#"	tcp_push_pending_frames(sk);
	tcp_check_space(sk);
}
"#,
        to: r#"	tcp_push_pending_frames(sk);
	tcp_check_space(sk);
	if (!tcp_send_head(sk))
		tcp_truth_idle(sk);
}
"#,
    },
    // The counters themselves.
    Patch {
        file: "net/ipv4/tcp_output.c",
        from: r#"/* This routine writes packets to the network."#,
        to: r#"/* fullpipe: with interrupts off, reading the clock does not move virtual time on. */
static u64 tcp_truth_now(void)
{
	unsigned long flags;
	u64 now;

	local_irq_save(flags);
	now = ktime_get_ns();
	local_irq_restore(flags);
	return now;
}

static u8 tcp_truth_phase(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (inet_csk(sk)->icsk_ca_state >= TCP_CA_Recovery)
		return 3;
	if (inet_csk(sk)->icsk_ca_ops->cong_control)
		return tp->truth_full_bw;
	if (tp->snd_ssthresh >= TCP_INFINITE_SSTHRESH)
		return 0;
	return tp->total_retrans ? 2 : 1;
}

/* Charges the time up to now to what held until now; from now on it is @reason. */
void tcp_truth_set(struct sock *sk, enum tcp_truth reason)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 now = tcp_truth_now(), since = tp->truth_since;
	u8 slot, old = tp->truth_slot / TCP_TRUTH_PHASES;

	/* What lasts no time is on the way to something else. */
	if (old >= TCP_TRUTH_APP && old <= TCP_TRUTH_RWND &&
	    now - since > NSEC_PER_USEC) {
		tp->truth_hard = old;
		tp->truth_hard_at = now;
	}
	if (reason == TCP_TRUTH_PACING && tp->truth_hard &&
	    now - tp->truth_hard_at < (tp->srtt_us >> 3) * (u64)NSEC_PER_USEC)
		reason = TCP_TRUTH_PACED_APP + tp->truth_hard - TCP_TRUTH_APP;
	slot = reason * TCP_TRUTH_PHASES + tcp_truth_phase(sk);
	if (slot == tp->truth_slot)
		return;
	if (since)
		tp->truth_ns[tp->truth_slot] += now - since;
	tp->truth_since = now;
	tp->truth_slot = slot;
}

/* Nothing (more) is there to be sent: because of whom? */
void tcp_truth_idle(struct sock *sk)
{
	if (!tcp_sk(sk)->truth_since)
		return;
	if (sk->sk_shutdown & SEND_SHUTDOWN)
		tcp_truth_set(sk, TCP_TRUTH_TAIL);
	else if (sk->sk_socket && test_bit(SOCK_NOSPACE, &sk->sk_socket->flags))
		tcp_truth_set(sk, TCP_TRUTH_SNDBUF);
	else
		tcp_truth_set(sk, TCP_TRUTH_APP);
}

/* The receiver's side: whether data waits for its application. */
void tcp_truth_unread(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	bool unread = tp->rcv_nxt != tp->copied_seq;

	if (unread == !!tp->truth_unread_since)
		return;
	if (unread) {
		tp->truth_unread_since = tcp_truth_now();
	} else {
		tp->truth_unread_ns += tcp_truth_now() - tp->truth_unread_since;
		tp->truth_unread_since = 0;
	}
}

/* For tcp_info: with what is under way. */
void tcp_truth_get(const struct tcp_sock *tp, struct tcp_info *info)
{
	u64 now = tcp_truth_now();

	memcpy(info->tcpi_truth, tp->truth_ns, sizeof(tp->truth_ns));
	if (tp->truth_since)
		info->tcpi_truth[tp->truth_slot] += now - tp->truth_since;
	info->tcpi_truth_unread = tp->truth_unread_ns;
	if (tp->truth_unread_since)
		info->tcpi_truth_unread += now - tp->truth_unread_since;
	info->tcpi_truth_magic = TCP_TRUTH_MAGIC;
}

/* This routine writes packets to the network."#,
    },
    // From here on: what ends the loop that sends.
    Patch {
        file: "net/ipv4/tcp_output.c",
        from: r#"static bool tcp_write_xmit(struct sock *sk, unsigned int mss_now, int nonagle,
			   int push_one, gfp_t gfp)
{
"#,
        to: r#"static bool tcp_write_xmit(struct sock *sk, unsigned int mss_now, int nonagle,
			   int push_one, gfp_t gfp)
{
	enum tcp_truth truth = TCP_TRUTH_OTHER;
"#,
    },
    Patch {
        file: "net/ipv4/tcp_output.c",
        from: r#"/* Skip network transmission */
		}

		if (tcp_pacing_check(sk))
			break;
"#,
        to: r#"/* Skip network transmission */
		}

		if (tcp_pacing_check(sk)) {
			truth = TCP_TRUTH_PACING;
			break;
		}
"#,
    },
    Patch {
        file: "net/ipv4/tcp_output.c",
        from: r#"				cwnd_quota = 1;
			else
				break;
"#,
        to: r#"				cwnd_quota = 1;
			else {
				truth = TCP_TRUTH_CWND;
				break;
			}
"#,
    },
    Patch {
        file: "net/ipv4/tcp_output.c",
        from: r#"			is_rwnd_limited = true;
			break;
"#,
        to: r#"			is_rwnd_limited = true;
			truth = TCP_TRUTH_RWND;
			break;
"#,
    },
    Patch {
        file: "net/ipv4/tcp_output.c",
        from: r#"						      nonagle : TCP_NAGLE_PUSH))))
				break;
"#,
        to: r#"						      nonagle : TCP_NAGLE_PUSH)))) {
				truth = TCP_TRUTH_APP;
				break;
			}
"#,
    },
    Patch {
        file: "net/ipv4/tcp_output.c",
        from: r#"						 &is_rwnd_limited, max_segs))
				break;
"#,
        to: r#"						 &is_rwnd_limited, max_segs)) {
				truth = is_cwnd_limited ? TCP_TRUTH_CWND :
					is_rwnd_limited ? TCP_TRUTH_RWND : TCP_TRUTH_APP;
				break;
			}
"#,
    },
    Patch {
        file: "net/ipv4/tcp_output.c",
        from: r#"		if (tcp_small_queue_check(sk, skb, 0))
			break;

		/* Argh"#,
        to: r#"		if (tcp_small_queue_check(sk, skb, 0)) {
			truth = TCP_TRUTH_TSQ;
			break;
		}

		/* Argh"#,
    },
    Patch {
        file: "net/ipv4/tcp_output.c",
        from: r#"		if (TCP_SKB_CB(skb)->end_seq == TCP_SKB_CB(skb)->seq)
			break;

		if (unlikely(tcp_transmit_skb(sk, skb, 1, gfp)))
"#,
        to: r#"		if (TCP_SKB_CB(skb)->end_seq == TCP_SKB_CB(skb)->seq) {
			truth = TCP_TRUTH_APP;
			break;
		}

		if (unlikely(tcp_transmit_skb(sk, skb, 1, gfp)))
"#,
    },
    Patch {
        file: "net/ipv4/tcp_output.c",
        from: r#"	if (is_rwnd_limited)
		tcp_chrono_start(sk, TCP_CHRONO_RWND_LIMITED);
"#,
        to: r#"	/* Before the first data, time is not counted. */
	if (tp->truth_since || sent_pkts) {
		if (truth == TCP_TRUTH_APP || (truth == TCP_TRUTH_OTHER && !tcp_send_head(sk))) {
			tp->truth_since = tp->truth_since ?: tcp_truth_now();
			tcp_truth_idle(sk);
		} else {
			tcp_truth_set(sk, truth);
		}
	}

	if (is_rwnd_limited)
		tcp_chrono_start(sk, TCP_CHRONO_RWND_LIMITED);
"#,
    },
];
