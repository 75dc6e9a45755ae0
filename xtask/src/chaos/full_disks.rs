//! Full file systems of increasing size. Programs must report the problem, leave no incomplete results, and work again once there is
//! space.

use super::Class;
use super::case::{Case, json, workload};
use super::child::FinishedProgram;
use anyhow::{Context, Result, ensure};

pub(super) static CLASS: Class = Class {
    name: "full_disks",
    noun: "sizes of a full disk",
    cases: 150,
    short_cases: 10,
    parallel_cases: 2,
    run,
};

const STUDY: &str = "model,processes,run\nworkload.yaml,1,N\nworkload.yaml,2,N\n";

/// The folders that fill up, each with the step of its size in KiB. The seed selects folder and size.
const FULL_FOLDERS: [(FullFolder, u64); 5] = [
    (FullFolder::Results, 4),
    (FullFolder::Data, 8),
    (FullFolder::Checkpoints, 24),
    (FullFolder::Study, 12),
    (FullFolder::Shared, 4),
];

/// Space for three files of users and the two files of a study.
const OTHER_FILES_KB: u64 = 20;

/// The folder on the full file system.
#[derive(Clone, Copy, PartialEq)]
enum FullFolder {
    Results,
    Data,
    Checkpoints,
    /// The folder of a study with its results and data.
    Study,
    /// `/dev/shm`, which ranks share.
    Shared,
}

fn run(case: &mut Case) -> Result<u32> {
    let turn = case.seed - 1;
    let (full_folder, step_kb) = FULL_FOLDERS[turn as usize % FULL_FOLDERS.len()];
    let size_kb = step_kb * (1 + turn / FULL_FOLDERS.len() as u64);
    let workload = workload(8, 20_000, 2, "train:\n  epochs: 1\n");
    case.write("workload.yaml", &workload)?;
    case.create_user_files("")?;
    if full_folder == FullFolder::Shared {
        return fill_shared_memory(case, size_kb);
    }
    case.mount("full", OTHER_FILES_KB + size_kb)?;
    case.create_user_files("full/mine")?;
    if full_folder == FullFolder::Study {
        case.write("full/study.csv", STUDY)?;
        case.write("full/workload.yaml", &workload)?;
        case.write("full/data/.keep", "")?;
    }
    let ended = run_command(case, full_folder)?.with_code(&[0, 1, 2])?;
    // Only a run without space for its dataset may be refused before the start.
    let is_refused = full_folder == FullFolder::Data && ended.stderr.contains("are free in `full`");
    ensure!(ended.code != 2 || is_refused, "refused: {}", ended.summary());
    ensure!(
        ended.code != 1 || ended.stderr.contains("pace") || ended.stderr.contains("room"),
        "reports another problem: {}",
        ended.summary()
    );
    check_reported_results(case, &ended)?;
    let is_reported =
        ended.stdout.contains("Results: ") || ended.stderr.contains("nothing was measured");
    ensure!(
        full_folder != FullFolder::Results || is_reported,
        "lost: the results: {}",
        ended.summary()
    );
    case.user_files.check_unchanged()?;
    case.enlarge("full")?;
    run_command(case, full_folder)?.with_code(&[0]).context("with enough space")?;
    let data = if full_folder == FullFolder::Data { "full" } else { "data" };
    if full_folder == FullFolder::Study {
        case.feedrate(&["generate", "--verify", "full/workload.yaml", "--data", "full/data"])?
            .with_code(&[0])?;
    } else {
        case.feedrate(&["generate", "--verify", "workload.yaml", "--data", data])?
            .with_code(&[0])?;
    }
    Ok(1)
}

fn run_command(case: &Case, full_folder: FullFolder) -> Result<FinishedProgram> {
    let run = ["run", "workload.yaml"];
    let more: &[&str] = match full_folder {
        FullFolder::Results => &["--results", "full/results"],
        FullFolder::Data => &["--data", "full"],
        FullFolder::Checkpoints => &[
            "workflow.checkpoint=true",
            "checkpoint.checkpoint_folder=full",
            "model.model_size=200000",
        ],
        FullFolder::Study => {
            let study = [
                "study",
                "run",
                "full/study.csv",
                "--retry",
                "--results",
                "full/results",
                "--data",
                "full/data",
            ];
            return case.feedrate(&study);
        }
        FullFolder::Shared => &[],
    };
    case.feedrate(&[&run[..], more].concat())
}

/// Checks that the results exist where the program reports them.
fn check_reported_results(case: &Case, ended: &FinishedProgram) -> Result<()> {
    for line in ended.stdout.lines().chain(ended.stderr.lines()) {
        let Some(folder) = line.strip_prefix("Results: ") else { continue };
        let record =
            json(&case.path(folder.trim()).join("record.json")).with_context(|| ended.summary())?;
        ensure!(record["complete"] == true, "torn: the record in {folder}");
    }
    Ok(())
}

/// Runs two ranks with shared memory of `size_kb`.
fn fill_shared_memory(case: &Case, size_kb: u64) -> Result<u32> {
    case.feedrate(&["generate", "workload.yaml"])?.with_code(&[0])?;
    let mount = format!(
        "mount -t tmpfs -o size={size_kb}k tmpfs /dev/shm || exit 99; head -c 1G /dev/zero > /dev/shm/filler 2>&1; exec \"$@\""
    );
    let feedrate = case.program("feedrate").display().to_string();
    let mount_and_fill =
        if case.seed.is_multiple_of(2) { mount } else { mount.replace("head -c 1G", "head -c 0") };
    let shell = ["--mount", "sh", "-c", &mount_and_fill, "sh"];
    // MPICH itself needs megabytes of shared memory.
    let launcher = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-np", "2"];
    let run = [feedrate.as_str(), "run", "workload.yaml"];
    let ended =
        case.start("unshare", &[&shell[..], &launcher, &run].concat())?.wait()?.with_code(&[0])?;
    check_reported_results(case, &ended)?;
    Ok(1)
}
