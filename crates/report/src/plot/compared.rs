//! What factors do, from runs that can be compared: those that share the levels of all other factors, or of a design that balances these.
//! Draws nothing.

use super::groups::{Block, Group, means_of, point};
use crate::draw::figure::{Content, Figure, Panel, Point, Range};
use feedrate_analysis::precision::CONFIDENCE;
use feedrate_measure::stats::{self, Difference};
use feedrate_results::response::{Response, Unit};
use std::collections::{BTreeMap, BTreeSet};

/// Groups that are compared.
pub(super) struct Compared<'b, 'a> {
    /// For each of the factors the levels that are compared.
    pub(super) levels: Vec<Vec<usize>>,
    /// By a level of each.
    pub(super) cells: BTreeMap<Vec<usize>, Vec<&'b Group<'a>>>,
}

type Cells<'b, 'a> = BTreeMap<Vec<usize>, &'b Group<'a>>;

impl<'b, 'a> Compared<'b, 'a> {
    /// Groups at all combinations of levels of `factors`, whose other factors are the same in each combination: because all of them are
    /// (the levels of the place where most were run), or because the whole design balances them. `None` where there are none.
    pub(super) fn of(block: &'b Block<'a>, factors: &[usize], response: &Response) -> Option<Self> {
        let has = |group: &&Group<'_>| {
            group.runs.iter().any(|run| run.responses.contains_key(response.id.name()))
        };
        let groups: Vec<&Group<'a>> = block.groups.iter().filter(has).collect();
        balanced(block, factors, &groups).or_else(|| shared(block, factors, &groups))
    }

    /// All groups.
    pub(super) fn all(&self) -> Vec<&'b Group<'a>> {
        self.cells.values().flatten().copied().collect()
    }
}

fn at(group: &Group<'_>, factors: &[usize]) -> Vec<usize> {
    factors.iter().map(|factor| group.levels[*factor]).collect()
}

/// All groups, where every combination has the levels of each other factor in the same proportion (Montgomery, Design and Analysis of
/// Experiments, ch. 8: an orthogonal fraction), so that their effects cancel.
fn balanced<'b, 'a>(
    block: &Block<'a>,
    factors: &[usize],
    groups: &[&'b Group<'a>],
) -> Option<Compared<'b, 'a>> {
    let mut cells: BTreeMap<Vec<usize>, Vec<&'b Group<'a>>> = BTreeMap::new();
    for group in groups {
        cells.entry(at(group, factors)).or_default().push(group);
    }
    let levels = grid(cells.keys())?;
    if cells.len() != levels.iter().map(Vec::len).product::<usize>() {
        return None;
    }
    let others = (0..block.factors.len()).filter(|factor| !factors.contains(factor));
    for other in others {
        for level in 0..block.factors[other].levels.len() {
            let count =
                |of: &[&Group<'_>]| of.iter().filter(|group| group.levels[other] == level).count();
            let all = count(groups);
            if cells.values().any(|cell| count(cell) * groups.len() != all * cell.len()) {
                return None;
            }
        }
    }
    Some(Compared { levels, cells })
}

/// Groups of every place, as given by the levels of all other factors, where all combinations were run that were run at the best of them.
fn shared<'b, 'a>(
    block: &Block<'a>,
    factors: &[usize],
    groups: &[&'b Group<'a>],
) -> Option<Compared<'b, 'a>> {
    let mut places: BTreeMap<Vec<usize>, Cells<'b, 'a>> = BTreeMap::new();
    for group in groups {
        let place = places.entry(block.context(group, factors)).or_default();
        place.insert(at(group, factors), group);
    }
    let best = places.values().filter_map(crossed);
    let levels = best.rev().max_by_key(|levels| levels.iter().map(Vec::len).product::<usize>())?;
    let mut cells: BTreeMap<Vec<usize>, Vec<&'b Group<'a>>> = BTreeMap::new();
    let wanted = |combination: &[usize]| {
        combination.iter().zip(&levels).all(|(level, known)| known.contains(level))
    };
    let whole: usize = levels.iter().map(Vec::len).product();
    for place in places.values() {
        let of: Vec<_> = place.iter().filter(|(combination, _)| wanted(combination)).collect();
        if of.len() == whole {
            for (combination, group) in of {
                cells.entry(combination.clone()).or_default().push(group);
            }
        }
    }
    Some(Compared { levels, cells })
}

/// How many cells that are left have a level, and all that had it.
type WithLevel<'c> = (usize, Vec<&'c Vec<usize>>);

/// Levels of each factor all of whose combinations are there; without those that were run with fewest others. At least two of each.
fn crossed(cells: &Cells<'_, '_>) -> Option<Vec<Vec<usize>>> {
    let mut left: BTreeSet<&Vec<usize>> = cells.keys().collect();
    let factors = left.first().map_or(0, |cell| cell.len());
    // By factor and level, the cells that have it: left ones are counted, and gone ones stay in the lists.
    let mut levels: Vec<BTreeMap<usize, WithLevel<'_>>> = vec![BTreeMap::new(); factors];
    for cell in &left {
        for (known, level) in levels.iter_mut().zip(*cell) {
            let (count, cells) = known.entry(*level).or_default();
            *count += 1;
            cells.push(cell);
        }
    }
    loop {
        if levels.is_empty() || levels.iter().any(|known| known.len() < 2) {
            return None;
        }
        if left.len() == levels.iter().map(BTreeMap::len).product::<usize>() {
            return Some(levels.iter().map(|known| known.keys().copied().collect()).collect());
        }
        // Of a factor of many levels one is missed least.
        let sparse = levels.iter().enumerate().flat_map(|(factor, known)| {
            known.iter().map(move |(level, (count, _))| (count * known.len(), factor, *level))
        });
        let (_, factor, level) = sparse.min()?;
        let (_, gone) = levels[factor].remove(&level)?;
        for cell in gone.into_iter().filter(|cell| left.remove(cell)) {
            for (known, level) in levels.iter_mut().zip(cell) {
                let Some((count, _)) = known.get_mut(level) else { continue };
                *count -= 1;
                if *count == 0 {
                    known.remove(level);
                }
            }
        }
    }
}

/// The levels of each factor; `None` where one has fewer than two.
fn grid<'c>(cells: impl Iterator<Item = &'c Vec<usize>>) -> Option<Vec<Vec<usize>>> {
    let mut levels: Vec<BTreeSet<usize>> = Vec::new();
    for cell in cells {
        levels.resize(cell.len(), BTreeSet::new());
        levels.iter_mut().zip(cell).for_each(|(known, level)| known.extend([*level]));
    }
    let is_varied = !levels.is_empty() && levels.iter().all(|known| known.len() > 1);
    is_varied.then(|| levels.into_iter().map(|known| known.into_iter().collect()).collect())
}

/// How replicates spread around the middle of their own experiment, pooled over all experiments (Montgomery, Design and Analysis of
/// Experiments, ch. 5.3: the mean square of error). On the scale of logarithms of what varies by factors.
pub(super) struct Pooled {
    variance: f64,
    freedom: f64,
    is_log: bool,
}

impl Pooled {
    /// Of a block; without degrees of freedom where nothing was repeated.
    pub(super) fn of(block: &Block<'_>, response: &Response) -> Self {
        let is_log = response.unit != Unit::Percent;
        let (mut squares, mut freedom) = (0.0, 0.0);
        for group in &block.groups {
            let values = scaled(group, response, is_log).unwrap_or_default();
            if let Some(stdev) = stats::stdev(&values) {
                let own = (values.len() - 1) as f64;
                squares += own * stdev * stdev;
                freedom += own;
            }
        }
        let variance = if freedom > 0.0 { squares / freedom } else { 0.0 };
        Pooled { variance, freedom, is_log }
    }

    /// The mean of the means of several experiments, each as heavy however often it was run, with the interval that replicates leave open.
    pub(super) fn point(
        &self,
        x: f64,
        groups: &[&Group<'_>],
        response: &Response,
        unit: f64,
    ) -> Option<Point> {
        let values: Option<Vec<Vec<f64>>> =
            groups.iter().map(|group| scaled(group, response, self.is_log)).collect();
        let Some(values) = values else {
            let runs: Vec<_> = groups.iter().flat_map(|group| group.runs.clone()).collect();
            let bare = point(x, &runs, response, unit)?;
            return Some(Point { low: None, high: None, ..bare });
        };
        let means: Vec<f64> = values.iter().filter_map(|values| stats::mean(values)).collect();
        let estimate = stats::mean(&means)?;
        let shares: f64 = values.iter().map(|values| 1.0 / values.len() as f64).sum();
        let standard_error = (self.variance * shares).sqrt() / means.len() as f64;
        let difference = Difference { estimate, standard_error, freedom: self.freedom };
        let interval = difference.interval(CONFIDENCE).filter(|_| self.freedom > 0.0);
        let back = |value: f64| if self.is_log { value.exp() / unit } else { value / unit };
        Some(Point {
            x,
            y: back(estimate),
            low: interval.map(|interval| back(interval.low)),
            high: interval.map(|interval| back(interval.high)),
            runs: Some(values.iter().map(Vec::len).sum()),
            folders: groups.iter().flat_map(|group| known(group, response)).collect(),
        })
    }
}

/// Folders of the runs that have a response.
fn known(group: &Group<'_>, response: &Response) -> Vec<String> {
    let runs = group.runs.iter().filter(|run| run.responses.contains_key(response.id.name()));
    runs.map(|run| run.path.clone()).collect()
}

/// Values of runs, or their logarithms; `None` where one has none.
fn scaled(group: &Group<'_>, response: &Response, is_log: bool) -> Option<Vec<f64>> {
    let values = group.runs.iter().filter_map(|run| run.responses.get(response.id.name()).copied());
    values
        .map(|value| if is_log { (value > 0.0).then(|| value.ln()) } else { Some(value) })
        .collect()
}

/// Effects are compared by their heights, so all panels have the same upright axis, which need not begin at 0.
pub(super) fn same_range(panels: &mut [Panel]) {
    let ends =
        |point: &Point| [point.y, point.low.unwrap_or(point.y), point.high.unwrap_or(point.y)];
    let all: Vec<f64> = panels.iter().flat_map(Panel::points).map(|point| point.y).collect();
    let least = all.iter().copied().fold(f64::INFINITY, f64::min);
    let most = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let beyond = if least < most { most - least } else { 0.1 * most.abs().max(1e-9) };
    let reach: Vec<f64> = panels.iter().flat_map(Panel::points).flat_map(ends).collect();
    let low = reach.iter().copied().fold(least, f64::min).max(least - beyond) - 0.08 * beyond;
    let high = reach.iter().copied().fold(most, f64::max).min(most + beyond) + 0.08 * beyond;
    for panel in panels {
        if let Content::Axes(axes) = &mut panel.content {
            axes.y.range = Range::AtLeast(low, high);
        }
    }
}

/// What the intervals of [`Pooled`] are, in the words of a caption.
pub(super) fn of_pooled(figure: &Figure, response: &Response) -> String {
    let means = means_of(response);
    match figure.panels.iter().flat_map(Panel::points).any(|point| point.low.is_some()) {
        true => {
            format!(
                "Marks are {means}; 95 % intervals are of the spread of replicates, pooled over all experiments."
            )
        }
        false => format!("Marks are {means}. Nothing was repeated, so there are no intervals."),
    }
}
