//! A folder for one test, and the program run in it.

use std::ffi::OsStr;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Removed with its folder when dropped.
pub(crate) struct Test {
    folder: TempDir,
}

/// What the program answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Two steps on four small npz files, nothing to wait for.
pub(crate) const TINY: &str = "\
model:
  name: tiny
framework: pytorch
dataset:
  data_folder: data
  format: npz
  num_files_train: 8
  record_length_bytes: 4096
reader:
  data_loader: pytorch
  batch_size: 4
train:
  epochs: 2
";

impl Test {
    pub(crate) fn new() -> Self {
        Test { folder: TempDir::new().unwrap() }
    }

    /// With `workload.yaml`.
    pub(crate) fn with(yaml: &str) -> Self {
        let test = Test::new();
        test.write("workload.yaml", yaml);
        test
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.program(env!("CARGO_BIN_EXE_feedrate"), arguments)
    }

    /// Any program, in the test's folder.
    pub(crate) fn program(&self, program: impl AsRef<OsStr>, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.folder.path()).env("NO_COLOR", "1");
        // However slow the machine is, the messages of a run are the same.
        command.env("FEEDRATE_PROGRESS_S", "0");
        // However busy the machine is, its runs are not doubted for that.
        command.env("FEEDRATE_LOOK_S", "0");
        // In a folder that several share, one Open MPI removes what another is making.
        command.env("OMPI_MCA_orte_tmpdir_base", self.folder.path());
        command
    }

    pub(crate) fn feedrate(&self, arguments: &[&str]) -> Answer {
        Answer::of(&self.command(arguments).output().unwrap())
    }

    /// `feedrate run workload.yaml … --json`, which must succeed.
    pub(crate) fn run_json(&self, more: &[&str]) -> serde_json::Value {
        let mut arguments = vec!["run", "workload.yaml", "--json"];
        arguments.extend(more);
        let answer = self.feedrate(&arguments);
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        answer.json()
    }

    /// What a script of this folder prints, run by `python` in the test's own folder; it must succeed.
    #[track_caller]
    pub(crate) fn python(
        &self,
        python: &Path,
        script: &str,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Vec<u8> {
        let output = Command::new(python)
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it").join(script))
            .args(arguments)
            .current_dir(self.folder.path())
            .output()
            .unwrap_or_else(|error| panic!("cannot start `{}`: {error}", python.display()));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}\n  hint: run `cargo xtask setup`");
        output.stdout
    }

    /// A library for `LD_PRELOAD`, compiled from C.
    pub(crate) fn library(&self, source: &str) -> PathBuf {
        let library = self.path(source).with_extension("so");
        let cc = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"])
            .arg(&library)
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it").join(source))
            .args(["-ldl", "-lpthread"])
            .status();
        assert!(
            cc.is_ok_and(|status| status.success()),
            "cannot compile {source}: install a C compiler"
        );
        library
    }

    /// Every file below the dataset folder with this ending.
    pub(crate) fn data_files(&self, ending: &str) -> Vec<PathBuf> {
        self.files_below("data", ending)
    }

    /// Every file below a folder with this ending.
    pub(crate) fn files_below(&self, folder: &str, ending: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        walk(&self.path(folder), &mut found);
        found.retain(|path| path.to_string_lossy().ends_with(ending));
        found.sort();
        found
    }
}

/// A file system of its own, unmounted when dropped. Needs root, as CI has it.
pub(crate) struct Mounted(pub(crate) PathBuf);

impl Mounted {
    pub(crate) fn tmpfs(folder: &Path, options: &str) -> Self {
        std::fs::create_dir_all(folder).unwrap();
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(folder)
            .status();
        assert!(
            status.is_ok_and(|s| s.success()),
            "these tests mount small file systems: run them as root"
        );
        Mounted(folder.to_path_buf())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// Wait until something holds that must come soon, on a busy machine as well.
#[track_caller]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::yield_now();
    }
}

pub(crate) fn signal(name: &str, process: impl Display) {
    let process = process.to_string();
    assert!(Command::new("kill").args([name, &process]).status().unwrap().success());
}

/// The Python of `.venv`, which `cargo xtask setup` makes, or another in `FEEDRATE_PYTHON`.
pub(crate) fn venv_python() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python");
    std::env::var_os("FEEDRATE_PYTHON").map_or(own, PathBuf::from)
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() { walk(&entry.path(), found) } else { found.push(entry.path()) }
    }
}

impl Answer {
    pub(crate) fn of(output: &Output) -> Self {
        Answer {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// All of stdout.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Went well, with every word on stderr.
    #[track_caller]
    pub(crate) fn warns(&self, words: &[&str]) {
        assert_eq!(self.code, 0, "{}", self.stderr);
        for word in words {
            assert!(self.stderr.contains(word), "no `{word}` in: {}", self.stderr);
        }
    }

    /// Failed with `code`, every word on stderr, and no panic.
    #[track_caller]
    pub(crate) fn refuses(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, code, "{}", self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        for word in words {
            assert!(self.stderr.contains(word), "no `{word}` in: {}", self.stderr);
        }
    }
}
