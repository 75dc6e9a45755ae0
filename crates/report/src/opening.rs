//! Writes the opening lines of a report: the answer, invalid runs, artefacts, the main finding and the next steps. Uses only answers, findings and doubts.
//!
//! Long because its tests are beside it.

mod applies_to;
mod answers;

use applies_to::applies_to;

pub(crate) use answers::group_answers;

use crate::number::count_names;
use crate::report::{FindingText, OpeningLine, Report, ReportedRun, Seen, Support};
use crate::words;
use crate::words::answer::{percent_near_target, range};
use crate::words::mlperf::RuleSummary;
use crate::words::number::list;
use feedrate_analysis::finding::FindingKind;
use feedrate_analysis::findings::{MARGIN, exceeds_margin};
use feedrate_measure::doubt::Severity;
use feedrate_measure::metric::AU_ALL_STEPS;
use feedrate_results::groups::{Passes, passes_only_as_reported};
use feedrate_results::import::RunOrigin;
use feedrate_results::run::{Reason, Run};
use feedrate_results::submissions::{self, judge_workloads};
use feedrate_spec::bundled;
use feedrate_spec::mlperf::rules::tenths;
use feedrate_spec::units::counted;
use std::collections::BTreeSet;
use std::path::Path;

/// Maximum number of runs that are named individually.
const NAMED_MAX: usize = 3;
/// Minimum difference in points at which reported utilisation contradicts utilisation over all steps.
const ARTEFACT_POINTS: f64 = 5.0;

/// Lines that apply to a single source. A comparison omits them.
pub(super) const SINGLE_SOURCE_LINES: [&str; 2] = [APPLIES_TO, BEST];

const APPLIES_TO: &str = "Applies to";
const BEST: &str = "Best";
pub(super) const DO_NOT_USE: &str = "Do not use";

/// A search for a number, with the runs that it made.
#[derive(Clone, Debug, Default)]
pub(super) struct Search {
    /// Name of its folder.
    pub(super) name: String,
    /// Its answer.
    pub(super) answer: String,
    /// The other lines of its result.
    pub(super) lines: Vec<OpeningLine>,
    /// Its runs, as indexes of [`Report::runs`].
    pub(super) runs: Vec<usize>,
}

/// The opening lines, the most important first. `tried` are the results of trials.
pub(super) fn opening(
    report: &Report,
    searches: &[Search],
    tried: Vec<OpeningLine>,
) -> Vec<OpeningLine> {
    let describes_runs = searches.is_empty() && tried.is_empty();
    let answers = &report.answers;
    // A search or a comparison may have found a difference that no finding describes.
    let may_miss_difference = !describes_runs || report.comparison.is_some();
    let (main_finding, main_findings) = main_finding(report);
    let main_finding = (!may_miss_difference || !main_findings.is_empty()).then_some(main_finding);
    let (over_time, over_time_findings) = over_time(report).filter(|_| describes_runs).unzip();
    let unusable = unusable_runs(report);
    // Without unusable runs the line is the least important one.
    let has_unusable = report.runs.iter().any(|run| !run.is_answered())
        || !report.left_out.is_empty()
        || report.runs.is_empty();
    let (excluded, included) =
        if has_unusable { (Some(unusable), None) } else { (None, Some(unusable)) };
    let applies_to = applies_to(report).filter(|_| describes_runs && answers.len() < 2);
    let answer_lines =
        answers::lines(report).into_iter().map(|value| OpeningLine::new("Answer", value));
    let mut rules = mlperf(report);
    rules.extend(missing_parts(report));
    rules.extend(mlperf_class(report));
    let is_submission = report.runs.iter().any(|run| run.run.submission.is_some());
    let (submission_lines, rules_lines) =
        if is_submission { (rules, Vec::new()) } else { (Vec::new(), rules) };
    let lines_before = [
        (DO_NOT_USE, excluded, Vec::new()),
        ("Artefacts", artefacts(report), Vec::new()),
        (APPLIES_TO, applies_to, Vec::new()),
        (BEST, best_configurations(report).filter(|_| describes_runs), Vec::new()),
        ("To do", Some(to_do(report)), Vec::new()),
    ];
    let lines_after = [
        ("Main finding", main_finding, main_findings),
        ("Over time", over_time, over_time_findings.unwrap_or_default()),
        (DO_NOT_USE, included, Vec::new()),
    ];
    let line = |(name, value, findings): (&str, Option<String>, Vec<usize>)| {
        Some(OpeningLine { name: name.into(), value: value?, findings })
    };
    let lines = lines_before
        .into_iter()
        .filter_map(line)
        .chain(rules_lines)
        .chain(lines_after.into_iter().filter_map(line));
    // With several searches, each has its answer, and the page of each has the rest.
    let rest = match searches {
        [search] => search.lines.clone(),
        _ => Vec::new(),
    };
    submission_lines.into_iter().chain(answer_lines).chain(rest).chain(tried).chain(lines).collect()
}

/// The number of DLIO's runs that reach their target, and their utilisation.
fn target_line(runs: &[&Run]) -> Option<String> {
    if let [run] = runs {
        let (au, target) = run.metric(&AU_ALL_STEPS).zip(run.bar_percent)?;
        let au = percent_near_target(au, target);
        return Some(format!("{au} % AU over all steps, target {target} %"));
    }
    let au = runs.iter().filter_map(|run| run.metric(&AU_ALL_STEPS));
    let au = range(au.map(|au| (au, format!("{au:.0} %"))));
    let au = au.map_or(String::new(), |au| format!("; {au} AU"));
    target_counts(runs).map(|counts| counts + &au)
}

/// The number of DLIO's runs that reach their target.
fn target_counts(runs: &[&Run]) -> Option<String> {
    let passes = Passes::over_all_steps(runs.iter().copied());
    let count = passes.yes + passes.no + passes.unknown;
    let reach = if passes.yes == 1 { "reaches" } else { "reach" };
    let all = counted(count as u64, "run");
    let unknown = match passes.unknown {
        0 => String::new(),
        unknown => format!(", unknown for {unknown}"),
    };
    let says = format!("{} of {all} {reach} the target over all steps{unknown}", passes.yes);
    (0 < passes.yes + passes.no).then_some(says)
}

/// Maximum number of groups whose best configuration is named.
const GROUPS_MAX: usize = 3;

/// The best tested configurations.
fn best_configurations(report: &Report) -> Option<String> {
    let all = &report.recommendations;
    if let [group] = all.as_slice() {
        let says = group.says.iter().take(2).cloned().collect::<Vec<_>>().join("; ");
        let is_only = group.held.is_empty();
        return Some(if is_only { says } else { format!("at {}: {says}", group.shared_levels()) });
    }
    let is_one_workload = all.iter().all(|group| group.workload == all[0].workload);
    // Levels that all groups share do not distinguish them.
    let is_shared = |name: &String, level: &String| {
        all.iter().all(|group| group.held.get(name).is_some_and(|held| held == level))
    };
    let named = all.iter().take(GROUPS_MAX).map(|group| {
        let name = (!is_one_workload).then(|| group.workload.clone());
        let levels = group.held.iter().filter(|(name, level)| !is_shared(name, level));
        let levels: Vec<String> = levels.map(|(name, level)| format!("`{name}` {level}")).collect();
        let at = (!levels.is_empty()).then(|| format!("at {}", levels.join(", ")));
        let parts: Vec<String> = name.into_iter().chain(at).collect();
        format!("{}: {}", parts.join(", "), group.short_text)
    });
    let mut says: Vec<String> = named.collect();
    if GROUPS_MAX < all.len() {
        says.push(format!("{} more under Recommendation", all.len() - GROUPS_MAX));
    }
    (!says.is_empty()).then(|| format!("most throughput {}", says.join("; ")))
}

/// A sentence on changes during runs, and the findings that it repeats.
fn over_time(report: &Report) -> Option<(String, Vec<usize>)> {
    let kinds = [FindingKind::Epochs, FindingKind::Checkpoints];
    let is_large =
        |finding: &FindingText| finding.numbers.iter().any(|number| exceeds_margin(&number.effect));
    let found = kinds.into_iter().filter_map(|kind| {
        report.findings.iter().position(|finding| finding.kind == kind && is_large(finding))
    });
    let found: Vec<usize> = found.collect();
    let says: Vec<&str> = found.iter().map(|&index| &*report.findings[index].says).collect();
    (!says.is_empty()).then(|| (says.join("; "), found))
}

/// The runs that must not be used.
fn unusable_runs(report: &Report) -> String {
    // A run of checkpoints alone has rates as its result.
    let has_result = |run: &&ReportedRun| {
        run.run.has_result() || run.run.unusable == Some(Reason::CheckpointsOnly)
    };
    let results: Vec<&ReportedRun> = report.runs.iter().filter(has_result).collect();
    let invalid = results.iter().filter_map(|run| match &run.run.unusable {
        Some(Reason::Invalid { doubt, .. }) => Some((*run, doubt.as_str())),
        _ => None,
    });
    let invalid: Vec<(&ReportedRun, &str)> = invalid.collect();
    let without_steps = report.runs.iter().filter(|run| run.run.unusable == Some(Reason::NoSteps));
    let unread = without_steps.count();
    let mut says = match (invalid.len(), counted(results.len() as u64, "run")) {
        (0, _) if results.is_empty() && unread > 0 => "no run has known steps".into(),
        (0, _) if results.is_empty() => "no run trained".into(),
        (0, _) if results.len() == 1 => {
            format!("no doubt makes the run invalid{}", warning_counts(&results))
        }
        (0, all) => format!("none of {all} is invalid{}", warning_counts(&results)),
        (some, all) if some <= NAMED_MAX => {
            let named =
                invalid.iter().map(|(run, doubt)| format!("`{}` ({doubt})", run.run.short_path()));
            format!("{some} of {all}: {}", list(named))
        }
        (some, all) => {
            let doubts = count_names(invalid.iter().map(|(_, doubt)| *doubt)).into_iter();
            let named = doubts.map(|(name, runs)| format!("{name} ({runs})"));
            format!("{some} of {all}: {}", list(named))
        }
    };
    if unread > 0 && !results.is_empty() {
        says += &format!("; {unread} more without known steps");
    }
    let others = report.runs.len() - results.len() - unread;
    if others > 0 {
        says += &format!("; {others} more without training or set aside");
    }
    let rows = report.left_out.iter().filter(|entry| entry.is_row()).count();
    let folders = report.left_out.len() - rows;
    if folders > 0 {
        says += &format!("; {} left out", counted(folders as u64, "folder"));
    }
    if rows > 0 {
        says += &format!("; no run matches {} of a CSV", counted(rows as u64, "row"));
    }
    says
}

/// The number of runs with warnings: `; 3 have warnings, most often `page_cache``.
fn warning_counts(results: &[&ReportedRun]) -> String {
    let warned: Vec<Vec<&str>> =
        results.iter().map(|run| warnings(run)).filter(|names| !names.is_empty()).collect();
    let names = count_names(warned.concat());
    let Some((commonest, _)) = names.first() else { return String::new() };
    let have = match (results.len(), warned.len()) {
        (1, _) => "it has".into(),
        (_, 1) => "1 has".into(),
        (_, runs) => format!("{runs} have"),
    };
    format!("; {have} warnings, most often `{commonest}`")
}

/// The names of the warnings that could change the answer of a run.
fn warnings(run: &ReportedRun) -> Vec<&str> {
    let relevant = run.relevant_doubts().into_iter();
    let warnings = relevant.filter(|doubt| doubt.severity == Severity::Warning);
    warnings.map(|doubt| doubt.name.as_str()).collect()
}

/// A run with its reported utilisation and its utilisation over all steps.
struct ComparedAu<'a> {
    run: &'a Run,
    reported_percent: f64,
    all_steps_percent: f64,
}

impl ComparedAu<'_> {
    fn difference_points(&self) -> f64 {
        (self.reported_percent - self.all_steps_percent).abs()
    }
}

/// A sentence on utilisations that look better than they are.
fn artefacts(report: &Report) -> Option<String> {
    let compared = report.used().filter_map(|run| {
        let run = &run.run;
        let reported_percent = run.reported_au_percent()?;
        let all_steps_percent = run.metric(&AU_ALL_STEPS)?;
        Some(ComparedAu { run, reported_percent, all_steps_percent })
    });
    let compared: Vec<ComparedAu> = compared.collect();
    let all = counted(compared.len() as u64, "run");
    let passing: Vec<&ComparedAu> =
        compared.iter().filter(|au| passes_only_as_reported(au.run)).collect();
    // A contradiction is no artefact of the window.
    let explained: Vec<&ComparedAu> =
        compared.iter().filter(|au| !au.run.is_reported_au_contradicted()).collect();
    let differing = explained.iter().filter(|au| ARTEFACT_POINTS <= au.difference_points()).count();
    let worst =
        explained.iter().max_by(|a, b| a.difference_points().total_cmp(&b.difference_points()));
    let mut parts = Vec::new();
    if let Some(au) = passing.first() {
        let count = passing.len();
        let target = au.run.bar_percent.unwrap_or_default();
        let reach = if count == 1 { "reaches" } else { "reach" };
        parts.push(format!(
            "{count} of {all} {reach} the target of {target} % AU only as reported: `{}` reports {:.1} %, but has {} % over all steps",
            au.run.short_path(),
            au.reported_percent,
            tenths(au.all_steps_percent, target)
        ));
    }
    if let Some(au) = worst.filter(|_| 0 < differing) {
        parts.push(format!(
            "the reported AU of {differing} of {all} differs by {ARTEFACT_POINTS} points or more from that over all steps: at worst {:.1} % instead of {:.1} % (`{}`)",
            au.reported_percent,
            au.all_steps_percent,
            au.run.short_path()
        ));
    }
    let is_artefact = |finding: &FindingText| {
        matches!(finding.kind, FindingKind::Artefact | FindingKind::Superlinear)
    };
    let found = report.findings.iter().position(is_artefact);
    parts.extend(found.map(|index| format!("see finding {}", index + 1)));
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The main finding as a sentence, and its index.
fn main_finding(report: &Report) -> (String, Vec<usize>) {
    let is_claim = |finding: &FindingText| match finding.kind {
        FindingKind::Effect | FindingKind::Drift => {
            finding.numbers.iter().any(|number| exceeds_margin(&number.effect))
        }
        kind => matches!(kind, FindingKind::Scaling | FindingKind::NoEffect),
    };
    let claim = |support: Support| {
        let mut findings = report.findings.iter();
        findings.position(|finding| is_claim(finding) && finding.support == support)
    };
    if let Some(shown) = claim(Support::Shown) {
        return (report.findings[shown].says.clone(), vec![shown]);
    }
    if let Some(doubted) = claim(Support::Doubted) {
        let FindingText { says, doubts, .. } = &report.findings[doubted];
        let doubts = match doubts.as_slice() {
            [doubt] => format!("with a doubt, {doubt}"),
            several => format!("with {} doubts", several.len()),
        };
        return (format!("{says} ({doubts})"), vec![doubted]);
    }
    let is_slight = |finding: &FindingText| {
        let is_difference = matches!(finding.kind, FindingKind::Effect | FindingKind::Drift);
        is_difference && finding.support == Support::Shown
    };
    let says = if report.findings.iter().any(is_slight) {
        format!("no difference of {:.0} % or more was found", 100.0 * MARGIN)
    } else {
        format!("no difference between runs was found{}", reason_without_difference(report))
    };
    (says, Vec::new())
}

/// Whether runs keep MLPerf's rules, a line for each workload. Unusable runs are considered too, since each of a submission counts; runs of the user's own workloads are not.
fn mlperf(report: &Report) -> Vec<OpeningLine> {
    // A run that is named alone has all rules.
    let named = report.runs.iter().map(|run| &run.run);
    let named = named.filter(|run| report.runs.len() == 1 && run.path == Path::new(&run.source));
    let all_rules = named.filter(|run| is_official(run)).find_map(words::mlperf::line_of_run);
    let lines = match all_rules {
        Some(line) => vec![line],
        None => words::mlperf::lines(official_runs(report)),
    };
    let lines = lines.into_iter();
    lines.map(|value| OpeningLine::new(words::mlperf::NAME, value)).collect()
}

/// The runs of submissions and of MLPerf's workloads. A workload of the user's own may only resemble one.
fn official_runs(report: &Report) -> impl Iterator<Item = &Run> {
    report.runs.iter().map(|run| &run.run).filter(|run| is_official(run))
}

fn is_official(run: &Run) -> bool {
    run.submission.is_some()
        || run.origin == RunOrigin::MlperfStorage
        || bundled::find(&run.workload).is_some()
}

/// The parts that a submission lacks.
fn missing_parts(report: &Report) -> Option<OpeningLine> {
    let missing = submissions::missing_parts(official_runs(report));
    let value = format!("for a submission: {}", list(&missing));
    (!missing.is_empty()).then(|| OpeningLine::new("Missing", value))
}

/// The official classes of the runs. Considers the same runs.
fn mlperf_class(report: &Report) -> Option<OpeningLine> {
    let value = words::mlperf_class::line(official_runs(report))?;
    Some(OpeningLine::new(words::mlperf_class::NAME, value))
}

/// The reason why no difference was found.
fn reason_without_difference(report: &Report) -> String {
    if report.runs.iter().filter(|run| run.is_answered()).count() == 1 {
        return ", as there is only one".into();
    }
    if report.findings.iter().any(|finding| finding.kind == FindingKind::NotTested) {
        return ", as runs with different settings were not repeated".into();
    }
    let found = report.findings.iter().find(|finding| finding.support == Support::CannotBeTold);
    let why = found.and_then(|finding| finding.says.split_once("because ")?.1.split_once(": "));
    why.map_or(String::new(), |(why, _)| format!(", because {why}"))
}

/// Separates the next steps in one line.
pub(super) const STEP: &str = "; then ";
/// Maximum number of next steps.
pub(super) const STEPS_MAX: usize = 3;

/// The next steps, the most important first.
fn to_do(report: &Report) -> String {
    let serious = report.doubts.iter().filter(|doubt| doubt.is_relevant);
    let mut steps: Vec<(&str, String)> = Vec::new();
    for doubt in serious {
        let seen: Vec<&Seen> = report.relevant_seen(doubt).collect();
        let Some(first) = seen.first() else { continue };
        let runs = match report.runs.len() {
            1 => String::new(),
            _ => format!(", {}", counted(seen.len() as u64, "run")),
        };
        steps.push((&first.advice, format!(" (`{}`{runs})", doubt.name)));
    }
    let open = report.findings.iter().filter_map(|finding| finding.to_do.as_deref());
    steps.extend(open.map(|step| (step, String::new())));
    if steps.is_empty() {
        let rules = mlperf_steps(report);
        let nothing = "nothing, as there are no warnings and no open questions";
        return if rules.is_empty() { nothing.into() } else { rules.join(STEP) };
    }
    let mut named: Vec<(&str, String)> = Vec::new();
    for (advice, reason) in steps {
        if named.len() < STEPS_MAX && named.iter().all(|(known, _)| *known != advice) {
            named.push((advice, reason));
        }
    }
    // The complete advice is shown with its doubt.
    match named.as_slice() {
        [(advice, reason)] => format!("{advice}{reason}"),
        several => {
            let heads = several.iter().map(|(advice, reason)| {
                let head = advice.split("; ").next().unwrap_or_default();
                format!("{head}{reason}")
            });
            heads.collect::<Vec<_>>().join(STEP)
        }
    }
}

/// The next steps towards a submission: for broken rules, for those that the results do not show, and for missing parts. Only a submission has to show
/// that it keeps the rules.
fn mlperf_steps(report: &Report) -> Vec<String> {
    let rules: Vec<RuleSummary> =
        judge_workloads(official_runs(report)).iter().flat_map(words::mlperf::summaries).collect();
    let broken = rules.iter().filter(|rule| rule.keeps == Some(false));
    let mut steps = Vec::new();
    for step in broken.filter_map(|rule| Some(format!("{} ({})", rule.advice()?, rule.title()))) {
        if steps.len() < STEPS_MAX && !steps.contains(&step) {
            steps.push(step);
        }
    }
    if report.runs.iter().any(|run| run.run.submission.is_some()) {
        let unknown = rules.iter().filter(|rule| rule.keeps.is_none()).map(RuleSummary::title);
        let unknown: BTreeSet<String> = unknown.collect();
        let text = |rules| format!("check what the results do not show: {rules}");
        steps.extend((!unknown.is_empty()).then(|| text(list(&unknown))));
    }
    let missing = submissions::missing_parts(official_runs(report));
    steps.extend((!missing.is_empty()).then(|| format!("add {}", list(&missing))));
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{RecommendationText, SeenDoubt};
    use feedrate_measure::doubt::{Bias, Doubt};
    use feedrate_measure::facts::Facts;
    use feedrate_results::run::{Activity, Submission};

    #[test]
    fn each_number_of_accelerators_has_its_best_configuration() {
        let recommendation = |accelerators: &str, short_text: &str| RecommendationText {
            held: [("cache", "warm"), ("processes", accelerators)]
                .map(|(name, level)| (name.to_string(), level.to_string()))
                .into(),
            short_text: short_text.into(),
            ..RecommendationText::default()
        };
        let recommendations = vec![
            recommendation("1", "`format` npz"),
            recommendation("2", "no measurable winner among 4"),
        ];
        let report = Report { recommendations, ..Report::default() };
        let expected = "most throughput at `processes` 1: `format` npz; at `processes` 2: no measurable winner among 4";
        assert_eq!(best_configurations(&report).unwrap(), expected);
    }

    #[test]
    fn a_search_without_a_finding_has_no_main_finding() {
        let has_main_finding = |searches: &[Search]| {
            let lines = opening(&Report::default(), searches, Vec::new());
            lines.iter().any(|line| line.name == "Main finding")
        };
        assert!(has_main_finding(&[]));
        assert!(!has_main_finding(&[Search::default()]));
    }

    #[test]
    fn a_next_step_counts_the_runs_whose_answers_its_doubt_could_change() {
        let doubt = Doubt {
            name: "a".into(),
            severity: Severity::Warning,
            bias: Bias::Either,
            evidence: String::new(),
            advice: "do a".into(),
            facts: Facts::new(),
        };
        let mut runs = vec![ReportedRun::default(); 3];
        runs[1].run.doubts = vec![doubt.clone()];
        runs[2].run.doubts = vec![Doubt { severity: Severity::Note, ..doubt }];
        let seen = (1..3).map(|run| Seen {
            run: Some(run),
            evidence: String::new(),
            advice: format!("do {run}"),
        });
        let doubts = vec![SeenDoubt {
            name: "a".into(),
            severity: Severity::Warning,
            is_relevant: true,
            is_decisive: false,
            seen: seen.collect(),
        }];
        let report = Report { runs, doubts, ..Report::default() };
        assert_eq!(to_do(&report), "do 1 (`a`, 1 run)");
    }

    #[test]
    fn the_next_steps_are_three_different_ones_the_most_important_first() {
        let doubt = |name: &str, advice: &str| SeenDoubt {
            name: name.into(),
            severity: Severity::Warning,
            is_relevant: true,
            is_decisive: false,
            seen: vec![Seen { run: None, evidence: String::new(), advice: advice.into() }],
        };
        let mut report = Report { doubts: vec![doubt("a", "do a; or not")], ..Report::default() };
        assert_eq!(to_do(&report), "do a; or not (`a`, 1 run)");
        report
            .doubts
            .extend(["do a; or not", "do c", "do d", "do e"].map(|advice| doubt("b", advice)));
        let expected = "do a (`a`, 1 run); then do c (`b`, 1 run); then do d (`b`, 1 run)";
        assert_eq!(to_do(&report), expected);
        assert!(to_do(&Report::default()).starts_with("nothing, as"));
    }

    #[test]
    fn without_warnings_the_next_steps_are_those_of_broken_and_unknown_rules() {
        let run = Run {
            origin: RunOrigin::MlperfStorage,
            activity: Activity::Training,
            workload: "unet3d_b200".into(),
            path: "closed/x/results/y/training/unet3d/run/1".into(),
            record_length_bytes: Some(146_600_628.0),
            files: Some(28_000),
            samples_per_file: Some(1),
            batch_size: Some(7),
            steps: 400,
            format: Some("npz".into()),
            reported: [("train_au_mean_percentage".into(), 91.0)].into(),
            settings: [("train.compute.mean".into(), "0.162".into())].into(),
            ..Run::default()
        };
        let submission = Submission {
            round: None,
            division: "closed".into(),
            submitter: "x".into(),
            system: "y".into(),
        };
        let check = |run: Run, expected: &str| {
            let runs = vec![ReportedRun { run, ..ReportedRun::default() }];
            assert_eq!(to_do(&Report { runs, ..Report::default() }), expected);
        };
        let steps =
            "use more files: `feedrate plan WORKLOAD` prints the number (3.1.2 steps per epoch)";
        check(run.clone(), steps);
        let submitted = [
            steps,
            "make the missing runs, in a folder of their own: `feedrate run --rehearse` makes as many as required (2.1.17 runs)",
            "check what the results do not show: 2.1.18 gap between starts and 3.1.2 dataset ÷ memory",
            "add `datagen/` of unet3d, `datasize/` of unet3d, `systems/` beside `results/` and `provenance.json` of 1 run, which only `mlpstorage` writes",
        ];
        check(Run { submission: Some(submission), ..run }, &submitted.join(STEP));
    }
}
