//! The findings of a report, as `findings` makes them, with links to the runs they rest on. Judges nothing itself.

use super::{Fact, Finding, Run, Support};
use crate::findings::{self, FigureUnit, Figures, Kind, Observation, findings, main_responses};
use std::collections::{BTreeMap, HashMap};

/// What the runs say.
pub(super) fn told(runs: &[Run], observations: &[Observation]) -> Vec<Finding> {
    let responses = main_responses(observations);
    let place: HashMap<&str, usize> =
        runs.iter().enumerate().map(|(index, run)| (run.path.as_str(), index)).collect();
    let all = findings(observations, &responses, &BTreeMap::new());
    all.into_iter().map(|finding| one(finding, &place)).collect()
}

fn one(finding: findings::Finding, place: &HashMap<&str, usize>) -> Finding {
    let support = match finding.kind {
        Kind::CannotTell => Support::CannotBeTold,
        _ if !finding.supported => Support::Described,
        _ if !finding.doubts.is_empty() => Support::Doubted,
        _ => Support::Shown,
    };
    let evidence = finding.evidence.iter();
    let mut runs: Vec<usize> = evidence
        .filter_map(|path| place.get(path.display().to_string().as_str()).copied())
        .collect();
    runs.sort_unstable();
    runs.dedup();
    Finding {
        says: finding.sentence,
        support,
        figures: finding.figures.iter().flat_map(facts).collect(),
        numbers: finding.figures,
        runs,
        doubts: finding.doubts,
    }
}

fn facts(of: &Figures) -> Vec<Fact> {
    let unit = match of.unit {
        FigureUnit::Ratio => "ratio",
        FigureUnit::Points => "difference in points",
        FigureUnit::Efficiency => "share of linear growth",
    };
    let interval =
        of.low.zip(of.high).map_or(String::new(), |(low, high)| format!(" [{low:.3}, {high:.3}]"));
    let fact = |name: &str, value: String| Fact { name: name.into(), value };
    let tests = of.tests.map_or(String::new(), |tests| format!(", corrected for {tests} tests"));
    let mut facts = vec![fact(unit, format!("{:.3}{interval}, n = {}", of.estimate, of.n))];
    facts.extend(of.p.map(|p| match p < 1e-4 {
        true => fact("p", format!("< 0.0001{tests}")),
        false => fact("p", format!("{p:.4}{tests}")),
    }));
    facts.extend(
        of.share_percent.map(|share| fact("share of the variation", format!("{share:.1} %"))),
    );
    facts
}
