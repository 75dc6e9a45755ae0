//! Finds the accelerators that finish steps last far more often than the others and make them wait. This module judges
//! nothing.

use crate::facts::Facts;
use crate::record::Record;
use crate::window::{Scope, seconds};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Minimum share of the steps in which a slow accelerator finishes last, as a multiple of an equal share of all accelerators.
const EXCESS_MIN: f64 = 1.5;

/// Accelerators that finish last far more often than the others.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SlowAccelerators {
    /// Their numbers, starting at 0.
    pub accelerators: Vec<usize>,
    /// The one that finishes last most often.
    pub slowest: usize,
    /// Share of the steps in which one of them finishes last, in percent.
    pub last_percent: f64,
    /// Their mean compute time of a step.
    pub compute_s: Option<f64>,
    /// The mean compute time of a step on the other accelerators.
    pub others_compute_s: Option<f64>,
}

impl SlowAccelerators {
    /// Finds the slow accelerators of a run; `None` if there are none, or the record does not have the last accelerator of each step.
    pub fn new(record: &Record) -> Option<Self> {
        let mut steps_last = BTreeMap::new();
        for causes in record.epochs.iter().filter_map(|epoch| epoch.causes.as_ref()) {
            for accelerator in &causes.last {
                *steps_last.entry(*accelerator as usize).or_insert(0_u64) += 1;
            }
        }
        let steps: u64 = steps_last.values().sum();
        let (&slowest, &last_steps) = steps_last.iter().max_by_key(|(_, steps)| **steps)?;
        let equal_share = 1.0 / f64::from(record.plan.accelerators.max(1));
        let last_share = last_steps as f64 / steps as f64;
        if last_share < EXCESS_MIN * equal_share {
            return None;
        }
        // Several slow accelerators take turns in being the last.
        let steps_min = (EXCESS_MIN * equal_share).max(last_share / 2.0) * steps as f64;
        let slow: BTreeMap<usize, u64> = steps_last
            .into_iter()
            .filter(|(_, last_steps)| steps_min <= *last_steps as f64)
            .collect();
        let slow_steps: u64 = slow.values().sum();
        let is_slow = |accelerator: usize| slow.contains_key(&accelerator);
        Some(SlowAccelerators {
            slowest,
            last_percent: 100.0 * slow_steps as f64 / steps as f64,
            compute_s: mean_step_compute_s(record, is_slow),
            others_compute_s: mean_step_compute_s(record, |accelerator| !is_slow(accelerator)),
            accelerators: slow.into_keys().collect(),
        })
    }
}

impl SlowAccelerators {
    /// The facts for sentences: `accelerators` is only known if there are several, else `accelerator`.
    pub fn facts(&self) -> Facts {
        let names: Vec<String> = self.accelerators.iter().map(usize::to_string).collect();
        let several = match &names[..] {
            [] | [_] => None,
            [rest @ .., last] => Some(format!("{} and {last}", rest.join(", "))),
        };
        Facts::new()
            .with("accelerator", self.slowest as u64)
            .with_known("accelerators", several)
            .with("last_percent", self.last_percent)
            .with_known("compute_s", self.compute_s)
            .with_known("others_compute_s", self.others_compute_s)
    }
}

/// Mean compute time of a step over the accelerators for which `is_included` holds.
fn mean_step_compute_s(record: &Record, is_included: impl Fn(usize) -> bool) -> Option<f64> {
    let mut compute_ns = 0_u64;
    let mut steps = 0_usize;
    for scope in Scope::whole_epochs(record) {
        for (index, accelerator) in scope.epoch.accelerators.iter().enumerate() {
            if !is_included(index) {
                continue;
            }
            for block in &accelerator.blocks {
                compute_ns += block.compute_ns.iter().sum::<u64>();
                steps += block.compute_ns.len();
            }
        }
    }
    (steps > 0).then(|| seconds(compute_ns) / steps as f64)
}
