//! The tests in the distribution of PyPI's dlio-benchmark 2.0.0, unchanged, which `cargo xtask setup` installs. `suite.py` runs them.

use crate::harness::{Test, venv_python};
use crate::mpi::MPICH;
use std::collections::BTreeSet;

/// Tests that expect the files of all checkpoints in one folder, as in 2.0.0, with the numbers of files that they find and expect with one
/// and with two ranks. DLIO 3 has a folder for each checkpoint, as feedrate, which adds a manifest for each and a lock.
const OLDER_LAYOUT: [(&str, [&str; 2]); 7] = [
    ("epoch[tensorflow-1024-optimizers0-2-layer_params0-all_ranks]", ["9 33.0", "9 65.0"]),
    ("epoch[pytorch-1024-optimizers1-2-layer_params1-all_ranks]", ["9 16.0", "9 32.0"]),
    ("epoch[tensorflow-1024-optimizers2-2-layer_params2-rank_zero]", ["9 33.0", "9 33.0"]),
    ("epoch[pytorch-1024-optimizers3-2-layer_params3-rank_zero]", ["9 16.0", "9 16.0"]),
    ("epoch[tensorflow-1024-optimizers4-1-layer_params4-all_ranks]", ["9 17.0", "9 33.0"]),
    ("epoch[pytorch-1024-optimizers5-1-layer_params5-all_ranks]", ["9 8.0", "9 16.0"]),
    ("step", ["129 == 128", "65 == 64"]),
];
/// Number of parts of the tests that run at the same time. They mostly wait for the disk.
const PARTS: usize = 4;

#[test]
fn two_ranks_pass_the_tests_of_dlio_2_0_0() {
    let (launcher, first) = MPICH;
    check(2, &[&[launcher], first, &["2"]].concat());
}

#[test]
#[ignore = "as long as with two ranks; `cargo xtask long` runs it"]
fn one_rank_passes_the_tests_of_dlio_2_0_0() {
    check(1, &[]);
}

/// Runs all tests with this number of ranks. docs/guide/dlio.md has the number of tests that pass.
fn check(ranks: usize, launcher: &[&str]) {
    let results = std::thread::scope(|scope| {
        let parts = (0..PARTS).map(|part| scope.spawn(move || run([part, PARTS, ranks], launcher)));
        let parts: Vec<_> = parts.collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect::<Vec<String>>()
    });
    let failed = results.iter().filter(|result| !result.ends_with("\tpassed"));
    // The names of the files follow, in any order.
    let failed: BTreeSet<&str> = failed.map(|text| text.split(" [Posix").next().unwrap()).collect();
    let known = OLDER_LAYOUT.map(|(test, files)| {
        let start = if test == "step" { "assert" } else { "files produced are" };
        format!("test_checkpoint_{test}\tfailed\tAssertionError: {start} {}", files[ranks - 1])
    });
    assert_eq!(failed, known.iter().map(String::as_str).collect());
    let passed = format!("{} of {} tests", results.len() - failed.len(), results.len());
    assert!(include_str!("../../../../../docs/guide/dlio.md").contains(&passed), "{passed}");
}

/// Runs a part of the tests; `numbers` are those of the part, of all parts and of the ranks. Returns a line for each.
fn run(numbers: [usize; 3], launcher: &[&str]) -> Vec<String> {
    let test = Test::new();
    let [part, parts, ranks] = numbers.map(|number| number.to_string());
    let program = env!("CARGO_BIN_EXE_dlio_benchmark");
    let arguments = [&[&part, &parts, &ranks, program], launcher].concat();
    let lines = test.python(&venv_python(), "dlio_cases/suite.py", arguments);
    String::from_utf8(lines).unwrap().lines().map(String::from).collect()
}
