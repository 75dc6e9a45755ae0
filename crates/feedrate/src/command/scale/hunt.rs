//! A search under way: runs what it asks for until all is decided or the budget is spent, and keeps after each run what is known.

use super::ScaleArguments;
use super::range::SearchRange;
use crate::messages;
use crate::probe::Probes;
use anyhow::Context;
use feedrate_analysis::answer::{AnswerKind, AnsweredSummary};
use feedrate_analysis::precision::mean_looked_at;
use feedrate_measure::doubt::PAGE_CACHE;
use feedrate_measure::doubt::Severity;
use feedrate_measure::metric::{Better, DURATION_S, Metric, NotMeasurable, Unit};
use feedrate_measure::record::file::write_atomically;
use feedrate_measure::stats::{self, Interval};
use feedrate_measure::verdict::Bound;
use feedrate_report::words::{answer, client};
use feedrate_results::search::{Find, SEARCH_FILE, SearchResult, SearchedNumber};
use feedrate_session::failure::reason_stopped;
use feedrate_spec::refusal::refuse;
use feedrate_spec::units;
use feedrate_study::search::Search;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const SEARCH_WAS: &str = "the search was";

/// A search, and the runs it made.
pub(super) struct Hunt<'a> {
    arguments: &'a ScaleArguments,
    range: SearchRange<'a>,
    search: Search,
    runs: BTreeMap<u64, Vec<AnsweredSummary>>,
    /// How long those at each number took, without making the dataset.
    times_s: BTreeMap<u64, Vec<f64>>,
    /// Utilisations that the client alone leaves, of numbers at which that is too little.
    left_by_client: BTreeMap<u64, f64>,
    /// The next run may make the dataset.
    makes_dataset: bool,
}

impl<'a> Hunt<'a> {
    /// Nothing has run yet.
    pub(super) fn new(arguments: &'a ScaleArguments, range: SearchRange<'a>) -> Self {
        let search = Search::new(range.goal(upwards(arguments.response, range.bound)));
        let (runs, times_s, left_by_client) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Hunt { arguments, range, search, runs, times_s, left_by_client, makes_dataset: true }
    }

    /// Run until all is decided, or no run is left. Tells what is known then, and whether all went well.
    pub(super) fn search(mut self, probes: &Probes<'_>) -> (SearchResult, anyhow::Result<()>) {
        let ended = self.run_all(probes);
        let stopped = match &ended {
            Ok(why) => why.clone(),
            Err(error) => Some(reason_stopped(error, SEARCH_WAS)),
        };
        let result = self.result(stopped, &probes.folder);
        let kept = keep(&result, &probes.folder);
        (result, ended.and(kept))
    }

    /// Returns why it stopped before all was decided, where it did.
    fn run_all(&mut self, probes: &Probes<'_>) -> anyhow::Result<Option<String>> {
        loop {
            if self.goes_further()? {
                continue;
            }
            let Some(number) = self.next() else { break };
            if let Some(percent) = self.range.client_leaves_too_little(number)? {
                // It does not vary, and two values decide.
                (0..2).for_each(|_| self.search.add(number, percent));
                self.left_by_client.insert(number, percent);
                continue;
            }
            if let Some(worthless) = self.probe(probes, number)? {
                return Ok(Some(worthless));
            }
            // Nothing else tells of a search that is killed.
            let stopped = Some(format!("{SEARCH_WAS} interrupted"));
            keep(&self.result(stopped, &probes.folder), &probes.folder)?;
        }
        let is_decided = self.search.found().not_decided.is_none();
        let (runs, budget) = (self.arguments.max_runs, units::seconds(self.arguments.budget));
        Ok(match self.count() {
            _ if is_decided => None,
            count if count < runs => {
                Some(format!("another run would probably end after the `--budget` of {budget}"))
            }
            _ => Some(format!("`--max-runs {runs}` are spent")),
        })
    }

    /// Where the largest number holds and a run is left, go on to larger ones with a larger dataset.
    fn goes_further(&mut self) -> anyhow::Result<bool> {
        // The largest number is run again with the larger dataset: without time for it, what was found stays.
        let left_s = self.arguments.budget - self.took_s();
        let has_run = self.count() < self.arguments.max_runs
            && expected_s(&self.times_s, self.range.max) <= left_s;
        if !has_run || !self.search.lies_beyond() {
            return Ok(false);
        }
        let (largest, told) = (self.range.max, self.range.notes.len());
        if !self.range.grow()? {
            return Ok(false);
        }
        self.range.tell_notes(told);
        self.search.widen(self.range.max);
        self.runs.remove(&largest);
        self.makes_dataset = true;
        Ok(true)
    }

    /// The number to run at next, if there is one that count and time allow for.
    fn next(&self) -> Option<u64> {
        let left = self.arguments.max_runs.saturating_sub(self.count());
        let left_s = self.arguments.budget - self.took_s();
        let in_time = match self.count() {
            0 => left,
            count => (left_s / (self.took_s() / count as f64)) as u64,
        };
        let next = self.search.next(left.min(in_time.max(1)));
        next.filter(|&number| expected_s(&self.times_s, number) <= left_s)
    }

    /// Runs that were made.
    fn count(&self) -> u64 {
        self.times_s.values().map(|times| times.len() as u64).sum()
    }

    fn took_s(&self) -> f64 {
        self.times_s.values().flatten().sum()
    }

    /// Run at `number`, and say what came of it. Returns why no search can be made of such runs, where it is so.
    fn probe(&mut self, probes: &Probes<'_>, number: u64) -> anyhow::Result<Option<String>> {
        let count = self.count() + 1;
        let what = format!("run {count}: {}", self.range.words(number));
        let request = self.range.at(number)?;
        let (summary, elapsed_s) = probes.run(&request, &format!("run-{count}"), &what)?;
        let makes_dataset = std::mem::take(&mut self.makes_dataset);
        let own_s = if makes_dataset { summary.summary.figures.value(&DURATION_S) } else { None };
        self.times_s.entry(number).or_default().push(own_s.unwrap_or(elapsed_s));
        let verdict = summary.summary.verdict.name;
        if !tells(&summary) {
            let mut lines = answer::lines(&summary.answer, &summary.summary.doubts);
            let page_cache = summary.summary.doubts.iter().find(|doubt| doubt.name == PAGE_CACHE);
            lines.extend(page_cache.map(|doubt| doubt.advice.clone()));
            let memory = match summary.answer.kind {
                AnswerKind::Unknown => "",
                _ => "memory served it, or may have; ",
            };
            self.runs.entry(number).or_default().push(summary);
            let lines = lines.join("; ");
            return Ok(Some(format!("{what} says nothing of the storage: {memory}{lines}")));
        }
        let name = self.arguments.response.id.name();
        let Some(value) = summary.summary.figures.value(self.arguments.response) else {
            let why = match summary.summary.figures.sustained_missing {
                Some(NotMeasurable::NothingRead) => ": nothing was read",
                Some(NotMeasurable::NoWindow) => ": reading was over before the window began",
                _ => "",
            };
            let message = format!("the run of {} has no {name}{why}", self.range.words(number));
            return refuse(message, "try `--response au_all_steps`");
        };
        self.search.add(number, upwards(self.arguments.response, value));
        let value = self.arguments.response.unit.text(value);
        messages::note(format!("{what}: {name} {value} ({})", verdict.name()));
        self.runs.entry(number).or_default().push(summary);
        Ok(None)
    }

    fn result(&self, stopped: Option<String>, folder: &Path) -> SearchResult {
        let found = self.search.found();
        let failing = found.fails.and_then(|number| self.runs.get(&number));
        let is_most = found.certain == Some(self.range.max) && self.arguments.find == Find::Largest;
        let by_client = found.fails.and_then(|number| self.left_by_client.get(&number));
        let why = match failing {
            Some(runs) => self.why(runs).unwrap_or_default(),
            None if let Some(percent) = by_client => client::leaves(*percent, self.range.bound),
            None if is_most => self.range.why_max.clone(),
            None => String::new(),
        };
        let lacks = failing.and_then(|runs| {
            let lacks = runs.iter().filter(|run| tells(run)).map(|run| {
                if self.is_judged(run) { run.answer.lacks_bytes_per_second() } else { None }
            });
            stats::mean(&lacks.collect::<Option<Vec<f64>>>()?)
        });
        let left = self.left_by_client.keys().map(|&number| (number, &[][..]));
        let tried = self.runs.iter().map(|(&number, runs)| (number, &runs[..]));
        let mut numbers: Vec<_> =
            tried.chain(left).map(|(number, runs)| self.at_number(number, runs)).collect();
        numbers.sort_by_key(|of| of.number);
        SearchResult {
            workload: self.range.resolved.plan.workload.clone(),
            key: self.arguments.key.clone(),
            response: self.arguments.response.id.name().into(),
            bound: self.range.bound,
            find: self.arguments.find,
            found,
            lacks_bytes_per_second: lacks,
            why,
            stopped,
            runs: self.count(),
            took_s: self.took_s(),
            from: self.arguments.from.get(),
            max: self.range.max,
            numbers,
            again: self.search.again(),
            dataset: self.range.dataset().ok().flatten(),
            overrides: self.range.added(),
            notes: self.range.notes.clone(),
            results: folder.display().to_string(),
        }
    }

    /// Reason for which the response does not hold in one of these runs in which it does not.
    fn why(&self, runs: &[AnsweredSummary]) -> Option<String> {
        let least = upwards(self.arguments.response, self.range.bound);
        let run = self.typical(runs, |run| {
            self.value(run).is_some_and(|value| upwards(self.arguments.response, value) < least)
        })?;
        if self.is_judged(run) || run.summary.verdict.name == Bound::CpuSaturated {
            let mut lines = answer::lines(&run.answer, &run.summary.doubts).into_iter();
            let first = lines.next().unwrap_or_default();
            let first = first.strip_prefix(&answer::head(&run.answer)).unwrap_or(&first);
            let first = first.trim().to_string();
            return Some(lines.take(1).fold(first, |why, line| format!("{why}. {line}")));
        }
        if self.arguments.response.id.name().starts_with("au_") {
            let (name, au) = (self.arguments.response.id.name(), self.value(run)?);
            return Some(answer::falls_short(name, au, self.range.bound, &run.answer));
        }
        Some(format!("{}: {}", run.summary.verdict.name.name(), run.summary.verdict.evidence))
    }

    /// Whether the answer of a run is that of the search.
    fn is_judged(&self, run: &AnsweredSummary) -> bool {
        let answer = &run.answer;
        answer.fed == Some(false)
            && answer.au_kind == Some(self.arguments.response.id.name())
            && answer.asked_percent == self.range.bound
    }

    /// The run among some whose response is nearest to the mean.
    fn typical<'r>(
        &self,
        runs: &'r [AnsweredSummary],
        is_wanted: impl Fn(&&'r AnsweredSummary) -> bool,
    ) -> Option<&'r AnsweredSummary> {
        let mean = stats::mean(&self.values(runs))?;
        let away = |run: &AnsweredSummary| {
            self.value(run).map_or(f64::INFINITY, |value| (value - mean).abs())
        };
        let runs = runs.iter().filter(|run| tells(run)).filter(is_wanted);
        runs.min_by(|a, b| away(a).total_cmp(&away(b)))
    }

    fn values(&self, runs: &[AnsweredSummary]) -> Vec<f64> {
        runs.iter().filter(|run| tells(run)).filter_map(|run| self.value(run)).collect()
    }

    fn value(&self, run: &AnsweredSummary) -> Option<f64> {
        run.summary.figures.value(self.arguments.response)
    }

    fn at_number(&self, number: u64, runs: &[AnsweredSummary]) -> SearchedNumber {
        let values = self.values(runs);
        let doubts = runs.iter().flat_map(|run| &run.summary.doubts);
        let doubts = doubts.filter(|doubt| doubt.severity < Severity::Note);
        let doubts: BTreeSet<String> = doubts.map(|doubt| doubt.name.clone()).collect();
        let verdict = self.typical(runs, |_| true).or(runs.last()).map(|run| &run.summary.verdict);
        // Without a run it is the client that leaves too little.
        let left = self.left_by_client.get(&number);
        let left = left.map(|percent| client::leaves(*percent, self.range.bound));
        SearchedNumber {
            number,
            state: self.search.certainty(number),
            mean: stats::mean(&values),
            interval: mean_looked_at(&values).map(|of| self.possible(of)),
            verdict: verdict.map_or(Bound::ClientBound, |verdict| verdict.name).name().into(),
            evidence: verdict.map(|verdict| verdict.evidence.clone()).or(left).unwrap_or_default(),
            doubts: Vec::from_iter(doubts),
            run_dirs: runs.iter().filter_map(|run| run.summary.run_dir.clone()).collect(),
            values,
        }
    }

    /// Without what no mean can be: one of percentages lies within 0 to 100.
    fn possible(&self, of: Interval) -> Interval {
        match self.arguments.response.unit {
            Unit::Percent => Interval { low: of.low.max(0.0), high: of.high.min(100.0), ..of },
            _ => of,
        }
    }
}

/// Write what is known into the folder of the search.
fn keep(result: &SearchResult, folder: &Path) -> anyhow::Result<()> {
    write_atomically(&folder.join(SEARCH_FILE), serde_json::to_string(result)?.as_bytes())
        .context("cannot keep what is known of the search")
}

/// Whether a run shows what the storage feeds on this machine: not where memory served it.
fn tells(run: &AnsweredSummary) -> bool {
    match run.summary.verdict.name {
        Bound::CpuSaturated => true,
        Bound::ClientBound => run.answer.kind != AnswerKind::Unknown,
        _ => run.answer.kind != AnswerKind::Unknown && !run.answer.is_memory_served,
    }
}

/// How long a run at `number` may take: the longest there, else as much longer than at the next smaller number as it is larger.
fn expected_s(times_s: &BTreeMap<u64, Vec<f64>>, number: u64) -> f64 {
    times_s.range(..=number).next_back().map_or(0.0, |known| {
        let longest_s = known.1.iter().copied().fold(0.0, f64::max);
        longest_s * number as f64 / *known.0 as f64
    })
}

/// The value, negated where low is good: larger is better.
fn upwards(response: &Metric, value: f64) -> f64 {
    match response.better {
        Better::Higher => value,
        Better::Lower => -value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_measure::example::{simple, wait_alone};
    use feedrate_measure::record::Stall;
    use feedrate_spec::plan::ClientPlan;

    #[test]
    fn what_memory_served_tells_nothing_whatever_bounds_it() {
        let mut record = simple(&[(500, 500, 0, 1_000_000); 20]);
        wait_alone(&mut record, Stall { decode_ns: 10_000_000_000, ..Stall::default() });
        assert!(tells(&AnsweredSummary::new(&record)));
        record.epochs[0].host.process_device_read_bytes = Some(0);
        record.epochs[0].host.resident_before_bytes = Some(20_000_000);
        assert!(!tells(&AnsweredSummary::new(&record)));
        // A client is as slow whatever storage is behind it.
        record.plan.loader.client = Some(ClientPlan { per_sample_s: 1.0, ..ClientPlan::default() });
        wait_alone(&mut record, Stall { client_ns: 10_000_000_000, ..Stall::default() });
        assert!(tells(&AnsweredSummary::new(&record)));
        // Neither is a machine whose cores are busy.
        let mut busy = simple(&[(500, 500, 0, 1_000_000); 20]);
        busy.epochs[0].host.cpu_busy_share = Some(0.97);
        assert!(tells(&AnsweredSummary::new(&busy)));
    }

    #[test]
    fn a_run_is_expected_to_take_as_long_as_at_its_own_number() {
        let times_s = BTreeMap::from([(1, vec![10.0]), (4, vec![30.0, 32.0])]);
        for (number, expected) in [(1, 10.0), (2, 20.0), (4, 32.0), (8, 64.0)] {
            assert_eq!(expected_s(&times_s, number), expected);
        }
        assert_eq!(expected_s(&BTreeMap::new(), 1), 0.0);
    }
}
