//! What the pods of this node are called.
//!
//! The kubelet keeps a folder for each pod below `/var/log/pods`, whose name says what the pod is
//! called and which id it has ([`PodName::of_log_folder`]). One listing names all of them, without
//! the API, a token, or the runtime's socket, and opens no file: what pods wrote is not looked at.

use crate::file::folder::Folder;
use fullpipe_model::observe::{PodName, Process, Workload};
use fullpipe_model::units::{Duration, Instant};
use std::collections::HashMap;
use std::io;
use std::path::PathBuf;

/// Where the kubelet keeps them, unless its configuration says otherwise (`podLogsDir`).
const FOLDER: &str = "/var/log/pods";
/// The least time between two listings.
const AGAIN: Duration = Duration::from_secs(5);
/// The most pods that are known: a node has some hundred.
const MOST: usize = 4096;

/// The pods' names by their ids.
#[derive(Debug)]
pub struct PodNames {
    folder: PathBuf,
    by_id: HashMap<String, PodName>,
    read: Option<Instant>,
}

impl PodNames {
    /// Those of this node; none where it is no node.
    pub fn of_node() -> PodNames {
        PodNames::in_folder(FOLDER.into())
    }

    /// Those whose folders are in `folder`.
    pub fn in_folder(folder: PathBuf) -> PodNames {
        PodNames { folder, by_id: HashMap::new(), read: None }
    }

    /// Gives a process the name of the pod that its control group is in. The folder is listed when
    /// a pod is not known, at most every five seconds.
    pub fn name(&mut self, process: &mut Process, now: Instant) {
        let workload = process.cgroup.as_deref().map(Workload::of);
        let Some(id) = workload.and_then(|workload| workload.pod) else { return };
        let id = id.to_string();
        let is_due = self.read.is_none_or(|read| now.since(read) >= AGAIN);
        if !self.by_id.contains_key(&id) && is_due {
            self.read = Some(now);
            // What cannot be listed has no names: the ids stay.
            self.by_id = self.list().unwrap_or_default();
        }
        process.pod = self.by_id.get(&id).cloned();
    }

    fn list(&self) -> io::Result<HashMap<String, PodName>> {
        // It is no link: `open` refuses one.
        let names = Folder::open(&self.folder)?.names()?.into_iter();
        let pods = names.filter_map(|name| {
            let (id, pod) = PodName::of_log_folder(name.to_str()?)?;
            Some((id.to_owned(), pod))
        });
        Ok(pods.take(MOST).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    const ID: &str = "214f3ba8-4b69-4bdb-a7d5-5ecc73f04ae9";
    const OTHER: &str = "0a125c8e9b7f4d3c2a1e0f9d8c7b6a50";

    fn process(cgroup: &str) -> Process {
        let cgroup = Some(cgroup.to_owned());
        let (name, command) = ("nginx".into(), String::new());
        Process { pid: 7, name, command, cgroup, container: None, pod: None }
    }

    fn told(names: &mut PodNames, cgroup: &str, second: u64) -> Option<String> {
        let mut process = process(cgroup);
        names.name(&mut process, Instant::ZERO + Duration::from_secs(second));
        process.pod.map(|pod| pod.to_string())
    }

    fn make(place: &Path, folder: &str) {
        std::fs::create_dir(place.join(folder)).unwrap();
    }

    /// The groups are as containerd and CRI-O make them, with either driver; the folders as the
    /// kubelet does.
    #[test]
    fn a_pod_is_called_what_its_folder_says() {
        let place = tempfile::tempdir().unwrap();
        make(place.path(), &format!("shop_web-7d4b9c6f5-x2x9z_{ID}"));
        make(place.path(), &format!("kube-system_etcd-node1_{OTHER}"));
        make(place.path(), "notes");
        let mut names = PodNames::in_folder(place.path().into());
        let container = "4c01db0b339c8a2f".repeat(4);
        let slice = ID.replace('-', "_");
        for group in [
            format!(
                "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{slice}.slice/cri-containerd-{container}.scope"
            ),
            format!("/kubepods.slice/kubepods-pod{slice}.slice/crio-{container}.scope"),
            format!("/kubepods/besteffort/pod{ID}/{container}"),
            // Above the root of a control group namespace.
            format!("/../../pod{ID}/{container}"),
        ] {
            assert_eq!(told(&mut names, &group, 0).as_deref(), Some("shop/web-7d4b9c6f5-x2x9z"));
        }
        let fixed = format!("/kubepods/burstable/pod{OTHER}/crio-{container}");
        assert_eq!(told(&mut names, &fixed, 0).as_deref(), Some("kube-system/etcd-node1"));
        for group in ["/", "/system.slice/kubelet.service", &format!("/docker/{container}")] {
            assert_eq!(told(&mut names, group, 100), None, "{group}");
        }
    }

    #[test]
    fn a_new_pod_is_looked_for_now_and_then_and_an_old_one_goes() {
        let place = tempfile::tempdir().unwrap();
        let mut names = PodNames::in_folder(place.path().join("pods"));
        let group = |id: &str| format!("/kubepods/burstable/pod{id}");
        assert_eq!(told(&mut names, &group(ID), 0), None, "there is no folder");
        make(place.path(), "pods");
        make(place.path(), &format!("pods/shop_web-1_{ID}"));
        assert_eq!(told(&mut names, &group(ID), 4), None, "it was listed just now");
        assert_eq!(told(&mut names, &group(ID), 5).as_deref(), Some("shop/web-1"));
        std::fs::remove_dir(place.path().join(format!("pods/shop_web-1_{ID}"))).unwrap();
        make(place.path(), &format!("pods/shop_web-2_{OTHER}"));
        assert_eq!(told(&mut names, &group(OTHER), 20).as_deref(), Some("shop/web-2"));
        assert_eq!(told(&mut names, &group(ID), 21), None);
    }

    #[test]
    fn a_link_is_not_followed_and_there_are_not_more_than_a_bound() {
        let place = tempfile::tempdir().unwrap();
        make(place.path(), "pods");
        for number in 0..MOST + 10 {
            let id = format!("214f3ba8-4b69-4bdb-a7d5-{number:012x}");
            make(place.path(), &format!("pods/shop_web_{id}"));
        }
        let mut names = PodNames::in_folder(place.path().join("pods"));
        names.name(&mut process(&format!("/kubepods/burstable/pod{ID}")), Instant::ZERO);
        assert_eq!(names.by_id.len(), MOST);
        symlink(place.path().join("pods"), place.path().join("link")).unwrap();
        let mut names = PodNames::in_folder(place.path().join("link"));
        names.name(&mut process(&format!("/kubepods/burstable/pod{ID}")), Instant::ZERO);
        assert!(names.by_id.is_empty());
    }
}
