//! A run from a DLIO folder.

use super::{
    Activity, DURATION_S, DatasetUse, FolderNames, MetricId, Provenance, Run, STALL_PERCENT,
    folder_names, from_record, settings,
};
use crate::import::{Imported, Origin, Reported, first_batch_bytes, mean_sample_bytes};
use feedrate_measure::metric::{
    AU_ALL_STEPS, AU_WINDOWED, BARRIER_S, COMPUTE_S, DELIVERED_WHOLE, LOAD_S, Metric,
    NOMINAL_WHOLE, NOMINAL_WINDOWED, SAMPLES_WHOLE, SAMPLES_WINDOWED,
};
use feedrate_measure::record::Record;
use std::path::Path;

/// A run and its folder's contents, for doubts of single runs.
pub struct Loaded<'a> {
    /// The run, without doubts.
    pub run: &'a Run,
    /// Its record, or the one made of DLIO's files.
    pub record: &'a Record,
    /// The contents of DLIO's folder; `None` of a record.
    pub imported: Option<&'a Imported>,
}

/// Metrics that follow from steps alone.
const OF_TIMES: [&Metric; 4] = [&AU_WINDOWED, &AU_ALL_STEPS, &LOAD_S, &COMPUTE_S];
/// Metrics that follow from steps where batch size and all ranks are known.
const OF_SAMPLES: [&Metric; 4] =
    [&SAMPLES_WINDOWED, &SAMPLES_WHOLE, &NOMINAL_WINDOWED, &NOMINAL_WHOLE];

impl Run {
    /// From a DLIO folder, without doubts.
    pub(crate) fn imported(path: &Path, source: &str, origin: Origin, imported: &Imported) -> Self {
        let (names, record) = (FolderNames::new(path), &imported.record);
        let plan = &record.plan;
        let given = imported.config.overrides.as_deref().unwrap_or_default();
        let accelerators = imported.ranks_expected.or(names.processes());
        let overrides = folder_names::varied_overrides(given);
        let (parameter, value) = names.varied(&overrides, accelerators);
        let has_config = imported.config.is_known();
        let scalars = imported.reported.iter().flat_map(Reported::scalars);
        let mean = mean_sample_bytes(&imported.config, &plan.dataset);
        let mut run = Run {
            origin,
            activity: activity(imported),
            workload: folder_names::workload(given)
                .or_else(|| names.workload())
                .unwrap_or_else(|| plan.workload.clone()),
            accelerators,
            parameter,
            value,
            overrides,
            hosts: imported.hosts,
            read_threads: has_config.then_some(plan.loader.workers),
            reported: scalars.map(|(name, value)| (name.to_string(), value)).collect(),
            mean_sample_bytes: mean.filter(|_| plan.dataset.record_bytes > 0.0),
            ..Run::from_steps(path, source, &names, record)
        };
        let steps = std::mem::take(&mut run.dataset_use);
        run.dataset_use = DatasetUse::from_files(path, imported, steps);
        run.settings = settings::from_dlio(&run, has_config);
        if run.mean_sample_bytes.is_some() {
            run.dataset_use.files = Some(plan.dataset.clone());
            run.dataset_use.first_batch_bytes =
                first_batch_bytes(plan, imported.ranks_expected.unwrap_or(0));
        }
        run.recompute(imported);
        run
    }

    fn recompute(&mut self, imported: &Imported) {
        let record = &imported.record;
        self.add_metrics(record, OF_TIMES.into_iter(), Provenance::Recomputed);
        if self.batch_size.is_some() && imported.ranks_missing().is_empty() {
            self.add_metrics(record, OF_SAMPLES.into_iter(), Provenance::Recomputed);
        }
        let times = self.step_times.clone();
        let barrier_s = self.metric(&LOAD_S).zip(times.load_percent.filter(|load| 0.0 < *load));
        let barrier_s = barrier_s.zip(times.barrier_percent);
        let barrier_s = barrier_s.map(|((load_s, load), barrier)| load_s / load * barrier);
        self.put(MetricId(BARRIER_S.name), barrier_s, Provenance::Recomputed);
        self.put(STALL_PERCENT, times.load_percent, Provenance::Recomputed);
        self.put(DURATION_S, from_record::duration_s(record), Provenance::Recomputed);
        self.read_bytes(self.mean_sample_bytes);
    }

    /// Say how large the samples were that the run read: by that its rate in bytes is estimated.
    pub(crate) fn read_bytes(&mut self, mean_sample_bytes: Option<f64>) {
        self.mean_sample_bytes = mean_sample_bytes;
        let delivered = MetricId(DELIVERED_WHOLE.name);
        self.values.remove(&delivered);
        let rate = self.metric(&SAMPLES_WHOLE).zip(mean_sample_bytes);
        self.put(delivered, rate.map(|(rate, bytes)| rate * bytes), Provenance::Estimated);
    }
}

fn activity(imported: &Imported) -> Activity {
    if imported.trains() {
        Activity::Training
    } else if imported.generates() {
        Activity::Generation
    } else if imported.config.truth("workflow.checkpoint", false) {
        Activity::Checkpoints
    } else {
        Activity::Unknown
    }
}
