//! Findings as JSON: their numbers, and the sentences.

use super::{claim, doubt, machine_limit, remedy, sub_cause};
use crate::diagnosis::{Explanation, Numbers};
use crate::finding::path_test::MachineLimit;
use crate::finding::{Finding, FindingEvidence, Headline, Remedy};
use crate::limit::{Candidate, Limit, Reason};
use fullpipe_model::change::Change;
use fullpipe_model::limit::End;
use serde::{Serialize, Serializer};

/// The words.
impl Serialize for Headline {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[derive(Serialize)]
struct FindingRow<'a> {
    #[serde(flatten)]
    limit: Limit,
    share: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    headline: Option<Headline>,
    either: &'a [Candidate],
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<f64>,
    claim: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    doubt: Option<String>,
    reasons: &'a [Reason],
    evidence: &'a FindingEvidence,
    rivals: &'a [Candidate],
    remedy: &'static str,
    remedy_name: &'static str,
    changes: &'a [Change],
}

impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let row = FindingRow {
            limit: self.limit,
            share: self.share,
            headline: self.headline,
            either: &self.either,
            confidence: self.confidence,
            claim: claim(self),
            doubt: self.doubt.as_ref().map(doubt),
            reasons: &self.reasons,
            evidence: &self.evidence,
            rivals: &self.rivals,
            remedy: remedy(self.remedy),
            remedy_name: self.remedy.name(),
            changes: &self.changes,
        };
        row.serialize(serializer)
    }
}

#[derive(Serialize)]
struct ExplanationRow {
    sub_cause: &'static str,
    claim: String,
    remedy: &'static str,
    remedy_name: &'static str,
    #[serde(flatten)]
    numbers: Numbers,
}

impl Serialize for Explanation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let row = ExplanationRow {
            sub_cause: self.sub_cause.name(),
            claim: sub_cause(&self.sub_cause),
            remedy: remedy(self.remedy),
            remedy_name: self.remedy.name(),
            numbers: self.sub_cause.numbers(),
        };
        row.serialize(serializer)
    }
}

#[derive(Serialize)]
struct RemedyRow {
    remedy: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy_name: Option<&'static str>,
}

/// The words of a remedy and its name; no words and no name where there is none.
pub(crate) fn serialize_remedy<S: Serializer>(
    given: &Option<Remedy>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let row = RemedyRow {
        remedy: given.map_or("", remedy),
        remedy_name: given.map(|given| given.name()),
    };
    row.serialize(serializer)
}

#[derive(Serialize)]
struct MachineLimitRow {
    end: End,
    cpu: f64,
    claim: String,
}

impl Serialize for MachineLimit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let MachineLimit { end, cpu, .. } = *self;
        MachineLimitRow { end, cpu, claim: machine_limit(self) }.serialize(serializer)
    }
}
