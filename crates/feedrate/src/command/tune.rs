//! `feedrate tune`: the cheapest setting within 2 points of the best. The prediction chooses which settings are run, successive halving which
//! of them are run again, and the last two are replicated until they are told apart, so that noise does not win.

use crate::changed::Changeable;
use crate::cli::{CacheArguments, DataArguments};
use crate::exit::{Exit, UsageError, refuse};
use crate::probe::Probes;
use crate::trials::{BASELINE, Trials};
use crate::{catalog, interrupt, messages, results, text, time};
use anyhow::Context;
use clap::{Args, ValueEnum};
use feedrate_analysis::predict::Pipeline;
use feedrate_analysis::trial::MATTERS_POINTS;
use feedrate_measure::metric::{AU_ALL_STEPS, SAMPLES_WHOLE, Unit};
use feedrate_measure::stats;
use feedrate_report::words::untold;
use feedrate_results::load_run;
use feedrate_results::trials::Outcome;
use feedrate_spec::plan::Plan;
use feedrate_spec::units;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Keys that are tuned, with the levels that are tried beside that of the workload.
const TUNED: [(&str, &[&str]); 5] = [
    ("reader.read_threads", &["1", "2", "4", "8", "16"]),
    ("reader.prefetch_size", &["2", "4", "8"]),
    ("reader.transfer_size", &["256KiB", "1MiB", "4MiB"]),
    ("storage.engine", &["psync", "mmap", "direct"]),
    ("dataset.format", &["npz", "hdf5", "tfrecord"]),
];
/// Keys whose effect no record foretells: the best of the others is run with each of their levels.
const UNFORETOLD: [&str; 2] = ["storage.engine", "dataset.format"];
/// Share of all settings that is run in the first round, and the most.
const CHOSEN_SHARE: usize = 8;
const CHOSEN_MAX: usize = 8;

/// `feedrate tune`.
#[derive(Debug, Args)]
#[command(after_help = "\
The settings are predicted from one run of the workload as it is. Those that promise most for what they take are run, the better half of \
them again, and the last two until they are told apart.

Exit codes: 0 a setting was found; 1 a run failed; 2 bad usage or workload; 4 the last two are not told apart; 130 interrupted.")]
pub(super) struct TuneArguments {
    #[command(flatten)]
    data: DataArguments,
    /// Goal to tune for, with the accelerators that there are; `accelerators` tells how many the storage would feed.
    #[arg(long, value_enum, default_value_t = TuneGoal::Au)]
    goal: TuneGoal,
    /// Keys to tune, with commas between them.
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    keys: Vec<String>,
    /// Begin no run that would probably end later than this: `90`, `30m`, `2h`.
    #[arg(long, value_name = "TIME", default_value = "20m")]
    budget: String,
    /// Folder that results go to [default: the workload's `output.folder`, else `results`].
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    #[command(flatten)]
    cache: CacheArguments,
}

/// A goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TuneGoal {
    /// Utilisation over all steps.
    Au,
    /// Samples per second.
    Throughput,
    /// Accelerators that are fed.
    Accelerators,
}

/// A setting that may be run.
#[derive(Clone, Debug, PartialEq)]
struct TuneCandidate {
    overrides: Vec<String>,
    predicted_percent: Option<f64>,
    cost: SettingCost,
}

/// Order of what settings take: another dataset, threads, another engine, keys to set, memory of the loaders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SettingCost {
    is_other_dataset: bool,
    threads: u64,
    is_other_engine: bool,
    keys: usize,
    memory_bytes: u64,
}

/// A setting that is run, and its place among the trials.
struct Runner {
    of: TuneCandidate,
    place: usize,
}

/// Tune, and tell.
pub(super) fn tune(arguments: &TuneArguments) -> anyhow::Result<Exit> {
    let budget_s = time::seconds("--budget", &arguments.budget)?;
    let keys = tuned_keys(&arguments.keys)?;
    let (of, _) = Changeable::find(&arguments.data, arguments.cache.cache())?;
    let unchanged = of.resolve(&[])?;
    let root = results::root(arguments.results.as_deref(), &unchanged.workload)?;
    let folder = results::make_folder(&root, "tune-")?;
    let signals = interrupt::signals();
    let probes = Probes { folder: &folder, cache: of.cache(), signals: &signals };
    let mut trials = Trials::new(&of, probes, budget_s, arguments.data.quiet)?;
    trials.run(BASELINE)?;
    let run_dir = trials.at(BASELINE).runs.first().and_then(|run| run.run_dir.clone());
    let record = load_run(Path::new(&run_dir.context("the run left no folder")?))?;
    let pipeline = Pipeline::new(&record)
        .map_err(|of| UsageError::new(untold::why(&of), untold::run_that_tells(&of)))?;
    let predict = |plan: &Plan| pipeline.predict(plan, &[]).ok().map(|of| of.au_percent);
    let (settings, unforetold) = settings(&keys, &of, &unchanged.plan, &predict);
    let own = TuneCandidate {
        overrides: Vec::new(),
        predicted_percent: predict(&unchanged.plan),
        cost: SettingCost::new(&unchanged.plan, &unchanged.plan, 0),
    };
    let number = settings.len() + unforetold.len() + 1;
    let chosen = chosen(settings, number.div_ceil(CHOSEN_SHARE).clamp(2, CHOSEN_MAX));
    let mut runners = vec![Runner { of: own, place: BASELINE }];
    let best = chosen.first().map_or_else(Vec::new, |of| of.overrides.clone());
    let others = unforetold.into_iter().filter_map(|change| {
        let overrides = [best.clone(), vec![change]].concat();
        let plan = of.plan(&overrides).ok()?;
        let cost = SettingCost::new(&plan, &unchanged.plan, overrides.len());
        Some(TuneCandidate { overrides, predicted_percent: predict(&plan), cost })
    });
    for of in chosen.into_iter().chain(others) {
        let place = trials.add(&of.overrides.join(" "), &of.overrides);
        runners.push(Runner { of, place });
    }
    let is_decided = halve(&mut trials, &mut runners)?;
    let winner = runners.first().context("nothing was run")?;
    let told = Told { arguments, of: &of, plan: &unchanged.plan, trials: &trials, winner, number };
    if arguments.data.json {
        messages::print_json(told.json(&runners, is_decided, &folder))?;
    } else {
        messages::print_page(&told.page(&runners, is_decided, &folder))?;
    }
    Ok(if is_decided { Exit::Fine } else { Exit::Undecided })
}

fn tuned_keys(
    asked: &[String],
) -> Result<Vec<&'static (&'static str, &'static [&'static str])>, UsageError> {
    let known = || TUNED.iter().map(|(key, _)| *key);
    if let Some(key) = asked.iter().find(|key| !known().any(|known| known == key.as_str())) {
        let all = known().collect::<Vec<_>>().join(", ");
        return Err(UsageError::unknown(
            format!("`{key}` is no key that can be tuned"),
            key,
            known(),
            &format!("these are: {all}"),
        ));
    }
    let is_wanted = |key: &str| asked.is_empty() || asked.iter().any(|asked| asked == key);
    let keys: Vec<_> = TUNED.iter().filter(|(key, _)| is_wanted(key)).collect();
    if keys.is_empty() { refuse("no key is to be tuned", "leave `--keys` out") } else { Ok(keys) }
}

/// All settings of keys that the record foretells, but the workload's own, and the changes of which it does not.
fn settings(
    keys: &[&(&str, &[&str])],
    of: &Changeable,
    own: &Plan,
    predict: &dyn Fn(&Plan) -> Option<f64>,
) -> (Vec<TuneCandidate>, Vec<String>) {
    let is_foretold = |key: &str| !UNFORETOLD.contains(&key);
    let mut combinations: Vec<Vec<String>> = vec![Vec::new()];
    for (key, levels) in keys.iter().filter(|(key, _)| is_foretold(key)) {
        let more = combinations.iter().flat_map(|before| {
            levels.iter().map(|level| [before.clone(), vec![format!("{key}={level}")]].concat())
        });
        let more: Vec<_> = more.collect();
        combinations.extend(more);
    }
    let candidates = combinations.into_iter().filter_map(|overrides| {
        let plan = of.plan(&overrides).ok().filter(|plan| plan.loader != own.loader)?;
        let cost = SettingCost::new(&plan, own, overrides.len());
        Some(TuneCandidate { overrides, predicted_percent: predict(&plan), cost })
    });
    let mut candidates: Vec<TuneCandidate> = candidates.collect();
    candidates.sort_by_key(|of| of.cost);
    let unforetold = keys
        .iter()
        .filter(|(key, _)| !is_foretold(key))
        .flat_map(|(key, levels)| levels.iter().map(move |level| format!("{key}={level}")));
    let is_change = |change: &String| {
        let plan = of.plan(std::slice::from_ref(change));
        plan.is_ok_and(|plan| {
            plan.storage.engine != own.storage.engine || plan.dataset != own.dataset
        })
    };
    (candidates, unforetold.filter(is_change).collect())
}

/// So many of those that promise most for what they take: none that takes more than one which promises as much.
fn chosen(mut settings: Vec<TuneCandidate>, count: usize) -> Vec<TuneCandidate> {
    settings.sort_by_key(|of| of.cost);
    let mut most = f64::NEG_INFINITY;
    settings.retain(|of| {
        let gains =
            of.predicted_percent.is_some_and(|percent| most + MATTERS_POINTS / 4.0 <= percent);
        most = of.predicted_percent.map_or(most, |percent| most.max(percent));
        gains
    });
    settings.sort_by(|a, b| {
        b.predicted_percent.partial_cmp(&a.predicted_percent).unwrap_or(std::cmp::Ordering::Equal)
    });
    settings.truncate(count);
    settings
}

impl SettingCost {
    fn new(plan: &Plan, own: &Plan, keys: usize) -> Self {
        SettingCost {
            is_other_dataset: plan.dataset != own.dataset,
            threads: u64::from(plan.loader.workers) * u64::from(plan.accelerators),
            is_other_engine: plan.storage.engine != own.storage.engine,
            keys,
            memory_bytes: catalog::estimate(plan).loader_memory_bytes as u64,
        }
    }
}

/// Run all, then the better half again, until two are left, which are run until they are told apart. The first of them is then the winner. Says whether
/// that is certain.
fn halve(trials: &mut Trials<'_>, runners: &mut [Runner]) -> anyhow::Result<bool> {
    let mut left = runners.len();
    let mut round = 1;
    loop {
        for runner in &runners[..left] {
            // The workload as it is was run before.
            let is_run = round <= trials.at(runner.place).runs.len();
            if !is_run
                && trials.at(runner.place).hindrance.is_none()
                && !trials.run(runner.place)?
            {
                rank(trials, &mut runners[..left]);
                return Ok(false);
            }
        }
        rank(trials, &mut runners[..left]);
        if left <= 2 {
            break;
        }
        left = left.div_ceil(2).max(2);
        round += 1;
    }
    let [first, second] = &runners[..left.min(2)] else { return Ok(true) };
    let (first, second) = (first.place, second.place);
    let is_short = trials.decide(first, &[second])?;
    rank(trials, &mut runners[..2]);
    let outcome = trials.outcome(first, second);
    Ok(!is_short && outcome != Outcome::NotDecided)
}

/// The cheapest of those within 2 points of the best comes first, then the best; the others by what they reach.
fn rank(trials: &Trials<'_>, runners: &mut [Runner]) {
    let mean = |runner: &Runner| {
        let values = trials.at(runner.place).values(&AU_ALL_STEPS);
        stats::mean(&values).unwrap_or(f64::NEG_INFINITY)
    };
    runners.sort_by(|a, b| mean(b).total_cmp(&mean(a)));
    let Some(best) = runners.first().map(mean) else { return };
    let good = runners.iter().enumerate().filter(|(_, of)| best - MATTERS_POINTS <= mean(of));
    let cheapest = good.min_by_key(|(_, runner)| runner.of.cost).map_or(0, |(at, _)| at);
    runners[..=cheapest].rotate_right(1);
}

/// A result, and what it takes to tell it.
struct Told<'a> {
    arguments: &'a TuneArguments,
    of: &'a Changeable,
    plan: &'a Plan,
    trials: &'a Trials<'a>,
    winner: &'a Runner,
    /// Settings that there are.
    number: usize,
}

impl Told<'_> {
    fn page(&self, runners: &[Runner], is_decided: bool, folder: &Path) -> String {
        let trials = self.trials;
        let mut rows = Vec::new();
        for Runner { of, place } in runners {
            let trial = trials.at(*place);
            let tried = trial.tried();
            let why = match (&trial.hindrance, trial.runs.last()) {
                (Some(why), _) => text::cut(why, 40),
                (None, Some(run)) => run.verdict.name.name().into(),
                (None, None) => "no time was left".into(),
            };
            rows.push([
                if of.overrides.is_empty() { "as it is".into() } else { of.overrides.join("\n") },
                text::known(of.predicted_percent, |percent| Unit::Percent.text(percent)),
                text::known(tried, |of| Unit::Percent.text(of.mean_percent)),
                tried.map_or(0, |of| of.n).to_string(),
                why,
            ]);
        }
        let table = text::table(["Setting", "Predicted", "AU", "Runs", "Because"], rows);
        let certain =
            if is_decided { "" } else { ", not certain: the last two are not told apart" };
        let mut parts = vec![format!("{}{certain}", self.best()), table];
        let yaml = yaml(&self.winner.of.overrides);
        parts.extend((!yaml.is_empty()).then_some(yaml));
        let counted = units::counted(trials.count(), "run");
        let took = units::seconds(trials.took_s());
        let number = units::counted(self.number as u64, "setting");
        parts.push(format!("{counted} of {number} in {took}\nResults: {}", folder.display()));
        parts.push(self.of.command(&self.winner.of.overrides));
        parts.join("\n\n")
    }

    /// The setting and what it reaches.
    fn best(&self) -> String {
        let trial = self.trials.at(self.winner.place);
        let setting = match self.winner.of.overrides.join(" ") {
            overrides if overrides.is_empty() => "no change".to_string(),
            overrides => overrides,
        };
        let au = text::known(trial.tried(), |of| Unit::Percent.text(of.mean_percent));
        let rate = stats::mean(&trial.values(&SAMPLES_WHOLE));
        let reaches = match self.arguments.goal {
            TuneGoal::Au => format!("{au} AU"),
            TuneGoal::Throughput => {
                format!("{} ({au} AU)", text::known(rate, |of| Unit::SamplesPerSecond.text(of)))
            }
            TuneGoal::Accelerators => {
                format!(
                    "{} ({au} AU)",
                    text::known(self.fed(), |of| units::counted(of, "accelerator"))
                )
            }
        };
        format!("{}: {reaches} with {setting}", self.plan.workload)
    }

    /// Accelerators whose samples were delivered; a lower bound where they were fed.
    fn fed(&self) -> Option<u64> {
        let trial = self.trials.at(self.winner.place);
        let rate = stats::mean(&trial.values(&SAMPLES_WHOLE))?;
        let each = self.plan.loader.batch_size as f64 / self.plan.train.compute.mean_s();
        each.is_finite().then(|| (rate / each).round() as u64)
    }

    fn json(&self, runners: &[Runner], is_decided: bool, folder: &Path) -> Value {
        let settings: Vec<Value> = runners.iter().map(|runner| self.setting(runner)).collect();
        json!({
            "workload": self.plan.workload,
            "goal": crate::cli::name_of(self.arguments.goal),
            "best": self.setting(self.winner),
            "decided": is_decided,
            "fed_accelerators": self.fed(),
            "settings": self.number,
            "runs": self.trials.count(),
            "took_s": self.trials.took_s(),
            "tried": settings,
            "yaml": yaml(&self.winner.of.overrides),
            "command": self.of.command(&self.winner.of.overrides),
            "results": folder.display().to_string(),
        })
    }

    fn setting(&self, runner: &Runner) -> Value {
        let trial = self.trials.at(runner.place);
        json!({
            "overrides": runner.of.overrides,
            "predicted_percent": runner.of.predicted_percent,
            "tried": trial.tried(),
            "samples_per_second": stats::mean(&trial.values(&SAMPLES_WHOLE)),
            "verdict": trial.runs.last().map(|run| run.verdict.name.name()),
            "evidence": trial.runs.last().map(|run| &run.verdict.evidence),
            "reason": trial.hindrance,
        })
    }
}

/// Overrides as sections of a workload.
fn yaml(overrides: &[String]) -> String {
    let mut sections: BTreeMap<&str, String> = BTreeMap::new();
    for text in overrides {
        if let Some((key, value)) = text.split_once('=')
            && let Some((section, name)) = key.split_once('.')
        {
            *sections.entry(section).or_default() += &format!("\n  {name}: {value}");
        }
    }
    let sections = sections.iter().map(|(section, keys)| format!("{section}:{keys}"));
    sections.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(threads: u64, memory_bytes: u64, percent: f64) -> TuneCandidate {
        let cost = SettingCost {
            is_other_dataset: false,
            threads,
            is_other_engine: false,
            keys: 1,
            memory_bytes,
        };
        let overrides = vec![format!("reader.read_threads={threads}")];
        TuneCandidate { overrides, predicted_percent: Some(percent), cost }
    }

    #[test]
    fn what_takes_more_and_promises_no_more_is_not_run() {
        let settings = vec![
            candidate(8, 1, 97.0),
            candidate(1, 1, 31.0),
            candidate(4, 1, 97.0),
            candidate(4, 2, 97.2),
            candidate(2, 1, 60.0),
        ];
        let threads = |count| {
            let chosen = chosen(settings.clone(), count);
            chosen.iter().map(|of| of.cost.threads).collect::<Vec<_>>()
        };
        assert_eq!(threads(8), [4, 2, 1]);
        assert_eq!(threads(2), [4, 2]);
    }

    #[test]
    fn overrides_become_sections() {
        let overrides = ["reader.read_threads=4", "storage.engine=mmap", "reader.prefetch_size=8"];
        assert_eq!(
            yaml(&overrides.map(String::from)),
            "reader:\n  read_threads: 4\n  prefetch_size: 8\nstorage:\n  engine: mmap"
        );
        assert_eq!(yaml(&[]), "");
    }
}
