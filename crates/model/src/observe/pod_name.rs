//! What a pod is called, by the folder that the kubelet keeps its logs in.
//!
//! A control group names a pod by its id alone. The kubelet makes a folder
//! `NAMESPACE_NAME_ID` below `/var/log/pods` before it asks the runtime for the pod, whichever
//! runtime that is, and removes it when the pod is gone. Neither of the three has an underscore, so
//! the folder's name says all three, and nothing in it has to be opened.
//!
//! Sources: the kubelet's `kuberuntime` package (`BuildPodLogsDirectory`); RFC 1123 labels, by
//! which Kubernetes allows names.

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

    proptest! {
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
