//! `feedrate scale`: the largest number of accelerators, or of anything else, at which a response holds, and why it ends there.

mod range;
mod probe;

use crate::cli::ScaleArguments;
use crate::exit::{Exit, UsageError};
use crate::messages;
use crate::progress;
use crate::text;
use crate::{interrupt, results};
use feedrate_analysis::precision::CONFIDENCE;
use feedrate_measure::doubt::Severity;
use feedrate_measure::metric::{AU_SUSTAINED, NotMeasurable};
use feedrate_measure::metric::{Better, Metric, Unit};
use feedrate_measure::stats::Interval;
use feedrate_measure::summary::Summary;
use feedrate_measure::verdict::Bound;
use feedrate_spec::units;
use feedrate_study::search::{Edge, Goal, Search, Step};
use probe::Probes;
use range::Range;
use serde::Serialize;
use std::collections::BTreeMap;

/// Search, and tell what was found.
pub(crate) fn scale(arguments: &ScaleArguments) -> anyhow::Result<Exit> {
    let response = Metric::find(&arguments.response)
        .map_err(|error| UsageError { hint: Some(error.hint()), message: error.to_string() })?;
    refuse_bound(arguments.au, response)?;
    let range = Range::find(arguments, response)?;
    let root = results::root(arguments.results.as_deref(), &range.resolved.workload);
    let folder = results::make_folder(&root, "scale-")?;
    let tells = !arguments.data.quiet;
    if tells {
        range.notes.iter().for_each(|note| messages::say(format!("note: {note}")));
    }
    let stop = interrupt::flag();
    let probes = Probes { folder: &folder, cold: arguments.cold, stop: &stop };
    let mut hunt = Hunt::new(arguments, response, range);
    let edge = loop {
        match hunt.search.next() {
            Step::Found(edge) => break edge,
            Step::Probe(number) => hunt.probe(&probes, number)?,
        }
    };
    let report = hunt.report(edge, folder.display().to_string());
    if arguments.data.json {
        messages::print(serde_json::to_string(&report)?);
    } else {
        messages::print(hunt.page(&report));
    }
    Ok(if edge == Edge::BelowFrom { Exit::Unmet } else { Exit::Fine })
}

/// A search under way, and the runs it made.
struct Hunt<'a> {
    arguments: &'a ScaleArguments,
    response: &'static Metric,
    range: Range,
    search: Search,
    runs: BTreeMap<u64, Vec<Summary>>,
}

/// Result of a search: the object of `--json`.
#[derive(Serialize)]
struct Report {
    workload: String,
    key: String,
    response: &'static str,
    /// Bound to reach, or where low is good not to exceed.
    bound: f64,
    /// The largest number that holds; `null` where not even the smallest does.
    found: Option<u64>,
    /// Whether memory served runs that decide it: nothing is shown about the storage.
    cache_fed: bool,
    /// The reason why it ends there.
    why: String,
    runs: usize,
    from: u64,
    max: u64,
    numbers: Vec<Number>,
    /// Larger numbers at which it held all the same.
    holds_above: Vec<u64>,
    /// Set in every run beside what was asked for.
    overrides: Vec<String>,
    notes: Vec<String>,
    results: String,
}

/// All runs at one number.
#[derive(Serialize)]
struct Number {
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
    doubts: Vec<String>,
    run_dirs: Vec<String>,
}

impl<'a> Hunt<'a> {
    fn new(arguments: &'a ScaleArguments, response: &'static Metric, range: Range) -> Self {
        let goal = Goal {
            least: upwards(response, arguments.au),
            from: arguments.from.get(),
            max: range.max,
            replicates: arguments.replicates.get(),
        };
        let search = Search::new(goal);
        Hunt { arguments, response, range, search, runs: BTreeMap::new() }
    }

    /// Run at `number`, and say what came of it.
    fn probe(&mut self, probes: &Probes<'_>, number: u64) -> anyhow::Result<()> {
        let count = self.runs.values().map(Vec::len).sum::<usize>() + 1;
        let (data, accelerators) = self.range.at(number)?;
        let what = format!("run {count}: {}", self.range.words(number));
        let line = progress::waiting(&what, self.arguments.data.quiet);
        let summary = probes.run(&data, accelerators, &format!("run-{count}"));
        line.finish_and_clear();
        let summary = summary?;
        let Some(value) = summary.figures.value(self.response) else {
            return Err(self.no_value(&summary, number));
        };
        self.search.tell(number, upwards(self.response, value));
        if !self.arguments.data.quiet {
            let verb = if self.is_met(value) { "holds" } else { "does not hold" };
            messages::say(format!(
                "{what}: {} {}, {verb} ({})",
                self.response.id.name(),
                self.response.unit.text(value),
                summary.verdict.name.name(),
            ));
        }
        self.runs.entry(number).or_default().push(summary);
        Ok(())
    }

    fn is_met(&self, value: f64) -> bool {
        upwards(self.response, self.arguments.au) <= upwards(self.response, value)
    }

    fn no_value(&self, summary: &Summary, number: u64) -> anyhow::Error {
        let why = match summary.figures.sustained_missing {
            Some(NotMeasurable::NothingRead) => ": nothing was read",
            Some(NotMeasurable::NoWindow) => ": reading was over before the window began",
            _ => "",
        };
        let message = format!(
            "the run of {} has no {}{why}",
            self.range.words(number),
            self.response.id.name()
        );
        UsageError { message, hint: Some("try `--response au_all_steps`".into()) }.into()
    }

    fn report(&self, edge: Edge, results: String) -> Report {
        let found = match edge {
            Edge::At(number) | Edge::AtMax(number) => Some(number),
            Edge::BelowFrom => None,
        };
        Report {
            workload: self.range.resolved.plan.workload.clone(),
            key: self.arguments.key.clone(),
            response: self.response.id.name(),
            bound: self.arguments.au,
            found,
            cache_fed: is_cache_fed(&self.runs, &edge.around(self.arguments.from.get())),
            why: self.why(edge),
            runs: self.runs.values().map(Vec::len).sum(),
            from: self.arguments.from.get(),
            max: self.range.max,
            numbers: self.runs.iter().map(|(&number, runs)| self.number(number, runs)).collect(),
            holds_above: self.search.holds_above(edge),
            overrides: self.range.added.clone(),
            notes: self.range.notes.clone(),
            results,
        }
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
        let sustained = run.figures.value(&AU_SUSTAINED).map(|percent| percent / 100.0);
        let rates = needed.and_then(|needed| Some((needed, needed * sustained?)));
        let rates = rates.map_or_else(String::new, |(needed, delivered)| {
            format!(
                "{} wait for nothing at {}, and {} is what they can go on getting. ",
                self.range.words(beyond),
                units::bytes_per_second(needed),
                units::bytes_per_second(delivered),
            )
        });
        format!("{rates}{}: {}", run.verdict.name.name(), run.verdict.evidence)
    }

    fn number(&self, number: u64, runs: &[Summary]) -> Number {
        let values: Vec<f64> =
            runs.iter().filter_map(|run| run.figures.value(self.response)).collect();
        let doubts = runs.iter().flat_map(|run| &run.doubts);
        let mut doubts: Vec<String> = doubts
            .filter(|doubt| doubt.severity < Severity::Note)
            .map(|doubt| doubt.name.clone())
            .collect();
        doubts.sort();
        doubts.dedup();
        let last = runs.last().map(|run| &run.verdict);
        Number {
            number,
            mean: feedrate_measure::stats::mean(&values),
            interval: self.response.middle(&values, CONFIDENCE),
            holds: self.search.holds(number) == Some(true),
            verdict: last.map_or("", |verdict| verdict.name.name()),
            evidence: last.map_or_else(String::new, |verdict| verdict.evidence.clone()),
            doubts,
            run_dirs: runs.iter().filter_map(|run| run.run_dir.clone()).collect(),
            values,
        }
    }

    fn page(&self, report: &Report) -> String {
        let sign = if self.response.better == Better::Higher { "≥" } else { "≤" };
        let bound = self.response.unit.text(self.arguments.au);
        let goal = format!("{} {sign} {bound}", report.response);
        let head = match report.found {
            Some(number) => {
                format!("{}: {goal} up to {}", report.workload, self.range.words(number))
            }
            None => format!(
                "{}: {goal} does not hold at {}",
                report.workload,
                self.range.words(report.from)
            ),
        };
        let head = headline(head, report.cache_fed);
        let mut parts = vec![format!("{head}\nWhy: {}", report.why), self.table(report)];
        for number in &report.holds_above {
            parts.push(format!(
                "It held at {number} too: the response does not simply fall as {} grows; `--replicates` steadies it.",
                report.key
            ));
        }
        if !report.overrides.is_empty() {
            parts.push(format!("Set in every run: {}", report.overrides.join(" ")));
        }
        parts.push(format!("{} in {}", units::counted(report.runs as u64, "run"), report.results));
        parts.join("\n\n")
    }

    fn table(&self, report: &Report) -> String {
        let unit = self.response.unit;
        let header =
            [report.key.as_str(), "Runs", "Mean", "95 % interval", "Holds", "Verdict", "Doubts"];
        let mut table = text::table(header);
        for row in &report.numbers {
            let interval =
                row.interval.map(|i| format!("{} to {}", unit.text(i.low), unit.text(i.high)));
            table.add_row([
                row.number.to_string(),
                row.values.len().to_string(),
                row.mean.map_or("-".into(), |mean| unit.text(mean)),
                interval.unwrap_or("one run has none".into()),
                if row.holds { "yes" } else { "no" }.into(),
                row.verdict.into(),
                row.doubts.join(", "),
            ]);
        }
        text::lines(&table)
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
    let refuse = |message: String, hint: String| Err(UsageError { message, hint: Some(hint) });
    if !bound.is_finite() {
        return refuse(format!("`--au {bound}` is no number"), "give what is to be reached".into());
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
