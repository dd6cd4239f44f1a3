//! Objects that a store does not take.

use super::{Sentence, told};
use fullpipe_transfer::{ParseStoreError, StoreError};
use std::error::Error;

/// Of an option's value.
pub fn of_value(cause: &(dyn Error + 'static)) -> Option<Sentence> {
    cause.downcast_ref::<ParseStoreError>().map(Sentence::from)
}

impl From<&ParseStoreError> for Sentence {
    fn from(error: &ParseStoreError) -> Sentence {
        let text = &error.text;
        let chinese = format!("'{text}' 不是存储地址；写法示例：s3://bucket/fullpipe/host=NAME/");
        told(error, chinese)
    }
}

impl From<&StoreError> for Sentence {
    fn from(error: &StoreError) -> Sentence {
        let chinese = match error {
            StoreError::Access { store, problem } => {
                format!("上传到 {store}：缺少访问所需的设置（{problem}）")
            }
            StoreError::Runtime(cause) => {
                format!("启动上传的事件循环：{cause}；进程的文件描述符可能已用完（见 ulimit -n）")
            }
            StoreError::Broken { store, problem } => {
                format!("上传到 {store}：{problem}；请检查 AWS_ENDPOINT_URL 和沿途网络")
            }
            StoreError::Tls { store, problem } => format!(
                "上传到 {store}：TLS：{problem}；请安装 ca-certificates，或用 AWS_CA_BUNDLE 给出证书颁发者的文件"
            ),
            StoreError::Refused { store, status, code, region } => {
                let code = if code.is_empty() { String::new() } else { format!("（{code}）") };
                let advice = match (region, status.as_u16()) {
                    (Some(region), 301 | 307 | 400) => {
                        format!("；存储桶在 {region}：请设置 AWS_REGION={region}")
                    }
                    (_, 301 | 307 | 400) => "；请检查 AWS_REGION 和 AWS_ENDPOINT_URL".into(),
                    (_, 401 | 403) => "；请检查密钥、时钟，以及是否允许 s3:PutObject".into(),
                    (_, 404) => "；请创建存储桶，或检查其名称".into(),
                    _ => String::new(),
                };
                format!("上传到 {store}：存储应答 {status}{code}{advice}")
            }
            StoreError::Stopped { store } => format!("上传到 {store}：已中断"),
        };
        told(error, chinese)
    }
}
