//! Questions that the runs leave open, grouped by reason, with the runs that would answer them.

use super::design_matrix::DesignMatrix;
use super::{JudgedResponse, UsedRuns, is_excluded, open_finding};
use crate::design::{Design, Stratum, UNSET};
use crate::estimate::ResponseScale;
use crate::finding::{
    EffectSize, Finding, Inconclusive, NamedLevels, Noise, OpenQuestion, OpenQuestions,
};
use crate::precision::{CONFIDENCE, POWER, RUNS_MAX};
use feedrate_measure::stats::runs_for_difference;
use feedrate_results::run::Run;
use std::collections::{BTreeMap, BTreeSet};

/// A question about one response that stays open.
pub(super) enum OpenPoint {
    /// A cell was run only once.
    NoReplicates(OpenQuestion),
    /// The interval contains both zero and relevant differences.
    Noise { factor: String, widest: EffectSize },
    /// Another factor always changed together with this factor.
    Confounded(OpenQuestion),
    /// A third factor always changed together with the pair.
    Aliased(OpenQuestion),
    /// Not all combinations of two factors were run.
    NotCrossed { missing: usize, pairs: usize },
    /// There are too many levels to test them individually.
    TooManyLevels(OpenQuestion),
}

/// Number of reasons of an [`OpenPoint`]. Findings about all responses of a workload have larger magnitudes than this, so they are sorted
/// before findings for these reasons.
const REASONS: usize = 6;

impl OpenPoint {
    fn reason(&self) -> usize {
        match self {
            OpenPoint::NoReplicates(_) => 0,
            OpenPoint::Noise { .. } => 1,
            OpenPoint::Confounded(_) => 2,
            OpenPoint::Aliased(_) => 3,
            OpenPoint::NotCrossed { .. } => 4,
            OpenPoint::TooManyLevels(_) => 5,
        }
    }

    fn question(&self) -> Option<&OpenQuestion> {
        match self {
            OpenPoint::NoReplicates(question)
            | OpenPoint::Confounded(question)
            | OpenPoint::Aliased(question)
            | OpenPoint::TooManyLevels(question) => Some(question),
            OpenPoint::Noise { .. } | OpenPoint::NotCrossed { .. } => None,
        }
    }
}

/// The finding of factors that the program of the runs ignores. A difference between their levels is noise, and the absence of a difference
/// shows nothing.
pub(super) fn ignored_factors(group: &UsedRuns) -> Option<Finding> {
    let mut levels: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut reasons: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (index, factor) in group.design.factors.iter().enumerate() {
        for cell in &group.design.cells {
            for run in &cell.runs {
                let Some(reason) = group.runs[*run].ignored_reason(&factor.name) else { continue };
                let level = &factor.levels[cell.levels[index]];
                levels.entry(&factor.name).or_default().insert(level);
                reasons.entry(&factor.name).or_default().insert(reason);
            }
        }
    }
    levels.retain(|_, levels| 1 < levels.len());
    if levels.is_empty() {
        return None;
    }
    let mut factors_by_reasons: BTreeMap<&BTreeSet<String>, Vec<NamedLevels>> = BTreeMap::new();
    for (factor, levels) in &levels {
        factors_by_reasons.entry(&reasons[factor]).or_default().push(named_levels(factor, levels));
    }
    let groups = factors_by_reasons
        .into_iter()
        .map(|(reasons, factors)| (factors, reasons.iter().cloned().collect()));
    let reason = Inconclusive::Ignored(groups.collect());
    let mut runs = group.used_runs();
    runs.retain(|run| levels.keys().any(|name| run.ignored_reason(name).is_some()));
    let mut finding = open_finding(&group.design.workload, reason, &runs);
    finding.factors = levels.keys().map(ToString::to_string).collect();
    finding.magnitude = REASONS as f64 + 1.0;
    Some(finding)
}

fn named_levels(factor: &str, levels: &BTreeSet<&str>) -> NamedLevels {
    NamedLevels { factor: factor.into(), levels: levels.iter().map(ToString::to_string).collect() }
}

/// The finding that the strata of a design are not compared with each other; `None` if there is only one.
pub(super) fn separate_strata(all: &UsedRuns, strata: &[Stratum]) -> Option<Finding> {
    if strata.len() <= 1 {
        return None;
    }
    let names = strata.iter().map(|stratum| stratum.name.clone()).collect();
    let reason = Inconclusive::Separate(names);
    let finding = open_finding(&all.design.workload, reason, &all.used_runs());
    Some(Finding { magnitude: 0.0, ..finding })
}

/// The finding of factors with a single level in the usable runs, because all runs with other levels are excluded.
pub(super) fn invalid_levels(all: &Design, group: &UsedRuns) -> Option<Finding> {
    let used = group.design;
    if used.cells.is_empty() {
        return None;
    }
    let mut lost = Vec::new();
    let mut concerned: BTreeSet<usize> = BTreeSet::new();
    for (index, factor) in all.factors.iter().enumerate() {
        // Among the usable runs a factor may always change together with another one.
        let is_follower = used.factors.iter().any(|other| other.followers.contains(&factor.name));
        if is_follower || used.factor(&factor.name).is_some() {
            continue;
        }
        let mut cells = all.cells.iter();
        let Some(valid_cell) =
            cells.find(|cell| cell.runs.iter().any(|&run| !is_excluded(group.runs[run])))
        else {
            continue;
        };
        let mut levels: BTreeSet<&str> = BTreeSet::new();
        for cell in &all.cells {
            if cell.levels[index] != valid_cell.levels[index] {
                concerned.extend(&cell.runs);
                levels.insert(&factor.levels[cell.levels[index]]);
            }
        }
        levels.remove(UNSET);
        // Runs without the setting say nothing about its effect.
        if !levels.is_empty() {
            lost.push(named_levels(&factor.name, &levels));
        }
    }
    if lost.is_empty() {
        return None;
    }
    let mut runs: Vec<&Run> = concerned.into_iter().map(|run| group.runs[run]).collect();
    runs.sort_by(|a, b| a.path.cmp(&b.path));
    let factors = lost.iter().map(|named| named.factor.clone()).collect();
    let finding = open_finding(&used.workload, Inconclusive::OnlyInvalid(lost), &runs);
    Some(Finding { factors, magnitude: REASONS as f64 + 2.0, ..finding })
}

/// A response with its open points for one reason.
type OpenResponse<'j, 'a> = (&'j JudgedResponse<'a>, Vec<&'j OpenPoint>);

/// One finding per reason, over all responses of a workload.
pub(super) fn open_findings(workload: &str, judged: &[JudgedResponse]) -> Vec<Finding> {
    (0..REASONS).filter_map(|reason| finding_for_reason(workload, reason, judged)).collect()
}

fn finding_for_reason(workload: &str, reason: usize, judged: &[JudgedResponse]) -> Option<Finding> {
    let concerned: Vec<OpenResponse> = judged
        .iter()
        .map(|response| {
            let points = response.open.iter().filter(|point| point.reason() == reason);
            (response, points.collect::<Vec<_>>())
        })
        .filter(|(_, points)| !points.is_empty())
        .collect();
    let (first, points) = concerned.first()?;
    let inconclusive = match points[0] {
        OpenPoint::NoReplicates(_) => {
            let repeated_noise = judged.iter().find_map(|response| noise(response.matrix));
            Inconclusive::NoReplicates { questions: questions(&concerned), noise: repeated_noise }
        }
        OpenPoint::Noise { .. } => {
            Inconclusive::TooNoisy(concerned.iter().filter_map(hiding_noise).collect())
        }
        OpenPoint::Confounded(_) => Inconclusive::Confounded {
            questions: questions(&concerned),
            lacking: first.matrix.missing_baseline_cell(),
        },
        OpenPoint::Aliased(_) => Inconclusive::Aliased(questions(&concerned)),
        OpenPoint::TooManyLevels(_) => Inconclusive::TooManyLevels(questions(&concerned)),
        &OpenPoint::NotCrossed { missing, pairs } => Inconclusive::NotCrossed { missing, pairs },
    };
    let mut finding = open_finding(workload, inconclusive, &[]);
    let runs = concerned.iter().flat_map(|(response, _)| response.matrix.runs.iter().flatten());
    let paths: BTreeSet<_> = runs.map(|run| run.path.clone()).collect();
    finding.evidence = paths.into_iter().collect();
    finding.response = (concerned.len() == 1).then_some(first.matrix.response.id.name());
    finding.magnitude = (REASONS - reason) as f64;
    Some(finding)
}

/// The distinct questions, in the order in which they first occur.
fn questions(concerned: &[OpenResponse]) -> OpenQuestions {
    let mut questions: Vec<OpenQuestion> = Vec::new();
    let points = concerned.iter().flat_map(|(_, points)| points);
    for question in points.filter_map(|point| point.question()) {
        if !questions.contains(question) {
            questions.push(question.clone());
        }
    }
    let responses = concerned.iter().map(|(response, _)| response.matrix.response.id.name());
    OpenQuestions { questions, responses: responses.collect() }
}

/// The noise of a response, the factors whose effects it hides, and their widest effects. The number of runs is omitted if the largest cell
/// already has more runs.
fn hiding_noise(
    (response, points): &OpenResponse,
) -> Option<(Noise, Vec<String>, Vec<EffectSize>)> {
    let most = response.matrix.cells.iter().map(|cell| cell.values.len()).max()?;
    let estimated = noise(response.matrix)?;
    let runs = estimated.runs.filter(|&runs| most as u64 <= runs);
    let mut factors = Vec::new();
    let mut effects = Vec::new();
    for point in points {
        if let OpenPoint::Noise { factor, widest } = point {
            factors.push(factor.clone());
            effects.push(widest.clone());
        }
    }
    Some((Noise { runs, ..estimated }, factors, effects))
}

/// The noise of repeated runs, with the number of runs per cell that detects a relevant difference.
fn noise(matrix: &DesignMatrix) -> Option<Noise> {
    let noise = matrix.noise()?;
    let margin = matrix.margin();
    let (deviation, margin_on_scale) = match matrix.scale {
        ResponseScale::Logarithm => (100.0 * noise.exp_m1(), (margin / 100.0).ln_1p()),
        ResponseScale::Percent => (noise, margin),
    };
    let runs = if noise > 0.0 {
        runs_for_difference(margin_on_scale / noise, CONFIDENCE, POWER)
            .filter(|&runs| runs <= RUNS_MAX)
    } else {
        Some(2)
    };
    Some(Noise { response: matrix.response.id.name(), deviation, runs, margin })
}
