//! Answers that fit.

use super::AnswerFields;
use serde_json::{Value, json};

/// Bytes that an answer has as JSON, at most.
pub const ANSWER_MAX: usize = 4096;

/// Shortens the lists of an answer until it fits, from their ends: all of the first list before any
/// of the second. What is dropped is added to `left_out`, which knows of what was not in the lists
/// from the beginning; `more` says how to ask for it.
pub fn fit(
    mut answer: AnswerFields,
    lists: &[&str],
    mut left_out: AnswerFields,
    more: &str,
) -> Value {
    answer.values_mut().for_each(round);
    left_out.retain(|_, count| count.as_u64() != Some(0));
    say_left_out(&mut answer, &left_out, more);
    while size(&answer) > ANSWER_MAX {
        let shortened = lists.iter().find(|list| {
            let list = answer.get_mut(**list).and_then(Value::as_array_mut);
            list.and_then(Vec::pop).is_some()
        });
        let Some(list) = shortened else { break };
        let count = left_out.get(*list).and_then(Value::as_u64).unwrap_or(0);
        left_out.insert((*list).into(), json!(count + 1));
        say_left_out(&mut answer, &left_out, more);
    }
    Value::Object(answer)
}

/// Fractions keep four digits: nobody reads more, and they take room.
fn round(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let rounded = number.as_f64().map(|number| (number * 1e4).round() / 1e4);
            *value = json!(rounded);
        }
        Value::Array(values) => values.iter_mut().for_each(round),
        Value::Object(fields) => fields.values_mut().for_each(round),
        _ => {}
    }
}

fn say_left_out(answer: &mut AnswerFields, left_out: &AnswerFields, more: &str) {
    if !left_out.is_empty() {
        answer.insert("left_out".into(), Value::Object(left_out.clone()));
        answer.insert("more".into(), json!(more));
    }
}

/// Bytes of the answer as JSON.
fn size(answer: &AnswerFields) -> usize {
    serde_json::to_string(answer).map_or(usize::MAX, |text| text.len())
}
