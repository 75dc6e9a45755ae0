//! Computes the result of a search from its runs, with the reason for the limit. The result is also the JSON output.

use super::plain_read::PlainRead;
use feedrate_analysis::answer::{Answer, AnswerKind, AnsweredSummary, relevant_doubts};
use feedrate_analysis::precision::sequential_mean;
use feedrate_measure::derived::Derived;
use feedrate_measure::doubt::{Doubt, Severity, find_origin_doubt};
use feedrate_measure::metric::{Metric, Unit};
use feedrate_measure::noise::OtherUse;
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

/// Result of a finished search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(in crate::command) struct SearchResult {
    /// The workload's name.
    pub(super) workload: String,
    /// `accelerators`, or a key of the workload.
    pub(super) key: String,
    /// Name of the metric.
    pub(super) response: String,
    /// The target: a lower limit of the metric, or an upper limit if low values are good.
    pub(super) bound: f64,
    /// Whether the largest or the smallest number was searched for.
    pub(super) find: SearchTarget,
    /// The numbers that reach and miss the target.
    #[serde(flatten)]
    pub(super) found: SearchBounds,
    /// Bytes per second that the storage lacks at the number that misses the target; `null` if the rate is not the cause.
    pub(super) lacks_bytes_per_second: Option<f64>,
    /// Reason that the target is missed there, or that no larger number was tried.
    pub(super) why: String,
    /// Reason that the search stopped early; `null` if everything is decided.
    pub(super) stopped: Option<String>,
    /// Number of runs.
    pub(super) runs: u64,
    /// Total time of the runs, in seconds.
    pub(super) took_s: f64,
    /// Local start time of the oldest run.
    pub(super) oldest_run: Option<String>,
    /// Smallest number that could be tried.
    pub(super) from: u64,
    /// Largest number that could be tried.
    pub(super) max: u64,
    /// Results at each number that was tried.
    pub(super) numbers: Vec<SearchedNumber>,
    /// Numbers above the limit with the result of numbers below it. They contradict the answer.
    pub(super) again: Vec<u64>,
    /// Plain reads for a number next to the limit; `null` if they were not measured.
    #[serde(default)]
    pub(super) plain_read: Option<PlainRead>,
    /// Dataset of the last runs; `null` if it is in no folder, or feedrate did not generate it.
    pub(super) dataset: Option<SearchedDataset>,
    /// Overrides that the search added to the user's overrides in every run. The number of files grows during the search.
    pub(super) overrides: Vec<String>,
    /// Remarks on these overrides.
    pub(super) notes: Vec<String>,
    /// The folder of the runs.
    pub(super) results: String,
}

/// All runs at one number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct SearchedNumber {
    /// The number.
    pub(super) number: u64,
    /// Whether the target is reached.
    pub(super) state: Certainty,
    /// Metric of each run.
    pub(super) values: Vec<f64>,
    /// Mean of the values.
    pub(super) mean: Option<f64>,
    /// Confidence interval of the mean; `null` for a single run.
    pub(super) interval: Option<Interval>,
    /// Verdict of the run closest to the mean.
    pub(super) verdict: String,
    /// Evidence of the verdict.
    pub(super) evidence: String,
    /// Names of the runs' doubts that are warnings or worse.
    pub(super) doubts: Vec<String>,
    /// Names of those doubts that could change whether the number reaches the target.
    #[serde(default)]
    pub(super) relevant_doubts: Vec<String>,
    /// Mean rate at which no accelerator would wait; `null` if unknown.
    #[serde(default)]
    pub(super) needed_bytes_per_second: Option<f64>,
    /// Mean rate of the runs' reads; `None` if unknown. Not part of the output.
    #[serde(skip)]
    pub(super) delivered_bytes_per_second: Option<f64>,
    /// Whether other programs used at least half of the busy time of the cores in a run. Not part of the output.
    #[serde(skip)]
    pub(super) is_machine_used_by_others: bool,
    /// Folders of the runs.
    pub(super) run_dirs: Vec<String>,
}

impl SearchResult {
    /// Whether the search ended because the cores of this machine were busy. The storage might then feed more.
    pub(super) fn ends_at_busy_cores(&self) -> bool {
        self.searched_at(self.found.fails)
            .any(|number| number.verdict == Bound::CpuSaturated.name())
    }

    /// Whether plain reads deliver what the failing number needs.
    pub(super) fn is_plain_read_enough(&self) -> bool {
        let read = self.plain_read.as_ref().filter(|read| Some(read.number) == self.found.fails);
        read.is_some_and(|read| self.is_enough(read))
    }

    /// Whether plain reads deliver what their number needs to reach the target.
    pub(super) fn is_enough(&self, read: &PlainRead) -> bool {
        let is_utilisation = Metric::find(&self.response).is_ok_and(Metric::is_utilisation);
        // The needed rate belongs to a utilisation of 100 %.
        let share = if is_utilisation { self.bound / 100.0 } else { 1.0 };
        let rates = read.bytes_per_second.zip(read.needed_bytes_per_second);
        rates.is_some_and(|(delivered, needed)| share * needed <= delivered)
    }

    /// Drops the lacking rate if the storage itself delivers enough: then the runs waited for something else, such as the start of an epoch.
    pub(super) fn drop_lack_despite_plain_read(&mut self) {
        if self.is_plain_read_enough() {
            self.lacks_bytes_per_second = None;
        }
    }

    /// Whether other programs used at least half of the busy time of the cores in a run at `number`.
    pub(super) fn are_others_busy_at(&self, number: u64) -> bool {
        self.searched_at(Some(number)).any(|searched| searched.is_machine_used_by_others)
    }

    /// Doubts that could change the answer, about the runs that decide it, with the numbers that these runs tried.
    pub(super) fn doubts_at_limit(&self) -> BTreeMap<&str, Vec<u64>> {
        let mut doubts: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for searched in
            self.searched_at(self.found.certain).chain(self.searched_at(self.found.fails))
        {
            for name in &searched.relevant_doubts {
                doubts.entry(name).or_default().push(searched.number);
            }
        }
        doubts
    }

    /// Mean of the metric at a number; `None` if it was not tried.
    pub(super) fn mean_at(&self, number: Option<u64>) -> Option<f64> {
        self.searched_at(number).find_map(|searched| searched.mean)
    }

    /// Whether the cores of this machine were busy in the runs at all undecided numbers.
    pub(super) fn is_undecided_by_busy_cores(&self) -> bool {
        let is_busy = |tried: &SearchedNumber| tried.verdict == Bound::CpuSaturated.name();
        let mut undecided = self.undecided().peekable();
        undecided.peek().is_some() && undecided.all(is_busy)
    }

    /// The rate that the largest undecided number needs, with the number; `None` if all are decided or the rate is unknown.
    pub(super) fn needed_if_undecided(&self) -> Option<(u64, f64)> {
        let largest = self.undecided().max_by_key(|tried| tried.number)?;
        Some((largest.number, largest.needed_bytes_per_second?))
    }

    /// The undecided numbers that were tried.
    fn undecided(&self) -> impl Iterator<Item = &SearchedNumber> {
        let limits = self.found.not_decided;
        let is_undecided = move |number| {
            limits.is_some_and(|(low, high): (u64, u64)| (low..=high).contains(&number))
        };
        self.numbers
            .iter()
            .filter(move |tried| is_undecided(tried.number) && !tried.values.is_empty())
    }

    fn searched_at(&self, number: Option<u64>) -> impl Iterator<Item = &SearchedNumber> {
        self.numbers.iter().filter(move |searched| Some(searched.number) == number)
    }
}

/// The finished runs of a search and their summaries.
pub(super) struct SearchAnswer<'a> {
    options: &'a ScaleOptions,
    search: &'a ScaleSearch<SearchRange<'a>>,
    runs: ScaleRuns,
    summaries: BTreeMap<u64, Vec<AnsweredSummary>>,
    /// Numbers with a run during which other programs used at least half of the busy time of the cores.
    used_by_others: BTreeSet<u64>,
}

impl<'a> SearchAnswer<'a> {
    pub(super) fn new(
        options: &'a ScaleOptions,
        search: &'a ScaleSearch<SearchRange<'a>>,
        runs: ScaleRuns,
    ) -> anyhow::Result<Self> {
        let mut summaries: BTreeMap<u64, Vec<AnsweredSummary>> = BTreeMap::new();
        let mut used_by_others = BTreeSet::new();
        for (&number, measured) in &runs.by_number {
            for run in measured {
                let record = load_run(&run.run_dir)?;
                if OtherUse::new(&Derived::new(&record)).is_some_and(|others| others.is_most()) {
                    used_by_others.insert(number);
                }
                let mut summary = AnsweredSummary::new(&record);
                summary.summary.run_dir = Some(run.run_dir.display().to_string());
                summaries.entry(number).or_default().push(summary);
            }
        }
        Ok(SearchAnswer { options, search, runs, summaries, used_by_others })
    }

    /// The result of the search. `stopped` is the reason that it stopped early.
    pub(super) fn result(&self, stopped: Option<String>, study: &ChosenStudy) -> SearchResult {
        let found = self.runs.search.bounds();
        let range = self.search.range();
        let client_limits = self.search.client_limits();
        let failing = found.fails.and_then(|number| self.summaries.get(&number));
        let is_largest = self.options.find == SearchTarget::Largest;
        let undecided = found.not_decided.map(|(_, high)| high);
        let is_max = is_largest && [found.certain, undecided].contains(&Some(range.max));
        let client_percent = found.fails.and_then(|number| client_limits.get(&number));
        let why = match failing {
            Some(runs) => self.miss_reason(runs).unwrap_or_default(),
            None if let Some(percent) = client_percent => {
                client::client_limit(*percent, range.bound)
            }
            None if is_max => range.max_reason.clone(),
            None => String::new(),
        };
        let missing = failing.and_then(|runs| {
            let rates = runs.iter().filter(|run| shows_storage(run)).map(|run| {
                if self.answers_search(run) { run.answer.missing_bytes_per_second() } else { None }
            });
            stats::mean(&rates.collect::<Option<Vec<f64>>>()?)
        });
        let skipped = client_limits.keys().map(|&number| (number, &[][..]));
        let tried = self.summaries.iter().map(|(&number, runs)| (number, &runs[..]));
        let mut numbers: Vec<_> =
            tried.chain(skipped).map(|(number, runs)| self.searched_number(number, runs)).collect();
        numbers.sort_by_key(|row| row.number);
        SearchResult {
            workload: range.resolved.plan.workload.clone(),
            key: self.options.key.clone(),
            response: self.options.response.id.name().into(),
            bound: range.bound,
            find: self.options.find,
            found,
            lacks_bytes_per_second: missing,
            why,
            stopped,
            runs: self.runs.count(),
            took_s: self.runs.seconds(),
            oldest_run: study.oldest_run.clone(),
            from: self.options.from,
            max: range.max,
            numbers,
            again: self.runs.search.contradictions(),
            plain_read: None,
            dataset: range.dataset().ok().flatten(),
            overrides: range.added_overrides(),
            notes: range.notes.clone(),
            results: study.folder.display().to_string(),
        }
    }

    /// Reason that the target is missed, from a typical run that misses it.
    fn miss_reason(&self, runs: &[AnsweredSummary]) -> Option<String> {
        let least = score(self.options.response, self.search.range().bound);
        let run = self.typical_run(runs, |run| {
            self.value(run).is_some_and(|value| score(self.options.response, value) < least)
        })?;
        if self.answers_search(run) || run.summary.verdict.name == Bound::CpuSaturated {
            // The search has one metric, so its reason names no second utilisation.
            let answered = Answer { waited_percent: None, ..run.answer.clone() };
            let mut lines = answer::lines(&answered, &run.summary.doubts).into_iter();
            let first = lines.next().unwrap_or_default();
            let first = first.strip_prefix(&answer::head(&run.answer)).unwrap_or(&first);
            let first = first.trim().to_string();
            return Some(lines.take(1).fold(first, |why, line| format!("{why}. {line}")));
        }
        if self.options.response.is_utilisation() {
            let name = self.options.response.id.name();
            let au = self.value(run)?;
            return Some(answer::other_utilisation(
                name,
                au,
                self.search.range().bound,
                &run.answer,
            ));
        }
        Some(format!("{}: {}", run.summary.verdict.name.name(), run.summary.verdict.evidence))
    }

    /// Whether the run's answer says that it misses the search's target in the search's metric.
    fn answers_search(&self, run: &AnsweredSummary) -> bool {
        let answer = &run.answer;
        answer.fed == Some(false)
            && answer.au_kind == Some(self.options.response.id.name())
            && answer.required_percent == self.search.range().bound
    }

    /// The run whose metric is closest to the mean, among those that `is_wanted` accepts.
    fn typical_run<'r>(
        &self,
        runs: &'r [AnsweredSummary],
        is_wanted: impl Fn(&&'r AnsweredSummary) -> bool,
    ) -> Option<&'r AnsweredSummary> {
        let mean = stats::mean(&self.values(runs))?;
        let distance = |run: &AnsweredSummary| {
            self.value(run).map_or(f64::INFINITY, |value| (value - mean).abs())
        };
        let candidates = runs.iter().filter(|run| shows_storage(run)).filter(is_wanted);
        candidates.min_by(|a, b| distance(a).total_cmp(&distance(b)))
    }

    fn values(&self, runs: &[AnsweredSummary]) -> Vec<f64> {
        runs.iter().filter(|run| shows_storage(run)).filter_map(|run| self.value(run)).collect()
    }

    fn value(&self, run: &AnsweredSummary) -> Option<f64> {
        run.summary.figures.value(self.options.response)
    }

    fn searched_number(&self, number: u64, runs: &[AnsweredSummary]) -> SearchedNumber {
        let values = self.values(runs);
        let all_doubts = runs.iter().flat_map(|run| &run.summary.doubts);
        let serious = all_doubts.filter(|doubt| doubt.severity < Severity::Note);
        let needed = runs.iter().map(|run| run.answer.needed_bytes_per_second);
        let needed: Option<Vec<f64>> = needed.collect();
        let valid = runs.iter().filter(|run| shows_storage(run));
        let delivered: Option<Vec<f64>> =
            valid.map(|run| run.answer.delivered_bytes_per_second).collect();
        let names = |doubt: &Doubt| doubt.name.clone();
        let doubts: BTreeSet<String> = serious.map(names).collect();
        let relevant: BTreeSet<String> = runs
            .iter()
            .flat_map(|run| relevant_doubts(Some(&run.answer), &run.summary.doubts))
            .map(names)
            .collect();
        let verdict =
            self.typical_run(runs, |_| true).or(runs.last()).map(|run| &run.summary.verdict);
        // Numbers without a run were skipped because of the client's costs.
        let percent = self.search.client_limits().get(&number);
        let skipped =
            percent.map(|percent| client::client_limit(*percent, self.search.range().bound));
        SearchedNumber {
            number,
            state: self.runs.search.certainty(number),
            mean: stats::mean(&values),
            interval: sequential_mean(&values).map(|interval| self.clip(interval)),
            verdict: verdict.map_or(Bound::ClientBound, |verdict| verdict.name).name().into(),
            evidence: verdict
                .map(|verdict| verdict.evidence.clone())
                .or(skipped)
                .unwrap_or_default(),
            doubts: Vec::from_iter(doubts),
            relevant_doubts: Vec::from_iter(relevant),
            needed_bytes_per_second: needed.and_then(|needed| stats::mean(&needed)),
            delivered_bytes_per_second: delivered.and_then(|delivered| stats::mean(&delivered)),
            is_machine_used_by_others: self.used_by_others.contains(&number),
            run_dirs: runs.iter().filter_map(|run| run.summary.run_dir.clone()).collect(),
            values,
        }
    }

    /// Clips the interval of a percentage to 0 to 100.
    fn clip(&self, interval: Interval) -> Interval {
        let Interval { low, high, .. } = interval;
        match self.options.response.unit {
            Unit::Percent => Interval { low: low.max(0.0), high: high.min(100.0), ..interval },
            _ => interval,
        }
    }
}

/// Extracts the values that a search needs from a record, and checks that the run shows the speed of the storage, not of memory.
pub(super) fn observe(record: &Record) -> Observation {
    let summary = AnsweredSummary::new(record);
    let mut observation = Observation::new(record);
    if !shows_storage(&summary) {
        let mut lines = answer::lines(&summary.answer, &summary.summary.doubts);
        let origin = find_origin_doubt(&summary.summary.doubts);
        lines.extend(origin.map(|doubt| doubt.advice.clone()));
        let memory = match summary.answer.kind {
            AnswerKind::Unknown => "",
            _ => "the bytes came or may have come from memory; ",
        };
        observation.invalid_reason = Some(format!("{memory}{}", lines.join("; ")));
    }
    observation
}

/// Whether a run shows how many accelerators the storage feeds on this machine.
fn shows_storage(run: &AnsweredSummary) -> bool {
    match run.summary.verdict.name {
        Bound::CpuSaturated => true,
        Bound::ClientBound => run.answer.kind != AnswerKind::Unknown,
        _ => run.answer.kind != AnswerKind::Unknown && !run.answer.is_memory_served,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_measure::example::{set_stall, simple};
    use feedrate_measure::record::Stall;
    use feedrate_spec::plan::ClientPlan;

    #[test]
    fn runs_served_from_memory_do_not_show_the_storages_speed_with_any_verdict() {
        let mut record = simple(&[(500, 500, 0, 1_000_000); 20]);
        set_stall(&mut record, Stall { decode_ns: 10_000_000_000, ..Stall::default() });
        assert!(shows_storage(&AnsweredSummary::new(&record)));
        record.epochs[0].host.process_device_read_bytes = Some(0);
        record.epochs[0].host.resident_before_bytes = Some(20_000_000);
        assert!(!shows_storage(&AnsweredSummary::new(&record)));
        // A client-bound run is valid: the client is equally slow with any storage.
        record.plan.loader.client = Some(ClientPlan { per_sample_s: 1.0, ..ClientPlan::default() });
        set_stall(&mut record, Stall { client_ns: 10_000_000_000, ..Stall::default() });
        assert!(shows_storage(&AnsweredSummary::new(&record)));
        // A run on a machine whose cores are busy is valid too.
        let mut busy = simple(&[(500, 500, 0, 1_000_000); 20]);
        busy.epochs[0].host.cpu_busy_share = Some(0.97);
        assert!(shows_storage(&AnsweredSummary::new(&busy)));
    }
}
