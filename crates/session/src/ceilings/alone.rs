//! Ceilings that rest on a run of one worker, which has a core to itself: decoding, and the client's work.

use super::Part;
use super::passes::Passes;
use feedrate_results::diagnosis::{Ceiling, NotMeasured, Rung};
use feedrate_spec::plan::{Cache, ClientPlan, ClientTimes, FileAccess, StoragePlan};
use feedrate_spec::workload::TimeSpec;

impl Part<'_> {
    /// Runs with `client` of one worker, which has a core to itself.
    fn alone(&self, client: Option<ClientPlan>) -> anyhow::Result<Passes> {
        let mut plan = self.plan.clone();
        let loader = &mut plan.loader;
        (plan.accelerators, loader.workers, loader.group_accelerators) = (1, 1, 1);
        (loader.decode_threads, loader.preprocess) = (None, TimeSpec::None);
        loader.client = client;
        if matches!(loader.file_access, FileAccess::Same | FileAccess::Mpio) {
            loader.file_access = FileAccess::Multi;
        }
        plan.train.slow_accelerators.clear();
        plan.storage = unhindered(&plan.storage);
        self.passes(&plan, Cache::AsIs, self.slice_limit())
    }

    pub(super) fn decode(&self) -> anyhow::Result<Ceiling> {
        let passes = self.alone(None)?;
        let samples = passes.io.samples as f64;
        let decode_s = passes.io.decode_ns as f64 / 1e9 / samples;
        if !decode_s.is_finite() {
            return Ok(Ceiling::not_measured(Rung::Decode, NotMeasured::TooSlow));
        }
        let readers = f64::from(self.plan.readers());
        let at_once = self.plan.loader.decode_threads.map_or(f64::INFINITY, f64::from) * readers;
        let workers = f64::from(self.workers());
        let by_cores = f64::from(self.cores).min(at_once).min(workers) / decode_s;
        let by_workers = workers / (decode_s + self.preprocess_s);
        let rate = by_cores.min(by_workers);
        if !rate.is_finite() {
            return Ok(Ceiling::not_measured(Rung::Decode, NotMeasured::NothingDecoded));
        }
        let ceiling = self.measured(Rung::Decode, Some(rate), passes.ns, self.workers());
        Ok(Ceiling { own_per_second: (decode_s > 0.0).then(|| 1.0 / decode_s), ..ceiling })
    }

    /// Workers that compute for it, and the training's process, which takes batches over between two steps.
    pub(super) fn client(&self) -> anyhow::Result<Ceiling> {
        let (name, client) = (Rung::Client, self.plan.loader.client.as_ref());
        let passes = self.alone(client.cloned())?;
        let (io, workers) = (&passes.io, self.plan.loader.workers);
        let batch = self.plan.loader.batch_size as f64;
        let each_s =
            |ns: u64, count: u64| if ns == 0 { 0.0 } else { ns as f64 / 1e9 / count as f64 };
        let start_s = self.start_of_step_s;
        let times = ClientTimes {
            worker_batch_s: batch * each_s(io.client_burnt_ns + io.client_own_ns, io.samples),
            receive_batch_s: each_s(io.receive_ns, passes.batches) + start_s,
            // As it was measured, beside workers that were or were not at work.
            receive_wait_share: 0.0,
            start_s,
        };
        // Workers compute meanwhile; the training's process either takes a batch over or waits for a step.
        let is_in_turn = workers == 0 || 0.0 < times.receive_batch_s;
        let compute_s = if is_in_turn { self.compute_s } else { 0.0 };
        let accelerators = f64::from(self.plan.accelerators);
        let step_s = times.step_s(compute_s, workers, f64::from(self.cores) / accelerators);
        if !step_s.is_finite() || step_s == 0.0 {
            return Ok(Ceiling::not_measured(name, NotMeasured::TooSlow));
        }
        let rate = batch * accelerators / step_s;
        let is_of_workers = compute_s + times.receive_batch_s < step_s;
        let ceiling = self.measured(name, Some(rate), passes.ns, self.workers());
        let of_core = batch / times.worker_batch_s;
        Ok(Ceiling { own_per_second: is_of_workers.then_some(of_core), ..ceiling })
    }
}

/// The same storage without what is emulated of it.
fn unhindered(plan: &StoragePlan) -> StoragePlan {
    let (kind, engine) = (plan.kind.clone(), plan.engine.clone());
    StoragePlan { kind, engine, ..StoragePlan::default() }
}
