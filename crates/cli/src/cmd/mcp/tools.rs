//! The tools: their names, what they are for, and their schemas.

use super::captures::{Analyze, Compare, Explain};
use super::files::Files;
use super::host::{Calc, TunePlan, Why};
use super::refusal::ToolRefusal;
use super::work::ToolCall;
use fullpipe_report::agent;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Arc;

/// What a client may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentTool {
    Analyze,
    Explain,
    Why,
    Compare,
    Calc,
    TunePlan,
}

impl AgentTool {
    /// All of them, in the order in which they are listed.
    pub const ALL: [AgentTool; 6] = [
        AgentTool::Analyze,
        AgentTool::Explain,
        AgentTool::Why,
        AgentTool::Compare,
        AgentTool::Calc,
        AgentTool::TunePlan,
    ];

    /// The tool of this name.
    pub fn named(name: &str) -> Option<AgentTool> {
        AgentTool::ALL.into_iter().find(|tool| tool.name() == name)
    }

    const fn name(self) -> &'static str {
        match self {
            AgentTool::Analyze => "analyze",
            AgentTool::Explain => "explain",
            AgentTool::Why => "why",
            AgentTool::Compare => "compare",
            AgentTool::Calc => "calc",
            AgentTool::TunePlan => "tune_plan",
        }
    }

    const fn description(self) -> &'static str {
        match self {
            AgentTool::Analyze => {
                "What limited each TCP connection of a packet capture: the verdict with its share \
                 and confidence, where the time went, who has to act and what would change it. \
                 Without connection: those that lost most; with it: all of one, with findings."
            }
            AgentTool::Explain => {
                "Which packets the answer about one connection rests on: each with its number in \
                 the capture (Wireshark's), what is seen there, whose time it was. Without \
                 connection: the one that lost most."
            }
            AgentTool::Why => {
                "What limits this host's own TCP connections now, which process has them and which \
                 end must act, by the kernel's counters over some seconds. Changes nothing."
            }
            AgentTool::Compare => {
                "Two captures (before and after a change: the connection that carried most of each) \
                 or two results of `fullpipe lab run --json`: figures of A and B, what limited them."
            }
            AgentTool::Calc => {
                "What a path needs, by the kernels' laws: bandwidth-delay product, buffers, slow \
                 start, what default settings carry, what loss allows. Measures nothing."
            }
            AgentTool::TunePlan => {
                "Which settings of this host fall short of a path, to which values they would go, \
                 and why. It is a plan: nothing is changed, and this server cannot."
            }
        }
    }

    /// What it takes.
    fn input(self) -> Value {
        let file = json!({"type": "string", "description": "path of the file"});
        let filter = json!({
            "type": "string",
            "description": "select connections: host ADDRESS, net ADDRESS/LENGTH, port N, \
                            portrange N-M, and, or, not, ( )",
        });
        let id = json!({"type": "integer", "minimum": 0, "description": "its id in the capture"});
        let skip =
            json!({"type": "integer", "minimum": 0, "description": "leave out the first ones"});
        let rate = json!({"type": "string", "description": "of the bottleneck: 1gbit, 125MB/s"});
        let rtt = json!({"type": "string", "description": "round trip without queues: 146ms"});
        let loss = json!({"type": "string", "description": "random loss: 0.1%"});
        let size = json!({"type": "string", "description": "6MiB, 1GB"});
        let (properties, required) = match self {
            AgentTool::Analyze => (
                json!({"file": file, "filter": filter, "connection": id, "skip": skip}),
                json!(["file"]),
            ),
            AgentTool::Explain => (
                json!({
                    "file": file, "filter": filter, "connection": id, "skip": skip,
                    "finding": {
                        "type": "string",
                        "description": "only this finding or limit, as in explain's answers",
                    },
                }),
                json!(["file"]),
            ),
            AgentTool::Compare => (
                json!({"a": file, "b": file, "filter": filter, "connection_a": id, "connection_b": id}),
                json!(["a", "b"]),
            ),
            AgentTool::Why => (
                json!({
                    "filter": {
                        "type": "string",
                        "description": "select connections: peer ADDRESS, port N, pid N, process \
                                        TEXT, cgroup TEXT, pod TEXT, host, net, and, or, not, ( )",
                    },
                    "seconds": {"type": "integer", "minimum": 1, "maximum": 30, "default": 3},
                    "loopback": {"type": "boolean", "description": "connections within this host, too"},
                }),
                json!([]),
            ),
            AgentTool::Calc => (
                json!({
                    "rate": rate, "rtt": rtt, "loss": loss, "buffer": size, "file": size,
                    "kernel": {"type": "string", "description": "whose rules apply: 6.1"},
                }),
                json!(["rate", "rtt"]),
            ),
            AgentTool::TunePlan => (
                json!({
                    "rate": rate, "rtt": rtt, "loss": loss, "memory": size,
                    "role": {"type": "string", "enum": ["sender", "receiver", "both"]},
                    "connections": {"type": "integer", "minimum": 1},
                    "pauses": {"type": "boolean", "description": "connections pause and go on"},
                }),
                json!(["rate", "rtt"]),
            ),
        };
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    }

    /// What it answers.
    fn output(self) -> Value {
        match self {
            AgentTool::Analyze => agent::analysis_schema(),
            AgentTool::Explain => agent::explanation_schema(),
            AgentTool::Why => agent::live_schema(),
            AgentTool::Compare => agent::compared_schema(),
            AgentTool::Calc => agent::calculation_schema(),
            AgentTool::TunePlan => agent::host_plan_schema(),
        }
    }

    fn tool(self) -> Tool {
        let only_reads = ToolAnnotations::new()
            .read_only(true)
            .destructive(false)
            .idempotent(self != AgentTool::Why)
            .open_world(false);
        Tool::new(self.name(), self.description(), object(self.input()))
            .with_raw_output_schema(object(self.output()))
            .with_annotations(only_reads)
    }

    /// The answer; it may take long, and ends early with `work`.
    pub fn answer(
        self,
        asked: Value,
        files: &Files,
        work: &ToolCall,
    ) -> Result<Value, ToolRefusal> {
        match self {
            AgentTool::Analyze => self.read::<Analyze>(asked)?.run(files, work),
            AgentTool::Explain => self.read::<Explain>(asked)?.run(files, work),
            AgentTool::Why => self.read::<Why>(asked)?.run(work),
            AgentTool::Compare => self.read::<Compare>(asked)?.run(files, work),
            AgentTool::Calc => self.read::<Calc>(asked)?.run(),
            AgentTool::TunePlan => self.read::<TunePlan>(asked)?.run(),
        }
    }

    fn read<T: DeserializeOwned>(self, asked: Value) -> Result<T, ToolRefusal> {
        serde_json::from_value(asked).map_err(|cause| {
            let hint = "give what the tool's input schema says";
            ToolRefusal::new(self.name(), "its arguments", cause, hint)
        })
    }
}

/// All tools, as a client gets them.
pub fn all() -> Vec<Tool> {
    AgentTool::ALL.map(AgentTool::tool).to_vec()
}

fn object(value: Value) -> Arc<JsonObject> {
    match value {
        Value::Object(object) => Arc::new(object),
        _ => Arc::default(),
    }
}
