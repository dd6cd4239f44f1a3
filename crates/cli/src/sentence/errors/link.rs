//! Links that cannot be made, and commands that do not start behind one.

use super::{Sentence, told, within};
use crate::sentence::phrases::chinese as phrase;
use fullpipe_link::{
    CarrierError, CommandLinkError, EmulatorError, LogFileError, NatError, NetemLinkError, RunError,
};

impl From<&EmulatorError> for Sentence {
    fn from(error: &EmulatorError) -> Sentence {
        let chinese = match error {
            EmulatorError::Memory { rate, delay, needed, available } => format!(
                "模拟链路：{rate}、{delay} 及其队列需要 {needed:#} 的数据包内存，可用的是 {available:#}；\
                 请降低速率、时延或队列"
            ),
            EmulatorError::Ended { operation, device } => {
                format!("{}：读取 {device} 的线程已结束；停止链路可知原因", phrase(operation))
            }
            EmulatorError::Capture(cause) => {
                format!("写入抓包失败（{cause}）；请腾出空间，或换一个位置")
            }
            EmulatorError::Thread(cause) => format!("启动链路的线程：{cause}"),
            EmulatorError::Port { device, cause } => format!("读取链路的 {device}：{cause}"),
        };
        told(error, chinese)
    }
}

impl From<&NetemLinkError> for Sentence {
    fn from(error: &NetemLinkError) -> Sentence {
        let chinese = match error {
            NetemLinkError::Refused(refused) => within(refused),
            NetemLinkError::Foreign(what) => {
                format!("用 netem 模拟链路：{what}；请去掉它，或使用自有链路（engine \"own\"）")
            }
            NetemLinkError::Watch(cause) => format!("观察链路两端：{cause}"),
        };
        told(error, chinese)
    }
}

impl From<&CarrierError> for Sentence {
    fn from(error: &CarrierError) -> Sentence {
        let chinese = match error {
            CarrierError::Ports(error) => within(error),
            CarrierError::Emulator(error) => within(error),
            CarrierError::Netem(error) => within(error),
        };
        told(error, chinese)
    }
}

impl From<&NatError> for Sentence {
    fn from(error: &NatError) -> Sentence {
        let chinese = match error {
            NatError::NoForwarding => "转发命令的数据包：本机的 net.ipv4.ip_forward 为 0；请去掉 --nat\
                                       （网关对机器没有要求），或用 `sysctl -w net.ipv4.ip_forward=1` 允许转发"
                .into(),
            NatError::NoRoot => "转发命令的数据包：--nat 要在本机自己的网络中创建设备，需要 root；请用 sudo \
                                 运行，或去掉 --nat：网关不需要特权"
                .into(),
            NatError::Sysctl(error) => within(error),
            NatError::Refused(refused) => within(refused),
        };
        told(error, chinese)
    }
}

impl From<&RunError> for Sentence {
    fn from(error: &RunError) -> Sentence {
        let chinese = match error {
            RunError::NoCommand => "启动命令：没有给出；请写在 `--` 之后".into(),
            RunError::NotFound(program) => {
                format!("启动 {program}：没有安装，或不在 PATH 中；请安装它，或给出其文件")
            }
            RunError::Process { operation, program, cause } => format!(
                "{} {program}：{cause}；请检查它是否是程序，以及您能否运行它",
                phrase(operation)
            ),
            RunError::EndedEarly { program, status } => format!(
                "启动 {program}：它在监听之前就结束了（{status}）；请看它的输出，并让它留在前台"
            ),
            RunError::NotListening { program, within } => {
                format!("启动 {program}：它在 {within} 内没有监听任何端口；请检查其参数")
            }
            RunError::Refused(refused) => within(refused),
        };
        told(error, chinese)
    }
}

impl From<&CommandLinkError> for Sentence {
    fn from(error: &CommandLinkError) -> Sentence {
        let chinese = match error {
            CommandLinkError::Refused(refused) => within(refused),
            CommandLinkError::Gateway(refused) => {
                format!("{}；或者也启动另一端（--server），它不需要网关", within(refused))
            }
            CommandLinkError::Nat(error) => within(error),
            CommandLinkError::File { path, cause } => {
                format!("写入 {}：{cause}；请腾出空间", path.display())
            }
            CommandLinkError::Journal(error) => within(error),
            CommandLinkError::Run(error) => within(error),
        };
        told(error, chinese)
    }
}

impl From<&LogFileError> for Sentence {
    fn from(error: &LogFileError) -> Sentence {
        let chinese = match error {
            LogFileError::File { operation, path, cause } => {
                format!("{} {}：{cause}", phrase(operation), path.display())
            }
            LogFileError::Content { path, cause } => format!("{}：{cause}", path.display()),
        };
        told(error, chinese)
    }
}
