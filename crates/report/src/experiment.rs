//! Experiments: runs that replicate each other, and the middle of what they measured. A run is one value, its epochs are none.

use crate::number::by_value;
use crate::report::{Report, ReportedRun};
use crate::table::TableCell;
use feedrate_analysis::precision::CONFIDENCE;
use feedrate_measure::metric::{
    AU_ALL_STEPS, AU_SUSTAINED, AU_WINDOWED, DELIVERED_WHOLE, Metric, SAMPLES_WHOLE,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// Runs that asked for the same.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[expect(missing_docs, reason = "as in `ReportedRun`")]
pub struct ReportedExperiment {
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
pub fn experiments(report: &Report) -> Vec<ReportedExperiment> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (index, one) in report.runs.iter().enumerate().filter(|(_, one)| one.unused().is_none()) {
        match groups.iter_mut().find(|group| asked(&report.runs[group[0]]) == asked(one)) {
            Some(group) => group.push(index),
            None => groups.push(vec![index]),
        }
    }
    groups.sort_by(|a, b| {
        let [a, b] = [a, b].map(|group| asked(&report.runs[group[0]]));
        a.0.cmp(&b.0).then(by_value(a.1, b.1)).then(a.2.cmp(b.2))
    });
    groups.into_iter().map(|runs| ReportedExperiment::new(&report.runs, runs)).collect()
}

/// The settings that replicates share: where and with how many accelerators what was varied, its value, and the levels of factors.
type Asked<'a> = ((usize, &'a str, &'a str, Option<u32>), &'a str, &'a BTreeMap<String, String>);

fn asked(one: &ReportedRun) -> Asked<'_> {
    let run = &one.run;
    let varied = (one.source, run.workload.as_str(), run.parameter.as_str(), run.accelerators);
    (varied, &run.value, &one.factors)
}

impl ReportedExperiment {
    fn new(all: &[ReportedRun], runs: Vec<usize>) -> Self {
        let first = &all[runs[0]];
        let [
            au_all_steps_percent,
            au_windowed_percent,
            au_sustained_percent,
            samples_per_second,
            bytes_per_second,
        ] = [&AU_ALL_STEPS, &AU_WINDOWED, &AU_SUSTAINED, &SAMPLES_WHOLE, &DELIVERED_WHOLE]
            .map(|metric| Middle::new(metric, runs.iter().map(|&run| &all[run])));
        ReportedExperiment {
            source: first.source,
            workload: first.run.workload.clone(),
            parameter: first.run.parameter.clone(),
            value: first.run.value.clone(),
            accelerators: first.run.accelerators,
            factors: first.factors.clone(),
            au_all_steps_percent,
            au_windowed_percent,
            au_sustained_percent,
            samples_per_second,
            bytes_per_second,
            is_estimated: runs.iter().any(|&run| all[run].is_estimated()),
            runs,
        }
    }
}

impl Middle {
    /// `95.0 [94.1, 95.9]`, or `95.0` of one run.
    pub(super) fn cell(&self, text: fn(Option<f64>) -> String) -> TableCell {
        let middle = text(self.estimate);
        let written = match self.interval {
            Some((low, high)) => format!("{middle} [{}, {}]", text(Some(low)), text(Some(high))),
            None => middle,
        };
        TableCell { text: written, value: self.estimate }
    }

    fn new<'a>(metric: &Metric, runs: impl Iterator<Item = &'a ReportedRun>) -> Self {
        let values: Vec<f64> = runs.filter_map(|one| one.run.metric(metric)).collect();
        let interval = metric.middle(&values, CONFIDENCE);
        let only = if let [only] = values[..] { Some(only) } else { None };
        Middle {
            estimate: interval.map(|of| of.estimate).or(only),
            interval: interval.map(|of| (of.low, of.high)),
        }
    }
}
