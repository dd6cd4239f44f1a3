//! `fullpipe schema`: the columns of what is printed and stored.

use crate::failure::Failure;
use crate::sentence::either;
use crate::terminal::{answer_layout, layout, print, print_json};
use clap::{Args, ValueEnum};
use fullpipe_flow::schema::{
    CAPTURE_PROBLEMS, CONNECTIONS, FINDINGS, INTERVALS, JsonSchema, LIVE_CONNECTIONS, PACKETS,
    RUNS, SAMPLES, SCENARIOS, SPANS, SUB_CAUSES, WHOLES, WORKLOADS,
};
use fullpipe_report::{Column, Table, table::paragraph};

/// Show the columns of what is printed and stored, or their JSON Schema.
///
/// It says of each column what it means, when it is absent, its type and its unit. With
/// --json it is a JSON Schema (draft 2020-12), for programs that read the JSON of other
/// subcommands. Without a kind, the kinds are listed.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe schema
  fullpipe schema connection
  fullpipe schema connection --json > connection.schema.json
  fullpipe schema run --json | jq '.properties | keys'")]
pub struct Schema {
    /// What a row is of.
    kind: Option<SchemaKind>,
    /// Print the JSON Schema; without a kind, an array of the kinds.
    #[arg(long)]
    json: bool,
}

/// What is printed or stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
enum SchemaKind {
    /// A connection of `analyze --jsonl`, and each of `analyze --json`
    Connection,
    /// A packet of `analyze --packets --jsonl`
    Packet,
    /// A run of `lab run --json` and of `rows.jsonl`
    Run,
    /// A connection of `why --json`
    LiveConnection,
    /// A sample of `why --record` and of the lab
    Sample,
    /// A row of `analyze --csv`, Parquet and Python: a direction of a connection
    ConnectionRow,
    /// A row of Parquet and Python with `--rows intervals`: a span of time and what limited it
    IntervalRow,
    /// A row of Parquet and Python with `--rows findings`: what a limit means
    FindingRow,
    /// A row of Parquet and Python with `--rows spans`: a stretch of time, whose it was
    SpanRow,
    /// A row of Parquet with `--rows workloads`: what took the time of a workload in an hour
    WorkloadRow,
    /// A row of `analyze --problems`: a capture that was not read to its end
    Problem,
}

/// A kind, as a list names it.
#[derive(serde::Serialize)]
struct Listed {
    kind: SchemaKind,
    what: String,
}

impl Schema {
    pub fn run(self) -> Result<u8, Failure> {
        match (self.kind, self.json) {
            (None, true) => print_json(&listed().collect::<Vec<_>>())?,
            (None, false) => {
                let headings = either(["kind", "what it is of"], ["种类", "内容"]);
                let mut table = Table::new(headings.map(Column::text));
                for one in listed() {
                    table.row([name(one.kind), one.what]);
                }
                print(&table.render(answer_layout()))?;
            }
            (Some(kind), true) => print_json(&kind.schema().titled(&name(kind)))?,
            (Some(kind), false) => {
                // They are sentences, which no table holds.
                let lines = kind.schema().values().into_iter().map(|(path, text)| {
                    paragraph::fill(&format!("{path}: "), &text, layout().width) + "\n"
                });
                print(&lines.collect::<String>())?;
            }
        }
        Ok(0)
    }
}

fn name(kind: SchemaKind) -> String {
    kind.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

fn listed() -> impl Iterator<Item = Listed> {
    SchemaKind::value_variants().iter().map(|kind| Listed { kind: *kind, what: kind.what() })
}

impl SchemaKind {
    /// What a row is, as the help of the option says it.
    fn what(self) -> String {
        let value = self.to_possible_value();
        value.and_then(|value| value.get_help().map(ToString::to_string)).unwrap_or_default()
    }

    fn schema(self) -> JsonSchema {
        let what = self.what();
        match self {
            SchemaKind::Connection => JsonSchema::of(&what, CONNECTIONS)
                .with_list("findings", JsonSchema::of("what a limit means", FINDINGS))
                .with_list("sub_causes", JsonSchema::of("what lies behind a limit", SUB_CAUSES))
                .with_list("intervals", JsonSchema::of("with --intervals", INTERVALS)),
            SchemaKind::Packet => JsonSchema::of(&what, PACKETS),
            SchemaKind::Run => JsonSchema::of(&what, RUNS).and(SCENARIOS),
            SchemaKind::LiveConnection => JsonSchema::of(&what, LIVE_CONNECTIONS),
            SchemaKind::Sample => JsonSchema::of(&what, SAMPLES),
            SchemaKind::ConnectionRow => JsonSchema::of_rows(&what, CONNECTIONS),
            SchemaKind::IntervalRow => JsonSchema::of_rows(&what, WHOLES).and_rows(INTERVALS),
            SchemaKind::FindingRow => JsonSchema::of_rows(&what, WHOLES).and_rows(FINDINGS),
            SchemaKind::SpanRow => JsonSchema::of_rows(&what, WHOLES).and_rows(SPANS),
            SchemaKind::WorkloadRow => JsonSchema::of_rows(&what, WORKLOADS),
            SchemaKind::Problem => JsonSchema::of_rows(&what, CAPTURE_PROBLEMS),
        }
    }
}
