//! The errors of the other crates, in each language.
//!
//! Their English is their `Display`; their Chinese is made here of their parts, by a function for
//! each type, in which the compiler asks for every kind. What the system said (`io::Error`) stays.

mod capture;
mod get;
mod host;
mod kernel;
mod lab;
mod link;
mod model;
mod peer;
mod results;
mod store;

use super::Sentence;
use std::error::Error;
use std::fmt::Display;
use std::num::ParseIntError;

/// An error with its Chinese words.
fn told(error: &impl Display, chinese: impl Into<String>) -> Sentence {
    Sentence::new(error.to_string(), chinese)
}

/// The Chinese words of an error that is a part of another.
fn within<'a, E>(error: &'a E) -> String
where
    Sentence: From<&'a E>,
{
    Sentence::from(error).chinese
}

/// Why an option's value is refused, by the type of the error; `None` where it has no words here.
pub fn of_value(cause: &(dyn Error + 'static)) -> Option<Sentence> {
    if let Some(own) = cause.downcast_ref::<Sentence>() {
        return Some(own.clone());
    }
    if let Some(error) = cause.downcast_ref::<ParseIntError>() {
        return Some(told(error, "不是整数"));
    }
    let of = model::of_value(cause).or_else(|| peer::of_value(cause));
    let of = of.or_else(|| capture::of_value(cause)).or_else(|| host::of_value(cause));
    of.or_else(|| store::of_value(cause))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_analyze::Error as CaptureError;
    use fullpipe_flow::connection::filter::Filter;
    use fullpipe_host::tune::{ApplyError, Changed, Item, MachineError, UndoError};
    use fullpipe_kernel::Refused;
    use fullpipe_kernel::run::sandbox::{SandboxError, UserNamespaceLimits};
    use fullpipe_lab::{GuestError, LoadError, MergeError, ResultsError};
    use fullpipe_link::{EmulatorError, NatError, RunError};
    use fullpipe_model::law::KernelVersion;
    use fullpipe_model::tune::MeasuredPath;
    use fullpipe_model::units::{Bytes, Duration, Rate};
    use fullpipe_peer::PeerError;
    use fullpipe_transfer::{GetError, Kept};
    use std::collections::BTreeSet;
    use std::io;

    fn io(kind: io::ErrorKind) -> io::Error {
        kind.into()
    }

    fn refused() -> Refused {
        Refused {
            operation: "set sysctl",
            subject: "net.ipv4.tcp_rmem in 'a'".into(),
            cause: io::Error::from_raw_os_error(1),
            hint: "run as root of the machine".into(),
        }
    }

    fn changed() -> Changed {
        Changed {
            setting: Item::File("/etc/sysctl.d/60.conf".into()),
            found: Some("a\nb".into()),
            expected: None,
            to: Some("5".into()),
        }
    }

    fn of_the_machine() -> Vec<Sentence> {
        let limits =
            UserNamespaceLimits { max_user_namespaces: Some(0), ..UserNamespaceLimits::default() };
        let cause = io(io::ErrorKind::PermissionDenied);
        vec![
            (&refused()).into(),
            (&SandboxError::NoPrivilege { cause, limits }).into(),
            (&ApplyError::<MachineError>::Changed(changed())).into(),
            (&ApplyError::Stuck { cause: refused().into(), back: refused().into() }).into(),
            (&UndoError::<MachineError>::Changed(vec![changed(), changed()])).into(),
            (&NatError::NoForwarding).into(),
            (&RunError::NotListening { program: "nc".into(), within: Duration::from_secs(7) })
                .into(),
            (&EmulatorError::Memory {
                rate: "10gbit".parse().unwrap(),
                delay: Duration::from_millis(50),
                needed: Bytes::new(1 << 30),
                available: Bytes::new(1 << 20),
            })
                .into(),
        ]
    }

    fn of_inputs() -> Vec<Sentence> {
        let cause = io(io::ErrorKind::NotFound);
        let [url, path]: [String; 2] = ["http://h/f".into(), "dir/f.pcap".into()];
        vec![
            (&CaptureError::Open { path: path.clone().into(), cause }).into(),
            (&CaptureError::Cut { name: path.clone(), bytes: 7, packets: 12 }).into(),
            (&"12".parse::<Rate>().unwrap_err()).into(),
            (&"x".parse::<Bytes>().unwrap_err()).into(),
            (&"6".parse::<KernelVersion>().unwrap_err()).into(),
            (&MeasuredPath::find("{}", None).unwrap_err()).into(),
            (&LoadError::Unknown("a/b1".into())).into(),
            (&GuestError::NoKernel("6.1".into())).into(),
            (&ResultsError::NotEmpty(path.clone().into())).into(),
            (&MergeError::Missing { missing: vec![3, 4], of: 16 }).into(),
            (&GetError::Short {
                url: url.clone(),
                received: Bytes::new(10),
                expected: Some(Bytes::new(20)),
                cause: "reset".into(),
                kept: Kept::Continues,
            })
                .into(),
            (&GetError::Busy { path: path.into() }).into(),
            (&PeerError::NeedsKeys(([192, 0, 2, 1], 5606).into())).into(),
        ]
    }

    /// The numbers of a sentence, and the names and options in it.
    fn facts(text: &str) -> BTreeSet<&str> {
        let words = text.split(|letter: char| {
            !letter.is_ascii_alphanumeric() && !matches!(letter, '.' | '_' | '/' | '-')
        });
        let names = |word: &&str| {
            word.chars().any(|letter| letter.is_ascii_digit() || letter == '_')
                || word.starts_with("--")
        };
        words.filter(names).map(|word| word.trim_matches(['.', '-'])).collect()
    }

    #[test]
    fn each_error_names_the_same_numbers_and_options_in_each_language() {
        for told in of_the_machine().into_iter().chain(of_inputs()) {
            let (english, chinese) = (told.english(), told.chinese());
            assert_eq!(facts(english), facts(chinese), "{english}\n{chinese}");
            assert!(!chinese.contains(" the ") && !chinese.is_ascii(), "{chinese}");
        }
    }

    #[test]
    fn a_value_is_refused_by_the_type_of_its_error() {
        let wrong: Box<dyn Error> = "12".parse::<Rate>().unwrap_err().into();
        assert!(of_value(&*wrong).unwrap().chinese().contains("单位"));
        let filter: Box<dyn Error> = "prot 1".parse::<Filter>().unwrap_err().into();
        assert!(of_value(&*filter).unwrap().chinese().contains("过滤条件"));
        let own: Box<dyn Error> = Sentence::new("a", "甲").into();
        assert_eq!(of_value(&*own).unwrap().chinese(), "甲");
        assert_eq!(of_value(&io(io::ErrorKind::NotFound)), None);
    }
}
