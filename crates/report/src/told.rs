//! The findings of a report in words, with links to the runs they rest on. Judges nothing itself.

use crate::number::significant;
use crate::report::{
    FindingFigure, FindingNumber, FindingText, RecommendationText, ReportedRun, Support,
};
use crate::words::finding::{caveat, quantity, sentence};
use crate::words::inconclusive;
use crate::words::number::{chance, with_ends};
use crate::words::recommendation::{in_short, sentences};
use feedrate_analysis::design::Design;
use feedrate_analysis::finding::{EffectSize, EffectUnit, Finding, FindingKind, Quantity, Subject};
use feedrate_analysis::findings::{findings, main_responses};
use feedrate_analysis::recommendation::recommendations;
use feedrate_measure::metric::{AU_ALL_STEPS, AU_WINDOWED, Metric, Provenance, SAMPLES_WHOLE};
use feedrate_results::run::Run;
use std::collections::HashSet;
use std::path::PathBuf;

/// Conclude what the runs say, and put it into words.
pub(super) fn told(runs: &[ReportedRun], designs: &[Design], results: &[&Run]) -> Vec<FindingText> {
    let all = findings(designs, results, &main_responses(results)).into_iter();
    all.map(|finding| one(finding, designs, runs)).collect()
}

/// The best of the tested configurations.
pub(super) fn recommended(designs: &[Design], results: &[&Run]) -> Vec<RecommendationText> {
    let all = recommendations(designs, results).into_iter().map(|of| RecommendationText {
        says: sentences(&of),
        in_short: in_short(&of),
        held: of.held,
        workload: of.workload,
        best: of.best,
        tested: of.tested,
        combinations: of.combinations,
    });
    all.collect()
}

fn one(finding: Finding, designs: &[Design], all: &[ReportedRun]) -> FindingText {
    // Where there is one workload, and no part of it alone is meant, nobody asks which.
    let is_alone = matches!(designs, [only] if finding.workloads == [only.workload.clone()]);
    let support = match finding.kind {
        FindingKind::CannotTell => Support::CannotBeTold,
        FindingKind::Epochs | FindingKind::Checkpoints if is_open(&finding) => {
            Support::CannotBeTold
        }
        _ if !finding.is_supported => Support::Described,
        _ if !finding.caveats.is_empty() => Support::Doubted,
        _ => Support::Shown,
    };
    let evidence: HashSet<&PathBuf> = finding.evidence.iter().collect();
    let runs = (0..all.len()).filter(|&at| evidence.contains(&all[at].run.path));
    let runs: Vec<usize> = runs.collect();
    let (mut says, workload) = (sentence(&finding), finding.workloads.join(", "));
    let of = match finding.workloads.as_slice() {
        [first, _, _, _, rest @ ..] if !rest.is_empty() => {
            format!("{first} and {} others", rest.len() + 3)
        }
        _ => workload.clone(),
    };
    let behind: Vec<&ReportedRun> = runs.iter().map(|&run| &all[run]).collect();
    let numbers: Vec<FindingNumber> =
        finding.effects.iter().map(|of| number(of, finding.response, &behind)).collect();
    if numbers.iter().any(|one| one.provenance == Some(Provenance::Estimated)) {
        says += "; bytes are estimated";
    }
    let to_do = match &finding.subject {
        Subject::Inconclusive(of) => inconclusive::to_do(of),
        _ => None,
    };
    FindingText {
        to_do,
        says: if is_alone { says } else { format!("{of}: {says}") },
        kind: finding.kind,
        workload,
        response: finding.response,
        factors: finding.factors,
        support,
        figures: numbers.iter().map(figure).collect(),
        numbers,
        runs,
        doubts: finding.caveats.iter().map(caveat).collect(),
    }
}

/// Whether it was tested, and nothing was found.
fn is_open(finding: &Finding) -> bool {
    !finding.is_supported && finding.effects.iter().any(|of| of.p.is_some())
}

fn number(of: &EffectSize, response: Option<&str>, runs: &[&ReportedRun]) -> FindingNumber {
    let metric = match of.quantity {
        Quantity::Windowed { .. } => Some(&AU_WINDOWED),
        Quantity::AllSteps { .. } => Some(&AU_ALL_STEPS),
        Quantity::WholeEpochThroughput { .. } => Some(&SAMPLES_WHOLE),
        Quantity::FirstEpoch(name)
        | Quantity::DuringCheckpoints(name)
        | Quantity::AfterCheckpoints(name) => Metric::find(name).ok(),
        _ => response.and_then(|name| Metric::find(name).ok()),
    };
    // The furthest from measured of the values that it is of.
    let values = metric.map(|metric| runs.iter().filter_map(|one| one.run.provenance(metric)));
    FindingNumber {
        of: quantity(&of.quantity),
        effect: of.clone(),
        provenance: values.and_then(Iterator::max),
        confidence: of.confidence(),
    }
}

fn figure(number: &FindingNumber) -> FindingFigure {
    let of = &number.effect;
    let unit = match of.unit {
        EffectUnit::Ratio => "ratio",
        EffectUnit::Points => "difference in points",
        EffectUnit::Efficiency => "share of linear growth",
        EffectUnit::Share => "share",
        EffectUnit::Seconds => "s",
        EffectUnit::Response => "value",
    };
    let mut value = with_ends(of.estimate, of.low.zip(of.high), |value| significant(Some(value)));
    if let Some(provenance) = number.provenance.filter(|of| *of != Provenance::Measured) {
        value += &format!(", {}", provenance.name());
    }
    value += &format!(", n = {}", of.n);
    if let Some(p) = of.p {
        value += &format!(", {}", chance(p, of.tests.unwrap_or(1)));
    }
    if let Some(share) = of.share_percent {
        value += &format!(", {share:.1} % of the variation");
    }
    FindingFigure { name: format!("{unit}, {}", number.of), value }
}
