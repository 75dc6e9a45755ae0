//! Questions that the runs leave open, once a reason, and what would tell them.

use super::design_matrix::DesignMatrix;
use super::{JudgedResponse, UsedRuns, cannot_tell, is_invalid};
use crate::design::{Design, Stratum, UNSET};
use crate::estimate::ResponseScale;
use crate::finding::{
    EffectSize, Finding, Inconclusive, NamedLevels, Noise, OpenQuestion, OpenQuestions,
};
use crate::precision::{CONFIDENCE, POWER, RUNS_MAX};
use feedrate_measure::stats::samples_to_tell;
use feedrate_results::run::Run;
use std::collections::{BTreeMap, BTreeSet};

/// A question of one response that stays open.
pub(super) enum OpenPoint {
    /// One run of a cell.
    NoReplicates(OpenQuestion),
    /// The interval holds both nothing and what would matter.
    Noise { factor: String, widest: EffectSize },
    /// Another factor always changed with it.
    Confounded(OpenQuestion),
    /// A third factor always changed with these.
    Aliased(OpenQuestion),
    /// Not all combinations of two factors were run.
    NotCrossed { missing: usize, pairs: usize },
    /// More than is tested one by one.
    TooManyLevels(OpenQuestion),
}

/// Reasons that need the runs of all responses follow those that are told of a workload first.
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
            OpenPoint::NoReplicates(of)
            | OpenPoint::Confounded(of)
            | OpenPoint::Aliased(of)
            | OpenPoint::TooManyLevels(of) => Some(of),
            OpenPoint::Noise { .. } | OpenPoint::NotCrossed { .. } => None,
        }
    }
}

/// Factors that whoever made the runs does not act on: a difference between their levels is noise, and none says nothing.
pub(super) fn ignored(group: &UsedRuns) -> Option<Finding> {
    let mut levels: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut reasons: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (at, factor) in group.design.factors.iter().enumerate() {
        for cell in &group.design.cells {
            for run in &cell.runs {
                let Some(why) = group.runs[*run].ignores(&factor.name) else { continue };
                levels.entry(&factor.name).or_default().insert(&factor.levels[cell.levels[at]]);
                reasons.entry(&factor.name).or_default().insert(why);
            }
        }
    }
    levels.retain(|_, levels| 1 < levels.len());
    if levels.is_empty() {
        return None;
    }
    // Factors that are not acted on for the same reasons, with their levels.
    let mut of_reasons: BTreeMap<&BTreeSet<String>, Vec<NamedLevels>> = BTreeMap::new();
    for (factor, levels) in &levels {
        of_reasons.entry(&reasons[factor]).or_default().push(named(factor, levels));
    }
    let told = of_reasons.into_iter().map(|(why, of)| (of, why.iter().cloned().collect()));
    let mut of = group.used();
    of.retain(|run| levels.keys().any(|name| run.ignores(name).is_some()));
    let subject = Inconclusive::Ignored(told.collect());
    let mut finding = cannot_tell(&group.design.workload, subject, &of);
    finding.factors = levels.keys().map(ToString::to_string).collect();
    finding.magnitude = REASONS as f64 + 1.0;
    Some(finding)
}

fn named(factor: &str, levels: &BTreeSet<&str>) -> NamedLevels {
    NamedLevels { factor: factor.into(), levels: levels.iter().map(ToString::to_string).collect() }
}

/// Parts of a design that are not compared with each other.
pub(super) fn apart(all: &UsedRuns, strata: &[Stratum]) -> Option<Finding> {
    let names: Vec<String> = strata.iter().map(|one| one.name.clone()).collect();
    let subject = Inconclusive::Separate(names);
    let finding = cannot_tell(&all.design.workload, subject, &all.used());
    (1 < strata.len()).then_some(Finding { magnitude: 0.0, ..finding })
}

/// Factors that only runs which must not be used were made for: all others have one level of it.
pub(super) fn only_left_out(all: &Design, group: &UsedRuns) -> Option<Finding> {
    let used = group.design;
    let mut lost = Vec::new();
    let mut concerned: BTreeSet<usize> = BTreeSet::new();
    for (at, factor) in all.factors.iter().enumerate() {
        // What is left may always change together with another factor.
        let is_follower = used.factors.iter().any(|of| of.followers.contains(&factor.name));
        if used.cells.is_empty() || is_follower || used.factor(&factor.name).is_some() {
            continue;
        }
        let mut cells = all.cells.iter();
        let own = cells.find(|cell| cell.runs.iter().any(|&run| !is_invalid(group.runs[run])));
        let others = all
            .cells
            .iter()
            .filter(|cell| own.is_some_and(|own| own.levels[at] != cell.levels[at]));
        let mut levels: BTreeSet<&str> = BTreeSet::new();
        for cell in others {
            concerned.extend(&cell.runs);
            levels.insert(&factor.levels[cell.levels[at]]);
        }
        levels.remove(UNSET);
        lost.push(named(&factor.name, &levels));
    }
    if lost.is_empty() {
        return None;
    }
    let mut of: Vec<&Run> = concerned.into_iter().map(|run| group.runs[run]).collect();
    of.sort_by(|a, b| a.path.cmp(&b.path));
    let factors = lost.iter().map(|of| of.factor.clone()).collect();
    let subject = Inconclusive::OnlyInvalid(lost);
    let finding = cannot_tell(&used.workload, subject, &of);
    Some(Finding { factors, magnitude: REASONS as f64 + 2.0, ..finding })
}

/// Questions that stay open, over all responses of a workload.
pub(super) fn open(workload: &str, judged: &[JudgedResponse]) -> Vec<Finding> {
    (0..REASONS).filter_map(|reason| of_reason(workload, reason, judged)).collect()
}

fn of_reason(workload: &str, reason: usize, judged: &[JudgedResponse]) -> Option<Finding> {
    let concerned: Vec<(&JudgedResponse, Vec<&OpenPoint>)> = judged
        .iter()
        .map(|one| (one, one.open.iter().filter(|open| open.reason() == reason).collect()))
        .filter(|(_, own): &(&JudgedResponse, Vec<&OpenPoint>)| !own.is_empty())
        .collect();
    let (first, own) = concerned.first()?;
    let subject = match own[0] {
        OpenPoint::NoReplicates(_) => {
            let repeated = judged.iter().find_map(|one| noise(one.matrix));
            Inconclusive::NoReplicates { questions: questions(&concerned), noise: repeated }
        }
        OpenPoint::Noise { .. } => {
            Inconclusive::TooNoisy(concerned.iter().filter_map(too_noisy).collect())
        }
        OpenPoint::Confounded(_) => Inconclusive::Confounded {
            questions: questions(&concerned),
            lacking: first.matrix.lacking(),
        },
        OpenPoint::Aliased(_) => Inconclusive::Aliased(questions(&concerned)),
        OpenPoint::TooManyLevels(_) => Inconclusive::TooManyLevels(questions(&concerned)),
        &OpenPoint::NotCrossed { missing, pairs } => Inconclusive::NotCrossed { missing, pairs },
    };
    let mut finding = cannot_tell(workload, subject, &[]);
    let runs = concerned.iter().flat_map(|(one, _)| one.matrix.runs.iter().flatten());
    let paths: BTreeSet<_> = runs.map(|run| run.path.clone()).collect();
    finding.evidence = paths.into_iter().collect();
    finding.response = (concerned.len() == 1).then_some(first.matrix.response.id.name());
    finding.magnitude = (REASONS - reason) as f64;
    Some(finding)
}

/// Each question once, in the order of the first response that has it.
fn questions(concerned: &[(&JudgedResponse, Vec<&OpenPoint>)]) -> OpenQuestions {
    let mut questions: Vec<OpenQuestion> = Vec::new();
    for question in concerned.iter().flat_map(|(_, own)| own).filter_map(|open| open.question()) {
        if !questions.contains(question) {
            questions.push(question.clone());
        }
    }
    let responses = concerned.iter().map(|(one, _)| one.matrix.response.id.name()).collect();
    OpenQuestions { questions, responses }
}

/// A response, the factors that noise hides, and how many runs would tell them: more than there are, else none.
fn too_noisy(
    (one, own): &(&JudgedResponse, Vec<&OpenPoint>),
) -> Option<(Noise, Vec<String>, Vec<EffectSize>)> {
    let most = one.matrix.cells.iter().map(|cell| cell.values.len()).max()?;
    let known = noise(one.matrix)?;
    let noise = Noise { runs: known.runs.filter(|&runs| most as u64 <= runs), ..known };
    let (mut factors, mut effects) = (Vec::new(), Vec::new());
    for open in own {
        if let OpenPoint::Noise { factor, widest } = open {
            factors.push(factor.clone());
            effects.push(widest.clone());
        }
    }
    Some((noise, factors, effects))
}

/// The noise of repeated runs, and runs of each cell to find a difference that matters.
fn noise(matrix: &DesignMatrix) -> Option<Noise> {
    let noise = matrix.noise()?;
    let margin = matrix.margin();
    let (deviation, least) = match matrix.scale {
        ResponseScale::Logarithm => (100.0 * noise.exp_m1(), (margin / 100.0).ln_1p()),
        ResponseScale::Percent => (noise, margin),
    };
    let runs =
        if noise > 0.0 { samples_to_tell(least / noise, CONFIDENCE, POWER) } else { Some(2) };
    let runs = runs.filter(|&runs| runs <= RUNS_MAX);
    Some(Noise { response: matrix.response.id.name(), deviation, runs, margin })
}
