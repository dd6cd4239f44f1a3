//! Results and archives that cannot be written, resumed or merged.

use super::{Sentence, told, within};
use crate::sentence::phrases::chinese as phrase;
use fullpipe_archive::{FolderError, ManifestError};
use fullpipe_lab::{MergeError, ResultsError};

impl From<&ResultsError> for Sentence {
    fn from(error: &ResultsError) -> Sentence {
        let chinese = match error {
            ResultsError::File { operation, path, cause } => format!(
                "{} {}：{cause}；请腾出空间，或用 --output 换一个位置",
                phrase(operation),
                path.display()
            ),
            ResultsError::NotEmpty(path) => {
                format!("写入结果 {}：其中已有内容；请用 --output 换一个位置", path.display())
            }
            ResultsError::Resumable { folder, done, total } => format!(
                "写入结果 {}：其中已有这些场景 {total} 次运行中的 {done} 次；请用 --resume 继续，或用 --output \
                 换一个位置",
                folder.display()
            ),
            ResultsError::NotOurs(error) => {
                format!("使用结果目录 {}；请用 --output 换一个位置", within(error))
            }
            ResultsError::Manifest(cause) => {
                format!(
                    "续跑：与已有结果不符；请给出相同的场景和选项，或用 --output 换一个位置（{cause}）"
                )
            }
        };
        told(error, chinese)
    }
}

impl From<&MergeError> for Sentence {
    fn from(error: &MergeError) -> Sentence {
        let chinese = match error {
            MergeError::Nothing => "合并分片：没有给出".into(),
            MergeError::Unreadable { path, cause } => format!(
                "读取分片 {}：{cause}；请给出 `fullpipe lab run --shard` 写出的文件夹",
                path.display()
            ),
            MergeError::Whole(path) => format!(
                "合并 {}：它是完整的一批；请给出 `fullpipe lab run --shard` 写出的文件夹",
                path.display()
            ),
            MergeError::Unfinished { path, shard, done, total } => format!(
                "合并 {path} 中的分片 {shard}：{total} 次运行完成了 {done} 次；请用同一命令加 --output {path} \
                 --resume 完成",
                path = path.display()
            ),
            MergeError::Different { paths: [a, b], difference } => format!(
                "合并 {} 与 {}：它们属于不同的批次（{difference}）；请用相同的场景和选项生成所有分片",
                a.display(),
                b.display()
            ),
            MergeError::Twice { shard, paths: [a, b] } => format!(
                "合并 {} 与 {}：两者都是分片 {shard}；每个分片请只给一次",
                a.display(),
                b.display()
            ),
            MergeError::Missing { missing, of } => {
                let missing: Vec<String> =
                    missing.iter().map(|number| format!("{number}/{of}")).collect();
                format!(
                    "合并 {of} 个分片：缺少 {}；请分别运行 `fullpipe lab run --shard NUMBER/{of}`，或给出其文件夹",
                    missing.join("、")
                )
            }
            MergeError::Results(error) => within(error),
        };
        told(error, chinese)
    }
}

impl From<&FolderError> for Sentence {
    fn from(error: &FolderError) -> Sentence {
        let chinese = match error {
            FolderError::HoldsSomethingElse => {
                "其中是别的东西；请用新的或空的文件夹，或续写早先的行".into()
            }
            FolderError::PartMissing(part) => {
                format!("{part} 缺失或不是当初写入的；请在另一个文件夹重新开始")
            }
            FolderError::Folder(cause) => cause.to_string(),
            FolderError::Manifest(error) => within(error),
        };
        told(error, chinese)
    }
}

impl From<&ManifestError> for Sentence {
    fn from(error: &ManifestError) -> Sentence {
        let chinese = match error {
            ManifestError::Exists => "其中已有早先一次运行的行".into(),
            ManifestError::Busy => "另一个 fullpipe 正在写入；请等它结束，或换一个文件夹".into(),
            ManifestError::Other(how) => {
                format!("其中的行以 {how} 生成；请用相同选项续写，或换一个文件夹")
            }
            ManifestError::Damaged { line, cause } => {
                format!("清单第 {line} 行：{cause}；请换一个文件夹")
            }
            ManifestError::File(cause) => format!("清单：{cause}"),
        };
        told(error, chinese)
    }
}
