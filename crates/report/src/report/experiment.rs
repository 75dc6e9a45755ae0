//! Experiments: runs that replicate each other, and the middle of what they measured. A run is one value, its epochs are none.

use super::number::by_value;
use super::{Report, Run};
use crate::table::Cell;
use feedrate_results::response::Response;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

const CONFIDENCE: f64 = 0.95;

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
    let mut place: HashMap<Key<'_>, usize> = HashMap::new();
    let used = report.runs.iter().enumerate().filter(|(_, run)| run.unused.is_none());
    for (index, run) in used {
        let group = *place.entry(key(run)).or_insert(groups.len());
        match groups.get_mut(group) {
            Some(group) => group.push(index),
            None => groups.push(vec![index]),
        }
    }
    let mut found: Vec<Experiment> =
        groups.into_iter().map(|runs| Experiment::of(&report.runs, runs)).collect();
    found.sort_by(|a, b| {
        let first = |e: &Experiment| (e.source, e.workload.clone(), e.parameter.clone());
        let values = by_value(&a.value, &b.value);
        let rest = a.factors.cmp(&b.factors);
        first(a).cmp(&first(b)).then(a.accelerators.cmp(&b.accelerators)).then(values).then(rest)
    });
    found
}

type Key<'a> = (usize, [&'a str; 3], Option<u32>, &'a BTreeMap<String, String>);

fn key(run: &Run) -> Key<'_> {
    (run.source, [&run.workload, &run.parameter, &run.value], run.accelerators, &run.factors)
}

impl Experiment {
    fn of(all: &[Run], runs: Vec<usize>) -> Self {
        let middle = |response: &str, of: fn(&Run) -> Option<f64>| {
            let values: Vec<f64> = runs.iter().filter_map(|&run| of(&all[run])).collect();
            Middle::of(response, &values)
        };
        let first = &all[runs[0]];
        Experiment {
            source: first.source,
            workload: first.workload.clone(),
            parameter: first.parameter.clone(),
            value: first.value.clone(),
            accelerators: first.accelerators,
            factors: first.factors.clone(),
            au_all_steps_percent: middle("au_all_steps", |run| run.au.all_steps_percent),
            au_windowed_percent: middle("au_windowed", |run| run.au.windowed_percent),
            au_sustained_percent: middle("au_sustained", |run| run.au.sustained_percent),
            samples_per_second: middle("samples_per_second", |run| {
                run.throughput.samples_per_second
            }),
            bytes_per_second: middle("delivered_bytes_per_second", |run| {
                run.throughput.bytes_per_second
            }),
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

    fn of(response: &str, values: &[f64]) -> Self {
        let found = Response::find(response).ok();
        match (values, found.and_then(|response| response.middle(values, CONFIDENCE))) {
            (_, Some(of)) => {
                Middle { estimate: Some(of.estimate), interval: Some((of.low, of.high)) }
            }
            ([only], None) => Middle { estimate: Some(*only), interval: None },
            _ => Middle::default(),
        }
    }
}
