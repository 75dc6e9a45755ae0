//! A run from a DLIO folder.

use super::from_record::About;
use super::{
    Activity, CheckpointSchedule, DatasetUse, FolderNames, Run, UNKNOWN, WorkloadSource,
    folder_names, settings,
};
use crate::import::{DLIO, EpochTotal, Imported, Reported, RunOrigin, Totals, mean_sample_bytes};
use feedrate_measure::metric::{
    self, AU_ALL_STEPS, BARRIER_S, Basis, DELIVERED_WHOLE, DURATION_S, LOAD_S, NOMINAL_WHOLE,
    Provenance, SAMPLES_WHOLE, STALL_PERCENT,
};
use feedrate_measure::phase::PhaseKind;
use feedrate_measure::record::Record;
use feedrate_measure::stats::mean;
use feedrate_spec::mlperf;
use std::path::Path;

/// Folders above a run that may name its workload.
const NAMES_MAX: usize = 7;

impl Run {
    /// From a DLIO folder, without doubts.
    pub(crate) fn imported(
        path: &Path,
        source: &str,
        origin: RunOrigin,
        imported: &Imported,
    ) -> Self {
        let (names, plan) = (FolderNames::new(path), &imported.plan);
        let about = About {
            program: DLIO,
            plan,
            system: &imported.system,
            machines: std::slice::from_ref(&imported.system),
            started: &imported.started,
            ended: &imported.ended,
        };
        let known = Run::from_plan(path, source, &names, about);
        let mut known = match &imported.record {
            Some(record) => known.with_steps(record),
            None => known,
        };
        // Steps have no place in time within a block, as DLIO does not tell their barriers: what lies beside a checkpoint is not known.
        known.phases.retain(|of| {
            !matches!(of.phase, PhaseKind::BeforeCheckpoint | PhaseKind::AfterCheckpoint)
        });
        let given = imported.config.overrides.as_deref().unwrap_or_default();
        let accelerators = imported.ranks_expected.or(names.processes());
        let overrides = folder_names::varied_overrides(given);
        let (parameter, value) = names.varied(&overrides, &[], accelerators);
        let has_config = imported.config.is_known();
        let scalars = imported.reported.iter().flat_map(Reported::scalars);
        let compute_s = known.step_times.compute_s_per_step;
        let totals = imported.totals.iter().flat_map(|totals| &totals.epochs);
        let compute_s = imported.config.mean_compute_s().or(compute_s);
        let compute_s = compute_s.or_else(|| mean_of(totals.map(|epoch| epoch.compute_s)));
        let (workload, workload_from) = workload(path, &names, imported, compute_s).unzip();
        let mean = mean_sample_bytes(&imported.config, &plan.dataset);
        let mut run = Run {
            origin,
            activity: activity(imported),
            bar_percent: bar_percent(imported, workload.as_deref()),
            workload: workload.unwrap_or_else(|| UNKNOWN.into()),
            workload_from,
            accelerators,
            parameter,
            value,
            overrides,
            hosts: imported.hosts,
            read_threads: has_config.then_some(plan.loader.workers),
            reported: scalars.map(|(name, value)| (name.to_string(), value)).collect(),
            mean_sample_bytes: if plan.dataset.record_bytes > 0.0 { mean } else { None },
            ..known
        };
        let steps = std::mem::take(&mut run.dataset_use);
        run.dataset_use = DatasetUse::from_files(path, imported, steps);
        run.settings = settings::from_dlio(&run, has_config);
        let reported = imported.reported.as_ref();
        run.checkpoints =
            CheckpointSchedule::from_dlio(&imported.config, reported, run.accelerators);
        run.recompute(imported);
        run
    }

    fn recompute(&mut self, imported: &Imported) {
        if let Some(record) = &imported.record {
            self.recompute_from_steps(imported, record);
        }
        if let Some(totals) = &imported.totals {
            self.recompute_from_totals(imported, totals);
        }
        self.set_sample_bytes(self.mean_sample_bytes);
        for (id, value) in metric::reported(|name| self.reported.get(name).copied()) {
            self.values.entry(id).or_insert(value);
        }
    }

    fn recompute_from_steps(&mut self, imported: &Imported, record: &Record) {
        let all_ranks = imported.ranks_missing().is_empty();
        let known = [
            Some(Basis::Steps),
            all_ranks.then_some(Basis::AllRanks),
            self.batch_size.map(|_| Basis::BatchSize),
            self.record_length_bytes.map(|_| Basis::RecordLength),
        ];
        let known: Vec<Basis> = known.into_iter().flatten().collect();
        self.set_values(metric::recomputed(record, &known), record);
        let (load, barrier) = (self.step_times.load_percent, self.step_times.barrier_percent);
        let s_per_percent = self.metric(&LOAD_S).zip(load.filter(|load| 0.0 < *load));
        let barrier_s = s_per_percent.zip(barrier);
        let barrier_s = barrier_s.map(|((load_s, load), barrier)| load_s / load * barrier);
        self.set(&BARRIER_S, barrier_s, Provenance::Recomputed);
        self.set(&STALL_PERCENT, load, Provenance::Recomputed);
    }

    /// Numbers that totals do not tell.
    fn recompute_from_totals(&mut self, imported: &Imported, totals: &Totals) {
        let epochs = &totals.epochs;
        if epochs.is_empty() {
            self.epochs = imported.reported_epochs() as u64;
            self.steps = imported.plan.train.steps_per_epoch;
            return;
        }
        let per_step = self.batch_size.zip(imported.ranks_expected);
        let per_step = per_step.map(|(batch, ranks)| batch as f64 * f64::from(ranks));
        let rates = epochs.iter().map(|epoch| {
            let samples = epoch.steps as f64 * per_step?;
            (0.0 < samples).then(|| samples / epoch.wall_s)
        });
        let rates: Vec<Option<f64>> = rates.collect();
        let rate = per_step.and_then(|per_step| totals.samples_per_second(per_step));
        let length = self.record_length_bytes;
        let bytes = |rate: Option<f64>| Some(rate? * length?);
        let wall_s = epochs.iter().map(|epoch| epoch.wall_s);
        let mut told = vec![
            (&SAMPLES_WHOLE, rate, rates.clone()),
            (&NOMINAL_WHOLE, bytes(rate), rates.iter().map(|rate| bytes(*rate)).collect()),
            (&DURATION_S, Some(wall_s.clone().sum()), wall_s.map(Some).collect()),
        ];
        if imported.record.is_none() {
            let au: Vec<_> = epochs.iter().map(EpochTotal::au_all_steps_percent).collect();
            told.push((&AU_ALL_STEPS, mean_of(au.iter().copied()), au));
            self.epochs = epochs.len() as u64;
            self.steps = epochs.iter().map(|epoch| epoch.steps).max().unwrap_or(0);
            self.step_times.compute_s_per_step = mean_of(epochs.iter().map(|one| one.compute_s));
            self.step_times.first_step_s = mean_of(epochs.iter().map(|epoch| epoch.first_step_s));
            self.bound = totals.bound;
            self.dataset_use.fingerprint = totals.fingerprint();
        }
        for (metric, number, of_epochs) in told {
            self.set(metric, number, Provenance::Recomputed);
            self.series.insert(metric.id, of_epochs);
        }
    }

    /// Set the mean size of the samples that were read, from which the rate in bytes is estimated; `None` where that is not known.
    pub(crate) fn set_sample_bytes(&mut self, mean_sample_bytes: Option<f64>) {
        self.mean_sample_bytes = mean_sample_bytes;
        let rate = self.metric(&SAMPLES_WHOLE).zip(mean_sample_bytes);
        let delivered = rate.map(|(samples_per_second, bytes)| samples_per_second * bytes);
        self.set(&DELIVERED_WHOLE, delivered, Provenance::Estimated);
    }
}

/// The workload, and what tells it: the nearest to what was asked for first. That of a model alone is told with its accelerator.
fn workload(
    path: &Path,
    names: &FolderNames,
    imported: &Imported,
    compute_s: Option<f64>,
) -> Option<(String, WorkloadSource)> {
    let above: Vec<_> = path.iter().rev().map(|name| name.to_string_lossy()).collect();
    // Names of a submission's folders, or of a run's own.
    let above = || above.iter().take(NAMES_MAX).map(|name| &**name);
    let given = imported.config.overrides.as_deref().unwrap_or_default();
    let named = Some(imported.plan.workload.clone()).filter(|name| !name.is_empty());
    let logged = imported.log.workload.clone();
    let logged = logged.or_else(|| imported.reported.as_ref()?.text("model"));
    let found = folder_names::workload(given).map(|name| (name, WorkloadSource::Overrides));
    let found = found
        .or_else(|| Some((names.workload.clone()?, WorkloadSource::Path)))
        .or_else(|| Some((named?, WorkloadSource::Config)))
        .or_else(|| Some((mlperf::workload_from_names(above())?, WorkloadSource::Path)))
        .or_else(|| Some((logged?, WorkloadSource::Log)))
        .or_else(|| Some((mlperf::workload_from_compute(compute_s?)?, WorkloadSource::Compute)));
    found.map(|(name, from)| (mlperf::with_accelerator(&name, compute_s, above()), from))
}

/// As asked for, else as MLPerf Storage asks, else DLIO's own.
fn bar_percent(imported: &Imported, workload: Option<&str>) -> Option<f64> {
    let config = &imported.config;
    let asked = config.number(&["metric.au"]).map(|share| share * 100.0);
    let own = config.is_known().then_some(imported.plan.metric.au_target_percent);
    asked.or_else(|| mlperf::au_percent(workload?)).or(own)
}

/// `None` where one is not known.
fn mean_of(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    mean(&values.collect::<Option<Vec<f64>>>()?)
}

fn activity(imported: &Imported) -> Activity {
    if imported.trains() {
        Activity::Training
    } else if !imported.unreadable.is_empty() && !imported.config.is_known() {
        // What cannot be read may have told of a training.
        Activity::Unknown
    } else if imported.generates() {
        Activity::Generation
    } else if imported.config.boolean("workflow.checkpoint", false) {
        Activity::Checkpoints
    } else {
        Activity::Unknown
    }
}
