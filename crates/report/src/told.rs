//! The findings of a report in words, with links to the runs they rest on. Judges nothing itself.

use crate::number::significant;
use crate::report::{Fact, Finding, Number, Run, Support};
use crate::words::finding::{caveat, quantity, sentence};
use feedrate_analysis::design::Design;
use feedrate_analysis::finding::{self, Effect, EffectUnit, Kind};
use feedrate_analysis::findings::{Observation, findings, main_responses};
use std::collections::HashMap;

/// Conclude what the runs say, and put it into words.
pub(super) fn told(runs: &[Run], designs: &[Design], observations: &[Observation]) -> Vec<Finding> {
    let place: HashMap<&str, usize> =
        runs.iter().enumerate().map(|(index, run)| (run.path.as_str(), index)).collect();
    let all = findings(designs, observations, &main_responses(observations));
    all.into_iter().map(|finding| one(finding, 1 < designs.len(), &place)).collect()
}

fn one(finding: finding::Finding, has_several: bool, place: &HashMap<&str, usize>) -> Finding {
    let support = match finding.kind {
        Kind::CannotTell => Support::CannotBeTold,
        _ if !finding.is_supported => Support::Described,
        _ if !finding.caveats.is_empty() => Support::Doubted,
        _ => Support::Shown,
    };
    let evidence = finding.evidence.iter();
    let mut runs: Vec<usize> = evidence
        .filter_map(|path| place.get(path.display().to_string().as_str()).copied())
        .collect();
    runs.sort_unstable();
    runs.dedup();
    let (says, workload) = (sentence(&finding), finding.workloads.join(", "));
    let numbers: Vec<Number> = finding.effects.iter().map(number).collect();
    Finding {
        says: if has_several { format!("{workload}: {says}") } else { says },
        kind: finding.kind,
        workload,
        response: finding.response,
        factors: finding.factors,
        support,
        figures: numbers.iter().map(fact).collect(),
        numbers,
        runs,
        doubts: finding.caveats.iter().map(caveat).collect(),
    }
}

fn number(of: &Effect) -> Number {
    Number {
        of: quantity(&of.of),
        unit: of.unit,
        value: of.estimate,
        low: of.low,
        high: of.high,
        confidence: of.confidence(),
        n: of.n,
        p: of.p,
        tests: of.tests,
        share_percent: of.share_percent,
    }
}

fn fact(of: &Number) -> Fact {
    let unit = match of.unit {
        EffectUnit::Ratio => "ratio",
        EffectUnit::Points => "difference in points",
        EffectUnit::Efficiency => "share of linear growth",
        EffectUnit::Share => "share",
        EffectUnit::Processes => "processes",
        EffectUnit::Response => "value",
    };
    let shown = |value: f64| significant(Some(value));
    let interval = of
        .low
        .zip(of.high)
        .map_or(String::new(), |(low, high)| format!(" [{}, {}]", shown(low), shown(high)));
    let mut value = format!("{}{interval}, n = {}", shown(of.value), of.n);
    let tests = of.tests.filter(|&tests| 1 < tests);
    let tests = tests.map_or(String::new(), |tests| format!(", corrected for {tests} tests"));
    value += &match of.p {
        None => String::new(),
        Some(p) if p < 1e-4 => format!(", p < 0.0001{tests}"),
        Some(p) => format!(", p = {p:.4}{tests}"),
    };
    value +=
        &of.share_percent.map_or(String::new(), |share| format!(", {share:.1} % of the variation"));
    Fact { name: format!("{unit}, {}", of.of), value }
}
