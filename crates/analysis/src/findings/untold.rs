//! What the runs do not tell, once a reason, and what would tell it.

use super::trust::about;
use super::{Finding, Judged, Kind, Observation, words};
use crate::precision::{CONFIDENCE, POWER, REPLICATES_LEAST};
use feedrate_measure::stats::samples_to_tell;
use std::collections::{BTreeMap, BTreeSet};

/// Something of a response that cannot be told.
pub(super) struct Untold {
    reason: Reason,
    what: String,
}

/// Why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// One run of a combination.
    NoReplicates,
    /// The interval holds both nothing and what would matter.
    Noise,
    /// Another factor always changed with it.
    Confounded,
    /// Of factors together: a third one always changed with them.
    Aliased,
    /// Not all combinations of two factors were run.
    NotCrossed,
    /// More than is tested one by one.
    TooManyLevels,
}

const REASONS: [Reason; 6] = [
    Reason::NoReplicates,
    Reason::Noise,
    Reason::Confounded,
    Reason::Aliased,
    Reason::NotCrossed,
    Reason::TooManyLevels,
];

impl Untold {
    pub(super) fn new(reason: Reason, what: String) -> Self {
        Untold { reason, what }
    }
}

/// Factors that whoever made the runs does not act on: a difference between their levels is noise, and none says nothing.
pub(super) fn ignored(workload: &str, used: &[&Observation]) -> Option<Finding> {
    let mut levels: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut reasons: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for run in used {
        for (factor, why) in &run.ignored {
            let level = run.factors.get(factor).map_or("unset", String::as_str);
            levels.entry(factor).or_default().insert(level);
            reasons.entry(factor).or_default().insert(why);
        }
    }
    levels.retain(|_, levels| 1 < levels.len());
    // Factors that are not acted on for the same reasons, with their levels.
    let mut of_reasons: BTreeMap<&BTreeSet<&str>, Vec<String>> = BTreeMap::new();
    for (factor, levels) in &levels {
        let levels: Vec<String> = levels.iter().map(ToString::to_string).collect();
        let text = format!("{} ({})", words::quoted(factor), words::list(&levels));
        of_reasons.entry(&reasons[factor]).or_default().push(text);
    }
    let text = |(why, factors): (&&BTreeSet<&str>, &Vec<String>)| {
        let why: Vec<&str> = why.iter().copied().collect();
        let act = if factors.len() == 1 { "does" } else { "do" };
        format!("what {} {act} ({})", words::list(factors), why.join("; "))
    };
    let parts: Vec<String> = of_reasons.iter().map(text).collect();
    let it = if levels.len() == 1 { "it" } else { "them" };
    let sentence = format!(
        "cannot be told, because DLIO does not act on {it}: {}; runs that differ in nothing else are taken as repeats; feedrate's loaders obey {it}",
        words::list(&parts)
    );
    let is_concerned =
        |run: &&&Observation| levels.keys().any(|factor| run.ignored.contains_key(*factor));
    let of: Vec<&Observation> = used.iter().filter(is_concerned).copied().collect();
    let mut finding = about(Kind::CannotTell, workload, sentence, &of);
    finding.factors = levels.keys().map(ToString::to_string).collect();
    finding.magnitude = REASONS.len() as f64 + 1.0;
    (!levels.is_empty()).then_some(finding)
}

/// Factors that only runs which must not be used were made for: all others have one level of it.
pub(super) fn unusable(
    workload: &str,
    used: &[&Observation],
    left_out: &[&Observation],
) -> Option<Finding> {
    let level = |run: &Observation, factor: &str| run.factors.get(factor).cloned();
    let first = used.first()?;
    let factors: BTreeSet<&String> = left_out.iter().flat_map(|run| run.factors.keys()).collect();
    let mut what = Vec::new();
    let mut concerned: Vec<&Observation> = Vec::new();
    for factor in factors {
        let own = level(first, factor);
        let is_other = |run: &&&Observation| level(run, factor) != own;
        let others: Vec<&Observation> = left_out.iter().filter(is_other).copied().collect();
        if others.is_empty() || used.iter().any(|run| level(run, factor) != own) {
            continue;
        }
        let levels: BTreeSet<String> = others.iter().filter_map(|run| level(run, factor)).collect();
        let levels: Vec<String> = levels.into_iter().collect();
        what.push((
            factor.clone(),
            format!("{} ({})", words::quoted(factor), words::list(&levels)),
        ));
        concerned.extend(others);
    }
    let texts: Vec<String> = what.iter().map(|(_, text)| text.clone()).collect();
    let act = if what.len() == 1 { "does" } else { "do" };
    let sentence = format!(
        "cannot be told, because their only runs must not be used: what {} {act}; run these again",
        words::list(&texts)
    );
    concerned.sort_by(|a, b| a.path.cmp(&b.path));
    concerned.dedup_by(|a, b| a.path == b.path);
    let mut finding = about(Kind::CannotTell, workload, sentence, &concerned);
    finding.factors = what.into_iter().map(|(factor, _)| factor).collect();
    finding.magnitude = REASONS.len() as f64 + 2.0;
    (!finding.factors.is_empty()).then_some(finding)
}

/// Of all responses of a workload.
pub(super) fn cannot_tell(workload: &str, judged: &[Judged]) -> Vec<Finding> {
    REASONS.iter().filter_map(|&reason| of_reason(workload, reason, judged)).collect()
}

fn of_reason(workload: &str, reason: Reason, judged: &[Judged]) -> Option<Finding> {
    let own = |one: &Judged| -> Vec<String> {
        one.untold
            .iter()
            .filter(|untold| untold.reason == reason)
            .map(|one| one.what.clone())
            .collect()
    };
    let concerned: Vec<&Judged> = judged.iter().filter(|one| !own(one).is_empty()).collect();
    let first = concerned.first()?;
    let titles: Vec<String> =
        concerned.iter().map(|one| one.sheet.response.title.to_string()).collect();
    // Each once, in the order of the first response that has it.
    let mut seen = BTreeSet::new();
    let all = concerned.iter().flat_map(|one| own(one));
    let all: Vec<String> = all.filter(|what| seen.insert(what.clone())).collect();
    let act = if all.len() == 1 { "does" } else { "do" };
    let (all, titles) = (words::list(&all), words::list(&titles));
    let sentence = match reason {
        Reason::NoReplicates => format!(
            "cannot be told, because there is one run of each (no replicates): what {all} {act} to \
             {titles}; {}",
            replicates(judged)
        ),
        Reason::Noise => {
            let parts: Vec<String> = concerned.iter().map(|one| noise_of(one, &own(one))).collect();
            format!(
                "cannot be told, because the noise is too large for so few runs: {}",
                parts.join("; ")
            )
        }
        Reason::Confounded => format!(
            "cannot be told, because other factors always changed with them: what {all} {act} to \
             {titles}; {} would tell",
            match first.sheet.lacking() {
                Some(levels) => format!("one combination more, {},", words::list(&levels)),
                None => "runs that change them alone".into(),
            }
        ),
        Reason::Aliased => format!(
            "cannot be told, because other factors always changed with them: what {all} do together to {titles}; a \
             design of more runs would tell"
        ),
        Reason::TooManyLevels => format!(
            "cannot be told, because there are too many levels to test one by one: what {all} {act} to {titles}"
        ),
        Reason::NotCrossed => format!(
            "cannot be told, because not all combinations of their levels were run: {all}; a full factorial or a \
             2^k design would tell"
        ),
    };
    let mut finding = about(Kind::CannotTell, workload, sentence, &[]);
    let paths = concerned.iter().flat_map(|one| one.sheet.runs.iter().flatten());
    let paths: BTreeSet<_> = paths.map(|run| run.path.clone()).collect();
    finding.evidence = paths.into_iter().collect();
    finding.response = (concerned.len() == 1).then_some(first.sheet.response.id.name());
    finding.magnitude = REASONS.len() as f64 - reason as usize as f64;
    Some(finding)
}

/// A response, the factors that noise hides, and how many runs would tell them.
fn noise_of(one: &Judged, hidden: &[String]) -> String {
    let runs = runs_to_tell(one).map_or(String::new(), |runs| {
        format!("; about {runs} runs of each would tell {}", one.sheet.margin_text())
    });
    format!("{} by {}{runs}", one.sheet.response.title, words::list(hidden))
}

/// How many runs would do, from the noise of those that were repeated.
fn replicates(judged: &[Judged]) -> String {
    let repeated = judged.iter().find_map(|one| Some((one, one.sheet.noise()?)));
    match repeated {
        None => format!(
            "two runs of each measure the noise, {REPLICATES_LEAST} are advised (none was repeated, so that \
             it is not known how many it takes)"
        ),
        Some((one, noise)) => {
            let unit = if one.sheet.is_log() { "%" } else { "points" };
            let shown = if one.sheet.is_log() { 100.0 * (noise.exp() - 1.0) } else { noise };
            let runs = runs_for(one, noise)
                .map_or("more than anybody makes".into(), |runs| runs.to_string());
            format!(
                "from the noise of {} in repeated runs ({shown:.1} {unit}), {runs} of each would tell {}",
                one.sheet.response.title,
                one.sheet.margin_text()
            )
        }
    }
}

/// Runs of each to find a difference that matters, more than there are; `None` where that cannot be said.
fn runs_to_tell(one: &Judged) -> Option<u64> {
    let most = one.sheet.cells.iter().map(|cell| cell.values.len()).max()?;
    runs_for(one, one.sheet.noise()?).filter(|&runs| most as u64 <= runs)
}

fn runs_for(one: &Judged, noise: f64) -> Option<u64> {
    let least = if one.sheet.is_log() { one.sheet.margin().ln_1p() } else { one.sheet.margin() };
    match noise > 0.0 {
        true => samples_to_tell(least / noise, CONFIDENCE, POWER),
        false => Some(2),
    }
}
