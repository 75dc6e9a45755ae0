//! A rehearsal of a submission to MLPerf Storage: the runs that the rules require of a workload, their dataset, and the folder of their results.

use crate::mlperf::{FILES_KEY, Hosts, Requirement, check, enlarge_dataset};
use crate::request::Request;
use crate::resolve::{Resolved, resolve_named};
use crate::room;
use feedrate_results::run::MlperfCheck;
use feedrate_run::system;
use feedrate_spec::mlperf::rules::{
    Edition, SCORED_RUNS, WRITTEN_TO_MEMORY_MIN, runs_of_submission,
};
use feedrate_spec::mlperf::{CheckpointModel, find_rule, is_large_enough};
use feedrate_spec::plan::{Cache, Plan};
use feedrate_spec::refusal::{Refusal, refuse};
use feedrate_spec::workload::overridden_key;
use std::path::PathBuf;

/// Hosts of a rehearsal: this machine.
const THIS_MACHINE: Hosts = Hosts { memory_bytes: None, count: 1 };

/// The runs of a rehearsal.
pub struct Rehearsal {
    /// The request of each run.
    pub request: Request,
    /// Its plan.
    pub resolved: Resolved,
    /// Number of runs.
    pub runs: u64,
    /// Whether the first run is a warm-up, which does not count.
    pub has_warm_up: bool,
    /// Folder of the runs below the system's folder, as in a submission.
    pub folder: PathBuf,
    /// Whether the page cache is dropped because the rules would otherwise allow reads from memory.
    pub drops_cache: bool,
    /// Outcomes of the rules at full size; `None` if the rehearsal has the full size.
    pub full_size: Option<MlperfCheck>,
}

impl Rehearsal {
    /// Plans the rehearsal of a workload. The dataset gets the size that the rules require for this machine, unless the request sets the number
    /// of files.
    ///
    /// # Errors
    /// Fails if the workload has no rules, or if it cannot be planned.
    pub fn new(request: &Request) -> anyhow::Result<Self> {
        let full = Request { scale: 1.0, shrink_records: 1.0, ..request.clone() };
        let full = sized(&full)?;
        let sized = Request {
            scale: request.scale,
            shrink_records: request.shrink_records,
            processes: Some(1),
            ..full.clone()
        };
        let resolved = resolve_named(&sized)?;
        let plan = &resolved.plan;
        let Some(memory_bytes) = system::memory_bytes() else {
            return refuse("the memory of this machine is unknown", "rehearse on another machine");
        };
        let full_size = request.is_shrunk().then(|| {
            let plan = resolve_named(&full)?.plan;
            anyhow::Ok(check(&plan, &full, THIS_MACHINE, memory_bytes))
        });
        let (runs, folder) = runs_and_folder(plan)?;
        let drops_cache = sized.cache == Cache::AsIs && may_be_cached(plan, memory_bytes);
        let cache = if drops_cache { Cache::Cold } else { sized.cache };
        Ok(Rehearsal {
            request: Request { cache, ..sized },
            runs,
            has_warm_up: SCORED_RUNS < runs,
            folder,
            drops_cache,
            full_size: full_size.transpose()?.flatten(),
            resolved,
        })
    }

    /// Refuses a dataset or checkpoints that do not fit on their storage.
    ///
    /// # Errors
    /// Returns a refusal with the missing space.
    pub fn refuse_lack_of_space(&self) -> Result<(), Refusal> {
        let Resolved { plan, workload, data_root, .. } = &self.resolved;
        if plan.is_checkpoint_only() {
            let mut doubts = plan.doubts.iter();
            let exceeding = doubts.find(|doubt| doubt.name == "checkpoints_exceed_disk");
            return exceeding.map_or(Ok(()), |doubt| {
                Err(Refusal::new(&doubt.evidence, format!("{}, or give `--scale`", doubt.advice)))
            });
        }
        if workload.dataset_foreign {
            return Ok(());
        }
        room::refuse_shortage(plan, data_root, &self.request)
    }
}

/// Returns the request with the required number of files. `request` has the full size.
fn sized(request: &Request) -> anyhow::Result<Request> {
    let is_given = request.overrides.iter().any(|given| overridden_key(given) == FILES_KEY);
    if is_given || request.foreign {
        return Ok(request.clone());
    }
    let plan = match resolve_named(request) {
        Ok(resolved) => resolved.plan,
        // The workload may have too few files for a step of all accelerators.
        Err(error) => {
            let enlarged = enlarge_dataset(request, THIS_MACHINE).ok_or(error)?;
            return Ok(enlarged.0);
        }
    };
    let mut sized = request.clone();
    if let Some(requirement) = Requirement::new(&plan, request, THIS_MACHINE, None) {
        sized.overrides.push(format!("{FILES_KEY}={}", requirement.dataset.files()));
    }
    Ok(sized)
}

/// Returns the number of runs of a submission, and the folder of these runs.
fn runs_and_folder(plan: &Plan) -> Result<(u64, PathBuf), Refusal> {
    let model = CheckpointModel::find(&plan.workload).filter(|_| plan.is_checkpoint_only());
    if let Some(model) = model {
        return Ok((1, ["checkpointing", &format!("llama3-{}", model.name)].iter().collect()));
    }
    let Some((rule, step)) = find_rule(&plan.workload, Some(plan.train.compute.mean_s())) else {
        return Err(Refusal::new(
            format!("`{}` is not a workload of MLPerf Storage", plan.workload),
            "`--rehearse` makes the runs of a submission; `feedrate list` shows its workloads first. A file of your own is one of them if it is named like it, such as `retinanet_b200.yaml`",
        ));
    };
    let edition = Edition::last_accepting(step.accelerator).unwrap_or(Edition::V3_0);
    let runs = runs_of_submission(edition).unwrap_or(SCORED_RUNS + 1);
    Ok((runs, ["training", rule.model, "run"].iter().collect()))
}

/// Whether memory can hold so much of the data that the rules require a cold cache.
fn may_be_cached(plan: &Plan, memory_bytes: u64) -> bool {
    let memory = memory_bytes as f64;
    if let Some(checkpoint) = plan.checkpoint.as_ref().filter(|_| plan.is_checkpoint_only()) {
        let written = checkpoint.total_bytes as f64 * checkpoint.count(&plan.train) as f64;
        return written < WRITTEN_TO_MEMORY_MIN * memory;
    }
    let samples = plan.dataset.files_train as f64 * plan.dataset.samples_per_file as f64;
    !is_large_enough(samples * plan.dataset.record_bytes / memory)
}
