//! How throughput grows with processes: the share of linear growth, and growth that is more than linear.

use super::sheet::Sheet;
use super::words::{chance, digits, quoted};
use super::{FigureUnit, Figures, Finding, Kind, MARGIN};
use crate::compare::ALPHA;
use crate::precision::CONFIDENCE;
use feedrate_measure::stats::{Combination, Difference, Interval};
use feedrate_results::response::Unit;

/// Whether a factor counts processes.
pub(super) fn is_processes(name: &str) -> bool {
    name == "processes"
}

/// A number of processes whose throughput may be more than linear.
pub(super) struct Superlinear {
    level: usize,
    /// ln of the share of linear growth.
    over: Difference,
    pub(super) p: f64,
}

/// The factor that counts processes, on a sheet of a rate.
pub(super) struct Processes {
    pub(super) factor: usize,
    /// Levels that can be compared, ascending; at least two.
    pub(super) levels: Vec<usize>,
    numbers: Vec<f64>,
}

impl Processes {
    /// `None` where there is none, or nothing can be compared.
    pub(super) fn of(sheet: &Sheet) -> Option<Self> {
        if !matches!(sheet.response.unit, Unit::SamplesPerSecond | Unit::BytesPerSecond) {
            return None;
        }
        let factor = sheet.factors.iter().position(|varied| is_processes(&varied.name))?;
        let numbers = sheet.factors[factor].numbers.clone()?;
        let levels = sheet.comparable(factor);
        (1.0 <= numbers[0] && 2 <= levels.len()).then_some(Processes { factor, levels, numbers })
    }

    fn first(&self) -> usize {
        self.levels[0]
    }

    /// How many processes a level is.
    pub(super) fn number(&self, level: usize) -> f64 {
        self.numbers[level]
    }

    /// ln of the share of linear growth from the fewest processes to those of `level`.
    pub(super) fn over_linear(&self, sheet: &Sheet, level: usize) -> Option<(Combination, f64)> {
        let combination = sheet.difference(self.factor, self.first(), level)?.combination;
        let linear = self.numbers[level] / self.numbers[self.first()];
        let estimate = combination.estimate(&sheet.cells) - linear.ln();
        Some((combination, estimate))
    }

    fn runs(&self, sheet: &Sheet, combination: &Combination, level: usize) -> usize {
        let of = |level| sheet.runs_of(combination, (self.factor, level));
        of(self.first()).min(of(level))
    }

    fn figures(
        &self,
        sheet: &Sheet,
        level: usize,
        estimate: f64,
        of: Option<&Difference>,
        n: usize,
    ) -> Figures {
        let varied = &sheet.factors[self.factor];
        let what = format!("{} against {}", varied.levels[level], varied.levels[self.first()]);
        let interval = of.and_then(|of| of.interval(CONFIDENCE)).map(Interval::exp);
        Figures::new(what, FigureUnit::Efficiency, estimate.exp(), interval, n)
    }
}

/// A test of each number of processes against the fewest.
pub(super) fn superlinear(sheet: &Sheet) -> Vec<Superlinear> {
    let Some(processes) = Processes::of(sheet) else { return Vec::new() };
    let test = |&level: &usize| {
        let (combination, estimate) = processes.over_linear(sheet, level)?;
        let over = Difference { estimate, ..combination.welch(&sheet.cells)? };
        Some(Superlinear { level, over, p: over.p()? })
    };
    processes.levels[1..].iter().filter_map(test).collect()
}

/// What is said of it: the worst excess, or the efficiency at most processes.
pub(super) fn scaling(sheet: &Sheet, tests: Vec<Superlinear>, number: usize) -> Option<Finding> {
    let processes = Processes::of(sheet)?;
    let excess =
        tests.into_iter().filter(|one| one.p < ALPHA && MARGIN.ln_1p() < one.over.estimate);
    let excess = excess.max_by(|a, b| a.over.estimate.total_cmp(&b.over.estimate));
    match excess {
        Some(excess) => beyond_linear(sheet, &processes, &excess, number),
        None => efficiency(sheet, &processes),
    }
}

fn percent(of: &Figures) -> String {
    let in_percent = |share: f64| 100.0 * share;
    match of.low.zip(of.high) {
        None => format!("{:.0} %", in_percent(of.value)),
        Some((low, high)) => {
            let (low, high) = (in_percent(low), in_percent(high));
            let digits = digits(high - low);
            format!("{:.digits$} % [{low:.digits$} %, {high:.digits$} %]", in_percent(of.value))
        }
    }
}

fn beyond_linear(
    sheet: &Sheet,
    processes: &Processes,
    one: &Superlinear,
    number: usize,
) -> Option<Finding> {
    let varied = &sheet.factors[processes.factor];
    let (combination, _) = processes.over_linear(sheet, one.level)?;
    let n = processes.runs(sheet, &combination, one.level);
    let of = Figures {
        p: Some(one.p),
        tests: Some(number),
        ..processes.figures(sheet, one.level, one.over.estimate, Some(&one.over), n)
    };
    let sentence = format!(
        "{} grows more than linearly: at {} {} it is {} of what {} would grow to, n = {n} ({}); that is a cache \
         or a window until it is explained",
        sheet.response.title,
        varied.levels[one.level],
        quoted(&varied.name),
        percent(&of),
        varied.levels[processes.first()],
        chance(one.p, number)
    );
    let factors = [processes.factor];
    let mut finding = sheet.finding(Kind::Superlinear, &factors, sentence, combination.cells());
    finding.figures = vec![of];
    finding.magnitude = one.over.estimate;
    Some(finding)
}

fn efficiency(sheet: &Sheet, processes: &Processes) -> Option<Finding> {
    let varied = &sheet.factors[processes.factor];
    let last = *processes.levels.last()?;
    let (combination, estimate) = processes.over_linear(sheet, last)?;
    let difference = combination.welch(&sheet.cells).map(|of| Difference { estimate, ..of });
    let n = processes.runs(sheet, &combination, last);
    let of = processes.figures(sheet, last, estimate, difference.as_ref(), n);
    let is_tested = difference.is_some();
    let sentence = format!(
        "{}{} at {} {} is {} of what {} would grow to linearly{}",
        if is_tested { "" } else { "not tested: " },
        sheet.response.title,
        varied.levels[last],
        quoted(&varied.name),
        percent(&of),
        varied.levels[processes.first()],
        if is_tested { format!(", n = {n}") } else { ", one run of each".into() }
    );
    let kind = if is_tested { Kind::Scaling } else { Kind::NotTested };
    let mut finding = sheet.finding(kind, &[processes.factor], sentence, combination.cells());
    finding.figures = vec![of];
    finding.supported = is_tested;
    finding.magnitude = sheet.magnitude(estimate);
    Some(finding)
}
