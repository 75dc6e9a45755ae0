//! Files of users in the working folders of the programs. They must not change.

use super::random::Random;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Names of the files. Some resemble names that feedrate uses.
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

/// The files of users in a case.
#[derive(Default)]
pub(super) struct UserFiles(Vec<UserFile>);

struct UserFile {
    path: PathBuf,
    content: Vec<u8>,
    modified: SystemTime,
}

impl UserFiles {
    /// Creates files with some of [`NAMES`]. Creates the folder if necessary.
    pub(super) fn create(&mut self, folder: &Path, random: &mut Random) -> Result<()> {
        for _ in 0..3 {
            let path = folder.join(random.pick(NAMES));
            if !path.exists() {
                self.create_file(path, random)?;
            }
        }
        Ok(())
    }

    pub(super) fn create_file(&mut self, path: PathBuf, random: &mut Random) -> Result<()> {
        fs::create_dir_all(path.parent().context("the path has no folder")?)?;
        let content = format!("mine: {}\n", random.draw()).into_bytes();
        fs::write(&path, &content)?;
        let modified = path.metadata()?.modified()?;
        self.0.push(UserFile { path, content, modified });
        Ok(())
    }

    pub(super) fn has(&self, path: &Path) -> bool {
        self.0.iter().any(|file| file.path == path)
    }

    /// Checks that all files are unchanged.
    pub(super) fn check_unchanged(&self) -> Result<()> {
        for UserFile { path, content, modified } in &self.0 {
            let current = fs::read(path)
                .with_context(|| format!("gone: a file of a user, {}", path.display()))?;
            let is_unchanged = current == *content && path.metadata()?.modified()? == *modified;
            ensure!(is_unchanged, "changed: a file of a user, {}", path.display());
        }
        Ok(())
    }
}
