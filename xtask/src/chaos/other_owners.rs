//! Commands of a user who may only read the datasets and results of another user. Reads succeed, and nothing of the other user changes.

use super::Class;
use super::case::Case;
use super::case::workload;
use super::child::FinishedProgram;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::os::unix::fs::chown;
use std::path::PathBuf;
use std::time::SystemTime;

pub(super) static CLASS: Class = Class {
    name: "other_owners",
    noun: "commands of another user",
    cases: 4,
    short_cases: 1,
    parallel_cases: 1,
    run,
};

/// The user `nobody`.
const OTHER_USER: u32 = 65_534;

/// Commands with their exit codes.
const COMMANDS: &[(&str, &[i32])] = &[
    ("run workload.yaml --results mine/results", &[0]),
    ("generate --verify workload.yaml", &[0]),
    ("generate workload.yaml", &[0, 1]),
    ("list data", &[0]),
    ("scan data", &[0, 1, 2]),
    ("show out", &[0]),
    ("report out -o mine/page.html", &[0]),
    ("study status study.csv", &[0]),
    ("clean data out results", &[0]),
    ("clean data out results --yes", &[1, 3]),
    ("generate workload.yaml dataset.num_files_train=3", &[1, 2]),
    ("run workload.yaml --run-dir out", &[1, 2]),
    ("study run study.csv --retry", &[1, 2]),
];

fn run(case: &mut Case) -> Result<u32> {
    case.write("workload.yaml", workload(8, 20_000, 2, "train:\n  epochs: 1\n"))?;
    case.write("study.csv", "model,processes,run\nworkload.yaml,1,N\nworkload.yaml,2,N\n")?;
    case.feedrate(&["generate", "workload.yaml"])?.with_code(&[0])?;
    case.feedrate(&["run", "workload.yaml", "--run-dir", "out"])?.with_code(&[0])?;
    case.feedrate(&["study", "run", "study.csv", "--limit", "1"])?.with_code(&[0])?;
    case.create_user_files("")?;
    // The other user may not be able to reach the programs.
    let program = case.path("feedrate");
    fs::copy(case.program("feedrate"), &program)?;
    fs::create_dir(case.path("mine"))?;
    chown(case.path("mine"), Some(OTHER_USER), Some(OTHER_USER))
        .context("cannot give a folder to `nobody`\n  hint: run the campaign as root")?;
    // Programs write there if the folder of results cannot be written.
    chown(case.path("../output"), Some(OTHER_USER), Some(OTHER_USER))?;
    let before = states(case)?;
    for (command, codes) in COMMANDS {
        as_other_user(case, command)?.with_code(codes)?;
        ensure!(states(case)? == before, "`{command}` changed files of another user");
    }
    Ok(COMMANDS.len() as u32)
}

fn as_other_user(case: &Case, command: &str) -> Result<FinishedProgram> {
    let id = OTHER_USER.to_string();
    let program = case.path("feedrate").display().to_string();
    let user = ["--reuid", &id, "--regid", &id, "--clear-groups", &program];
    let words: Vec<&str> = user.into_iter().chain(command.split(' ')).collect();
    case.start("setpriv", &words)?.wait()
}

/// The files that belong to the first user, with their lengths and modification times.
fn states(case: &Case) -> Result<Vec<(PathBuf, u64, SystemTime)>> {
    let files = case.files("").into_iter().filter(|file| !file.starts_with(case.path("mine")));
    let state = |file: PathBuf| {
        let metadata = fs::symlink_metadata(&file)?;
        Ok((file, metadata.len(), metadata.modified()?))
    };
    files.map(state).collect()
}
