//! What Linux refuses, and what namespaces and journals need.

use super::{Sentence, told, within};
use crate::sentence::phrases::chinese as phrase;
use fullpipe_agent::AgentError;
use fullpipe_kernel::Refused;
use fullpipe_kernel::file::folder::NotOurs;
use fullpipe_kernel::host::sysctl::{NameError, SysctlError};
use fullpipe_kernel::network::packet_filter::{ENDS_MAX, TooManyEnds};
use fullpipe_kernel::network::port::PortError;
use fullpipe_kernel::run::journal::{Action, JournalError};
use fullpipe_kernel::run::sandbox::{SandboxError, UserNamespaceLimits};

impl From<&Refused> for Sentence {
    fn from(refused: &Refused) -> Sentence {
        let Refused { operation, subject, cause, hint } = refused;
        let mut chinese = format!("{}：{subject}：{cause}", phrase(operation));
        if !hint.is_empty() {
            chinese += &format!("；{}", phrase(hint));
        }
        told(refused, chinese)
    }
}

impl From<&SysctlError> for Sentence {
    fn from(error: &SysctlError) -> Sentence {
        let chinese = match error {
            SysctlError::Global { name, place } => format!(
                "设置 sysctl：{place} 中的 {name}：它属于整台机器，不属于网络命名空间；请不要设置它，\
                 或者如果确实需要，用 `sysctl -w` 在机器上设置"
            ),
            SysctlError::NotKept { name, place, wanted, got } => format!(
                "设置 sysctl：{place} 中的 {name}：写入 '{wanted}'，读回 '{got}'；请写入内核会保留的值"
            ),
            SysctlError::Refused(refused) => within(refused),
        };
        told(error, chinese)
    }
}

impl From<&NameError> for Sentence {
    fn from(error: &NameError) -> Sentence {
        let chinese = match error {
            NameError::NotNet(name) => format!(
                "sysctl '{name}'：只有网络的设置可以按主机设定；写法示例：net.ipv4.tcp_rmem"
            ),
            NameError::NotAName(name) => {
                format!("sysctl '{name}'：不是名字；请写以点连接的单词，例如 net.ipv4.tcp_rmem")
            }
        };
        told(error, chinese)
    }
}

impl From<&JournalError> for Sentence {
    fn from(error: &JournalError) -> Sentence {
        let chinese = match error {
            JournalError::Io { operation, path, cause, hint } => {
                format!("{}：{}：{cause}；{}", phrase(operation), path.display(), phrase(hint))
            }
            JournalError::NotOurs { path, problem } => format!(
                "使用日志记录目录：{}：{}；请删除它，或把 XDG_RUNTIME_DIR 设为自己的目录",
                path.display(),
                phrase(problem)
            ),
        };
        told(error, chinese)
    }
}

impl From<&Action> for Sentence {
    fn from(action: &Action) -> Sentence {
        let chinese = match action {
            Action::Killed(process) => format!("已终止进程 {}（{}）", process.pid, process.role),
            Action::Removed(path) => format!("已删除目录 {}", path.display()),
            Action::Ignored { line, reason } => format!("未处理 '{line}'：{reason}"),
            Action::Failed { subject, reason } => format!("未能清理 {subject}：{reason}"),
        };
        told(action, chinese)
    }
}

impl From<&NotOurs> for Sentence {
    fn from(error: &NotOurs) -> Sentence {
        told(error, format!("{}：{}", error.path.display(), phrase(error.problem)))
    }
}

impl From<&UserNamespaceLimits> for Sentence {
    fn from(limits: &UserNamespaceLimits) -> Sentence {
        let UserNamespaceLimits {
            unprivileged_userns_clone: clone,
            max_user_namespaces: most,
            apparmor_restrict_unprivileged_userns: restricted,
        } = *limits;
        let [shown_clone, shown_most, shown_restricted] = [clone, most, restricted]
            .map(|value| value.map_or("不存在".to_string(), |value| format!("为 {value}")));
        let advice = match (clone, most, restricted) {
            (Some(0), _, _) => "用 `sudo sysctl -w kernel.unprivileged_userns_clone=1` 允许它",
            (_, Some(0), _) => "用 `sudo sysctl -w user.max_user_namespaces=10000` 允许它",
            (_, _, Some(1)) => {
                "用 `sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0` 允许它"
            }
            _ => "在容器中以 `--privileged` 或允许 unshare 的 seccomp 配置启动",
        };
        let chinese = format!(
            "kernel.unprivileged_userns_clone {shown_clone}，user.max_user_namespaces {shown_most}，\
             kernel.apparmor_restrict_unprivileged_userns {shown_restricted}；请以 root 运行，或{advice}"
        );
        told(limits, chinese)
    }
}

impl From<&SandboxError> for Sentence {
    fn from(error: &SandboxError) -> Sentence {
        let chinese = match error {
            SandboxError::Threads(count) => {
                format!("启动沙箱：此进程有 {count} 个线程；请在 main 中、任何线程之前启动它")
            }
            SandboxError::NoPrivilege { cause, limits } => {
                format!("创建命名空间：{cause}；{}", within(limits))
            }
            SandboxError::RootWithoutCapabilities(cause) => format!(
                "创建命名空间：{cause}；这个 root 没有 CAP_SYS_ADMIN 和 CAP_SETFCAP：请以普通用户运行，\
                 或以 `--cap-add SYS_ADMIN --cap-add NET_ADMIN` 或 `--privileged` 启动容器"
            ),
            SandboxError::Killed { role, signal, hint } => {
                format!("在沙箱中运行：{role} 被 {signal} 终止；{}", phrase(hint))
            }
            SandboxError::Journal(error) => within(error),
            SandboxError::Refused(refused) => within(refused),
        };
        told(error, chinese)
    }
}

impl From<&PortError> for Sentence {
    fn from(error: &PortError) -> Sentence {
        let chinese = match error {
            PortError::Neither { tun, veth } => format!(
                "创建端口：没有 TUN 设备（{}），也没有 veth 对（{}）",
                within(&**tun),
                within(&**veth)
            ),
            PortError::Refused(refused) => within(refused),
        };
        told(error, chinese)
    }
}

impl From<&AgentError> for Sentence {
    fn from(error: &AgentError) -> Sentence {
        let chinese = match error {
            AgentError::NoBtf => "加载 BPF 程序：没有 /sys/kernel/btf/vmlinux；代理需要带 \
                                  CONFIG_DEBUG_INFO_BTF 的内核（Debian、Ubuntu、Fedora 和 RHEL 的都有）"
                .into(),
            AgentError::Cgroup { path, cause } => format!(
                "打开控制组 {}：{cause}；请给出 cgroup v2 的目录，例如 \
                 /sys/fs/cgroup/system.slice/nginx.service",
                path.display()
            ),
            AgentError::NotPermitted { operation, cause } => format!(
                "{}：{cause}；需要 root，或 CAP_BPF 和 CAP_NET_ADMIN，并且内核的 lockdown 允许 BPF\
                 （/sys/kernel/security/lockdown）",
                phrase(operation)
            ),
            AgentError::Refused { operation, cause } => format!(
                "{}：{cause}；代理需要 Linux 6.6 或更新版本，并有 cgroup v2",
                phrase(operation)
            ),
        };
        told(error, chinese)
    }
}

impl From<&TooManyEnds> for Sentence {
    fn from(error: &TooManyEnds) -> Sentence {
        let TooManyEnds { kind, count } = error;
        let kind = if *kind == "ports" { "端口" } else { "地址" };
        told(error, format!("过滤数据包：{count} 个{kind}太多；最多给出 {ENDS_MAX} 个"))
    }
}
