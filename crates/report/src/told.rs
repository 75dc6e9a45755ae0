//! The findings of a report in words, with links to the runs they rest on. Judges nothing itself.

use crate::number::significant;
use crate::report::{Fact, Finding, Number, Run, Support};
use crate::words::finding::{caveat, quantity, sentence};
use feedrate_analysis::design::Design;
use feedrate_analysis::finding::{self, Effect, EffectUnit, Kind, Quantity};
use feedrate_analysis::findings::{Observation, findings, main_responses};
use feedrate_measure::metric::{AU_ALL_STEPS, AU_WINDOWED, Metric, Provenance, SAMPLES_WHOLE};
use std::collections::HashMap;

/// Conclude what the runs say, and put it into words.
pub(super) fn told(runs: &[Run], designs: &[Design], observations: &[Observation]) -> Vec<Finding> {
    let place: HashMap<&str, usize> =
        runs.iter().enumerate().map(|(index, run)| (run.path.as_str(), index)).collect();
    let all = findings(designs, observations, &main_responses(observations));
    all.into_iter().map(|finding| one(finding, 1 < designs.len(), runs, &place)).collect()
}

fn one(
    finding: finding::Finding,
    has_several: bool,
    all: &[Run],
    place: &HashMap<&str, usize>,
) -> Finding {
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
    let (mut says, workload) = (sentence(&finding), finding.workloads.join(", "));
    let numbers: Vec<Number> = finding
        .effects
        .iter()
        .map(|of| number(of, provenance(of, finding.response, runs.iter().map(|&run| &all[run]))))
        .collect();
    if numbers.iter().any(|one| one.provenance == Some(Provenance::Estimated)) {
        says += "; bytes are estimated";
    }
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

/// The furthest from measured of the values that an effect is of.
fn provenance<'a>(
    of: &Effect,
    response: Option<&str>,
    runs: impl Iterator<Item = &'a Run>,
) -> Option<Provenance> {
    let metric = match of.of {
        Quantity::Windowed { .. } => &AU_WINDOWED,
        Quantity::AllSteps { .. } => &AU_ALL_STEPS,
        Quantity::WholeEpochThroughput { .. } => &SAMPLES_WHOLE,
        _ => Metric::find(response?).ok()?,
    };
    let values = runs.flat_map(|run| &run.metrics).filter(|one| one.name == metric.label());
    values.filter_map(|one| one.provenance).max()
}

fn number(of: &Effect, provenance: Option<Provenance>) -> Number {
    Number {
        of: quantity(&of.of),
        unit: of.unit,
        value: of.estimate,
        provenance,
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
    let provenance = of.provenance.filter(|of| *of != Provenance::Measured);
    let provenance = provenance.map_or(String::new(), |of| format!(", {}", of.name()));
    let mut value = format!("{}{interval}{provenance}, n = {}", shown(of.value), of.n);
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
