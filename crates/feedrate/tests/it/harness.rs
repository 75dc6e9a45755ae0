//! A temporary folder for each test, the programs that run in it, and checks of their output.

use std::ffi::OsStr;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The temporary folder of a test. Dropping it removes the folder.
pub(crate) struct Test {
    folder: TempDir,
    /// Variables of the environment of all programs.
    environment: Vec<(String, String)>,
}

/// The exit code and output of a program.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Two epochs of two steps on eight small npz files, without compute time.
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
        Test::with_environment(Vec::new())
    }

    pub(crate) fn with_environment(environment: Vec<(String, String)>) -> Self {
        Test { folder: TempDir::new().unwrap(), environment }
    }

    /// A test folder that contains `workload.yaml`.
    pub(crate) fn with_workload(yaml: &str) -> Self {
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

    /// A command that runs a program in the test's folder.
    pub(crate) fn program(&self, program: impl AsRef<OsStr>, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.folder.path()).env("NO_COLOR", "1");
        // Without progress lines, the messages of a run do not depend on the speed of the machine.
        command.env("FEEDRATE_PROGRESS_S", "0");
        // Other load on the machine causes no doubts.
        command.env("FEEDRATE_LOOK_S", "0");
        // Several Open MPI processes that share a folder would remove each other's files.
        command.env("OMPI_MCA_orte_tmpdir_base", self.folder.path());
        command.envs(self.environment.iter().cloned());
        command
    }

    pub(crate) fn feedrate(&self, arguments: &[&str]) -> Answer {
        Answer::from_output(&self.command(arguments).output().unwrap())
    }

    /// Runs `feedrate run workload.yaml … --json`, which must succeed, and returns its JSON.
    pub(crate) fn run_json(&self, more: &[&str]) -> serde_json::Value {
        let mut arguments = vec!["run", "workload.yaml", "--json"];
        arguments.extend(more);
        let answer = self.feedrate(&arguments);
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        answer.json()
    }

    /// Runs a script from the folder of tests in the test's folder. It must succeed; returns its stdout.
    #[track_caller]
    pub(crate) fn python(
        &self,
        python: &Path,
        script: &str,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Vec<u8> {
        let output = self
            .program(python, &[])
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it").join(script))
            .args(arguments)
            .output()
            .unwrap_or_else(|error| panic!("cannot start `{}`: {error}", python.display()));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}\n  hint: run `cargo xtask setup`");
        output.stdout
    }

    /// Compiles a library for `LD_PRELOAD` from C.
    pub(crate) fn compile_library(&self, source: &str) -> PathBuf {
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

    /// All files below the folder of datasets whose paths end like this.
    pub(crate) fn data_files(&self, ending: &str) -> Vec<PathBuf> {
        self.files_below("data", ending)
    }

    /// All files below a folder whose paths end like this, sorted.
    pub(crate) fn files_below(&self, folder: &str, ending: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        collect_files(&self.path(folder), &mut found);
        found.retain(|path| path.to_string_lossy().ends_with(ending));
        found.sort();
        found
    }
}

/// A mounted file system. Dropping it unmounts. Mounting needs root, which CI has.
pub(crate) struct MountedDisk(pub(crate) PathBuf);

impl MountedDisk {
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
        MountedDisk(folder.to_path_buf())
    }
}

impl Drop for MountedDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// Waits until a condition is true. Panics after a minute, which is enough even on a busy machine.
#[track_caller]
pub(crate) fn wait_until(condition: &str, mut is_true: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_true() {
        assert!(Instant::now() < deadline, "timeout: {condition}");
        std::thread::yield_now();
    }
}

/// Sends a signal to a process by `kill`.
pub(crate) fn send_signal(name: &str, process: impl Display) {
    let process = process.to_string();
    assert!(Command::new("kill").args([name, &process]).status().unwrap().success());
}

/// The Python in `FEEDRATE_PYTHON`, or the Python in `.venv`, which `cargo xtask setup` installs.
pub(crate) fn venv_python() -> PathBuf {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python");
    std::env::var_os("FEEDRATE_PYTHON").map_or(default, PathBuf::from)
}

fn collect_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            collect_files(&entry.path(), found)
        } else {
            found.push(entry.path())
        }
    }
}

impl Answer {
    pub(crate) fn from_output(output: &Output) -> Self {
        Answer {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Parses stdout as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Checks that the program succeeded and that stderr contains each of `words`.
    #[track_caller]
    pub(crate) fn warns(&self, words: &[&str]) {
        assert_eq!(self.code, 0, "{}", self.stderr);
        for word in words {
            assert!(self.stderr.contains(word), "no `{word}` in: {}", self.stderr);
        }
    }

    /// Checks that the program failed with `code`, without a panic, and that stderr contains each of `words`.
    #[track_caller]
    pub(crate) fn refuses(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, code, "{}", self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        for word in words {
            assert!(self.stderr.contains(word), "no `{word}` in: {}", self.stderr);
        }
    }
}
