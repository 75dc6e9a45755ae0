//! Measures each ceiling in several short slices. Their spread gives the interval of the result.

use super::{CeilingMeasurement, SLICES, TIMEOUT_FACTOR};
use crate::progress_text;
use feedrate_measure::stats::mean;
use feedrate_results::diagnosis::{Ceiling, NotMeasured, PipelineStage};
use feedrate_run::clock::Clock;
use feedrate_run::system::{DeviceReads, Sampler};
use feedrate_spec::plan::Cache;
use feedrate_spec::units;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

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
        let progress = Arc::new(CeilingProgress::new(stages.len() + 1, self.limit));
        let shown = Arc::clone(&progress);
        let _lines = self.listener.show_progress(Box::new(move |_| shown.text(Instant::now())));
        progress.begin(PipelineStage::Loader);
        // The loader's first slice measures the costs of a sample, which other ceilings need. It therefore comes first and has the time of a
        // whole ceiling.
        let first_passes = self.run_passes(&self.plan, Cache::Cold, self.limit)?;
        self.per_sample = first_passes.per_sample();
        let first_slice = self.loader_ceiling(&first_passes);
        let mut ceilings: Vec<Ceiling> = Vec::new();
        for name in stages {
            progress.begin(name);
            let stays_in_memory = Some(NotMeasured::StaysInMemory);
            let ceiling = match name {
                PipelineStage::Loader if ceilings[0].not_measured == stays_in_memory => {
                    Ceiling::not_measured(name, NotMeasured::StaysInMemory)
                }
                PipelineStage::Loader => self.measure_in_slices(name, vec![first_slice.clone()])?,
                _ => self.measure_in_slices(name, Vec::new())?,
            };
            progress.end(&ceiling);
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
}

/// Progress of the measurement of all ceilings, for the listener's thread.
struct CeilingProgress {
    /// Number of measurements.
    count: usize,
    /// Time for each.
    limit: Duration,
    state: Mutex<CeilingState>,
}

#[derive(Default)]
struct CeilingState {
    /// The measurement in progress, and its start.
    current: Option<(PipelineStage, Instant)>,
    /// Number of measurements that began.
    begun: usize,
    /// Finished ceilings, in samples per second; `None` if a rate could not be measured.
    done: Vec<(PipelineStage, Option<f64>)>,
}

impl CeilingProgress {
    fn new(count: usize, limit: Duration) -> Self {
        CeilingProgress { count, limit, state: Mutex::default() }
    }

    fn begin(&self, stage: PipelineStage) {
        let mut state = self.state();
        state.begun += 1;
        state.current = Some((stage, Instant::now()));
    }

    fn end(&self, ceiling: &Ceiling) {
        self.state().done.push((ceiling.name, ceiling.samples_per_second));
    }

    fn text(&self, now: Instant) -> String {
        let state = self.state();
        let Some((stage, start)) = state.current else { return String::new() };
        let elapsed = now.saturating_duration_since(start);
        let place = CeilingPlace { number: state.begun, count: self.count, stage };
        ceiling_lines(place, elapsed, self.limit, &state.done).join("\n")
    }

    fn state(&self) -> MutexGuard<'_, CeilingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The measurement in progress.
#[derive(Clone, Copy)]
struct CeilingPlace {
    number: usize,
    count: usize,
    stage: PipelineStage,
}

/// The lines about the measurement that began `elapsed` ago: its place, the time left if each takes `limit`, and the finished ceilings.
fn ceiling_lines(
    place: CeilingPlace,
    elapsed: Duration,
    limit: Duration,
    done: &[(PipelineStage, Option<f64>)],
) -> Vec<String> {
    let CeilingPlace { number, count, stage } = place;
    let left = limit * (count - number) as u32 + limit.saturating_sub(elapsed);
    let first = progress_text::join([
        format!("[{number}/{count}] ceiling of {}", stage.title()),
        format!("≈ {} left", progress_text::rough_seconds(left.as_secs_f64())),
    ]);
    let known = done.iter().map(|(stage, rate)| {
        let rate = rate.map_or("unknown".into(), |rate| units::per_second(rate, "samples"));
        format!("{:<11}  {rate}", stage.title())
    });
    std::iter::once(first).chain(known).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_names_the_stage_the_time_left_and_finished_ceilings() {
        let place = |number, stage| CeilingPlace { number, count: 5, stage };
        let limit = Duration::from_secs(6);
        let lines =
            ceiling_lines(place(1, PipelineStage::Loader), Duration::from_secs(1), limit, &[]);
        assert_eq!(lines, ["[1/5] ceiling of loader · ≈ 29 s left"]);
        let done = [(PipelineStage::FileSystem, Some(812.4)), (PipelineStage::Opens, None)];
        let late =
            ceiling_lines(place(4, PipelineStage::Decode), Duration::from_secs(9), limit, &done);
        insta::assert_snapshot!(late.join("\n"), @r"
        [4/5] ceiling of decode · ≈ 6 s left
        file system  812 samples/s
        opens        unknown
        ");
    }
}
