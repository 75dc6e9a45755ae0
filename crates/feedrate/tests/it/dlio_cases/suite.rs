//! The tests in the distribution of PyPI's dlio-benchmark 2.0.0, unchanged, which `cargo xtask setup` installs. `suite.py` runs them.

use crate::harness::{Test, venv_python};
use crate::mpi::MPICH;

/// Tests that expect the files of all checkpoints in one folder, as in 2.0.0. DLIO 3 has a folder for each checkpoint, as feedrate.
const OLDER_LAYOUT: &str = "test_checkpoint_";
/// Number of parts of the tests that run at the same time. They mostly wait for the disk.
const PARTS: usize = 4;

#[test]
fn two_ranks_pass_the_tests_of_dlio_2_0_0() {
    let (launcher, first) = MPICH;
    check("2", &[&[launcher], first, &["2"]].concat());
}

#[test]
#[ignore = "as long as with two ranks; `cargo xtask long` runs it"]
fn one_rank_passes_the_tests_of_dlio_2_0_0() {
    check("1", &[]);
}

/// Runs all tests with this number of ranks. docs/guide/dlio.md has the number of tests that pass.
fn check(ranks: &str, launcher: &[&str]) {
    let results = std::thread::scope(|scope| {
        let parts = (0..PARTS).map(|part| scope.spawn(move || run(part, ranks, launcher)));
        let parts: Vec<_> = parts.collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect::<Vec<String>>()
    });
    let failed: Vec<&String> =
        results.iter().filter(|result| !result.ends_with("\tpassed")).collect();
    let is_known = |result: &&String| {
        result.starts_with(OLDER_LAYOUT) && result.contains("\tfailed\tAssertionError")
    };
    assert!(failed.iter().all(is_known), "{failed:#?}");
    let passed = format!("{} of {} tests", results.len() - failed.len(), results.len());
    assert!(include_str!("../../../../../docs/guide/dlio.md").contains(&passed), "{passed}");
}

/// Runs a part of the tests. Returns a line for each.
fn run(part: usize, ranks: &str, launcher: &[&str]) -> Vec<String> {
    let test = Test::new();
    let [part, parts] = [part, PARTS].map(|number| number.to_string());
    let program = env!("CARGO_BIN_EXE_dlio_benchmark");
    let arguments = [&[&part, &parts, ranks, program], launcher].concat();
    let lines = test.python(&venv_python(), "dlio_cases/suite.py", arguments);
    String::from_utf8(lines).unwrap().lines().map(String::from).collect()
}
