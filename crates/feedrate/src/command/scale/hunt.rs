//! A search under way: runs what it asks for until all is decided or the budget is spent, and keeps after each run what is known.

use super::ScaleArguments;
use super::probe::Probes;
use super::range::SearchRange;
use crate::exit::refuse;
use crate::{messages, progress};
use anyhow::Context;
use feedrate_analysis::precision::mean_looked_at;
use feedrate_measure::answer::AnswerKind;
use feedrate_measure::doubt::Severity;
use feedrate_measure::metric::{Better, DURATION_S, Metric, NotMeasurable, Unit};
use feedrate_measure::record::file::write_atomically;
use feedrate_measure::stats::{self, Interval};
use feedrate_measure::summary::Summary;
use feedrate_measure::verdict::Bound;
use feedrate_report::words::answer;
use feedrate_results::search::{SEARCH_FILE, SearchResult, SearchedNumber};
use feedrate_study::search::{Goal, Search, SearchStep};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

/// A search, and the runs it made.
pub(super) struct Hunt<'a> {
    arguments: &'a ScaleArguments,
    response: &'static Metric,
    range: SearchRange<'a>,
    search: Search,
    runs: BTreeMap<u64, Vec<Summary>>,
    /// How long each took, without making the dataset.
    times_s: Vec<f64>,
    budget_s: f64,
}

impl<'a> Hunt<'a> {
    /// Nothing has run yet.
    pub(super) fn new(
        arguments: &'a ScaleArguments,
        response: &'static Metric,
        range: SearchRange<'a>,
        budget_s: f64,
    ) -> Self {
        let search = Search::new(Goal {
            least: upwards(response, arguments.au),
            from: arguments.from.get(),
            max: range.max,
            find: arguments.find.into(),
        });
        let (runs, times_s) = (BTreeMap::new(), Vec::new());
        Hunt { arguments, response, range, search, runs, times_s, budget_s }
    }

    /// Run until all is decided, or no run is left.
    pub(super) fn search(mut self, probes: &Probes<'_>) -> anyhow::Result<SearchResult> {
        while let SearchStep::Probe(number) = self.search.next(self.runs_left()) {
            if let Some(worthless) = self.probe(probes, number)? {
                return self.keep(Some(worthless), probes.folder);
            }
            self.keep(Some("the search was interrupted".into()), probes.folder)?;
        }
        let is_decided = self.search.found().not_decided.is_none();
        let (runs, budget) = (self.arguments.max_runs, &self.arguments.budget);
        let stopped = match self.times_s.len() as u64 {
            _ if is_decided => None,
            count if count < runs => {
                Some(format!("another run would end after `--budget {budget}`"))
            }
            _ => Some(format!("`--max-runs {runs}` are spent")),
        };
        self.keep(stopped, probes.folder)
    }

    /// The runs that count and time allow for.
    fn runs_left(&self) -> u64 {
        let left = self.arguments.max_runs.saturating_sub(self.times_s.len() as u64);
        let Some(mean_s) = stats::mean(&self.times_s) else { return left };
        let left_s = self.budget_s - self.times_s.iter().sum::<f64>();
        left.min((left_s / mean_s) as u64)
    }

    /// Run at `number`, and say what came of it. Returns why no search can be made of such runs, where it is so.
    fn probe(&mut self, probes: &Probes<'_>, number: u64) -> anyhow::Result<Option<String>> {
        let count = self.times_s.len() + 1;
        let what = format!("run {count}: {}", self.range.words(number));
        let line = progress::waiting(&what, self.arguments.data.quiet);
        let begun = Instant::now();
        let summary = probes.run(self.range.at(number)?, &format!("run-{count}"));
        line.finish_and_clear();
        let summary = summary?;
        // The first may have made the dataset.
        let own_s = summary.figures.value(&DURATION_S).filter(|_| count == 1);
        self.times_s.push(own_s.unwrap_or(begun.elapsed().as_secs_f64()));
        let verdict = summary.verdict.name;
        if summary.answer.kind == AnswerKind::Unknown || verdict == Bound::CacheFed {
            let lines = answer::lines(&summary.answer, &summary.verdict, &summary.doubts);
            self.runs.entry(number).or_default().push(summary);
            return Ok(Some(format!("{what} says nothing of the storage: {}", lines.join("; "))));
        }
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
        self.search.tell(number, upwards(self.response, value));
        if !self.arguments.data.quiet {
            let value = self.response.unit.text(value);
            messages::say(format!("{what}: {name} {value} ({})", verdict.name()));
        }
        self.runs.entry(number).or_default().push(summary);
        Ok(None)
    }

    /// Write what is known into the folder of the search.
    fn keep(&self, stopped: Option<String>, folder: &Path) -> anyhow::Result<SearchResult> {
        let result = self.result(stopped, folder);
        write_atomically(&folder.join(SEARCH_FILE), serde_json::to_string(&result)?.as_bytes())
            .context("cannot keep what is known of the search")?;
        Ok(result)
    }

    fn result(&self, stopped: Option<String>, folder: &Path) -> SearchResult {
        let found = self.search.found();
        let failing = found.fails.and_then(|number| self.runs.get(&number));
        let why = match failing.and_then(|runs| self.typical(runs)) {
            Some(run) if self.is_au() => {
                let mut lines = answer::lines(&run.answer, &run.verdict, &run.doubts).into_iter();
                let first = lines.next().unwrap_or_default();
                let first = first.strip_prefix(&answer::head(&run.answer)).unwrap_or(&first);
                lines.take(1).fold(first.trim().to_string(), |why, line| format!("{why}. {line}"))
            }
            Some(run) => format!("{}: {}", run.verdict.name.name(), run.verdict.evidence),
            None if found.certain == Some(self.range.max) => self.range.why_max.clone(),
            None => String::new(),
        };
        let lacks = failing.filter(|_| self.is_au()).and_then(|runs| {
            let lacks = runs.iter().map(|run| run.answer.lacks_bytes_per_second());
            stats::mean(&lacks.collect::<Option<Vec<f64>>>()?)
        });
        SearchResult {
            workload: self.range.resolved.plan.workload.clone(),
            key: self.arguments.key.clone(),
            response: self.response.id.name().into(),
            bound: self.arguments.au,
            find: self.arguments.find.into(),
            found,
            lacks_bytes_per_second: lacks,
            why,
            stopped,
            runs: self.times_s.len() as u64,
            took_s: self.times_s.iter().sum(),
            from: self.arguments.from.get(),
            max: self.range.max,
            numbers: self.runs.iter().map(|(&number, runs)| self.at_number(number, runs)).collect(),
            again: self.search.again(),
            overrides: self.range.added().to_vec(),
            notes: self.range.notes.clone(),
            results: folder.display().to_string(),
        }
    }

    fn is_au(&self) -> bool {
        self.response.id.name().starts_with("au_")
    }

    /// The run whose response is nearest to the mean.
    fn typical<'r>(&self, runs: &'r [Summary]) -> Option<&'r Summary> {
        let mean = stats::mean(&self.values(runs))?;
        let away = |run: &Summary| {
            let value = run.figures.value(self.response);
            value.map_or(f64::INFINITY, |value| (value - mean).abs())
        };
        runs.iter().min_by(|a, b| away(a).total_cmp(&away(b)))
    }

    fn values(&self, runs: &[Summary]) -> Vec<f64> {
        runs.iter().filter_map(|run| run.figures.value(self.response)).collect()
    }

    fn at_number(&self, number: u64, runs: &[Summary]) -> SearchedNumber {
        let values = self.values(runs);
        let doubts = runs.iter().flat_map(|run| &run.doubts);
        let doubts = doubts.filter(|doubt| doubt.severity < Severity::Note);
        let doubts: BTreeSet<String> = doubts.map(|doubt| doubt.name.clone()).collect();
        let verdict = self.typical(runs).or(runs.last()).map(|run| &run.verdict);
        SearchedNumber {
            number,
            state: self.search.certainty(number),
            mean: stats::mean(&values),
            interval: mean_looked_at(&values).map(|of| self.possible(of)),
            verdict: verdict.map_or("", |verdict| verdict.name.name()).into(),
            evidence: verdict.map_or_else(String::new, |verdict| verdict.evidence.clone()),
            doubts: Vec::from_iter(doubts),
            run_dirs: runs.iter().filter_map(|run| run.run_dir.clone()).collect(),
            values,
        }
    }

    /// Without what no mean can be: one of percentages lies within 0 to 100.
    fn possible(&self, of: Interval) -> Interval {
        match self.response.unit {
            Unit::Percent => Interval { low: of.low.max(0.0), high: of.high.min(100.0), ..of },
            _ => of,
        }
    }
}

/// Larger is better, whatever the response.
fn upwards(response: &Metric, value: f64) -> f64 {
    match response.better {
        Better::Higher => value,
        Better::Lower => -value,
    }
}
