//! Ceilings of decoding and of the client, measured with a single worker that has a core to itself.

use super::CeilingMeasurement;
use super::passes::Passes;
use feedrate_results::diagnosis::{Ceiling, NotMeasured, PipelineStage};
use feedrate_spec::plan::{Cache, ClientPlan, ClientTimes, FileAccess, StoragePlan};
use feedrate_spec::workload::TimeSpec;

impl CeilingMeasurement<'_> {
    /// Measures runs with a single worker and the client times of `client`.
    fn run_single_worker(&self, client: Option<ClientPlan>) -> anyhow::Result<Passes> {
        let mut plan = self.plan.clone();
        plan.accelerators = 1;
        let loader = &mut plan.loader;
        loader.workers = 1;
        loader.group_accelerators = 1;
        loader.decode_threads = None;
        loader.preprocess = TimeSpec::None;
        loader.client = client;
        if matches!(loader.file_access, FileAccess::Same | FileAccess::Mpio) {
            loader.file_access = FileAccess::Multi;
        }
        plan.train.slow_accelerators.clear();
        plan.storage = without_emulation(&plan.storage);
        self.run_passes(&plan, Cache::AsIs, self.slice_limit())
    }

    /// Measures one slice of the ceiling of decoding.
    pub(super) fn decode_ceiling(&self) -> anyhow::Result<Ceiling> {
        let passes = self.run_single_worker(None)?;
        let samples = passes.io.samples as f64;
        let decode_s = passes.io.decode_ns as f64 / 1e9 / samples;
        if !decode_s.is_finite() {
            return Ok(Ceiling::not_measured(PipelineStage::Decode, NotMeasured::TooSlow));
        }
        let readers = f64::from(self.plan.readers());
        let decoders_max =
            self.plan.loader.decode_threads.map_or(f64::INFINITY, f64::from) * readers;
        let workers = f64::from(self.workers());
        let core_rate = f64::from(self.cores).min(decoders_max).min(workers) / decode_s;
        let worker_rate = workers / (decode_s + self.preprocess_s);
        let rate = core_rate.min(worker_rate);
        if !rate.is_finite() {
            return Ok(Ceiling::not_measured(PipelineStage::Decode, NotMeasured::NothingDecoded));
        }
        let ceiling =
            self.new_ceiling(PipelineStage::Decode, Some(rate), passes.ns, self.workers());
        Ok(Ceiling { own_per_second: (decode_s > 0.0).then(|| 1.0 / decode_s), ..ceiling })
    }

    /// Measures one slice of the ceiling of the client. The client works in the workers, and in the training process between steps.
    pub(super) fn client_ceiling(&self) -> anyhow::Result<Ceiling> {
        let name = PipelineStage::Client;
        let passes = self.run_single_worker(self.plan.loader.client.clone())?;
        let io = &passes.io;
        let workers = self.plan.loader.workers;
        let batch = self.plan.loader.batch_size as f64;
        let mean = |sum: u64, count: u64| if sum == 0 { 0.0 } else { sum as f64 / count as f64 };
        let mean_s = |ns: u64, count: u64| mean(ns, count) / 1e9;
        let start_s = self.start_per_step_s;
        let batch_bytes = batch * mean(io.read_bytes, io.samples);
        let planned = self.plan.loader.client_times(batch_bytes, self.plan.accelerators);
        let times = ClientTimes {
            worker_batch_s: batch * mean_s(io.client_burnt_ns + io.client_own_ns, io.samples),
            receive_batch_s: mean_s(io.receive_ns, passes.batches) + start_s,
            // The measured receive time already includes waiting for workers.
            receive_wait_share: 0.0,
            start_s,
            ..planned.unwrap_or_default()
        };
        // Workers overlap with steps, but receiving in the training process does not.
        let alternates = workers == 0 || 0.0 < times.receive_batch_s;
        let compute_s = if alternates { self.compute_s } else { 0.0 };
        let accelerators = f64::from(self.plan.accelerators);
        let step_s = times.step_s(compute_s, workers, f64::from(self.cores) / accelerators);
        if !step_s.is_finite() || step_s == 0.0 {
            return Ok(Ceiling::not_measured(name, NotMeasured::TooSlow));
        }
        let rate = batch * accelerators / step_s;
        let is_bound_by_workers = compute_s + times.receive_batch_s < step_s;
        let ceiling = self.new_ceiling(name, Some(rate), passes.ns, self.workers());
        let core_rate = batch / times.worker_batch_s;
        Ok(Ceiling { own_per_second: is_bound_by_workers.then_some(core_rate), ..ceiling })
    }
}

/// Returns the storage without emulated limits.
fn without_emulation(plan: &StoragePlan) -> StoragePlan {
    StoragePlan { kind: plan.kind.clone(), engine: plan.engine.clone(), ..StoragePlan::default() }
}
