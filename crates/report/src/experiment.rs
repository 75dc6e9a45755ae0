//! Experiments: runs that replicate each other, and the middle of what they measured. A run is one value, its epochs are none.

use crate::number::by_value;
use crate::report::{Report, Run};
use crate::table::Cell;
use feedrate_analysis::precision::CONFIDENCE;
use feedrate_measure::metric::{
    AU_ALL_STEPS, AU_SUSTAINED, AU_WINDOWED, DELIVERED_WHOLE, Metric, SAMPLES_WHOLE,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// Runs that asked for the same.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[expect(missing_docs, reason = "as in `Run`")]
pub struct Experiment {
    pub source: usize,
    pub workload: String,
    pub parameter: String,
    pub value: String,
    pub accelerators: Option<u32>,
    pub factors: BTreeMap<String, String>,
    /// Indexes of [`Report::runs`].
    pub runs: Vec<usize>,
    pub au_all_steps_percent: Middle,
    pub au_windowed_percent: Middle,
    pub au_sustained_percent: Middle,
    pub samples_per_second: Middle,
    pub bytes_per_second: Middle,
    /// Whether bytes of some run are estimated.
    pub is_estimated: bool,
}

/// The middle of replicates: the mean of percentages, the geometric mean of rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Middle {
    /// `None` where no run has a value.
    pub estimate: Option<f64>,
    /// 95 % (Student's t, of rates on the scale of logarithms, of percentages on that of the logit); `None` of fewer than two values.
    pub interval: Option<(f64, f64)>,
}

/// In the order of source, workload, parameter, accelerators and value.
pub fn experiments(report: &Report) -> Vec<Experiment> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (index, run) in report.runs.iter().enumerate().filter(|(_, run)| run.unused.is_none()) {
        let same = groups.iter_mut().find(|group| report.runs[group[0]].replicates(run));
        match same {
            Some(group) => group.push(index),
            None => groups.push(vec![index]),
        }
    }
    let mut found: Vec<Experiment> =
        groups.into_iter().map(|runs| Experiment::new(&report.runs, runs)).collect();
    found.sort_by(|a, b| {
        let first = |e: &Experiment| (e.source, e.workload.clone(), e.parameter.clone());
        let values = by_value(&a.value, &b.value);
        let rest = a.factors.cmp(&b.factors);
        first(a).cmp(&first(b)).then(a.accelerators.cmp(&b.accelerators)).then(values).then(rest)
    });
    found
}

impl Run {
    fn replicates(&self, other: &Run) -> bool {
        let varied = [&self.workload, &self.parameter, &self.value];
        self.source == other.source
            && varied == [&other.workload, &other.parameter, &other.value]
            && self.accelerators == other.accelerators
            && self.factors == other.factors
    }
}

impl Experiment {
    fn new(all: &[Run], runs: Vec<usize>) -> Self {
        let first = all[runs[0]].clone();
        let middle = |metric: &Metric, of: fn(&Run) -> Option<f64>| {
            let values: Vec<f64> = runs.iter().filter_map(|&run| of(&all[run])).collect();
            Middle::new(metric, &values)
        };
        Experiment {
            source: first.source,
            workload: first.workload,
            parameter: first.parameter,
            value: first.value,
            accelerators: first.accelerators,
            factors: first.factors,
            au_all_steps_percent: middle(&AU_ALL_STEPS, |run| run.au.all_steps_percent),
            au_windowed_percent: middle(&AU_WINDOWED, |run| run.au.windowed_percent),
            au_sustained_percent: middle(&AU_SUSTAINED, |run| run.au.sustained_percent),
            samples_per_second: middle(&SAMPLES_WHOLE, |run| run.throughput.samples_per_second),
            bytes_per_second: middle(&DELIVERED_WHOLE, |run| run.throughput.bytes_per_second),
            is_estimated: runs.iter().any(|&run| all[run].throughput.is_estimated),
            runs,
        }
    }
}

impl Middle {
    /// `95.0 [94.1, 95.9]`, or `95.0` of one run.
    pub(super) fn cell(&self, text: fn(Option<f64>) -> String) -> Cell {
        let middle = text(self.estimate);
        let written = match self.interval {
            Some((low, high)) => format!("{middle} [{}, {}]", text(Some(low)), text(Some(high))),
            None => middle,
        };
        Cell { text: written, value: self.estimate }
    }

    fn new(metric: &Metric, values: &[f64]) -> Self {
        let interval = metric.middle(values, CONFIDENCE);
        let only = if let [only] = values { Some(*only) } else { None };
        Middle {
            estimate: interval.map(|of| of.estimate).or(only),
            interval: interval.map(|of| (of.low, of.high)),
        }
    }
}
