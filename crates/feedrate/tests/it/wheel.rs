//! `pip install .`: the programs on the environment's PATH, and the module that starts them. Needs the Python of `.venv`,
//! which `cargo xtask setup` makes, or another in `FEEDRATE_PYTHON`; fails without.

use crate::dlio_benchmark::with_workloads;
use crate::harness::{Answer, Test, venv_python};
use std::path::{Path, PathBuf};
use std::process::Command;

const LIKE_TESTS: &str = "--profile dev --features libhdf5";

/// An environment in the test's folder into which the checkout is installed.
fn installed(test: &Test) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let prefix = test.path("env");
    let python = venv_python();
    let output = Command::new(&python)
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
        .args(["--no-deps", "--no-build-isolation", "--no-index", "--prefix"])
        .args([prefix.as_os_str(), root.as_os_str()])
        // Most of what it is built of is there already.
        .env(
            "MATURIN_PEP517_ARGS",
            if cfg!(feature = "libhdf5") { LIKE_TESTS } else { "--profile dev" },
        )
        .env("PATH", with_path(python.parent().unwrap()))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}\n  hint: run `cargo xtask setup`");
    prefix
}

/// PATH with a folder before all others.
fn with_path(folder: &Path) -> String {
    format!("{}:{}", std::path::absolute(folder).unwrap().display(), std::env::var("PATH").unwrap())
}

#[test]
fn a_wheel_brings_the_programs_and_the_module() {
    let test = with_workloads();
    let prefix = installed(&test);
    for name in ["feedrate", "dlio_benchmark", "dlio_benchmark_query", "dlio_postprocessor"] {
        let answer =
            Answer::of(&test.program(prefix.join("bin").join(name), &["--help"]).output().unwrap());
        assert_eq!(answer.code, 0, "{name}: {}", answer.stderr);
    }
    let sites = std::fs::read_dir(prefix.join("lib")).unwrap();
    let site = sites.map(|entry| entry.unwrap().path().join("site-packages")).next().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/wheel.py");
    let mut command = test.program(venv_python(), &[&script.to_string_lossy()]);
    command.env("PYTHONPATH", site).env("PATH", with_path(&prefix.join("bin")));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
