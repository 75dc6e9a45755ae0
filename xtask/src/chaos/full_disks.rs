//! Full file systems of increasing size: programs must report the problem, leave no incomplete results, and continue once there is space.

use super::Class;
use super::case::{Case, json, workload};
use super::child::Ended;
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

/// The folders that fill up, in turn by the seed, each with the increase of its size in KiB.
const PLACES: [(Place, u64); 5] = [
    (Place::Results, 4),
    (Place::Data, 8),
    (Place::Checkpoints, 24),
    (Place::Study, 12),
    (Place::Shared, 4),
];

/// Space for three files of users and a study's two files.
const OTHER_FILES_KB: u64 = 20;

/// The folder on the full file system.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Results,
    Data,
    Checkpoints,
    /// A study with its results and data.
    Study,
    /// `/dev/shm`, which ranks share.
    Shared,
}

fn run(case: &mut Case) -> Result<u32> {
    let turn = case.seed - 1;
    let (place, step_kb) = PLACES[turn as usize % PLACES.len()];
    let size_kb = step_kb * (1 + turn / PLACES.len() as u64);
    let workload = workload(8, 20_000, 2, "train:\n  epochs: 1\n");
    case.write("workload.yaml", &workload)?;
    case.create_user_files("")?;
    if place == Place::Shared {
        return shared_memory(case, size_kb);
    }
    case.mount("full", OTHER_FILES_KB + size_kb)?;
    case.create_user_files("full/mine")?;
    if place == Place::Study {
        case.write("full/study.csv", STUDY)?;
        case.write("full/workload.yaml", &workload)?;
        case.write("full/data/.keep", "")?;
    }
    let ended = attempt(case, place)?.with_code(&[0, 1, 2])?;
    // Only a dataset without space may be refused before the start.
    let is_refused = place == Place::Data && ended.stderr.contains("are free in `full`");
    ensure!(ended.code != 2 || is_refused, "refused: {}", ended.summary());
    ensure!(
        ended.code != 1 || ended.stderr.contains("pace") || ended.stderr.contains("room"),
        "reports another problem: {}",
        ended.summary()
    );
    check_reported_results(case, &ended)?;
    let is_reported =
        ended.stdout.contains("Results: ") || ended.stderr.contains("nothing was measured");
    ensure!(place != Place::Results || is_reported, "lost: the results: {}", ended.summary());
    case.user_files.check_unchanged()?;
    case.enlarge("full")?;
    attempt(case, place)?.with_code(&[0]).context("with enough space")?;
    let data = if place == Place::Data { "full" } else { "data" };
    if place == Place::Study {
        case.feedrate(&["generate", "--verify", "full/workload.yaml", "--data", "full/data"])?
            .with_code(&[0])?;
    } else {
        case.feedrate(&["generate", "--verify", "workload.yaml", "--data", data])?
            .with_code(&[0])?;
    }
    Ok(1)
}

fn attempt(case: &Case, place: Place) -> Result<Ended> {
    let run = ["run", "workload.yaml"];
    let more: &[&str] = match place {
        Place::Results => &["--results", "full/results"],
        Place::Data => &["--data", "full"],
        Place::Checkpoints => &[
            "workflow.checkpoint=true",
            "checkpoint.checkpoint_folder=full",
            "model.model_size=200000",
        ],
        Place::Study => {
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
        Place::Shared => &[],
    };
    case.feedrate(&[&run[..], more].concat())
}

/// Checks that the results exist where the program reports them.
fn check_reported_results(case: &Case, ended: &Ended) -> Result<()> {
    for line in ended.stdout.lines().chain(ended.stderr.lines()) {
        let Some(folder) = line.strip_prefix("Results: ") else { continue };
        let record =
            json(&case.path(folder.trim()).join("record.json")).with_context(|| ended.summary())?;
        ensure!(record["complete"] == true, "torn: the record in {folder}");
    }
    Ok(())
}

/// Runs two ranks with shared memory of `size_kb`.
fn shared_memory(case: &Case, size_kb: u64) -> Result<u32> {
    case.feedrate(&["generate", "workload.yaml"])?.with_code(&[0])?;
    let mount = format!(
        "mount -t tmpfs -o size={size_kb}k tmpfs /dev/shm || exit 99; head -c 1G /dev/zero > /dev/shm/filler 2>&1; exec \"$@\""
    );
    let feedrate = case.program("feedrate").display().to_string();
    let filled =
        if case.seed.is_multiple_of(2) { mount } else { mount.replace("head -c 1G", "head -c 0") };
    let shell = ["--mount", "sh", "-c", &filled, "sh"];
    // MPICH itself needs megabytes of shared memory.
    let launcher = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-np", "2"];
    let run = [feedrate.as_str(), "run", "workload.yaml"];
    let ended =
        case.start("unshare", &[&shell[..], &launcher, &run].concat())?.wait()?.with_code(&[0])?;
    check_reported_results(case, &ended)?;
    Ok(1)
}
