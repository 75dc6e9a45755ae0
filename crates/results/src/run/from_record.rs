//! Creates a run from a record, either written by feedrate or reconstructed from a DLIO folder.

use super::{
    Activity, CheckpointSchedule, DatasetUse, FolderNames, Run, StepTimeSummary, Submission,
    WorkloadSource, settings,
};
use crate::import::RunOrigin;
use crate::row::{UNCOUNTED_WARM_UP, WARM_UP};
use feedrate_measure::derived::Derived;
use feedrate_measure::doubt;
use feedrate_measure::metric::{
    self, METRICS, Metric, NOMINAL_WHOLE, NOMINAL_WINDOWED, Provenance, Value, Values,
};
use feedrate_measure::phase::phases;
use feedrate_measure::record::{Record, System};
use feedrate_measure::supply::Supply;
use feedrate_measure::window::Scope;
use feedrate_spec::plan::Plan;
use std::path::Path;

/// Properties of a run that do not depend on its steps.
pub(super) struct Header<'a> {
    pub(super) program: &'a str,
    pub(super) plan: &'a Plan,
    pub(super) system: &'a System,
    pub(super) machines: &'a [System],
    pub(super) started: &'a str,
    pub(super) ended: &'a str,
}

impl<'a> Header<'a> {
    fn from_record(record: &'a Record) -> Self {
        let Record { program, plan, system, started, ended, .. } = record;
        Header { program, plan, system, machines: record.machines(), started, ended }
    }
}

impl Run {
    /// Creates a run from a record, with the doubts that follow from the record alone.
    pub fn from_record(path: &Path, record: &Record) -> Self {
        let mut run = Run::without_doubts(path, "", record);
        let derived = Derived::new(record);
        run.doubts = doubt::doubts(&derived);
        run.supply = Some(Supply::new(&derived, &run.doubts));
        run.set_usability();
        run
    }

    /// Creates a run from a record that feedrate wrote, without doubts.
    pub(crate) fn without_doubts(path: &Path, source: &str, record: &Record) -> Self {
        let names = FolderNames::new(path);
        let plan = &record.plan;
        let study = record.study.as_ref();
        let overrides = study.map(|study| study.overrides.clone()).unwrap_or_default();
        let (parameter, value) = names.varied_parameters(&overrides, &[], Some(plan.accelerators));
        let checkpoints_only = plan.is_checkpoint_only();
        let mut run = Run {
            origin: RunOrigin::Feedrate,
            activity: if checkpoints_only { Activity::Checkpoints } else { Activity::Training },
            workload: plan.workload.clone(),
            core_config: plan.core_config.clone(),
            contradictions: record.contradictions.clone(),
            workload_from: Some(WorkloadSource::Config),
            bar_percent: Some(plan.metric.au_target_percent),
            accelerators: Some(plan.accelerators),
            parameter,
            value,
            overrides,
            study: record.study.as_deref().cloned(),
            replicate: record.study.as_ref().and_then(|study| study.replicate),
            hosts: Some(record.machines().len() as u64),
            settings: settings::from_record(record),
            read_threads: match &record.watched {
                Some(watched) => watched.workers,
                None => Some(plan.loader.workers),
            },
            checkpoints: CheckpointSchedule::from_record(record),
            ..Run::from_plan(path, source, &names, Header::from_record(record)).with_steps(record)
        };
        // A watched training loop computes its own steps.
        run.computes_on_devices |= record.watched.is_some();
        run.dataset_use.make_unique(record);
        let is_warm_up = record.study.as_ref().is_some_and(|study| study.note == UNCOUNTED_WARM_UP);
        if is_warm_up && !Path::new(source).starts_with(path) {
            run.put_aside = Some(WARM_UP.into());
        }
        run.set_values(metric::measured_values(record), record);
        run
    }

    /// Creates a run without steps from its plan and machines.
    pub(super) fn from_plan(
        path: &Path,
        source: &str,
        names: &FolderNames,
        header: Header,
    ) -> Self {
        let dataset = &header.plan.dataset;
        let submission = Submission::new(path);
        Run {
            path: path.into(),
            source: source.into(),
            rules_edition: submission.as_ref().and_then(Submission::edition),
            submission,
            put_aside: if is_named_by(path, source) { None } else { names.put_aside.clone() },
            started: known_text(header.started),
            ended: known_text(header.ended),
            hostname: known_text(&header.system.hostname),
            machines: header.machines.to_vec(),
            place: settings::place(header.program, header.system, header.machines),
            has_no_device: header.plan.storage.has_no_device,
            computes_on_devices: header.plan.train.on_devices.is_some(),
            memory_bytes: header.system.memory_bytes,
            format: known_text(&dataset.format),
            record_length_bytes: (dataset.record_bytes > 0.0).then_some(dataset.record_bytes),
            files: known_count(dataset.files_train),
            samples_per_file: known_count(dataset.samples_per_file),
            batch_size: known_count(header.plan.loader.batch_size),
            ..Run::default()
        }
    }

    /// Adds the steps of a record, without metrics.
    pub(super) fn with_steps(self, record: &Record) -> Self {
        Run {
            epochs: Scope::whole_epochs(record).filter(|scope| scope.steps() > 0).count() as u64,
            steps: Scope::all_epochs(record).map(Scope::steps).max().unwrap_or(0),
            step_times: StepTimeSummary::new(record),
            phases: phases(record),
            dataset_use: DatasetUse::from_steps(record),
            ..self
        }
    }

    /// Sets the metrics of the run, and computes the metrics of its epochs.
    pub(super) fn set_values(&mut self, values: Values, record: &Record) {
        self.values = values;
        if self.record_length_bytes.is_none() {
            self.values.remove(&NOMINAL_WHOLE.id);
            self.values.remove(&NOMINAL_WINDOWED.id);
        }
        let known = METRICS.iter().filter(|metric| self.values.contains_key(&metric.id));
        self.series = known.map(|metric| (metric.id, metric.epoch_values(record))).collect();
    }

    /// Sets a metric of the run, or removes it if `number` is `None`.
    pub(super) fn set(&mut self, metric: &Metric, number: Option<f64>, provenance: Provenance) {
        self.values.remove(&metric.id);
        self.values.extend(number.map(|number| (metric.id, Value { number, provenance })));
    }
}

/// Returns whether `source`, the path that the user named, is the run's parent folder or a path below it.
fn is_named_by(path: &Path, source: &str) -> bool {
    path.parent().is_some_and(|parent| Path::new(source).starts_with(parent))
}

fn known_text(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_string())
}

fn known_count(count: u64) -> Option<u64> {
    (count > 0).then_some(count)
}
