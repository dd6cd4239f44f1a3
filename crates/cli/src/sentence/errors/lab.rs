//! Runs of the lab that fail, and what they need.

use super::{Sentence, told, within};
use crate::sentence::phrases::chinese as phrase;
use fullpipe_lab::{
    BuildError, CacheError, ExperimentError, GuestError, HostsError, InstallError, LabError,
    LoadError, ProgramError,
};

impl From<&LabError> for Sentence {
    fn from(error: &LabError) -> Sentence {
        let chinese = match error {
            LabError::Run { name, cause } => format!("{name}：{}", within(cause)),
            LabError::Guest { name, cause } => format!("{name}：{}", within(&**cause)),
            LabError::Prepare { operation, cause } => format!("{}：{cause}", phrase(operation)),
            LabError::Results(error) => within(error),
            LabError::Journal(error) => within(error),
        };
        told(error, chinese)
    }
}

impl From<&ExperimentError> for Sentence {
    fn from(error: &ExperimentError) -> Sentence {
        let chinese = match error {
            ExperimentError::Hosts(error) => within(error),
            ExperimentError::Carrier(error) => within(error),
            ExperimentError::Program(error) => within(error),
            ExperimentError::Merge(cause) => format!("写出抓包：{cause}"),
            ExperimentError::Refused(refused) => within(refused),
            ExperimentError::NoConnection => "分析运行：抓包中没有从客户端到服务器的连接".into(),
            ExperimentError::Interrupted => "已中断".into(),
        };
        told(error, chinese)
    }
}

impl From<&ProgramError> for Sentence {
    fn from(error: &ProgramError) -> Sentence {
        let chinese = match error {
            ProgramError::Missing { program, package } => format!(
                "启动 {program}：没有安装；请安装它（Debian：apt-get install {package}），或使用 \"builtin\""
            ),
            ProgramError::Process { operation, program, cause } => {
                format!("{} {program}：{cause}", phrase(operation))
            }
            ProgramError::Failed { program, status, output } => {
                format!("运行 {program}：{status}：{output}")
            }
            ProgramError::File { path, cause } => format!(
                "为服务器准备 {}：{cause}；请腾出空间，或减小 transfer.size",
                path.display()
            ),
            ProgramError::Server(error) => within(error),
            ProgramError::Client(error) => within(error),
            ProgramError::Get(error) => within(error),
            ProgramError::FarEnd(error) => within(error),
            ProgramError::NearEnd(error) => within(error),
            ProgramError::WindowAgent(cause) => format!("启动窗口代理：{cause}"),
            ProgramError::Refused(refused) => within(refused),
        };
        told(error, chinese)
    }
}

impl From<&HostsError> for Sentence {
    fn from(error: &HostsError) -> Sentence {
        let chinese = match error {
            HostsError::Refused(refused) => within(refused),
            HostsError::Junction(error) => within(error),
            HostsError::Name { host, cause } => {
                format!("设置 {host} 的 sysctl：{}", within(cause))
            }
            HostsError::Sysctl { host, cause } => {
                format!("设置 {host} 的 sysctl：{}", within(cause))
            }
            HostsError::Cpu { host, cpu, usable } => {
                let usable: Vec<String> = usable.iter().map(usize::to_string).collect();
                format!(
                    "把 {host} 的应用固定在 CPU {cpu}：可用的是 {}；请从中选择",
                    usable.join("、")
                )
            }
            HostsError::CongestionControl { host, name, cause } => format!(
                "选择 {host} 的拥塞控制算法 {name}：{}；`sysctl net.ipv4.tcp_available_congestion_control` \
                 列出已加载的，`modprobe tcp_{name}` 加载其他的",
                within(cause)
            ),
        };
        told(error, chinese)
    }
}

impl From<&GuestError> for Sentence {
    fn from(error: &GuestError) -> Sentence {
        let chinese = match error {
            GuestError::NoKernel(release) => format!(
                "启动客户机：没有内核 {release}；请用 `fullpipe lab kernel build --version {release}` 构建，或用 \
                 `fullpipe lab kernel install FILE` 安装发布版的（`fullpipe lab kernel list` 列出已有的）"
            ),
            GuestError::Unsuited(why) => {
                format!("在虚拟时间中运行：{}；请用 --engine real", unsuited(why))
            }
            GuestError::OtherKernel { asked, running } => {
                format!("在内核 {asked} 上运行：本机运行的是 {running}；请用 --engine virtual")
            }
            GuestError::AgentInRealTime => {
                "与窗口代理一起运行：实时运行时它的设置属于整台机器；请用 --engine virtual".into()
            }
            GuestError::Machine(_) if error.is_interrupt() => "已中断".into(),
            GuestError::Machine(cause) => format!("运行客户机：{cause}"),
            GuestError::Job(cause) => format!("与客户机交换文件：{cause}"),
            GuestError::Run(why) => why.clone(),
            GuestError::Journal(error) => within(error),
        };
        told(error, chinese)
    }
}

/// Why a scenario does not suit virtual time.
fn unsuited(why: &str) -> &str {
    match why {
        "a CPU hog never waits, and time passes only while everything waits" => {
            "占用 CPU 的程序从不等待，而时间只在一切都等待时流逝"
        }
        "the guest has one CPU, number 0" => "客户机只有一个 CPU，编号 0",
        other => other,
    }
}

impl From<&LoadError> for Sentence {
    fn from(error: &LoadError) -> Sentence {
        let chinese = match error {
            LoadError::Unknown(name) => {
                format!("运行场景 '{name}'：既不是文件也不是预设；`fullpipe lab list` 列出预设")
            }
            LoadError::Read { path, cause } => format!("读取场景 {path}：{cause}"),
            LoadError::Scenario { name, cause } => format!("读取场景 {name}：{}", within(cause)),
            LoadError::Circle(name) => {
                format!("读取场景 {name}：它通过 `include` 列表包含了自己")
            }
            LoadError::Deep(name) => {
                format!("读取场景 {name}：通向它的 `include` 嵌套太深")
            }
            LoadError::TooMany { runs } => format!(
                "安排运行：连同包含的共有 {runs} 次，超过一条命令的上限；请缩短 [matrix] 的列表，或减少\
                 重复或包含"
            ),
        };
        told(error, chinese)
    }
}

const NO_CACHE: &str = "查找缓存目录：XDG_CACHE_HOME 和 HOME 都不是绝对路径；请设置其一";

impl From<&CacheError> for Sentence {
    fn from(error: &CacheError) -> Sentence {
        told(
            error,
            format!(
                "无法使用缓存（{error}）；请把 XDG_CACHE_HOME 设为自己的目录（用 sudo 时：`sudo -H`）"
            ),
        )
    }
}

impl From<&BuildError> for Sentence {
    fn from(error: &BuildError) -> Sentence {
        let chinese = match error {
            BuildError::Tools { missing, packages } => format!(
                "构建内核：找不到 {missing}；请安装 {}（Debian：apt-get install {}）",
                packages.join("、"),
                packages.join(" ")
            ),
            BuildError::NoSource { package, cause } => format!(
                "取得内核源码：{}；请以 root 运行 apt-get install {package}，或用 --source 给出 tar 文件或源码树",
                within(&**cause)
            ),
            BuildError::NoCache => NO_CACHE.into(),
            BuildError::Cache(error) => within(error),
            BuildError::Version(version) => {
                format!("构建内核：版本 '{version}' 不是像 6.12 那样的两个数")
            }
            BuildError::File { operation, path, cause } => {
                format!("{} {}：{cause}", phrase(operation), path.display())
            }
            BuildError::Patch(cause) => {
                format!("修补内核源码：这是 6.1 到 6.12 的 Linux 源码吗？（{cause}）")
            }
            BuildError::Tool { operation, program, status, output } => {
                format!("{}：{program}：{status}；其最后几行：\n{output}", phrase(operation))
            }
            BuildError::Config(what) => {
                format!("配置内核：此源码不接受 {what}；请用 6.1 到 6.12 的 Linux")
            }
        };
        told(error, chinese)
    }
}

impl From<&InstallError> for Sentence {
    fn from(error: &InstallError) -> Sentence {
        const WRITTEN: &str = "请给出 `fullpipe lab kernel pack` 写出的文件";
        let chinese = match error {
            InstallError::Read { path, cause } => {
                format!("从 {} 读取内核：{cause}；{WRITTEN}", path.display())
            }
            InstallError::Digest { path, expected, found } => format!(
                "从 {} 安装内核：其 SHA-256 为 {found}，不是 {expected}：请重新获取文件和摘要",
                path.display()
            ),
            InstallError::Content { path, problem } => {
                format!("从 {} 安装内核：{problem}；{WRITTEN}", path.display())
            }
            InstallError::NoCache => NO_CACHE.into(),
            InstallError::Cache(error) => within(error),
        };
        told(error, chinese)
    }
}
