//! Measures each part once, in short slices, from whose spread its interval comes.

use super::{PATIENCE, Part, SLICES};
use crate::progress_text;

use feedrate_measure::stats::mean;
use feedrate_results::diagnosis::{Ceiling, NotMeasured, Rung};
use feedrate_spec::listener::ProgressLine;
use feedrate_spec::plan::Cache;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

impl Part<'_> {
    /// All ceilings, in their order. After an interrupt the remaining parts have no figures.
    pub(super) fn all(&mut self) -> anyhow::Result<Vec<Ceiling>> {
        let has_client = self.plan.loader.client.is_some();
        let parts = Rung::ALL.into_iter().filter(|part| *part != Rung::Client || has_client);
        let parts: Vec<Rung> = parts.collect();
        let at = Arc::new(AtomicUsize::new(parts.len() - 1));
        let _line = self.line(parts.clone(), Arc::clone(&at));
        // The loader's first slice gives the costs of a sample that other parts rest on, so it comes first and has the time of a whole part.
        let first = self.passes(&self.plan, Cache::Cold, self.limit)?;
        self.per_sample = first.per_sample();
        let first = self.loader_ceiling(&first);
        let mut ceilings: Vec<Ceiling> = Vec::new();
        for (index, name) in parts.into_iter().enumerate() {
            at.store(index, Relaxed);
            let stays_in_memory = Some(NotMeasured::StaysInMemory);
            let ceiling = match name {
                Rung::Loader if ceilings[0].not_measured == stays_in_memory => {
                    Ceiling::not_measured(name, NotMeasured::StaysInMemory)
                }
                Rung::Loader => self.in_slices(name, vec![first.clone()])?,
                _ => self.in_slices(name, Vec::new())?,
            };
            ceilings.push(ceiling);
        }
        Ok(ceilings)
    }

    /// The mean over all slices that have figures, and of rate 0 for those in which nothing was done; without any figures, the first reason. `slices`: those that were measured before.
    fn in_slices(&self, name: Rung, mut slices: Vec<Ceiling>) -> anyhow::Result<Ceiling> {
        let begun = Instant::now();
        while slices.len() < SLICES && begun.elapsed() < self.limit * PATIENCE {
            if self.is_interrupted() {
                break;
            }
            let slice = self.slice(name)?;
            // A slice that was cut short is none.
            if !self.is_interrupted() {
                slices.push(slice);
            }
        }
        let known: Vec<&Ceiling> =
            slices.iter().filter(|slice| slice.not_measured.is_none()).collect();
        let Some(last) = known.last() else {
            let none = Ceiling::not_measured(name, NotMeasured::Interrupted);
            return Ok(slices.into_iter().next().unwrap_or(none));
        };
        let all = |value: fn(&Ceiling) -> Option<f64>| -> Vec<f64> {
            known.iter().filter_map(|slice| value(slice)).collect()
        };
        let is_stalled = |slice: &&Ceiling| slice.not_measured == Some(NotMeasured::TooSlow);
        let stalled = slices.iter().filter(is_stalled).count();
        let rates = |value: fn(&Ceiling) -> Option<f64>| -> Vec<f64> {
            let mut rates = all(value);
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
            measured_s: Some(all(|slice| slice.measured_s).iter().sum()),
            request_bytes: mean(&all(|slice| slice.request_bytes)),
            slices_samples_per_second,
            ..(*last).clone()
        })
    }

    /// The live line: which of `parts` is measured.
    fn line(&self, parts: Vec<Rung>, at: Arc<AtomicUsize>) -> Box<dyn ProgressLine> {
        let name = move || parts[at.load(Relaxed)].title().to_string();
        self.listener.show_progress(progress_text::elapsed(name))
    }
}
