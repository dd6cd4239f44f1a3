//! Checks whether a path fits into the available memory.

use super::error::EmulatorError;
use super::lanes::OneWay;
use super::sizing::UNSHAPED_RATE;
use fullpipe_model::units::Bytes;

/// Refuses a path that needs more than `available`, with the numbers.
pub(super) fn check(directions: [&OneWay; 2], available: Bytes) -> Result<(), EmulatorError> {
    let sizes: Vec<_> = directions.into_iter().flat_map(OneWay::memory).collect();
    let needed = sizes.iter().fold(Bytes::ZERO, |sum, (_, size)| sum.saturating_add(*size));
    match sizes.into_iter().max_by_key(|(_, size)| *size) {
        Some((largest, _)) if needed > available => {
            let (rate, delay) = (largest.rate_max().unwrap_or(UNSHAPED_RATE), largest.delay_max());
            Err(EmulatorError::Memory { rate, delay, needed, available })
        }
        _ => Ok(()),
    }
}

/// Half of the memory that the kernel reports as available; a gigabyte if it does not report it.
pub(super) fn available_memory() -> Bytes {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|rest| rest.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    Bytes::new(kib.map_or(1 << 30, |kib| kib * 512))
}

#[cfg(test)]
mod tests {
    use super::super::lanes::Towards;
    use super::*;
    use fullpipe_model::scenario::File;

    fn directions(text: &str) -> [OneWay; 2] {
        let path = File::parse(text).unwrap().scenarios("test").unwrap().remove(0).path;
        [Towards::Client, Towards::Server].map(|towards| OneWay::of(&path, towards, None))
    }

    #[test]
    fn memory_is_what_the_model_can_hold_or_a_refusal_with_the_number() {
        let [to_client, to_server] = directions("[link]\nrate = \"10gbit\"\nrtt = \"100ms\"");
        // 62.5 MB on the wire and 125 MB in the queue, each way, a quarter more: 470 MB in all.
        check([&to_client, &to_server], Bytes::new(1 << 30)).unwrap();
        let (_, size) = to_client.memory().next().unwrap();
        assert!(size >= Bytes::new(187_500_000) && size <= Bytes::new(240_000_000), "{size}");
        let error = check([&to_client, &to_server], Bytes::new(1 << 28)).unwrap_err().to_string();
        assert!(error.contains("10 Gbit/s") && error.contains("256 MiB may be used"), "{error}");
    }

    #[test]
    fn a_slow_rule_needs_its_own_memory_only() {
        let slow = "[[link.rules]]\nto = \":443\"\nrate = \"100kbit\"\nqueue = \"1000packets\"\n";
        let sum = |text: &str| {
            let [to_client, _] = directions(text);
            to_client.memory().map(|(_, size)| size.get()).sum::<u64>()
        };
        let (plain, with_rule) =
            (sum("[link]\nrtt = \"1ms\""), sum(&format!("[link]\nrtt = \"1ms\"\n{slow}")));
        assert!((1..5 << 20).contains(&(with_rule - plain)), "{plain} and {with_rule}");
    }
}
