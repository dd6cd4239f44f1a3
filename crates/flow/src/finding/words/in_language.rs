//! What is found, in each language.

use super::{limit, machine, packets, remedy, socket, zh};
use crate::diagnosis::SubCause;
use crate::finding::path_test::MachineLimit;
use crate::finding::{Doubt, Finding, Headline, Remedy};
use crate::language::Language;
use crate::limit::{Candidate, Limit};

impl Language {
    /// The name of a limit.
    pub const fn limit(self, limit: Limit) -> &'static str {
        match self {
            Language::English => limit.words(),
            Language::Chinese => zh::limit::name(limit),
        }
    }

    /// What was found, in one sentence: the limit, its share of the time, and what happened
    /// meanwhile.
    pub fn claim(self, finding: &Finding) -> String {
        match self {
            Language::English => limit::claim(finding),
            Language::Chinese => zh::limit::claim(finding),
        }
    }

    /// What happened while the limit held: the claim without its name and share.
    pub fn event(self, finding: &Finding) -> String {
        match self {
            Language::English => limit::event(finding),
            Language::Chinese => zh::limit::event(finding),
        }
    }

    /// Why a verdict is no more than a guess, and what would help.
    pub fn doubt(self, doubt: &Doubt) -> String {
        match self {
            Language::English => limit::doubt(doubt),
            Language::Chinese => zh::limit::doubt(doubt),
        }
    }

    /// What is answered to "what limits it": `send buffer`, or `probably send buffer or link`.
    pub fn headline(self, headline: &Headline) -> String {
        match self {
            Language::English => headline.to_string(),
            Language::Chinese => zh::limit::headline(headline),
        }
    }

    /// The same with the share of the time, where it has one: `send buffer 97 %`.
    pub fn headline_with_share(self, headline: &Headline) -> String {
        match headline.shown_share() {
            Some(share) => format!("{} {:.0} %", self.headline(headline), share * 100.0),
            None => self.headline(headline),
        }
    }

    /// What else would explain a part of the time.
    pub fn rival(self, rival: &Candidate) -> String {
        let (limit, percent) = (self.limit(rival.limit), rival.share * 100.0);
        match self {
            Language::English => format!("{limit} ({percent:.0} % of that time)"),
            Language::Chinese => format!("{limit}（其中 {percent:.0} % 的时间）"),
        }
    }

    /// What lies behind a limit, in one sentence.
    pub fn sub_cause(self, cause: &SubCause) -> String {
        match (self, cause) {
            (Language::English, SubCause::Packets(cause)) => packets::claim(*cause),
            (Language::English, SubCause::Socket(cause)) => socket::claim(cause),
            (Language::English, SubCause::Machine(cause)) => machine::claim(cause),
            (Language::Chinese, SubCause::Packets(cause)) => zh::packets::claim(*cause),
            (Language::Chinese, SubCause::Socket(cause)) => zh::socket::claim(cause),
            (Language::Chinese, SubCause::Machine(cause)) => zh::machine::claim(cause),
        }
    }

    /// What would change it, as a sentence without its end.
    pub const fn remedy(self, remedy: Remedy) -> &'static str {
        match self {
            Language::English => remedy::remedy(remedy),
            Language::Chinese => zh::remedy::remedy(remedy),
        }
    }

    /// That a machine or this program was the limit of a path test, and not the path.
    pub fn machine_limit(self, limit: &MachineLimit) -> String {
        match self {
            Language::English => machine::machine_limit(limit),
            Language::Chinese => zh::machine::machine_limit(limit),
        }
    }
}
