//! The lines that a report opens with: the answer, what must not be used, what is an artefact, what holds, what to do, and how much more there is. Decides
//! nothing that answers, findings and doubts do not say.

mod holds_for;

use holds_for::holds_for;

use crate::number::by_count;
use crate::report::{FindingText, OpeningLine, Report, ReportedRun, Support};
use crate::words;
use crate::words::answer::{range, told_apart};
use crate::words::number::list;
use feedrate_analysis::answer::Answer;
use feedrate_analysis::finding::FindingKind;
use feedrate_analysis::findings::{MARGIN, matters};
use feedrate_measure::doubt::Severity;
use feedrate_measure::metric::AU_ALL_STEPS;
use feedrate_results::groups::{Passes, passes_as_reported_alone};
use feedrate_results::run::{Reason, Run};
use feedrate_spec::units::counted;

/// Runs that are named one by one.
const NAMED_MAX: usize = 3;
/// Points by which reported utilisation is another than that of all steps.
const ARTEFACT_POINTS: f64 = 5.0;

/// Lines that tell little of two sources together.
pub(super) const OF_ONE_SOURCE: [&str; 3] = [RATES, HOLDS_FOR, BEST];

const RATES: &str = "Rates";
const HOLDS_FOR: &str = "Holds for";
const BEST: &str = "Best";
pub(super) const DO_NOT_USE: &str = "Do not use";

/// `answered`: by a search or trials, whose runs have no common answer of their own.
pub(super) fn opening(report: &Report, answered: Vec<OpeningLine>) -> Vec<OpeningLine> {
    let is_open = answered.is_empty();
    let [answer, rates] = if is_open { answers(report) } else { [None, None] };
    let (holds, over_time) = (holds(report), over_time(report).filter(|_| is_open));
    let (over_time, over_time_findings) = over_time.unzip();
    let lines = [
        ("Answer", answer, Vec::new()),
        (RATES, rates, Vec::new()),
        (HOLDS_FOR, holds_for(report).filter(|_| is_open), Vec::new()),
        (BEST, best(report).filter(|_| is_open), Vec::new()),
        (DO_NOT_USE, Some(unusable(report)), Vec::new()),
        ("Artefacts", artefacts(report), Vec::new()),
        (words::mlperf::NAME, mlperf(report), Vec::new()),
        ("Holds", Some(holds.0), holds.1),
        ("Over time", over_time, over_time_findings.unwrap_or_default()),
        ("To do", Some(to_do(report)), Vec::new()),
    ];
    let lines = lines.into_iter().filter_map(|(name, value, findings)| {
        Some(OpeningLine { name: name.into(), value: value?, findings })
    });
    answered.into_iter().chain(lines).collect()
}

/// Whether the accelerators of these runs were fed, and the rates that they needed and had. The answer of a single run stands in the report itself.
fn answers(report: &Report) -> [Option<String>; 2] {
    if report.answer.is_some() {
        return [None, None];
    }
    let used = || report.used().map(|one| &one.run);
    let own: Vec<&Answer> = report.used().filter_map(|one| one.answer.as_ref()).collect();
    let mut lines = words::answer::of_several(&own).into_iter();
    let (own, rates) = (lines.next(), lines.next());
    let others: Vec<&Run> = used().filter(|run| !run.is_own()).collect();
    let says: Vec<String> = own.into_iter().chain(bar(&others)).collect();
    [(!says.is_empty()).then(|| says.join("; ")), rates]
}

/// How many of others' runs reach their bar, and their utilisation.
fn bar(runs: &[&Run]) -> Option<String> {
    if let [run] = runs {
        let (au, asked) = run.metric(&AU_ALL_STEPS).zip(run.bar_percent)?;
        let au = told_apart(au, asked);
        return Some(format!("{au} % AU over all steps of the {asked} % asked"));
    }
    let of = Passes::over_all_steps(runs.iter().copied());
    let count = of.yes + of.no + of.unknown;
    let reach = if of.yes == 1 { "reaches" } else { "reach" };
    let all = counted(count as u64, "run");
    let unknown = match of.unknown {
        0 => String::new(),
        unknown => format!(", of {unknown} it is not known"),
    };
    let au = runs.iter().filter_map(|run| run.metric(&AU_ALL_STEPS));
    let au = range(au.map(|au| (au, format!("{au:.0} %"))));
    let au = au.map_or(String::new(), |au| format!("; {au} AU"));
    let says = format!("{} of {all} {reach} the bar over all steps{unknown}{au}", of.yes);
    (0 < of.yes + of.no).then_some(says)
}

/// Groups whose best configuration is named at once.
const GROUPS_MAX: usize = 3;

fn best(report: &Report) -> Option<String> {
    let all = &report.recommendations;
    if let [one] = all.as_slice() {
        let own = one.says.iter().take(2).cloned().collect::<Vec<_>>().join("; ");
        return Some(if one.held.is_empty() { own } else { format!("at {}: {own}", one.at()) });
    }
    let is_one = all.iter().all(|of| of.workload == all[0].workload);
    // Levels that all groups have set none apart.
    let is_shared = |name: &String, level: &String| {
        all.iter().all(|of| of.held.get(name).is_some_and(|own| own == level))
    };
    let named = all.iter().take(GROUPS_MAX).map(|of| {
        let name = (!is_one).then(|| of.workload.clone());
        let own = of.held.iter().filter(|(name, level)| !is_shared(name, level));
        let own: Vec<String> = own.map(|(name, level)| format!("`{name}` {level}")).collect();
        let at = (!own.is_empty()).then(|| format!("at {}", own.join(", ")));
        let parts: Vec<String> = name.into_iter().chain(at).collect();
        format!("{}: {}", parts.join(", "), of.in_short)
    });
    let mut says: Vec<String> = named.collect();
    if GROUPS_MAX < all.len() {
        says.push(format!("{} more under Recommendation", all.len() - GROUPS_MAX));
    }
    (!says.is_empty()).then(|| format!("most throughput {}", says.join("; ")))
}

/// The sentence, and the findings that it repeats.
fn over_time(report: &Report) -> Option<(String, Vec<usize>)> {
    let kinds = [FindingKind::Epochs, FindingKind::Checkpoints];
    let is_large =
        |finding: &FindingText| finding.numbers.iter().any(|number| matters(&number.effect));
    let found = kinds.into_iter().filter_map(|kind| {
        report.findings.iter().position(|finding| finding.kind == kind && is_large(finding))
    });
    let found: Vec<usize> = found.collect();
    let says: Vec<&str> = found.iter().map(|&index| &*report.findings[index].says).collect();
    (!says.is_empty()).then(|| (says.join("; "), found))
}

fn unusable(report: &Report) -> String {
    let results: Vec<&ReportedRun> =
        report.runs.iter().filter(|one| one.run.has_result()).collect();
    let invalid = results.iter().filter_map(|one| match &one.run.unusable {
        Some(Reason::Invalid { doubt, .. }) => Some((*one, doubt.as_str())),
        _ => None,
    });
    let invalid: Vec<(&ReportedRun, &str)> = invalid.collect();
    let mut says = match (invalid.len(), counted(results.len() as u64, "run")) {
        (0, _) if results.is_empty() => "no run trained".into(),
        (0, _) if results.len() == 1 => {
            format!("nothing is known against the run by itself{}", warned(&results))
        }
        (0, all) => format!("none of {all} is invalid{}", warned(&results)),
        (some, all) if some <= NAMED_MAX => {
            let named =
                invalid.iter().map(|(one, doubt)| format!("`{}` ({doubt})", one.run.short_path()));
            format!("{some} of {all}: {}", list(named))
        }
        (some, all) => {
            let doubts = by_count(invalid.iter().map(|of| of.1)).into_iter();
            let named = doubts.map(|(name, runs)| format!("{name} ({runs})"));
            format!("{some} of {all}: {}", list(named))
        }
    };
    let unread = report.runs.iter().filter(|one| one.run.unusable == Some(Reason::NoSteps)).count();
    if unread > 0 {
        says += &format!("; of {unread} more no steps are known");
    }
    let others = report.runs.len() - results.len() - unread;
    if others > 0 {
        says += &format!("; {others} more trained nothing or were put aside");
    }
    if !report.left_out.is_empty() {
        says += &format!("; {} left out", counted(report.left_out.len() as u64, "folder"));
    }
    says
}

/// `; 3 have warnings, most often `page_cache``.
fn warned(results: &[&ReportedRun]) -> String {
    let warned: Vec<Vec<&str>> =
        results.iter().map(|one| warnings(&one.run)).filter(|own| !own.is_empty()).collect();
    let names = by_count(warned.concat());
    let Some((commonest, _)) = names.first() else { return String::new() };
    let have = match (results.len(), warned.len()) {
        (1, _) => "it has".into(),
        (_, 1) => "1 has".into(),
        (_, runs) => format!("{runs} have"),
    };
    format!("; {have} warnings, most often `{commonest}`")
}

fn warnings(run: &Run) -> Vec<&str> {
    let warnings = run.doubts.iter().filter(|doubt| doubt.severity == Severity::Warning);
    warnings.map(|doubt| doubt.name.as_str()).collect()
}

/// Numbers that look better than they are.
fn artefacts(report: &Report) -> Option<String> {
    let both = report.used().filter_map(|one| {
        Some((one, one.run.reported_au_percent()?, one.run.metric(&AU_ALL_STEPS)?))
    });
    let both: Vec<(&ReportedRun, f64, f64)> = both.collect();
    let all = counted(both.len() as u64, "run");
    let alone: Vec<_> =
        both.iter().filter(|(one, ..)| passes_as_reported_alone(&one.run)).collect();
    let apart = both.iter().map(|(_, reported, whole)| (reported - whole).abs());
    let far = apart.filter(|points| ARTEFACT_POINTS <= *points).count();
    let worst = both.iter().max_by(|a, b| (a.1 - a.2).abs().total_cmp(&(b.1 - b.2).abs()));
    let mut parts = Vec::new();
    if let Some((one, reported, whole)) = alone.first() {
        let (count, bar) = (alone.len(), one.run.bar_percent.unwrap_or_default());
        let reach = if count == 1 { "reaches" } else { "reach" };
        parts.push(format!(
            "{count} of {all} {reach} the bar as reported and not over all steps: {reported:.1} % and {whole:.1} % of {bar} % (`{}`)",
            one.run.short_path()
        ));
    }
    if let Some((one, reported, whole)) = worst.filter(|_| 0 < far) {
        parts.push(format!(
            "the AU reported of {far} of {all} is not that of all their steps: at worst {reported:.1} % for {whole:.1} % (`{}`)",
            one.run.short_path()
        ));
    }
    let is_artefact = |finding: &FindingText| {
        matches!(finding.kind, FindingKind::Artefact | FindingKind::Superlinear)
    };
    let found = report.findings.iter().position(is_artefact);
    parts.extend(found.map(|at| format!("see finding {}", at + 1)));
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The sentence, and the finding that it repeats.
fn holds(report: &Report) -> (String, Vec<usize>) {
    let is_claim = |finding: &FindingText| match finding.kind {
        FindingKind::Effect | FindingKind::Drift => {
            finding.numbers.iter().any(|number| matters(&number.effect))
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
        format!("no difference of {:.0} % or more is shown", 100.0 * MARGIN)
    } else {
        format!("no difference between runs is shown{}", why_nothing(report))
    };
    (says, Vec::new())
}

/// Whether runs keep MLPerf's rules: those that may be used, else all.
fn mlperf(report: &Report) -> Option<String> {
    words::mlperf::line(report.used().map(|one| &one.run))
        .or_else(|| words::mlperf::line(report.runs.iter().map(|one| &one.run)))
}

fn why_nothing(report: &Report) -> String {
    if report.used().count() == 1 {
        return ": there is one".into();
    }
    if report.findings.iter().any(|one| one.kind == FindingKind::NotTested) {
        return ": those that differ were not repeated".into();
    }
    let found = report.findings.iter().find(|one| one.support == Support::CannotBeTold);
    let why = found.and_then(|one| one.says.split_once("because ")?.1.split_once(": "));
    why.map_or(String::new(), |(why, _)| format!(", because {why}"))
}

/// Between steps that are named in one line.
pub(super) const STEP: &str = "; then ";
/// Next steps that are named, the most important first.
pub(super) const STEPS_MAX: usize = 3;

fn to_do(report: &Report) -> String {
    let serious = report.doubts.iter().filter(|doubt| doubt.severity != Severity::Note);
    let mut steps: Vec<(&str, String)> = Vec::new();
    for (doubt, seen) in serious.filter_map(|doubt| Some((doubt, doubt.seen.first()?))) {
        let runs = match report.runs.len() {
            1 => String::new(),
            _ => format!(", {}", counted(doubt.seen.len() as u64, "run")),
        };
        steps.push((&seen.advice, format!(" (`{}`{runs})", doubt.name)));
    }
    let open = report.findings.iter().filter_map(|one| one.to_do.as_deref());
    steps.extend(open.map(|step| (step, String::new())));
    let mut named: Vec<(&str, String)> = Vec::new();
    for step in steps {
        if named.len() < STEPS_MAX && named.iter().all(|of| of.0 != step.0) {
            named.push(step);
        }
    }
    // The whole of an advice stands beside its doubt.
    match named.as_slice() {
        [] => "nothing that these runs ask for".into(),
        [(says, of)] => format!("{says}{of}"),
        several => {
            let heads = several.iter().map(|(says, of)| {
                let head = says.split("; ").next().unwrap_or_default();
                format!("{head}{of}")
            });
            heads.collect::<Vec<_>>().join(STEP)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{RecommendationText, Seen, SeenDoubt};

    #[test]
    fn the_best_of_each_number_of_accelerators_is_told_apart() {
        let recommendation = |accelerators: &str, in_short: &str| RecommendationText {
            held: [("cache", "warm"), ("processes", accelerators)]
                .map(|(name, level)| (name.to_string(), level.to_string()))
                .into(),
            in_short: in_short.into(),
            ..RecommendationText::default()
        };
        let recommendations = vec![
            recommendation("1", "`format` npz"),
            recommendation("2", "none of 4 is told apart"),
        ];
        let report = Report { recommendations, ..Report::default() };
        let told = "most throughput at `processes` 1: `format` npz; at `processes` 2: none of 4 is told apart";
        assert_eq!(best(&report).unwrap(), told);
    }

    #[test]
    fn next_steps_are_the_three_that_matter_most_each_once() {
        let doubt = |name: &str, advice: &str| SeenDoubt {
            name: name.into(),
            severity: Severity::Warning,
            seen: vec![Seen { run: None, evidence: String::new(), advice: advice.into() }],
        };
        let mut report = Report { doubts: vec![doubt("a", "do a; or not")], ..Report::default() };
        assert_eq!(to_do(&report), "do a; or not (`a`, 1 run)");
        report.doubts.extend(["do a; or not", "do c", "do d", "do e"].map(|of| doubt("b", of)));
        let told = "do a (`a`, 1 run); then do c (`b`, 1 run); then do d (`b`, 1 run)";
        assert_eq!(to_do(&report), told);
        assert_eq!(to_do(&Report::default()), "nothing that these runs ask for");
    }
}
