//! `feedrate scale --dry-run`: the datasets, runs, bytes and minutes that a search would take, by the rate that the storage delivers. Runs nothing.

use super::ScaleArguments;
use super::range::SearchRange;
use crate::{messages, text};
use feedrate_report::output::Schema;
use feedrate_session::resolve::mlperf_status;
use feedrate_session::{catalog, room};
use feedrate_spec::plan::Plan;
use feedrate_spec::units;
use feedrate_study::chooser::NumberRange as _;
use feedrate_study::search::{ACCELERATORS, Find, Found, Search};
use schemars::JsonSchema;
use serde::Serialize;

/// Rates for which it is told what would happen.
const RATES: [f64; 3] = [1e9, 1e10, 1e11];

/// Tell it.
pub(super) fn tell(arguments: &ScaleArguments, range: &SearchRange<'_>) -> anyhow::Result<()> {
    let (from, budget_s) = (arguments.from.get(), arguments.budget);
    let datasets = datasets(range)?;
    let most = datasets.last().map_or(range, |of| of);
    let max = most.max;
    let (first, last) = (range.plan(from)?, most.plan(max)?);
    let dataset_bytes = catalog::estimate(&last).file_bytes;
    let [first_bytes, last_bytes] = [&first, &last].map(read_bytes);
    let run_s = run_s(&first).min(run_s(&last));
    // Without noise: doublings, halvings, and a second value at the start and on both sides of the edge.
    let without_noise = (2.0 * (max as f64 / from as f64).log2()).ceil() as u64 + 4;
    let runs = without_noise.min(arguments.max_runs);
    let least_s = run_s * runs as f64;
    let foreseen = foresee_all(arguments, range)?;
    let all_bytes = last_bytes.saturating_mul(arguments.max_runs);
    let root = &range.resolved.data_root;
    if arguments.data.json {
        let all = datasets.iter().map(dataset).collect::<anyhow::Result<Vec<_>>>()?;
        let output = ScaleDryRunOutput {
            runs_without_noise: runs,
            max_runs: arguments.max_runs,
            dataset_bytes,
            free_bytes: room::free_bytes(&last, root),
            datasets: all,
            if_storage_delivers: &foreseen,
            read_bytes_per_run: [first_bytes, last_bytes],
            read_bytes: all_bytes,
            seconds_per_run_least: run_s,
            seconds_least: least_s,
            budget_s,
            from,
            max,
            overrides: most.added(),
            notes: &most.notes,
        };
        messages::print_json(Schema::ScaleDryRun, &output)?;
        return Ok(());
    }
    let mut rows = vec![
        ("numbers", format!("{} to {}", units::count(from), range.words(max))),
        ("data", room::place(&last, root)),
    ];
    let status = mlperf_status(&arguments.data.request());
    rows.extend(status.map(|status| ("MLPerf status", status.sentence())));
    for (at, of) in datasets.iter().enumerate() {
        let name = if at == 0 { "dataset" } else { "if all are fed" };
        let DatasetFor { max, files, bytes } = dataset(of)?;
        let (files, bytes) = (units::counted(files, "file"), units::bytes(bytes));
        rows.push((name, format!("{files}, {bytes}: enough for {}", of.words(max))));
    }
    rows.push(("no more", most.why_max.clone()));
    let (most_runs, budget) = (arguments.max_runs, units::seconds(budget_s));
    let all = format!("up to {runs} without noise, at most {most_runs}, in {budget} (`--budget`)");
    rows.push(("runs", all));
    if foreseen.is_empty() {
        let [first, last, least] =
            [units::bytes(first_bytes), units::bytes(last_bytes), units::seconds(least_s)];
        rows.push(("each run reads", format!("{first} to {last}")));
        rows.push(("time", format!("at least {least} for {}", units::counted(runs, "run"))));
    }
    rows.push(("set by the search", most.added().join(" ")));
    messages::print_page(&text::rows(&rows))?;
    if !foreseen.is_empty() {
        messages::print_page(&format!("\n{}", table(&foreseen, range)))?;
    }
    Ok(())
}

/// Output of `scale --dry-run --json`.
#[derive(Serialize, JsonSchema)]
pub(in crate::command) struct ScaleDryRunOutput<'a> {
    /// Runs, if none has to be repeated.
    runs_without_noise: u64,
    /// Runs at most.
    max_runs: u64,
    /// Bytes of the dataset.
    dataset_bytes: u64,
    /// Free bytes of the file system of the data.
    free_bytes: Option<u64>,
    /// Each dataset that would be read.
    datasets: Vec<DatasetFor>,
    /// Time of the runs by the rate of the storage.
    if_storage_delivers: &'a [Foreseen],
    /// Bytes that the smallest and the largest run read.
    read_bytes_per_run: [u64; 2],
    /// Bytes that all runs read.
    read_bytes: u64,
    /// Time of a run, if no accelerator waits.
    seconds_per_run_least: f64,
    /// The same of all runs.
    seconds_least: f64,
    /// Time after which no run is started.
    budget_s: f64,
    /// First number of the range.
    from: u64,
    /// Last number of the range.
    max: u64,
    /// Settings of every run.
    overrides: Vec<String>,
    /// Remarks on the range.
    notes: &'a [String],
}

/// A dataset, and the largest number that it does for.
#[derive(Serialize, JsonSchema)]
struct DatasetFor {
    max: u64,
    files: u64,
    bytes: u64,
}

fn dataset(of: &SearchRange<'_>) -> anyhow::Result<DatasetFor> {
    let plan = of.plan(of.max)?;
    let bytes = catalog::estimate(&plan).file_bytes;
    Ok(DatasetFor { max: of.max, files: plan.dataset.files_train, bytes })
}

/// The range with each of the datasets that a search would make if all were fed.
fn datasets<'a>(range: &SearchRange<'a>) -> anyhow::Result<Vec<SearchRange<'a>>> {
    let (mut all, mut range) = (Vec::new(), range.clone());
    loop {
        let before = range.clone();
        range.taken_bytes += range.to_generate_bytes()?;
        if !range.extend()? {
            all.push(range);
            return Ok(all);
        }
        all.push(before);
    }
}

/// A search of a storage that delivers so many bytes per second, whatever is asked of it.
#[derive(Serialize, JsonSchema)]
struct Foreseen {
    bytes_per_second: f64,
    #[serde(flatten)]
    found: Found,
    runs: u64,
    generated_bytes: u64,
    read_bytes: u64,
    /// The least, where datasets are made at the same rate.
    seconds_least: f64,
}

/// Nothing of numbers that are no accelerators, nor of responses that no rate foretells.
fn foresee_all(
    arguments: &ScaleArguments,
    range: &SearchRange<'_>,
) -> anyhow::Result<Vec<Foreseen>> {
    let is_foretold = arguments.key == ACCELERATORS && range.is_of_all_or_sustained;
    if !is_foretold || arguments.find != Find::Largest {
        return Ok(Vec::new());
    }
    let all = RATES.map(|rate| foresee(range.clone(), rate, arguments));
    Ok(all.into_iter().collect::<anyhow::Result<Vec<_>>>()?.into_iter().flatten().collect())
}

/// `None` where it is not known which rate is required.
fn foresee(
    mut range: SearchRange<'_>,
    rate: f64,
    arguments: &ScaleArguments,
) -> anyhow::Result<Option<Foreseen>> {
    let mut search = Search::new(range.goal(range.bound));
    let (mut runs, mut read, mut run_s) = (0, 0, 0.0);
    range.taken_bytes += range.to_generate_bytes()?;
    while run_s < arguments.budget {
        if search.lies_beyond() && range.extend()? {
            search.widen(range.max);
            range.taken_bytes += range.to_generate_bytes()?;
            continue;
        }
        let Some(number) = search.next(arguments.max_runs - runs) else { break };
        let plan = range.plan(number)?;
        let Some(needed) = catalog::estimate(&plan).needed_bytes_per_second else {
            return Ok(None);
        };
        search.add(number, 100.0 * (rate / needed).min(1.0));
        runs += 1;
        read += read_bytes(&plan);
        run_s += self::run_s(&plan).max(read_bytes(&plan) as f64 / rate);
    }
    let generated_bytes = range.taken_bytes;
    Ok(Some(Foreseen {
        bytes_per_second: rate,
        found: search.found(),
        runs,
        generated_bytes,
        read_bytes: read,
        seconds_least: run_s + generated_bytes as f64 / rate,
    }))
}

fn table(foreseen: &[Foreseen], range: &SearchRange<'_>) -> String {
    let header = ["If it delivers", "It feeds", "Runs", "Generated", "Read", "At least"];
    let rows = foreseen.iter().map(|of| {
        let feeds = match (of.found.certain, of.found.not_decided) {
            (_, Some(_)) => "not decided".into(),
            (None, None) => "none".into(),
            (Some(number), None) if of.found.fails.is_none() => {
                format!("{}, or more", range.words(number))
            }
            (Some(number), None) => range.words(number),
        };
        [
            units::bytes_per_second(of.bytes_per_second),
            feeds,
            of.runs.to_string(),
            units::bytes(of.generated_bytes),
            units::bytes(of.read_bytes),
            units::seconds(of.seconds_least.ceil()),
        ]
    });
    text::table(header, rows)
}

/// Bytes that a run reads.
fn read_bytes(plan: &Plan) -> u64 {
    let of = catalog::estimate(plan);
    let samples = plan.loader.batch_size.saturating_mul(plan.accelerators.into());
    (of.sample_read_bytes_mean * samples.saturating_mul(of.steps) as f64) as u64
}

/// The least that a run takes: compute alone.
fn run_s(plan: &Plan) -> f64 {
    plan.train.steps() as f64 * plan.train.compute.mean_s()
}
