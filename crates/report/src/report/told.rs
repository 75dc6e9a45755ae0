//! The findings of a report, as `findings` makes them, with links to the runs they rest on. Judges nothing itself.

use super::number::significant;
use super::{Fact, Finding, Run, Support};
use feedrate_analysis::findings::{
    self, FigureUnit, Figures, Kind, Observation, findings, main_responses,
};
use std::collections::{BTreeSet, HashMap};

/// What the runs say.
pub(super) fn told(runs: &[Run], observations: &[Observation]) -> Vec<Finding> {
    let responses = main_responses(observations);
    let place: HashMap<&str, usize> =
        runs.iter().enumerate().map(|(index, run)| (run.path.as_str(), index)).collect();
    let workloads: BTreeSet<&str> = observations.iter().map(|one| one.workload.as_str()).collect();
    let all = findings(observations, &responses);
    all.into_iter().map(|finding| one(finding, 1 < workloads.len(), &place)).collect()
}

fn one(finding: findings::Finding, has_several: bool, place: &HashMap<&str, usize>) -> Finding {
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
        says: match has_several {
            true => format!("{}: {}", finding.workload, finding.sentence),
            false => finding.sentence,
        },
        kind: finding.kind,
        workload: finding.workload,
        response: finding.response,
        factors: finding.factors,
        support,
        figures: finding.figures.iter().map(fact).collect(),
        numbers: finding.figures,
        runs,
        doubts: finding.doubts,
    }
}

fn fact(of: &Figures) -> Fact {
    let unit = match of.unit {
        FigureUnit::Ratio => "ratio",
        FigureUnit::Points => "difference in points",
        FigureUnit::Efficiency => "share of linear growth",
        FigureUnit::Share => "share",
        FigureUnit::Processes => "processes",
        FigureUnit::Response => "value",
    };
    let shown = |value: f64| significant(Some(value));
    let interval = of
        .low
        .zip(of.high)
        .map_or(String::new(), |(low, high)| format!(" [{}, {}]", shown(low), shown(high)));
    let mut value = format!("{}{interval}, n = {}", shown(of.value), of.n);
    let tests = of.tests.filter(|&tests| 1 < tests);
    let tests = tests.map_or(String::new(), |tests| format!(", corrected for {tests} tests"));
    value += &of.p.map_or(String::new(), |p| match p < 1e-4 {
        true => format!(", p < 0.0001{tests}"),
        false => format!(", p = {p:.4}{tests}"),
    });
    value +=
        &of.share_percent.map_or(String::new(), |share| format!(", {share:.1} % of the variation"));
    Fact { name: format!("{unit}, {}", of.of), value }
}
