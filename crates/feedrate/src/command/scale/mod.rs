//! `feedrate scale`: the largest number of accelerators, or of anything else, at which a response holds, and why it ends there.

mod range;
mod probe;

use crate::cli::DataArguments;
use crate::exit::{Exit, UsageError, refuse};
use crate::{interrupt, messages, progress, results, text};
use clap::Args;
use feedrate_analysis::precision::CONFIDENCE;
use feedrate_measure::doubt::Severity;
use feedrate_measure::metric::{AU_SUSTAINED, Better, Metric, NotMeasurable, Unit};
use feedrate_measure::stats::{self, Interval};
use feedrate_measure::summary::Summary;
use feedrate_measure::verdict::Bound;
use feedrate_spec::units;
use feedrate_study::search::{Edge, Goal, Search, SearchStep};
use probe::Probes;
use range::SearchRange;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

/// `feedrate scale`.
#[derive(Debug, Args)]
#[command(after_help = "\
It doubles the number until the response no longer holds, halves the gap, and measures the two numbers at the edge again. \
Where the response falls as the number grows, that is at most 2 log2(N) + 4 runs for an answer of N with 2 replicates. Each run is a process of its own; all read the same dataset.

Exit codes: 0 a number was found; 1 a run failed; 2 bad usage or workload; 3 not even the smallest number holds; 130 interrupted.")]
pub(super) struct ScaleArguments {
    #[command(flatten)]
    data: DataArguments,
    /// The response holds from this value on: for utilisations a percentage.
    #[arg(long, visible_alias = "at-least", value_name = "VALUE")]
    au: f64,
    /// Condition to hold; for a response that should be low, `--au` is the upper limit.
    #[arg(long, value_name = "NAME", default_value = "au_sustained_percent")]
    response: String,
    /// Quantity to increase: `accelerators`, or a numeric key of the workload such as `reader.read_threads`.
    #[arg(long, value_name = "KEY", default_value = ACCELERATORS)]
    key: String,
    /// The smallest number.
    #[arg(long, value_name = "N", default_value_t = NonZeroU64::MIN)]
    from: NonZeroU64,
    /// The largest number; the dataset is made larger where it has too few samples for it [default: what the dataset has samples for].
    #[arg(long, value_name = "N")]
    max: Option<NonZeroU64>,
    /// Runs at each of the two numbers around the edge.
    #[arg(long, value_name = "N", default_value_t = NonZeroU64::new(2).unwrap_or(NonZeroU64::MIN))]
    replicates: NonZeroU64,
    /// Folder that results go to [default: the workload's `output.folder`, else `results`].
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    /// Drop the dataset from the page cache before each run, and check that it is gone.
    #[arg(long)]
    cold: bool,
}

/// The key that is no workload's.
const ACCELERATORS: &str = "accelerators";

/// Search, and tell what was found.
pub(super) fn scale(arguments: &ScaleArguments) -> anyhow::Result<Exit> {
    let response = Metric::find(&arguments.response).map_err(UsageError::from)?;
    refuse_bound(arguments.au, response)?;
    let range = SearchRange::find(arguments, response)?;
    let root = results::root(arguments.results.as_deref(), &range.resolved.workload);
    let folder = results::make_folder(&root, "scale-")?;
    if !arguments.data.quiet {
        range.notes.iter().for_each(|note| messages::say(format!("note: {note}")));
    }
    let search = Search::new(Goal {
        least: upwards(response, arguments.au),
        from: arguments.from.get(),
        max: range.max,
        replicates: arguments.replicates.get(),
    });
    let probes = Probes { folder: &folder, cold: arguments.cold, stop: &interrupt::flag() };
    let mut hunt = Hunt { arguments, response, range, search, runs: BTreeMap::new() };
    let edge = loop {
        match hunt.search.next() {
            SearchStep::Found(edge) => break edge,
            SearchStep::Probe(number) => hunt.probe(&probes, number)?,
        }
    };
    if arguments.data.json {
        messages::print_json(hunt.json(edge, &folder));
    } else {
        messages::print_page(&hunt.page(edge, &folder));
    }
    Ok(if edge == Edge::BelowFrom { Exit::Unmet } else { Exit::Fine })
}

/// A search under way, and the runs it made.
struct Hunt<'a> {
    arguments: &'a ScaleArguments,
    response: &'static Metric,
    range: SearchRange<'a>,
    search: Search,
    runs: BTreeMap<u64, Vec<Summary>>,
}

/// All runs at one number.
#[derive(Serialize)]
struct AtNumber {
    number: u64,
    values: Vec<f64>,
    mean: Option<f64>,
    /// 95 %; `null` of one run.
    interval: Option<Interval>,
    holds: bool,
    /// Verdict of the last run.
    verdict: &'static str,
    evidence: String,
    /// Names of the doubts of any of its runs that are more than notes.
    doubts: BTreeSet<String>,
    run_dirs: Vec<String>,
}

impl Hunt<'_> {
    /// Run at `number`, and say what came of it.
    fn probe(&mut self, probes: &Probes<'_>, number: u64) -> anyhow::Result<()> {
        let count = self.count() + 1;
        let what = format!("run {count}: {}", self.range.words(number));
        let line = progress::waiting(&what, self.arguments.data.quiet);
        let summary = probes.run(self.range.at(number)?, &format!("run-{count}"));
        line.finish_and_clear();
        let summary = summary?;
        let name = self.response.id.name();
        let Some(value) = summary.figures.value(self.response) else {
            let why = match summary.figures.sustained_missing {
                Some(NotMeasurable::NothingRead) => ": nothing was read",
                Some(NotMeasurable::NoWindow) => ": reading was over before the window began",
                _ => "",
            };
            let message = format!("the run of {} has no {name}{why}", self.range.words(number));
            return refuse(message, "try `--response au_all_steps`");
        };
        let value_upwards = upwards(self.response, value);
        self.search.tell(number, value_upwards);
        if !self.arguments.data.quiet {
            let holds = upwards(self.response, self.arguments.au) <= value_upwards;
            messages::say(format!(
                "{what}: {name} {}, {} ({})",
                self.response.unit.text(value),
                if holds { "holds" } else { "does not hold" },
                summary.verdict.name.name(),
            ));
        }
        self.runs.entry(number).or_default().push(summary);
        Ok(())
    }

    /// Runs that were made.
    fn count(&self) -> usize {
        self.runs.values().map(Vec::len).sum()
    }

    fn json(&self, edge: Edge, results: &Path) -> Value {
        json!({
            "workload": self.range.resolved.plan.workload,
            "key": self.arguments.key,
            "response": self.response.id.name(),
            // To be reached, or where low is good not to be exceeded.
            "bound": self.arguments.au,
            "found": edge.number(),
            "cache_fed": is_cache_fed(&self.runs, &edge.around(self.arguments.from.get())),
            "why": self.why(edge),
            "runs": self.count(),
            "from": self.arguments.from,
            "max": self.range.max,
            "numbers": self.numbers(),
            "holds_above": self.search.holds_above(edge),
            "overrides": self.range.added(),
            "notes": self.range.notes,
            "results": results.display().to_string(),
        })
    }

    fn why(&self, edge: Edge) -> String {
        let beyond = match edge {
            Edge::At(number) => number + 1,
            Edge::AtMax(_) => return self.range.why_max.clone(),
            Edge::BelowFrom => self.arguments.from.get(),
        };
        let Some(run) = self.runs.get(&beyond).and_then(|runs| runs.last()) else {
            return String::new();
        };
        let needed = self.range.needed_bytes_per_second(beyond);
        let rates = needed.zip(run.figures.value(&AU_SUSTAINED)).map(|(needed, percent)| {
            format!(
                "{} wait for nothing at {}, and {} is what they can go on getting. ",
                self.range.words(beyond),
                units::bytes_per_second(needed),
                units::bytes_per_second(needed * (percent / 100.0)),
            )
        });
        let rates = rates.unwrap_or_default();
        format!("{rates}{}: {}", run.verdict.name.name(), run.verdict.evidence)
    }

    fn numbers(&self) -> Vec<AtNumber> {
        self.runs.iter().map(|(&number, runs)| self.at_number(number, runs)).collect()
    }

    fn at_number(&self, number: u64, runs: &[Summary]) -> AtNumber {
        let values: Vec<f64> =
            runs.iter().filter_map(|run| run.figures.value(self.response)).collect();
        let doubts = runs.iter().flat_map(|run| &run.doubts);
        let doubts = doubts.filter(|doubt| doubt.severity < Severity::Note);
        let doubts: BTreeSet<String> = doubts.map(|doubt| doubt.name.clone()).collect();
        let last = runs.last().map(|run| &run.verdict);
        AtNumber {
            number,
            mean: stats::mean(&values),
            interval: self.response.middle(&values, CONFIDENCE),
            holds: self.search.holds(number) == Some(true),
            verdict: last.map_or("", |verdict| verdict.name.name()),
            evidence: last.map_or_else(String::new, |verdict| verdict.evidence.clone()),
            doubts,
            run_dirs: runs.iter().filter_map(|run| run.run_dir.clone()).collect(),
            values,
        }
    }

    fn page(&self, edge: Edge, results: &Path) -> String {
        let from = self.arguments.from.get();
        let sign = if self.response.better == Better::Higher { "≥" } else { "≤" };
        let bound = self.response.unit.text(self.arguments.au);
        let goal = format!("{} {sign} {bound}", self.response.id.name());
        let answer = match edge.number() {
            Some(number) => format!("{goal} up to {}", self.range.words(number)),
            None => format!("{goal} does not hold at {}", self.range.words(from)),
        };
        let answer = format!("{}: {answer}", self.range.resolved.plan.workload);
        let head = headline(answer, is_cache_fed(&self.runs, &edge.around(from)));
        let mut parts = vec![format!("{head}\nWhy: {}", self.why(edge)), self.table()];
        for number in self.search.holds_above(edge) {
            parts.push(format!(
                "It held at {number} too: the response does not simply fall as {} grows; `--replicates` steadies it.",
                self.arguments.key
            ));
        }
        let added = self.range.added();
        if !added.is_empty() {
            parts.push(format!("Set in every run: {}", added.join(" ")));
        }
        let runs = units::counted(self.count() as u64, "run");
        parts.push(format!("{runs} in {}", results.display()));
        parts.join("\n\n")
    }

    fn table(&self) -> String {
        let unit = self.response.unit;
        let key = self.arguments.key.as_str();
        let header = [key, "Runs", "Mean", "95 % interval", "Holds", "Verdict", "Doubts"];
        let rows = self.numbers().into_iter().map(|row| {
            let interval =
                row.interval.map(|i| format!("{} to {}", unit.text(i.low), unit.text(i.high)));
            [
                row.number.to_string(),
                row.values.len().to_string(),
                row.mean.map_or("-".into(), |mean| unit.text(mean)),
                interval.unwrap_or("one run has none".into()),
                if row.holds { "yes" } else { "no" }.into(),
                row.verdict.into(),
                Vec::from_iter(row.doubts).join(", "),
            ]
        });
        text::table(header, rows)
    }
}

/// Whether memory served any run at these numbers.
fn is_cache_fed(runs: &BTreeMap<u64, Vec<Summary>>, numbers: &[u64]) -> bool {
    let mut all = numbers.iter().filter_map(|number| runs.get(number)).flatten();
    all.any(|run| run.verdict.name == Bound::CacheFed)
}

fn headline(answer: String, cache_fed: bool) -> String {
    if cache_fed {
        format!("{answer}, served from memory: nothing is shown about the storage")
    } else {
        answer
    }
}

/// Refuse a bound that no run could reach, or any.
fn refuse_bound(bound: f64, response: &Metric) -> Result<(), UsageError> {
    if !bound.is_finite() {
        let message = format!("`--au {bound}` is no number");
        return refuse(message, "give what is to be reached");
    }
    if response.unit == Unit::Percent && !(0.0..=100.0).contains(&bound) {
        let hint = format!("{} lies between 0 and 100", response.id.name());
        return refuse(format!("`--au {bound}` is no percentage"), hint);
    }
    Ok(())
}

/// Larger is better, whatever the response.
fn upwards(response: &Metric, value: f64) -> f64 {
    match response.better {
        Better::Higher => value,
        Better::Lower => -value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_measure::example::simple;

    #[test]
    fn an_answer_out_of_memory_says_so() {
        let run = |bound: Bound| {
            let mut summary = Summary::new(&simple(&[]));
            summary.verdict.name = bound;
            vec![summary]
        };
        let runs = BTreeMap::from([
            (1, run(Bound::CacheFed)),
            (4, run(Bound::ComputeBound)),
            (5, run(Bound::StorageBound)),
            (8, run(Bound::CacheFed)),
        ]);
        for (edge, expected) in [
            (Edge::At(4), false),
            (Edge::AtMax(8), true),
            (Edge::BelowFrom, true),
            (Edge::At(7), true),
        ] {
            assert_eq!(is_cache_fed(&runs, &edge.around(1)), expected, "{edge:?}");
        }
        assert_eq!(headline("w".into(), false), "w");
        assert!(headline("w".into(), true).contains("nothing is shown about the storage"));
    }
}
