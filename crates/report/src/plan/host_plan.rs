//! A plan for one host as text: to read, and to paste into the files that set such things.

use super::words;
use crate::table::paragraph::fill;
use crate::{Column, Layout, Table, Tone, plan};
use fullpipe_flow::Language;
use fullpipe_model::change::{Change, Knob, RouteMetric, Scope, Sysctl};
use fullpipe_model::tune::HostPlan;

/// A form in which a plan is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// To read: each change as a command, with its reason.
    Text,
    /// A file for `/etc/sysctl.d`.
    Sysctl,
    /// A pod's security context.
    Kubernetes,
    /// Options of `docker run`, and a compose file's lines.
    Docker,
    /// Files of systemd: sysctl.d, and drop-ins for `.network` and `.link` files.
    Systemd,
    /// Tasks of a playbook.
    Ansible,
}

/// The plan in this form, as lines.
pub fn render(plan: &HostPlan, form: Form, layout: Layout) -> String {
    match form {
        Form::Text => text(plan, layout),
        Form::Sysctl => sysctl(plan),
        Form::Kubernetes => kubernetes(plan),
        Form::Docker => docker(plan),
        Form::Systemd => systemd(plan),
        Form::Ansible => ansible(plan),
    }
}

fn text(plan: &HostPlan, layout: Layout) -> String {
    let (language, arrow) = (layout.language, layout.arrow());
    let [before, after] = [&plan.before, &plan.after].map(|one| plan::expected(language, one));
    let what = if plan.before == plan.after { before } else { format!("{before} {arrow} {after}") };
    let first = match language {
        Language::English => format!("Expected: {what}, with an other end that is no limit."),
        Language::Chinese => format!("预期：{what}（对端不构成限制时）。"),
    };
    let mut text = fill("", &first, layout.width);
    text.push('\n');
    let labels = layout.labels();
    if plan.changes.is_empty() {
        text += &format!("{}\n", labels.nothing_to_set);
    }
    for change in &plan.changes {
        text.push('\n');
        text += &change_lines(change, layout);
    }
    if !plan.on_the_machine.is_empty() {
        text.push('\n');
        text += &fill("", labels.on_the_machine_itself, layout.width);
        text.push('\n');
    }
    for change in &plan.on_the_machine {
        text.push('\n');
        text += &change_lines(change, layout);
    }
    if !plan.notes.is_empty() {
        text += &format!("\n{}\n", labels.to_know);
    }
    for note in &plan.notes {
        text += &fill("  - ", &words::note(language, note), layout.width);
        text.push('\n');
    }
    text
}

fn change_lines(change: &Change, layout: Layout) -> String {
    // One line, however long, because people paste it.
    let command = layout.paint(Tone::Heading, &change.command());
    format!("{command}\n{}", plan::change_reason(change, "    ", layout))
}

/// Every change, of this namespace and of the machine.
fn all(plan: &HostPlan) -> impl Iterator<Item = &Change> {
    plan.changes.iter().chain(&plan.on_the_machine)
}

/// `name`, `value` and change of every sysctl.
fn sysctls(plan: &HostPlan) -> impl Iterator<Item = (&'static str, &Change)> {
    all(plan).filter_map(|change| match &change.knob {
        Knob::Sysctl(sysctl) => Some((sysctl.name(), change)),
        _ => None,
    })
}

/// A reason as a comment.
fn comment(indent: &str, change: &Change) -> String {
    let words = format!("{}: {}", change.knob, change.reason);
    let filled = fill(&format!("{indent}# "), &words, None);
    format!("{filled}\n")
}

/// What a file of sysctls cannot hold, as comments with the command.
fn commands(plan: &HostPlan) -> String {
    let others = all(plan).filter(|change| !matches!(change.knob, Knob::Sysctl(_)));
    others.map(|change| format!("# at boot: {}\n", change.command())).collect()
}

fn nothing(text: String) -> String {
    if text.is_empty() { "# nothing to set\n".into() } else { text }
}

fn sysctl(plan: &HostPlan) -> String {
    let lines = sysctls(plan)
        .map(|(name, change)| format!("{}{name} = {}\n", comment("", change), change.to));
    nothing(lines.collect::<String>() + &commands(plan))
}

fn kubernetes(plan: &HostPlan) -> String {
    let (pods, machine): (Vec<_>, Vec<_>) =
        sysctls(plan).partition(|(_, change)| !change.knob.is_machine_wide());
    let mut text = String::new();
    if !pods.is_empty() {
        text += "spec:\n  securityContext:\n    sysctls:\n";
    }
    for (name, change) in pods {
        let Knob::Sysctl(sysctl) = change.knob else { continue };
        text += &match sysctl.kubernetes() {
            Some(since) => format!("    # every pod may set it since Kubernetes {since}\n"),
            None => {
                format!("    # only on nodes whose kubelet has --allowed-unsafe-sysctls={name}\n")
            }
        };
        text += &format!("    - name: {name}\n      value: \"{}\"\n", change.to);
    }
    for (name, change) in machine {
        text += &format!("# no pod can set this, the node can: {name} = {}\n", change.to);
    }
    let others = all(plan).filter(|change| !matches!(change.knob, Knob::Sysctl(_)));
    for change in others {
        let command = change.command();
        text += &format!("# in an init container with NET_ADMIN: {command}\n");
    }
    nothing(text)
}

fn docker(plan: &HostPlan) -> String {
    let mut options = String::new();
    let mut compose = String::new();
    let mut machine = String::new();
    for (name, change) in sysctls(plan) {
        if change.knob.is_machine_wide() {
            machine +=
                &format!("# no container can set this, the host can: {name} = {}\n", change.to);
            continue;
        }
        options += &format!(" --sysctl {name}='{}'", change.to);
        compose += &format!("#   {name}: \"{}\"\n", change.to);
    }
    let mut text = String::new();
    if !options.is_empty() {
        text += &format!(
            "docker run{options} IMAGE\n# in a compose file, below the service:\n# sysctls:\n{compose}"
        );
    }
    nothing(text + &machine + &commands(plan))
}

fn systemd(plan: &HostPlan) -> String {
    let mut text = String::new();
    let lines: String =
        sysctls(plan).map(|(name, change)| format!("{name} = {}\n", change.to)).collect();
    if !lines.is_empty() {
        text += &format!("# /etc/sysctl.d/60-fullpipe.conf, read by systemd-sysctl\n{lines}");
    }
    for change in all(plan) {
        text += &match &change.knob {
            Knob::Sysctl(_) => continue,
            Knob::QueueLength(device) => format!(
                "# /etc/systemd/network/60-fullpipe-{device}.link; the first .link file that matches a \
                 device is the only one that counts, so take over what yours has\n\
                 [Match]\nOriginalName={device}\n[Link]\nTransmitQueueLength={}\n",
                change.to
            ),
            Knob::Route(route, metric) => {
                let key = match metric {
                    RouteMetric::InitCwnd => "InitialCongestionWindow",
                    RouteMetric::InitRwnd => "InitialAdvertisedReceiveWindow",
                    RouteMetric::QuickAck => "QuickAck",
                };
                format!(
                    "# in the [Route] section of {route}, in the .network file of {}\n[Route]\n{key}={}\n",
                    route.device, change.to
                )
            }
        };
    }
    nothing(text)
}

fn ansible(plan: &HostPlan) -> String {
    let mut text = String::new();
    for (name, change) in sysctls(plan) {
        text += &comment("", change);
        text += &format!(
            "- name: Set {name}\n  ansible.posix.sysctl:\n    name: {name}\n    value: \"{}\"\n    \
             sysctl_file: /etc/sysctl.d/60-fullpipe.conf\n    reload: true\n",
            change.to
        );
    }
    for change in all(plan).filter(|change| !matches!(change.knob, Knob::Sysctl(_))) {
        text += &format!(
            "- name: Set {}\n  ansible.builtin.shell: {}\n",
            change.knob,
            change.command()
        );
    }
    nothing(text)
}

/// Everything that can be tuned: whose it is, and who may set it.
pub fn settings(layout: Layout) -> String {
    let language = layout.language;
    let [setting, whose, pod, what] = match language {
        Language::English => ["setting", "belongs to", "in a pod", "what it is"],
        Language::Chinese => ["设置", "属于", "在 pod 中", "含义"],
    };
    let mut table = Table::new([
        Column::text(setting),
        Column::text(whose).leaves(2),
        Column::text(pod).leaves(1),
        Column::text(what),
    ]);
    let [machine, namespace, no, only_unsafe] = match language {
        Language::English => ["machine", "namespace", "no", "unsafe"],
        Language::Chinese => ["机器", "命名空间", "不可", "unsafe"],
    };
    for sysctl in Sysctl::ALL {
        let (whose, pod) = match (sysctl.scope(), sysctl.kubernetes(), language) {
            (Scope::Machine, _, _) => (machine, no.to_string()),
            (Scope::Namespace, Some(since), Language::English) => {
                (namespace, format!("since {since}"))
            }
            (Scope::Namespace, Some(since), Language::Chinese) => {
                (namespace, format!("自 {since} 起"))
            }
            (Scope::Namespace, None, _) => (namespace, only_unsafe.to_string()),
        };
        let what = words::what(language, sysctl);
        table.row([sysctl.name().into(), whose.into(), pod, what.into()]);
    }
    for (name, english, chinese) in [
        (
            "device NAME txqueuelen",
            "packets that the device's queue holds",
            "设备队列容纳的数据包数",
        ),
        (
            "route DEST dev NAME initcwnd",
            "segments sent before the first acknowledgement",
            "第一个 ACK 之前发送的报文段数",
        ),
        (
            "route DEST dev NAME initrwnd",
            "segments advertised in the handshake",
            "握手中通告的报文段数",
        ),
        (
            "route DEST dev NAME quickack",
            "every segment is acknowledged at once",
            "每个报文段都立即确认",
        ),
    ] {
        let what = if language == Language::English { english } else { chinese };
        table.row([name.into(), namespace.into(), "NET_ADMIN".into(), what.into()]);
    }
    table.render(layout)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Charset;
    use fullpipe_model::tune::{
        HostQuestion, HostSettings, HostState, Path, Role, Shown, plan_host,
    };

    /// A machine of Linux 6.1; in a container it shows nothing of the machine's.
    fn planned(in_container: bool) -> HostPlan {
        let settings = HostSettings::defaults("6.1".parse().unwrap());
        let mut shown = std::collections::BTreeMap::new();
        let mut show = |name: &str, value: &str| {
            let knob: Knob = name.parse().unwrap();
            let value = knob.read(value).unwrap();
            shown.insert(knob, Shown { value, is_settable: true });
        };
        show("net.ipv4.tcp_rmem", "4096 131072 6291456");
        show("net.ipv4.tcp_wmem", "4096 16384 4194304");
        show("net.ipv4.tcp_slow_start_after_idle", "1");
        if !in_container {
            show("net.core.rmem_max", "212992");
            show("device eth0 txqueuelen", "1000");
            show("route default dev eth0 initcwnd", "0");
        }
        let state = HostState {
            settings,
            shown,
            memory_available: Some("8GiB".parse().unwrap()),
            congestion_controls: Vec::new(),
        };
        let wishes = [
            "net.core.rmem_max=16777216",
            "device eth0 txqueuelen=5000",
            "route default dev eth0 initcwnd=32",
        ];
        let question = HostQuestion {
            path: Path::new("1gbit".parse().unwrap(), "146ms".parse().unwrap()),
            role: Role::Both,
            connections: 1,
            memory: None,
            loss: None,
            pauses: true,
            black_hole: false,
            wishes: wishes.map(|wish| wish.parse().unwrap()).into(),
        };
        plan_host(&question, &state)
    }

    fn rendered(in_container: bool, form: Form) -> String {
        let layout = Layout { width: Some(80), charset: Charset::Ascii, ..Layout::default() };
        render(&planned(in_container), form, layout)
    }

    #[test]
    fn a_plan_reads_as_what_is_to_be_expected_then_commands_with_reasons() {
        let text = rendered(false, Form::Text);
        assert!(text.starts_with("Expected: "), "{text}");
        assert!(text.contains("\nsysctl -w net.ipv4.tcp_wmem=\"$(sysctl -n "), "{text}");
        assert!(text.contains(", becomes 4096 16384 "), "{text}");
        assert!(text.contains(
            "\ntest \"0$(cat /sys/class/net/eth0/tx_queue_len)\" -ge 5000 || ip link set dev eth0 \
             txqueuelen 5000\n"
        ));
        assert!(text.contains(
            " -ge 32 || ip route change $(ip route show default dev eth0 | head -n 1) dev eth0 \
             initcwnd 32\n"
        ));
        assert!(!text.contains("On the machine"), "{text}");
        let inside = rendered(true, Form::Text);
        let (here, there) = inside.split_once("On the machine").unwrap();
        assert!(here.contains("tcp_wmem") && !here.contains("rmem_max="), "{inside}");
        assert!(there.contains("if ($1 < 16777216) $1 = 16777216"), "{inside}");
    }

    #[test]
    fn a_pod_gets_what_a_pod_may_set() {
        let text = rendered(false, Form::Kubernetes);
        let expected = "    # every pod may set it since Kubernetes 1.32\n    - name: net.ipv4.tcp_rmem\n      value: \"4096 131072 ";
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("--allowed-unsafe-sysctls=net.ipv4.tcp_slow_start_after_idle"));
        assert!(text.contains("# no pod can set this, the node can: net.core.rmem_max = 16777216"));
        assert!(!text.contains("- name: net.core.rmem_max"), "{text}");
    }

    #[test]
    fn what_is_pasted_has_every_value() {
        let plan = planned(false);
        for form in [Form::Sysctl, Form::Kubernetes, Form::Docker, Form::Systemd, Form::Ansible] {
            let text = rendered(false, form);
            for change in &plan.changes {
                assert!(
                    text.contains(&change.to.to_string()),
                    "{form:?} has no {}: {text}",
                    change.knob
                );
            }
        }
        assert!(
            rendered(false, Form::Docker).starts_with("docker run --sysctl net.ipv4.tcp_wmem=")
        );
        let ansible = rendered(false, Form::Ansible);
        assert_eq!(ansible.matches("ansible.posix.sysctl:").count(), 4, "{ansible}");
        let systemd = rendered(false, Form::Systemd);
        assert!(systemd.contains("InitialCongestionWindow=32\n"), "{systemd}");
        // What sysctl(8) reads: every line is a comment or a name and its value.
        for line in rendered(false, Form::Sysctl).lines().filter(|line| !line.starts_with('#')) {
            let (name, value) = line.split_once(" = ").unwrap();
            name.parse::<Knob>().unwrap().checked(value).unwrap();
        }
    }

    #[test]
    fn the_table_has_every_setting_and_whose_it_is() {
        let text = settings(Layout { charset: Charset::Ascii, ..Layout::default() });
        for sysctl in Sysctl::ALL {
            assert!(text.contains(sysctl.name()), "{text}");
        }
        let line = |name: &str| text.lines().find(|line| line.contains(name)).unwrap().to_string();
        assert!(line("rmem_max").contains("machine"));
        assert!(line("tcp_rmem").contains("since 1.32"));
    }
}
