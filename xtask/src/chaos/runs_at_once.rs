//! Runs that start at the same time in one folder. Each run must have a separate, complete result.

use super::Class;
use super::case::{Case, check_complete_epochs, json, workload};
use super::child::RunningProgram;
use anyhow::{Result, ensure};
use std::collections::BTreeSet;
use std::fs;

pub(super) static CLASS: Class = Class {
    name: "runs_at_once",
    noun: "groups of simultaneous runs",
    cases: 48,
    short_cases: 5,
    parallel_cases: 1,
    run,
};

/// Folder of the results.
#[derive(Clone, Copy, PartialEq)]
enum ResultsFolder {
    /// `feedrate run` with a common folder of results.
    Results,
    /// `dlio_benchmark` with Hydra's folders.
    Hydra,
    /// `dlio_benchmark` with a different `output.folder` for each run.
    Output,
    /// `dlio_benchmark` with the same folder for all runs. Only the first run can use it.
    Same,
}

fn run(case: &mut Case) -> Result<u32> {
    let workload = workload(8, 4096, 4, "");
    case.write("workload.yaml", &workload)?;
    case.write("conf/workload/tiny.yaml", workload)?;
    let results_folder = case.random.pick(&[
        ResultsFolder::Results,
        ResultsFolder::Hydra,
        ResultsFolder::Output,
        ResultsFolder::Same,
    ]);
    if results_folder == ResultsFolder::Results {
        case.feedrate(&["generate", "workload.yaml"])?.with_code(&[0])?;
    } else {
        case.start_dlio_generation("generated")?.wait()?.with_code(&[0])?;
    }
    for folder in ["", "results/tiny", "hydra_log/tiny"] {
        case.create_user_files(folder)?;
    }
    let count = case.random.pick(&[2, 6]);
    let runs: Vec<RunningProgram> =
        (1..=count).map(|number| start(case, results_folder, number)).collect::<Result<_>>()?;
    let mut finished = 0;
    for run in runs {
        let codes: &[i32] = if results_folder == ResultsFolder::Same { &[0, 1, 2] } else { &[0] };
        finished += u64::from(run.wait()?.with_code(codes)?.code == 0);
    }
    ensure!(finished > 0, "no run has finished");
    let with_results = runs_with_results(case)?;
    let is_correct = if results_folder == ResultsFolder::Same {
        with_results.len() as u64 == finished
    } else {
        with_results == (1..=count).collect()
    };
    ensure!(is_correct, "{finished} of {count} runs finished, and {with_results:?} have results");
    Ok(1)
}

/// Starts run number `number`, with `number` epochs.
fn start(case: &Case, results_folder: ResultsFolder, number: u64) -> Result<RunningProgram> {
    let epochs = format!("train.epochs={number}");
    if results_folder == ResultsFolder::Results {
        return case.start_feedrate(&["run", "workload.yaml", &epochs]);
    }
    let dlio_epochs = format!("++workload.{epochs}");
    let extra_override = match results_folder {
        ResultsFolder::Output => format!("++workload.output.folder=out-{number}"),
        ResultsFolder::Same => "++hydra.run.dir=one".to_string(),
        // These folders need no override.
        _ => "++workload.train.seed=1".to_string(),
    };
    case.start_dlio(&[&dlio_epochs, &extra_override])
}

/// Returns the numbers of the runs that have results. The number of epochs identifies a run.
fn runs_with_results(case: &Case) -> Result<BTreeSet<u64>> {
    let mut found = BTreeSet::new();
    for path in case.files("") {
        if !path.ends_with("record.json") {
            continue;
        }
        let record_path = path.display();
        let folder = path.with_file_name("");
        let epochs = check_complete_epochs(&folder, &json(&path)?)? as u64;
        // With `output.folder`, results are in another folder than Hydra's files.
        let matches_folder = match fs::read_to_string(folder.join(".hydra/overrides.yaml")) {
            Ok(overrides) => overrides.contains(&format!("train.epochs={epochs}\n")),
            Err(_) => folder.ends_with(format!("out-{epochs}")),
        };
        ensure!(
            matches_folder,
            "{record_path} has {epochs} epochs, but its folder is of another run"
        );
        ensure!(found.insert(epochs), "doubled: {record_path}");
    }
    Ok(found)
}
