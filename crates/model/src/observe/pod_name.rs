//! What a pod is called, by the folder that the kubelet keeps its logs in.
//!
//! A control group names a pod by its id alone. The kubelet makes a folder
//! `NAMESPACE_NAME_ID` below `/var/log/pods` before it asks the runtime for the pod, whichever
//! runtime that is, and removes it when the pod is gone. Neither of the three has an underscore, so
//! the folder's name says all three, and nothing in it has to be opened.
//!
//! What made the pod gives it a name of its own and something behind it, by which it is told here,
//! without the API. So it is what the name says: a pod that somebody called `web-1` himself looks
//! like one of a StatefulSet `web`.
//!
//! Sources: the kubelet's `kuberuntime` package (`BuildPodLogsDirectory`); RFC 1123 labels, by
//! which Kubernetes allows names; `SafeEncodeString` and `String` of its `util/rand` package, the
//! `deployment`, `statefulset` and `cronjob` controllers.

use super::workload::is_pod;
use serde::{Deserialize, Serialize};

/// A pod's namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PodName {
    /// The namespace of Kubernetes that it is in.
    pub namespace: String,
    /// Its name there.
    pub name: String,
}

impl std::fmt::Display for PodName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The longest namespace and the longest name that Kubernetes allows.
const NAMESPACE_MOST: usize = 63;
const NAME_MOST: usize = 253;

impl PodName {
    /// The pod that a folder of the kubelet's is of, and its id; `None` where it is of none.
    pub fn of_log_folder(folder: &str) -> Option<(&str, PodName)> {
        let mut parts = folder.split('_');
        let (namespace, name, id) = (parts.next()?, parts.next()?, parts.next()?);
        let is_whole = parts.next().is_none() && is_pod(id, '-');
        let is_named = is_label(namespace, NAMESPACE_MOST)
            && name.len() <= NAME_MOST
            && name.split('.').all(|label| is_label(label, NAME_MOST));
        (is_whole && is_named)
            .then(|| (id, PodName { namespace: namespace.into(), name: name.into() }))
    }

    /// The controller behind the pod with this id, by the pod's name: a Deployment, a StatefulSet,
    /// a DaemonSet, a Job or a CronJob. The pod's own name where that tells none, and of a pod that
    /// the kubelet has from a file: it is called after its node.
    pub fn controller(&self, id: &str) -> &str {
        let is_from_file = !id.contains('-');
        self.by_name().filter(|name| !is_from_file && !name.is_empty()).unwrap_or(&self.name)
    }

    fn by_name(&self) -> Option<&str> {
        let (name, last) = self.name.rsplit_once('-')?;
        let is_random = last.len() == RANDOM_LENGTH && has_only(last, RANDOM);
        let above = name.rsplit_once('-').filter(|(_, middle)| {
            let is_hash = HASH_LENGTH.contains(&middle.len()) && has_only(middle, HASH);
            // A CronJob's Job has the minute for which it was due, since 1970.
            is_hash || middle.len() == 8 && is_ordinal(middle)
        });
        match above {
            Some((name, _)) if is_random => Some(name),
            _ => (is_random || is_ordinal(last)).then_some(name),
        }
    }
}

/// What the API server puts behind the name of whatever wants one of its own.
const RANDOM: &str = "bcdfghjklmnpqrstvwxz2456789";
const RANDOM_LENGTH: usize = 5;
/// A ReplicaSet of a Deployment has a hash, a decimal number of 32 bits, of whose digits each is
/// one of these; 998 of 1000 have at least 8.
const HASH: &str = "456789bcdf";
const HASH_LENGTH: std::ops::RangeInclusive<usize> = 8..=10;

fn has_only(text: &str, allowed: &str) -> bool {
    text.chars().all(|letter| allowed.contains(letter))
}

/// Whether it is a number as a StatefulSet writes it.
fn is_ordinal(text: &str) -> bool {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number && text.len() <= 10 && (text == "0" || !text.starts_with('0'))
}

/// Lower-case letters, digits, and dashes in between.
fn is_label(text: &str, most: usize) -> bool {
    fn is_end(byte: Option<&u8>) -> bool {
        byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    }
    let bytes = text.as_bytes();
    bytes.len() <= most
        && is_end(bytes.first())
        && is_end(bytes.last())
        && bytes.iter().all(|byte| *byte == b'-' || is_end(Some(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ID: &str = "214f3ba8-4b69-4bdb-a7d5-5ecc73f04ae9";

    /// As kubelets of 1.30 have them, with containerd and with CRI-O.
    #[test]
    fn folders_of_the_kubelet_name_their_pods() {
        let hash = "0a125c8e9b7f4d3c2a1e0f9d8c7b6a50";
        for (folder, id, namespace, name) in [
            (format!("shop_web-7d4b9c6f5-x2x9z_{ID}"), ID, "shop", "web-7d4b9c6f5-x2x9z"),
            (
                format!("kube-system_coredns-6f6b679f8f-abcde_{ID}"),
                ID,
                "kube-system",
                "coredns-6f6b679f8f-abcde",
            ),
            // A pod that the kubelet has from a file, and a name with dots.
            (
                format!("kube-system_etcd-node1.example.org_{hash}"),
                hash,
                "kube-system",
                "etcd-node1.example.org",
            ),
        ] {
            let (namespace, name) = (namespace.to_owned(), name.to_owned());
            let expected = Some((id, PodName { namespace, name }));
            assert_eq!(PodName::of_log_folder(&folder), expected, "{folder}");
        }
    }

    #[test]
    fn others_name_none() {
        for folder in [
            "",
            "shop",
            "shop_web",
            "shop_web_",
            "shop_web_7",
            "shop__214f3ba8-4b69-4bdb-a7d5-5ecc73f04ae9",
            "_web_214f3ba8-4b69-4bdb-a7d5-5ecc73f04ae9",
            "shop_web_x_214f3ba8-4b69-4bdb-a7d5-5ecc73f04ae9",
            "shop_web_214f3ba8_4b69_4bdb_a7d5_5ecc73f04ae9",
            "Shop_web_214f3ba8-4b69-4bdb-a7d5-5ecc73f04ae9",
            "shop_web-_214f3ba8-4b69-4bdb-a7d5-5ecc73f04ae9",
            "shop_a..b_214f3ba8-4b69-4bdb-a7d5-5ecc73f04ae9",
            "shop_w\u{1b}b_214f3ba8-4b69-4bdb-a7d5-5ecc73f04ae9",
            "shop.eu_web_214f3ba8-4b69-4bdb-a7d5-5ecc73f04ae9",
        ] {
            assert_eq!(PodName::of_log_folder(folder), None, "{folder}");
        }
        let long = format!("{}_web_{ID}", "a".repeat(64));
        assert_eq!(PodName::of_log_folder(&long), None);
    }

    fn controller(name: &str) -> String {
        let pod = PodName { namespace: "shop".into(), name: name.into() };
        pod.controller(ID).to_owned()
    }

    /// Pods as Kubernetes called them, and such that nobody but their owner named.
    #[test]
    fn a_pods_name_tells_its_controller_or_nothing() {
        for (pod, expected) in [
            // Deployments.
            ("web-7d4b9c6f5-x2x9z", "web"),
            ("coredns-6f6b679f8f-2bcdf", "coredns"),
            ("a-b-5d59d67564-7hv8q", "a-b"),
            // StatefulSets.
            ("db-0", "db"),
            ("db-main-12", "db-main"),
            // DaemonSets, Jobs and CronJobs.
            ("kube-proxy-w7rxk", "kube-proxy"),
            ("backup-29380315-h9mzb", "backup"),
            // A ReplicaSet of its own, and a hash that is too short.
            ("web-blue-x2x9z", "web-blue"),
            ("web-7d4b9c6-x2x9z", "web-7d4b9c6"),
            // By none.
            ("web", "web"),
            ("web-green", "web-green"),
            ("web-x2x9", "web-x2x9"),
            ("web-x2a9z", "web-x2a9z"),
            ("web-01", "web-01"),
            ("etcd-node1.example.org", "etcd-node1.example.org"),
            ("7", "7"),
        ] {
            assert_eq!(controller(pod), expected, "{pod}");
        }
        // Of a file on the node `node-1`.
        let fixed = PodName { namespace: "kube-system".into(), name: "etcd-node-1".into() };
        assert_eq!(fixed.controller("0a125c8e9b7f4d3c2a1e0f9d8c7b6a50"), "etcd-node-1");
    }

    /// As `SafeEncodeString` has it.
    fn encoded(hash: u32) -> String {
        let letter = |byte: u8| char::from(RANDOM.as_bytes()[usize::from(byte) % RANDOM.len()]);
        hash.to_string().bytes().map(letter).collect()
    }

    proptest! {
        /// Names as each controller makes them lead back to it, whatever it is called.
        #[test]
        fn a_controllers_pods_lead_to_it(
            name in "[a-z]([a-z0-9-]{0,20}[a-z0-9])?", hash in 10_000_000_u32.., ordinal: u16,
            random in "[bcdfghjklmnpqrstvwxz2456789]{5}", minute in 25_000_000_u32..99_999_999,
        ) {
            prop_assert_eq!(controller(&format!("{name}-{}-{random}", encoded(hash))), &*name);
            prop_assert_eq!(controller(&format!("{name}-{ordinal}")), &*name);
            prop_assert_eq!(controller(&format!("{name}-{minute}-{random}")), &*name);
            // A DaemonSet or a Job, unless it has itself a name as of a Deployment's ReplicaSet.
            let middle = name.rsplit('-').next().unwrap_or_default();
            if name == middle || !(8..=10).contains(&middle.len()) {
                prop_assert_eq!(controller(&format!("{name}-{random}")), &*name);
            }
        }

        /// Any other name stays: a part of it is told only where what is behind it has the form.
        #[test]
        fn what_has_no_form_stays(name in "[a-z0-9.-]{1,40}") {
            let told = controller(&name);
            prop_assert!(name.starts_with(&told));
            if told != name {
                let cut = name[told.len()..].strip_prefix('-').unwrap();
                let parts: Vec<&str> = cut.split('-').collect();
                let is_random = |part: &str| part.len() == 5 && has_only(part, RANDOM);
                let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
                let has_form = match parts[..] {
                    [last] => is_random(last) || is_number(last),
                    [middle, last] => is_random(last) && (8..=10).contains(&middle.len()),
                    _ => false,
                };
                prop_assert!(has_form, "{} {}", name, told);
            }
        }

        /// What is told puts together the folder again, and has nothing that a name may not.
        #[test]
        fn a_folder_is_told_whole_or_not_at_all(
            folder in "\\PC{0,40}|[a-z-]{0,5}_[a-z.-]{0,5}_[0-9a-f]{32}|[a-z]{1,3}_[a-z]_[0-9a-f-]{36}",
        ) {
            if let Some((id, PodName { namespace, name })) = PodName::of_log_folder(&folder) {
                prop_assert_eq!(format!("{namespace}_{name}_{id}"), folder.clone());
                let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
                prop_assert!(folder.bytes().all(is_plain));
            }
        }
    }
}
