//! A tuning under way: the prediction chooses what is run, the better of it is run again, and the last two until they are told apart.

use super::TuneGoal;
use super::grid::{TuneGrid, TuneSetting, at};
use crate::command::scale::largest;
use crate::trials::{BASELINE, Trials};
use anyhow::Context;
use feedrate_analysis::predict::Pipeline;
use feedrate_measure::metric::AU_ALL_STEPS;
use feedrate_measure::stats;
use feedrate_measure::waits::WaitCause;
use feedrate_report::words::untold;
use feedrate_results::load_run;
use feedrate_results::replan::Replan;
use feedrate_results::search::Find;
use feedrate_results::trials::Outcome;
use feedrate_session::template::RunTemplate;
use feedrate_spec::plan::Plan;
use feedrate_spec::refusal::{Refusal, refuse};
use feedrate_study::search::{Goal as Edge, Search};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;

/// Settings of which the cheapest wins are within this share of the best.
pub(super) const SHARE: f64 = 0.02;
/// Settings that fall short of the best by more than this share are not run again.
const HOPELESS_SHARE: f64 = 0.1;
/// One in this many settings is run at first, and the fewest and the most of them.
const CHOSEN_OF: usize = 12;
const CHOSEN: [usize; 2] = [2, 8];
/// Runs of each of the last two: more would not tell them apart either.
const RUNS_EACH: RangeInclusive<usize> = 2..=8;
/// Times that the best run so far predicts what else to run, and settings chosen each time.
const SECOND_THOUGHTS: usize = 2;
const SECOND_CHOSEN: usize = 1;
/// Runs of one setting to find how many accelerators it feeds, at most.
const CLIMB_RUNS_MAX: u64 = 24;

/// How a tuning ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TuneEnd {
    /// The first of the runners is the answer.
    Certain,
    /// More runs would not tell the last two apart.
    Alike,
    /// The budget is spent.
    OutOfTime,
}

/// A setting that is run.
pub(super) struct Runner {
    pub(super) setting: TuneSetting,
    /// In the unit of the goal.
    pub(super) predicted: Option<f64>,
    /// Its place among the trials.
    pub(super) place: usize,
    /// Accelerators that it feeds for certain; `None` where that was not looked for.
    pub(super) fed: Option<u64>,
}

/// A tuning, and the runs that it made.
pub(super) struct Tuning<'a> {
    pub(super) goal: TuneGoal,
    /// The most accelerators that are tried, where they are the goal.
    pub(super) max: u64,
    pub(super) of: &'a RunTemplate,
    pub(super) grid: TuneGrid,
    pub(super) trials: Trials<'a>,
    /// The best first, as far as it is known.
    pub(super) runners: Vec<Runner>,
    /// Accelerators of the runs, where those are what is looked for.
    pub(super) at: Option<u64>,
}

impl Tuning<'_> {
    /// Run until the first of the runners is the answer.
    pub(super) fn run(&mut self) -> anyhow::Result<TuneEnd> {
        if !self.trials.run(BASELINE)? {
            return refuse(
                "`--budget` is over before the first run",
                "give some minutes: `--budget 20m`",
            );
        }
        if self.is_held_up_by_client(&self.grid.own, BASELINE) {
            let (setting, at) = (self.grid.own.clone(), self.own().accelerators);
            self.at = (self.goal == TuneGoal::Accelerators).then_some(at.into());
            self.runners.push(Runner { setting, predicted: None, place: BASELINE, fed: None });
            return Ok(TuneEnd::Certain);
        }
        let pipeline = self.pipeline(BASELINE)?;
        if self.goal == TuneGoal::Accelerators {
            let promised = self.grid.foretold.iter().chain([&self.grid.own]);
            let promised = promised.filter_map(|of| self.promise(&pipeline, of));
            let most = promised.fold(0.0, f64::max) as u64;
            self.at = Some(most.max(u64::from(self.own().accelerators)).min(self.max));
        }
        let count = self.grid.count().div_ceil(CHOSEN_OF).clamp(CHOSEN[0], CHOSEN[1]);
        let is_in_time = self.begin(&pipeline, vec![self.grid.own.clone()])?
            && self.begin(&pipeline, self.promising(&pipeline, count))?
            && self.think_again()?
            && self.try_unforetold()?
            && self.halve()?;
        if !is_in_time {
            return Ok(TuneEnd::OutOfTime);
        }
        if self.goal == TuneGoal::Accelerators {
            return self.climb_all();
        }
        let [first, second, ..] = &self.runners[..] else { return Ok(TuneEnd::Certain) };
        Ok(match self.trials.outcome(first.place, second.place) {
            Outcome::NotDecided => TuneEnd::Alike,
            _ => TuneEnd::Certain,
        })
    }

    /// The utilisation that the client alone leaves with any setting, where that is below what is asked for.
    pub(super) fn client_leaves_too_little(&self) -> Option<f64> {
        let asked_percent = self.own().metric.au_target_percent;
        self.grid.client_leaves_percent.filter(|percent| *percent < asked_percent)
    }

    /// Whether the runs at a place reach about all that the client alone leaves, or wait for hardly anything else with as good a setting as any, and no accelerator is fed with it: others cannot help.
    fn is_held_up_by_client(&self, setting: &TuneSetting, place: usize) -> bool {
        let trial = self.trials.at(place);
        let au_percent = stats::mean(&trial.values(&AU_ALL_STEPS));
        let wait = trial.runs.last().and_then(|run| run.answer.wait);
        let waits_for_it = wait.is_some_and(|wait| {
            wait.cause == WaitCause::Client && 100.0 * (1.0 - HOPELESS_SHARE) <= wait.percent
        });
        let left = if waits_for_it { setting.client_leaves_percent(self.of) } else { None };
        self.client_leaves_too_little().is_some_and(|most| {
            let is_near = |percent: f64| most * (1.0 - HOPELESS_SHARE) <= percent;
            self.goal == TuneGoal::Accelerators
                || au_percent.is_some_and(is_near)
                || left.is_some_and(is_near)
        })
    }

    fn own(&self) -> &Plan {
        &self.grid.own.plan
    }

    /// Predictions from the record of the last run at a place.
    fn pipeline(&self, place: usize) -> anyhow::Result<Pipeline> {
        let run_dir =
            self.trials.at(place).runs.last().and_then(|run| run.summary.run_dir.as_ref());
        let record = load_run(Path::new(run_dir.context("the run left no folder")?))?;
        let refusal = |of| Refusal::new(untold::why(&of), untold::run_that_tells(&of)).into();
        Pipeline::new(&record).map_err(refusal)
    }

    /// Predicted for a setting, in the unit of the goal.
    fn promise(&self, pipeline: &Pipeline, setting: &TuneSetting) -> Option<f64> {
        let predict = |plan: &Plan| pipeline.predict(plan, &[]).ok();
        let predicted = predict(&setting.plan)?;
        Some(match self.goal {
            TuneGoal::Au => predicted.au_percent,
            TuneGoal::Throughput => predicted.samples_per_second,
            TuneGoal::Accelerators => {
                let target = setting.plan.metric.au_target_percent;
                let is_fed = |number: u64| {
                    let plan = self.of.plan(&at(&setting.overrides, Some(number)));
                    let predicted = plan.and_then(|plan| predict(&plan));
                    predicted.is_some_and(|of| target <= of.au_percent)
                };
                largest(1, self.max, is_fed).unwrap_or(0) as f64
            }
        })
    }

    /// Settings that were not run and promise most for what they take: more than the best that was run, or as much for less.
    fn promising(&self, pipeline: &Pipeline, count: usize) -> Vec<TuneSetting> {
        let best = self.runners.first().and_then(|of| {
            let reached = self.trials.mean(of.place)?;
            (1 < self.runners.len()).then_some((reached, of.setting.cost))
        });
        let is_run = |of: &TuneSetting| {
            self.runners.iter().any(|runner| runner.setting.overrides == of.overrides)
        };
        let open = self.grid.foretold.iter().filter(|of| !is_run(of));
        let promises = open.map(|of| (of, self.promise(pipeline, of)));
        let (told, untold): (Vec<_>, Vec<_>) = promises.partition(|(_, promise)| promise.is_some());
        let told = told.into_iter().filter_map(|(of, promise)| Some((of, promise?)));
        let gains = told.filter(|(of, promise)| {
            best.is_none_or(|(reached, cost)| {
                let least = if of.cost < cost { 1.0 - SHARE } else { 1.0 + SHARE };
                reached * least < *promise
            })
        });
        let own = self.runners.first().and_then(|of| of.predicted);
        let own = if best.is_none() { own } else { None };
        let mut chosen = frontier(gains.collect(), own.unwrap_or(f64::NEG_INFINITY), count);
        if chosen.is_empty() && best.is_none() {
            // Whatever is run tells more.
            chosen.extend(untold.iter().take(count).map(|(of, _)| (*of).clone()));
        }
        chosen
    }

    /// Run each once.
    fn begin(&mut self, pipeline: &Pipeline, settings: Vec<TuneSetting>) -> anyhow::Result<bool> {
        let settings = settings.into_iter().map(|of| (self.promise(pipeline, &of), of));
        for (predicted, setting) in settings.collect::<Vec<_>>() {
            let changes = at(&setting.overrides, self.at);
            let place = match &changes[..] {
                [] => BASELINE,
                changes => self.trials.add(changes),
            };
            self.runners.push(Runner { setting, predicted, place, fed: None });
            let trial = self.trials.at(place);
            let is_new = trial.hindrance.is_none() && trial.runs.is_empty();
            if is_new && !self.trials.run(place)? {
                return Ok(false);
            }
            self.rank(self.runners.len());
        }
        Ok(true)
    }

    /// Let the best that was run predict, as long as it promises more.
    fn think_again(&mut self) -> anyhow::Result<bool> {
        for _ in 0..SECOND_THOUGHTS {
            let Some(best) = self.runners.first().filter(|of| of.place != BASELINE) else { break };
            let Ok(pipeline) = self.pipeline(best.place) else { break };
            let chosen = match self.goal {
                // Promises are accelerators, and what was run is a utilisation.
                TuneGoal::Accelerators => Vec::new(),
                _ => self.promising(&pipeline, SECOND_CHOSEN),
            };
            if chosen.is_empty() {
                break;
            }
            if !self.begin(&pipeline, chosen)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Run the best with each change that no record foretells.
    fn try_unforetold(&mut self) -> anyhow::Result<bool> {
        if self.runners.first().is_some_and(|of| self.is_held_up_by_client(&of.setting, of.place)) {
            return Ok(true);
        }
        let best = self.runners.first().map_or_else(Vec::new, |of| of.setting.overrides.clone());
        let changed = |change: &String| {
            TuneSetting::new(
                &[&best[..], std::slice::from_ref(change)].concat(),
                self.of,
                self.own(),
            )
        };
        let settings: Vec<TuneSetting> = self.grid.unforetold.iter().filter_map(changed).collect();
        let pipeline = self.pipeline(BASELINE)?;
        self.begin(&pipeline, settings)
    }

    /// Run the better half again until two are left, and these until they are told apart.
    fn halve(&mut self) -> anyhow::Result<bool> {
        let mut left = self.runners.len();
        loop {
            let mean = |of: &Runner| self.trials.mean(of.place).unwrap_or(f64::NEG_INFINITY);
            let least = self.runners.iter().map(mean).fold(f64::NEG_INFINITY, f64::max)
                * (1.0 - HOPELESS_SHARE);
            let near = self.runners.iter().filter(|of| least <= mean(of)).count();
            left = (left / 2).min(near).max(2).min(self.runners.len());
            if left <= 2 {
                break;
            }
            for place in self.runners[..left].iter().map(|of| of.place).collect::<Vec<_>>() {
                let is_open = self.trials.at(place).hindrance.is_none();
                if is_open && !self.trials.run(place)? {
                    return Ok(false);
                }
            }
            self.rank(left);
        }
        let [first, second, ..] = &self.runners[..] else { return Ok(true) };
        let is_short = self.trials.decide(first.place, &[second.place], RUNS_EACH)?;
        self.rank(2);
        Ok(!is_short)
    }

    /// Order the first `count`: the cheapest of those near the best comes first, then the best; the others by what they reach.
    fn rank(&mut self, count: usize) {
        let (trials, runners) = (&self.trials, &mut self.runners);
        let reached = |of: &Runner| match of.fed {
            Some(fed) => fed as f64,
            None if trials.at(of.place).hindrance.is_some() => f64::NEG_INFINITY,
            None => trials.mean(of.place).unwrap_or(f64::NEG_INFINITY),
        };
        let runners = &mut runners[..count];
        runners.sort_by(|a, b| reached(b).total_cmp(&reached(a)));
        let Some(best) = runners.first().map(reached) else { return };
        let good = runners.iter().enumerate().filter(|(_, of)| best * (1.0 - SHARE) <= reached(of));
        let cheapest = good.min_by_key(|(_, of)| of.setting.cost).map_or(0, |(place, _)| place);
        runners[..=cheapest].rotate_right(1);
    }

    /// Find how many accelerators each of the last two feeds.
    fn climb_all(&mut self) -> anyhow::Result<TuneEnd> {
        let mut end = TuneEnd::Certain;
        for place in 0..self.runners.len().min(2) {
            if self.trials.at(self.runners[place].place).hindrance.is_some() {
                continue;
            }
            match self.climb(place)? {
                TuneEnd::Certain => {}
                other => end = other,
            }
        }
        // A number of accelerators is compared with no utilisation.
        if self.runners.iter().take(2).all(|of| of.fed.is_some()) {
            self.rank(self.runners.len().min(2));
        }
        Ok(end)
    }

    fn climb(&mut self, runner: usize) -> anyhow::Result<TuneEnd> {
        let Runner { setting, place, .. } = &self.runners[runner];
        let (overrides, least) = (setting.overrides.clone(), self.own().metric.au_target_percent);
        let may_run = |number: u64| self.of.plan(&at(&overrides, Some(number))).is_some();
        let max = largest(1, self.max, may_run).unwrap_or(1);
        let mut search = Search::new(Edge { least, from: 1, max, find: Find::Largest });
        // Runs that were made before are taken in their turn.
        let mut places: BTreeMap<u64, (usize, usize)> =
            self.at.iter().map(|&number| (number, (*place, 0))).collect();
        for made in 0..CLIMB_RUNS_MAX {
            let Some(number) = search.next(CLIMB_RUNS_MAX - made) else { break };
            let (place, told) = places
                .entry(number)
                .or_insert_with(|| (self.trials.add(&at(&overrides, Some(number))), 0));
            if self.trials.at(*place).runs.len() == *told && !self.trials.run(*place)? {
                return Ok(TuneEnd::OutOfTime);
            }
            let au = self.trials.at(*place).values(&AU_ALL_STEPS).get(*told).copied();
            let hindrance = || self.trials.at(*place).hindrance.clone().unwrap_or_default();
            search.add(number, au.with_context(hindrance)?);
            *told += 1;
        }
        let found = search.found();
        self.runners[runner].fed = Some(found.certain.unwrap_or(0));
        Ok(if found.not_decided.is_none() { TuneEnd::Certain } else { TuneEnd::Alike })
    }
}

/// So many of those that promise most, and more than `most`: none that takes more than one which promises as much. They come the cheapest first.
fn frontier(settings: Vec<(&TuneSetting, f64)>, mut most: f64, count: usize) -> Vec<TuneSetting> {
    let mut kept: Vec<(&TuneSetting, f64)> = Vec::new();
    for (setting, promise) in settings {
        if most * (1.0 + SHARE / 4.0) < promise {
            kept.push((setting, promise));
        }
        most = most.max(promise);
    }
    kept.sort_by(|a, b| b.1.total_cmp(&a.1));
    kept.into_iter().take(count).map(|(setting, _)| setting.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::tune::grid::SettingCost;
    use feedrate_measure::example::simple;

    #[test]
    fn what_takes_more_and_promises_no_more_is_not_run() {
        let plan = simple(&[(500, 500, 0, 1_000)]).plan;
        // The cheapest come first.
        let settings = [1, 2, 4, 8].map(|threads| TuneSetting {
            overrides: vec![format!("reader.read_threads={threads}")],
            plan: plan.clone(),
            cost: SettingCost { threads, ..SettingCost::default() },
        });
        let promises = [31.0, 60.0, 97.0, 97.2];
        let threads = |most: f64, count: usize| {
            let chosen = frontier(settings.iter().zip(promises).collect(), most, count);
            chosen.iter().map(|of| of.cost.threads).collect::<Vec<_>>()
        };
        assert_eq!(threads(f64::NEG_INFINITY, 8), [4, 2, 1]);
        assert_eq!(threads(f64::NEG_INFINITY, 2), [4, 2]);
        assert_eq!(threads(31.0, 8), [4, 2]);
        assert!(threads(97.0, 8).is_empty());
    }
}
