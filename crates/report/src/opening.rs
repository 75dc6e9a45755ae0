//! The lines that a report opens with: the answer, what must not be used, what is an artefact, what holds, what to do, and how much more there is. Decides
//! nothing that answers, findings and doubts do not say.

use crate::methods::conditions;
use crate::number::by_value;
use crate::report::{FindingFigure, FindingText, Report, ReportedRun, Support};
use crate::words;
use crate::words::answer::{range, told_apart};
use crate::words::number::list;
use feedrate_analysis::finding::FindingKind;
use feedrate_analysis::findings::{MARGIN, matters};
use feedrate_measure::answer::{Answer, AnswerKind};
use feedrate_measure::doubt::Severity;
use feedrate_measure::metric::AU_ALL_STEPS;
use feedrate_results::groups::{Passes, passes_as_reported_alone};
use feedrate_results::run::{Reason, Run};
use feedrate_spec::units::counted;
use std::collections::{BTreeMap, BTreeSet};

/// Findings that are told unasked.
pub const FINDINGS_MAX: usize = 10;
/// Runs that are named one by one.
const NAMED_MAX: usize = 3;
/// Points by which reported utilisation is another than that of all steps.
const ARTEFACT_POINTS: f64 = 5.0;

/// How much room there is.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Room {
    /// A terminal's screen.
    Screen,
    /// A page, which also has the best of the tested configurations with what it costs, and what changes while runs last.
    Page,
}

/// Lines that stand below the pictures of a page.
pub(super) const BELOW: [&str; 2] = [ARTEFACTS, OVER_TIME];
/// Lines that a page says elsewhere: as its first finding, and in numbers beside its heading.
pub(super) const ELSEWHERE: [&str; 2] = [HOLDS, MORE];

pub(super) const DO_NOT_USE: &str = "Do not use";
const ARTEFACTS: &str = "Artefacts";
const HOLDS: &str = "Holds";
const OVER_TIME: &str = "Over time";
const MORE: &str = "More";

/// `answered`: by a search or trials, whose runs have no common answer of their own.
pub(super) fn opening(
    report: &Report,
    answered: Vec<FindingFigure>,
    room: Room,
) -> Vec<FindingFigure> {
    let is_open = answered.is_empty();
    let [answer, rates] = if is_open { answers(report) } else { [None, None] };
    let [holds_for, best, over_time] = match room {
        Room::Page if is_open => [holds_for(report), best(report), over_time(report)],
        _ => [None, None, None],
    };
    let lines = [
        ("Answer", answer),
        ("Rates", rates),
        ("Holds for", holds_for),
        ("Best", best),
        (DO_NOT_USE, Some(unusable(report))),
        (ARTEFACTS, Some(artefacts(report, room))),
        (HOLDS, Some(holds(report))),
        (OVER_TIME, over_time),
        ("To do", Some(to_do(report))),
        (MORE, Some(more(report))),
    ];
    let lines = lines.into_iter().filter_map(|(name, value)| Some((name.into(), value?)));
    answered.into_iter().chain(lines.map(|(name, value)| FindingFigure { name, value })).collect()
}

/// Whether the accelerators of these runs were fed, and the rates that they needed and had. The answer of a single run stands in the report itself.
fn answers(report: &Report) -> [Option<String>; 2] {
    if report.answer.is_some() {
        return [None, None];
    }
    let used = || report.runs.iter().filter(|one| one.unused().is_none()).map(|one| &one.run);
    let own: Vec<&Answer> = used().filter_map(|run| run.answer.as_ref()).collect();
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

/// The levels at which runs were fed and were not, where one factor tells them apart; and what all runs share that makes others of them.
fn holds_for(report: &Report) -> Option<String> {
    let used: Vec<&ReportedRun> = report.runs.iter().filter(|one| one.unused().is_none()).collect();
    if report.answer.is_some() || used.is_empty() {
        return None;
    }
    let parts: Vec<String> = by_level(&used).into_iter().chain(conditions(&used)).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// `YES at `processes` 1, NO at 2, whatever `read_threads``.
fn by_level(used: &[&ReportedRun]) -> Option<String> {
    let names: BTreeSet<&str> =
        used.iter().flat_map(|one| one.factors.keys()).map(String::as_str).collect();
    let kind = |one: &ReportedRun| Some(one.run.answer.as_ref()?.kind);
    let first = kind(used.first()?)?;
    if used.iter().all(|one| kind(one) == Some(first)) {
        return None;
    }
    let told = names.iter().find_map(|name| {
        let mut levels: Vec<(&str, AnswerKind)> = Vec::new();
        for one in used {
            let (level, kind) = (one.factors.get(*name)?.as_str(), kind(one)?);
            match levels.iter().find(|of| of.0 == level) {
                Some(known) if known.1 != kind => return None,
                Some(_) => {}
                None => levels.push((level, kind)),
            }
        }
        levels.sort_by(|a, b| by_value(a.0, b.0));
        Some((*name, levels))
    });
    let (name, levels) = told?;
    let parts = levels.chunk_by(|a, b| a.1 == b.1).enumerate().map(|(at, same)| {
        let of = if at == 0 { format!("`{name}` ") } else { String::new() };
        let levels: Vec<String> = same.iter().map(|of| of.0.to_string()).collect();
        format!("{} at {of}{}", same[0].1.name().to_uppercase(), list(&levels))
    });
    let parts = parts.collect::<Vec<_>>().join(", ");
    let others: Vec<String> =
        names.iter().filter(|other| **other != name).map(|name| format!("`{name}`")).collect();
    let others =
        if others.is_empty() { String::new() } else { format!(", whatever {}", list(&others)) };
    Some(parts + &others)
}

fn best(report: &Report) -> Option<String> {
    let of = report.recommendations.first()?;
    let own = of.says.iter().take(2).cloned().collect::<Vec<_>>().join("; ");
    Some(if report.recommendations.len() == 1 { own } else { format!("{}: {own}", of.workload) })
}

fn over_time(report: &Report) -> Option<String> {
    let kinds = [FindingKind::Epochs, FindingKind::Checkpoints];
    let is_large = |one: &FindingText| one.numbers.iter().any(|of| matters(&of.effect));
    let says =
        kinds.map(|kind| report.findings.iter().find(|one| one.kind == kind && is_large(one)));
    let says: Vec<&str> = says.into_iter().flatten().map(|one| &*one.says).collect();
    (!says.is_empty()).then(|| says.join("; "))
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
            format!("{some} of {all}: {}", list(&named.collect::<Vec<_>>()))
        }
        (some, all) => {
            let mut doubts: BTreeMap<&str, usize> = BTreeMap::new();
            invalid.iter().for_each(|(_, doubt)| *doubts.entry(doubt).or_default() += 1);
            let mut doubts: Vec<(&str, usize)> = doubts.into_iter().collect();
            doubts.sort_by_key(|of| std::cmp::Reverse(of.1));
            let named: Vec<String> =
                doubts.iter().map(|(name, runs)| format!("{name} ({runs})")).collect();
            format!("{some} of {all}: {}", list(&named))
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
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    let mut runs = 0;
    for one in results {
        let own = one.run.doubts.iter().filter(|doubt| doubt.severity == Severity::Warning);
        let own: Vec<&str> = own.map(|doubt| doubt.name.as_str()).collect();
        runs += usize::from(!own.is_empty());
        own.into_iter().for_each(|name| *names.entry(name).or_default() += 1);
    }
    // The first of the commonest.
    let commonest = names.into_iter().rev().max_by_key(|of| of.1);
    commonest.map_or(String::new(), |(name, _)| {
        let have = match (results.len(), runs) {
            (1, _) => "it has".into(),
            (_, 1) => "1 has".into(),
            _ => format!("{runs} have"),
        };
        format!("; {have} warnings, most often `{name}`")
    })
}

fn artefacts(report: &Report, room: Room) -> String {
    let used = report.runs.iter().filter(|one| one.unused().is_none());
    let both = used.filter_map(|one| {
        Some((one, one.run.reported_au_percent()?, one.run.metric(&AU_ALL_STEPS)?))
    });
    let both: Vec<(&ReportedRun, f64, f64)> = both.collect();
    let all = counted(both.len() as u64, "run");
    let alone: Vec<_> = both.iter().filter(|of| passes_as_reported_alone(&of.0.run)).collect();
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
    if let Some((one, reported, whole)) = worst
        && 0 < far
    {
        parts.push(match both.len() {
            1 => format!(
                "the AU reported is not that of all steps: {reported:.1} % for {whole:.1} %"
            ),
            _ => format!(
                "the AU reported of {far} of {all} is not that of all their steps: at worst {reported:.1} % for {whole:.1} % (`{}`)",
                one.run.short_path()
            ),
        });
    }
    let mut found = (1..).zip(&report.findings);
    let found =
        found.find(|of| matches!(of.1.kind, FindingKind::Artefact | FindingKind::Superlinear));
    parts.extend(found.map(|(number, one)| match room {
        Room::Screen => one.says.clone(),
        // A page has it just below.
        Room::Page => format!("see finding {number}"),
    }));
    if parts.is_empty() { "none was seen".into() } else { parts.join("; ") }
}

fn holds(report: &Report) -> String {
    let claims = report.findings.iter().filter(|one| match one.kind {
        FindingKind::Effect | FindingKind::Drift => {
            one.numbers.iter().any(|of| matters(&of.effect))
        }
        kind => matches!(kind, FindingKind::Scaling | FindingKind::NoEffect),
    });
    let [shown, doubted] = [Support::Shown, Support::Doubted]
        .map(|support| claims.clone().find(|one| one.support == support));
    match (shown, doubted) {
        (Some(found), _) => found.says.clone(),
        (None, Some(found)) => {
            let doubts = match found.doubts.as_slice() {
                [one] => format!("with a doubt, {one}"),
                several => format!("with {} doubts", several.len()),
            };
            format!("{} ({doubts})", found.says)
        }
        (None, None) => {
            let is_slight = |one: &FindingText| {
                let is_difference = matches!(one.kind, FindingKind::Effect | FindingKind::Drift);
                is_difference && one.support == Support::Shown
            };
            if report.findings.iter().any(is_slight) {
                format!("no difference of {:.0} % or more is shown", 100.0 * MARGIN)
            } else {
                format!("no difference between runs is shown{}", why_nothing(report))
            }
        }
    }
}

fn why_nothing(report: &Report) -> String {
    if report.runs.iter().filter(|one| one.unused().is_none()).count() == 1 {
        return ": there is one".into();
    }
    if report.findings.iter().any(|one| one.kind == FindingKind::NotTested) {
        return ": those that differ were not repeated".into();
    }
    let found = report.findings.iter().find(|one| one.support == Support::CannotBeTold);
    let why = found.and_then(|one| one.says.split_once("because ")?.1.split_once(": "));
    why.map_or(String::new(), |(why, _)| format!(", because {why}"))
}

fn to_do(report: &Report) -> String {
    let serious = report.doubts.iter().find(|doubt| doubt.severity != Severity::Note);
    if let Some((doubt, seen)) = serious.and_then(|doubt| Some((doubt, doubt.seen.first()?))) {
        let runs = counted(doubt.seen.len() as u64, "run");
        return format!("{} (`{}`, {runs})", seen.advice, doubt.name);
    }
    let open = report.findings.iter().find_map(|one| one.to_do.clone());
    open.unwrap_or_else(|| "nothing that these runs ask for".into())
}

fn more(report: &Report) -> String {
    let findings = counted(report.findings.len() as u64, "finding");
    let doubts = counted(report.doubts.len() as u64, "doubt");
    format!("{findings}, {doubts} in {}", counted(report.doubted_runs() as u64, "run"))
}

#[cfg(test)]
mod tests {
    use crate::gather::of_results;
    use crate::replan::NO_CHANGES;
    use feedrate_measure::example::simple;
    use feedrate_measure::record::file;
    use std::path::Path;

    /// Steps that load for so long, of a format and so many workers.
    fn save(folder: &Path, name: usize, (format, workers, load): (&str, u32, u64)) {
        let mut record = simple(&[(load, 1000, 0, 1_000_000); 20]);
        record.plan.dataset.format = format.into();
        record.plan.loader.workers = workers;
        record.plan.storage.throttle_bytes_per_second = Some(16e6);
        let run_dir = folder.join(name.to_string());
        std::fs::create_dir_all(&run_dir).unwrap();
        file::write(&run_dir, &record).unwrap();
    }

    #[test]
    fn the_levels_and_conditions_that_an_answer_holds_for_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let runs = [("npz", 1, 1), ("npz", 2, 2), ("png", 1, 1000), ("png", 2, 1001)];
        for (i, (format, workers, load)) in runs.into_iter().enumerate() {
            save(folder.path(), i, (format, workers, load));
        }
        let holds_for = || {
            let report = of_results(&[folder.path().into()], None, 1, NO_CHANGES).unwrap();
            let line = report.opening.into_iter().find(|line| line.name == "Holds for").unwrap();
            line.value
        };
        let conditions = "page cache as it was; emulated storage: a throttle of 16 MB/s";
        let told = format!("YES at `format` npz, NO at png, whatever `read_threads`; {conditions}");
        assert_eq!(holds_for(), told);
        // Where no factor alone tells fed runs from others, none is named.
        save(folder.path(), 4, ("png", 4, 1));
        assert!(!holds_for().contains("`format`"), "{}", holds_for());
    }
}
