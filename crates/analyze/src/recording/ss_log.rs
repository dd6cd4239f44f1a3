//! A log of `ss -tin` as the input: what people have of sockets, in a file of their own.

use super::{Lines, Recorded, SAMPLES_MAX, each_line};
use crate::drive::End;
use crate::error::Error;
use fullpipe_flow::diagnosis::live::connections_of_looks;
use fullpipe_flow::{Config, Counts};
use fullpipe_model::observe::ss::SsLogReader;

/// Reads and diagnoses a log. What stands before a line that cannot be read is analysed.
pub(super) fn read(name: String, lines: Lines, config: &Config) -> Recorded {
    let mut reader = SsLogReader::new(config.looks_every);
    let (number, mut errors) = each_line(&name, lines, |line| {
        take(&mut reader, line).map_err(|cause| (cause, reader.samples() as u64))
    });
    let counts = Counts { samples: reader.samples() as u64, ..Counts::default() };
    let mut samples = match reader.finish() {
        Ok(log) => log.samples,
        Err(_) if !errors.is_empty() => Vec::new(),
        Err(error) => {
            let cause = error.to_string();
            errors.push(Error::Sample { name, line: number, cause, samples: counts.samples });
            Vec::new()
        }
    };
    if let Some(filter) = &config.filter {
        samples.retain(|sample| filter.matches(sample.local, sample.remote));
    }
    (connections_of_looks(samples, config.trace), End { counts, errors })
}

fn take(reader: &mut SsLogReader, line: &[u8]) -> Result<(), String> {
    if reader.samples() as u64 >= SAMPLES_MAX {
        return Err(format!("it has more than {SAMPLES_MAX} looks; cut it into several files"));
    }
    // Names of processes need not be text.
    let text = String::from_utf8_lossy(line);
    reader.line(text.trim_end_matches(['\n', '\r'])).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use crate::{Capture, Error, Options};
    use fullpipe_flow::connection::Warning;
    use fullpipe_flow::limit::Limit;
    use fullpipe_model::units::Duration;

    /// A look at a sender's socket at a second: of each, 600 ms were the peer's window's.
    fn look(second: u64) -> String {
        let ms = second * 1000;
        format!(
            "State Recv-Q Send-Q Local Address:Port Peer Address:Port Process\n\
             ESTAB 0 90000 192.0.2.1:80 192.0.2.2:40000\n\
             \t cubic wscale:7,7 rto:240 rtt:40/2 mss:1448 cwnd:100 bytes_acked:{} segs_out:9 \
             busy:{ms}ms rwnd_limited:{}ms(60.0%) unacked:40 notsent:80000 minrtt:40\n",
            second * 1_000_000 + 1,
            ms * 6 / 10,
        )
    }

    fn analysed(
        text: String,
        every: Option<Duration>,
    ) -> (Vec<fullpipe_flow::diagnosis::DiagnosedConnection>, Vec<Error>) {
        let mut options = Options::default();
        options.config.looks_every = every;
        let capture = Capture::reader("log", std::io::Cursor::new(text)).or_recording();
        let mut connections = capture.connections(&options);
        let mut found = Vec::new();
        while let Some(round) = connections.next_round() {
            found.extend(round);
        }
        (found, connections.finish().1)
    }

    #[test]
    fn shares_are_the_growth_of_the_counters() {
        let stamped: String =
            (1..=6).map(|at| format!("{}\n{}", 1_764_464_829 + at, look(at))).collect();
        let plain: String = (1..=6).map(look).collect();
        let every = Some(Duration::from_secs(1));
        for (text, every) in [(stamped, None), (plain, every)] {
            let (found, errors) = analysed(text, every);
            assert!(errors.is_empty(), "{errors:?}");
            let [one] = &found[..] else { panic!("one connection") };
            let verdict = &one.bulk().unwrap().verdict;
            assert_eq!(verdict.time, Duration::from_secs(5));
            assert_eq!(verdict.shares[0].limit, Limit::ReceiveWindow);
            assert!((verdict.shares[0].share - 0.6).abs() < 1e-9, "{:?}", verdict.shares);
            let warnings = [Warning::NoPackets, Warning::SocketLog, Warning::NoSocketMemory];
            assert_eq!(one.connection.warnings, warnings);
        }
    }

    /// Five looks at both ends of a transfer over loopback into a buffer of 60 kB, by iproute2 6.1
    /// and Linux 6.18. Between the first and the last the kernel counted 2208 ms for the window;
    /// what is in flight on average fills it for the rest, too.
    #[test]
    fn a_small_window_has_at_least_the_kernels_own_share() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/ss_log/window");
        let (found, errors) = analysed(std::fs::read_to_string(path).unwrap(), None);
        assert!(errors.is_empty(), "{errors:?}");
        let [one] = &found[..] else { panic!("{} connections", found.len()) };
        let verdict = &one.bulk().unwrap().verdict;
        assert_eq!(verdict.time, Duration::from_secs(4));
        assert_eq!(verdict.shares[0].limit, Limit::ReceiveWindow, "{:?}", verdict.shares);
        assert!(verdict.shares[0].share >= 2.208 / 4.0, "{:?}", verdict.shares);
    }

    #[test]
    fn one_look_tells_the_busy_time_of_a_life() {
        let (found, errors) = analysed((1..=6).map(look).collect(), None);
        assert!(errors.is_empty(), "{errors:?}");
        let [one] = &found[..] else { panic!("one connection") };
        let verdict = &one.bulk().unwrap().verdict;
        assert_eq!(verdict.time, Duration::from_secs(6));
        assert!((verdict.shares[0].share - 0.6).abs() < 1e-9, "{:?}", verdict.shares);
        assert!(one.connection.warnings.contains(&Warning::OneLook));
    }

    #[test]
    fn a_line_that_cannot_be_read_is_named() {
        let text = look(1) + &look(2) + &look(3).replace("rtt:40/2", "rtt:40");
        let (found, errors) = analysed(text, Some(Duration::from_secs(1)));
        assert_eq!(found.len(), 1, "what stands before it is analysed");
        let [Error::Sample { line: 9, samples: 3, .. }] = &errors[..] else { panic!("{errors:?}") };
    }
}
