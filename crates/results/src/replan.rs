//! Runs of ours with changed settings. The crate `session` resolves the settings; this trait is what others know of it.

use crate::run::Run;
use feedrate_spec::plan::Plan;

/// Plans a run again with changed settings.
pub trait Replan {
    /// The plan with these overrides behind the run's own; `None` if they cannot be planned.
    fn plan(&self, overrides: &[String]) -> Option<Plan>;
    /// The command that runs it.
    fn command(&self, overrides: &[String]) -> String;
}

/// Prepares a run for changes; `None` if its settings do not reproduce its plan.
pub type ReplanOf<'a> = &'a dyn Fn(&Run) -> Option<Box<dyn Replan>>;

/// Prepares no run, so that nothing is predicted.
pub const NO_CHANGES: ReplanOf<'static> = &|_| None;
