//! The time budget of a run: every second of the run belongs to exactly one part. This module judges nothing.

use crate::derived::Derived;
use crate::metric::{BARRIER_S, COMPUTE_S, LOAD_S};
use crate::record::{CheckpointKind, Record};
use crate::waits::Waits;
use crate::window::{Scope, seconds};
use feedrate_spec::names;
use schemars::JsonSchema;
use serde::Serialize;

names! {
    /// Part of a run's time.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum BudgetPart {
        /// Computing.
        Compute = "compute",
        /// Waiting for data.
        DataWait = "data_wait",
        /// Waiting for slower accelerators.
        SkewWait = "skew_wait",
        /// Waiting for checkpoints to be written or read.
        Checkpoints = "checkpoints",
        /// Evaluation.
        Evaluation = "evaluation",
        /// Everything else, such as the time between epochs.
        Other = "other",
    }
}

/// The time of a run from the start of its first epoch, evaluation or checkpoint to the end of the last one, in seconds. Times of training
/// are means over accelerators.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TimeBudget {
    /// The whole time, which is the sum of all parts.
    pub total_s: f64,
    /// Computing. For a watched training loop, all time between batches.
    pub compute_s: f64,
    /// Waiting for data: the accelerator's own data, or that of the last accelerator of a step.
    pub data_wait_s: f64,
    /// Waiting for slower accelerators; `null` if it is unknown and counts as computing.
    pub skew_wait_s: Option<f64>,
    /// Waiting for checkpoints to be written or read.
    pub checkpoints_s: f64,
    /// Evaluation.
    pub evaluation_s: f64,
    /// Everything else, such as the time between epochs.
    pub other_s: f64,
}

impl TimeBudget {
    /// Computes the budget of a run. `None` if nothing ran, or if accelerators are missing from an epoch, as in interrupted runs of several
    /// processes.
    pub fn new(derived: &Derived) -> Option<Self> {
        let record = derived.record;
        let trains = !record.plan.is_checkpoint_only();
        if trains && !Scope::all_epochs(record).all(Scope::is_whole) {
            return None;
        }
        let total_s = span_s(record).filter(|&total_s| total_s > 0.0)?;
        let compute_s = if trains { derived.value(&COMPUTE_S)? } else { 0.0 };
        let (data_wait_s, skew_wait_s) = match Waits::new(derived) {
            Some(waits) => (waits.data_s(), Some(waits.skew_s)),
            None if trains => (derived.value(&LOAD_S)?, derived.value(&BARRIER_S)),
            None => (0.0, Some(0.0)),
        };
        let checkpoints =
            CheckpointKind::ALL.into_iter().flat_map(|kind| record.checkpoints_of(kind));
        let checkpoints_s = seconds(checkpoints.map(|checkpoint| checkpoint.stall_ns()).sum());
        let evaluations = record.evaluations.iter();
        let evaluations_ns =
            evaluations.map(|evaluation| evaluation.end_ns.saturating_sub(evaluation.start_ns));
        let evaluation_s = seconds(evaluations_ns.sum());
        let known_s =
            compute_s + data_wait_s + skew_wait_s.unwrap_or(0.0) + checkpoints_s + evaluation_s;
        Some(TimeBudget {
            total_s,
            compute_s,
            data_wait_s,
            skew_wait_s,
            checkpoints_s,
            evaluation_s,
            other_s: total_s - known_s,
        })
    }

    /// Time of a part; `None` if it is unknown.
    pub fn part_s(&self, part: BudgetPart) -> Option<f64> {
        Some(match part {
            BudgetPart::Compute => self.compute_s,
            BudgetPart::DataWait => self.data_wait_s,
            BudgetPart::SkewWait => self.skew_wait_s?,
            BudgetPart::Checkpoints => self.checkpoints_s,
            BudgetPart::Evaluation => self.evaluation_s,
            BudgetPart::Other => self.other_s,
        })
    }

    /// Share of a part in percent; `None` if it is unknown.
    pub fn percent(&self, part: BudgetPart) -> Option<f64> {
        Some(100.0 * self.part_s(part)? / self.total_s)
    }
}

/// Time from the first start to the last end of an epoch, evaluation or checkpoint.
fn span_s(record: &Record) -> Option<f64> {
    let epochs = || record.epochs.iter().chain(&record.evaluations);
    let checkpoints = || epochs().flat_map(|epoch| &epoch.checkpoints);
    let starts = epochs().map(|epoch| epoch.start_ns);
    let start_ns = starts.chain(checkpoints().map(|checkpoint| checkpoint.start_ns)).min()?;
    let ends = epochs().map(|epoch| epoch.end_ns);
    let end_ns = ends.chain(checkpoints().map(|checkpoint| checkpoint.end_ns)).max()?;
    end_ns.checked_sub(start_ns).map(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{block, checkpoint, checkpoint_only_record, epoch, plan, record, simple};

    #[track_caller]
    fn check(record: &Record, expected: TimeBudget) {
        let budget = TimeBudget::new(&Derived::new(record)).unwrap();
        let parts = BudgetPart::ALL.map(|part| budget.part_s(part));
        let expected_parts = BudgetPart::ALL.map(|part| expected.part_s(part));
        for ((part, found), expected) in BudgetPart::ALL.into_iter().zip(parts).zip(expected_parts)
        {
            let is_close = match (found, expected) {
                (Some(found), Some(expected)) => (found - expected).abs() < 1e-9,
                (found, expected) => found == expected,
            };
            assert!(is_close, "{}: {found:?} instead of {expected:?}", part.name());
        }
        let sum: f64 = parts.into_iter().flatten().sum();
        assert!((sum - expected.total_s).abs() < 1e-9 && budget.total_s == expected.total_s);
    }

    /// Two accelerators; the second computes 100 ms longer. Then a checkpoint, which stops training for two of its five seconds, an evaluation,
    /// and another epoch after a pause.
    #[test]
    fn every_second_belongs_to_one_part() {
        let first = vec![
            vec![block(1000, &[(100, 300, 100, 1000); 4])],
            vec![block(1000, &[(100, 400, 0, 1000); 4])],
        ];
        let later = vec![
            vec![block(10_000, &[(100, 300, 100, 1000); 2])],
            vec![block(10_000, &[(100, 400, 0, 1000); 2])],
        ];
        let evaluation = vec![vec![block(6000, &[(500, 500, 0, 1000)])]; 2];
        let mut record = record(plan(2, 4), vec![epoch(1, first), epoch(2, later)]);
        let mut saved = checkpoint(3000, 8000, 1 << 30, 4);
        saved.stall_ns = Some(2_000_000_000);
        record.epochs[0].checkpoints.push(saved);
        record.evaluations.push(epoch(1, evaluation));
        check(
            &record,
            TimeBudget {
                total_s: 10.0,
                compute_s: 0.35 * 6.0,
                data_wait_s: 0.6,
                skew_wait_s: Some(0.3),
                checkpoints_s: 2.0,
                evaluation_s: 1.0,
                other_s: 4.0,
            },
        );
        record.epochs[1].accelerators.truncate(1);
        assert_eq!(TimeBudget::new(&Derived::new(&record)), None);
    }

    #[test]
    fn a_run_of_checkpoints_only_spends_its_time_in_them() {
        let record = checkpoint_only_record(3);
        let budget = TimeBudget::new(&Derived::new(&record)).unwrap();
        assert_eq!(budget.compute_s, 0.0);
        assert_eq!(budget.checkpoints_s + budget.other_s, budget.total_s);
    }

    #[test]
    fn a_run_without_epochs_has_no_budget() {
        let mut record = simple(&[(500, 500, 0, 1000)]);
        assert_eq!(
            TimeBudget::new(&Derived::new(&record)).unwrap().percent(BudgetPart::Compute),
            Some(50.0)
        );
        record.epochs.clear();
        assert_eq!(TimeBudget::new(&Derived::new(&record)), None);
    }
}
