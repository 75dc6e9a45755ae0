//! `feedrate run`: generate what is missing, train, say whether the storage kept up.

use super::{calibrate, plan};
use crate::cli::{CacheArguments, DataArguments, LaunchArguments, OUTPUT, StepArguments, WHAT};
use crate::dataset::{self, Choice, Files};
use crate::execute::{self, Execution, Talk};
use crate::exit::{Exit, Interrupted, UsageError, refuse};
use crate::folder::{self, FoundFolder};
use crate::gate::GateArguments;
use crate::launch::{self, agreed, decided, together};
use crate::output::{refuse_there, write_output};
use crate::progress::Viewer;
use crate::resolve::{self, Resolved, unheeded_words};
use crate::results::{self, Results, RunFolder};
use crate::summary::{self, Told};
use crate::{messages, room};
use clap::{ArgMatches, Args};
use feedrate_analysis::answer::AnsweredSummary;
use feedrate_data::manifest::Manifest;
use feedrate_measure::dlio::Invocation;
use feedrate_measure::record::file::NAMES_FILE;
use feedrate_measure::record::{AskedData, Record, StudyRun};
use feedrate_measure::summary::EpochSummary;
use feedrate_run::comm::Comm;
use feedrate_run::live::Signals;
use feedrate_run::new_file::NewFile;
use feedrate_run::ranks::Ranks;
use feedrate_spec::escape::shown_path;
use feedrate_spec::plan::{ClientProfile, Plan, Request};
use feedrate_spec::workload::resolved_yaml;
use feedrate_study::bash;
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The end of a trace's name, by which its readers know it.
const TRACE_ENDING: &str = ".pfw.gz";
/// Accelerators up to which DLIO's files of each rank are written without `--rank-files`: tens of thousands of small files take longer
/// than a short run.
const RANK_FILES_MAX: u32 = 1024;

/// `feedrate run`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  feedrate run unet3d_h100 -n 4 --data /mnt/fs    does it feed 4 accelerators?
  feedrate run my.yaml reader.read_threads=8 --scale 0.1    a tenth of the data
  feedrate run --data DIR --batch 64 --compute 50ms    your own files")]
pub(super) struct RunArguments {
    #[command(flatten)]
    pub(super) data: DataArguments,
    #[command(flatten)]
    pub(super) step: StepArguments,
    /// Compare every byte that is read with what was generated.
    #[arg(long, help_heading = WHAT)]
    pub(super) verify: bool,
    #[command(flatten)]
    pub(super) cache: CacheArguments,
    /// Folder of all results [default: the workload's `output.folder`, else `results`].
    #[arg(long, value_name = "DIR", help_heading = OUTPUT)]
    pub(super) results: Option<PathBuf>,
    /// Folder of this run's results, new or empty [default: one named by the time, in the folder of all results].
    #[arg(long, value_name = "DIR", conflicts_with = "results", help_heading = OUTPUT)]
    pub(super) run_dir: Option<PathBuf>,
    /// Write DLIO's two files of each accelerator even if there are more than 1,024.
    #[arg(long, help_heading = OUTPUT)]
    pub(super) rank_files: bool,
    /// Print all that is known of the run, as `feedrate show` does, not the answer alone.
    #[arg(long, help_heading = OUTPUT)]
    pub(super) details: bool,
    /// Only say what would run, as `feedrate plan` does.
    #[arg(long, help_heading = WHAT)]
    pub(super) dry_run: bool,
    /// Write the workload as it is run, with every override, to this file.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(super) write_yaml: Option<PathBuf>,
    /// Write each I/O operation and step to a trace, `NAME.pfw.gz`, for Perfetto or dfanalyzer; each of several ranks writes its own.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(super) trace: Option<PathBuf>,
    #[command(flatten)]
    pub(super) gates: GateArguments,
    #[command(flatten)]
    pub(super) launch: LaunchArguments,
    /// Hydra's flag for several runs, answered with the study that makes them.
    #[arg(short, long, hide = true)]
    pub(super) multirun: bool,
    /// The run's place in its study, as JSON, for its record.
    #[arg(long, value_name = "FILE", hide = true)]
    pub(super) study: Option<PathBuf>,
}

impl RunArguments {
    /// With options that stand for keys as such, and words told apart.
    pub(super) fn with_overrides(&self) -> anyhow::Result<Self> {
        let mut own = self.clone();
        let data = &mut own.data;
        *data = data.told_apart();
        data.overrides.extend(own.step.take());
        Ok(own)
    }

    /// The trace of each of so many processes, where one is wanted.
    fn traces(&self, processes: u32) -> anyhow::Result<Vec<PathBuf>> {
        let Some(file) = &self.trace else { return Ok(Vec::new()) };
        let Some(name) = file.to_str().and_then(|text| text.strip_suffix(TRACE_ENDING)) else {
            return refuse(
                format!("`--trace {}`: a trace is compressed JSON", file.display()),
                format!("end its name in `{TRACE_ENDING}`"),
            );
        };
        if processes == 1 {
            return Ok(vec![file.clone()]);
        }
        Ok((0..processes).map(|rank| format!("{name}.{rank}{TRACE_ENDING}").into()).collect())
    }

    /// Take the place of this process's trace, before anything is made; where one can have none, no other has one either.
    fn take_trace(&self, ranks: &Ranks) -> anyhow::Result<Option<NewFile>> {
        let file = self.traces(ranks.comm.size())?.into_iter().nth(ranks.comm.rank() as usize);
        let Some(file) = file else { return Ok(None) };
        let (place, refused) = match place_of_trace(&file) {
            Ok(place) => (Some(place), None),
            Err(refused) => (None, Some(refused.into())),
        };
        agreed(ranks, refused)?;
        Ok(place)
    }

    /// Refuse a place in the folder of the data for what is written.
    fn refuse_below(&self, data: &Path) -> anyhow::Result<()> {
        let named = [("--trace", &self.trace), ("--write-yaml", &self.write_yaml)];
        let named = named.into_iter().filter_map(|(option, file)| Some((option, file.as_ref()?)));
        named.into_iter().try_for_each(|(option, file)| refuse_below(file, data, option))
    }

    /// Its wishes for a plan of so many processes.
    pub(super) fn request(&self, processes: u32) -> Request {
        let (processes, cache) = (Some(processes), self.cache.cache());
        Request { processes, cache, verify: self.verify, ..Request::default() }
    }
}

/// Run a workload; `matches` tell what its processes have to agree on.
pub(super) fn run(arguments: &RunArguments, matches: &ArgMatches) -> anyhow::Result<Exit> {
    let arguments = &arguments.with_overrides()?;
    if arguments.dry_run {
        return plan::dry_run(&arguments.data, arguments.request(1));
    }
    if let Some(file) = &arguments.write_yaml {
        refuse_there(file, None)?;
    }
    let asked = || resolve::asked(&arguments.data, &arguments.launch, matches);
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
        let (decision, asked, kept) = decide(comm.size(), arguments)?;
        own = Some((asked, kept));
        Ok(decision)
    })?;
    let (invocation, kept) = own.unzip();
    let (_folder, found) = kept.unzip();
    let found: Option<FoundFolder> = found.flatten();
    let Decision { plan, choice, run_dir, study, asked } = decision;
    let ranks = Ranks::new(Arc::clone(comm), plan.accelerators);
    let viewer = if ranks.is_first() { arguments.data.viewer() } else { Viewer::Nobody };
    let ready = arguments.take_trace(&ranks).and_then(|trace| {
        Ok((trace, dataset::ready(&plan, choice, None, &ranks, viewer.clone(), signals)?))
    });
    let (trace, dataset) = ready?;
    let mut record = execute::new_record(&plan, dataset.as_ref(), Some(&run_dir));
    record.doubts.extend(study.iter().flat_map(|study| study.doubts.clone()));
    record.study = study.map(Box::new);
    record.asked = Some(asked);
    let results = invocation.map(|invocation| Results { folder: run_dir.clone(), invocation });
    let tells = ranks.is_first() && !arguments.data.json;
    let mut execution = Execution {
        ranks: &ranks,
        record,
        results: results.as_ref(),
        talk: &mut EpochLines { epochs: plan.train.epochs_run(), tells },
        viewer,
        signals,
        trace,
        unsaved: None,
    };
    let outcome = execution.run(&plan, dataset.as_ref());
    outcome.map_err(|error| error.context(execution.kept()))?;
    let Execution { record, unsaved, .. } = execution;
    let folder = unsaved.as_ref().map_or(Some(&run_dir), |unsaved| unsaved.elsewhere.as_ref());
    let (mut code, mut printed) = (Exit::Fine, Ok(()));
    if ranks.is_first() {
        let mut summary = AnsweredSummary::new(&record);
        summary.summary.run_dir = folder.map(|folder| shown_path(folder));
        let told = match (arguments.data.json, arguments.details) {
            (true, _) => Told::Json,
            (false, true) => Told::Details,
            (false, false) => Told::Answer,
        };
        let next = of_the_job(arguments, &record);
        printed = summary::print(&summary, &record, told, found.as_ref(), next.as_deref());
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

/// The command that asks about the job, whose own code takes time too, where this run of somebody's own files asked about the storage alone.
fn of_the_job(arguments: &RunArguments, record: &Record) -> Option<String> {
    let plan = &record.plan;
    let is_foreign = record.asked.as_ref().is_some_and(|asked| asked.foreign);
    if !is_foreign || plan.loader.client.is_some() {
        return None;
    }
    let mut data = DataArguments { live_file: None, ..arguments.data.clone() };
    if let Some(file) = &arguments.write_yaml {
        let accelerators = data.accelerators;
        data =
            DataArguments { accelerators, ..DataArguments::from_name(&file.display().to_string()) };
    }
    let (whose, command) = match ClientProfile::find_for(plan) {
        Some(profile) => {
            data.overrides.push(format!("client={}", profile.name));
            let words = data.words_of_run(arguments.cache.cache()).into_iter();
            let words =
                ["feedrate".into()].into_iter().chain(words.filter(|word| !word.is_empty()));
            ("plain PyTorch's code", bash::command(&words.collect::<Vec<_>>()))
        }
        None => ("your own code, measured once", calibrate::command(&plan.loader, &data.workload)),
    };
    Some(format!("Your job's question, with {whose}:\n  {command}"))
}

/// Make the folder of the results, plan, and find the dataset.
fn decide(
    processes: u32,
    arguments: &RunArguments,
) -> anyhow::Result<(Decision, Invocation, (RunFolder, Option<FoundFolder>))> {
    for file in arguments.traces(processes)? {
        // Before a folder is looked through, and data is made.
        drop(place_of_trace(&file)?);
    }
    let per_rank = arguments.launch.accelerators_per_rank;
    let accelerators = launch::accelerators(processes, arguments.data.accelerators, per_rank)?;
    let data = &DataArguments { accelerators, ..arguments.data.clone() };
    let request = arguments.request(processes);
    if !data.workload.is_empty() {
        let resolved = resolve::resolve(data, request.clone())?;
        let root = results::root(arguments.results.as_deref(), &resolved.workload)?;
        // Names of others go into the run's folder.
        let is_ours = !resolved.workload.dataset_foreign;
        let ours = is_ours.then(|| choose(&resolved, Files::Generated)).transpose()?;
        match &ours {
            None => arguments.refuse_below(&resolved.data_root)?,
            Some(Some(choice)) => {
                arguments.refuse_below(&choice.folder)?;
                room::refuse_without(&resolved.plan, &resolved.data_root, data, &request)?;
            }
            Some(None) => {}
        }
        let taken = take_folder(arguments, &root, &resolved.plan.model)?;
        return decide_in(taken, arguments, data, resolved, ours, None);
    }
    let Some(folder) = &data.data else { return Err(UsageError::plain("which workload?").into()) };
    let root = arguments.results.as_deref().unwrap_or(Path::new("results"));
    arguments.refuse_below(folder)?;
    refuse_below(arguments.run_dir.as_deref().unwrap_or(root), folder, "--results")?;
    let taken = take_folder(arguments, root, &resolve::stem(folder))?;
    let names = taken.path.join(NAMES_FILE);
    let (found, resolved) = folder::resolve_found(data, folder, &names, request)?;
    decide_in(taken, arguments, data, resolved, None, Some(found))
}

/// The dataset, where one is read.
fn choose(of: &Resolved, files: Files<'_>) -> anyhow::Result<Option<Choice>> {
    let has_data = !of.plan.is_checkpoints_alone();
    has_data.then(|| dataset::choose(&of.plan, &of.data_root, files)).transpose()
}

fn place_of_trace(file: &Path) -> Result<NewFile, UsageError> {
    NewFile::create(file).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => UsageError::new(
            format!("`{}` is there already", file.display()),
            "give `--trace` another name",
        ),
        _ => UsageError::new(
            format!("cannot make `{}`: {error}", file.display()),
            "name a place in a folder that is there and that you may write, with `--trace`",
        ),
    })
}

/// Refuse a place below a folder of data, or below another dataset of ours, for what goes where `option` says: nothing else is written there.
fn refuse_below(place: &Path, data: &Path, option: &str) -> anyhow::Result<()> {
    let absolute = std::path::absolute(place)?;
    let there = absolute.ancestors().find_map(|folder| folder.canonicalize().ok());
    let (there, data) = (there.unwrap_or_default(), data.canonicalize().ok());
    let is_of_data =
        |folder: &&Path| Some(*folder) == data.as_deref() || Manifest::own_in(folder).is_some();
    let Some(folder) = there.ancestors().find(is_of_data) else {
        return Ok(());
    };
    refuse(
        format!("`{}` would lie in `{}`, a folder of data", place.display(), folder.display()),
        format!("name another place with `{option}`"),
    )
}

/// The run's own folder, below `root`.
fn take_folder(arguments: &RunArguments, root: &Path, model: &str) -> anyhow::Result<RunFolder> {
    match &arguments.run_dir {
        Some(run_dir) => RunFolder::take_new(run_dir),
        None => {
            let model = root.join(results::file_name(model));
            RunFolder::make_in(&model, "`--results`")
        }
    }
}

fn decide_in(
    folder: RunFolder,
    arguments: &RunArguments,
    data: &DataArguments,
    resolved: Resolved,
    choice: Option<Option<Choice>>,
    found: Option<FoundFolder>,
) -> anyhow::Result<(Decision, Invocation, (RunFolder, Option<FoundFolder>))> {
    messages::detail(|| plan::page(&resolved, data));
    for key in unheeded_words(&resolved.workload, data) {
        messages::note(format!("note: no effect: {key}"));
    }
    let run_dir = folder.path.clone();
    let names = run_dir.join(NAMES_FILE);
    // With other settings the files are looked at anew.
    let is_as_found = !data.overrides.iter().any(|text| text.contains("dataset."));
    let probed = if is_as_found { found.as_ref().map(|found| found.probed_files) } else { None };
    let foreign = || choose(&resolved, Files::Foreign { names: &names, probed });
    let choice = choice.map_or_else(foreign, Ok)?;
    let Resolved { plan, workload, data_root } = resolved;
    let study = arguments.study.as_deref().map(results::read_study_run).transpose()?;
    if let Some(file) = &arguments.write_yaml {
        write_output(file, resolved_yaml(&workload).as_bytes(), None)?;
    }
    // Files that Hydra would have written beside the results.
    let mut typed = vec![format!("workload={}", plan.workload)];
    typed.extend(data.overrides.iter().cloned());
    let hydra = results::hydra_text(&typed, &[], &plan.workload, &workload, &run_dir, ".hydra");
    let omits_rank_files = plan.accelerators > RANK_FILES_MAX && !arguments.rank_files;
    if omits_rank_files {
        messages::note("note: no result files of each rank; `--rank-files` writes them");
    }
    let subfolder = ".hydra".into();
    let invocation = Invocation { subfolder, hydra, omits_rank_files, ..Invocation::default() };
    let data_root = std::path::absolute(&data_root).unwrap_or(data_root);
    let asked = AskedData {
        data_root: data_root.display().to_string(),
        scale: data.scale,
        shrink_records: data.shrink_records,
        foreign: workload.dataset_foreign,
    };
    Ok((Decision { plan, choice, run_dir, study, asked }, invocation, (folder, found)))
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
            let computes = record.plan.train.compute.mean_s() > 0.0;
            let epoch = EpochSummary::new(record, epoch);
            messages::note(summary::epoch_line(&epoch, self.epochs, computes));
        }
    }

    fn checkpoint(&mut self, record: &Record) {
        let last = record.epochs.last().and_then(|epoch| epoch.checkpoints.last());
        if self.tells
            && let Some(checkpoint) = last
        {
            messages::note(summary::checkpoint_line(checkpoint));
        }
    }
}
