//! Rounds, in which the parts take turns, and ceilings as means over them.

use super::{PATIENCE, Part, ROUNDS};
use crate::progress::{self, LiveLine};
use feedrate_measure::stats::mean;
use feedrate_report::ceilings as words;
use feedrate_results::diagnosis::{Ceiling, NotMeasured, Rung};
use feedrate_spec::plan::Cache;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Rounds end early, but not before this many, once they have taken this many times the time that was given.
const ROUNDS_LEAST: u32 = 3;
const LATE: u32 = 2;

/// One part, measured again and again.
struct Rounds {
    name: Rung,
    measured: Vec<Ceiling>,
    /// With all that it needs before and after.
    took: Duration,
}

impl Rounds {
    fn new(name: Rung) -> Self {
        Rounds { name, measured: Vec::new(), took: Duration::ZERO }
    }

    fn is_told(&self, why: NotMeasured) -> bool {
        self.measured.iter().any(|of| of.not_measured == Some(why))
    }

    /// Means over rounds that have figures; without any, the reason.
    fn ceiling(self) -> Ceiling {
        let whole: Vec<&Ceiling> =
            self.measured.iter().filter(|of| of.not_measured.is_none()).collect();
        let Some(last) = whole.last() else {
            let none = Ceiling::not_measured(self.name, NotMeasured::Interrupted);
            return self.measured.into_iter().next().unwrap_or(none);
        };
        let all = |of: fn(&Ceiling) -> Option<f64>| -> Vec<f64> {
            whole.iter().filter_map(|one| of(one)).collect()
        };
        let rounds_samples_per_second = all(|of| of.samples_per_second);
        Ceiling {
            samples_per_second: mean(&rounds_samples_per_second),
            bytes_per_second: mean(&all(|of| of.bytes_per_second)),
            own_per_second: mean(&all(|of| of.own_per_second)),
            measured_s: Some(all(|of| of.measured_s).iter().sum()),
            request_bytes: mean(&all(|of| of.request_bytes)),
            rounds_samples_per_second,
            ..(*last).clone()
        }
    }
}

impl Part<'_> {
    /// All ceilings, in their order. Parts take turns, round by round, so that what else goes on meets all of them. Once the user has
    /// had enough there are no figures of those without a whole round.
    pub(in crate::command::diagnose) fn all(&mut self) -> anyhow::Result<Vec<Ceiling>> {
        let has_client = self.plan.loader.client.is_some();
        let parts = Rung::ALL.into_iter().filter(|of| *of != Rung::Client || has_client);
        let mut parts: Vec<Rounds> = parts.map(Rounds::new).collect();
        let names: Vec<Rung> = parts.iter().map(|of| of.name).collect();
        // The last of them comes first.
        let at = Arc::new(AtomicUsize::new(names.len() - 1));
        let all_limit = self.limit * names.len() as u32;
        let _line = self.line(names, Arc::clone(&at));
        let begun = Instant::now();
        // What a sample costs the others rest on; it has the time of a whole ceiling.
        let first = self.passes(&self.plan, self.dataset, Cache::Cold, self.limit)?;
        self.per_sample = first.per_sample();
        let first_took = begun.elapsed();
        let mut first = Some(self.of_passes(Rung::Loader, &first));
        for round in 0..ROUNDS {
            if round >= ROUNDS_LEAST && all_limit * LATE <= begun.elapsed() {
                break;
            }
            for index in 0..parts.len() {
                at.store(round as usize * parts.len() + index, Relaxed);
                let from_memory = parts[1].is_told(NotMeasured::StaysInMemory);
                let of = &mut parts[index];
                if self.limit * PATIENCE <= of.took || self.is_interrupted() {
                    continue;
                }
                let begun = Instant::now();
                let before = first.take_if(|_| of.name == Rung::Loader);
                of.took += before.as_ref().map_or(Duration::ZERO, |_| first_took);
                let measured = match before {
                    // Where the files did not leave memory, it is the same as out of the page cache.
                    _ if of.name == Rung::Loader && from_memory => {
                        Ceiling::not_measured(of.name, NotMeasured::StaysInMemory)
                    }
                    Some(before) => before,
                    None => self.once(of.name)?,
                };
                of.took += begun.elapsed();
                if !self.is_interrupted() {
                    of.measured.push(measured);
                }
            }
        }
        Ok(parts.into_iter().map(Rounds::ceiling).collect())
    }

    /// The live line: which of `parts` is measured, and in which round; `at` counts on over all rounds.
    fn line(&self, parts: Vec<Rung>, at: Arc<AtomicUsize>) -> LiveLine {
        let what = move || {
            let at = at.load(Relaxed);
            let (round, part) = (at / parts.len() + 1, words::name(parts[at % parts.len()]));
            format!("round {round} of {ROUNDS}: {part}")
        };
        progress::taking_turns(what, self.viewer.clone())
    }
}
