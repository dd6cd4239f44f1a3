//! `fullpipe lab generate`: random scenarios whose limit is known.

use crate::failure::{Failure, Kind};
use crate::sentence::{Sentence, either};
use crate::terminal::{print, remark};
use clap::Args;
use fullpipe_model::scenario::{generate, world};
use std::path::{Path, PathBuf};

/// The most scenarios in one set: their numbers have four digits.
const COUNT_MAX: u32 = 10_000;

/// Write random scenarios, each built so that one known cause limits it.
///
/// A cause is drawn first, then a path, hosts and a transfer for which it is the limit; `[truth]`
/// in the file names it. Scenario N of a seed is always the same, whatever the count.
///
/// With `--worlds` nothing is drawn for a cause: hosts, path and applications are drawn from what
/// is common, and each of a world's limits is lifted alone in a file of its own, so that the runs
/// tell what limited it.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe lab generate --seed 1 --count 1 > one.toml
  fullpipe lab generate --seed 1 --count 200 --output set-1
  fullpipe lab generate --worlds --seed 1 --count 1 --output world
  fullpipe lab run set-1/0007-*.toml --engine virtual --keep-captures --output results")]
pub struct Generate {
    /// The seed of the set.
    #[arg(long, value_name = "SEED")]
    seed: u64,
    /// Number of scenarios.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..=COUNT_MAX as i64)
    )]
    count: u32,
    /// Worlds that are drawn for no cause, each also with every one of its limits lifted.
    #[arg(long)]
    worlds: bool,
    /// Folder for one file each; without it the scenarios are printed one after another.
    #[arg(short, long = "output", alias = "out", value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Generate {
    pub fn run(self) -> Result<u8, Failure> {
        let files = self.files();
        match &self.out {
            Some(folder) => {
                write(folder, &files)?;
                let (count, shown) = (files.len(), folder.display());
                remark(&either(
                    format!("fullpipe: {count} scenarios are in {shown}"),
                    format!("fullpipe: {count} 个场景在 {shown}"),
                ));
            }
            None => {
                let texts: Vec<&str> = files.iter().map(|(_, text)| text.as_str()).collect();
                print(&texts.join("\n"))?;
            }
        }
        Ok(0)
    }

    /// The names of the files, and what each says.
    fn files(&self) -> Vec<(String, String)> {
        let indices = 0..self.count;
        if !self.worlds {
            let scenarios = indices.map(|index| generate(self.seed, index));
            return scenarios.map(|one| (one.file_name(), one.text)).collect();
        }
        let files = indices.flat_map(|index| {
            let drawn = world(self.seed, index);
            let own = (drawn.file_name(None), drawn.text.clone());
            let lifted = drawn.lifted.iter();
            let lifted = lifted.map(|(cause, text)| (drawn.file_name(Some(*cause)), text.clone()));
            std::iter::once(own).chain(lifted).collect::<Vec<_>>()
        });
        files.collect()
    }
}

fn failed(path: &Path, cause: std::io::Error) -> Failure {
    let shown = path.display();
    let told = Sentence::new(
        format!("write scenarios to {shown}: {cause}; choose another place with --output"),
        format!("写入场景到 {shown}：{cause}；请用 --output 换一个位置"),
    );
    Failure::new(Kind::Run, told)
}

fn write(folder: &Path, files: &[(String, String)]) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|cause| failed(folder, cause))?;
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(|cause| failed(&path, cause))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_written_as_files_that_are_its_scenarios() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("set");
        Generate { seed: 3, count: 5, worlds: false, out: Some(out.clone()) }.run().unwrap();
        assert_eq!(std::fs::read_dir(&out).unwrap().count(), 5);
        let one = generate(3, 4);
        assert_eq!(std::fs::read_to_string(out.join(one.file_name())).unwrap(), one.text);
    }

    #[test]
    fn a_world_has_a_file_for_each_limit_that_is_lifted() {
        let files = Generate { seed: 3, count: 4, worlds: true, out: None }.files();
        let expected: usize = (0..4).map(|index| 1 + world(3, index).lifted.len()).sum();
        assert_eq!(files.len(), expected);
        assert_eq!(files[0].0, "0000.toml");
        assert!(files[1..].iter().any(|(name, _)| name == "0000.without-link.toml"));
    }
}
