//! Runs of ours with changes: the settings in their folders are resolved by whoever knows how, which is the binary.

use feedrate_results::run::Run;
use feedrate_spec::plan::Plan;

/// A run that may be made again with changes of its workload.
pub trait Replan {
    /// `None` where no such run can be made.
    fn plan(&self, overrides: &[String]) -> Option<Plan>;
    /// The command that makes it.
    fn command(&self, overrides: &[String]) -> String;
}

/// Finds it for a run; `None` of one whose settings do not make it again.
pub type ReplanOf<'a> = &'a dyn Fn(&Run) -> Option<Box<dyn Replan>>;

/// Where nothing is to be predicted.
pub const NO_CHANGES: ReplanOf<'static> = &|_| None;
