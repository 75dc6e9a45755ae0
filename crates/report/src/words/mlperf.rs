//! States in one line for each workload whether runs keep the rules of MLPerf Storage, and why not.

use super::answer::range;
use super::number::list;
use feedrate_measure::metric::AU_ALL_STEPS;
use feedrate_results::run::{Activity, MlperfCheck, RuleOutcome, Run};
use feedrate_results::submissions::{MlperfResult, MlperfWorkload, UnusableRuns, judge_workloads};
use feedrate_spec::mlperf::rules::{TABLE, keeps_all, tenths};
use feedrate_spec::units;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The name of the lines.
pub const NAME: &str = "MLPerf rules";

/// A line for each of MLPerf's workloads among the runs.
pub fn lines<'a>(runs: impl Iterator<Item = &'a Run>) -> Vec<String> {
    let workloads = judge_workloads(runs);
    let is_one = workloads.len() == 1;
    let lines = workloads.iter().filter(|workload| 0 < result_count(workload)).map(|workload| {
        let kept = kept_count(workload);
        let is_single = is_one && result_count(workload) == 1;
        let name = if is_single { String::new() } else { format!("{}: ", workload.workload) };
        name + &line(workload, kept)
    });
    lines.collect()
}

/// The line of a single run. The rules on all runs of a submission are not judged.
pub fn line_of_run(run: &Run) -> Option<String> {
    let check = run.mlperf()?;
    let count = |keeps| usize::from(check.keeps == keeps);
    let workload = MlperfWorkload {
        workload: &run.workload,
        kept: count(Some(true)),
        not_kept: count(Some(false)),
        unknown: count(None),
        submissions: Vec::new(),
        results: vec![MlperfResult { runs: vec![run], check }],
        unusable: Vec::new(),
    };
    let kept = section("kept", &workload.results, Some(true));
    Some(line(&workload, kept))
}

/// The outcomes of the rules for a plan, a line each. What it does not decide is `unknown` before the run.
pub fn planned(check: &MlperfCheck) -> String {
    let words = [("broken  ", Some(false)), ("unknown ", None), ("kept    ", Some(true))];
    let lines = words.into_iter().flat_map(|(word, keeps)| {
        let rules = check.rules.iter().filter(move |rule| rule.keeps == keeps);
        rules.filter_map(move |rule| Some(format!("{word}{}", described(&[rule])?)))
    });
    format!("rules of {}:\n{}", check.edition, Vec::from_iter(lines).join("\n"))
}

/// `kept` is the text on rules that all results keep.
fn line(workload: &MlperfWorkload, kept: Option<String>) -> String {
    let results = &workload.results;
    let mut parts = vec![head(workload)];
    parts.extend(section("broken", results, Some(false)));
    parts.extend(submissions(&workload.submissions));
    parts.extend(workload.unusable.iter().map(unusable));
    parts.extend(section("unknown", results, None));
    parts.extend(kept);
    parts.extend(figures(workload));
    parts.join("; ")
}

/// The number of rules that all results and submissions keep, unless they keep all rules or none.
fn kept_count(workload: &MlperfWorkload) -> Option<String> {
    let summaries = summaries(workload);
    let kept = summaries.iter().filter(|rule| rule.keeps == Some(true)).count();
    let is_part = 0 < kept && kept < summaries.len();
    is_part.then(|| format!("{} kept", units::counted(kept as u64, "other rule")))
}

/// The number of results, with runs that left none.
fn result_count(workload: &MlperfWorkload) -> usize {
    let unusable = workload.unusable.iter().map(|system| system.runs.len());
    workload.results.len() + unusable.sum::<usize>()
}

/// `4 of 5 runs usable in closed/X/fast-1 (incomplete_run)`.
fn unusable(system: &UnusableRuns) -> String {
    let UnusableRuns { runs, usable, .. } = system;
    let all = units::counted((usable + runs.len()) as u64, "run");
    let name = runs[0].submission.as_ref().map(|name| format!(" in {name}"));
    let reasons: BTreeSet<&str> =
        runs.iter().filter_map(|run| Some(run.unusable.as_ref()?.name())).collect();
    let reasons = if reasons.is_empty() { String::new() } else { format!(" ({})", list(reasons)) };
    format!("{usable} of {all} usable{}{reasons}", name.unwrap_or_default())
}

/// `kept by 605 of 660 runs, unknown for 25 (v1.0)`.
fn head(workload: &MlperfWorkload) -> String {
    let results = &workload.results;
    let editions = results.iter().map(|result| result.check.edition);
    let editions = editions.chain(workload.unusable.iter().map(|runs| runs.edition.name()));
    let edition = list(editions.collect::<BTreeSet<&str>>());
    let is_of = |activity| results.first().is_some_and(|first| first.runs[0].activity == activity);
    let noun = if is_of(Activity::Checkpoints) { "result" } else { "run" };
    let MlperfWorkload { kept, not_kept, unknown, .. } = *workload;
    let text = match (result_count(workload), kept, not_kept) {
        (1, 1, _) => "kept".into(),
        // The only run left no result.
        (1, 0, 0) if unknown == 0 => "not kept".into(),
        (1, _, 1) => "not kept".into(),
        (1, ..) => "unknown".into(),
        (count, ..) => {
            let unknown = match unknown {
                0 => String::new(),
                unknown => format!(", unknown for {unknown}"),
            };
            format!("kept by {kept} of {}{unknown}", units::counted(count as u64, noun))
        }
    };
    format!("{text} ({edition})")
}

/// The rules with the outcome `keeps` in any result: `broken: 3.1.2 dataset ÷ memory 0.65 to 3.9 (at least 5) in 30 (closed/X/fast-1)`.
fn section(title: &str, results: &[MlperfResult], keeps: Option<bool>) -> Option<String> {
    let all_systems: BTreeSet<String> = results.iter().filter_map(system).collect();
    let rules = by_rule(results.iter().flat_map(|result| &result.check.rules));
    let rules = rules.iter().filter_map(|outcomes| {
        let first = outcomes[0];
        let is_found = |rule: &&RuleOutcome| {
            rule.keeps == keeps && (rule.rule, rule.name) == (first.rule, first.name)
        };
        let found: Vec<&RuleOutcome> = outcomes.iter().copied().filter(is_found).collect();
        let described = described(&found)?;
        if results.len() == 1 {
            return Some(described);
        }
        let has_found =
            |result: &&MlperfResult| result.check.rules.iter().any(|rule| is_found(&rule));
        let systems = results.iter().filter(has_found).filter_map(system).collect();
        let systems = if 1 < all_systems.len() { named_systems(&systems) } else { String::new() };
        Some(format!("{described} in {}{systems}", found.len()))
    });
    let rules: Vec<String> = rules.collect();
    (!rules.is_empty()).then(|| format!("{title}: {}", rules.join(", ")))
}

/// The submitted system of a result, such as `closed/X/fast-1`.
fn system(result: &MlperfResult) -> Option<String> {
    result.runs[0].submission.as_ref().map(ToString::to_string)
}

/// Maximum number of systems that a line names for a rule.
const SYSTEMS_MAX: usize = 3;

/// ` (closed/X/fast-1 and closed/Y/slow)`, or nothing.
fn named_systems(systems: &BTreeSet<String>) -> String {
    let mut names: Vec<String> = systems.iter().take(SYSTEMS_MAX).cloned().collect();
    let more = systems.len() - names.len();
    names.extend((0 < more).then(|| format!("{more} more")));
    if names.is_empty() { String::new() } else { format!(" ({})", list(names)) }
}

/// A rule with the range of its values and its requirement.
fn described(outcomes: &[&RuleOutcome]) -> Option<String> {
    RuleSummary::new(outcomes).map(|summary| summary.sentence())
}

/// A rule over several results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RuleSummary {
    /// Official number and name of the rule.
    pub rule: String,
    /// What the rule judges.
    pub name: String,
    /// The judged value, or the range of values; `null` if unknown.
    pub value: Option<String>,
    /// What the rule requires.
    pub requires: String,
    /// Whether all results keep the rule; `null` if none breaks it, but some are unknown.
    pub keeps: Option<bool>,
}

impl RuleSummary {
    /// Summarises the outcomes of one rule. Returns `None` without outcomes.
    pub fn new(outcomes: &[&RuleOutcome]) -> Option<Self> {
        let first = outcomes.first()?;
        let numbers =
            outcomes.iter().filter_map(|outcome| Some((outcome.number?, outcome.value.clone()?)));
        let value =
            range(numbers).or_else(|| names_with_counts(outcomes)).or_else(|| first.value.clone());
        let is_same = outcomes.iter().all(|outcome| outcome.terms == first.terms);
        let terms = first.terms.as_ref().filter(|_| is_same);
        let value = value.map(|value| match terms {
            Some(terms) => format!("{value} = {terms}"),
            None => value,
        });
        let all: BTreeSet<&str> = outcomes.iter().map(|outcome| &*outcome.requires).collect();
        // A requirement with a note says what the one without it says.
        let has_note = |text: &str| {
            all.iter()
                .any(|other| other.strip_prefix(text).is_some_and(|rest| rest.starts_with(';')))
        };
        let requires = all.iter().copied().filter(|text| !has_note(text));
        Some(RuleSummary {
            rule: first.rule.into(),
            name: first.name.into(),
            value,
            requires: Vec::from_iter(requires).join(" or "),
            keeps: keeps_all(outcomes.iter().map(|outcome| outcome.keeps)),
        })
    }

    /// What to do if the rule is broken.
    pub fn advice(&self) -> Option<&'static str> {
        let rule = TABLE.iter().find(|rule| rule.id == self.rule && rule.name == self.name);
        rule.map(|rule| rule.advice)
    }

    /// `3.1.2 dataset ÷ memory`, without the name of the rule in `Rules.md`.
    pub fn title(&self) -> String {
        format!("{} {}", self.rule.split(' ').next().unwrap_or_default(), self.name)
    }

    /// `3.1.2 dataset ÷ memory 0.65 to 3.9 (at least 5)`.
    pub fn sentence(&self) -> String {
        let value = self.value.iter().map(|value| format!(" {value}"));
        format!("{}{} ({})", self.title(), value.collect::<String>(), self.requires)
    }
}

/// The judged names of all outcomes. A name that some outcomes lack has the number of those with it. `None` without names.
fn names_with_counts(outcomes: &[&RuleOutcome]) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for name in outcomes.iter().flat_map(|outcome| &outcome.names) {
        *counts.entry(name).or_default() += 1;
    }
    let names = counts.iter().map(|(name, count)| match *count {
        count if count == outcomes.len() => (*name).to_string(),
        count => format!("{name} in {count}"),
    });
    (!counts.is_empty()).then(|| list(Vec::from_iter(names).iter().map(String::as_str)))
}

/// The rules of a workload, each over all its results, and then those on its submissions.
pub fn summaries(workload: &MlperfWorkload) -> Vec<RuleSummary> {
    let results = workload.results.iter().flat_map(|result| &result.check.rules);
    let rules = by_rule(results.chain(&workload.submissions));
    rules.iter().filter_map(|outcomes| RuleSummary::new(outcomes)).collect()
}

/// The rules on submissions that some submissions break, or that cannot be judged.
fn submissions(outcomes: &[RuleOutcome]) -> Option<String> {
    let rules = by_rule(outcomes.iter());
    let texts = rules.iter().flat_map(|outcomes| {
        [(Some(false), ""), (None, "not judged: ")].into_iter().filter_map(|(keeps, title)| {
            let found: Vec<&RuleOutcome> =
                outcomes.iter().copied().filter(|outcome| outcome.keeps == keeps).collect();
            let described = described(&found)?;
            let all = units::counted(outcomes.len() as u64, "submission");
            let systems = found.iter().filter_map(|outcome| outcome.submission.clone()).collect();
            let systems = if 1 < outcomes.len() { named_systems(&systems) } else { String::new() };
            Some(format!("{title}{described} in {} of {all}{systems}", found.len()))
        })
    });
    let texts: Vec<String> = texts.collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// Groups outcomes by rule, in the order of their first occurrence.
fn by_rule<'a>(outcomes: impl Iterator<Item = &'a RuleOutcome>) -> Vec<Vec<&'a RuleOutcome>> {
    let mut rules: Vec<Vec<&RuleOutcome>> = Vec::new();
    for outcome in outcomes {
        let is_same = |known: &&mut Vec<&RuleOutcome>| {
            (known[0].rule, known[0].name) == (outcome.rule, outcome.name)
        };
        match rules.iter_mut().find(is_same) {
            Some(known) => known.push(outcome),
            None => rules.push(vec![outcome]),
        }
    }
    rules
}

/// The reported utilisation beside that over all steps, or the rates of checkpoints.
fn figures(workload: &MlperfWorkload) -> Option<String> {
    let runs = || workload.results.iter().flat_map(|result| result.runs.iter().copied());
    // Rounded like the rule's value.
    let percent = |value: fn(&Run) -> Option<f64>| {
        range(runs().filter_map(|run| {
            let au = value(run)?;
            Some((au, tenths(au, run.bar_percent.unwrap_or(f64::INFINITY))))
        }))
    };
    let rate = |value: fn(&Run) -> Option<f64>| {
        range(runs().filter_map(value).map(|rate| (rate, units::bytes_per_second(rate))))
    };
    if runs().any(|run| run.activity == Activity::Checkpoints) {
        let rates = [
            ("written at", rate(Run::written_bytes_per_second)),
            ("read at", rate(Run::read_bytes_per_second)),
        ];
        let rates = rates.into_iter().filter_map(|(name, rate)| Some(format!("{name} {}", rate?)));
        let texts = Vec::from_iter(rates).join(", ");
        return (!texts.is_empty()).then_some(texts);
    }
    let is_submitted = runs().any(|run| run.submission.is_some());
    let reported = percent(Run::reported_au_percent).filter(|_| is_submitted)?;
    let unknown = "unknown".to_string();
    let all_steps =
        percent(|run| run.metric(&AU_ALL_STEPS)).map_or(unknown, |percent| format!("{percent} %"));
    Some(format!("reported AU {reported} %, over all steps {all_steps}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_results::import::RunOrigin;
    use feedrate_results::run::Submission;

    /// A run of 4200 files on a host with 100 GB of memory, which keeps the rules of 1.0.
    fn run() -> Run {
        let settings = [("train.compute.mean", "0.323")];
        Run {
            origin: RunOrigin::MlperfStorage,
            activity: Activity::Training,
            workload: "unet3d_h100".into(),
            record_length_bytes: Some(146_600_628.0),
            files: Some(4200),
            samples_per_file: Some(1),
            batch_size: Some(7),
            steps: 600,
            format: Some("npz".into()),
            memory_bytes: Some(100_000_000_000),
            reported: [("train_au_mean_percentage".into(), 91.06)].into(),
            settings: settings.map(|(key, value)| (key.into(), value.into())).into(),
            ..Run::default()
        }
    }

    fn check(runs: &[Run], expected: &[&str]) {
        assert_eq!(lines(runs.iter()), expected);
    }

    #[test]
    fn rules_that_are_kept_are_counted() {
        check(&[run()], &["kept (v2.0)"]);
        let broken = Run { batch_size: Some(8), memory_bytes: None, ..run() };
        check(
            &[broken],
            &[
                "not kept (v2.0); broken: 3.6.2 changed settings `reader.batch_size` (none that the rules fix); unknown: 3.1.2 dataset ÷ memory (at least 5); 2 other rules kept",
            ],
        );
        check(&[Run { workload: "mine".into(), ..run() }], &[]);
        // The page of a run has all rules.
        let all = line_of_run(&run()).unwrap();
        assert!(all.contains("; kept: 3.1.2 dataset ÷ memory 6.16 (at least 5), "), "{all}");
    }

    #[test]
    fn a_changed_setting_counts_only_the_runs_that_changed_it() {
        let changed = |key: Option<&str>, started: &str| Run {
            started: Some(started.into()),
            overrides: key.iter().map(|key| format!("++workload.{key}=9")).collect(),
            batch_size: Some(8),
            ..run()
        };
        let line = lines([changed(None, "1"), changed(Some("train.epochs"), "2")].iter()).remove(0);
        let broken = "broken: 3.6.2 changed settings `reader.batch_size` and `train.epochs` in 1 (none that the rules fix) in 2; 3 other rules kept";
        assert!(line.ends_with(broken), "{line}");
    }

    #[test]
    fn workloads_of_a_submission_have_one_line_each() {
        let submission = Submission {
            round: None,
            division: "closed".into(),
            submitter: "X".into(),
            system: "fast-1".into(),
        };
        let submitted = |memory_bytes, started: &str| Run {
            path: started.into(),
            submission: Some(submission.clone()),
            memory_bytes,
            started: Some(started.into()),
            ..run()
        };
        let runs = [
            submitted(Some(100_000_000_000), "1"),
            submitted(Some(200_000_000_000), "2"),
            submitted(Some(300_000_000_000), "3"),
            submitted(None, "4"),
            Run { workload: "mine".into(), ..run() },
            Run { workload: "unet3d_a100".into(), ..run() },
        ];
        check(
            &runs,
            &[
                "unet3d_a100: not kept (v2.0); broken: 3.6.2 changed settings `train.computation_time` (none that the rules fix); 3 other rules kept",
                "unet3d_h100: kept by 1 of 4 runs, unknown for 1 (v2.0); broken: 3.1.2 dataset ÷ memory 2.05 to 3.08 (at least 5) in 2; not judged: 2.1.17 runs 4 (5) in 1 of 1 submission; unknown: 3.1.2 dataset ÷ memory (at least 5) in 1; 3 other rules kept; reported AU 91.1 %, over all steps unknown",
            ],
        );
    }

    fn submitted(system: &str, started: &str) -> Run {
        Run {
            path: format!("{system}/{started}").into(),
            source: "results".into(),
            submission: Some(Submission {
                round: None,
                division: "closed".into(),
                submitter: "X".into(),
                system: system.into(),
            }),
            started: Some(started.into()),
            rules_edition: Some(feedrate_spec::mlperf::rules::Edition::V1_0),
            ..run()
        }
    }

    #[test]
    fn systems_that_break_a_rule_are_named() {
        let mut runs = vec![submitted("good", "1")];
        let small = |system| Run { memory_bytes: Some(300_000_000_000), ..submitted(system, "2") };
        runs.extend(["a", "b", "c", "d"].map(small));
        let line = lines(runs.iter()).remove(0);
        let expected = [
            "unet3d_h100: kept by 1 of 5 runs (v1.0); broken: 3.1.2 dataset ÷ memory 2.05 (at least 5) in 4 (closed/X/a, closed/X/b, closed/X/c and 1 more)",
            "; 2.1.17 runs 1 (5) in 5 of 5 submissions (closed/X/a, closed/X/b, closed/X/c and 2 more)",
        ];
        assert!(line.starts_with(&expected.concat()), "{line}");
    }

    #[test]
    fn a_requirement_with_a_note_stands_for_the_same_one_without() {
        let requires = |texts: &[&str]| {
            let outcome = |text: &&str| {
                let mut outcome = run().mlperf().unwrap().rules.remove(0);
                outcome.requires = (*text).to_string();
                outcome
            };
            let outcomes: Vec<RuleOutcome> = texts.iter().map(outcome).collect();
            RuleSummary::new(&outcomes.iter().collect::<Vec<_>>()).unwrap().requires
        };
        let noted = "at least 5; the results do not state the memory of all hosts";
        assert_eq!(requires(&[noted, "at least 5"]), noted);
        assert_eq!(requires(&["at least 5", "at least 50"]), "at least 5 or at least 50");
    }

    #[test]
    fn runs_without_a_result_are_not_kept() {
        let incomplete = |system, started| Run { steps: 0, ..submitted(system, started) };
        let line = lines([submitted("a", "1"), incomplete("a", "2")].iter()).remove(0);
        let expected = "kept by 1 of 2 runs (v1.0); 2.1.17 runs 1 (5) in 1 of 1 submission; 1 of 2 runs usable in closed/X/a; ";
        assert!(line.contains(expected), "{line}");
        check(
            &[incomplete("b", "1")],
            &[
                "not kept (v1.0); 2.1.17 runs 0 (5) in 1 of 1 submission; 0 of 1 run usable in closed/X/b",
            ],
        );
    }

    #[test]
    fn a_ratio_to_the_memory_of_a_summary_has_both_sizes() {
        use feedrate_measure::record::System;
        let gib = |count: u64| Some(count << 30);
        let reported = Run { machines: vec![System::default()], memory_bytes: gib(300), ..run() };
        let line = lines([reported.clone()].iter()).remove(0);
        let broken = "broken: 3.1.2 dataset ÷ memory 1.91 = 573.4 GiB ÷ 300 GiB (at least 5; the memory is that in `summary.json`, which shows no limit of a cgroup)";
        assert!(line.contains(broken), "{line}");
        let limited = Run { may_limit_memory: true, ..reported };
        let line = lines([limited].iter()).remove(0);
        assert!(
            line.starts_with("unknown (v2.0); unknown: 3.1.2 dataset ÷ memory 1.91 = "),
            "{line}"
        );
    }
}
