//! OpenMetrics as the text format of Prometheus, version 0.0.4.
//!
//! That format knows no units, no exemplars, no end, and no type `info`; and a counter's name in
//! its comments is that of its lines, with `_total`.

/// The same metrics.
pub fn of(open_metrics: &str) -> String {
    let mut out = String::with_capacity(open_metrics.len());
    // `HELP` comes before the type that says how the name goes on.
    let mut help = None;
    for line in open_metrics.lines() {
        let Some(comment) = line.strip_prefix("# ") else {
            push(&mut out, [without_exemplar(line)]);
            continue;
        };
        let mut words = comment.splitn(3, ' ');
        match (words.next(), words.next(), words.next()) {
            (Some("HELP"), Some(name), Some(text)) => help = Some((name, text)),
            (Some("TYPE"), Some(name), Some(kind)) => {
                let (end, kind) = match kind {
                    "counter" => ("_total", "counter"),
                    "info" => ("_info", "gauge"),
                    "stateset" => ("", "gauge"),
                    "gauge" | "histogram" | "summary" => ("", kind),
                    _ => ("", "untyped"),
                };
                if let Some((_, text)) = help.take_if(|(helped, _)| *helped == name) {
                    push(&mut out, ["# HELP ", name, end, " ", text]);
                }
                push(&mut out, ["# TYPE ", name, end, " ", kind]);
            }
            _ => {}
        }
    }
    out
}

fn push<const N: usize>(out: &mut String, parts: [&str; N]) {
    parts.into_iter().for_each(|part| out.push_str(part));
    out.push('\n');
}

/// A line without what stands behind its value: labels end with the last `}` before it, because
/// values of labels are in quotes.
fn without_exemplar(line: &str) -> &str {
    let mut is_quoted = false;
    let mut is_escaped = false;
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            b'"' if !is_escaped => is_quoted = !is_quoted,
            b'#' if !is_quoted => return line[..at].trim_end(),
            _ => {}
        }
        is_escaped = byte == b'\\' && !is_escaped;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::encoding::text::encode;
    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::metrics::family::Family;
    use prometheus_client::metrics::histogram::Histogram;
    use prometheus_client::metrics::info::Info;
    use prometheus_client::registry::{Registry, Unit};
    use proptest::prelude::*;

    #[test]
    fn names_and_types_are_those_of_the_lines() {
        let mut registry = Registry::with_prefix("x");
        registry.register_with_unit("io", "Bytes", Unit::Bytes, Counter::<u64>::default());
        registry.register("taken", "How long", Histogram::new([1.0]));
        registry.register("build", "The program", Info::new(vec![("version", "1")]));
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        let exemplar = "x_taken_bucket{le=\"1.0\"} 0 # {a=\"b # c\"} 0.5 7";
        let text = text.replace("x_taken_bucket{le=\"1.0\"} 0", exemplar);
        assert!(text.contains(exemplar));
        let expected = "# HELP x_io_bytes_total Bytes.\n# TYPE x_io_bytes_total counter\n\
            x_io_bytes_total 0\n# HELP x_taken How long.\n# TYPE x_taken histogram\n\
            x_taken_sum 0.0\nx_taken_count 0\nx_taken_bucket{le=\"1.0\"} 0\n\
            x_taken_bucket{le=\"+Inf\"} 0\n# HELP x_build_info The program.\n\
            # TYPE x_build_info gauge\nx_build_info{version=\"1\"} 1\n";
        assert_eq!(of(&text), expected);
    }

    proptest! {
        /// A process may have any name.
        #[test]
        fn values_of_labels_stay_as_they_are(name in "\\PC*|[a\\\\\"\n,#={} ]*", count: u32) {
            let mut registry = Registry::default();
            let metrics = Family::<Vec<(String, String)>, Counter>::default();
            metrics.get_or_create(&vec![("name".to_owned(), name)]).inc_by(count.into());
            registry.register("io", "Bytes", metrics);
            let mut text = String::new();
            encode(&mut text, &registry).unwrap();
            let plain = of(&text);
            let line = text.lines().find(|line| line.starts_with("io_total")).unwrap();
            prop_assert!(plain.lines().any(|other| other == line), "{}", plain);
        }
    }
}
