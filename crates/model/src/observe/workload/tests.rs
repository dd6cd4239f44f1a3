use super::*;
use proptest::prelude::*;

const ID: &str = "d4e8e05a546c86b6443f101966c618e47753ed01fa9929cae00d3b692f7a9f80";
const NODE: &str = "47335b04ebb4aefdc353dda62ddd38e5e1e00fc1372f0c8d0138417f0ccb9e6c";
const UID: &str = "214f3ba8-4b69-4bdb-a7d5-5ecc73f04ae9";
const STATIC: &str = "99dcb84d2a34f7e338778606703258c4";

use ContainerRuntime::{Containerd, Crio, Docker, Podman};
use PodQos::{BestEffort, Burstable, Guaranteed};

/// A path in which `ID`, `NODE`, `UID`, `U_I_D` and `STATIC` stand for ids, and what it says: the
/// unit, whether there is the container, its runtime, the pod and its quality of service.
type Recorded = (
    &'static str,
    Option<&'static str>,
    bool,
    Option<ContainerRuntime>,
    Option<(&'static str, PodQos)>,
);

/// Paths as hosts have them, of each runtime, driver and version.
const RECORDED: &[Recorded] = &[
    // systemd alone, its own units and those of users.
    ("/", None, false, None, None),
    ("", None, false, None, None),
    ("/init.scope", None, false, None, None),
    ("/system.slice/nginx.service", Some("nginx.service"), false, None, None),
    (
        "/system.slice/system-getty.slice/getty@tty1.service",
        Some("getty@tty1.service"),
        false,
        None,
        None,
    ),
    ("/system.slice/postgresql.service/workers", Some("postgresql.service"), false, None, None),
    ("/user.slice/user-1000.slice/session-2.scope", Some("session-2.scope"), false, None, None),
    ("/user.slice/user-1000.slice/user@1000.service/init.scope", None, false, None, None),
    (
        "/user.slice/user-1000.slice/user@1000.service/app.slice/app-firefox-4711.scope",
        Some("app-firefox-4711.scope"),
        false,
        None,
        None,
    ),
    ("/system.slice/docker.service", Some("docker.service"), false, None, None),
    ("/system.slice/containerd.service", Some("containerd.service"), false, None, None),
    (
        "/machine.slice/systemd-nspawn@web.service/payload",
        Some("systemd-nspawn@web.service"),
        false,
        None,
        None,
    ),
    (
        "/machine.slice/machine-qemu\\x2d1\\x2dvm.scope",
        Some("machine-qemu\\x2d1\\x2dvm.scope"),
        false,
        None,
        None,
    ),
    ("/lxc.payload.web/system.slice/nginx.service", Some("nginx.service"), false, None, None),
    // Docker: cgroupfs, systemd, rootless, in a namespace of control groups.
    ("/docker/ID", None, true, Some(Docker), None),
    ("/system.slice/docker-ID.scope", None, true, Some(Docker), None),
    (
        "/user.slice/user-1000.slice/user@1000.service/user.slice/docker-ID.scope",
        None,
        true,
        Some(Docker),
        None,
    ),
    ("/../docker-ID.scope", None, true, Some(Docker), None),
    ("/docker/buildkit/ID", None, true, None, None),
    (
        "/system.slice/docker-ID.scope/system.slice/nginx.service",
        Some("nginx.service"),
        true,
        Some(Docker),
        None,
    ),
    // Podman: root and not, version 1 and 2, in a pod of its own.
    ("/machine.slice/libpod-ID.scope", None, true, Some(Podman), None),
    ("/machine.slice/libpod-ID.scope/container", None, true, Some(Podman), None),
    ("/libpod_parent/libpod-ID", None, true, Some(Podman), None),
    (
        "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-ID.scope/container",
        None,
        true,
        Some(Podman),
        None,
    ),
    (
        "/machine.slice/machine-libpod_pod_NODE.slice/libpod-ID.scope",
        None,
        true,
        Some(Podman),
        None,
    ),
    (
        "/user.slice/user-1000.slice/user@1000.service/user.slice/user-libpod_pod_NODE.slice/libpod-ID.scope/container",
        None,
        true,
        Some(Podman),
        None,
    ),
    ("/machine.slice/libpod-conmon-ID.scope", None, false, None, None),
    ("/system.slice/podman.service", Some("podman.service"), false, None, None),
    // nerdctl and ctr.
    ("/system.slice/nerdctl-ID.scope", None, true, Some(Containerd), None),
    ("/default/ID", None, true, None, None),
    // containerd for Kubernetes: systemd, cgroupfs, and a runtime that does not speak to systemd.
    (
        "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podU_I_D.slice/cri-containerd-ID.scope",
        None,
        true,
        Some(Containerd),
        Some((UID, Burstable)),
    ),
    (
        "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podU_I_D.slice/cri-containerd-ID.scope",
        None,
        true,
        Some(Containerd),
        Some((UID, BestEffort)),
    ),
    (
        "/kubepods.slice/kubepods-podU_I_D.slice/cri-containerd-ID.scope",
        None,
        true,
        Some(Containerd),
        Some((UID, Guaranteed)),
    ),
    (
        "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podSTATIC.slice/cri-containerd-ID.scope",
        None,
        true,
        Some(Containerd),
        Some((STATIC, Burstable)),
    ),
    ("/kubepods/burstable/podUID/ID", None, true, None, Some((UID, Burstable))),
    ("/kubepods/besteffort/podUID/ID", None, true, None, Some((UID, BestEffort))),
    ("/kubepods/podUID/ID", None, true, None, Some((UID, Guaranteed))),
    ("/kubepods/burstable/podSTATIC/ID", None, true, None, Some((STATIC, Burstable))),
    ("/kubepods/burstable/podUID", None, false, None, Some((UID, Burstable))),
    (
        "/system.slice/containerd.service/kubepods-besteffort-podU_I_D.slice:cri-containerd:ID",
        None,
        true,
        Some(Containerd),
        Some((UID, BestEffort)),
    ),
    (
        "/system.slice/containerd.service/kubepods-burstable-podUID.slice:cri-containerd:ID",
        None,
        true,
        Some(Containerd),
        Some((UID, Burstable)),
    ),
    (
        "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podU_I_D.slice/cri-containerd-ID.scope/init.scope",
        None,
        true,
        Some(Containerd),
        Some((UID, Burstable)),
    ),
    // CRI-O: both drivers, a container's own group below its scope, and the monitor.
    (
        "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podU_I_D.slice/crio-ID.scope",
        None,
        true,
        Some(Crio),
        Some((UID, BestEffort)),
    ),
    (
        "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podU_I_D.slice/crio-ID.scope/container",
        None,
        true,
        Some(Crio),
        Some((UID, Burstable)),
    ),
    ("/kubepods/burstable/podUID/crio-ID", None, true, Some(Crio), Some((UID, Burstable))),
    (
        "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podU_I_D.slice/crio-conmon-ID.scope",
        None,
        false,
        None,
        Some((UID, Burstable)),
    ),
    ("/kubepods/burstable/podUID/crio-conmon-ID", None, false, None, Some((UID, Burstable))),
    ("/system.slice/crio-conmon-ID.scope", None, false, None, None),
    // Docker for Kubernetes (cri-dockerd).
    (
        "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podU_I_D.slice/docker-ID.scope",
        None,
        true,
        Some(Docker),
        Some((UID, Burstable)),
    ),
    // kind: nodes are containers, seen from the machine and from the node.
    (
        "/docker/NODE/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-podU_I_D.slice/cri-containerd-ID.scope",
        None,
        true,
        Some(Containerd),
        Some((UID, Burstable)),
    ),
    (
        "/system.slice/docker-NODE.scope/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-podU_I_D.slice/cri-containerd-ID.scope",
        None,
        true,
        Some(Containerd),
        Some((UID, Guaranteed)),
    ),
    ("/docker/NODE/kubelet/kubepods/burstable/podUID/ID", None, true, None, Some((UID, Burstable))),
    // Docker within a pod, Podman within Docker.
    (
        "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podU_I_D.slice/cri-containerd-NODE.scope/docker/ID",
        None,
        true,
        Some(Docker),
        Some((UID, Burstable)),
    ),
    ("/docker/NODE/machine.slice/libpod-ID.scope/container", None, true, Some(Podman), None),
    // What looks like one and is none.
    ("/system.slice/docker-ID.scope.mount", Some("docker-ID.scope.mount"), false, None, None),
    ("/user.slice/podUID/worker", None, false, None, None),
    ("/system.slice/my-podU_I_D.slice", None, false, None, None),
    ("/docker/abc123", None, false, None, None),
];

fn filled(text: &str) -> String {
    let text = text.replace("U_I_D", &UID.replace('-', "_")).replace("STATIC", STATIC);
    // Two ids have others in their names.
    let text = text.replace("podUID", &format!("pod{UID}"));
    text.replace("NODE", NODE).replace("ID", ID)
}

#[test]
fn every_recorded_path_is_right() {
    for (path, unit, has_container, runtime, pod) in RECORDED {
        let (path, unit) = (filled(path), unit.map(filled));
        let told = Workload::of(&path);
        assert_eq!(told.unit, unit.as_deref(), "{path}");
        assert_eq!(told.container, has_container.then_some(ID), "{path}");
        assert_eq!(told.runtime, *runtime, "{path}");
        let id = told.pod.map(|pod| pod.to_string());
        assert_eq!(
            (id.as_deref(), told.qos),
            (pod.map(|pod| pod.0), pod.map(|pod| pod.1)),
            "{path}"
        );
        let name = pod.map(|pod| pod.0).or(has_container.then_some(ID)).or(unit.as_deref());
        assert_eq!(told.name(), name.unwrap_or(HOST), "{path}");
    }
}

#[test]
fn above_a_namespaces_root_the_service_is_hidden() {
    let path = format!("/../../pod{UID}/{ID}");
    let told = Workload::of(&path);
    let pod = told.pod.map(|pod| pod.to_string());
    assert_eq!((pod.as_deref(), told.qos, told.container), (Some(UID), None, Some(ID)));
}

#[test]
fn both_ways_to_write_an_id_are_one() {
    let [slices, folders] = [
        format!("/kubepods.slice/kubepods-pod{}.slice/crio-{ID}.scope", UID.replace('-', "_")),
        format!("/kubepods/pod{UID}/crio-{ID}"),
    ];
    assert_eq!(Workload::of(&slices), Workload::of(&folders));
    let json = serde_json::to_value(Workload::of(&slices)).unwrap();
    assert_eq!(json["pod"], UID);
    assert_eq!((&json["qos"], &json["runtime"]), (&"guaranteed".into(), &"crio".into()));
}

proptest! {
    /// Whatever a path is, what is told of it stands in it.
    #[test]
    fn any_path_is_read(
        parts in prop::collection::vec((0_usize..RECORDED.len(), 0_usize..12, "\\PC{0,4}"), 0..6),
    ) {
        let mut path = String::new();
        for (at, part, more) in parts {
            let recorded = filled(RECORDED[at].0);
            path.push('/');
            path += recorded.split('/').nth(part).unwrap_or_default();
            path += &more;
        }
        let told = Workload::of(&path);
        prop_assert!(told.unit.is_none_or(|unit| path.contains(unit)));
        prop_assert!(told.container.is_none_or(|id| path.contains(id) && id.len() == 64));
        prop_assert!(told.pod.is_some() || told.qos.is_none());
        prop_assert!(told.runtime.is_none() || told.container.is_some());
        prop_assert!(!told.name().is_empty());
    }

    /// A container below any group is that container: what is around it does not matter.
    #[test]
    fn the_innermost_container_counts(at in 0_usize..RECORDED.len()) {
        let path = filled(RECORDED[at].0) + "/system.slice/docker-" + NODE + ".scope";
        let told = Workload::of(&path);
        prop_assert_eq!((told.container, told.runtime), (Some(NODE), Some(Docker)));
    }
}
