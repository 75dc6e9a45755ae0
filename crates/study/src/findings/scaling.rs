//! How throughput grows with processes: share of linear growth, the law that fits, and growth that no law has.

use super::sheet::Sheet;
use super::words::{chance, digits, plain, quoted};
use super::{FigureUnit, Figures, Finding, Kind, MARGIN};
use crate::compare::ALPHA;
use crate::precision::CONFIDENCE;
use crate::response::Unit;
use feedrate_measure::stats::{
    Combination, Difference, Scaling, ScalingDoubt, universal_scalability,
};

/// Whether a factor counts processes.
pub(super) fn is_processes(name: &str) -> bool {
    ["processes", "accelerators", "num_accelerators"].contains(&name)
}

/// A number of processes whose throughput may be more than linear.
pub(super) struct Superlinear {
    level: usize,
    /// ln of the share of linear growth.
    over: Difference,
    pub(super) p: f64,
}

/// The factor that counts processes, on a sheet of a rate.
fn processes(sheet: &Sheet) -> Option<(usize, Vec<f64>)> {
    if !matches!(sheet.response.unit, Unit::SamplesPerSecond | Unit::BytesPerSecond) {
        return None;
    }
    let factor = sheet.factors.iter().position(|varied| is_processes(&varied.name))?;
    let numbers = sheet.factors[factor].numbers.clone()?;
    (1.0 <= numbers[0]).then_some((factor, numbers))
}

/// ln of the share of linear growth from the fewest processes to those of `level`.
fn over_linear(
    sheet: &Sheet,
    factor: usize,
    numbers: &[f64],
    level: usize,
) -> Option<(Combination, f64)> {
    let combination = sheet.difference(factor, 0, level)?.combination;
    let estimate = combination.estimate(&sheet.cells) - (numbers[level] / numbers[0]).ln();
    Some((combination, estimate))
}

/// A test of each number of processes against the fewest.
pub(super) fn superlinear(sheet: &Sheet) -> Vec<Superlinear> {
    let Some((factor, numbers)) = processes(sheet) else { return Vec::new() };
    let test = |level: usize| {
        let (combination, estimate) = over_linear(sheet, factor, &numbers, level)?;
        let over = Difference { estimate, ..combination.welch(&sheet.cells)? };
        Some(Superlinear { level, over, p: over.p()? })
    };
    (1..numbers.len()).filter_map(test).collect()
}

/// What is said of it: the worst excess, or the efficiency at most processes.
pub(super) fn scaling(sheet: &Sheet, tests: Vec<Superlinear>, number: usize) -> Option<Finding> {
    let (factor, numbers) = processes(sheet)?;
    let excess =
        tests.into_iter().filter(|one| one.p < ALPHA && MARGIN.ln_1p() < one.over.estimate);
    let excess = excess.max_by(|a, b| a.over.estimate.total_cmp(&b.over.estimate));
    match excess {
        Some(excess) => beyond_linear(sheet, factor, &excess, number),
        None => efficiency(sheet, factor, &numbers),
    }
}

fn figures(estimate: f64, of: Option<&Difference>, n: usize) -> Figures {
    let interval = of.and_then(|of| of.interval(CONFIDENCE));
    Figures {
        unit: FigureUnit::Efficiency,
        estimate: estimate.exp(),
        low: interval.map(|interval| interval.low.exp()),
        high: interval.map(|interval| interval.high.exp()),
        n,
        p: None,
        tests: None,
        share_percent: None,
    }
}

fn percent(of: &Figures) -> String {
    let in_percent = |share: f64| 100.0 * share;
    match of.low.zip(of.high) {
        None => format!("{:.0} %", in_percent(of.estimate)),
        Some((low, high)) => {
            let (low, high) = (in_percent(low), in_percent(high));
            let digits = digits(high - low);
            format!("{:.digits$} % [{low:.digits$} %, {high:.digits$} %]", in_percent(of.estimate))
        }
    }
}

fn runs(sheet: &Sheet, factor: usize, combination: &Combination, level: usize) -> usize {
    let of = |level| sheet.runs_of(combination, (factor, level));
    of(0).min(of(level))
}

fn beyond_linear(
    sheet: &Sheet,
    factor: usize,
    one: &Superlinear,
    number: usize,
) -> Option<Finding> {
    let varied = &sheet.factors[factor];
    let combination = sheet.difference(factor, 0, one.level)?.combination;
    let n = runs(sheet, factor, &combination, one.level);
    let of = Figures {
        p: Some(one.p),
        tests: Some(number),
        ..figures(one.over.estimate, Some(&one.over), n)
    };
    let sentence = format!(
        "{} grows more than linearly: at {} {} it is {} of what {} would grow to, n = {n} ({}); that is a cache \
         or a window until it is explained",
        sheet.response.title,
        varied.levels[one.level],
        quoted(&varied.name),
        percent(&of),
        varied.levels[0],
        chance(one.p, number)
    );
    let mut finding = sheet.finding(Kind::Superlinear, &[factor], sentence, combination.cells());
    finding.figures = Some(of);
    finding.magnitude = one.over.estimate;
    Some(finding)
}

fn efficiency(sheet: &Sheet, factor: usize, numbers: &[f64]) -> Option<Finding> {
    let varied = &sheet.factors[factor];
    let last = numbers.len() - 1;
    let (combination, estimate) = over_linear(sheet, factor, numbers, last)?;
    let difference = combination.welch(&sheet.cells).map(|of| Difference { estimate, ..of });
    let n = runs(sheet, factor, &combination, last);
    let of = figures(estimate, difference.as_ref(), n);
    let is_tested = difference.is_some();
    let mut sentence = format!(
        "{}{} at {} {} is {} of what {} would grow to linearly",
        if is_tested { "" } else { "not tested: " },
        sheet.response.title,
        varied.levels[last],
        quoted(&varied.name),
        percent(&of),
        varied.levels[0],
    );
    sentence.push_str(&if is_tested { format!(", n = {n}") } else { ", one run of each".into() });
    let point = |level: usize| {
        let over = if level == 0 { 0.0 } else { over_linear(sheet, factor, numbers, level)?.1 };
        Some((numbers[level], over.exp() * numbers[level] / numbers[0]))
    };
    let points: Option<Vec<(f64, f64)>> = (0..=last).map(point).collect();
    let law = points.and_then(|points| universal_scalability(&points));
    if let Some(law) = &law {
        sentence.push_str(&law_text(law));
    }
    let kind = if is_tested { Kind::Effect } else { Kind::NotTested };
    let mut finding = sheet.finding(kind, &[factor], sentence, combination.cells());
    finding.figures = Some(of);
    finding.supported = is_tested;
    finding.magnitude = sheet.magnitude(estimate);
    let is_told = |law: &Scaling, doubt: ScalingDoubt| {
        doubt != ScalingDoubt::PeakBeyondData || peak(law).is_some()
    };
    let doubts =
        law.iter().flat_map(|law| law.doubts.iter().copied().filter(|&doubt| is_told(law, doubt)));
    finding.doubts.extend(doubts.map(|doubt| doubt_text(doubt).to_string()));
    Some(finding)
}

fn law_text(law: &Scaling) -> String {
    let coefficient = |at: usize, value: f64| {
        let of = law.interval(at, CONFIDENCE);
        let ends = of.map_or(String::new(), |of| {
            format!(" [{} %, {} %]", plain(100.0 * of.low, 2), plain(100.0 * of.high, 2))
        });
        format!("{} %{ends}", plain(100.0 * value, 2))
    };
    let peak = peak(law).map_or(String::new(), |peak| format!(", most throughput at {peak:.0}"));
    format!(
        "; by the Universal Scalability Law contention is {} and coherence {}{peak} (R² = {:.3})",
        coefficient(1, law.contention),
        coefficient(2, law.coherence),
        law.r_squared
    )
}

/// Where it is told from growth without end: coherence is more than 0.
fn peak(law: &Scaling) -> Option<f64> {
    let is_coherent = law.interval(2, CONFIDENCE).is_some_and(|of| 0.0 < of.low);
    law.peak().filter(|_| is_coherent)
}

fn doubt_text(doubt: ScalingDoubt) -> &'static str {
    match doubt {
        ScalingDoubt::FewPoints => "the law is fitted to fewer than five points",
        ScalingDoubt::Superlinear => "some growth is more than linear, which the law does not have",
        ScalingDoubt::AtBound => "a coefficient of the law would fit best below 0",
        ScalingDoubt::PeakBeyondData => "the most throughput lies beyond what was measured",
    }
}
