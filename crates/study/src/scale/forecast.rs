//! Forecast of a search, as `scale --dry-run` shows it: its datasets, runs, bytes and time by the rate that the storage delivers. Runs nothing.
//!
//! The chooser itself searches a storage of constant rate, so that the forecast follows each rule of a real search.

use super::options::ScaleOptions;
use super::range::SearchRange;
use crate::chooser::{
    Chooser, History, Measured, NumberRange, Observation, PastRun, RunState, ScaleSearch,
};
use crate::search::{ACCELERATORS, SearchBounds, SearchTarget};
use feedrate_results::row::Row;
use feedrate_session::{catalog, room};
use feedrate_spec::plan::Plan;
use schemars::JsonSchema;
use serde::Serialize;

/// Rates of a storage that searches are forecast for, in bytes per second.
const RATES: [f64; 3] = [1e9, 1e10, 1e11];

/// Output of `scale --dry-run --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ScaleForecast {
    /// Runs, if none has to be repeated.
    pub runs_without_noise: u64,
    /// Runs at most.
    pub max_runs: u64,
    /// Bytes of the dataset.
    pub dataset_bytes: u64,
    /// Free bytes of the file system of the data.
    pub free_bytes: Option<u64>,
    /// Each dataset that would be read.
    pub datasets: Vec<DatasetForecast>,
    /// Time of the runs by the rate of the storage.
    pub if_storage_delivers: Vec<ForecastAtRate>,
    /// Bytes that the smallest and the largest run read.
    pub read_bytes_per_run: [u64; 2],
    /// Bytes that all runs read.
    pub read_bytes: u64,
    /// Time of a run, if no accelerator waits.
    pub seconds_per_run_least: f64,
    /// The same of all runs.
    pub seconds_least: f64,
    /// Time after which no run is started.
    pub budget_s: f64,
    /// First number of the range.
    pub from: u64,
    /// Last number of the range.
    pub max: u64,
    /// Settings of every run.
    pub overrides: Vec<String>,
    /// Remarks on the range.
    pub notes: Vec<String>,
    /// The reason why no larger number is tried.
    #[serde(skip)]
    pub max_reason: String,
    /// The place of the largest dataset, with its free space.
    #[serde(skip)]
    pub place: String,
}

/// A dataset, and the largest number that it does for.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct DatasetForecast {
    /// The number.
    pub max: u64,
    /// Files to train on.
    pub files: u64,
    /// Bytes of all files.
    pub bytes: u64,
}

/// A search of a storage of constant rate.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ForecastAtRate {
    /// The rate.
    pub bytes_per_second: f64,
    /// The answer.
    #[serde(flatten)]
    pub found: SearchBounds,
    /// Number of runs.
    pub runs: u64,
    /// Bytes of all datasets.
    pub generated_bytes: u64,
    /// Bytes that all runs read.
    pub read_bytes: u64,
    /// The least time, where datasets are generated at the same rate.
    pub seconds_least: f64,
}

impl ScaleForecast {
    /// Plans all that a search in `range` may run.
    pub fn new(options: &ScaleOptions, range: &SearchRange<'_>) -> anyhow::Result<Self> {
        let from = options.from;
        let ranges = ranges(range)?;
        let largest = ranges.last().map_or(range, |planned| &planned.0);
        let max = largest.max;
        let (first, last) = (range.plan(from)?, largest.plan(max)?);
        let run_s = run_s(&first).min(run_s(&last));
        // Without noise: doublings, halvings, and a second value at the start and on both sides of the edge.
        let without_noise = (2.0 * (max as f64 / from as f64).log2()).ceil() as u64 + 4;
        let runs = without_noise.min(options.limits.runs_max);
        let root = &range.resolved.data_root;
        let datasets = ranges.iter().map(|planned| dataset(&planned.0));
        Ok(ScaleForecast {
            runs_without_noise: runs,
            max_runs: options.limits.runs_max,
            dataset_bytes: catalog::estimate(&last).file_bytes,
            free_bytes: room::free_bytes(&last, root),
            datasets: datasets.collect::<anyhow::Result<_>>()?,
            if_storage_delivers: foresee_all(options, range)?,
            read_bytes_per_run: [read_bytes(&first), read_bytes(&last)],
            read_bytes: read_bytes(&last).saturating_mul(options.limits.runs_max),
            seconds_per_run_least: run_s,
            seconds_least: run_s * runs as f64,
            budget_s: options.limits.budget_s,
            from,
            max,
            overrides: largest.added(),
            notes: largest.notes.clone(),
            max_reason: largest.max_reason.clone(),
            place: room::place(&last, root),
        })
    }
}

fn dataset(range: &SearchRange<'_>) -> anyhow::Result<DatasetForecast> {
    let plan = range.plan(range.max)?;
    let bytes = catalog::estimate(&plan).file_bytes;
    Ok(DatasetForecast { max: range.max, files: plan.dataset.files_train, bytes })
}

/// A range whose datasets are not generated; their bytes count as taken.
#[derive(Clone)]
struct PlannedRange<'a>(SearchRange<'a>);

impl<'a> PlannedRange<'a> {
    fn new(range: &SearchRange<'a>) -> anyhow::Result<Self> {
        let mut planned = PlannedRange(range.clone());
        planned.take_bytes()?;
        Ok(planned)
    }

    fn take_bytes(&mut self) -> anyhow::Result<()> {
        self.0.taken_bytes += self.0.to_generate_bytes()?;
        Ok(())
    }
}

impl NumberRange for PlannedRange<'_> {
    fn max(&self) -> u64 {
        self.0.max()
    }

    fn row(&self, number: u64) -> Option<Row> {
        self.0.row(number)
    }

    fn words(&self, number: u64) -> String {
        self.0.words(number)
    }

    fn number(&self, row: &Row) -> Option<u64> {
        self.0.number(row)
    }

    fn client_leaves(&self, number: u64) -> Option<f64> {
        self.0.client_leaves(number)
    }

    fn grow(&mut self, known: Option<&Row>) -> bool {
        self.0.grow(known) && self.take_bytes().is_ok()
    }

    fn notes(&self) -> &[String] {
        self.0.notes()
    }
}

/// The range with each of the datasets that a search would generate if all numbers held.
fn ranges<'a>(range: &SearchRange<'a>) -> anyhow::Result<Vec<PlannedRange<'a>>> {
    let mut ranges = Vec::new();
    let mut range = PlannedRange::new(range)?;
    loop {
        let smaller = range.clone();
        if !range.grow(None) {
            ranges.push(range);
            return Ok(ranges);
        }
        ranges.push(smaller);
    }
}

/// Forecasts by rate; none of numbers that are no accelerators, nor of responses that do not follow from a rate.
fn foresee_all(
    options: &ScaleOptions,
    range: &SearchRange<'_>,
) -> anyhow::Result<Vec<ForecastAtRate>> {
    let follows_from_rate = options.key == ACCELERATORS && range.is_of_all_or_sustained;
    if !follows_from_rate || options.find != SearchTarget::Largest {
        return Ok(Vec::new());
    }
    let all = RATES.map(|rate| foresee(range, rate, options));
    Ok(all.into_iter().collect::<anyhow::Result<Vec<_>>>()?.into_iter().flatten().collect())
}

/// The search of a storage with this rate; `None` where the rate that a run requires is not known.
fn foresee(
    range: &SearchRange<'_>,
    rate: f64,
    options: &ScaleOptions,
) -> anyhow::Result<Option<ForecastAtRate>> {
    let goal = range.goal(range.bound);
    let mut search =
        ScaleSearch::new(goal, options.response, options.limits, PlannedRange::new(range)?);
    let mut history = History::default();
    let mut read = 0;
    while let Some(row) = search.next(&history) {
        let range = &search.range().0;
        let Some(number) = range.number(&row) else { break };
        let plan = range.plan(number)?;
        let Some(needed) = catalog::estimate(&plan).needed_bytes_per_second else {
            return Ok(None);
        };
        let percent = 100.0 * (rate / needed).min(1.0);
        let measured = Measured {
            seconds: run_s(&plan).max(read_bytes(&plan) as f64 / rate),
            observation: Observation::with_value(options.response, percent),
            ..Measured::default()
        };
        read += read_bytes(&plan);
        history.runs.push(PastRun { row, state: RunState::Done(Box::new(measured)) });
    }
    let runs = search.runs(&history);
    let generated_bytes = search.range().0.taken_bytes;
    Ok(Some(ForecastAtRate {
        bytes_per_second: rate,
        found: runs.search.found(),
        runs: runs.count(),
        generated_bytes,
        read_bytes: read,
        seconds_least: runs.seconds() + generated_bytes as f64 / rate,
    }))
}

/// Bytes that a run reads.
fn read_bytes(plan: &Plan) -> u64 {
    let estimate = catalog::estimate(plan);
    let samples = plan.loader.batch_size.saturating_mul(plan.accelerators.into());
    (estimate.sample_read_bytes_mean * samples.saturating_mul(estimate.steps) as f64) as u64
}

/// The least that a run takes, in seconds: compute alone.
fn run_s(plan: &Plan) -> f64 {
    plan.train.steps() as f64 * plan.train.compute.mean_s()
}
