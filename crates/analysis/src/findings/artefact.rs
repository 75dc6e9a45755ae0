//! Where windowed utilisation and the whole epoch contradict each other: what the excluded first step made, or hides.

use super::scaling::is_processes;
use super::sheet::{Varied, varied};
use super::trust::about;
use super::words::{list, quoted};
use super::{FigureUnit, Figures, Finding, Kind, Observation};
use crate::compare::ALPHA;
use feedrate_measure::stats::{mean, welch_difference};
use std::collections::BTreeMap;

/// Windowed utilisation that moves by less, in points, is let be.
const MOVED_MIN: f64 = 1.0;
/// The same without replicates: noise does not move it so far.
const MOVED_MIN_UNTESTED: f64 = 5.0;
/// Utilisation over all steps that moves by less, in points, is not missed.
const HIDDEN_MIN: f64 = 5.0;
/// Of a change of the one figure, the other has at least this share; otherwise the window made it, or hides it.
const SHARE_MIN: f64 = 1.0 / 3.0;

/// Steps from one level of a factor to the next, all else the same, in which one of the two changes and the other does not.
///
/// Both are of the same runs: that they disagree in these takes no replicates.
pub(super) fn artefacts(workload: &str, used: &[&Observation]) -> Vec<Finding> {
    let factors = varied(used);
    let mut steps = Vec::new();
    for (at, factor) in factors.iter().enumerate().filter(|(_, factor)| factor.numbers.is_some()) {
        let path: Vec<(usize, Vec<&Observation>)> = path(used, &factors, at).into_iter().collect();
        steps.extend(path.windows(2).filter_map(|step| Step::of(factor, &step[0], &step[1])));
    }
    let number = steps.len();
    steps.iter().filter_map(|step| Some(step.finding(workload, step.seen(number)?))).collect()
}

/// Runs by their level of a factor.
type Path<'a> = BTreeMap<usize, Vec<&'a Observation>>;

/// Runs that differ in one factor only: of all such sets the one of most levels, then of most of the levels that other factors commonly have, then of most runs.
fn path<'a>(used: &[&'a Observation], factors: &[Varied], at: usize) -> Path<'a> {
    let mut paths: BTreeMap<Vec<usize>, Path> = BTreeMap::new();
    for &run in used {
        let others = (0..factors.len()).filter(|&other| other != at);
        let held = others.map(|other| factors[other].level_of(run)).collect();
        let path = paths.entry(held).or_default();
        path.entry(factors[at].level_of(run)).or_default().push(run);
    }
    let size = |(held, path): &(Vec<usize>, Path)| {
        let others = factors.iter().enumerate().filter(|(other, _)| *other != at);
        let common = others.zip(held).filter(|((_, of), level)| of.base == **level).count();
        (path.len(), common, path.values().map(Vec::len).sum::<usize>())
    };
    paths.into_iter().max_by_key(size).map(|(_, path)| path).unwrap_or_default()
}

/// From one level to the next.
struct Step<'a> {
    factor: &'a Varied,
    levels: (usize, usize),
    sides: [Side<'a>; 2],
    /// Growth of throughput if utilisation stayed the same, where that is known.
    linear: Option<f64>,
}

/// What the runs of a level say by the window and as a whole.
struct Side<'a> {
    runs: Vec<&'a Observation>,
    windowed: f64,
    /// Utilisation over all steps.
    whole: Option<f64>,
    /// Over whole epochs.
    rate: Option<f64>,
}

/// How window and whole disagree.
#[derive(Clone, Copy)]
enum Seen {
    Made,
    Hidden,
}

const RATES: [&str; 3] =
    ["samples_per_second", "delivered_bytes_per_second", "nominal_bytes_per_second"];

impl<'a> Side<'a> {
    fn of(runs: &[&'a Observation]) -> Option<Self> {
        let middle = |name: &str| {
            let values: Option<Vec<f64>> =
                runs.iter().map(|run| run.responses.get(name).copied()).collect();
            mean(&values?).filter(|mean| *mean > 0.0)
        };
        Some(Side {
            runs: runs.to_vec(),
            windowed: middle("au_windowed_percent")?,
            whole: middle("au_all_steps_percent"),
            rate: RATES.iter().find_map(|name| middle(name)),
        })
    }

    /// ln of window ÷ whole, or ÷ throughput, of each run.
    fn gaps(&self) -> Vec<f64> {
        let gap = |run: &&Observation| {
            let known = |name: &str| run.responses.get(name).copied().filter(|value| *value > 0.0);
            let whole = match self.whole {
                Some(_) => known("au_all_steps_percent"),
                None => RATES.iter().find_map(|name| known(name)),
            };
            Some((known("au_windowed_percent")? / whole?).ln())
        };
        self.runs.iter().filter_map(gap).collect()
    }
}

impl<'a> Step<'a> {
    fn of(
        factor: &'a Varied,
        (from, of_from): &(usize, Vec<&'a Observation>),
        (to, of_to): &(usize, Vec<&'a Observation>),
    ) -> Option<Self> {
        let numbers = factor.numbers.as_ref()?;
        let linear = is_processes(&factor.name).then(|| numbers[*to] / numbers[*from]);
        let sides = [Side::of(of_from)?, Side::of(of_to)?];
        Some(Step { factor, levels: (*from, *to), sides, linear })
    }

    /// In points.
    fn moved(&self) -> f64 {
        self.sides[1].windowed - self.sides[0].windowed
    }

    fn whole(&self) -> Option<(f64, f64)> {
        self.sides[0].whole.zip(self.sides[1].whole)
    }

    fn rate(&self) -> Option<f64> {
        self.sides[0].rate.zip(self.sides[1].rate).map(|(a, b)| b / a)
    }

    /// ln of the change of utilisation over the whole epoch. Throughput a process stands for it where it is not known.
    fn change(&self) -> Option<f64> {
        let by_rate = || Some(self.rate()? / self.linear?);
        Some(self.whole().map(|(a, b)| b / a).or_else(by_rate)?.ln())
    }

    /// `number` steps are looked at; with replicates each is tested at the chance divided by it (Bonferroni).
    fn seen(&self, number: usize) -> Option<Seen> {
        let whole = self.change()?;
        let windowed = (self.sides[1].windowed / self.sides[0].windowed).ln();
        let (large, small) = (whole.abs().max(windowed.abs()), whole.abs().min(windowed.abs()));
        if whole * windowed > 0.0 && SHARE_MIN * large <= small {
            return None;
        }
        let tested = welch_difference(&self.sides[0].gaps(), &self.sides[1].gaps());
        let moved_min = match tested.and_then(|gap| gap.p()) {
            Some(p) if p < ALPHA / number as f64 => MOVED_MIN,
            Some(_) => return None,
            None => MOVED_MIN_UNTESTED,
        };
        let is_larger = whole * windowed < 0.0 || whole.abs() < windowed.abs();
        let is_hidden = self.whole().is_some_and(|(a, b)| HIDDEN_MIN < (b - a).abs());
        match moved_min < self.moved().abs() && is_larger {
            true => Some(Seen::Made),
            false => is_hidden.then_some(Seen::Hidden),
        }
    }

    fn sentence(&self, seen: Seen) -> String {
        let [a, b] = &self.sides;
        let levels = &self.factor.levels;
        let step = format!(
            "from {} to {} {}",
            levels[self.levels.0],
            levels[self.levels.1],
            quoted(&self.factor.name)
        );
        let by_window = format!("{:.1} % to {:.1} %", a.windowed, b.windowed);
        let word = |change: f64| if change < 0.0 { "drop" } else { "rise" };
        let mut against = Vec::new();
        if let Some(rate) = self.rate() {
            let percent = 100.0 * (rate - 1.0);
            let verb = if percent < 0.0 { "falls" } else { "rises" };
            let linear = self.linear.map_or(String::new(), |linear| {
                format!(" ({:.0} % would be linear)", 100.0 * (linear - 1.0))
            });
            against
                .push(format!("whole-epoch throughput {verb} by {:.0} %{linear}", percent.abs()));
        }
        if let Some((a, b)) = self.whole() {
            against.push(format!("utilisation over all steps goes from {a:.1} % to {b:.1} %"));
        }
        let against = list(&against);
        match seen {
            Seen::Made => format!(
                "the {} {step} in windowed utilisation ({by_window}) is an artefact of the excluded first step: \
                 {against}",
                word(self.moved())
            ),
            Seen::Hidden => format!(
                "the {} {step} in utilisation is hidden by the excluded first step (windowed, {by_window}): \
                 {against}",
                word(self.change().unwrap_or(0.0))
            ),
        }
    }

    fn finding(&self, workload: &str, seen: Seen) -> Finding {
        let runs: Vec<&Observation> =
            self.sides.iter().flat_map(|side| side.runs.iter().copied()).collect();
        let mut finding = about(Kind::Artefact, workload, self.sentence(seen), &runs);
        finding.response = Some("au_windowed_percent");
        finding.factors = vec![self.factor.name.clone()];
        finding.magnitude = self.moved().abs() / 100.0;
        let n = self.sides[0].runs.len().min(self.sides[1].runs.len());
        let levels = [self.levels.1, self.levels.0].map(|at| self.factor.levels[at].as_str());
        let figure = |name: &str, unit, value| {
            Figures::new(format!("{name}, {}", levels.join(" against ")), unit, value, None, n)
        };
        let windowed = figure("windowed utilisation", FigureUnit::Points, self.moved());
        let whole = self.whole().map(|(a, b)| b - a);
        let whole =
            whole.map(|moved| figure("utilisation over all steps", FigureUnit::Points, moved));
        let rate =
            self.rate().map(|rate| figure("whole-epoch throughput", FigureUnit::Ratio, rate));
        finding.figures = [Some(windowed), whole, rate].into_iter().flatten().collect();
        if n == 1 {
            finding.doubts.push("one run of a level".into());
        }
        finding
    }
}
