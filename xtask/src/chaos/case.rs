//! One case: a folder of its own, draws of its own, the programs in it, and strangers to be left alone.

use super::child::{DONE_WITHIN, Ended, LEAVES_WITHIN, Running, left_in};
use super::random::Random;
use super::strangers::Strangers;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A workload of so many files of so many bytes, read in batches of `batch`; `more` goes on with the settings of its reader.
pub(super) fn workload(files: u32, bytes: u32, batch: u32, more: &str) -> String {
    format!(
        "model:\n  name: tiny\nframework: pytorch\ndataset:\n  data_folder: data\n  format: npz\n  num_files_train: {files}\n  \
         record_length_bytes: {bytes}\nreader:\n  data_loader: pytorch\n  batch_size: {batch}\n{more}"
    )
}

/// Removed by the campaign where all went well, and kept where not.
pub(super) struct Case<'a> {
    pub(super) seed: u64,
    pub(super) random: Random,
    pub(super) strangers: Strangers,
    folder: PathBuf,
    programs: &'a Path,
    outputs: AtomicUsize,
    mounts: Vec<PathBuf>,
}

impl<'a> Case<'a> {
    pub(super) fn new(seed: u64, folder: PathBuf, programs: &'a Path) -> Result<Self> {
        for part in ["here", "said"] {
            fs::create_dir_all(folder.join(part))?;
        }
        Ok(Case {
            seed,
            random: Random::new(seed),
            strangers: Strangers::default(),
            folder,
            programs,
            outputs: AtomicUsize::new(0),
            mounts: Vec::new(),
        })
    }

    /// In the folder that the programs work in.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join("here").join(name)
    }

    pub(super) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> Result<()> {
        let path = self.path(name);
        fs::create_dir_all(path.parent().context("a file lies in a folder")?)?;
        fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Plant strangers in a folder of the case.
    pub(super) fn plant(&mut self, folder: &str) -> Result<()> {
        let folder = self.path(folder);
        self.strangers.plant(&folder, &mut self.random)
    }

    /// One of our programs, by its name.
    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.programs.join(name)
    }

    /// Start any program in the case's folder.
    pub(super) fn start<S: AsRef<OsStr>>(
        &self,
        program: impl AsRef<OsStr>,
        arguments: &[S],
    ) -> Result<Running> {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.path("")).env("NO_COLOR", "1");
        command.env("FEEDRATE_LOOK_S", "0");
        // Results that have no room where they belong go there.
        command.env("TMPDIR", self.folder.join("said"));
        let number = self.outputs.fetch_add(1, Ordering::Relaxed);
        Running::start(command, self.folder.join(format!("said/{number}")))
    }

    /// `dlio_benchmark` of the workload in `conf/workload/tiny.yaml`.
    pub(super) fn start_dlio(&self, more: &[&str]) -> Result<Running> {
        let words = [&["--config-dir", "conf", "workload=tiny"], more].concat();
        self.start(self.program("dlio_benchmark"), &words)
    }

    /// The same, which makes the data alone.
    pub(super) fn start_dlio_maker(&self, run_dir: &str) -> Result<Running> {
        self.start_dlio(&[
            "++workload.workflow.generate_data=True",
            "++workload.workflow.train=False",
            &format!("++hydra.run.dir={run_dir}"),
        ])
    }

    pub(super) fn start_feedrate(&self, arguments: &[&str]) -> Result<Running> {
        self.start(self.program("feedrate"), arguments)
    }

    /// `feedrate …`, to its end.
    pub(super) fn feedrate(&self, arguments: &[&str]) -> Result<Ended> {
        self.start_feedrate(arguments)?.wait()
    }

    /// Let a random part of `longest_ms` pass: nobody is told of the moment at which he is hit.
    pub(super) fn pass(&mut self, longest_ms: u64) {
        let us = self.random.below(longest_ms as usize * 1000) as u64;
        sleep(Duration::from_micros(us));
    }

    /// Every file below a folder, sorted.
    pub(super) fn files(&self, folder: &str) -> Vec<PathBuf> {
        let mut found = files_below(&self.path(folder));
        found.sort();
        found
    }

    /// Mount a file system of its own at a folder, until the case is over.
    pub(super) fn mount(&mut self, name: &str, size_kb: u64) -> Result<()> {
        let folder = self.path(name);
        fs::create_dir_all(&folder)?;
        mount(&["-t", "tmpfs", "-o", &format!("size={size_kb}k"), "tmpfs"], &folder)?;
        self.mounts.push(folder);
        Ok(())
    }

    /// Give a mounted file system more room.
    pub(super) fn enlarge(&self, name: &str) -> Result<()> {
        mount(&["-o", "remount,size=64m"], &self.path(name))
    }

    /// See what holds at the end of every case: strangers as they were, nobody left running, no half file of ours among what is whole.
    pub(super) fn is_clean(&self) -> Result<()> {
        self.strangers.are_untouched()?;
        let start = Instant::now();
        loop {
            let left = left_in(&self.path(""));
            if left.is_empty() {
                break;
            }
            ensure!(start.elapsed() < LEAVES_WITHIN, "left running: {}", left.join("; "));
            sleep(Duration::from_millis(20));
        }
        for path in self.files("") {
            let is_part = path.extension().is_some_and(|ending| ending == "part");
            let is_told = is_part && !self.strangers.has(&path) && !is_of_something_torn(&path);
            ensure!(!is_told, "left behind: {}", path.display());
        }
        Ok(())
    }
}

impl Drop for Case<'_> {
    fn drop(&mut self) {
        for folder in &self.mounts {
            let _ = Command::new("umount").arg("--lazy").arg(folder).status();
        }
    }
}

/// Below no dataset, checkpoint or run that is taken for whole.
fn is_of_something_torn(path: &Path) -> bool {
    let mut above = path.ancestors().skip(1).take(2);
    path.to_string_lossy().contains("/incomplete/")
        || !above.any(|folder| {
            let record = fs::read_to_string(folder.join("record.json")).unwrap_or_default();
            folder.join("manifest.json").exists()
                || is_whole_checkpoint(folder)
                || record.contains("\"complete\":true")
        })
}

/// Whether the manifest of the checkpoint in `folder` says that all files are there.
pub(super) fn is_whole_checkpoint(folder: &Path) -> bool {
    let files = json(&manifest_beside(folder)).map(|mut manifest| manifest["files"].take());
    let files = files.ok().and_then(|files| files.as_object().cloned());
    files.is_some_and(|files| files.values().all(Value::is_object))
}

/// That of a checkpoint in `folder`.
pub(super) fn manifest_beside(folder: &Path) -> PathBuf {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    folder.with_file_name(format!(".{name}.manifest.json"))
}

pub(super) fn make_pipe(path: &Path) -> Result<()> {
    ensure!(Command::new("mkfifo").arg(path).status()?.success(), "no pipe");
    Ok(())
}

/// See that a record is whole, and that DLIO's files beside it tell of as many epochs; how many.
pub(super) fn epochs_of_whole(run_dir: &Path, record: &Value) -> Result<usize> {
    let place = run_dir.display();
    ensure!(record["complete"] == true, "torn: the record in {place}");
    let epochs = record["epochs"].as_array().context("a record has epochs")?.len();
    let stats = json(&run_dir.join("0_per_epoch_stats.json"))?;
    let told = stats.as_object().context("statistics have epochs")?.len();
    ensure!(told == epochs, "torn: {place} has {epochs} epochs, and DLIO's statistics {told}");
    let summary = json(&run_dir.join("summary.json"))?;
    ensure!(summary["metric"].is_object(), "torn: the summary in {place}");
    Ok(epochs)
}

/// Wait until something holds that must come.
pub(super) fn until(what: &str, mut holds: impl FnMut() -> bool) -> Result<()> {
    let start = Instant::now();
    while !holds() {
        ensure!(start.elapsed() < DONE_WITHIN, "never: {what}");
        sleep(Duration::from_millis(1));
    }
    Ok(())
}

fn mount(arguments: &[&str], folder: &Path) -> Result<()> {
    let status = Command::new("mount").args(arguments).arg(folder).status()?;
    ensure!(status.success(), "cannot mount {}", folder.display());
    Ok(())
}

/// Links are not followed.
pub(super) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(files_below(&entry.path())),
            _ => found.push(entry.path()),
        }
    }
    found
}

/// Copy a tree of regular files.
pub(super) fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    for path in files_below(from) {
        let target = to.join(path.strip_prefix(from)?);
        fs::create_dir_all(target.parent().context("a file lies in a folder")?)?;
        fs::copy(&path, &target)?;
    }
    Ok(())
}

/// A file of JSON, which must be whole.
pub(super) fn json(path: &Path) -> Result<Value> {
    let bytes = fs::read(path).with_context(|| format!("lost: {}", path.display()))?;
    serde_json::from_slice(&bytes).with_context(|| format!("torn: {}", path.display()))
}
