//! A workload, or a run that is over, with changes: the plan that a run of it would have, as `run` resolves it, and its command. Runs nothing.

use crate::cli::DataArguments;
use crate::exit::{Interrupted, refuse};
use crate::messages;
use crate::resolve::{self, Resolved, WorkloadSource};
use feedrate_measure::record::{AskedData, Record};
use feedrate_report::replan::Replan;
use feedrate_results::load_run;
use feedrate_results::run::Run;
use feedrate_spec::plan::{Cache, Plan, Request};
use feedrate_study::bash;
use std::path::Path;

/// A change of how many accelerators there are begins so.
pub(crate) const ACCELERATORS_IS: &str = "accelerators=";

/// A workload that may be changed. Changes are overrides, behind those it has.
pub(crate) struct Changeable {
    source: WorkloadSource,
    /// Arguments that run it unchanged.
    pub(crate) data: DataArguments,
    request: Request,
    /// Without a change.
    pub(crate) own: Resolved,
}

impl Changeable {
    /// The run in `folder`, whose record this is; `data` may name another folder of the datasets.
    pub(crate) fn of_run(
        folder: &str,
        record: &Record,
        data: &DataArguments,
    ) -> anyhow::Result<Self> {
        let plan = &record.plan;
        let source = resolve::of_run(folder, plan.workload.clone())?;
        let mut data = data.clone();
        data.workload = folder.into();
        data.accelerators = Some(plan.accelerators);
        if let Some(AskedData { data_root, scale, shrink_records, foreign }) = &record.asked {
            data.data.get_or_insert_with(|| data_root.into());
            (data.scale, data.shrink_records, data.foreign) = (*scale, *shrink_records, *foreign);
        }
        let request = Request {
            processes: Some(record.processes.len().max(1) as u32),
            cache: plan.train.cache,
            verify: plan.loader.verify,
            ..Request::default()
        };
        let of = Self::new(source, data, request)?;
        if of.own.plan.dataset != plan.dataset {
            return refuse(
                format!("the settings in `{folder}` do not make the plan of its own run again"),
                "an older feedrate does not tell its `--scale`: run the workload again",
            );
        }
        Ok(of)
    }

    fn new(source: WorkloadSource, data: DataArguments, request: Request) -> anyhow::Result<Self> {
        let (own, _) = resolve::resolve_source(&source, &data, request.clone())?;
        Ok(Changeable { source, data, request, own })
    }

    /// Plan a run with a change.
    pub(crate) fn resolve(&self, change: &[String]) -> anyhow::Result<Resolved> {
        let data = self.with(change);
        Ok(resolve::resolve_source(&self.source, &data, self.request.clone())?.0)
    }

    /// The plan of a run with a change.
    pub(crate) fn plan(&self, change: &[String]) -> anyhow::Result<Plan> {
        Ok(self.resolve(change)?.plan)
    }

    /// Arguments that run it with a change.
    pub(crate) fn with(&self, change: &[String]) -> DataArguments {
        let mut data = self.data.clone();
        data.overrides.extend(change.iter().cloned());
        // The option would decide over the key.
        if change.iter().any(|text| text.starts_with(ACCELERATORS_IS)) {
            data.accelerators = None;
        }
        data
    }

    /// The run in a folder of that name, else a workload. A `cache` that is asked for is that of its next runs.
    pub(crate) fn find(
        data: &DataArguments,
        cache: Cache,
    ) -> anyhow::Result<(Self, Option<Record>)> {
        if !resolve::is_run(&data.workload) {
            return Ok((Self::of_workload(data, cache)?, None));
        }
        let record = load_run(Path::new(&data.workload))?;
        let mut of = Self::of_run(&data.workload, &record, data)?;
        if cache != Cache::AsIs {
            of.request.cache = cache;
            of.own = of.resolve(&[])?;
        }
        Ok((of, Some(record)))
    }

    /// Take what `run` would be given.
    pub(crate) fn of_workload(data: &DataArguments, cache: Cache) -> anyhow::Result<Self> {
        let source = resolve::find(&data.workload)?;
        let request = Request { processes: Some(1), cache, ..Request::default() };
        Self::new(source, data.clone(), request)
    }

    /// Refuse the run of several processes: what is run again is one.
    pub(crate) fn refuse_processes(&self) -> anyhow::Result<()> {
        match self.request.processes {
            Some(processes) if processes > 1 => refuse(
                format!(
                    "the run in `{}` had {processes} processes, and trials have one",
                    self.data.workload
                ),
                "give the workload itself, with as many accelerators: `-n`",
            ),
            _ => Ok(()),
        }
    }

    /// State of the page cache before its epochs.
    pub(crate) fn cache(&self) -> Cache {
        self.request.cache
    }

    /// The command that runs it with a change.
    pub(crate) fn command(&self, change: &[String]) -> String {
        let data = DataArguments { json: false, ..self.with(change) };
        let mut words = vec!["feedrate".to_string()];
        words.extend(data.words_of_run(self.cache()));
        bash::command(&words)
    }
}

impl Replan for Changeable {
    fn plan(&self, overrides: &[String]) -> Option<Plan> {
        Changeable::plan(self, overrides).ok()
    }

    fn command(&self, overrides: &[String]) -> String {
        Changeable::command(self, overrides)
    }
}

/// A run of ours whose record there is, with changes; `None` where its settings do not make it again.
pub(crate) fn replan(run: &Run) -> Option<Box<dyn Replan>> {
    let folder = run.path.display().to_string();
    let of = Changeable::of_run(&folder, run.record.as_ref()?, &DataArguments::from_name(&folder));
    Some(Box::new(of.ok()?))
}

/// Reason for an end before its time: `what`, such as `the runs were`, and `interrupted`, or the error.
pub(crate) fn why_stopped(error: &anyhow::Error, what: &str) -> String {
    if error.is::<Interrupted>() { format!("{what} interrupted") } else { why_not(error) }
}

/// An error with its hint, on one line.
pub(crate) fn why_not(error: &anyhow::Error) -> String {
    let told = messages::told(error);
    let lines = told.lines().map(|line| {
        let line = line.trim().trim_start_matches("error: ");
        line.strip_prefix("hint: ").unwrap_or(line)
    });
    lines.collect::<Vec<_>>().join("; ")
}
