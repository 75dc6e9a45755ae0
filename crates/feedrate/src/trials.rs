//! Trials: a workload and changes of it, run in turns as processes of this program until what each change brings is decided, or the budget is
//! spent. Datasets that only a change needs are made beside that of the workload, and removed at the end.

use crate::messages;
use crate::probe::Probes;
use anyhow::Context;
use feedrate_analysis::answer::AnsweredSummary;
use feedrate_analysis::precision::CONFIDENCE;
use feedrate_analysis::trial::{self, MATTERS_POINTS};
use feedrate_data::manifest;
use feedrate_data::removal::{self, Removal};
use feedrate_data::stage::Stage;
use feedrate_measure::metric::{
    AU_ALL_STEPS, DEVICE_BYTES, DURATION_S, LOGICAL_BYTES, Metric, Unit,
};
use feedrate_measure::stats;
use feedrate_results::trials::{Outcome, Tried};
use feedrate_session::dataset::{self, is_in_folder};
use feedrate_session::failure::Interrupted;
use feedrate_session::failure::on_one_line;
use feedrate_session::resolve::Resolved;
use feedrate_session::result_folder;
use feedrate_session::room::{self, Reserved};
use feedrate_session::template::RunTemplate;
use feedrate_spec::plan::{DatasetPlan, Plan};
use feedrate_spec::units;
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Time that a process takes beside its run.
const START_S: f64 = 1.0;

/// The workload itself, by its place among the trials.
pub(crate) const BASELINE: usize = 0;

/// A metric that trials are judged by.
#[derive(Clone, Copy)]
pub(crate) struct Response {
    /// More of it is better.
    pub(crate) metric: &'static Metric,
    /// The largest difference that does not matter, given the mean without the change.
    pub(crate) matters: fn(f64) -> f64,
}

/// Utilisation over all steps.
pub(crate) const UTILISATION: Response =
    Response { metric: &AU_ALL_STEPS, matters: |_| MATTERS_POINTS };

/// A change, and the runs with it.
#[derive(Default)]
pub(crate) struct Trial {
    /// Nothing, of the baseline and of what is left out.
    pub(crate) change: Vec<String>,
    /// Runs, in their order.
    pub(crate) runs: Vec<AnsweredSummary>,
    /// Reason why there are no more.
    pub(crate) hindrance: Option<String>,
    /// Where its dataset is made, where it needs one of its own.
    own_root: Option<PathBuf>,
    /// It is meant to be served from memory, or from a copy.
    is_copied: bool,
    longest_s: f64,
}

/// All trials of a workload.
pub(crate) struct Trials<'a> {
    of: &'a RunTemplate,
    probes: Probes<'a>,
    budget_s: f64,
    response: Response,
    begun: Instant,
    /// The first run is expected to take so long.
    first_s: f64,
    made: MadeData,
    all: Vec<Trial>,
    /// Those that failed are among them.
    begun_runs: u64,
}

impl<'a> Trials<'a> {
    /// Nothing but the workload itself is to be tried yet. The budget begins now.
    ///
    /// # Errors
    /// The run that is changed had several processes.
    pub(crate) fn new(
        of: &'a RunTemplate,
        probes: Probes<'a>,
        budget_s: f64,
        response: Response,
    ) -> anyhow::Result<Self> {
        of.refuse_processes()?;
        let mut of = Trials {
            of,
            probes,
            budget_s,
            response,
            begun: Instant::now(),
            first_s: 0.0,
            made: MadeData::default(),
            all: Vec::new(),
            begun_runs: 0,
        };
        of.add(&[]);
        Ok(of)
    }

    /// A run without any change took so long.
    pub(crate) fn expect(&mut self, run_s: f64) {
        self.first_s = run_s + START_S;
    }

    /// One more change. Returns its place.
    pub(crate) fn add(&mut self, change: &[String]) -> usize {
        let resolved = self.of.resolve(change);
        let plan = resolved.as_ref().ok().map(|of| &of.plan);
        let is_copied = plan.is_some_and(|plan| plan.stage.is_some() || plan.loader.in_memory);
        let (own_root, hindrance) = match resolved.and_then(|of| self.own_root(&of)) {
            Ok(root) => (root, None),
            Err(error) => (None, Some(on_one_line(&error))),
        };
        self.push(Trial {
            change: change.to_vec(),
            hindrance,
            own_root,
            is_copied,
            ..Trial::default()
        })
    }

    /// One that cannot be run. Returns its place.
    pub(crate) fn leave_out(&mut self, why: String) -> usize {
        self.push(Trial { hindrance: Some(why), ..Trial::default() })
    }

    fn push(&mut self, trial: Trial) -> usize {
        self.all.push(trial);
        self.all.len() - 1
    }

    /// Where its runs leave what they have.
    pub(crate) fn folder(&self) -> &Path {
        &self.probes.folder
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

    /// Mean of the response over the runs of a trial.
    pub(crate) fn mean(&self, place: usize) -> Option<f64> {
        stats::mean(&self.all[place].values(self.response.metric))
    }

    /// Conclusion so far about a change against another. Utilisation leaves checkpoints out: a change of these alone is judged by the waits for them,
    /// unless it hurts otherwise.
    pub(crate) fn outcome(&self, against: usize, place: usize) -> Outcome {
        let Response { metric, matters } = self.response;
        let both = [against, place].map(|place| &self.all[place]);
        let [without, with] = both.map(|trial| trial.values(metric));
        let matters = stats::mean(&without).map_or(0.0, matters);
        let outcome = trial::outcome(&without, &with, matters);
        let lost = stats::mean(&without).zip(stats::mean(&with)).map(|(one, other)| one - other);
        let is_hurt = outcome == Outcome::Hurts && lost.is_some_and(|lost| matters < lost);
        if !both[1].is_of_checkpoints() || is_hurt {
            return outcome;
        }
        let [without, with] =
            both.map(|of| -> Vec<f64> { of.checkpoint_waits().map(|wait_s| -wait_s).collect() });
        let run_s = stats::mean(&both[0].values(&DURATION_S)).unwrap_or_default();
        trial::outcome(&without, &with, MATTERS_POINTS / 100.0 * run_s)
    }

    /// Run the trials at `places` and what they are compared `against` in turns, until each has the fewest of `runs` and is decided, or has the most of
    /// them. Says whether time was too short for that.
    pub(crate) fn decide(
        &mut self,
        against: usize,
        places: &[usize],
        runs: RangeInclusive<usize>,
    ) -> anyhow::Result<bool> {
        loop {
            let open = places.iter().copied().filter(|&place| {
                let trial = &self.all[place];
                let count = trial.runs.len().min(self.all[against].runs.len());
                let is_open = [Outcome::NotTried, Outcome::NotDecided]
                    .contains(&self.outcome(against, place));
                trial.hindrance.is_none()
                    && count < *runs.end()
                    && (count < *runs.start() || is_open)
            });
            let open: Vec<usize> = open.collect();
            if open.is_empty() || self.all[against].hindrance.is_some() {
                return Ok(false);
            }
            // Among equally many runs, what the others are compared with comes first.
            let turn = [against].into_iter().chain(open);
            let next = turn.min_by_key(|&place| self.all[place].runs.len()).unwrap_or(against);
            if !self.run(next)? {
                return Ok(true);
            }
        }
    }

    /// Run the one at `place` once. Says whether there was time to.
    pub(crate) fn run(&mut self, place: usize) -> anyhow::Result<bool> {
        if self.budget_s < self.took_s() + self.expected_s(place) {
            return Ok(false);
        }
        self.begun_runs += 1;
        let number = self.begun_runs;
        let mut request = self.of.with(&self.all[place].change);
        request.data = self.all[place].own_root.clone().or(request.data);
        let name = match &self.all[place].change[..] {
            [] => "as it is".into(),
            change => change.join(" "),
        };
        let [took, budget] = [self.took_s().floor(), self.budget_s].map(units::seconds);
        let tells = format!("run {number} ({took} of {budget}): {name}");
        let run = self.probes.run(&request, &format!("run-{number}"), &tells);
        let trial = &mut self.all[place];
        let (summary, took_s) = match run {
            Err(error) if place == BASELINE || error.is::<Interrupted>() => return Err(error),
            Err(error) => {
                trial.hindrance = Some(on_one_line(&error));
                return Ok(true);
            }
            Ok(run) => run,
        };
        // The first run may have made a dataset too, which is not part of it.
        let own_s = summary.summary.figures.value(&DURATION_S).unwrap_or(f64::INFINITY) + START_S;
        trial.longest_s = trial.longest_s.max(took_s.min(own_s));
        let au = summary.summary.figures.value(&AU_ALL_STEPS);
        trial.runs.push(summary);
        let what = format!("run {number}: {name}");
        let au = au.with_context(|| format!("{what} has no utilisation: nothing was computed"))?;
        if self.is_warmed(place) {
            let why = "memory served it, and not the run without it: try `--cold`";
            self.all[place].hindrance = Some(why.into());
        }
        let bound = self.all[place].runs.last().map_or("", |run| run.summary.verdict.name.name());
        messages::note(format!("{what}: {} AU ({bound})", Unit::Percent.text(au)));
        Ok(true)
    }

    /// Whether memory gave a change what a device gave the workload without it.
    fn is_warmed(&self, place: usize) -> bool {
        let [without, with] = [BASELINE, place].map(|place| self.all[place].device_share());
        let both = without.zip(with);
        !self.all[place].is_copied
            && both.is_some_and(|(without, with)| with < 0.5 && 0.5 <= without)
    }

    /// Time that the next run at `place` probably takes.
    pub(crate) fn expected_s(&self, place: usize) -> f64 {
        let known = [self.all[place].longest_s, self.all[BASELINE].longest_s, self.first_s];
        known.into_iter().find(|&run_s| run_s > 0.0).unwrap_or(0.0)
    }

    /// Where the dataset of a change is made; `None` where it is that of the workload, or is there already.
    fn own_root(&mut self, changed: &Resolved) -> anyhow::Result<Option<PathBuf>> {
        let Resolved { plan, data_root, .. } = changed;
        if plan.stage != self.of.unchanged.plan.stage {
            refuse_kept_copy(plan, data_root)?;
        }
        if is_same(&plan.dataset, &self.of.unchanged.plan.dataset) {
            return Ok(None);
        }
        if changed.workload.dataset_foreign {
            anyhow::bail!("it needs other files than those that others made");
        }
        if !is_in_folder(plan) {
            return Ok(None);
        }
        let is_dataset = data_root.join(manifest::FILE_NAME).exists();
        if !is_dataset && dataset::folder(plan, data_root)?.join(manifest::FILE_NAME).exists() {
            return Ok(None);
        }
        let beside = if is_dataset { data_root.parent().unwrap_or(data_root) } else { data_root };
        if let Some(short) = room::shortage(plan, beside, &Reserved::default()) {
            anyhow::bail!("{short}");
        }
        self.made.root(beside).map(Some)
    }
}

impl Trial {
    /// Whether it changes nothing but checkpoints.
    pub(crate) fn is_of_checkpoints(&self) -> bool {
        !self.change.is_empty() && self.change.iter().all(|text| text.starts_with("checkpoint."))
    }

    /// Time that training waited for checkpoints, run by run.
    pub(crate) fn checkpoint_waits(&self) -> impl Iterator<Item = f64> {
        let saved =
            self.runs.iter().filter_map(|run| run.summary.checkpoint.as_ref()?.save.as_ref());
        saved.map(|saved| saved.stall_s)
    }

    /// The values of a metric, run by run.
    pub(crate) fn values(&self, metric: &'static Metric) -> Vec<f64> {
        self.runs.iter().filter_map(|run| run.summary.figures.value(metric)).collect()
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

    /// Share of the bytes that a device gave; `None` where that is not known.
    fn device_share(&self) -> Option<f64> {
        let [device, read] =
            [&DEVICE_BYTES, &LOGICAL_BYTES].map(|of| stats::mean(&self.values(of)));
        device.zip(read).map(|(device, read)| device / read)
    }
}

/// Whether the bytes of two datasets are the same.
fn is_same(one: &DatasetPlan, other: &DatasetPlan) -> bool {
    manifest::Manifest::fingerprint_of(one) == manifest::Manifest::fingerprint_of(other)
}

/// A copy that somebody keeps is not for a trial to remove.
fn refuse_kept_copy(plan: &Plan, data_root: &Path) -> anyhow::Result<()> {
    let Some(stage) = plan.stage.as_ref().filter(|stage| !stage.keep) else { return Ok(()) };
    let source = dataset::folder(plan, data_root)?;
    let copy = Stage::new(&plan.dataset, &source, Path::new(&stage.folder), None, None)?;
    if copy.folder().exists() {
        let folder = copy.folder().display();
        anyhow::bail!(
            "`{folder}` is there already, and a run would remove it: give another folder"
        );
    }
    Ok(())
}

/// A folder of datasets that nobody else has, which ends with the trials.
#[derive(Default)]
struct MadeData(Option<PathBuf>);

impl MadeData {
    /// The folder, made when it is first wanted.
    fn root(&mut self, beside: &Path) -> anyhow::Result<PathBuf> {
        if self.0.is_none() {
            self.0 = Some(result_folder::make_folder(beside, "trials-")?);
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
