//! Decides which experiments share marks. Each experiment has its own mark, unless there are too many to distinguish: then all experiments of a workload share one.

use super::block::PlotBlock;
use feedrate_results::run::Run;

/// Maximum number of distinguishable marks in a row.
pub(super) const MARKS_MAX: usize = 7;

/// Experiments that share their marks.
pub(super) struct SharedMark<'a> {
    pub(super) label: String,
    /// The runs of each experiment.
    pub(super) experiments: Vec<Vec<&'a Run>>,
}

impl<'a> SharedMark<'a> {
    /// The marks of all blocks.
    pub(super) fn all(blocks: &[PlotBlock<'a>]) -> Vec<Self> {
        let is_each =
            blocks.iter().map(|block| block.design.cells.len()).sum::<usize>() <= MARKS_MAX;
        let mut all = Vec::new();
        for block in blocks {
            let cells = &block.design.cells;
            let experiments = cells.iter().map(|cell| block.runs(cell).collect());
            if is_each {
                let named = cells.iter().map(|cell| block.label(cell)).zip(experiments);
                all.extend(
                    named.map(|(label, runs)| SharedMark { label, experiments: vec![runs] }),
                );
            } else {
                let label = block.title().unwrap_or("all experiments".into());
                all.push(SharedMark { label, experiments: experiments.collect() });
            }
        }
        all
    }

    /// The values of each experiment that has any.
    pub(super) fn values(&self, value: impl Fn(&Run) -> Option<f64>) -> Vec<Vec<f64>> {
        let each = self.experiments.iter();
        let each = each.map(|runs| runs.iter().filter_map(|run| value(run)).collect());
        each.filter(|values: &Vec<f64>| !values.is_empty()).collect()
    }
}

/// The marks that share panels: all marks, or one mark per panel if there are too many.
pub(super) fn groups<'t, 'a>(
    all: &'t [SharedMark<'a>],
) -> impl Iterator<Item = &'t [SharedMark<'a>]> {
    all.chunks(if MARKS_MAX < all.len() { 1 } else { MARKS_MAX })
}

/// The title of a group's panels; `None` if there is one group.
pub(super) fn title(all: &[SharedMark], group: &[SharedMark]) -> Option<String> {
    (group.len() < all.len()).then(|| group[0].label.clone())
}

/// A sentence for captions if experiments share marks; else empty.
pub(super) fn caption(all: &[SharedMark]) -> &'static str {
    if all.iter().any(|mark| 1 < mark.experiments.len()) {
        "A mark is the mean over all experiments of its name that have a value, with equal weights. "
    } else {
        ""
    }
}
