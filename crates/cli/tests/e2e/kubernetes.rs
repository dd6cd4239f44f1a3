//! `contrib/kubernetes`: what its manifests say holds, and the program answers with what they give
//! it, and with nothing less.

use crate::Case;
use crate::export::Grouped;
use crate::need::Need;
use crate::program::{Finished, Program, until};
use crate::top::StalledConnection;
use crate::window::cgroup_mounts;
use fullpipe_model::units::Duration;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub const CASES: &[Case] = &[
    ("manifests_are_as_kubernetes_has_them", YAML, manifests_are_as_kubernetes_has_them),
    ("the_chart_renders_to_the_manifests", YAML, the_chart_renders_to_the_manifests),
    ("a_plans_pod_is_one", YAML, a_plans_pod_is_one),
    ("the_containers_answer_for_the_node", NODE, the_containers_answer_for_the_node),
    ("the_plugin_asks_kubectl", &[], the_plugin_asks_kubectl),
];

const YAML: &[Need] = &[Need::PythonYaml];
const NODE: &[Need] = &[
    Need::PythonYaml,
    Need::WindowAgent,
    Need::Program("setpriv"),
    Need::Program("curl"),
    Need::Program("nsenter"),
];
const PATIENCE: Duration = Duration::from_secs(60);

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/kubernetes")
}

fn check(program: &Program, arguments: &[&str]) -> Finished {
    let script = folder().join("check/check.py");
    let words = [&["python3", script.to_str().unwrap()], arguments].concat();
    program.start(&mut program.command_by(&words)).end()
}

fn documents(program: &Program, file: &Path) -> Vec<Value> {
    let checked = check(program, &["validate", file.to_str().unwrap()]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    serde_json::from_str(&checked.out).unwrap()
}

/// Held to Kubernetes' own schema; a name or a type that is wrong is told with its place.
fn manifests_are_as_kubernetes_has_them() {
    let program = Program::new();
    for name in ["fullpipe.yaml", "podmonitor.yaml", "debug-role.yaml"] {
        assert!(!documents(&program, &folder().join(name)).is_empty(), "{name}");
    }
    let text = fs::read_to_string(folder().join("fullpipe.yaml")).unwrap();
    let wrong = [
        ("hostPID:", "hostPid:", "spec.template.spec: there is no field `hostPid`"),
        ("containerPort: 5607", "containerPort: '5607'", "containerPort: \"5607\" is no integer"),
        ("          image:", "          imige:", "there is no field `imige`"),
        ("kind: DaemonSet", "kind: DemonSet", "apps/v1/DemonSet"),
        ("  selector:", "  # selector:", "`selector` is missing"),
    ];
    for (right, wrong, told) in wrong {
        assert!(text.contains(right), "{right}");
        // What was below the selector goes with it.
        let broken = text.replacen(right, wrong, 1).replacen(
            "  # selector:\n    matchLabels:\n      app.kubernetes.io/name: fullpipe\n      \
             app.kubernetes.io/instance: fullpipe\n",
            "",
            1,
        );
        let refused = check(&program, &["validate", program.file("broken.yaml", broken)]);
        assert_eq!(refused.code, Some(1), "{wrong}: {refused:?}");
        assert!(refused.err.contains(told), "{told}: {refused:?}");
    }
}

/// What `helm template` prints, but for its lines `# Source`, as it was compared with Helm itself.
fn the_chart_renders_to_the_manifests() {
    let program = Program::new();
    let rendered = |settings: &[&str]| {
        let done = check(&program, &[&["render"], settings].concat());
        assert_eq!(done.code, Some(0), "{done:?}");
        done.out
    };
    let plain = |name: &str| fs::read_to_string(folder().join(name)).unwrap();
    let all = plain("fullpipe.yaml");
    let (_namespace, rest) = all.split_at(all.find("---\n").unwrap());
    assert_eq!(rest, rendered(&[]));
    // The image is this version's, here and in the plugin.
    let image = format!("fullpipe:{}", env!("CARGO_PKG_VERSION"));
    assert_eq!(all.matches(&format!("image: \"{image}\"")).count(), 2);
    assert_eq!(plain("kubectl-fullpipe").matches(&image).count(), 2);
    let with_monitor = rendered(&["podMonitor.enabled=true"]);
    assert_eq!(with_monitor, format!("{rest}---\n{}", plain("podmonitor.yaml")));
    // Other values are manifests, too, and a name that the chart does not have is refused.
    let other = ["record.enabled=false", "seLinuxOptions={type: spc_t}", "priorityClassName=high"];
    let other = program.file("other.yaml", rendered(&other));
    let set = documents(&program, &program.work().join(other)).remove(1);
    let pod = &set["spec"]["template"]["spec"];
    assert_eq!(pod["securityContext"]["seLinuxOptions"]["type"], "spc_t");
    assert_eq!(pod["priorityClassName"], "high");
    let counts = ["containers", "volumes"].map(|name| pod[name].as_array().unwrap().len());
    assert_eq!(counts, [1, 1]);
    assert_eq!(pod["volumes"][0]["hostPath"]["path"], "/var/log/pods");
    assert!(pod["containers"][0]["args"].as_array().unwrap().iter().all(|word| word != "--ring"));
    assert_eq!(check(&program, &["render", "export.prot=1"]).code, Some(1));
    assert_eq!(check(&program, &["render", "export.port=none"]).code, Some(1));
}

/// `tune plan --format kubernetes` is the part of a pod that it says it is.
fn a_plans_pod_is_one() {
    let program = Program::new();
    let path = ["--rate", "1gbit", "--rtt", "146ms"];
    let plan = program.run(&[&["tune", "plan"], &path[..], &["--format", "kubernetes"]].concat());
    assert_eq!(plan.code, Some(0), "{plan:?}");
    let head = "apiVersion: v1\nkind: Pod\nmetadata: {name: tuned}\n";
    let whole = format!("{head}{}\n  containers:\n  - name: one\n", plan.out.trim_end());
    let pod = documents(&program, &program.work().join(program.file("pod.yaml", whole))).remove(0);
    let sysctls = pod["spec"]["securityContext"]["sysctls"].as_array().unwrap();
    assert!(sysctls.iter().any(|one| one["name"] == "net.ipv4.tcp_rmem"), "{pod:#}");
}

/// A container as a runtime makes it of a container's and its pod's description: what it may do,
/// see and write. `$0 CAPABILITIES "UNSHARE OPTIONS" GROUP "FOLDER:PLACE:MODE .." PROGRAM COMMAND..`
const CONTAINER: &str = r#"set -eu
capabilities=$1 spaces=$2 group=$3 mounts=$4 program=$5
shift 5
[ -z "$group" ] || echo $$ > "$group/cgroup.procs"
export capabilities mounts program
exec unshare --mount --cgroup $spaces sh -euc '
root=$(mktemp -d)
mount -t tmpfs tmpfs "$root"
cd "$root"
mkdir -p usr/bin usr/lib usr/share lib lib64 bin proc tmp
touch usr/bin/fullpipe bin/setpriv
mount --bind "$program" usr/bin/fullpipe
mount --bind "$(command -v setpriv)" bin/setpriv
# What the static program does not need.
for libraries in usr/lib lib lib64; do mount --bind "/$libraries" "$libraries"; done
mount -t proc proc proc
mount --bind -o ro proc/sys proc/sys
mount -o remount,bind,ro proc/sys
for one in $mounts; do
  rest=${one#*:}
  place=.${rest%:*}
  mkdir -p "$place"
  mount --bind "${one%%:*}" "$place"
  [ "${one##*:}" = rw ] || mount -o remount,bind,ro "$place"
done
mount -o remount,ro .
ip link set lo up
exec chroot . /bin/setpriv --bounding-set="-all$capabilities" --inh-caps=-all "$@"' "$0" "$@"
"#;

/// A node with a pod's sender on it, the groups that containerd and CRI-O make, and the pod of the
/// manifests.
struct Node {
    program: Program,
    spec: Value,
    sender: Grouped,
}

const SENDER_POD: &str = "214f3ba8-4b69-4bdb-a7d5-5ecc73f04ae9";
const POD: &str = "web-7d4b9c6f5-x2x9z";
const PORT: u16 = 20_707;

impl Node {
    fn new() -> Node {
        const SENDER: &str = "import socket, time\n\
            l = socket.create_server(('127.0.0.1', 20707))\n\
            n = socket.create_connection(l.getsockname()); a = l.accept(); n.setblocking(False)\n\
            try:\n while True: n.send(b'x' * 65536)\n\
            except BlockingIOError: print('ready', flush=True); time.sleep(600)";
        let program = Program::new();
        let set = documents(&program, &folder().join("fullpipe.yaml")).remove(2);
        let root = cgroup_mounts().remove(0).join(format!("fullpipe-node-{}", std::process::id()));
        let id = "4c01db0b339c8a2f".repeat(4);
        let mut made = vec![root.clone(), root.join("kubepods.slice")];
        let uid = SENDER_POD.replace('-', "_");
        let other = "0a12".repeat(8);
        for (qos, pod, container) in [
            ("burstable", uid.as_str(), format!("cri-containerd-{id}.scope")),
            ("besteffort", other.as_str(), format!("crio-{id}.scope")),
        ] {
            let quality = made[1].join(format!("kubepods-{qos}.slice"));
            let slice = quality.join(format!("kubepods-{qos}-pod{pod}.slice"));
            let scope = slice.join(container);
            fs::create_dir_all(&scope).unwrap();
            made.extend([quality, slice, scope]);
        }
        // An ordinary user's process, as most of pods' are.
        let enter = "echo $$ > \"$1/cgroup.procs\"; ip link set lo up; \
                     exec setpriv --reuid=1000 --regid=1000 --clear-groups /usr/bin/python3 -c \"$2\"";
        let mut command = Command::new("unshare");
        command.args(["--net", "sh", "-euc", enter, "sh"]).arg(&made[4]).arg(SENDER);
        let child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut sender = Grouped(child, made);
        let mut ready = String::new();
        BufReader::new(sender.0.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        assert_eq!(ready, "ready\n");
        // As the kubelet makes it, and what stands beside it.
        for folder in [format!("shop_{POD}_{SENDER_POD}"), "notes".into()] {
            fs::create_dir_all(program.work().join("pods").join(folder)).unwrap();
        }
        Node { program, spec: set["spec"]["template"]["spec"].clone(), sender }
    }

    fn container(&self, name: &str) -> &Value {
        let containers = self.spec["containers"].as_array().unwrap();
        containers.iter().find(|container| container["name"] == name).unwrap()
    }

    /// The capabilities that a container of the manifests is given, as setpriv takes them.
    fn capabilities(&self, name: &str) -> Vec<String> {
        let security = &self.container(name)["securityContext"];
        assert_eq!(security["capabilities"]["drop"], serde_json::json!(["ALL"]));
        assert_eq!(security["readOnlyRootFilesystem"], true, "as the container here has it");
        let added = security["capabilities"]["add"].as_array().unwrap();
        added.iter().map(|name| format!(",+{}", name.as_str().unwrap().to_lowercase())).collect()
    }

    /// What of the node's namespaces a container does not have.
    fn spaces(&self) -> &'static str {
        match (self.spec["hostPID"] == true, self.spec["hostNetwork"] == true) {
            (true, true) => "",
            (true, false) => "--net",
            (false, true) => "--pid --fork --kill-child",
            (false, false) => "--net --pid --fork --kill-child",
        }
    }

    fn arguments(&self, name: &str) -> Vec<String> {
        let words = self.container(name)["args"].as_array().unwrap();
        words.iter().map(|word| word.as_str().unwrap().to_owned()).collect()
    }

    /// A container of the pod, not started yet, that is told `words`.
    fn command(&self, name: &str, capabilities: &[String], words: &[&str]) -> Command {
        let mounts = self.container(name)["volumeMounts"].as_array().unwrap();
        // A volume's folder on the node is the one of its name.
        let mounts = mounts.iter().map(|mount| {
            let [name, at] = ["name", "mountPath"].map(|key| mount[key].as_str().unwrap());
            let folder = self.program.work().join(name);
            fs::create_dir_all(&folder).unwrap();
            let mode = if mount["readOnly"] == true { "ro" } else { "rw" };
            format!("{}:{at}:{mode}", folder.display())
        });
        let mounts: Vec<String> = mounts.collect();
        let (mounts, capabilities) = (mounts.join(" "), capabilities.concat());
        let given = [
            capabilities.as_str(),
            self.spaces(),
            self.sender.1[7].to_str().unwrap(),
            &mounts,
            self.program.binary().to_str().unwrap(),
            "/usr/bin/fullpipe",
        ];
        let words = [&["sh", "-c", CONTAINER, "container"], &given[..], words].concat();
        self.program.command_by(&words)
    }
}

/// `export` and `record` in the namespaces, with the capabilities, the read-only root and the one
/// mount of the manifests: both see the pod's connection by its name, and the node's own. Without
/// any one of the capabilities they do not.
fn the_containers_answer_for_the_node() {
    let own = (21_000..22_000).find_map(|port| StalledConnection::to_port(port).ok()).unwrap();
    let own_port = own.writer.peer_addr().unwrap().port();
    let node = Node::new();
    let all = node.capabilities("export");
    let arguments = node.arguments("export");
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let pods = format!("workload=\"{SENDER_POD}\",k8s_namespace_name=\"shop\"");
    let pods = format!("{pods},k8s_pod_name=\"{POD}\",process_executable_name=\"python3\"");
    let pods = format!("{pods},server_port=\"{PORT}\",limit=\"receive");
    let nodes = format!("server_port=\"{own_port}\",limit=\"receive");
    scraped_as_the_probe_asks(&node, &words, [&pods, &nodes]);

    let labels = words.iter().position(|word| *word == "--labels").unwrap();
    let once = ["export", "--once", "--interval", "300ms", "--labels", words[labels + 1]];
    for absent in &all {
        let fewer: Vec<String> = all.iter().filter(|one| *one != absent).cloned().collect();
        let told = node.program.start(&mut node.command("export", &fewer, &once)).end();
        assert_eq!(told.code, Some(0), "{told:?}");
        assert!(!told.out.contains(&pods), "{absent} is not needed: {}", told.out);
    }
    recorded_by_the_nodes_name(&node);
    beside_a_container_of_the_pod(&node);
}

/// Asks from within the pod's network, as its address is asked from anywhere.
fn scraped_as_the_probe_asks(node: &Node, words: &[&str], expected: [&str; 2]) {
    let container = node.container("export");
    let port = container["ports"][0]["containerPort"].as_u64().unwrap();
    assert_eq!(container["livenessProbe"]["httpGet"]["port"], container["ports"][0]["name"]);
    let path = container["livenessProbe"]["httpGet"]["path"].as_str().unwrap();
    let url = format!("http://127.0.0.1:{port}{path}");
    let all = node.capabilities("export");
    let exporter = node.program.start(&mut node.command("export", &all, words));
    let id = exporter.id().to_string();
    let curl = ["nsenter", "--net", "--target", &id, "curl", "-s", &url];
    let mut text = String::new();
    until("the pod's and the node's connections are there", PATIENCE, || {
        text = node.program.start(&mut node.program.command_by(&curl)).end().out;
        let is_counted = |part: &&str| {
            let found = text.lines().find(|line| line.contains(part));
            found.is_some_and(|line| !line.ends_with(" 0"))
        };
        expected.iter().all(is_counted)
    });
    exporter.signal(Signal::SIGTERM);
    let ended = exporter.end();
    assert_eq!(ended.code, Some(130), "{ended:?}");
}

/// A recording is the node's, not the pod's, and `why --at` in the same container answers from it.
fn recorded_by_the_nodes_name(node: &Node) {
    let all = node.capabilities("record");
    let arguments = node.arguments("record");
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut record =
        node.command("record", &all, &[&words[..], &["--for", "4s", "--json"]].concat());
    for variable in node.container("record")["env"].as_array().unwrap() {
        let field = &variable["valueFrom"]["fieldRef"]["fieldPath"];
        assert_eq!(field, "spec.nodeName", "{variable}");
        record.env(variable["name"].as_str().unwrap(), "node-7");
    }
    let recorded = node.program.start(&mut record).end();
    assert_eq!(recorded.code, Some(0), "{recorded:?}");
    let ring = words.iter().position(|word| *word == "--ring").unwrap();
    let asked = ["why", "--at", "-4s", "--for", "4s", "--ring", words[ring + 1], "--loopback"];
    let filter = format!("pod shop/{POD} and port {PORT}");
    let asked = [&asked[..], &["--filter", &filter, "--json"]].concat();
    let told = node.program.start(&mut node.command("record", &all, &asked)).end();
    assert_eq!(told.code, Some(0), "{told:?}");
    let told = told.json();
    let sender = &told["connections"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["role"] == "sender" && one["process"]["name"] == "python3");
    let sender = sender.unwrap_or_else(|| panic!("no sender: {told:#}"));
    let group = sender["process"]["cgroup"].as_str().unwrap();
    assert!(group.contains(&SENDER_POD.replace('-', "_")), "{group}");
    assert_eq!(sender["process"]["pod"], serde_json::json!({"namespace": "shop", "name": POD}));
    let kept = fs::read_dir(node.program.work().join("ring")).unwrap().next().unwrap().unwrap();
    let packed = kept.path();
    let zcat = ["zcat", packed.to_str().unwrap()];
    let lines = node.program.start(&mut node.program.command_by(&zcat)).end().out;
    assert!(lines.contains("\"host\":\"node-7\""), "{lines}");
}

/// `kubectl debug --profile=general`: what runtimes give anybody, and SYS_PTRACE, in the network of
/// the pod.
fn beside_a_container_of_the_pod(node: &Node) {
    const USUAL: &str = ",+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,\
                         +net_bind_service,+net_raw,+sys_chroot,+mknod,+audit_write,+setfcap";
    let id = node.sender.0.id().to_string();
    let program = node.program.binary().to_str().unwrap();
    let port = PORT.to_string();
    let given = format!("{USUAL},+sys_ptrace");
    let why = ["why", "--port", &port, "--for", "1s", "--json"];
    let inner = [&["sh", "-c", CONTAINER, "beside"], &[&given, "", "", "", program][..]];
    let words = [&["nsenter", "--net", "--target", &id], &inner.concat()[..]].concat();
    let words = [&words[..], &["/usr/bin/fullpipe"], &why].concat();
    let told = node.program.start(&mut node.program.command_by(&words)).end();
    assert_eq!(told.code, Some(0), "{told:?}");
    let told = told.json();
    let connections = told["connections"].as_array().unwrap();
    let is_named = |one: &Value| one["process"]["name"] == "python3";
    assert!(!connections.is_empty() && connections.iter().all(is_named), "{told:#}");
}

/// What `kubectl-fullpipe` has kubectl do, word by word.
fn the_plugin_asks_kubectl() {
    let program = Program::new();
    let kubectl = program.work().join("kubectl");
    fs::write(
        &kubectl,
        "#!/bin/sh\nprintf '%s\\n' \"--- $#\" \"$@\" >> asked\n\
         case \" $* \" in *' get pod '*) echo web ;; esac\n",
    )
    .unwrap();
    fs::set_permissions(&kubectl, fs::Permissions::from_mode(0o755)).unwrap();
    let plugin = folder().join("kubectl-fullpipe");
    let ask = |words: &[&str]| {
        let _ = fs::remove_file(program.work().join("asked"));
        let words = [&[plugin.to_str().unwrap()], words].concat();
        let path = format!("{}:/usr/bin:/bin", program.work().display());
        let mut command = program.command_by(&words);
        let done = program.start(command.env("PATH", path)).end();
        let asked = fs::read_to_string(program.work().join("asked")).unwrap_or_default();
        let asked = asked.split("--- ").skip(1);
        let asked: Vec<Vec<String>> =
            asked.map(|one| one.lines().skip(1).map(str::to_owned).collect()).collect();
        (done, asked)
    };
    let (done, asked) = ask(&[
        "why",
        "web-1",
        "-n",
        "shop",
        "--image=reg/fullpipe:1",
        "--",
        "--filter",
        "port 443",
    ]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let get = ["--namespace=shop", "get", "pod", "web-1"];
    assert_eq!(asked[0][..4], get);
    let debug = "--namespace=shop debug --quiet --attach --image=reg/fullpipe:1 --target=web web-1 \
                 --profile=general -- fullpipe why --filter";
    let debug: Vec<&str> = debug.split(' ').chain(["port 443"]).collect();
    assert_eq!(asked[1], debug);
    // A node has no containers to ask for.
    let (done, asked) = ask(&["top", "node/worker-3"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let debug = "debug --quiet --attach --image=fullpipe:0.1.0 node/worker-3 --profile=sysadmin -- \
                 fullpipe top";
    assert_eq!(asked, [debug.split(' ').collect::<Vec<_>>()]);
    for (words, told) in [
        (&["why"][..], "of which pod"),
        (&["why", "web-1", "--for", "3s"], "come after --"),
        (&["tune", "web-1"], "no command tune"),
        (&["why", "web-1", "-n"], "needs a value"),
    ] {
        let (refused, asked) = ask(words);
        assert_eq!((refused.code, asked.len()), (Some(2), 0), "{words:?}: {refused:?}");
        assert!(refused.err.contains(told), "{told}: {refused:?}");
    }
}
