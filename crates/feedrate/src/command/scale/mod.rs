//! `feedrate scale`: the largest or smallest number of accelerators, or of anything else, at which a response holds for certain, and why it ends there.

mod range;
mod dry_run;
mod hunt;

use crate::cli::{CacheArguments, DataArguments};
use crate::exit::{Exit, UsageError};
use crate::probe::Probes;
use crate::{interrupt, messages, results, text, time};
use clap::{Args, ValueEnum};
use feedrate_measure::metric::{Metric, Unit};
use feedrate_report::words::search as words;
use feedrate_results::search::ACCELERATORS;
use feedrate_results::search::{Certainty, Find, Found, SearchResult};
use feedrate_spec::units;
use hunt::Hunt;
use range::SearchRange;
pub(super) use range::largest;
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::PathBuf;

/// `feedrate scale`.
#[derive(Debug, Args)]
#[command(after_help = "\
It doubles the number until the response no longer holds, halves the gap, and repeats the runs at the edge until they decide, \
or the budget is spent. Each run is a process of its own; all read the same dataset.

Exit codes: 0 a number was found; 1 a run failed; 2 bad usage or workload; 3 it holds at no number; 4 not decided; 130 interrupted.")]
pub(super) struct ScaleArguments {
    #[command(flatten)]
    data: DataArguments,
    /// The response holds from this value on: for utilisations a percentage [default for these: the workload's `metric.au`].
    #[arg(long, visible_alias = "at-least", value_name = "VALUE")]
    au: Option<f64>,
    /// Condition to hold; for a response that should be low, `--au` is the upper limit.
    #[arg(long, value_name = "NAME", default_value = "au_sustained_percent")]
    response: String,
    /// Quantity to increase: `accelerators`, or a numeric key of the workload such as `reader.read_threads`.
    #[arg(long, value_name = "KEY", default_value = ACCELERATORS)]
    key: String,
    /// Number to find: the largest up to which the response holds, or the smallest from which on it does.
    #[arg(long, value_enum, default_value_t = Wanted::Largest)]
    find: Wanted,
    /// The smallest number.
    #[arg(long, value_name = "N", default_value_t = NonZeroU64::MIN)]
    from: NonZeroU64,
    /// The largest number; without `--scale` the dataset is made large enough for it [default: what the dataset has samples for].
    #[arg(long, value_name = "N")]
    max: Option<NonZeroU64>,
    /// Runs, at most.
    #[arg(long, value_name = "N", default_value_t = 20)]
    max_runs: u64,
    /// Begin no run that would probably end later than this after the dataset is there: `90`, `30m`, `2h`.
    #[arg(long, value_name = "TIME", default_value = "30m")]
    budget: String,
    /// Say how many runs it would take, what they read and how long they last.
    #[arg(long)]
    dry_run: bool,
    /// Folder that results go to [default: the workload's `output.folder`, else `results`].
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    #[command(flatten)]
    cache: CacheArguments,
}

/// Number to find.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Wanted {
    Largest,
    Smallest,
}

impl From<Wanted> for Find {
    fn from(wanted: Wanted) -> Self {
        match wanted {
            Wanted::Largest => Find::Largest,
            Wanted::Smallest => Find::Smallest,
        }
    }
}

/// Search, and tell what was found.
pub(super) fn scale(arguments: &ScaleArguments) -> anyhow::Result<Exit> {
    let response = Metric::find(&arguments.response).map_err(UsageError::from)?;
    let budget_s = time::seconds("--budget", &arguments.budget)?;
    let range = SearchRange::find(arguments, response)?;
    if !arguments.data.quiet {
        range.notes.iter().for_each(|note| messages::say(format!("note: {note}")));
    }
    if arguments.dry_run {
        dry_run::tell(arguments, &range, budget_s)?;
        return Ok(Exit::Fine);
    }
    let root = results::root(arguments.results.as_deref(), &range.resolved.workload)?;
    let folder = results::make_folder(&root, "scale-")?;
    let cache = arguments.cache.cache();
    let probes = Probes { folder: &folder, cache, signals: &interrupt::signals_of_runner() };
    let (result, ended) = Hunt::new(arguments, response, range, budget_s).search(&probes);
    if result.numbers.is_empty() {
        ended?;
    } else {
        if arguments.data.json {
            messages::print_json(serde_json::to_value(&result)?)?;
        } else {
            messages::print_page(&page(&result, response))?;
        }
        ended?;
    }
    Ok(match result.found {
        Found { not_decided: Some(_), .. } => Exit::Undecided,
        Found { certain: None, .. } => Exit::Unmet,
        Found { certain: Some(_), .. } => Exit::Fine,
    })
}

fn page(result: &SearchResult, response: &Metric) -> String {
    let mut lines = Vec::new();
    for (at, line) in words::lines(result).into_iter().enumerate() {
        let named = format!("{}: {}", line.name, line.value);
        lines.push(if at == 0 { line.value } else { named });
    }
    let mut parts = vec![lines.join("\n"), table(result, response.unit)];
    let mut doubts: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for of in &result.numbers {
        for name in &of.doubts {
            doubts.entry(name).or_default().push(of.number.to_string());
        }
    }
    let doubts: Vec<String> =
        doubts.iter().map(|(name, at)| format!("{name} at {}", at.join(", "))).collect();
    if !doubts.is_empty() {
        parts.push(format!("Doubts: {}", doubts.join("; ")));
    }
    if !result.overrides.is_empty() {
        parts.push(format!("Set in every run: {}", result.overrides.join(" ")));
    }
    let runs = units::counted(result.runs, "run");
    let took = units::seconds(result.took_s);
    parts.push(format!("{runs} in {took}\nResults: {}", result.results));
    parts.join("\n\n")
}

fn table(result: &SearchResult, unit: Unit) -> String {
    let header = [result.key.as_str(), "Runs", "Mean", "Interval", "", "Verdict"];
    let rows = result.numbers.iter().map(|row| {
        let interval =
            row.interval.map(|i| format!("{} to {}", unit.text(i.low), unit.text(i.high)));
        let state = match row.state {
            Certainty::NotDecided if row.values.is_empty() => "no value",
            Certainty::NotDecided if row.values.len() < 2 => "one run",
            Certainty::NotDecided => "not decided",
            Certainty::Holds => "holds",
            Certainty::Fails => "fails",
        };
        [
            row.number.to_string(),
            row.values.len().to_string(),
            text::known(row.mean, |mean| unit.text(mean)),
            interval.unwrap_or("-".into()),
            state.into(),
            row.verdict.clone(),
        ]
    });
    text::table(header, rows)
}
