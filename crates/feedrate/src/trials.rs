//! Trials: a workload and changes of it, run in turns as processes of this program until what each change brings is decided, or the budget is
//! spent. Datasets that only a change needs are made beside that of the workload, and removed at the end.

use crate::changed::{Changeable, why_not};
use crate::dataset::{self, is_in_folder};
use crate::exit::Interrupted;
use crate::probe::Probes;
use crate::resolve::Resolved;
use crate::{catalog, messages, progress, results};
use anyhow::Context;
use feedrate_analysis::precision::CONFIDENCE;
use feedrate_analysis::trial;
use feedrate_data::manifest;
use feedrate_data::removal::{self, Removal};
use feedrate_measure::metric::{AU_ALL_STEPS, DURATION_S, Metric, Unit};
use feedrate_measure::stats;
use feedrate_measure::summary::Summary;
use feedrate_results::trials::{Outcome, Tried};
use feedrate_run::system;
use feedrate_spec::plan::{DatasetPlan, Plan};
use feedrate_spec::units;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// More runs would not decide it either.
const RUNS_EACH_MAX: usize = 8;
/// Time that a process takes beside its run.
const START_S: f64 = 1.0;

/// The workload itself, by its place among the trials.
pub(crate) const BASELINE: usize = 0;

/// A change, and the runs with it.
pub(crate) struct Trial {
    /// In messages.
    pub(crate) name: String,
    /// Nothing, of the baseline.
    pub(crate) change: Vec<String>,
    /// Runs, in their order.
    pub(crate) runs: Vec<Summary>,
    /// Reason why there are no more.
    pub(crate) hindrance: Option<String>,
    /// Where its dataset is made, where it needs one of its own.
    own_root: Option<PathBuf>,
    longest_s: f64,
}

/// All trials of a workload.
pub(crate) struct Trials<'a> {
    of: &'a Changeable,
    probes: Probes<'a>,
    budget_s: f64,
    quiet: bool,
    begun: Instant,
    unchanged: Resolved,
    made: MadeData,
    all: Vec<Trial>,
}

impl<'a> Trials<'a> {
    /// Nothing but the workload itself is to be tried yet. The budget begins now.
    pub(crate) fn new(
        of: &'a Changeable,
        probes: Probes<'a>,
        budget_s: f64,
        quiet: bool,
    ) -> anyhow::Result<Self> {
        let unchanged = of.resolve(&[])?;
        let (begun, made) = (Instant::now(), MadeData::default());
        let mut of =
            Trials { of, probes, budget_s, quiet, begun, unchanged, made, all: Vec::new() };
        of.add("as it is", &[]);
        Ok(of)
    }

    /// One more change. Returns its place.
    pub(crate) fn add(&mut self, name: &str, change: &[String]) -> usize {
        let (own_root, hindrance) = match self.own_root(change) {
            Ok(root) => (root, None),
            Err(error) => (None, Some(why_not(&error))),
        };
        let (name, change) = (name.to_string(), change.to_vec());
        self.all.push(Trial {
            name,
            change,
            runs: Vec::new(),
            hindrance,
            own_root,
            longest_s: 0.0,
        });
        self.all.len() - 1
    }

    /// The trial at a place.
    pub(crate) fn at(&self, place: usize) -> &Trial {
        &self.all[place]
    }

    /// Runs that were made.
    pub(crate) fn count(&self) -> u64 {
        self.all.iter().map(|trial| trial.runs.len() as u64).sum()
    }

    /// Since they began.
    pub(crate) fn took_s(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// Conclusion so far about a change against another.
    pub(crate) fn outcome(&self, against: usize, place: usize) -> Outcome {
        let [without, with] = [against, place].map(|place| self.all[place].values(&AU_ALL_STEPS));
        trial::outcome(&without, &with)
    }

    /// Run the trials at `places` and what they are compared `against` in turns, until each is decided. Says whether time was too short for that.
    pub(crate) fn decide(&mut self, against: usize, places: &[usize]) -> anyhow::Result<bool> {
        loop {
            let open = places.iter().copied().filter(|&place| {
                let trial = &self.all[place];
                let outcome = self.outcome(against, place);
                trial.hindrance.is_none()
                    && trial.runs.len() < RUNS_EACH_MAX
                    && [Outcome::NotTried, Outcome::NotDecided].contains(&outcome)
            });
            let open: Vec<usize> = open.collect();
            if open.is_empty() {
                return Ok(false);
            }
            // Of those with equally many runs the first is the one that is compared with.
            let turn = [against].into_iter().chain(open);
            let next = turn.min_by_key(|&place| self.all[place].runs.len()).unwrap_or(against);
            if !self.run(next)? {
                return Ok(true);
            }
        }
    }

    /// Run the one at `place` once. Says whether there was time to.
    pub(crate) fn run(&mut self, place: usize) -> anyhow::Result<bool> {
        let longest_s = self.all[place].longest_s;
        let expected_s = if longest_s > 0.0 { longest_s } else { self.all[BASELINE].longest_s };
        if self.budget_s < self.took_s() + expected_s {
            return Ok(false);
        }
        let number = self.count() + 1;
        let mut data = self.of.with(&self.all[place].change);
        data.data = self.all[place].own_root.clone().or(data.data);
        let what = format!("run {number}: {}", self.all[place].name);
        let line = progress::waiting(&what, self.quiet);
        let begun = Instant::now();
        let summary = self.probes.run(data, &format!("run-{number}"));
        line.finish_and_clear();
        let trial = &mut self.all[place];
        let summary = match summary {
            Err(error) if place == BASELINE || error.is::<Interrupted>() => return Err(error),
            Err(error) => {
                trial.hindrance = Some(why_not(&error));
                return Ok(true);
            }
            Ok(summary) => summary,
        };
        // The first may have made a dataset.
        let own_s = summary.figures.value(&DURATION_S).unwrap_or(f64::INFINITY) + START_S;
        trial.longest_s = trial.longest_s.max(begun.elapsed().as_secs_f64().min(own_s));
        let au = summary.figures.value(&AU_ALL_STEPS);
        let is_warmed = summary.answer.is_memory_served && place != BASELINE;
        trial.runs.push(summary);
        let au = au.with_context(|| format!("{what} has no utilisation: nothing was computed"))?;
        if is_warmed && !self.all[BASELINE].is_memory_served() {
            let why = "memory served it, and not the run without it: try `--cold`";
            self.all[place].hindrance = Some(why.into());
        }
        if !self.quiet {
            let bound = self.all[place].runs.last().map_or("", |run| run.verdict.name.name());
            messages::say(format!("{what}: {} AU ({bound})", Unit::Percent.text(au)));
        }
        Ok(true)
    }

    /// Where the dataset of a change is made; `None` where it is that of the workload, or is there already.
    fn own_root(&mut self, change: &[String]) -> anyhow::Result<Option<PathBuf>> {
        let Resolved { plan, data_root, .. } = self.of.resolve(change)?;
        if is_same(&plan.dataset, &self.unchanged.plan.dataset) {
            return Ok(None);
        }
        if self.of.data.foreign {
            anyhow::bail!("it needs other files than those that others made");
        }
        if !is_in_folder(&plan) {
            return Ok(None);
        }
        let is_dataset = data_root.join(manifest::FILE_NAME).exists();
        if !is_dataset && dataset::folder(&plan, &data_root)?.join(manifest::FILE_NAME).exists() {
            return Ok(None);
        }
        let beside = if is_dataset { data_root.parent().unwrap_or(&data_root) } else { &data_root };
        refuse_without_room(&plan, beside)?;
        self.made.root(beside).map(Some)
    }
}

impl Trial {
    /// The values of a metric, run by run.
    pub(crate) fn values(&self, metric: &'static Metric) -> Vec<f64> {
        self.runs.iter().filter_map(|run| run.figures.value(metric)).collect()
    }

    /// Utilisation over its runs.
    pub(crate) fn tried(&self) -> Option<Tried> {
        let values = self.values(&AU_ALL_STEPS);
        let interval = stats::percent_interval(&values, CONFIDENCE);
        Some(Tried {
            mean_percent: stats::mean(&values)?,
            interval: interval.map(|of| [of.low, of.high]),
            n: values.len() as u64,
        })
    }

    fn is_memory_served(&self) -> bool {
        self.runs.iter().any(|run| run.answer.is_memory_served)
    }
}

/// Whether the bytes of two datasets are the same.
fn is_same(one: &DatasetPlan, other: &DatasetPlan) -> bool {
    manifest::Manifest::fingerprint_of(one) == manifest::Manifest::fingerprint_of(other)
}

fn refuse_without_room(plan: &Plan, folder: &Path) -> anyhow::Result<()> {
    let needed = catalog::estimate(plan).file_bytes;
    let free = system::mount_of(folder).map(|mount| mount.free_bytes);
    match free.filter(|free| *free <= needed) {
        Some(free) => anyhow::bail!(
            "its dataset takes {}, and {} are free beside the other",
            units::bytes(needed),
            units::bytes(free)
        ),
        None => Ok(()),
    }
}

/// A folder of datasets that nobody else has, which ends with the trials.
#[derive(Default)]
struct MadeData(Option<PathBuf>);

impl MadeData {
    /// The folder, made when it is first wanted.
    fn root(&mut self, beside: &Path) -> anyhow::Result<PathBuf> {
        if self.0.is_none() {
            self.0 = Some(results::make_folder(beside, "trials-")?);
        }
        self.0.clone().context("no folder for datasets")
    }
}

impl Drop for MadeData {
    /// Removes what manifests name, and folders that are empty then.
    fn drop(&mut self) {
        let Some(root) = &self.0 else { return };
        let holder = format!("trials of process {}", std::process::id());
        for entry in fs::read_dir(root).into_iter().flatten().flatten() {
            let folder = entry.path();
            let why = match removal::remove_folder(&folder, &[], &holder) {
                Ok(Removal::InUse { .. }) => "it is in use".to_string(),
                Ok(_) => continue,
                Err(error) => error.to_string(),
            };
            messages::say(format!("warning: `{}` stays: {why}", folder.display()));
        }
        let _ = fs::remove_dir(root);
        if root.exists() {
            let root = root.display();
            messages::say(format!("warning: `{root}` stays: something else lies in it"));
        }
    }
}
