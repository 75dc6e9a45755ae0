//! Runs of one workload that may be compared, laid out by their design: what plots compare with what, and its names. Draws nothing.

use crate::draw::figure::{Axis, AxisRange, Scale, Style};
use crate::number::level as shown;
use feedrate_analysis::design::{Design, DesignCell, Factor, PROCESSES, Stratum, UNSET};
use feedrate_results::run::Run;

/// The name of the level, or the run, that others are compared with.
pub(super) const BASELINE: &str = "baseline";

/// The label of an axis of processes.
pub(super) const PROCESSES_LABEL: &str = "Processes (emulated accelerators)";

/// Runs of one workload that may be compared: a part of its design.
#[derive(Clone, Debug)]
pub(super) struct PlotBlock<'a> {
    /// Sets it apart from the other blocks; empty where there is one.
    pub(super) name: String,
    /// Without factors that follow from others; cells in the order of processes, then of other factors.
    pub(super) design: Design,
    /// Settings that changed only together with a factor: each, and the factor.
    pub(super) followers: Vec<[String; 2]>,
    /// All that the design names by their places.
    runs: &'a [Run],
}

fn named(factor: &str, shown: &str) -> String {
    match factor {
        PROCESSES if shown == "1" => "1 process".into(),
        PROCESSES => format!("{shown} processes"),
        "model" => shown.into(),
        name => format!("{name} {shown}"),
    }
}

/// A level of a column of a study's CSV, or of a key: `4 processes`, `format npz`.
pub(super) fn level_named(key: &str, level: &str) -> String {
    // Rows leave it to the workload.
    let shown = if level == "-" { UNSET.into() } else { shown(key, level) };
    named(key.rsplit('.').next().unwrap_or(key), &shown)
}

impl<'a> PlotBlock<'a> {
    /// Those of runs that may be used.
    pub(super) fn all(runs: &'a [Run], designs: &[Design]) -> Vec<Self> {
        let mut blocks = Vec::new();
        for design in designs {
            for Stratum { name, design: part } in design.strata(runs) {
                let part = part.restricted(|_| true, |run| runs[run].unusable.is_none());
                if part.cells.is_empty() {
                    continue;
                }
                let workload = (designs.len() > 1).then(|| design.workload.clone());
                let names: Vec<String> = workload
                    .into_iter()
                    .chain(Some(name).filter(|name| !name.is_empty()))
                    .collect();
                blocks.push(PlotBlock::new(names.join(", "), part, runs));
            }
        }
        // Where only one is left, nothing must be told apart.
        if let [block] = blocks.as_mut_slice() {
            block.name.clear();
        }
        blocks
    }

    fn new(name: String, design: Design, runs: &'a [Run]) -> Self {
        let mut followers: Vec<[String; 2]> = Vec::new();
        for (at, factor) in design.factors.iter().enumerate() {
            let twins = factor.followers.iter();
            followers.extend(twins.map(|twin| [twin.clone(), factor.name.clone()]));
            let by = if factor.name == PROCESSES { None } else { design.determined_by(at) };
            followers.extend(by.map(|by| [factor.name.clone(), design.factors[by].name.clone()]));
        }
        let follows = |name: &str| followers.iter().any(|[follower, _]| follower == name);
        let design = design.restricted(|factor| !follows(&factor.name), |_| true);
        let mut block = PlotBlock { name, design, followers, runs };
        let order = block.order();
        let place = |cell: &DesignCell| order.iter().map(|&at| cell.levels[at]).collect::<Vec<_>>();
        block.design.cells.sort_by_key(place);
        block
    }

    /// Its factors, processes first.
    pub(super) fn order(&self) -> Vec<usize> {
        self.processes().into_iter().chain(self.others()).collect()
    }

    /// The factor of processes, where they differ.
    pub(super) fn processes(&self) -> Option<usize> {
        self.design.factor(PROCESSES)
    }

    /// All factors but processes.
    pub(super) fn others(&self) -> Vec<usize> {
        (0..self.design.factors.len()).filter(|i| Some(*i) != self.processes()).collect()
    }

    /// Processes, where they differ.
    pub(super) fn free(&self) -> Vec<usize> {
        self.processes().into_iter().collect()
    }

    /// Processes, where they differ, and a factor.
    pub(super) fn processes_and(&self, factor: usize) -> Vec<usize> {
        self.processes().into_iter().chain([factor]).collect()
    }

    /// The runs of a cell.
    pub(super) fn runs(&self, cell: &DesignCell) -> impl Iterator<Item = &'a Run> {
        cell.runs.iter().map(|&run| &self.runs[run])
    }

    /// The number of processes of a cell.
    pub(super) fn count(&self, cell: &DesignCell) -> Option<f64> {
        self.runs(cell).next()?.accelerators.map(f64::from)
    }

    /// A name for the block's cells in captions: ` of WORKLOAD`; empty where it is alone.
    pub(super) fn of_name(&self) -> String {
        self.title().map_or(String::new(), |name| format!(" of {name}"))
    }

    /// Over a panel of its own; nothing where it is alone.
    pub(super) fn title(&self) -> Option<String> {
        Some(self.name.clone()).filter(|name| !name.is_empty())
    }

    /// The levels that [`Design::slice`] holds, in words; empty where there are none.
    pub(super) fn held(&self, free: &[usize]) -> String {
        let slice = self.design.slice(free);
        let Some(first) = slice.first() else { return String::new() };
        let held = self.order().into_iter().filter(|at| !free.contains(at));
        held.map(|at| self.named(at, first.levels[at])).collect::<Vec<_>>().join(", ")
    }

    /// Sets a cell apart from all others.
    pub(super) fn label(&self, cell: &DesignCell) -> String {
        let parts = [self.name.clone(), self.label_within(cell)];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }

    /// Sets a cell apart from others of its block: processes, and all of three factors, of more those that are not at the baseline.
    fn label_within(&self, cell: &DesignCell) -> String {
        let factors = &self.design.factors;
        let is_told = |at: &usize| {
            let is_uncommon = cell.levels[*at] != factors[*at].baseline;
            factors.len() <= 3 || Some(*at) == self.processes() || is_uncommon
        };
        let told = self.order().into_iter().filter(is_told);
        let parts: Vec<String> = told.map(|at| self.named(at, cell.levels[at])).collect();
        match (parts.as_slice(), self.is_declared_baseline(cell)) {
            ([], true) => BASELINE.into(),
            ([], false) if !factors.is_empty() => "commonest settings".into(),
            (parts, true) => format!("{} ({BASELINE})", parts.join(", ")),
            (parts, false) => parts.join(", "),
        }
    }

    /// The same in a list of its own: never empty.
    pub(super) fn label_in_list(&self, cell: &DesignCell) -> String {
        let label = self.label_within(cell);
        if label.is_empty() { self.design.workload.clone() } else { label }
    }

    /// Whether a cell is the baseline, and the study says so: what is only the commonest of some runs is none.
    pub(super) fn is_declared_baseline(&self, cell: &DesignCell) -> bool {
        let mut factors = self.design.factors.iter().zip(&cell.levels);
        !cell.levels.is_empty() && factors.all(|(of, level)| of.is_own && of.baseline == *level)
    }

    /// `4 processes`, `format npz`.
    pub(super) fn named(&self, factor: usize, level: usize) -> String {
        let Factor { name, key, levels, .. } = &self.design.factors[factor];
        named(name, &shown(key, &levels[level]))
    }

    /// In a panel whose title names the factor, unless that is processes.
    pub(super) fn name_in_panel(&self, factor: usize, level: usize) -> String {
        if Some(factor) == self.processes() {
            return self.named(factor, level);
        }
        self.shown(factor, level)
    }

    /// A level as people write it.
    pub(super) fn shown(&self, factor: usize, level: usize) -> String {
        let factor = &self.design.factors[factor];
        shown(&factor.key, &factor.levels[level])
    }

    /// Names have no order that a line could follow.
    pub(super) fn style(&self, factor: usize) -> Style {
        let is_ordered = self.design.factors[factor].numbers.is_some();
        if is_ordered { Style::Joined } else { Style::Marks }
    }

    /// An axis of some of a factor's levels, and where each lies: numbers that span octaves by their logarithm, all else side by side.
    pub(super) fn axis(&self, factor: usize, levels: &[usize]) -> (Axis, Vec<f64>) {
        let of = &self.design.factors[factor];
        let numbers = levels.iter().map(|&level| of.levels[level].parse().ok());
        let numbers: Option<Vec<f64>> = numbers.map(|n| n.filter(|n| *n > 0.0)).collect();
        let octaves = numbers.filter(|numbers| {
            let spans_octaves = 4.0 * numbers[0] <= numbers[numbers.len() - 1];
            numbers.len() > 2 && spans_octaves && !of.key.contains("bytes")
        });
        let label = if of.name == PROCESSES { PROCESSES_LABEL } else { &of.name };
        match octaves {
            Some(numbers) => {
                let scale = Scale::LogAt(numbers.clone());
                (Axis::new(label, scale, AxisRange::Tight), numbers)
            }
            None => {
                let names = levels.iter().map(|&level| self.shown(factor, level)).collect();
                let places = (0..levels.len()).map(|i| i as f64).collect();
                (Axis::categories(label, names), places)
            }
        }
    }
}
