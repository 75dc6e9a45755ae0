//! Forecasts a search for `scale --dry-run`: its datasets, runs, bytes and time for several rates of the storage. Runs nothing.
//!
//! The forecast runs the actual chooser on a simulated storage of constant rate, so it follows all rules of a real search.

use super::options::ScaleOptions;
use super::range::SearchRange;
use crate::chooser::{
    Chooser, FinishedRun, History, NumberRange, Observation, PastRun, RunState, ScaleSearch,
};
use crate::search::{ACCELERATORS, SearchBounds, SearchTarget};
use feedrate_results::row::Row;
use feedrate_session::{catalog, room};
use feedrate_spec::plan::Plan;
use schemars::JsonSchema;
use serde::Serialize;

/// Rates of the storage to forecast, in bytes per second.
const RATES: [f64; 3] = [1e9, 1e10, 1e11];

/// Output of `scale --dry-run --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ScaleForecast {
    /// Number of runs without noise.
    pub runs_without_noise: u64,
    /// Maximum number of runs.
    pub max_runs: u64,
    /// Bytes of the dataset.
    pub dataset_bytes: u64,
    /// Free bytes of the file system of the data.
    pub free_bytes: Option<u64>,
    /// The datasets that the search may generate.
    pub datasets: Vec<DatasetForecast>,
    /// Forecasts by rate of the storage.
    pub if_storage_delivers: Vec<ForecastAtRate>,
    /// Bytes that the runs at the smallest and at the largest number read.
    pub read_bytes_per_run: [u64; 2],
    /// Upper limit of the bytes that all runs read.
    pub read_bytes: u64,
    /// Seconds of a run in which no accelerator waits.
    pub seconds_per_run_least: f64,
    /// Seconds of all runs in which no accelerator waits.
    pub seconds_least: f64,
    /// Seconds after which no run is started.
    pub budget_s: f64,
    /// Smallest number of the range.
    pub from: u64,
    /// Largest number of the range.
    pub max: u64,
    /// Overrides of every run.
    pub overrides: Vec<String>,
    /// Notes on the range.
    pub notes: Vec<String>,
    /// The reason why no larger number is tried.
    #[serde(skip)]
    pub max_reason: String,
    /// Folder of the largest dataset, and the free space there.
    #[serde(skip)]
    pub place: String,
}

/// A dataset, and the largest number for which it is large enough.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct DatasetForecast {
    /// The largest number.
    pub max: u64,
    /// Files to train on.
    pub files: u64,
    /// Bytes of all files.
    pub bytes: u64,
}

/// Forecast of a search on a storage of constant rate.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ForecastAtRate {
    /// Rate of the storage, in bytes per second.
    pub bytes_per_second: f64,
    /// Result of the search.
    #[serde(flatten)]
    pub found: SearchBounds,
    /// Number of runs.
    pub runs: u64,
    /// Bytes of all generated datasets.
    pub generated_bytes: u64,
    /// Bytes that all runs read.
    pub read_bytes: u64,
    /// Minimum seconds of all runs, with generation of the datasets at the same rate.
    pub seconds_least: f64,
}

impl ScaleForecast {
    /// Forecasts a search in `range`.
    pub fn new(options: &ScaleOptions, range: &SearchRange<'_>) -> anyhow::Result<Self> {
        let from = options.from;
        let ranges = ranges(range)?;
        let largest = ranges.last().map_or(range, |planned| &planned.0);
        let max = largest.max;
        let first = range.plan(from)?;
        let last = largest.plan(max)?;
        let run_s = run_s(&first).min(run_s(&last));
        // Without noise, a search needs the doublings, the halvings, and second values at the start and on both sides of the edge.
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
            if_storage_delivers: forecasts(options, range)?,
            read_bytes_per_run: [read_bytes(&first), read_bytes(&last)],
            read_bytes: read_bytes(&last).saturating_mul(options.limits.runs_max),
            seconds_per_run_least: run_s,
            seconds_least: run_s * runs as f64,
            budget_s: options.limits.budget_s,
            from,
            max,
            overrides: largest.added_overrides(),
            notes: largest.notes.clone(),
            max_reason: largest.max_reason.clone(),
            place: room::describe_location(&last, root),
        })
    }
}

fn dataset(range: &SearchRange<'_>) -> anyhow::Result<DatasetForecast> {
    let plan = range.plan(range.max)?;
    let bytes = catalog::estimate(&plan).file_bytes;
    Ok(DatasetForecast { max: range.max, files: plan.dataset.files_train, bytes })
}

/// A range whose datasets are not generated. Their bytes count as used space.
#[derive(Clone)]
struct PlannedRange<'a>(SearchRange<'a>);

impl<'a> PlannedRange<'a> {
    fn new(range: &SearchRange<'a>) -> anyhow::Result<Self> {
        let mut planned = PlannedRange(range.clone());
        planned.use_bytes()?;
        Ok(planned)
    }

    fn use_bytes(&mut self) -> anyhow::Result<()> {
        self.0.used_bytes += self.0.to_generate_bytes()?;
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

    fn describe(&self, number: u64) -> String {
        self.0.describe(number)
    }

    fn number(&self, row: &Row) -> Option<u64> {
        self.0.number(row)
    }

    fn client_limit(&self, number: u64) -> Option<f64> {
        self.0.client_limit(number)
    }

    fn grow(&mut self, earlier_row: Option<&Row>) -> bool {
        let files = self.0.files();
        // The range may also be extended with the same dataset.
        self.0.grow(earlier_row) && (self.0.files() == files || self.use_bytes().is_ok())
    }

    fn notes(&self) -> &[String] {
        self.0.notes()
    }
}

/// The range of each dataset, in a search in which all numbers hold.
fn ranges<'a>(range: &SearchRange<'a>) -> anyhow::Result<Vec<PlannedRange<'a>>> {
    let mut ranges = Vec::new();
    let mut planned = PlannedRange::new(range)?;
    loop {
        let smaller = planned.clone();
        if !planned.grow(None) {
            ranges.push(planned);
            return Ok(ranges);
        }
        ranges.push(smaller);
    }
}

/// Forecasts by rate. Empty if the search varies something other than accelerators, or the response does not follow from the rate.
fn forecasts(
    options: &ScaleOptions,
    range: &SearchRange<'_>,
) -> anyhow::Result<Vec<ForecastAtRate>> {
    let follows_from_rate = options.key == ACCELERATORS && range.is_overall_or_sustained_au;
    if !follows_from_rate || options.find != SearchTarget::Largest {
        return Ok(Vec::new());
    }
    let forecasts = RATES.map(|rate| forecast(range, rate, options));
    Ok(forecasts.into_iter().collect::<anyhow::Result<Vec<_>>>()?.into_iter().flatten().collect())
}

/// Forecasts a search on a storage with this rate; `None` if the rate that a run requires is unknown.
fn forecast(
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
        let current = &search.range().0;
        let Some(number) = current.number(&row) else { break };
        let plan = current.plan(number)?;
        let Some(needed) = catalog::estimate(&plan).needed_bytes_per_second else {
            return Ok(None);
        };
        let percent = 100.0 * (rate / needed).min(1.0);
        let run_bytes = read_bytes(&plan);
        let measured = FinishedRun {
            seconds: run_s(&plan).max(run_bytes as f64 / rate),
            observation: Observation::with_value(options.response, percent),
            ..FinishedRun::default()
        };
        read += run_bytes;
        history.runs.push(PastRun { row, state: RunState::Done(Box::new(measured)) });
    }
    let runs = search.runs(&history);
    let generated_bytes = search.range().0.used_bytes;
    Ok(Some(ForecastAtRate {
        bytes_per_second: rate,
        found: runs.search.bounds(),
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

/// Minimum duration of a run, in seconds: compute alone.
fn run_s(plan: &Plan) -> f64 {
    plan.train.steps() as f64 * plan.train.compute.mean_s()
}
