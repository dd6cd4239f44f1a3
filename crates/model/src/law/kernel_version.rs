//! The Linux version of a host, for laws that differ by version.

/// A Linux release: `6.1`, `6.12.8`. What follows the numbers (`-amd64`, `-fc-v595`, `.el9`)
/// belongs to the distributor.
///
/// Distributors backport changes, so a version decides which law is *expected*; a measured socket
/// decides which one applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelVersion {
    /// First number.
    pub major: u16,
    /// Second number.
    pub minor: u16,
    /// Third number, 0 where absent.
    pub patch: u16,
}

impl KernelVersion {
    /// Version `major.minor`.
    pub const fn new(major: u16, minor: u16) -> Self {
        KernelVersion { major, minor, patch: 0 }
    }

    /// The first release that advertises by the socket's own scaling ratio instead of
    /// `tcp_adv_win_scale` (commit dfa2f0483360, "tcp: get rid of sysctl_tcp_adv_win_scale").
    pub(crate) const SCALING_RATIO: KernelVersion = KernelVersion::new(6, 6);
    /// The first release with 32 MiB as `tcp_rmem`'s maximum (commit 572be9bf9d0d) and the reworked
    /// receive autotuning.
    pub(crate) const RMEM_32M: KernelVersion = KernelVersion::new(6, 16);
    /// The first release with 4 MiB as `rmem_max` and `wmem_max` (commit a6d4f25888b8).
    pub(crate) const CORE_MEM_4M: KernelVersion = KernelVersion::new(6, 18);
    /// The first release with an initial `tcp_rmem` of 128 KiB (commit a337531b942b).
    pub(crate) const RMEM_INITIAL_128K: KernelVersion = KernelVersion::new(4, 20);
}

/// Why a text is not a kernel version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "kernel version '{text}': {problem}; write for example 6.1 or 6.12.8-amd64, as uname -r prints it"
)]
pub struct ParseKernelVersionError {
    /// What was given.
    pub text: String,
    /// What is wrong with it.
    pub problem: &'static str,
}

impl std::str::FromStr for KernelVersion {
    type Err = ParseKernelVersionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = |problem| ParseKernelVersionError { text: text.into(), problem };
        let trimmed = text.trim();
        let numeric =
            trimmed.split(|c: char| !c.is_ascii_digit() && c != '.').next().unwrap_or_default();
        let mut numbers =
            numeric.split('.').take(3).take_while(|part| !part.is_empty()).map(str::parse::<u16>);
        let major = numbers.next().ok_or_else(|| error("does not begin with a number"))?;
        let minor = numbers.next().ok_or_else(|| error("has no second number"))?;
        let patch = numbers.next().unwrap_or(Ok(0));
        match (major, minor, patch) {
            (Ok(major), Ok(minor), Ok(patch)) => Ok(KernelVersion { major, minor, patch }),
            _ => Err(error("has a number beyond 65535")),
        }
    }
}

impl std::fmt::Display for KernelVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let KernelVersion { major, minor, patch } = self;
        f.pad(&if *patch == 0 {
            format!("{major}.{minor}")
        } else {
            format!("{major}.{minor}.{patch}")
        })
    }
}

impl serde::Serialize for KernelVersion {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for KernelVersion {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        <String as serde::Deserialize>::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_uname_prints() {
        for (text, major, minor, patch) in [
            ("6.1", 6, 1, 0),
            ("6.12.8-amd64", 6, 12, 8),
            ("6.18.44-fc-v595", 6, 18, 44),
            ("5.14.0-427.13.1.el9_4.x86_64", 5, 14, 0),
            ("5.15.153.1-microsoft-standard-WSL2", 5, 15, 153),
            (" 6.6-rc1\n", 6, 6, 0),
            ("4.18.0+", 4, 18, 0),
        ] {
            assert_eq!(text.parse(), Ok(KernelVersion { major, minor, patch }), "{text}");
        }
    }

    #[test]
    fn refuses_with_the_reason() {
        for (text, says) in [
            ("", "begin with"),
            ("v6.1", "begin with"),
            ("6", "second number"),
            ("6.", "second"),
            ("70000.1", "65535"),
        ] {
            let error = text.parse::<KernelVersion>().unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn versions_order_by_number_not_by_text() {
        let version = |text: &str| text.parse::<KernelVersion>().unwrap();
        assert!(version("6.12") > version("6.6"));
        assert!(version("6.5.13") < KernelVersion::SCALING_RATIO);
        assert!(version("6.6.0") >= KernelVersion::SCALING_RATIO);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*") {
            let _ = text.parse::<KernelVersion>();
        }

        #[test]
        fn text_reads_back(major: u16, minor: u16, patch: u16) {
            let version = KernelVersion { major, minor, patch };
            prop_assert_eq!(version.to_string().parse(), Ok(version));
        }
    }
}
