//! `feedrate run`: generate what is missing, train, say whether the storage kept up.

use crate::cli::{CacheArguments, DataArguments, LaunchArguments};
use crate::dataset::{self, Choice, Files};
use crate::execute::{self, Execution, Talk};
use crate::exit::{Exit, Interrupted, refuse};
use crate::gate::GateArguments;
use crate::launch::{self, decided, together};
use crate::messages;
use crate::resolve::{self, Resolved, resolve, unheeded};
use crate::results::{self, Results, RunFolder};
use crate::summary::{self, Told};
use clap::Args;
use feedrate_measure::dlio::Invocation;
use feedrate_measure::record::{AskedData, Record, StudyRun};
use feedrate_measure::summary::{EpochSummary, Summary};
use feedrate_run::comm::Comm;
use feedrate_run::driver::Signals;
use feedrate_run::ranks::Ranks;
use feedrate_spec::plan::{Plan, Request};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;

/// `feedrate run`.
#[derive(Debug, Args)]
pub(super) struct RunArguments {
    #[command(flatten)]
    pub(super) data: DataArguments,
    #[command(flatten)]
    pub(super) launch: LaunchArguments,
    /// Folder that results go to [default: the workload's `output.folder`, else `results`].
    #[arg(long, value_name = "DIR")]
    pub(super) results: Option<PathBuf>,
    /// Folder of this run's own results, which holds none yet [default: one called after the time, under the results].
    #[arg(long, value_name = "DIR", conflicts_with = "results")]
    pub(super) run_dir: Option<PathBuf>,
    /// The run's place in its study, as JSON, for its record.
    #[arg(long, value_name = "FILE", hide = true)]
    pub(super) study: Option<PathBuf>,
    #[command(flatten)]
    pub(super) cache: CacheArguments,
    /// Compare every byte read with what generation wrote.
    #[arg(long)]
    pub(super) verify: bool,
    /// Print all that is known of the run, as `feedrate show` does, instead of the answer alone.
    #[arg(long)]
    pub(super) details: bool,
    #[command(flatten)]
    pub(super) gates: GateArguments,
}

impl RunArguments {
    /// Those that all processes have to agree on, beside the workload's.
    fn options(&self) -> [(&'static str, Option<String>); 5] {
        [
            ("--results", resolve::text(self.results.as_deref())),
            ("--run-dir", resolve::text(self.run_dir.as_deref())),
            ("--cold", Some(self.cache.cold.to_string())),
            ("--warm", Some(self.cache.warm.to_string())),
            ("--verify", Some(self.verify.to_string())),
        ]
    }

    /// Its wishes for a plan of so many processes.
    pub(super) fn request(&self, processes: u32) -> Request {
        let (processes, cache) = (Some(processes), self.cache.cache());
        Request { processes, cache, verify: self.verify, ..Request::default() }
    }
}

/// Run a workload.
pub(super) fn run(arguments: &RunArguments) -> anyhow::Result<Exit> {
    arguments.gates.refuse_bad()?;
    if arguments.data.foreign && arguments.verify {
        return refuse(
            "`--verify` compares with what feedrate generates, which `--foreign` files are not",
            "leave one of them out",
        );
    }
    let asked = || resolve::asked(&arguments.data, &arguments.launch, arguments.options());
    together(&arguments.launch, asked, |comm, signals| run_on(comm, arguments, signals))
}

/// Decision of rank 0.
#[derive(Serialize, Deserialize)]
struct Decision {
    plan: Plan,
    choice: Option<Choice>,
    run_dir: PathBuf,
    study: Option<StudyRun>,
    asked: AskedData,
}

fn run_on(
    comm: &Arc<dyn Comm>,
    arguments: &RunArguments,
    signals: &Signals,
) -> anyhow::Result<Exit> {
    let mut own = None;
    let decision = decided(&**comm, || {
        let (decision, asked, folder) = decide(comm.size(), arguments)?;
        own = Some((asked, folder));
        Ok(decision)
    })?;
    let (invocation, _folder) = own.unzip();
    let Decision { plan, choice, run_dir, study, asked } = decision;
    let ranks = Ranks::new(Arc::clone(comm), plan.accelerators);
    let dataset = dataset::ready(&plan, choice, None, &ranks, arguments.data.quiet, signals);
    let dataset = dataset.inspect_err(|_| {
        if ranks.is_first() {
            // One that is not empty stays.
            let _ = std::fs::remove_dir(&run_dir);
        }
    })?;
    let mut record = execute::new_record(&plan, dataset.as_ref(), Some(&run_dir));
    record.doubts.extend(study.iter().flat_map(|study| study.doubts.clone()));
    record.study = study.map(Box::new);
    record.asked = Some(asked);
    let results = invocation.map(|invocation| Results { folder: run_dir.clone(), invocation });
    let tells = ranks.is_first() && !arguments.data.quiet && !arguments.data.json;
    let mut execution = Execution {
        ranks: &ranks,
        record,
        results: results.as_ref(),
        talk: &mut EpochLines { epochs: plan.train.epochs_run(), tells },
        signals,
        unsaved: None,
    };
    let outcome = execution.run(&plan, dataset.as_ref());
    outcome.map_err(|error| error.context(execution.kept()))?;
    let Execution { record, unsaved, .. } = execution;
    let folder = unsaved.as_ref().map_or(Some(&run_dir), |unsaved| unsaved.elsewhere.as_ref());
    let (mut code, mut printed) = (Exit::Fine, Ok(()));
    if ranks.is_first() {
        let mut summary = Summary::new(&record);
        summary.run_dir = folder.map(|folder| folder.display().to_string());
        let told = match (arguments.data.json, arguments.details) {
            (true, _) => Told::Json,
            (false, true) => Told::Details,
            (false, false) => Told::Answer,
        };
        printed = summary::print(&summary, &record, told);
        code = arguments.gates.exit(&summary);
    }
    if let Some(unsaved) = unsaved {
        return Err(unsaved.into());
    }
    if !record.complete {
        return Err(Interrupted(run_dir.display().to_string()).into());
    }
    printed?;
    Ok(code)
}

/// Plan, make the folder of the results, and find the dataset.
fn decide(
    processes: u32,
    arguments: &RunArguments,
) -> anyhow::Result<(Decision, Invocation, RunFolder)> {
    let per_rank = arguments.launch.accelerators_per_rank;
    let accelerators = launch::accelerators(processes, arguments.data.accelerators, per_rank)?;
    let data = &DataArguments { accelerators, ..arguments.data.clone() };
    let Resolved { plan, workload, data_root } = resolve(data, arguments.request(processes))?;
    if !data.quiet {
        for key in unheeded(&workload) {
            messages::say(format!("note: no effect: {key}"));
        }
    }
    let files = if data.foreign { Files::Foreign } else { Files::Generated };
    let has_data = !plan.is_checkpoints_alone();
    let choice = has_data.then(|| dataset::choose(&plan, &data_root, files)).transpose()?;
    let study = arguments.study.as_deref().map(results::read_study_run).transpose()?;
    let folder = match &arguments.run_dir {
        Some(run_dir) => RunFolder::take_new(run_dir)?,
        None => {
            let root = results::root(arguments.results.as_deref(), &workload)?;
            let model = root.join(results::file_name(&plan.model));
            RunFolder::take(results::make_folder(&model, "")?, "`--results`")?
        }
    };
    let run_dir = folder.path.clone();
    // Files that Hydra would have written beside the results.
    let mut typed = vec![format!("workload={}", plan.workload)];
    typed.extend(data.overrides.iter().cloned());
    let hydra = results::hydra_text(&typed, &[], &plan.workload, &workload, &run_dir, ".hydra");
    let invocation = Invocation { subfolder: ".hydra".into(), hydra, ..Invocation::default() };
    let data_root = std::path::absolute(&data_root).unwrap_or(data_root);
    let asked = AskedData {
        data_root: data_root.display().to_string(),
        scale: data.scale,
        shrink_records: data.shrink_records,
        foreign: data.foreign,
    };
    Ok((Decision { plan, choice, run_dir, study, asked }, invocation, folder))
}

/// Tells of epochs and checkpoints, a line each.
struct EpochLines {
    epochs: u32,
    tells: bool,
}

impl Talk for EpochLines {
    fn epoch(&mut self, record: &Record) {
        if self.tells
            && !messages::is_live()
            && let Some(epoch) = record.epochs.last()
        {
            let epoch = EpochSummary::new(record, epoch);
            messages::say(summary::epoch_line(&epoch, self.epochs));
        }
    }

    fn checkpoint(&mut self, record: &Record) {
        let last = record.epochs.last().and_then(|epoch| epoch.checkpoints.last());
        if self.tells
            && let Some(checkpoint) = last
        {
            messages::say(summary::checkpoint_line(checkpoint));
        }
    }

    fn draws(&self) -> bool {
        self.tells
    }
}
