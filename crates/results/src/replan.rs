//! The interface for planning runs of feedrate again with changed settings. The crate `session` implements the trait; lower crates use it to predict
//! changes.

use crate::run::Run;
use feedrate_spec::plan::Plan;

/// Plans a run again with changed settings.
pub trait Replan {
    /// Returns the plan with these overrides after the run's overrides; `None` if they cannot be planned.
    fn plan(&self, overrides: &[String]) -> Option<Plan>;
    /// Returns the command that runs the changed plan.
    fn command(&self, overrides: &[String]) -> String;
}

/// Prepares a run for changes; `None` if its settings do not reproduce its plan.
pub type ReplanOf<'a> = &'a dyn Fn(&Run) -> Option<Box<dyn Replan>>;

/// Prepares no run, which disables predictions.
pub const NO_CHANGES: ReplanOf<'static> = &|_| None;
