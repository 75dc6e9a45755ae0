//! The design of a set of runs: the factors in which they differ, with levels and baseline, and the cells of runs with equal levels.

mod declared;
mod strata;
#[cfg(test)]
mod tests;

pub use declared::{DeclaredFactors, factor_name};
pub use strata::{HOST, Stratum};

use feedrate_results::run::{IMPLIED, ROWS, Run, Settings, factor};
use feedrate_results::setting::{compare_levels, parse_number};
use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

/// The level of a run that does not have the setting.
pub const UNSET: &str = "unset";

/// The factor that counts accelerators.
pub const PROCESSES: &str = "processes";

/// The setting that names the source of runs, if there are several. It is always a factor, even if other settings changed together
/// with it.
pub const SOURCE: &str = "source";

/// The runs of one workload, arranged by their settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Design {
    /// The workload. Runs of different workloads are not compared.
    pub workload: String,
    /// Factors sorted by name.
    pub factors: Vec<Factor>,
    /// Cells sorted by their levels; the first factor varies slowest.
    pub cells: Vec<DesignCell>,
}

/// A setting in which runs differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Factor {
    /// The name for sentences and figures: `read_threads`.
    pub name: String,
    /// The setting: `loader.workers`.
    pub key: String,
    /// Levels. Numbers ascend; others are in the order of the CSV, or in the order of their first runs.
    pub levels: Vec<String>,
    /// The levels as numbers, if all are numbers.
    pub numbers: Option<Vec<f64>>,
    /// Index of the level with which the other levels are compared.
    pub baseline: usize,
    /// Names of settings that always changed together with this one.
    pub followers: Vec<String>,
    /// Whether this stays a factor even if other settings changed together with it. This holds for [`SOURCE`] and for factors that the study
    /// declares.
    pub is_independent: bool,
}

/// The treatment of aliased factors, which always change together in the selected runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AliasedFactors {
    /// Both stay factors, although their effects cannot be separated.
    Separate,
    /// The later factor becomes a follower of the first, as in a design of only these runs.
    Merged,
}

/// Runs with the same levels.
#[derive(Clone, Debug, PartialEq)]
pub struct DesignCell {
    /// Index of the level of each factor.
    pub levels: Vec<usize>,
    /// Indexes of the runs in the list from which the design was made.
    pub runs: Vec<usize>,
}

/// Makes one design per workload from the settings of `runs`, which are in the order of their start. `declared` are the factors that
/// the CSV of their study declares.
pub fn designs(runs: &[&Settings], declared: &DeclaredFactors) -> Vec<Design> {
    let mut workloads: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, run) in runs.iter().enumerate() {
        workloads.entry(run.get("workload").map_or("", String::as_str)).or_default().push(index);
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
        // The level of each run, numbered by first appearance. Aliased factors have equal numbers, regardless of the order of their levels.
        let mut appearances: Vec<Vec<usize>> = Vec::new();
        let candidates = candidate_keys(runs, members, declared);
        for key in candidates.iter().copied() {
            let (levels, run_levels) = with_inapplicable_levels(runs, members, key, &candidates);
            let is_implied =
                IMPLIED.iter().filter(|(implied, _)| *implied == key).any(|(_, by)| {
                    let mut varied = factors.iter().filter(|(factor, _)| factor.key == *by);
                    varied.any(|(factor, determining)| {
                        let pairs: BTreeSet<_> = determining.iter().zip(&run_levels).collect();
                        pairs.len() == factor.levels.len()
                    })
                });
            if levels.len() < 2 || is_implied {
                continue;
            }
            let name = factor(key);
            let aliased = appearances.iter().position(|other| *other == run_levels);
            match aliased {
                // A setting that only one level of its section's factor has is a part of that factor.
                Some(aliased) if !is_independent(name, declared) => {
                    let factor = &mut factors[aliased].0;
                    if !(levels.contains(&UNSET) && section(key) == section(&factor.key)) {
                        factor.followers.push(name.into());
                    }
                }
                _ => {
                    appearances.push(run_levels.clone());
                    factors.push(Factor::new(key, levels, run_levels, declared));
                }
            }
        }
        factors.sort_by(|a, b| a.0.name.cmp(&b.0.name));
        let cells = group_into_cells(members.iter().enumerate().map(|(index, &run)| {
            let levels = factors.iter().map(|(_, run_levels)| run_levels[index]).collect();
            (levels, run)
        }));
        let factors = factors.into_iter().map(|(factor, _)| factor).collect();
        let mut design = Design { workload: workload.into(), factors, cells };
        for index in 0..design.factors.len() {
            let declared_baseline = declared.baseline(&design.factors[index]);
            design.factors[index].baseline =
                declared_baseline.unwrap_or_else(|| design.most_common_level(index));
        }
        design
    }

    /// The level of most cells; of equally common levels the first.
    fn most_common_level(&self, factor: usize) -> usize {
        let mut counts = vec![0; self.factors[factor].levels.len()];
        self.cells.iter().for_each(|cell| counts[cell.levels[factor]] += 1);
        let levels = (0..counts.len()).rev();
        levels.max_by_key(|&level| counts[level]).unwrap_or(0)
    }

    /// The index of a factor.
    pub fn factor(&self, name: &str) -> Option<usize> {
        self.factors.iter().position(|factor| factor.name == name)
    }

    /// Restricts the design to some of its runs and factors. Levels without runs, and factors with one level, are removed.
    pub fn restrict(
        &self,
        has_factor: impl Fn(&Factor) -> bool,
        has_run: impl Fn(usize) -> bool,
    ) -> Design {
        self.select(has_factor, has_run, AliasedFactors::Separate)
    }

    /// Restricts the design to some of its runs, without the factors that all these runs ignore. Runs that differ only in ignored factors
    /// become replicates.
    pub fn effective<R: Borrow<Run>>(&self, runs: &[R], has_run: impl Fn(usize) -> bool) -> Design {
        let all = self.cells.iter().flat_map(|cell| cell.runs.iter().copied());
        let included: Vec<&Run> =
            all.filter(|&run| has_run(run)).map(|run| runs[run].borrow()).collect();
        let is_used =
            |factor: &Factor| included.iter().any(|run| run.ignored_reason(&factor.name).is_none());
        self.restrict(is_used, has_run)
    }

    fn select(
        &self,
        has_factor: impl Fn(&Factor) -> bool,
        has_run: impl Fn(usize) -> bool,
        aliased_factors: AliasedFactors,
    ) -> Design {
        let runs = self.cells.iter().flat_map(|cell| cell.runs.iter().map(move |&run| (cell, run)));
        let kept_runs: Vec<(&DesignCell, usize)> = runs.filter(|&(_, run)| has_run(run)).collect();
        // The kept factors with their kept levels.
        let mut kept: Vec<(usize, Vec<usize>)> = Vec::new();
        let mut followers: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        let mut candidates: Vec<usize> =
            (0..self.factors.len()).filter(|&index| has_factor(&self.factors[index])).collect();
        candidates.sort_by_key(|&index| {
            (!self.factors[index].is_independent, table_position(&self.factors[index].key))
        });
        for index in candidates {
            let level_pairs = |other: usize| {
                kept_runs.iter().map(move |(cell, _)| (cell.levels[index], cell.levels[other]))
            };
            let levels: BTreeSet<usize> = level_pairs(index).map(|(level, _)| level).collect();
            let is_aliased = |(other, other_levels): &&(usize, Vec<usize>)| {
                other_levels.len() == levels.len()
                    && level_pairs(*other).collect::<BTreeSet<_>>().len() == levels.len()
            };
            match kept.iter().find(is_aliased) {
                _ if levels.len() < 2 => {}
                Some((aliased, _))
                    if aliased_factors == AliasedFactors::Merged
                        && !self.factors[index].is_independent =>
                {
                    let merged_followers = followers.entry(*aliased).or_default();
                    merged_followers.push(self.factors[index].name.clone());
                    merged_followers.extend(self.factors[index].followers.clone());
                }
                _ => kept.push((index, levels.into_iter().collect())),
            }
        }
        kept.sort();
        let new_level = |cell: &DesignCell, (index, levels): &(usize, Vec<usize>)| {
            levels.iter().position(|&level| level == cell.levels[*index]).unwrap_or(0)
        };
        let cells =
            group_into_cells(kept_runs.into_iter().map(|(cell, run)| {
                (kept.iter().map(|factor| new_level(cell, factor)).collect(), run)
            }));
        let factors = kept.iter().map(|(index, levels)| {
            let mut factor = self.factors[*index].with_levels(levels);
            factor.followers.extend(followers.remove(index).unwrap_or_default());
            factor
        });
        let factors = factors.collect();
        let mut design = Design { workload: self.workload.clone(), factors, cells };
        for (new_index, (index, levels)) in kept.iter().enumerate() {
            let old_baseline = self.factors[*index].baseline;
            let kept_baseline = levels.iter().position(|&level| level == old_baseline);
            design.factors[new_index].baseline =
                kept_baseline.unwrap_or_else(|| design.most_common_level(new_index));
        }
        design
    }

    /// Selects a set of cells with the same levels of all factors except `free`.
    ///
    /// The set at the baselines, which findings compare, is preferred if it has at least two cells. Otherwise the set with most cells is
    /// selected; of equal sets, the set with most baselines, then with most runs.
    pub fn slice(&self, free: &[usize]) -> Vec<&DesignCell> {
        let mut slices: BTreeMap<Vec<usize>, Vec<&DesignCell>> = BTreeMap::new();
        for cell in &self.cells {
            slices.entry(self.held_levels(cell, free)).or_default().push(cell);
        }
        let preference = |(_, cells): &(Vec<usize>, Vec<&DesignCell>)| {
            let held = || (0..self.factors.len()).filter(|index| !free.contains(index));
            let is_at_baseline =
                |index: &usize| self.factors[*index].baseline == cells[0].levels[*index];
            let baselines = held().filter(is_at_baseline).count();
            let is_baseline_slice = baselines == held().count() && 1 < cells.len();
            let runs: usize = cells.iter().map(|cell| cell.runs.len()).sum();
            (is_baseline_slice, cells.len(), baselines, runs)
        };
        // `max_by_key` returns the last maximum, but the first set is needed.
        let best = slices.into_iter().rev().max_by_key(preference);
        best.map_or(Vec::new(), |(_, cells)| cells)
    }

    /// The levels of a cell for the factors that are held constant: all except `free`.
    pub fn held_levels(&self, cell: &DesignCell, free: &[usize]) -> Vec<usize> {
        let held = (0..cell.levels.len()).filter(|index| !free.contains(index));
        held.map(|index| cell.levels[index]).collect()
    }

    /// Finds another factor whose level determines the level of `factor` in every run. It must have more levels or be [`PROCESSES`].
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
    /// Makes a factor from its levels in the order of appearance and the level of each run. Also returns the level of each run as an index
    /// of the sorted levels.
    fn new(
        key: &str,
        levels: Vec<&str>,
        run_levels: Vec<usize>,
        declared: &DeclaredFactors,
    ) -> (Self, Vec<usize>) {
        let name = factor(key);
        let mut order: Vec<usize> = (0..levels.len()).collect();
        order.sort_by_key(|&index| declared.position(name, levels[index]));
        order.sort_by(|&a, &b| compare_levels(levels[a], levels[b]));
        let mut sorted_index = vec![0; order.len()];
        order.iter().enumerate().for_each(|(new, &old)| sorted_index[old] = new);
        let sorted_levels: Vec<String> =
            order.iter().map(|&index| levels[index].to_string()).collect();
        let factor = Factor {
            name: name.into(),
            key: key.into(),
            numbers: sorted_levels.iter().map(|level| parse_number(level)).collect(),
            levels: sorted_levels,
            baseline: 0,
            followers: Vec::new(),
            is_independent: is_independent(name, declared),
        };
        (factor, run_levels.into_iter().map(|level| sorted_index[level]).collect())
    }

    fn with_levels(&self, kept: &[usize]) -> Self {
        let levels: Vec<String> = kept.iter().map(|&level| self.levels[level].clone()).collect();
        Factor {
            numbers: levels.iter().map(|level| parse_number(level)).collect(),
            levels,
            ..self.clone()
        }
    }

    /// The levels except the baseline.
    pub fn non_baseline_levels(&self) -> impl Iterator<Item = usize> + Clone + use<> {
        let baseline = self.baseline;
        (0..self.levels.len()).filter(move |&level| level != baseline)
    }

    /// The level with which the other levels are compared.
    pub fn baseline_level(&self) -> &str {
        &self.levels[self.baseline]
    }
}

fn is_independent(name: &str, declared: &DeclaredFactors) -> bool {
    declared.declares(name) || name == SOURCE
}

/// Groups runs with equal levels into cells.
fn group_into_cells(runs: impl Iterator<Item = (Vec<usize>, usize)>) -> Vec<DesignCell> {
    let mut cells: BTreeMap<Vec<usize>, BTreeSet<usize>> = BTreeMap::new();
    for (levels, run) in runs {
        cells.entry(levels).or_default().insert(run);
    }
    cells
        .into_iter()
        .map(|(levels, runs)| DesignCell { levels, runs: runs.into_iter().collect() })
        .collect()
}

/// All settings except the workload, in the order of preference. Of settings that always change together, the first becomes the factor.
/// Settings of the CSV come first, then settings in [`ROWS`].
fn candidate_keys<'a>(
    runs: &[&'a Settings],
    members: &[usize],
    declared: &DeclaredFactors,
) -> Vec<&'a str> {
    let all = members.iter().flat_map(|&run| runs[run].keys().map(String::as_str));
    let distinct: BTreeSet<&str> = all.filter(|key| *key != "workload").collect();
    let mut keys: Vec<&str> = distinct.into_iter().collect();
    keys.sort_by_key(|key| (!declared.declares(factor(key)), table_position(key)));
    keys
}

/// Position of a setting in [`ROWS`]. Settings that are not listed come last.
fn table_position(key: &str) -> usize {
    ROWS.iter().position(|(_, plan, ..)| *plan == key).unwrap_or(ROWS.len())
}

/// The levels of a setting, and the level of each run. A setting that does not exist at one level of a setting with two is at its most common
/// level there, as an interval of checkpoints in runs without checkpoints.
fn with_inapplicable_levels<'a>(
    runs: &[&'a Settings],
    members: &[usize],
    key: &str,
    candidates: &[&str],
) -> (Vec<&'a str>, Vec<usize>) {
    let (mut levels, mut run_levels) = levels_by_appearance(runs, members, key);
    let Some(unset) = levels.iter().position(|level| *level == UNSET) else {
        return (levels, run_levels);
    };
    let is_switch = |other: &&str| {
        let (other_levels, other_run_levels) = levels_by_appearance(runs, members, other);
        let absent = run_levels.iter().map(|level| *level == unset);
        let pairs: BTreeSet<(bool, usize)> = absent.zip(other_run_levels).collect();
        other_levels.len() == 2 && pairs.len() == 2
    };
    let mut siblings = candidates.iter().copied().filter(|other| section(other) == section(key));
    if levels.len() < 3 || !siblings.any(|other| is_switch(&other)) {
        return (levels, run_levels);
    }
    let count = |level: usize| run_levels.iter().filter(|found| **found == level).count();
    let others = (0..levels.len()).rev().filter(|level| *level != unset);
    let Some(commonest) = others.max_by_key(|level| count(*level)) else {
        return (levels, run_levels);
    };
    for level in &mut run_levels {
        if *level == unset {
            *level = commonest;
        }
        *level -= usize::from(unset < *level);
    }
    levels.remove(unset);
    (levels, run_levels)
}

/// The section of a key: `checkpoint` of `checkpoint.fsync`.
fn section(key: &str) -> &str {
    key.split_once('.').map_or(key, |(section, _)| section)
}

/// The levels of a setting in the order of their first runs, and the level of each run.
fn levels_by_appearance<'a>(
    runs: &[&'a Settings],
    members: &[usize],
    key: &str,
) -> (Vec<&'a str>, Vec<usize>) {
    let mut levels: Vec<&str> = Vec::new();
    let mut indexes: BTreeMap<&str, usize> = BTreeMap::new();
    let mut run_levels = Vec::new();
    for &run in members {
        let level = runs[run].get(key).map_or(UNSET, String::as_str);
        run_levels.push(*indexes.entry(level).or_insert_with(|| {
            levels.push(level);
            levels.len() - 1
        }));
    }
    (levels, run_levels)
}
