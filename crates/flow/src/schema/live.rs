//! A live connection with its answer: a row of `fullpipe why`.

use super::{Cell, Column, Kind, Place, Record, SCHEMA_VERSION};
use crate::diagnosis::live::LiveConnection;
use crate::finding::Remedy;
use crate::finding::words;
use fullpipe_model::limit::End;
use fullpipe_model::observe::{PeerSite, Process, Workload};
use fullpipe_model::units::Instant;

/// Rows of live connections.
pub enum LiveConnections {}

/// What a row is made of.
#[derive(Debug, Clone, Copy)]
pub struct LiveRow<'r> {
    /// When the look at it ended, since 1970.
    pub looked: Instant,
    /// The connection.
    pub connection: &'r LiveConnection,
}

impl Record for LiveConnections {
    type Row<'r> = LiveRow<'r>;
}

type C = Column<LiveConnections>;

const NO_ACCOUNT: &str = "this host receives, or its kernel is too old";
const HIDDEN: &str = "it may not be known: another user's process";

const NO_POD: &str = "it is in no pod, or this node does not say what that is called";
const NO_SITE: &str = "no prefix has it, or none were given";
const NO_MORE: &str = "the file does not say";

const fn of_part(
    name: &'static str,
    at: &'static str,
    null: &'static str,
    meaning: &'static str,
    get: for<'r> fn(&'r LiveRow<'r>) -> Cell<'r>,
) -> C {
    C::new(name, Kind::Text, null, meaning, get).at(Place::At(at))
}

fn process<'r>(row: &LiveRow<'r>, get: impl FnOnce(&'r Process) -> Option<&'r str>) -> Cell<'r> {
    Cell::word(row.connection.process.as_ref().and_then(get))
}

fn site<'r>(row: &LiveRow<'r>, get: impl FnOnce(&'r PeerSite) -> Option<&'r str>) -> Cell<'r> {
    Cell::word(row.connection.peer_site.as_ref().and_then(get))
}

const fn role(end: End) -> &'static str {
    match end {
        End::Sender => "sender",
        End::Receiver => "receiver",
    }
}

/// What limits a connection of this host, since when, whose it is and who must act.
pub static LIVE_CONNECTIONS: &[C] = &[
    C::new("schema", Kind::Number, "", "version of this table", |_| {
        Cell::number(SCHEMA_VERSION)
    })
    .at(Place::Rows),
    C::new(
        "looked_ns",
        Kind::Number,
        "",
        "when the look ended, since 1970; in JSON at the top",
        |row| Cell::number(row.looked.as_nanos()),
    )
    .at(Place::Rows),
    C::new("local", Kind::Text, "", "this host's end", |row| {
        Cell::text(row.connection.answer.local.to_string())
    }),
    C::new("remote", Kind::Text, "", "the other end", |row| {
        Cell::text(row.connection.answer.remote.to_string())
    }),
    C::new(
        "role",
        Kind::Text,
        "",
        "which end of the data this host is: `sender` or `receiver`, by the direction that moved more",
        |row| Cell::text(role(row.connection.answer.role)),
    ),
    C::new("limited_by", Kind::Text, "", "what limited the data for most of the time", |row| {
        Cell::text(row.connection.answer.limit.name())
    })
    .at(Place::At("limit")),
    C::new(
        "limit_cause",
        Kind::Text,
        "the limit is not the congestion window",
        "of a congestion window: `slow_start` or `loss`",
        |row| Cell::word(row.connection.answer.limit.cause()),
    )
    .at(Place::At("cause")),
    C::new("limit_share", Kind::Fraction, "", "its share of the time, 0 to 1", |row| {
        Cell::fraction(row.connection.answer.share)
    })
    .at(Place::At("share")),
    C::new(
        "limit_confidence",
        Kind::Fraction,
        "",
        "how often verdicts like this one are right, 0 to 1",
        |row| Cell::fraction(row.connection.answer.confidence),
    )
    .at(Place::At("confidence")),
    C::new("limits", Kind::Objects, "", "every limit with its share, largest first", |row| {
        Cell::Candidates(&row.connection.answer.limits)
    })
    .at(Place::Json("limits")),
    C::new(
        "account",
        Kind::Objects,
        "",
        "where the time between the first sample and the last went, the longest part first: `owner` and `cause` by the names of the account, as far as a socket shows them, the time and what is lost of it",
        |row| Cell::Parts(&row.connection.answer.account),
    )
    .at(Place::Json("account")),
    C::new("time_us", Kind::Number, "", "time watched, from the first data to the last", |row| {
        Cell::micros(row.connection.answer.time)
    }),
    C::new(
        "held_us",
        Kind::Number,
        "",
        "how long the first limit has held by now without a break",
        |row| Cell::micros(row.connection.answer.held),
    ),
    C::new(
        "lost_us",
        Kind::Number,
        "",
        "time in which neither the path nor the sending application held the data",
        |row| Cell::micros(row.connection.answer.lost),
    ),
    C::new("goodput_bps", Kind::Number, "", "mean goodput", |row| Cell::rate(row.connection.answer.goodput)),
    C::new(
        "busy_us",
        Kind::Number,
        NO_ACCOUNT,
        "since its start, time with data to send or unacknowledged",
        |row| Cell::micros(row.connection.answer.lifetime.map(|life| life.busy)),
    )
    .at(Place::At("lifetime.busy_us")),
    C::new(
        "rwnd_limited_us",
        Kind::Number,
        NO_ACCOUNT,
        "of it, limited by the receive window",
        |row| Cell::micros(row.connection.answer.lifetime.map(|life| life.rwnd_limited)),
    )
    .at(Place::At("lifetime.rwnd_limited_us")),
    C::new("sndbuf_limited_us", Kind::Number, NO_ACCOUNT, "of it, by the send buffer", |row| {
        Cell::micros(row.connection.answer.lifetime.map(|life| life.sndbuf_limited))
    })
    .at(Place::At("lifetime.sndbuf_limited_us")),
    C::new(
        "acts",
        Kind::Text,
        "",
        "who must change something: `here`, `peer`, `path`, `nobody` or `unknown`",
        |row| Cell::text(row.connection.answer.acts.name()),
    ),
    C::new("headline", Kind::Text, "", "the answer in a few words: the limit, or `probably A or B` where it is a guess", |row| {
        Cell::text(row.connection.answer.headline.to_string())
    }),
    C::new("remedy", Kind::Text, "", "what would change it, at the place that `acts` names", |row| {
        Cell::text(row.connection.answer.remedy.map_or("", words::remedy))
    }),
    C::new(
        "remedy_name",
        Kind::Text,
        "there is no remedy",
        "the same as a name that does not change",
        |row| Cell::word(row.connection.answer.remedy.map(Remedy::name)),
    ),
    C::new(
        "sub_causes",
        Kind::Words,
        "",
        "what lies behind the limit, most important first; in JSON `causes`, each with `sub_cause`, its claim and its remedy",
        |row| {
            let causes = row.connection.answer.causes.iter();
            Cell::Words(causes.map(|cause| cause.sub_cause.name()).collect())
        },
    )
    .at(Place::Rows),
    C::new("namespace", Kind::Text, "", "its network namespace", |row| {
        Cell::text(row.connection.namespace.as_str())
    }),
    C::new("uid", Kind::Number, "", "the user who opened it", |row| Cell::number(row.connection.uid)),
    C::new("pid", Kind::Number, HIDDEN, "the process that has it open", |row| {
        Cell::Number(row.connection.process.as_ref().map(|process| process.pid.into()))
    })
    .at(Place::At("process.pid")),
    of_part("process_name", "process.name", HIDDEN, "its name", |row| {
        process(row, |process| Some(&process.name))
    }),
    of_part("process_command", "process.command", HIDDEN, "what was started", |row| {
        process(row, |process| Some(&process.command))
    }),
    of_part("cgroup", "process.cgroup", "it has none, or is hidden", "its control group", |row| {
        process(row, |process| process.cgroup.as_deref())
    }),
    of_part(
        "container",
        "process.container",
        "it is in none, or is hidden",
        "its container's id",
        |row| process(row, |process| process.container.as_deref()),
    ),
    C::new(
        "workload",
        Kind::Text,
        "its process is hidden",
        "its pod's id, or else its container's, or else its systemd unit, by its control group; `host` of what is in none",
        |row| {
            let process = row.connection.process.as_ref();
            let group = process.map(|process| process.cgroup.as_deref().unwrap_or_default());
            Cell::word(group.map(|group| Workload::of(group).name()))
        },
    )
    .at(Place::Rows),
    of_part("peer_site", "peer_site.site", NO_SITE, "where the other end is, by the file of prefixes", |row| {
        site(row, |site| Some(&site.site))
    }),
    of_part("peer_provider", "peer_site.provider", NO_MORE, "whose that site is", |row| {
        site(row, |site| site.provider.as_deref())
    }),
    of_part("peer_region", "peer_site.region", NO_MORE, "in which region it is", |row| {
        site(row, |site| site.region.as_deref())
    }),
    of_part(
        "pod_namespace",
        "process.pod.namespace",
        NO_POD,
        "the namespace of Kubernetes that its pod is in",
        |row| process(row, |process| process.pod.as_ref().map(|pod| pod.namespace.as_str())),
    ),
    of_part("pod_name", "process.pod.name", NO_POD, "its pod's name", |row| {
        process(row, |process| process.pod.as_ref().map(|pod| pod.name.as_str()))
    }),
];
