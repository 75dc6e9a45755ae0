//! Experiments that have marks of their own: each, or where there are more than can be told apart, all of a workload together.

use super::block::PlotBlock;
use feedrate_results::run::Run;

/// Most marks in a row that can be told apart.
pub(super) const MOST: usize = 7;

/// Experiments that share their marks.
pub(super) struct Together<'a> {
    pub(super) label: String,
    /// The runs of each.
    pub(super) experiments: Vec<Vec<&'a Run>>,
}

impl<'a> Together<'a> {
    pub(super) fn all(blocks: &[PlotBlock<'a>]) -> Vec<Self> {
        let is_each = blocks.iter().map(|block| block.design.cells.len()).sum::<usize>() <= MOST;
        let mut all = Vec::new();
        for block in blocks {
            let cells = &block.design.cells;
            let experiments = cells.iter().map(|cell| block.runs(cell).collect());
            if is_each {
                let named = cells.iter().map(|cell| block.label(cell)).zip(experiments);
                all.extend(named.map(|(label, one)| Together { label, experiments: vec![one] }));
            } else {
                let label = block.title().unwrap_or("all experiments".into());
                all.push(Together { label, experiments: experiments.collect() });
            }
        }
        all
    }

    /// The values of each experiment that has some.
    pub(super) fn values(&self, of_run: impl Fn(&Run) -> Option<f64>) -> Vec<Vec<f64>> {
        let each = self.experiments.iter();
        let each = each.map(|runs| runs.iter().filter_map(|run| of_run(run)).collect());
        each.filter(|values: &Vec<f64>| !values.is_empty()).collect()
    }
}

/// Those that share panels: all, or each by itself where there are too many workloads.
pub(super) fn groups<'t, 'a>(all: &'t [Together<'a>]) -> impl Iterator<Item = &'t [Together<'a>]> {
    all.chunks(if MOST < all.len() { 1 } else { MOST })
}

/// The title of a group's panels; `None` where there is one group.
pub(super) fn title(all: &[Together], group: &[Together]) -> Option<String> {
    (group.len() < all.len()).then(|| group[0].label.clone())
}

/// A sentence for captions, where experiments share marks; else nothing.
pub(super) fn caption(all: &[Together]) -> &'static str {
    if all.iter().any(|one| 1 < one.experiments.len()) {
        "A mark is the mean over all experiments of its name that have it, each as heavy. "
    } else {
        ""
    }
}
