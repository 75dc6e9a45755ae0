//! Runs begun in the same moment in one folder: each has a result, whole and its own.

use super::Class;
use super::case::{Case, epochs_of_whole, json, workload};
use super::child::Running;
use anyhow::{Result, ensure};
use std::collections::BTreeSet;
use std::fs;

pub(super) static CLASS: Class = Class {
    name: "runs_at_once",
    what: "pairs and sixes of runs begun at once",
    cases: 48,
    short: 5,
    at_once: 1,
    run,
};

/// Where results go.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// `feedrate run`, into one folder of results.
    Results,
    /// `dlio_benchmark`, where Hydra puts it.
    Hydra,
    /// The same, each with an `output.folder`.
    Output,
    /// All into one folder: the first has it.
    Same,
}

fn run(case: &mut Case) -> Result<u32> {
    let workload = workload(8, 4096, 4, "");
    case.write("workload.yaml", &workload)?;
    case.write("conf/workload/tiny.yaml", workload)?;
    let place = case.random.pick(&[Place::Results, Place::Hydra, Place::Output, Place::Same]);
    if place == Place::Results {
        case.feedrate(&["generate", "workload.yaml"])?.with_code(&[0])?;
    } else {
        case.start_dlio_maker("made")?.wait()?.with_code(&[0])?;
    }
    for folder in ["", "results/tiny", "hydra_log/tiny"] {
        case.plant(folder)?;
    }
    let count = case.random.pick(&[2, 6]);
    let runs: Vec<Running> =
        (1..=count).map(|number| start(case, place, number)).collect::<Result<_>>()?;
    let mut finished = 0;
    for run in runs {
        let codes: &[i32] = if place == Place::Same { &[0, 1, 2] } else { &[0] };
        finished += u64::from(run.wait()?.with_code(codes)?.code == 0);
    }
    ensure!(finished > 0, "nobody has the folder");
    let told = told(case)?;
    let right = if place == Place::Same {
        told.len() as u64 == finished
    } else {
        told == (1..=count).collect()
    };
    ensure!(right, "of {count} runs, {finished} of them finished, results have {told:?}");
    Ok(1)
}

fn start(case: &Case, place: Place, number: u64) -> Result<Running> {
    let own = format!("train.epochs={number}");
    if place == Place::Results {
        return case.start_feedrate(&["run", "workload.yaml", &own]);
    }
    let own = format!("++workload.{own}");
    let folder = match place {
        Place::Output => format!("++workload.output.folder=out-{number}"),
        Place::Same => "++hydra.run.dir=one".to_string(),
        _ => "++workload.train.seed=1".to_string(),
    };
    case.start_dlio(&[&own, &folder])
}

/// The runs that have results, by the number of epochs that is theirs.
fn told(case: &Case) -> Result<BTreeSet<u64>> {
    let mut found = BTreeSet::new();
    for path in case.files("") {
        if !path.ends_with("record.json") {
            continue;
        }
        let place = path.display();
        let folder = path.with_file_name("");
        let epochs = epochs_of_whole(&folder, &json(&path)?)? as u64;
        // `output.folder` parts the results from what Hydra writes.
        let own = match fs::read_to_string(folder.join(".hydra/overrides.yaml")) {
            Ok(overrides) => overrides.contains(&format!("train.epochs={epochs}\n")),
            Err(_) => folder.ends_with(format!("out-{epochs}")),
        };
        ensure!(own, "mixed: {place} has {epochs} epochs, of another run");
        ensure!(found.insert(epochs), "doubled: {place}");
    }
    Ok(found)
}
