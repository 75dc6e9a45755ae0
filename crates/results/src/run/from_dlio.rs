//! A run from a DLIO folder.

use super::{Activity, CheckpointSchedule, DatasetUse, FolderNames, Run, folder_names, settings};
use crate::import::{Imported, Reported, RunOrigin, first_batch_bytes, mean_sample_bytes};
use feedrate_measure::metric::{
    self, BARRIER_S, Basis, DELIVERED_WHOLE, LOAD_S, Provenance, SAMPLES_WHOLE, STALL_PERCENT,
};
use std::path::Path;

impl Run {
    /// From a DLIO folder, without doubts.
    pub(crate) fn imported(
        path: &Path,
        source: &str,
        origin: RunOrigin,
        imported: &Imported,
    ) -> Self {
        let (names, record) = (FolderNames::new(path), &imported.record);
        let plan = &record.plan;
        let given = imported.config.overrides.as_deref().unwrap_or_default();
        let accelerators = imported.ranks_expected.or(names.processes());
        let overrides = folder_names::varied_overrides(given);
        let (parameter, value) = names.varied(&overrides, &[], accelerators);
        let has_config = imported.config.is_known();
        let scalars = imported.reported.iter().flat_map(Reported::scalars);
        let mean = mean_sample_bytes(&imported.config, &plan.dataset);
        let mut run = Run {
            origin,
            activity: activity(imported),
            workload: folder_names::workload(given)
                .or_else(|| names.workload.clone())
                .unwrap_or_else(|| plan.workload.clone()),
            accelerators,
            parameter,
            value,
            overrides,
            hosts: imported.hosts,
            read_threads: has_config.then_some(plan.loader.workers),
            reported: scalars.map(|(name, value)| (name.to_string(), value)).collect(),
            mean_sample_bytes: if plan.dataset.record_bytes > 0.0 { mean } else { None },
            ..Run::from_steps(path, source, &names, record)
        };
        let steps = std::mem::take(&mut run.dataset_use);
        run.dataset_use = DatasetUse::from_files(path, imported, steps);
        run.settings = settings::from_dlio(&run, has_config);
        let reported = imported.reported.as_ref();
        run.checkpoints =
            CheckpointSchedule::from_dlio(&imported.config, reported, run.accelerators);
        if run.mean_sample_bytes.is_some() {
            run.dataset_use.files = Some(plan.dataset.clone());
            run.dataset_use.first_batch_bytes =
                first_batch_bytes(plan, imported.ranks_expected.unwrap_or(0));
        }
        run.recompute(imported);
        run
    }

    fn recompute(&mut self, imported: &Imported) {
        let all_ranks = imported.ranks_missing().is_empty();
        let known = [
            Some(Basis::Steps),
            all_ranks.then_some(Basis::AllRanks),
            self.batch_size.map(|_| Basis::BatchSize),
            self.record_length_bytes.map(|_| Basis::RecordLength),
        ];
        let known: Vec<Basis> = known.into_iter().flatten().collect();
        self.set_values(metric::recomputed(&imported.record, &known), &imported.record);
        let (load, barrier) = (self.step_times.load_percent, self.step_times.barrier_percent);
        let s_per_percent = self.metric(&LOAD_S).zip(load.filter(|load| 0.0 < *load));
        let barrier_s = s_per_percent.zip(barrier);
        let barrier_s = barrier_s.map(|((load_s, load), barrier)| load_s / load * barrier);
        self.set(&BARRIER_S, barrier_s, Provenance::Recomputed);
        self.set(&STALL_PERCENT, load, Provenance::Recomputed);
        self.read_bytes(self.mean_sample_bytes);
        for (id, value) in metric::reported(|name| self.reported.get(name).copied()) {
            self.values.entry(id).or_insert(value);
        }
    }

    /// Say how large the samples were that the run read: by that its rate in bytes is estimated.
    pub(crate) fn read_bytes(&mut self, mean_sample_bytes: Option<f64>) {
        self.mean_sample_bytes = mean_sample_bytes;
        let rate = self.metric(&SAMPLES_WHOLE).zip(mean_sample_bytes);
        let bytes_per_second = rate.map(|(rate, bytes)| rate * bytes);
        self.set(&DELIVERED_WHOLE, bytes_per_second, Provenance::Estimated);
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
