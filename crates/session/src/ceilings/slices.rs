//! Measures each ceiling in several short slices. Their spread gives the interval of the result.

use super::{CeilingMeasurement, SLICES, TIMEOUT_FACTOR};
use crate::progress_text;
use feedrate_measure::stats::mean;
use feedrate_results::diagnosis::{Ceiling, NotMeasured, PipelineStage};
use feedrate_run::clock::Clock;
use feedrate_run::system::{DeviceReads, Sampler};
use feedrate_spec::listener::ProgressLine;
use feedrate_spec::plan::Cache;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

impl CeilingMeasurement<'_> {
    /// Measures the ceilings of stages, in their order. After an interruption, the remaining ceilings have no numbers.
    pub(super) fn measure_stages(
        &mut self,
        stages: &[PipelineStage],
    ) -> anyhow::Result<Vec<Ceiling>> {
        let has_client = self.plan.loader.client.is_some();
        let stages: Vec<PipelineStage> = stages
            .iter()
            .copied()
            .filter(|stage| *stage != PipelineStage::Client || has_client)
            .collect();
        let current = Arc::new(AtomicUsize::new(stages.len() - 1));
        let _line = self.progress_line(stages.clone(), Arc::clone(&current));
        // The loader's first slice measures the costs of a sample, which other ceilings need. It therefore comes first and has the time of a
        // whole ceiling.
        let first_passes = self.run_passes(&self.plan, Cache::Cold, self.limit)?;
        self.per_sample = first_passes.per_sample();
        let first_slice = self.loader_ceiling(&first_passes);
        let mut ceilings: Vec<Ceiling> = Vec::new();
        for (index, name) in stages.into_iter().enumerate() {
            current.store(index, Relaxed);
            let stays_in_memory = Some(NotMeasured::StaysInMemory);
            let ceiling = match name {
                PipelineStage::Loader if ceilings[0].not_measured == stays_in_memory => {
                    Ceiling::not_measured(name, NotMeasured::StaysInMemory)
                }
                PipelineStage::Loader => self.measure_in_slices(name, vec![first_slice.clone()])?,
                _ => self.measure_in_slices(name, Vec::new())?,
            };
            ceilings.push(ceiling);
        }
        Ok(ceilings)
    }

    /// Measures further slices of a ceiling and returns the mean over all slices. A slice without progress counts as rate 0. If no slice could be
    /// measured, returns the first one with its reason.
    fn measure_in_slices(
        &self,
        name: PipelineStage,
        mut slices: Vec<Ceiling>,
    ) -> anyhow::Result<Ceiling> {
        let start = Instant::now();
        let sampler = Sampler::start(None, DeviceReads::Unknown, Clock::new());
        while slices.len() < SLICES && start.elapsed() < self.limit * TIMEOUT_FACTOR {
            if self.is_interrupted() {
                break;
            }
            let slice = self.measure_slice(name)?;
            // An interrupted slice does not count.
            if !self.is_interrupted() {
                slices.push(slice);
            }
        }
        let core_ns = start.elapsed().as_nanos() as f64 * f64::from(self.cores);
        let host = sampler.finish();
        let known: Vec<&Ceiling> =
            slices.iter().filter(|slice| slice.not_measured.is_none()).collect();
        let Some(last) = known.last() else {
            let none = Ceiling::not_measured(name, NotMeasured::Interrupted);
            return Ok(slices.into_iter().next().unwrap_or(none));
        };
        let known_values = |value: fn(&Ceiling) -> Option<f64>| -> Vec<f64> {
            known.iter().filter_map(|slice| value(slice)).collect()
        };
        let is_stalled = |slice: &&Ceiling| slice.not_measured == Some(NotMeasured::TooSlow);
        let stalled = slices.iter().filter(is_stalled).count();
        let rates = |value: fn(&Ceiling) -> Option<f64>| -> Vec<f64> {
            let mut rates = known_values(value);
            if !rates.is_empty() {
                rates.resize(rates.len() + stalled, 0.0);
            }
            rates
        };
        let slices_samples_per_second = rates(|slice| slice.samples_per_second);
        Ok(Ceiling {
            samples_per_second: mean(&slices_samples_per_second),
            bytes_per_second: mean(&rates(|slice| slice.bytes_per_second)),
            own_per_second: mean(&rates(|slice| slice.own_per_second)),
            measured_s: Some(known_values(|slice| slice.measured_s).iter().sum()),
            request_bytes: mean(&known_values(|slice| slice.request_bytes)),
            slices_samples_per_second,
            cpu_busy_share: host.cpu_busy_share,
            own_cpu_share: host.process_cpu_ns.map(|cpu_ns| cpu_ns as f64 / core_ns),
            ..(*last).clone()
        })
    }

    /// Shows which ceiling is being measured: `stages[current]`.
    fn progress_line(
        &self,
        stages: Vec<PipelineStage>,
        current: Arc<AtomicUsize>,
    ) -> Box<dyn ProgressLine> {
        let name = move || stages[current.load(Relaxed)].title().to_string();
        self.listener.show_progress(progress_text::elapsed(name))
    }
}
