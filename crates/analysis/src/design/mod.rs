//! The design behind runs: the factors that they differ in, with levels and baseline, and the cells of runs that have the same levels. Tests nothing.

mod declared;
mod strata;
#[cfg(test)]
mod tests;

pub use declared::DeclaredFactors;
pub use strata::{HOST, Stratum};

use feedrate_results::run::{ROWS, Settings, factor};
use feedrate_results::setting::{by_number, number};
use std::collections::{BTreeMap, BTreeSet};

/// The level of a run that does not have the setting.
pub const UNSET: &str = "unset";

/// The factor that counts accelerators.
pub const PROCESSES: &str = "processes";

/// The setting that names where runs were found, where there are several such places. It stays a factor whatever changed with it.
pub const SOURCE: &str = "source";

/// The runs of one workload, laid out by what they were asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Design {
    /// Runs of different workloads are not compared.
    pub workload: String,
    /// By name.
    pub factors: Vec<Factor>,
    /// By their levels, those of the first factor first.
    pub cells: Vec<DesignCell>,
}

/// A setting that runs differ in.
#[derive(Clone, Debug, PartialEq)]
pub struct Factor {
    /// The name for sentences and figures: `read_threads`.
    pub name: String,
    /// The setting: `loader.workers`.
    pub key: String,
    /// Numbers ascend; others stand in the order of the CSV, else in that of the first run of each.
    pub levels: Vec<String>,
    /// The levels as numbers, where all are.
    pub numbers: Option<Vec<f64>>,
    /// The level that others are compared with.
    pub baseline: usize,
    /// Names of settings that always changed together with this one.
    pub followers: Vec<String>,
    /// Whether it stays a factor whatever changed with it: the study sets it itself, or it is [`SOURCE`].
    pub is_own: bool,
}

/// Factors that always change together in the runs that are kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Twins {
    /// They stay: neither can be told from the other.
    Apart,
    /// The later one follows the first, as in a design of these runs alone.
    Follow,
}

/// Runs with the same levels.
#[derive(Clone, Debug, PartialEq)]
pub struct DesignCell {
    /// The place of its level for each factor.
    pub levels: Vec<usize>,
    /// Places in the list that the design was made of.
    pub runs: Vec<usize>,
}

/// Lay out `runs`, in the order of their start, as one design a workload. `declared`: what their study's CSV says of factors.
pub fn designs(runs: &[&Settings], declared: &DeclaredFactors) -> Vec<Design> {
    let mut workloads: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, run) in runs.iter().enumerate() {
        workloads.entry(run.get("workload").map_or("", String::as_str)).or_default().push(at);
    }
    let designs = workloads.into_iter();
    designs.map(|(workload, members)| Design::new(workload, runs, &members, declared)).collect()
}

impl Design {
    fn new(
        workload: &str,
        runs: &[&Settings],
        members: &[usize],
        declared: &DeclaredFactors,
    ) -> Self {
        let mut factors: Vec<(Factor, Vec<usize>)> = Vec::new();
        // Levels in the order of their runs, by which twins are alike however their levels are sorted.
        let mut by_appearance: Vec<Vec<usize>> = Vec::new();
        for key in keys(runs, members, declared) {
            let (levels, of_runs) = levels_by_appearance(runs, members, key);
            if levels.len() < 2 {
                continue;
            }
            let name = factor(key);
            let twin = by_appearance.iter().position(|other| *other == of_runs);
            match twin {
                Some(twin) if !is_own(name, declared) => {
                    factors[twin].0.followers.push(name.into())
                }
                _ => {
                    by_appearance.push(of_runs.clone());
                    factors.push(Factor::new(key, levels, of_runs, declared));
                }
            }
        }
        factors.sort_by(|a, b| a.0.name.cmp(&b.0.name));
        let cells = cells(
            members
                .iter()
                .enumerate()
                .map(|(at, &run)| (factors.iter().map(|(_, of_runs)| of_runs[at]).collect(), run)),
        );
        let factors = factors.into_iter().map(|(factor, _)| factor).collect();
        let mut design = Design { workload: workload.into(), factors, cells };
        for at in 0..design.factors.len() {
            let known = declared.baseline(&design.factors[at]);
            design.factors[at].baseline = known.unwrap_or_else(|| design.commonest(at));
        }
        design
    }

    /// The level that most cells have; the first of several.
    fn commonest(&self, factor: usize) -> usize {
        let mut counts = vec![0; self.factors[factor].levels.len()];
        self.cells.iter().for_each(|cell| counts[cell.levels[factor]] += 1);
        let levels = (0..counts.len()).rev();
        levels.max_by_key(|&level| counts[level]).unwrap_or(0)
    }

    /// The place of a factor.
    pub fn factor(&self, name: &str) -> Option<usize> {
        self.factors.iter().position(|factor| factor.name == name)
    }

    /// The design of some of its runs and factors: levels that no run has are gone, and so are factors of one level.
    pub fn restricted(
        &self,
        has_factor: impl Fn(&Factor) -> bool,
        has_run: impl Fn(usize) -> bool,
    ) -> Design {
        self.selected(has_factor, has_run, Twins::Apart)
    }

    fn selected(
        &self,
        has_factor: impl Fn(&Factor) -> bool,
        has_run: impl Fn(usize) -> bool,
        twins: Twins,
    ) -> Design {
        let runs = self.cells.iter().flat_map(|cell| cell.runs.iter().map(move |&run| (cell, run)));
        let kept: Vec<(&DesignCell, usize)> = runs.filter(|&(_, run)| has_run(run)).collect();
        let mut places: Vec<(usize, Vec<usize>)> = Vec::new();
        let mut followers: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        let mut order: Vec<usize> =
            (0..self.factors.len()).filter(|&at| has_factor(&self.factors[at])).collect();
        order.sort_by_key(|&at| (!self.factors[at].is_own, row(&self.factors[at].key)));
        for at in order {
            let pairs = |other: usize| {
                kept.iter().map(move |(cell, _)| (cell.levels[at], cell.levels[other]))
            };
            let levels: BTreeSet<usize> = pairs(at).map(|(level, _)| level).collect();
            let is_twin = |of: &&(usize, Vec<usize>)| {
                of.1.len() == levels.len()
                    && pairs(of.0).collect::<BTreeSet<_>>().len() == levels.len()
            };
            match places.iter().find(is_twin) {
                _ if levels.len() < 2 => {}
                Some(twin) if twins == Twins::Follow && !self.factors[at].is_own => {
                    let of = followers.entry(twin.0).or_default();
                    of.push(self.factors[at].name.clone());
                    of.extend(self.factors[at].followers.clone());
                }
                _ => places.push((at, levels.into_iter().collect())),
            }
        }
        places.sort();
        let place = |cell: &DesignCell, (at, levels): &(usize, Vec<usize>)| {
            levels.iter().position(|&level| level == cell.levels[*at]).unwrap_or(0)
        };
        let cells =
            cells(kept.into_iter().map(|(cell, run)| {
                (places.iter().map(|factor| place(cell, factor)).collect(), run)
            }));
        let factors = places.iter().map(|(at, levels)| {
            let mut factor = self.factors[*at].with_levels(levels);
            factor.followers.extend(followers.remove(at).unwrap_or_default());
            factor
        });
        let (workload, factors) = (self.workload.clone(), factors.collect());
        let mut design = Design { workload, factors, cells };
        for (to, (from, levels)) in places.iter().enumerate() {
            let same = levels.iter().position(|&level| level == self.factors[*from].baseline);
            design.factors[to].baseline = same.unwrap_or_else(|| design.commonest(to));
        }
        design
    }

    /// Cells that share the levels of all factors but `free`: those of the baselines, where there are at least two, as findings compare them; else the set of most
    /// cells, then of most baselines, then of most runs.
    pub fn slice(&self, free: &[usize]) -> Vec<&DesignCell> {
        let mut slices: BTreeMap<Vec<usize>, Vec<&DesignCell>> = BTreeMap::new();
        for cell in &self.cells {
            slices.entry(self.held(cell, free)).or_default().push(cell);
        }
        let size = |(_, cells): &(Vec<usize>, Vec<&DesignCell>)| {
            let factors = self.factors.iter().zip(&cells[0].levels).enumerate();
            let held = factors.filter(|(at, _)| !free.contains(at));
            let is_common =
                |(_, (factor, level)): &(usize, (&Factor, &usize))| factor.baseline == **level;
            let common = held.clone().filter(is_common).count();
            let is_baseline = common == held.count() && 1 < cells.len();
            (
                is_baseline,
                cells.len(),
                common,
                cells.iter().map(|cell| cell.runs.len()).sum::<usize>(),
            )
        };
        // The last of equals is the greatest.
        let best = slices.into_iter().rev().max_by_key(size);
        best.map_or(Vec::new(), |(_, cells)| cells)
    }

    /// The levels of all factors but `free`.
    pub fn held(&self, cell: &DesignCell, free: &[usize]) -> Vec<usize> {
        let held = (0..cell.levels.len()).filter(|at| !free.contains(at));
        held.map(|at| cell.levels[at]).collect()
    }

    /// The factor whose level tells that of this one in every run: processes, or one of more levels.
    pub fn determined_by(&self, factor: usize) -> Option<usize> {
        let count = self.factors[factor].levels.len();
        (0..self.factors.len()).filter(|&other| other != factor).find(|&other| {
            let Factor { name, levels, .. } = &self.factors[other];
            let pairs = self.cells.iter().map(|cell| (cell.levels[other], cell.levels[factor]));
            (count < levels.len() || name == PROCESSES)
                && pairs.collect::<BTreeSet<_>>().len() == levels.len()
        })
    }

    /// The levels of a cell by the names of their factors.
    pub fn levels_of(&self, cell: &DesignCell) -> BTreeMap<String, String> {
        let named = self.factors.iter().zip(&cell.levels);
        named.map(|(factor, &level)| (factor.name.clone(), factor.levels[level].clone())).collect()
    }
}

impl Factor {
    /// `of_runs` names the level of each run, and comes back in the order of the levels.
    fn new(
        key: &str,
        levels: Vec<&str>,
        of_runs: Vec<usize>,
        declared: &DeclaredFactors,
    ) -> (Self, Vec<usize>) {
        let name = factor(key);
        let mut order: Vec<usize> = (0..levels.len()).collect();
        order.sort_by_key(|&at| declared.place(name, levels[at]));
        order.sort_by(|&a, &b| by_number(levels[a], levels[b]));
        let mut places = vec![0; order.len()];
        order.iter().enumerate().for_each(|(to, &from)| places[from] = to);
        let levels: Vec<String> = order.iter().map(|&at| levels[at].to_string()).collect();
        let factor = Factor {
            name: name.into(),
            key: key.into(),
            numbers: levels.iter().map(|level| number(level)).collect(),
            levels,
            baseline: 0,
            followers: Vec::new(),
            is_own: is_own(name, declared),
        };
        (factor, of_runs.into_iter().map(|level| places[level]).collect())
    }

    fn with_levels(&self, kept: &[usize]) -> Self {
        let levels: Vec<String> = kept.iter().map(|&level| self.levels[level].clone()).collect();
        Factor {
            numbers: levels.iter().map(|level| number(level)).collect(),
            levels,
            ..self.clone()
        }
    }

    /// The levels that are compared with the baseline.
    pub fn others(&self) -> impl Iterator<Item = usize> + Clone + use<> {
        let baseline = self.baseline;
        (0..self.levels.len()).filter(move |&level| level != baseline)
    }

    /// The level that others are compared with.
    pub fn baseline_level(&self) -> &str {
        &self.levels[self.baseline]
    }
}

fn is_own(name: &str, declared: &DeclaredFactors) -> bool {
    declared.has(name) || name == SOURCE
}

/// Cells of runs by their levels.
fn cells(runs: impl Iterator<Item = (Vec<usize>, usize)>) -> Vec<DesignCell> {
    let mut cells: BTreeMap<Vec<usize>, BTreeSet<usize>> = BTreeMap::new();
    for (levels, run) in runs {
        cells.entry(levels).or_default().insert(run);
    }
    let cells = cells.into_iter();
    cells.map(|(levels, runs)| DesignCell { levels, runs: runs.into_iter().collect() }).collect()
}

/// Settings of which the first of several that always change together is the factor: those of the CSV, those of [`ROWS`], all others.
fn keys<'a>(runs: &[&'a Settings], members: &[usize], declared: &DeclaredFactors) -> Vec<&'a str> {
    let all = members.iter().flat_map(|&run| runs[run].keys().map(String::as_str));
    let all: BTreeSet<&str> = all.filter(|key| *key != "workload").collect();
    let mut keys: Vec<&str> = all.into_iter().collect();
    keys.sort_by_key(|key| (!declared.has(factor(key)), row(key)));
    keys
}

/// The place of a setting among [`ROWS`]; all others are last.
fn row(key: &str) -> usize {
    ROWS.iter().position(|(_, plan, ..)| *plan == key).unwrap_or(ROWS.len())
}

/// The levels of a setting in the order of the first run of each, and that of each run.
fn levels_by_appearance<'a>(
    runs: &[&'a Settings],
    members: &[usize],
    key: &str,
) -> (Vec<&'a str>, Vec<usize>) {
    let mut levels: Vec<&str> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let mut of_runs = Vec::new();
    for &run in members {
        let level = runs[run].get(key).map_or(UNSET, String::as_str);
        of_runs.push(*places.entry(level).or_insert_with(|| {
            levels.push(level);
            levels.len() - 1
        }));
    }
    (levels, of_runs)
}
