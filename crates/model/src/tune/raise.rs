//! The shell command that raises a setting and never lowers it.
//!
//! A plan is pasted later, on a host that may have changed, and one from a capture is for a host
//! whose settings nobody has read. So a command that sets a size compares with the present value
//! where it runs: a number that is larger already stays. Every command that is printed, written
//! into JSON or copied from a report's page comes from here.

/// The numbers that `to` raises beyond `from`, by their place, starting with 1. All of them where
/// `from` is not known.
fn raised(from: Option<&str>, to: &str) -> Vec<(usize, u64)> {
    let numbers = |text: &str| -> Vec<u64> {
        text.split_whitespace().map_while(|word| word.parse().ok()).collect()
    };
    let from = from.map(numbers).unwrap_or_default();
    let places = numbers(to).into_iter().enumerate();
    let is_raised = |(at, to): &(usize, u64)| from.get(*at).is_none_or(|from| from < to);
    places.filter(is_raised).map(|(at, to)| (at + 1, to)).collect()
}

/// Raises a sysctl of one or several numbers to at least `to`. Numbers that `to` shares with `from`
/// stay as the host has them.
pub(super) fn sysctl(name: &str, from: Option<&str>, to: &str) -> String {
    let each = raised(from, to).into_iter();
    let each: String =
        each.map(|(place, to)| format!("if (${place} < {to}) ${place} = {to}; ")).collect();
    format!(r#"sysctl -w {name}="$(sysctl -n {name} | awk '{{ {each}print }}')""#)
}

/// Runs `set` unless what `show` prints is `least` or more. Nothing printed counts as 0.
pub(super) fn unless(show: &str, least: &str, set: &str) -> String {
    format!(r#"test "0$({show})" -ge {least} || {set}"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_rises_is_compared() {
        let line = sysctl("net.ipv4.tcp_rmem", Some("4096 131072 6291456"), "4096 131072 9000000");
        assert_eq!(
            line,
            "sysctl -w net.ipv4.tcp_rmem=\"$(sysctl -n net.ipv4.tcp_rmem | awk \
             '{ if ($3 < 9000000) $3 = 9000000; print }')\""
        );
        assert_eq!(raised(None, "1 2 3"), [(1, 1), (2, 2), (3, 3)]);
        assert_eq!(raised(Some("5 2 1"), "4 2 3"), [(3, 3)], "what would fall is left alone");
        assert_eq!(unless("cat x", "7", "set 7"), "test \"0$(cat x)\" -ge 7 || set 7");
    }
}
