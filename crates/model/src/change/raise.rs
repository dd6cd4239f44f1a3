//! The shell command that raises a setting and never lowers it.
//!
//! A plan is pasted later, on a host that may have changed, and one from a capture is for a host
//! whose settings nobody has read. So a command that sets a size compares with the present value
//! where it runs: a number that is larger already stays. Every command that is printed, written
//! into JSON or copied from a report's page comes from here.

use super::{Sysctl, Value};

/// The numbers that `to` raises beyond `from`, by their place, starting with 1. All of them where
/// `from` is not known.
fn raised(from: Option<&Value>, to: &Value) -> Vec<(usize, i64)> {
    let from = from.map_or(&[][..], Value::numbers);
    let places = to.numbers().iter().copied().enumerate();
    let raised = places.filter(|(at, to)| from.get(*at).is_none_or(|from| from < to));
    raised.map(|(at, to)| (at + 1, to)).collect()
}

/// Raises a sysctl of one or several numbers to at least `to`. Numbers that `to` shares with `from`
/// stay as the host has them.
pub(super) fn sysctl(name: Sysctl, from: Option<&Value>, to: &Value) -> String {
    let each = raised(from, to).into_iter();
    let each: String =
        each.map(|(place, to)| format!("if (${place} < {to}) ${place} = {to}; ")).collect();
    format!(r#"sysctl -w {name}="$(sysctl -n {name} | awk '{{ {each}print }}')""#)
}

/// Runs `set` unless what `show` prints is `least` or more. Nothing printed counts as 0.
pub(super) fn unless(show: &str, least: &Value, set: &str) -> String {
    format!(r#"test "0$({show})" -ge {least} || {set}"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_rises_is_compared() {
        let line = sysctl(
            Sysctl::TcpRmem,
            Some(&Value::Triple([4096, 131_072, 6_291_456])),
            &Value::Triple([4096, 131_072, 9_000_000]),
        );
        assert_eq!(
            line,
            "sysctl -w net.ipv4.tcp_rmem=\"$(sysctl -n net.ipv4.tcp_rmem | awk \
             '{ if ($3 < 9000000) $3 = 9000000; print }')\""
        );
        assert_eq!(raised(None, &Value::Triple([1, 2, 3])), [(1, 1), (2, 2), (3, 3)]);
        let (from, to) = (Value::Triple([5, 2, 1]), Value::Triple([4, 2, 3]));
        assert_eq!(raised(Some(&from), &to), [(3, 3)], "what would fall is left alone");
        assert_eq!(
            unless("cat x", &Value::Number(7), "set 7"),
            "test \"0$(cat x)\" -ge 7 || set 7"
        );
    }
}
