//! Groups runs of one workload that may be compared by their design. Names their factors, levels and cells for plots. Draws nothing.

use crate::draw::figure::{Axis, AxisRange, Scale, Style};
use crate::number::level as format_level;
use feedrate_analysis::design::{Design, DesignCell, Factor, PROCESSES, Stratum};
use feedrate_results::run::Run;

/// The name of the level or run with which others are compared.
pub(super) const BASELINE: &str = "baseline";

/// The label of an axis of processes.
pub(super) const PROCESSES_LABEL: &str = "Accelerators";

/// Runs of one workload that may be compared: a part of its design.
#[derive(Clone, Debug)]
pub(super) struct PlotBlock<'a> {
    /// Name that distinguishes the block from others; empty if there is only one block.
    pub(super) name: String,
    /// The design without factors that always change together with another factor. Cells are sorted by processes, then by other factors.
    pub(super) design: Design,
    /// Settings that changed only together with a factor, each with the name of the factor.
    pub(super) followers: Vec<[String; 2]>,
    /// All runs, which the design names by index.
    runs: &'a [Run],
}

/// A level with its factor: `4 processes`, `format npz`.
pub(super) fn factor_and_level(factor: &str, shown: &str) -> String {
    match factor {
        PROCESSES if shown == "1" => "1 process".into(),
        PROCESSES => format!("{shown} processes"),
        "model" => shown.into(),
        name => format!("{name} {shown}"),
    }
}

/// A level of a column of a study's CSV, or of a key: `4 processes`, `format npz`.
pub(super) fn key_and_level(key: &str, level: &str) -> String {
    // Rows without a level use the workload's level.
    let shown = if level == "-" { "default".into() } else { format_level(key, level) };
    factor_and_level(key.rsplit('.').next().unwrap_or(key), &shown)
}

impl<'a> PlotBlock<'a> {
    /// The blocks of all used runs, without the factors that their runs ignore, as in findings.
    pub(super) fn all(runs: &'a [Run], designs: &[Design]) -> Vec<Self> {
        let mut blocks = Vec::new();
        for design in designs {
            for Stratum { name, design: part } in design.strata(runs) {
                let part = part.effective(runs, |run| runs[run].unusable.is_none());
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
        // A single block needs no name.
        if let [block] = blocks.as_mut_slice() {
            block.name.clear();
        }
        blocks
    }

    fn new(name: String, design: Design, runs: &'a [Run]) -> Self {
        let mut followers: Vec<[String; 2]> = Vec::new();
        for (index, factor) in design.factors.iter().enumerate() {
            let twins = factor.followers.iter();
            followers.extend(twins.map(|twin| [twin.clone(), factor.name.clone()]));
            let leader = if factor.name == PROCESSES { None } else { design.determined_by(index) };
            let leader = leader.map(|leader| &design.factors[leader].name);
            followers.extend(leader.map(|leader| [factor.name.clone(), leader.clone()]));
        }
        let follows = |name: &str| followers.iter().any(|[follower, _]| follower == name);
        let design = design.restrict(|factor| !follows(&factor.name), |_| true);
        let mut block = PlotBlock { name, design, followers, runs };
        let order = block.factor_order();
        let place =
            |cell: &DesignCell| order.iter().map(|&index| cell.levels[index]).collect::<Vec<_>>();
        block.design.cells.sort_by_key(place);
        block
    }

    /// The factors of the block, processes first.
    pub(super) fn factor_order(&self) -> Vec<usize> {
        self.processes().into_iter().chain(self.others()).collect()
    }

    /// The factor of processes, if their number differs.
    pub(super) fn processes(&self) -> Option<usize> {
        self.design.factor(PROCESSES)
    }

    /// All factors but processes.
    pub(super) fn others(&self) -> Vec<usize> {
        (0..self.design.factors.len()).filter(|i| Some(*i) != self.processes()).collect()
    }

    /// The factor of processes as a list; empty if all runs have the same number of processes.
    pub(super) fn processes_list(&self) -> Vec<usize> {
        self.processes().into_iter().collect()
    }

    /// The factor of processes, if their number differs, and another factor.
    pub(super) fn processes_and(&self, factor: usize) -> Vec<usize> {
        self.processes().into_iter().chain([factor]).collect()
    }

    /// The factors that vary in a panel of `factor`: with the processes, if several levels of `factor` were run at other numbers of processes
    /// than the baseline's.
    pub(super) fn free_with(&self, factor: usize) -> Vec<usize> {
        if self.is_crossed_with_processes(factor) {
            self.processes_and(factor)
        } else {
            vec![factor]
        }
    }

    /// Whether any factor was varied at several numbers of processes.
    pub(super) fn crosses_processes(&self) -> bool {
        self.others().into_iter().any(|factor| self.is_crossed_with_processes(factor))
    }

    fn is_crossed_with_processes(&self, factor: usize) -> bool {
        let Some(processes) = self.processes() else { return false };
        let slice = self.design.slice(&self.processes_and(factor));
        let levels_at =
            |count: usize| slice.iter().filter(move |cell| cell.levels[processes] == count);
        let counts = 0..self.design.factors[processes].levels.len();
        counts.filter(|&count| 1 < levels_at(count).count()).nth(1).is_some()
    }

    /// The runs of a cell.
    pub(super) fn runs(&self, cell: &DesignCell) -> impl Iterator<Item = &'a Run> {
        cell.runs.iter().map(|&run| &self.runs[run])
    }

    /// The number of processes of a cell.
    pub(super) fn process_count(&self, cell: &DesignCell) -> Option<f64> {
        self.runs(cell).next()?.accelerators.map(f64::from)
    }

    /// The block's name for captions: ` of WORKLOAD`; empty if there is only one block.
    pub(super) fn suffix(&self) -> String {
        self.title().map_or(String::new(), |name| format!(" of {name}"))
    }

    /// The title of the block's panels; `None` if there is only one block.
    pub(super) fn title(&self) -> Option<String> {
        Some(self.name.clone()).filter(|name| !name.is_empty())
    }

    /// The levels that [`Design::slice`] holds constant, as text; empty if there are none.
    pub(super) fn held_levels_text(&self, free: &[usize]) -> String {
        let slice = self.design.slice(free);
        let Some(first) = slice.first() else { return String::new() };
        let held = self.factor_order().into_iter().filter(|index| !free.contains(index));
        held.map(|index| self.level_with_factor(index, first.levels[index]))
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// A label that distinguishes a cell from all others.
    pub(super) fn label(&self, cell: &DesignCell) -> String {
        let parts = [self.name.clone(), self.label_within(cell)];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }

    /// A label that distinguishes a cell within its block: all levels of up to three factors; with more factors, processes and levels other than the baseline.
    fn label_within(&self, cell: &DesignCell) -> String {
        let factors = &self.design.factors;
        let is_shown = |index: &usize| {
            let is_uncommon = cell.levels[*index] != factors[*index].baseline;
            factors.len() <= 3 || Some(*index) == self.processes() || is_uncommon
        };
        let shown = self.factor_order().into_iter().filter(is_shown);
        let parts: Vec<String> =
            shown.map(|index| self.level_with_factor(index, cell.levels[index])).collect();
        match (parts.as_slice(), self.is_declared_baseline(cell)) {
            ([], true) => BASELINE.into(),
            ([], false) if !factors.is_empty() => "commonest settings".into(),
            (parts, true) => format!("{} ({BASELINE})", parts.join(", ")),
            (parts, false) => parts.join(", "),
        }
    }

    /// The label of a cell in a list of its block, never empty.
    pub(super) fn label_in_list(&self, cell: &DesignCell) -> String {
        let label = self.label_within(cell);
        if label.is_empty() { self.design.workload.clone() } else { label }
    }

    /// Whether a cell is the baseline that the study declares. The most common settings are not a declared baseline.
    pub(super) fn is_declared_baseline(&self, cell: &DesignCell) -> bool {
        let mut factors = self.design.factors.iter().zip(&cell.levels);
        !cell.levels.is_empty()
            && factors.all(|(factor, level)| factor.is_independent && factor.baseline == *level)
    }

    /// A level with its factor: `4 processes`, `format npz`.
    pub(super) fn level_with_factor(&self, factor: usize, level: usize) -> String {
        let Factor { name, key, levels, .. } = &self.design.factors[factor];
        factor_and_level(name, &format_level(key, &levels[level]))
    }

    /// The name of a level in a panel whose title names the factor. A number of processes still gets its noun.
    pub(super) fn name_in_panel(&self, factor: usize, level: usize) -> String {
        if Some(factor) == self.processes() {
            return self.level_with_factor(factor, level);
        }
        self.format_level(factor, level)
    }

    /// A level for display.
    pub(super) fn format_level(&self, factor: usize, level: usize) -> String {
        let factor = &self.design.factors[factor];
        format_level(&factor.key, &factor.levels[level])
    }

    /// The style of a factor's series: points are joined only if levels are numbers.
    pub(super) fn style(&self, factor: usize) -> Style {
        let is_ordered = self.design.factors[factor].numbers.is_some();
        if is_ordered { Style::Joined } else { Style::Marks }
    }

    /// An axis for some levels of a factor, and the position of each level. Numbers that span octaves are logarithmic; other levels are placed side by side.
    pub(super) fn axis(&self, factor: usize, levels: &[usize]) -> (Axis, Vec<f64>) {
        let description = &self.design.factors[factor];
        let numbers = levels.iter().map(|&level| description.levels[level].parse().ok());
        let numbers: Option<Vec<f64>> = numbers.map(|n| n.filter(|n| *n > 0.0)).collect();
        let octaves = numbers.filter(|numbers| {
            let spans_octaves = 4.0 * numbers[0] <= numbers[numbers.len() - 1];
            numbers.len() > 2 && spans_octaves && !description.key.contains("bytes")
        });
        let label = if description.name == PROCESSES { PROCESSES_LABEL } else { &description.name };
        match octaves {
            Some(numbers) => {
                let scale = Scale::LogAt(numbers.clone());
                (Axis::new(label, scale, AxisRange::Tight), numbers)
            }
            None => {
                let names = levels.iter().map(|&level| self.format_level(factor, level)).collect();
                let places = (0..levels.len()).map(|i| i as f64).collect();
                (Axis::categories(label, names), places)
            }
        }
    }
}
