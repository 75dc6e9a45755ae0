//! A case of the campaign: its folder, its random numbers, the programs that it starts, and the files of users, which must not change.

use super::child::{FinishedProgram, RunningProgram, STOP_TIMEOUT, WORK_TIMEOUT, processes_in};
use super::random::Random;
use super::user_files::UserFiles;
use anyhow::{Context, Result, ensure};
use rustix::fs::statfs;
use serde_json::Value;
use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Returns the YAML of a workload with `files` files of `bytes` bytes, read in batches of `batch`. `more_yaml` continues the section of the
/// reader.
pub(super) fn workload(files: u32, bytes: u32, batch: u32, more_yaml: &str) -> String {
    format!(
        "model:\n  name: tiny\nframework: pytorch\ndataset:\n  data_folder: data\n  format: npz\n  num_files_train: {files}\n  \
         record_length_bytes: {bytes}\nreader:\n  data_loader: pytorch\n  batch_size: {batch}\n{more_yaml}"
    )
}

/// The folder that a FUSE file system shows as the working folder.
const BEHIND_FUSE: &str = "behind";
/// `FUSE_SUPER_MAGIC` of Linux.
const FUSE_TYPE: i64 = 0x6573_5546;

/// A case. Its folder is removed after success and kept after a failure.
pub(super) struct Case<'a> {
    pub(super) seed: u64,
    pub(super) random: Random,
    pub(super) user_files: UserFiles,
    folder: PathBuf,
    programs: &'a Path,
    outputs: AtomicUsize,
    mounts: Vec<PathBuf>,
    /// The program that serves the working folder, if that is on FUSE.
    fuse_server: RefCell<Option<RunningProgram>>,
}

/// An unexpected end of a FUSE file system.
#[derive(Clone, Copy, Debug)]
pub(super) enum FuseEnd {
    /// Its program is killed.
    Killed,
    /// It is unmounted although it is in use.
    Unmounted,
}

impl<'a> Case<'a> {
    pub(super) fn new(seed: u64, folder: PathBuf, programs: &'a Path) -> Result<Self> {
        for subfolder in ["here", "output"] {
            fs::create_dir_all(folder.join(subfolder))?;
        }
        Ok(Case {
            seed,
            random: Random::new(seed),
            user_files: UserFiles::default(),
            folder,
            programs,
            outputs: AtomicUsize::new(0),
            mounts: Vec::new(),
            fuse_server: RefCell::new(None),
        })
    }

    /// Returns a path in the working folder of the programs.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join("here").join(name)
    }

    pub(super) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> Result<()> {
        let path = self.path(name);
        fs::create_dir_all(path.parent().context("the path has no folder")?)?;
        fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Creates files of users in a folder of the case.
    pub(super) fn create_user_files(&mut self, folder: &str) -> Result<()> {
        let path = self.path(folder);
        self.user_files.create(&path, &mut self.random)
    }

    /// Returns the path of a program of feedrate.
    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.programs.join(name)
    }

    /// Starts any program in the case's folder.
    pub(super) fn start<S: AsRef<OsStr>>(
        &self,
        program: impl AsRef<OsStr>,
        arguments: &[S],
    ) -> Result<RunningProgram> {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.path("")).env("NO_COLOR", "1");
        command.env("FEEDRATE_LOOK_S", "0");
        // Programs write results there if the folder of results has no space.
        command.env("TMPDIR", self.folder.join("output"));
        let number = self.outputs.fetch_add(1, Ordering::Relaxed);
        RunningProgram::start(command, self.folder.join(format!("output/{number}")))
    }

    /// Starts `dlio_benchmark` with the workload in `conf/workload/tiny.yaml`.
    pub(super) fn start_dlio(&self, more: &[&str]) -> Result<RunningProgram> {
        let words = [&["--config-dir", "conf", "workload=tiny"], more].concat();
        self.start(self.program("dlio_benchmark"), &words)
    }

    /// Starts `dlio_benchmark` to only generate the dataset.
    pub(super) fn start_dlio_generation(&self, run_dir: &str) -> Result<RunningProgram> {
        self.start_dlio(&[
            "++workload.workflow.generate_data=True",
            "++workload.workflow.train=False",
            &format!("++hydra.run.dir={run_dir}"),
        ])
    }

    pub(super) fn start_feedrate(&self, arguments: &[&str]) -> Result<RunningProgram> {
        self.start(self.program("feedrate"), arguments)
    }

    /// Runs `feedrate` to its end.
    pub(super) fn feedrate(&self, arguments: &[&str]) -> Result<FinishedProgram> {
        self.start_feedrate(arguments)?.wait()
    }

    /// Sleeps for a random time up to `max_ms`, so that faults hit at random moments.
    pub(super) fn sleep_up_to(&mut self, max_ms: u64) {
        let us = self.random.below(max_ms as usize * 1000) as u64;
        sleep(Duration::from_micros(us));
    }

    /// Returns all files below a folder, sorted.
    pub(super) fn files(&self, folder: &str) -> Vec<PathBuf> {
        let mut found = files_below(&self.path(folder));
        found.sort();
        found
    }

    /// Mounts a separate file system at a folder until the end of the case.
    pub(super) fn mount(&mut self, name: &str, size_kb: u64) -> Result<()> {
        let folder = self.path(name);
        fs::create_dir_all(&folder)?;
        mount(&["-t", "tmpfs", "-o", &format!("size={size_kb}k"), "tmpfs"], &folder)?;
        self.mounts.push(folder);
        Ok(())
    }

    /// Puts the working folder on FUSE until the end of the case. It must be empty.
    pub(super) fn mount_fuse(&mut self) -> Result<()> {
        fs::create_dir(self.folder.join(BEHIND_FUSE))?;
        self.mounts.push(self.path(""));
        self.start_fuse()
    }

    /// Starts the FUSE file system again after its end.
    pub(super) fn start_fuse(&self) -> Result<()> {
        // The mount of a killed program is still there.
        let _ = Command::new("umount").arg("--lazy").arg(self.path("")).output();
        let mut bindfs = Command::new("bindfs");
        // Without this option, opening a file removes it from the page cache.
        bindfs.args(["-f", "-o", "kernel_cache"]).args([BEHIND_FUSE, "here"]);
        bindfs.current_dir(&self.folder);
        let mut server = RunningProgram::start(bindfs, self.folder.join("output/fuse"))?;
        wait_until("a FUSE file system", || server.has_ended() || self.is_on_fuse())?;
        ensure!(!server.has_ended(), "`bindfs` does not mount: {}", server.stderr());
        *self.fuse_server.borrow_mut() = Some(server);
        Ok(())
    }

    /// Ends the FUSE file system. Programs that use it get errors.
    pub(super) fn end_fuse(&self, end: FuseEnd) -> Result<()> {
        if let FuseEnd::Unmounted = end {
            let umount =
                Command::new("umount").args(["--force", "--lazy"]).arg(self.path("")).status()?;
            ensure!(umount.success(), "cannot unmount {}", self.path("").display());
        }
        // The program is killed when dropped.
        *self.fuse_server.borrow_mut() = None;
        Ok(())
    }

    fn is_on_fuse(&self) -> bool {
        statfs(self.path("")).is_ok_and(|found| found.f_type == FUSE_TYPE)
    }

    /// Enlarges a mounted file system.
    pub(super) fn enlarge(&self, name: &str) -> Result<()> {
        mount(&["-o", "remount,size=64m"], &self.path(name))
    }

    /// Checks the end of a case: files of users are unchanged, no process still runs, and there are no incomplete files in complete results.
    pub(super) fn check_clean(&self) -> Result<()> {
        self.user_files.check_unchanged()?;
        let start = Instant::now();
        loop {
            let running = processes_in(&self.path(""));
            if running.is_empty() {
                break;
            }
            ensure!(start.elapsed() < STOP_TIMEOUT, "left running: {}", running.join("; "));
            sleep(Duration::from_millis(20));
        }
        for path in self.files("") {
            let is_part = path.extension().is_some_and(|extension| extension == "part");
            let is_leftover =
                is_part && !self.user_files.has(&path) && !is_outside_complete_results(&path);
            ensure!(!is_leftover, "left behind: {}", path.display());
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

/// Whether a file is outside all complete datasets, checkpoints and runs.
fn is_outside_complete_results(path: &Path) -> bool {
    let mut parents = path.ancestors().skip(1).take(2);
    path.to_string_lossy().contains("/incomplete/")
        || !parents.any(|folder| {
            let record = fs::read_to_string(folder.join("record.json")).unwrap_or_default();
            folder.join("manifest.json").exists()
                || is_complete_checkpoint(folder)
                || record.contains("\"complete\":true")
        })
}

/// Whether the manifest of the checkpoint in `folder` lists all files as complete.
pub(super) fn is_complete_checkpoint(folder: &Path) -> bool {
    let files = json(&checkpoint_manifest(folder)).map(|mut manifest| manifest["files"].take());
    let files = files.ok().and_then(|files| files.as_object().cloned());
    files.is_some_and(|files| files.values().all(Value::is_object))
}

/// Returns the path of the manifest of the checkpoint in `folder`. The manifest is beside the folder.
pub(super) fn checkpoint_manifest(folder: &Path) -> PathBuf {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    folder.with_file_name(format!(".{name}.manifest.json"))
}

pub(super) fn make_pipe(path: &Path) -> Result<()> {
    ensure!(Command::new("mkfifo").arg(path).status()?.success(), "cannot create a pipe");
    Ok(())
}

/// Checks that a record is complete and that DLIO's files in its folder have the same number of epochs. Returns this number.
pub(super) fn check_complete_epochs(run_dir: &Path, record: &Value) -> Result<usize> {
    let folder = run_dir.display();
    ensure!(record["complete"] == true, "torn: the record in {folder}");
    let epochs = record["epochs"].as_array().context("a record has epochs")?.len();
    let stats = json(&run_dir.join("0_per_epoch_stats.json"))?;
    let dlio_epochs = stats.as_object().context("statistics have epochs")?.len();
    ensure!(
        dlio_epochs == epochs,
        "torn: {folder} has {epochs} epochs, and DLIO's statistics {dlio_epochs}"
    );
    let summary = json(&run_dir.join("summary.json"))?;
    ensure!(summary["metric"].is_object(), "torn: the summary in {folder}");
    Ok(epochs)
}

/// Checks the files of all checkpoints in a folder that are complete according to their manifests. Returns their number.
pub(super) fn check_complete_checkpoints(case: &Case, folder: &str) -> Result<usize> {
    let mut complete = 0;
    for entry in fs::read_dir(case.path(folder)).into_iter().flatten() {
        let checkpoint = entry?.path();
        if is_complete_checkpoint(&checkpoint) {
            check_files(&checkpoint).with_context(|| checkpoint.display().to_string())?;
            complete += 1;
        }
    }
    Ok(complete)
}

/// Checks that the files of a checkpoint have the length and checksum of the manifest.
fn check_files(folder: &Path) -> Result<()> {
    let manifest = json(&checkpoint_manifest(folder))?;
    for (name, file) in manifest["files"].as_object().context("the manifest has no `files`")? {
        let content = fs::read(folder.join(name)).with_context(|| format!("lost: {name}"))?;
        let is_intact =
            file["bytes"] == content.len() && file["crc32"] == crc32fast::hash(&content);
        ensure!(is_intact, "torn: {name}");
    }
    Ok(())
}

/// Waits until `is_reached` returns true. After a timeout, the error contains `event`.
pub(super) fn wait_until(event: &str, mut is_reached: impl FnMut() -> bool) -> Result<()> {
    let start = Instant::now();
    while !is_reached() {
        ensure!(start.elapsed() < WORK_TIMEOUT, "never reached: {event}");
        sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Waits until `find` returns a value. After a timeout, the error contains `event`.
pub(super) fn wait_until_some<T>(
    event: &str,
    mut find: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let start = Instant::now();
    loop {
        if let Some(value) = find()? {
            return Ok(value);
        }
        ensure!(start.elapsed() < WORK_TIMEOUT, "never reached: {event}");
        sleep(Duration::from_millis(1));
    }
}

fn mount(arguments: &[&str], folder: &Path) -> Result<()> {
    let status = Command::new("mount").args(arguments).arg(folder).status()?;
    ensure!(status.success(), "cannot mount {}", folder.display());
    Ok(())
}

/// Returns all files below a folder. Links are not followed.
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

/// Copies a tree of regular files.
pub(super) fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    for path in files_below(from) {
        let target = to.join(path.strip_prefix(from)?);
        fs::create_dir_all(target.parent().context("the path has no folder")?)?;
        fs::copy(&path, &target)?;
    }
    Ok(())
}

/// Reads a file that must be valid JSON.
pub(super) fn json(path: &Path) -> Result<Value> {
    let bytes = fs::read(path).with_context(|| format!("lost: {}", path.display()))?;
    serde_json::from_slice(&bytes).with_context(|| format!("torn: {}", path.display()))
}
