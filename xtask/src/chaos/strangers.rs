//! Files of somebody else, planted where the programs work: nobody may touch them.

use super::random::Random;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Some that look like ours, and some that do not.
const NAMES: &[&str] = &[
    "thesis.txt",
    "mine/a.bin",
    ".mydownload.part",
    "manifest.json.bak",
    ".manifest.json.old",
    "img_00.npz.orig",
    "summary (copy).json",
    "backup.deleted/notes",
    "global_epoch1_step1.mine/model.pt",
];

/// All that were planted in a case.
#[derive(Default)]
pub(super) struct Strangers(Vec<Stranger>);

struct Stranger {
    path: PathBuf,
    content: Vec<u8>,
    modified: SystemTime,
}

impl Strangers {
    /// Plant some of [`NAMES`] in a folder, which is made.
    pub(super) fn plant(&mut self, folder: &Path, random: &mut Random) -> Result<()> {
        for _ in 0..3 {
            let path = folder.join(random.pick(NAMES));
            if !path.exists() {
                self.plant_file(path, random)?;
            }
        }
        Ok(())
    }

    pub(super) fn plant_file(&mut self, path: PathBuf, random: &mut Random) -> Result<()> {
        fs::create_dir_all(path.parent().context("a file lies in a folder")?)?;
        let content = format!("mine: {}\n", random.draw()).into_bytes();
        fs::write(&path, &content)?;
        let modified = path.metadata()?.modified()?;
        self.0.push(Stranger { path, content, modified });
        Ok(())
    }

    pub(super) fn has(&self, path: &Path) -> bool {
        self.0.iter().any(|stranger| stranger.path == path)
    }

    /// See that all are as they were.
    pub(super) fn are_untouched(&self) -> Result<()> {
        for Stranger { path, content, modified } in &self.0 {
            let now = fs::read(path)
                .with_context(|| format!("gone: a file of others, {}", path.display()))?;
            let same = now == *content && path.metadata()?.modified()? == *modified;
            ensure!(same, "changed: a file of others, {}", path.display());
        }
        Ok(())
    }
}
