//! Commands that are disturbed by failing system calls or limits. A command must report the failure, results that it reports as complete must
//! be complete, and the next command must complete the work.

use super::case::{Case, check_complete_checkpoints, check_complete_epochs, json, workload};
use super::child::FinishedProgram;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;

const STUDY: &str = "model,processes,run\nworkload.yaml,1,N\nworkload.yaml,2,N\n";

/// A command that is disturbed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Work {
    Generate,
    Run,
    Checkpoint,
    Study,
    Report,
}

const WORKS: [Work; 5] = [Work::Generate, Work::Run, Work::Checkpoint, Work::Study, Work::Report];

impl Work {
    /// Chooses the work of a case, and prepares the dataset and the result that it uses.
    pub(super) fn start(case: &mut Case) -> Result<Self> {
        case.write("workload.yaml", workload(8, 20_000, 2, "train:\n  epochs: 1\n"))?;
        case.feedrate(&["generate", "workload.yaml"])?.with_code(&[0])?;
        case.feedrate(&["run", "workload.yaml", "--run-dir", "reported"])?.with_code(&[0])?;
        case.create_user_files("")?;
        Ok(WORKS[case.seed as usize % WORKS.len()])
    }

    /// Does the work with `disturb`, which starts `feedrate` with these arguments, and then again without disturbance. `number` makes the names
    /// of files unique, and `disturbance` describes the cause of a failure.
    pub(super) fn check_disturbed(
        self,
        case: &Case,
        number: usize,
        disturbance: &str,
        disturb: impl FnOnce(&[&str]) -> Result<FinishedProgram>,
    ) -> Result<()> {
        self.prepare(case, number)?;
        let start = |run_dir: &str| {
            let words = self.arguments(number, run_dir);
            words.split(' ').map(String::from).collect::<Vec<_>>()
        };
        let first = start(&format!("out-{number}"));
        let ended = disturb(&first.iter().map(String::as_str).collect::<Vec<_>>())
            .with_context(|| disturbance.to_string())?;
        let context = || format!("{disturbance}: {}", ended.summary());
        self.check_state(case, number, &ended).with_context(context)?;
        let run_dir = format!("again-{number}");
        let again = start(&run_dir);
        let again: Vec<&str> = again.iter().map(String::as_str).collect();
        case.feedrate(&again)?.with_code(&[0]).with_context(context)?;
        self.check_complete(case, number, &run_dir).with_context(context)
    }

    fn arguments(self, number: usize, run_dir: &str) -> String {
        match self {
            Work::Generate => format!("generate workload.yaml --data data-{number}"),
            Work::Run => format!("run workload.yaml --run-dir {run_dir}"),
            Work::Checkpoint => format!(
                "run workload.yaml --run-dir {run_dir} workflow.train=false workflow.checkpoint=true \
                 model.model_size=50000 checkpoint.num_checkpoints_write=2 checkpoint.num_checkpoints_read=0 \
                 checkpoint.checkpoint_folder=checkpoints-{number}"
            ),
            Work::Study => {
                format!("study run study-{number}.csv --retry --results results-{number}")
            }
            Work::Report => format!("report reported -o page-{number}.html --force"),
        }
    }

    fn prepare(self, case: &Case, number: usize) -> Result<()> {
        match self {
            Work::Generate => case.write(&format!("data-{number}/thesis.txt"), "mine"),
            Work::Study => case.write(&format!("study-{number}.csv"), STUDY),
            _ => Ok(()),
        }
    }

    /// Checks the state after the disturbance.
    fn check_state(self, case: &Case, number: usize, ended: &FinishedProgram) -> Result<()> {
        if ended.code == 0 {
            return self.check_complete(case, number, &format!("out-{number}"));
        }
        let is_torn = |path: &Path| path.exists() && json(path).is_err();
        for path in case.files("") {
            let is_json = path.to_string_lossy().ends_with(".json");
            ensure!(
                !is_json || case.user_files.has(&path) || !is_torn(&path),
                "torn: {}",
                path.display()
            );
        }
        if self == Work::Checkpoint {
            check_complete_checkpoints(case, &format!("checkpoints-{number}"))?;
        }
        Ok(())
    }

    /// Checks that the work is complete.
    fn check_complete(self, case: &Case, number: usize, run_dir: &str) -> Result<()> {
        match self {
            Work::Generate => {
                let data = format!("data-{number}");
                let verify = ["generate", "--verify", "workload.yaml", "--data", &data];
                case.feedrate(&verify)?.with_code(&[0])?;
                ensure!(case.path(&data).join("thesis.txt").exists(), "lost: a file of a user");
            }
            Work::Run | Work::Checkpoint => {
                let folder = case.path(run_dir);
                let record = json(&folder.join("record.json"))?;
                ensure!(record["complete"] == true, "torn: {}", folder.display());
                if self == Work::Run {
                    check_complete_epochs(&folder, &record)?;
                } else {
                    let folder = format!("checkpoints-{number}");
                    let complete = check_complete_checkpoints(case, &folder)?;
                    ensure!(complete == 2, "lost: {} of 2 checkpoints", 2 - complete);
                }
            }
            Work::Study => {
                let csv = fs::read_to_string(case.path(&format!("study-{number}.csv")))?;
                ensure!(csv == STUDY.replace(",N\n", ",Y\n"), "incomplete:\n{csv}");
                let records = case.files(&format!("results-{number}"));
                let records = records.iter().filter(|path| {
                    path.ends_with("record.json")
                        && !path.to_string_lossy().contains("/incomplete/")
                });
                ensure!(records.count() == 2, "lost or doubled: results of two rows");
            }
            Work::Report => {
                let page = fs::read_to_string(case.path(&format!("page-{number}.html")))?;
                ensure!(page.trim_end().ends_with("</html>"), "torn: the page");
            }
        }
        Ok(())
    }
}
