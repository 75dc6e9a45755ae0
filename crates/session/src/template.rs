//! Plans a workload or a finished run again with changed settings, and writes the command of the changed run.

use crate::request::Request;
use crate::resolve::{self, Resolved, WorkloadSource};
use feedrate_measure::record::{DataRequest, Record};
use feedrate_results::load_run;
use feedrate_results::replan::Replan;
use feedrate_results::run::Run;
use feedrate_run::comm::most_on_one_machine;
use feedrate_spec::escape::bash_command;
use feedrate_spec::plan::{Cache, Plan};
use feedrate_spec::refusal::refuse;
use std::path::Path;

/// Prefix of an override of the number of accelerators.
pub const ACCELERATORS_KEY: &str = "accelerators=";

/// A run with settings that can be changed. Changes are overrides that are added after the run's.
pub struct RunTemplate {
    source: WorkloadSource,
    /// The request for the unchanged run.
    pub request: Request,
    /// The unchanged run.
    pub unchanged: Resolved,
}

impl RunTemplate {
    /// Creates the template of the run in `folder`, which has `record`. `request` may name another data folder.
    ///
    /// # Errors
    /// Fails if the settings of the run cannot be read, or do not reproduce its plan.
    pub fn from_run(folder: &str, record: &Record, request: &Request) -> anyhow::Result<Self> {
        let plan = &record.plan;
        let source = resolve::run_source(folder, plan.workload.clone())?;
        let machines: Vec<u32> = record.processes.iter().map(|process| process.node).collect();
        let mut request = Request {
            workload: folder.into(),
            accelerators: Some(plan.accelerators),
            processes: Some(record.processes.len().max(1) as u32),
            host_processes: Some(most_on_one_machine(&machines).max(1)),
            cache: plan.train.cache,
            verify: plan.loader.verify,
            ..request.clone()
        };
        if let Some(DataRequest { data_root, scale, shrink_records, foreign }) =
            &record.data_request
        {
            request.data.get_or_insert_with(|| data_root.into());
            request.scale = *scale;
            request.shrink_records = *shrink_records;
            request.foreign = *foreign;
        }
        let mut template = Self::new(source, request)?;
        // Runs of earlier versions made large requests by default.
        if plan.loader.library.is_none() && template.unchanged.plan.loader.library.is_some() {
            template.request.overrides.insert(0, "reader.requests=large".into());
            template.unchanged = template.resolve(&[])?;
        }
        if template.unchanged.plan.dataset != plan.dataset {
            return refuse(
                format!("the settings in `{folder}` do not reproduce the plan of the run"),
                "an older feedrate did not record its `--scale`: run the workload again",
            );
        }
        Ok(template)
    }

    /// Creates the template of the run or workload that `request` names. Also returns the record of a run. A requested preparation of the page
    /// cache replaces the run's.
    ///
    /// # Errors
    /// Fails if there is no such run or workload, or if it cannot be planned.
    pub fn find(request: &Request) -> anyhow::Result<(Self, Option<Record>)> {
        if !resolve::is_run(&request.workload) {
            return Ok((Self::from_workload(request)?, None));
        }
        let record = load_run(Path::new(&request.workload))?;
        let mut template = Self::from_run(&request.workload, &record, request)?;
        if request.cache != Cache::AsIs {
            template.request.cache = request.cache;
            template.unchanged = template.resolve(&[])?;
        }
        Ok((template, Some(record)))
    }

    /// Creates the template of a workload with one process.
    ///
    /// # Errors
    /// Fails if the workload does not exist or cannot be planned.
    pub fn from_workload(request: &Request) -> anyhow::Result<Self> {
        let source = resolve::find(&request.workload)?;
        Self::new(source, Request { processes: Some(1), ..request.clone() })
    }

    fn new(source: WorkloadSource, request: Request) -> anyhow::Result<Self> {
        let unchanged = resolve::resolve_source(&source, &request)?;
        Ok(RunTemplate { source, request, unchanged })
    }

    /// Plans a run with a change.
    ///
    /// # Errors
    /// Fails if the run cannot be planned.
    pub fn resolve(&self, change: &[String]) -> anyhow::Result<Resolved> {
        resolve::resolve_source(&self.source, &self.with_change(change))
    }

    /// Returns the request for a run with a change.
    pub fn with_change(&self, change: &[String]) -> Request {
        let mut request = self.request.clone();
        request.overrides.extend(change.iter().cloned());
        // The number in the request would take precedence over the override.
        if change.iter().any(|text| text.starts_with(ACCELERATORS_KEY)) {
            request.accelerators = None;
        }
        request
    }

    /// Refuses a run of several processes, because trials have one process.
    ///
    /// # Errors
    /// Fails if the run had several processes.
    pub fn refuse_processes(&self) -> anyhow::Result<()> {
        match self.request.processes {
            Some(processes) if processes > 1 => refuse(
                format!(
                    "the run in `{}` had {processes} processes, but trials have one",
                    self.request.workload
                ),
                "give the workload, with the same number of accelerators (`-n`)",
            ),
            _ => Ok(()),
        }
    }
}

impl Replan for RunTemplate {
    fn plan(&self, overrides: &[String]) -> Option<Plan> {
        Some(self.resolve(overrides).ok()?.plan)
    }

    fn command(&self, overrides: &[String]) -> String {
        let mut words = vec!["feedrate".to_string()];
        words.extend(self.with_change(overrides).run_arguments());
        bash_command(&words)
    }
}

/// Creates the template of a run with a record. Returns `None` if the settings of the run do not reproduce its plan.
pub fn replan(run: &Run) -> Option<Box<dyn Replan>> {
    let folder = run.path.display().to_string();
    let request = Request::default();
    Some(Box::new(RunTemplate::from_run(&folder, run.record.as_ref()?, &request).ok()?))
}
