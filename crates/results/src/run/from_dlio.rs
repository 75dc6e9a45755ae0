//! Creates a run from a DLIO folder, with metrics recomputed from its steps or totals.

use super::from_record::Header;
use super::{
    Activity, CheckpointSchedule, DatasetUse, FolderNames, Run, SCALED_REHEARSAL, UNKNOWN,
    WorkloadSource, folder_names, settings,
};
use crate::import::{DLIO, EpochTotal, Imported, Reported, RunOrigin, Totals, mean_sample_bytes};
use feedrate_measure::metric::{
    self, AU_ALL_STEPS, BARRIER_S, Basis, DELIVERED_WHOLE, DURATION_S, LOAD_S, NOMINAL_WHOLE,
    Provenance, SAMPLES_WHOLE, STALL_PERCENT,
};
use feedrate_measure::phase::PhaseKind;
use feedrate_measure::record::Record;
use feedrate_measure::record::file::{read_folder, read_text_bounded};
use feedrate_measure::stats::mean;
use feedrate_spec::mlperf;
use std::path::Path;

/// Maximum number of folders above a run that are searched for the name of its workload.
const NAMES_MAX: usize = 7;
/// Extensions of the descriptions of systems.
const SYSTEM_EXTENSIONS: [&str; 3] = ["json", "yaml", "yml"];
/// Maximum number of files in the folder of the described systems that are read.
const SYSTEMS_MAX: usize = 100;

impl Run {
    /// Creates a run from a DLIO folder, without doubts.
    pub(crate) fn from_dlio(
        path: &Path,
        source: &str,
        origin: RunOrigin,
        imported: &Imported,
    ) -> Self {
        let trained_ranks = if imported.trains() { imported.ranks_expected } else { None };
        let names = FolderNames::new(path).checked(trained_ranks);
        let plan = &imported.plan;
        let header = Header {
            program: DLIO,
            plan,
            system: &imported.system,
            machines: std::slice::from_ref(&imported.system),
            started: &imported.started,
            ended: &imported.ended,
        };
        let mut base = Run::from_plan(path, source, &names, header);
        if let Some(record) = &imported.record {
            base = base.with_steps(record);
        }
        // DLIO does not record barriers, so the times of steps within a block and the times around checkpoints are unknown.
        base.phases.retain(|phase| {
            !matches!(phase.phase, PhaseKind::BeforeCheckpoint | PhaseKind::AfterCheckpoint)
        });
        let all_overrides = imported.config.overrides.as_deref().unwrap_or_default();
        let accelerators = imported.ranks_expected;
        let overrides = folder_names::varied_overrides(all_overrides);
        let (parameter, value) = names.varied_parameters(&overrides, &[], accelerators);
        let has_config = imported.config.is_known();
        let scalars = imported.reported.iter().flat_map(Reported::scalars);
        let totals = imported.totals.iter().flat_map(|totals| &totals.epochs);
        let compute_s = imported
            .config
            .mean_compute_s()
            .or(base.step_times.compute_s_per_step)
            .or_else(|| mean_if_all_known(totals.map(|epoch| epoch.compute_s)));
        let (workload, workload_from) = workload(path, &names, imported, compute_s).unzip();
        let mean_bytes = mean_sample_bytes(&imported.config, &plan.dataset);
        let mut run = Run {
            origin,
            rules_edition: imported.rules_edition().or(base.rules_edition),
            core_config: imported.config.core_config().map(|mut core| {
                let submission = base.submission.as_ref();
                if submission.is_some_and(|found| found.submitter == SCALED_REHEARSAL) {
                    core.add_option("--scale", None);
                }
                core
            }),
            activity: activity(imported),
            bar_percent: bar_percent(imported, workload.as_deref()),
            workload: workload.unwrap_or_else(|| UNKNOWN.into()),
            workload_from,
            accelerators,
            parameter,
            value,
            overrides,
            hosts: imported.hosts,
            memory_bytes_max: imported.memory_bytes_max,
            may_limit_memory: base.submission.is_some() && mentions_cgroup(path),
            read_threads: has_config.then_some(plan.loader.workers),
            reported: scalars.map(|(name, value)| (name.to_string(), value)).collect(),
            mean_sample_bytes: if plan.dataset.record_bytes > 0.0 { mean_bytes } else { None },
            ..base
        };
        let from_steps = std::mem::take(&mut run.dataset_use);
        run.dataset_use = DatasetUse::from_files(path, imported, from_steps);
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
        for (id, value) in metric::reported_values(|name| self.reported.get(name).copied()) {
            self.values.entry(id).or_insert(value);
        }
    }

    fn recompute_from_steps(&mut self, imported: &Imported, record: &Record) {
        let all_ranks = imported.ranks_missing().is_empty();
        let bases = [
            Some(Basis::Steps),
            all_ranks.then_some(Basis::AllRanks),
            self.batch_size.map(|_| Basis::BatchSize),
            self.record_length_bytes.map(|_| Basis::RecordLength),
        ];
        let known: Vec<Basis> = bases.into_iter().flatten().collect();
        self.set_values(metric::recomputed_values(record, &known), record);
        let load_percent = self.step_times.load_percent;
        let positive_load_percent = load_percent.filter(|load| 0.0 < *load);
        // Computed from the load time and the ratio of the two shares, since barriers are not recorded.
        let barrier_s = self
            .metric(&LOAD_S)
            .zip(positive_load_percent)
            .zip(self.step_times.barrier_percent)
            .map(|((load_s, load), barrier)| load_s / load * barrier);
        self.set(&BARRIER_S, barrier_s, Provenance::Recomputed);
        self.set(&STALL_PERCENT, load_percent, Provenance::Recomputed);
    }

    /// Sets the metrics that follow from totals of epochs.
    fn recompute_from_totals(&mut self, imported: &Imported, totals: &Totals) {
        let epochs = &totals.epochs;
        if epochs.is_empty() {
            self.epochs = imported.reported_epochs() as u64;
            self.steps = imported.plan.train.steps_per_epoch;
            return;
        }
        let samples_per_step = self
            .batch_size
            .zip(imported.ranks_expected)
            .map(|(batch, ranks)| batch as f64 * f64::from(ranks));
        let rates = epochs.iter().map(|epoch| {
            let samples = epoch.steps as f64 * samples_per_step?;
            (0.0 < samples).then(|| samples / epoch.wall_s)
        });
        let epoch_rates: Vec<Option<f64>> = rates.collect();
        let rate = samples_per_step.and_then(|samples| totals.samples_per_second(samples));
        let record_length = self.record_length_bytes;
        let in_bytes = |rate: Option<f64>| Some(rate? * record_length?);
        let epoch_bytes = epoch_rates.iter().map(|rate| in_bytes(*rate)).collect();
        let wall_s = epochs.iter().map(|epoch| epoch.wall_s);
        // Metric, value of the run, and values of its epochs.
        let mut metrics = vec![
            (&SAMPLES_WHOLE, rate, epoch_rates),
            (&NOMINAL_WHOLE, in_bytes(rate), epoch_bytes),
            (&DURATION_S, Some(wall_s.clone().sum()), wall_s.map(Some).collect()),
        ];
        if imported.record.is_none() {
            let au: Vec<_> = epochs.iter().map(EpochTotal::au_all_steps_percent).collect();
            metrics.push((&AU_ALL_STEPS, totals.au_all_steps_percent(), au));
            self.epochs = epochs.len() as u64;
            self.steps = epochs.iter().map(|epoch| epoch.steps).max().unwrap_or(0);
            self.step_times.compute_s_per_step =
                mean_if_all_known(epochs.iter().map(|epoch| epoch.compute_s));
            self.step_times.first_step_s =
                mean_if_all_known(epochs.iter().map(|epoch| epoch.first_step_s));
            self.bound = totals.bound;
            self.dataset_use.fingerprint = totals.fingerprint();
        }
        for (metric, number, epoch_values) in metrics {
            self.set(metric, number, Provenance::Recomputed);
            self.series.insert(metric.id, epoch_values);
        }
    }

    /// Sets the mean sample size and the throughput in bytes that is estimated from it.
    pub(crate) fn set_sample_bytes(&mut self, mean_sample_bytes: Option<f64>) {
        self.mean_sample_bytes = mean_sample_bytes;
        let rate = self.metric(&SAMPLES_WHOLE).zip(mean_sample_bytes);
        let delivered = rate.map(|(samples_per_second, bytes)| samples_per_second * bytes);
        self.set(&DELIVERED_WHOLE, delivered, Provenance::Estimated);
    }
}

/// Returns whether a description of a system, in the folder `systems` beside the `results` of the run, mentions a cgroup. Their names need not be
/// those of the systems in `results`.
fn mentions_cgroup(run: &Path) -> bool {
    let is_results = |folder: &&Path| {
        folder.file_name().is_some_and(|name| name.eq_ignore_ascii_case("results"))
    };
    let absolute = std::path::absolute(run).unwrap_or_else(|_| run.into());
    let results = absolute.ancestors().find(is_results);
    let Some(submitter) = results.and_then(Path::parent) else { return false };
    let mentions = |file: &Path| {
        let is_text = file
            .extension()
            .is_some_and(|end| SYSTEM_EXTENSIONS.iter().any(|extension| end == *extension));
        let text = is_text.then(|| read_text_bounded(file).ok()).flatten();
        text.is_some_and(|text| ["cgroup", "memory.max"].iter().any(|word| text.contains(word)))
    };
    let files = read_folder(submitter.join("systems")).into_iter().flatten().flatten();
    files.take(SYSTEMS_MAX).any(|file| mentions(&file.path()))
}

/// Determines the workload from the most reliable source. If a source names only the model, the accelerator is added if it can be inferred.
fn workload(
    path: &Path,
    names: &FolderNames,
    imported: &Imported,
    compute_s: Option<f64>,
) -> Option<(String, WorkloadSource)> {
    let path_names: Vec<_> = path.iter().rev().map(|name| name.to_string_lossy()).collect();
    let nearest_names = || path_names.iter().take(NAMES_MAX).map(|name| &**name);
    let overrides = imported.config.overrides.as_deref().unwrap_or_default();
    let configured = Some(imported.plan.workload.clone()).filter(|name| !name.is_empty());
    let summary = imported.reported.as_ref();
    let logged = imported.log.workload.clone().or_else(|| summary?.text("model"));
    let by_override = folder_names::workload(overrides);
    let (name, source) = by_override
        .map(|name| (name, WorkloadSource::Overrides))
        .or_else(|| Some((names.workload.clone()?, WorkloadSource::Path)))
        .or_else(|| Some((configured?, WorkloadSource::Config)))
        .or_else(|| Some((mlperf::workload_from_names(nearest_names())?, WorkloadSource::Path)))
        .or_else(|| Some((logged?, WorkloadSource::Log)))
        .or_else(|| Some((mlperf::workload_from_compute(compute_s?)?, WorkloadSource::Compute)))?;
    // An edited compute time does not change the accelerator that is stated.
    let stated = imported.config.accelerator.as_deref();
    let names = stated.into_iter().chain(nearest_names());
    let compute_s = compute_s.filter(|_| stated.is_none());
    Some((mlperf::with_accelerator(&name, compute_s, names), source))
}

/// Returns the required utilisation: as configured, as MLPerf Storage requires, or DLIO's default.
fn bar_percent(imported: &Imported, workload: Option<&str>) -> Option<f64> {
    let config = &imported.config;
    let configured = config.number(&["metric.au"]).map(|share| share * 100.0);
    let default = config.is_known().then_some(imported.plan.metric.au_target_percent);
    configured.or_else(|| mlperf::au_percent(workload?)).or(default)
}

/// Returns the mean; `None` if any value is unknown.
fn mean_if_all_known(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    mean(&values.collect::<Option<Vec<f64>>>()?)
}

fn activity(imported: &Imported) -> Activity {
    if imported.trains() {
        Activity::Training
    } else if !imported.unreadable.is_empty() && !imported.config.is_known() {
        // Unreadable files may have shown that it trained.
        Activity::Unknown
    } else if imported.generates() {
        Activity::Generation
    } else if imported.config.boolean("workflow.checkpoint", false) {
        Activity::Checkpoints
    } else {
        Activity::Unknown
    }
}
