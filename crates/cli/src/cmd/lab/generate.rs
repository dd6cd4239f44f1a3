//! `fullpipe lab generate`: random scenarios whose limit is known.

use crate::failure::{Failure, Kind};
use crate::terminal::{print, remark};
use clap::Args;
use fullpipe_model::scenario::{Generated, generate};
use std::path::{Path, PathBuf};

/// The most scenarios in one set: their numbers have four digits.
const COUNT_MAX: u32 = 10_000;

/// Write random scenarios, each built so that one known cause limits it.
///
/// A cause is drawn first, then a path, hosts and a transfer for which it is the limit; `[truth]`
/// in the file names it. Scenario N of a seed is always the same, whatever the count.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe lab generate --seed 1 --count 1 > one.toml
  fullpipe lab generate --seed 1 --count 200 --output set-1
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
    /// Folder for one file each; without it the scenarios are printed one after another.
    #[arg(short, long = "output", alias = "out", value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Generate {
    pub fn run(self) -> Result<u8, Failure> {
        let generated: Vec<Generated> =
            (0..self.count).map(|index| generate(self.seed, index)).collect();
        match &self.out {
            Some(folder) => {
                write(folder, &generated)?;
                remark(&format!(
                    "fullpipe: {} scenarios are in {}",
                    generated.len(),
                    folder.display()
                ));
            }
            None => {
                let texts: Vec<&str> = generated.iter().map(|one| one.text.as_str()).collect();
                print(&texts.join("\n"))?;
            }
        }
        Ok(0)
    }
}

fn write(folder: &Path, generated: &[Generated]) -> Result<(), Failure> {
    let failed = |path: &Path, cause: std::io::Error| {
        let shown = path.display();
        Failure::new(
            Kind::Run,
            format!("write scenarios to {shown}: {cause}; choose another place with --output"),
        )
    };
    std::fs::create_dir_all(folder).map_err(|cause| failed(folder, cause))?;
    for one in generated {
        let path = folder.join(one.file_name());
        std::fs::write(&path, &one.text).map_err(|cause| failed(&path, cause))?;
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
        Generate { seed: 3, count: 5, out: Some(out.clone()) }.run().unwrap();
        assert_eq!(std::fs::read_dir(&out).unwrap().count(), 5);
        let one = generate(3, 4);
        assert_eq!(std::fs::read_to_string(out.join(one.file_name())).unwrap(), one.text);
    }
}
