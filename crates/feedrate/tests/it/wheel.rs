//! `pip install .`: installs the programs and the Python module. The test needs the Python in `.venv`, which `cargo xtask setup` installs, or
//! the Python in `FEEDRATE_PYTHON`.

use crate::dlio_benchmark::with_workloads;
use crate::harness::{Answer, Test, venv_python};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Build arguments that equal those of the tests, so that most of the build is reused.
const BUILD_ARGUMENTS: &str = "--profile dev --features libhdf5";

/// Installs the checkout into an environment in the test's folder. Returns the environment.
fn install(test: &Test) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let prefix = test.path("env");
    let python = venv_python();
    let output = Command::new(&python)
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
        .args(["--no-deps", "--no-build-isolation", "--no-index", "--prefix"])
        .args([prefix.as_os_str(), root.as_os_str()])
        .env(
            "MATURIN_PEP517_ARGS",
            if cfg!(feature = "libhdf5") { BUILD_ARGUMENTS } else { "--profile dev" },
        )
        .env("PATH", with_path(python.parent().unwrap()))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}\n  hint: run `cargo xtask setup`");
    prefix
}

/// PATH with `folder` before all other folders.
fn with_path(folder: &Path) -> String {
    format!("{}:{}", std::path::absolute(folder).unwrap().display(), std::env::var("PATH").unwrap())
}

#[test]
fn a_wheel_contains_the_programs_and_the_module() {
    let test = with_workloads();
    let prefix = install(&test);
    for name in ["feedrate", "dlio_benchmark", "dlio_benchmark_query", "dlio_postprocessor"] {
        let answer = Answer::from_output(
            &test.program(prefix.join("bin").join(name), &["--help"]).output().unwrap(),
        );
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
