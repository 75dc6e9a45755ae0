//! Factors that make no difference that matters, and levels beyond which more gains nothing: shown by tests of equivalence, never by a difference that was not found.

use super::levels::{LevelTest, Tests};
use super::sheet::Sheet;
use super::words::{digits, plain, quoted, range};
use super::{Figures, Finding, Kind};
use crate::compare::ALPHA;
use crate::precision::CONFIDENCE;
use feedrate_measure::stats::{Combination, Difference, equivalence_p, not_below_p};
use std::collections::BTreeMap;

/// Least and greatest difference that matters to nobody, on the scale of the sheet.
fn margin(sheet: &Sheet) -> (f64, f64) {
    let margin = sheet.margin();
    match sheet.is_log() {
        true => ((1.0 - margin).ln(), (1.0 + margin).ln()),
        false => (-margin, margin),
    }
}

/// One claim a factor, so each at the chance divided by their number (Bonferroni); and half of it on either side, so that the 95 % interval lies within the margin.
fn alpha(sheet: &Sheet) -> f64 {
    ALPHA / 2.0 / sheet.factors.len() as f64
}

/// Factors all of whose levels are the same as the base: one question of several parts (intersection-union, Berger, Technometrics 24, 1982).
pub(super) fn same(sheet: &Sheet, tests: &Tests) -> BTreeMap<usize, Finding> {
    let factors = 0..sheet.factors.len();
    factors
        .filter_map(|factor| Some((factor, no_effect(sheet, factor, &tests.of(factor))?)))
        .collect()
}

fn no_effect(sheet: &Sheet, factor: usize, own: &[&LevelTest]) -> Option<Finding> {
    let (low, high) = margin(sheet);
    let p = |one: &&LevelTest| equivalence_p(&one.difference?, low, high);
    let p = own.iter().map(p).collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)?;
    if p >= alpha(sheet) {
        return None;
    }
    let differences: Vec<Difference> = own.iter().filter_map(|one| one.difference).collect();
    let n = own.iter().map(|one| one.n(sheet)).min()?;
    let varied = &sheet.factors[factor];
    let what = format!("the others against {}", varied.base_level());
    let figures = Figures { p: Some(p), ..hull(sheet, what, &differences, n)? };
    let levels = match own {
        [one] => format!("{} is", varied.levels[one.level]),
        _ => "all levels are".into(),
    };
    let sentence = format!(
        "{} makes no difference to {} that matters: {levels} within {} of {} \
         (difference {}), n = {n}",
        quoted(&varied.name),
        sheet.response.title,
        sheet.margin_text(),
        varied.base_level(),
        range(figures.low?, figures.high?, figures.unit),
    );
    let cells: Vec<usize> = own.iter().flat_map(|one| one.cells()).collect();
    let mut finding = sheet.finding(Kind::NoEffect, &[factor], sentence, cells);
    finding.figures = vec![figures];
    Some(finding)
}

/// From the least to the greatest end of 95 % intervals.
fn hull(sheet: &Sheet, what: String, differences: &[Difference], n: usize) -> Option<Figures> {
    let intervals = differences.iter().map(|one| one.interval(CONFIDENCE));
    let intervals = intervals.collect::<Option<Vec<_>>>()?;
    let low = intervals.iter().map(|one| one.low).reduce(f64::min)?;
    let high = intervals.iter().map(|one| one.high).reduce(f64::max)?;
    let farthest = differences.iter().map(|one| one.estimate);
    let farthest = farthest.max_by(|a, b| a.abs().total_cmp(&b.abs()))?;
    let figures = sheet.figures(what, farthest, None, n);
    let (low, high) = (Some(sheet.shown(low)), Some(sheet.shown(high)));
    Some(Figures { low, high, confidence: Some(CONFIDENCE), ..figures })
}

/// The least level of a factor that is a number beyond which no other is better by what matters. Levels are tried from the greatest down until one is
/// not, so that nothing is tried twice (a fixed sequence, Maurer, Hothorn and Lehmacher 1995).
pub(super) fn no_gain(sheet: &Sheet, factor: usize, tests: &Tests) -> Option<Finding> {
    let varied = &sheet.factors[factor];
    varied.numbers.as_ref()?;
    let levels = sheet.comparable(factor);
    let last = levels.len() - 1;
    let mut found = None;
    for at in (0..last).rev() {
        match gains_nothing(sheet, factor, levels[at], &levels[at + 1..]) {
            Some(beyond) => found = Some((at, beyond)),
            None => break,
        }
    }
    let (at, beyond) = found.filter(|_| 2 <= last)?;
    let level = levels[at];
    // Of a factor that only makes things worse, that is what is told.
    if at == 0 && tests.of(factor).iter().any(|one| one.is_found()) {
        return None;
    }
    let differences: Vec<Difference> = beyond.iter().map(|one| one.1).collect();
    let n = beyond.iter().map(|(combination, _)| {
        let of = |level| sheet.runs_of(combination, (factor, level));
        levels[at..].iter().map(|&level| of(level)).filter(|&n| n > 0).min().unwrap_or(0)
    });
    let what = format!("above {} against it", varied.levels[level]);
    let figures = hull(sheet, what, &differences, n.min()?)?;
    let sentence = format!(
        "more than {} {}: {}, n = {}",
        varied.levels[level],
        quoted(&varied.name),
        gain_text(sheet, &figures)?,
        figures.n
    );
    let cells: Vec<usize> =
        beyond.iter().flat_map(|(combination, _)| combination.cells()).collect();
    let mut finding = sheet.finding(Kind::NoEffect, &[factor], sentence, cells);
    finding.figures = vec![figures];
    finding.magnitude = 1.0;
    Some(finding)
}

/// What there is instead of a gain that matters: a loss, a gain that is too small, or none that was measured.
fn gain_text(sheet: &Sheet, of: &Figures) -> Option<String> {
    let title = sheet.response.title;
    // As they change: both up, both down, or neither.
    let ends = [sheet.change(of.low?), sheet.change(of.high?)];
    let digits = digits(ends[1] - ends[0]);
    let [least, most] = if ends[1] < 0.0 { [ends[1], ends[0]] } else { ends };
    let [least, most] = [least, most].map(|end| plain(end.abs(), digits));
    let unit = if sheet.is_log() { "%" } else { "points" };
    let verb = if ends[1] < 0.0 { "falls" } else { "rises" };
    Some(match sheet.gain(ends[0]) {
        _ if ends[0] <= 0.0 && 0.0 <= ends[1] => {
            let range = range(of.low?, of.high?, of.unit);
            format!("no measurable gain of {title} (difference {range})")
        }
        gain if gain < 0.0 => format!("{title} {verb} by {least} to {most} {unit}"),
        _ => {
            let margin = sheet.margin_text();
            format!("{title} {verb} by at most {most} {unit}, less than what matters ({margin})")
        }
    })
}

/// All higher levels against this one, where none is better by what matters.
fn gains_nothing(
    sheet: &Sheet,
    factor: usize,
    level: usize,
    beyond: &[usize],
) -> Option<Vec<(Combination, Difference)>> {
    let gain_max = margin(sheet).1;
    let against = |&other: &usize| {
        let combination = sheet.difference(factor, level, other)?.combination;
        let difference = combination.welch(&sheet.cells)?;
        let loss = Difference { estimate: -sheet.gain(difference.estimate), ..difference };
        let p = not_below_p(&loss, -gain_max)?;
        (p < alpha(sheet)).then_some((combination, difference))
    };
    beyond.iter().map(against).collect()
}
