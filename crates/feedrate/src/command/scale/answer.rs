//! The answer of a search: its runs summed up by number, why it ends there, and its JSON.

use feedrate_analysis::answer::{AnswerKind, AnsweredSummary};
use feedrate_analysis::precision::sequential_mean;
use feedrate_measure::doubt::{PAGE_CACHE, Severity};
use feedrate_measure::metric::Unit;
use feedrate_measure::record::Record;
use feedrate_measure::stats::{self, Interval};
use feedrate_measure::verdict::Bound;
use feedrate_report::words::{answer, client};
use feedrate_results::load_run;
use feedrate_study::chooser::{Observation, ScaleRuns, ScaleSearch, score};
use feedrate_study::chosen::ChosenStudy;
use feedrate_study::scale::{ScaleOptions, SearchRange, SearchedDataset};
use feedrate_study::search::{Certainty, SearchBounds, SearchTarget};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A search that is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(in crate::command) struct SearchResult {
    /// The workload's name.
    pub(super) workload: String,
    /// `accelerators`, or a key of the workload.
    pub(super) key: String,
    /// Name of the metric.
    pub(super) response: String,
    /// To be reached, or where low is good not to be exceeded.
    pub(super) bound: f64,
    /// The number that was looked for.
    pub(super) find: SearchTarget,
    /// The answer.
    #[serde(flatten)]
    pub(super) found: SearchBounds,
    /// Bytes per second that a run at the number that fails needs beyond what it gets, where that is what it lacks.
    pub(super) lacks_bytes_per_second: Option<f64>,
    /// Reason why it fails there, or why there is nothing beyond.
    pub(super) why: String,
    /// Reason why something is not decided; `null` where all is.
    pub(super) stopped: Option<String>,
    /// Runs that were made.
    pub(super) runs: u64,
    /// How long they took.
    pub(super) took_s: f64,
    /// Local start of the oldest of them.
    pub(super) oldest_run: Option<String>,
    /// The smallest number that could be tried.
    pub(super) from: u64,
    /// The largest.
    pub(super) max: u64,
    /// Each number that was tried.
    pub(super) numbers: Vec<SearchedNumber>,
    /// Numbers above the edge that are on the lower side of it again.
    pub(super) again: Vec<u64>,
    /// The dataset of the last runs; `null` where it is in no folder, or others made it.
    pub(super) dataset: Option<SearchedDataset>,
    /// Overrides beside the user's, in every run; that of the dataset's files grows in the course of the search.
    pub(super) overrides: Vec<String>,
    /// Remarks on these for the user.
    pub(super) notes: Vec<String>,
    /// The folder of the runs.
    pub(super) results: String,
}

/// All runs at one number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct SearchedNumber {
    /// The number.
    pub(super) number: u64,
    /// Conclusion from them.
    pub(super) state: Certainty,
    /// The response of each.
    pub(super) values: Vec<f64>,
    /// Their mean.
    pub(super) mean: Option<f64>,
    /// The interval that decides; `null` of one run.
    pub(super) interval: Option<Interval>,
    /// Verdict of the run that is nearest to the mean.
    pub(super) verdict: String,
    /// Its evidence.
    pub(super) evidence: String,
    /// Names of the doubts of any of its runs that are more than notes.
    pub(super) doubts: Vec<String>,
    /// Folders of the runs.
    pub(super) run_dirs: Vec<String>,
}

impl SearchResult {
    /// Whether it ends where the cores of the machine were busy, so that the storage may do for more.
    pub(super) fn ends_at_busy_cores(&self) -> bool {
        self.at(self.found.fails).any(|number| number.verdict == Bound::CpuSaturated.name())
    }

    /// Doubts beside the runs that decide, with the numbers of these.
    pub(super) fn doubts_at_edge(&self) -> BTreeMap<&str, Vec<u64>> {
        let mut doubts: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for searched in self.at(self.found.certain).chain(self.at(self.found.fails)) {
            for name in &searched.doubts {
                doubts.entry(name).or_default().push(searched.number);
            }
        }
        doubts
    }

    fn at(&self, number: Option<u64>) -> impl Iterator<Item = &SearchedNumber> {
        self.numbers.iter().filter(move |searched| Some(searched.number) == number)
    }
}

/// The finished runs of a search, summed up.
pub(super) struct SearchAnswer<'a> {
    options: &'a ScaleOptions,
    search: &'a ScaleSearch<SearchRange<'a>>,
    runs: ScaleRuns,
    summaries: BTreeMap<u64, Vec<AnsweredSummary>>,
}

impl<'a> SearchAnswer<'a> {
    pub(super) fn new(
        options: &'a ScaleOptions,
        search: &'a ScaleSearch<SearchRange<'a>>,
        runs: ScaleRuns,
    ) -> anyhow::Result<Self> {
        let mut summaries: BTreeMap<u64, Vec<AnsweredSummary>> = BTreeMap::new();
        for (&number, measured) in &runs.by_number {
            for run in measured {
                let mut summary = AnsweredSummary::new(&load_run(&run.run_dir)?);
                summary.summary.run_dir = Some(run.run_dir.display().to_string());
                summaries.entry(number).or_default().push(summary);
            }
        }
        Ok(SearchAnswer { options, search, runs, summaries })
    }

    /// As JSON has it. `stopped`: why something is not decided.
    pub(super) fn result(&self, stopped: Option<String>, study: &ChosenStudy) -> SearchResult {
        let (found, range) = (self.runs.search.found(), self.search.range());
        let left_by_client = self.search.client_limits();
        let failing = found.fails.and_then(|number| self.summaries.get(&number));
        let is_most =
            found.certain == Some(range.max) && self.options.find == SearchTarget::Largest;
        let by_client = found.fails.and_then(|number| left_by_client.get(&number));
        let why = match failing {
            Some(runs) => self.why(runs).unwrap_or_default(),
            None if let Some(percent) = by_client => client::leaves(*percent, range.bound),
            None if is_most => range.max_reason.clone(),
            None => String::new(),
        };
        let lacks = failing.and_then(|runs| {
            let lacks = runs.iter().filter(|run| is_of_storage(run)).map(|run| {
                if self.is_judged(run) { run.answer.missing_bytes_per_second() } else { None }
            });
            stats::mean(&lacks.collect::<Option<Vec<f64>>>()?)
        });
        let left = left_by_client.keys().map(|&number| (number, &[][..]));
        let tried = self.summaries.iter().map(|(&number, runs)| (number, &runs[..]));
        let mut numbers: Vec<_> =
            tried.chain(left).map(|(number, runs)| self.at_number(number, runs)).collect();
        numbers.sort_by_key(|row| row.number);
        SearchResult {
            workload: range.resolved.plan.workload.clone(),
            key: self.options.key.clone(),
            response: self.options.response.id.name().into(),
            bound: range.bound,
            find: self.options.find,
            found,
            lacks_bytes_per_second: lacks,
            why,
            stopped,
            runs: self.runs.count(),
            took_s: self.runs.seconds(),
            oldest_run: study.oldest_run.clone(),
            from: self.options.from,
            max: range.max,
            numbers,
            again: self.runs.search.contradictions(),
            dataset: range.dataset().ok().flatten(),
            overrides: range.added(),
            notes: range.notes.clone(),
            results: study.folder.display().to_string(),
        }
    }

    /// Why the response does not hold, from the typical run in which it does not.
    fn why(&self, runs: &[AnsweredSummary]) -> Option<String> {
        let least = score(self.options.response, self.search.range().bound);
        let run = self.typical(runs, |run| {
            self.value(run).is_some_and(|value| score(self.options.response, value) < least)
        })?;
        if self.is_judged(run) || run.summary.verdict.name == Bound::CpuSaturated {
            let mut lines = answer::lines(&run.answer, &run.summary.doubts).into_iter();
            let first = lines.next().unwrap_or_default();
            let first = first.strip_prefix(&answer::head(&run.answer)).unwrap_or(&first);
            let first = first.trim().to_string();
            return Some(lines.take(1).fold(first, |why, line| format!("{why}. {line}")));
        }
        if self.options.response.id.name().starts_with("au_") {
            let (name, au) = (self.options.response.id.name(), self.value(run)?);
            return Some(answer::falls_short(name, au, self.search.range().bound, &run.answer));
        }
        Some(format!("{}: {}", run.summary.verdict.name.name(), run.summary.verdict.evidence))
    }

    /// Whether the answer of a run is that of the search.
    fn is_judged(&self, run: &AnsweredSummary) -> bool {
        let answer = &run.answer;
        answer.fed == Some(false)
            && answer.au_kind == Some(self.options.response.id.name())
            && answer.required_percent == self.search.range().bound
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
        let runs = runs.iter().filter(|run| is_of_storage(run)).filter(is_wanted);
        runs.min_by(|a, b| away(a).total_cmp(&away(b)))
    }

    fn values(&self, runs: &[AnsweredSummary]) -> Vec<f64> {
        runs.iter().filter(|run| is_of_storage(run)).filter_map(|run| self.value(run)).collect()
    }

    fn value(&self, run: &AnsweredSummary) -> Option<f64> {
        run.summary.figures.value(self.options.response)
    }

    fn at_number(&self, number: u64, runs: &[AnsweredSummary]) -> SearchedNumber {
        let values = self.values(runs);
        let doubts = runs.iter().flat_map(|run| &run.summary.doubts);
        let doubts = doubts.filter(|doubt| doubt.severity < Severity::Note);
        let doubts: BTreeSet<String> = doubts.map(|doubt| doubt.name.clone()).collect();
        let verdict = self.typical(runs, |_| true).or(runs.last()).map(|run| &run.summary.verdict);
        // Without a run it is the client that leaves too little.
        let left = self.search.client_limits().get(&number);
        let left = left.map(|percent| client::leaves(*percent, self.search.range().bound));
        SearchedNumber {
            number,
            state: self.runs.search.certainty(number),
            mean: stats::mean(&values),
            interval: sequential_mean(&values).map(|interval| self.possible(interval)),
            verdict: verdict.map_or(Bound::ClientBound, |verdict| verdict.name).name().into(),
            evidence: verdict.map(|verdict| verdict.evidence.clone()).or(left).unwrap_or_default(),
            doubts: Vec::from_iter(doubts),
            run_dirs: runs.iter().filter_map(|run| run.summary.run_dir.clone()).collect(),
            values,
        }
    }

    /// The part of an interval where a mean can be: from 0 to 100 for percentages.
    fn possible(&self, interval: Interval) -> Interval {
        let Interval { low, high, .. } = interval;
        match self.options.response.unit {
            Unit::Percent => Interval { low: low.max(0.0), high: high.min(100.0), ..interval },
            _ => interval,
        }
    }
}

/// What a search sees of a record: whether it shows what the storage feeds on this machine, and not what memory does.
pub(super) fn observe(record: &Record) -> Observation {
    let summary = AnsweredSummary::new(record);
    let mut observation = Observation::new(record);
    if !is_of_storage(&summary) {
        let mut lines = answer::lines(&summary.answer, &summary.summary.doubts);
        let page_cache = summary.summary.doubts.iter().find(|doubt| doubt.name == PAGE_CACHE);
        lines.extend(page_cache.map(|doubt| doubt.advice.clone()));
        let memory = match summary.answer.kind {
            AnswerKind::Unknown => "",
            _ => "memory served it, or may have; ",
        };
        observation.worthless = Some(format!("{memory}{}", lines.join("; ")));
    }
    observation
}

/// Whether a run shows what the storage feeds on this machine.
fn is_of_storage(run: &AnsweredSummary) -> bool {
    match run.summary.verdict.name {
        Bound::CpuSaturated => true,
        Bound::ClientBound => run.answer.kind != AnswerKind::Unknown,
        _ => run.answer.kind != AnswerKind::Unknown && !run.answer.is_memory_served,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_measure::example::{simple, wait_alone};
    use feedrate_measure::record::Stall;
    use feedrate_spec::plan::ClientPlan;

    #[test]
    fn what_memory_served_is_worthless_whatever_bounds_it() {
        let mut record = simple(&[(500, 500, 0, 1_000_000); 20]);
        wait_alone(&mut record, Stall { decode_ns: 10_000_000_000, ..Stall::default() });
        assert!(is_of_storage(&AnsweredSummary::new(&record)));
        record.epochs[0].host.process_device_read_bytes = Some(0);
        record.epochs[0].host.resident_before_bytes = Some(20_000_000);
        assert!(!is_of_storage(&AnsweredSummary::new(&record)));
        // A client is as slow whatever storage is behind it.
        record.plan.loader.client = Some(ClientPlan { per_sample_s: 1.0, ..ClientPlan::default() });
        wait_alone(&mut record, Stall { client_ns: 10_000_000_000, ..Stall::default() });
        assert!(is_of_storage(&AnsweredSummary::new(&record)));
        // Neither is a machine whose cores are busy.
        let mut busy = simple(&[(500, 500, 0, 1_000_000); 20]);
        busy.epochs[0].host.cpu_busy_share = Some(0.97);
        assert!(is_of_storage(&AnsweredSummary::new(&busy)));
    }
}
