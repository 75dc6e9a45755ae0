//! File systems that are full, in steps of their size: told, nothing torn, and with room all goes on.

use super::Class;
use super::case::{Case, json, workload};
use super::child::Ended;
use anyhow::{Context, Result, ensure};

pub(super) static CLASS: Class = Class {
    name: "full_disks",
    what: "sizes of a full disk",
    cases: 150,
    short: 10,
    at_once: 2,
    run,
};

const STUDY: &str = "model,processes,run\nworkload.yaml,1,N\nworkload.yaml,2,N\n";

/// Places that fill up, in turn by the seed; and by how many KiB each step is larger than the last.
const PLACES: [(Place, u64); 5] = [
    (Place::Results, 4),
    (Place::Data, 8),
    (Place::Checkpoints, 24),
    (Place::Study, 12),
    (Place::Shared, 4),
];

/// Room of three strangers and a study's two files.
const OTHERS_KB: u64 = 20;

#[derive(Clone, Copy, PartialEq)]
enum Place {
    Results,
    Data,
    Checkpoints,
    /// A study with its results and its data.
    Study,
    /// `/dev/shm`, as ranks share it.
    Shared,
}

fn run(case: &mut Case) -> Result<u32> {
    let turn = case.seed - 1;
    let (place, step_kb) = PLACES[turn as usize % PLACES.len()];
    let size_kb = step_kb * (1 + turn / PLACES.len() as u64);
    let workload = workload(8, 20_000, 2, "train:\n  epochs: 1\n");
    case.write("workload.yaml", &workload)?;
    case.plant("")?;
    if place == Place::Shared {
        return shared_memory(case, size_kb);
    }
    case.mount("full", OTHERS_KB + size_kb)?;
    case.plant("full/mine")?;
    if place == Place::Study {
        case.write("full/study.csv", STUDY)?;
        case.write("full/workload.yaml", &workload)?;
        case.write("full/data/.keep", "")?;
    }
    let ended = attempt(case, place)?.with_code(&[0, 1, 2])?;
    // A dataset that has no room is refused before it is begun, and nothing else is.
    let is_refused = place == Place::Data && ended.stderr.contains("are free in `full`");
    ensure!(ended.code != 2 || is_refused, "refused: {}", ended.told());
    ensure!(
        ended.code != 1 || ended.stderr.contains("pace") || ended.stderr.contains("room"),
        "blames another: {}",
        ended.told()
    );
    told_results_are_there(case, &ended)?;
    let is_told =
        ended.stdout.contains("Results: ") || ended.stderr.contains("nothing was measured");
    ensure!(place != Place::Results || is_told, "lost: what was measured: {}", ended.told());
    case.strangers.are_untouched()?;
    case.enlarge("full")?;
    attempt(case, place)?.with_code(&[0]).context("with room again")?;
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

/// Where the program says that results are, they are.
fn told_results_are_there(case: &Case, ended: &Ended) -> Result<()> {
    for line in ended.stdout.lines().chain(ended.stderr.lines()) {
        let Some(folder) = line.strip_prefix("Results: ") else { continue };
        let record =
            json(&case.path(folder.trim()).join("record.json")).with_context(|| ended.told())?;
        ensure!(record["complete"] == true, "torn: the record in {folder}");
    }
    Ok(())
}

/// Two ranks whose shared memory is so small.
fn shared_memory(case: &Case, size_kb: u64) -> Result<u32> {
    case.feedrate(&["generate", "workload.yaml"])?.with_code(&[0])?;
    let mount = format!(
        "mount -t tmpfs -o size={size_kb}k tmpfs /dev/shm || exit 99; head -c 1G /dev/zero > /dev/shm/filler 2>&1; exec \"$@\""
    );
    let own = case.program("feedrate").display().to_string();
    let filled =
        if case.seed.is_multiple_of(2) { mount } else { mount.replace("head -c 1G", "head -c 0") };
    let shell = ["--mount", "sh", "-c", &filled, "sh"];
    // MPICH needs megabytes of it for itself.
    let launcher = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-np", "2"];
    let run = [own.as_str(), "run", "workload.yaml"];
    let ended =
        case.start("unshare", &[&shell[..], &launcher, &run].concat())?.wait()?.with_code(&[0])?;
    told_results_are_there(case, &ended)?;
    Ok(1)
}
