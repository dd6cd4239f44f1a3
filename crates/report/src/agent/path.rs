//! What a path needs, and what this host would change for it, as answers.

use super::capture::{change_of, change_schema};
use super::schema::{bounded, integer, list, maybe, number, object, text};
use super::{AnswerFields, fields, fit, json};
use fullpipe_model::tune::{FileSheet, HostPlan, Sheet};
use serde_json::Value;

/// What a path needs; with the time that a file takes, where one is named.
pub fn calculation(sheet: &Sheet, file: Option<&FileSheet>) -> Value {
    let all = json(sheet);
    let mut told = picked(
        &all,
        &[
            "bdp_bytes",
            "in_flight_target_bytes",
            "goodput_bps",
            "sndbuf_for_bdp_bytes",
            "slow_start_round_trips",
            "slow_start_us",
            "loss",
        ],
    );
    let kernels = all.get("kernels").and_then(Value::as_array);
    told.insert("kernels".into(), kernels.into_iter().flatten().map(kernel).collect());
    if let Some(file) = file {
        told.insert("file".into(), of_file(&json(file)));
    }
    let more = "`fullpipe calc --json` with the same numbers has all of it";
    fit(told, &["kernels"], AnswerFields::new(), more)
}

fn kernel(one: &Value) -> Value {
    let mut told = picked(one, &["kernel", "rcvbuf_for_bdp_bytes", "default_rcvbuf_bytes"]);
    let plan = one.get("plan");
    told.extend(fields([
        ("with_defaults", ends(plan.and_then(|plan| plan.get("before")))),
        ("with_changes", ends(plan.and_then(|plan| plan.get("after")))),
    ]));
    let changes = plan.and_then(|plan| plan.get("changes")).and_then(Value::as_array);
    told.insert("changes".into(), changes.into_iter().flatten().map(change_of).collect());
    if let Some(buffer) = one.get("buffer").filter(|buffer| !buffer.is_null()) {
        let [receive, send] = ["receive", "send"].map(|end| ends(buffer.get(end)));
        told.extend(fields([("as_receive_buffer", receive), ("as_send_buffer", send)]));
    }
    Value::Object(told)
}

/// What is carried, and what limits it.
fn ends(one: Option<&Value>) -> Value {
    one.map_or(Value::Null, |one| Value::Object(picked(one, &["goodput_bps", "limited_by"])))
}

/// The times that a file takes.
fn of_file(file: &Value) -> Value {
    let mut told = picked(file, &["amount_bytes"]);
    let times = file.get("times").and_then(Value::as_array).into_iter().flatten();
    let times = times.map(|time| Value::Object(picked(time, &["steady_by", "kernel", "total_us"])));
    told.insert("times".into(), times.collect());
    Value::Object(told)
}

/// What this host would change for a path, and why. Nothing is changed.
pub fn host_plan(plan: &HostPlan) -> Value {
    let all = json(plan);
    let mut told = picked(&all, &["bdp_bytes", "role", "kernel", "connections", "memory_bytes"]);
    told.extend(fields([("before", ends(all.get("before"))), ("after", ends(all.get("after")))]));
    for list in ["changes", "on_the_machine"] {
        let changes = all.get(list).and_then(Value::as_array).into_iter().flatten();
        let changes = changes.map(|change| {
            let mut told = change_of(change);
            if let (Some(told), Some(reason)) = (told.as_object_mut(), change.get("reason")) {
                told.insert("reason".into(), reason.clone());
            }
            told
        });
        told.insert(list.into(), changes.collect());
    }
    told.insert("notes".into(), all.get("notes").cloned().unwrap_or_else(|| json(())));
    let more = "`fullpipe tune plan` with the same numbers has all of it; `fullpipe tune apply` \
                makes the changes, and only a person should run it";
    fit(told, &["notes", "on_the_machine", "changes"], AnswerFields::new(), more)
}

/// The fields of these names.
fn picked(value: &Value, names: &[&str]) -> AnswerFields {
    let chosen = names.iter().filter_map(|name| {
        let value = value.get(*name).filter(|value| !value.is_null())?;
        Some(((*name).to_owned(), value.clone()))
    });
    chosen.collect()
}

/// The schema of what is carried, and of what limits it.
fn ends_schema() -> Value {
    let limit = text("what limits it");
    object([("goodput_bps", integer("payload"))], maybe([("limited_by", limit)]))
}

/// The schema of [`calculation`].
pub fn calculation_schema() -> Value {
    let by_loss = object(
        [("goodput_bps", integer("of one connection"))],
        maybe([("connections_to_fill", integer("how many would fill the path"))]),
    );
    let loss = object(
        [("loss", number("0 to 1"))],
        maybe([
            ("cubic", by_loss.clone()),
            ("reno", by_loss.clone()),
            ("reno_with_timeouts", by_loss),
        ]),
    );
    let time = object(
        [
            ("steady_by", text("what sets the rate: the path, settings, a plan, or a control")),
            ("total_us", integer("slow start included")),
        ],
        maybe([("kernel", text("whose defaults"))]),
    );
    let file = object(
        [("amount_bytes", integer("of the file")), ("times", list(time))],
        AnswerFields::new(),
    );
    let kernel = object(
        [
            ("kernel", text("whose rules apply")),
            ("rcvbuf_for_bdp_bytes", integer("receive buffer for one BDP")),
            ("default_rcvbuf_bytes", integer("the most by default")),
            ("changes", list(change_schema())),
        ],
        maybe([
            ("with_defaults", ends_schema()),
            ("with_changes", ends_schema()),
            ("as_receive_buffer", ends_schema()),
            ("as_send_buffer", ends_schema()),
        ]),
    );
    object(
        [
            ("bdp_bytes", integer("what the path holds")),
            ("goodput_bps", integer("payload at most")),
            ("kernels", list(kernel)),
        ],
        bounded(maybe([
            ("in_flight_target_bytes", integer("to fill the path and half its queue")),
            ("sndbuf_for_bdp_bytes", integer("send buffer for one BDP")),
            ("slow_start_round_trips", integer("until the path is full")),
            ("slow_start_us", integer("until the path is full")),
            ("loss", loss),
            ("file", file),
        ])),
    )
}

/// The schema of [`host_plan`].
pub fn host_plan_schema() -> Value {
    let mut change = maybe([
        ("host", text("sender or receiver")),
        ("from", text("its present value")),
        ("reason", text("why, with the numbers")),
    ]);
    change.extend(AnswerFields::new());
    let change = object(
        [("setting", text("a sysctl, or another setting")), ("to", text("its new value"))],
        change,
    );
    object(
        [
            ("bdp_bytes", integer("what the path holds")),
            ("role", text("which end this host is")),
            ("kernel", text("of this host")),
            ("changes", list(change.clone())),
            ("on_the_machine", list(change)),
            ("notes", list(text("what else matters"))),
        ],
        bounded(maybe([
            ("connections", integer("open at once")),
            ("memory_bytes", integer("that buffers may take")),
            ("before", ends_schema()),
            ("after", ends_schema()),
        ])),
    )
}
