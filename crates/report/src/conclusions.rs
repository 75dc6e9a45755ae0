//! Converts findings and recommendations of the analysis to the texts of a report, with links to their runs. Judges nothing itself.

use crate::number::significant;
use crate::report::{
    FindingFigure, FindingNumber, FindingText, RecommendationText, ReportedRun, Support,
};
use crate::words::finding::{caveat, quantity, sentence};
use crate::words::inconclusive;
use crate::words::number::{chance, with_interval};
use crate::words::recommendation::{sentences, short_text};
use feedrate_analysis::design::Design;
use feedrate_analysis::finding::{EffectSize, EffectUnit, Finding, FindingKind, Quantity, Subject};
use feedrate_analysis::findings::{findings, main_responses};
use feedrate_analysis::recommendation::recommendations;
use feedrate_measure::metric::{AU_ALL_STEPS, AU_WINDOWED, Metric, Provenance, SAMPLES_WHOLE};
use feedrate_results::run::Run;
use std::collections::HashSet;
use std::path::PathBuf;

/// All findings about these runs, as text.
pub(super) fn finding_texts(
    runs: &[ReportedRun],
    designs: &[Design],
    results: &[&Run],
) -> Vec<FindingText> {
    let all = findings(designs, results, &main_responses(results)).into_iter();
    all.map(|finding| finding_text(finding, designs, runs)).collect()
}

/// The best of the tested configurations.
pub(super) fn recommendation_texts(
    designs: &[Design],
    results: &[&Run],
) -> Vec<RecommendationText> {
    let all = recommendations(designs, results).into_iter().map(|group| RecommendationText {
        says: sentences(&group),
        short_text: short_text(&group),
        held: group.held,
        workload: group.workload,
        best: group.best,
        tested: group.tested,
        combinations: group.combinations,
    });
    all.collect()
}

fn finding_text(finding: Finding, designs: &[Design], all: &[ReportedRun]) -> FindingText {
    // If all runs have the same workload, findings about the whole workload do not name it.
    let is_only_workload =
        matches!(designs, [only] if finding.workloads == [only.workload.clone()]);
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
    let runs = (0..all.len()).filter(|&index| evidence.contains(&all[index].run.path));
    let runs: Vec<usize> = runs.collect();
    let mut says = sentence(&finding);
    let workload = finding.workloads.join(", ");
    let subject = match finding.workloads.as_slice() {
        [first, _, _, _, rest @ ..] if !rest.is_empty() => {
            format!("{first} and {} others", rest.len() + 3)
        }
        _ => workload.clone(),
    };
    let evidence_runs: Vec<&ReportedRun> = runs.iter().map(|&run| &all[run]).collect();
    let numbers: Vec<FindingNumber> = finding
        .effects
        .iter()
        .map(|effect| number(effect, finding.response, &evidence_runs))
        .collect();
    if numbers.iter().any(|number| number.provenance == Some(Provenance::Estimated)) {
        says += "; bytes are estimated";
    }
    let to_do = match &finding.subject {
        Subject::Inconclusive(question) => inconclusive::to_do(question),
        _ => None,
    };
    FindingText {
        to_do,
        says: if is_only_workload { says } else { format!("{subject}: {says}") },
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

/// Whether a finding was tested without a significant result.
fn is_open(finding: &Finding) -> bool {
    !finding.is_supported && finding.effects.iter().any(|effect| effect.p.is_some())
}

/// A number of a finding, with its provenance.
fn number(effect: &EffectSize, response: Option<&str>, runs: &[&ReportedRun]) -> FindingNumber {
    let metric = match effect.quantity {
        Quantity::Windowed { .. } => Some(&AU_WINDOWED),
        Quantity::AllSteps { .. } => Some(&AU_ALL_STEPS),
        Quantity::WholeEpochThroughput { .. } => Some(&SAMPLES_WHOLE),
        Quantity::ResponseAtLevel { response: name, .. }
        | Quantity::FirstEpoch(name)
        | Quantity::DuringCheckpoints(name)
        | Quantity::AfterCheckpoints(name) => Metric::find(name).ok(),
        _ => response.and_then(|name| Metric::find(name).ok()),
    };
    // Provenances are ordered from measured to estimated.
    let values = metric.map(|metric| runs.iter().filter_map(|run| run.run.provenance(metric)));
    FindingNumber {
        quantity: quantity(&effect.quantity),
        effect: effect.clone(),
        provenance: values.and_then(Iterator::max),
        confidence: effect.confidence(),
    }
}

/// A number as text: its value, interval, provenance, p and share.
fn figure(number: &FindingNumber) -> FindingFigure {
    let effect = &number.effect;
    let unit = match effect.unit {
        EffectUnit::Ratio => "ratio",
        EffectUnit::Points => "difference in points",
        EffectUnit::Efficiency => "share of linear growth",
        EffectUnit::Share => "share",
        EffectUnit::Seconds => "s",
        EffectUnit::Response => "value",
    };
    let mut value = with_interval(effect.estimate, effect.low.zip(effect.high), |value| {
        significant(Some(value))
    });
    if let Some(provenance) = number.provenance.filter(|effect| *effect != Provenance::Measured) {
        value += &format!(", {}", provenance.name());
    }
    value += &format!(", n = {}", effect.n);
    if let Some(p) = effect.p {
        value += &format!(", {}", chance(p, effect.tests.unwrap_or(1)));
    }
    if let Some(share) = effect.share_percent {
        value += &format!(", {share:.1} % of the variation");
    }
    FindingFigure { name: format!("{unit}, {}", number.quantity), value }
}
